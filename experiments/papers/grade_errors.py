"""Errors of predicted grades, MAE and MSE: how far a run's scores lie from the judged gains.

For a run that predicts how relevant a document is, not only in which order. A linear measure, but each run has
its own utilities: U(S) = sum of w_S(i) * error_S(i), with w = 1/(documents returned for the topic * n_topics) and
error_S(i) = |score_S(i) - gain(i)| or its square.

Estimating it. One run: weights `error_weights`, utility `errors` of the items drawn. The difference of two runs is
one number with weights of 1 and the utility ``w_a e_a - w_b e_b`` per item. Sizes before any judgment: the weight
times the standard deviation of the error, from `errors_by_grade` and prior values of the grades' probabilities.

Source: Schnabel et al. (2016), Table 1, rows MAE and MSE, with |y| the number of documents returned.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sampling.measures.families import FloatArray
from sampling.measures.spelling import canonical, split_name


@dataclass(frozen=True)
class ErrorMeasure:
    """Return of `parse_error_measure`. `family` is "MAE" or "MSE"; `cutoff` None is the whole list."""

    name: str
    family: str
    cutoff: int | None


def parse_error_measure(name: str) -> ErrorMeasure:
    """Return the measure of a name: ``MAE``, ``MSE``, or with a cutoff ``MAE@100``.

    >>> parse_error_measure("MSE@100").cutoff
    100
    """
    parts = split_name(name)
    if parts.family not in {"MAE", "MSE"}:
        raise ValueError(f"error measure must be MAE or MSE, got {parts.family!r}")
    if parts.parameters:
        raise ValueError(f"{parts.family} takes the parameters [], got {next(iter(parts.parameters))!r}")
    return ErrorMeasure(canonical(parts.family, [], parts.cutoff), parts.family, parts.cutoff)


def error_weights(
    measure: ErrorMeasure, ranks: ArrayLike, topic_index: ArrayLike, n_topics: int
) -> FloatArray:
    """Return w = 1/(|y| n_topics) of every item that the run returns within the cutoff, 0 of the others.

    |y| is how many documents of the topic it returns within the cutoff; the frame must hold them all (a pool at
    least as deep as the cutoff). A topic for which it returns nothing contributes 0.

    Parameters
    ----------
    ranks : int array, shape (..., n_items)
        A run's rank of each frame item, 0 where it does not return it. Several runs are rows.
    topic_index : int array, shape (n_items,), in 0..n_topics-1

    Raises
    ------
    ValueError
        Ranks or topics that are not integers, negative, too large, or do not fit each other.

    Examples
    --------
    >>> error_weights(parse_error_measure("MAE"), [1, 2, 0, 1], [0, 0, 1, 1], n_topics=2).tolist()
    [0.25, 0.25, 0.0, 0.5]
    """
    rank, topic = np.asarray(ranks), np.asarray(topic_index)
    for name, array in (("ranks", rank), ("topic_index", topic)):
        if array.dtype.kind not in "iu":
            raise ValueError(f"{name} must be integers, got dtype {array.dtype}")
        if array.size and int(array.min()) < 0:
            raise ValueError(f"{name} must be at least 0, got {int(array.min())}")
    if topic.ndim != 1 or rank.ndim < 1 or rank.shape[-1] != topic.size:
        raise ValueError(f"ranks must end in an axis of {topic.size} items, got shape {rank.shape}")
    if n_topics < 1 or (topic.size and int(topic.max()) >= n_topics):
        raise ValueError(f"n_topics must be at least 1 and above every topic_index, got {n_topics}")
    weights = np.zeros((rank.size // max(1, topic.size), topic.size))
    inside = (rank > 0) & (rank <= (measure.cutoff or np.iinfo(np.int64).max))
    for row, within in zip(weights, inside.reshape(weights.shape), strict=True):
        returned = np.bincount(topic[within], minlength=n_topics)
        row[within] = 1.0 / (returned[topic[within]] * n_topics)
    return weights.reshape(rank.shape)


def errors(measure: ErrorMeasure, predicted: ArrayLike, gain: ArrayLike) -> FloatArray:
    """Return |predicted - gain| (MAE) or its square (MSE).

    `predicted` is the run's score of the item, on the scale of the gains; a score on another scale must be mapped
    to it first, by a rule fixed without these judgments. Where a run does not return the item any finite number
    does: its weight is 0.

    Raises
    ------
    ValueError
        Anything not finite; shapes that do not go together.

    Examples
    --------
    >>> errors(parse_error_measure("MSE"), [0.5, 3.0], [1, 1]).tolist()
    [0.25, 4.0]
    """
    score, true_gain = np.asarray(predicted, dtype=np.float64), np.asarray(gain, dtype=np.float64)
    for name, array in (("predicted", score), ("gain", true_gain)):
        if not np.isfinite(array).all():
            raise ValueError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}")
    try:
        distance = np.abs(score - true_gain)
    except ValueError:
        raise ValueError(
            f"predicted and gain must fit each other, got {score.shape} and {true_gain.shape}"
        ) from None
    return np.asarray(distance if measure.family == "MAE" else distance**2)


def errors_by_grade(measure: ErrorMeasure, predicted: ArrayLike, gains: ArrayLike) -> FloatArray:
    """Return [grade, item]: the error that each item would have if its grade were that.

    With prior values of the grades' probabilities it gives an item's expected error (the prediction f of the difference
    estimator) and its spread (for sizes).

    >>> errors_by_grade(parse_error_measure("MAE"), [0.5, 3.0], [0, 1, 3]).tolist()
    [[0.5, 3.0], [0.5, 2.0], [2.5, 0.0]]
    """
    scale = np.asarray(gains, dtype=np.float64)
    if scale.ndim != 1 or scale.size < 2:
        raise ValueError(f"gains must be flat with at least 2 grades, got shape {scale.shape}")
    return errors(measure, np.atleast_1d(np.asarray(predicted, dtype=np.float64))[None, :], scale[:, None])
