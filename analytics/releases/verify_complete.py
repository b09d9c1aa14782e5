"""Numbers of judged documents alone: of completely judged ranks, and ratios of what was sampled, without an interval.

Part of every release, beside verify.py, which calls it; NumPy is all it needs.
"""

import math
from collections.abc import Callable

import numpy as np

if __package__:
    from analytics.releases.verify_estimates import REFUSED, interval, with_topics
    from analytics.releases.verify_facts import Facts, Floats, Ints, Mask, Row, draw_probability, not_covered
    from analytics.releases.verify_measures import COMPLETE, RATIOS, parts_of
else:  # in a release, the files lie beside each other
    from verify_estimates import REFUSED, interval, with_topics  # type: ignore
    from verify_facts import Facts, Floats, Ints, Mask, Row, draw_probability, not_covered  # type: ignore
    from verify_measures import COMPLETE, RATIOS, parts_of  # type: ignore


def judged_gains(facts: Facts, of_grade: Floats) -> Floats:
    """Return the gain of every pair of the frame by its grades as given; NaN where it is not judged."""
    gain = np.full(facts.topic.size, np.nan)
    number = np.bincount(facts.label_item, minlength=facts.item.size)
    gain[facts.item] = np.bincount(facts.label_item, of_grade[facts.label_grade], facts.item.size) / number
    return gain


def gold_gains(facts: Facts, of_grade: Floats) -> Floats:
    """Return the gain of every pair of the frame by its right grade."""
    return np.asarray(of_grade[facts.gold_answer])


class CompleteMethod:
    """One such measure by one method: the numbers of any run or pair of runs."""

    def __init__(
        self, facts: Facts, gains: Callable[[Facts, Floats], Floats], measure: str, *, over_topics: bool
    ) -> None:
        name = parts_of(measure)
        self.facts, self.cutoff, self.form = facts, name.cutoff, COMPLETE[name.family]
        self.gain = gains(facts, self.form.of_grades(name, facts.gains, facts.relevant_grade))
        self.over_topics = over_topics
        self.first = [
            (place[rank <= name.cutoff], rank[rank <= name.cutoff]) for place, rank in facts.returned
        ]

    def __call__(self, run: int, run_b: int | None) -> Row:
        """Return the mean over topics, or a difference of two: exact for these topics, with an interval over them."""
        runs = [run] if run_b is None else [run, run_b]
        gain = self.gain
        if any((self.facts.outside[one] <= self.cutoff).any() for one in runs):
            return REFUSED
        ranks = np.zeros((2, self.facts.topic.size), dtype=np.int64)
        for of_run, one in zip(ranks, runs, strict=False):
            of_run[self.first[one][0]] = self.first[one][1]
        n = int(np.count_nonzero(ranks[0] != ranks[1]))
        if run_b is not None and n == 0:
            return interval(0.0, {}, math.inf, 0)
        if np.isnan(gain[ranks.any(axis=0)]).any():
            return REFUSED
        values = [self._of_topics(gain, of_run) for of_run in ranks[: len(runs)]]
        parts = (values[0] - values[-1] if run_b is not None else values[0]) / len(self.facts.topics)
        row = interval(float(parts.sum()), {}, math.inf, n)
        return with_topics(row, parts) if self.over_topics else row

    def _of_topics(self, gain: Floats, ranks: Ints) -> Floats:
        values = np.zeros(len(self.facts.topics))
        for topic in range(values.size):
            listed = np.flatnonzero((self.facts.topic == topic) & (ranks > 0))
            gains = np.zeros(int(ranks[listed].max(initial=0)))
            gains[ranks[listed] - 1] = gain[listed]
            values[topic] = self.form.of_topic(gains)
        return values


class ValueOfSample:
    """A ratio of the sampled documents alone, each standing for 1/pi of them: numbers without an interval."""

    def __init__(self, facts: Facts, measure: Row) -> None:
        gains, everything = np.array(measure["gains"]), np.ones(facts.item.size, dtype=bool)
        self.facts, self.cutoff = facts, measure["cutoff"] or np.iinfo(np.int64).max
        self.weights = RATIOS[measure["family"]].weights
        chance = draw_probability(facts, everything)
        self.is_refused = not_covered(facts, everything, chance)
        self.stands_for, self.judged = np.zeros(facts.topic.size), np.zeros(facts.topic.size, dtype=bool)
        number = np.bincount(facts.label_item, minlength=facts.item.size)
        gain = np.bincount(facts.label_item, gains[facts.label_grade], facts.item.size) / number
        self.judged[facts.item] = True
        if not self.is_refused:
            self.stands_for[facts.item] = gain / chance[facts.item]
        self.whole = np.bincount(facts.topic, self.stands_for, len(facts.topics))

    def __call__(self, run: int, run_b: int | None) -> Row:
        """Return the mean over topics, or a difference of two; refused where nothing relevant is known."""
        if self.is_refused or not self.whole.any():
            return REFUSED
        value, listed = self._of_run(run)
        if run_b is not None:
            other, also = self._of_run(run_b)
            value, listed = value - other, listed | also
        return {"value": value, "n": int(np.count_nonzero(listed)), "components": {}}

    def _of_run(self, run: int) -> tuple[float, Mask]:
        """Return the run's value, and which judged pairs it returns."""
        place, rank = (
            values[self.facts.returned[run][1] <= self.cutoff] for values in self.facts.returned[run]
        )
        listed = np.zeros(self.facts.topic.size, dtype=bool)
        listed[place] = True
        value = 0.0
        for topic in np.unique(self.facts.topic[place]).tolist():
            own = np.flatnonzero(self.facts.topic[place] == topic)
            own = own[np.argsort(rank[own])]
            worth = self.stands_for[place[own]]
            above = np.cumsum(worth) - worth
            weight = self.weights(rank[own].astype(np.float64))
            value += float((weight * worth * (1 + above)).sum() / max(self.whole[topic], 1.0))
        return value / len(self.facts.topics), listed & self.judged
