"""Policies of judging again: which completely judged items get one judgment more, the most urgent first.

A policy may go by recorded probabilities, grades and gold checks, never by an audit: it must not know which items were
audited, or the classes of the judgments would, and the corrected number would be biased.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sampling.arrays import FloatArray

Places = NDArray[np.int64]
PAPERS_LIMIT = 0.01  # of the inclusion probability: Carterette and Soboroff (2010), section 4.1


@dataclass(frozen=True, eq=False)
class RejudgingCandidates:
    """Items that may be judged once more, an entry an item.

    Attributes
    ----------
    is_relevant : array of bool
        As their judgments say together.
    inclusion_probability : array
        The draw's, within (0, 1].
    random_number : array
        Different for all items.
    priority : array
        Influence times error probability; None where error rates are not known.
    limit : float
        Below this inclusion probability a relevant label is judged again by `rare`.
    """

    is_relevant: NDArray[np.bool_]
    inclusion_probability: FloatArray
    random_number: FloatArray
    priority: FloatArray | None
    limit: float = PAPERS_LIMIT


@dataclass(frozen=True)
class RejudgingPolicy:
    """One policy: `order` gives the places of the items that it wants judged again, the most urgent first."""

    key: str
    label: str
    help: str
    order: Callable[[RejudgingCandidates], Places]
    needs_error_rates: bool = False


def _by_influence(items: RejudgingCandidates) -> Places:
    if items.priority is None:
        return np.zeros(0, dtype=np.int64)
    order = np.argsort(-items.priority, kind="stable")
    return order[items.priority[order] > 0]


def _rarest(items: RejudgingCandidates) -> Places:
    chosen = np.flatnonzero(items.is_relevant & (items.inclusion_probability < items.limit))
    return chosen[np.argsort(items.inclusion_probability[chosen], kind="stable")]


def _at_random(items: RejudgingCandidates) -> Places:
    return np.argsort(items.random_number, kind="stable")


# The first is the default.
REJUDGING_POLICIES = (
    RejudgingPolicy(
        "influence",
        "Influence times error probability",
        "What is probably wrong and would move the comparison most. Needs gold checks.",
        _by_influence,
        needs_error_rates=True,
    ),
    RejudgingPolicy(
        "lowest-probability",
        "Lowest inclusion probability among relevant",
        "Relevant labels that stand for many documents. Can only remove relevant labels.",
        _rarest,
    ),
    RejudgingPolicy("random", "At random", "Every document with the same probability.", _at_random),
)


def rejudging_policy_keys() -> list[str]:
    return [policy.key for policy in REJUDGING_POLICIES]


def rejudging_policy_of(key: str) -> RejudgingPolicy:
    """Return the policy of a key; ValueError where there is none.

    >>> rejudging_policy_of("random").label
    'At random'
    """
    for policy in REJUDGING_POLICIES:
        if policy.key == key:
            return policy
    raise ValueError(f"the policy must be one of {rejudging_policy_keys()}, got {key!r}")
