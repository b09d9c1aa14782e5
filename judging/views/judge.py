"""The assessor's screens and the requests of the judging screen."""

import functools
import uuid
from typing import Any

from django.db.models import Sum
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.safestring import mark_safe
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from judging.guidelines import guidelines_html
from judging.models import Assessor, Campaign, Judgment
from judging.serializers import (
    ClaimRequest,
    Heartbeat,
    Submission,
    SubmissionAndClaim,
    claim_json,
    judged_json,
    saved_json,
)
from judging.serializers.schema import ClaimAnswer, HeartbeatAnswer, HistoryAnswer, ReviseAnswer, SubmitAnswer
from judging.services import assign, leases, machines
from judging.services import messages as letters
from judging.services.entry import next_gate
from judging.services.history import history
from judging.services.item_frame import title_of
from judging.spreadsheets import SheetWriter
from judging.views.screen_texts import screen_texts
from touchstone.models import user_of

LONGEST_TEXT = 200_000  # characters of a document for a program; as many as the screen shows


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
    context = {"campaigns": cards, "letters": letters.unread(user=user_of(request))}
    return render(request, "judging/assessor_home.html", context)


def judge(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """The judging screen; its script claims the first items."""
    assessor = _assessor(request, campaign_id)
    campaign = assessor.campaign
    gate = next_gate(assessor)
    if gate is not None:
        return redirect(gate, campaign_id=campaign_id)
    told, asks = letters.waiting(assessor)
    addresses = ("claim", "submit", "revise", "history", "heartbeat", "questions")
    state = {
        **{f"{name}_url": reverse(f"judging:{name}", args=[campaign_id]) for name in addresses},
        "home_url": reverse("judging:home"),
        "csrf_token": get_token(request),
        "obstacles": [
            [value, str(label)]
            for value, label in Judgment.Obstacle.choices
            if value != Judgment.Obstacle.FAILED
        ],
        "break_minutes": campaign.break_minutes,
        "highlights_terms": campaign.highlights_terms,
        "completion": _completion(assessor),
        "read_url": reverse("judging:message-read", args=[0]),
        "asks": asks,
    }
    context = {
        "campaign": campaign,
        "guidelines": mark_safe(guidelines_html(campaign.guidelines)),  # noqa: S308 (sanitised)
        "grades": campaign.scale.grades.all(),
        "state": state,
        "texts": screen_texts(),
        "letters": told,
    }
    return render(request, "judging/judge.html", context)


def _completion(assessor: Assessor) -> dict[str, str] | None:
    """Return where a crowd market's participant gets their completion code."""
    if not hasattr(assessor, "participant"):
        return None
    return {"url": reverse("judging:complete", args=[assessor.campaign_id])}


def my_data(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Everything the assessor said in the campaign, as CSV: their own data, and nothing about what it was for."""
    assessor = _assessor(request, campaign_id)
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="my-judgments.csv"'
    writer = SheetWriter(response)
    writer.writerow(["when", "topic", "document", "grade", "cannot judge", "comment", "active seconds"])
    rows = assessor.judgments.order_by("id").select_related("item__topic", "item__document")
    for row in rows.defer("item__document__text", "item__document__html").iterator():
        when = row.created_at.isoformat(timespec="seconds")
        words = (row.item.topic.title, title_of(row.item, assessor.campaign))
        seconds = round(row.active_milliseconds / 1000, 1)
        writer.writerow([when, *words, row.grade, row.obstacle, row.comment, seconds])
    return response


class ItemClaim(APIView):
    scope = "judge"

    @extend_schema(operation_id="items_claim", request=ClaimRequest, responses=ClaimAnswer)
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """Lease what to judge next: up to n items, the one to judge now first."""
        wanted = _valid(ClaimRequest, request)
        claimed = assign.claim_as(user_id=user_of(request).pk, campaign_id=campaign_id, n=wanted["n"])
        answer = claim_json(claimed)
        if wanted["with_text"]:
            campaign = Campaign.objects.only("kind").get(pk=campaign_id)
            texts = machines.texts_of(claim=claimed, campaign=campaign, longest=LONGEST_TEXT)
            for item, held in zip(answer["items"], claimed.items, strict=True):
                item["document"]["text"] = texts[held.item_id]
        return Response(answer)


class JudgmentSubmission(APIView):
    scope = "judge"

    @extend_schema(operation_id="judgments_create", request=SubmissionAndClaim, responses=SubmitAnswer)
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """Store a judgment and answer with what comes next: one request a judgment."""
        sent = _valid(SubmissionAndClaim, request)
        judgment, claimed = assign.submit_and_claim(
            user_id=user_of(request).pk, campaign_id=campaign_id, **sent
        )
        return Response({"saved": saved_json(judgment), **claim_json(claimed)})


class JudgmentRevision(APIView):
    scope = "judge"

    @extend_schema(operation_id="revisions_create", request=Submission, responses=ReviseAnswer)
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """Change a judgment of mine; the old one stays in the record."""
        judgment = assign.revise(assessor=_assessor(request, campaign_id), **_valid(Submission, request))
        return Response({"saved": saved_json(judgment)})


class LeaseExtension(APIView):
    scope = "judge"

    @extend_schema(operation_id="leases_extend", request=Heartbeat, responses=HeartbeatAnswer)
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """Keep the leases of a screen at which somebody still sits."""
        tokens = _valid(Heartbeat, request)["tokens"]
        return Response({"held": leases.extend(assessor=_assessor(request, campaign_id), tokens=tokens)})


class JudgmentHistory(APIView):
    scope = "judge"

    @extend_schema(operation_id="history_retrieve", responses=HistoryAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """My last judgments, the newest first."""
        assessor = _assessor(request, campaign_id)
        rows = history(assessor=assessor)
        return Response({"judgments": [judged_json(judgment, assessor.campaign) for judgment in rows]})


def _assessor(request: HttpRequest | Request, campaign_id: uuid.UUID) -> Assessor:
    return assign.assessor_of(user=request.user, campaign_id=campaign_id)


@functools.cache
def _validator(serializer: type[serializers.Serializer[Any]]) -> serializers.Serializer[Any]:
    """Return one instance for all requests: validating changes nothing in it, making one copies every field."""
    return serializer()


def _valid(serializer: type[serializers.Serializer[Any]], request: Request) -> dict[str, Any]:
    return dict(_validator(serializer).run_validation(request.data))
