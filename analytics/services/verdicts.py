"""The stored estimates of a run or a pair of runs: in the order of the pages, and turned round."""

from collections.abc import Iterable
from typing import Any

from django.db.models import Q

from analytics import methods
from analytics.methods import REPORTED
from analytics.models import Computation, Estimate
from judging.models import Run


def estimates_of(
    computation: Computation | None, measure: str, *which: Q, **conditions: Any
) -> list[Estimate]:
    """Return the stored estimates that fit, by run, then by method in the order of the pages."""
    if computation is None:
        return []
    found = computation.estimates.filter(*which, measure=measure, **conditions).select_related("run", "run_b")
    order = {method.key: place for place, method in enumerate(methods.METHODS)}
    return sorted(found, key=lambda e: (e.run.run_id, e.run_b.run_id if e.run_b else "", order[e.method]))


def pair_estimates(computation: Computation | None, measure: str, run_a: Run, run_b: Run) -> list[Estimate]:
    """Return the estimates of run_a minus run_b; stored the other way round, they are turned."""
    return estimates_of_two(computation, measure, run_a, run_b)[0]


def estimates_of_two(
    computation: Computation | None, measure: str, run_a: Run, run_b: Run
) -> tuple[list[Estimate], list[Estimate]]:
    """Return the estimates of run_a minus run_b, as `pair_estimates` does, and those of both runs alone."""
    both = [run_a, run_b]
    rows = estimates_of(computation, measure, Q(run_b__in=both) | Q(run_b=None), run__in=both)
    alone = [row for row in rows if row.run_b_id is None]
    direct = [row for row in rows if (row.run_id, row.run_b_id) == (run_a.pk, run_b.pk)]
    turned = [row for row in rows if (row.run_id, row.run_b_id) == (run_b.pk, run_a.pk)]
    return direct or [reverse_difference(row) for row in turned], alone


def reported_of(estimates: Iterable[Estimate]) -> Estimate | None:
    """Return the estimate by the method to report, or None."""
    return next((e for e in estimates if e.method == REPORTED.key), None)


def reverse_difference(estimate: Estimate) -> Estimate:
    """Return the difference the other way round; the row it came from is never saved again."""
    if estimate.run_b is None:
        raise ValueError("a single run's estimate cannot be reversed")
    estimate.run, estimate.run_b = estimate.run_b, estimate.run
    for name in ("value", "unbounded_value"):
        if getattr(estimate, name) is not None:
            setattr(estimate, name, 0 - getattr(estimate, name))
    both_ends = ("low", "high"), ("topics_low", "topics_high"), ("always_low", "always_high")
    for low, high in (*both_ends, ("unbounded_low", "unbounded_high")):
        if getattr(estimate, low) is not None:
            ends = 0 - getattr(estimate, high), 0 - getattr(estimate, low)
            setattr(estimate, low, ends[0])
            setattr(estimate, high, ends[1])
    # how far the number may lie below and above itself: without a sign
    estimate.outside_low, estimate.outside_high = estimate.outside_high, estimate.outside_low
    return estimate
