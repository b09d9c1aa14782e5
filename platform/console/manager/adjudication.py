"""The items in question, one after the other, for the manager. A decision changes the qrels alone."""

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

from analytics.estimation.questioned import DOUBTFUL
from analytics.models import Computation
from analytics.services.dispute_queue import Dispute, dispute_queue, newest_with_disputes, place_of
from analytics.services.disputed import why_unmeasured
from console.manager.rejudging import again_context
from judging.models import Adjudication, Campaign, Item, Judgment, Slot
from judging.services.access import managers_only
from judging.services.adjudication import adjudicate, undo
from judging.services.errors import NewerWord
from judging.services.item_frame import frame_response, title_of
from judging.services.more_judgments import labels_in_file
from judging.services.reservations import reserve_first
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
    grade = forms.IntegerField(min_value=0, max_value=9, required=False)
    verdict = forms.ChoiceField(choices=[("decided", ""), ("stands", "")], required=False)
    reason = forms.CharField(max_length=2000, required=False, label="Reason")
    position = forms.IntegerField(min_value=0, max_value=10_000, required=False)

    def clean(self) -> dict[str, Any]:
        sent: dict[str, Any] = super().clean() or {}
        stands = sent.get("verdict") == Adjudication.Verdict.STANDS
        if not self.errors and stands == (sent.get("grade") is not None):
            raise forms.ValidationError("Choose a grade, or let the grades stand.")
        return sent


@managers_only
def adjudication(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """One item in question, reserved for whoever opens it; `?after=` goes past some, `?item=` shows one again."""
    imported = Draw.objects.filter(campaign=OuterRef("pk"), selection=COMPLETE.key)
    rows = Campaign.objects.select_related("collection", "scale").annotate(is_complete=Exists(imported))
    row: Any = get_object_or_404(rows, pk=campaign_id)
    computation = newest_with_disputes(row)
    queue = dispute_queue(computation) if computation else []
    asked = _disputes_from(request, queue)
    reserved = reserve_first(campaign=row, items=[one.item for one in asked], manager=user_of(request))
    shown = next((one for one in queue if reserved and one.item == reserved[0]), None)
    grades = list(row.scale.grades.all())
    labels = {grade.value: str(grade) for grade in grades}
    made = _decisions(row)
    context = {
        "campaign": row,
        "computation": computation,
        "grades": grades,
        "n_left": len(queue),
        "no_error_rates": why_unmeasured(computation.pooled_counts, row.scale.relevant_grade)
        if shown
        else "",
        "shown": _item_context(shown, computation, labels, row) if shown else None,
        "until": reserved[1] if reserved else None,
        "is_past_end": bool(queue) and not asked,
        "is_elsewhere": bool(asked) and shown is None,
        "next_query": urlencode({"after": shown.position}) if shown else "",
        "decisions": [_decision(one, labels, row) for one in made],
        "done": _notice_of_request(request, made, row),
        "reason": request.GET.get("reason", "")[:2000],
        "labels_in_file": labels_in_file(row) if row.is_complete else "",
        **again_context(request, row),
    }
    return render(request, "console/manager/adjudication.html", context)


@require_POST
@managers_only
def decide(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Set the grade of an item of this campaign, or let it stand; the next one of the queue follows."""
    form = DecisionForm(request.POST)
    here = reverse("console:adjudication", args=[campaign_id])
    if not form.is_valid():
        messages.error(request, "; ".join(str(error) for errors in form.errors.values() for error in errors))
        return redirect(here)
    sent = form.cleaned_data
    item = get_object_or_404(
        Item.objects.select_related("document", "topic", "campaign"), pk=sent["item"], campaign_id=campaign_id
    )
    made = adjudicate(
        item=item,
        grade=sent["grade"],
        reason=sent["reason"].strip(),
        actor=user_of(request),
        verdict=sent["verdict"] or Adjudication.Verdict.DECIDED,
    )
    back = _return_address(request, campaign_id, item)
    query: dict[str, Any] = {"done": made.pk}
    if sent["position"] and back == here:
        query["after"] = sent["position"]
    return redirect(f"{back}?{urlencode(query)}")


@require_POST
@managers_only
def undo_decision(request: HttpRequest, campaign_id: uuid.UUID, adjudication_id: int) -> HttpResponse:
    """Take a manager's word back; the document is shown again."""
    rows = Adjudication.objects.select_related("item__document", "item__topic", "item__campaign")
    word = get_object_or_404(rows, pk=adjudication_id, item__campaign_id=campaign_id)
    back = _return_address(request, campaign_id, word.item)
    try:
        made = undo(adjudication=word, actor=user_of(request))
    except NewerWord as refusal:
        messages.error(request, f"Nothing was taken back: {refusal}.")
        return redirect(back)
    query: dict[str, Any] = {"done": made.pk, "item": word.item_id}
    return redirect(f"{back}?{urlencode(query)}")


def _return_address(request: HttpRequest, campaign_id: uuid.UUID, item: Item) -> str:
    if request.POST.get("back") == "item":
        return reverse("console:item", args=[campaign_id, item.pk])
    return reverse("console:adjudication", args=[campaign_id])


@require_safe
@managers_only
def document(request: HttpRequest, campaign_id: uuid.UUID, item_id: uuid.UUID) -> HttpResponse:
    """The document of an item, alone in its sandbox, as assessors see it."""
    items = Item.objects.select_related("document", "topic", "campaign__collection")
    found = items.defer("document__text", "document__html")
    item = get_object_or_404(found, pk=item_id, campaign_id=campaign_id)
    return frame_response(request, item, item.campaign)


# -- what is shown --------------------------------------------------------------------------------------------


def _disputes_from(request: HttpRequest, queue: list[Dispute]) -> list[Dispute]:
    """Return the part of the queue that is asked for: one item first, or all after a position."""
    item, asked = request.GET.get("item", ""), request.GET.get("after", "")
    after = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 10 else 0
    rest = [one for one in queue if one.position > after]
    return sorted(rest, key=lambda one: str(one.item) != item)


def _item_context(
    dispute: Dispute, computation: Computation, labels: dict[int, str], row: Campaign
) -> dict[str, Any]:
    place, item = place_of(dispute, computation)
    rows = (
        Judgment.objects.filter(item=item)
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
        "dispute": dispute,
        "place": place,
        "is_doubtful": place is not None and DOUBTFUL in dispute.reasons,
        "item": item,
        "title": _title(item, row),
        "joint": labels.get(place.joint_grade, str(place.joint_grade)) if place else "",
        "percent": round(100 * place.error_probability) if place else 0,
        "given": given,
        "frame_url": reverse("console:adjudication-document", args=[row.pk, item.pk]),
    }


def _decisions(row: Campaign) -> list[Any]:
    made = Adjudication.objects.filter(item__campaign=row).order_by("-id")
    later = Adjudication.objects.filter(item=OuterRef("item"), id__gt=OuterRef("id"))
    made = made.select_related("item__topic", "item__document", "decided_by").annotate(
        is_newest=~Exists(later)
    )
    return list(made.defer("item__document__text", "item__document__html")[:SHOWN_DECISIONS])


def _decision(made: Any, labels: dict[int, str], row: Campaign) -> dict[str, Any]:
    title = _title(made.item, row)
    return {"row": made, "title": title, "label": _word(made, labels), "may_undo": _may_undo(made)}


def _may_undo(newest: Any) -> bool:
    return bool(newest.is_newest) and newest.verdict != Adjudication.Verdict.WITHDRAWN


def _word(made: Adjudication, labels: dict[int, str]) -> str:
    """Return a manager's word: the grade, or that it stands or was taken back."""
    if made.grade is not None:
        return labels.get(made.grade, str(made.grade))
    return "let stand" if made.verdict == Adjudication.Verdict.STANDS else "taken back"


def _notice_of_request(request: HttpRequest, made: list[Any], row: Campaign) -> dict[str, Any] | None:
    """Return the notice about what was done a moment ago, if it is the newest word on its document."""
    asked = request.GET.get("done", "")
    found = next((one for one in made if str(one.pk) == asked and one.is_newest), None)
    return done_notice(request, found, _title(found.item, row)) if found else None


def done_notice(request: HttpRequest, newest: Adjudication | None, title: str) -> dict[str, Any] | None:
    """Return what the newest word means for the qrels, if it was given a moment ago; with it, it can be undone."""
    if newest is None or request.GET.get("done") != str(newest.pk):
        return None
    if newest.verdict == Adjudication.Verdict.DECIDED:
        words = (
            f"Grade {newest.grade} stands for “{title[:80]}” in the qrels. The estimates stay as they are."
        )
    elif newest.verdict == Adjudication.Verdict.STANDS:
        words = (
            f"The grades of “{title[:80]}” stand as they were given. The document is no longer in question."
        )
    else:
        words = (
            f"The decision on “{title[:80]}” is taken back: the qrels have the grade of the judgments again."
        )
    return {"row": newest, "words": words, "may_undo": newest.verdict != Adjudication.Verdict.WITHDRAWN}


def _title(item: Item, row: Campaign) -> str:
    """Return the title that assessors see, or the document's name where there is none."""
    return title_of(item, row) or item.document.doc_id
