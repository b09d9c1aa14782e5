"""The next audit of judged items: how many in all, and every item's probability, nested in the audits before it.

What is here depends on recorded probabilities, bronze grades, gold checks and what audits brought in other folds, never
on what an audit brought on the item's own fold. The forecast of an audit (analytics) and the audit itself ask the same
functions.
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from sampling.judged import Judged
from sampling.measures.families import FloatArray
from sampling.questions import nested_probabilities
from sampling.strategies import (
    DEFAULT_STRATEGY,
    EVEN_SHARE,
    strategy_at_work,
    strategy_probabilities,
    strategy_shares,
)

CLOSE_ENOUGH = 1e-6  # of an item


@dataclass(frozen=True)
class Auditable:
    """What an audit can select: the judged items, and what earlier audits of the same tier gave them.

    `earlier` has one entry an item: the largest probability of these audits, 0 for none. `has_learned`: one of them
    learned, so that `earlier` says what gold of other folds brought, and every later audit goes fold by fold.
    """

    judged: Judged
    earlier: FloatArray
    has_learned: bool = False

    def probabilities(self, strategy: str, n_more: float, tolerance: float = CLOSE_ENOUGH) -> FloatArray:
        """Return each item's probability after one more audit that adds n_more expected items, at most all.

        All audits of a tier share one random number an item, so they are together the audit with the largest of their
        probabilities: max(earlier, pi of the strategy). The strategy's own size is the one for which the sum of these
        exceeds the sum of `earlier` by n_more: at least n_more, and at most that and all that was audited before. A
        first audit has exactly this size; so has one more of the same strategy over the same items. The sum is right to
        within `tolerance`.

        An audit that learns, and every later one, goes fold by fold: see `_by_fold`.

        Raises
        ------
        ValueError
            n_more not above 0 or not finite; what `strategy_probabilities` refuses.

        Examples
        --------
        >>> judged = Judged(np.ones(4), np.ones(4), np.zeros(4, int), np.zeros(4, int), np.ones(4), n_grades=2)
        >>> Auditable(judged, np.array([1.0, 0.5, 0.0, 0.0])).probabilities("simple", 1).round(6).tolist()
        [1.0, 0.5, 0.5, 0.5]
        """
        if not 0.0 < n_more < np.inf:
            raise ValueError(f"n_more must be positive and finite, got {n_more}")
        before = float(self.earlier.sum())
        target = min(before + n_more, float(self.earlier.size))
        if target >= self.earlier.size - CLOSE_ENOUGH:
            return np.ones(self.earlier.size)
        if self.has_learned or strategy_at_work(strategy, self.judged).learns:
            return self._by_fold(strategy, n_more, target, tolerance)
        sizes = (n_more, target)  # too small or right, too large or right: see above
        for size in reversed(sizes):
            pi = self._combined_probabilities(strategy, size)
            if abs(float(pi.sum()) - target) <= tolerance:
                return pi
        root = scipy.optimize.brentq(
            lambda size: float(self._combined_probabilities(strategy, size).sum()) - target,
            *sizes,
            xtol=tolerance,
        )
        return self._combined_probabilities(strategy, root)

    def _by_fold(self, strategy: str, n_more: float, target: float, tolerance: float) -> FloatArray:
        """Return probabilities of which those of a fold do not depend on what audits brought there.

        How many items a fold expects follows from what earlier audits expected in it and from the strategy's own sum,
        that of the default one in place of one that learns: all known before any gold. Within the fold pi =
        max(earlier, min(1, c size)) with this sum.
        """
        judged, fold, n_items = self.judged, self.judged.fold, self.earlier.size
        if fold is None:
            raise ValueError(
                "an audit that learns, or comes after one, needs the fold of every item, got None"
            )
        learns = strategy_at_work(strategy, judged).learns
        scaled_like = DEFAULT_STRATEGY if learns else strategy
        n_folds = int(fold.max()) + 1
        before = np.bincount(fold, self.earlier, n_folds)
        is_new = self.earlier == 0.0  # these need a chance also where the fold has its share

        def in_folds(size: float) -> FloatArray:
            own = strategy_probabilities(scaled_like, judged, expected_count=size)
            more = np.bincount(fold[is_new], own[is_new], n_folds)
            return np.asarray(np.maximum(before + more, np.bincount(fold, own, n_folds)))

        size = target
        if in_folds(target).sum() - target > tolerance:
            size = scipy.optimize.brentq(
                lambda size: float(in_folds(size).sum()) - target, n_more, target, xtol=tolerance
            )
        shares = strategy_shares(strategy, judged, expected_count=size)
        pi, totals = np.zeros(n_items), in_folds(size)
        for k in np.unique(fold):
            here = fold == k
            pi[here] = nested_probabilities(shares[here], self.earlier[here], float(totals[k]))
        return pi

    def census(self) -> FloatArray:
        """Return each item's probability after an audit of every item with influence: there 1, elsewhere as before.

        So its gold makes exact what the influence is of, where everything that counts was certain to be judged, and
        every other number keeps its probabilities. An item without influence that no audit could take so far must have
        a chance too, or what was open to audits would be no random part of what was drawn: the mean chance of its like,
        where an audit has learned of those of its fold; before any audit an even part, so that these are EVEN_SHARE of
        the whole count.

        Assumption: which run or pair is asked about does not follow from what audits brought on its items.

        Examples
        --------
        >>> influence = np.array([2.0, 1.0, 0.0, 0.0, 0.0])
        >>> judged = Judged(influence, np.ones(5), np.zeros(5, int), np.zeros(5, int), np.ones(5), n_grades=2)
        >>> Auditable(judged, np.array([0.5, 0.0, 0.25, 0.75, 0.0])).census().tolist()
        [1.0, 1.0, 0.25, 0.75, 0.5]
        >>> Auditable(judged, np.zeros(5)).census().round(6).tolist()
        [1.0, 1.0, 0.166667, 0.166667, 0.166667]
        """
        taken = self.judged.influence > 0.0
        others = ~taken
        fold = self.judged.fold if self.has_learned else np.zeros(taken.size, dtype=np.int64)
        if fold is None:
            raise ValueError("a census after an audit that learned needs the fold of every item, got None")
        even = EVEN_SHARE / (1.0 - EVEN_SHARE) * taken.sum() / max(1, int(others.sum()))
        n_folds = int(fold.max()) + 1
        known = others & (self.earlier > 0.0)
        n_known = np.bincount(fold[known], minlength=n_folds)
        totals = np.bincount(fold[known], self.earlier[known], n_folds)
        usual = np.divide(totals, n_known, out=np.full(n_folds, min(1.0, float(even))), where=n_known > 0)
        pi = np.where(self.earlier > 0.0, self.earlier, usual[fold])
        return np.where(taken, 1.0, pi)

    def _combined_probabilities(self, strategy: str, expected_count: float) -> FloatArray:
        own = strategy_probabilities(strategy, self.judged, expected_count=expected_count)
        return np.maximum(own, self.earlier)


def items_of_next_audit(
    *, already: float, each_time: float, in_total: float, n_judged: int, n_drawn: int
) -> float | None:
    """Return how many items more the next audit is expected to select; None if there is nothing to audit yet.

    The total is spent in step with the judging: what is judged last must be open to an audit too. Less than one more
    item is not worth an audit, unless it completes the total.

    Parameters
    ----------
    already : float
        Expected number of items in all audits of the tier so far.
    each_time, in_total : float
        What is wanted of an audit, and of all together.
    n_judged, n_drawn : int
        Items with all their judgments, and all that were drawn.

    Examples
    --------
    >>> items_of_next_audit(already=50, each_time=50, in_total=200, n_judged=300, n_drawn=400)
    50.0
    >>> items_of_next_audit(already=150, each_time=50, in_total=200, n_judged=300, n_drawn=400) is None
    True
    """
    if min(each_time, in_total) < 0 or already < 0 or not 0 <= n_judged <= n_drawn:
        given = f"{already}, {each_time}, {in_total}, {n_judged} of {n_drawn}"
        raise ValueError(f"sizes must be at least 0 and judged items drawn ones, got {given}")
    if n_judged == 0:
        return None
    target = min(already + each_time, in_total * n_judged / n_drawn, float(n_judged))
    if target <= already or target < min(already + 1, in_total):
        return None
    return float(target - already)


def middle_grades(label_item: ArrayLike, label_grade: ArrayLike, n_items: int) -> NDArray[np.int64]:
    """Return the median grade of each item, between two grades the lower one.

    Raises
    ------
    ValueError
        An item without a label, or labels of different length.

    Examples
    --------
    >>> middle_grades([0, 1, 0, 1, 1], [3, 0, 1, 2, 1], 2).tolist()
    [1, 1]
    """
    item = np.asarray(label_item, dtype=np.int64)
    grade = np.asarray(label_grade, dtype=np.int64)
    if item.shape != grade.shape or item.ndim != 1:
        raise ValueError(f"labels must be two flat arrays, got shapes {item.shape} and {grade.shape}")
    count = np.bincount(item, minlength=n_items)
    if count.size != n_items or (count == 0).any():
        raise ValueError(f"each of {n_items} items must have a label, and no other item")
    least = int(grade.min(initial=0))
    n_grades = int(grade.max(initial=0)) - least + 1
    cell = item * n_grades + (grade - least)
    upto = np.bincount(cell, minlength=n_items * n_grades).reshape(n_items, n_grades).cumsum(axis=1)
    return np.asarray((upto > ((count - 1) // 2)[:, None]).argmax(axis=1) + least, dtype=np.int64)
