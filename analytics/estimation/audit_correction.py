"""The reported method: the model-assisted difference estimator over the items that were open to the audits."""

from analytics.estimation.correction import correct
from analytics.estimation.estimate import Refusal
from analytics.estimation.evidence import (
    Evidence,
    LinearTargets,
    MethodEstimates,
    RatioTargets,
    none_of,
)
from analytics.estimation.more_gold import advice
from analytics.estimation.pseudolabels import corrected_pseudo_labels
from analytics.estimation.samples import AuditSample
from analytics.estimation.two_phase import GREG_SOURCES


def estimate(evidence: Evidence, targets: LinearTargets | RatioTargets) -> MethodEstimates:
    """Return the targets as the audits correct them; with the topics as a sample where the measure is a sum.

    Assumption: the audits' grades are right, and their probabilities as recorded. How assessors err may depend on
    anything. A difference that is not significant carries how many more gold labels would make it so.
    """
    audit = evidence.audit
    if isinstance(audit, Refusal):
        return none_of(targets, audit)
    if isinstance(targets, RatioTargets):
        return _of_ratio(evidence, audit, targets)
    return _of_sum(evidence, audit, targets)


def _of_sum(evidence: Evidence, audit: AuditSample, targets: LinearTargets) -> MethodEstimates:
    prior = targets.prediction[evidence.frame.judged]
    found = correct(targets.judged, audit, targets.gains, prior=prior, prior_total=targets.prior_total)
    words = advice(found.estimates, found.n_items)
    n_runs = targets.weights.runs.n_runs
    words[:n_runs] = [""] * n_runs
    topics = targets.over_topics(evidence, audit.member, found.item_corrections, (*GREG_SOURCES, "topics"))
    return MethodEstimates(found.estimates.with_warning(words), topics, found.n_items)


def _of_ratio(evidence: Evidence, audit: AuditSample, targets: RatioTargets) -> MethodEstimates:
    if targets.no_gain is not None:
        return none_of(targets, targets.no_gain)
    labels = corrected_pseudo_labels(evidence.frame, audit, targets.gains, prediction=targets.prediction)
    return targets.estimates(labels, evidence.seed)
