"""Later batches of a campaign: what keeps them nested, and exactly unbiased when they learned from judgments.

A batch that learned gives every item a probability that depends on judgments. Unbiased it is only while an item's
own judgment has no way into the item's own probability. So everything that is learned, and every number that scales
it, is made fold by fold: predictions of a fold come from the other folds' judgments, and how many judgments a fold
gets follows from the frame alone. A constant that is common to all folds would carry every judgment everywhere.
"""

import numpy as np
import scipy
from numpy.typing import ArrayLike

from sampling.arrays import distribution, integers, numbers, probabilities
from sampling.contrasts import Importance, default_sizes
from sampling.designs import mixture, normalise, uniform_design
from sampling.measures.families import FloatArray
from sampling.questions import Design, nested_probabilities


def rescaled_by_fold(sizes: ArrayLike, fold: ArrayLike, frame_sizes: ArrayLike) -> FloatArray:
    """Return sizes that sum within every fold to what the frame's sizes sum to there, and in all to 1.

    Sizes of a fold that are all 0 are replaced by the frame's.

    Parameters
    ----------
    sizes : array, shape (n_items,)
        Those of a fold may depend on the other folds' judgments.
    fold : int array, shape (n_items,)
    frame_sizes : array, shape (n_items,)
        Known before anything is judged, at least one positive.

    Raises
    ------
    ValueError
        Arrays that do not fit together, or sizes negative or not finite.

    Examples
    --------
    >>> rescaled_by_fold([1.0, 3.0, 0.5, 0.5], [0, 0, 1, 1], [1.0, 1.0, 1.0, 1.0]).tolist()
    [0.125, 0.375, 0.25, 0.25]
    """
    size = numbers("sizes", sizes)
    part, fixed = integers("fold", fold, size.size), _frame_sizes(frame_sizes, size.size)
    total, target = np.bincount(part, weights=size), np.bincount(part, weights=fixed)
    factor = np.divide(target, total, out=np.zeros_like(total), where=total > 0)
    return np.asarray(np.where(total[part] > 0, size * factor[part], fixed))


def learned_sizes(
    design: Design, says: Importance, *, prior: ArrayLike, learned: ArrayLike, fold: ArrayLike
) -> FloatArray:
    """Return the sizes of the default design under what judgments predict, summing to 1.

    As `default_sizes`, but the question's part in every fold keeps the sum that it has there under the prior.

    Parameters
    ----------
    prior : array, shape (n_items,)
        Probability of relevance, known before anything is judged.
    learned : array, shape (n_items,)
        The same after judgments: in a fold from the other folds' only (`sampling.prediction.cross_fitted`).
    fold : int array, shape (n_items,)
    """
    if design.question == "pool":
        return default_sizes(design, says, prior)
    before, after = probabilities("prior", prior), probabilities("learned", learned)
    question = rescaled_by_fold(np.sqrt(says.variance(after)), fold, np.sqrt(says.variance(before)))
    others = [says.average_run, uniform_design(question.size)]
    return mixture(question, others, [design.other_runs_share, design.uniform_share])


def probabilities_by_fold(
    sizes: ArrayLike,
    fold: ArrayLike,
    *,
    frame_sizes: ArrayLike,
    unlearned: ArrayLike,
    earlier: ArrayLike,
    expected_count: float,
) -> FloatArray:
    """Return pi of a batch that learned, or that comes after one that did: pi >= earlier, each fold for itself.

    A fold gets the judgments that the batches before any learning expect in it, and of all that come later the share
    that `frame_sizes` have in it. Both are known before anything is judged. Within the fold pi =
    max(earlier, min(1, c_k size)) with that sum. So pi of an item depends on other folds' judgments only, if sizes
    and earlier do; with Poisson and one permanent random number an item every difference estimate is then exactly
    unbiased whose predictions use the judgments of the unlearned batches only, those of other folds.

    The sum of all pi is `expected_count`, unless a fold has no more items, or another design of an earlier batch has
    already given it more than its share.

    Source: docs/methods/derivations/prediction.md, sections 4.1 and 4.2.

    Parameters
    ----------
    sizes : array, shape (n_items,)
        See `rescaled_by_fold`.
    fold : int array, shape (n_items,)
    frame_sizes : array, shape (n_items,)
        Known before anything is judged.
    unlearned, earlier : array, shape (n_items,)
        pi of the batches before the first that learned, and of all batches so far.
    expected_count : float
        Judgments in all, those of earlier batches included.

    Raises
    ------
    ValueError
        Arrays that do not fit together, or probabilities outside [0, 1].

    Examples
    --------
    >>> start = {"frame_sizes": [1.0, 1.0], "unlearned": [0.25, 0.25], "earlier": [0.25, 0.25]}
    >>> probabilities_by_fold([5.0, 1.0], [0, 1], **start, expected_count=1.0).tolist()
    [0.5, 0.5]
    """
    size = numbers("sizes", sizes)
    part, fixed = integers("fold", fold, size.size), _frame_sizes(frame_sizes, size.size)
    first = probabilities("unlearned", unlearned, size.size)
    before = probabilities("earlier", earlier, size.size)
    if not np.isfinite(expected_count):
        raise ValueError(f"expected_count must be finite, got {expected_count}")

    new = max(float(expected_count) - float(first.sum()), 0.0)
    pi = before.copy()
    for k in np.unique(part):
        here = part == k
        target = float(first[here].sum() + new * fixed[here].sum())
        if size[here].any():
            pi[here] = nested_probabilities(size[here], before[here], target)
    return pi


def draws_to_reach(q: ArrayLike, earlier: ArrayLike, expected_count: float) -> float:
    """Return how many draws with replacement bring the expected number of different items to `expected_count`.

    The expectation is sum of 1 - (1 - earlier)(1 - Q)^n: batches are drawn independently, and some items that were
    drawn earlier come again.

    Raises
    ------
    ValueError
        A count that the earlier batches already expect, or that no number of draws reaches.

    Examples
    --------
    >>> round(draws_to_reach([0.5, 0.5], [0.0, 0.0], 1.5), 6)
    2.0
    >>> round(draws_to_reach([0.5, 0.5], [0.5, 0.5], 1.5), 6)
    1.0
    """
    probability = distribution("q", q)
    before = probabilities("earlier", earlier, probability.size)
    at_most = float(np.where(probability > 0, 1.0, before).sum())
    if not before.sum() < expected_count < at_most:
        raise ValueError(
            f"expected_count must be above {before.sum()}, already expected, and below {at_most}, all that q and the "
            f"earlier batches can draw, got {expected_count}"
        )
    drawable = (probability > 0) & (before < 1)
    left = 1 - before[drawable]
    # log1p(-1) is minus infinity for a certain item; the next smaller double changes nothing reported.
    miss = np.log1p(-np.minimum(probability[drawable], np.nextafter(1.0, 0.0)))
    target = expected_count - float(before.sum())

    def excess(log_draws: float) -> float:
        return float((left * -np.expm1(np.exp(log_draws) * miss)).sum() - target)

    high = 1.0
    while excess(high) < 0:
        high += 5.0
        if high > 600.0:
            raise ValueError(f"expected_count must be reachable, got {expected_count} with q down to 0")
    return float(np.exp(scipy.optimize.brentq(excess, -50.0, high, xtol=1e-12)))


def _frame_sizes(frame_sizes: ArrayLike, n_items: int) -> FloatArray:
    return normalise(numbers("frame_sizes", frame_sizes, n_items))
