"""The estimates of one method as columns: what there is no number of, what is tested, what is said."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from analytics.estimation.estimate import FEWEST_POSITIVE, Estimates, Refusal, few_positive_warning
from analytics.estimation.estimate import Estimate as Value
from analytics.estimation.outside import OutsideGain, hold_against
from analytics.estimation.sequences import always_valid_factor, t_of_same_tail
from analytics.estimation.topics import never_narrower, p_like_these
from analytics.numbers.arrays import Floats, Ints

ASK = "“May I score my run?” on the page of results says "
ROUNDING = 1e-12
BOUNDED = ("value", "low", "high", "topics_low", "topics_high", "always_low", "always_high")
Settled = Mapping[int, Value | Refusal]


@dataclass(frozen=True)
class EstimateColumns:
    """The rows of one measure and method: every run, then every pair. All arrays and lists have an entry a row.

    `run` and `run_b` are places in the campaign's runs, -1 for none. `numbers` has the nullable numbers of the model by
    name, NaN for NULL; `components` the parts of the variance, NaN where a row has no such part.
    """

    measure: str
    method: str
    run: Ints
    run_b: Ints
    numbers: dict[str, Floats]
    n: Ints
    sources: list[tuple[str, ...]]
    components: dict[str, Floats]
    refusal: list[str]
    topics_refusal: list[str]
    warning: list[str]
    topic_values: list[list[float] | None]


def columns(
    measure: str,
    method: str,
    pairs: tuple[Ints, Ints],
    results: Estimates,
    *,
    settled: Settled,
    over_topics: Estimates | None = None,
    tested: bool = False,
    planned: int | None = None,
    declared_bound: float | None = None,
    is_watchable: bool = True,
    n_items: Ints | None = None,
    n_positive: Ints | None = None,
    largest: float | None = None,
    shares: tuple[Floats, Floats] | None = None,
    outside: OutsideGain | None = None,
    topic_values: Floats | None = None,
) -> EstimateColumns:
    """Return the rows of a method: a settled answer goes before the method's; the interval over topics comes beside.

    If `tested`, differences have p-values; with `planned`, the audited items planned in all, there are limits that hold
    however often one looks; with `declared_bound`, the bound at this declared look, they hold at all declared looks
    instead. Not `is_watchable`: there are none but of a number without an error, as what was planned counts documents
    and the number counts topics. `n_items`, by row: items with weight that an audit could take; `n_positive`: those
    with weight that carry the number, which is said where they are few. `largest`: the largest value of the measure, at
    which numbers end. `shares`, by run: of its first documents, those that were judged, and audited. `outside`: what
    documents that could not be judged may be worth: a number that they may move by more than its half-width is refused,
    every other interval holds them. `topic_values`, by run: of topics.
    """
    first, second = pairs
    n_runs = len(results) - first.size
    run = np.concatenate([np.arange(n_runs), first])
    run_b = np.concatenate([np.full(n_runs, -1), second])
    if outside is not None:
        results = hold_against(results, outside, f"{ASK}which judgments are missing")
    found = _with_settled(results, settled)
    refused = _mask(len(found), found.refusals)
    numbers = _numbers(found)
    if tested:
        tested_value = numbers["value"] if outside is None else outside.nearest_zero(numbers["value"])
        p_values = _p_values({**numbers, "value": tested_value})
        numbers["p_value"] = np.where(run_b >= 0, p_values, np.nan)
    if planned is not None:
        factor = np.full(len(found), np.inf)
        if is_watchable:
            reach = None if n_items is None else np.maximum(np.maximum(n_items, found.n), 1)
            factor = _factor_when_watched(found.n, planned, declared_bound, reach)
        numbers |= _limits_when_watched(numbers, factor)
    topics_refusal = [""] * len(found)
    if over_topics is not None:
        wanted = ~refused & ~_mask(len(found), settled)
        topics_refusal = _add_topics(numbers, over_topics, wanted, outside)
        _keep_certain(numbers, ~refused & (found.n == 0) & (found.standard_error == 0))
    if n_positive is not None:
        numbers["n_positive"] = _without(n_positive.astype(np.float64), settled)
    numbers |= _shares_of_runs(shares, first.size)
    if outside is not None:
        numbers = _with_outside_ends(numbers, outside)
    if largest is not None:
        numbers = within_range(numbers, run_b >= 0, largest)
    sources = [found.sources] * len(found)
    for place, answer in settled.items():
        if isinstance(answer, Value):
            sources[place] = answer.sources
    for place in found.refusals:
        sources[place] = ()
    return EstimateColumns(
        measure=measure,
        method=method,
        run=run,
        run_b=run_b,
        numbers={name: np.where(refused, np.nan, column) for name, column in numbers.items()},
        n=np.where(refused, 0, found.n),
        sources=sources,
        components={name: np.where(refused, np.nan, part) for name, part in found.components.items()},
        refusal=[_words(found.refusals.get(place)) for place in range(len(found))],
        topics_refusal=topics_refusal,
        warning=["" if gone else text for gone, text in zip(refused, _warnings(found, numbers), strict=True)],
        topic_values=_values_of_runs(topic_values, n_runs, settled) + [None] * first.size,
    )


def _shares_of_runs(shares: tuple[Floats, Floats] | None, n_pairs: int) -> dict[str, Floats]:
    """Return how much of the first documents of runs was judged, and audited; of pairs nothing."""
    alone = np.full(n_pairs, np.nan)
    names = ("judged_share", "gold_share")
    return {name: np.concatenate([share, alone]) for name, share in zip(names, shares or (), strict=False)}


def _factor_when_watched(n: Ints, planned: int, declared_bound: float | None, reach: Ints | None) -> Floats:
    """Return by row how many standard errors the limits that hold at every look, or all declared ones, lie apart."""
    if declared_bound is not None:
        return t_of_same_tail(declared_bound, n)
    return always_valid_factor(n, planned, n_items=reach)


def _limits_when_watched(numbers: Mapping[str, Floats], factor: Floats) -> dict[str, Floats]:
    """Return these limits: none where the factor is infinite, but of a number without an error."""
    usable = np.isfinite(factor) | (numbers["standard_error"] == 0)
    half = np.where(np.isfinite(factor), factor, 0.0) * numbers["standard_error"]
    ends = {"always_low": numbers["value"] - half, "always_high": numbers["value"] + half}
    return {name: np.where(usable, end, np.nan) for name, end in ends.items()}


def _with_outside_ends(numbers: Mapping[str, Floats], outside: OutsideGain) -> dict[str, Floats]:
    """Return the numbers with all intervals as wide as the documents outside may make them, and by how much."""
    lows = {
        name: numbers[name] - outside.down for name in ("low", "topics_low", "always_low") if name in numbers
    }
    highs = {
        name: numbers[name] + outside.up for name in ("high", "topics_high", "always_high") if name in numbers
    }
    there = outside.most > 0
    beside = {
        "outside_low": np.where(there, outside.down, np.nan),
        "outside_high": np.where(there, outside.up, np.nan),
    }
    return {**numbers, **lows, **highs, **beside}


def _values_of_runs(values: Floats | None, n_runs: int, settled: Settled) -> list[list[float] | None]:
    """Return the values of topics of every run; of one whose answer is settled there are none."""
    if values is None:
        return [None] * n_runs
    return [None if run in settled else row for run, row in enumerate(values.tolist())]


def within_range(
    numbers: Mapping[str, Floats], is_difference: np.ndarray, largest: float
) -> dict[str, Floats]:
    """Return the numbers cut off at the measure's range, with that range, and what they were before.

    A value lies between 0 and the largest one, a difference between minus that and that.
    """
    low, high = np.where(is_difference, -largest, 0.0), np.full(is_difference.size, largest)
    whole = {f"unbounded_{name}": numbers[name] for name in ("value", "low", "high")}
    within = {name: np.clip(numbers[name], low, high) for name in BOUNDED if name in numbers}
    return {**numbers, **whole, **within, "range_low": low, "range_high": high}


def _warnings(found: Estimates, numbers: Mapping[str, Floats]) -> list[str]:
    """Return the warnings, with one more where few items carry a number that has an error."""
    n = numbers.get("n_positive")
    if n is None:
        return found.warnings
    carried = np.where((numbers["standard_error"] > 0) & np.isfinite(n), n, FEWEST_POSITIVE).astype(np.int64)
    words = {count: few_positive_warning(count) for count in set(carried.tolist())}
    return found.with_warning([words[count] for count in carried.tolist()]).warnings


def _without(column: Floats, places: Mapping[int, object]) -> Floats:
    """Return the column, NaN at some places."""
    return np.where(_mask(column.size, places), np.nan, column)


def _mask(size: int, places: Mapping[int, object]) -> np.ndarray:
    mask = np.zeros(size, dtype=bool)
    mask[list(places)] = True
    return mask


def _words(refusal: Refusal | None) -> str:
    if refusal is None:
        return ""
    return refusal.reason + (f" (about {refusal.needed} more needed)" if refusal.needed else "")


def _with_settled(results: Estimates, settled: Settled) -> Estimates:
    """Return the estimates with the settled answers in place of the method's."""
    names = ("value", "standard_error", "low", "high", "degrees_of_freedom", "n")
    numbers: dict[str, Any] = {name: np.array(getattr(results, name)) for name in names}
    components = {name: np.array(part) for name, part in results.components.items()}
    warnings, refusals = list(results.warnings), dict(results.refusals)
    for place, answer in settled.items():
        if isinstance(answer, Refusal):
            refusals[place] = answer
            continue
        refusals.pop(place, None)
        warnings[place] = answer.warning
        for name in names:
            given = getattr(answer, name)
            numbers[name][place] = np.inf if given is None else given
        for name, part in components.items():
            part[place] = dict(answer.components).get(name, np.nan)
    return replace(results, **numbers, components=components, warnings=warnings, refusals=refusals)


def _numbers(found: Estimates) -> dict[str, Floats]:
    """Return value, error, limits and degrees of freedom; what is left of 0 by rounding is 0."""
    value = np.where(np.abs(found.value) > ROUNDING, found.value, 0.0)
    exact = found.standard_error == 0
    df = found.degrees_of_freedom
    return {
        "value": value,
        "standard_error": found.standard_error,
        "low": np.where(exact, value, found.low),
        "high": np.where(exact, value, found.high),
        "degrees_of_freedom": np.where(np.isfinite(df), df, np.nan),
    }


def _p_values(numbers: Mapping[str, Floats]) -> Floats:
    """Return the two-sided p. Where no error is left (all drawn, all audited) a difference is certain: 0, or 1."""
    value, error, df = numbers["value"], numbers["standard_error"], numbers["degrees_of_freedom"]
    size = -np.abs(np.divide(value, error, out=np.zeros(value.size), where=error > 0))
    student = scipy.special.stdtr(np.where(np.isnan(df), 1.0, df), size)
    p = 2 * np.where(np.isnan(df), scipy.special.ndtr(size), student)
    return np.where(error > 0, p, np.where(value == 0, 1.0, 0.0))


def _add_topics(
    numbers: dict[str, Floats], over_topics: Estimates, wanted: np.ndarray, outside: OutsideGain | None
) -> list[str]:
    """Add the second interval: the topics as a sample. It is never narrower than the one for these topics.

    A tested difference has its p for topics like these, never below that for these topics. Returns why there is none,
    where there is none.
    """
    alike = over_topics.standard_error < ROUNDING
    usable = wanted & ~_mask(len(over_topics), over_topics.refusals) & ~alike
    df = np.where(np.isnan(numbers["degrees_of_freedom"]), np.inf, numbers["degrees_of_freedom"])
    wide = never_narrower(over_topics, numbers["standard_error"], numbers["low"], numbers["high"], df)
    added = {name: getattr(wide, name) for name in ("standard_error", "low", "high")}
    added["degrees_of_freedom"] = np.where(
        np.isfinite(wide.degrees_of_freedom), wide.degrees_of_freedom, np.nan
    )
    if "p_value" in numbers:
        nearest = over_topics.value if outside is None else outside.nearest_zero(over_topics.value)
        added["p_value"] = p_like_these(replace(over_topics, value=nearest), numbers["p_value"])
    for name, column in added.items():
        numbers[f"topics_{name}"] = np.where(usable, column, np.nan)
    same = "all topics have the same value, so their spread cannot be estimated"
    reasons = [same if one else "" for one in (wanted & ~usable).tolist()]
    for place, refusal in over_topics.refusals.items():
        if wanted[place]:
            reasons[place] = refusal.reason
    return reasons


def _keep_certain(numbers: dict[str, Floats], same: np.ndarray) -> None:
    """Give two runs that are the same the p that they have for these topics: 1, on any topics."""
    if "topics_p_value" in numbers:
        numbers["topics_p_value"][same] = numbers["p_value"][same]
