"""How the estimates of a draw with replacement follow from a release's facts: the paper's, and each item counted once.

Part of every release, beside verify.py, which calls it; NumPy is all it needs. A batch draws n times, each time a pair
with probability Q; so a pair may be drawn more than once, and is judged once.
"""

import math

import numpy as np

if __package__:
    from analytics.releases.verify_estimates import LEAST, REFUSED, Method, Target, WeightTable, interval
    from analytics.releases.verify_facts import Floats, Row, draw_probability, not_covered
else:  # in a release, the files lie beside each other
    from verify_estimates import LEAST, REFUSED, Method, Target, WeightTable, interval  # type: ignore
    from verify_facts import Floats, Row, draw_probability, not_covered  # type: ignore

ALMOST = np.nextafter(1.0, 0.0)
MOST_JOINT = 20_000  # items above which the variance is taken too large, without the second sum
PAPERS_Z = 1.96


def mean_gains(w: WeightTable) -> Floats:
    """Return by item the mean gain of its judgments."""
    facts, n = w.facts, w.facts.item.size
    gain = np.bincount(facts.label_item, w.gains[facts.label_grade], n)
    return np.asarray(gain / np.bincount(facts.label_item, minlength=n))


def distinct(w: WeightTable) -> Method:
    """Return ``sum over the frame of w f + sum over judged items of w (u - f) / pi``, each item counted once.

    ``pi = 1 - prod over batches of (1 - Q)^n``. Variance of Horvitz and Thompson: ``sum (1 - pi) z^2`` plus, over pairs
    of items, ``(pi_ij - pi_i pi_j) / pi_ij z_i z_j`` with z = w (u - f) / pi, because draws compete; the first sum
    alone where that is not positive. t with one degree of freedom less than there are items with pi below 1.
    """
    facts = w.facts
    everything = np.ones(facts.item.size, dtype=bool)
    if not_covered(facts, everything, draw_probability(facts, everything)):
        return lambda target: target.settled or REFUSED
    draws = facts.times.sum(axis=1)
    q = facts.single[:, facts.item]
    never = (draws[:, None] * np.log1p(-np.minimum(q, ALMOST))).sum(axis=0)
    pi = np.where((q == 1).any(axis=0), 1.0, -np.expm1(never))
    n_uncertain = int((pi < 1).sum())
    at = w.at_items(np.stack([everything, mean_gains(w), pi], axis=1)).T
    judged, of_weighed = at[0] > 0, np.where(at[0] > 0, at[2], 1.0)
    surprise = np.where(judged, (at[1] - w.prediction) / of_weighed, 0.0)
    joint = competition(facts.single[:, w.place], draws, of_weighed) if pi.size <= MOST_JOINT else None

    def estimate(target: Target) -> Row:
        z = target.weights * surprise
        n = int(np.count_nonzero(target.weights[judged]))
        if target.settled or n < LEAST or (n_uncertain and not z.any()):
            return target.settled or REFUSED
        largest = float(((1 - of_weighed) * z**2).sum())
        both = largest + float(z @ joint @ z) if joint is not None else 0.0
        df = max(1.0, n_uncertain - 1.0) if n_uncertain else math.inf
        value = float(target.known.sum() + z.sum())
        row = interval(value, {"drawing": both if both > 0 else largest}, df, n)
        n_positive = int(np.count_nonzero(target.weights[judged & (at[1] > 0)]))
        return w.with_topics(row, target, z) | {"n_positive": n_positive}

    return estimate


def competition(q: Floats, draws: Floats, pi: Floats) -> Floats:
    """Return ``(pi_ij - pi_i pi_j) / pi_ij`` of every two items, 0 of an item with itself."""
    odds = q / (1 - np.minimum(q, ALMOST))
    together = sum(
        (n * np.log1p(-np.minimum(np.outer(one, one), ALMOST)) for n, one in zip(draws, odds, strict=True)),
        np.zeros((pi.size, pi.size)),
    )
    excess = np.expm1(together) * np.outer(1 - pi, 1 - pi)
    joint = np.outer(pi, pi) + excess
    share = np.divide(excess, joint, out=np.zeros_like(excess), where=joint > 0)
    np.fill_diagonal(share, 0.0)
    return share


def importance(w: WeightTable) -> Method:
    """Return the paper's estimate: the mean over draws of ``w u / Q``, Q mixed over batches by their numbers of draws.

    Its variance is taken within batches, its interval is 1.96 standard errors wide (Schnabel et al. 2016, Eq 3 to 6).
    """
    facts, times = w.facts, w.facts.times[:, w.place]
    count, drawn = facts.times.sum(axis=1), int((facts.drawn_in > 0).sum())
    n = int(count.sum())
    if facts.item.size < drawn or n < 2 or (count == 1).any():
        return lambda target: target.settled or REFUSED
    mixture = (count[:, None] * facts.single[:, w.place]).sum(axis=0) / n
    gained = w.at_items(mean_gains(w))
    z_of = np.divide(gained, mixture, out=np.zeros_like(gained), where=mixture > 0)

    def estimate(target: Target) -> Row:
        z = target.weights * z_of
        squares = times @ z**2
        spread = squares - (times @ z) ** 2 / count
        spread[spread <= 1e-13 * squares] = 0.0
        variance = float((spread * count / (count - 1)).sum()) / n**2
        used = int(times[:, target.weights != 0].sum())
        if target.settled or used < LEAST or variance == 0:
            return target.settled or REFUSED
        value = float((times @ z).sum()) / n
        half = PAPERS_Z * math.sqrt(variance)
        row = interval(value, {"drawing": variance}, math.inf, n)
        return row | {"low": value - half, "high": value + half}

    return estimate
