"""The reported method: the model-assisted difference estimator over the items that were open to the audits."""

from dataclasses import replace

import numpy as np

from analytics.estimation.estimate import Floats, Refusal
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
from analytics.estimation.targets import TargetWeights
from analytics.estimation.two_phase import TwoPhase, two_phase


def estimate(evidence: Evidence, targets: LinearTargets | RatioTargets) -> MethodEstimates:
    """Return the targets as the audits correct them; with the topics as a sample where the measure is a sum.

    Assumption: the audits' grades are right, and their probabilities as recorded. How assessors err may depend on
    anything. A difference that is not significant carries how many more gold labels would make it so.
    """
    audit = evidence.audit
    if isinstance(audit, Refusal):
        return none_of(targets, audit)
    if isinstance(targets, RatioTargets):
        found = _of_ratio(evidence, audit, targets)
    else:
        found = _of_sum(evidence, audit, targets)
    return replace(found, these_topics=found.these_topics.with_warning(audit.assumption))


def corrected_sums(
    judged: TargetWeights,
    before_total: Floats,
    evidence: Evidence,
    audit: AuditSample,
    targets: LinearTargets,
) -> TwoPhase:
    """Return `two_phase` of any targets, given by their weights [target, judged], from what the audits predict."""
    if targets.gold is None:
        raise ValueError("targets must have a prediction from the audits, got none")
    return two_phase(
        judged if audit.is_whole else judged.over(audit.member),
        draw_probability=audit.draw_probability,
        audited=audit.audited,
        gold=audit.gains(targets.gains)[1],
        audit_probability=audit.audit_probability,
        before=targets.gold.before[evidence.frame.judged[audit.member]],
        after=targets.gold.after,
        spread=targets.gold.spread,
        before_total=before_total,
    )


def _of_sum(evidence: Evidence, audit: AuditSample, targets: LinearTargets) -> MethodEstimates:
    frame, gold = evidence.frame, targets.gold
    before = np.zeros(frame.topic_index.size) if gold is None else gold.before
    predicted = targets.weights.run_totals(before, frame.topic_index, frame.n_topics)
    total = targets.weights.of_targets(predicted.sum(axis=1))
    found = corrected_sums(targets.judged, total, evidence, audit, targets)
    words = advice(found.estimates, found.n_items)
    n_runs = targets.weights.runs.n_runs
    words[:n_runs] = [""] * n_runs
    sources = (*found.estimates.sources, "topics")
    topics = targets.over_topics(evidence, audit.member, found.item_corrections, sources, predicted)
    return MethodEstimates(found.estimates.with_warning(words), topics, found.n_items)


def _of_ratio(evidence: Evidence, audit: AuditSample, targets: RatioTargets) -> MethodEstimates:
    if targets.no_gain is not None:
        return none_of(targets, targets.no_gain)
    labels = corrected_pseudo_labels(evidence.frame, audit, targets.gains, prediction=targets.prediction)
    return targets.estimates(labels, evidence.seed)
