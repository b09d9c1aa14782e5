"""The measures of a release: what a rank weighs, what divides a ratio, what a grade gives.

A table of the verifier's own. Part of every release, beside verify.py, which calls it; NumPy is all it needs.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
NAME = re.compile(r"(?:micro )?([A-Za-z]+)(?:\((.*)\))?(?:@(\d+))?")


@dataclass(frozen=True)
class Name:
    """The parts of a measure's name, as in RBP(p=0.5,rel=2)@20."""

    family: str
    parameters: dict[str, str]
    cutoff: int


def parts_of(measure: str) -> Name:
    match = NAME.fullmatch(measure)
    if match is None:
        raise ValueError(f"{measure} is not the name of a measure")
    inside = (part.strip().split("=") for part in (match[2] or "").split(",") if part)
    return Name(match[1], {key: value.strip("'\"") for key, value in inside}, int(match[3] or 0))


# -- sums: lambda of every rank ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sum:
    """The weight of every rank; binary where relevant documents are counted, whatever the scale's gains are."""

    weights: Callable[[Floats, Name], Floats]
    binary: bool = False


def equal(rank: Floats, name: Name) -> Floats:
    return np.full(rank.size, 1 / rank.size)


def logarithmic(rank: Floats, name: Name) -> Floats:
    logarithm = np.log if name.parameters.get("dcg") == "ln" else np.log2
    return np.asarray(1 / logarithm(rank + 1))


def geometric(rank: Floats, name: Name) -> Floats:
    p = float(name.parameters.get("p", "0.8"))
    return np.asarray((1 - p) * p ** (rank - 1))


SUMS = {
    "P": Sum(equal, binary=True),
    "Gain": Sum(equal),
    "DCG": Sum(logarithmic),
    "RBP": Sum(geometric, binary=True),
}


def rank_weights(measure: str) -> Floats:
    """Return lambda of rank 1 to the cutoff: P and Gain 1/k, DCG 1/log(rank + 1), RBP (1 - p) p^(rank - 1)."""
    name = parts_of(measure)
    return SUMS[name.family].weights(np.arange(1, name.cutoff + 1, dtype=np.float64), name)


def grade_gains(measure: str, scale_gains: Floats, relevant_grade: int) -> Floats:
    """Return the gain of every grade: P and RBP count relevant documents, the others the scale's own gains."""
    name = parts_of(measure)
    return binary_gains(name, scale_gains, relevant_grade) if SUMS[name.family].binary else scale_gains


def binary_gains(name: Name, scale_gains: Floats, relevant_grade: int) -> Floats:
    """Return 1 for every relevant grade: of the measure's own threshold, or else of the scale's."""
    relevant = int(name.parameters.get("rel", relevant_grade))
    return np.asarray(np.arange(scale_gains.size) >= relevant, dtype=np.float64)


# -- ratios ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Quotient:
    """The weight of every rank in the numerator, whether utilities above multiply, and what is divided by.

    `ideal(ranks)` is what the first so many ranks can give at most; None: the number of relevant documents. `alone`: a
    value of the sample without an interval, what was not judged counting as 0. `one_step`: differences of two runs from
    few gold labels have numbers.
    """

    weights: Callable[[Floats], Floats]
    has_products: bool = False
    ideal: Callable[[int], Floats] | None = None
    alone: bool = False
    one_step: bool = False


def discount(rank: Floats) -> Floats:
    return np.asarray(1 / np.log2(rank + 1.0))


def ideal_discounts(ranks: int) -> Floats:
    return np.concatenate([[0.0], np.cumsum(discount(np.arange(1.0, ranks + 1)))])


RATIOS = {
    "nDCG": Quotient(discount, ideal=ideal_discounts, one_step=True),
    "AP": Quotient(lambda rank: np.asarray(1 / rank), has_products=True),
    "R": Quotient(np.ones_like),
    "statAP": Quotient(lambda rank: np.asarray(1 / rank), has_products=True, alone=True),
}


# -- completely judged ranks -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FirstRanks:
    """What every grade gives; and a topic's value, from what stands at rank 1, 2 and so on.

    A grade gives what `gains` says by the highest grade; without it the scale's gain or, where the measure is `binary`,
    1 from the relevant grade on.
    """

    gains: Callable[[int], Floats] | None
    of_topic: Callable[[Floats], float]
    binary: bool = False

    def of_grades(self, name: Name, scale_gains: Floats, relevant_grade: int) -> Floats:
        """Return what every grade of the scale gives."""
        if self.gains is not None:
            return self.gains(scale_gains.size - 1)
        return binary_gains(name, scale_gains, relevant_grade) if self.binary else scale_gains


def stop_probabilities(highest: int) -> Floats:
    return np.asarray((2.0 ** np.arange(highest + 1) - 1) / 2.0**highest)


def expected_reciprocal_rank(stops: Floats) -> float:
    value, reached = 0.0, 1.0
    for rank, stop in enumerate(stops.tolist(), 1):
        value, reached = value + reached * stop / rank, reached * (1 - stop)
    return value


def first_relevant(chances: Floats) -> float:
    """Return the mean of 1/rank of the first relevant document, by the chance of each to be relevant."""
    none_yet = np.concatenate([[1.0], np.cumprod(1 - chances)])
    return float(-np.diff(none_yet) @ (1 / np.arange(1.0, chances.size + 1)))


COMPLETE: dict[str, FirstRanks] = {
    "ERR": FirstRanks(stop_probabilities, expected_reciprocal_rank),
    "RR": FirstRanks(None, first_relevant, binary=True),
}
# by kind, by family
MEASURES: dict[str, Mapping[str, object]] = {"linear": SUMS, "ratio": RATIOS, "complete": COMPLETE}
