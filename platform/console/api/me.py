"""An assessor's own campaigns, consent, training, end of work, messages.

Nothing here tells a gold check from any other item, and nothing says how much work is left.
"""

import uuid
from typing import Any

from django.db.models import QuerySet, Sum
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from judging.models import Assessor, Judgment, Message
from judging.serializers.strict import Flag, Strict, WholeNumber
from judging.services import assign, crowd, entry, messages, training
from judging.services.item_frame import title_of
from touchstone.models import user_of

TAGS = ["me"]
GATES = {"judging:consent": "consent", "judging:training": "training"}


class MyCampaignAnswer(serializers.ModelSerializer[Assessor]):
    name = serializers.CharField(source="campaign.name")
    description = serializers.CharField(source="campaign.collection.description")
    minutes = serializers.SerializerMethodField(help_text="Time spent judging.")
    comes_first = serializers.SerializerMethodField(
        help_text="What is required before the first item: consent, training, or nothing (null)."
    )

    class Meta:
        model = Assessor
        fields = ("campaign", "name", "description", "n_judged", "quota", "minutes", "comes_first")
        read_only_fields = fields

    def get_minutes(self, row: Assessor) -> float:
        total = row.judgments.aggregate(total=Sum("active_milliseconds"))["total"] or 0
        return round(total / 60_000, 1)

    def get_comes_first(self, row: Assessor) -> str | None:
        return GATES.get(entry.next_gate(row) or "")


class MyCampaigns(generics.ListAPIView[Assessor]):
    """The campaigns in which you can judge now."""

    scope = "judge"
    serializer_class = MyCampaignAnswer
    queryset = Assessor.objects.none()
    order_fields = ("id",)

    def get_queryset(self) -> QuerySet[Assessor]:
        return Assessor.objects.open_to(self.request.user).select_related("campaign__collection")

    @extend_schema(operation_id="my_campaigns_list", tags=TAGS)
    def get(self, request: Request) -> Response:
        return self.list(request)


class _ShownTitle(serializers.CharField):
    """What stands above the item's texts by the campaign's kind."""

    def get_attribute(self, judgment: Judgment) -> str:
        return title_of(judgment.item, judgment.item.campaign)


class MyJudgmentAnswer(serializers.ModelSerializer[Judgment]):
    topic = serializers.CharField(source="item.topic.title")
    document = _ShownTitle()

    class Meta:
        model = Judgment
        fields = ("topic", "document", "grade", "obstacle", "comment", "active_milliseconds", "created_at")
        read_only_fields = fields


class MyJudgments(generics.ListAPIView[Judgment]):
    """Your judgments in the campaign, the newest first."""

    scope = "judge"
    serializer_class = MyJudgmentAnswer
    queryset = Judgment.objects.none()
    order_fields = ("id",)
    default_order = "-id"

    def get_queryset(self) -> QuerySet[Judgment]:
        mine = Judgment.objects.filter(assessor=_assessor(self.request, self.kwargs["campaign_id"]))
        joined = mine.select_related("item__topic", "item__document", "item__campaign")
        return joined.defer("item__document__text", "item__document__html")

    @extend_schema(operation_id="my_judgments_list", tags=TAGS)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        return self.list(request)


# -- consent --------------------------------------------------------------------------------------------------


class MyConsentAnswer(serializers.Serializer[Any]):
    text = serializers.CharField(help_text="Markdown; empty: no consent is requested.")
    consented_at = serializers.DateTimeField(allow_null=True)


class Agreement(Strict):
    agrees = Flag()

    def validate_agrees(self, agrees: bool) -> bool:
        if not agrees:
            raise serializers.ValidationError("send true to agree; without consent you cannot judge")
        return agrees


class MyConsent(APIView):
    scope = "judge"

    @extend_schema(operation_id="my_consent_read", tags=TAGS, responses=MyConsentAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """The text that you are asked to agree to before you judge."""
        return Response(_consent_json(_assessor(request, campaign_id)))

    @extend_schema(
        operation_id="my_consent_give",
        tags=TAGS,
        request=Agreement,
        responses=MyConsentAnswer,
        examples=[OpenApiExample("usual", value={"agrees": True}, request_only=True)],
    )
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """Agree to the present text; repeating the request has no effect."""
        row = _assessor(request, campaign_id)
        Agreement(data=request.data).is_valid(raise_exception=True)
        entry.agree(assessor=row)
        return Response(_consent_json(row))


def _consent_json(row: Assessor) -> Any:
    return MyConsentAnswer({"text": row.campaign.consent, "consented_at": row.consented_at}).data


# -- training -------------------------------------------------------------------------------------------------


class TrainingStep(serializers.Serializer[Any]):
    position = serializers.IntegerField()
    topic = serializers.CharField()
    document = serializers.CharField()
    frame_url = serializers.CharField(help_text="The document, for a frame.")
    given = serializers.IntegerField(allow_null=True)
    reference = serializers.IntegerField(allow_null=True, help_text="Shown after you have answered.")
    explanation = serializers.CharField(allow_blank=True, help_text="Shown after you have answered.")


class MyTrainingAnswer(serializers.Serializer[Any]):
    attempt = serializers.IntegerField()
    attempts_left = serializers.IntegerField()
    is_needed = serializers.BooleanField()
    is_passed = serializers.BooleanField()
    is_complete = serializers.BooleanField()
    items = TrainingStep(many=True)


class TrainingAnswerRequest(Strict):
    position = WholeNumber(min_value=1, max_value=training.MOST_TRAINING_ITEMS)
    attempt = WholeNumber(min_value=1, max_value=1000)
    grade = WholeNumber(min_value=0, max_value=9)


class MyTraining(APIView):
    scope = "judge"

    @extend_schema(operation_id="my_training_read", tags=TAGS, responses=MyTrainingAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """Your progress in the training; after a failed attempt, the next one is shown."""
        return Response(_training_json(_assessor(request, campaign_id)))

    @extend_schema(
        operation_id="my_training_answer",
        tags=TAGS,
        request=TrainingAnswerRequest,
        responses=MyTrainingAnswer,
        examples=[
            OpenApiExample("usual", value={"position": 1, "attempt": 1, "grade": 1}, request_only=True)
        ],
    )
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """Answer a training item; your first answer counts, and the answer contains the right grade."""
        row = _assessor(request, campaign_id)
        sent = TrainingAnswerRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        training.answer(assessor=row, **sent.validated_data)
        row.refresh_from_db(fields=["trained_at"])
        return Response(_training_json(row, again=False))


def _training_json(row: Assessor, *, again: bool = True) -> Any:
    now = training.training_of(assessor=row, again=again)
    return MyTrainingAnswer(
        {
            "attempt": now.attempt,
            "attempts_left": now.attempts_left,
            "is_needed": entry.needs_training(row),
            "is_passed": now.is_passed,
            "is_complete": now.is_complete,
            "items": [_step_json(row, now, item) for item in now.items],
        }
    ).data


def _step_json(row: Assessor, now: training.Training, item: Any) -> dict[str, Any]:
    answer = now.answers.get(item.pk)
    return {
        "position": item.position,
        "topic": item.topic.title,
        "document": title_of(item, row.campaign),
        "frame_url": reverse("judging:training-frame", args=[row.campaign_id, item.position]),
        "given": answer.grade if answer else None,
        "reference": item.grade if answer else None,
        "explanation": item.explanation if answer else "",
    }


# -- the end of the work --------------------------------------------------------------------------------------


class CompletionAnswer(serializers.Serializer[Any]):
    n_judged = serializers.IntegerField()
    quota = serializers.IntegerField(allow_null=True)
    is_done = serializers.BooleanField()
    is_participant = serializers.BooleanField(help_text="Whether a crowd market sent you.")
    code = serializers.CharField(allow_blank=True, help_text="For the market; empty until the work is done.")
    url = serializers.CharField(allow_blank=True)
    obstacle = serializers.CharField(allow_blank=True, help_text="Why you cannot continue, if you cannot.")


class MyCompletion(APIView):
    scope = "judge"

    @extend_schema(operation_id="my_completion_read", tags=TAGS, responses=CompletionAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """Your progress, and the code for the market once you are done."""
        return Response(CompletionAnswer(crowd.completion(assessor=_assessor(request, campaign_id))).data)


# -- messages -------------------------------------------------------------------------------------------------


class MyMessageAnswer(serializers.ModelSerializer[Message]):
    campaign = serializers.UUIDField(source="assessor.campaign_id")
    campaign_name = serializers.CharField(source="assessor.campaign.name")

    class Meta:
        model = Message
        fields = ("id", "campaign", "campaign_name", "text", "created_at", "read_at")
        read_only_fields = fields


class MyMessages(generics.ListAPIView[Message]):
    """Messages from managers, the newest first."""

    scope = "judge"
    serializer_class = MyMessageAnswer
    queryset = Message.objects.none()
    filter_fields = {"is_unread": "read_at__isnull", "campaign": "assessor__campaign"}
    order_fields = ("id",)
    default_order = "-id"

    def get_queryset(self) -> QuerySet[Message]:
        return messages.messages_to(user=user_of(self.request))

    @extend_schema(operation_id="my_messages_list", tags=TAGS)
    def get(self, request: Request) -> Response:
        return self.list(request)


class MyMessageRead(APIView):
    scope = "judge"

    @extend_schema(operation_id="my_message_mark_read", tags=TAGS, request=None, responses=MyMessageAnswer)
    def post(self, request: Request, message_id: int) -> Response:
        """Mark a message as read; repeating the request has no effect."""
        row = get_object_or_404(messages.messages_to(user=user_of(request)), pk=message_id)
        messages.mark_read(message=row, user=user_of(request))
        return Response(MyMessageAnswer(row).data)


def _assessor(request: Request, campaign_id: uuid.UUID) -> Assessor:
    return assign.assessor_of(user=request.user, campaign_id=campaign_id)
