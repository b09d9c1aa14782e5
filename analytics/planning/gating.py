"""The rules of a gate: is one run better than another, with as few judgments as it takes, and never more than a cap.

Items are the pairs of topic and document that the two runs weigh differently: ``w = w_b - w_a`` is not 0. Each has one
permanent random number. It is asked for when its number is below pi, the largest so far of the probabilities of an
audit by influence with 20, then more and more expected items. So batches nest, and all that was asked for up to a batch
is one Poisson audit with the probabilities of that batch.

After every complete batch there is a look: the corrected difference, with the bounds of a confidence sequence. These
hold at all looks at once, so whoever stops at the first verdict is wrong with a chance of at most 5 %.
`analytics.estimation.sequences` says what that assumes; the topics are these, not a sample of others.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.estimate import Floats, Ints
from analytics.estimation.sequences import FEWEST_WATCHED, always_valid_factor
from sampling.arrays import numbers
from sampling.draws import poisson_draw
from sampling.judged import Judged, scale
from sampling.strategies import DEFAULT_STRATEGY, strategy_probabilities

BETTER, NOT_WORSE, WORSE, UNDECIDED = "better", "not worse", "worse", "undecided"
STRATEGY = DEFAULT_STRATEGY  # influence: proportional to |w|, a fifth of it evenly


@dataclass(frozen=True, eq=False)
class GateBatch:
    """What is asked for next, and the audit that it completes.

    Attributes
    ----------
    new : int array
        Places of the items that no earlier batch asked for, ascending; at least one.
    asked : int array
        Places of all items asked for so far, these among them.
    probability : array [item]
        By which the items asked for so far are one Poisson audit.
    """

    new: Ints
    asked: Ints
    probability: Floats


@dataclass(frozen=True)
class Question:
    """What is fixed before the first judgment.

    Attributes
    ----------
    tolerance : float
        How much worse still counts as not worse; not negative.
    cap : int
        Most items that are ever asked for; at least 20.
    plan : int
        Items expected to be needed: there the confidence sequence is narrowest.
    batch : int
        Expected items of every batch after the first, of which 20 are expected.

    Raises
    ------
    ValueError
        A number off its range.
    """

    tolerance: float
    cap: int
    plan: int
    batch: int

    def __post_init__(self) -> None:
        if not 0.0 <= self.tolerance < np.inf:
            raise ValueError(f"tolerance must be at least 0 and finite, got {self.tolerance}")
        if self.cap < FEWEST_WATCHED:
            raise ValueError(
                f"cap must be at least {FEWEST_WATCHED}: before that nothing is said, got {self.cap}"
            )
        if self.plan < FEWEST_WATCHED:
            raise ValueError(f"plan must be at least {FEWEST_WATCHED}, got {self.plan}")
        if self.batch < 1:
            raise ValueError(f"batch must be at least 1, got {self.batch}")

    def batches(self, weight: ArrayLike, number: ArrayLike) -> Iterator[GateBatch]:
        """Yield the batches that are asked for one after the other, as far as all of them stay within the cap.

        Parameters
        ----------
        weight : array [item]
            w_b - w_a, none of them 0.
        number : array [item]
            Permanent random numbers.

        Examples
        --------
        >>> question = Question(tolerance=0.02, cap=25, plan=20, batch=5)
        >>> [one.new.size for one in question.batches(np.ones(40), (np.arange(40) + 0.5) / 40)]
        [20, 5]
        """
        size = numbers("weight", np.abs(np.asarray(weight, dtype=np.float64)))
        if not size.size or not size.all():
            raise ValueError(f"weight must be of at least 1 item and nowhere 0, got {size.size} items")
        nothing = np.zeros(size.size, dtype=np.int64)  # the strategy goes by influence alone
        items = Judged(scale(size), np.ones(size.size), nothing, nothing, np.zeros(size.size), n_grades=1)
        pi, before, expected = np.zeros(size.size), nothing[:0], FEWEST_WATCHED
        while before.size < size.size:
            pi = np.maximum(pi, strategy_probabilities(STRATEGY, items, expected_count=expected))
            asked = poisson_draw(pi, number)
            if asked.size > self.cap:
                return
            if asked.size > before.size:
                yield GateBatch(np.setdiff1d(asked, before), asked, pi)
            before, expected = asked, expected + self.batch

    def bounds(self, value: float, standard_error: float, n: int, n_items: int) -> tuple[float, float] | None:
        """Return L and U at a look with n of n_items items judged; None below 20, where nothing is said.

        Examples
        --------
        >>> low, high = Question(0.02, 400, 120, 10).bounds(0.1, 0.02, 120, 740)
        >>> round(low, 4), round(high, 4)
        (0.038, 0.162)
        """
        factor = float(always_valid_factor(n, self.plan, n_items=n_items))
        if not np.isfinite(factor):
            return None
        return value - factor * standard_error, value + factor * standard_error

    def verdict(self, low: float, high: float) -> str | None:
        """Return what a look decides, or None: better, else not worse, else worse.

        Whoever wants B to be better, and not merely not worse, asks with a tolerance of 0.

        Examples
        --------
        >>> question = Question(0.02, 400, 120, 10)
        >>> [question.verdict(low, low + 0.03) for low in (0.01, -0.01, -0.02, -0.05)]
        ['better', 'not worse', None, 'worse']
        """
        if low > 0.0:
            return BETTER
        if low > -self.tolerance:
            return NOT_WORSE
        return WORSE if high < 0.0 else None

    def first_verdict(self, looks: Iterable[tuple[float, float] | None]) -> tuple[int, str] | None:
        """Return the first look that decides, counted from 0, and what: what comes later does not take it back.

        Examples
        --------
        >>> Question(0.02, 400, 120, 10).first_verdict([None, (-0.1, 0.1), (-0.01, 0.1), (-0.1, -0.01)])
        (2, 'not worse')
        """
        for place, bounds in enumerate(looks):
            verdict = None if bounds is None else self.verdict(*bounds)
            if verdict is not None:
                return place, verdict
        return None
