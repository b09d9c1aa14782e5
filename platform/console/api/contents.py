"""The contents of a collection, for API clients: topics, documents, runs, scores, gold answers; and imports into it."""

import uuid
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import generics, serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.api.jobs import JobAnswer
from console.api.judgment_options import JudgmentOptions
from judging import records, topics
from judging.models import Assessor, Campaign, Collection, Document, GoldAnswer, Run, ScoreList, Topic
from judging.serializers.strict import Choice, Flag, LongWord, StrictModel, Token, Word
from judging.services.access import ManagersChange, ManagersOnly, ResearchersOnly
from judging.services.collections import change_run
from judging.services.errors import ImportRefused
from judging.services.files import KINDS, parse_grade_map, queue_import
from judging.services.judgment_formats import judgment_format_keys
from touchstone.models import Job, user_of

MOST_FILES = 500
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
    filter_fields = {"topic_id": "topic_id"}
    order_fields = {"id": "id", "topic_id": "topic_id"}

    def get_queryset(self) -> QuerySet[Topic]:
        return Topic.objects.filter(collection_id=self.kwargs["collection_id"])

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
    filter_fields = {"doc_id": "doc_id"}
    order_fields = ("doc_id",)  # an index has them so; by their keys, one would read other collections' too

    def get_queryset(self) -> QuerySet[Document]:
        found = Document.objects.filter(collection_id=self.kwargs["collection_id"])
        return found.only("id", "doc_id", "title", "version")

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
        fields = (
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


# -- imports --------------------------------------------------------------------------------------------------


def file_formats() -> dict[str, tuple[str, ...]]:
    """Return by kind of file the formats that there are."""
    return {
        "topics": tuple(topics.FORMATS),
        "documents": tuple(records.FORMATS),
        "judgments": tuple(judgment_format_keys()),
    }


class FormatWord(Word):
    """One of the formats of the kind of file; the description lists them as they are now."""

    def __init__(self) -> None:
        parts = (f"{kind}: {', '.join(formats)}" for kind, formats in file_formats().items())
        super().__init__(max_length=40, required=False, help_text=f"Of {'; of '.join(parts)}.")


class ImportRequest(JudgmentOptions):
    """Files, their kind, and the options of this kind."""

    kind = Choice(choices=sorted(KINDS))
    files = serializers.ListField(
        child=serializers.FileField(allow_empty_file=True, max_length=1000),
        min_length=1,
        max_length=MOST_FILES,
    )
    file_format = FormatWord()
    is_html = Flag(required=False, help_text="Of documents.")
    description = LongWord(max_length=LONGEST_TEXT, required=False, help_text="Of runs.")
    is_manual = Flag(required=False, help_text="Of runs: whether a person took part in making them.")
    group = Word(
        max_length=200, required=False, help_text="Of runs: whose they are, a team or variants of one system."
    )
    list_name = Word(
        max_length=200, required=False, help_text="Only for scores; by default the name of each file."
    )
    assessor_kind = Choice(
        choices=Assessor.Kind.choices, required=False, help_text="Only for judgments: kind of the assessors."
    )
    campaign = Token(required=False, help_text="Only for judgments that are not gold answers.")

    def validate_grade_map(self, text: str) -> str:
        try:
            parse_grade_map(text)
        except ImportRefused as error:
            raise serializers.ValidationError(str(error)) from error
        return text

    def validate(self, sent: dict[str, Any]) -> dict[str, Any]:
        """Refuse options that the import would refuse before it reads the files."""
        kind = sent["kind"]
        given = self.options(sent)
        wrong = {name for name in given if name not in KINDS[kind]}
        if "campaign" in sent and kind != "judgments":
            wrong.add("campaign")
        if wrong:
            shown = {"kind": "assessor_kind"}
            raise serializers.ValidationError(
                {shown.get(name, name): [f"is nothing that {kind} take"] for name in sorted(wrong)}
            )
        if kind == "scores" and "list_name" in sent and len(sent["files"]) > 1:
            raise serializers.ValidationError(
                {
                    "list_name": [
                        "one name cannot serve several files; leave it out to name the scores after their files"
                    ]
                }
            )
        formats = file_formats().get(kind, ())
        if "file_format" in sent and sent["file_format"] not in formats:
            raise serializers.ValidationError({"file_format": [f"must be one of {', '.join(formats)}"]})
        if kind == "judgments":
            self._check_judgments(sent)
        return sent

    def _check_judgments(self, sent: dict[str, Any]) -> None:
        as_gold = sent.get("as_gold", False)
        if as_gold and sent.get("assessor_kind") == Assessor.Kind.MACHINE:
            raise serializers.ValidationError(
                {"as_gold": ["a judgment of a machine assessor is never a gold answer"]}
            )
        if not as_gold and "campaign" not in sent:
            raise serializers.ValidationError(
                {"campaign": ["judgments that are not gold answers need a campaign"]}
            )

    @staticmethod
    def options(sent: dict[str, Any]) -> dict[str, Any]:
        """Return the options of the import."""
        renamed = {"assessor_kind": "kind"}
        return {
            renamed.get(name, name): value
            for name, value in sent.items()
            if name not in ("kind", "files", "campaign")
        }


class Imports(generics.ListAPIView[Job]):
    """Imports into the collection, the newest first."""

    permission_classes = (ManagersOnly,)
    parser_classes = (MultiPartParser,)
    serializer_class = JobAnswer
    queryset = Job.objects.none()
    filter_fields = {"state": "state"}
    order_fields = ("created_at",)
    default_order = "-created_at"

    def get_queryset(self) -> QuerySet[Job]:
        return Job.objects.filter(kind="import", payload__collection=str(self.kwargs["collection_id"]))

    @extend_schema(operation_id="imports_list", tags=["imports"])
    def get(self, request: Request, collection_id: uuid.UUID) -> Response:
        return self.list(request)

    @extend_schema(
        operation_id="import_create",
        tags=["imports"],
        request={"multipart/form-data": ImportRequest},
        responses={202: JobAnswer},
    )
    def post(self, request: Request, collection_id: uuid.UUID) -> Response:
        """Upload files; a job imports each file completely or not at all. Follow the job to its end."""
        row = get_object_or_404(Collection, pk=collection_id)
        sent = ImportRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        asked = sent.validated_data
        job = queue_import(
            kind=asked["kind"],
            files=asked["files"],
            collection=row,
            campaign=_campaign_of(row, asked.get("campaign")),
            options=sent.options(asked),
            user=user_of(request),
        )
        answer = Response(JobAnswer(job).data, status=202)
        answer["Location"] = reverse("console:api-job", args=[job.pk])
        return answer


def _campaign_of(row: Collection, campaign_id: uuid.UUID | None) -> Campaign | None:
    if campaign_id is None:
        return None
    found = row.campaigns.filter(pk=campaign_id, deleted_at=None).first()
    if found is None:
        raise serializers.ValidationError({"campaign": ["the collection has no such campaign"]})
    return found
