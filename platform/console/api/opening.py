"""Whether a campaign can be opened, and opening and closing it, for API clients."""

import uuid
from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.api.campaigns import TAGS, CampaignAnswer, campaign_with_scale
from judging.models import Campaign
from judging.serializers.strict import Choice, Strict
from judging.services import campaigns
from judging.services.access import ManagersOnly
from judging.services.opening import opening
from touchstone.models import user_of


class StateRequest(Strict):
    state = Choice(choices=[Campaign.State.OPEN.value, Campaign.State.CLOSED.value])


class OpeningAnswer(serializers.Serializer[Any]):
    state = serializers.ChoiceField(Campaign.State.choices)
    refusals = serializers.ListField(
        child=serializers.CharField(), help_text="Why it cannot be opened; empty: it can"
    )
    advice = serializers.ListField(
        child=serializers.CharField(), help_text="What is better done before it is opened"
    )


class CampaignState(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(operation_id="campaign_state_read", tags=TAGS, responses=OpeningAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """The state, why the campaign could not be opened, and what is better done before."""
        row = campaign_with_scale(campaign_id)
        found = opening(row)
        answer = {"state": row.state, "refusals": found.refusals, "advice": found.advice}
        return Response(OpeningAnswer(answer).data)

    @extend_schema(
        operation_id="campaign_state_set",
        tags=TAGS,
        request=StateRequest,
        responses=CampaignAnswer,
        examples=[OpenApiExample("usual", value={"state": "closed"}, request_only=True)],
    )
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """Open the campaign, so that its assessors can judge, or close it."""
        sent = StateRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        is_open = sent.validated_data["state"] == Campaign.State.OPEN
        change = campaigns.open_campaign if is_open else campaigns.close_campaign
        change(campaign=campaign_with_scale(campaign_id), actor=user_of(request))
        return Response(CampaignAnswer(campaign_with_scale(campaign_id)).data)
