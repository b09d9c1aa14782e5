"""The measure computed from raw labels, as if they had no error."""

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite
from analytics.estimation.estimate import Estimates
from analytics.estimation.estimators import difference_estimator
from analytics.estimation.labels import JUDGE_BIAS
from analytics.estimation.samples import Labels
from analytics.estimation.targets import Weights, as_targets


def naive(
    weights: Weights,
    *,
    draw_probability: ArrayLike,
    label_item: ArrayLike,
    label_grade: ArrayLike,
    gains: ArrayLike,
    prior: ArrayLike | None = None,
    prior_total: ArrayLike | None = None,
) -> Estimates:
    """Return the measure with every item's mean raw gain taken as true, one result per target.

    Assumption: labels have no error. The interval holds the drawing error only and says so; a ranking aid,
    never a verdict (docs/methods/derivations/real-judges.md, section 1.6). Arguments:
    `analytics.estimation.correction`.
    """
    gain = finite("gains", gains)
    targets = as_targets(weights)
    item, grade = np.asarray(label_item), np.asarray(label_grade)
    labels = Labels(
        item, np.zeros_like(item), grade, n_items=targets.n_items, n_assessors=1, n_grades=gain.size
    )
    utility = labels.means(gain[labels.grade])
    estimates = difference_estimator(targets, utility, draw_probability, prior=prior, prior_total=prior_total)
    return estimates.with_warning(JUDGE_BIAS)
