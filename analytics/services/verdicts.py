"""What the stored numbers say of a pair of runs: the difference, its p among all pairs, and a sentence to quote."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from analytics import methods
from analytics.estimation.audited_topics import noun_of
from analytics.estimation.comparison import holm
from analytics.estimation.estimate import few_positive_warning
from analytics.methods import REPORTED
from analytics.models import Computation, Estimate
from judging.models import Run
from sampling.gold_samples import assumption_in

SURE = 0.05  # two runs differ significantly below this value of Holm's adjusted p


@dataclass(frozen=True)
class Pair:
    """A difference with Holm's adjusted p among all tested pairs of its measure, and the better run if that tells."""

    estimate: Estimate
    holm: float | None
    better: Run | None


@dataclass(frozen=True)
class AdjustedPValues:
    """Holm's adjusted p of every tested pair, by the key of its estimate. What has no p was not tested."""

    p_values: dict[int, float]

    @property
    def n_tested(self) -> int:
        return len(self.p_values)

    def of(self, estimate: Estimate) -> float | None:
        return self.p_values.get(estimate.pk)


def estimates_of(computation: Computation | None, measure: str, **conditions: Any) -> list[Estimate]:
    """Return the stored estimates that fit, by run, then by method in the order of the pages."""
    if computation is None:
        return []
    found = computation.estimates.filter(measure=measure, **conditions).select_related("run", "run_b")
    order = {method.key: place for place, method in enumerate(methods.METHODS)}
    return sorted(found, key=lambda e: (e.run.run_id, e.run_b.run_id if e.run_b else "", order[e.method]))


def pair_estimates(computation: Computation | None, measure: str, run_a: Run, run_b: Run) -> list[Estimate]:
    """Return the estimates of run_a minus run_b; stored the other way round, they are turned."""
    direct = estimates_of(computation, measure, run=run_a, run_b=run_b)
    return direct or [
        reverse_difference(e) for e in estimates_of(computation, measure, run=run_b, run_b=run_a)
    ]


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
    return estimate


def adjusted_p_values(
    computation: Computation | None, measure: str, method: str = REPORTED.key
) -> AdjustedPValues:
    """Return Holm's p of all pairs of the measure that were tested, whichever of them are asked for."""
    if computation is None:
        return AdjustedPValues({})
    tested = computation.estimates.filter(
        measure=measure, method=method, run_b__isnull=False, p_value__isnull=False
    )
    rows: dict[int, Any] = dict(tested.order_by("pk").values_list("pk", "p_value"))
    if not rows:
        return AdjustedPValues({})
    return AdjustedPValues(dict(zip(rows, holm(list(rows.values())).tolist(), strict=True)))


def judged_pair(estimate: Estimate, adjusted: AdjustedPValues) -> Pair:
    """Return the pair; the better run is named if the difference is significant after Holm's adjustment."""
    p = adjusted.of(estimate)
    if estimate.value is None or p is None or p >= SURE:
        return Pair(estimate, p, None)
    return Pair(estimate, p, estimate.run if estimate.value > 0 else estimate.run_b)


def verdict(
    corrected: Estimate | None, measure: str, run_a: Run, run_b: Run, adjusted: AdjustedPValues | None = None
) -> str:
    """Return a sentence for a methods section, better minus worse, or why there is none.

    With `adjusted` it says what remains of it when all pairs of the campaign are compared. Of gold that was declared an
    audit it says what is assumed, whether the difference is significant or not.
    """
    if corrected is None:
        return ""
    if corrected.value is None or corrected.low is None or corrected.high is None:
        return f"No corrected number: {corrected.refusal}."
    if corrected.n == 0:  # settled without a judgment
        return f"{run_a} and {run_b} do not differ significantly in {measure}: {corrected.warning}."
    is_significant = corrected.low > 0 or corrected.high < 0
    value, low, high = corrected.value, corrected.low, corrected.high
    topics = _over_topics(corrected, turned=is_significant and value < 0)
    among = _among_all(corrected, adjusted, is_significant=is_significant)
    if is_significant and value < 0:
        run_a, run_b, value, low, high = run_b, run_a, -value, -high, -low
    where = (
        f"95 % confidence interval {low:+.3f} to {high:+.3f}, n = {corrected.n} {noun_of(corrected.sources)}"
    )
    if corrected.p_value is not None:  # None: no error was measured, so there is no test
        where += f"; {_p_words(corrected.p_value)}"
    if not is_significant:
        return (
            f"{run_a} and {run_b} do not differ significantly in {measure}: difference {value:+.3f} ({where})"
            f"{': ' + corrected.warning if corrected.warning else ''}.{among}{topics}"
        )
    few = _few_words(corrected)
    assumed = _sentence(assumption_in(corrected.warning))
    return (
        f"{run_a} is better than {run_b} in {measure}: difference {value:+.3f} ({where})."
        f"{assumed}{few}{among}{topics}"
    )


def _few_words(corrected: Estimate) -> str:
    """Return a warning where few documents carry a difference that has an error, as a further sentence."""
    if corrected.n_positive is None or not corrected.standard_error:
        return ""
    return _sentence(few_positive_warning(corrected.n_positive))


def _sentence(words: str) -> str:
    """Return the words as a further sentence; nothing of none."""
    return f" {words[0].upper()}{words[1:]}." if words else ""


def _p_words(p: float) -> str:
    """
    >>> _p_words(0.0312), _p_words(0.0004)
    ('p = 0.031', 'p < 0.001')
    """
    return f"p = {p:.3f}" if p >= 0.001 else "p < 0.001"


def _among_all(corrected: Estimate, adjusted: AdjustedPValues | None, *, is_significant: bool) -> str:
    """Return what Holm's adjustment leaves of a difference, as a further sentence; nothing of a single comparison."""
    p = adjusted.of(corrected) if adjusted else None
    if adjusted is None or p is None or adjusted.n_tested < 2 or not is_significant:
        return ""
    said = f"Among all {adjusted.n_tested:,} pairs compared, {_p_words(p)} by Holm's adjustment"
    return f" {said}." if p < SURE else f" {said}: not significant among so many comparisons."


def _over_topics(corrected: Estimate, *, turned: bool) -> str:
    """Return what holds beyond these topics, as a further sentence."""
    if corrected.topics_low is None or corrected.topics_high is None:
        return ""
    low, high = corrected.topics_low, corrected.topics_high
    if turned:
        low, high = -high, -low
    sure = "" if low > 0 or high < 0 else ", which includes 0"
    interval = f"95 % confidence interval {low:+.3f} to {high:+.3f}"
    return f" With the topics as a sample, for topics of this kind: {interval}{sure}."
