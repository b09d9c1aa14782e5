"""The pictures of a computation, drawn from the rows that pages and the API give: they cannot say another thing."""

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from analytics.charts import Chart, ForestRow, difference_matrix, forest, rank_matrix
from analytics.estimation.claims import THESE, Claim
from analytics.methods import REPORTED, method_of, ranked_methods
from analytics.models import Computation, Estimate, before_cutting
from analytics.services.claim_intervals import CLAIM_COLUMNS, claim_test
from analytics.services.comparisons import Comparisons
from analytics.services.ranking import ranking_of
from analytics.services.verdicts import estimates_of, pair_estimates
from judging.models import Run
from sampling.measures.registry import parse_measure


def run_forest(
    computation: Computation | None, measure: str, methods: Collection[str] = (), claim: Claim = THESE
) -> Chart | None:
    """Return every run's value by every method, or by these, the best run first; the intervals are the claim's."""
    return forest_of_runs(estimates_of(computation, measure, run_b__isnull=True), measure, methods, claim)


def forest_of_runs(
    estimates: list[Estimate], measure: str, methods: Collection[str] = (), claim: Claim = THESE
) -> Chart | None:
    """Return the forest plot of these estimates; None without any."""
    estimates = _served_estimates(estimates, measure, methods)
    if not estimates:
        return None
    best: dict[int, float] = {}
    for method in reversed(ranked_methods()):
        own = {e.run_id: e.whole("value") for e in estimates if e.method == method.key}
        best |= {run: value for run, value in own.items() if value is not None}
    in_order = sorted(estimates, key=lambda e: (-best.get(e.run_id, 0.0), e.run.run_id))
    rows = [_row(e, e.run.run_id, claim) for e in in_order]
    return forest(rows, title_of(f"{measure} of every run", claim), _words(measure, rows, claim), measure)


def pair_forest(
    computation: Computation | None,
    measure: str,
    run_a: Run,
    run_b: Run,
    estimates: list[Estimate] | None = None,
    methods: Collection[str] = (),
    claim: Claim = THESE,
) -> Chart | None:
    """Return the difference of two runs by every method, or by these; `estimates` if they were read already."""
    found = pair_estimates(computation, measure, run_a, run_b) if estimates is None else estimates
    found = _served_estimates(found, measure, methods)
    if not found:
        return None
    label = f"{run_a.run_id} − {run_b.run_id}"
    rows = [_row(e, label, claim) for e in found]
    title = f"Difference in {measure}"
    return forest(rows, title_of(title, claim), _words(label, rows, claim), title, reference=0.0)


def title_of(title: str, claim: Claim) -> str:
    """Return a title that says what the intervals are for.

    >>> title_of("P@10 of every run", THESE)
    'P@10 of every run, these topics'
    """
    return f"{title}, {claim.label.lower()}"


def _words(what: str, rows: Iterable[ForestRow], claim: Claim) -> str:
    """Return what a forest plot shows, and what a point without a line is."""
    words = f"{what} with 95 % confidence intervals for {claim.label.lower()}, by method"
    alone = any(row.value is not None and row.low is None for row in rows)
    return f"{words}; a method without a line has no such interval" if alone else words


def _served_estimates(estimates: list[Estimate], measure: str, methods: Collection[str]) -> list[Estimate]:
    """Return the estimates by methods that serve the measure, and by the one to report; of `methods`, if any."""
    served = [e for e in estimates if e.registered_method.is_shown(parse_measure(measure))]
    return [e for e in served if e.method in methods] if methods else served


def pair_matrix(computation: Computation | None, measure: str, comparisons: Comparisons) -> Chart | None:
    """Return the reported differences of all pairs with p adjusted in the family, the runs in order of their values."""
    if computation is None:
        return None
    corrected = computation.estimates.filter(measure=measure, method=REPORTED.key)
    values = "run", "run__run_id", before_cutting("value")
    own: Iterable[tuple[Any, ...]] = corrected.filter(run_b=None).values_list(*values)
    runs = sorted(own, key=lambda row: (row[2] is None, -(row[2] or 0.0), row[1]))
    if len(runs) < 2:
        return None
    place = {key: index for index, (key, *_) in enumerate(runs)}
    tables = {name: np.full((len(runs), len(runs)), np.nan) for name in ("value", "low", "high", "p")}
    adjusted = comparisons.adjusted_p(comparisons.claim)
    ends = CLAIM_COLUMNS[comparisons.claim.key][:2]
    pairs = corrected.filter(run_b__isnull=False, value__isnull=False, **{f"{ends[0]}__isnull": False})
    rows: Iterable[tuple[Any, ...]] = pairs.values_list("pk", "run", "run_b", "value", *ends)
    for key, first, second, *numbers in rows:
        if first in place and second in place:
            _put(tables, place[first], place[second], numbers, adjusted.get(key))
    return difference_matrix(
        [run_id for _, run_id, _ in runs],
        tables["value"].tolist(),
        tables["low"].tolist(),
        tables["high"].tolist(),
        tables["p"].tolist(),
        title=title_of(f"Differences in {measure}", comparisons.claim),
        description=f"Differences in {measure} of all pairs of runs, {REPORTED.short}, for "
        f"{comparisons.claim.label.lower()}, with adjusted p",
        measure=measure,
    )


def _put(tables: dict[str, Any], a: int, b: int, numbers: list[float], p: float | None) -> None:
    """Enter a difference both ways round."""
    value, low, high = numbers
    for name, one, other in (("value", value, -value), ("low", low, -high), ("high", high, -low)):
        tables[name][a, b], tables[name][b, a] = one, other
    if p is not None:
        tables["p"][a, b] = tables["p"][b, a] = p


def rank_picture(
    computation: Computation | None, measure: str, comparisons: Comparisons, method: str = REPORTED.key
) -> Chart | None:
    """Return the chance of every rank for the runs of the family; None where there is no ranking."""
    claim, among = comparisons.claim, comparisons.family.ranked_runs
    found = ranking_of(computation=computation, measure=measure, method=method, claim=claim, among=among)
    if found.refusal:
        return None
    return rank_matrix(
        [run.run_id for run in found.runs],
        [list(run.probabilities) for run in found.runs],
        title_of(f"Ranks in {measure}", claim),
        f"The chance of every rank by {measure} for {claim.label.lower()}, {method}",
    )


def _row(estimate: Estimate, label: str, claim: Claim) -> ForestRow:
    method = method_of(estimate.method).short
    if estimate.value is None:
        return ForestRow(label, method, refused=estimate.refusal)
    test = claim_test(estimate, claim)
    return ForestRow(label, method, estimate.value, test.low, test.high)
