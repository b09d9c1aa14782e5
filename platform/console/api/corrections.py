"""Corrections of documents, topics and gold answers, and imports that are taken back, for API clients."""

import uuid
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from judging.models import (
    Collection,
    Document,
    DocumentVersion,
    GoldAnswer,
    GoldVersion,
    Topic,
    TopicVersion,
)
from judging.models.collections import Version
from judging.serializers.strict import Flag, LongWord, Strict, WholeNumber
from judging.services.access import ManagersChange, ManagersOnly
from judging.services.corrections import (
    LONGEST_WHY,
    correct_document,
    correct_gold,
    correct_topic,
)
from touchstone.ledger.removal import remove_import
from touchstone.models import user_of

LONGEST_TITLE, LONGEST_TEXT = 1_000, 1_000_000  # characters
OF_VERSION = ("number", "corrected_by", "why", "created_at")


class WithReason(Strict):
    why = LongWord(max_length=LONGEST_WHY, help_text="The reason, for whoever reads the log of events.")


class VersionAnswer(serializers.ModelSerializer[Any]):
    corrected_by = serializers.CharField(
        source="corrected_by.username",
        default=None,
        allow_null=True,
        help_text="Null for version 1, which was imported, and for whoever is no manager.",
    )

    def to_representation(self, instance: Version) -> dict[str, Any]:
        """Managers alone see user names."""
        found: dict[str, Any] = super().to_representation(instance)
        if not user_of(self.context["request"]).may_manage:
            found["corrected_by"] = None
        return found


class DocumentVersionAnswer(VersionAnswer):
    class Meta:
        model = DocumentVersion
        fields = (*OF_VERSION, "title", "text", "html")
        read_only_fields = fields


class TopicVersionAnswer(VersionAnswer):
    class Meta:
        model = TopicVersion
        fields = (*OF_VERSION, "title", "description", "narrative")
        read_only_fields = fields


class GoldVersionAnswer(VersionAnswer):
    class Meta:
        model = GoldVersion
        fields = (*OF_VERSION, "grade")
        read_only_fields = fields


class DocumentCorrection(WithReason):
    title = LongWord(max_length=LONGEST_TITLE, allow_blank=True, required=False)
    text = LongWord(max_length=LONGEST_TEXT, allow_blank=True, required=False)
    is_html = Flag(default=False, help_text="Title and text are HTML; it is made safe as at import.")


class TopicCorrection(WithReason):
    title = LongWord(max_length=LONGEST_TEXT, required=False)
    description = LongWord(max_length=LONGEST_TEXT, allow_blank=True, required=False)
    narrative = LongWord(max_length=LONGEST_TEXT, allow_blank=True, required=False)


class GoldCorrection(WithReason):
    grade = WholeNumber(
        min_value=0,
        max_value=9,
        allow_null=True,
        help_text="Null withdraws the answer: there is none any more.",
    )


class Versions(generics.ListAPIView[Any]):
    """The versions of one row, the first first; a row that was never corrected has none."""

    permission_classes: tuple[Any, ...] = (ManagersChange,)
    filter_fields = {"number": "number"}
    order_fields = ("number",)
    default_order = "number"


class DocumentVersions(Versions):
    serializer_class = DocumentVersionAnswer
    queryset = DocumentVersion.objects.none()

    def get_queryset(self) -> QuerySet[DocumentVersion]:
        return _versions_of(self._row().versions)

    def _row(self) -> Document:
        found = Document.objects.filter(collection_id=self.kwargs["collection_id"])
        return get_object_or_404(found.defer("text", "html"), pk=self.kwargs["document_pk"])

    @extend_schema(operation_id="document_versions_list", tags=["documents"])
    def get(self, request: Request, collection_id: uuid.UUID, document_pk: int) -> Response:
        """The versions of a document that was corrected; the last one is in force."""
        return self.list(request)

    @extend_schema(
        operation_id="document_correct",
        tags=["documents"],
        request=DocumentCorrection,
        responses={201: DocumentVersionAnswer},
        examples=[
            OpenApiExample("usual", value={"why": "a page of errors", "title": "New"}, request_only=True)
        ],
    )
    def post(self, request: Request, collection_id: uuid.UUID, document_pk: int) -> Response:
        """Correct a document's title or text. Who holds it goes on seeing the version they were given."""
        sent = valid_body(DocumentCorrection, request)
        made = correct_document(document=self._row(), user=user_of(request), **sent)
        return Response(self.get_serializer(made).data, status=201)


class TopicVersions(Versions):
    serializer_class = TopicVersionAnswer
    queryset = TopicVersion.objects.none()

    def get_queryset(self) -> QuerySet[TopicVersion]:
        return _versions_of(self._row().versions)

    def _row(self) -> Topic:
        found = Topic.objects.filter(collection_id=self.kwargs["collection_id"])
        return get_object_or_404(found, pk=self.kwargs["topic_pk"])

    @extend_schema(operation_id="topic_versions_list", tags=["topics"])
    def get(self, request: Request, collection_id: uuid.UUID, topic_pk: int) -> Response:
        """The versions of a topic that was corrected; the last one is in force."""
        return self.list(request)

    @extend_schema(
        operation_id="topic_correct",
        tags=["topics"],
        request=TopicCorrection,
        responses={201: TopicVersionAnswer},
        examples=[
            OpenApiExample(
                "usual", value={"why": "too short", "description": "In more words"}, request_only=True
            )
        ],
    )
    def post(self, request: Request, collection_id: uuid.UUID, topic_pk: int) -> Response:
        """Correct a topic's words; what is not named stays, and so does its weight."""
        made = correct_topic(topic=self._row(), user=user_of(request), **valid_body(TopicCorrection, request))
        return Response(self.get_serializer(made).data, status=201)


class GoldVersions(Versions):
    permission_classes = (ManagersOnly,)
    serializer_class = GoldVersionAnswer
    queryset = GoldVersion.objects.none()

    def get_queryset(self) -> QuerySet[GoldVersion]:
        return _versions_of(self._row().versions)

    def _row(self) -> GoldAnswer:
        found = GoldAnswer.everything.filter(topic__collection_id=self.kwargs["collection_id"])
        return get_object_or_404(found, pk=self.kwargs["answer_pk"])

    @extend_schema(operation_id="gold_answer_versions_list", tags=["gold-answers"])
    def get(self, request: Request, collection_id: uuid.UUID, answer_pk: int) -> Response:
        """The versions of a gold answer that was corrected; the last one is in force."""
        return self.list(request)

    @extend_schema(
        operation_id="gold_answer_correct",
        tags=["gold-answers"],
        request=GoldCorrection,
        responses={201: GoldVersionAnswer},
        examples=[OpenApiExample("usual", value={"why": "misread", "grade": 2}, request_only=True)],
    )
    def post(self, request: Request, collection_id: uuid.UUID, answer_pk: int) -> Response:
        """Correct or withdraw a gold answer: checks on it are right or wrong by the new grade, or decoys."""
        made = correct_gold(answer=self._row(), user=user_of(request), **valid_body(GoldCorrection, request))
        return Response(self.get_serializer(made).data, status=201)


class RemovedAnswer(serializers.Serializer[Any]):
    n_rows = serializers.IntegerField(help_text="Topics, documents or gold answers that are gone.")


class ImportRemoval(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(
        operation_id="import_remove",
        tags=["imports"],
        request=WithReason,
        responses=RemovedAnswer,
        examples=[OpenApiExample("usual", value={"why": "the wrong file"}, request_only=True)],
    )
    def post(self, request: Request, collection_id: uuid.UUID, import_id: int) -> Response:
        """Take back an import of topics, documents or gold answers on which nothing rests.

        `import_id` is the `id` of its event in the collection's log of events. The answer 409 says what rests on it.
        """
        collection = get_object_or_404(Collection, pk=collection_id)
        n = remove_import(
            collection=collection,
            import_id=import_id,
            actor=user_of(request),
            **valid_body(WithReason, request),
        )
        return Response(RemovedAnswer({"n_rows": n}).data)


def _versions_of(versions: Any) -> QuerySet[Any]:
    found: QuerySet[Version] = versions.select_related("corrected_by")
    return found


def valid_body(form: type[WithReason], request: Request) -> dict[str, Any]:
    sent = form(data=request.data)
    sent.is_valid(raise_exception=True)
    return dict(sent.validated_data)
