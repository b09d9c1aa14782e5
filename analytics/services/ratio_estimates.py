"""nDCG and AP of every run and pair: as judged, corrected by the audit and, where all gold is known, true."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from analytics.estimation.estimators import Estimate as Value
from analytics.estimation.estimators import Refusal
from analytics.estimation.pseudolabels import (
    PseudoLabels,
    census,
    corrected_pseudo_labels,
    mean_on_stairs,
    pseudo_labels,
    stairs,
)
from analytics.estimation.ratios import ratio_estimates
from analytics.frames import CampaignArrays
from analytics.models import Method
from analytics.services.label_classes import bronze_classes
from analytics.services.predictions import Predictions
from judging.models import Campaign
from sampling.measures.families import Measure, grade_gains
from sampling.measures.kinds import Ratio
from sampling.measures.registry import parse_ratio


def ratio_results(
    campaign: Campaign, arrays: CampaignArrays, predictions: Predictions, measure: str
) -> dict[Method, Sequence[Value | Refusal]]:
    """Return the results of every method, runs first, then pairs (a, b) with a < b, in order.

    The papers' matrix inverse is for sums and has none.
    """
    parsed = parse_ratio(measure)
    relevant = parsed.relevant_grade or campaign.scale.relevant_grade
    gains = grade_gains(parsed, campaign.scale.gains(), relevant)
    n_targets = len(arrays.runs) * (len(arrays.runs) + 1) // 2
    if not gains.any():
        nothing = Refusal(f"no grade of this scale has a gain above 0 in {parsed.name}: nothing to divide by")
        return {method: [nothing] * n_targets for method in (Method.NAIVE, Method.CORRECTED)}
    shared = {
        "prediction": predictions.of_gains(gains, relevant),
        "topic_index": arrays.topic_index,
        "n_topics": arrays.n_topics,
    }
    labels: dict[Method, PseudoLabels | Refusal] = {
        Method.NAIVE: _as_judged(arrays, gains, shared),
        Method.CORRECTED: _corrected(campaign, arrays, gains, shared),
    }
    if (arrays.gold_grade >= 0).all():
        labels[Method.TRUE] = census(
            topic_index=arrays.topic_index, n_topics=arrays.n_topics, grades=arrays.gold_grade, gains=gains
        )
    return {
        method: [found] * n_targets if isinstance(found, Refusal) else _estimated(arrays, parsed, found)
        for method, found in labels.items()
    }


def _estimated(
    arrays: CampaignArrays, measure: Measure[Ratio], labels: PseudoLabels
) -> Sequence[Value | Refusal]:
    return ratio_estimates(measure, labels, arrays.ranks, seed=arrays.last_judgment_id)


def _as_judged(arrays: CampaignArrays, gains: np.ndarray, shared: dict[str, Any]) -> PseudoLabels | Refusal:
    everything = np.ones(arrays.judged.size, dtype=bool)
    refused = arrays.not_covered(everything, "judgment")
    if refused:
        return Refusal(*refused)
    return pseudo_labels(
        **shared,
        judged=arrays.judged,
        draw_probability=arrays.draw_probability(everything),
        label=mean_on_stairs(gains, arrays.label_item, arrays.label_grade, arrays.judged.size),
        steps=stairs(gains).steps,
    )


def _corrected(
    campaign: Campaign, arrays: CampaignArrays, gains: np.ndarray, shared: dict[str, Any]
) -> PseudoLabels | Refusal:
    eligible = arrays.audit_probability > 0
    if not eligible.any():
        return Refusal(arrays.no_audit())
    refused = arrays.not_covered(eligible, "item that an audit could select")
    if refused:
        return Refusal(*refused)
    return corrected_pseudo_labels(
        **shared,
        judged=arrays.judged[eligible],
        draw_probability=arrays.draw_probability(eligible)[eligible],
        bronze_class=bronze_classes(arrays, campaign)[eligible],
        audited=arrays.audited[eligible],
        gold_grade=arrays.audit_grade[eligible],
        audit_probability=arrays.audit_probability[eligible],
        gains=gains,
    )
