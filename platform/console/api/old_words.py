"""Judgments given on words of a document or topic that were corrected since, for API clients."""

import uuid
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from analytics.services.recomputation import queue_recomputation
from judging.models import Campaign, Document, Topic
from judging.serializers.strict import Strict, Token
from judging.services.access import ManagersOnly
from judging.services.old_words import campaign_uses, requeue_old_words
from touchstone.models import user_of

MOST_CAMPAIGNS = 100


class CampaignUseAnswer(serializers.Serializer[Any]):
    campaign = serializers.UUIDField(source="campaign.pk")
    campaign_name = serializers.CharField(source="campaign.name")
    state = serializers.CharField(source="campaign.state", help_text="In a closed one nothing is requested.")
    n_items = serializers.IntegerField(help_text="Counted up to 10,000.")
    n_judgments = serializers.IntegerField()
    n_old_items = serializers.IntegerField(help_text="Items with a judgment on words of before a correction.")
    n_old = serializers.IntegerField(help_text="The judgments on words of before a correction.")


class OldWordsAnswer(serializers.Serializer[Any]):
    version = serializers.IntegerField(help_text="The version in force.")
    campaigns = CampaignUseAnswer(many=True)


class OldWordsRequest(Strict):
    campaigns = serializers.ListField(
        child=Token(),
        min_length=1,
        max_length=MOST_CAMPAIGNS,
        help_text="In which campaigns the judgments are requested again.",
    )


class OldWordsRequeued(serializers.Serializer[Any]):
    n_requeued = serializers.IntegerField(help_text="How many judgments others are asked for.")


class OldWords(APIView):
    """What campaigns have of a document or a topic, and what of it was judged on words of before a correction."""

    permission_classes = (ManagersOnly,)
    rows: QuerySet[Any]

    def answer(self, request: Request, pk: int) -> Response:
        row = self._row(pk)
        found = {"version": row.version, "campaigns": campaign_uses(row, user_of(request))}
        return Response(OldWordsAnswer(found).data)

    def requeue(self, request: Request, pk: int) -> Response:
        sent = OldWordsRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        row, chosen = self._row(pk), sent.validated_data["campaigns"]
        n = requeue_old_words(row=row, campaigns=chosen, actor=user_of(request))
        if n:
            for campaign in Campaign.objects.filter(pk__in=chosen, collection=row.collection_id):
                queue_recomputation(campaign=campaign)
        return Response(OldWordsRequeued({"n_requeued": n}).data)

    def _row(self, pk: int) -> Any:
        return get_object_or_404(self.rows.all(), pk=pk, collection_id=self.kwargs["collection_id"])


USUAL = OpenApiExample(
    "usual", value={"campaigns": ["00000000-0000-4000-8000-000000000000"]}, request_only=True
)


class DocumentOldWords(OldWords):
    rows = Document.objects.defer("text", "html")

    @extend_schema(operation_id="document_old_words_read", tags=["documents"], responses=OldWordsAnswer)
    def get(self, request: Request, collection_id: uuid.UUID, document_pk: int) -> Response:
        """What campaigns have of a document, and how many judgments were given on words of before a correction."""
        return self.answer(request, document_pk)

    @extend_schema(
        operation_id="document_old_words_requeue",
        tags=["documents"],
        request=OldWordsRequest,
        responses=OldWordsRequeued,
        examples=[USUAL],
    )
    def post(self, request: Request, collection_id: uuid.UUID, document_pk: int) -> Response:
        """Set the judgments on old words aside; others are asked for them. Closed campaigns are passed over."""
        return self.requeue(request, document_pk)


class TopicOldWords(OldWords):
    rows = Topic.objects.all()

    @extend_schema(operation_id="topic_old_words_read", tags=["topics"], responses=OldWordsAnswer)
    def get(self, request: Request, collection_id: uuid.UUID, topic_pk: int) -> Response:
        """What campaigns have of a topic, and how many judgments were given on words of before a correction."""
        return self.answer(request, topic_pk)

    @extend_schema(
        operation_id="topic_old_words_requeue",
        tags=["topics"],
        request=OldWordsRequest,
        responses=OldWordsRequeued,
        examples=[USUAL],
    )
    def post(self, request: Request, collection_id: uuid.UUID, topic_pk: int) -> Response:
        """Set the judgments on old words aside; others are asked for them. Closed campaigns are passed over."""
        return self.requeue(request, topic_pk)
