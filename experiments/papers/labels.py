"""The measure computed from raw labels, as if they had no error."""

from numpy.typing import ArrayLike

from analytics.estimation.checks import finite, integers
from analytics.estimation.estimate import Estimates
from analytics.estimation.estimators import difference_estimator
from analytics.estimation.labels import JUDGE_BIAS, item_means
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
    grade = integers("label_grade", label_grade, 0, gain.size - 1)
    targets = as_targets(weights)
    utility = item_means(label_item, gain[grade], targets.n_items)
    found = difference_estimator(targets, utility, draw_probability, prior=prior, prior_total=prior_total)
    return found.with_warning(JUDGE_BIAS)
