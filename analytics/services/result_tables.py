"""The tables of a computation for a paper: every run, every pair, the ranking, with what is significant."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from analytics.estimation.claims import LIKE_THESE, THESE
from analytics.estimation.wording import ADJUSTMENTS, LEVEL
from analytics.methods import REPORTED
from analytics.models import Computation, before_cutting
from analytics.services.comparisons import Comparisons
from analytics.services.ranking import ranking_of
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
    comparisons: Comparisons
    marks: Marks = NO_MARKS
    against: str = ""

    @property
    def measure(self) -> str:
        return self.comparisons.measure


@dataclass(frozen=True)
class ResultTable:
    """A table of results: `make` returns it, or None where there is nothing to write."""

    key: str
    label: str
    make: Callable[[TableRequest], Table | None]
    has_marks: bool = True


def _runs(asked: TableRequest) -> Table | None:
    """Return every run with its reported value, the highest first, runs without a number last."""
    runs = _run_numbers(asked)
    if not runs or _lacks_baseline(asked, [run.run for run in runs]):
        return None
    pairs, terms = _differences(asked, [run.run for run in runs])
    return runs_table(runs, pairs, terms, asked.marks, asked.against)


def _pairs(asked: TableRequest) -> Table | None:
    """Return the difference of every pair, the higher run first; with `against` those of every run to this one."""
    names = [run.run for run in _run_numbers(asked)]
    pairs, terms = _differences(asked, names)
    if asked.against:
        turned = (pair if pair.against == asked.against else _reverse_pair(pair) for pair in pairs)
        pairs = [pair for pair in turned if pair.against == asked.against]
    return pairs_table(pairs, terms) if pairs else None


def _ranking(asked: TableRequest) -> Table | None:
    claim, among = asked.comparisons.claim, asked.comparisons.family.ranked_runs
    found = ranking_of(computation=asked.computation, measure=asked.measure, claim=claim, among=among)
    if found.refusal or _lacks_baseline(asked, [run.run_id for run in found.runs]):
        return None
    numbers = {run.run: run for run in _run_numbers(asked)}
    ranks = [
        Rank(
            numbers[run.run_id],
            run.rank,
            run.rank_low,
            run.rank_high,
        )
        for run in found.runs
    ]
    pairs, terms = _differences(asked, [run.run_id for run in found.runs])
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


# Of each claim the columns of the interval and the p, and why there may be none.
COLUMNS = {
    LIKE_THESE.key: ("topics_low", "topics_high", "topics_p_value", "topics_refusal"),
    THESE.key: ("low", "high", "p_value", "refusal"),
}


def _run_numbers(asked: TableRequest) -> list[RunNumber]:
    stored = asked.computation.estimates.filter(measure=asked.measure, method=REPORTED.key, run_b=None)
    low, high, _, reason = COLUMNS[asked.comparisons.claim.key]
    columns = "run__run_id", "value", low, high, "refusal", reason, before_cutting("value")
    rows: Iterable[tuple[Any, ...]] = stored.values_list(*columns)
    in_order = sorted(rows, key=lambda row: (row[6] is None, -(row[6] or 0.0), row[0]))
    return [
        RunNumber(run, value, start, end, refusal or why)
        for run, value, start, end, refusal, why, _ in in_order
    ]


def _differences(asked: TableRequest, names: list[str]) -> tuple[list[Difference], Terms]:
    """Return the pairs of these runs, each the run that stands higher minus the other, and the words about them."""
    place = {run: number for number, run in enumerate(names)}
    adjusted = asked.comparisons.adjusted_p(asked.comparisons.claim)
    stored = asked.computation.estimates.filter(
        measure=asked.measure, method=REPORTED.key, run_b__isnull=False
    )
    low, high, p, reason = COLUMNS[asked.comparisons.claim.key]
    columns = "pk", "run__run_id", "run_b__run_id", "value", low, high, p, "refusal", reason
    found: Iterable[tuple[Any, ...]] = stored.values_list(*columns)
    pairs = [_difference(row, adjusted.get(row[0])) for row in found if row[1] in place and row[2] in place]
    turned = [pair if place[pair.run] < place[pair.against] else _reverse_pair(pair) for pair in pairs]
    turned.sort(key=lambda pair: (place[pair.run], place[pair.against]))
    return turned, _terms(asked)


def _difference(row: tuple[Any, ...], p_adjusted: float | None) -> Difference:
    _, run, against, value, low, high, p, refusal, reason = row
    is_significant = p_adjusted is not None and p_adjusted < LEVEL
    return Difference(run, against, value, low, high, p, p_adjusted, is_significant, refusal or reason)


def _reverse_pair(pair: Difference) -> Difference:
    value, low, high = (None if end is None else 0 - end for end in (pair.value, pair.high, pair.low))
    return Difference(
        pair.against, pair.run, value, low, high, pair.p, pair.p_adjusted, pair.is_significant, pair.refusal
    )


def _terms(asked: TableRequest) -> Terms:
    among = asked.comparisons
    n, is_like = among.n_family, among.claim is LIKE_THESE
    adjustment = (
        f"p {ADJUSTMENTS[among.adjustment]} over the {n:,} comparisons of the family {among.family.name}"
        if n > 1
        else "one comparison"
    )
    return Terms(
        measure=asked.measure,
        estimate=REPORTED.short,
        claim="for topics like these" if is_like else "for these topics",
        test="paired t-test over topics, or the wider test for these topics"
        if is_like
        else f"two-sided test of the {REPORTED.short} difference for these topics",
        adjustment=adjustment if n else "",
        level=LEVEL,
        runs_outside=_runs_outside(asked),
    )


def _runs_outside(asked: TableRequest) -> tuple[str, ...]:
    """Return the runs whose numbers have room for documents that could not be judged."""
    stored = asked.computation.estimates.filter(measure=asked.measure, method=REPORTED.key)
    wider = stored.filter(Q(outside_low__gt=0) | Q(outside_high__gt=0))
    rows = wider.values_list("run__run_id", "run_b__run_id", "outside_low", "outside_high")
    above = {run for run, _, _, up in rows if up}
    return tuple(sorted(above | {run_b for _, run_b, down, _ in rows if run_b and down}))
