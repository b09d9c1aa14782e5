"""Reuse of judgments for a new run: their effective number, and the missing judgments."""

import uuid

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from analytics.services.reuse import ReuseRefused, answer
from analytics.services.top_up import lacking_for
from console.api.serializers.analyses import ReuseRequest, reuse_json
from console.api.serializers.schema import ReuseAnswer
from console.campaigns import drawn_campaign
from judging.services.access import ResearchersOnly
from sampling.frames import FrameRefused
from touchstone.models import user_of


class ReuseView(APIView):
    """May this run be scored with the campaign's judgments? `lacking.design` can be sent to its draws as it is."""

    permission_classes = (ResearchersOnly,)
    query_serializer = ReuseRequest

    @extend_schema(operation_id="reuse_retrieve", responses=ReuseAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        campaign = drawn_campaign(campaign_id)
        sent = ReuseRequest(data=request.query_params.dict(), context={"campaign": campaign})
        sent.is_valid(raise_exception=True)
        asked, half_width = sent.validated_data["asked"], sent.validated_data["half_width"]
        try:
            reuse = answer(campaign=campaign, asked=asked)
        except FrameRefused as refusal:
            raise ReuseRefused(str(refusal)) from refusal
        target, top_up = lacking_for(
            campaign=campaign, asked=asked, said=reuse, half_width=half_width, user=user_of(request)
        )
        response = Response(reuse_json(campaign, asked, reuse, target, top_up))
        if top_up.job is not None:
            response["Retry-After"] = "2"
        return response
