"""The assessor's screens and the four requests of the judging screen."""

import logging
import uuid
from typing import Any

from django.db import InterfaceError, OperationalError
from django.db.models import Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.urls import reverse
from django.utils.safestring import mark_safe
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from judging.guidelines import guidelines_html
from judging.models import Assessor, Lease
from judging.serializers import Submission, document_json, item_json, progress_json, saved_json, topic_json
from judging.services import assign
from judging.services.errors import Refused

logger = logging.getLogger(__name__)

# The document frame: nothing runs, nothing loads, nothing leaves.
FRAME_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)


def home(request: HttpRequest) -> HttpResponse:
    """The campaigns open to me.

    How much work is left is not said: an ordinary item would lower the number and a gold check would not.
    """
    mine = Assessor.objects.open_to(request.user).select_related("campaign")
    cards = []
    for assessor in mine:
        cards.append(
            {
                "name": assessor.campaign.name,
                "description": assessor.campaign.collection.description,
                "url": reverse("judging:judge", args=[assessor.campaign_id]),
                "judged": assessor.n_judged,
                "minutes": (assessor.judgments.aggregate(total=Sum("active_milliseconds"))["total"] or 0)
                / 60_000,
            }
        )
    return render(request, "judging/assessor_home.html", {"campaigns": cards})


def judge(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """The judging screen; its script claims the first item."""
    assessor = _assessor(request, campaign_id)
    campaign = assessor.campaign
    campaign.guidelines_html = mark_safe(guidelines_html(campaign.guidelines))  # noqa: S308 (sanitised)
    state = {
        "claim_url": reverse("judging:claim", args=[campaign_id]),
        "submit_url": reverse("judging:submit", args=[campaign_id]),
        "revise_url": reverse("judging:revise", args=[campaign_id]),
        "history_url": reverse("judging:history", args=[campaign_id]),
        "csrf_token": get_token(request),
        "item": None,
    }
    context = {"campaign": campaign, "grades": campaign.scale.grades.all(), "state": state}
    return render(request, "judging/judge.html", context)


def frame(request: HttpRequest, token: uuid.UUID) -> HttpResponse:
    """The document of a lease, alone in a sandbox; only its assessor gets it."""
    lease = (
        Lease.objects.select_related("slot__item__document")
        .filter(token=token, assessor__user=request.user)
        .first()
    )
    if lease is None:
        raise Http404
    document = lease.slot.item.document
    context = {"title": document.title or document.doc_id, "text": document.text}
    response = render(request, "judging/frame.html", context)
    response.headers["Content-Security-Policy"] = FRAME_POLICY
    response.headers["X-Frame-Options"] = "SAMEORIGIN"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Cache-Control"] = "private, max-age=3600"
    return response


@api_view(["POST"])
def claim(request: Request, campaign_id: uuid.UUID) -> Response:
    assessor = _assessor(request, campaign_id)
    return Response(_next(assessor))


@api_view(["POST"])
def submit(request: Request, campaign_id: uuid.UUID) -> Response:
    """Store a judgment and answer with the next item: one request a judgment."""
    assessor = _assessor(request, campaign_id)
    judgment = assign.submit(assessor=assessor, **_submission(request))
    assessor.refresh_from_db(fields=["n_judged"])
    try:
        following = _next(assessor)
    except Refused as refusal:  # the judgment is stored whatever becomes of the next item
        following = {"item": None, "reason": refusal.title, "progress": progress_json(assessor)}
    except (
        OperationalError,
        InterfaceError,
    ):  # a lock was held too long, or the database left: the page claims again
        logger.warning("no next item after a stored judgment", exc_info=True)
        following = {"item": None, "reason": "busy", "progress": progress_json(assessor)}
    return Response({"saved": saved_json(judgment), **following})


@api_view(["POST"])
def revise(request: Request, campaign_id: uuid.UUID) -> Response:
    assessor = _assessor(request, campaign_id)
    judgment = assign.revise(assessor=assessor, **_submission(request))
    return Response({"saved": saved_json(judgment)})


@api_view(["GET"])
def history(request: Request, campaign_id: uuid.UUID) -> Response:
    assessor = _assessor(request, campaign_id)
    rows = [
        {
            "token": str(judgment.lease_token),
            "grade": judgment.grade,
            "topic": topic_json(judgment.item.topic),
            "document": document_json(judgment.item.document, _frame_url(judgment.lease_token)),
        }
        for judgment in assign.history(assessor=assessor)
    ]
    return Response({"judgments": rows})


def _assessor(request: HttpRequest | Request, campaign_id: uuid.UUID) -> Assessor:
    return assign.assessor_of(user=request.user, campaign_id=campaign_id)


def _submission(request: Request) -> dict[str, Any]:
    submission = Submission(data=request.data)
    submission.is_valid(raise_exception=True)
    return dict(submission.validated_data)


def _next(assessor: Assessor) -> dict[str, Any]:
    claimed = assign.claim(assessor=assessor)
    slot = claimed.slot
    item = None if slot is None else item_json(slot, _frame_url(slot.token), assessor.campaign.lease_seconds)
    return {"item": item, "reason": claimed.reason, "progress": progress_json(assessor)}


def _frame_url(token: uuid.UUID) -> str:
    return reverse("judging:frame", args=[token])
