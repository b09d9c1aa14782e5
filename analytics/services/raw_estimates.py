"""The number from grades as given, by the estimator that fits how the items were drawn."""

import numpy as np

from analytics.estimation.estimators import Estimates, Refusal, all_refused, difference_estimator
from analytics.estimation.fixed_size import fixed_size
from analytics.estimation.importance import balance_heuristic, distinct_items, importance_sampling
from analytics.estimation.labels import JUDGE_BIAS
from analytics.estimation.targets import TargetWeights
from analytics.frames import CampaignArrays, Floats

REUSED = "a pair drawn more than once was judged once: with judges who err, the interval is too short"


def as_judged(
    arrays: CampaignArrays,
    weights: TargetWeights,
    utility: Floats,
    draw_probability: Floats,
    prior: Floats,
    prior_total: Floats,
) -> Estimates:
    """Return the measure with every item's mean gain taken as true, one result per target.

    Once all drawn items are judged the variance is that of the draw: of a fixed size in every topic, or with
    replacement. Before, what is judged is a random part of what was drawn, and the variance is that of a Poisson draw.
    `weights` and the other arrays are of the judged items.
    """
    is_complete = arrays.judged.size == arrays.n_drawn.sum()
    if is_complete and arrays.draw.selection_kind.has_exact_counts:
        topic = arrays.topic_index[arrays.judged]
        pi = arrays.inclusion_probability
        found = fixed_size(
            weights, utility, pi, strata=topic, join_strata=True, prior=prior, prior_total=prior_total
        )
    elif is_complete and arrays.draw.selection_kind.with_replacement:
        q, times = _single_draws(arrays)
        of_judged = q[:, arrays.judged]
        found = distinct_items(
            weights, utility, of_judged, times.sum(axis=1), prior=prior, prior_total=prior_total
        )
    else:
        found = difference_estimator(weights, utility, draw_probability, prior=prior, prior_total=prior_total)
    return found.warned(JUDGE_BIAS)


def importance(arrays: CampaignArrays, weights: TargetWeights, utility: Floats) -> Estimates:
    """Return the paper's estimate of a draw with replacement: the mean of u w/Q over its draws, batches pooled."""
    missing = int(arrays.n_drawn.sum()) - arrays.judged.size
    if missing:
        reason = f"{missing} drawn items have no judgment yet: a mean over draws needs them all"
        return all_refused(len(weights), Refusal(reason, missing))
    q, times = _single_draws(arrays)
    of_judged = times[:, arrays.judged]
    batch, place = np.nonzero(of_judged)
    repeated = of_judged[batch, place]
    batch, place = np.repeat(batch, repeated), np.repeat(place, repeated)
    of_draws = weights.over(place)
    q_of_draws = q[:, arrays.judged[place]]
    if len(q) == 1:
        found = importance_sampling(of_draws, utility[place], q_of_draws[0])
    else:
        found = balance_heuristic(of_draws, utility[place], q_of_draws, batch)
    return found.warned(f"{REUSED}; {JUDGE_BIAS}" if of_judged.sum() > arrays.judged.size else JUDGE_BIAS)


def _single_draws(arrays: CampaignArrays) -> tuple[Floats, np.ndarray]:
    """Return Q [batch, frame] of single draws, and how often each item was drawn [batch, frame]."""
    batches = range(1, arrays.draw.batch + 1)
    q = arrays.frame.select(f"single_{batch}" for batch in batches).to_numpy().T
    times = arrays.frame.select(f"times_{batch}" for batch in batches).to_numpy().T
    return q, times.astype(np.int64)
