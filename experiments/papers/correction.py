"""The corrected measure with the topics as a sample of many, from the parts that the product adds up for its pages."""

from numpy.typing import ArrayLike

from analytics.estimation.checks import integers
from analytics.estimation.correction import correct
from analytics.estimation.estimate import Estimates
from analytics.estimation.estimators import known_prior
from analytics.estimation.samples import AuditSample
from analytics.estimation.targets import Weights, as_targets, rows_alone
from analytics.estimation.topics import over_topics_of
from analytics.estimation.two_phase import GREG_SOURCES


def greg_label_by_topic(
    weights: Weights,
    audit: AuditSample,
    gains: ArrayLike,
    *,
    topic_index: ArrayLike,
    n_topics: int,
    prior: ArrayLike | None = None,
    prior_total_by_topic: ArrayLike | None = None,
) -> Estimates:
    """Return the corrected measure with a t interval over topics; arguments as of `correct`.

    ``Z_t`` is the topic's part of U (weights contain 1/n_topics), so the values n_topics Z_t have mean U and
    their spread holds every source of error. Assumption: topics were drawn independently, and everything in
    `correct`. For a pair (w = w_a - w_b) this is the paired t. `prior_total_by_topic[target, topic]`.
    """
    targets = as_targets(weights)
    topic = integers("topic_index", topic_index, 0, n_topics - 1)
    f, known = known_prior(prior, prior_total_by_topic, targets.n_items, (len(targets), n_topics))
    corrected = correct(targets, audit, gains, prior=f, prior_total=known.sum(axis=1))
    parts = known + targets.totals_by_topic(corrected.item_corrections, topic, n_topics)
    return over_topics_of(
        rows_alone(len(targets)), parts, (*GREG_SOURCES, "topics"), corrected.estimates.refusals
    )
