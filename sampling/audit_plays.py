"""Audits that are played before anything is judged: which chance of an audit a strategy would give each document.

A play draws the documents, gives each a true grade that its prediction makes likely and labels with the expected
errors, and asks the strategy, as a real audit does (`sampling.strategies`).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sampling.arrays import FloatArray
from sampling.judged import GoldChecks, Judged, error_variance, scale
from sampling.strategies import strategy_probabilities

N_PLAYS = 20
CHECKS_A_GRADE = 20.0  # gold checks of every true grade that a strategy is taken to have seen


class PlayedJudgments(NamedTuple):
    """The true grade of every item, and its labels [item, label]."""

    gold: NDArray[np.int64]
    labels: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class AuditPlay:
    """What is known of a campaign before it is audited; arrays have one entry an item that can be drawn.

    Attributes
    ----------
    draw_probability : array
        Above 0, at most 1.
    contrast : array
        Not negative: how much an item's grade says about the campaign's question; only proportions count.
    topic_index : int array
    chances : array [item, grade]
        Of the true grade.
    errors : array [true, given]
        Of one label.
    gains : array [grade]
    n_labels : int
        Labels an item.
    """

    draw_probability: FloatArray
    contrast: FloatArray
    topic_index: NDArray[np.int64]
    chances: FloatArray
    errors: FloatArray
    gains: FloatArray
    n_labels: int

    def audit_probabilities(
        self,
        strategy: str,
        n_items: float,
        rng: np.random.Generator,
        *,
        drawn: NDArray[np.bool_] | None = None,
        plays: int = N_PLAYS,
    ) -> FloatArray:
        """Return each item's chance of an audit, given that it is judged: 1 over the mean of 1/a over the plays.

        Variances are sums of 1/a, so this mean makes their expectation right where a depends on what else was drawn.
        An item that no play drew has the chance of those next to it by contrast over probability.

        Parameters
        ----------
        strategy : str
            One that learns has too little gold yet: the default one stands in, as in a real first audit.
        n_items : float
            Expected size of all audits together; at least as many as are judged: all are audited.
        rng : numpy Generator
        drawn : bool array, optional
            The items that were drawn, once that is known; otherwise each play draws.
        plays : int
            At least 1.

        Raises
        ------
        ValueError
            An unknown strategy; n_items or plays not above 0.
        """
        if plays < 1:
            raise ValueError(f"plays must be at least 1, got {plays}")
        if not n_items > 0:
            raise ValueError(f"n_items must be above 0, got {n_items}")
        pi = self.draw_probability
        counted, inverse = np.zeros((2, pi.size))
        for _ in range(plays):
            here = np.flatnonzero(rng.random(pi.size) < pi if drawn is None else drawn)
            if here.size:
                chance = strategy_probabilities(
                    strategy,
                    self.judged_items(here, self.judge(here, rng)),
                    expected_count=min(n_items, float(here.size)),
                )
                counted[here] += 1
                inverse[here] += 1 / chance
        seen = counted > 0
        if not seen.any():
            return np.full(pi.size, min(1.0, n_items / max(float(pi.sum()), 1.0)))
        found = np.divide(counted, inverse, out=np.ones(pi.size), where=seen)
        if not seen.all():
            found[~seen] = _from_neighbours(self.contrast / pi, seen, found)
        return np.asarray(np.minimum(found, 1.0))

    def judge(self, here: NDArray[np.int64], rng: np.random.Generator) -> PlayedJudgments:
        """Return true grades and labels that are likely for these items."""
        upto = np.cumsum(self.chances[here], axis=1)[:, :-1]
        gold = (rng.random(here.size)[:, None] >= upto).sum(axis=1)
        bounds = np.cumsum(self.errors, axis=1)[gold, :-1]
        labels = (rng.random((here.size, self.n_labels, 1)) >= bounds[:, None, :]).sum(axis=2)
        return PlayedJudgments(gold, labels)

    def judged_items(self, here: NDArray[np.int64], judgments: PlayedJudgments) -> Judged:
        """Return these items as a strategy sees them."""
        # The bronze grade is the median of the labels, of two grades the lower one.
        bronze = np.sort(judgments.labels, axis=1)[:, (self.n_labels - 1) // 2]
        pi = self.draw_probability[here]
        return Judged(
            influence=scale(self.contrast[here]) / pi,
            inclusion_probability=pi,
            topic_index=self.topic_index[here],
            bronze_grade=bronze,
            error_variance=error_variance(bronze, GoldChecks(CHECKS_A_GRADE * self.errors, self.gains)),
            n_grades=self.gains.size,
        )


def _from_neighbours(influence: FloatArray, seen: NDArray[np.bool_], found: FloatArray) -> FloatArray:
    """Return the chances of the items that no play drew, interpolated by influence between those that were drawn."""
    order = np.argsort(influence[seen], kind="stable")
    return np.interp(influence[~seen], influence[seen][order], found[seen][order])
