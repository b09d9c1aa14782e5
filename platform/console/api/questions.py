"""Questions of a campaign's assessors and their answers, for API clients of managers; assessors' own are judging's."""

import uuid
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from judging.models import Message
from judging.serializers.strict import Flag, LongWord, Strict
from judging.services.access import ManagersOnly
from judging.services.messages import LONGEST, answer, close
from touchstone.models import user_of

TAGS = ["questions"]


class QuestionAnswer(serializers.ModelSerializer[Message]):
    assessor_name = serializers.CharField(source="assessor.user.username")
    sender = serializers.CharField(source="sender.username")
    question = serializers.IntegerField(source="thread_id", allow_null=True, help_text="What it answers.")
    topic_id = serializers.CharField(source="item.topic.topic_id", allow_null=True, default=None)
    doc_id = serializers.CharField(source="item.document.doc_id", allow_null=True, default=None)

    class Meta:
        model = Message
        fields = (
            *("id", "assessor", "assessor_name", "is_from_assessor", "sender", "question"),
            *("item", "topic_id", "doc_id", "text", "created_at", "read_at"),
        )
        read_only_fields = fields


class AnswerRequest(Strict):
    text = LongWord(max_length=LONGEST)
    is_sure = Flag(
        required=False,
        default=False,
        help_text="Your answer gives nothing away; required if the document is a check or an audit for the assessor.",
    )


class Questions(generics.ListAPIView[Message]):
    """Messages of a campaign in both directions, the newest first. Open are questions nobody answered or closed."""

    permission_classes = (ManagersOnly,)
    serializer_class = QuestionAnswer
    queryset = Message.objects.none()
    filter_fields = {
        "is_unread": "read_at__isnull",
        "is_from_assessor": "is_from_assessor",
        "assessor": "assessor",
        "item": "item",
    }
    order_fields = ("id",)
    default_order = "-id"

    def get_queryset(self) -> QuerySet[Message]:
        rows = Message.objects.filter(assessor__campaign=self.kwargs["campaign_id"])
        joined = rows.select_related("assessor__user", "sender", "item__topic", "item__document")
        return joined.defer("item__document__text", "item__document__html")

    @extend_schema(operation_id="questions_list", tags=TAGS)
    def get(self, request: Request, **named: Any) -> Response:
        return self.list(request)


class QuestionReply(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(
        operation_id="question_answer",
        tags=TAGS,
        request=AnswerRequest,
        responses={201: QuestionAnswer},
        examples=[OpenApiExample("usual", value={"text": "The year of the event."}, request_only=True)],
    )
    def post(self, request: Request, campaign_id: uuid.UUID, message_id: int) -> Response:
        """Answer a question. About a check or an audit this is refused (409) unless you say `is_sure`."""
        sent = AnswerRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        question = _question(campaign_id, message_id)
        made = answer(question=question, sender=user_of(request), **sent.validated_data)
        return Response(QuestionAnswer(made).data, status=201)


class QuestionClose(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(operation_id="question_close", tags=TAGS, request=None, responses=QuestionAnswer)
    def post(self, request: Request, campaign_id: uuid.UUID, message_id: int) -> Response:
        """Say that a question needs no answer; repeating the request has no effect."""
        question = _question(campaign_id, message_id)
        close(question=question, actor=user_of(request))
        question.refresh_from_db(fields=["read_at"])
        return Response(QuestionAnswer(question).data)


def _question(campaign_id: uuid.UUID, message_id: int) -> Message:
    rows = Message.objects.filter(assessor__campaign=campaign_id, is_from_assessor=True)
    joined = rows.select_related(
        "assessor__user", "assessor__campaign", "sender", "item__topic", "item__document"
    )
    return get_object_or_404(joined, pk=message_id)
