"""Measures of pairs of documents: swapped pairs, weighted swaps, and average precision as a sum over pairs.

The part that is sampled and judged is an ordered pair of documents of one topic, the first ranked above the second
by some run. A measure is then linear again: ``U(S) = sum over pairs of w_S(pair) * utility(pair)``, and every
design of `sampling.designs` and estimator of `analytics.estimation.estimators` works with pairs in the place of
items: pass the weights of the runs (or w_a - w_b), the utility of the pairs drawn, and the pairs' inclusion
probabilities. Runs share the utilities, because the order within the pair is part of the pair.

Source: Schnabel et al. (2016), Table 1, lower half. There |y| is read as the number of pairs of the ranking: it
makes the swaps a share, as the rank's 1/k makes precision one.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sampling.measures.families import Family, FloatArray, Measure
from sampling.measures.kinds import MAX_PAIRS, Pairs


def swap_weights(upper: FloatArray, lower: FloatArray, returned: FloatArray, _: FloatArray) -> FloatArray:
    """Return 1 / number of pairs of documents that the run returns."""
    return np.asarray(2 / (returned * (returned - 1.0)))


def weighted_swap_weights(
    upper: FloatArray, lower: FloatArray, returned: FloatArray, relevant: FloatArray
) -> FloatArray:
    """Return the weight of a swap divided by the ranks of both documents."""
    return swap_weights(upper, lower, returned, relevant) / (upper * lower)


def precision_weights(
    upper: FloatArray, lower: FloatArray, returned: FloatArray, relevant: FloatArray
) -> FloatArray:
    """Return 1/(R rank of the lower document), R the number of relevant documents."""
    return np.asarray(1 / (relevant * lower))


def is_swapped(gain_above: FloatArray, gain_below: FloatArray) -> FloatArray:
    """Return 1 where the lower document deserves the higher place; equal gains are no swap."""
    return np.asarray(gain_below > gain_above, dtype=np.float64)


def are_relevant(gain_above: FloatArray, gain_below: FloatArray) -> FloatArray:
    """Return 1 where both documents are relevant; ValueError for gains other than 0 and 1."""
    both = np.stack([gain_above, gain_below])
    if ((both != 0) & (both != 1)).any():
        raise ValueError(f"AP needs gains of 0 and 1, got {both[(both != 0) & (both != 1)][0]}")
    return np.asarray(gain_above * gain_below)


SWAPS = Family(
    key="Swaps",
    label="Swaps",
    help="The share of pairs of returned documents in the wrong order.",
    kind=Pairs(swap_weights, is_swapped),
)
WEIGHTED_SWAPS = Family(
    key="wSwaps",
    label="Weighted swaps",
    help="Swaps, each divided by the ranks of its two documents.",
    kind=Pairs(weighted_swap_weights, is_swapped),
)
PRECISION_PAIRS = Pairs(
    precision_weights, are_relevant, has_itself=True, by_relevant=True
)  # average precision


@dataclass(frozen=True)
class RankedPairs:
    """Ordered pairs of frame items of one topic, sorted: `above` is ranked above `below` by some run."""

    above: NDArray[np.int64]
    below: NDArray[np.int64]


def _check_arrays(ranks: ArrayLike, topic_index: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    rank, topic = np.atleast_2d(np.asarray(ranks)), np.asarray(topic_index)
    for name, array in (("ranks", rank), ("topic_index", topic)):
        if array.dtype.kind not in "iu":
            raise ValueError(f"{name} must be integers, got dtype {array.dtype}")
        if array.size and int(array.min()) < 0:
            raise ValueError(f"{name} must be at least 0, got {int(array.min())}")
    if topic.ndim != 1 or rank.ndim != 2 or rank.shape[1] != topic.size:
        raise ValueError(f"ranks must have shape (runs, {topic.size}), got {rank.shape}")
    return rank.astype(np.int64, copy=False), topic.astype(np.int64, copy=False)


def _within_cutoff(measure: Measure[Pairs], rank: NDArray[np.int64]) -> NDArray[np.bool_]:
    return (rank > 0) & (rank <= measure.last_rank)


def ranked_pairs(measure: Measure[Pairs], ranks: ArrayLike, topic_index: ArrayLike) -> RankedPairs:
    """Return every pair that at least one run ranks within the cutoff: the frame that pairs are drawn from.

    For AP a document is also paired with itself. A ranking of k documents has k (k - 1)/2 pairs (AP: k (k + 1)/2).

    Parameters
    ----------
    ranks : int array, shape (n_runs, n_items)
        A run's rank of each frame item, 0 where it does not return the item.
    topic_index : int array, shape (n_items,)

    Raises
    ------
    ValueError
        Arrays that are not integers, negative or do not fit; more than 20 million pairs.

    Examples
    --------
    >>> from sampling.measures.registry import parse_pairs
    >>> ranked_pairs(parse_pairs("Swaps"), [[1, 2, 0], [0, 2, 1]], [0, 0, 0])
    RankedPairs(above=array([0, 2]), below=array([1, 1]))
    """
    rank, topic = _check_arrays(ranks, topic_index)
    apart = 0 if measure.kind.has_itself else 1
    keys: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)]
    count = 0
    for row in rank:
        item = np.flatnonzero(_within_cutoff(measure, row))
        item = item[np.lexsort((row[item], topic[item]))]
        for listed in np.split(item, np.flatnonzero(np.diff(topic[item])) + 1):
            count += listed.size * (listed.size + 1) // 2
            if count > MAX_PAIRS:
                raise ValueError(
                    f"there must be at most {MAX_PAIRS} pairs over all runs, got {count} or more"
                )
            first, second = np.triu_indices(listed.size, apart)
            keys.append(listed[first] * topic.size + listed[second])
    key = np.unique(np.concatenate(keys))
    above, below = np.divmod(key, max(1, topic.size))
    return RankedPairs(above, below)


def pair_weights(
    measure: Measure[Pairs],
    ranks: ArrayLike,
    topic_index: ArrayLike,
    pairs: RankedPairs,
    n_topics: int,
    *,
    relevant_by_topic: ArrayLike | None = None,
) -> FloatArray:
    """Return w [run, pair]: what a pair of utility 1 adds to the mean of the measure over topics.

    Swaps: 1 / number of pairs that the run ranks within the cutoff of that topic, so the measure is the share
    of pairs in the wrong order (times that number: the number of swaps). wSwaps: the same, divided by the ranks
    of both documents. AP: 1/(R rank of the lower document); R, the number of relevant documents, is unknown to
    anyone who samples, so without `relevant_by_topic` the weight is 1/rank, and the sum is the numerator that
    `analytics.estimation.ratios` divides by an estimate of R. All divided by n_topics; 0 where the run does not
    rank the pair in this order within the cutoff.

    Raises
    ------
    ValueError
        As `ranked_pairs`; n_topics below 1; R given for another measure than AP, of the wrong shape or below 1.

    Examples
    --------
    >>> from sampling.measures.registry import parse_pairs
    >>> swaps = parse_pairs("Swaps")
    >>> runs = [[1, 2, 0], [0, 2, 1]]
    >>> pair_weights(swaps, runs, [0, 0, 0], ranked_pairs(swaps, runs, [0, 0, 0]), 1).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    rank, topic = _check_arrays(ranks, topic_index)
    if n_topics < 1 or (topic.size and int(topic.max()) >= n_topics):
        raise ValueError(f"n_topics must be at least 1 and above every topic_index, got {n_topics}")
    if relevant_by_topic is not None and not measure.kind.by_relevant:
        raise ValueError(f"relevant_by_topic belongs to AP, got it for {measure.name}")
    relevant = np.ones(n_topics) if relevant_by_topic is None else np.asarray(relevant_by_topic, dtype=float)
    if relevant.shape != (n_topics,) or not np.all((relevant >= 1) & np.isfinite(relevant)):
        raise ValueError(
            f"relevant_by_topic must be {n_topics} counts of at least 1, got {relevant.tolist()}"
        )
    inside = _within_cutoff(measure, rank)
    weights = np.zeros((rank.shape[0], pairs.above.size))
    for row, within, weight in zip(rank, inside, weights, strict=True):
        upper, lower = row[pairs.above], row[pairs.below]
        used = within[pairs.above] & within[pairs.below] & (upper <= lower)
        here = topic[pairs.above[used]]
        returned = np.bincount(topic[within], minlength=n_topics)[here].astype(np.float64)
        ranks_of_pair = upper[used].astype(np.float64), lower[used].astype(np.float64)
        weight[used] = measure.kind.weights(*ranks_of_pair, returned, relevant[here])
    return weights / n_topics


def pair_utility(measure: Measure[Pairs], gain_above: ArrayLike, gain_below: ArrayLike) -> FloatArray:
    """Return the utility of pairs from the gains of their two documents: 1 or 0.

    Swaps and wSwaps: 1 where the lower document deserves the higher place; equal gains are no swap. AP: 1 where
    both documents are relevant; pass gains of 0 and 1 (`sampling.measures.families.grade_gains` of a binary measure). A
    judge who is shown both documents may give the answer directly.

    Raises
    ------
    ValueError
        Gains that are not finite or of different shapes; for AP, gains other than 0 and 1.

    Examples
    --------
    >>> from sampling.measures.registry import parse_pairs
    >>> pair_utility(parse_pairs("Swaps"), [0, 1, 2], [1, 1, 0]).tolist()
    [1.0, 0.0, 0.0]
    """
    above, below = np.asarray(gain_above, dtype=np.float64), np.asarray(gain_below, dtype=np.float64)
    if above.shape != below.shape or not (np.isfinite(above).all() and np.isfinite(below).all()):
        raise ValueError(f"gains must be finite and of one shape, got {above.shape} and {below.shape}")
    return measure.kind.utility(above, below)
