"""Measures by name, from grades alone: what trec_eval, ir_measures and their like compute from qrels and a run.

A document without a grade counts as not relevant. Nothing here knows of samples or errors; that is `evaluating`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sampling.measures.families import (
    Measure,
    RatioMeasure,
    grade_gains,
    measure_kind,
    parse_measure,
    parse_ratio,
    rank_weights,
)

Floats = NDArray[np.float64]
Grades = Mapping[str, Mapping[str, int]]  # by topic, by document
Ranking = Mapping[str, Sequence[str]]  # by topic, the documents, best first
JUDGED = re.compile(r"Judged@([1-9][0-9]{0,5})")
KNOWN = "P@10, P(rel=2)@10, RBP@20, DCG@10, Gain@10, nDCG@10, AP, AP@20, Judged@10"


@dataclass(frozen=True)
class Asked:
    """A measure on a scale. `parsed` is None for Judged@k; `gains` [grade] are what it gives for a grade.

    `spelled` is the name under which ir_measures computes the same from qrels, whatever the scale: with the lowest
    relevant grade and, where a scale's gains are not its grades, with the gains written out. Empty: it has no name.
    """

    name: str
    spelled: str
    parsed: Measure | RatioMeasure | None
    gains: Floats
    cutoff: int | None

    @property
    def is_ratio(self) -> bool:
        return isinstance(self.parsed, RatioMeasure)


def asked(name: str, scale_gains: Sequence[float], relevant_grade: int) -> Asked:
    """Return the measure of that name. ValueError, which names those that are known, for any other.

    >>> asked("P@10", [0, 1, 3], 2).spelled, asked("nDCG@5", [0, 1, 3], 2).spelled
    ('P(rel=2)@10', 'nDCG(gains={0:0,1:1,2:3})@5')
    """
    gains = np.asarray(scale_gains, dtype=np.float64)
    judged = JUDGED.fullmatch(name)
    if judged:
        return Asked(name, name, None, np.ones(gains.size), int(judged[1]))
    try:
        parsed = parse_ratio(name) if measure_kind(name) == "ratio" else parse_measure(name)
        of_grades = grade_gains(parsed, gains, relevant_grade)
    except ValueError as error:
        raise ValueError(f"{error} (known here: {KNOWN})") from error
    threshold = parsed.relevant_grade or relevant_grade
    return Asked(parsed.name, _spelled(parsed, gains, threshold), parsed, of_grades, parsed.cutoff)


def _spelled(parsed: Measure | RatioMeasure, gains: Floats, relevant_grade: int) -> str:
    cutoff = f"@{parsed.cutoff}" if parsed.cutoff else ""
    if isinstance(parsed, RatioMeasure) and parsed.averaging == "micro":
        return ""
    if isinstance(parsed, Measure) and parsed.family in ("DCG", "Gain"):
        return ""
    if parsed.binary:
        inside = (
            [f"p={parsed.persistence:g}"] if isinstance(parsed, Measure) and parsed.family == "RBP" else []
        )
        inside += [f"rel={relevant_grade}"] if relevant_grade > 1 or inside else []
        return f"{parsed.family}{'(' + ','.join(inside) + ')' if inside else ''}{cutoff}"
    if gains.tolist() == list(range(gains.size)):
        return f"{parsed.family}{cutoff}"
    written = ",".join(f"{grade}:{gain:g}" for grade, gain in enumerate(gains.tolist()))
    return f"{parsed.family}(gains={{{written}}}){cutoff}"


def by_topic(measure: Asked, ranking: Ranking, grades: Grades) -> dict[str, float]:
    """Return the measure of every topic of the grades; one that the run does not return has 0.

    >>> by_topic(asked("P@2", [0, 1], 1), {"t": ["a", "b"]}, {"t": {"a": 1}, "u": {"c": 1}})
    {'t': 0.5, 'u': 0.0}
    """
    return {topic: _value(measure, ranking.get(topic, ()), of_topic) for topic, of_topic in grades.items()}


def _value(measure: Asked, documents: Sequence[str], grades: Mapping[str, int]) -> float:
    near = documents[: measure.cutoff]
    if measure.parsed is None:
        return sum(document in grades for document in near) / len(near) if near else 0.0
    gains = measure.gains
    gained = np.array([gains[max(0, grades.get(document, 0))] for document in near], dtype=np.float64)
    if isinstance(measure.parsed, Measure):
        return float(rank_weights(measure.parsed, max(1, gained.size))[: gained.size] @ gained)
    known = np.array([gains[max(0, grade)] for grade in grades.values()], dtype=np.float64)
    if measure.parsed.family == "AP":
        hits = np.flatnonzero(gained > 0)
        relevant = np.count_nonzero(known)
        return float((np.arange(1, hits.size + 1) / (hits + 1)).sum() / relevant) if relevant else 0.0
    ideal = _discounted(np.sort(known)[::-1][: measure.cutoff])
    return _discounted(gained) / ideal if ideal > 0 else 0.0


def _discounted(gained: Floats) -> float:
    return float((gained / np.log2(np.arange(2, gained.size + 2))).sum())
