"""What a release says of runs and of pairs, as the rows of a result and as JSON."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from analytics.estimation.estimate import Estimate, Refusal
from analytics.estimation.wording import ClaimTest, PairComparison, sentence
from analytics.releases.evaluating import NOTHING
from analytics.releases.evaluation import Evaluation, ValueAlone

CUT_OFF = "Values and ends of intervals end at the range of the measure; means over topics were made before."
BY_TOPIC = ("qrels", "estimate", "corrected")
NUMBERS = (
    "low", "high", "t", "degrees_of_freedom", "p", "p_adjusted", "p_randomisation", "between_topics", "significant",
    "effect_size", "effect_size_refusal", "refusal", "warning",
)  # fmt: skip
Evaluated = Mapping[str, Sequence[Evaluation]]  # by run


# -- runs --------------------------------------------------------------------------------------------------------


def run_row(run: str, one: Evaluation) -> dict[str, Any]:
    """Return a run's row: corrected where the release has an audit, else estimated, else the grades alone."""
    is_corrected = isinstance(one.corrected, Estimate)
    these = one.corrected if is_corrected else one.estimate
    topics = one.corrected_over_topics if is_corrected else one.estimate_over_topics
    main, other, estimate = _numbers(topics), _numbers(these), _numbers(one.estimate)
    value = one.qrels if one.estimate == NOTHING else getattr(these, "value", None)
    refusal = one.corrected.reason if isinstance(one.corrected, Refusal) else ""
    return {
        "measure": one.measure,
        "run": run,
        "against": None,
        "value": value,
        **main,
        "p": None,
        "low_other": other["low"],
        "high_other": other["high"],
        "p_other": None,
        "as_given": one.qrels,
        "n_judged": these.n if isinstance(these, Estimate) else 0,
        "n_gold": these.n if is_corrected and isinstance(these, Estimate) else 0,
        "warning": getattr(these, "warning", ""),
        "refusal": refusal if value is None else (topics.reason if isinstance(topics, Refusal) else ""),
        "refusal_other": refusal,
        "is_same": False,
        "estimate": getattr(one.estimate, "value", None),
        "estimate_low": estimate["low"],
        "estimate_high": estimate["high"],
        "judged_share": one.judged_share,
        "gold_share": one.gold_share,
    }


def _numbers(one: Estimate | Refusal | ValueAlone) -> dict[str, float | None]:
    names = ("low", "high", "standard_error", "degrees_of_freedom")
    return {name: getattr(one, name, None) for name in names}


def run_notes(found: Evaluated) -> tuple[str, ...]:
    """Return why numbers are missing, and what is to be said of those that are there: a line for each thing."""
    of: dict[str, list[str]] = {}
    for run, evaluations in found.items():
        for one in evaluations:
            for what, words in _notes(one):
                name = f"{one.measure} {what}".rstrip()
                of.setdefault(words, []).append(name if len(found) == 1 else f"{name} of {run}")
    notes = [f"{', '.join(whats)}: {words}" for words, whats in of.items()]
    is_cut = any(one.within_range() != one for evaluations in found.values() for one in evaluations)
    return (*notes, *([CUT_OFF] if is_cut else []))


def _notes(one: Evaluation) -> Iterator[tuple[str, str]]:
    """Yield of which number something is to be said, and what."""
    if one.ir_measures and one.ir_measures != one.measure:
        yield "of the qrels", f"in ir_measures {one.ir_measures}"
    if isinstance(one.estimate, Refusal) and one.estimate == one.corrected:
        yield "", one.estimate.reason
        return
    for name, result in (("estimate", one.estimate), ("corrected", one.corrected)):
        if isinstance(result, ValueAlone):
            yield name, result.no_interval
            continue
        words = result.reason if isinstance(result, Refusal) else result.warning
        for part in filter(None, words.split("; ") if isinstance(result, Estimate) else [words]):
            yield name, part


def run_details(found: Evaluated, *, by_topic: bool) -> dict[str, Any]:
    """Return all that is known of runs as JSON: every number with its errors, and what it was before it was cut off."""
    measures = []
    for run, evaluations in found.items():
        for one in evaluations:
            fields = one.as_json()
            if not by_topic:
                del fields["by_topic"]
            measures.append({"run": run, **fields})
    only = {"run": next(iter(found))} if len(found) == 1 else {}
    return {**only, "runs": [*found], "measures": measures}


def topic_rows(found: Evaluated) -> pl.DataFrame:
    """Return the values of topics: topic, measure, run, and the value by the qrels, estimated, and corrected."""
    rows = [
        {"topic": topic, "measure": one.measure, "run": run, **{name: values.get(name) for name in BY_TOPIC}}
        for run, evaluations in found.items()
        for one in evaluations
        for topic, values in one.within_range().by_topic.items()
    ]
    types = dict.fromkeys(("topic", "measure", "run"), pl.String) | dict.fromkeys(BY_TOPIC, pl.Float64)
    return pl.DataFrame(rows, schema=types)


# -- pairs -------------------------------------------------------------------------------------------------------


def pair_row(one: PairComparison) -> dict[str, Any]:
    """Return the row of a pair."""
    test, other = one.test, one.other
    return {
        "measure": one.measure,
        "run": one.run,
        "against": one.run_b,
        "value": one.value,
        "low": test.low,
        "high": test.high,
        "standard_error": _error(one.value, test),
        "degrees_of_freedom": test.degrees_of_freedom,
        "p": test.p,
        "p_adjusted": test.p_adjusted,
        "low_other": other.low,
        "high_other": other.high,
        "p_other": other.p,
        "as_given": None,
        "n_judged": one.n_items,
        "n_gold": one.n_items,
        "warning": "; ".join(one.notes) or one.same,
        "refusal": one.refusal if one.value is None else test.refusal,
        "refusal_other": other.refusal,
        "is_same": bool(one.same),
    }


def _error(value: float | None, test: ClaimTest) -> float | None:
    """Return the standard error that a t and its value have."""
    return None if value is None or not test.t else value / test.t


def pair_details(found: Iterable[PairComparison]) -> list[dict[str, Any]]:
    """Return the comparisons as JSON, with the numbers of both claims, and the sentence."""
    return [
        {
            "measure": one.measure,
            "run": one.run,
            "against": one.run_b,
            "value": one.value,
            **_test_numbers(one.test),
            "family": one.family,
            "n_family": one.n_family,
            "adjustment": one.adjustment,
            "other": _test_numbers(one.other),
            "verdict": sentence(one),
        }
        for one in found
    ]


def _test_numbers(test: ClaimTest) -> dict[str, Any]:
    return {"claim": test.claim.key, **{name: getattr(test, name) for name in NUMBERS}}
