"""The training round: the judging screen in simple pages, each answer told at once."""

import uuid
from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_safe

from judging.guidelines import guidelines_html
from judging.models import Assessor, TrainingItem
from judging.services import assign, training
from judging.services.entry import needs_training, next_gate
from judging.services.item_frame import frame_response, title_of
from touchstone.models import user_of


def page(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """The next training document, what was answered to one (`?item=`), or the result of the attempt."""
    assessor = assign.assessor_of(user=request.user, campaign_id=campaign_id)
    if next_gate(assessor) == "judging:consent":
        return redirect("judging:consent", campaign_id=campaign_id)
    if not needs_training(assessor):
        return redirect("judging:judge", campaign_id=campaign_id)
    if request.method == "POST":
        return _store(request, assessor)
    now = training.training_of(assessor=assessor, again="again" in request.GET)
    shown = next((item for item in now.items if str(item.position) == request.GET.get("item")), None)
    if shown is not None and shown.pk in now.answers:
        return _screen(request, assessor, now, shown)
    if now.next_item is None:
        return render(request, "judging/training_result.html", _result(assessor, now))
    if now.is_passed:  # nothing is left to answer for whoever has passed
        return redirect("judging:judge", campaign_id=campaign_id)
    return _screen(request, assessor, now, now.next_item)


def _store(request: HttpRequest, assessor: Assessor) -> HttpResponse:
    try:
        sent = {name: int(request.POST[name]) for name in ("position", "attempt", "grade")}
    except (KeyError, ValueError) as error:
        raise SuspiciousOperation("a training answer is three numbers") from error
    training.answer(assessor=assessor, **sent)
    there = reverse("judging:training", args=[assessor.campaign_id])
    return redirect(f"{there}?{urlencode({'item': sent['position']})}")


def _screen(
    request: HttpRequest, assessor: Assessor, now: training.Training, item: TrainingItem
) -> HttpResponse:
    campaign, answer = assessor.campaign, now.answers.get(item.pk)
    grades = list(campaign.scale.grades.all())
    labels = {grade.value: str(grade) for grade in grades}
    context: dict[str, Any] = {
        "campaign": campaign,
        "training": now,
        "item": item,
        "document_title": title_of(item, campaign),
        "number": now.items.index(item) + 1,
        "n_items": len(now.items),
        "grades": grades,
        "answer": answer,
        "is_right": answer is not None and answer.grade == item.grade,
        "given": labels.get(answer.grade) if answer else None,
        "reference": labels.get(item.grade) if answer else None,  # never in the page before the answer
        "frame_url": reverse("judging:training-frame", args=[campaign.pk, item.position]),
        "guidelines": mark_safe(guidelines_html(campaign.guidelines)),  # noqa: S308 (sanitised)
    }
    return render(request, "judging/training.html", context)


def _result(assessor: Assessor, now: training.Training) -> dict[str, Any]:
    labels = {grade.value: str(grade) for grade in assessor.campaign.scale.grades.all()}
    return {
        "campaign": assessor.campaign,
        "training": now,
        "is_participant": hasattr(assessor, "participant"),
        "percent": round(100 * now.share_right),
        "percent_required": round(100 * now.pass_share),
        "rows": [
            {
                "item": item,
                "document_title": title_of(item, assessor.campaign),
                "given": labels[now.answers[item.pk].grade],
                "reference": labels[item.grade],
                "is_right": now.answers[item.pk].grade == item.grade,
            }
            for item in now.items
        ],
    }


@require_safe
def frame(request: HttpRequest, campaign_id: uuid.UUID, position: int) -> HttpResponse:
    """The document of a training item, for the campaign's assessors alone."""
    found = (
        TrainingItem.objects.select_related("topic", "document", "campaign__collection")
        .filter(campaign=campaign_id, position=position, campaign__assessors__user=user_of(request))
        .defer("document__text", "document__html")
        .first()
    )
    if found is None:
        raise Http404
    return frame_response(request, found, found.campaign)
