"""Numbers corrected by an audit, or by matrices, that are given as plain columns: what many tests start from."""

from typing import Any

import numpy as np

from analytics.estimation.correction import correct
from analytics.estimation.estimate import Estimates
from analytics.estimation.pseudolabels import PseudoLabels, corrected_pseudo_labels, pseudo_labels
from analytics.estimation.samples import AuditSample, Frame, Labels
from analytics.estimation.targets import TargetWeights
from analytics.estimation.two_phase import TwoPhase
from analytics.papers.inverse import matrix_inverse
from experiments.papers.correction import greg_label_by_topic

COLUMNS = ("draw_probability", "bronze_class", "audited", "gold_grade", "audit_probability")


def _split(given: dict[str, Any]) -> tuple[AuditSample, Any, dict[str, Any]]:
    """Return the audit of the columns, the gains, and what is neither."""
    gains = given.pop("gains")
    columns = {name: given.pop(name) for name in COLUMNS}
    return AuditSample(**columns, n_grades=np.size(gains)), gains, given


def corrected(weights: Any, **given: Any) -> TwoPhase:
    audit, gains, others = _split(given)
    return correct(weights, audit, gains, **others)


def greg_label(weights: Any, **given: Any) -> Estimates:
    return corrected(weights, **given).estimates


def corrected_by_topic(weights: Any, **given: Any) -> Estimates:
    audit, gains, others = _split(given)
    return greg_label_by_topic(weights, audit, gains, **others)


def corrected_labels(*, topic_index: Any, n_topics: int, judged: Any, **given: Any) -> PseudoLabels:
    frame = Frame(n_topics, topic_index, judged, given["draw_probability"])
    audit, gains, others = _split(given)
    return corrected_pseudo_labels(frame, audit, gains, **others)


def plain_labels(
    *, topic_index: Any, n_topics: int, judged: Any, draw_probability: Any, **given: Any
) -> PseudoLabels:
    return pseudo_labels(Frame(n_topics, topic_index, judged, draw_probability), **given)


def inverse(
    weights: Any, *, label_item: Any, label_assessor: Any, label_grade: Any, **given: Any
) -> Estimates:
    """Return the matrix inverse; items, assessors and grades are as many as weights, matrices and gains say."""
    labels = Labels(
        label_item,
        label_assessor,
        label_grade,
        n_items=weights.n_items if isinstance(weights, TargetWeights) else np.shape(weights)[-1],
        n_assessors=len(given["matrices"]),
        n_grades=len(given["gains"]),
    )
    return matrix_inverse(weights, labels, **given)
