"""The number from grades as given, by the estimator that fits how the items were drawn."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from analytics.estimators import Estimate as Value
from analytics.estimators import Refusal, difference_estimator
from analytics.fixed_size import fixed_size
from analytics.frames import CampaignArrays, Floats
from analytics.importance import balance_heuristic, distinct_items, importance_sampling
from analytics.labels import JUDGE_BIAS, item_means
from analytics.targets import TargetWeights
from sampling.models import Draw

REUSED = "a pair drawn more than once was judged once: with judges who err, the interval is too short"


def naive(
    arrays: CampaignArrays, target_weights: TargetWeights, gains: Floats, prior: Floats, prior_total: Floats
) -> list[Value | Refusal]:
    """Return the measure with every item's mean gain taken as true, one result per target.

    Once all drawn items are judged the variance is that of the draw: of a fixed size in every topic, or with
    replacement. Before, what is judged is a random part of what was drawn, and the variance is that of a Poisson draw.
    """
    weights = target_weights.at(arrays.judged)
    utility = item_means(arrays.label_item, gains[arrays.label_grade], arrays.judged.size)
    everything = np.ones(arrays.judged.size, dtype=bool)
    known = {"prior": prior, "prior_total": prior_total}
    is_complete = arrays.judged.size == arrays.n_drawn.sum()
    if is_complete and arrays.draw.selection == Draw.Selection.PARETO:
        topic = arrays.topic_index[arrays.judged]
        pi = arrays.inclusion_probability
        results = fixed_size(weights, utility, pi, strata=topic, join_strata=True, **known)
    elif is_complete and arrays.draw.selection == Draw.Selection.REPLACEMENT:
        q, times = _single_draws(arrays)
        results = distinct_items(weights, utility, q[:, arrays.judged], times.sum(axis=1), **known)
    else:
        results = difference_estimator(weights, utility, arrays.draw_probability(everything), **known)
    return [_warned(result, JUDGE_BIAS) for result in results]


def importance(
    arrays: CampaignArrays, target_weights: TargetWeights, gains: Floats
) -> Sequence[Value | Refusal]:
    """Return the paper's estimate of a draw with replacement: the mean of u w/Q over its draws, batches pooled."""
    missing = int(arrays.n_drawn.sum()) - arrays.judged.size
    if missing:
        reason = f"{missing} drawn items have no judgment yet: a mean over draws needs them all"
        return [Refusal(reason, missing)] * len(target_weights)
    utility = item_means(arrays.label_item, gains[arrays.label_grade], arrays.judged.size)
    q, times = _single_draws(arrays)
    of_judged = times[:, arrays.judged]
    batch, place = np.nonzero(of_judged)
    repeated = of_judged[batch, place]
    batch, place = np.repeat(batch, repeated), np.repeat(place, repeated)
    weights = target_weights.at(arrays.judged[place])
    q_of_draws = q[:, arrays.judged[place]]
    if len(q) == 1:
        results = importance_sampling(weights, utility[place], q_of_draws[0])
    else:
        results = balance_heuristic(weights, utility[place], q_of_draws, batch)
    warning = f"{REUSED}; {JUDGE_BIAS}" if of_judged.sum() > arrays.judged.size else JUDGE_BIAS
    return [_warned(result, warning) for result in results]


def _single_draws(arrays: CampaignArrays) -> tuple[Floats, np.ndarray]:
    """Return Q [batch, frame] of single draws, and how often each item was drawn [batch, frame]."""
    batches = range(1, arrays.draw.batch + 1)
    q = arrays.frame.select(f"single_{batch}" for batch in batches).to_numpy().T
    times = arrays.frame.select(f"times_{batch}" for batch in batches).to_numpy().T
    return q, times.astype(np.int64)


def _warned(result: Value | Refusal, warning: str) -> Value | Refusal:
    if isinstance(result, Refusal):
        return result
    return replace(result, warning="; ".join(filter(None, [result.warning, warning])))
