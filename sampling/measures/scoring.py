"""The one evaluator: every measure of a run, topic by topic, from complete judgments.

What trec_eval, ir_measures and their like compute from qrels and a run: a document without a grade counts as not
relevant. Nothing here knows of samples or errors.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judging.rankings import HashedRun, find_ranks
from judging.run_columns import hash_pairs
from judging.tokens import Hashes
from judging.trec import QrelRecord
from sampling.measures.families import FloatArray, Measure, grade_gains
from sampling.measures.kinds import Ints, Kind, RankedGains
from sampling.measures.registry import parse_measure, suggested_measures

JUDGED = re.compile(r"Judged@([1-9][0-9]{0,5})")


# -- measures on a scale --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ScaledMeasure:
    """A measure on a scale.

    Attributes
    ----------
    name : str
    ir_measures : str
        The name under which ir_measures computes the same from qrels; empty where it has none.
    measure : Measure or None
        None for ``Judged@k``, the share of judged documents among the first k that are returned.
    gains : array [grade]
        What it gives for a grade.
    last_rank : int
    """

    name: str
    ir_measures: str
    measure: Measure[Kind] | None
    gains: FloatArray
    last_rank: int


def known_measures() -> list[str]:
    """Return an example of every measure that can be evaluated."""
    return [*suggested_measures(), "Judged@10"]


def measure_on_scale(name: str, scale_gains: ArrayLike, relevant_grade: int) -> ScaledMeasure:
    """Return the measure of that name. ValueError, which names those that are known, for any other.

    >>> measure_on_scale("P@10", [0, 1, 3], 2).ir_measures, measure_on_scale("nDCG@5", [0, 1, 3], 2).ir_measures
    ('P(rel=2)@10', 'nDCG(gains={0:0,1:1,2:3})@5')
    """
    gains = np.asarray(scale_gains, dtype=np.float64)
    judged = JUDGED.fullmatch(name)
    if judged:
        return ScaledMeasure(name, name, None, np.ones(gains.size), int(judged[1]))
    try:
        measure = parse_measure(name)
        of_grades = grade_gains(measure, gains, relevant_grade)
    except ValueError as error:
        raise ValueError(f"{error} (known here: {', '.join(known_measures())})") from error
    elsewhere = measure.family.ir_measures(measure, gains, relevant_grade)
    return ScaledMeasure(measure.name, elsewhere, measure, of_grades, measure.last_rank)


# -- judgments and runs ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JudgedPairs:
    """Qrels ready for evaluation: all their topics (ascending), and the judged pairs, hashes ascending.

    Those of a grade above 0 stand apart: most measures look at no others.
    """

    topic_ids: tuple[str, ...]
    topic: Ints
    grade: Ints
    hashes: Hashes
    other_topic: Ints
    other_hashes: Hashes


def index_qrels(qrels: Iterable[QrelRecord]) -> JudgedPairs:
    """Return qrels ready for `evaluate_topics`. A grade below 0 is taken for 0, as in trec_eval."""
    records = list(qrels)
    topics = [record.topic_id for record in records]
    topic_ids = tuple(sorted(set(topics)))
    place = {topic_id: index for index, topic_id in enumerate(topic_ids)}
    hashes = hash_pairs(topics, [record.doc_id for record in records])
    order = np.argsort(hashes, kind="stable")
    hashes = hashes[order]
    if np.any(hashes[1:] == hashes[:-1]):
        raise ValueError("a (topic, document) occurs twice in the qrels")
    topic = np.array([place[topic_id] for topic_id in topics], dtype=np.int64)[order]
    grade = np.array([record.grade for record in records], dtype=np.int64)[order]
    above = grade > 0
    return JudgedPairs(topic_ids, topic[above], grade[above], hashes[above], topic[~above], hashes[~above])


@dataclass(frozen=True)
class RankedRun:
    """A run in memory, as the evaluator takes it; a stored one (`judging.rankings.Rankings`) serves as it is."""

    topic_ids: tuple[str, ...]
    topic_offsets: Ints
    hashes: Hashes
    positions: NDArray[np.uint32]


def ranked_run(topic_ids: tuple[str, ...], offsets: Ints, pair_hashes: Hashes) -> RankedRun:
    """Return a run that was just read: its pairs topic by topic, best first, and where each topic begins."""
    order = np.argsort(pair_hashes, kind="stable")
    return RankedRun(topic_ids, offsets, pair_hashes[order], order.astype(np.uint32))


# -- evaluation -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TopicValues:
    """``values[measure, topic]``; ``returned[topic]``: the run has at least one document for the topic."""

    measures: tuple[str, ...]
    topic_ids: tuple[str, ...]
    values: FloatArray
    returned: NDArray[np.bool_]


def evaluate_topics(run: HashedRun, judged: JudgedPairs, measures: Sequence[ScaledMeasure]) -> TopicValues:
    """Return every measure for every topic of the qrels.

    Complete judgments assumed: an unjudged document counts as grade 0. 0 for topics without relevant documents, and
    for topics that the run does not return. Equal to trec_eval, where the gain is the grade.
    """
    deepest = max((one.last_rank for one in measures if one.measure is not None), default=0)
    seen = _Judgments(run, judged, deepest)
    values = [seen.values(one) for one in measures]
    return TopicValues(
        measures=tuple(one.name for one in measures),
        topic_ids=judged.topic_ids,
        values=np.array(values).reshape(len(measures), len(judged.topic_ids)),
        returned=seen.n_returned > 0,
    )


class _Judgments:
    """Where a run returns judged documents, down to a rank; looked up once for all measures."""

    def __init__(self, run: HashedRun, judged: JudgedPairs, deepest: int) -> None:
        self.run, self.judged, self.n_topics = run, judged, len(judged.topic_ids)
        edges = zip(
            run.topic_ids, run.topic_offsets[:-1].tolist(), run.topic_offsets[1:].tolist(), strict=True
        )
        by_topic = {topic_id: (start, stop - start) for topic_id, start, stop in edges}
        rows = [by_topic.get(topic_id, (0, 0)) for topic_id in judged.topic_ids]
        self.start, self.n_returned = np.array(rows, dtype=np.int64).reshape(-1, 2).T
        self.hits, self.rank = self._matches(judged.topic, judged.hashes, deepest)

    @cached_property
    def hash_of_row(self) -> Hashes:
        hashes = np.empty_like(self.run.hashes)
        hashes[self.run.positions] = self.run.hashes
        return hashes

    def _matches(self, topic: Ints, hashes: Hashes, last_rank: int) -> tuple[Ints, Ints]:
        """Return which of the pairs the run returns down to the rank, and at which; ordered by topic and rank.

        The fewer are looked up among the more: the first rows of the run, or the pairs.
        """
        sizes = np.minimum(self.n_returned, last_rank)
        if sizes.sum() < hashes.size:
            rank = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            row_hashes = self.hash_of_row[np.repeat(self.start, sizes) + rank]
            place = np.minimum(np.searchsorted(hashes, row_hashes), hashes.size - 1)
            same = hashes[place] == row_hashes
            return place[same], rank[same] + 1
        ranks = find_ranks(self.run, self.judged.topic_ids, topic, hashes)
        hits = np.flatnonzero((ranks > 0) & (ranks <= last_rank))
        hits = hits[np.lexsort((ranks[hits], topic[hits]))]
        return hits, ranks[hits]

    def values(self, one: ScaledMeasure) -> FloatArray:
        """Return the measure's value of every topic."""
        if one.measure is None:
            return self._judged_share(one)
        gains = self._gains(one.gains) if one.gains[0] == 0 else self._gains_of_all(one.gains)
        kind: Any = (
            one.measure.kind
        )  # it takes measures of its own kind, and this is one: a union cannot say so
        values: FloatArray = kind.by_topic(one.measure, gains.to_rank(one.last_rank))
        return values

    def _gains(self, gains: FloatArray) -> RankedGains:
        judged_gain = gains[self.judged.grade]
        topic = self.judged.topic[self.hits]
        return RankedGains(
            self.n_topics,
            topic,
            self.rank,
            judged_gain[self.hits],
            self.n_returned,
            self.judged.topic,
            judged_gain,
        )

    def _gains_of_all(self, gains: FloatArray) -> RankedGains:
        """Return the gains on a scale whose grade 0 has a gain: then every document returned has one."""
        topic = np.repeat(np.arange(self.n_topics), self.n_returned)
        start = np.cumsum(self.n_returned) - self.n_returned
        gain = np.full(topic.size, gains[0])
        gain[start[self.judged.topic[self.hits]] + self.rank - 1] = gains[self.judged.grade[self.hits]]
        judged_topic = np.concatenate([self.judged.topic, self.judged.other_topic])
        others = np.full(self.judged.other_topic.size, gains[0])
        judged_gain = np.concatenate([gains[self.judged.grade], others])
        rank = np.arange(topic.size) - start[topic] + 1
        return RankedGains(self.n_topics, topic, rank, gain, self.n_returned, judged_topic, judged_gain)

    def _judged_share(self, one: ScaledMeasure) -> FloatArray:
        """Return the share of judged documents among the first that are returned, 0 where none is."""
        count = np.zeros(self.n_topics)
        pairs = (self.judged.topic, self.judged.hashes), (self.judged.other_topic, self.judged.other_hashes)
        for topic, hashes in pairs:
            hits, _ = self._matches(topic, hashes, one.last_rank)
            count += np.bincount(topic[hits], minlength=self.n_topics)
        return np.asarray(count / np.maximum(np.minimum(self.n_returned, one.last_rank), 1))
