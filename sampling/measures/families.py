"""Measures by name: linear ones as weights, and ratios (nDCG, AP) that `analytics.estimation.ratios` estimates.

A linear measure is a sum over returned documents of lambda(rank) * gain(grade), so that a sample of judged
documents estimates it without bias: `parse_measure`. nDCG and AP are divided by something unknown, which
depends on documents nobody has judged: `parse_ratio`. Errors of predicted grades are in
`experiments.papers.grade_errors`, measures of pairs of documents in `sampling.measures.pairwise`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sampling.measures.spelling import canonical, parameters, spelled
from sampling.measures.spelling import relevant_grade as relevant_grade_of

FloatArray = NDArray[np.float64]

_LOG_BASES = {"log2": 2.0, "ln": math.e}
_LINEAR = {"P": {"rel"}, "Gain": set[str](), "DCG": {"dcg"}, "RBP": {"p", "rel"}}
_RATIOS = {"nDCG": {"dcg"}, "AP": {"rel"}}
_RATIO_ALIASES = {"NDCG": "nDCG", "MAP": "AP"}  # as ir_measures reads them
# Divided by the number of relevant documents alone, or by what was judged: no estimator here covers them.
_NOT_SERVED = frozenset({"R", "Recall", "Rprec", "RPrec", "infAP", "Bpref", "SDCG"})
_ELSEWHERE = dict.fromkeys(("MAE", "MSE"), "experiments.papers.grade_errors")
_ELSEWHERE |= dict.fromkeys(("Swaps", "wSwaps"), "sampling.measures.pairwise")
_EVERY_RATIO = frozenset(_RATIOS) | frozenset(_RATIO_ALIASES) | _NOT_SERVED


@dataclass(frozen=True)
class Measure:
    """Return of `parse_measure`: a linear measure, U(S) = sum of lambda(rank) * gain(grade) over returned
    documents.

    Attributes
    ----------
    name : str
        Canonical spelling, as ir_measures prints it: parameters at their default are left out.
    cutoff : int
        Ranks beyond it weigh nothing.
    binary : bool
        True when the gain is 1 from a relevant grade on and 0 below (P, RBP); False when it is the scale's
        gain.
    family : str
        "P", "Gain", "DCG" or "RBP".
    log_base : float
        Base of DCG's logarithm: 2 (trec_eval, ir_measures) unless the name says ``dcg='ln'``.
    persistence : float
        RBP's p.
    relevant_grade : int or None
        The ``rel`` of the name; None leaves the choice to the campaign's scale.
    """

    name: str
    cutoff: int
    binary: bool
    family: str
    log_base: float = 2.0
    persistence: float = 0.8
    relevant_grade: int | None = None


def parse_measure(name: str) -> Measure:
    """Return the linear measure that a name means, in the spelling of ir_measures:
    Family(parameter=value)@cutoff.

    Known are ``P@k`` and ``P(rel=2)@k``; ``Gain@k`` (mean gain of the first k); ``DCG@k``, whose discount is
    1/log2(rank + 1), and ``DCG(dcg='ln')@k`` with the natural logarithm; ``RBP(p=0.8)@k``, weights
    (1 - p) p^(rank - 1), p = 0.8 unless given. RBP is binary here. A cutoff is required: beyond the pool
    nothing is ever judged.

    Raises
    ------
    ValueError
        Unknown family or parameter, no cutoff or one outside [1, 100000], p outside (0, 1), rel below 1, or a
        ratio measure, which no linear estimator serves without bias.

    Examples
    --------
    >>> parse_measure("RBP(p=0.8)@100").name
    'RBP@100'
    >>> parse_measure("DCG@10").log_base
    2.0
    """
    parts = spelled(name)
    family, cutoff = parts.family, parts.cutoff
    if family in _EVERY_RATIO:
        raise ValueError(
            f"measure {name!r} is a ratio, not linear in the judgments: choose one of {sorted(_LINEAR)} here; "
            f"{sorted(_RATIOS)} are estimated from the same judgments (`parse_ratio`)"
        )
    if family in _ELSEWHERE:
        raise ValueError(f"measure {name!r} is not a sum of gains over ranks: see {_ELSEWHERE[family]}")
    if family not in _LINEAR:
        raise ValueError(f"measure family must be one of {sorted(_LINEAR)}, got {family!r}")
    if cutoff is None:
        raise ValueError(f"measure {name!r} needs a cutoff, as in {family}@10")
    given = parameters(parts, _LINEAR[family])
    log_base = _log_base(given.get("dcg", "log2"))
    persistence = _persistence(given.get("p", "0.8"))
    relevant_grade = relevant_grade_of(given)
    shown = []
    if log_base != 2.0:
        shown.append("dcg='ln'")
    if persistence != 0.8:
        shown.append(
            f"p={persistence:g}" if float(f"{persistence:g}") == persistence else f"p={persistence!r}"
        )
    if relevant_grade is not None:
        shown.append(f"rel={relevant_grade}")
    return Measure(
        name=canonical(family, shown, cutoff),
        cutoff=cutoff,
        binary=family in {"P", "RBP"},
        family=family,
        log_base=log_base,
        persistence=persistence,
        relevant_grade=relevant_grade,
    )


@dataclass(frozen=True)
class RatioMeasure:
    """Return of `parse_ratio`: a measure of a topic that is a numerator divided by an unknown denominator.

    Attributes
    ----------
    name : str
        Canonical spelling: as ir_measures prints it, with "micro " before it for a ratio of sums.
    family : str
        "nDCG" or "AP".
    cutoff : int or None
        Ranks beyond it add nothing; None is the whole ranking.
    averaging : "macro" or "micro"
        Mean over topics of the ratio, or ratio of the sums over topics.
    binary : bool
        True for AP: the gain is 1 from the relevant grade on.
    relevant_grade : int or None
        The ``rel`` of the name; None leaves the choice to the campaign's scale.
    """

    name: str
    family: str
    cutoff: int | None
    averaging: Literal["macro", "micro"]
    binary: bool
    relevant_grade: int | None = None


def parse_ratio(name: str) -> RatioMeasure:
    """Return the ratio measure that a name means: ``nDCG@10``, ``AP``, ``AP@20``, ``AP(rel=2)@20``.

    These spell the mean over topics of the ratio (macro), as every tool computes it. ``micro nDCG@10`` is the
    ratio of the sums over topics, which needs far fewer judgments; the word is Touchstone's own. Without a
    cutoff the whole ranking counts, as far as it was pooled. AP is divided by the number of relevant
    documents, not by the smaller of it and the cutoff (trec_eval's ``map_cut``).

    Gains belong to the campaign's scale, hence ``dcg='exp-log2'`` and ``gains=`` are refused: give the scale
    the gains 2^grade - 1 instead. ``judged_only`` is refused because a sample leaves most documents unjudged.
    The logarithm's base cancels out of nDCG, so ``dcg='ln'`` is the same measure.

    Raises
    ------
    ValueError
        A linear measure, another family or parameter, a cutoff outside [1, 100000], rel below 1.

    Examples
    --------
    >>> parse_ratio("micro nDCG@10").averaging, parse_ratio("MAP(rel=2)@20").name
    ('micro', 'AP(rel=2)@20')
    """
    prefix, space, rest = name.partition(" ")
    micro = prefix == "micro" and bool(space)
    parts = spelled(rest.lstrip() if micro or (prefix == "macro" and space) else name)
    family = _RATIO_ALIASES.get(parts.family, parts.family)
    if family in _LINEAR:
        raise ValueError(
            f"measure {name!r} is linear: parse_ratio takes one of {sorted(_RATIOS)}, parse_measure one of "
            f"{sorted(_LINEAR)}"
        )
    if family not in _RATIOS:
        raise ValueError(f"ratio measure must be one of {sorted(_RATIOS)}, got {family!r}")
    if any(word in (parts.parameters or "") for word in ("exp-", "gains")):
        raise ValueError(
            f"gains belong to the scale, not to the measure: give the scale the gains, got {name!r}"
        )
    given = parameters(parts, _RATIOS[family])
    _log_base(given.get("dcg", "log2"))
    relevant_grade = relevant_grade_of(given)
    shown = [] if relevant_grade is None else [f"rel={relevant_grade}"]
    plain = canonical(family, shown, parts.cutoff)
    return RatioMeasure(
        name=f"micro {plain}" if micro else plain,
        family=family,
        cutoff=parts.cutoff,
        averaging="micro" if micro else "macro",
        binary=family == "AP",
        relevant_grade=relevant_grade,
    )


def measure_kind(name: str) -> Literal["linear", "ratio"]:
    """Return which of `parse_measure` and `parse_ratio` reads the name; ValueError if neither does.

    >>> measure_kind("RBP@100"), measure_kind("micro AP")
    ('linear', 'ratio')
    """
    prefixed = name.startswith(("micro ", "macro "))
    if prefixed or spelled(name).family in {*_RATIOS, *_RATIO_ALIASES}:
        parse_ratio(name)
        return "ratio"
    parse_measure(name)
    return "linear"


def _log_base(text: str) -> float:
    """Return the base of the discount's logarithm."""
    if text not in _LOG_BASES:
        # exp-log2 changes the gain, not the discount; here gains belong to the scale.
        raise ValueError(f"dcg must be one of {sorted(_LOG_BASES)}, got {text!r}")
    return _LOG_BASES[text]


def _persistence(text: str) -> float:
    """Return RBP's p."""
    try:
        persistence = float(text)
    except ValueError:
        raise ValueError(f"p must be a number within (0, 1), got {text!r}") from None
    if not 0.0 < persistence < 1.0:
        raise ValueError(f"p must be within (0, 1), got {text}")
    return persistence


def _flat_weights(measure: Measure, rank: FloatArray) -> FloatArray:
    return np.full(rank.shape, 1.0 / measure.cutoff)


def _log_weights(measure: Measure, rank: FloatArray) -> FloatArray:
    # log2 is exact at powers of two; dividing natural logarithms is not.
    if measure.log_base == 2.0:
        return np.asarray(1.0 / np.log2(rank + 1.0), dtype=np.float64)
    return np.asarray(math.log(measure.log_base) / np.log(rank + 1.0), dtype=np.float64)


def _geometric_weights(measure: Measure, rank: FloatArray) -> FloatArray:
    # Table 1 of Schnabel et al. prints (1 - p)/p^rank, which diverges; Moffat and Zobel's weight is this one.
    p = measure.persistence
    return np.asarray((1.0 - p) * p ** (rank - 1.0), dtype=np.float64)


_RANK_WEIGHTS: dict[str, Callable[[Measure, FloatArray], FloatArray]] = {
    "P": _flat_weights,
    "Gain": _flat_weights,
    "DCG": _log_weights,
    "RBP": _geometric_weights,
}


def rank_weights(measure: Measure, depth: int) -> FloatArray:
    """Return lambda(rank) for rank 1 to depth: what a gain of 1 at that rank adds to the measure of one
    topic.

    P and Gain: 1/cutoff. DCG: 1/log_b(rank + 1), b = 2, or e under ``dcg='ln'``. RBP: (1 - p) p^(rank - 1).
    Zero beyond the cutoff. The weights are not normalised: RBP's sum to 1 - p^cutoff, and a short ranking
    simply scores less. A weight below the smallest normal double (RBP deep down) is 0.

    Source: Schnabel et al. (2016), Table 1; Moffat and Zobel (2008) for RBP; Jarvelin and Kekalainen (2002)
    for DCG.

    Raises
    ------
    ValueError
        depth outside [1, 10^7].

    Examples
    --------
    >>> rank_weights(parse_measure("P@2"), 3).tolist()
    [0.5, 0.5, 0.0]
    """
    if not 1 <= depth <= 10_000_000:
        raise ValueError(f"depth must be within [1, 10000000], got {depth}")
    rank = np.arange(1, depth + 1, dtype=np.float64)
    weights = np.zeros(depth)
    inside = rank <= measure.cutoff
    weights[inside] = _RANK_WEIGHTS[measure.family](measure, rank[inside])
    weights[weights < np.finfo(np.float64).tiny] = 0.0
    return weights


def grade_gains(measure: Measure | RatioMeasure, scale_gains: ArrayLike, relevant_grade: int) -> FloatArray:
    """Return the gain of every grade: 0 or 1 for a binary measure, the scale's own gains otherwise.

    Parameters
    ----------
    scale_gains : array, shape (n_grades,)
        The scale's gain of grade 0, 1, ...; finite and not negative.
    relevant_grade : int
        Lowest grade that counts as relevant on this scale; the measure's own ``rel`` goes before it.

    Raises
    ------
    ValueError
        Fewer than two grades, a gain that is negative or not finite, a relevant grade the scale does not
        have.

    Examples
    --------
    >>> grade_gains(parse_measure("P@10"), [0, 1, 3], 1).tolist()
    [0.0, 1.0, 1.0]
    """
    gains = np.array(scale_gains, dtype=np.float64)
    if gains.ndim != 1 or gains.size < 2:
        raise ValueError(f"scale_gains must hold at least 2 grades, got shape {gains.shape}")
    if not np.all(np.isfinite(gains)) or np.any(gains < 0):
        raise ValueError(f"scale_gains must be finite and not negative, got {gains.tolist()}")
    if not measure.binary:
        return gains
    threshold = relevant_grade if measure.relevant_grade is None else measure.relevant_grade
    if not 1 <= threshold <= gains.size - 1:
        raise ValueError(f"relevant grade must be within [1, {gains.size - 1}], got {threshold}")
    return np.asarray(np.arange(gains.size) >= threshold, dtype=np.float64)


def run_weights(measure: Measure, ranks: ArrayLike, n_topics: int) -> FloatArray:
    """Return w = lambda(rank)/n_topics for every item of a frame: U(S) = sum of w * gain is the mean over
    topics.

    Never normalised by the length of a ranking: a short or empty ranking contributes what it returns, and no
    division by zero can happen (the paper's P(x, y|S) is this divided by its sum).

    Parameters
    ----------
    ranks : int array, shape (..., n_items)
        A run's rank of each frame item, 0 where it does not return the item. Several runs are rows.
    n_topics : int
        Topics of the campaign, also those for which the run returns nothing.

    Raises
    ------
    ValueError
        Ranks that are not integers or are negative; n_topics below 1.

    Examples
    --------
    >>> run_weights(parse_measure("P@2"), [1, 0, 2, 3], n_topics=2).tolist()
    [0.25, 0.0, 0.25, 0.0]
    """
    rank = np.asarray(ranks)
    if rank.dtype.kind not in "iu":
        raise ValueError(f"ranks must be integers, got dtype {rank.dtype}")
    if rank.size and int(rank.min()) < 0:
        raise ValueError(f"ranks must be at least 0 (0 = not returned), got {int(rank.min())}")
    if n_topics < 1:
        raise ValueError(f"n_topics must be at least 1, got {n_topics}")
    table = np.concatenate(([0.0], rank_weights(measure, measure.cutoff), [0.0])) / n_topics
    return np.asarray(table[np.minimum(rank, measure.cutoff + 1)], dtype=np.float64)
