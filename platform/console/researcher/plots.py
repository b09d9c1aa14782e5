"""Every picture of a page as a file: `?plot=<name>&format=svg|png|csv`, for SVG and PNG with `&theme=light|dark`."""

from collections.abc import Callable, Mapping

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.text import slugify

from analytics.charts import Chart

TYPES = {"svg": "image/svg+xml", "png": "image/png", "csv": "text/csv; charset=utf-8"}
THEMES = ("light", "dark")


def plot_answer(request: HttpRequest, charts: Mapping[str, Callable[[], Chart | None]]) -> HttpResponse:
    """Answer `?plot=` of a page: the picture of that name as a file. What is unknown, or has no picture, is absent.

    A view calls it first: `if "plot" in request.GET: return plot_answer(request, {"forest": make_forest})`.
    """
    name, file_format = request.GET.get("plot", ""), request.GET.get("format", "svg")
    theme = request.GET.get("theme", "light")
    if name not in charts or file_format not in TYPES or theme not in THEMES:
        raise Http404
    chart = charts[name]()
    if chart is None:
        raise Http404
    content: str | bytes
    if file_format == "csv":
        content = chart.csv()
    elif file_format == "svg":
        content = chart.standalone_svg("dark" if theme == "dark" else "light")
    else:
        content = chart.png("dark" if theme == "dark" else "light")
    stem = slugify(chart.title)[:60] or slugify(name) or "plot"
    return HttpResponse(
        content,
        content_type=TYPES[file_format],
        headers={"Content-Disposition": f'attachment; filename="{stem}.{file_format}"'},
    )
