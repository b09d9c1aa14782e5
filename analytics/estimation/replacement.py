"""The method of Schnabel et al. (2016), Eq 3 to 6, for draws with replacement: the mean over draws of u w / Q."""

import numpy as np

from analytics.estimation.estimate import Refusal
from analytics.estimation.evidence import Evidence, LinearTargets, MethodEstimates, none_of
from analytics.estimation.importance import balance_heuristic
from analytics.estimation.labels import JUDGE_BIAS

REUSED = "a pair drawn more than once was judged once: with judges who err, the interval is too short"


def is_drawn_with_replacement(evidence: Evidence) -> bool:
    """Return whether the campaign's items were drawn with replacement."""
    return evidence.single_draws is not None


def estimate(evidence: Evidence, targets: LinearTargets) -> MethodEstimates:
    """Return the mean of u w / Q over the draws of all batches, with every item's mean gain taken as true."""
    draws = evidence.single_draws
    if draws is None:
        return none_of(targets, Refusal("the items were not drawn with replacement"))
    if evidence.n_waiting:
        reason = f"{evidence.n_waiting} drawn items have no judgment yet: a mean over draws needs them all"
        return none_of(targets, Refusal(reason, evidence.n_waiting))
    batch, place = np.nonzero(draws.times)
    repeated = draws.times[batch, place]
    batch, place = np.repeat(batch, repeated), np.repeat(place, repeated)
    weights, utility, q = targets.judged.over(place), targets.utility[place], draws.probability[:, place]
    found = balance_heuristic(weights, utility, q, batch)
    is_repeated = draws.times.sum() > evidence.frame.judged.size
    return MethodEstimates(found.with_warning(f"{REUSED}; {JUDGE_BIAS}" if is_repeated else JUDGE_BIAS))
