"""Measures as ir_measures spells them, texts or objects, and the gains of a scale of grades."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from analytics.numbers.arrays import Floats
from sampling.measures.families import Measure
from sampling.measures.kinds import Complete, Kind, Linear, Ratio
from sampling.measures.registry import parse_measure, reported_kinds, suggested_measures
from touchstone_ir.columns import InputRefused

SERVED = (Linear, Ratio, Complete)


LARGEST_GAIN = 1_000_000


def measures_of(given: Any) -> list[Measure[Kind]]:
    """Return the measures that are named, each once, in the order given.

    Raises
    ------
    InputRefused
        A measure that is not served, with those that are; none at all.

    Examples
    --------
    >>> [one.name for one in measures_of(["P@10", "RBP@20"])]
    ['P@10', 'RBP(p=0.8)@20']
    """
    many = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    if not many:
        raise InputRefused("name at least one measure")
    found: dict[str, Measure[Kind]] = {}
    for one in many:
        try:
            measure = parse_measure(str(one))
        except ValueError as error:
            raise InputRefused(f"{error} (served here: {', '.join(suggested_measures(SERVED))})") from error
        if not isinstance(measure.kind, SERVED):
            nouns = ", ".join(noun for _, noun in reported_kinds())
            raise InputRefused(f"{measure.name} is {measure.kind.noun}: served here are {nouns}")
        found.setdefault(measure.name, measure)
    return list(found.values())


def printed_name(measure: Measure[Kind], relevant_grade: int) -> str:
    """Return the name with all parameters that decide the number: the lowest relevant grade of a binary one too.

    >>> printed_name(parse_measure("P@10"), 1), printed_name(parse_measure("RBP@20"), 1)
    ('P(rel=1)@10', 'RBP(p=0.8,rel=1)@20')
    """
    if not measure.binary or measure.relevant_grade is not None:
        return measure.name
    family, _, rest = measure.name.partition("@")
    told = f"rel={relevant_grade}"
    family = f"{family[:-1]},{told})" if family.endswith(")") else f"{family}({told})"
    return f"{family}@{rest}" if rest else family


def distinct_measures(given: Any, relevant_grade: int) -> list[Measure[Kind]]:
    """Return the measures that are named, each once however it is spelled.

    >>> [one.name for one in distinct_measures(["P@10", "P(rel=1)@10", "P(rel=2)@10"], 1)]
    ['P@10', 'P(rel=2)@10']
    """
    found: dict[str, Measure[Kind]] = {}
    for one in measures_of(given):
        found.setdefault(printed_name(one, relevant_grade), one)
    return list(found.values())


def gains_of(gains: Mapping[int, float] | None, n_grades: int, given: Iterable[int]) -> Floats:
    """Return the gain of every grade from 0; by default the grade itself.

    Raises
    ------
    InputRefused
        A grade that was given and has no gain; a gain that is negative, above a million, or no number.

    Examples
    --------
    >>> gains_of({0: 0, 1: 1, 2: 3}, 3, [0, 2]).tolist()
    [0.0, 1.0, 3.0]
    """
    if gains is None:
        return np.arange(n_grades, dtype=np.float64)
    missing = sorted(set(given) - set(gains))
    if missing:
        raise InputRefused(f"gains= has no gain of the grade {missing[0]}, which was given")
    found = np.array([float(gains.get(grade, 0.0)) for grade in range(n_grades)])
    if not ((found >= 0) & (found <= LARGEST_GAIN)).all():
        raise InputRefused(f"gains= must be numbers from 0 to {LARGEST_GAIN:,}, got {found.tolist()}")
    return found
