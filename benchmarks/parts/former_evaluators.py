"""The two evaluators that `sampling.measures.scoring` replaced, as they were: its peers in benchmarks and tests.

`by_topic` scored one measure of a run, given as documents, topic by topic and document by document. `from_stored`
scored P, AP, nDCG and DCG of a stored run, whose gain is the grade, over arrays. Neither shares code with the product
but the look-up of ranks.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from judging.rankings import HashedRun, find_ranks
from judging.run_columns import hash_pairs

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Grades = Mapping[str, Mapping[str, int]]  # by topic, by document
NO_CUTOFF = 1 << 62


# -- topic by topic, document by document ---------------------------------------------------------------------


@dataclass(frozen=True)
class FormerMeasure:
    """A family, its cutoff, what it gives for every grade, and p of RBP or the base of DCG's logarithm."""

    family: str
    cutoff: int | None
    gains: Floats
    parameter: float = 0.0


def by_topic(
    measure: FormerMeasure, ranking: Mapping[str, Sequence[str]], grades: Grades
) -> dict[str, float]:
    """Return the measure of every topic of the grades; one that the run does not return has 0."""
    return {topic: _value(measure, ranking.get(topic, ()), of_topic) for topic, of_topic in grades.items()}


def _value(measure: FormerMeasure, documents: Sequence[str], grades: Mapping[str, int]) -> float:
    near = documents[: measure.cutoff]
    if measure.family == "Judged":
        return sum(document in grades for document in near) / len(near) if near else 0.0
    gains = measure.gains
    gained = np.array([gains[max(0, grades.get(document, 0))] for document in near], dtype=np.float64)
    if measure.family not in ("AP", "nDCG"):
        return float(_weights(measure, max(1, gained.size))[: gained.size] @ gained)
    known = np.array([gains[max(0, grade)] for grade in grades.values()], dtype=np.float64)
    if measure.family == "AP":
        hits = np.flatnonzero(gained > 0)
        relevant = np.count_nonzero(known)
        return float((np.arange(1, hits.size + 1) / (hits + 1)).sum() / relevant) if relevant else 0.0
    ideal = _discounted_gain(np.sort(known)[::-1][: measure.cutoff])
    return _discounted_gain(gained) / ideal if ideal > 0 else 0.0


def _weights(measure: FormerMeasure, depth: int) -> Floats:
    rank = np.arange(1, depth + 1, dtype=np.float64)
    if measure.family == "RBP":
        return np.asarray((1 - measure.parameter) * measure.parameter ** (rank - 1))
    if measure.family == "DCG":
        return np.asarray(np.log(measure.parameter) / np.log(rank + 1))
    return np.full(depth, 1 / (measure.cutoff or 1))


def _discounted_gain(gained: Floats) -> float:
    return float((gained / np.log2(np.arange(2, gained.size + 2))).sum())


# -- from the stored form ---------------------------------------------------------------------------------------

MEASURE = re.compile(
    r"(?P<kind>P|AP|nDCG|DCG)(?:\(rel=(?P<grade>[1-9][0-9]*)\))?(?:@(?P<cutoff>[1-9][0-9]*))?"
)


@dataclass(frozen=True)
class FormerQrels:
    """All topics of the qrels, and the pairs of a grade above 0; ``ideal_*`` are these in the ideal order."""

    topic_ids: tuple[str, ...]
    topic_of: Ints
    grades: Ints
    hashes: NDArray[np.uint64]
    ideal_topic: Ints
    ideal_rank: Ints
    ideal_grade: Ints


def former_qrels(grades: Grades) -> FormerQrels:
    topic_ids = tuple(sorted(grades))
    rows = [
        (place, topic, document, grade)
        for place, topic in enumerate(topic_ids)
        for document, grade in grades[topic].items()
        if grade > 0
    ]
    hashes = hash_pairs([row[1] for row in rows], [row[2] for row in rows])
    topic_of = np.array([row[0] for row in rows], dtype=np.int64)
    given = np.array([row[3] for row in rows], dtype=np.int64)
    order = np.argsort(hashes, kind="stable")
    ideal = np.lexsort((-given, topic_of))
    counts = np.bincount(topic_of, minlength=len(topic_ids))
    rank = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    return FormerQrels(
        topic_ids, topic_of[order], given[order], hashes[order], topic_of[ideal], rank, given[ideal]
    )


def from_stored(run: HashedRun, judged: FormerQrels, measures: Sequence[str]) -> Floats:
    """Return [measure, topic]; 0 for topics without relevant documents, and for those that the run does not return."""
    ranks = find_ranks(run, judged.topic_ids, judged.topic_of, judged.hashes)
    hits = np.flatnonzero(ranks)
    hits = hits[np.lexsort((ranks[hits], judged.topic_of[hits]))]
    listed = ranks[hits], judged.topic_of[hits], judged.grades[hits]
    return np.array([_of_measure(measure, judged, *listed) for measure in measures])


def _of_measure(measure: str, judged: FormerQrels, ranks: Ints, topic_of: Ints, grades: Ints) -> Floats:
    match = MEASURE.fullmatch(measure)
    if match is None:
        raise ValueError(f"measure must be P@k, AP, nDCG or DCG, not {measure!r}")
    kind, threshold, cutoff = match["kind"], int(match["grade"] or 1), int(match["cutoff"] or NO_CUTOFF)
    n_topics = len(judged.topic_ids)
    if kind in ("DCG", "nDCG"):
        value = _discounted(grades, ranks, topic_of, n_topics, cutoff)
        if kind == "DCG":
            return value
        ideal = _discounted(judged.ideal_grade, judged.ideal_rank, judged.ideal_topic, n_topics, cutoff)
        return _divide(value, ideal)
    relevant = grades >= threshold
    if kind == "P":
        return np.bincount(topic_of[relevant & (ranks <= cutoff)], minlength=n_topics) / cutoff
    n_relevant = np.bincount(judged.topic_of[judged.grades >= threshold], minlength=n_topics)
    return _divide(_average_precision(ranks[relevant], topic_of[relevant], n_topics, cutoff), n_relevant)


def _discounted(grades: Ints, ranks: Ints, topic_of: Ints, n_topics: int, cutoff: int) -> Floats:
    gains = np.where(ranks <= cutoff, grades / np.log2(ranks + 1.0), 0.0)
    return np.bincount(topic_of, weights=gains, minlength=n_topics).astype(np.float64)


def _average_precision(ranks: Ints, topic_of: Ints, n_topics: int, cutoff: int) -> Floats:
    first = np.searchsorted(topic_of, np.arange(n_topics))
    precisions = (np.arange(len(ranks)) - first[topic_of] + 1) / ranks
    precisions = np.where(ranks <= cutoff, precisions, 0.0)
    return np.bincount(topic_of, weights=precisions, minlength=n_topics).astype(np.float64)


def _divide(numerator: Floats, denominator: Floats | Ints) -> Floats:
    return np.divide(numerator, denominator, out=np.zeros(len(numerator)), where=denominator > 0)
