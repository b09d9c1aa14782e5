"""The training, for API clients: its documents, rules, reasons and trainees."""

import secrets
import uuid
from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from judging.models import Campaign, TrainingItem
from judging.serializers.strict import Finite, LongWord, Strict, WholeNumber
from judging.services import training
from judging.services.access import ManagersOnly
from judging.services.training import MOST_TRAINING_ITEMS
from touchstone.models import user_of

TAGS = ["training"]
MOST_TRAINEES = 500
LONGEST_EXPLANATION = 5000


class TrainingItemAnswer(serializers.ModelSerializer[TrainingItem]):
    topic_id = serializers.CharField(source="topic.topic_id")
    doc_id = serializers.CharField(source="document.doc_id")

    class Meta:
        model = TrainingItem
        fields = ("position", "topic_id", "doc_id", "grade", "explanation")
        read_only_fields = fields


class TrainingAnswer(serializers.Serializer[Any]):
    attempts = serializers.IntegerField(help_text="Number of attempts.")
    pass_share = serializers.FloatField(help_text="The share of right grades that passes.")
    is_fixed = serializers.BooleanField(
        help_text="Whether an assessor has answered, so that the items are fixed."
    )
    items = TrainingItemAnswer(many=True)


class ItemsRequest(Strict):
    n = WholeNumber(min_value=0, max_value=MOST_TRAINING_ITEMS)
    seed = WholeNumber(min_value=0, required=False, help_text="By default random.")


class RulesRequest(Strict):
    attempts = WholeNumber(min_value=1, max_value=10)
    pass_share = Finite(min_value=0, max_value=1)


class Explanation(Strict):
    position = WholeNumber(min_value=1, max_value=MOST_TRAINING_ITEMS)
    text = LongWord(max_length=LONGEST_EXPLANATION, allow_blank=True)


class ExplanationsRequest(Strict):
    explanations = Explanation(many=True, max_length=MOST_TRAINING_ITEMS)  # type: ignore[call-arg]  # of the list


class TraineeAnswer(serializers.Serializer[Any]):
    assessor = serializers.IntegerField(source="assessor.pk")
    username = serializers.CharField(source="assessor.user.username")
    attempt = serializers.IntegerField(source="training.attempt")
    attempts_allowed = serializers.IntegerField(source="training.attempts_allowed")
    n_answered = serializers.SerializerMethodField()
    n_right = serializers.IntegerField(source="training.n_right")
    is_passed = serializers.BooleanField(source="training.is_passed")
    is_stuck = serializers.BooleanField(help_text="Failed, with no attempt left: only a manager can help.")

    def get_n_answered(self, row: training.Trainee) -> int:
        return len(row.training.answers)


class TraineesAnswer(serializers.Serializer[Any]):
    n_trainees = serializers.IntegerField()
    trainees = TraineeAnswer(
        many=True, help_text=f"At most {MOST_TRAINEES}; trainees without attempts first."
    )


class Training(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(operation_id="training_read", tags=TAGS, responses=TrainingAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """The items with their grades and reasons, and the rules."""
        return Response(_training_json(campaign_id))


class TrainingItems(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(
        operation_id="training_items_choose",
        tags=TAGS,
        request=ItemsRequest,
        responses=TrainingAnswer,
        examples=[OpenApiExample("usual", value={"n": 0}, request_only=True)],
    )
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """Choose this number of gold answers for training, in place of earlier ones; 0: no training."""
        sent = ItemsRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        seed = sent.validated_data.get("seed", secrets.randbelow(2**31))
        training.choose_training_items(
            campaign=_campaign(campaign_id), n=sent.validated_data["n"], seed=seed, user=user_of(request)
        )
        return Response(_training_json(campaign_id))


class TrainingRules(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(
        operation_id="training_rules_set",
        tags=TAGS,
        request=RulesRequest,
        responses=TrainingAnswer,
        examples=[OpenApiExample("usual", value={"attempts": 2, "pass_share": 0.7}, request_only=True)],
    )
    def put(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """Set the number of attempts and the share to pass. Trainees who have passed stay passed."""
        sent = RulesRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        training.set_training_rules(
            campaign=_campaign(campaign_id), user=user_of(request), **sent.validated_data
        )
        return Response(_training_json(campaign_id))


class TrainingExplanations(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(
        operation_id="training_explanations_set",
        tags=TAGS,
        request=ExplanationsRequest,
        responses=TrainingAnswer,
        examples=[OpenApiExample("usual", value={"explanations": []}, request_only=True)],
    )
    def put(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """Set the reasons that trainees read with the right grade; other positions keep theirs."""
        sent = ExplanationsRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        texts = {given["position"]: given["text"] for given in sent.validated_data["explanations"]}
        training.set_explanations(campaign=_campaign(campaign_id), texts=texts, user=user_of(request))
        return Response(_training_json(campaign_id))


class Trainees(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(operation_id="trainees_list", tags=TAGS, responses=TraineesAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """The trainees and their progress."""
        row = _campaign(campaign_id)
        found = training.trainees(campaign=row) if row.training_items.exists() else []
        shown = TraineesAnswer({"n_trainees": len(found), "trainees": found[:MOST_TRAINEES]})
        return Response(shown.data)


def _training_json(campaign_id: uuid.UUID) -> Any:
    row = _campaign(campaign_id)
    items = row.training_items.select_related("topic", "document").defer("document__text", "document__html")
    return TrainingAnswer(
        {
            "attempts": row.training_attempts,
            "pass_share": row.training_pass_share,
            "is_fixed": training.is_fixed(row),
            "items": items,
        }
    ).data


def _campaign(campaign_id: uuid.UUID) -> Campaign:
    return get_object_or_404(Campaign, pk=campaign_id)
