"""A campaign's audit schedule: when it is due, in words, and how it is changed."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from judging.models import Campaign
from judging.refusal import Refused
from sampling import schedules
from sampling.frames import newest_draw
from sampling.models import Audit, AuditSchedule, AuditTier
from sampling.services.auditable import AuditRefused, audit_measure, refuse_foreign
from sampling.services.learned_audits import fixed_gold_fit
from sampling.services.topic_audits import refuse_strategy
from sampling.strategies import strategies_for, strategy_of
from touchstone.models import User, record

TIMING = ("crontab", "every_seconds", "is_active")
NO_LOOKS_OF_TOPICS = "audits of whole topics have no declared looks: leave them empty"
FIXED_LOOKS = "looks are declared before the first audit of the gold tier is drawn, and stay as declared"


class LooksFixed(Refused):
    status = 409
    title = "The declared looks can no longer be changed"


class FitFixed(Refused):
    status = 409
    title = "What predictions learn from can no longer be changed"


class LooksOfGold(Refused):
    title = "Declared looks are audits of the gold tier"


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
    audits = Audit.objects.filter(campaign=schedule.campaign_id, tier=schedule.tier, declaration="")
    expected = audits.order_by("-sequence").values_list("expected_in_total", flat=True).first()
    return expected is not None and expected >= schedule.items_in_total


def schedule_words(schedule: AuditSchedule) -> str:
    """Return when, in words, such as "every Monday and Thursday at 02:30 UTC"."""
    if schedule.crontab:
        return f"{schedules.crontab_words(schedules.parse_crontab(schedule.crontab))} UTC"
    return schedules.interval_words(schedule.every_seconds)


def save_schedule(*, campaign: Campaign, actor: User | None, **fields: Any) -> AuditSchedule:
    """Make or change the campaign's schedule. A new time counts from now on: what it would have missed is not due.

    Where no audit can be made, a plan from before the draw can still be switched off.
    """
    if fields.get("crontab"):
        schedules.parse_crontab(fields["crontab"])
    with transaction.atomic():
        Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)  # no audit is drawn meanwhile
        known = AuditSchedule.objects.select_for_update().filter(campaign=campaign).first()
        is_plan = known is None or fields.get("is_active") is not False
        if is_plan:
            refuse_foreign(campaign)
        schedule = known or AuditSchedule(campaign=campaign)
        before, known_looks = [getattr(schedule, name) for name in TIMING], schedule.n_looks
        for name, value in fields.items():
            setattr(schedule, name, value)
        _check_looks(schedule, known_looks)
        _check_fit(campaign, fields.get("gold_fit"))
        if schedule.measure:
            _check_measure(campaign, schedule)
        if before != [getattr(schedule, name) for name in TIMING]:
            schedule.starts_at = timezone.now()
        schedule.full_clean(exclude=["campaign"])
        if is_plan:
            if strategy_of(schedule.strategy).takes_all:
                raise AuditRefused("a census is of one run or pair: ask for it by hand, not on a schedule")
            refuse_strategy(campaign, schedule.strategy)
        schedule.save()
        state = schedule_words(schedule) if schedule.is_active else "by hand only"
        record(
            "planned audits",
            campaign,
            actor=actor,
            when=state,
            tier=schedule.tier,
            strategy=schedule.strategy,
            **({"n_looks": schedule.n_looks} if schedule.n_looks else {}),
        )
    return schedule


def has_fixed_looks(campaign: Campaign) -> bool:
    """Return whether the number of declared looks stays as it is: an audit of the gold tier was drawn."""
    return campaign.audits.filter(tier=AuditTier.GOLD, declaration="").exists()


def _check_looks(schedule: AuditSchedule, known: int | None) -> None:
    if schedule.n_looks is not None and schedule.tier != AuditTier.GOLD:
        raise LooksOfGold("leave the tier as it is, or declare no looks")
    by_topic = {one.key for one in strategies_for(has_whole_topics=True)}
    if schedule.n_looks is not None and schedule.strategy in by_topic:
        raise LooksOfGold(NO_LOOKS_OF_TOPICS)
    if schedule.n_looks != known and has_fixed_looks(schedule.campaign):
        raise LooksFixed(FIXED_LOOKS)


def _check_fit(campaign: Campaign, asked: str | None) -> None:
    fixed = fixed_gold_fit(campaign)
    if fixed is not None and asked not in (None, fixed):
        raise FitFixed(f"an audit has learned, and predictions stay as they were then: {fixed}")


def _check_measure(campaign: Campaign, schedule: AuditSchedule) -> None:
    """Spell the measure as it is stored; AuditRefused where audits cannot go by it."""
    newest = newest_draw(campaign)
    if newest is None:
        raise AuditRefused("an audit goes by the measure of the draw, or by another one once there is a draw")
    schedule.measure = audit_measure(campaign, newest, schedule.measure).name


def next_look(campaign: Campaign, tier: str, n_drawn: int) -> dict[str, int]:
    """Return what the audit that is drawn now records as a declared look; nothing if it is none."""
    schedule = AuditSchedule.objects.filter(campaign=campaign, n_looks__isnull=False).first()
    if tier != AuditTier.GOLD or schedule is None or schedule.n_looks is None:
        return {}
    look = campaign.audits.filter(tier=tier, declaration="").count() + 1
    if look > schedule.n_looks:
        return {}
    planned = {"n_planned": schedule.items_in_total, "n_drawn": n_drawn}
    return {"look": look, "n_looks": schedule.n_looks, **planned}
