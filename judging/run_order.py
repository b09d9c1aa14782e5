"""Where the columns of a run stand, and the order in which trec_eval ranks its rows.

That is by score *as 32-bit float*, ties by document id (bytes), both descending (Buckley, trec_eval, form_res_rels.c).
And which rows can be among the first of a topic, before any id is read.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from judging.tokens import Hashes, Ints

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Layout:
    """Where the columns of a run's lines stand; `tag` is None where there is none, and `score` a rank if ranks rank."""

    width: int
    topic: int
    document: int
    score: int
    tag: int | None = None
    is_by_rank: bool = False

    @property
    def ids(self) -> list[int]:
        return [self.topic, self.document] + ([] if self.tag is None else [self.tag])


TREC = Layout(6, 0, 2, 4, 5)


def rank_order(
    topics: list[str], topic_of: Ints, docs: pl.Series, scores: Floats
) -> tuple[Ints, tuple[str, ...], Ints]:
    """Return the row order of trec_eval, the topic ids ascending, and the topics' offsets.

    Row i belongs to ``topics[topic_of[i]]``; the same topic may be in ``topics`` more than once.
    """
    topic_ids = sorted(set(topics))
    place = {topic_id: index for index, topic_id in enumerate(topic_ids)}
    codes = np.array([place[topic] for topic in topics], dtype=np.uint64)[topic_of]
    key = (codes << np.uint64(32)) | _descending(scores)
    order = np.arange(len(key)) if np.all(key[1:] > key[:-1]) else _order(key, docs)
    counts = np.bincount(codes.astype(np.int64), minlength=len(topic_ids))
    return order, tuple(topic_ids), np.concatenate(([0], np.cumsum(counts)))


def _descending(scores: Floats) -> Hashes:
    """Return 32-bit keys whose ascending order is the descending order of the scores as 32-bit floats."""
    with np.errstate(over="ignore", under="ignore"):
        single = scores.astype(np.float32) + np.float32(0)  # -0.0 and 0.0 are one score
    bits = single.view(np.uint32)
    ascending = np.where(bits >> np.uint32(31) == 1, ~bits, bits | np.uint32(0x80000000))
    keys: Hashes = (~ascending).astype(np.uint64)
    return keys


def _order(key: Hashes, docs: pl.Series) -> Ints:
    """Return the order by key; equal keys by document id, descending."""
    order = np.argsort(key, kind="stable")
    in_order = key[order]
    same = in_order[1:] == in_order[:-1]
    if not same.any():
        return order
    tied = np.zeros(len(key), dtype=np.bool_)
    tied[1:] |= same
    tied[:-1] |= same
    rows = order[tied]
    frame = pl.DataFrame({"key": in_order[tied], "doc_id": docs.gather(rows), "row": rows})
    order[tied] = frame.sort(["key", "doc_id"], descending=[False, True])["row"].to_numpy()
    return order


def best_rows(topic_of: Ints, scores: Floats, depth: int) -> Ints:
    """Return the rows, ascending, that hold the first ``depth`` of each topic, whatever their ids: with all ties.

    >>> best_rows(np.array([0, 0, 0, 1]), np.array([0.5, 0.9, 0.5, 0.1]), 2)
    array([0, 1, 2, 3])
    >>> best_rows(np.array([0, 0, 0, 1]), np.array([0.5, 0.9, 0.4, 0.1]), 1)
    array([1, 3])
    """
    key = (topic_of.astype(np.uint64) << np.uint64(32)) | _descending(scores)
    in_order = np.sort(key, kind="stable")
    starts = np.flatnonzero(np.concatenate(([True], np.diff(in_order >> np.uint64(32)) > 0)))
    ends = np.append(starts[1:], len(key))
    worst = np.zeros(int(topic_of.max(initial=0)) + 1, dtype=np.uint64)
    last = in_order[np.minimum(starts + depth, ends) - 1]
    worst[(last >> np.uint64(32)).astype(np.int64)] = last
    return np.flatnonzero(key <= worst[topic_of])
