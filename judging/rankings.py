"""A run as one Parquet file: write it, read what is asked for, take its top, find ranks.

A row a document, in trec_eval's order (runs.py), topics ascending: ``topic_id``, ``doc_id``, ``score``, ``pair_hash``,
the 64-bit hash of topic and document, and ``hash_order``, the rows by ascending hash. The run tag is in the file's
metadata. Evaluation reads the topics and the hashes only.
"""

import io
import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from judging.kinds import ITEM_COLUMNS
from judging.run_columns import RunColumns, columns_frame, hash_pairs
from judging.run_order import rank_order
from judging.runs import RUN_LIMITS, read_columns, read_run
from judging.textfiles import Limits
from judging.tokens import Hashes, Ints

__all__ = [
    "HashedRun",
    "Rankings",
    "RunSummary",
    "convert_runs",
    "find_ranks",
    "first_documents",
    "rankings_frame",
    "ranks_of_document",
    "read_rankings",
    "read_run",
    "top",
    "write_rankings",
]  # fmt: skip

FORMAT = "2"  # of the columns; in the metadata. Format 1 was a layout of our own


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
        raise ValueError("a (topic, document) occurs twice")
    order, topic_ids, offsets = rank_order(topics, np.arange(len(topics)), frame["doc_id"], scores)
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
    """Return a stored run; of a path only what is used is read. ValueError if damaged.

    It keeps the very path that it is given, which may be what keeps the file there.
    """
    if isinstance(source, str | os.PathLike):
        source = source if isinstance(source, Path) else Path(source)
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


def _convert(columns: RunColumns) -> tuple[RunSummary, bytes]:
    return RunSummary(columns.run_tag, columns.topic_ids, len(columns.scores)), pack_run(columns)


def convert_runs(
    paths: Sequence[str | os.PathLike[str]],
    write: Callable[[int, RunSummary, bytes], None],
    *,
    workers: int = 2,
    limits: Limits = RUN_LIMITS,
    read: Callable[[int], RunColumns] | None = None,
) -> list[RunSummary]:
    """Return the summaries of run files, each validated and converted to the bytes of a rankings file.

    `read` reads the run at an index of ``paths``; without it, all are TREC runs in UTF-8.

    ``write(index, summary, payload)`` is called in the caller's thread and in the order of ``paths``, as
    files get ready; at most ``workers + 1`` of them are in memory. The first bad file (in order) raises its
    `TrecFormatError` and no later file is written: undo what ``write`` did by its transaction and folder.
    Threads are enough, because numpy, polars and zlib let go of the interpreter.
    """
    if workers < 1:
        raise ValueError(f"workers must be at least 1, not {workers}")
    summaries: list[RunSummary] = []
    waiting: deque[Future[tuple[RunSummary, bytes]]] = deque()

    def convert(index: int) -> tuple[RunSummary, bytes]:
        path = paths[index]
        return _convert(read_columns(path, Path(path).name, limits) if read is None else read(index))

    with ThreadPoolExecutor(workers) as pool:
        try:
            for index in range(len(paths)):
                waiting.append(pool.submit(convert, index))
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


def ranks_of_document(source: Path | bytes, doc_id: str) -> dict[str, int]:
    """Return by topic the rank at which a stored run returns the document; only two columns are read."""
    frame = _read(source, *ITEM_COLUMNS)
    found = (frame["doc_id"] == doc_id).arg_true().to_list()
    if not found:
        return {}
    topics = frame["topic_id"].rle().struct.unnest()
    ends = np.cumsum(topics["len"].to_numpy(), dtype=np.int64)
    names = topics["value"].to_list()
    ranks = {}
    for row in found:
        topic = int(np.searchsorted(ends, row, side="right"))
        start = int(ends[topic - 1]) if topic else 0
        ranks[names[topic]] = row - start + 1
    return ranks


def first_documents(source: Path | bytes, topic_id: str, n: int) -> list[str]:
    """Return the first n documents that a stored run returns for a topic, best first; only two columns are read."""
    frame = _read(source, *ITEM_COLUMNS)
    return list(frame.filter(pl.col("topic_id") == topic_id)["doc_id"].head(n).to_list())


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
    columns: pl.DataFrame = rankings.columns(*ITEM_COLUMNS, "score")[rows]
    return columns.insert_column(2, pl.Series("rank", rank + 1, dtype=pl.UInt32))


class HashedRun(Protocol):
    """A run whose pairs are looked up by hash. Rows of topic t begin at ``topic_offsets[t]``; hashes ascend."""

    @property
    def topic_ids(self) -> tuple[str, ...]: ...
    @property
    def topic_offsets(self) -> Ints: ...
    @property
    def hashes(self) -> Hashes: ...
    @property
    def positions(self) -> NDArray[np.uint32]: ...


def find_ranks(run: HashedRun, topic_ids: Sequence[str], topic_of: Ints, hashes: Hashes) -> Ints:
    """Return the rank at which the run returns each pair, 0 where it does not.

    Pair i is of topic ``topic_ids[topic_of[i]]`` with hash ``hashes[i]`` of `hash_pairs`; ascending hashes
    are found fastest. A wrong document is taken for the right one with chance n_rows / 2^64.
    """
    if not len(run.hashes):
        return np.zeros(len(hashes), dtype=np.int64)
    starts = dict(zip(run.topic_ids, run.topic_offsets[:-1].tolist(), strict=True))
    start = np.array([starts.get(topic_id, 0) for topic_id in topic_ids], dtype=np.int64)
    place = np.minimum(np.searchsorted(run.hashes, hashes), len(run.hashes) - 1)
    ranks = run.positions[place] - start[topic_of] + 1
    return np.where(run.hashes[place] == hashes, ranks, 0)
