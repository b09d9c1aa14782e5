"""The reported method: the model-assisted difference estimator over the items that were open to the audits."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from analytics.estimation.audited_topics import by_gold_judges
from analytics.estimation.estimate import Estimate, Floats, Refusal
from analytics.estimation.evidence import (
    CompleteTargets,
    Evidence,
    LinearTargets,
    MethodEstimates,
    RatioTargets,
    Targets,
    none_of,
)
from analytics.estimation.more_gold import advice
from analytics.estimation.naive import refusal_of_topics, values_by_labels
from analytics.estimation.one_step import StairPhases, one_step, stair_phases
from analytics.estimation.one_step_limits import instead_of_one_step, missing_labels
from analytics.estimation.pseudolabels import corrected_pseudo_labels
from analytics.estimation.ratios import missing_for_macro
from analytics.estimation.samples import AuditSample
from analytics.estimation.targets import TargetWeights
from analytics.estimation.topic_samples import SampledTopics
from analytics.estimation.topics import over_topics_of
from analytics.estimation.truth import values_by_grades
from analytics.estimation.two_phase import TwoPhase, two_phase


def estimate(evidence: Evidence, targets: Targets) -> MethodEstimates:
    """Return the targets as the audits correct them; with the topics as a sample where the measure is a sum.

    Assumption: the audits' grades are right, and their probabilities as recorded. How assessors err may depend on
    anything. A difference that is not significant carries how many more gold labels would make it so. Where whole
    topics were drawn, whole topics are audited: `analytics.estimation.audited_topics`.
    """
    if evidence.whole_topics is not None:
        return _of_whole_topics(evidence, evidence.whole_topics, targets)
    if isinstance(targets, CompleteTargets):
        raise ValueError(f"{targets.measure.name} is corrected from whole topics alone")
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
    parts = targets.topic_parts(evidence, audit.member, found.item_corrections, predicted)
    topics = over_topics_of(targets.weights, parts, sources)
    reach = found.n_items if audit.labels is None else targets.weights.n_weighed()
    carried = audit.member[audit.audited & (audit.gains(targets.gains)[1] > 0)]
    return MethodEstimates(
        found.estimates.with_warning(words),
        topics,
        reach,
        targets.n_weighed(carried),
        frame.n_topics * parts,
    )


def _of_ratio(evidence: Evidence, audit: AuditSample, targets: RatioTargets) -> MethodEstimates:
    if targets.no_gain is not None:
        return none_of(targets, targets.no_gain)
    if targets.stairs:
        items = stair_phases(evidence.frame, audit, targets.gains, targets.stairs)
        prediction, after = items.steps @ items.prediction, items.after
    else:
        items, prediction, after = None, targets.prediction, None
    labels = corrected_pseudo_labels(evidence.frame, audit, targets.gains, prediction=prediction, after=after)
    if targets.measure.averaging == "micro" or not missing_for_macro(labels):
        return targets.estimates(labels, evidence.seed)
    return targets.estimates(labels, evidence.seed, *_from_few_labels(evidence, audit, targets, items))


def _from_few_labels(
    evidence: Evidence, audit: AuditSample, targets: RatioTargets, items: StairPhases | None
) -> tuple[Sequence[Estimate | Refusal], Floats | None]:
    """Return the differences of two runs in one step, where the audit's size allows it, and values of topics.

    There is no number of a run alone; the values of its topics are for differences.
    """
    if targets.no_step is not None or items is None:
        return [] if targets.no_step is None else [targets.no_step] * len(targets), None
    step = one_step(targets.measure, items, targets.returned)
    found = list(step.estimates)
    n_runs, frame = targets.returned.n_runs, evidence.frame
    missing = missing_labels(int(audit.audited.sum()), frame.topic_index.size, frame.n_topics)
    words = (
        f"{targets.measure.name} of a run alone has no interval from few gold labels, a difference of two has"
    )
    found[:n_runs] = [Refusal(f"{words}; {instead_of_one_step(missing)}", missing)] * n_runs
    return found, step.topic_values


def _of_whole_topics(evidence: Evidence, sampled: SampledTopics, targets: Targets) -> MethodEstimates:
    refusal, audit = refusal_of_topics(sampled, targets), sampled.audit
    if refusal is not None:
        return none_of(targets, refusal)
    if isinstance(audit, Refusal):
        return none_of(targets, audit)
    labelled = values_by_labels(evidence, sampled, targets)
    if audit.gold_grade is None:
        predicted = sampled.predictions(targets.measure, targets.gains, labelled)
        return MethodEstimates(by_gold_judges(sampled.estimates(labelled, predicted)))
    grades = np.full(evidence.frame.topic_index.size, -1, dtype=np.int64)
    grades[evidence.frame.judged] = audit.gold_grade
    gold = values_by_grades(evidence, sampled, targets, grades)
    plug_in = sampled.plug_in(targets.measure, targets.gains)
    return MethodEstimates(sampled.corrected_estimates(audit, plug_in, labelled, gold))
