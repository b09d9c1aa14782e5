"""What to buy next: more judgments or more gold labels."""

import uuid

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from analytics.services.plan_answers import plan_json
from analytics.services.planning import plan
from console.api.serializers.analyses import PlannerRequest
from console.api.serializers.schema import PlannerAnswer
from console.campaigns import drawn_campaign
from judging.services.access import ResearchersOnly


class PlannerView(APIView):
    """A plan for a run or a pair: judgments, gold labels, gold on named documents, topics, and their cost."""

    permission_classes = (ResearchersOnly,)
    query_serializer = PlannerRequest

    @extend_schema(operation_id="planner_retrieve", responses=PlannerAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        campaign = drawn_campaign(campaign_id)
        sent = PlannerRequest(data=request.query_params.dict(), context={"campaign": campaign})
        sent.is_valid(raise_exception=True)
        offer = plan(campaign=campaign, terms=sent.validated_data["terms"])
        return Response({"campaign": str(campaign.pk), **plan_json(offer)})
