"""Campaigns, for API clients: creation, changes, state, deletion, progress."""

import uuid
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.api.collections import Confirmation, RestoreRequest, confirmation_in, name_in
from judging.check_grades import check_grades_choices
from judging.judging_orders import RANDOM_ORDER, judging_order_choices, refused_judgments
from judging.label_aggregation import label_score_choices
from judging.models import Campaign, CampaignTopic, Collection, Grade, Scale, Topic
from judging.prompts import check_prompt
from judging.serializers.strict import (
    Finite,
    Flag,
    LongWord,
    Strict,
    TableChoice,
    Token,
    WholeNumber,
    Word,
)
from judging.services import campaigns
from judging.services.access import ManagersChange, ManagersOnly, ResearchersOnly, RestorersOnly
from judging.services.deletion import delete_campaign, restore_campaign
from judging.services.progress import progress
from touchstone.models import user_of

TAGS = ["campaigns"]
LONGEST_TEXT = 100_000
MOST_TOPICS = 200
MOST = 1e9


class GradeAnswer(serializers.ModelSerializer[Grade]):
    class Meta:
        model = Grade
        fields = ("value", "label", "gain")
        read_only_fields = fields


class ScaleAnswer(serializers.ModelSerializer[Scale]):
    grades = GradeAnswer(many=True)

    class Meta:
        model = Scale
        fields = ("relevant_grade", "grades")
        read_only_fields = fields


class CampaignAnswer(serializers.ModelSerializer[Campaign]):
    scale = ScaleAnswer()

    class Meta:
        model = Campaign
        fields = (
            "id",
            "collection",
            "name",
            "state",
            "scale",
            "guidelines",
            "judgments_per_item",
            "judging_order",
            "lease_seconds",
            "gold_check_rate",
            "gold_check_exposures",
            "decoys_per_check",
            "check_grades",
            "highlights_terms",
            "break_minutes",
            "pause_below",
            "machine_prompt",
            "bronze_score",
            "cost_per_judgment",
            "cost_per_gold",
            "is_simulated",
            "created_at",
            "deleted_at",
        )
        read_only_fields = fields


class GradeRequest(Strict):
    value = WholeNumber(min_value=0, max_value=9)
    label = Word(max_length=60)  # type: ignore[assignment]  # a field is no attribute of what declares it
    gain = Finite(min_value=0, max_value=MOST / 10)


class CampaignChange(Strict):
    """What may change after the draw: nothing that a probability or a stored judgment rests on."""

    name = Word(max_length=100, required=False)
    guidelines = LongWord(max_length=LONGEST_TEXT, allow_blank=True, required=False)
    lease_seconds = WholeNumber(min_value=1, max_value=86_400, required=False)
    break_minutes = WholeNumber(min_value=0, max_value=32_767, required=False)
    pause_below = Finite(
        min_value=1e-12,
        max_value=0.1,
        allow_null=True,
        required=False,
        help_text="A flag whose adjusted p is below this pauses its assessor; null, the default: none does",
    )
    judging_order = TableChoice(
        judging_order_choices,
        required=False,
        help_text="Until the draw; `informative`: by what it tells, with one judgment an item and the whole pool drawn",
    )
    check_grades = TableChoice(
        check_grades_choices,
        required=False,
        help_text="Grades of the gold checks that are chosen from now on; a new campaign has `at-most`",
    )
    highlights_terms = Flag(required=False)
    machine_prompt = LongWord(max_length=LONGEST_TEXT, allow_blank=True, required=False)
    bronze_score = TableChoice(label_score_choices, required=False)
    cost_per_judgment = Finite(min_value=1e-9, max_value=MOST / 10, allow_null=True, required=False)
    cost_per_gold = Finite(min_value=1e-9, max_value=MOST / 10, allow_null=True, required=False)

    def validate_machine_prompt(self, prompt: str) -> str:
        try:
            if prompt:
                check_prompt(prompt)
        except ValueError as error:
            raise serializers.ValidationError(str(error)) from error
        return prompt


class CampaignRequest(CampaignChange):
    """A campaign with its scale; fields that are not sent have the defaults of the page “New campaign”."""

    collection = Token()
    name = Word(max_length=100)
    grades = GradeRequest(many=True, required=False)
    relevant_grade = WholeNumber(min_value=1, max_value=9, required=False)
    judgments_per_item = WholeNumber(min_value=1, max_value=20, required=False)
    gold_check_rate = Finite(min_value=0, max_value=0.5, required=False)
    gold_check_exposures = WholeNumber(min_value=1, max_value=100, required=False)
    decoys_per_check = WholeNumber(min_value=0, max_value=5, required=False)

    def validate_collection(self, pk: uuid.UUID) -> Collection:
        found: Collection | None = self.context["collections"].filter(pk=pk).first()
        if found is None:
            raise serializers.ValidationError("there is no such collection")
        return found

    def validate(self, sent: dict[str, Any]) -> dict[str, Any]:
        given = sent.pop("grades", None)
        grades = (
            campaigns.DEFAULT_GRADES
            if given is None
            else [(grade["value"], grade["label"], grade["gain"]) for grade in given]
        )
        if [value for value, _, _ in grades] != list(range(len(grades))) or not 2 <= len(grades) <= 10:
            raise serializers.ValidationError({"grades": ["enter two to ten grades: 0, 1, 2, ... in order"]})
        if sent.get("relevant_grade", 1) >= len(grades):
            raise serializers.ValidationError({"relevant_grade": ["must not be above the highest grade"]})
        order = sent.get("judging_order", RANDOM_ORDER)
        if reason := refused_judgments(order, sent.get("judgments_per_item", 1)):
            raise serializers.ValidationError({"judging_order": [reason]})
        return {**sent, "grades": grades}


class Campaigns(generics.ListAPIView[Campaign]):
    """The campaigns you may see, the newest first."""

    permission_classes = (ManagersChange,)
    serializer_class = CampaignAnswer
    queryset = Campaign.objects.none()
    filter_fields = {
        "state": "state",
        "collection": "collection",
        "name": "name",
        "search": "name__icontains",
    }
    order_fields = ("created_at", "name")
    default_order = "-created_at"

    def get_queryset(self) -> QuerySet[Campaign]:
        return _with_scale(Campaign.objects.visible_to(user_of(self.request)))

    @extend_schema(operation_id="campaigns_list", tags=TAGS)
    def get(self, request: Request) -> Response:
        return self.list(request)

    @extend_schema(
        operation_id="campaign_create",
        tags=TAGS,
        request=CampaignRequest,
        responses={201: CampaignAnswer},
        examples=[
            OpenApiExample(
                "usual", value={"collection": "{collection_id}", "name": "Round 2"}, request_only=True
            )
        ],
    )
    def post(self, request: Request) -> Response:
        """Create a campaign with its own scale; draw its items next."""
        mine = Collection.objects.visible_to(user_of(request))
        sent = CampaignRequest(data=request.data, context={"collections": mine})
        sent.is_valid(raise_exception=True)
        made = campaigns.create_campaign(user=user_of(request), **sent.validated_data)
        return Response(CampaignAnswer(campaign_with_scale(made.pk)).data, status=201)


class OneCampaign(APIView):
    permission_classes = (ManagersChange,)

    @extend_schema(operation_id="campaign_read", tags=TAGS, responses=CampaignAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """One campaign with its scale and rules."""
        return Response(CampaignAnswer(campaign_with_scale(campaign_id)).data)

    @extend_schema(
        operation_id="campaign_change",
        tags=TAGS,
        request=CampaignChange,
        responses=CampaignAnswer,
        examples=[OpenApiExample("usual", value={"lease_seconds": 900}, request_only=True)],
    )
    def patch(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """Change settings that may change after the draw; fields that are not sent keep their values."""
        sent = CampaignChange(data=request.data)
        sent.is_valid(raise_exception=True)
        row = campaign_with_scale(campaign_id)
        campaigns.change_campaign(campaign=row, changes=sent.validated_data, actor=user_of(request))
        return Response(CampaignAnswer(campaign_with_scale(campaign_id)).data)


class CampaignScale(APIView):
    permission_classes = (ResearchersOnly,)

    @extend_schema(operation_id="scale_read", tags=TAGS, responses=ScaleAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """The grades with their gains, and the lowest relevant grade. A scale never changes."""
        return Response(ScaleAnswer(campaign_with_scale(campaign_id).scale).data)


class CampaignDelete(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(
        operation_id="campaign_delete",
        tags=TAGS,
        request=Confirmation,
        responses=CampaignAnswer,
        examples=[OpenApiExample("usual", value={"confirmation": "{campaign_name}"}, request_only=True)],
    )
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """Close and hide the campaign. Nothing is removed; `restore` brings it back."""
        row = campaign_with_scale(campaign_id)
        delete_campaign(campaign=row, confirmation=confirmation_in(request), actor=user_of(request))
        return Response(CampaignAnswer(campaign_with_scale(campaign_id)).data)


class CampaignRestore(APIView):
    permission_classes = (RestorersOnly,)

    @extend_schema(
        operation_id="campaign_restore",
        tags=TAGS,
        request=RestoreRequest,
        responses=CampaignAnswer,
        examples=[OpenApiExample("usual", value={}, request_only=True)],
    )
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """Bring a deleted campaign back, closed as it is."""
        restore_campaign(
            campaign=campaign_with_scale(campaign_id), actor=user_of(request), name=name_in(request)
        )
        return Response(CampaignAnswer(campaign_with_scale(campaign_id)).data)


class ProgressAnswer(serializers.Serializer[Any]):
    left = serializers.IntegerField(help_text="Judgments still needed.")
    is_exact = serializers.BooleanField(
        help_text="Whether `left` is exact; if not, at least `left` are still needed."
    )
    audits_left = serializers.IntegerField(help_text="Judgments still needed by audits of the gold tier.")
    silver_left = serializers.IntegerField(help_text="Judgments still needed by audits of the silver tier.")
    leased = serializers.IntegerField(help_text="Items held by assessors.")
    expired = serializers.IntegerField(help_text="Items held past their time limit.")
    oldest_lease = serializers.DateTimeField(allow_null=True)


class CampaignProgress(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(operation_id="progress_read", tags=TAGS, responses=ProgressAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """The judgments still needed and the items held; counted up to a limit, so that the answer is fast."""
        return Response(ProgressAnswer(progress(campaign=campaign_with_scale(campaign_id))).data)


# -- topics kept for teams ------------------------------------------------------------------------------------


class TopicTeamAnswer(serializers.ModelSerializer[CampaignTopic]):
    topic = serializers.CharField(source="topic.topic_id")

    class Meta:
        model = CampaignTopic
        fields = ("id", "topic", "team", "check_rate")
        read_only_fields = fields
        extra_kwargs = {
            "team": {"help_text": "The only team that may judge the topic; empty: all assessors."},
            "check_rate": {"help_text": "Share of gold checks among the documents shown in the topic."},
        }


class TopicTeamsRequest(Strict):
    team = Word(max_length=60, allow_blank=True, help_text="Empty: all assessors may judge these topics.")
    topics = serializers.ListField(
        child=Word(max_length=200), min_length=1, max_length=MOST_TOPICS, help_text="Ids of the topics."
    )

    def validate_topics(self, ids: list[str]) -> list[int]:
        found = dict(
            Topic.objects.filter(
                collection_id=self.context["campaign"].collection_id, topic_id__in=ids
            ).values_list("topic_id", "pk")
        )
        unknown = [topic_id for topic_id in ids if topic_id not in found]
        if unknown:
            raise serializers.ValidationError(f"the collection has no topic {', '.join(unknown[:5])[:200]}")
        return sorted(found.values())


class TopicsChanged(serializers.Serializer[Any]):
    n_topics = serializers.IntegerField()


class TopicTeams(generics.ListAPIView[CampaignTopic]):
    """The campaign's topics with the teams for which they are reserved."""

    permission_classes = (ManagersOnly,)
    serializer_class = TopicTeamAnswer
    queryset = CampaignTopic.objects.none()
    filter_fields = {"team": "team", "topic": "topic__topic_id"}
    order_fields = {"topic": "topic_id"}

    def get_queryset(self) -> QuerySet[CampaignTopic]:
        return CampaignTopic.objects.filter(campaign_id=self.kwargs["campaign_id"]).select_related("topic")

    @extend_schema(operation_id="topic_teams_list", tags=["topic-teams"])
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        return self.list(request)

    @extend_schema(
        operation_id="topic_teams_set",
        tags=["topic-teams"],
        request=TopicTeamsRequest,
        responses=TopicsChanged,
        examples=[OpenApiExample("usual", value={"team": "", "topics": ["{topic_id}"]}, request_only=True)],
    )
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """Reserve topics for a team, or open them to all assessors."""
        row = campaign_with_scale(campaign_id)
        sent = TopicTeamsRequest(data=request.data, context={"campaign": row})
        sent.is_valid(raise_exception=True)
        topics = sent.validated_data["topics"]
        teams = dict.fromkeys(topics, sent.validated_data["team"])
        campaigns.set_topic_teams(campaign=row, teams=teams, actor=user_of(request))
        return Response({"n_topics": len(topics)})


def _with_scale(rows: QuerySet[Campaign]) -> QuerySet[Campaign]:
    return rows.select_related("scale").prefetch_related("scale__grades")


def campaign_with_scale(campaign_id: uuid.UUID) -> Campaign:
    return get_object_or_404(_with_scale(Campaign.objects.all()), pk=campaign_id)
