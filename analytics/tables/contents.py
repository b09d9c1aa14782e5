"""What the three tables hold: runs, pairs of runs, the ranking."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from analytics.charts.theme import Notes
from analytics.tables.marks import NO_MARKS, Marks, Wins, letters_of
from analytics.tables.table import Cell, Chance, Column, Figure, Interval, Missing, Span, Table

INTERVAL = Column("95 % CI", ("low", "high"))  # the caption has the words


@dataclass(frozen=True)
class Terms:
    """The words of a caption about the numbers: what an interval covers, which test, and among what p is adjusted."""

    measure: str
    estimate: str  # "corrected"
    claim: str  # "for these topics"
    test: str  # "two-sided test of the difference"
    adjustment: str  # "p adjusted by Holm over all 28 pairs of runs"; empty where nothing was tested
    level: float = 0.05
    runs_outside: tuple[str, ...] = ()  # whose intervals cover documents that could not be judged


@dataclass(frozen=True)
class RunNumber:
    """A run's value with its interval; a value of None has a reason, ends of None are no interval."""

    run: str
    value: float | None
    low: float | None = None
    high: float | None = None
    refusal: str = ""


@dataclass(frozen=True)
class Rank:
    """A run's rank by its value, and the ranks that it may have at 95 % confidence, all runs at once."""

    number: RunNumber
    rank: int
    rank_low: int
    rank_high: int


@dataclass(frozen=True)
class Difference:
    """`run` minus `against`: value, interval, p, adjusted p, and whether the adjusted p is significant."""

    run: str
    against: str
    value: float | None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    is_significant: bool = False
    refusal: str = ""

    @property
    def higher_and_lower(self) -> tuple[str, str] | None:
        """The two runs, the significantly higher one first; None where neither is."""
        if not self.is_significant or not self.value:
            return None
        return (self.run, self.against) if self.value > 0 else (self.against, self.run)


def runs_table(
    runs: Sequence[RunNumber],
    differences: Iterable[Difference],
    terms: Terms,
    marks: Marks = NO_MARKS,
    baseline: str = "",
) -> Table:
    """Return every run's value with its interval and marks, in the order given.

    ValueError: marks against a baseline that is no run of the table.
    """
    marked = _MarkedRuns([run.run for run in runs], differences, marks, baseline)
    rows = [(*marked.names(one.run), *marked.numbers(one)) for one in runs]
    columns = (*marked.columns, Column(terms.measure, ("value", "marks")), INTERVAL)
    said = (f"{terms.measure} of every run, {terms.estimate}, with 95 % confidence intervals {terms.claim}",)
    caption = marked.caption(said, terms, runs)
    return Table(_key("runs", terms), caption, columns, tuple(rows), marked.reasons)


def ranking_table(
    ranks: Sequence[Rank],
    differences: Iterable[Difference],
    terms: Terms,
    marks: Marks = NO_MARKS,
    baseline: str = "",
) -> Table:
    """Return every ranked run with its value, its rank and the ranks that it may have.

    ValueError: marks against a baseline that is no run of the table.
    """
    marked = _MarkedRuns([one.number.run for one in ranks], differences, marks, baseline)
    rows = [
        (
            *marked.names(one.number.run),
            *marked.numbers(one.number),
            one.rank,
            Span(one.rank_low, one.rank_high),
        )
        for one in ranks
    ]
    columns = (
        *marked.columns,
        Column(terms.measure, ("value", "marks")),
        INTERVAL,
        Column("Rank", ("rank",)),
        Column("True rank, 95 %", ("rank_low", "rank_high")),
    )
    said = (
        f"Ranking of the runs by {terms.measure}, {terms.estimate}, with 95 % confidence intervals {terms.claim}",
        "With 95 % confidence the true ranks of all runs lie within those given, all at once",
    )
    caption = marked.caption(said, terms, [one.number for one in ranks])
    return Table(_key("ranking", terms), caption, columns, tuple(rows), marked.reasons)


def pairs_table(differences: Sequence[Difference], terms: Terms) -> Table:
    """Return every difference with its interval, p, adjusted p, and whether it is significant, in the order given."""
    notes = Notes()
    rows: list[tuple[Cell, ...]] = []
    for one in differences:
        if one.value is None:
            rest: tuple[Cell, ...] = (Missing(one.refusal, notes.mark(one.refusal)), None, None, None, None)
        else:
            ps = (None if p is None else Chance(p) for p in (one.p, one.p_adjusted))
            verdict = "" if one.p_adjusted is None else "yes" if one.is_significant else "no"
            rest = (Figure(one.value, is_signed=True), _interval(one.low, one.high), *ps, verdict)
        rows.append((one.run, one.against, *rest))
    columns = (
        Column("Run", ("run",), is_number=False),
        Column("Minus", ("against",), is_number=False),
        Column("Difference", ("difference",)),
        INTERVAL,
        Column("p", ("p",)),
        Column("Adjusted p", ("p_adjusted",)),
        Column("Significant", ("is_significant",), is_number=False),
    )
    said = [
        f"Differences in {terms.measure}, {terms.estimate}, with 95 % confidence intervals {terms.claim}",
        *_outside_words(
            terms, {run for one in differences if one.low is not None for run in (one.run, one.against)}
        ),
        *_test_words(terms),
    ]
    return Table(_key("pairs", terms), _sentences(said), columns, tuple(rows), tuple(notes.texts))


class _MarkedRuns:
    """The runs of a table with their letters, marks and reasons."""

    def __init__(
        self, runs: Sequence[str], differences: Iterable[Difference], marks: Marks, baseline: str
    ) -> None:
        if marks.needs_baseline and baseline not in runs:
            raise ValueError(f"the baseline must be a run of the table, got {baseline!r}")
        self.marks, self.baseline = marks, baseline
        self.letters = letters_of(runs) if marks.has_letters else {}
        self.wins = _wins(differences)
        self.notes = Notes()

    @property
    def columns(self) -> tuple[Column, ...]:
        run = Column("Run", ("run",), is_number=False)
        return (Column("", ("letter",), is_number=False), run) if self.letters else (run,)

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(self.notes.texts)

    def names(self, run: str) -> tuple[Cell, ...]:
        return (self.letters[run], run) if self.letters else (run,)

    def numbers(self, one: RunNumber) -> tuple[Cell, Cell]:
        if one.value is None:
            return Missing(one.refusal, self.notes.mark(one.refusal)), None
        marks = self.marks.of(one.run, self.wins, self.letters, self.baseline)
        return Figure(one.value, marks), _interval(one.low, one.high)

    def caption(self, said: Sequence[str], terms: Terms, numbers: Iterable[RunNumber]) -> str:
        words = self.marks.words(self.baseline)
        outside = _outside_words(terms, {one.run for one in numbers if one.low is not None})
        return _sentences([*said, *outside, *([words, *_test_words(terms)] if words else [])])


def _wins(differences: Iterable[Difference]) -> Wins:
    found: dict[str, set[str]] = {}
    for one in differences:
        told = one.higher_and_lower
        if told:
            found.setdefault(told[0], set()).add(told[1])
    return {run: frozenset(others) for run, others in found.items()}


def _test_words(terms: Terms) -> list[str]:
    if not terms.adjustment:
        return ["No difference was tested"]
    return [f"Significant: {terms.test}, {terms.adjustment}, below {terms.level:g}"]


def _outside_words(terms: Terms, runs: Collection[str]) -> list[str]:
    """Return of which runs that have an interval in the table it covers documents that could not be judged."""
    shown = [run for run in terms.runs_outside if run in runs]
    return [f"Intervals of {', '.join(shown)} cover documents that could not be judged"] if shown else []


def _interval(low: float | None, high: float | None) -> Interval | None:
    return None if low is None or high is None else Interval(low, high)


def _sentences(parts: Sequence[str]) -> str:
    return " ".join(f"{part}." for part in parts)


def _key(kind: str, terms: Terms) -> str:
    return f"{kind}-{re.sub('[^a-z0-9]+', '-', terms.measure.lower()).strip('-')}"
