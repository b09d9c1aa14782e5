"""What the overview asks of single rows to say what a campaign needs: waiting audits, machines, failed jobs.

All of it comes with the campaign's row, so that it costs no statement more.
"""

from datetime import datetime, timedelta
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import CharField, Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, JSONObject
from django.utils import timezone

from judging.models import Assessor, Judgment, MachineCall, Slot
from sampling.models import AuditEntry
from touchstone.models import Job

LAST = 50  # judgments of a machine that are looked at
MOST_FAILED = 0.2
STOPPED_AFTER = timedelta(minutes=10)
JOBS_LOOKED_AT = timedelta(days=7)
ENDS_WELL = (MachineCall.Status.ANSWERED, MachineCall.Status.UNUSABLE)


def with_need_facts(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Return campaigns with since when an audit waits, their machines, and the newest job that failed for good."""
    found: QuerySet[Any] = rows.annotate(
        audit_waits_since=Subquery(_oldest_open_audit()),
        machines=ArraySubquery(_machines()),
        failed_job=Subquery(_failed_jobs().values(said=JSONObject(pk="pk", kind="kind", error="error"))[:1]),
    )
    return found


def _oldest_open_audit() -> QuerySet[Any]:
    """Return when the audit was drawn whose place is the oldest open one: places are numbered as they are made."""
    drawn = AuditEntry.objects.filter(item=OuterRef("item"), selected=True).order_by("audit")
    waiting = Slot.objects.filter(campaign=OuterRef("pk"), purpose=Slot.Purpose.AUDIT).exclude(
        state=Slot.State.DONE
    )
    return waiting.order_by("pk").values(at=Subquery(drawn.values("audit__created_at")[:1]))[:1]


def _machines() -> QuerySet[Any]:
    newest = Judgment.objects.filter(assessor=OuterRef("pk")).order_by("-id")
    call = MachineCall.objects.filter(assessor=OuterRef("pk")).order_by("-id")
    active = Assessor.objects.filter(
        campaign=OuterRef("pk"), kind=Assessor.Kind.MACHINE, status=Assessor.Status.ACTIVE
    )
    found = active.annotate(
        newest_obstacles=ArraySubquery(newest.values("obstacle")[:LAST]),
        call=Subquery(call.values(said=JSONObject(status="status", at="created_at"))[:1]),
    )
    said = JSONObject(pk="pk", name="user__username", newest="newest_obstacles", call="call")
    return found.order_by("pk").values(said=said)


def _failed_jobs() -> QuerySet[Any]:
    """Return failed jobs of the campaign after which no job of their kind was done for it, the newest first."""
    jobs = Job.objects.annotate(about=KeyTextTransform("campaign", "payload"))
    later = jobs.filter(
        Q(state__in=Job.ACTIVE) | Q(state="done"),
        kind=OuterRef("kind"),
        about=OuterRef("about"),
        created_at__gt=OuterRef("created_at"),
    )
    since = timezone.now() - JOBS_LOOKED_AT
    of_campaign = jobs.filter(about=Cast(OuterRef("pk"), CharField()))
    failed = of_campaign.filter(state="failed", created_at__gt=since).exclude(kind="draw")
    return failed.filter(~Exists(later)).order_by("-created_at")


def machine_faults(machines: list[dict[str, Any]], now: datetime) -> list[tuple[int, str]]:
    """Return the machines that stopped, or failed in a fifth of their last judgments, each with what is wrong.

    >>> ok = {"status": "answered", "at": "2026-11-27T10:00:00+00:00"}
    >>> now = datetime.fromisoformat("2026-11-27T12:00:00+00:00")
    >>> machine_faults([{"pk": 1, "name": "m", "newest": [""] * 41 + ["failed"] * 9, "call": ok}], now)
    []
    >>> machine_faults([{"pk": 1, "name": "m", "newest": [""] * 40 + ["failed"] * 10, "call": ok}], now)
    [(1, 'm gave no usable answer to 10 of its last 50 documents')]
    >>> machine_faults([{"pk": 1, "name": "m", "newest": [], "call": {**ok, "status": "refused"}}], now)
    [(1, 'm stopped: its last request was refused')]
    """
    found = []
    for one in machines:
        n_failed = one["newest"].count(Judgment.Obstacle.FAILED)
        call = one["call"]
        if n_failed and n_failed >= MOST_FAILED * len(one["newest"]):
            words = f"{one['name']} gave no usable answer to {n_failed} of its last {len(one['newest'])} documents"
            found.append((one["pk"], words))
        elif (
            call
            and call["status"] not in ENDS_WELL
            and now - datetime.fromisoformat(call["at"]) > STOPPED_AFTER
        ):
            words = {"unreachable": "got no answer"}.get(call["status"], f"was {call['status']}")
            found.append((one["pk"], f"{one['name']} stopped: its last request {words}"))
    return found
