"""nDCG and AP from a sample of judgments: ratios of two estimates, with a bootstrap interval.

The numerator is unbiased, the denominator (the number of relevant documents, or the gain of the ideal ranking) is
unbiased up to a bend, so their ratio has a bias that vanishes as judgments are added. The bootstrap repeats the
drawing around the estimate; as far as its mean lies from the estimate, so far is the estimate taken to lie from
the truth, and that is taken off. It does not remove all: hence the refusals below a number of judgments.

How to call it: make `analytics.estimation.pseudolabels.PseudoLabels` of the draw, its judgments and, for corrected
numbers, the audit; then ``ratio_estimates(parse_ratio("nDCG@10"), labels, ranks, seed=...)`` gives one result a
run and one a pair of runs, all from the same replicates.

Memory: about a dozen arrays of `ratio_parts.CHUNK_NUMBERS` floats, two floats per run and replicate, and what all runs
return within the cutoff.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.estimate import (
    FEWEST_ITEMS,
    Estimate,
    Floats,
    Ints,
    Refusal,
    estimate,
    few_items_warning,
    too_few,
)
from analytics.estimation.pseudolabels import PseudoLabels
from analytics.estimation.ratio_parts import (
    Denominator,
    ErrorReplicates,
    error_replicates,
    numerator,
    ranked_items,
)
from analytics.estimation.ratio_words import no_interval
from sampling.measures.families import Measure
from sampling.measures.kinds import Ratio, quotient

REPLICATES = 1000
# Known items that a ratio needs, by simulation (benchmarks/ratios.py): a topic on average, or a share of the pool.
# Macro needs what micro needs as well, so that 20 % of a pool of ten documents is not enough.
MACRO_PER_TOPIC, MACRO_SHARE = 100, 0.2
MICRO_PER_TOPIC, MICRO_SHARE = 8, 0.5
MICRO_PER_TOPIC_UNPREDICTED = 30  # without a prediction whatever was not drawn counts as not relevant
KNOWN_FOR_NORMAL = 100  # from here z, below t, as in `analytics.estimation.correction`
ABOUT = 0.95  # a random sample of "20 %" may be one of 19 %


@dataclass(frozen=True, eq=False)
class RatioAnswer:
    """The ratio of every run, then of every pair, and its values by topic, [run, topic], whose means are the ratios.

    There are none where too little is known of the mean over topics.
    """

    results: list[Estimate | Refusal]
    topic_values: Floats | None


def ratio_estimates(
    measure: Measure[Ratio],
    labels: PseudoLabels,
    ranks: ArrayLike,
    *,
    seed: int,
    pairs: Sequence[tuple[int, int]] | None = None,
    replicates: int = REPLICATES,
    few_labels: Sequence[Estimate | Refusal] = (),
) -> list[Estimate | Refusal]:
    """Return the results of `ratio_answer`."""
    given = {"seed": seed, "replicates": replicates, "few_labels": few_labels}
    return ratio_answer(measure, labels, ranks, pairs=pairs, **given).results  # type: ignore[arg-type]


def ratio_answer(
    measure: Measure[Ratio],
    labels: PseudoLabels,
    ranks: ArrayLike,
    *,
    seed: int,
    pairs: Sequence[tuple[int, int]] | None = None,
    replicates: int = REPLICATES,
    few_labels: Sequence[Estimate | Refusal] = (),
) -> RatioAnswer:
    """Return the ratio of every run, then the difference of every pair of runs, with 95 % confidence intervals.

    Values by topic: the topic's ratio less its bootstrap bias; of a ratio R of sums over n topics, with numerator N_t
    and denominator D_t of a topic, R + n (N_t - R D_t)/sum D.

    Value: twice the estimate less the bootstrap's mean; it may leave [0, 1]. Standard error: the bootstrap's
    standard deviation, with the noise of `PseudoLabels.cautious` if that is larger; z from 100 known items that the
    target ranks, below that t with one degree of freedom less than their number. A topic without a relevant
    document, or for which a run returns nothing, counts 0 in the mean over topics, as in ir_measures and
    ``trec_eval -c``. In the ratio of sums an empty ranking adds 0 above and the ideal below, a topic without a
    relevant document nothing to either. Documents outside the frame count as not relevant, as in every pooled
    evaluation.

    Assumption: Poisson draw with the recorded probabilities, a prediction fixed without the item's own
    inclusion, and (corrected pseudo-labels) a Poisson audit whose gold grades are right. These topics: the
    interval does not contain the choice of topics.

    Refused: fewer than 10 known items that the target ranks; micro below about 8 known items a topic (30 without
    a prediction) or half of the pool, or with nothing relevant known; macro below that, or below about 100 a topic
    or 20 % of the pool, or with a topic that has none, or without a prediction, where its intervals are too short
    (the words then carry the micro value).

    Parameters
    ----------
    measure : Measure[Ratio]
        Of `sampling.measures.registry.parse_ratio`.
    labels : PseudoLabels
        For AP of one stair of step 1: make them with gains of 0 and 1.
    ranks : int array [run, frame]
        A run's rank of each item, 0 where it does not return it.
    pairs : pairs of runs, default all, (a, b) with a < b, in the order (0, 1), (0, 2), ...
    seed, replicates : int
        Of the multiplier bootstrap. Every run and pair is computed from the same replicates.
    few_labels : estimates or refusals [target], optional
        What is said, of runs and then pairs, where too little is known for the mean over topics: another number, or a
        refusal of its own.

    Raises
    ------
    ValueError
        Ranks of the wrong shape or type, negative, or two items at one rank; AP of graded pseudo-labels; fewer
        than 100 replicates; a pair that names a run that is not there.

    Source: docs/methods/derivations/ratios.md; Schnabel et al. (2016), section 3.3 for ratios of estimates;
    Jarvelin and Kekalainen (2002) for nDCG; Efron and Tibshirani (1993), chapter 10 for the bias.
    """
    rank = checked_ranks(labels, ranks)
    wanted = _checked_pairs(measure, labels, len(rank), pairs, replicates)

    if not measure.kind.has_prediction:
        alone = Refusal(f"{measure.name} is a value alone: {no_interval(measure)}")
        return RatioAnswer([alone] * (len(rank) + len(wanted)), None)
    is_idle = labels.is_census or missing_for_micro(labels) > 0  # nothing is read from a replicate
    made = error_replicates(measure, labels, rank, 0 if is_idle else replicates, seed)
    known = rank[:, labels.judged[labels.counted]]
    known = known * (known <= measure.last_rank)
    others = iter(
        few_labels if few_labels and missing_for_macro(labels) else [None] * (len(rank) + len(wanted))
    )
    results = [
        _result(measure, labels, made, (run,), int(np.count_nonzero(known[run])), next(others))
        for run in range(len(rank))
    ]
    for (a, b), other in zip(wanted, others, strict=True):
        if made.rankings[a] == made.rankings[b]:
            same = "the two runs are the same inside the cutoff"
            results.append(Estimate(0.0, 0.0, 0.0, 0.0, None, 0, (), (), same))
        else:
            used = int(np.count_nonzero(known[a] != known[b]))
            results.append(_result(measure, labels, made, (a, b), used, other))
    return RatioAnswer(results, _topic_values(measure, labels, made, rank))


def _topic_values(
    measure: Measure[Ratio], labels: PseudoLabels, made: ErrorReplicates, rank: Ints
) -> Floats | None:
    """Return [run, topic] values whose means are the ratios of the runs; None where `_result` has no such number."""
    if measure.averaging != "micro":
        is_known = not missing_for_macro(labels) and (labels.predicted or labels.is_census)
        return 2 * made.seen.by_topic - made.seen.mean_by_topic if is_known else None
    if missing_for_micro(labels) or made.seen.total <= 0:
        return None
    whole, ratio = Denominator(measure, labels).of_sums(), made.seen.micro[:, None]
    surplus = np.array(_numerators(measure, labels, rank)) - ratio * whole
    bias = 0.0 if labels.is_census else made.seen.micro_replicates.mean(axis=1, keepdims=True) - ratio
    return np.asarray(ratio - bias + labels.n_topics * surplus / made.seen.total)


def ratio_values(measure: Measure[Ratio], labels: PseudoLabels, ranks: ArrayLike) -> Floats:
    """Return the ratio of every run as the labels have it, with its bias: a mean over topics, or the ratio of sums.

    Parameters, errors: as `ratio_estimates`.
    """
    if measure.averaging != "micro":
        return np.asarray(ratio_values_of_topics(measure, labels, ranks).mean(axis=1))
    _, whole = Denominator(measure, labels).values()
    numerators = _numerators(measure, labels, ranks)
    return np.array([quotient(value.sum(keepdims=True), whole)[0] for value in numerators])


def ratio_values_of_topics(measure: Measure[Ratio], labels: PseudoLabels, ranks: ArrayLike) -> Floats:
    """Return the ratio of every run in every topic as the labels have it, [run, topic]; 0 where nothing can be gained.

    Parameters, errors: as `ratio_estimates`.
    """
    by_topic, _ = Denominator(measure, labels).values()
    return np.array([quotient(value, by_topic[:, 0]) for value in _numerators(measure, labels, ranks)])


def _numerators(measure: Measure[Ratio], labels: PseudoLabels, ranks: ArrayLike) -> list[Floats]:
    """Return what every run gains, by topic."""
    return [
        numerator(measure, labels, ranked_items(measure, labels, row)).value
        for row in checked_ranks(labels, ranks)
    ]


def checked_ranks(labels: PseudoLabels, ranks: ArrayLike) -> Ints:
    """Return the ranks as [run, frame]; ValueError for other shapes, types or negative ranks."""
    rank = np.atleast_2d(np.asarray(ranks))
    if rank.dtype.kind not in "iu":
        raise ValueError(f"ranks must be integers, got dtype {rank.dtype}")
    if rank.ndim != 2 or rank.shape[0] == 0 or rank.shape[1] != labels.topic_index.size:
        raise ValueError(f"ranks must have shape (runs, {labels.topic_index.size}), got {rank.shape}")
    if rank.size and int(rank.min()) < 0:
        raise ValueError(f"ranks must be at least 0 (0 = not returned), got {int(rank.min())}")
    return rank.astype(np.int64, copy=False)


def _checked_pairs(
    measure: Measure[Ratio],
    labels: PseudoLabels,
    n_runs: int,
    pairs: Sequence[tuple[int, int]] | None,
    replicates: int,
) -> list[tuple[int, int]]:
    """Return the wanted pairs; ValueError for what `ratio_estimates` cannot do."""
    if measure.binary and labels.steps.tolist() != [1.0]:
        raise ValueError(
            f"{measure.name} needs labels of one stair of step 1, got steps {labels.steps.tolist()}"
        )
    if replicates < 100:
        raise ValueError(f"replicates must be at least 100, got {replicates}")
    wanted = list(combinations(range(n_runs), 2)) if pairs is None else list(pairs)
    for pair in wanted:
        if not all(0 <= run < n_runs for run in pair):
            raise ValueError(f"pairs must name runs within [0, {n_runs - 1}], got {pair}")
    return wanted


def _result(
    measure: Measure[Ratio],
    labels: PseudoLabels,
    made: ErrorReplicates,
    runs: tuple[int, ...],
    used: int,
    other: Estimate | Refusal | None,
) -> Estimate | Refusal:
    """Return the answer for a run, or for the difference of two: the other one, where that is given."""
    if isinstance(other, Estimate):
        return other
    if used < FEWEST_ITEMS and not labels.is_census:
        few = too_few(used, noun=f"{labels.known_noun} items")
        return few if other is None or labels.counted.sum() < FEWEST_ITEMS else other
    if measure.averaging == "micro":
        return _micro(measure, labels, made, runs, used)
    missing = missing_for_macro(labels)
    if not missing and (labels.predicted or labels.is_census):
        return _estimate(made, "macro", runs, labels, used)
    instead = _micro(measure, labels, made, runs, used)
    words = (
        f"Its micro form is refused too: {instead.reason}"
        if isinstance(instead, Refusal)
        else f"Its micro form, the ratio of the sums over topics, is {instead.value:.4f} "
        f"[{instead.low:.4f}, {instead.high:.4f}]"
    )
    what = f"the mean of {measure.name} over topics"
    if not missing:
        return Refusal(f"{what} needs a prediction of what nobody judged. {words}")
    if other is not None and other.needed != 0:
        return Refusal(f"{other.reason}. {words}", other.needed)
    reason = f"{_too_few(labels, what, MACRO_PER_TOPIC, MACRO_SHARE)}, and some in every topic"
    n_without = _topics_without(labels)
    if n_without == missing:  # there is nothing else
        reason = f"{n_without} of {labels.n_topics} topics have no {labels.known_noun} item: {what} needs some in each"
    before = "" if other is None else f"{other.reason}. Here: "
    return Refusal(f"{before}{reason}. {words}", missing)


def _micro(
    measure: Measure[Ratio], labels: PseudoLabels, made: ErrorReplicates, runs: tuple[int, ...], used: int
) -> Estimate | Refusal:
    """Return the ratio of the sums over topics, or why there is none."""
    missing = missing_for_micro(labels)
    if missing:
        words = _too_few(labels, f"a ratio of sums ({measure.name})", _micro_per_topic(labels), MICRO_SHARE)
        return Refusal(words, missing)
    if made.seen.total <= 0:
        return Refusal("nothing relevant is known, so there is nothing to divide by")
    return _estimate(made, "micro", runs, labels, used)


def _too_few(labels: PseudoLabels, what: str, per_topic: int, share: float) -> str:
    known, pooled = int(labels.counted.sum()), labels.topic_index.size
    words = (
        f"too few {labels.known_noun} items for {what}: {known / labels.n_topics:.1f} a topic, {known / pooled:.1%} "
        f"of the pool; about {per_topic} a topic or {share:.0%} of the pool are needed"
    )
    if known < ABOUT * _enough(labels, per_topic, share):
        return words
    return (
        f"{labels.known_noun} items that are spread too unevenly for {what}: for the pool as a whole they count as "
        f"{labels.spread_evenly / pooled:.1%} of it, and {share:.0%} are needed; audit evenly"
    )


def _micro_per_topic(labels: PseudoLabels) -> int:
    return MICRO_PER_TOPIC if labels.predicted else MICRO_PER_TOPIC_UNPREDICTED


def missing_for_micro(labels: PseudoLabels) -> int:
    """Return how many more known items a ratio of sums needs, 0 if there are enough."""
    return _missing(labels, _micro_per_topic(labels), MICRO_SHARE)


def missing_for_macro(labels: PseudoLabels) -> int:
    """Return how many more known items a mean over topics needs, 0 if there are enough, and some in every topic."""
    enough = _enough(labels, MACRO_PER_TOPIC, MACRO_SHARE)
    even = min(labels.spread_evenly, float(labels.counted.sum()))
    uneven = 0 if labels.is_census or even >= ABOUT * enough else math.ceil(enough - even)
    return max(_topics_without(labels), uneven, missing_for_micro(labels))


def _topics_without(labels: PseudoLabels) -> int:
    """Return how many topics have a pool and no known item."""
    known = np.bincount(labels.topic_index[labels.judged[labels.counted]], minlength=labels.n_topics)
    pooled = np.bincount(labels.topic_index, minlength=labels.n_topics)
    return int(np.count_nonzero((pooled > 0) & (known == 0)))


def is_too_few(n_known: int, n_topics: int, n_items: int) -> bool:
    """Return whether so few predicted items are known that even a ratio of sums is refused.

    >>> is_too_few(379, 50, 3161), is_too_few(380, 50, 3161)
    (True, False)
    """
    return n_known < ABOUT * min(MICRO_PER_TOPIC * n_topics, MICRO_SHARE * n_items)


def _missing(labels: PseudoLabels, per_topic: int, share: float) -> int:
    known, enough = int(labels.counted.sum()), _enough(labels, per_topic, share)
    return 0 if labels.is_census or known >= ABOUT * enough else math.ceil(enough - known)


def _enough(labels: PseudoLabels, per_topic: int, share: float) -> float:
    return min(per_topic * labels.n_topics, share * labels.topic_index.size)


def _estimate(
    made: ErrorReplicates,
    average: Literal["macro", "micro"],
    runs: tuple[int, ...],
    labels: PseudoLabels,
    used: int,
) -> Estimate:
    """Return 2 * estimate - bootstrap mean, with the bootstrap's variance; the value itself if all is known."""

    def of_target(values: Floats) -> Floats:
        return np.asarray(values[runs[0]] - values[runs[1]] if len(runs) == 2 else values[runs[0]])

    macro = average == "macro"
    value = float(of_target(made.seen.macro if macro else made.seen.micro))
    if labels.is_census:
        return estimate(value, 0.0, degrees_of_freedom=None, n=used, sources=labels.sources)
    drawn, wide = (
        of_target(one.macro_replicates if macro else one.micro_replicates)
        for one in (made.seen, made.cautious)
    )
    bias, variance = float(drawn.mean()) - value, float(max(drawn.var(ddof=1), wide.var(ddof=1)))
    warnings = [few_items_warning(used, f"{labels.known_noun} items")]
    if bias**2 > variance / 4:
        warnings.append("the correction for bias is more than half the standard error")
    return estimate(
        value - bias,
        variance,
        degrees_of_freedom=None if used >= KNOWN_FOR_NORMAL else used - 1,
        n=used,
        sources=labels.sources,
        components=(("drawing", variance),) if labels.sources == ("drawing",) else (),
        warning="; ".join(filter(None, warnings)),
    )
