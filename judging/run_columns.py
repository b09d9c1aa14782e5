"""A run in columns: its topics and documents in trec_eval's order, and the hashes by which pairs are found."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from judging.run_order import Floats
from judging.tokens import Hashes, Ints, hash_strings


@dataclass(frozen=True)
class RunColumns:
    """A run in trec_eval's order: topics ascending as strings, rows ranked within topic.

    ``offsets[t] : offsets[t + 1]`` are topic t's rows. ``pair_hashes`` are `hash_pairs` of the rows.
    """

    run_tag: str
    topic_ids: tuple[str, ...]
    offsets: Ints
    doc_ids: pl.Series
    scores: Floats
    pair_hashes: Hashes


def hash_pairs(topic_ids: list[str], doc_ids: list[str]) -> Hashes:
    """Return the 64-bit hash of every (topic, document), as stored runs hold it.

    >>> hash_pairs(["301", "30"], ["FT911-3", "1FT911-3"]).dtype
    dtype('uint64')
    """
    topics = hash_strings(topic_ids, np.zeros(len(topic_ids), dtype=np.uint64))
    return hash_strings(doc_ids, topics)


def columns_frame(columns: RunColumns) -> pl.DataFrame:
    """Return the frame of `read_run`."""
    counts = np.diff(columns.offsets)
    rank = np.arange(len(columns.scores)) - np.repeat(columns.offsets[:-1], counts) + 1
    topics = pl.Series("topic_id", columns.topic_ids, dtype=pl.String)
    return pl.DataFrame(
        {
            "topic_id": topics.gather(np.repeat(np.arange(len(counts)), counts)),
            "doc_id": columns.doc_ids,
            "rank": rank.astype(np.uint32),
            "score": columns.scores,
            "run_tag": pl.repeat(columns.run_tag, len(rank), eager=True),
        }
    )
