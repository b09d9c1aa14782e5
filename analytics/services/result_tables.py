"""The tables of a computation for a paper: every run, every pair, the ranking, with what is significant."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from analytics.methods import REPORTED
from analytics.models import Computation, before_cutting
from analytics.services.ranking import ranking_of
from analytics.services.verdicts import SURE, AdjustedPValues, adjusted_p_values
from analytics.tables import (
    Difference,
    Rank,
    RunNumber,
    Table,
    Terms,
    pairs_table,
    ranking_table,
    runs_table,
)
from analytics.tables.marks import NO_MARKS, Marks


@dataclass(frozen=True)
class TableRequest:
    """What a table is asked for: `against` is the baseline of daggers, and of pairs the run that is subtracted."""

    computation: Computation
    measure: str
    marks: Marks = NO_MARKS
    against: str = ""


@dataclass(frozen=True)
class ResultTable:
    """A table of results: `make` returns it, or None where there is nothing to write."""

    key: str
    label: str
    make: Callable[[TableRequest], Table | None]
    has_marks: bool = True


def _runs(asked: TableRequest) -> Table | None:
    """Return every run with its reported value, the highest first, runs without a number last."""
    runs = _run_numbers(asked.computation, asked.measure)
    if not runs or _lacks_baseline(asked, [run.run for run in runs]):
        return None
    pairs, terms = _differences(asked.computation, asked.measure, [run.run for run in runs])
    return runs_table(runs, pairs, terms, asked.marks, asked.against)


def _pairs(asked: TableRequest) -> Table | None:
    """Return the difference of every pair, the higher run first; with `against` those of every run to this one."""
    names = [run.run for run in _run_numbers(asked.computation, asked.measure)]
    pairs, terms = _differences(asked.computation, asked.measure, names)
    if asked.against:
        turned = (pair if pair.against == asked.against else _reverse_pair(pair) for pair in pairs)
        pairs = [pair for pair in turned if pair.against == asked.against]
    return pairs_table(pairs, terms) if pairs else None


def _ranking(asked: TableRequest) -> Table | None:
    found = ranking_of(computation=asked.computation, measure=asked.measure)
    if found.refusal or _lacks_baseline(asked, [run.run_id for run in found.runs]):
        return None
    ranks = [
        Rank(
            RunNumber(run.run_id, run.estimate.value, run.estimate.low, run.estimate.high),
            run.rank,
            run.rank_low,
            run.rank_high,
        )
        for run in found.runs
    ]
    pairs, terms = _differences(asked.computation, asked.measure, [run.run_id for run in found.runs])
    return ranking_table(ranks, pairs, terms, asked.marks, asked.against)


RESULT_TABLES = (
    ResultTable("runs", "Every run with its value", _runs),
    ResultTable("pairs", "Every pair of runs with its difference", _pairs, has_marks=False),
    ResultTable("ranking", "The ranking with the ranks that every run may have", _ranking),
)


def result_table(key: str) -> ResultTable:
    """Return the table of this key, or raise KeyError."""
    return {one.key: one for one in RESULT_TABLES}[key]


def _lacks_baseline(asked: TableRequest, names: list[str]) -> bool:
    return asked.marks.needs_baseline and asked.against not in names


def _run_numbers(computation: Computation, measure: str) -> list[RunNumber]:
    stored = computation.estimates.filter(measure=measure, method=REPORTED.key, run_b=None)
    columns = "run__run_id", "value", "low", "high", "refusal", before_cutting("value")
    rows: Iterable[tuple[Any, ...]] = stored.values_list(*columns)
    in_order = sorted(rows, key=lambda row: (row[5] is None, -(row[5] or 0.0), row[0]))
    return [RunNumber(*row[:5]) for row in in_order]


def _differences(computation: Computation, measure: str, names: list[str]) -> tuple[list[Difference], Terms]:
    """Return the pairs of these runs, each the run that stands higher minus the other, and the words about them."""
    place = {run: number for number, run in enumerate(names)}
    adjusted = adjusted_p_values(computation, measure)
    stored = computation.estimates.filter(measure=measure, method=REPORTED.key, run_b__isnull=False)
    columns = "pk", "run__run_id", "run_b__run_id", "value", "low", "high", "p_value", "refusal"
    found: Iterable[tuple[Any, ...]] = stored.values_list(*columns)
    pairs = [_difference(row, adjusted) for row in found if row[1] in place and row[2] in place]
    turned = [pair if place[pair.run] < place[pair.against] else _reverse_pair(pair) for pair in pairs]
    turned.sort(key=lambda pair: (place[pair.run], place[pair.against]))
    return turned, _terms(measure, adjusted)


def _difference(row: tuple[Any, ...], adjusted: AdjustedPValues) -> Difference:
    key, run, against, value, low, high, p, refusal = row
    p_adjusted = adjusted.p_values.get(key)
    is_significant = p_adjusted is not None and p_adjusted < SURE
    return Difference(run, against, value, low, high, p, p_adjusted, is_significant, refusal)


def _reverse_pair(pair: Difference) -> Difference:
    value, low, high = (None if end is None else 0 - end for end in (pair.value, pair.high, pair.low))
    return Difference(
        pair.against, pair.run, value, low, high, pair.p, pair.p_adjusted, pair.is_significant, pair.refusal
    )


def _terms(measure: str, adjusted: AdjustedPValues) -> Terms:
    n = adjusted.n_tested
    among = (
        f"p adjusted by Holm over all {n:,} pairs of runs that were tested" if n > 1 else "one pair of runs"
    )
    return Terms(
        measure=measure,
        estimate=REPORTED.short,
        claim="for these topics",
        test=f"two-sided test of the {REPORTED.short} difference for these topics",
        adjustment=among if n else "",
        level=SURE,
    )
