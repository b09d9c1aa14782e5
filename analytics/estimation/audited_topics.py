"""Audits of whole topics: any measure, corrected by the gold grades of topics that were audited completely.

A topic is taken by the draw with chance rho (1 where everything is judged), and of those taken the audit takes each
with chance a:

    value = sum omega g + sum_drawn omega (h - g)/rho + sum_audited omega (theta - h)/(rho a)

theta is the value by gold; h predicts it from the topic's labels, g without them; neither saw the topic's own audit.
The documents of a topic are audited together, so what counts as one is the topic.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analytics.estimation.checks import finite, integers
from analytics.estimation.estimate import (
    FEWEST_ITEMS,
    Estimates,
    Floats,
    Ints,
    estimates,
    few_items_warning,
)
from analytics.estimation.estimators import poisson_degrees_of_freedom
from analytics.estimation.targets import TargetWeights, rows_alone
from analytics.estimation.two_phase import LEAST_DRAWING, variance_terms
from analytics.estimation.whole_topics import (
    RIDGES,
    SOURCE,
    TakenTopics,
    predicted_values,
    standardise,
    topic_refusals,
)

NOUN = "audited topics"
GOLD_SOURCE = "gold of topics"
SOURCES = (SOURCE, "label noise", GOLD_SOURCE)


@dataclass(frozen=True, eq=False)
class TopicAudit:
    """Which topics have gold grades for all that was drawn of them, and with which chance.

    Attributes
    ----------
    probability : array [topic]
        a, within (0, 1] where the draw took the topic; read there alone.
    audited : bool array [topic]
    gold_grade : int array [judged]
        Read in audited topics. None where gold judges judged the drawn documents themselves: their labels are gold.
    """

    probability: Floats
    audited: NDArray[np.bool_]
    gold_grade: Ints | None = None


@dataclass(frozen=True, eq=False)
class TopicPrediction:
    """g of all topics and h of the drawn ones, [run, topic]."""

    before: Floats
    after: Floats


def audited_topics(
    topics: TakenTopics,
    audit: TopicAudit,
    value: ArrayLike,
    predicted: TopicPrediction,
    *,
    targets: TargetWeights | None = None,
    fewest: int = FEWEST_ITEMS,
) -> Estimates:
    """Return the weighted mean over all topics of every target's values by gold, with its 95 % confidence interval.

    Assumption: topics were drawn, and drawn topics audited, independently with the recorded chances; gold is right.
    Nothing is assumed about how assessors err. h of a topic without its own audit, g without its own draw and labels
    (`topic_prediction`): then the value is exactly unbiased, whatever the measure and the predictions are. V is that of
    `two_phase` with topics in the place of items, omega for w and no predicted variance; where everything is judged it
    is ``sum_audited (1 - a) (omega (theta - h)/a)^2``.

    t with ``2 V^2 / (sum_drawn (1 - rho) kappa^2 + sum_audited (1 - a) tau^2)`` degrees of freedom, at least 1
    (Satterthwaite): kappa and tau are what a topic adds to V. They count topics, not documents: where all is judged and
    n audited topics add alike they are 2n/(1 - a), and fewer the more of V is due to few topics, so that a quantile
    from documents, of which a topic has many, would be too small. The p-value of a difference is from the same t.

    Refused below `fewest` audited topics and where all errors are 0, unless every topic is certain.

    Parameters
    ----------
    value : array [run, topic]
        theta, read where the topic was audited.
    targets : TargetWeights, optional
        Which runs and pairs of runs are wanted; each row for itself where left out.

    Raises
    ------
    ValueError
        Arrays that do not fit, are not finite or not within their bounds; a topic audited that was not drawn.

    Source: Särndal, Swensson and Wretman (1992), chapter 9; Cochran (1977), chapter 11; Satterthwaite (1946).
    """
    drawn, audited = topics.taken, np.asarray(audit.audited, dtype=np.bool_)
    rho, a = topics.probability, _audit_chances(topics, audit)
    g = finite("before", np.atleast_2d(predicted.before))
    shape = (g.shape[0], drawn.size)
    g = finite("before", g, shape)
    theta = finite("value", np.where(audited, np.broadcast_to(np.asarray(value, float), shape), 0.0))
    h = finite("after", np.where(drawn, np.broadcast_to(np.asarray(predicted.after, float), shape), 0.0))
    h = np.where(audited & (a == 1), theta, h)  # nothing is left to predict
    wanted = rows_alone(g.shape[0]) if targets is None else targets
    omega = topics.share
    added = np.where(drawn, (h - g) / rho, 0.0) + np.where(audited, (theta - h) / (rho * a), 0.0)
    found = wanted.of_targets((omega * (g + added)).sum(axis=1))
    parts = np.zeros((4, len(wanted)))
    for part, rows in wanted.blocks(np.concatenate([omega * g, omega * h, omega * theta], axis=1)):
        before, after, gold = np.split(rows, 3, axis=1)
        terms = variance_terms(rho, a, audited, before, after, gold, np.zeros(drawn.size))
        predicted_part, correction, of_audit, _, fourth = (np.where(drawn, term, 0.0) for term in terms)
        parts[:, part] = [term.sum(axis=1) for term in (predicted_part, correction, of_audit, fourth)]
    drawing = np.maximum(parts[0] + parts[1], LEAST_DRAWING * parts[0])
    n_audited, is_certain = int(np.count_nonzero(audited)), bool((rho * a == 1).all())
    variance = drawing + parts[2]
    return estimates(
        found,
        {"drawing": drawing, "gold": parts[2]},
        degrees_of_freedom=poisson_degrees_of_freedom(variance, parts[3]),
        n=np.full(len(wanted), n_audited),
        refusals={} if is_certain else topic_refusals(variance, n_audited, fewest, NOUN),
        sources=SOURCES,
        warning=lambda n: "" if is_certain else few_items_warning(n, NOUN),
    )


def _audit_chances(topics: TakenTopics, audit: TopicAudit) -> Floats:
    """Return a, and 1 where the draw did not take the topic."""
    audited = np.asarray(audit.audited)
    if audited.dtype != np.bool_ or audited.shape != topics.taken.shape:
        raise ValueError(
            f"audited must be boolean and of {topics.taken.size} topics, got {audited.dtype}, shape {audited.shape}"
        )
    if (audited & ~topics.taken).any():
        raise ValueError("an audited topic must have been drawn")
    a = finite("probability", audit.probability, topics.taken.shape)
    a = np.where(topics.taken, a, 1.0)
    if ((a <= 0) | (a > 1)).any():
        raise ValueError(f"probability of a drawn topic must be in (0, 1], got {a[(a <= 0) | (a > 1)][0]}")
    if (topics.taken & ~audited & (a == 1)).any():
        raise ValueError("a drawn topic of probability 1 must be audited")
    return a


def topic_prediction(
    plug_in: ArrayLike,
    agreement: ArrayLike,
    labelled: ArrayLike,
    value: ArrayLike,
    topics: TakenTopics,
    audited: ArrayLike,
    fold: ArrayLike,
) -> TopicPrediction:
    """Return g and h of every run and topic, fitted across folds of topics.

    h is the value by labels, plus a shift and slopes of it and of how far the runs agree, fitted to the audited topics
    of the *other* folds; g of a fold is `predicted_values`, fitted to what this same fit gives the drawn topics of the
    other folds. So of its own fold h knows labels but no audit, and g nothing. Without audited topics h is the value by
    labels. Coefficients are shrunk towards 0 as those of `predicted_values` are.

    Parameters
    ----------
    plug_in : array [run, topic]
        The value as it is expected before anything is judged.
    agreement : array [topic]
    labelled : array [run, topic]
        By the labels, read where the topic was drawn.
    value : array [run, topic]
        By gold, read where the topic was audited.
    audited : bool array [topic]
    fold : int array [topic]
        Fixed before the draw.

    Raises
    ------
    ValueError
        Arrays that do not fit together or are not finite.
    """
    prior = finite("plug_in", np.atleast_2d(np.asarray(plug_in, dtype=np.float64)))
    drawn, has_gold = topics.taken, np.asarray(audited, dtype=np.bool_)
    part, shape = integers("fold", fold, 0), prior.shape
    if shape[1] != drawn.size or has_gold.shape != drawn.shape or part.shape != drawn.shape:
        raise ValueError(f"plug_in, audited and fold must be of {drawn.size} topics")
    label = finite("labelled", np.where(drawn, np.asarray(labelled, dtype=np.float64), 0.0), shape)
    theta = finite("value", np.where(has_gold, np.asarray(value, dtype=np.float64), 0.0), shape)
    alike = finite("agreement", agreement, drawn.shape)
    before, after = prior.copy(), label.copy()
    for k in np.unique(part):
        own, known = part == k, drawn & (part != k)
        corrected = label + _correction(label, alike, theta - label, known, known & has_gold)
        after[:, own] = corrected[:, own]
        before[:, own] = predicted_values(prior, alike, corrected, known, own.astype(np.int64))[:, own]
    return TopicPrediction(before, after)


def _correction(
    label: Floats, alike: Floats, surprise: Floats, known: NDArray[np.bool_], has_gold: NDArray[np.bool_]
) -> Floats:
    """Return [run, topic] what gold says of the labels' errors; columns are standardised over `known`."""
    if not has_gold.any():
        return np.zeros(label.shape)
    columns = np.stack(
        [
            np.ones(label.shape),
            standardise(label, known),
            standardise(np.broadcast_to(alike, label.shape), known),
        ],
        axis=-1,
    )
    x, y = columns[:, has_gold], surprise[:, has_gold]
    squares = x.transpose(0, 2, 1) @ x + np.diag(RIDGES)
    coefficients = np.linalg.solve(squares, (x * y[..., None]).sum(axis=1)[..., None])
    return np.asarray((columns @ coefficients)[..., 0])


def by_gold_judges(found: Estimates) -> Estimates:
    """Return estimates of `whole_topics` from gold judges' own grades, as those to report."""
    return replace(found, sources=(SOURCE,))


def noun_of(sources: tuple[str, ...] | list[str]) -> str:
    """Return what a corrected number counts, by the sources of its errors.

    >>> noun_of(SOURCES), noun_of(("drawing", "gold"))
    ('audited topics', 'audited items')
    """
    if GOLD_SOURCE in sources:
        return NOUN
    return "judged topics" if SOURCE in sources else "audited items"
