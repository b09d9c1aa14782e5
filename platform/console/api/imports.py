"""Imports into a collection, for API clients: at once by kind, or looked at first and then kept."""

import uuid
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import (
    OpenApiExample,
    PolymorphicProxySerializer,
    extend_schema,
    extend_schema_field,
)
from rest_framework import generics, serializers
from rest_framework.parsers import JSONParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.api.contents import LONGEST_TEXT
from console.api.jobs import JobAnswer
from console.api.judgment_options import JudgmentOptions
from console.api.rests import RestAnswer
from judging import records, topics
from judging.encodings import ENCODINGS
from judging.formats.run_names import run_format_keys
from judging.import_choices import KINDS as CARD_KINDS
from judging.import_choices import choice_fault
from judging.models import Assessor, Campaign, Collection, Import
from judging.serializers.strict import Choice, Flag, LongWord, Strict, Token, Word
from judging.services.access import ManagersOnly
from judging.services.errors import ImportRefused
from judging.services.files import KINDS, parse_grade_map, queue_import
from judging.services.judgment_formats import judgment_format_keys
from judging.services.keeping import queue_keep
from judging.services.looking import job_of, queue_look
from touchstone.ledger.take_back import what_rests_on
from touchstone.models import Job, user_of

MOST_FILES = 500
MAX_RUN_NAME = 200
RUN_NAME_HELP = "Of runs: the name of one that its file does not name, or names in several ways."


def file_formats() -> dict[str, tuple[str, ...]]:
    """Return by kind of file the formats that there are."""
    return {
        "topics": tuple(topics.FORMATS),
        "documents": tuple(records.FORMATS),
        "runs": tuple(run_format_keys()),
        "judgments": tuple(judgment_format_keys()),
    }


def _checked_grade_map(text: str) -> str:
    try:
        if text:
            parse_grade_map(text)
    except ImportRefused as error:
        raise serializers.ValidationError(str(error)) from error
    return text


class FormatWord(Word):
    """One of the formats of the kind of file; the description lists them as they are now."""

    def __init__(self) -> None:
        parts = (f"{kind}: {', '.join(formats)}" for kind, formats in file_formats().items())
        super().__init__(max_length=40, required=False, help_text=f"Of {'; of '.join(parts)}.")


class ImportRequest(JudgmentOptions):
    """Files, their kind, and the options of this kind."""

    kind = Choice(
        choices=sorted(KINDS), required=False, help_text="Needed unless the files are looked at first."
    )
    look = Flag(
        required=False,
        help_text="Look at the files and import nothing yet: they may be of any kinds, or in a zip. Takes no other "
        "field.",
    )
    files = serializers.ListField(
        child=serializers.FileField(allow_empty_file=True, max_length=1000),
        min_length=1,
        max_length=MOST_FILES,
    )
    file_format = FormatWord()
    is_html = Flag(required=False, help_text="Of documents.")
    run_name = Word(max_length=MAX_RUN_NAME, required=False, help_text=RUN_NAME_HELP)
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
        return _checked_grade_map(text)

    def validate(self, sent: dict[str, Any]) -> dict[str, Any]:
        """Refuse options that the import would refuse before it reads the files."""
        if sent.get("look"):
            return self._check_look(sent)
        if "kind" not in sent:
            raise serializers.ValidationError({"kind": ["is needed; or send look, and no kind"]})
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

    def _check_look(self, sent: dict[str, Any]) -> dict[str, Any]:
        others = sorted(set(sent) - {"look", "files"})
        if others:
            reason = "is chosen when the files are kept, after the look"
            raise serializers.ValidationError({name: [reason] for name in others})
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
            if name not in ("kind", "files", "campaign", "look")
        }


class ImportAnswer(serializers.ModelSerializer[Import]):
    """Files that were looked at, or kept: what was found in each, and what became of them."""

    user = serializers.CharField(source="user.username", allow_null=True, default=None)
    files = serializers.SerializerMethodField(
        help_text="Name, size, SHA-256, kind and options of each file; once kept, how many rows it brought."
    )
    report = serializers.DictField(
        help_text="What the look found, empty until it is over: `files` with kind, reason, encoding, columns, records, "
        "documents, grades, faults, what is there and what is lacking; `obstacles` that must be settled first."
    )
    job = serializers.SerializerMethodField(help_text="The newest job about it.")

    class Meta:
        model = Import
        fields: tuple[str, ...] = (
            "id",
            "collection",
            "state",
            "kind",
            "files",
            "report",
            "user",
            "created_at",
            "kept_at",
            "taken_back_at",
            "job",
        )
        read_only_fields = fields

    def get_files(self, made: Import) -> list[dict[str, Any]]:
        shown = ("name", "n_bytes", "sha256", "kind", "options", "counts")
        return [{name: entry[name] for name in shown if name in entry} for entry in made.files]

    @extend_schema_field(JobAnswer(allow_null=True))
    def get_job(self, made: Import) -> dict[str, Any] | None:
        job = job_of(made)
        return None if job is None else dict(JobAnswer(job).data)


class ImportWithRests(ImportAnswer):
    rests = serializers.SerializerMethodField(
        help_text="What rests on a kept import, also in deleted campaigns: as long as there is something, it stays."
    )

    class Meta(ImportAnswer.Meta):
        fields = (*ImportAnswer.Meta.fields, "rests")
        read_only_fields = fields

    @extend_schema_field(RestAnswer(many=True))
    def get_rests(self, made: Import) -> list[dict[str, Any]]:
        return [dict(RestAnswer(rest).data) for rest in what_rests_on(made)]


JOB_OR_IMPORT = PolymorphicProxySerializer(
    component_name="JobOrImport", serializers=[JobAnswer, ImportAnswer], resource_type_field_name=None
)


def import_accepted(made: Import) -> Response:
    """Return 202 with the import, and where to ask what a job has found."""
    answer = Response(ImportAnswer(made).data, status=202)
    answer["Location"] = reverse("console:api-import", args=[made.pk])
    answer["Retry-After"] = "1"
    return answer


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
        responses={202: JOB_OR_IMPORT},
    )
    def post(self, request: Request, collection_id: uuid.UUID) -> Response:
        """Upload files; a job imports each file completely or not at all. Follow the job to its end.

        With `look` a job reads the files, and the answer is the import that they may become.
        """
        row = get_object_or_404(Collection, pk=collection_id)
        sent = ImportRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        asked = sent.validated_data
        if asked.get("look"):
            return import_accepted(queue_look(collection=row, files=asked["files"], user=user_of(request)))
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


# -- looked at, then kept -------------------------------------------------------------------------------------


class FileChoice(JudgmentOptions):
    """What one file is, and how it is read; what is left out stays as the look found it."""

    name = Word(max_length=1000)
    kind = Choice(choices=list(CARD_KINDS), required=False, help_text="`none` leaves the file out.")
    file_format = FormatWord()
    encoding = Choice(choices=sorted(ENCODINGS), required=False)
    delimiter = Choice(choices=[",", ";", "|", "\t"], required=False)
    mapping = serializers.DictField(
        child=serializers.ListField(child=Word(max_length=1000), max_length=100),
        required=False,
        help_text="Of tables: the columns of each field; several are joined.",
    )
    numbers_rows = Flag(required=False, help_text="No column of ids: the rows are numbered.")
    joins_ids = Flag(required=False, help_text="White space in ids becomes `_`.")
    is_html = Flag(required=False, help_text="Of documents.")
    run_name = Word(max_length=MAX_RUN_NAME, required=False, help_text=RUN_NAME_HELP)
    description = LongWord(max_length=LONGEST_TEXT, required=False, help_text="Of runs.")
    is_manual = Flag(required=False, help_text="Of runs: whether a person took part in making them.")
    group = Word(max_length=200, required=False, help_text="Of runs.")
    list_name = Word(max_length=200, required=False, help_text="Of scores.")
    assessor_kind = Choice(choices=Assessor.Kind.choices, required=False, help_text="Of judgments.")
    campaign = Token(required=False, help_text="Of judgments that are not gold answers.")
    skips_unknown = Flag(
        required=False,
        help_text="Of judgments: leave out rows of topics and documents that the collection lacks.",
    )
    grade_map = Word(
        max_length=500,
        required=False,
        allow_blank=True,
        help_text="What grades of the file become: `-2=0,-1=` leaves out those of -1. Grades that it does not name "
        "stay.",
    )

    def validate_grade_map(self, text: str) -> str:
        return _checked_grade_map(text)

    def validate(self, sent: dict[str, Any]) -> dict[str, Any]:
        """Refuse options that the kind does not take."""
        options = set(sent) - {"name", "kind"}
        fault = choice_fault(sent["kind"], options) if "kind" in sent else ""
        if fault:
            raise serializers.ValidationError({"kind": [fault]})
        if "campaign" in sent:
            sent["campaign"] = str(sent["campaign"])
        return sent


class KeepRequest(Strict):
    """Choices for some of the files; the others are kept as they were looked at."""

    files = serializers.ListField(child=FileChoice(), max_length=10_000, required=False)


class OneImport(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(operation_id="import_read", tags=["imports"], responses=ImportWithRests)
    def get(self, request: Request, import_id: uuid.UUID) -> Response:
        """Files that were looked at or kept, with what was found in them, and what rests on it."""
        return Response(ImportWithRests(import_of(import_id)).data)


class ImportKeep(APIView):
    permission_classes = (ManagersOnly,)
    parser_classes = (JSONParser,)

    @extend_schema(
        operation_id="import_keep",
        tags=["imports"],
        request=KeepRequest,
        responses={202: ImportAnswer},
        examples=[
            OpenApiExample(
                "usual",
                value={
                    "files": [
                        {
                            "name": "q.csv",
                            "kind": "topics",
                            "encoding": "cp1252",
                            "mapping": {"id": ["qid"], "title": ["query"]},
                        }
                    ]
                },
                request_only=True,
            )
        ],
    )
    def post(self, request: Request, import_id: uuid.UUID) -> Response:
        """Import all files that were looked at, or nothing. A job does it; follow it on the import."""
        sent = KeepRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        made = import_of(import_id)
        queue_keep(made=made, files=sent.validated_data.get("files", []), user=user_of(request))
        return import_accepted(import_of(import_id))


def import_of(import_id: uuid.UUID) -> Import:
    return get_object_or_404(Import.objects.select_related("user", "collection"), pk=import_id)
