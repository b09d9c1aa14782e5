"""Rows of a result: some runs or pairs of one measure, before they are a table."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.claims import LIKE_THESE, Claim
from analytics.numbers.arrays import Floats, Ints
from analytics.numbers.columns import ASK, EstimateColumns
from sampling.measures.families import Measure
from sampling.measures.kinds import Kind
from touchstone_ir.samples import FileArrays

ALONE = "labels alone say nothing of these topics' error: give gold= to know how the judges err"


@dataclass(frozen=True, eq=False)
class MeasuredRuns:
    """One measure of all runs and pairs: what is reported, and what the grades say as they were given.

    `as_given` is None where there are no labels; `rests_on_gold`: the reported number is corrected by gold.
    """

    name: str
    measure: Measure[Kind]
    reported: EstimateColumns
    as_given: EstimateColumns | None
    n_judged: Ints  # [target]
    arrays: FileArrays
    rests_on_gold: bool

    @property
    def pairs(self) -> tuple[Ints, Ints]:
        """Return the places of both runs of every row; -1 for the second of a run alone."""
        return self.reported.run, self.reported.run_b

    @property
    def has_labels_alone(self) -> bool:
        """Return whether the grades as given are all that is known, of all that there is."""
        return not self.rests_on_gold and self.arrays.is_complete


def _plain(refusal: str) -> str:
    """Return a refusal without what only the platform has: a page to ask, and a file that was imported."""
    words = refusal.replace(f". {ASK}which judgments are missing", "").replace(
        f" {ASK}which judgments are missing", ""
    )
    return words.replace("(the imported file has no judgment of them)", "(nobody labelled them)")


@dataclass(frozen=True, eq=False)
class ClaimColumns:
    """What a claim says of rows: NaN where there is nothing, with the reason."""

    low: Floats
    high: Floats
    standard_error: Floats
    degrees_of_freedom: Floats
    p: Floats
    refusal: list[str]


@dataclass(frozen=True, eq=False)
class ResultRows:
    """Some rows of a measure, in the order in which they are shown; a sign of -1 turns a difference round."""

    numbers: MeasuredRuns
    places: Ints
    runs: Sequence[str]
    against: Sequence[str] | None
    sign: Floats

    def column(self, name: str) -> Floats:
        """Return a number of every row; NaN where the method has none."""
        known = self.numbers.reported.numbers.get(name)
        return np.full(self.places.size, np.nan) if known is None else known[self.places]

    @property
    def value(self) -> Floats:
        return self.column("value") * self.sign

    @property
    def as_given(self) -> Floats:
        beside = self.numbers.as_given
        if beside is None:
            return np.full(self.places.size, np.nan)
        return np.asarray(beside.numbers["value"][self.places] * self.sign)

    def component(self, name: str) -> Floats:
        """Return the part of the variance that has a name, NaN where there is none."""
        known = self.numbers.reported.components.get(name)
        return np.full(self.places.size, np.nan) if known is None else known[self.places]

    @property
    def n_gold(self) -> Ints:
        found = self.numbers.reported.n[self.places]
        return found if self.numbers.rests_on_gold else np.zeros_like(found)

    @property
    def refusals(self) -> list[str]:
        return [_plain(self.numbers.reported.refusal[place]) for place in self.places.tolist()]

    @property
    def warnings(self) -> list[str]:
        return [self.numbers.reported.warning[place] for place in self.places.tolist()]

    @property
    def is_same(self) -> NDArray[np.bool_]:
        """Return which rows are pairs of runs that cannot differ."""
        none_of_it = self.numbers.reported.n[self.places] == 0
        return np.asarray(none_of_it & (self.column("p_value") == 1) & np.isfinite(self.value))

    def claim(self, claim: Claim) -> ClaimColumns:
        """Return interval and p of every row under a claim."""
        is_like = claim is LIKE_THESE
        prefix = "topics_" if is_like else ""
        names = ("low", "high", "standard_error", "degrees_of_freedom", "p_value")
        low, high, error, df, p = (self.column(f"{prefix}{name}") for name in names)
        reported = self.numbers.reported
        reasons = list(self.refusals)
        if is_like:
            topics = [reported.topics_refusal[place] for place in self.places.tolist()]
            reasons = [one or other for one, other in zip(reasons, topics, strict=True)]
            same = self.is_same
            low, high = np.where(same, self.column("value"), low), np.where(same, self.column("value"), high)
            error, p = np.where(same, 0.0, error), np.where(same, 1.0, p)
        elif self.numbers.has_labels_alone:
            nothing = np.full(low.size, np.nan)
            low, high, error, df, p = (nothing,) * 5
            reasons = [one or ALONE for one in reasons]
        turned = self.sign < 0
        first, last = np.where(turned, -high, low), np.where(turned, -low, high)
        if reported.run_b[self.places].size and self.against is None:
            p = np.full(p.size, np.nan)  # a run alone is not tested
        return ClaimColumns(first, last, error, df, p, reasons)
