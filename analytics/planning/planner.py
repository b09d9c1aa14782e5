"""The cost of a required precision in bronze and gold, before a campaign and while it runs.

Prices are per unit: `cost_bronze` per topic (or item) of one system, all its judgments together, `cost_gold` per gold
document. A variance of two parts ``A/n + B/N`` is cheapest, for the money B_total, at
``n = B_total sqrt(A/c_b)/k``, ``N = B_total sqrt(B/c_g)/k``, ``k = sqrt(A c_b) + sqrt(B c_g)`` (Cauchy-Schwarz).
Plans of the papers' methods rest on their assumption (errors alike on all documents of a grade); `next_purchase`
(`analytics.planning.purchases`) uses the components of any estimate.
Source: docs/methods/derivations/planning.md, sections 1 to 3.
"""

import math
from dataclasses import dataclass

import scipy

from analytics.estimation.estimate import Z95
from analytics.papers.calibration import label_informativeness
from analytics.papers.refusals import rate

PLANS = {
    "independent audits": "Eq 7 and 10: an audit for each system",
    "shared audit": "one audit for both systems, same assessors and period",
    "calibration": "an audit of each system's own documents; gold and bronze labels are used together",
    "gold only": "no bronze labels",
}


@dataclass(frozen=True)
class Plan:
    """What to buy for one number: `bronze` units and `gold` documents (not rounded), at `cost`.

    For a difference both counts are per system, except `gold` of a shared audit, which serves both; `cost` is
    of everything.
    """

    bronze: float
    gold: float
    cost: float
    standard_error: float

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % confidence interval."""
        return Z95 * self.standard_error


@dataclass(frozen=True)
class Worth:
    """Whether bronze is worth buying for one evaluation whose audit is of the same population (P@1)."""

    informativeness: float  # K
    inverse_cost: float  # Eq 7, per unit of pq/SE^2
    calibration_cost: float
    gold_only_cost: float
    words: str

    @property
    def best(self) -> str:
        """The cheapest of "inverse", "calibration" and "gold only"."""
        costs = {
            "gold only": self.gold_only_cost,
            "calibration": self.calibration_cost,
            "inverse": self.inverse_cost,
        }
        return min(costs, key=lambda name: costs[name])


# -- validation ---------------------------------------------------------------------------------------------


def _positive(**numbers: float) -> None:
    for name, number in numbers.items():
        if not (math.isfinite(number) and number > 0):
            raise ValueError(f"{name} must be above 0, got {number}")


def _not_negative(**numbers: float) -> None:
    for name, number in numbers.items():
        if not (math.isfinite(number) and number >= 0):
            raise ValueError(f"{name} must be >= 0, got {number}")


# -- splitting money ----------------------------------------------------------------------------------------


def audit_spread(prevalence: float, sensitivity: float, specificity: float) -> float:
    """Return ``W = m_G mR(1-mR) + (1-m_G) mN(1-mN)``: the audit's part of Var(m_G) D^2 is W/N, N at random.

    >>> round(audit_spread(.816570, 43/59, 67/84), 6)
    0.191
    """
    p, m_r, m_n = (
        rate(name, value)
        for name, value in (
            ("prevalence", prevalence),
            ("sensitivity", sensitivity),
            ("specificity", specificity),
        )
    )
    return p * m_r * (1 - m_r) + (1 - p) * m_n * (1 - m_n)


def split(
    bronze_variance: float,
    gold_variance: float,
    *,
    cost_bronze: float,
    cost_gold: float,
    separation: float = 1.0,
    standard_error: float | None = None,
    budget: float | None = None,
) -> Plan:
    """Return the cheapest (n, N) with ``[bronze_variance/n + gold_variance/N]/separation^2 = SE^2``.

    Or, given a `budget`, those of the smallest SE. One system by Eq 7: s_J^2, `audit_spread`, D.

    >>> plan = split(.16, .19, separation=.5, cost_bronze=9, cost_gold=20, standard_error=.02)
    >>> [round(x, 6) for x in (plan.cost, plan.bronze, plan.gold)]
    [99184.612855, 4199.145159, 3069.615321]
    """
    _not_negative(bronze_variance=bronze_variance, gold_variance=gold_variance)
    _positive(cost_bronze=cost_bronze, cost_gold=cost_gold, separation=abs(separation))
    if (standard_error is None) == (budget is None):
        raise ValueError(
            f"exactly one of standard_error and budget is needed, got {standard_error} and {budget}"
        )
    k = math.sqrt(bronze_variance * cost_bronze) + math.sqrt(gold_variance * cost_gold)
    if k == 0:
        raise ValueError("bronze_variance and gold_variance must not both be 0")
    if budget is not None:
        _positive(budget=budget)
        error = k / (abs(separation) * math.sqrt(budget))
    else:
        error = float(standard_error or 0.0)
        _positive(standard_error=error)
        budget = (k / (error * separation)) ** 2
    bronze = budget * math.sqrt(bronze_variance / cost_bronze) / k
    return Plan(bronze, budget * math.sqrt(gold_variance / cost_gold) / k, budget, error)


# -- is bronze worth buying? --------------------------------------------------------------------------------


def bronze_worth(informativeness: float, *, cost_bronze: float, cost_gold: float) -> Worth:
    """Return what one evaluation costs with Eq 7, with calibration, and with gold alone, per pq/SE^2.

    ``(sqrt(c_b/K) + sqrt((1/K-1) c_g))^2``, ``(sqrt(K c_b) + sqrt((1-K) c_g))^2`` and ``c_g``: Eq 7 can never be the
    cheaper for K < 1/2. Assumption: P@1, the audit is a random sample of the evaluated documents, and used once.
    Several evaluations that share an audit, and differences between systems, are other questions.
    """
    _positive(cost_bronze=cost_bronze, cost_gold=cost_gold)
    if not 0 < informativeness <= 1:
        raise ValueError(f"informativeness must be in (0, 1], got {informativeness}")
    k = informativeness
    inverse = (math.sqrt(cost_bronze / k) + math.sqrt((1 / k - 1) * cost_gold)) ** 2
    calibrated = (math.sqrt(k * cost_bronze) + math.sqrt((1 - k) * cost_gold)) ** 2
    if min(inverse, calibrated) >= cost_gold:
        words = "Bronze labels are not worth buying: the same money buys a narrower interval with gold labels alone."
    else:
        saved = 1 - min(inverse, calibrated) / cost_gold
        words = f"Bronze labels are worth buying: they save {saved:.0%} of the cost of gold labels alone."
        if inverse >= cost_gold:
            words += " Use them with gold labels, by calibration: the matrix inverse costs more than gold labels alone."
    return Worth(k, inverse, calibrated, cost_gold, words)


def evaluation_plans(
    prevalence: float,
    sensitivity: float,
    specificity: float,
    *,
    cost_bronze: float,
    cost_gold: float,
    standard_error: float,
) -> dict[str, Plan]:
    """Return the plans "inverse" (Eq 7), "calibration" and "gold only" for one system's P@1 at a standard error."""
    k = label_informativeness(prevalence, sensitivity, specificity)
    if not 0 < k <= 1:
        raise ValueError("the labels must be informative: sensitivity + specificity must differ from 1")
    pq = prevalence * (1 - prevalence)
    costs = {"cost_bronze": cost_bronze, "cost_gold": cost_gold, "standard_error": standard_error}
    return {
        "inverse": split(pq / k, pq * (1 / k - 1), **costs),
        "calibration": split(pq * k, pq * (1 - k), **costs),
        "gold only": split(0.0, pq, **costs),
    }


# -- a difference of two systems ----------------------------------------------------------------------------


def error_for_power(
    difference: float,
    *,
    power: float = 0.8,
    level: float = 0.05,
    degrees_of_freedom: float = math.inf,
) -> float:
    """Return the standard error that detects a difference with that power: ``|Delta|/(z_{1-a/2} + z_power)``.

    With degrees of freedom the quantiles are those of t, as over topics: approximate, as t is centred here.

    >>> round(error_for_power(1.0), 6), round(error_for_power(1.0, degrees_of_freedom=44), 6)
    (0.356941, 0.349012)
    """
    _positive(difference=abs(difference))
    if not (0 < level < 1 and 0.5 <= power < 1):
        raise ValueError(f"level must be in (0, 1) and power in [.5, 1), got {level} and {power}")
    t = scipy.stats.t(degrees_of_freedom)  # of infinite ones the normal distribution
    return abs(difference) / float(t.isf(level / 2) + t.ppf(power))


def topics_for_power(
    difference: float, topic_variance: float, *, power: float = 0.8, level: float = 0.05
) -> int:
    """Return how many topics like these detect a difference with that power by the paired t-test, at least 2.

    The least n with ``S/sqrt(n) <= error_for_power`` at n - 1 degrees of freedom. `topic_variance` is S^2, the variance
    of the topics' differences with their errors of judging: more topics, judged and audited as these are.

    >>> topics_for_power(0.822193, 2.372739**2)
    68
    """
    _positive(topic_variance=topic_variance)
    error = error_for_power(difference, power=power, level=level)
    n = max(2, math.ceil(topic_variance / error**2))  # by the normal distribution: never more than needed
    while math.sqrt(topic_variance / n) > error_for_power(
        difference, power=power, level=level, degrees_of_freedom=n - 1
    ):
        n += 1
    return n


def difference_plans(
    difference: float,
    *,
    prevalence: float,
    sensitivity: float,
    specificity: float,
    topic_variance: float,
    cost_bronze: float,
    cost_gold: float,
    power: float = 0.8,
    level: float = 0.05,
) -> dict[str, Plan]:
    """Return a plan per entry of `PLANS` to detect a corrected difference Delta of two systems with a power.

    `topic_variance` is s^2 of a system's bronze value over topics, `prevalence` the mean m_G of both. Independent
    audits, calibration and gold only: each system to SE/sqrt 2. Shared audit:
    ``Var = [2 s^2/n + w2/N]/D^2``, ``w2 = Delta^2 [mR(1-mR)/m_G + mN(1-mN)/(1-m_G)]``. Calibration and gold
    only are those of P@1 (a unit of bronze is a document there). Different topics for the two systems.
    """
    _positive(topic_variance=topic_variance, cost_bronze=cost_bronze, cost_gold=cost_gold)
    p = rate("prevalence", prevalence)
    if not 0 < p < 1:
        raise ValueError(f"prevalence must be in (0, 1), got {prevalence}")
    w, d = audit_spread(p, sensitivity, specificity), sensitivity + specificity - 1
    _positive(separation=d)
    error = error_for_power(difference, power=power, level=level)
    costs = {"cost_bronze": cost_bronze, "cost_gold": cost_gold}
    alone = evaluation_plans(p, sensitivity, specificity, **costs, standard_error=error / math.sqrt(2))
    alone["independent audits"] = split(
        topic_variance, w, separation=d, **costs, standard_error=error / math.sqrt(2)
    )
    plans = {
        name: Plan(one.bronze, one.gold, 2 * one.cost, error) for name, one in alone.items() if name in PLANS
    }
    spread = difference**2 * (sensitivity * (1 - sensitivity) / p + specificity * (1 - specificity) / (1 - p))
    plans["shared audit"] = split(
        2 * topic_variance,
        spread,
        separation=d,
        cost_bronze=2 * cost_bronze,
        cost_gold=cost_gold,
        standard_error=error,
    )
    return {name: plans[name] for name in PLANS}
