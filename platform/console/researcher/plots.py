"""Every picture of a page as a file: `?plot=<name>&format=<one of PLOT_FORMATS>`, with theme, width, font and title."""

from collections.abc import Callable, Mapping
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.text import slugify
from rest_framework import serializers

from analytics.charts import Chart
from analytics.charts.files import PLOT_FORMATS, Sheet, SheetRefused, plot_format
from analytics.methods import METHODS
from judging.serializers.strict import Finite, Flag, Word

THEMES = ("light", "dark")
METHODS_HELP = "Methods to draw, separated by commas; all of them by default"


class SheetOptions(serializers.Serializer[Any]):
    """How a picture is written as a file."""

    format = serializers.ChoiceField([one.key for one in PLOT_FORMATS], default="svg")
    theme = serializers.ChoiceField(list(THEMES), default="light")
    width = Word(
        max_length=8,
        default="",
        allow_blank=True,
        help_text="single (84 mm), double (174 mm) or millimetres; by default as on the page, and single for a PDF",
    )
    font_pt = Finite(required=False, help_text="Points of the letters, 7 by default where there is a width")
    title = Flag(default=True, help_text="Whether the title stands above the picture")

    def validate(self, sent: dict[str, Any]) -> dict[str, Any]:
        theme, width, points, has_title = (sent.get(n) for n in ("theme", "width", "font_pt", "title"))
        try:
            sheet = Sheet("dark" if theme == "dark" else "light", str(width), points, bool(has_title))
        except SheetRefused as fault:
            raise serializers.ValidationError({fault.field: [str(fault)]}) from fault
        return {**super().validate(sent), "sheet": sheet}


def methods_of(given: str) -> tuple[str, ...]:
    """Return the keys of methods in a text, separated by commas; ValueError for one that is not registered."""
    keys = tuple(filter(None, (key.strip() for key in given.split(","))))
    known = [method.key for method in METHODS]
    for key in keys:
        if key not in known:
            raise ValueError(f"must be among {', '.join(known)}, got {key!r}")
    return keys


def asked_methods(request: HttpRequest) -> tuple[str, ...]:
    """Return the methods that a page's picture is asked for; others than the registered ones are absent."""
    try:
        return methods_of(request.GET.get("methods", ""))
    except ValueError as fault:
        raise Http404 from fault


def plot_answer(request: HttpRequest, charts: Mapping[str, Callable[[], Chart | None]]) -> HttpResponse:
    """Answer `?plot=` of a page: the picture of that name as a file. What is unknown, or has no picture, is absent.

    A view calls it first: `if "plot" in request.GET: return plot_answer(request, {"forest": make_forest})`.
    """
    name = request.GET.get("plot", "")
    options = SheetOptions(data=request.GET)
    if name not in charts or not options.is_valid():
        raise Http404
    chart = charts[name]()
    if chart is None:
        raise Http404
    sent = options.validated_data
    return plot_file(
        chart, sent["format"], sent["sheet"], slugify(chart.title)[:60] or slugify(name) or "plot"
    )


def plot_file(chart: Chart, key: str, sheet: Sheet, stem: str) -> HttpResponse:
    """Return the picture in the format of this key as a download."""
    one = plot_format(key)
    return HttpResponse(
        one.write(chart, sheet),
        content_type=one.content_type,
        headers={"Content-Disposition": f'attachment; filename="{stem}.{one.extension}"'},
    )
