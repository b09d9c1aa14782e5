"""Numbers corrected by an audit that is given as plain columns: what many tests start from."""

from typing import Any

import numpy as np

from analytics.estimation.correction import CorrectedEstimates, correct
from analytics.estimation.estimate import Estimates
from analytics.estimation.pseudolabels import PseudoLabels, corrected_pseudo_labels
from analytics.estimation.samples import AuditSample
from experiments.papers.correction import greg_label_by_topic

COLUMNS = ("draw_probability", "bronze_class", "audited", "gold_grade", "audit_probability")


def _split(given: dict[str, Any]) -> tuple[AuditSample, Any, dict[str, Any]]:
    """Return the audit of the columns, the gains, and what is neither."""
    gains = given.pop("gains")
    columns = {name: given.pop(name) for name in COLUMNS}
    return AuditSample(**columns, n_grades=np.size(gains)), gains, given


def corrected(weights: Any, **given: Any) -> CorrectedEstimates:
    audit, gains, others = _split(given)
    return correct(weights, audit, gains, **others)


def greg_label(weights: Any, **given: Any) -> Estimates:
    return corrected(weights, **given).estimates


def corrected_by_topic(weights: Any, **given: Any) -> Estimates:
    audit, gains, others = _split(given)
    return greg_label_by_topic(weights, audit, gains, **others)


def corrected_labels(**given: Any) -> PseudoLabels:
    audit, gains, others = _split(given)
    return corrected_pseudo_labels(audit, gains, **others)
