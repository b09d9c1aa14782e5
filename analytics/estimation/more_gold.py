"""How many more gold labels a corrected difference needs before its interval can leave 0."""

import numpy as np

from analytics.estimation.estimate import Z95, Estimates, Floats, Ints

LARGEST = 1e300


def gold_labels_for(half_width: float, n_items: int, residual_variance: float) -> int:
    """Return the random gold labels that give the half-width: ``N^2 S^2 q / (1 + N S^2 q)``, q = (1.96/h)^2.

    N judged items, S^2 the variance of w r over them. Source: docs/methods/derivations/correction.md, section 6.

    >>> gold_labels_for(0.1, 1000, 1e-6)
    278
    """
    if not half_width > 0:
        raise ValueError(f"half_width must be above 0, got {half_width}")
    if n_items < 1 or residual_variance < 0:
        raise ValueError(
            f"n_items must be >= 1 and residual_variance >= 0, got {n_items}, {residual_variance}"
        )
    return int(_gold_labels(np.array(half_width), np.array(n_items), np.array(residual_variance)))


def _gold_labels(half_width: Floats, n_items: Ints, residual_variance: Floats) -> Ints:
    ratio = np.minimum(n_items * residual_variance * (Z95 / half_width) ** 2, LARGEST)
    return np.asarray(np.minimum(n_items, np.ceil(n_items * ratio / (1 + ratio)).astype(np.int64)))


def _labels_to_resolve(value: Floats, drawing: Floats, gold: Floats, n: Ints, n_items: Ints) -> Ints:
    """Return the gold labels that make the half-width the difference itself, or -1 where more items must be judged.

    The audit stays of the same kind and the drawing variance as it is; where the drawing alone is wider than the
    difference, no gold helps.
    """
    room = value**2 - Z95**2 * drawing
    possible = (room > 0) & (n < n_items)
    half_width = np.sqrt(np.where(possible, room, 1.0))
    # the audit variance of a simple random audit is N^2 S^2 (1/m - 1/N)
    unit = n_items**2 * (1 / np.maximum(1, n) - 1 / np.maximum(1, n_items))
    spread = np.divide(gold, unit, out=np.zeros(gold.shape), where=possible)
    needed = np.minimum(n_items, np.maximum(_gold_labels(half_width, n_items, spread), n + 1))
    return np.asarray(np.where(possible, needed, -1))


def _advice(n: int, needed: int) -> str:
    words = f"not resolved by {n} gold labels"
    if needed < 0:
        return f"{words}; the drawing error alone is larger than the difference: judge more items"
    return f"{words}; about {needed} needed"


def advice(each: Estimates, n_items: Ints) -> list[str]:
    """Return per target "not resolved by m gold labels; about m' needed", or "" where nothing is to be said.

    That is where the interval excludes 0, has no width, or is refused. `each` comes from `correct`; `n_items` counts
    the judged items with weight.
    """
    open_ones = (each.low <= 0) & (each.high >= 0) & (each.standard_error > 0)
    open_ones[list(each.refusals)] = False
    drawing, gold = each.components["drawing"], each.components["gold"]
    places = np.flatnonzero(open_ones)
    value, drawing, gold = (column[places] for column in (each.value, drawing, gold))
    all_needed = _labels_to_resolve(value, drawing, gold, each.n[places], n_items[places])
    words = [""] * len(each)
    for place, needed in zip(places.tolist(), all_needed.tolist(), strict=True):
        words[place] = _advice(int(each.n[place]), needed)
    return words
