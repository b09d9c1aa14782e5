"""What rests on an import, and taking it back, for API clients."""

import uuid
from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.api.contents import RunAnswer
from console.api.corrections import WithReason, valid_body
from console.api.imports import ImportAnswer, KeepRequest, import_accepted, import_of
from console.api.rests import RestsAnswer
from judging.models import Import, Run
from judging.services.access import ManagersOnly
from judging.services.collections import set_run_aside, take_run_in
from touchstone.ledger.replacing import queue_replace
from touchstone.ledger.take_back import LONGEST_WHY, take_back, what_rests_on
from touchstone.models import user_of

TAGS = ["imports"]


class TakenBackAnswer(serializers.Serializer[Any]):
    rows = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="By table how many rows are gone; judgments are set aside, and stay.",
    )


class ImportRests(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(operation_id="import_rests", tags=TAGS, responses=RestsAnswer)
    def get(self, request: Request, import_id: uuid.UUID) -> Response:
        """What rests on a kept import, also in deleted campaigns; as long as there is something, it stays."""
        made = get_object_or_404(Import, pk=import_id)
        return Response(RestsAnswer({"rests": what_rests_on(made)}).data)


class ImportTakeBack(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(
        operation_id="import_take_back",
        tags=TAGS,
        request=WithReason,
        responses=TakenBackAnswer,
        examples=[OpenApiExample("usual", value={"why": "the wrong file"}, request_only=True)],
    )
    def post(self, request: Request, import_id: uuid.UUID) -> Response:
        """Remove all that an import brought, if nothing rests on it. The answer 409 names what does."""
        made = get_object_or_404(Import.objects.select_related("collection"), pk=import_id)
        rows = take_back(made=made, actor=user_of(request), **valid_body(WithReason, request))
        return Response(TakenBackAnswer({"rows": rows}).data)


class ReplaceRequest(KeepRequest):
    """What takes the import's place: another one that was looked at, or its own stored files read otherwise."""

    why = serializers.CharField(
        max_length=LONGEST_WHY, required=False, help_text="It stands in the log of events."
    )


# `with` is a word of Python, and no name of an attribute there.
ReplaceRequest._declared_fields["with"] = serializers.UUIDField(
    required=False,
    help_text="An import of the collection that was looked at; else the stored files are read again.",
)


class ImportReplace(APIView):
    permission_classes = (ManagersOnly,)
    parser_classes = (JSONParser,)

    @extend_schema(
        operation_id="import_replace",
        tags=["imports"],
        request=ReplaceRequest,
        responses={202: ImportAnswer},
        examples=[
            OpenApiExample(
                "usual",
                value={"files": [{"name": "q.csv", "kind": "documents"}], "why": "taken for topics"},
                request_only=True,
            )
        ],
    )
    def post(self, request: Request, import_id: uuid.UUID) -> Response:
        """Take a kept import back and keep another one in its place, both or nothing, if nothing rests on it.

        The answer is the other import; a job does it. Uploads of kept imports are stored for 30 days.
        """
        sent = ReplaceRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        known = dict(sent.validated_data)
        other = import_of(known["with"]) if "with" in known else None
        made = queue_replace(
            made=import_of(import_id),
            other=other,
            files=known.get("files"),
            why=known.get("why", ""),
            actor=user_of(request),
        )
        return import_accepted(import_of(made.pk))


class RunSetAside(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(
        operation_id="run_set_aside",
        tags=["runs"],
        request=WithReason,
        responses=RunAnswer,
        examples=[OpenApiExample("usual", value={"why": "a faulty index"}, request_only=True)],
    )
    def post(self, request: Request, collection_id: uuid.UUID, run_pk: int) -> Response:
        """Take a run out of later pools, comparisons and releases. Its tag is free for another run."""
        row = _any_run(collection_id, run_pk)
        set_run_aside(run=row, actor=user_of(request), **valid_body(WithReason, request))
        return Response(RunAnswer(row).data)


class RunTakeIn(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(operation_id="run_take_in", tags=["runs"], request=None, responses=RunAnswer)
    def post(self, request: Request, collection_id: uuid.UUID, run_pk: int) -> Response:
        """Let a run that was set aside be pooled and compared again."""
        row = _any_run(collection_id, run_pk)
        take_run_in(run=row, actor=user_of(request))
        return Response(RunAnswer(row).data)


def _any_run(collection_id: uuid.UUID, run_pk: int) -> Run:
    rows = Run.everything.select_related("collection")
    return get_object_or_404(rows, pk=run_pk, collection_id=collection_id)
