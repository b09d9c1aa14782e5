"""What a claim says of one stored number by any method: its interval and p, or why there is none."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from analytics.estimation.audited_topics import noun_of
from analytics.estimation.claims import LIKE_THESE, THESE, Claim
from analytics.estimation.estimate import Floats
from analytics.estimation.topics import between_topics
from analytics.estimation.wording import ClaimTest
from analytics.methods import REPORTED
from analytics.models import Computation, Estimate

OLDER = "it was computed before topics like these were tested; compute again"
CLAIM_COLUMNS = {  # of each claim the columns of its interval and p
    LIKE_THESE.key: ("topics_low", "topics_high", "topics_p_value"),
    THESE.key: ("low", "high", "p_value"),
}


def claim_test(estimate: Estimate, claim: Claim, p_adjusted: float | None = None) -> ClaimTest:
    """Return interval and p of a value or a difference under a claim, as they are stored; a refusal where none is.

    Two runs that are the same do not differ on any topics.
    """
    low, high, p = (getattr(estimate, name) for name in CLAIM_COLUMNS[claim.key])
    if claim is THESE:
        none = estimate.refusal or (estimate.warning if low is None else "")
        return ClaimTest(claim, low, high, p, p_adjusted, refusal=none)
    if estimate.value is not None and estimate.n == 0 and p == 1:
        return ClaimTest(claim, estimate.value, estimate.value, p, p_adjusted)
    if low is not None and (p is not None or estimate.p_value is None):
        return ClaimTest(claim, low, high, p, p_adjusted)
    return ClaimTest(claim, p=p, p_adjusted=p_adjusted, refusal=_refusal(estimate))


def _refusal(estimate: Estimate) -> str:
    """Return why a number has no interval for topics like these."""
    if estimate.refusal or estimate.topics_refusal:
        return estimate.refusal or estimate.topics_refusal
    method = estimate.registered_method
    if not method.has_topic_interval:
        return f"{method.short} has no interval for topics like these"
    if estimate.low is None:
        return estimate.warning
    if "topics" in noun_of(estimate.sources):
        return "whole topics were drawn: the interval is for the topics that they were drawn from"
    return OLDER


def topic_values(computation: Computation, measure: str) -> dict[int, Floats]:
    """Return the values of topics of every run that has them, by its key."""
    rows = computation.estimates.filter(
        measure=measure, method=REPORTED.key, run_b=None, topic_values__isnull=False
    )
    stored: Iterable[tuple[Any, ...]] = rows.values_list("run", "topic_values")
    return {run: np.array(values) for run, values in stored}


def spread_of_topics(
    values: Mapping[int, Floats], run: int, run_b: int | None, error: float | None
) -> float | None:
    """Return the variance that the choice of topics adds to a run's or a pair's error; None where it is not known.

    Not what one interval has beyond the other: where judging decides both are the same, and topics differ all the same.
    """
    own, other = values.get(run), None if run_b is None else values.get(run_b)
    if own is None or error is None or own.size < 2 or (run_b is not None and other is None):
        return None
    apart = own if other is None else own - other
    return between_topics(float(apart.var(ddof=1)), apart.size, error**2)
