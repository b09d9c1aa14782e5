"""What happened with one item, in the order of time: drawn, given out, graded, given back, audited, decided."""

from collections.abc import Iterable
from operator import itemgetter
from typing import Any

from console.manager.adjudication import PURPOSES
from judging.models import Adjudication, Item, Judgment, Lease, Slot
from sampling.models import AuditEntry, DrawEntry


def history_of(item: Item, labels: dict[int, str]) -> dict[str, Any]:
    """Return the steps, the oldest first, the grades that stand, and the decision, if any."""
    judgments = list(
        Judgment.objects.filter(item=item).select_related("assessor__user", "slot").order_by("id")
    )
    decisions = list(Adjudication.objects.filter(item=item).select_related("decided_by").order_by("id"))
    steps = [
        *_draw_steps(item),
        *_lease_steps(item),
        *_judgment_steps(judgments, labels),
        *_audit_steps(item),
        *_decision_steps(decisions, labels),
    ]
    slots = list(
        Slot.objects.filter(item=item).exclude(purpose=Slot.Purpose.VOID).values_list("state", flat=True)
    )
    return {
        "steps": sorted(steps, key=itemgetter("at")),
        "n_filled": slots.count(Slot.State.DONE),
        "n_wanted": len(slots),
        "decision": decisions[-1] if decisions else None,
        "decided_label": labels.get(decisions[-1].grade, "") if decisions else "",
    }


def _step(at: Any, what: str, who: Any = None, **more: Any) -> dict[str, Any]:
    return {"at": at, "what": what, "assessor": who, "detail": "", "comment": "", "tag": "", **more}


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
        detail = f"{row.active_milliseconds / 1000:.1f} s, version {row.document_version} of the document"
        yield _step(row.created_at, what, row.assessor, detail=detail, comment=row.comment, tag=tag)


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
        what = f"Decided: {labels.get(row.grade, row.grade)}"
        detail = f"by {row.decided_by.get_username()}"
        yield _step(row.created_at, what, detail=detail, comment=row.reason)
