"""What an assessor asks the managers, and what they wrote back: alike for all documents."""

import uuid

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from judging.models import Message
from judging.serializers.strict import LongWord, Strict, Token
from judging.services import assign
from judging.services.messages import LONGEST, ask, conversation

TAGS = ["me"]


class MyQuestionAnswer(serializers.ModelSerializer[Message]):
    sender = serializers.SerializerMethodField(help_text="Who wrote it; null if you did.")
    topic = serializers.SerializerMethodField(help_text="Title of the topic it is about; null in general.")
    question = serializers.IntegerField(source="thread_id", allow_null=True, help_text="What it answers.")

    class Meta:
        model = Message
        fields = ("id", "sender", "question", "topic", "text", "created_at", "read_at")
        read_only_fields = fields

    def get_sender(self, row: Message) -> str | None:
        return None if row.is_from_assessor else row.sender.get_username()

    def get_topic(self, row: Message) -> str | None:
        return row.item.topic.title if row.item is not None else None


class QuestionRequest(Strict):
    text = LongWord(max_length=LONGEST)
    token = Token(
        required=False,
        allow_null=True,
        default=None,
        help_text="Of the item it is about, as the claim gave it; without one it is about the campaign.",
    )


class MyQuestions(APIView):
    """What you asked in a campaign, and what managers wrote to you."""

    scope = "judge"

    @extend_schema(operation_id="my_questions_list", tags=TAGS, responses=MyQuestionAnswer(many=True))
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """Your newest questions and the messages to you, 20 together, the newest first."""
        assessor = assign.assessor_of(user=request.user, campaign_id=campaign_id)
        return Response(MyQuestionAnswer(conversation(assessor), many=True).data)

    @extend_schema(
        operation_id="my_question_ask",
        tags=TAGS,
        request=QuestionRequest,
        responses={201: MyQuestionAnswer},
        examples=[OpenApiExample("usual", value={"text": "Which year is meant?"}, request_only=True)],
    )
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """Ask the managers, about a document that you were given or in general. No other assessor sees it."""
        assessor = assign.assessor_of(user=request.user, campaign_id=campaign_id)
        sent = QuestionRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        made = ask(assessor=assessor, **sent.validated_data)
        return Response(MyQuestionAnswer(made).data, status=201)
