"""All pairs of runs of a campaign: the matrix of differences, the table, and the verdicts in words."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from analytics.charts import Chart, difference_matrix
from analytics.estimation.estimate import few_positive_warning
from analytics.methods import REPORTED
from analytics.models import Computation, Estimate
from analytics.services.verdicts import SURE, AdjustedPValues, adjusted_p_values, reverse_difference
from console.researcher.plots import plot_answer
from console.researcher.results import said_of
from console.researcher.results_page import (
    TOPS,
    ResultsRequest,
    Run,
    page_of,
    results_request,
    runs_in_order,
    top_of,
)
from judging.services.access import researchers_only

PAIRS_PER_PAGE = 50
MOST_CHOSEN = TOPS[-1]
SHOWN = ("all", "apart", "not-apart", "refused")
COLUMNS = ("pk", "run", "run_b", "value", "low", "high", "p_value", "n", "refusal", "n_positive")


@dataclass(frozen=True)
class Row:
    """A pair as the table has it: the run that stands higher minus the other."""

    better: Run
    worse: Run
    value: float | None
    low: float | None
    high: float | None
    p_value: float | None
    holm: float | None
    n: int
    refusal: str
    n_positive: int | None = None

    @property
    def few(self) -> str:
        """Return a warning where few items carry the difference, else an empty text."""
        is_exact = self.low is not None and self.low == self.high
        return "" if self.n_positive is None or is_exact else few_positive_warning(self.n_positive)

    @property
    def is_apart(self) -> bool:
        return self.holm is not None and self.holm < SURE and bool(self.value)

    @property
    def winner(self) -> Run | None:
        if not self.is_apart or self.value is None:
            return None
        return self.better if self.value > 0 else self.worse


@require_GET
@researchers_only
def pairs(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Every pair of the best runs, or of those that were chosen; Holm's p is over all pairs of the campaign."""
    results = results_request(request, campaign_id)
    order = runs_in_order(results.computation, results.measure)
    chosen, top, tops = _selected_runs(request, order)
    adjusted = adjusted_p_values(results.computation, results.measure)
    rows = list(_rows(results.computation, results.measure, chosen, adjusted))
    if "plot" in request.GET:
        return plot_answer(request, {"differences": lambda: _matrix(chosen, rows, results.measure)})
    shown = request.GET.get("show", "all")
    shown = shown if shown in SHOWN else "all"
    kept = [row for row in rows if _is_kept(row, shown)]
    context = {
        **results.context("pairs"),
        "runs": order,
        "n_runs": len(order),
        "run_ids": [run.run_id for run in order],
        "chosen": {run.run_id for run in chosen} if request.GET.getlist("run") else set(),
        "chosen_by_hand": bool(request.GET.getlist("run")) and chosen != order[:top],
        "most_chosen": MOST_CHOSEN,
        "n_shown_runs": len(chosen),
        "top": top,
        "tops": tops,
        "matrix": _matrix(chosen, rows, results.measure),
        "pairs": page_of(request, kept, PAIRS_PER_PAGE),
        "n_all": len(rows),
        "show": shown,
        "n_tested": adjusted.n_tested,
        "n_apart": sum(p < SURE for p in adjusted.p_values.values()),
        **_sentence_context(request, results, chosen, rows, adjusted),
    }
    return render(request, "console/researcher/pairs.html", context)


def _selected_runs(request: HttpRequest, order: list[Run]) -> tuple[list[Run], int, list[int]]:
    """Return the runs that are shown: those chosen by name, else the best."""
    top, tops = top_of(request, len(order))
    names = set(request.GET.getlist("run"))
    chosen = [run for run in order if run.run_id in names][:MOST_CHOSEN]
    if len(chosen) >= 2:
        return chosen, 0, tops
    return order[:top], top, tops


def _rows(
    computation: Computation | None, measure: str, runs: list[Run], adjusted: AdjustedPValues
) -> Iterator[Row]:
    """Yield the pairs of these runs in their order; others are not read."""
    if computation is None or len(runs) < 2:
        return
    place = {run.key: number for number, run in enumerate(runs)}
    stored = computation.estimates.filter(
        measure=measure, method=REPORTED.key, run__in=place, run_b__in=place
    ).values_list(*COLUMNS)
    for row in sorted(stored, key=lambda row: tuple(sorted((place[row[1]], place[row[2]])))):
        key, run, run_b, value, low, high, p, n, refusal, carried = row
        if place[run] > place[run_b]:
            run, run_b = run_b, run
            if value is not None:
                value, low, high = 0 - value, 0 - high, 0 - low
        first, second = runs[place[run]], runs[place[run_b]]
        yield Row(first, second, value, low, high, p, adjusted.p_values.get(key), n, refusal, carried)


def _is_kept(row: Row, shown: str) -> bool:
    if shown == "refused":
        return row.value is None
    if shown == "apart":
        return row.is_apart
    return shown == "all" or (row.value is not None and not row.is_apart)


def _matrix(runs: list[Run], rows: list[Row], measure: str) -> Chart | None:
    if len(runs) < 2 or not rows:
        return None
    place = {run.key: number for number, run in enumerate(runs)}
    tables = np.full((4, len(runs), len(runs)), np.nan)
    for row in rows:
        if row.value is None or row.low is None or row.high is None:
            continue
        a, b = place[row.better.key], place[row.worse.key]
        holm = np.nan if row.holm is None else row.holm
        tables[:, a, b] = row.value, row.low, row.high, holm
        tables[:, b, a] = -row.value, -row.high, -row.low, holm
    value, low, high, p = tables.tolist()
    return difference_matrix(
        [run.run_id for run in runs],
        value,
        low,
        high,
        p,
        title=f"Differences in {measure}",
        measure=measure,
    )


def _sentence_context(
    request: HttpRequest, found: ResultsRequest, runs: list[Run], rows: list[Row], adjusted: AdjustedPValues
) -> dict[str, Any]:
    """Return the pair whose sentence is shown: the one that is asked for, else the two best."""
    if found.computation is None:
        return {}
    names = {run.run_id: run.key for run in runs}
    first, second = request.GET.get("a", ""), request.GET.get("b", "")
    if first not in names or second not in names or first == second:
        if not rows:
            return {}
        first, second = rows[0].better.run_id, rows[0].worse.run_id
    corrected = _stored_difference(found.computation, found.measure, names[first], names[second])
    if corrected is None or corrected.run_b is None:
        return {}
    said = said_of(found, corrected, corrected.run, corrected.run_b, adjusted)
    return {"said_a": first, "said_b": second, **said}


def _stored_difference(computation: Computation, measure: str, first: int, second: int) -> Estimate | None:
    """Return the corrected difference first minus second, whichever way round it is stored: one statement."""
    found = computation.estimates.filter(
        measure=measure, method=REPORTED.key, run__in=(first, second), run_b__in=(first, second)
    )
    row = found.select_related("run", "run_b").first()
    return row if row is None or row.run_id == first else reverse_difference(row)
