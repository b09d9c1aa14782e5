"""The contents of a collection, for API clients: topics, documents, runs, scores, gold answers."""

import uuid

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from judging.models import Collection, Document, GoldAnswer, Run, ScoreList, Topic
from judging.serializers.strict import LongWord, StrictModel, Word
from judging.services.access import ManagersChange, ManagersOnly, ResearchersOnly
from judging.services.browsing import documents_found, topics_found
from judging.services.collections import change_run
from touchstone.models import user_of

# Read by the view itself.
WORDS = (
    "",
    serializers.CharField(max_length=200, help_text="With this id, or with these words in the title."),
)
LONGEST_TEXT = 5000


class TopicAnswer(serializers.ModelSerializer[Topic]):
    class Meta:
        model = Topic
        fields = ("id", "topic_id", "title", "description", "narrative", "version")
        read_only_fields = fields


class Topics(generics.ListAPIView[Topic]):
    """The collection's topics, in the order they were imported in."""

    permission_classes = (ResearchersOnly,)
    serializer_class = TopicAnswer
    queryset = Topic.objects.none()
    filter_fields = {"topic_id": "topic_id", "q": WORDS}
    order_fields = {"id": "id", "topic_id": "topic_id"}

    def get_queryset(self) -> QuerySet[Topic]:
        asked = self.request.query_params.get("q", "")
        return topics_found(Collection(pk=self.kwargs["collection_id"]), asked)

    @extend_schema(operation_id="topics_list", tags=["topics"])
    def get(self, request: Request, collection_id: uuid.UUID) -> Response:
        return self.list(request)


class DocumentLine(serializers.ModelSerializer[Document]):
    class Meta:
        model = Document
        fields = ("id", "doc_id", "title", "version")
        read_only_fields = fields


class DocumentAnswer(serializers.ModelSerializer[Document]):
    class Meta:
        model = Document
        fields = ("id", "doc_id", "title", "version", "text", "html")
        read_only_fields = fields
        extra_kwargs = {
            "text": {"help_text": "Untrusted: never put it into a page unchanged."},
            "html": {"help_text": "Sanitised at import; empty if the document is text."},
        }


class Documents(generics.ListAPIView[Document]):
    """The collection's documents without their texts, by their ids."""

    permission_classes = (ResearchersOnly,)
    serializer_class = DocumentLine
    queryset = Document.objects.none()
    filter_fields = {"doc_id": "doc_id", "q": WORDS}
    order_fields = ("doc_id",)  # an index has them so; by their keys, one would read other collections' too

    def get_queryset(self) -> QuerySet[Document]:
        asked = self.request.query_params.get("q", "")
        found = documents_found(Collection(pk=self.kwargs["collection_id"]), asked)
        return found.defer(None).only("id", "doc_id", "title", "version")

    @extend_schema(operation_id="documents_list", tags=["documents"])
    def get(self, request: Request, collection_id: uuid.UUID) -> Response:
        return self.list(request)


class OneDocument(APIView):
    permission_classes = (ResearchersOnly,)

    @extend_schema(operation_id="document_read", tags=["documents"], responses=DocumentAnswer)
    def get(self, request: Request, collection_id: uuid.UUID, document_pk: int) -> Response:
        """One document with its text; `document_pk` is the `id` of the list."""
        row = get_object_or_404(Document, pk=document_pk, collection_id=collection_id)
        return Response(DocumentAnswer(row).data)


class RunAnswer(serializers.ModelSerializer[Run]):
    class Meta:
        model = Run
        fields: tuple[str, ...] = (
            "id",
            "run_id",
            "description",
            "n_topics",
            "n_lines",
            "may_publish",
            "is_manual",
            "group",
            "created_at",
        )
        read_only_fields = fields


class RunSetAsideAnswer(RunAnswer):
    class Meta(RunAnswer.Meta):
        fields = (*RunAnswer.Meta.fields, "set_aside_at", "set_aside_why")
        read_only_fields = fields


class RunRequest(StrictModel):
    description = LongWord(max_length=LONGEST_TEXT, allow_blank=True, required=False)
    group = Word(max_length=200, allow_blank=True, required=False)

    class Meta:
        model = Run
        fields = ("description", "may_publish", "is_manual", "group")


class Runs(generics.ListAPIView[Run]):
    """The collection's runs."""

    permission_classes = (ResearchersOnly,)
    serializer_class = RunAnswer
    queryset = Run.objects.none()
    filter_fields = {
        "run_id": "run_id",
        "may_publish": "may_publish",
        "is_manual": "is_manual",
        "group": "group",
    }
    order_fields = ("run_id", "created_at")

    def get_queryset(self) -> QuerySet[Run]:
        return Run.objects.filter(collection_id=self.kwargs["collection_id"])

    @extend_schema(operation_id="runs_list", tags=["runs"])
    def get(self, request: Request, collection_id: uuid.UUID) -> Response:
        return self.list(request)


class RunsSetAside(generics.ListAPIView[Run]):
    """Runs of the collection that were set aside: in no later pool, comparison and release."""

    permission_classes = (ManagersOnly,)
    serializer_class = RunSetAsideAnswer
    queryset = Run.objects.none()
    filter_fields = {"run_id": "run_id"}
    order_fields = ("set_aside_at", "run_id")

    def get_queryset(self) -> QuerySet[Run]:
        rows = Run.everything.filter(collection_id=self.kwargs["collection_id"])
        return rows.exclude(set_aside_at=None)

    @extend_schema(operation_id="runs_set_aside_list", tags=["runs"])
    def get(self, request: Request, collection_id: uuid.UUID) -> Response:
        return self.list(request)


class OneRun(APIView):
    permission_classes = (ManagersChange,)

    @extend_schema(operation_id="run_read", tags=["runs"], responses=RunAnswer)
    def get(self, request: Request, collection_id: uuid.UUID, run_pk: int) -> Response:
        """One run; `run_pk` is the `id` of the list."""
        return Response(RunAnswer(_run(collection_id, run_pk)).data)

    @extend_schema(
        operation_id="run_change",
        tags=["runs"],
        request=RunRequest,
        responses=RunAnswer,
        examples=[OpenApiExample("usual", value={"may_publish": True}, request_only=True)],
    )
    def patch(self, request: Request, collection_id: uuid.UUID, run_pk: int) -> Response:
        """Change the run's description, or whether releases may contain it."""
        row = _run(collection_id, run_pk)
        sent = RunRequest(row, data=request.data, partial=True)
        sent.is_valid(raise_exception=True)
        change_run(run=row, changes=sent.validated_data, actor=user_of(request))
        return Response(RunAnswer(_run(collection_id, run_pk)).data)


def _run(collection_id: uuid.UUID, run_pk: int) -> Run:
    return get_object_or_404(Run.objects.select_related("collection"), pk=run_pk, collection_id=collection_id)


class ScoreListAnswer(serializers.ModelSerializer[ScoreList]):
    class Meta:
        model = ScoreList
        fields = ("id", "name", "n_lines", "created_at")
        read_only_fields = fields


class ScoreLists(generics.ListAPIView[ScoreList]):
    """Imported scores of documents: priors for designs, never grades."""

    permission_classes = (ResearchersOnly,)
    serializer_class = ScoreListAnswer
    queryset = ScoreList.objects.none()
    filter_fields = {"name": "name"}
    order_fields = ("name", "created_at")

    def get_queryset(self) -> QuerySet[ScoreList]:
        return ScoreList.objects.filter(collection_id=self.kwargs["collection_id"])

    @extend_schema(operation_id="scores_list", tags=["scores"])
    def get(self, request: Request, collection_id: uuid.UUID) -> Response:
        return self.list(request)


class GoldAnswerAnswer(serializers.ModelSerializer[GoldAnswer]):
    topic_id = serializers.CharField(source="topic.topic_id")
    doc_id = serializers.CharField(source="document.doc_id")

    class Meta:
        model = GoldAnswer
        fields = ("id", "topic_id", "doc_id", "grade", "source", "version", "created_at")
        read_only_fields = fields


class GoldAnswers(generics.ListAPIView[GoldAnswer]):
    """Gold answers, for managers, with their source and date. Assessors never see which documents have one."""

    permission_classes = (ManagersOnly,)
    serializer_class = GoldAnswerAnswer
    queryset = GoldAnswer.objects.none()
    filter_fields = {
        "topic_id": "topic__topic_id",
        "doc_id": "document__doc_id",
        "source": "source",
        "grade": "grade",
    }
    order_fields = {"topic": "topic_id", "document": "document_id"}
    default_order = "topic,document"

    def get_queryset(self) -> QuerySet[GoldAnswer]:
        found = GoldAnswer.objects.filter(topic__collection_id=self.kwargs["collection_id"])
        return (
            found.select_related("topic").select_related("document").defer("document__text", "document__html")
        )

    @extend_schema(operation_id="gold_answers_list", tags=["gold-answers"])
    def get(self, request: Request, collection_id: uuid.UUID) -> Response:
        return self.list(request)
