"""Where numbers end: the range of a measure, and intervals that are never narrower than they may be.

Part of every release, beside verify.py, which calls it; NumPy is all it needs. Releases made before numbers ended at
their range name none: their numbers are compared as they are.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

if __package__:
    from analytics.releases.verify_facts import Facts, Floats, Ints, Mask, Row
    from analytics.releases.verify_measures import COMPLETE, grade_gains, parts_of, rank_weights
else:  # in a release, the files lie beside each other
    from verify_facts import Facts, Floats, Ints, Mask, Row  # type: ignore
    from verify_measures import COMPLETE, grade_gains, parts_of, rank_weights  # type: ignore

ENDS = ("value", "low", "high", "topics_low", "topics_high", "always_low", "always_high")
OUTSIDE = ("outside_low", "outside_high")
WHOLE = ("value", "low", "high")
BESIDE = (
    "unbounded_value", "unbounded_low", "unbounded_high", "range_low", "range_high", "n_positive", "judged_share",
    "gold_share",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class OutsideWeights:
    """The weights of documents that could not be judged: they may add between nothing and their weight times `gain`.

    Of those outside the frame only the ranks are known, of a difference therefore both runs' count in full.
    """

    gain: float  # the largest of any grade
    never: Mask  # [weighed], what the design can never draw
    unknown: Floats  # [run], the weight outside the frame
    inside: Floats  # [run, never], the weights of what is never drawn

    @classmethod
    def of(cls, facts: Facts, table: Floats, weighed: Ints, weight: Floats, gain: float) -> "OutsideWeights":
        """Return them, given the weight of every rank, and those [run, weighed] of some pairs of the frame."""
        never = (facts.first_probability[:, weighed] == 0).all(axis=0)
        beyond = [rank[rank <= (0 if facts.is_foreign else table.size)] for rank in facts.outside]
        unknown = np.array([table[rank - 1].sum() for rank in beyond])
        return cls(gain, never, unknown, weight[:, never])

    def is_same(self, run: int, run_b: int) -> bool:
        """Return whether two runs do not differ in what could not be judged."""
        return not self.unknown[[run, run_b]].any() and bool((self.inside[run] == self.inside[run_b]).all())

    def with_outside(self, again: Row, run: int, run_b: int | None, *, is_old: bool) -> Row:
        """Return the numbers with what the documents may be worth.

        Refused where they may move an end by more than half the interval; in a release of before (`is_old`), wherever
        there are any.
        """
        if "refused" in again:
            return again
        other = 0.0 if run_b is None else self.inside[run_b]  # what both return at one rank cancels
        up = self.gain * float(self.unknown[run] + np.maximum(self.inside[run] - other, 0.0).sum())
        down = 0.0
        if run_b is not None:
            only_b = np.maximum(self.inside[run_b] - self.inside[run], 0.0).sum()
            down = self.gain * float(self.unknown[run_b] + only_b)
        most = max(up, down)
        if most == 0:
            return again
        if is_old or most > again["high"] - again["value"]:
            return {"refused": True}
        return again | dict(zip(OUTSIDE, (down, up), strict=True))


def with_room(row: Row) -> Row:
    """Return the numbers with all that documents outside may be worth in every interval."""
    down, up = (row.get(name) or 0.0 for name in OUTSIDE)
    lows = {name: row[name] - down for name in ENDS if name.endswith("low") and row.get(name) is not None}
    highs = {name: row[name] + up for name in ENDS if name.endswith("high") and row.get(name) is not None}
    return row | lows | highs


def nearest_zero(row: Row) -> float:
    """Return the value nearest to 0 that the documents outside allow."""
    down, up = (row.get(name) or 0.0 for name in OUTSIDE)
    return float(min(max(0.0, row["value"] - down), row["value"] + up))


def beside(facts: Facts, kind: str, row: Row, run: int) -> Row:
    """Return the largest value that an estimate may have, and how much of a single run was judged.

    Nothing for a row without a range: of an older release, or without a number.
    """
    if row.get("range_high") is None:
        return {}
    shares = {} if row["run_b"] else judged_shares(facts, row["measure"], run)
    return {"largest": largest_value(facts, kind, row["measure"]), **shares}


def largest_value(facts: Facts, kind: str, measure: str) -> float:
    """Return the largest value: of a sum and of completely judged ranks, with the highest gain at all ranks; else 1."""
    name = parts_of(measure)
    if kind == "linear":
        gains = grade_gains(measure, facts.gains, facts.relevant_grade)
        return math.fsum(rank_weights(measure)) * float(gains.max())
    if kind == "complete":
        form = COMPLETE[name.family]
        gains = form.of_grades(name, facts.gains, facts.relevant_grade)
        return form.of_topic(np.full(name.cutoff, gains.max()))
    return 1.0


def within_range(again: Row, largest: float, *, is_pair: bool) -> Row:
    """Return the numbers as they are published: cut off at their range, with it, and with what they were before.

    The interval over topics first gets at least the half-width of the one for these topics, which has its centre.
    """
    low, high = (-largest if is_pair else 0.0), largest
    row = again | {f"unbounded_{name}": again.get(name) for name in WHOLE}
    if row.get("topics_low") is not None:
        row["topics_low"] = min(row["topics_low"], row["low"])
        row["topics_high"] = max(row["topics_high"], row["high"])
    for name in ENDS:
        if row.get(name) is not None:
            row[name] = min(max(row[name], low), high)
    return row | {"range_low": low, "range_high": high}


def judged_shares(facts: Facts, measure: str, run: int) -> Row:
    """Return the mean over topics of the shares of the first documents that were judged, and that were audited."""
    last = parts_of(measure).cutoff or math.inf
    if (facts.outside[run] <= last).any():
        return {}
    place, rank = facts.returned[run]
    near, n_topics = place[rank <= last], len(facts.topics)
    n_returned = np.bincount(facts.topic[near], minlength=n_topics)
    audited = facts.item[facts.audited | facts.is_by_gold_judges]
    found: dict[str, Any] = {}
    for name, items in (("judged_share", facts.item), ("gold_share", audited)):
        is_there: Mask = np.isin(near, items)
        count = np.bincount(facts.topic[near], is_there, n_topics)
        found[name] = float(np.mean(np.where(n_returned > 0, count / np.maximum(n_returned, 1), 0.0)))
    return found
