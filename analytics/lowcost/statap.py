"""statAP: average precision of one topic from documents sampled with unequal probabilities.

The value is that of `sampling.rejudging.sampled_average_precision`, which is the product's AP with all predictions 0.
The two variances are there under their names, to compare with: neither gives an interval that holds, because the bias
of the ratio, not its variance, makes such intervals miss. See docs/methods/sampled-measures.md.

Source: Carterette and Soboroff (2010), section 2; the Million Query track.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analytics.estimation.estimate import Floats, Refusal
from sampling.rejudging import SampledTopic, relevance_sums, sampled_average_precision

StatapForm = Literal["usual", "printed"]
EmptyTopics = Literal["zero", "skip"]
FORMS: tuple[StatapForm, ...] = get_args(StatapForm)
EMPTY_TOPICS: tuple[EmptyTopics, ...] = get_args(EmptyTopics)
SPREAD = 0.1  # what the track's program adds to the number of documents that a run returns


def statap(topic: SampledTopic, form: StatapForm = "usual") -> Floats:
    """Return statAP of every run: (1/R) sum x prec / pi, with R = sum x / pi.

    prec = (1 + A) / rank, A the sum of 1 / pi of the relevant documents above. The form "printed" has 1 / pi in place
    of the 1, as the paper prints it: a single relevant document at rank 5 with pi .05 then has AP 4. A ratio of two
    estimates: not unbiased, and it may exceed 1. 0 for a topic without a sampled relevant document.

    Examples
    --------
    >>> topic = SampledTopic.of([[5]], [1], [0.05])
    >>> statap(topic).tolist(), statap(topic, "printed").round(6).tolist()
    ([0.2], [4.0])
    """
    if form not in FORMS:
        raise ValueError(f"form must be one of {FORMS}, got {form!r}")
    if form == "usual":
        return sampled_average_precision(topic)
    weights = topic.weights
    _, above, _ = relevance_sums(topic)
    precision = np.where(np.isfinite(topic.ranks), (above + weights) / topic.ranks, 0.0)
    return np.asarray(precision @ weights / (weights.sum() or 1.0))


def linearised_variance(topic: SampledTopic, joint_probability: ArrayLike | None = None) -> Floats:
    """Return the linearised variance of statAP of every run.

    sum over relevant d, e of (1 - pi_d pi_e / pi_de) e_d e_e / R^2, pi_dd = pi_d, with e = (prec + c - AP) / pi and c
    the sum over relevant documents below of 1 / (pi rank); prec and c are 0 where the run does not return d. 0 for a
    topic without a sampled relevant document.

    Parameters
    ----------
    joint_probability : (n_documents, n_documents) array
        pi_de, the diagonal is not read. None: the documents were drawn independently, so that only d = e counts.

    Examples
    --------
    >>> linearised_variance(SampledTopic.of([[1, 2]], [1, 1], [1, 1])).tolist()
    [0.0]
    """
    chance = topic.inclusion_probability
    total = topic.weights.sum()
    if not total:
        return np.zeros(len(topic.ranks))
    precision, below = _precision_and_below(topic)
    residual = (precision + below - sampled_average_precision(topic)[:, np.newaxis]) * topic.weights
    if joint_probability is None:
        return np.asarray((residual**2) @ (1.0 - chance) / total**2)
    parts = residual @ _dependence(chance, joint_probability) * residual
    return np.asarray(parts.sum(axis=1) / total**2)


def program_variance(topic: SampledTopic) -> Floats:
    """Return the variance of statAP of every run as the Million Query track's program computes it, at most 1.

    [sum (1 - pi) y^2 - ((sum y)^2 - sum y^2) / (n - 1) + sum (1 - pi) c^2 / pi^2] / R^2 * n / (m + .1), the sums over
    relevant documents, y = (prec - AP) / pi, n judged documents, m of them returned. With one judged document there
    are no pairs. 0 for a topic without a sampled relevant document.
    """
    chance, weights, n_documents = topic.inclusion_probability, topic.weights, topic.is_relevant.size
    total = weights.sum()
    if not total:
        return np.zeros(len(topic.ranks))
    precision, below = _precision_and_below(topic)
    y = (precision - sampled_average_precision(topic)[:, np.newaxis]) * weights
    squares = (y**2).sum(axis=1)
    pairs = (y.sum(axis=1) ** 2 - squares) / max(n_documents - 1, 1)
    own, others = (y**2) @ (1.0 - chance), (below * weights) ** 2 @ (1.0 - chance)
    n_returned = np.isfinite(topic.ranks).sum(axis=1)
    variance = (own - pairs + others) / total**2 * n_documents / (n_returned + SPREAD)
    return np.asarray(np.minimum(variance, 1.0))


def _precision_and_below(topic: SampledTopic) -> tuple[Floats, Floats]:
    """Return prec and c of run and document, 0 where the run does not return it."""
    _, above, below = relevance_sums(topic)
    is_returned = np.isfinite(topic.ranks)
    return np.where(is_returned, (1.0 + above) / topic.ranks, 0.0), np.where(is_returned, below, 0.0)


def _dependence(chance: Floats, joint_probability: ArrayLike) -> Floats:
    """Return 1 - pi_d pi_e / pi_de."""
    joint = np.array(joint_probability, dtype=np.float64)
    if joint.shape != (chance.size, chance.size):
        raise ValueError(f"joint_probability must have shape {(chance.size, chance.size)}, got {joint.shape}")
    np.fill_diagonal(joint, chance)
    refused = joint[~((joint > 0) & (joint <= 1))]
    if refused.size:
        raise ValueError(f"joint_probability must be in (0, 1], got {refused[0]}")
    return np.asarray(1.0 - np.outer(chance, chance) / joint)


@dataclass(frozen=True)
class TopicMean:
    """The mean of a measure over topics: `value` [run], of `n_topics` topics, and the empty ones among all."""

    value: Floats
    n_topics: int
    n_empty: int


def mean_over_topics(
    values: Floats, is_empty: NDArray[np.bool_], empty_topics: EmptyTopics = "zero"
) -> TopicMean | Refusal:
    """Return the mean over topics of values [run, topic]; a topic is empty where no sampled document is relevant.

    "zero" counts an empty topic as 0, as AP does elsewhere in the product; "skip" leaves it out, as the track's
    program does. Refused where every topic is empty.

    Examples
    --------
    >>> mean_over_topics(np.array([[0.5, 0.0]]), np.array([False, True]), "skip")
    TopicMean(value=array([0.5]), n_topics=1, n_empty=1)
    """
    if empty_topics not in EMPTY_TOPICS:
        raise ValueError(f"empty_topics must be one of {EMPTY_TOPICS}, got {empty_topics!r}")
    n_empty = int(np.count_nonzero(is_empty))
    if n_empty == is_empty.size:
        return Refusal(f"no sampled document is relevant in any of the {n_empty} topics")
    if empty_topics == "skip":
        return TopicMean(values[:, ~is_empty].mean(axis=1), is_empty.size - n_empty, n_empty)
    return TopicMean(np.where(is_empty, 0.0, values).mean(axis=1), is_empty.size, n_empty)
