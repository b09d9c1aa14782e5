"""What documents that could not be judged may still be worth to a number, and how much of it to expect.

A run that came after the draw returns documents that had no chance to be judged. Of a sum over documents each of them
adds between 0 and its weight times the largest gain: the number of what could be judged, with its interval, bounds the
whole. The bound needs no model; the expectation takes it that such documents are relevant as often as those were that
a single pooled run (or group of runs) brought in alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite
from analytics.estimation.estimate import Estimates, Floats, Ints, Refusal
from analytics.estimation.targets import TargetWeights
from sampling.measures.sparse import SparseRuns

NEGLIGIBLE = 0.1  # of a half-width: what moves an end by no more needs no mark
WIDER_WORDS = "the interval is wider, for they may be worth"


class Standing(IntEnum):
    """May a number be reported although documents within the cutoff could not be judged?"""

    YES = 0
    WIDER = 1
    NOT_YET = 2

    @property
    def words(self) -> str:
        """Return the answer in words.

        >>> Standing.WIDER.words
        'yes, with a wider interval'
        """
        return ("yes", "yes, with a wider interval", "not yet")[self]


@dataclass(frozen=True, eq=False)
class OutsideGain:
    """How far the true number may lie below (`down`) and above (`up`) that of the documents that could be judged.

    Arrays [target], >= 0: 0 where all could be judged. Of a run nothing lies below; of a difference a - b, a's
    documents lie above and b's below. `why` [run] says in words which run returns such documents, `run` [target] which
    of them is meant.
    """

    down: Floats
    up: Floats
    why: Sequence[str] = ()
    run: Ints | None = None

    def reason(self, target: int) -> str:
        """Return in words that a run of the target returns what could not be judged."""
        return (
            self.why[int(self.run[target])]
            if self.run is not None and self.why
            else "not all could be judged"
        )

    @property
    def most(self) -> Floats:
        """Return by target how far an end moves at most."""
        return np.maximum(self.down, self.up)

    def standings(self, half_width: ArrayLike) -> Ints:
        """Return the `Standing` of every target, given half of its 95 % confidence interval.

        Up to a tenth of it: yes; up to all of it: with a wider interval; beyond: not yet. Where the half-width is not
        known (NaN) nothing is held against it: there is another refusal.

        >>> OutsideGain(np.zeros(3), np.array([0.1, 1.0, 1.1])).standings([1, 1, 1]).tolist()
        [0, 1, 2]
        """
        half = np.asarray(half_width, dtype=np.float64)
        found = np.where(self.most <= NEGLIGIBLE * half, Standing.YES, Standing.WIDER)
        return np.where(self.most > half, Standing.NOT_YET, found).astype(np.int64)

    def nearest_zero(self, value: ArrayLike) -> Floats:
        """Return the number nearest to 0 that the documents outside allow: its p-value is the largest of all."""
        middle = np.asarray(value, dtype=np.float64)
        return np.minimum(np.maximum(0.0, middle - self.down), middle + self.up)


def outside_gain(
    weight: ArrayLike,
    largest_gain: float,
    pairs: tuple[Ints, Ints],
    why: Sequence[str] = (),
    common: ArrayLike = 0.0,
) -> OutsideGain:
    """Return what the documents outside may be worth to every run, then to every pair of runs.

    Parameters
    ----------
    weight : array [run]
        Sum of the weights of the documents that the run returns and that could not be judged, >= 0.
    largest_gain : float
        The highest gain of a grade, >= 0.
    pairs : two arrays [pair]
        First and second run of every pair.
    why : sequence of str, one a run
        In words that the run returns such documents; read only where it does.
    common : array [pair]
        The weight that both runs of a pair give to the same documents: whatever these are worth, it cancels.

    >>> outside_gain([0, 0.25], 2, (np.array([0]), np.array([1]))).down.tolist()
    [0.0, 0.0, 0.5]
    """
    w = finite("weight", weight)
    if w.ndim != 1 or (w < 0).any() or not 0 <= largest_gain < np.inf:
        raise ValueError("weights must be flat and >= 0, and the largest gain >= 0 and finite")
    first, second = pairs
    of_first, of_second = (np.maximum(w[runs] - np.asarray(common), 0.0) for runs in pairs)
    return OutsideGain(
        down=np.concatenate([np.zeros(w.size), of_second]) * largest_gain,
        up=np.concatenate([w, of_first]) * largest_gain,
        why=why,
        run=np.concatenate([np.arange(w.size), np.where(of_first > 0, first, second)]),
    )


def common_weights(weights: Floats, pairs: tuple[Ints, Ints]) -> Floats:
    """Return by pair of runs the sum over documents of the smaller of two weights [run, document].

    >>> common_weights(np.array([[1, 0.5, 0], [0.5, 0.5, 1]]), (np.array([0]), np.array([1]))).tolist()
    [1.0]
    """
    rows = zip(*pairs, strict=True)
    return np.array([np.minimum(weights[a], weights[b]).sum() for a, b in rows], dtype=np.float64)


def hold_against(results: Estimates, outside: OutsideGain, advice: str = "") -> Estimates:
    """Return the estimates, refused where documents outside may move them too far, and marked where they may.

    The intervals themselves stay as they are: where both claims are known, each gets room of its own. `advice` ends a
    refusal's words.
    """
    half = results.high - results.value
    standing = outside.standings(half)
    warnings, refusals = list(results.warnings), dict(results.refusals)
    for place in np.flatnonzero(outside.most > 0).tolist():
        if place in refusals:
            continue
        up_to = f"up to {outside.most[place]:.3g}"
        if standing[place] == Standing.NOT_YET:
            words = f"{outside.reason(place)}: they may be worth {up_to}, more than the half-width of {half[place]:.3g}"
            refusals[place] = Refusal(". ".join(filter(None, [words, advice])))
        elif standing[place] == Standing.WIDER:
            wider = f"{outside.reason(place)}: {WIDER_WORDS} {up_to}"
            warnings[place] = "; ".join(filter(None, [warnings[place], wider]))
    return replace(results, warnings=warnings, refusals=refusals)


def wider_in(warning: str) -> str:
    """Return what a number's warning says of documents that could not be judged; empty of other words.

    >>> wider_in("few items; late returns documents: the interval is wider, for they may be worth up to 0.1")
    'late returns documents: the interval is wider, for they may be worth up to 0.1'
    """
    return next((part for part in warning.split("; ") if WIDER_WORDS in part), "")


def reason_outside(run: str, measure: str) -> str:
    """Return in words that a run returns what could not be judged.

    >>> reason_outside("late", "P@10")
    'late returns documents that could not be drawn, inside the cutoff of P@10'
    """
    return f"{run} returns documents that could not be drawn, inside the cutoff of {measure}"


def unique_weights(weights: SparseRuns, ranks: SparseRuns, group: Sequence[str], depth: int) -> TargetWeights:
    """Return the weights that each run gives to documents which its group alone brought into the pool.

    Targets for any estimator: the gain G_k of what the pool would lack without the group of run k.

    Parameters
    ----------
    weights : SparseRuns
        Weights [run, item] in a sum over documents.
    ranks : SparseRuns
        Ranks [run, item] of the pooled runs, the same runs and items.
    group : sequence of str, one a run
        Runs of one name are left out together.
    depth : int
        How many of a run's first documents went into the pool.

    >>> from sampling.measures.sparse import from_dense
    >>> ranks = from_dense(np.array([[1, 2, 0], [1, 0, 2]]))
    >>> unique_weights(ranks.with_values(1.0 / ranks.value), ranks, ["a", "b"], 10).runs.dense().tolist()
    [[0.0, 0.5, 0.0], [0.0, 0.0, 0.5]]
    """
    _, number = np.unique(np.asarray(group), return_inverse=True)
    pooled = ranks.with_values(np.where(ranks.value <= depth, ranks.value, 0))
    owner = number[pooled.run].astype(np.float64) + 1
    lowest, highest = (pooled.item_extremes(extreme, owner) for extreme in (np.minimum, np.maximum))
    alone = (lowest == highest)[weights.item] & (lowest[weights.item] == number[weights.run] + 1)
    return TargetWeights(weights.with_values(np.where(alone, weights.value, 0.0)), paired=False)


@dataclass(frozen=True)
class LikelyGain:
    """What the documents outside are likely worth: `expected`, and `cautious` (no guarantee)."""

    expected: float
    cautious: float


def likely_gain(weight: float, gain: ArrayLike, unique: ArrayLike) -> LikelyGain | None:
    """Return what documents of some weight outside are likely worth, from what pooled runs alone returned.

    ``expected = W sum G_k / sum W_k``; ``cautious = W max r_k`` with ``r_k = G_k / W_k``, over the runs k that returned
    anything alone. None where no run did.

    Parameters
    ----------
    weight : float
        W, the weight outside.
    gain : array [run]
        G_k, the estimated gain of what only run k (or its group) returned; cut off at 0, and at the largest one can be
        by whoever asks.
    unique : array [run]
        W_k, the weight of these documents.

    >>> likely_gain(2, [0.1, 0.3], [1, 1])
    LikelyGain(expected=0.4, cautious=0.6)
    """
    g, w = finite("gain", gain), finite("unique", unique)
    there = w > 0
    if not there.any():
        return None
    rate = np.maximum(g[there], 0.0) / w[there]
    expected = weight * float(np.maximum(g[there].sum(), 0.0) / w[there].sum())
    return LikelyGain(expected, weight * float(rate.max()))
