"""The hourly job that looks whom a letter would help: gold work that waits, an audit without judges, a stuck campaign.

What is said is counted in places, never in grades. Of a kind, person and campaign there is one letter a day or a week.
"""

from collections.abc import Iterable
from typing import Any

from django.db.models import Exists, OuterRef
from django.utils import timezone
from django.utils.translation import gettext

from judging.models import Assessor, Campaign, Slot
from judging.services.messages import managers_of
from touchstone import jobs
from touchstone.letters.queueing import in_language_of, queue_letter

KIND = "notices"


def start_due_notices() -> None:
    """Queue the job of this hour, once."""
    hour = timezone.now().strftime("%Y-%m-%dT%H")
    jobs.enqueue(kind=KIND, payload={}, period_key=f"{KIND}:all:{hour}")


@jobs.handler(KIND, needs_room=False)
def notice_by_job(context: jobs.Context) -> None:
    context.result["n_letters"] = sum(
        sum(map(step, _open_campaigns())) for step in (_write_of_gold_work, _write_of_stuck)
    )


def _open_campaigns() -> Iterable[Campaign]:
    waits = Slot.objects.filter(campaign=OuterRef("pk"), purpose=Slot.Purpose.AUDIT, state=Slot.State.OPEN)
    there = Campaign.objects.filter(state=Campaign.State.OPEN, deleted_at=None, collection__deleted_at=None)
    return there.annotate(has_gold_work=Exists(waits)).select_related("places_left")


def _write_of_gold_work(campaign: Campaign) -> int:
    """Write to the gold assessors that audited documents wait; to the managers, if there is no gold assessor."""
    if not campaign.has_gold_work:  # type: ignore[attr-defined]  # annotated above
        return 0
    gold = Assessor.objects.filter(campaign=campaign, tier=Assessor.Tier.GOLD, status=Assessor.Status.ACTIVE)
    people = list(gold.select_related("user"))
    if not people:
        said = f"An audit of the campaign “{campaign.name}” waits, and no gold assessor is there to judge it."
        return _to_managers(
            campaign, "unjudged", f"Nobody judges the audit of {campaign.name}", said, "assessors/"
        )
    n = 0
    for person in people:
        with in_language_of(person.user):
            n += _is_queued(
                kind="gold",
                to=person.user,
                subject=f"campaign:{campaign.pk}",
                title=gettext("Gold work is waiting in %(campaign)s") % {"campaign": campaign.name},
                lines=[
                    gettext("In the campaign “%(campaign)s” documents wait for your judgment.")
                    % {"campaign": campaign.name}
                ],
                link=f"/judge/{campaign.pk}/",
            )
    return n


def _write_of_stuck(campaign: Campaign) -> int:
    found = getattr(campaign, "places_left", None)
    if found is None or found.possible >= found.wanted:
        return 0
    missing = found.wanted - found.possible
    least = "" if found.is_exact else "at least "
    judgments = "1 judgment" if missing == 1 else f"{missing:,} judgments"
    said = f"In the campaign “{campaign.name}” {least}{judgments} cannot be made by the people who are there."
    return _to_managers(campaign, "stuck", f"{campaign.name} cannot be finished", said, "")


def _to_managers(campaign: Campaign, kind: str, title: str, line: str, page: str) -> int:
    link = f"/manage/campaigns/{campaign.pk}/{page}"
    return sum(
        _is_queued(kind=kind, to=one, subject=f"campaign:{campaign.pk}", title=title, lines=[line], link=link)
        for one in managers_of(campaign)
    )


def _is_queued(**letter: Any) -> bool:
    return queue_letter(**letter) is not None
