"""Predictions of items' gains for the difference estimator, each fitted without the item's own label.

The estimator ``sum_frame f w + sum_drawn (u - f) w / pi`` is exactly unbiased under Poisson sampling for every f
that does not depend on the item's own inclusion and label. So the frame is cut into folds by a hash before
anything is drawn, and f on a fold is fitted on the labels of the other folds (cross-fitting). A good f makes the
interval narrow, a bad one makes it wide; neither moves its centre.

The model is a logistic regression of gain / largest gain on what the ranks of all known runs say, with an
intercept per topic, around the prior. Every coefficient is shrunk towards 0, where f is the prior: without
labels f is the prior, few labels calibrate it, many labels replace it. Nothing here is random.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import polars as pl
import scipy
from numpy.typing import ArrayLike

from sampling.arrays import numbers, probabilities
from sampling.draws import IndexArray, permanent_random_numbers
from sampling.leave_out import fits_without_each_fold
from sampling.logistic import LogisticProblem
from sampling.measures.families import FloatArray
from sampling.measures.sparse import SparseRuns
from sampling.pooling import as_ranks

N_FOLDS = 10
# Precisions before any label, in logits: a standardised feature's coefficient has sd .32, a topic's intercept
# sd 1, the shift and the change of slope of the prior sd 1.8.
SCORE_RIDGE = 1.0
FEATURE_RIDGE = 10.0
TOPIC_RIDGE = 1.0
CALIBRATION_RIDGE = 0.3
_FARTHEST = 30.0  # beyond this logit a probability rounds to 1


# ---- folds and features: from the frame alone ------------------------------------------------------


def folds(
    topic_ids: Sequence[str] | pl.Series,
    doc_ids: Sequence[str] | pl.Series,
    seed: int,
    n_folds: int = N_FOLDS,
) -> IndexArray:
    """Return the fold, 0 to n_folds - 1, of each (topic, document): a function of the two ids and the seed only.

    The hash has a seed derived from `seed`, so that folds and the numbers that decide the draw of the same seed
    are independent.

    Raises
    ------
    ValueError
        Fewer than 2 folds, or as `permanent_random_numbers`.

    Examples
    --------
    >>> folds(["1", "1", "2"], ["a", "b", "a"], seed=1).shape
    (3,)
    """
    if n_folds < 2:
        raise ValueError(f"n_folds must be at least 2, got {n_folds}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed must be within [0, 2^64), got {seed}")
    derived = blake2b(b"folds", key=int(seed).to_bytes(8, "little"), digest_size=8).digest()
    numbers = permanent_random_numbers(topic_ids, doc_ids, int.from_bytes(derived, "little"))
    return np.asarray(np.minimum(np.floor(numbers * n_folds), n_folds - 1), dtype=np.int64)


def rank_features(ranks: ArrayLike | SparseRuns, depth: int) -> FloatArray:
    """Return what the ranks of all known runs say about each item: array [n_items, n_features], standardised.

    In this order: the logarithm of (count + 1/2)/(n_runs - count + 1/2) for the number of runs that return the
    item within 10, within the depth and at all; the mean over runs of 1/rank, of 1/(rank + 60), and the
    logarithm of the best rank. The order of the runs does not matter, and their number does not change the
    columns. A column that is the same for all items is 0.

    Source: docs/methods/derivations/prediction.md, section 2.2; 1/(rank + 60) is the reciprocal rank fusion of
    Cormack, Clarke and Buettcher (2009).

    Parameters
    ----------
    ranks : int array, shape (n_runs, n_items), or SparseRuns
        0 = not returned; ranks below the depth count where a feature can use them.
    depth : int
        Depth of the pool.

    Raises
    ------
    ValueError
        Ranks of the wrong shape, type or sign; depth below 1.
    """
    if depth < 1:
        raise ValueError(f"depth must be at least 1, got {depth}")
    entries = as_ranks(ranks)

    rank = entries.value.astype(np.float64)  # of returned items only
    deepest = float(rank.max(initial=depth))
    columns = np.empty((entries.n_items, 6))
    for place, cutoff in enumerate((min(10, depth), depth, deepest)):
        count = entries.item_sums((rank <= cutoff).astype(np.float64))
        columns[:, place] = np.log((count + 0.5) / (entries.n_runs - count + 0.5))
    columns[:, 3] = entries.item_sums(1.0 / rank) / entries.n_runs
    columns[:, 4] = entries.item_sums(1.0 / (rank + 60.0)) / entries.n_runs
    best = entries.item_extremes(np.minimum, rank)
    columns[:, 5] = np.log(np.where(best == 0.0, deepest + 1.0, best))
    return standardise(columns)


def item_evidence(
    ranks: ArrayLike | SparseRuns, depth: int, score: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return what is known of each item before it is judged, [item, column], and how firmly each column is held near 0.

    What the pooled runs say, and the imported scores, NaN where there is none: what a program said of the documents may
    count for much.
    """
    # A file that is all there is may have come without runs: then nothing is known before.
    table = ranks if isinstance(ranks, SparseRuns) else as_ranks(ranks)
    columns = [rank_features(table, depth) if table.n_runs else np.zeros((table.n_items, 0))]
    ridge = [np.full(columns[0].shape[1], FEATURE_RIDGE)]
    if score is not None:
        missing = np.isnan(score)
        columns += [np.where(missing, 0.5, score)[:, None], missing[:, None].astype(float)]
        ridge.append(np.array([SCORE_RIDGE, FEATURE_RIDGE]))
    return np.concatenate(columns, axis=1), np.concatenate(ridge)


def standardise(features: ArrayLike) -> FloatArray:
    """Return the columns with mean 0 and standard deviation 1 over the items; a constant column becomes 0.

    Raises
    ------
    ValueError
        Not two axes, or a value that is not finite.

    Examples
    --------
    >>> standardise([[0.0, 7.0], [2.0, 7.0]]).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    columns = np.asarray(features, dtype=np.float64)
    if columns.ndim != 2:
        raise ValueError(f"features must have shape (n_items, n_features), got {columns.shape}")
    if not np.isfinite(columns).all():
        raise ValueError(f"features must be finite, got {columns[~np.isfinite(columns)][0]}")
    result = np.zeros(columns.shape)
    for place, column in enumerate(columns.T):  # one at a time, for the sake of memory
        largest = np.abs(column).max(initial=0.0)
        if largest == 0.0:
            continue
        scaled = column / largest
        scaled -= scaled.mean()
        spread = np.sqrt(np.square(scaled).mean())
        if spread > 1e-9:  # what is left of a constant is rounding
            result[:, place] = scaled / spread
    return result


def posterior_prior(
    prior: ArrayLike, score: ArrayLike, *, sensitivity: float, specificity: float
) -> FloatArray:
    """Return the probability of relevance given the score of a machine assessor with assumed error rates (Bayes' rule).

    It serves the sizes of a design, and as the prior of `cross_fitted`, which corrects what the assumption gets
    wrong. A raw label of a machine judge never enters an estimate.

    Parameters
    ----------
    prior : array, shape (n_items,)
        Probability of relevance before, within (0, 1).
    score : array, shape (n_items,)
        How surely the machine says relevant, within [0, 1]; 1/2 says nothing.
    sensitivity, specificity : float
        Within (0, 1): a judge believed to be infallible would leave items that can never be drawn.

    Raises
    ------
    ValueError
        Something outside these bounds.

    Examples
    --------
    >>> posterior_prior([0.5, 0.5], [1.0, 0.5], sensitivity=0.75, specificity=0.75).tolist()
    [0.75, 0.5]
    """
    before = _open_probabilities("prior", prior)
    says = probabilities("score", score)
    _require_length("score", says.shape[0], before.size)
    for name, value in (("sensitivity", sensitivity), ("specificity", specificity)):
        if not 0.0 < value < 1.0:
            raise ValueError(f"{name} must be within (0, 1), got {value}")
    if_relevant = before * (says * sensitivity + (1.0 - says) * (1.0 - sensitivity))
    if_not = (1.0 - before) * (says * (1.0 - specificity) + (1.0 - says) * specificity)
    return np.asarray(if_relevant / (if_relevant + if_not), dtype=np.float64)


# ---- predictions -----------------------------------------------------------------------------------


def cross_fitted(
    *,
    features: ArrayLike,
    topic_index: ArrayLike,
    fold: ArrayLike,
    prior: ArrayLike,
    labelled: ArrayLike,
    label: ArrayLike,
    feature_ridge: ArrayLike = FEATURE_RIDGE,
    topic_ridge: float = TOPIC_RIDGE,
) -> FloatArray:
    """Return f, the predicted share of the largest gain of every item, within (0, 1).

    f of an item never uses a label of the item's own fold. The model is logit f = logit(prior) + shift + slope *
    (logit(prior) - its mean) + features * b + topic's intercept, every term shrunk towards 0. Without labels f
    is the prior.

    Parameters
    ----------
    features : array, shape (n_items, n_features)
        `rank_features`, and whatever else is known of the whole frame, such as a machine judge's scores. They are
        standardised here. About 30 columns at most.
    topic_index, fold : int arrays, shape (n_items,)
    prior : array, shape (n_items,)
        Within (0, 1): `sampling.pooling.prior_utility` or `posterior_prior`.
    labelled : int array, shape (n_labels,)
        Places of items with a label. An item with two labels comes twice.
    label : array, shape (n_labels,)
        Gain / largest gain, within [0, 1].
    feature_ridge : float or array, shape (n_features,)
        Precision of the coefficients of the standardised features around 0, before any label. Less for a
        column that is expected to say much: a column's coefficient has sd 1/sqrt(feature_ridge).
    topic_ridge : float
        The same of the topics' intercepts.

    Raises
    ------
    ValueError
        Arrays that do not fit together, or values outside these bounds.
    """
    model = prediction_model(
        features=features,
        topic_index=topic_index,
        prior=prior,
        feature_ridge=feature_ridge,
        topic_ridge=topic_ridge,
    )
    parts, part = model.folds(fold)
    problem, place = model.problem(labelled, label)
    fits = fits_without_each_fold(problem, part[place], parts)
    return share_of_gain(model.logits(*fits, part))


@dataclass(frozen=True)
class PredictionModel:
    """The regression of `cross_fitted` on every item of the frame, before any label."""

    before: FloatArray  # logit of the prior
    columns: FloatArray  # [column, item]: the shift, the slope of the prior, the features in their order
    ridges: FloatArray
    group: IndexArray  # the item's topic
    n_groups: int
    group_ridge: float

    def folds(self, fold: ArrayLike) -> tuple[int, IndexArray]:
        """Return how many folds there are, and that of every item, from 0."""
        part = _whole_numbers("fold", fold)
        _require_length("fold", part.size, self.before.size)
        parts, part = np.unique(part, return_inverse=True)
        return parts.size, part

    def problem(self, labelled: ArrayLike, label: ArrayLike) -> tuple[LogisticProblem, IndexArray]:
        """Return the regression on these labels, and the places of the items that have them."""
        place, share = _labels(labelled, label, self.before.size)
        return LogisticProblem(
            self.columns[:, place],
            share,
            self.before[place],
            self.group[place],
            self.n_groups,
            self.ridges,
            self.group_ridge,
        ), place

    def logits(
        self, coefficients: FloatArray, effects: FloatArray, fit: IndexArray, items: IndexArray | None = None
    ) -> FloatArray:
        """Return the logit of the items, or of all: of each by its own fit, [item], of the coefficients [fit, column].

        Column by column: not a bit of it may depend on which other items there are.
        """
        here = slice(None) if items is None else items
        eta = self.before[here] + effects[fit, self.group[here]]
        for column, of_fit in zip(self.columns, coefficients.T, strict=True):
            eta += of_fit[fit] * column[here]
        return np.asarray(eta)


def prediction_model(
    *,
    features: ArrayLike,
    topic_index: ArrayLike,
    prior: ArrayLike,
    feature_ridge: ArrayLike = FEATURE_RIDGE,
    topic_ridge: float = TOPIC_RIDGE,
) -> PredictionModel:
    """Return the model of `cross_fitted`, of its arguments.

    Raises
    ------
    ValueError
        Arrays that do not fit together, or ridges that are not positive.
    """
    probability, scaled = _open_probabilities("prior", prior), standardise(features)
    n_items = probability.size
    topic = _whole_numbers("topic_index", topic_index)
    for name, length in (("features", scaled.shape[0]), ("topic_index", topic.size)):
        _require_length(name, length, n_items)
    ridge = np.broadcast_to(np.asarray(feature_ridge, dtype=np.float64), (scaled.shape[1],))
    if not (np.all((ridge > 0.0) & (ridge < np.inf)) and 0.0 < topic_ridge < np.inf):
        raise ValueError(f"ridges must be positive and finite, got {ridge.tolist()} and {topic_ridge}")
    before = scipy.special.logit(probability)
    columns = np.concatenate([np.ones((1, n_items)), (before - before.mean())[None, :], scaled.T])
    columns = np.ascontiguousarray(columns)  # each in one piece: items are taken from one after the other
    ridges = np.concatenate([[CALIBRATION_RIDGE, CALIBRATION_RIDGE], ridge])
    topics, group = np.unique(topic, return_inverse=True)
    return PredictionModel(before, columns, ridges, group, topics.size, topic_ridge)


def share_of_gain(eta: FloatArray) -> FloatArray:
    """Return the probability of a logit; of one beyond 30 that of 30."""
    return np.asarray(scipy.special.expit(np.clip(eta, -_FARTHEST, _FARTHEST)), dtype=np.float64)


def _labels(labelled: ArrayLike, label: ArrayLike, n_items: int) -> tuple[IndexArray, FloatArray]:
    """Return the places of labelled items and their labels; ValueError unless they fit together and the frame."""
    place, share = _whole_numbers("labelled", labelled), np.asarray(label, dtype=np.float64)
    if place.size and place.max() >= n_items:
        raise ValueError(f"labelled must be below {n_items}, the number of items, got {place.max()}")
    if share.shape != place.shape:
        raise ValueError(
            f"label must have one value per labelled item, {place.size}, got shape {share.shape}"
        )
    if not np.all((share >= 0.0) & (share <= 1.0)):
        raise ValueError(f"label must be within [0, 1], got {share[~((share >= 0.0) & (share <= 1.0))][0]}")
    return place, share


def _open_probabilities(name: str, values: ArrayLike) -> FloatArray:
    """Return the values as floats; ValueError unless each lies within (0, 1)."""
    array = numbers(name, values)
    refused = array[(array <= 0.0) | (array >= 1.0)]
    if refused.size:
        raise ValueError(f"{name} must be within (0, 1), got {refused[0]}")
    return array


def _whole_numbers(name: str, values: ArrayLike) -> IndexArray:
    """Return the values as integers; ValueError unless they are integers of one axis, at least 0."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise ValueError(f"{name} must be integers of one axis, got {array.dtype} of shape {array.shape}")
    if array.size and array.min() < 0:
        raise ValueError(f"{name} must be at least 0, got {array.min()}")
    return np.asarray(array, dtype=np.int64)


def _require_length(name: str, length: int, n_items: int) -> None:
    if length != n_items:
        raise ValueError(f"{name} must have {n_items} items, got {length}")
