"""Foreign samples of judgments: prels and pools in strata, topic by topic, and where runs rank their documents."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np

from analytics.estimation.estimate import Floats, Ints
from judging.samples import MethodCodes, prel_probabilities
from judging.trec import PrelRecord, StratifiedRecord

Run = Mapping[str, Sequence[str]]  # by topic its documents, best first


@dataclass(frozen=True)
class PrelTopic:
    """The judged sample of one topic, with the probability by which each document was drawn.

    `grade` below 0 is not relevant.
    """

    topic_id: str
    doc_ids: tuple[str, ...]
    grade: Ints
    inclusion_probability: Floats


@dataclass(frozen=True)
class StratifiedTopic:
    """The pool of one topic in strata, counted from 0; `grade` is -1 where a document was not sampled."""

    topic_id: str
    doc_ids: tuple[str, ...]
    grade: Ints
    stratum: Ints


def prel_topics(
    records: Iterable[PrelRecord], method_codes: MethodCodes = "recorded"
) -> tuple[list[PrelTopic], int]:
    """Return the topics of prels, in the order of the file, and how many `prel_probabilities` left out.

    Examples
    --------
    >>> records = [PrelRecord("1", "a", 1, 2, 0.5), PrelRecord("2", "a", 1, 0, 1.0)]
    >>> topics, n_left_out = prel_topics(records, "track")
    >>> topics[0].inclusion_probability.tolist(), n_left_out
    ([1.0], 1)
    """
    known = list(records)
    chances = prel_probabilities(known, method_codes)
    kept = (
        replace(row, inclusion_probability=chance)
        for row, chance in zip(known, chances, strict=True)
        if chance is not None
    )
    topics = [
        PrelTopic(topic_id, *_pairs(rows), np.array([row.inclusion_probability for row in rows]))
        for topic_id, rows in _by_topic(kept).items()
    ]
    return topics, len({row.topic_id for row in known}) - len(topics)


def stratified_topics(records: Iterable[StratifiedRecord]) -> list[StratifiedTopic]:
    """Return the topics of a pool in strata, in the order of the file."""
    topics = []
    for topic_id, rows in _by_topic(records).items():
        stratum = np.unique([row.stratum for row in rows], return_inverse=True)[1]
        topics.append(StratifiedTopic(topic_id, *_pairs(rows), stratum.astype(np.int64)))
    return topics


class Pair(Protocol):
    """A line of a file about one document of a topic."""

    @property
    def topic_id(self) -> str: ...
    @property
    def doc_id(self) -> str: ...
    @property
    def grade(self) -> int: ...


_PairT = TypeVar("_PairT", bound=Pair)


def _by_topic(records: Iterable[_PairT]) -> dict[str, list[_PairT]]:
    rows: dict[str, list[_PairT]] = {}
    for record in records:
        rows.setdefault(record.topic_id, []).append(record)
    return rows


def _pairs(rows: Sequence[Pair]) -> tuple[tuple[str, ...], Ints]:
    return tuple(row.doc_id for row in rows), np.array([row.grade for row in rows], dtype=np.int64)


def ranks_of(topic_id: str, doc_ids: Sequence[str], runs: Sequence[Run]) -> Ints:
    """Return the ranks [run, document], from 1; 0 where a run does not return the document.

    >>> ranks_of("1", ["a", "b"], [{"1": ["b", "c", "a"]}, {}]).tolist()
    [[3, 1], [0, 0]]
    """
    rows = []
    for run in runs:
        rank = {doc_id: place for place, doc_id in enumerate(run.get(topic_id, ()), 1)}
        rows.append([rank.get(doc_id, 0) for doc_id in doc_ids])
    return np.array(rows, dtype=np.int64).reshape(len(runs), len(doc_ids))
