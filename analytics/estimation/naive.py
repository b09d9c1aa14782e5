"""The naive method: every grade taken as given, by the estimator that fits how the items were drawn."""

from dataclasses import replace

import numpy as np

from analytics.estimation.estimate import Estimates, Floats, Refusal
from analytics.estimation.estimators import difference_estimator
from analytics.estimation.evidence import (
    CompleteTargets,
    Evidence,
    LinearTargets,
    MethodEstimates,
    RatioTargets,
    Targets,
    none_of,
)
from analytics.estimation.fixed_size import fixed_size
from analytics.estimation.graded_labels import mean_on_stairs, stairs
from analytics.estimation.importance import distinct_items
from analytics.estimation.labels import JUDGE_BIAS
from analytics.estimation.pseudolabels import pseudo_labels
from analytics.estimation.ratio_words import needs_pool
from analytics.estimation.targets import TargetWeights
from analytics.estimation.topic_samples import SampledTopics
from analytics.estimation.topics import over_topics_of


def estimate(evidence: Evidence, targets: Targets) -> MethodEstimates:
    """Return the targets with every item's mean gain taken as true; with the topics as a sample where it is a sum.

    Assumption: the grades are right. How assessors err is in neither interval.
    """
    if evidence.whole_topics is not None:
        return _of_whole_topics(evidence, evidence.whole_topics, targets)
    if isinstance(targets, CompleteTargets):
        return _of_complete(evidence, targets)
    if evidence.not_judged is not None:
        return none_of(targets, evidence.not_judged)
    return _of_ratio(evidence, targets) if isinstance(targets, RatioTargets) else _of_sum(evidence, targets)


def _of_whole_topics(evidence: Evidence, sampled: SampledTopics, targets: Targets) -> MethodEstimates:
    refusal = refusal_of_topics(sampled, targets)
    if refusal is not None:
        return none_of(targets, refusal)
    value = values_by_labels(evidence, sampled, targets)
    predicted = sampled.predictions(targets.measure, targets.gains, value)
    return MethodEstimates(sampled.estimates(value, predicted).with_warning(JUDGE_BIAS))


def refusal_of_topics(sampled: SampledTopics, targets: Targets) -> Refusal | None:
    """Return why whole topics say nothing of the targets; None where they do."""
    refusal = sampled.incomplete or sampled.refusal(targets.measure)
    if refusal is None and isinstance(targets, RatioTargets):
        refusal = targets.no_gain
    return refusal


def values_by_labels(evidence: Evidence, sampled: SampledTopics, targets: Targets) -> Floats:
    """Return [run, topic] the measure with the judged items' mean gains; of topics not drawn it means nothing."""
    frame = evidence.frame
    if isinstance(targets, RatioTargets):
        labels = pseudo_labels(
            replace(frame, draw_probability=np.ones(frame.judged.size)),
            prediction=np.zeros(frame.topic_index.size),
            label=mean_on_stairs(targets.gains, evidence.labels),
            steps=stairs(targets.gains).steps,
        )
        return targets.values_of_topics(labels, sampled.present)
    gain = np.zeros(frame.topic_index.size)
    gain[frame.judged] = targets.utility
    return sampled.runs.values(targets.measure, gain)


def _of_sum(evidence: Evidence, targets: LinearTargets) -> MethodEstimates:
    prior = targets.prediction[evidence.frame.judged]
    surprise = (targets.utility - prior) / evidence.frame.draw_probability
    everything = np.arange(evidence.frame.judged.size)
    parts = targets.topic_parts(evidence, everything, surprise)
    return MethodEstimates(
        from_grades(evidence, targets.judged, targets.utility, prior, targets.prior_total),
        over_topics_of(targets.weights, parts, ("drawing", "topics")),
        n_positive=targets.n_weighed(np.flatnonzero(targets.utility > 0)),
    )


def from_grades(
    evidence: Evidence, weights: TargetWeights, utility: Floats, prior: Floats, prior_total: Floats
) -> Estimates:
    """Return the sum of weight * utility of every target, from the judged items.

    Once all drawn items are judged the variance is that of the draw: of a fixed size in every topic, or with
    replacement. Before, what is judged is a random part of what was drawn, and the variance is that of a Poisson draw.

    Parameters
    ----------
    weights : [target, judged]
    utility, prior : arrays [judged]
        Mean gain of the grades given; the gain that was predicted.
    prior_total : array [target]
        The sum of weight * prediction over the frame.
    """
    draws = evidence.single_draws
    if not evidence.n_waiting and evidence.has_fixed_sizes:
        topic = evidence.frame.judged_topic
        pi = evidence.inclusion_probability
        found = fixed_size(
            weights, utility, pi, strata=topic, join_strata=True, prior=prior, prior_total=prior_total
        )
    elif not evidence.n_waiting and draws is not None:
        n_draws = draws.times.sum(axis=1)
        found = distinct_items(
            weights, utility, draws.probability, n_draws, prior=prior, prior_total=prior_total
        )
    else:
        pi = evidence.frame.draw_probability
        found = difference_estimator(weights, utility, pi, prior=prior, prior_total=prior_total)
    return found.with_warning(JUDGE_BIAS)


def _of_complete(evidence: Evidence, targets: CompleteTargets) -> MethodEstimates:
    gain, is_judged = (
        np.zeros(evidence.frame.topic_index.size),
        np.zeros(evidence.frame.topic_index.size, dtype=bool),
    )
    gain[evidence.frame.judged], is_judged[evidence.frame.judged] = targets.utility, True
    found = targets.estimates(evidence, gain, is_judged)
    return replace(found, these_topics=found.these_topics.with_warning(JUDGE_BIAS))


def _of_ratio(evidence: Evidence, targets: RatioTargets) -> MethodEstimates:
    if targets.no_gain is not None:
        return none_of(targets, targets.no_gain)
    has_prediction = targets.measure.kind.has_prediction
    if evidence.is_foreign and has_prediction:
        return none_of(targets, needs_pool(targets.measure))
    labels = pseudo_labels(
        evidence.frame,
        prediction=targets.prediction if has_prediction else np.zeros(targets.prediction.size),
        label=mean_on_stairs(targets.gains, evidence.labels),
        steps=stairs(targets.gains).steps,
    )
    return (
        targets.estimates(labels, evidence.seed)
        if has_prediction
        else targets.values(labels, is_foreign=evidence.is_foreign)
    )
