"""The true values, where the right grade of every pair of the frame is known: in the demo, and in simulations."""

import numpy as np

from analytics.estimation.estimate import estimates
from analytics.estimation.evidence import (
    CompleteTargets,
    Evidence,
    MethodEstimates,
    RatioTargets,
    Targets,
    none_of,
)
from analytics.estimation.pseudolabels import census


def is_known(evidence: Evidence) -> bool:
    """Return whether the right grade of every pair of the frame is known, and the frame is the pool."""
    return not evidence.is_foreign and bool((evidence.gold_grade >= 0).all())


def estimate(evidence: Evidence, targets: Targets) -> MethodEstimates:
    """Return the targets' values by the gold answers: exact, so that an interval has no width."""
    if isinstance(targets, CompleteTargets):
        is_known = np.ones(evidence.gold_grade.size, dtype=bool)
        return targets.estimates(evidence, targets.gains[evidence.gold_grade], is_known)
    if isinstance(targets, RatioTargets):
        if targets.no_gain is not None:
            return none_of(targets, targets.no_gain)
        labels = census(
            topic_index=evidence.frame.topic_index,
            n_topics=evidence.frame.n_topics,
            grades=evidence.gold_grade,
            gains=targets.gains,
        )
        return targets.estimates(labels, evidence.seed)
    found = estimates(
        targets.weights.totals(targets.gains[evidence.gold_grade]),
        {},
        degrees_of_freedom=np.inf,
        n=targets.weights.n_weighed(),
        refusals={},
        warning=lambda _: "",
    )
    return MethodEstimates(found)
