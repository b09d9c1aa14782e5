"""Families of comparisons: which one p-values are adjusted in, and the declarations so far."""

import uuid
from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from analytics.estimation.claims import Family
from analytics.services.families import asked_family, declare_family, family_fault, question_family
from console.campaigns import drawn_campaign
from console.claims import LONGEST_FAMILY
from judging.models import Campaign
from judging.serializers.strict import Strict, Word
from judging.services.access import ResearchersOnly
from touchstone.models import user_of


class DeclarationRequest(Strict):
    """The family among whose comparisons p-values are adjusted from now on."""

    family = Word(
        max_length=LONGEST_FAMILY,
        help_text="question, all, baseline:<run> or runs:<run>,<run>: of the runs of now",
    )

    def validate_family(self, name: str) -> str:
        fault = family_fault(self.context["campaign"], name)
        if fault:
            raise serializers.ValidationError(fault)
        return name


class FamilyAnswer(serializers.Serializer[Any]):
    """A family: its runs, and the baseline with which each is compared, if it has one."""

    family = serializers.CharField(source="name")
    runs = serializers.ListField(child=serializers.CharField())
    baseline = serializers.CharField(allow_blank=True)
    n_comparisons = serializers.SerializerMethodField()

    def get_n_comparisons(self, family: Family) -> int:
        return len(family.pairs)


class DeclarationAnswer(FamilyAnswer):
    """A declaration; the newest is in force."""

    declared_at = serializers.DateTimeField()

    def get_n_comparisons(self, row: Any) -> int:
        return len(Family(row.name, tuple(row.runs), row.baseline).pairs)


class FamiliesAnswer(serializers.Serializer[Any]):
    campaign = serializers.UUIDField()
    in_force = FamilyAnswer(help_text="What requests without a family mean")
    question = FamilyAnswer(help_text="What the first draw was made for, with the runs of that time")
    declared = DeclarationAnswer(many=True, help_text="The newest first")


class FamiliesView(APIView):
    """GET: the family in force, and all declarations. POST, by a manager: declare another one."""

    permission_classes = (ResearchersOnly,)

    @extend_schema(operation_id="families_retrieve", responses=FamiliesAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        return Response(_families(drawn_campaign(campaign_id)))

    @extend_schema(
        operation_id="families_create", request=DeclarationRequest, responses={201: FamiliesAnswer}
    )
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        campaign, user = drawn_campaign(campaign_id), user_of(request)
        if not user.may_manage:
            raise Http404
        sent = DeclarationRequest(data=request.data, context={"campaign": campaign})
        sent.is_valid(raise_exception=True)
        declare_family(campaign=campaign, user=user, name=sent.validated_data["family"])
        return Response(_families(campaign), status=201)


def _families(campaign: Campaign) -> Any:
    body = {
        "campaign": campaign.pk,
        "in_force": asked_family(campaign),
        "question": question_family(campaign),
        "declared": campaign.comparison_families.order_by("-id"),
    }
    return FamiliesAnswer(body).data
