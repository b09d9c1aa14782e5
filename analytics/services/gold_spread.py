"""What complete audits leave in doubt: the predictions of gold that the next audit learns from."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.gold_prediction import GoldPrediction, predicted_gold
from analytics.estimation.samples import AuditSample, Frame
from analytics.frames import CampaignArrays, Floats, current_arrays
from analytics.numbers.predictions import Predictions
from analytics.services.label_classes import bronze_classes
from judging.models import Campaign, Item
from sampling.measures.families import Measure, grade_gains
from sampling.services.learned_audits import GoldSpread


def predicted_spread(campaign: Campaign, items: Sequence[Item], measure: Measure[Any]) -> GoldSpread | None:
    """Return what the campaign's complete audits leave in doubt of these items in a measure; None before the first.

    An item whose judgments do not count yet, because it was shown as a check before it was drawn, gets the largest
    variance that the gains allow: this depends on no judgment.
    """
    arrays = current_arrays(campaign)
    if not arrays.n_fitted_audits:
        return None
    rank = {
        pair: place
        for place, pair in enumerate(arrays.frame.select("topic_id", "doc_id")[arrays.judged].iter_rows())
    }
    place = np.array([rank.get((item.key.topic, item.key.document), -1) for item in items], dtype=np.int64)
    members = arrays.audit_probability > 0
    members[place[place >= 0]] = True
    gains = measure_gains(campaign, measure)
    found = gold_at(arrays, campaign, Predictions(arrays), members, gains)
    spread = np.full(members.size + 1, float(np.ptp(gains)) ** 2 / 4)  # the last one is that of the place -1
    spread[:-1][members] = found.spread
    return GoldSpread(spread[place], arrays.n_fitted_audits, arrays.n_fitted_expected)


def gold_at(
    arrays: CampaignArrays,
    campaign: Campaign,
    predictions: Predictions,
    members: NDArray[np.bool_],
    gains: Floats,
) -> GoldPrediction:
    """Return the prediction of the gold gain; `after` and `spread` of these judged items.

    A mask of items that were open to an audit or will be to the next; each is predicted without its own fold.
    """
    everything = np.ones(arrays.judged.size, dtype=bool)
    frame = Frame(arrays.n_topics, arrays.topic_index, arrays.judged, arrays.draw_probability(everything))
    audit = AuditSample(
        member=np.flatnonzero(members),
        draw_probability=arrays.draw_probability(members)[members],
        bronze_class=bronze_classes(arrays, campaign)[members],
        audited=arrays.audited[members],
        gold_grade=arrays.audit_grade[members],
        audit_probability=arrays.audit_probability[members],
        n_grades=arrays.n_grades,
        n_judged=arrays.judged.size,
    )
    return predicted_gold(
        frame,
        audit,
        gains,
        labels=arrays.labels,
        known=predictions.foreknowledge,
        learnable=arrays.batch < arrays.n_learned,
        fitted_gold=arrays.fitted_gold[members],
    )


def measure_gains(campaign: Campaign, measure: Measure[Any]) -> Floats:
    """Return the gain of every grade of the campaign's scale in the measure."""
    relevant = measure.relevant_grade or campaign.scale.relevant_grade
    return np.asarray(grade_gains(measure, campaign.scale.gains(), relevant))
