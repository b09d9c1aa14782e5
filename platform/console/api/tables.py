"""Tables for a paper: runs, pairs and the ranking of the newest computation as LaTeX, Markdown or CSV."""

import uuid
from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.views import APIView

from analytics.services.recomputation import latest_computation
from analytics.services.result_tables import RESULT_TABLES, TableRequest, result_table
from analytics.tables import MARKS, NO_MARKS, TABLE_FORMATS, marks_of, table_format
from console.api.common import MeasureRequest, query_of
from console.campaigns import drawn_campaign
from console.claims import ClaimRequest, claim_fields, comparisons_of
from judging.serializers.strict import Word
from judging.services.access import ResearchersOnly
from judging.services.errors import Refused


class NothingToWrite(Refused):
    status = 409
    title = "There are no numbers for this table yet"


class TableQuery(ClaimRequest, MeasureRequest):
    """Which table, in which format and with which marks."""

    format = serializers.ChoiceField([one.key for one in TABLE_FORMATS], default=TABLE_FORMATS[0].key)
    marks = serializers.ChoiceField(
        [one.key for one in MARKS], default=MARKS[0].key, help_text="Not of pairs, which have columns for it"
    )
    against = Word(
        max_length=200,
        default="",
        allow_blank=True,
        help_text="The baseline of daggers; of pairs the run that is subtracted from every other one",
    )

    def validate_against(self, run_id: str) -> str:
        if run_id and not self.context["campaign"].collection.runs.filter(run_id=run_id).exists():
            raise serializers.ValidationError(f"the collection has no run {run_id!r}")
        return run_id

    def validate(self, sent: dict[str, Any]) -> dict[str, Any]:
        marks, against = marks_of(sent["marks"]), sent["against"]
        if self.context["table"].has_marks:
            if marks.needs_baseline and not against:
                raise serializers.ValidationError({"against": [f"{marks.key} need a baseline: name a run"]})
            if against and not marks.needs_baseline:
                raise serializers.ValidationError({"against": ["only daggers are against a run"]})
        elif marks is not NO_MARKS:
            raise serializers.ValidationError({"marks": ["a table of pairs has no marks"]})
        return super().validate(sent)


class TableView(APIView):
    """A table of the newest computation, to put into a paper."""

    permission_classes = (ResearchersOnly,)
    query_serializer = TableQuery

    @extend_schema(
        operation_id="tables_retrieve",
        parameters=[
            OpenApiParameter(
                "table",
                {"type": "string", "enum": [one.key for one in RESULT_TABLES]},
                OpenApiParameter.PATH,
            )
        ],
        responses={(200, one.content_type.partition(";")[0]): OpenApiTypes.BINARY for one in TABLE_FORMATS},
    )
    def get(self, request: Request, campaign_id: uuid.UUID, table: str) -> HttpResponse:
        row = drawn_campaign(campaign_id)
        kind = result_table(table)
        sent = query_of(TableQuery, request, row, table=kind)
        newest = latest_computation(campaign=row)
        marks = marks_of(sent["marks"])
        choice = {name: sent[name] for name in claim_fields()}
        among = comparisons_of(row, newest, sent["measure"], **choice)
        made = newest and kind.make(TableRequest(newest, among, marks, sent["against"]))
        if not made:
            raise NothingToWrite
        one = table_format(sent["format"])
        return HttpResponse(
            one.write(made),
            content_type=one.content_type,
            headers={"Content-Disposition": f'attachment; filename="{made.key}.{one.extension}"'},
        )
