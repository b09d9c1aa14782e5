"""A campaign's audit schedule: when it is due, in words, and how it is changed."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from judging.models import Campaign
from sampling import schedules
from sampling.models import Audit, AuditSchedule
from sampling.services.auditable import refuse_foreign
from touchstone.models import User, record

TIMING = ("crontab", "every_seconds", "is_active")


def last_due_time(schedule: AuditSchedule, now: datetime) -> datetime | None:
    """Return the newest due time so far; None if none has come since the schedule began to count."""
    if schedule.crontab:
        return schedules.last_due(schedules.parse_crontab(schedule.crontab), now, schedule.starts_at)
    return schedules.last_due_of_interval(schedule.every_seconds, schedule.starts_at, now)


def next_due_time(schedule: AuditSchedule, now: datetime) -> datetime:
    if schedule.crontab:
        return schedules.next_due(schedules.parse_crontab(schedule.crontab), max(now, schedule.starts_at))
    return schedules.next_due_of_interval(schedule.every_seconds, schedule.starts_at, now)


def has_ended(schedule: AuditSchedule) -> bool:
    """Return whether the planned total has been reached."""
    audits = Audit.objects.filter(campaign=schedule.campaign_id, tier=schedule.tier).order_by("-sequence")
    expected = audits.values_list("expected_in_total", flat=True).first()
    return expected is not None and expected >= schedule.items_in_total


def schedule_words(schedule: AuditSchedule) -> str:
    """Return when, in words, such as "every Monday and Thursday at 02:30 UTC"."""
    if schedule.crontab:
        return f"{schedules.crontab_words(schedules.parse_crontab(schedule.crontab))} UTC"
    return schedules.interval_words(schedule.every_seconds)


def save_schedule(*, campaign: Campaign, actor: User | None, **fields: Any) -> AuditSchedule:
    """Make or change the campaign's schedule. A new time counts from now on: what it would have missed is not due."""
    refuse_foreign(campaign)
    if fields.get("crontab"):
        schedules.parse_crontab(fields["crontab"])
    with transaction.atomic():
        known = AuditSchedule.objects.select_for_update().filter(campaign=campaign).first()
        schedule = known or AuditSchedule(campaign=campaign)
        before = [getattr(schedule, name) for name in TIMING]
        for name, value in fields.items():
            setattr(schedule, name, value)
        if before != [getattr(schedule, name) for name in TIMING]:
            schedule.starts_at = timezone.now()
        schedule.full_clean(exclude=["campaign"])
        schedule.save()
        state = schedule_words(schedule) if schedule.is_active else "by hand only"
        record(
            "planned audits",
            campaign,
            actor=actor,
            when=state,
            tier=schedule.tier,
            strategy=schedule.strategy,
        )
    return schedule
