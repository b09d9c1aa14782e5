"""Predictions of items' gains for the difference estimator, each fitted without the item's own label.

The estimator ``sum_frame f w + sum_drawn (u - f) w / pi`` is exactly unbiased under Poisson sampling for any f
that does not depend on the item's own inclusion and label. So the frame is cut into folds by a hash before
anything is drawn, and f on a fold is fitted on the labels of the other folds (cross-fitting). A good f makes
the interval narrow; a bad one only makes it wide.

The model is a logistic regression of label / largest gain on the prior guess and on what the ranks of all known
runs say, with an intercept per topic. All its coefficients are shrunk towards "the prior is right": without
labels f is the prior itself, a few labels calibrate it, many labels replace it. Nothing here is random.
"""

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from sampling.designs import normalised
from sampling.draws import IndexArray, permanent_random_numbers
from sampling.measures import FloatArray
from sampling.sizes import as_finite, as_nonnegative, as_probabilities, require_same_items

N_FOLDS = 10
RIDGE = 3.0
TOPIC_RIDGE = 2.0
CALIBRATION_RIDGE = 0.3
_FARTHEST = 30.0  # logits beyond it are as certain as a double can say


# ---- folds and features: from the frame only ------------------------------------------------------


def folds(topic_ids: ArrayLike, doc_ids: ArrayLike, seed: int, n_folds: int = N_FOLDS) -> IndexArray:
    """Return the fold of each (topic, document), 0 to n_folds - 1: a function of the two ids and the seed only.

    The numbers are those of a seed derived from `seed`, so folds say nothing about which items the draw of the
    same seed selects.

    Raises
    ------
    ValueError
        Fewer than 2 folds, or as `permanent_random_numbers`.
    """
    if n_folds < 2:
        raise ValueError(f"n_folds must be at least 2, got {n_folds}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed must be within [0, 2^64), got {seed}")
    digest = blake2b(b"folds", key=int(seed).to_bytes(8, "little"), digest_size=8).digest()
    numbers = permanent_random_numbers(list(topic_ids), list(doc_ids), int.from_bytes(digest, "little"))  # type: ignore[arg-type]
    return np.minimum(np.floor(numbers * n_folds), n_folds - 1).astype(np.int64)


def rank_features(ranks: ArrayLike, depth: int) -> FloatArray:
    """Return what the ranks of all known runs say about each item, array [n_items, n_features].

    Counts enter as the log odds of being returned, (count + 1/2)/(n_runs - count + 1/2), at cutoffs 10, 30 and
    the depth; ranks as the mean over runs of 1/rank and of 1/(rank + 60), and as the logarithm of the best
    rank. Every column is standardised over the frame; one that says nothing is 0. The same columns for
    any number of runs, and their order does not matter.

    Parameters
    ----------
    ranks : int array, shape (n_runs, n_items)
        0 = not returned. Ranks below the depth count as not returned.
    depth : int
        Depth of the pool.

    Raises
    ------
    ValueError
        Ranks of the wrong shape, type or sign; depth below 1.
    """
    rank = np.asarray(ranks)
    if rank.ndim != 2 or rank.shape[0] < 1:
        raise ValueError(f"ranks must have shape (n_runs, n_items) with at least 1 run, got {rank.shape}")
    if rank.dtype.kind not in "iu":
        raise ValueError(f"ranks must be integers, got dtype {rank.dtype}")
    if rank.size and int(rank.min()) < 0:
        raise ValueError(f"ranks must be at least 0 (0 = not returned), got {int(rank.min())}")
    if depth < 1:
        raise ValueError(f"depth must be at least 1, got {depth}")
    n_runs, n_items = rank.shape
    cutoffs = sorted({min(10, depth), min(30, depth), depth})
    counts = np.zeros((len(cutoffs), n_items))
    reciprocal, fused = np.zeros(n_items), np.zeros(n_items)
    best = np.full(n_items, depth + 1.0)
    for run in rank:  # one run at a time: memory stays at a few rows, however many runs there are
        returned = np.where((run == 0) | (run > depth), depth + 1, run).astype(np.float64)
        inside = returned <= depth
        counts += returned[None, :] <= np.array(cutoffs)[:, None]
        reciprocal += inside / returned
        fused += inside / (returned + 60.0)
        np.minimum(best, returned, out=best)
    odds = np.log((counts + 0.5) / (n_runs - counts + 0.5))
    columns = [*odds, reciprocal / n_runs, fused / n_runs, np.log(best)]
    return standardised(np.stack(columns, axis=1))


def standardised(features: ArrayLike) -> FloatArray:
    """Return the columns with mean 0 and standard deviation 1 over the items; constant columns become 0.

    Examples
    --------
    >>> standardised([[1.0, 7.0], [3.0, 7.0]]).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    columns = np.array(features, dtype=np.float64)
    if columns.ndim != 2:
        raise ValueError(f"features must have shape (n_items, n_features), got {columns.shape}")
    if not np.isfinite(columns).all():
        raise ValueError(f"features must be finite, got {columns[~np.isfinite(columns)][0]}")
    if columns.size == 0:
        return columns
    largest = np.abs(columns).max(axis=0)
    columns /= np.where(largest > 0.0, largest, 1.0)
    columns -= columns.mean(axis=0)
    spread = np.sqrt(np.square(columns).mean(axis=0))
    told = spread > 1e-9
    columns /= np.where(told, spread, 1.0)
    return np.where(told, columns, 0.0)


def posterior_prior(
    prior: ArrayLike, score: ArrayLike, *, sensitivity: float, specificity: float
) -> FloatArray:
    """Return the probability of relevance after a machine judge of assumed quality has spoken (Bayes' rule).

    It serves the sizes of a design and as prior of `cross_fitted`, which corrects what the assumption gets wrong.

    Parameters
    ----------
    prior : array, shape (n_items,)
        Probability of relevance before, within (0, 1).
    score : array, shape (n_items,)
        How surely the machine says relevant, within [0, 1]; 1/2 says nothing.
    sensitivity, specificity : float
        Within (0, 1): certainty would leave items that can never be drawn.

    Raises
    ------
    ValueError
        Something outside these bounds.

    Examples
    --------
    >>> posterior_prior([0.5, 0.5], [1.0, 0.5], sensitivity=0.75, specificity=0.75).tolist()
    [0.75, 0.5]
    """
    guess = _open_probabilities("prior", prior)
    says = as_probabilities("score", score)
    require_same_items("score", says, guess.size)
    for name, value in (("sensitivity", sensitivity), ("specificity", specificity)):
        if not 0.0 < value < 1.0:
            raise ValueError(f"{name} must be within (0, 1), got {value}")
    if_relevant = guess * (says * sensitivity + (1.0 - says) * (1.0 - sensitivity))
    if_not = (1.0 - guess) * (says * (1.0 - specificity) + (1.0 - says) * specificity)
    return np.asarray(if_relevant / (if_relevant + if_not), dtype=np.float64)


def _open_probabilities(name: str, values: ArrayLike) -> FloatArray:
    """Return the values as floats; ValueError unless each lies within (0, 1)."""
    array = as_nonnegative(name, values, 1)
    refused = array[(array <= 0.0) | (array >= 1.0)]
    if refused.size:
        raise ValueError(f"{name} must be within (0, 1), got {refused[0]}")
    return array


# ---- the fit ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LogisticFit:
    """Return of `penalised_logistic`.

    Attributes
    ----------
    coefficients : array, shape (n_columns,)
    group_effects : array, shape (n_groups,)
        0 for groups without labels.
    steepness : float
        Largest absolute entry of the gradient: 0 at the optimum.
    steps : int
        Newton steps taken.
    """

    coefficients: FloatArray
    group_effects: FloatArray
    steepness: float
    steps: int


def penalised_logistic(
    columns: FloatArray,
    target: FloatArray,
    weight: FloatArray,
    group: IndexArray,
    n_groups: int,
    *,
    centre: FloatArray,
    ridge: FloatArray,
    group_ridge: float,
    most_steps: int = 60,
    damped: bool = True,
) -> LogisticFit:
    """Return the coefficients b and group effects a that minimise the penalised fractional logistic loss,

    sum_i weight_i [log(1 + exp(eta_i)) - y_i eta_i] + 1/2 sum_j ridge_j (b_j - centre_j)^2 + 1/2 group_ridge
    sum a^2, with eta_i = sum_j b_j x_ji + a_group(i) and y in [0, 1].

    Newton's method with step halving: every step lowers the loss, which is strictly convex, so it ends at the
    optimum also for separable labels. Group effects are eliminated by their Schur complement, so the cost is
    linear in the labels and in the groups. `damped` False takes full steps, for the test that shows why not.

    Source: Papke and Wooldridge (1996) for the fractional response; McCullagh and Nelder (1989) for the steps.

    Parameters
    ----------
    columns : array, shape (n_columns, n_labels)
    target, weight, group : arrays, shape (n_labels,)
    centre, ridge : arrays, shape (n_columns,)
        ridge positive.
    """
    coefficients, effects = centre.copy(), np.zeros(n_groups)

    def logits(b: FloatArray, a: FloatArray) -> FloatArray:
        eta = a[group]
        for row, value in zip(columns, b, strict=True):
            eta = eta + value * row
        return eta

    def loss(eta: FloatArray, b: FloatArray, a: FloatArray) -> float:
        fitted = (weight * (np.logaddexp(0.0, eta) - target * eta)).sum()
        return float(fitted + 0.5 * ((ridge * (b - centre) ** 2).sum() + group_ridge * (a**2).sum()))

    eta = logits(coefficients, effects)
    now = loss(eta, coefficients, effects)
    tolerance = 1e-9 * (1.0 + float(weight.sum()))
    steepness, step = np.inf, 0
    while True:
        mean = expit(eta)
        residual = weight * (mean - target)
        down = np.einsum("ji,i->j", columns, residual) + ridge * (coefficients - centre)
        down_groups = np.bincount(group, residual, n_groups) + group_ridge * effects
        steepness = float(max(np.abs(down).max(initial=0.0), np.abs(down_groups).max(initial=0.0)))
        if steepness <= tolerance or step == most_steps:
            break
        move, move_groups = _newton_step(
            columns, weight * mean * (1.0 - mean), group, n_groups, ridge, group_ridge, down, down_groups
        )
        slope = float((move * down).sum() + (move_groups * down_groups).sum())
        length = 1.0
        while True:
            b, a = coefficients - length * move, effects - length * move_groups
            eta_new = logits(b, a)
            value = loss(eta_new, b, a)
            if not damped or value <= now - 1e-4 * length * slope or length < 1e-10:
                break
            length /= 2.0
        step += 1
        if damped and value > now:
            break  # rounding: no lower loss can be told from here
        coefficients, effects, eta, now = b, a, eta_new, value
    return LogisticFit(coefficients, effects, steepness, step)


def _newton_step(
    columns: FloatArray,
    curvature: FloatArray,
    group: IndexArray,
    n_groups: int,
    ridge: FloatArray,
    group_ridge: float,
    down: FloatArray,
    down_groups: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the solution of Hessian * move = gradient, group effects eliminated first."""
    curved = columns * curvature
    hessian = np.einsum("ji,ki->jk", curved, columns) + np.diag(ridge)
    crossed = np.stack([np.bincount(group, row, n_groups) for row in curved])
    own = np.bincount(group, curvature, n_groups) + group_ridge
    schur = hessian - np.einsum("jt,kt->jk", crossed / own, crossed)
    move = np.linalg.solve(schur, down - (crossed * (down_groups / own)).sum(axis=1))
    return move, (down_groups - (crossed * move[:, None]).sum(axis=0)) / own


# ---- cross-fitted predictions ----------------------------------------------------------------------


def cross_fitted(
    *,
    features: ArrayLike,
    topic_index: ArrayLike,
    fold: ArrayLike,
    prior: ArrayLike,
    labelled: ArrayLike,
    label: ArrayLike,
    weight: ArrayLike | None = None,
    ridge: float = RIDGE,
    topic_ridge: float = TOPIC_RIDGE,
) -> FloatArray:
    """Return f, the predicted share of the largest gain of every item, within (0, 1).

    f of an item never uses a label of its own fold. Every fold's model starts from "logit f = logit prior" and is
    moved by the labels of the other folds: intercept and slope of logit(prior), features, topic intercepts.

    Parameters
    ----------
    features : array, shape (n_items, n_features)
        `rank_features`, and any other columns known for the whole frame (a machine judge's scores). Standardised
        here. At most about 30.
    topic_index, fold : int arrays, shape (n_items,)
    prior : array, shape (n_items,)
        Within (0, 1): `prior_utility`, `posterior_prior`.
    labelled : int array, shape (n_labels,)
        Places of items with a label. An item may come more than once.
    label : array, shape (n_labels,)
        Gain / largest gain, within [0, 1].
    weight : array, shape (n_labels,), optional
        Relative importance of the labels; only its proportions within a fit matter.
    ridge, topic_ridge : float
        Precision that the features' coefficients and the topics' intercepts have before any label.

    Raises
    ------
    ValueError
        Arrays that do not fit together, or values outside these bounds.
    """
    guess = _open_probabilities("prior", prior)
    n_items = guess.size
    told = standardised(features)
    topic, part = _places("topic_index", topic_index, None), _places("fold", fold, None)
    place, share = _places("labelled", labelled, n_items), np.asarray(label, dtype=np.float64)
    for name, array in (("features", told.T), ("topic_index", topic), ("fold", part)):
        require_same_items(name, array, n_items)
    if share.shape != place.shape:
        raise ValueError(
            f"label must have one value per labelled item, {place.size}, got shape {share.shape}"
        )
    if share.size and not (share.min() >= 0.0 and share.max() <= 1.0):
        raise ValueError(f"label must be within [0, 1], got {share.min()} to {share.max()}")
    importance = np.ones(place.size) if weight is None else as_finite("weight", weight, place.size)
    if importance.size and importance.min() <= 0.0:
        raise ValueError(f"weight must be positive, got {importance.min()}")
    if not (0.0 < ridge < np.inf and 0.0 < topic_ridge < np.inf):
        raise ValueError(f"ridge and topic_ridge must be positive and finite, got {ridge} and {topic_ridge}")

    columns = np.concatenate([np.ones((1, n_items)), logit(guess)[None, :], told.T])
    n_topics = int(topic.max()) + 1
    centre = np.zeros(columns.shape[0])
    centre[1] = 1.0
    ridges = np.full(columns.shape[0], ridge)
    ridges[:2] = CALIBRATION_RIDGE
    predicted = np.empty(n_items)
    for k in np.unique(part):
        used = part[place] != k
        here, mine = place[used], part == k
        scale = importance[used].mean() if used.any() else 1.0
        fit = penalised_logistic(
            columns[:, here],
            share[used],
            importance[used] / scale,
            topic[here],
            n_topics,
            centre=centre,
            ridge=ridges,
            group_ridge=topic_ridge,
        )
        eta = (fit.coefficients[:, None] * columns[:, mine]).sum(axis=0) + fit.group_effects[topic[mine]]
        predicted[mine] = expit(np.clip(eta, -_FARTHEST, _FARTHEST))
    return predicted


def _places(name: str, values: ArrayLike, n_items: int | None) -> NDArray[np.int64]:
    """Return the values as integers of one axis; ValueError unless they are at least 0 and below n_items."""
    array = np.asarray(values)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers of one axis, got dtype {array.dtype}, shape {array.shape}")
    if array.size and (array.min() < 0 or (n_items is not None and array.max() >= n_items)):
        raise ValueError(f"{name} must be within [0, {n_items}), got {array.min()} to {array.max()}")
    return array.astype(np.int64)


# ---- sizes of a later batch ---------------------------------------------------------------------------


def learned_inclusion(
    contrast: ArrayLike,
    prediction: ArrayLike,
    fold: ArrayLike,
    *,
    frame_sizes: ArrayLike,
    earlier: ArrayLike,
    expected_count: float,
) -> FloatArray:
    """Return pi after an adaptive batch: at least the earlier pi, and sum pi = expected_count.

    Sizes are contrast * sqrt(f (1 - f)). What a fold may spend is fixed by the frame alone, and within a fold the
    scale uses that fold's predictions only, which know the other folds' labels only. So an item's pi does not
    depend on its own fold's labels, and the difference estimator stays exactly unbiased under Poisson, provided
    that f, here and in the estimate, uses labels of batches before this one.

    Parameters
    ----------
    contrast : array, shape (n_items,)
        As for `sampling.sizes.design_sizes`.
    prediction : array, shape (n_items,)
        `cross_fitted` on the labels so far.
    fold : int array, shape (n_items,)
    frame_sizes : array, shape (n_items,)
        Sizes that were fixed before any label; new judgments are shared out among folds in proportion to them.
    earlier : array, shape (n_items,)
        pi of the batches so far.
    expected_count : float
        Judgments in all, earlier ones included.

    Raises
    ------
    ValueError
        Arrays that do not fit together, or a count below what the earlier batches expect already.
    """
    moves = as_nonnegative("contrast", contrast, 1)
    f = _open_probabilities("prediction", prediction)
    part = _places("fold", fold, None)
    fixed = normalised(frame_sizes)
    before = as_probabilities("earlier", earlier)
    for name, array in (("prediction", f), ("fold", part), ("frame_sizes", fixed), ("earlier", before)):
        require_same_items(name, array, moves.size)
    if not before.sum() - 1e-9 <= expected_count < np.inf:
        raise ValueError(
            f"expected_count must be at least {before.sum()}, as expected so far, got {expected_count}"
        )

    sizes = moves * np.sqrt(f * (1.0 - f))
    pi = before.copy()
    for k in np.unique(part):
        mine = part == k
        wanted = before[mine].sum() + (expected_count - before.sum()) * fixed[mine].sum()
        pi[mine] = _raised(before[mine], sizes[mine], float(wanted))
    return pi


def _raised(before: FloatArray, sizes: FloatArray, wanted: float) -> FloatArray:
    """Return max(before, min(1, c * sizes)) with the c at which the sum is `wanted`, or as near as it can be."""
    if not np.any(sizes > 0.0):
        return before
    scaled = sizes / sizes.max()
    low, high = 0.0, 1.0 / scaled[scaled > 0.0].min()
    for _ in range(200):
        middle = 0.5 * (low + high)
        if np.maximum(before, np.minimum(1.0, middle * scaled)).sum() < wanted:
            low = middle
        else:
            high = middle
    return np.maximum(before, np.minimum(1.0, high * scaled))
