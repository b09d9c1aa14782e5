"""A campaign's assessors, for API clients: their accounts, rules and messages."""

import uuid
from typing import Any

from django.core.validators import RegexValidator
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.api.collections import Confirmation, confirmation_in
from judging.models import Assessor, Campaign, Message, Topic
from judging.serializers.strict import Choice, LongWord, Strict, WholeNumber, Word
from judging.services import campaigns, leases, machines, training
from judging.services.access import ManagersOnly
from judging.services.errors import ConfirmationWrong
from judging.services.messages import LONGEST, send
from touchstone.models import user_of

TAGS = ["assessors"]
MOST_TOPICS = 200


class AssessorAnswer(serializers.ModelSerializer[Assessor]):
    username = serializers.CharField(source="user.username")
    first_topics = serializers.SerializerMethodField(
        help_text="Ids of the topics that the assessor receives first."
    )

    class Meta:
        model = Assessor
        fields: tuple[str, ...] = (
            "id",
            "username",
            "tier",
            "kind",
            "status",
            "n_judged",
            "quota",
            "team",
            "first_topics",
            "consented_at",
            "trained_at",
            "created_at",
        )
        read_only_fields: tuple[str, ...] = fields

    def get_first_topics(self, row: Assessor) -> list[str]:
        return sorted(topic.topic_id for topic in row.first_topics.all())


class NewAssessorAnswer(AssessorAnswer):
    password = serializers.SerializerMethodField(help_text="Password of a new account; shown only once.")

    class Meta(AssessorAnswer.Meta):
        fields = (*AssessorAnswer.Meta.fields, "password")
        read_only_fields = fields

    def get_password(self, row: Assessor) -> str | None:
        password: str | None = self.context.get("password")
        return password


class AssessorRequest(Strict):
    username = Word(max_length=150, validators=[RegexValidator(r"^[\w.@+-]+$")])
    tier = Choice(choices=Assessor.Tier.choices, default=Assessor.Tier.BRONZE.value)
    kind = Choice(
        choices=[Assessor.Kind.HUMAN.value, Assessor.Kind.MACHINE.value], default=Assessor.Kind.HUMAN.value
    )

    def validate(self, sent: dict[str, Any]) -> dict[str, Any]:
        if sent["kind"] == Assessor.Kind.MACHINE and sent["tier"] != Assessor.Tier.BRONZE:
            raise serializers.ValidationError({"tier": ["a machine assessor has the bronze tier"]})
        return sent


class RulesRequest(Strict):
    """Fields that are not sent keep their values."""

    quota = WholeNumber(
        min_value=1, allow_null=True, required=False, help_text="Largest number of judgments."
    )
    team = Word(max_length=60, allow_blank=True, required=False)
    first_topics = serializers.ListField(
        child=Word(max_length=200), max_length=MOST_TOPICS, required=False, help_text="Ids of topics."
    )

    def validate_first_topics(self, ids: list[str]) -> list[Topic]:
        collection = self.context["assessor"].campaign.collection_id
        found = {
            topic.topic_id: topic
            for topic in Topic.objects.filter(collection_id=collection, topic_id__in=ids)
        }
        unknown = [topic_id for topic_id in ids if topic_id not in found]
        if unknown:
            raise serializers.ValidationError(f"the collection has no topic {', '.join(unknown[:5])[:200]}")
        return list(found.values())


class StatusRequest(Strict):
    status = Choice(choices=Assessor.Status.choices)


class RequeueAnswer(serializers.Serializer[Any]):
    n_requeued = serializers.IntegerField(
        help_text="Number of judgments requested again from other assessors."
    )


class MessageAnswer(serializers.ModelSerializer[Message]):
    sender = serializers.CharField(source="sender.username")

    class Meta:
        model = Message
        fields = ("id", "sender", "text", "created_at", "read_at")
        read_only_fields = fields


class MessageRequest(Strict):
    text = LongWord(max_length=LONGEST)


class Assessors(generics.ListAPIView[Assessor]):
    """The assessors of the campaign, with tier, status and number of judgments."""

    permission_classes = (ManagersOnly,)
    serializer_class = AssessorAnswer
    queryset = Assessor.objects.none()
    filter_fields = {
        "tier": "tier",
        "kind": "kind",
        "status": "status",
        "team": "team",
        "username": "user__username",
        "judged_at_least": "n_judged__gte",
    }
    order_fields = {"id": "id", "n_judged": "n_judged", "username": "user__username"}

    def get_queryset(self) -> QuerySet[Assessor]:
        return _with_names(Assessor.objects.filter(campaign_id=self.kwargs["campaign_id"]))

    @extend_schema(operation_id="assessors_list", tags=TAGS)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        return self.list(request)

    @extend_schema(
        operation_id="assessor_add",
        tags=TAGS,
        request=AssessorRequest,
        responses={201: NewAssessorAnswer},
        examples=[OpenApiExample("usual", value={"username": "dora"}, request_only=True)],
    )
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """Add a person or a machine assessor. An unknown name creates an account; its password is shown here once."""
        campaign = get_object_or_404(Campaign, pk=campaign_id)
        sent = AssessorRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        asked, password = sent.validated_data, None
        if asked["kind"] == Assessor.Kind.MACHINE:
            made = machines.add_machine(campaign=campaign, username=asked["username"], actor=user_of(request))
        else:
            made, password = campaigns.add_by_username(
                campaign=campaign, username=asked["username"], tier=asked["tier"], actor=user_of(request)
            )
        row = _assessor(campaign_id, made.pk)
        answer = Response(NewAssessorAnswer(row, context={"password": password}).data, status=201)
        # What a repeated request gets: no password is kept. api/idempotency.py reads it.
        answer.kept_data = NewAssessorAnswer(row).data  # type: ignore[attr-defined]  # ours, no part of Response
        return answer


class OneAssessor(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(operation_id="assessor_read", tags=TAGS, responses=AssessorAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID, assessor_id: int) -> Response:
        """One assessor."""
        return Response(AssessorAnswer(_assessor(campaign_id, assessor_id)).data)

    @extend_schema(
        operation_id="assessor_rules_change",
        tags=TAGS,
        request=RulesRequest,
        responses=AssessorAnswer,
        examples=[OpenApiExample("usual", value={"quota": 500, "team": ""}, request_only=True)],
    )
    def patch(self, request: Request, campaign_id: uuid.UUID, assessor_id: int) -> Response:
        """Set the assessor's quota, team and first topics."""
        row = _assessor(campaign_id, assessor_id)
        sent = RulesRequest(data=request.data, context={"assessor": row})
        sent.is_valid(raise_exception=True)
        rules = {"quota": row.quota, "team": row.team, "first_topics": row.first_topics.all()}
        campaigns.set_assessor_rules(assessor=row, actor=user_of(request), **{**rules, **sent.validated_data})
        return Response(AssessorAnswer(_assessor(campaign_id, assessor_id)).data)


class AssessorStatus(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(
        operation_id="assessor_status_set",
        tags=TAGS,
        request=StatusRequest,
        responses=AssessorAnswer,
        examples=[OpenApiExample("usual", value={"status": "active"}, request_only=True)],
    )
    def post(self, request: Request, campaign_id: uuid.UUID, assessor_id: int) -> Response:
        """Pause or resume the assessor. Their judgments are kept; the items they hold are released at once."""
        row = _assessor(campaign_id, assessor_id)
        sent = StatusRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        campaigns.set_status(assessor=row, status=sent.validated_data["status"], actor=user_of(request))
        return Response(AssessorAnswer(_assessor(campaign_id, assessor_id)).data)


class AssessorRequeue(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(
        operation_id="assessor_requeue",
        tags=TAGS,
        request=Confirmation,
        responses=RequeueAnswer,
        examples=[OpenApiExample("usual", value={"confirmation": "{assessor_name}"}, request_only=True)],
    )
    def post(self, request: Request, campaign_id: uuid.UUID, assessor_id: int) -> Response:
        """Request the assessor's judgments again from others; the confirmation is the user name. Rows are kept."""
        row = _assessor(campaign_id, assessor_id)
        if confirmation_in(request) != row.user.get_username():
            raise ConfirmationWrong
        return Response({"n_requeued": leases.requeue(assessor=row, actor=user_of(request))})


class AssessorMessages(generics.ListAPIView[Message]):
    """The messages to the assessor, the newest first, and when they were marked as read."""

    permission_classes = (ManagersOnly,)
    serializer_class = MessageAnswer
    queryset = Message.objects.none()
    order_fields = ("id",)
    default_order = "-id"

    def get_queryset(self) -> QuerySet[Message]:
        row = _assessor(self.kwargs["campaign_id"], self.kwargs["assessor_id"])
        return Message.objects.filter(assessor=row).select_related("sender")

    @extend_schema(operation_id="assessor_messages_list", tags=TAGS)
    def get(self, request: Request, **named: Any) -> Response:
        return self.list(request)

    @extend_schema(
        operation_id="assessor_message_send",
        tags=TAGS,
        request=MessageRequest,
        responses={201: MessageAnswer},
        examples=[
            OpenApiExample("usual", value={"text": "Please read the guidelines again."}, request_only=True)
        ],
    )
    def post(self, request: Request, campaign_id: uuid.UUID, assessor_id: int) -> Response:
        """Send the assessor a message; it stays on their pages until they mark it as read."""
        row = _assessor(campaign_id, assessor_id)
        sent = MessageRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        made = send(assessor=row, text=sent.validated_data["text"], sender=user_of(request))
        return Response(MessageAnswer(made).data, status=201)


class TrainingAttempts(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(
        operation_id="training_attempt_grant", tags=["training"], request=None, responses=AssessorAnswer
    )
    def post(self, request: Request, campaign_id: uuid.UUID, assessor_id: int) -> Response:
        """Give one more attempt to a trainee who has used up all of them; no effect where attempts are left."""
        training.grant_attempt(assessor=_assessor(campaign_id, assessor_id), user=user_of(request))
        return Response(AssessorAnswer(_assessor(campaign_id, assessor_id)).data)


def _with_names(rows: QuerySet[Assessor]) -> QuerySet[Assessor]:
    return rows.select_related("user", "campaign").prefetch_related("first_topics")


def _assessor(campaign_id: uuid.UUID, assessor_id: int) -> Assessor:
    return get_object_or_404(_with_names(Assessor.objects.all()), pk=assessor_id, campaign_id=campaign_id)
