"""Analyses that a job computes on request, and the three questions whose answers every comparison assumes."""

import uuid
from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from analytics.services.analyses import ask, find
from analytics.services.assumptions import answer_questions
from console.api.serializers.analyses import (
    AnalysisRequest,
    ConditionsRequest,
    analysis_json,
    conditions_json,
)
from console.api.serializers.schema import AnalysisAnswer, ConditionsAnswer
from console.campaigns import drawn_campaign
from judging.models import Campaign
from judging.services.access import ResearchersOnly
from touchstone.models import user_of


class AnalysesView(APIView):
    """GET: the newest result, if there is one. POST: request the analysis (202), then GET the result."""

    permission_classes = (ResearchersOnly,)
    query_serializer = AnalysisRequest

    @extend_schema(operation_id="analyses_retrieve", responses=AnalysisAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        campaign = drawn_campaign(campaign_id)
        return _answer(campaign, _analysis_request(request.query_params.dict(), campaign), status=200)

    @extend_schema(operation_id="analyses_create", request=AnalysisRequest, responses={202: AnalysisAnswer})
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        campaign = drawn_campaign(campaign_id)
        sent = _analysis_request(request.data, campaign)
        ask(campaign=campaign, wanted=sent["wanted"], user=user_of(request))
        return _answer(campaign, sent, status=202)


class ConditionsView(APIView):
    """GET: the three questions with the newest answers. POST, by a manager: answer all three."""

    permission_classes = (ResearchersOnly,)

    @extend_schema(operation_id="conditions_retrieve", responses=ConditionsAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        return Response(conditions_json(drawn_campaign(campaign_id)))

    @extend_schema(
        operation_id="conditions_create", request=ConditionsRequest, responses={201: ConditionsAnswer}
    )
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        campaign, user = drawn_campaign(campaign_id), user_of(request)
        if not user.may_manage:
            raise Http404
        sent = ConditionsRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        answer_questions(campaign=campaign, user=user, **sent.validated_data)
        return Response(conditions_json(campaign), status=201)


def _analysis_request(sent: Any, campaign: Campaign) -> dict[str, Any]:
    request = AnalysisRequest(data=sent, context={"campaign": campaign})
    request.is_valid(raise_exception=True)
    return dict(request.validated_data)


def _answer(campaign: Campaign, sent: dict[str, Any], *, status: int) -> Response:
    analysis = find(campaign=campaign, wanted=sent["wanted"])
    answer = Response(analysis_json(campaign, sent["wanted"], analysis, sent["claim"]), status=status)
    if analysis.active is not None:
        answer["Retry-After"] = "2"
    return answer
