"""What another tier's judgments do to systems: their scores topic by topic, and their order.

`scores_by_topic` scores all runs with one tier's judgments, `compare_tiers` compares two such tables: the scores of
each run with `signed_ranks`, the order of all with `rank_agreement`.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike

from analytics.agreement.inferred import ApForm, InferredScore, NdcgForm, inferred_ap, inferred_ndcg
from analytics.estimation.checks import finite, integers
from analytics.estimation.estimate import Floats, Ints, Refusal

EXACT_UP_TO = 20  # topics that differ; above, the normal approximation is reported
SAME = 1e-12  # of the largest score: differences that rounding makes are none


@dataclass(frozen=True)
class SignedRanks:
    """Wilcoxon's matched-pairs test. `p_value` is `exact_p` up to 20 topics that differ, beyond it `normal_p`."""

    n: int
    w_plus: float
    w_minus: float
    exact_p: float | None
    z: float
    normal_p: float

    @property
    def p_value(self) -> float:
        """The two-sided p to report."""
        return self.normal_p if self.exact_p is None else self.exact_p


def signed_ranks(values_a: ArrayLike, values_b: ArrayLike) -> SignedRanks | Refusal:
    """Return Wilcoxon's signed-rank test of the differences a - b over topics, two-sided.

    Zero differences are dropped, equal ones share their mean rank. Exact: all 2^n signs are equally likely, given
    these ranks, ties included. Normal: variance sum of squared ranks / 4, without continuity correction.
    Assumption: independent topics, differences symmetric about their median under the hypothesis.

    Source: Wilcoxon (1945); Bailey et al. (2008), section 4.4.1.

    Examples
    --------
    >>> signed_ranks([0.5, 0.4, 0.9], [0.4, 0.2, 0.6]).exact_p
    0.25
    """
    a = finite("values_a", values_a)
    if a.ndim != 1:
        raise ValueError(f"values_a must be flat, got {a.ndim} axes")
    b = finite("values_b", values_b, a.shape)
    if a.size == 0:
        return Refusal("no topic has a score from both tiers", 1)
    difference = _score_difference(a, b)
    difference = difference[difference != 0]
    if difference.size == 0:
        return Refusal(f"all {a.size} topics have the same score from both tiers, so nothing can be tested")
    rank = scipy.stats.rankdata(np.abs(difference))
    plus, minus = float(rank[difference > 0].sum()), float(rank[difference < 0].sum())
    n = int(difference.size)
    z = (min(plus, minus) - rank.sum() / 2) / np.sqrt(np.square(rank).sum() / 4)
    exact = _exact_p(rank, min(plus, minus)) if n <= EXACT_UP_TO else None
    return SignedRanks(n, plus, minus, exact, float(z), float(2 * scipy.special.ndtr(-abs(z))))


def _score_difference(a: Floats, b: Floats) -> Floats:
    """Return a - b in steps of 1e-12 of the largest score, so that .5 - .4 and .6 - .5 are equal."""
    scale = max(float(np.abs(a).max(initial=0.0)), float(np.abs(b).max(initial=0.0))) or 1.0
    return np.asarray(np.rint((a / scale - b / scale) / SAME))


def _exact_p(rank: Floats, smaller: float) -> float:
    """Return 2 P(sum of randomly signed ranks <= smaller), at most 1: all sign patterns, by convolution."""
    doubled = np.rint(2 * rank).astype(np.int64)
    chance = np.zeros(int(doubled.sum()) + 1)
    chance[0] = 1.0
    for step in doubled.tolist():
        moved = np.zeros_like(chance)
        moved[step:] = chance[: chance.size - step]
        chance = (chance + moved) / 2
    return float(min(1.0, 2 * chance[: round(2 * smaller) + 1].sum()))


@dataclass(frozen=True)
class RankAgreement:
    """How two rankings of the same systems agree.

    `tau` divides by all pairs, `tau_b` by the pairs not tied in either (a Refusal when one ranking ties all).
    `tau_ap` weighs the top of the other ranking more. `flipped` are the pairs (better, worse) by the reference that
    the other ranking has the other way round; `tied_pairs` are tied in one of the two.
    """

    n_systems: int
    tau: float
    tau_b: float | Refusal
    tau_ap: float
    flipped: tuple[tuple[int, int], ...]
    tied_pairs: int


def rank_agreement(reference: ArrayLike, other: ArrayLike) -> RankAgreement | Refusal:
    """Return how the order of systems by `other` scores agrees with that by `reference` scores (say, gold).

    tau = (concordant - discordant)/(m (m - 1)/2). Larger scores are better. The scores' own error is not in it: two
    rankings that differ by flips of systems that nobody could tell apart do not differ.

    Source: Kendall (1938, 1945 for tau-b); Yilmaz, Aslam and Robertson (2008) for tau_ap: see `tau_ap`.

    Parameters
    ----------
    reference, other : array [system]

    Examples
    --------
    >>> one = rank_agreement([0.3, 0.2, 0.1], [0.3, 0.1, 0.2])
    >>> one.flipped, round(one.tau, 6), one.tau_ap
    (((1, 2),), 0.333333, 0.5)
    """
    first, second = _scores(reference, other)
    m = first.size
    if m < 2:
        return Refusal(f"{m} systems; at least 2 are needed for an order", 2 - m)
    up, down = np.triu_indices(m, 1)
    by_reference = np.sign(_score_difference(first[up], first[down]))
    by_other = np.sign(_score_difference(second[up], second[down]))
    product = by_reference * by_other
    untied = float(np.count_nonzero(by_reference)), float(np.count_nonzero(by_other))
    tau_b: float | Refusal = Refusal("one of the two rankings ties all systems")
    if min(untied) > 0:
        tau_b = float(product.sum() / np.sqrt(untied[0] * untied[1]))
    flips = np.flatnonzero(product < 0)
    better = np.where(by_reference > 0, up, down)[flips].tolist()
    worse = np.where(by_reference > 0, down, up)[flips].tolist()
    return RankAgreement(
        n_systems=m,
        tau=float(product.sum() / product.size),
        tau_b=tau_b,
        tau_ap=tau_ap(first, second),
        flipped=tuple(zip(better, worse, strict=True)),
        tied_pairs=int(np.count_nonzero(product == 0)),
    )


def tau_ap(reference: ArrayLike, other: ArrayLike) -> float:
    """Return 2/(m - 1) sum over ranks i >= 2 of `other` of C(i)/(i - 1) - 1: the average-precision tau.

    C(i) counts the systems above rank i that the reference also has above. Errors at the top of `other` cost more,
    so it is not symmetric. Ties are averaged over: the mean of tau_ap over all ways to break the ties of both.

    Source: Yilmaz, Aslam and Robertson (2008), Eq 4; the mean over ties as Urbano and Marrero (2017).

    Examples
    --------
    >>> tau_ap([3, 2, 1], [3, 2, 1]), tau_ap([3, 2, 1], [1, 2, 3]), tau_ap([3, 2, 1], [1, 1, 1])
    (1.0, -1.0, 0.0)
    """
    first, second = _scores(reference, other)
    m = first.size
    if m < 2:
        raise ValueError(f"reference must have at least 2 systems, got {m}")
    correct = (
        np.sign(_score_difference(first[:, None], first[None, :])) + 1
    ) / 2  # [j, i]: j above i; .5 for a tie
    sign = np.sign(_score_difference(second[:, None], second[None, :]))
    np.fill_diagonal(correct, 0.0)
    n_above = np.count_nonzero(sign > 0, axis=0)
    n_tied = np.count_nonzero(sign == 0, axis=0)  # with itself
    sure = (correct * (sign > 0)).sum(axis=0)
    among = (correct * (sign == 0)).sum(axis=0)
    total = 0.0
    for above, tied, better, equal in zip(n_above, n_tied, sure, among, strict=True):
        # At place s of its group a system has s of the others before it, each as likely as any.
        s = np.arange(tied)
        place = above + s
        found = better + (equal * s / (tied - 1) if tied > 1 else 0.0)
        total += float((found / np.maximum(place, 1) * (place > 0)).mean())
    return 2 * total / (m - 1) - 1


def _scores(reference: ArrayLike, other: ArrayLike) -> tuple[Floats, Floats]:
    first = finite("reference", reference)
    if first.ndim != 1:
        raise ValueError(f"reference must be flat, got {first.ndim} axes")
    return first, finite("other", other, first.shape)


# -- two tiers ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TopicScores:
    """Scores [run, place] of the `topics` that have one, in that order; the others are in `refused` with a reason."""

    values: Floats
    topics: Ints
    refused: dict[int, Refusal]
    warnings: tuple[str, ...]


def scores_by_topic(
    measure: Literal["infNDCG", "infAP"],
    topic_index: ArrayLike,
    ranks: ArrayLike,
    grade: ArrayLike,
    stratum: ArrayLike,
    n_topics: int,
    *,
    form: NdcgForm | ApForm = "ht",
    gains: ArrayLike | None = None,
    relevant_grade: int = 1,
    inclusion_probability: ArrayLike | None = None,
) -> TopicScores:
    """Return infNDCG or infAP of every run and topic from one tier's grades; strata are taken within topics.

    Parameters: as `analytics.agreement.inferred.inferred_ndcg` and `inferred_ap`, for the documents of all topics'
    pools.

    Raises
    ------
    ValueError
        As these; another measure; a topic outside 0 to n_topics - 1.

    Examples
    --------
    >>> scores_by_topic("infAP", [0, 0, 1], [[1, 2, 1]], [1, 0, 0], [0, 0, 0], 2).values.tolist()
    [[1.0]]
    """
    if measure not in ("infNDCG", "infAP"):
        raise ValueError(f"measure must be infNDCG or infAP, got {measure!r}")
    topic = integers("topic_index", topic_index, 0, n_topics - 1)
    rank, given, part = np.atleast_2d(np.asarray(ranks)), np.asarray(grade), np.asarray(stratum)
    pi = None if inclusion_probability is None else np.asarray(inclusion_probability)
    for name, array in (("ranks", rank), ("grade", given), ("stratum", part), ("inclusion_probability", pi)):
        if array is not None and array.shape[-1:] != topic.shape:
            raise ValueError(f"{name} must have {topic.size} documents, got shape {array.shape}")
    scored: dict[int, InferredScore] = {}
    refused: dict[int, Refusal] = {}
    for t in range(n_topics):
        here = np.flatnonzero(topic == t)
        arrays = rank[:, here], given[here], part[here]
        chance = None if pi is None else pi[here]
        if measure == "infNDCG":
            one = inferred_ndcg(*arrays, form=form, gains=gains, inclusion_probability=chance)  # type: ignore[arg-type]
        else:
            one = inferred_ap(
                *arrays, form=form, relevant_grade=relevant_grade, inclusion_probability=chance  # type: ignore[arg-type]
            )  # fmt: skip
        if isinstance(one, Refusal):
            refused[t] = one
        else:
            scored[t] = one
    warnings = tuple(f"topic {t}: {words}" for t, one in scored.items() for words in one.warnings)
    values = np.array([one.value for one in scored.values()]).reshape(len(scored), len(rank)).T
    return TopicScores(values, np.array(list(scored), dtype=np.int64), refused, warnings)


@dataclass(frozen=True)
class TierComparison:
    """Means over the topics that both tiers can score; one test a run; the agreement of the two orders."""

    n_topics: int
    mean_reference: tuple[float, ...]
    mean_other: tuple[float, ...]
    tests: tuple[SignedRanks | Refusal, ...]
    ranking: RankAgreement | Refusal


def compare_tiers(reference: TopicScores, other: TopicScores) -> TierComparison | Refusal:
    """Return how scores and order of the same runs change when another tier judges.

    The luck of the samples is in the scores too; scored from the same documents, part of it cancels. A test a run at
    5 % finds one false difference in twenty runs: adjust with `analytics.estimation.comparison.holm`. Refused when
    no topic can be scored by both.

    Source: Bailey et al. (2008), section 4.4, there without adjustment.
    """
    if len(reference.values) != len(other.values):
        raise ValueError(f"other must have {len(reference.values)} runs, got {len(other.values)}")
    shared, first, second = np.intersect1d(reference.topics, other.topics, return_indices=True)
    if not shared.size:
        return Refusal("no topic has scores from both tiers", 1)
    a, b = reference.values[:, first], other.values[:, second]
    mean_a, mean_b = a.mean(axis=1), b.mean(axis=1)
    return TierComparison(
        n_topics=int(shared.size),
        mean_reference=tuple(mean_a.tolist()),
        mean_other=tuple(mean_b.tolist()),
        tests=tuple(signed_ranks(one, two) for one, two in zip(a, b, strict=True)),
        ranking=rank_agreement(mean_a, mean_b),
    )
