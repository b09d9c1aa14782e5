"""The papers' method: every label corrected by the inverse of its assessor's confusion matrix."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.confusion import shrink
from analytics.estimation.estimate import Estimates, Floats, Refusal
from analytics.estimation.evidence import Evidence, LinearTargets, MethodEstimates, none_of
from analytics.estimation.samples import Labels
from analytics.papers.inverse import matrix_inverse

MATRICES_UNUSABLE = "matrices cannot be used"  # of the refusal of `matrix_inverse`


def estimate(evidence: Evidence, targets: LinearTargets) -> MethodEstimates:
    """Return the targets by every assessor's own (shrunk) matrix, or by one pooled matrix where some cannot be used.

    Assumption: an assessor errs alike on all documents of a grade. Source: Goldberg et al. (2017), Eq 5 and 18.
    """
    table, labels, gains = evidence.confusion_counts, evidence.labels, targets.gains
    if targets.measure.binary:  # the papers' binary form: relevant or not
        relevant = targets.relevant_grade
        table, gains = _binary(table, relevant), np.array([0.0, 1.0])
        labels = replace(labels, grade=(labels.grade >= relevant).astype(np.int64), n_grades=2)
    shrunk = shrink(table) if table.size else Refusal("nobody has judged yet")
    if evidence.not_judged is not None:
        return none_of(targets, evidence.not_judged)
    if isinstance(shrunk, Refusal):
        return none_of(targets, shrunk)
    shared: dict[str, Any] = {
        "draw_probability": evidence.frame.draw_probability,
        "gains": gains,
        "prior": targets.prediction[evidence.frame.judged],
        "prior_total": targets.prior_total,
        "rng": np.random.default_rng(evidence.seed),
    }
    own = matrix_inverse(
        targets.judged,
        labels,
        **shared,
        matrices=shrunk.matrices,
        gold_per_grade=shrunk.n_per_grade,
    )
    first = own[0]
    if not isinstance(first, Refusal) or MATRICES_UNUSABLE not in first.reason:
        return MethodEstimates(own)
    return MethodEstimates(_with_pooled_matrix(targets, labels, table, shared, first.reason))


def _with_pooled_matrix(
    targets: LinearTargets, labels: Labels, table: Floats, shared: dict[str, Any], reason: str
) -> Estimates:
    """Return the targets by one matrix for all assessors, which says why it was taken."""
    joined = table.sum(axis=0)
    pooled = matrix_inverse(
        targets.judged,
        replace(labels, assessor=np.zeros_like(labels.assessor), n_assessors=1),
        **shared,
        matrices=((joined + 0.5) / (joined + 0.5).sum(axis=1, keepdims=True))[None],
        gold_per_grade=joined.sum(axis=1)[None],
    )
    note = f"one matrix for all assessors: {reason}"
    refusals = {
        place: replace(one, reason=f"{note}; pooled: {one.reason}") for place, one in pooled.refusals.items()
    }
    return replace(pooled, refusals=refusals, warnings=[note] * len(pooled)).with_warning(pooled.warnings)


def _binary(counts: Floats, relevant_grade: int) -> NDArray[np.float64]:
    """Return counts[assessor, true, given] with the grades joined to not relevant and relevant."""
    edges = [0, relevant_grade]
    return np.asarray(np.add.reduceat(np.add.reduceat(counts, edges, axis=1), edges, axis=2))
