"""The reported method: the model-assisted difference estimator over the items that were open to the audits."""

from analytics.estimation.correction import GREG_SOURCES, CorrectedEstimates, correct
from analytics.estimation.estimate import Floats, Refusal
from analytics.estimation.evidence import (
    AuditSample,
    Evidence,
    LinearTargets,
    MethodEstimates,
    RatioTargets,
    none_of,
)
from analytics.estimation.more_gold import advice
from analytics.estimation.pseudolabels import corrected_pseudo_labels
from analytics.estimation.targets import TargetWeights


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
    prior = targets.prediction[evidence.judged]
    found = from_audit(audit, targets.judged, targets.gains, prior, targets.prior_total)
    words = advice(found.estimates, found.n_items)
    n_runs = targets.weights.runs.n_runs
    words[:n_runs] = [""] * n_runs
    topics = targets.over_topics(evidence, audit.member, found.item_corrections, (*GREG_SOURCES, "topics"))
    return MethodEstimates(found.estimates.with_warning(words), topics, found.n_items)


def from_audit(
    audit: AuditSample, weights: TargetWeights, gains: Floats, prior: Floats, prior_total: Floats
) -> CorrectedEstimates:
    """Return the corrected sum of weight * gain of every target.

    Parameters
    ----------
    weights : [target, judged]
    prior : array [judged]
        The gain that was predicted.
    prior_total : array [target]
        The sum of weight * prediction over the frame.
    """
    return correct(
        weights if audit.member.size == weights.n_items else weights.over(audit.member),
        draw_probability=audit.draw_probability,
        bronze_class=audit.bronze_class,
        audited=audit.audited,
        gold_grade=audit.gold_grade,
        audit_probability=audit.audit_probability,
        gains=gains,
        prior=prior[audit.member],
        prior_total=prior_total,
    )


def _of_ratio(evidence: Evidence, audit: AuditSample, targets: RatioTargets) -> MethodEstimates:
    if targets.no_gain is not None:
        return none_of(targets, targets.no_gain)
    labels = corrected_pseudo_labels(
        prediction=targets.prediction,
        topic_index=evidence.topic_index,
        n_topics=evidence.n_topics,
        judged=evidence.judged[audit.member],
        draw_probability=audit.draw_probability,
        bronze_class=audit.bronze_class,
        audited=audit.audited,
        gold_grade=audit.gold_grade,
        audit_probability=audit.audit_probability,
        gains=targets.gains,
    )
    return targets.estimates(labels, evidence.seed)
