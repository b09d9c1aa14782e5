"""infNDCG and infAP: scores of one topic from a random part of its pool's judgments, in several named forms.

The pool's documents fall into strata (labels of another tier, say). From each some are judged, at random: all of a
stratum alike ("strata": n_s of N_s without replacement), or each with its own recorded probability (Poisson). What
no run of the pool returned counts as not relevant; it only takes a rank.

Use form "ht" (Horvitz-Thompson: the numerator is unbiased) or "difference" (the same from the errors of the strata's
means: less variance when the strata tell something). The forms that papers and programs use are there under their
names, to compare with. Every form is a ratio of two estimates: no score is unbiased, and any may exceed 1.
All topics: `analytics.agreement.rankings.scores_by_topic`. Averages with an interval: `analytics.estimation.ratios`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite, integers, probabilities
from analytics.estimation.estimate import Floats, Ints, Refusal

UNJUDGED = -1
MOST_DOCUMENTS = 1e7  # of an ideal ranking
SMALL = 1e-5  # of the programs trec_eval and sample_eval, so that nothing sampled above is no 0/0
NdcgForm = Literal["ht", "difference", "printed", "literal"]
ApForm = Literal["ht", "difference", "printed", "stratified"]


@dataclass(frozen=True)
class InferredScore:
    """Scores of the runs for one topic: `value` = `numerator` / `denominator`, not clipped.

    `found` [grade] is the estimated number of documents of each grade (for infAP: not relevant, relevant).
    `warnings` name what makes a value suspect: outside [0, 1], or a stratum counted as 0.
    """

    form: str
    value: Floats
    numerator: Floats
    denominator: float
    found: Floats
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class _Pool:
    """One topic. `weight` is 1/pi of judged documents, 0 of others; `together` is by how much a pair inside a
    stratum must count more than the product of its weights.
    """

    rank: Ints  # [run, document], 0 = not returned
    judged: np.ndarray
    stratum: Ints
    weight: Floats
    together: Floats
    n_judged: Ints
    size: Ints
    is_poisson: bool

    def means(self, gain: Floats) -> Floats:
        """The weighted mean gain of every document's stratum. Ask `unknown` first."""
        total = np.bincount(self.stratum, self.weight, self.size.size)
        summed = np.bincount(self.stratum, self.weight * gain, self.size.size)
        return np.asarray((summed / np.where(total > 0, total, 1.0))[self.stratum])

    def unknown(self, least: int = 1) -> Refusal | None:
        """The refusal when a stratum has fewer than `least` judged documents, and not all of them."""
        short = np.flatnonzero((self.n_judged < least) & (self.n_judged < self.size))
        if not short.size:
            return None
        words = ", ".join(f"{self.n_judged[s]} of {self.size[s]} in stratum {s}" for s in short.tolist())
        needed = int((np.minimum(least, self.size) - self.n_judged)[short].sum())
        return Refusal(f"at least {least} judged documents a stratum are needed, got {words}", needed)


def _pool(
    ranks: ArrayLike, grade: ArrayLike, stratum: ArrayLike, inclusion_probability: ArrayLike | None
) -> tuple[_Pool, Ints]:
    given = integers("grade", grade, UNJUDGED)
    rank = np.atleast_2d(np.asarray(ranks))
    if rank.ndim != 2 or rank.shape[1] != given.size or rank.dtype.kind not in "iu":
        raise ValueError(
            f"ranks must be integers of shape (runs, {given.size}), got {rank.dtype} {rank.shape}"
        )
    if rank.size and int(rank.min()) < 0:
        raise ValueError(f"ranks must be at least 0, got {rank.min()}")
    for row in rank:
        if np.unique(row[row > 0]).size < np.count_nonzero(row):
            raise ValueError("ranks must differ within a run, got two documents at one rank")
    part = integers("stratum", stratum, 0)
    if part.shape != given.shape:
        raise ValueError(f"stratum must have {given.size} documents, got {part.size}")
    judged = given > UNJUDGED
    size = np.bincount(part)
    n_judged = np.bincount(part[judged], minlength=size.size)
    together = np.ones(size.size)
    if inclusion_probability is None:
        pi = (n_judged / np.maximum(size, 1))[part]
        several = (n_judged > 1) & (n_judged < size)
        n, N = n_judged[several], size[several]
        together[several] = n * (N - 1) / (N * (n - 1))
    else:
        pi = probabilities("inclusion_probability", inclusion_probability, given.size)
    weight = np.divide(1.0, pi, out=np.zeros(given.size), where=judged)
    pool = _Pool(
        rank.astype(np.int64),
        judged,
        part,
        weight,
        together,
        n_judged,
        size,
        inclusion_probability is not None,
    )
    return pool, np.where(judged, given, 0)


# -- nDCG ---------------------------------------------------------------------------------------------------


def ideal_dcg(found: ArrayLike, gains: ArrayLike) -> float:
    """Return the DCG of the best ranking of `found` documents by grade, numbers that need not be whole.

    sum over grades in falling order of gain * [G(C) - G(C before)], C the documents so far, G(x) = sum over ranks
    i <= x of 1/log2(i + 1), between whole numbers linear. (The rule for fractions is ours.)

    Source: Bailey et al. (2008), section 4.1.1.

    Examples
    --------
    >>> round(ideal_dcg([0, 2.25, 1.5], [0, 1, 2]), 6)
    3.769402
    """
    n = finite("found", found)
    gain = finite("gains", gains, n.shape)
    if n.ndim != 1 or (n < 0).any() or (gain < 0).any():
        raise ValueError(
            f"found and gains must be flat and not negative, got {n.tolist()} and {gain.tolist()}"
        )
    if n.sum() > MOST_DOCUMENTS:
        raise ValueError(f"found must sum to at most {MOST_DOCUMENTS:g} documents, got {n.sum():g}")
    order = np.argsort(-gain, kind="stable")
    edges = np.concatenate([[0.0], np.cumsum(n[order])])
    places = np.arange(int(edges[-1]) + 2)
    stairs = np.concatenate([[0.0], np.cumsum(1 / np.log2(places[1:] + 1))])
    return float(gain[order] @ np.diff(np.interp(edges, places, stairs)))


def inferred_ndcg(
    ranks: ArrayLike,
    grade: ArrayLike,
    stratum: ArrayLike,
    *,
    form: NdcgForm = "ht",
    gains: ArrayLike | None = None,
    inclusion_probability: ArrayLike | None = None,
) -> InferredScore | Refusal:
    """Return DCG/N_q of every run: discount 1/log2(rank + 1), no cutoff, the ideal from estimated counts by grade.

    ht: sum over judged of gain * discount / pi: the DCG is unbiased. difference: sum over all returned of the
    stratum's mean * discount + sum over judged of (gain - mean) * discount / pi: its bias, the covariance of gain and
    discount within strata over the number judged there, comes from means of the same documents. printed: in every
    stratum the mean over judged *and returned* documents times the number returned (biased low: 0 where none
    was judged). literal: the formula as it stands in print, divided by all judged of the stratum (far too low).
    N_q is concave in the counts, so that it comes out low and every form's score a little high.

    Source: Bailey et al. (2008), sections 4.1.1 and 4.1.2.

    Parameters
    ----------
    ranks : int array [run, document] or [document]
        From 1; 0 where a run does not return the document. Documents outside the pool leave their rank free.
    grade : int array [document]
        -1 where not judged.
    stratum : int array [document]
        From 0.
    gains : array [grade]
        By default the grade itself, up to the largest one given.
    inclusion_probability : array [document]
        Of a Poisson draw, all documents. None: judged alike within strata.

    Raises
    ------
    ValueError
        Unknown form; arrays that do not fit; ranks used twice; a grade outside the gains.

    Examples
    --------
    >>> inferred_ndcg([1, 3, 2], [2, 0, 1], [0, 0, 0]).value.tolist()
    [1.0]
    """
    pool, given = _pool(ranks, grade, stratum, inclusion_probability)
    known = ("ht", "difference", "printed", "literal")
    if form not in known:
        raise ValueError(f"form must be one of {known}, got {form!r}")
    gain_of = np.arange(int(given.max(initial=0)) + 1.0) if gains is None else finite("gains", gains)
    if gain_of.ndim != 1 or (gain_of < 0).any() or given.max(initial=0) >= gain_of.size:
        raise ValueError(
            f"gains must be flat, not negative and hold grade {given.max(initial=0)}, got {gain_of}"
        )
    missing = _nothing_judged(pool) or (None if pool.is_poisson and form == "ht" else pool.unknown())
    if missing:
        return missing

    is_grade = (given == np.arange(gain_of.size)[:, None]) & pool.judged
    smoothed = form == "difference" or not pool.is_poisson
    found = np.array(
        [(pool.means(one) if smoothed else pool.weight * one).sum() for one in is_grade.astype(np.float64)]
    )
    denominator = ideal_dcg(found, gain_of)
    if denominator <= 0:
        return _nothing_relevant(pool)
    gain = np.where(pool.judged, gain_of[given], 0.0)
    discount = np.divide(1.0, np.log2(pool.rank + 1.0), out=np.zeros(pool.rank.shape), where=pool.rank > 0)
    dcg = {"ht": _ht_dcg, "difference": _difference_dcg, "printed": _printed_dcg, "literal": _literal_dcg}[
        form
    ]
    numerator, empty = dcg(pool, gain, discount)
    return _inferred_score(f"infNDCG {form}", numerator, denominator, found, empty)


def _ht_dcg(pool: _Pool, gain: Floats, discount: Floats) -> tuple[Floats, bool]:
    return np.asarray(discount @ (pool.weight * gain)), False


def _difference_dcg(pool: _Pool, gain: Floats, discount: Floats) -> tuple[Floats, bool]:
    mean = pool.means(gain)
    return np.asarray(discount @ (mean + pool.weight * (gain - mean))), False


def _printed_dcg(pool: _Pool, gain: Floats, discount: Floats) -> tuple[Floats, bool]:
    total, empty = np.zeros(len(discount)), False
    for s in range(pool.size.size):
        inside = pool.stratum == s
        returned = pool.rank[:, inside] > 0
        there = returned.sum(axis=1)
        seen = returned @ pool.weight[inside]
        empty = empty or bool(((seen == 0) & (there > 0)).any())
        share = np.divide(there, seen, out=np.zeros(len(discount)), where=seen > 0)
        total += share * (discount[:, inside] @ (pool.weight * gain)[inside])
    return total, empty


def _literal_dcg(pool: _Pool, gain: Floats, discount: Floats) -> tuple[Floats, bool]:
    # Z_s/n_s a document, where "ht" has N_s/n_s; with unequal probabilities n_s becomes the estimate of N_s.
    sampled = np.bincount(pool.stratum, pool.weight, pool.size.size)
    total = np.zeros(len(discount))
    for s in range(pool.size.size):
        inside = pool.stratum == s
        if sampled[s] > 0:
            returned = (pool.rank[:, inside] > 0).sum(axis=1)
            total += returned / sampled[s] * (discount[:, inside] @ (pool.weight * gain)[inside])
    return total, False


# -- average precision --------------------------------------------------------------------------------------


def inferred_ap(
    ranks: ArrayLike,
    grade: ArrayLike,
    stratum: ArrayLike,
    *,
    form: ApForm = "ht",
    relevant_grade: int = 1,
    inclusion_probability: ArrayLike | None = None,
) -> InferredScore | Refusal:
    """Return average precision of every run: sum over pairs x_i x_j/rank_i, j at or above i, over R estimated.

    ht: a pair of judged documents counts 1/pi_ij, a document with itself 1/pi_i: the numerator is unbiased.
    difference: with the strata's means as proxies, and the judged pairs' errors. Both need two judged documents a
    stratum ("strata"), or recorded probabilities. printed: Yilmaz and Aslam (2006), as trec_eval computes it: expected
    precision from the judged documents above; for one stratum. stratified: Yilmaz, Kanoulas and Aslam (2008), as
    sample_eval computes it, the form that Bailey et al. (2008) used.

    Parameters, errors: as `inferred_ndcg`; grades of at least `relevant_grade` are relevant.

    Examples
    --------
    >>> inferred_ap([1, 3, 2], [1, 1, 0], [0, 0, 0]).value.round(6).tolist()
    [0.833333]
    """
    pool, given = _pool(ranks, grade, stratum, inclusion_probability)
    known: dict[str, Callable[[_Pool, Floats, Ints], float]] = {
        "ht": _ht_ap, "difference": _difference_ap, "printed": _printed_ap, "stratified": _stratified_ap
    }  # fmt: skip
    if form not in known:
        raise ValueError(f"form must be one of {tuple(known)}, got {form!r}")
    if relevant_grade < 1:
        raise ValueError(f"relevant_grade must be at least 1, got {relevant_grade}")
    if form == "printed" and (pool.size.size != 1 or pool.is_poisson):
        raise ValueError(f"the printed form is for 1 stratum, judged alike, got {pool.size.size} strata")
    if form == "stratified" and pool.is_poisson:
        raise ValueError("the stratified form is for documents judged alike within strata")
    least = 2 if form in ("ht", "difference") and not pool.is_poisson else 1
    missing = _nothing_judged(pool) or (None if pool.is_poisson and form == "ht" else pool.unknown(least))
    if missing:
        return missing

    relevant = np.where(pool.judged & (given >= relevant_grade), 1.0, 0.0)
    estimated = pool.means(relevant).sum() if form == "difference" else pool.weight @ relevant
    # the printed form divides by what was judged relevant, and its sum is over these
    denominator = float(relevant.sum() if form == "printed" else estimated)
    if denominator <= 0:
        return _nothing_relevant(pool)
    numerator = np.array([known[form](pool, relevant, row) for row in pool.rank])
    found = np.array([max(0.0, pool.stratum.size - float(estimated)), float(estimated)])
    return _inferred_score(f"infAP {form}", numerator, denominator, found, False)


def _in_order(rank: Ints) -> tuple[Ints, Floats]:
    """Return the returned documents from the top down, with 1/rank."""
    order = np.argsort(rank, kind="stable")
    order = order[rank[order] > 0]
    return order.astype(np.int64), np.asarray(1.0 / rank[order])


def _pair_sum(pool: _Pool, order: Ints, per_rank: Floats, x: Floats) -> float:
    """Return sum over judged pairs, j above i, of x_i x_j / (rank_i pi_ij)."""
    wx = (pool.weight * x)[order]
    above = np.cumsum(wx) - wx
    part = pool.stratum[order]
    for s in np.flatnonzero(pool.together != 1).tolist():
        inside = part == s
        above[inside] += (pool.together[s] - 1) * (np.cumsum(wx[inside]) - wx[inside])
    return float((per_rank * wx) @ above)


def _ht_ap(pool: _Pool, relevant: Floats, rank: Ints) -> float:
    order, per_rank = _in_order(rank)
    return float(per_rank @ (pool.weight * relevant)[order]) + _pair_sum(pool, order, per_rank, relevant)


def _difference_ap(pool: _Pool, relevant: Floats, rank: Ints) -> float:
    order, per_rank = _in_order(rank)
    mean = pool.means(relevant)
    guess = mean[order]
    alone = guess + (pool.weight * (relevant - mean))[order]
    guessed = float(per_rank @ (alone + guess * (np.cumsum(guess) - guess)))
    seen = _pair_sum(pool, order, per_rank, relevant) - _pair_sum(pool, order, per_rank, mean)
    return guessed + seen


def _printed_ap(pool: _Pool, relevant: Floats, rank: Ints) -> float:
    order, per_rank = _in_order(rank)
    above = np.arange(order.size)  # documents of the pool above
    judged = np.cumsum(pool.judged[order]) - pool.judged[order]
    found = np.cumsum(relevant[order]) - relevant[order]
    precision = per_rank * (1 + above * (found + SMALL) / (judged + 2 * SMALL))
    first = rank[order] == 1
    return float(np.where(first, 1.0, precision) @ relevant[order])


def _stratified_ap(pool: _Pool, relevant: Floats, rank: Ints) -> float:
    order, per_rank = _in_order(rank)
    above = np.zeros(order.size)
    for s in range(pool.size.size):
        inside = pool.stratum[order] == s
        there, judged = inside.astype(np.float64), (pool.judged[order] & inside).astype(np.float64)
        found = relevant[order] * inside
        before = [np.cumsum(one) - one for one in (there, judged, found)]
        above += before[0] * (before[2] + SMALL) / (before[1] + 3 * SMALL)
    return float((per_rank * (1 + above)) @ (pool.weight * relevant)[order])


# -- results ------------------------------------------------------------------------------------------------


def _nothing_judged(pool: _Pool) -> Refusal | None:
    return None if pool.judged.any() else Refusal("no document of the topic was judged", 1)


def _nothing_relevant(pool: _Pool) -> Refusal:
    n = int(np.count_nonzero(pool.judged))
    return Refusal(
        f"none of the {n} judged documents of the topic is relevant: there is nothing to divide by"
    )


def _inferred_score(
    form: str, numerator: Floats, denominator: float, found: Floats, empty: bool
) -> InferredScore:
    value = numerator / denominator
    warnings = []
    if (value > 1 + 1e-9).any() or (value < -1e-9).any():
        n = int(np.count_nonzero((value > 1 + 1e-9) | (value < -1e-9)))
        warnings.append(
            f"{n} of {value.size} scores lie outside [0, 1], {value.min():.4g} to {value.max():.4g}"
        )
    if empty:
        warnings.append(
            "a stratum that a run returns, but of which no returned document was judged, counts as 0"
        )
    return InferredScore(form, value, numerator, denominator, found, tuple(warnings))
