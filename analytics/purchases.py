"""What to buy next in a running campaign: more judged items, or more gold labels.

A corrected number is a two-phase estimate: n of N items are judged, m of these audited. Its variance is

    V(n, m) = S^2 (1/n - 1/N) + S_r^2 (1/m - 1/n)

with S^2 the spread of the weighed gold gains and S_r^2 what of it the judges' grades do not explain. Both are read
off the two components of a variance that was estimated at some n and m, and then hold at others.
Source: Cochran (1977), section 12.5 (double sampling); methods/noise-correction.md, section 4.
"""

import math
from dataclasses import dataclass

from scipy.special import ndtri

STEPS = 60  # of a bisection: money to 1e-18 of all that can be spent


@dataclass(frozen=True)
class Bought:
    """So far: variance from drawing and from gold, with n_judged of n_frame items judged and n_audited audited."""

    drawing: float
    gold: float
    n_judged: int
    n_audited: int
    n_frame: int

    def __post_init__(self) -> None:
        if not 1 <= self.n_audited <= self.n_judged <= self.n_frame:
            raise ValueError(
                "1 <= n_audited <= n_judged <= n_frame is needed, "
                f"got {self.n_audited}, {self.n_judged}, {self.n_frame}"
            )
        if not (math.isfinite(self.drawing + self.gold) and min(self.drawing, self.gold) >= 0):
            raise ValueError(f"drawing and gold must be finite and >= 0, got {self.drawing} and {self.gold}")

    @property
    def spread(self) -> float | None:
        """Return S^2; None when all items are judged: drawing has no variance then, and nothing is left to draw."""
        return (
            None if self.n_judged == self.n_frame else self.drawing / (1 / self.n_judged - 1 / self.n_frame)
        )

    @property
    def residual(self) -> float:
        """Return S_r^2; 0 when all judged items are audited."""
        if self.n_audited == self.n_judged:
            return 0.0
        return self.gold / (1 / self.n_audited - 1 / self.n_judged)

    @property
    def explained(self) -> float | None:
        """Return K = 1 - S_r^2/S^2 in [0, 1], the share of the spread that the judges' grades explain."""
        if self.n_audited == self.n_judged or not self.spread:
            return None
        return min(1.0, max(0.0, 1 - self.residual / self.spread))

    def variance(self, n_judged: float, n_audited: float) -> float:
        """Return V(n, m) for n_audited <= n_judged <= n_frame."""
        drawn = (self.spread or 0.0) * (1 / n_judged - 1 / self.n_frame)
        return max(0.0, drawn + self.residual * (1 / n_audited - 1 / n_judged))


@dataclass(frozen=True)
class Purchase:
    """So many more items to judge and gold labels to give, what they cost, and the standard error after them."""

    items: float
    gold: float
    money: float
    standard_error: float


def best_purchase(bought: Bought, money: float, *, cost_item: float, cost_gold: float) -> Purchase:
    """Return the split of the money between items and gold that leaves the smallest variance.

    Along the line of equal cost V is convex in n wherever the grades explain something, so that the unconstrained
    optimum (n : m = sqrt((S^2 - S_r^2)/c_item) : sqrt(S_r^2/c_gold)), moved into what is possible, is the best. Where
    they explain nothing every new item is audited as well. What was bought cannot be given back.

    >>> bought = Bought(drawing=0.0, gold=0.01, n_judged=100, n_audited=50, n_frame=100)
    >>> best_purchase(bought, 100.0, cost_item=1.0, cost_gold=10.0).gold
    10.0
    """
    _costs(cost_item, cost_gold)
    if not (math.isfinite(money) and money >= 0):
        raise ValueError(f"money must be finite and >= 0, got {money}")
    worth = money + cost_item * bought.n_judged + cost_gold * bought.n_audited
    # m <= n, and m not below what is audited
    fewest = max(float(bought.n_judged), worth / (cost_item + cost_gold))
    most = min(float(bought.n_frame), (worth - cost_gold * bought.n_audited) / cost_item)
    explained = (bought.spread or 0.0) - bought.residual
    wanted = fewest
    if explained > 0:
        item, gold = math.sqrt(explained * cost_item), math.sqrt(bought.residual * cost_gold)
        wanted = worth * math.sqrt(explained / cost_item) / (item + gold)
    n = max(min(wanted, most), min(fewest, float(bought.n_frame)))
    m = min(n, (worth - cost_item * n) / cost_gold)
    spent = cost_item * (n - bought.n_judged) + cost_gold * (m - bought.n_audited)
    return Purchase(n - bought.n_judged, m - bought.n_audited, spent, math.sqrt(bought.variance(n, m)))


def cheapest_purchase(
    bought: Bought, standard_error: float, *, cost_item: float, cost_gold: float
) -> Purchase:
    """Return what to buy so that the standard error falls to that: all items audited leave none at all."""
    _costs(cost_item, cost_gold)
    if not standard_error > 0:
        raise ValueError(f"standard_error must be above 0, got {standard_error}")
    costs = {"cost_item": cost_item, "cost_gold": cost_gold}
    low, high = (
        0.0,
        cost_item * (bought.n_frame - bought.n_judged) + cost_gold * (bought.n_frame - bought.n_audited),
    )
    if best_purchase(bought, 0.0, **costs).standard_error <= standard_error:
        return best_purchase(bought, 0.0, **costs)
    for _ in range(STEPS):
        middle = (low + high) / 2
        enough = best_purchase(bought, middle, **costs).standard_error <= standard_error
        low, high = (low, middle) if enough else (middle, high)
    return best_purchase(bought, high, **costs)


def gold_alone(bought: Bought, money: float, *, cost_gold: float) -> Purchase:
    """Return what the money buys if all of it goes into auditing what is judged."""
    more = min(money / cost_gold, bought.n_judged - bought.n_audited)
    error = math.sqrt(bought.variance(bought.n_judged, bought.n_audited + more))
    return Purchase(0.0, more, more * cost_gold, error)


def items_alone(bought: Bought, money: float, *, cost_item: float) -> Purchase:
    """Return what the money buys if all of it goes into judging more items."""
    more = min(money / cost_item, bought.n_frame - bought.n_judged)
    error = math.sqrt(bought.variance(bought.n_judged + more, bought.n_audited))
    return Purchase(more, 0.0, more * cost_item, error)


def error_for(difference: float, power: float) -> float:
    """Return the standard error at which a difference of that size is found with this power, at the 5 % level.

    >>> round(error_for(.023745, .8), 6)
    0.008476
    """
    if not (math.isfinite(difference) and difference > 0):
        raise ValueError(f"difference must be above 0, got {difference}")
    if not 0.05 < power < 1:
        raise ValueError(f"power must be in (0.05, 1), got {power}")
    return difference / float(ndtri(0.975) + ndtri(power))


def _costs(cost_item: float, cost_gold: float) -> None:
    for name, cost in (("cost_item", cost_item), ("cost_gold", cost_gold)):
        if not (math.isfinite(cost) and cost > 0):
            raise ValueError(f"{name} must be above 0, got {cost}")
