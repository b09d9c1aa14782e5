"""A run as one Parquet file: write it, read what is asked for, take its top, evaluate it.

A row a document, in trec_eval's order (runs.py), topics ascending: ``topic_id``, ``doc_id``, ``score``, ``pair_hash``,
the 64-bit hash of topic and document, and ``hash_order``, the rows by ascending hash. The run tag is in the file's
metadata. Evaluation reads the topics and the hashes only.
"""

import io
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from judging.runs import (
    RUN_LIMITS,
    Floats,
    Hashes,
    Ints,
    RunColumns,
    columns_frame,
    hash_pairs,
    ranked,
    read_columns,
    read_run,
)
from judging.textfiles import Limits
from judging.trec import QrelRecord

__all__ = [
    "JudgedPairs", "Rankings", "RunSummary", "TopicValues", "convert_runs", "evaluate", "evaluate_topics",
    "find_ranks", "index_qrels", "rankings_frame", "read_rankings", "read_run", "top", "write_rankings",
]  # fmt: skip

FORMAT = "2"  # of the columns; in the metadata. Format 1 was a layout of our own
NO_CUTOFF = 1 << 62
MEASURE = re.compile(
    r"(?P<kind>P|AP|nDCG|DCG)(?:\(rel=(?P<grade>[1-9][0-9]*)\))?(?:@(?P<cutoff>[1-9][0-9]*))?"
)


@dataclass(frozen=True)
class Rankings:
    """A stored run. Rows of topic t: ``topic_offsets[t] : topic_offsets[t + 1]``, best first.

    ``hashes`` ascend, ``positions`` are their rows; documents and scores are read from the source when asked for.
    """

    run_tag: str
    topic_ids: tuple[str, ...]
    topic_offsets: Ints
    hashes: Hashes
    positions: NDArray[np.uint32]
    source: Path | bytes

    def columns(self, *names: str) -> pl.DataFrame:
        """Return columns of all rows; read anew each time, about 1 ms for 50,000 rows."""
        return _read(self.source, *names)

    @property
    def doc_ids(self) -> pl.Series:
        """Return the document ids of all rows, read anew each time."""
        return self.columns("doc_id")["doc_id"]


@dataclass(frozen=True)
class RunSummary:
    """What an import says about a run."""

    run_tag: str
    topic_ids: tuple[str, ...]
    n_rows: int


def pack_run(columns: RunColumns) -> bytes:
    """Return the file of a run."""
    order = np.argsort(columns.pair_hashes, kind="stable")
    topics = pl.Series("topic_id", columns.topic_ids, dtype=pl.String)
    frame = pl.DataFrame(
        {
            "topic_id": topics.gather(np.repeat(np.arange(len(topics)), np.diff(columns.offsets))),
            "doc_id": columns.doc_ids,
            "score": columns.scores,
            "pair_hash": columns.pair_hashes,
            "hash_order": order.astype(np.uint32),
        }
    )
    stream = io.BytesIO()
    metadata = {"format": FORMAT, "run_tag": columns.run_tag}
    frame.write_parquet(stream, compression="lz4", statistics=False, metadata=metadata)
    return stream.getvalue()


def _columns(frame: pl.DataFrame) -> RunColumns:
    """Return the columns of a frame of `read_run`; its order and rank are not trusted."""
    tags = frame["run_tag"].unique().to_list()
    if len(tags) != 1:
        raise ValueError(f"a run has one run tag and at least one row, not the tags {tags[:3]}")
    scores = frame["score"].cast(pl.Float64).to_numpy()
    if not np.isfinite(scores).all():
        raise ValueError("scores must be finite")
    topics = frame["topic_id"].to_list()
    pair_hashes = hash_pairs(topics, frame["doc_id"].to_list())
    if len(np.unique(pair_hashes)) != len(pair_hashes):
        raise ValueError("a (topic, document) is there twice")
    order, topic_ids, offsets = ranked(topics, np.arange(len(topics)), frame["doc_id"], scores)
    return RunColumns(
        tags[0], topic_ids, offsets, frame["doc_id"].gather(order), scores[order], pair_hashes[order]
    )


def write_rankings(frame: pl.DataFrame, target: str | os.PathLike[str] | BinaryIO) -> None:
    """Write the frame of `read_run` as a rankings file; a path appears whole or not at all."""
    payload = pack_run(_columns(frame))
    if not isinstance(target, str | os.PathLike):
        target.write(payload)
        return
    path = Path(target)
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        draft.write_bytes(payload)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def read_rankings(source: str | os.PathLike[str] | bytes | BinaryIO) -> Rankings:
    """Return a stored run; of a path only what is used is read. ValueError if damaged."""
    if isinstance(source, str | os.PathLike):
        source = Path(source)
    elif not isinstance(source, bytes):
        source = source.read()
    frame = _read(source, "topic_id", "pair_hash", "hash_order")
    facts = pl.read_parquet_metadata(source)
    if facts.get("format") != FORMAT:
        raise ValueError(f"not a rankings file of format {FORMAT}, but of {facts.get('format')}")
    topics = frame["topic_id"].rle().struct.unnest()
    topic_ids, positions = tuple(topics["value"]), frame["hash_order"].to_numpy()
    if len(set(topic_ids)) != len(topic_ids) or positions.max(initial=0) >= max(frame.height, 1):
        raise ValueError("damaged rankings file: topics or hashes are not in their order")
    offsets = np.concatenate(([0], np.cumsum(topics["len"].to_numpy(), dtype=np.int64)))
    hashes = frame["pair_hash"].to_numpy()[positions]
    return Rankings(facts["run_tag"], topic_ids, offsets, hashes, positions, source)


def _read(source: Path | bytes, *columns: str) -> pl.DataFrame:
    try:
        return pl.read_parquet(source, columns=list(columns))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ValueError(f"not a rankings file, or a damaged one: {error}") from error


def _convert(path: str | os.PathLike[str], limits: Limits) -> tuple[RunSummary, bytes]:
    columns = read_columns(path, Path(path).name, limits)
    return RunSummary(columns.run_tag, columns.topic_ids, len(columns.scores)), pack_run(columns)


def convert_runs(
    paths: Sequence[str | os.PathLike[str]],
    write: Callable[[int, RunSummary, bytes], None],
    *,
    workers: int = 2,
    limits: Limits = RUN_LIMITS,
) -> list[RunSummary]:
    """Return the summaries of run files, each validated and converted to the bytes of a rankings file.

    ``write(index, summary, payload)`` is called in the caller's thread and in the order of ``paths``, as
    files get ready; at most ``workers + 1`` of them are in memory. The first bad file (in order) raises its
    `TrecFormatError` and no later file is written: undo what ``write`` did by its transaction and folder.
    Threads are enough, because numpy, polars and zlib let go of the interpreter.
    """
    if workers < 1:
        raise ValueError(f"workers must be at least 1, not {workers}")
    summaries: list[RunSummary] = []
    waiting: deque[Future[tuple[RunSummary, bytes]]] = deque()
    todo = iter(paths)
    with ThreadPoolExecutor(workers) as pool:
        try:
            for path in todo:
                waiting.append(pool.submit(_convert, path, limits))
                if len(waiting) > workers:
                    _hand_over(waiting, summaries, write)
            while waiting:
                _hand_over(waiting, summaries, write)
        finally:
            for future in waiting:
                future.cancel()
    return summaries


def _hand_over(
    waiting: deque[Future[tuple[RunSummary, bytes]]],
    summaries: list[RunSummary],
    write: Callable[[int, RunSummary, bytes], None],
) -> None:
    summary, payload = waiting.popleft().result()
    write(len(summaries), summary, payload)
    summaries.append(summary)


def rankings_frame(rankings: Rankings) -> pl.DataFrame:
    """Return a stored run as the frame of `read_run`."""
    stored = rankings.columns("doc_id", "score")
    columns = RunColumns(
        rankings.run_tag,
        rankings.topic_ids,
        rankings.topic_offsets,
        stored["doc_id"],
        stored["score"].to_numpy(),
        rankings.hashes,
    )
    return columns_frame(columns)


def top(rankings: Rankings, depth: int) -> pl.DataFrame:
    """Return the best ``depth`` documents of every topic: topic_id, doc_id, rank, score."""
    if depth < 1:
        raise ValueError(f"depth must be at least 1, not {depth}")
    sizes = np.minimum(np.diff(rankings.topic_offsets), depth)
    rank = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = np.repeat(rankings.topic_offsets[:-1], sizes) + rank
    return rankings.columns("topic_id", "doc_id", "score")[rows].insert_column(
        2, pl.Series("rank", rank + 1, dtype=pl.UInt32)
    )


@dataclass(frozen=True)
class JudgedPairs:
    """Qrels ready for evaluation: all their topics (ascending), and the pairs of a grade above 0.

    ``hashes`` ascend; ``ideal_*`` are the same pairs in the ideal order, topic by topic.
    """

    topic_ids: tuple[str, ...]
    topic_of: Ints
    grades: Ints
    hashes: Hashes
    ideal_topic: Ints
    ideal_rank: Ints
    ideal_grade: Ints


def index_qrels(qrels: Iterable[QrelRecord]) -> JudgedPairs:
    """Return qrels ready for `evaluate`. Grades of 0 or less count like unjudged, as in trec_eval."""
    records = list(qrels)
    topic_ids = tuple(sorted({record.topic_id for record in records}))
    place = {topic_id: index for index, topic_id in enumerate(topic_ids)}
    found = [record for record in records if record.grade > 0]
    hashes = hash_pairs([record.topic_id for record in found], [record.doc_id for record in found])
    topic_of = np.array([place[record.topic_id] for record in found], dtype=np.int64)
    grades = np.array([record.grade for record in found], dtype=np.int64)
    order = np.argsort(hashes, kind="stable")
    if np.any(hashes[order][1:] == hashes[order][:-1]):
        raise ValueError("a (topic, document) is there twice in the qrels")
    ideal = np.lexsort((-grades, topic_of))
    counts = np.bincount(topic_of, minlength=len(topic_ids))
    ideal_rank = np.arange(len(found)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    return JudgedPairs(
        topic_ids, topic_of[order], grades[order], hashes[order], topic_of[ideal], ideal_rank, grades[ideal]
    )


def find_ranks(rankings: Rankings, topic_ids: Sequence[str], topic_of: Ints, hashes: Hashes) -> Ints:
    """Return the rank at which the run returns each pair, 0 where it does not.

    Pair i is of topic ``topic_ids[topic_of[i]]`` with hash ``hashes[i]`` of `hash_pairs`; ascending hashes
    are found fastest. A wrong document is taken for the right one with chance n_rows / 2^64.
    """
    starts = dict(zip(rankings.topic_ids, rankings.topic_offsets[:-1].tolist(), strict=True))
    start = np.array([starts.get(topic_id, 0) for topic_id in topic_ids], dtype=np.int64)
    place = np.minimum(np.searchsorted(rankings.hashes, hashes), len(rankings.hashes) - 1)
    ranks = rankings.positions[place] - start[topic_of] + 1
    return np.where(rankings.hashes[place] == hashes, ranks, 0)


@dataclass(frozen=True)
class TopicValues:
    """``values[measure, topic]``; ``returned[topic]``: the run has at least one document for the topic."""

    measures: tuple[str, ...]
    topic_ids: tuple[str, ...]
    values: Floats
    returned: NDArray[np.bool_]


def _parse(measure: str) -> tuple[str, int, int]:
    match = MEASURE.fullmatch(measure)
    if match is None or (match["kind"] == "P" and match["cutoff"] is None):
        raise ValueError(
            f"measure must be P@k, AP, nDCG or DCG, with (rel=g) and @k where wanted, not {measure!r}"
        )
    if match["grade"] and match["kind"] in ("nDCG", "DCG"):
        raise ValueError(f"{match['kind']} has no relevance threshold: {measure!r}")
    return match["kind"], int(match["grade"] or 1), int(match["cutoff"] or NO_CUTOFF)


def _discounted(grades: Ints, ranks: Ints, topic_of: Ints, n_topics: int, cutoff: int) -> Floats:
    """Return DCG by topic: sum of grade / log2(rank + 1) (Jarvelin & Kekalainen 2002; trec_eval)."""
    gains = np.where(ranks <= cutoff, grades / np.log2(ranks + 1.0), 0.0)
    return np.bincount(topic_of, weights=gains, minlength=n_topics).astype(np.float64)


def _average_precision(ranks: Ints, topic_of: Ints, n_topics: int, cutoff: int) -> Floats:
    """Return by topic the sum of precisions at the relevant documents; rows ordered by topic, rank."""
    first = np.searchsorted(topic_of, np.arange(n_topics))
    precisions = (np.arange(len(ranks)) - first[topic_of] + 1) / ranks
    precisions = np.where(ranks <= cutoff, precisions, 0.0)
    return np.bincount(topic_of, weights=precisions, minlength=n_topics).astype(np.float64)


def _divide(numerator: Floats, denominator: Floats | Ints) -> Floats:
    """Return the quotient; 0 for a topic without relevant documents, as trec_eval has it."""
    return np.divide(numerator, denominator, out=np.zeros(len(numerator)), where=denominator > 0)


def _values(measure: str, judged: JudgedPairs, ranks: Ints, topic_of: Ints, grades: Ints) -> Floats:
    kind, threshold, cutoff = _parse(measure)
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


def evaluate_topics(rankings: Rankings, judged: JudgedPairs, measures: Sequence[str]) -> TopicValues:
    """Return P@k, AP, nDCG and DCG (with (rel=g) and @k as in ir_measures) for every topic of the qrels.

    Complete judgments assumed: an unjudged document counts as not relevant. Equal to trec_eval, whose gain is
    the grade. 0 for topics without relevant documents, and for topics that the run does not return.
    """
    ranks = find_ranks(rankings, judged.topic_ids, judged.topic_of, judged.hashes)
    hits = np.flatnonzero(ranks)
    hits = hits[np.lexsort((ranks[hits], judged.topic_of[hits]))]
    found = ranks[hits], judged.topic_of[hits], judged.grades[hits]
    ours = set(rankings.topic_ids)
    return TopicValues(
        measures=tuple(measures),
        topic_ids=judged.topic_ids,
        values=np.array([_values(measure, judged, *found) for measure in measures]),
        returned=np.array([topic_id in ours for topic_id in judged.topic_ids]),
    )


def evaluate(
    rankings: Rankings, judged: JudgedPairs, measures: Sequence[str], *, all_topics: bool = False
) -> dict[str, float]:
    """Return the mean of each measure over the topics of the qrels that the run returned (trec_eval).

    ``all_topics``: over all topics of the qrels (trec_eval -c, ir_measures); those not returned count 0.
    """
    result = evaluate_topics(rankings, judged, measures)
    counted = np.ones_like(result.returned) if all_topics else result.returned
    if not counted.any():
        raise ValueError(f"run {rankings.run_tag} returns no topic of the qrels")
    means = result.values[:, counted].mean(axis=1)
    return dict(zip(result.measures, means.tolist(), strict=True))
