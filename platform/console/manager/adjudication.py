"""The adjudication queue: grades that may be wrong and matter, for the manager. It changes the qrels alone."""

import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Exists, OuterRef
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from analytics.models import Computation, DisputedItem
from analytics.services.disputed import open_disputes, why_no_error_rates
from analytics.services.recomputation import latest_computation
from console.manager.rejudging import again_context
from judging.models import Adjudication, Campaign, Item, Judgment, Slot
from judging.services.access import managers_only
from judging.services.adjudication import adjudicate
from judging.services.item_frame import frame_response, title_of
from judging.services.more_judgments import labels_in_file
from sampling.models import Draw
from sampling.selections import COMPLETE
from touchstone.models import user_of

SHOWN_DECISIONS = 20
PURPOSES = {
    Slot.Purpose.JUDGE: "",
    Slot.Purpose.CHECK: "gold check",
    Slot.Purpose.AUDIT: "audit",
    Slot.Purpose.SILVER: "silver audit",
    Slot.Purpose.VOID: "set aside",
}


class DecisionForm(forms.Form):
    item = forms.UUIDField()
    grade = forms.IntegerField(min_value=0, max_value=9)
    reason = forms.CharField(max_length=2000, required=False, label="Reason")
    position = forms.IntegerField(min_value=0, max_value=10_000, required=False)


@managers_only
def adjudication(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """One item of the queue with all that is known of it; `?after=` goes past some, `?item=` shows one again."""
    imported = Draw.objects.filter(campaign=OuterRef("pk"), selection=COMPLETE.key)
    rows = Campaign.objects.select_related("collection", "scale").annotate(is_complete=Exists(imported))
    row: Any = get_object_or_404(rows, pk=campaign_id)
    computation = latest_computation(campaign=row)
    queue = list(_queue(computation))
    place = _place(request, queue)
    grades = list(row.scale.grades.all())
    labels = {grade.value: str(grade) for grade in grades}
    context = {
        "campaign": row,
        "computation": computation,
        "grades": grades,
        "n_left": len(queue),
        "no_error_rates": why_no_error_rates(computation) if computation and place is not None else "",
        "shown": _item_context(queue[place], labels, row) if place is not None else None,
        "is_past_end": bool(queue) and place is None,
        "next_query": urlencode({"after": queue[place].position}) if place is not None else "",
        "decisions": [_decision(made, labels, row) for made in _decisions(row)],
        "reason": request.GET.get("reason", "")[:2000],
        "labels_in_file": labels_in_file(row) if row.is_complete else "",
        **again_context(request, row),
    }
    return render(request, "console/manager/adjudication.html", context)


@require_POST
@managers_only
def decide(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Set the grade of an item of this campaign; the next one of the queue follows."""
    form = DecisionForm(request.POST)
    here = reverse("console:adjudication", args=[campaign_id])
    if not form.is_valid():
        messages.error(request, "; ".join(str(error) for errors in form.errors.values() for error in errors))
        return redirect(here)
    sent = form.cleaned_data
    item = get_object_or_404(
        Item.objects.select_related("document", "topic", "campaign"), pk=sent["item"], campaign_id=campaign_id
    )
    made = adjudicate(item=item, grade=sent["grade"], reason=sent["reason"].strip(), actor=user_of(request))
    title = _title(item, item.campaign)[:80]
    messages.success(
        request, f"Grade {made.grade} stands for “{title}” in the qrels. The estimates stay as they are."
    )
    if request.POST.get("back") == "item":
        return redirect("console:item", campaign_id=campaign_id, item_id=item.pk)
    after = sent["position"]
    return redirect(f"{here}?{urlencode({'after': after})}" if after else here)


@require_safe
@managers_only
def document(request: HttpRequest, campaign_id: uuid.UUID, item_id: uuid.UUID) -> HttpResponse:
    """The document of an item, alone in its sandbox, as assessors see it."""
    items = Item.objects.select_related("document", "topic", "campaign__collection")
    found = items.defer("document__text", "document__html")
    item = get_object_or_404(found, pk=item_id, campaign_id=campaign_id)
    return frame_response(request, item, item.campaign)


# -- what is shown --------------------------------------------------------------------------------------------


def _queue(computation: Computation | None) -> Any:
    if computation is None:
        return []
    rows = open_disputes().filter(computation=computation).select_related("item__topic", "item__document")
    return rows.defer("item__document__text", "item__document__html")


def _place(request: HttpRequest, queue: list[DisputedItem]) -> int | None:
    """Return which place of the queue is shown: the first after the position that was asked for; None past the end."""
    asked = request.GET.get("after", "")
    after = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 10 else 0
    return next((at for at, one in enumerate(queue) if one.position > after), None)


def _item_context(one: DisputedItem, labels: dict[int, str], row: Campaign) -> dict[str, Any]:
    rows = (
        Judgment.objects.filter(item=one.item)
        .select_related("assessor__user", "slot")
        .order_by("assessor_id", "-sequence")
        .distinct("assessor_id")
    )
    given = [
        {
            "row": judgment,
            "label": labels.get(judgment.grade, str(judgment.grade)) if judgment.grade is not None else "",
            "purpose": PURPOSES[Slot.Purpose(judgment.slot.purpose)] if judgment.slot else "surplus",
            "is_counted": judgment.slot is not None and judgment.slot.purpose == Slot.Purpose.JUDGE,
        }
        for judgment in rows
    ]
    return {
        "place": one,
        "item": one.item,
        "title": _title(one.item, row),
        "joint": labels.get(one.joint_grade, str(one.joint_grade)),
        "percent": round(100 * one.error_probability),
        "given": given,
        "frame_url": reverse("console:adjudication-document", args=[row.pk, one.item_id]),
    }


def _decisions(row: Campaign) -> Any:
    made = Adjudication.objects.filter(item__campaign=row).order_by("-id")
    made = made.select_related("item__topic", "item__document", "decided_by")
    return made.defer("item__document__text", "item__document__html")[:SHOWN_DECISIONS]


def _decision(made: Adjudication, labels: dict[int, str], row: Campaign) -> dict[str, Any]:
    title = _title(made.item, row)
    return {"row": made, "title": title, "label": labels.get(made.grade, str(made.grade))}


def _title(item: Item, row: Campaign) -> str:
    """Return the title that assessors see, or the document's name where there is none."""
    return title_of(item, row) or item.document.doc_id
