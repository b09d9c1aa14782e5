"""The pictures of a computation as files, and the numbers behind them as CSV."""

import uuid
from collections.abc import Callable
from typing import Any, Literal

from django.http import HttpResponse
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from analytics.charts import Chart
from analytics.estimation.claims import claim_of
from analytics.models import Computation
from analytics.services.analyses import AnalysisSubject, find
from analytics.services.plot_data import pair_forest, pair_matrix, rank_picture, run_forest
from analytics.services.recomputation import latest_computation
from console.api.common import MeasureRequest, PairRequest, query_of
from console.api.serializers.results import PicturesAnswer
from console.campaigns import drawn_campaign
from console.claims import ClaimRequest, claim_fields, comparisons_of
from console.researcher import studies
from console.researcher.plots import THEMES, TYPES
from judging.models import Campaign, Run
from judging.services.access import ResearchersOnly
from judging.services.errors import Refused


class NothingToDraw(Refused):
    status = 409
    title = "There are no numbers to draw yet"


class _Kind(serializers.Serializer[Any]):
    format = serializers.ChoiceField(list(TYPES), default="svg")
    theme = serializers.ChoiceField(list(THEMES), default="light")


class OfMeasure(_Kind, MeasureRequest):
    """A picture of all runs."""


class OfClaim(_Kind, ClaimRequest, MeasureRequest):
    """A picture of all differences with one claim."""


class OfPair(_Kind, PairRequest):
    """A picture of two runs."""


class OfAny(OfClaim):
    """What any picture takes."""

    run = serializers.CharField(required=False, max_length=200, help_text="For pictures of two runs")
    against = serializers.CharField(required=False, max_length=200, help_text="For pictures of two runs")


Drawn = Callable[..., Chart | None]


def _newest(picture: Callable[[Computation | None, str], Chart | None]) -> Drawn:
    """Return the picture of the newest computation."""
    return lambda row, measure, *_: picture(latest_computation(campaign=row), measure)


def _pair(row: Campaign, measure: str, run: Run | None, against: Run | None, is_whole: bool) -> Chart | None:
    if run is None or against is None:
        return None
    return pair_forest(latest_computation(campaign=row), measure, run, against)


def _pairs(
    row: Campaign, measure: str, run: Run | None, against: Run | None, is_whole: bool, **choice: str
) -> Chart | None:
    computed = latest_computation(campaign=row)
    return pair_matrix(computed, measure, comparisons_of(row, computed, measure, **choice))


def _ranks(
    row: Campaign, measure: str, run: Run | None, against: Run | None, is_whole: bool, **choice: str
) -> Chart | None:
    return rank_picture(latest_computation(campaign=row), measure, claim=claim_of(choice["claim"]))


def _study(what: str, picture: Callable[[dict[str, Any], bool], Chart | None]) -> Drawn:
    """Return the picture of an analysis that somebody had made."""

    def draw(
        row: Campaign, measure: str, run: Run | None, against: Run | None, is_whole: bool
    ) -> Chart | None:
        wanted = AnalysisSubject(what, measure, run.run_id if run else "", against.run_id if against else "")
        made = find(campaign=row, wanted=wanted).result
        return picture(made, is_whole) if made else None

    return draw


PICTURES: dict[str, tuple[str, type[serializers.Serializer[Any]], Drawn]] = {
    "forest": ("Every run's value by every method", OfMeasure, _newest(run_forest)),
    "pair": ("The difference of two runs by every method", OfPair, _pair),
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
        OfMeasure,
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
    """One picture: `format=svg|png|csv`, `theme=light|dark`."""

    permission_classes = (ResearchersOnly,)
    query_serializer = OfAny

    @extend_schema(
        operation_id="plots_retrieve",
        responses={(200, kind.partition(";")[0]): OpenApiTypes.BINARY for kind in TYPES.values()},
    )
    def get(self, request: Request, campaign_id: uuid.UUID, plot: str) -> HttpResponse:
        row = drawn_campaign(campaign_id)
        _, kind, draw = PICTURES[plot]
        sent = query_of(kind, request, row)
        is_whole = sent["format"] == "csv"
        choice = {name: sent[name] for name in claim_fields() if name in sent}
        chart = draw(row, sent["measure"], sent.get("run"), sent.get("against"), is_whole, **choice)
        if chart is None:
            raise NothingToDraw
        return _file(chart, sent["format"], sent["theme"], plot)


def _file(chart: Chart, file_format: str, theme: Literal["light", "dark"], name: str) -> HttpResponse:
    content: str | bytes
    if file_format == "csv":
        content = chart.csv()
    else:
        content = chart.standalone_svg(theme) if file_format == "svg" else chart.png(theme)
    shown = f'attachment; filename="{name}.{file_format}"'
    return HttpResponse(content, content_type=TYPES[file_format], headers={"Content-Disposition": shown})
