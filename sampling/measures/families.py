"""What a measure is: a family with its parameters and a cutoff; and the weights and gains that follow from it.

A family is declared in a file of its own and listed in `sampling.measures.registry`, which reads names. Its kind
(`sampling.measures.kinds`) says what a value is made of.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sampling.measures.kinds import Kind, Linear, Pairs
from sampling.measures.sparse import SparseRuns
from sampling.measures.spelling import canonical, read_grade

FloatArray = NDArray[np.float64]
KindT = TypeVar("KindT", bound=Kind, covariant=True)
DEEPEST = 1 << 62  # the last rank of a measure without a cutoff


@dataclass(frozen=True)
class Parameter:
    """A parameter of a measure's name, as in ``RBP(p=0.5)@20``.

    `read` gives the value of its text or raises ValueError. A value is written unless it is the default, or always.
    """

    key: str
    default: Any
    read: Callable[[str], Any]
    write: Callable[[Any], str] = str
    is_always_written: bool = False

    def spelling(self, value: Any) -> str:
        is_left_out = value == self.default and not self.is_always_written
        return "" if is_left_out else f"{self.key}={self.write(value)}"


RELEVANT = Parameter("rel", None, read_grade)  # the lowest relevant grade, where it is not the scale's


@dataclass(frozen=True)
class Family:
    """A family of measures.

    Attributes
    ----------
    key : str
        Its name, as ir_measures spells it where it has it.
    label, help : str
        What it is called and what it says, for forms and documentation.
    kind : Linear, Ratio, Complete or Pairs
        What callers ask of it.
    parameters : tuple of Parameter
    aliases : tuple of str
        Other names under which it is read.
    binary : bool
        The gain is 1 from the relevant grade on and 0 below; else it is the scale's gain, or the kind's own.
    suggested : tuple of str
        Measures of the family that a form offers.
    reported : tuple of str
        Those that every campaign has numbers in if its pool reaches the cutoff. ``{depth}`` is the pool's depth.
    ir_measures : callable
        ``(measure, gains, relevant_grade)`` to the name under which ir_measures computes the same from qrels, or an
        empty text.
    """

    key: str
    label: str
    help: str
    kind: Kind
    parameters: tuple[Parameter, ...] = ()
    aliases: tuple[str, ...] = ()
    binary: bool = False
    suggested: tuple[str, ...] = ()
    reported: tuple[str, ...] = ()
    ir_measures: Callable[["Measure[Any]", FloatArray, int], str] = lambda *_: ""


@dataclass(frozen=True)
class Measure(Generic[KindT]):
    """A measure: a family with a value for every parameter.

    Attributes
    ----------
    name : str
        Canonical spelling, as ir_measures prints it: parameters at their default are left out, but for those that are
        always written, and "micro " stands before a ratio of sums.
    family : Family
    kind : Linear, Ratio, Complete or Pairs
        The family's.
    cutoff : int or None
        Ranks beyond it count for nothing; None is the whole ranking.
    parameters : mapping
        By key, defaults included.
    averaging : "macro" or "micro"
        Mean over topics of the values; or, of a ratio alone, the ratio of the sums over topics.
    """

    name: str
    family: Family
    kind: KindT
    cutoff: int | None
    parameters: Mapping[str, Any]
    averaging: Literal["macro", "micro"] = "macro"

    @property
    def binary(self) -> bool:
        return self.family.binary

    @property
    def last_rank(self) -> int:
        """Return the last rank that counts."""
        return DEEPEST if self.cutoff is None else self.cutoff

    @property
    def relevant_grade(self) -> int | None:
        """Return the ``rel`` of the name; None leaves the choice to the scale."""
        grade: int | None = self.parameters.get(RELEVANT.key)
        return grade


def named_measure(
    family: Family,
    cutoff: int | None,
    parameters: Mapping[str, Any],
    averaging: Literal["macro", "micro"] = "macro",
) -> Measure[Kind]:
    """Return the measure of these values under its canonical name."""
    shown = filter(None, (one.spelling(parameters[one.key]) for one in family.parameters))
    name = canonical(family.key, list(shown), cutoff)
    if averaging == "micro":
        name = f"micro {name}"
    return Measure(name, family, family.kind, cutoff, parameters, averaging)


def rank_weights(measure: Measure[Linear], depth: int) -> FloatArray:
    """Return lambda(rank) for rank 1 to depth: what a gain of 1 at that rank adds to the measure of one
    topic.

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
    >>> from sampling.measures.registry import parse_linear
    >>> rank_weights(parse_linear("P@2"), 3).tolist()
    [0.5, 0.5, 0.0]
    """
    if not 1 <= depth <= 10_000_000:
        raise ValueError(f"depth must be within [1, 10000000], got {depth}")
    rank = np.arange(1, depth + 1, dtype=np.float64)
    weights = np.zeros(depth)
    inside = rank <= measure.last_rank
    weights[inside] = measure.kind.weights(measure, rank[inside])
    weights[weights < np.finfo(np.float64).tiny] = 0.0
    return weights


def grade_gains(measure: Measure[Kind], scale_gains: ArrayLike, relevant_grade: int) -> FloatArray:
    """Return the gain of every grade: 0 or 1 for a binary measure, otherwise the scale's or the measure's own.

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
    >>> from sampling.measures.registry import parse_measure
    >>> grade_gains(parse_measure("P@10"), [0, 1, 3], 1).tolist()
    [0.0, 1.0, 1.0]
    """
    gains = np.array(scale_gains, dtype=np.float64)
    if gains.ndim != 1 or gains.size < 2:
        raise ValueError(f"scale_gains must hold at least 2 grades, got shape {gains.shape}")
    if not np.all(np.isfinite(gains)) or np.any(gains < 0):
        raise ValueError(f"scale_gains must be finite and not negative, got {gains.tolist()}")
    if not measure.binary:
        return measure.kind.grade_gains(gains)
    threshold = relevant_grade if measure.relevant_grade is None else measure.relevant_grade
    if not 1 <= threshold <= gains.size - 1:
        raise ValueError(f"relevant grade must be within [1, {gains.size - 1}], got {threshold}")
    return np.asarray(np.arange(gains.size) >= threshold, dtype=np.float64)


def largest_value(measure: Measure[Kind], gains: ArrayLike) -> float | None:
    """Return the largest value that the measure can have in a topic, and so as a mean over topics; the least is 0.

    Parameters
    ----------
    gains : array, shape (n_grades,)
        Of `grade_gains`.

    Returns
    -------
    float or None
        None for a sum over pairs of documents: it depends on how many documents are returned.

    Examples
    --------
    >>> from sampling.measures.registry import parse_measure
    >>> largest_value(parse_measure("Gain@10"), [0, 1, 3]), largest_value(parse_measure("AP"), [0, 1])
    (3.0, 1.0)
    """
    kind: Any = measure.kind  # it takes measures of its own kind, and this is one: a union cannot say so
    if isinstance(kind, Pairs):
        return None
    return float(kind.largest(measure, np.asarray(gains, dtype=np.float64)))


def run_weights(measure: Measure[Linear], ranks: ArrayLike, n_topics: int) -> FloatArray:
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
    >>> from sampling.measures.registry import parse_linear
    >>> run_weights(parse_linear("P@2"), [1, 0, 2, 3], n_topics=2).tolist()
    [0.25, 0.0, 0.25, 0.0]
    """
    rank = np.asarray(ranks)
    if rank.dtype.kind not in "iu":
        raise ValueError(f"ranks must be integers, got dtype {rank.dtype}")
    if rank.size and int(rank.min()) < 0:
        raise ValueError(f"ranks must be at least 0 (0 = not returned), got {int(rank.min())}")
    if n_topics < 1:
        raise ValueError(f"n_topics must be at least 1, got {n_topics}")
    deepest = measure.last_rank
    table = np.concatenate(([0.0], rank_weights(measure, deepest), [0.0])) / n_topics
    return np.asarray(table[np.minimum(rank, deepest + 1)], dtype=np.float64)


def weights_of_runs(measure: Measure[Linear], ranks: SparseRuns, n_topics: int) -> SparseRuns:
    """Return `run_weights` of every run, [run, item]; a rank beyond the cutoff has no entry."""
    return ranks.with_values(run_weights(measure, ranks.value, n_topics))
