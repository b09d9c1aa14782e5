"""Acceptance sampling of topics: how many to check, and what the bad ones among them say of all.

A collection has N topics, D of them judged badly (unknown). Of n topics drawn without replacement so many are bad that
their number is hypergeometric; the collection is accepted if at most c are. Source: Carterette and Soboroff (2010),
section 4.2, for the question; Wald (1945) for the sequential plan.

The paper's limit of 232 bad topics of 638 is 36.4 %, not the "over 40 %" in its text.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray


def _count(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise ValueError(f"{name} must be within [{least}, {most}], got {value}")


def _risk(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise ValueError(f"{name} must be within (0, 1), got {value}")


def accept_probability(n_topics: int, n_bad: int, n_checked: int, most_bad: int) -> float:
    """Return the probability that at most `most_bad` of the checked topics are bad.

    >>> round(accept_probability(638, 232, 15, 2), 6)
    0.047916
    """
    _count("n_bad", n_bad, 0, n_topics)
    _count("n_checked", n_checked, 0, n_topics)
    return float(scipy.stats.hypergeom.cdf(most_bad, n_topics, n_bad, n_checked))


@dataclass(frozen=True)
class AcceptancePlan:
    """Check `n_checked` topics and accept if at most `most_bad` are bad.

    Attributes
    ----------
    n_checked, most_bad : int
    producer_risk : float
        The probability that a collection with `n_bad_good` bad topics is rejected.
    consumer_risk : float
        The probability that a collection with `n_bad_limit` bad topics is accepted.
    """

    n_checked: int
    most_bad: int
    producer_risk: float
    consumer_risk: float

    def decision(self, n_checked: int, n_found: int) -> bool | None:
        """Return True to accept, False to reject, None where the checks that are left may still decide it.

        Stopping as soon as the rest cannot change the decision changes neither risk.

        >>> AcceptancePlan(26, 5, 0.037, 0.046).decision(10, 6)
        False
        """
        _count("n_checked", n_checked, 0, self.n_checked)
        _count("n_found", n_found, 0, n_checked)
        if n_found > self.most_bad:
            return False
        return True if n_found + self.n_checked - n_checked <= self.most_bad else None


def fewest_checks(n_topics: int, n_bad_limit: int, most_bad: int, beta: float) -> int | None:
    """Return the smallest number of checks with which a collection at the limit passes with probability beta at most.

    None where checking every topic would not do: with `most_bad` bad topics allowed that many and no more must fail.
    """
    low, high = most_bad + 1, n_topics
    if high < low or accept_probability(n_topics, n_bad_limit, high, most_bad) > beta:
        return None
    while low < high:  # the probability falls with every check
        middle = (low + high) // 2
        if accept_probability(n_topics, n_bad_limit, middle, most_bad) <= beta:
            high = middle
        else:
            low = middle + 1
    return low


def acceptance_plan(
    n_topics: int, n_bad_good: int, n_bad_limit: int, *, alpha: float = 0.05, beta: float = 0.05
) -> AcceptancePlan:
    """Return the plan with the fewest checks that keeps both risks.

    Parameters
    ----------
    n_topics
        N.
    n_bad_good
        D0: a collection with so many bad topics is rejected with probability alpha at most.
    n_bad_limit
        D1: a collection with so many bad topics is accepted with probability beta at most.

    Raises
    ------
    ValueError
        If the limits cross or lie outside 0..N, or a risk outside (0, 1).

    Examples
    --------
    >>> plan = acceptance_plan(638, 64, 232)
    >>> plan.n_checked, plan.most_bad
    (26, 5)
    """
    _risk("alpha", alpha)
    _risk("beta", beta)
    _count("n_bad_limit", n_bad_limit, 1, n_topics)
    _count("n_bad_good", n_bad_good, 0, n_topics)
    if n_bad_good >= n_bad_limit:
        raise ValueError(f"n_bad_good must be below n_bad_limit, got {n_bad_good} and {n_bad_limit}")
    for most_bad in range(n_bad_limit):
        n_checked = fewest_checks(n_topics, n_bad_limit, most_bad, beta)
        if n_checked is None:
            break
        rejects = 1.0 - accept_probability(n_topics, n_bad_good, n_checked, most_bad)
        if rejects <= alpha:
            accepts = accept_probability(n_topics, n_bad_limit, n_checked, most_bad)
            return AcceptancePlan(n_checked, most_bad, rejects, accepts)
    # Checking every topic and counting makes no error at all.
    return AcceptancePlan(n_topics, n_bad_limit - 1, 0.0, 0.0)


def most_bad_topics(n_topics: int, n_checked: int, n_found: int, confidence: float = 0.95) -> int:
    """Return the exact upper bound of the number of bad topics after so many checks.

    The largest D with P(at most `n_found` bad among the checked | D) > 1 - confidence.

    >>> most_bad_topics(638, 30, 2)
    122
    """
    _count("n_checked", n_checked, 0, n_topics)
    _count("n_found", n_found, 0, n_checked)
    _risk("confidence", confidence)
    low, high = n_found, n_topics - n_checked + n_found  # beyond, more than n_found are bad for certain
    while low < high:  # the probability falls as D grows
        middle = (low + high + 1) // 2
        if accept_probability(n_topics, middle, n_checked, n_found) > 1 - confidence:
            low = middle
        else:
            high = middle - 1
    return low


def apparent_rate(rate: float, sensitivity: float, specificity: float) -> float:
    """Return the share of topics that a checker calls bad: se p + (1 - sp)(1 - p).

    >>> round(apparent_rate(0.1, 0.8, 0.98), 3)
    0.098
    """
    for name, value in (("rate", rate), ("sensitivity", sensitivity), ("specificity", specificity)):
        if not 0 <= value <= 1:
            raise ValueError(f"{name} must be within [0, 1], got {value}")
    return sensitivity * rate + (1 - specificity) * (1 - rate)


@dataclass(frozen=True)
class SequentialPlan:
    """Wald's sequential test of the share of bad topics: check one more topic until a line is crossed.

    After k checks: accept at `slope * k - intercept` bad topics or fewer, reject at `slope * k + intercept` or more.
    Undecided after `most_checks`: rejected.
    """

    slope: float
    accept_intercept: float
    reject_intercept: float
    most_checks: int

    def decision(self, n_checked: int, n_found: int) -> bool | None:
        """Return True to accept, False to reject, None to check another topic."""
        if n_found >= self.slope * n_checked + self.reject_intercept:
            return False
        if n_found <= self.slope * n_checked - self.accept_intercept:
            return True
        return False if n_checked >= self.most_checks else None

    def accept_probability(self, rate: float) -> float:
        """Return the exact probability of acceptance where each topic is bad with probability `rate`, independently."""
        return self._run(rate)[0]

    def mean_checks(self, rate: float) -> float:
        """Return the exact expected number of checks where each topic is bad with probability `rate`."""
        return self._run(rate)[1]

    def _run(self, rate: float) -> tuple[float, float]:
        if not 0 <= rate <= 1:
            raise ValueError(f"rate must be within [0, 1], got {rate}")
        undecided: NDArray[np.float64] = np.array([1.0])  # by the number of bad topics found
        accepted = expected = 0.0
        for n_checked in range(1, self.most_checks + 1):
            expected += float(undecided.sum())
            undecided = np.convolve(undecided, [1 - rate, rate])
            for n_found in range(undecided.size):
                decision = self.decision(n_checked, n_found)
                if decision is None:
                    continue
                accepted += float(undecided[n_found]) if decision else 0.0
                undecided[n_found] = 0.0
        return accepted, expected


def sequential_plan(
    good_rate: float, limit_rate: float, *, alpha: float = 0.05, beta: float = 0.05, most_checks: int = 60
) -> SequentialPlan:
    """Return Wald's plan for two shares of bad topics.

    Source: Wald (1945), sequential probability ratio test of a binomial share.

    >>> plan = sequential_plan(0.1, 0.364)
    >>> round(plan.slope, 6), round(plan.reject_intercept, 6)
    (0.211811, 1.796288)
    """
    _risk("alpha", alpha)
    _risk("beta", beta)
    if not 0 < good_rate < limit_rate < 1:
        raise ValueError(f"rates must rise within (0, 1), got {good_rate} and {limit_rate}")
    if most_checks < 1:
        raise ValueError(f"most_checks must be at least 1, got {most_checks}")
    passes = math.log((1 - good_rate) / (1 - limit_rate))
    step = math.log(limit_rate / good_rate) + passes
    return SequentialPlan(
        slope=passes / step,
        accept_intercept=math.log((1 - alpha) / beta) / step,
        reject_intercept=math.log((1 - beta) / alpha) / step,
        most_checks=most_checks,
    )


def merged_errors(n_votes: int, need: int, false_alarm: float, miss: float) -> tuple[float, float]:
    """Return both error rates of a label that is relevant if at least `need` of the votes are.

    Parameters
    ----------
    false_alarm, miss
        Of one vote, independent of the others given the true label.

    >>> [round(rate, 5) for rate in merged_errors(3, 2, 0.2, 0.1)]
    [0.104, 0.028]
    """
    if not 1 <= need <= n_votes:
        raise ValueError(f"need must be within [1, {n_votes}], got {need}")
    for name, value in (("false_alarm", false_alarm), ("miss", miss)):
        if not 0 <= value <= 1:
            raise ValueError(f"{name} must be within [0, 1], got {value}")
    return float(scipy.stats.binom.sf(need - 1, n_votes, false_alarm)), float(
        scipy.stats.binom.cdf(need - 1, n_votes, 1 - miss)
    )
