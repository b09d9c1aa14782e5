"""The true values, where the right grade of every pair of the frame is known: in the demo, and in simulations."""

import numpy as np

from analytics.estimation.estimate import Floats, Ints, estimates
from analytics.estimation.evidence import (
    CompleteTargets,
    Evidence,
    MethodEstimates,
    RatioTargets,
    Targets,
    none_of,
)
from analytics.estimation.pseudolabels import PseudoLabels, census
from analytics.estimation.topic_samples import SampledTopics


def is_known(evidence: Evidence) -> bool:
    """Return whether the right grade of every pair of the frame is known, and the frame is the pool."""
    return not evidence.is_foreign and bool((evidence.gold_grade >= 0).all())


def estimate(evidence: Evidence, targets: Targets) -> MethodEstimates:
    """Return the targets' values by the gold answers: exact, so that an interval has no width."""
    sampled = evidence.whole_topics
    if sampled is not None:
        return _of_whole_topics(evidence, sampled, targets)
    if isinstance(targets, CompleteTargets):
        is_known = np.ones(evidence.gold_grade.size, dtype=bool)
        return targets.estimates(evidence, targets.gains[evidence.gold_grade], is_known)
    if isinstance(targets, RatioTargets):
        if targets.no_gain is not None:
            return none_of(targets, targets.no_gain)
        return targets.estimates(_census(evidence, targets, evidence.gold_grade), evidence.seed)
    found = estimates(
        targets.weights.totals(targets.gains[evidence.gold_grade]),
        {},
        degrees_of_freedom=np.inf,
        n=targets.weights.n_weighed(),
        refusals={},
        warning=lambda _: "",
    )
    return MethodEstimates(found)


def _census(evidence: Evidence, targets: RatioTargets, grades: Ints) -> PseudoLabels:
    return census(
        topic_index=evidence.frame.topic_index,
        n_topics=evidence.frame.n_topics,
        grades=grades,
        gains=targets.gains,
    )


def _of_whole_topics(evidence: Evidence, sampled: SampledTopics, targets: Targets) -> MethodEstimates:
    """Return the means weighted by the topics' shares, as the estimates have them."""
    refusal = sampled.refusal(targets.measure)
    if refusal is None and isinstance(targets, RatioTargets):
        refusal = targets.no_gain
    if refusal is not None:
        return none_of(targets, refusal)
    return MethodEstimates(sampled.truth(values_by_grades(evidence, sampled, targets, evidence.gold_grade)))


def values_by_grades(evidence: Evidence, sampled: SampledTopics, targets: Targets, grades: Ints) -> Floats:
    """Return [run, topic] the measure from one grade of every pair of the frame, -1 where it is unknown: no gain."""
    if isinstance(targets, RatioTargets):
        known = np.where(grades < 0, int(targets.gains.argmin()), grades)
        return targets.values_of_topics(_census(evidence, targets, known), sampled.present)
    gain = np.where(grades < 0, 0.0, targets.gains[grades])
    return sampled.runs.values(targets.measure, gain)
