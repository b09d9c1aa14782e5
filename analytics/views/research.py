"""The researcher's pages: runs side by side, a pair of runs, downloads."""

import csv
import io
import uuid
from typing import Any

from django.db.models import Sum
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.safestring import mark_safe

from analytics.charts import ForestRow, forest_plot, png, standalone_svg
from analytics.comparison import holm
from analytics.models import Computation, Estimate, Method
from analytics.services.recomputation import latest_computation, measures_of
from analytics.views.words import always_words, assumption_words, conditions_context, variance_words
from judging.models import Campaign, Run
from judging.services.exports import export_prels, export_qrels, export_qrels_jg
from judging.views.access import researchers_only, user_of
from sampling.frames import item_probabilities, newest_draw
from sampling.measures import measure_kind

PLOTTED = {
    Method.NAIVE: "naive",
    Method.CORRECTED: "corrected",
    Method.MATRIX_INVERSE: "matrix inverse",
    Method.IMPORTANCE: "importance sampling",
    Method.TRUE: "true value",
}
SHOWN = [Method.NAIVE, Method.CORRECTED, Method.MATRIX_INVERSE, Method.IMPORTANCE, Method.TRUE]
SURE = 0.05  # two runs count as told apart below this value of Holm's adjusted p


@researchers_only
def results(request: HttpRequest) -> HttpResponse:
    """All campaigns with something to read."""
    campaigns = (
        Campaign.objects.visible_to(user_of(request))
        .annotate(n_drawn=Sum("draws__n_drawn"))
        .filter(n_drawn__isnull=False)
        .select_related("collection")
    )
    rows = [{"campaign": row, "computation": latest_computation(campaign=row)} for row in campaigns]
    return render(request, "analytics/results.html", {"rows": rows})


@researchers_only
def campaign(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Every run by every method: forest plot, table, and the matrix of differences."""
    row, computation, measure = _asked(request, campaign_id)
    estimates = _estimates(computation, measure, run_b__isnull=True)
    context = {
        "campaign": row,
        "draw": newest_draw(row),
        "computation": computation,
        "measure": measure,
        "measures": measures_of(row),
        "runs": _by_run(estimates),
        "plot": mark_safe(_run_forest(estimates, measure)) if estimates else "",
        "pairs": _pairs(computation, measure),
        "has_truth": any(estimate.method == Method.TRUE for estimate in estimates),
        "has_importance": any(estimate.method == Method.IMPORTANCE for estimate in estimates),
        "measure_is_linear": measure_kind(measure) == "linear",
        "is_open": row.state == Campaign.State.OPEN,
        "assumption": assumption_words(computation),
    }
    return render(request, "analytics/campaign_results.html", context)


@researchers_only
def pair(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """One pair of runs: the difference by every method, its interval, p, and the verdict in words."""
    row, computation, measure = _asked(request, campaign_id)
    run_a = get_object_or_404(row.collection.runs, run_id=request.GET.get("a", ""))
    run_b = get_object_or_404(row.collection.runs, run_id=request.GET.get("b", ""))
    estimates = _pair_estimates(computation, measure, run_a, run_b)
    corrected = next((e for e in estimates if e.method == Method.CORRECTED), None)
    context = {
        "campaign": row,
        "computation": computation,
        "measure": measure,
        "measures": measures_of(row),
        "run_a": run_a,
        "run_b": run_b,
        "all_runs": row.collection.runs.all(),
        "estimates": estimates,
        "plot": mark_safe(_pair_forest(estimates, measure, run_a, run_b)) if estimates else "",
        "verdict": _verdict(corrected, measure, run_a, run_b),
        "always": always_words(corrected, is_open=row.state == Campaign.State.OPEN),
        "variance": variance_words(corrected),
        "assumption": assumption_words(computation),
        "measure_is_linear": measure_kind(measure) == "linear",
        **conditions_context(row),
    }
    return render(request, "analytics/pair.html", context)


@researchers_only
def download_plot(request: HttpRequest, campaign_id: uuid.UUID, file_format: str) -> HttpResponse:
    """The forest plot as SVG or PNG, or its numbers as CSV."""
    row, computation, measure = _asked(request, campaign_id)
    estimates = _estimates(computation, measure, run_b__isnull=True)
    if not estimates:
        raise Http404
    name = f"{row.pk}-{measure}.{file_format}"
    if file_format == "csv":
        return file_of(_csv(estimates), "text/csv; charset=utf-8", name)
    drawn = _run_forest(estimates, measure)
    if file_format == "svg":
        return file_of(standalone_svg(drawn), "image/svg+xml", name)
    return file_of(png(drawn), "image/png", name)


@researchers_only
def export(request: HttpRequest, campaign_id: uuid.UUID, kind: str) -> StreamingHttpResponse:
    """qrels, qrels_jg or prels, streamed."""
    row = get_object_or_404(Campaign, pk=campaign_id)
    if kind == "prels":
        lines = export_prels(campaign=row, probabilities=item_probabilities(row))
    else:
        lines = {"qrels": export_qrels, "qrels_jg": export_qrels_jg}[kind](campaign=row)
    response = StreamingHttpResponse(lines, content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{row.pk}.{kind}"'
    return response


def _asked(request: HttpRequest, campaign_id: uuid.UUID) -> tuple[Campaign, Computation | None, str]:
    row = get_object_or_404(
        Campaign.objects.select_related("collection", "scale"), pk=campaign_id, draws__batch=1
    )
    measures = measures_of(row)
    measure = request.GET.get("measure", measures[0])
    if measure not in measures:
        raise Http404
    return row, latest_computation(campaign=row), measure


def _estimates(computation: Computation | None, measure: str, **conditions: Any) -> list[Estimate]:
    if computation is None:
        return []
    found = computation.estimates.filter(measure=measure, **conditions).select_related("run", "run_b")
    order = {method: place for place, method in enumerate(SHOWN)}
    return sorted(
        found, key=lambda e: (e.run.run_id, e.run_b.run_id if e.run_b else "", order[Method(e.method)])
    )


def _by_run(estimates: list[Estimate]) -> list[dict[str, Any]]:
    rows: dict[int, dict[str, Any]] = {}
    for estimate in estimates:
        entry = rows.setdefault(estimate.run_id, {"run": estimate.run})
        entry[Method(estimate.method).name.lower()] = estimate
    return sorted(rows.values(), key=lambda entry: -(_best_value(entry) or 0.0))


def _best_value(entry: dict[str, Any]) -> float | None:
    for name in ("corrected", "naive"):
        if name in entry and entry[name].value is not None:
            value: float = entry[name].value
            return value
    return None


def _forest_row(estimate: Estimate, label: str) -> ForestRow:
    method = PLOTTED[Method(estimate.method)]
    if estimate.value is None:
        return ForestRow(label, method, 0.0, 0.0, 0.0, refused=estimate.refusal)
    return ForestRow(label, method, estimate.value, estimate.low, estimate.high)


def _run_forest(estimates: list[Estimate], measure: str) -> str:
    order = {entry["run"].pk: place for place, entry in enumerate(_by_run(estimates))}
    rows = [_forest_row(e, e.run.run_id) for e in sorted(estimates, key=lambda e: order[e.run_id])]
    return forest_plot(rows, f"{measure} of every run", f"{measure} with 95 % intervals, by method", measure)


def _pair_forest(estimates: list[Estimate], measure: str, run_a: Run, run_b: Run) -> str:
    rows = [_forest_row(estimate, f"{run_a.run_id} − {run_b.run_id}") for estimate in estimates]
    title = f"Difference in {measure}"
    return forest_plot(rows, title, f"{title} with 95 % intervals, by method", title, reference=0.0)


def _pair_estimates(computation: Computation | None, measure: str, run_a: Run, run_b: Run) -> list[Estimate]:
    """Return the estimates of run_a minus run_b; stored the other way round, they are turned."""
    direct = _estimates(computation, measure, run=run_a, run_b=run_b)
    return direct or [_turned(e) for e in _estimates(computation, measure, run=run_b, run_b=run_a)]


def _turned(estimate: Estimate) -> Estimate:
    estimate.run, estimate.run_b = estimate.run_b, estimate.run
    if estimate.value is not None:
        estimate.value, estimate.low, estimate.high = 0 - estimate.value, 0 - estimate.high, 0 - estimate.low
    for low, high in (("topics_low", "topics_high"), ("always_low", "always_high")):
        if getattr(estimate, low) is not None:
            ends = 0 - getattr(estimate, high), 0 - getattr(estimate, low)
            setattr(estimate, low, ends[0])
            setattr(estimate, high, ends[1])
    return estimate


def _pairs(computation: Computation | None, measure: str) -> list[dict[str, Any]]:
    """Return the corrected differences of all pairs with Holm's adjusted p."""
    found = _estimates(computation, measure, run_b__isnull=False, method=Method.CORRECTED)
    tested = [estimate for estimate in found if estimate.p_value is not None]
    adjusted = (
        dict(zip([e.pk for e in tested], holm([e.p_value for e in tested]), strict=True)) if tested else {}
    )
    return [{"estimate": e, "holm": adjusted.get(e.pk), "better": _better(e, adjusted)} for e in found]


def _better(estimate: Estimate, adjusted: dict[int, float]) -> Run | None:
    """Return the better run of a pair that is told apart after Holm's adjustment."""
    if estimate.value is None or adjusted.get(estimate.pk, 1.0) >= SURE:
        return None
    return estimate.run if estimate.value > 0 else estimate.run_b


def _verdict(corrected: Estimate | None, measure: str, run_a: Run, run_b: Run) -> str:
    """Return a sentence for a methods section, better minus worse, or why there is none."""
    if corrected is None:
        return ""
    if corrected.value is None:
        return f"No corrected number: {corrected.refusal}."
    if corrected.n == 0:  # settled without a judgment
        return f"{run_a} and {run_b} are not told apart in {measure}: {corrected.warning}."
    told_apart = corrected.low > 0 or corrected.high < 0
    value, low, high = corrected.value, corrected.low, corrected.high
    topics = _over_topics(corrected, turned=told_apart and value < 0)
    if told_apart and value < 0:
        run_a, run_b, value, low, high = run_b, run_a, -value, -high, -low
    where = f"95 % interval {low:+.3f} to {high:+.3f}, n = {corrected.n} audited items"
    if corrected.p_value is not None:  # None: no error was measured, so there is no test
        where += f"; p = {corrected.p_value:.3f}" if corrected.p_value >= 0.001 else "; p < 0.001"
    if not told_apart:
        return (
            f"{run_a} and {run_b} are not told apart in {measure}: difference {value:+.3f} ({where})"
            f"{': ' + corrected.warning if corrected.warning else ''}.{topics}"
        )
    return f"{run_a} is better than {run_b} in {measure}: difference {value:+.3f} ({where}).{topics}"


def _over_topics(corrected: Estimate, *, turned: bool) -> str:
    """Return what holds beyond these topics, as a second sentence."""
    if corrected.topics_low is None:
        return ""
    low, high = corrected.topics_low, corrected.topics_high
    if turned:
        low, high = -high, -low
    sure = "" if low > 0 or high < 0 else ", which does not tell them apart"
    return f" For other topics of this kind, these taken as a sample: 95 % interval {low:+.3f} to {high:+.3f}{sure}."


def _csv(estimates: list[Estimate]) -> str:
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    columns = ["measure", "method", "value", "standard_error", "low", "high", "degrees_of_freedom", "n"]
    columns += ["topics_standard_error", "topics_low", "topics_high", "always_low", "always_high"]
    writer.writerow(["run", *columns, "sources", "warning", "refusal"])
    for e in estimates:
        numbers = [getattr(e, column) for column in columns]
        writer.writerow([e.run.run_id, *numbers, " + ".join(e.sources), e.warning, e.refusal])
    return target.getvalue()


def file_of(content: str | bytes, content_type: str, name: str) -> HttpResponse:
    return HttpResponse(
        content, content_type=content_type, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )
