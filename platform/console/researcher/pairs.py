"""All pairs of runs of a campaign: the matrix of differences, the table, and the verdicts in words."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from analytics.charts import Chart, difference_matrix
from analytics.estimation.claims import other_claim
from analytics.estimation.estimate import few_positive_warning
from analytics.estimation.wording import LEVEL
from analytics.methods import REPORTED
from analytics.models import Computation, Estimate
from analytics.services.claim_intervals import CLAIM_COLUMNS
from analytics.services.comparisons import Comparisons
from analytics.services.families import declare_family, family_fault
from analytics.services.plot_data import title_of
from analytics.services.verdicts import reverse_difference
from console.campaigns import drawn_campaign
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
from judging.services.access import managers_only, researchers_only
from touchstone.models import user_of
from touchstone.replica import from_replica

PAIRS_PER_PAGE = 50
# More pairs than these wait behind a fold, until somebody asks for some of them: the matrix shows them all.
PAIRS_AT_ONCE = 10
MOST_CHOSEN = TOPS[-1]
SHOWN = ("all", "apart", "not-apart", "refused")
COLUMNS = ("pk", "run", "run_b", "value", "n", "refusal", "n_positive")


@dataclass(frozen=True)
class Row:
    """A pair as the table has it: the run that stands higher minus the other; interval and p are the claim's.

    The ends of the other claim's interval stand beside them.
    """

    better: Run
    worse: Run
    value: float | None
    low: float | None
    high: float | None
    p_value: float | None
    p_adjusted: float | None
    n: int
    refusal: str
    n_positive: int | None = None
    other_low: float | None = None
    other_high: float | None = None

    @property
    def few(self) -> str:
        """Return a warning where few items carry the difference, else an empty text."""
        is_exact = self.low is not None and self.low == self.high
        return "" if self.n_positive is None or is_exact else few_positive_warning(self.n_positive)

    @property
    def is_apart(self) -> bool:
        return self.p_adjusted is not None and self.p_adjusted < LEVEL and bool(self.value)

    @property
    def winner(self) -> Run | None:
        if not self.is_apart or self.value is None:
            return None
        return self.better if self.value > 0 else self.worse


@require_GET
@researchers_only
@from_replica
def pairs(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Every pair of the best runs, or of those that were chosen; p is adjusted in the family that is asked for."""
    results = results_request(request, campaign_id)
    order = runs_in_order(results.computation, results.measure)
    chosen, top, tops = _selected_runs(request, order)
    comparisons = results.comparisons
    rows = list(_rows(comparisons, chosen))
    if "plot" in request.GET:
        return plot_answer(request, {"differences": lambda: _matrix(chosen, rows, comparisons)})
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
        "matrix": _matrix(chosen, rows, comparisons),
        "matrix_caption": (
            "The row's run minus the column's, corrected. A frame with an arrow marks a significant difference "
            f"(adjusted p below 0.05 for {results.claim.label.lower()}); the arrow points to the higher run."
        ),
        "pairs": page_of(request, kept, PAIRS_PER_PAGE),
        "n_all": len(rows),
        "is_open": len(rows) <= PAIRS_AT_ONCE or not request.GET.keys().isdisjoint(("show", "page")),
        "show": shown,
        "n_apart": comparisons.n_significant,
        **results.claim_context,
        **_sentence_context(request, results, chosen, rows),
    }
    return render(request, "console/researcher/pairs.html", context)


@require_POST
@managers_only
def declare(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Declare the family among whose comparisons p-values are adjusted from now on."""
    row = drawn_campaign(campaign_id)
    name = request.POST.get("family", "").strip()
    fault = family_fault(row, name)
    if fault:
        messages.error(request, f"{fault[0].upper()}{fault[1:]}.")
    else:
        declare_family(campaign=row, user=user_of(request), name=name)
        messages.success(request, f"The family {name} was declared.")
    return redirect("console:pairs", row.pk)


def _selected_runs(request: HttpRequest, order: list[Run]) -> tuple[list[Run], int, list[int]]:
    """Return the runs that are shown: those chosen by name, else the best."""
    top, tops = top_of(request, len(order))
    names = set(request.GET.getlist("run"))
    chosen = [run for run in order if run.run_id in names][:MOST_CHOSEN]
    if len(chosen) >= 2:
        return chosen, 0, tops
    return order[:top], top, tops


def _rows(comparisons: Comparisons, runs: list[Run]) -> Iterator[Row]:
    """Yield the pairs of these runs in their order; others are not read."""
    computation, claim = comparisons.computation, comparisons.claim
    if computation is None or len(runs) < 2:
        return
    adjusted = comparisons.adjusted_p(claim)
    place = {run.key: number for number, run in enumerate(runs)}
    stored = computation.estimates.filter(
        measure=comparisons.measure, method=REPORTED.key, run__in=place, run_b__in=place
    ).values_list(*COLUMNS, *CLAIM_COLUMNS[claim.key], *CLAIM_COLUMNS[other_claim(claim).key][:2])
    for row in sorted(stored, key=lambda row: tuple(sorted((place[row[1]], place[row[2]])))):
        key, run, run_b, value, n, refusal, carried, low, high, p, *other = row
        if place[run] > place[run_b]:
            run, run_b = run_b, run
            numbers = value, high, low, *reversed(other)
            value, low, high, *other = (None if end is None else 0 - end for end in numbers)
        first, second = runs[place[run]], runs[place[run_b]]
        yield Row(first, second, value, low, high, p, adjusted.get(key), n, refusal, carried, *other)


def _is_kept(row: Row, shown: str) -> bool:
    if shown == "refused":
        return row.value is None
    if shown == "apart":
        return row.is_apart
    return shown == "all" or (row.value is not None and not row.is_apart)


def _matrix(runs: list[Run], rows: list[Row], comparisons: Comparisons) -> Chart | None:
    if len(runs) < 2 or not rows:
        return None
    place = {run.key: number for number, run in enumerate(runs)}
    tables = np.full((4, len(runs), len(runs)), np.nan)
    for row in rows:
        if row.value is None or row.low is None or row.high is None:
            continue
        a, b = place[row.better.key], place[row.worse.key]
        p = np.nan if row.p_adjusted is None else row.p_adjusted
        tables[:, a, b] = row.value, row.low, row.high, p
        tables[:, b, a] = -row.value, -row.high, -row.low, p
    value, low, high, adjusted = tables.tolist()
    return difference_matrix(
        [run.run_id for run in runs],
        value,
        low,
        high,
        adjusted,
        title=title_of(f"Differences in {comparisons.measure}", comparisons.claim),
        measure=comparisons.measure,
    )


def _sentence_context(
    request: HttpRequest, found: ResultsRequest, runs: list[Run], rows: list[Row]
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
    return {"said_a": first, "said_b": second, **said_of(found, corrected)}


def _stored_difference(computation: Computation, measure: str, first: int, second: int) -> Estimate | None:
    """Return the corrected difference first minus second, whichever way round it is stored: one statement."""
    found = computation.estimates.filter(
        measure=measure, method=REPORTED.key, run__in=(first, second), run_b__in=(first, second)
    )
    row = found.select_related("run", "run_b").first()
    return row if row is None or row.run_id == first else reverse_difference(row)
