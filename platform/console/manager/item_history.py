"""What happened with one item, in the order of time: drawn, given out, graded, given back, audited, decided."""

from collections.abc import Iterable
from operator import itemgetter
from typing import Any

from django.db.models import Case, Count, Exists, OuterRef, Q, QuerySet, Subquery, TextField, When
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce

from analytics.services.digests import SET_ASIDE
from console.manager.adjudication import PURPOSES
from judging.models import Adjudication, Assessor, ImportedName, Item, Judgment, Lease, Slot
from judging.services.imports import TOOK_BACK
from sampling.models import AuditEntry, DrawEntry
from touchstone.models import Event

TELLING = (Slot.Purpose.CHECK, Slot.Purpose.AUDIT, Slot.Purpose.SILVER)


def history_of(item: Item, labels: dict[int, str]) -> dict[str, Any]:
    """Return the steps, the oldest first, the grades that stand, and the decision, if any."""
    judgments = list(
        _with_set_aside(Judgment.objects.filter(item=item), item)
        .select_related("assessor__user", "slot")
        .order_by("id")
    )
    decisions = list(Adjudication.objects.filter(item=item).select_related("decided_by").order_by("id"))
    steps = [
        *_draw_steps(item),
        *_lease_steps(item),
        *_judgment_steps(judgments, labels),
        *_set_aside_steps(judgments),
        *_audit_steps(item),
        *_decision_steps(decisions, labels),
    ]
    newest = decisions[-1] if decisions else None
    in_force = newest if newest and newest.verdict != Adjudication.Verdict.WITHDRAWN else None
    people = {row.assessor_id: row.assessor for row in judgments if row.assessor.kind == Assessor.Kind.HUMAN}
    said = [row for row in judgments if row.comment or row.grade is None]
    return {
        "steps": sorted(steps, key=itemgetter("at")),
        "people": list(people.values()),
        "last_word": said[-1].assessor_id if said else None,
        # Who is written to about a check or an audit may learn from it that it is one.
        "may_give_away": any(row.slot and row.slot.purpose in TELLING for row in judgments),
        "decision": in_force,
        "newest_word": newest,
        "decided_label": labels.get(in_force.grade, "") if in_force and in_force.grade is not None else "",
    }


def with_places(rows: QuerySet[Item]) -> QuerySet[Item]:
    """Return the items with how many judgments are wanted of each, and how many are in."""
    wanted = Slot.objects.filter(item=OuterRef("pk")).exclude(purpose=Slot.Purpose.VOID).order_by()
    counted = wanted.values("item").annotate(n=Count("pk"), done=Count("pk", filter=Q(state=Slot.State.DONE)))
    return rows.annotate(
        n_wanted=Coalesce(Subquery(counted.values("n")), 0),
        n_filled=Coalesce(Subquery(counted.values("done")), 0),
    )


def _step(at: Any, what: str, who: Any = None, **more: Any) -> dict[str, Any]:
    return {"at": at, "what": what, "assessor": who, "detail": "", "by": "", "comment": "", "tag": "", **more}


def _draw_steps(item: Item) -> Iterable[dict[str, Any]]:
    entries = DrawEntry.objects.filter(item=item, times__gte=1).select_related("draw").order_by("draw__batch")
    for entry in entries:
        detail = f"with probability {entry.inclusion_probability:.4g}"
        yield _step(entry.draw.created_at, f"Drawn in batch {entry.draw.batch}", detail=detail)


def _lease_steps(item: Item) -> Iterable[dict[str, Any]]:
    leases = Lease.objects.filter(slot__item=item).select_related("assessor__user", "slot")
    for lease in leases:
        yield _step(
            lease.leased_at, "Given to", lease.assessor, tag=PURPOSES[Slot.Purpose(lease.slot.purpose)]
        )


def _judgment_steps(judgments: list[Judgment], labels: dict[int, str]) -> Iterable[dict[str, Any]]:
    before: dict[int, str] = {}
    for row in judgments:
        if row.grade is None:
            what = f"Given back: {row.get_obstacle_display()}"
            tag = ""
        else:
            label = labels.get(row.grade, str(row.grade))
            earlier = before.get(row.assessor_id)
            what = f"Graded {label}" if earlier is None else f"Changed from {earlier} to {label}"
            before[row.assessor_id] = label
            tag = PURPOSES[Slot.Purpose(row.slot.purpose)] if row.slot else "surplus"
        versions = f"version {row.document_version} of the document, {row.topic_version} of the topic"
        detail = f"{row.active_milliseconds / 1000:.1f} s, {versions}"
        yield _step(row.created_at, what, row.assessor, detail=detail, comment=row.comment, tag=tag)


def _with_set_aside(rows: QuerySet[Judgment], item: Item) -> QuerySet[Judgment]:
    """Return judgments with when they were set aside and by whom, by the log of events: void slots do not know it."""
    verbs = Q()
    for verb in SET_ASIDE:
        verbs |= Q(verb__startswith=verb)
    of_person = Q(whose=Cast(OuterRef("assessor__user_id"), TextField()))
    # An import that is taken back names no people: it is of those whom files brought.
    in_file = ImportedName.objects.filter(assessor=OuterRef(OuterRef("assessor")))
    # Of words that were corrected an event names the document or the topic.
    of_pair = (
        Q(detail__document=item.document.doc_id)
        | Q(detail__topic=item.topic.topic_id)
        | ~Q(detail__has_any_keys=["document", "topic"])
    )
    found = (
        Event.objects.annotate(whose=KeyTextTransform("assessor", "detail"))
        .filter(
            verbs,
            of_person | (Q(verb=TOOK_BACK) & Exists(in_file)),
            of_pair,
            subject=f"campaign:{item.campaign_id}",
            at__gte=OuterRef("created_at"),
        )
        .order_by("id")
    )
    is_void = Q(slot__purpose=Slot.Purpose.VOID, sequence=1)
    return rows.annotate(
        set_aside_at=Case(When(is_void, then=Subquery(found.values("at")[:1]))),
        set_aside_by=Case(When(is_void, then=Subquery(found.values("actor__username")[:1]))),
    )


def _set_aside_steps(judgments: list[Any]) -> Iterable[dict[str, Any]]:
    for row in judgments:
        if row.set_aside_at is not None:
            by = row.set_aside_by or ""
            yield _step(row.set_aside_at, "Set aside, and wanted again", row.assessor, by=by)


def _audit_steps(item: Item) -> Iterable[dict[str, Any]]:
    entries = AuditEntry.objects.filter(item=item, selected=True).select_related("audit")
    for entry in entries:
        yield _step(
            entry.audit.created_at,
            f"Selected by audit {entry.audit.sequence}",
            tag=entry.audit.tier,
            detail=f"with probability {entry.inclusion_probability:.4g}",
        )


def _decision_steps(decisions: list[Adjudication], labels: dict[int, str]) -> Iterable[dict[str, Any]]:
    for row in decisions:
        what = "Let stand" if row.verdict == Adjudication.Verdict.STANDS else "Decision taken back"
        if row.grade is not None:
            what = f"Decided: {labels.get(row.grade, row.grade)}"
        yield _step(row.created_at, what, by=row.decided_by.get_username(), comment=row.reason)
