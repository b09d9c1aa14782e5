"""What to buy next in a running campaign: more judged items, more gold, or both.

The reported number's variance has a part from the draw of the items and one from the audit (`Estimate.components`).
Were both simple random samples, of n judged out of F and m audited out of n, they would be ``A (1/n - 1/F)`` and
``B (1/m - 1/n)``; A and B follow from the two parts, and the whole is ``(A - B)/n + B/m - A/F``. So judgments
are worth what the bronze label explains, A - B, and gold the rest. A forecast: later draws and audits may be of another
design, and n and m must be counted as the two parts were (items with non-zero weight).
Source: Cochran (1977), 12.2 (double sampling); docs/methods/derivations/planning.md, section 4.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from analytics.estimation.estimate import FEWEST_ITEMS, Z95, Refusal


@dataclass(frozen=True)
class Purchase:
    """What to buy, in whole units, what it costs, and the half-width that it should give."""

    items: int
    judgments: int
    gold: int
    cost: float
    half_width: float
    half_width_now: float
    words: str


@dataclass(frozen=True)
class _State:
    """``V(n, m) = bronze/n + gold/m + rest`` with n in [n, frame] and m in [m, n], and the prices of one more."""

    bronze: float
    gold: float
    rest: float
    n: float
    m: float
    frame: float
    cost_item: float
    cost_gold: float
    quantile: float

    def variance(self, n: float, m: float) -> float:
        return max(0.0, self.bronze / n + self.gold / m + self.rest)

    def cost(self, n: float, m: float) -> float:
        return self.cost_item * (n - self.n) + self.cost_gold * (m - self.m)

    def clip(self, n: float, m: float) -> tuple[float, float]:
        """Return the nearest possible numbers."""
        n = min(max(n, self.n), self.frame)
        return n, min(max(m, self.m), n)


def next_purchase(
    drawing_variance: float,
    gold_variance: float,
    n_judged: int,
    n_audited: int,
    cost_per_judgment: float,
    cost_per_gold: float,
    *,
    half_width: float | None = None,
    budget: float | None = None,
    frame_size: int | None = None,
    judgments_per_item: int = 1,
    fixed_variance: float = 0.0,
    quantile: float = Z95,
) -> Purchase | Refusal:
    """Return the cheapest purchase that gives a half-width, or the one of the smallest half-width for a budget.

    `drawing_variance` and `gold_variance` are the estimate's components at `n_judged` and `n_audited` items;
    `frame_size` all items that could be judged (None: without end); an item costs `judgments_per_item`
    judgments; `fixed_variance` is what no purchase changes (topics); a half-width is `quantile` standard errors.
    Refused if the half-width cannot be reached,
    nothing is left to buy, or fewer than 10 items are audited. Assumption: top of the module.
    """
    _check((drawing_variance, gold_variance, fixed_variance), (cost_per_judgment, cost_per_gold))
    _check_sizes(n_judged, n_audited, frame_size, judgments_per_item)
    if (half_width is None) == (budget is None):
        raise ValueError(f"exactly one of half_width and budget is needed, got {half_width} and {budget}")
    if not all(math.isfinite(x) and x > 0 for x in (half_width, budget) if x is not None):
        raise ValueError(f"half_width or budget must be above 0, got {half_width} and {budget}")
    if n_audited < FEWEST_ITEMS:
        return Refusal(
            f"{n_audited} audited items; at least {FEWEST_ITEMS} are needed for a forecast",
            FEWEST_ITEMS - n_audited,
        )
    state = _state(
        (drawing_variance, gold_variance, fixed_variance),
        (n_judged, n_audited, math.inf if frame_size is None else frame_size),
        (cost_per_judgment * judgments_per_item, cost_per_gold),
        quantile,
    )
    now = quantile * math.sqrt(drawing_variance + gold_variance + fixed_variance)
    if half_width is not None:
        return _for_half_width(state, half_width, now, judgments_per_item)
    narrowest = _narrowest(state, float(budget or 0.0))
    if narrowest == (state.n, state.m):
        return Refusal(
            "nothing can be bought: everything is judged and audited, or the budget does not pay for one unit"
        )
    return _purchase(state, *narrowest, now, judgments_per_item)


def _for_half_width(
    state: _State, half_width: float, now: float, judgments_per_item: int
) -> Purchase | Refusal:
    target_variance = (half_width / state.quantile) ** 2
    if now <= half_width:
        return _purchase(state, state.n, state.m, now, judgments_per_item)
    most = target_variance * (1 + 1e-9)
    if target_variance - state.rest <= 0 or state.variance(*_upper_bounds(state, target_variance)) > most:
        least = state.quantile * math.sqrt(max(0.0, state.variance(state.frame, state.frame)))
        return Refusal(
            f"a half-width of {half_width:.4g} cannot be reached by more judging and auditing: about "
            f"{least:.4g} would remain"
        )
    n, m = _cheapest(state, target_variance)
    return _purchase(state, n, m, now, judgments_per_item)


def _check(variances: tuple[float, ...], costs: tuple[float, ...]) -> None:
    if not all(math.isfinite(x) and x >= 0 for x in variances):
        raise ValueError(f"variances must be finite and >= 0, got {variances}")
    if not all(math.isfinite(x) and x > 0 for x in costs):
        raise ValueError(f"costs must be above 0, got {costs}")


def _check_sizes(n_judged: int, n_audited: int, frame_size: int | None, judgments_per_item: int) -> None:
    if not 0 <= n_audited <= n_judged or judgments_per_item < 1:
        raise ValueError(
            "n_audited must be in 0..n_judged and judgments_per_item >= 1, "
            f"got {n_audited} of {n_judged} and {judgments_per_item}"
        )
    if frame_size is not None and frame_size < n_judged:
        raise ValueError(f"frame_size must be at least n_judged = {n_judged}, got {frame_size}")


def _state(
    variances: tuple[float, float, float],
    sizes: tuple[float, float, float],
    costs: tuple[float, float],
    quantile: float,
) -> _State:
    drawing, gold, fixed = variances
    n, m, frame = sizes
    unjudged, unaudited = 1 / n - 1 / frame, 1 / m - 1 / n
    if unjudged <= 0:  # all are judged: only gold can be bought
        b = gold / unaudited if unaudited > 0 else 0.0
        return _State(0.0, b, fixed + drawing - b / n, n, m, n, *costs, quantile)
    a = drawing / unjudged
    b = gold / unaudited if unaudited > 0 else math.inf
    if b <= a:
        return _State(a - b, b, fixed - a / frame, n, m, frame, *costs, quantile)
    # bronze explains nothing that can be seen: a judged item is worth something only together with its gold
    b = (drawing + gold) / (1 / m - 1 / frame)
    return _State(0.0, b, fixed - b / frame, n, m, frame, *costs, quantile)


def _upper_bounds(state: _State, target_variance: float) -> tuple[float, float]:
    """Return the most that can be bought; without a limit, enough that only a negative remainder is possible."""
    if math.isfinite(state.frame):
        return state.frame, state.frame
    enough = max(state.n, 2 * (state.bronze + state.gold) / (target_variance - state.rest))
    return enough, enough


def _cheapest(state: _State, target_variance: float) -> tuple[float, float]:
    """Return whole (n, m) of the least cost with V <= target_variance: the convex problem's inner point or an edge."""
    room = target_variance - state.rest
    k = math.sqrt(state.bronze * state.cost_item) + math.sqrt(state.gold * state.cost_gold)
    starts = [
        math.sqrt(state.bronze / state.cost_item) * k / room,
        state.n,
        (state.bronze + state.gold) / room,
    ]
    if room > state.gold / state.m:
        starts.append(state.bronze / (room - state.gold / state.m))
    if math.isfinite(state.frame):
        starts.append(state.frame)
    candidates: list[tuple[float, float]] = []
    for start in starts:
        n = math.ceil(min(max(start, state.n), state.frame) - 1e-9)
        left = room - state.bronze / n
        if left <= 0:
            continue
        m = math.ceil(max(state.m, state.gold / left) - 1e-9)
        if m <= n:
            candidates.append((n, m))
    if not candidates:  # rounding at the edge m = n
        edge = math.ceil(min(state.frame, (state.bronze + state.gold) / room))
        return state.clip(edge, edge)
    return min(candidates, key=lambda pair: state.cost(*pair))


def _narrowest(state: _State, budget: float) -> tuple[float, float]:
    """Return whole (n, m) of the least variance that the budget buys."""
    total = state.cost_item * state.n + state.cost_gold * state.m + budget
    k = math.sqrt(state.bronze * state.cost_item) + math.sqrt(state.gold * state.cost_gold)
    starts: list[float] = [
        state.n,
        state.n + budget / state.cost_item,
        total / (state.cost_item + state.cost_gold),
    ]
    if k > 0:
        starts.append(total * math.sqrt(state.bronze / state.cost_item) / k)
    if math.isfinite(state.frame):
        starts.append(state.frame)
    return min(
        _affordable(state, starts, budget), key=lambda pair: (state.variance(*pair), state.cost(*pair))
    )


def _affordable(state: _State, starts: Sequence[float], budget: float) -> list[tuple[float, float]]:
    pairs = [(state.n, state.m)]
    for start in starts:
        for extra in (0, 1):  # rounded down, and up if the money allows
            n, _ = state.clip(math.floor(start + 1e-9) + extra, state.m)
            left = budget - state.cost_item * (n - state.n)
            if left < -1e-9:
                continue
            pairs.append(state.clip(n, state.m + math.floor(left / state.cost_gold + 1e-9)))
    return pairs


def _purchase(state: _State, n: float, m: float, now: float, judgments_per_item: int) -> Purchase:
    items, gold = round(n - state.n), round(m - state.m)
    half = state.quantile * math.sqrt(state.variance(n, m)) if items or gold else now
    cost, judgments = state.cost(n, m), items * judgments_per_item
    if not items and not gold:
        return Purchase(0, 0, 0, 0.0, half, now, f"Nothing: the half-width is already {now:.4g}.")
    parts = [f"{judgments:,} judgments of {items:,} more items"] * bool(items) + [
        f"{gold:,} gold labels"
    ] * bool(gold)
    words = f"{' and '.join(parts)} for {cost:,.0f}: a half-width of about {half:.4g} instead of {now:.4g}."
    return Purchase(items, judgments, gold, cost, half, now, words)
