"""What the judgments and the audit of a release say of a sum over documents, of any run's weights."""

from dataclasses import replace

import numpy as np

from analytics.estimation.correction import correct
from analytics.estimation.estimate import Refusal
from analytics.estimation.samples import AuditSample, Labels
from analytics.estimation.two_phase import two_phase
from analytics.releases.evaluation import Result
from analytics.releases.sampled import SampledRelease
from analytics.releases.verify_facts import Facts, Floats, GoldColumns
from sampling.measures.scoring import ScaledMeasure

ROUNDING = 1e-12


def audit_corrected(
    sampled: SampledRelease,
    measure: ScaledMeasure,
    weights: Floats,
    prediction: Floats,
    gold: GoldColumns | None,
) -> tuple[Result, Floats]:
    """Return the estimate corrected by the audit, and its part of every topic."""
    facts, is_open = sampled.facts, sampled.is_open
    if sampled.not_audited is not None:
        return sampled.not_audited, np.zeros(len(facts.topics))
    here, audit = facts.item[is_open], audit_of(sampled, measure.gains.size)
    gain = audit.gains(measure.gains)[1]
    if audit.labels is not None:  # what was judged is known: only what was not is left to predict
        gold = GoldColumns(prediction, gain, np.zeros(gain.size))
    if gold is None:  # an older release
        known, total = prediction, [float(weights @ prediction)]
        corrected = correct(weights[here], audit, measure.gains, prior=known[here], prior_total=total)
    else:
        known = gold.before
        corrected = two_phase(
            weights[here],
            draw_probability=audit.draw_probability,
            audited=audit.audited,
            gold=gain,
            audit_probability=audit.audit_probability,
            before=known[here],
            after=gold.after[is_open],
            spread=gold.spread[is_open],
            before_total=[float(weights @ known)],
        )
    added = np.zeros(facts.item.size)
    added[is_open] = corrected.item_corrections
    return without_rounding(corrected.estimates[0]), topic_parts(facts, weights, known, added)


def without_rounding(found: Result) -> Result:
    """Return an estimate of 0 where rounding leaves 1e-17 of it: without an error that would count as a difference."""
    if isinstance(found, Refusal) or not 0 < abs(found.value) <= ROUNDING:
        return found
    if found.standard_error == 0:
        return replace(found, value=0.0, low=0.0, high=0.0)
    return replace(found, value=0.0)


def labels_of(facts: Facts, n_grades: int) -> Labels:
    """Return the judgments that count."""
    n_assessors = int(facts.label_assessor.max(initial=-1)) + 1
    return Labels(
        facts.label_item,
        facts.label_assessor,
        facts.label_grade,
        n_items=facts.item.size,
        n_assessors=n_assessors,
        n_grades=n_grades,
    )


def audit_of(sampled: SampledRelease, n_grades: int) -> AuditSample:
    """Return the items that were open to the audits, and what these found; or what gold judges said of every item."""
    facts, is_open = sampled.facts, sampled.is_open
    if facts.is_by_gold_judges:
        return AuditSample.of_gold_judges(labels_of(facts, n_grades), sampled.chance_open)
    return AuditSample(
        draw_probability=sampled.chance_open[is_open],
        bronze_class=facts.bronze_class[is_open],
        audited=facts.audited[is_open],
        gold_grade=facts.audit_grade[is_open],
        audit_probability=facts.audit_probability[is_open],
        n_grades=n_grades,
    )


def topic_parts(facts: Facts, weights: Floats, prediction: Floats, added: Floats) -> Floats:
    """Return by topic ``sum w f`` and what the judged items add to it, `added` times w."""
    values = weights * prediction
    values[facts.item] += weights[facts.item] * added
    return np.bincount(facts.topic, values, len(facts.topics)).astype(np.float64)
