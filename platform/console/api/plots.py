"""The pictures of a computation as files, and the numbers behind them."""

import uuid
from collections.abc import Callable
from typing import Any

from django.http import HttpResponse
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from analytics.charts import Chart
from analytics.charts.files import PLOT_FORMATS
from analytics.estimation.claims import claim_of
from analytics.services.analyses import AnalysisSubject, find, under_claim
from analytics.services.plot_data import pair_forest, pair_matrix, rank_picture, run_forest
from analytics.services.recomputation import latest_computation
from console.api.common import MeasureRequest, PairRequest, query_of
from console.api.serializers.results import PicturesAnswer
from console.campaigns import drawn_campaign
from console.claims import ClaimRequest, claim_fields, comparisons_of
from console.researcher import studies
from console.researcher.plots import METHODS_HELP, SheetOptions, methods_of, plot_file
from judging.models import Campaign
from judging.serializers.strict import Word
from judging.services.access import ResearchersOnly
from judging.services.errors import Refused


class NothingToDraw(Refused):
    status = 409
    title = "There are no numbers to draw yet"


class OfClaim(SheetOptions, ClaimRequest, MeasureRequest):
    """A picture of all differences with one claim."""


class OfPair(SheetOptions, PairRequest):
    """A picture of two runs in every topic: intervals of one topic claim nothing of others."""


class _ByMethod(serializers.Serializer[Any]):
    methods = Word(max_length=200, default="", allow_blank=True, help_text=METHODS_HELP)

    def validate_methods(self, given: str) -> tuple[str, ...]:
        try:
            return methods_of(given)
        except ValueError as fault:
            raise serializers.ValidationError(str(fault)) from fault


class OfRunsByMethod(_ByMethod, OfClaim):
    """A picture of all runs by method."""


class OfPairByMethod(_ByMethod, ClaimRequest, OfPair):
    """A picture of two runs by method."""


class OfAny(_ByMethod, OfClaim):
    """What any picture takes."""

    run = serializers.CharField(required=False, max_length=200, help_text="For pictures of two runs")
    against = serializers.CharField(required=False, max_length=200, help_text="For pictures of two runs")


Drawn = Callable[[Campaign, dict[str, Any]], Chart | None]  # the dict: what was asked


def _forest(row: Campaign, sent: dict[str, Any]) -> Chart | None:
    newest, claim = latest_computation(campaign=row), claim_of(sent["claim"])
    return run_forest(newest, sent["measure"], sent["methods"], claim)


def _pair(row: Campaign, sent: dict[str, Any]) -> Chart | None:
    newest, claim = latest_computation(campaign=row), claim_of(sent["claim"])
    runs = sent["run"], sent["against"]
    return pair_forest(newest, sent["measure"], *runs, methods=sent["methods"], claim=claim)


def _pairs(row: Campaign, sent: dict[str, Any]) -> Chart | None:
    computed, choice = latest_computation(campaign=row), {name: sent[name] for name in claim_fields()}
    return pair_matrix(computed, sent["measure"], comparisons_of(row, computed, sent["measure"], **choice))


def _ranks(row: Campaign, sent: dict[str, Any]) -> Chart | None:
    computed, choice = latest_computation(campaign=row), {name: sent[name] for name in claim_fields()}
    return rank_picture(computed, sent["measure"], comparisons_of(row, computed, sent["measure"], **choice))


def _study(what: str, picture: Callable[[dict[str, Any], bool], Chart | None]) -> Drawn:
    """Return the picture of an analysis that somebody had made."""

    def draw(row: Campaign, sent: dict[str, Any]) -> Chart | None:
        run, against = (sent[name].run_id if name in sent else "" for name in ("run", "against"))
        subject = AnalysisSubject(what, sent["measure"], run, against, family=sent.get("family", ""))
        made = find(campaign=row, wanted=subject).result
        if made and "claim" in sent:
            made = under_claim(made, claim_of(sent["claim"]))
        return picture(made, sent["format"] == "csv") if made else None

    return draw


PICTURES: dict[str, tuple[str, type[serializers.Serializer[Any]], Drawn]] = {
    "forest": ("Every run's value by every method", OfRunsByMethod, _forest),
    "pair": ("The difference of two runs by every method", OfPairByMethod, _pair),
    "pairs": (
        "The corrected differences of all pairs of runs, with p adjusted in the family",
        OfClaim,
        _pairs,
    ),
    "ranks": ("The chance of every rank for every run", OfClaim, _ranks),
    "topics": (
        "The difference of two runs in every topic; needs the analysis",
        OfPair,
        _study("topics", lambda made, whole: studies.differences_chart(made, made["topics"], whole)),
    ),
    "hardest-topics": (
        "The topics that are hard for all runs; needs the analysis by topic",
        OfPair,
        _study("topics", studies.hardest_chart),
    ),
    "sensitivity": (
        "The verdict under other evidence; needs the analysis",
        OfClaim,
        _study("sensitivity", lambda made, _: studies.variants_chart(made)),
    ),
}


class PicturesView(APIView):
    """The pictures there are, and what their addresses take."""

    permission_classes = (ResearchersOnly,)

    @extend_schema(operation_id="plots_list", responses=PicturesAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        drawn_campaign(campaign_id)
        plots = [
            {
                "name": name,
                "words": words,
                "query": list(kind().fields),
                "url": reverse("console:api-plot", args=[campaign_id, name]),
            }
            for name, (words, kind, _) in PICTURES.items()
        ]
        return Response(PicturesAnswer({"plots": plots}).data)


class PictureView(APIView):
    """One picture as a file; for a paper in a width, with letters of a size, with or without title."""

    permission_classes = (ResearchersOnly,)
    query_serializer = OfAny

    @extend_schema(
        operation_id="plots_retrieve",
        parameters=[
            OpenApiParameter("plot", {"type": "string", "enum": list(PICTURES)}, OpenApiParameter.PATH)
        ],
        responses={
            (200, kind): OpenApiTypes.OBJECT if kind.endswith("json") else OpenApiTypes.BINARY
            for kind in (one.content_type.partition(";")[0] for one in PLOT_FORMATS)
        },
    )
    def get(self, request: Request, campaign_id: uuid.UUID, plot: str) -> HttpResponse:
        row = drawn_campaign(campaign_id)
        _, kind, draw = PICTURES[plot]
        sent = query_of(kind, request, row, OfAny)
        chart = draw(row, sent)
        if chart is None:
            raise NothingToDraw
        return plot_file(chart, sent["format"], sent["sheet"], plot)
