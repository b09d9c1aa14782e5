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
from analytics.services.pictures import pair_forest, pair_matrix, rank_picture, run_forest
from analytics.services.recomputation import latest_computation
from analytics.views.api.answers import PicturesAnswer
from analytics.views.api.common import MeasureRequest, PairRequest, asked, drawn_campaign
from analytics.views.plots import THEMES, TYPES
from judging.services.errors import Refused
from judging.views.access import ResearchersOnly


class NothingToDraw(Refused):
    status = 409
    title = "There are no numbers to draw yet"


class _Kind(serializers.Serializer):
    format = serializers.ChoiceField(list(TYPES), default="svg")
    theme = serializers.ChoiceField(list(THEMES), default="light")


class OfMeasure(_Kind, MeasureRequest):
    """A picture of all runs."""


class OfPair(_Kind, PairRequest):
    """A picture of two runs."""


class OfAny(OfMeasure):
    """What any picture takes."""

    run = serializers.CharField(required=False, max_length=200, help_text="For `pair`")
    against = serializers.CharField(required=False, max_length=200, help_text="For `pair`")


Drawn = Callable[..., Chart | None]
PICTURES: dict[str, tuple[str, type[serializers.Serializer], Drawn]] = {
    "forest": ("Every run's value by every method", OfMeasure, run_forest),
    "pair": ("The difference of two runs by every method", OfPair, pair_forest),
    "pairs": ("The corrected differences of all pairs of runs, with Holm's p", OfMeasure, pair_matrix),
    "ranks": ("The chance of every rank for every run", OfMeasure, rank_picture),
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
                "url": reverse("analytics:api-plot", args=[campaign_id, name]),
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
        _, kind, drawn = PICTURES[plot]
        sent = asked(kind, request, row)
        runs: dict[str, Any] = {"run_a": sent["run"], "run_b": sent["against"]} if "run" in sent else {}
        chart = drawn(latest_computation(campaign=row), sent["measure"], **runs)
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
