"""Linear measures as weights: what one document at one rank adds to a run's score.

Every measure here is a sum over returned documents of lambda(rank) * gain(grade), so that a sample of judged
documents estimates it without bias. Measures divided by something unknown (nDCG, AP, recall) are refused by
name.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

MAX_CUTOFF = 100_000
_SPELLING = re.compile(r"(?P<family>[A-Za-z_]+)(?:\((?P<parameters>[^()]*)\))?(?:@(?P<cutoff>[0-9]{1,7}))?")
_PARAMETER = re.compile(r"(?P<key>[a-z]+)=(?P<quote>['\"]?)(?P<value>[A-Za-z0-9.]+)(?P=quote)")
_LOG_BASES = {"log2": 2.0, "ln": math.e}
_ALLOWED = {"P": {"rel"}, "Gain": set[str](), "DCG": {"dcg"}, "RBP": {"p", "rel"}}
_RATIOS = frozenset({"nDCG", "NDCG", "AP", "MAP", "R", "Recall", "Rprec", "RPrec", "infAP", "Bpref", "SDCG"})


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
    spelled = _SPELLING.fullmatch(name)
    if spelled is None:
        raise ValueError(f"measure must be spelled Family(parameter=value)@cutoff, got {name!r}")
    family = spelled["family"]
    if family in _RATIOS:
        raise ValueError(
            f"measure {name!r} is a ratio, not linear in the judgments; use one of {sorted(_ALLOWED)}"
        )
    if family not in _ALLOWED:
        raise ValueError(f"measure family must be one of {sorted(_ALLOWED)}, got {family!r}")
    if spelled["cutoff"] is None:
        raise ValueError(f"measure {name!r} needs a cutoff, as in {family}@10")
    cutoff = int(spelled["cutoff"])
    if not 1 <= cutoff <= MAX_CUTOFF:
        raise ValueError(f"cutoff must be within [1, {MAX_CUTOFF}], got {cutoff}")
    given = _parameters(name, family, spelled["parameters"])
    log_base = _log_base(given.get("dcg", "log2"))
    persistence = _persistence(given.get("p", "0.8"))
    relevant_grade = _relevant_grade(given["rel"]) if "rel" in given else None
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
        name=f"{family}({','.join(shown)})@{cutoff}" if shown else f"{family}@{cutoff}",
        cutoff=cutoff,
        binary=family in {"P", "RBP"},
        family=family,
        log_base=log_base,
        persistence=persistence,
        relevant_grade=relevant_grade,
    )


def _parameters(name: str, family: str, text: str | None) -> dict[str, str]:
    """Return the named parameters of a measure as text."""
    given: dict[str, str] = {}
    for part in [] if text is None else text.split(","):
        spelled = _PARAMETER.fullmatch(part.strip())
        if spelled is None:
            raise ValueError(f"parameter must be spelled key=value, got {part!r} in measure {name!r}")
        if spelled["key"] not in _ALLOWED[family]:
            raise ValueError(
                f"{family} takes the parameters {sorted(_ALLOWED[family])}, got {spelled['key']!r}"
            )
        if spelled["key"] in given:
            raise ValueError(f"parameter {spelled['key']!r} is given twice in measure {name!r}")
        given[spelled["key"]] = spelled["value"]
    return given


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


def _relevant_grade(text: str) -> int:
    """Return the lowest relevant grade."""
    if not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise ValueError(f"rel must be a grade within [1, 1000], got {text!r}")
    return int(text)


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


def grade_gains(measure: Measure, scale_gains: ArrayLike, relevant_grade: int) -> FloatArray:
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
