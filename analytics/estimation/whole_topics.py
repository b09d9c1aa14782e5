"""Whole topics: any measure from topics that were taken with chances of their own and judged completely.

    value = sum omega f + sum_taken omega (theta - f)/rho      V = sum_taken (1 - rho) (omega (theta - f)/rho)^2

theta is a taken topic's value, known because all that it needs is judged; f predicts the value of every topic without
the topic's own judgments; omega is the topic's share of the traffic, rho the chance that it was taken.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analytics.estimation.checks import finite, integers, probabilities
from analytics.estimation.estimate import (
    FEWEST_ITEMS,
    Estimates,
    Floats,
    Refusal,
    estimates,
    few_items_warning,
    refused_where,
)
from analytics.estimation.estimators import poisson_degrees_of_freedom
from analytics.estimation.targets import TargetWeights, rows_alone

NOUN = "judged topics"
SOURCE = "drawing of topics"  # of errors, where the judged grades are the standard
# Precisions before any topic is judged, where one topic counts 1: of the shift of all values, of the slope of the
# plug-in value and of that of the runs' agreement, both in standard deviations over the topics. With 1, 1 and 10 the
# intervals from 30 topics were 3 % wider and covered a little less often.
RIDGES = np.array([10.0, 30.0, 30.0])


@dataclass(frozen=True, eq=False)
class TakenTopics:
    """Which topics were taken, with which chance, and how much each counts.

    Attributes
    ----------
    share : array [topic]
        omega, above 0. The value is a weighted mean where they sum to 1.
    probability : array [topic]
        rho, within (0, 1].
    taken : bool array [topic]

    Raises
    ------
    ValueError
        A share or chance that is 0, negative or not finite; arrays of different lengths; a certain topic not taken.
    """

    share: Floats
    probability: Floats
    taken: NDArray[np.bool_]

    def __post_init__(self) -> None:
        taken = np.asarray(self.taken)
        if taken.dtype != np.bool_ or taken.ndim != 1 or taken.size == 0:
            raise ValueError(
                f"taken must be flat, boolean and not empty, got {taken.dtype}, shape {taken.shape}"
            )
        share = finite("share", self.share, taken.shape)
        if (share <= 0).any():
            raise ValueError(f"share must be above 0, got {share[share <= 0][0]}")
        chance = probabilities("probability", self.probability, taken.size)
        if (chance[~taken] == 1).any():
            raise ValueError("a topic of probability 1 must be taken")
        for name, array in {"share": share, "probability": chance, "taken": taken}.items():
            object.__setattr__(self, name, array)


def whole_topics(
    topics: TakenTopics,
    value: ArrayLike,
    predicted: ArrayLike,
    *,
    targets: TargetWeights | None = None,
    fewest: int = FEWEST_ITEMS,
) -> Estimates:
    """Return the weighted mean over all topics of every target's values, with its 95 % confidence interval.

    Assumption: topics were taken independently with the recorded chances, and the values of the taken ones are right.
    f is fixed without the topic's own draw and judgments (`predicted_values`): then the value is exactly unbiased,
    whatever f and the measure are. V is unbiased for fixed f; it leaves out how the folds' parts move together, which
    is of second order. t with ``2 V^2 / sum_taken (1 - rho) (...)^2`` degrees of freedom, at least 1, as `two_phase`
    has them. The topics are these: the interval does not contain the choice of other ones.

    Refused below `fewest` taken topics and where all errors are 0, unless every topic is certain.

    Parameters
    ----------
    value : array [run, topic]
        theta, read where the topic was taken.
    predicted : array [run, topic]
        f, of all topics.
    targets : TargetWeights, optional
        Which runs and pairs of runs are wanted; each row for itself where left out.

    Raises
    ------
    ValueError
        Arrays that do not fit or are not finite.

    Source: Horvitz and Thompson (1952); Cassel, Särndal and Wretman (1976); Satterthwaite (1946).
    """
    chance, taken = topics.probability, topics.taken
    f = np.atleast_2d(np.asarray(predicted, dtype=np.float64))
    theta = np.atleast_2d(np.asarray(value, dtype=np.float64))
    shape = (f.shape[0], taken.size)
    f = finite("predicted", f, shape)
    theta = finite("value", np.where(taken, theta, 0.0) if theta.shape == shape else theta, shape)
    wanted = rows_alone(f.shape[0]) if targets is None else targets
    surprise = np.where(taken, topics.share * (theta - f) / chance, 0.0)
    found = wanted.of_targets((topics.share * f).sum(axis=1) + surprise.sum(axis=1))
    variance, spread = np.zeros((2, len(wanted)))
    for part, errors in wanted.blocks(surprise):
        terms = (1 - chance) * errors**2
        variance[part], spread[part] = terms.sum(axis=1), ((1 - chance) * terms**2).sum(axis=1)
    n_taken, is_certain = int(np.count_nonzero(taken)), bool((chance == 1).all())
    return estimates(
        found,
        {"drawing": variance},
        degrees_of_freedom=poisson_degrees_of_freedom(variance, spread),
        n=np.full(len(wanted), n_taken),
        refusals={} if is_certain else topic_refusals(variance, n_taken, fewest),
        warning=lambda n: "" if is_certain else few_items_warning(n, NOUN),
    )


def topic_refusals(variance: Floats, n_taken: int, fewest: int, noun: str = NOUN) -> dict[int, Refusal]:
    """Return by place the targets without enough topics, or whose variance cannot be estimated."""
    if n_taken < fewest:
        reason = f"{n_taken} {noun}; at least {fewest} are needed"
        return refused_where(variance >= 0, lambda _: Refusal(reason, fewest - n_taken))
    same = Refusal(
        f"the values of the {n_taken} {noun} are all as predicted, so the error cannot be estimated; take more topics"
    )
    return refused_where((fewest > 0) & (variance == 0), lambda _: same)


def predicted_values(
    plug_in: ArrayLike, agreement: ArrayLike, value: ArrayLike, taken: ArrayLike, fold: ArrayLike
) -> Floats:
    """Return f [run, topic]: the value of every topic, predicted from the judged topics of the other folds.

    ``f = plug-in + shift + slope (plug-in - its mean) + slope (agreement - its mean)``, by least squares for every run,
    every coefficient shrunk towards 0: without judged topics f is the plug-in value. As f of a topic uses neither the
    draw nor the judgments of its own fold, `whole_topics` is exactly unbiased.

    Parameters
    ----------
    plug_in : array [run, topic]
        The value as it is expected before anything is judged.
    agreement : array [topic]
        How far the runs agree on the topic.
    value : array [run, topic]
        Read where the topic was taken.
    taken : bool array [topic]
    fold : int array [topic]
        From a hash of the topics' ids (`sampling.prediction.folds`), fixed before the draw.

    Raises
    ------
    ValueError
        Arrays that do not fit together or are not finite.
    """
    before = finite("plug_in", np.atleast_2d(np.asarray(plug_in, dtype=np.float64)))
    n_topics = before.shape[1]
    is_taken = np.asarray(taken, dtype=np.bool_)
    part = integers("fold", fold, 0)
    if is_taken.shape != (n_topics,) or part.shape != (n_topics,):
        raise ValueError(
            f"taken and fold must be of {n_topics} topics, got {is_taken.shape} and {part.shape}"
        )
    theta = np.atleast_2d(np.asarray(value, dtype=np.float64))
    if theta.shape != before.shape:
        raise ValueError(f"value must have shape {before.shape}, got {theta.shape}")
    surprise = finite("value", np.where(is_taken, theta - before, 0.0))
    alike = np.broadcast_to(finite("agreement", agreement, (n_topics,)), before.shape)
    columns = np.stack([np.ones(before.shape), standardise(before), standardise(alike)], axis=-1)
    f = before.copy()
    for k in np.unique(part):
        own, others = part == k, np.flatnonzero(is_taken & (part != k))
        x, y = columns[:, others], surprise[:, others]
        squares = x.transpose(0, 2, 1) @ x + np.diag(RIDGES)
        coefficients = np.linalg.solve(squares, (x * y[..., None]).sum(axis=1)[..., None])
        f[:, own] += (columns[:, own] @ coefficients)[..., 0]
    return f


def standardise(rows: Floats, known: NDArray[np.bool_] | None = None) -> Floats:
    """Return the rows with mean 0 and standard deviation 1 over `known`, default all; what is constant becomes 0."""
    some = rows if known is None else rows[:, known]
    centred = rows - some.mean(axis=1, keepdims=True)
    spread = some.std(axis=1, keepdims=True)
    return np.asarray(np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 1e-9))
