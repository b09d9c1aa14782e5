"""Depth pools: the frame of items that a draw may select, and what ranks alone say about their utility."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from sampling.measures import FloatArray

_COLUMNS = ("topic_id", "doc_id", "rank")


@dataclass(frozen=True)
class Pool:
    """Return of `pool`: the sampling frame, one item per (topic, document), sorted by topic_id, then doc_id.

    Attributes
    ----------
    topic_ids : object array of str, shape (n_pooled_topics,)
        Topics with at least one pooled document, sorted by their UTF-8 bytes.
    topic_index : int array, shape (n_items,)
        Position of each item's topic in topic_ids.
    doc_ids : object array of str, shape (n_items,)
    ranks : int array, shape (n_runs, n_items)
        Each run's own rank of the item, 0 where the run does not return it. An item that another run brought
        in keeps this run's rank even when that is deeper than the pool.
    depth : int
        Depth of the pool.
    """

    topic_ids: NDArray[np.object_]
    topic_index: NDArray[np.int64]
    doc_ids: NDArray[np.object_]
    ranks: NDArray[np.int64]
    depth: int


def pool(run_tops: Sequence[pl.DataFrame], depth: int) -> Pool:
    """Return the union over runs of each topic's first `depth` documents, with every run's rank of every
    item.

    Parameters
    ----------
    run_tops : sequence of DataFrame[topic_id, doc_id, rank]
        One per run; ranks are integers from 1. An empty frame is a run that returned nothing: all its ranks
        are 0.
    depth : int
        At least 1.

    Raises
    ------
    ValueError
        No runs, missing columns or values, a rank below 1, a document twice or two documents at one rank in a
        topic, or nothing at all within the depth.
    """
    if depth < 1:
        raise ValueError(f"depth must be at least 1, got {depth}")
    if not run_tops:
        raise ValueError("a pool needs at least 1 run, got 0")
    runs = [_checked_run(index, top) for index, top in enumerate(run_tops)]
    shallow = [run.filter(pl.col("rank") <= depth).select("topic_id", "doc_id") for run in runs]
    # Polars compares strings by their UTF-8 bytes, so the order does not depend on any locale.
    frame = pl.concat(shallow).unique().sort("topic_id", "doc_id")
    if frame.is_empty():
        raise ValueError(
            f"the pool is empty: none of the {len(runs)} runs returns a document within depth {depth}"
        )
    ranks = np.zeros((len(runs), frame.height), dtype=np.int64)
    for index, run in enumerate(runs):
        joined = frame.join(run, on=["topic_id", "doc_id"], how="left", maintain_order="left")
        ranks[index] = joined["rank"].fill_null(0).to_numpy()
    topic_column = frame["topic_id"].to_numpy()
    topic_ids, topic_index = np.unique(topic_column, return_inverse=True)
    return Pool(
        topic_ids=topic_ids.astype(object),
        topic_index=topic_index.astype(np.int64),
        doc_ids=frame["doc_id"].to_numpy().astype(object),
        ranks=ranks,
        depth=depth,
    )


def _checked_run(index: int, top: pl.DataFrame) -> pl.DataFrame:
    """Return one run's rows with known types, or refuse them."""
    missing = [column for column in _COLUMNS if column not in top.columns]
    if missing:
        raise ValueError(f"run {index} must have the columns {list(_COLUMNS)}, misses {missing}")
    if not top["rank"].dtype.is_integer() and not top.is_empty():
        raise ValueError(f"run {index}: rank must be an integer, got {top['rank'].dtype}")
    run = top.select(
        pl.col("topic_id").cast(pl.String), pl.col("doc_id").cast(pl.String), pl.col("rank").cast(pl.Int64)
    )
    if run.is_empty():
        return run
    if any(run[column].null_count() for column in _COLUMNS):
        raise ValueError(f"run {index}: topic_id, doc_id and rank must not be missing")
    if run.select(pl.col("rank").min()).item() < 1:
        raise ValueError(
            f"run {index}: rank must be at least 1, got {run.select(pl.col('rank').min()).item()}"
        )
    for column, meaning in (("doc_id", "a document twice"), ("rank", "two documents at one rank")):
        repeated = run.filter(run.select("topic_id", column).is_duplicated())
        if not repeated.is_empty():
            topic_id, value = repeated.row(0)[0], repeated[column][0]
            raise ValueError(f"run {index} has {meaning}: topic_id {topic_id!r}, {column} {value!r}")
    return run


def prior_utility(
    ranks: ArrayLike, depth: int, *, numerator: float = 16.0, offset: float = 34.0
) -> FloatArray:
    """Return the utility guessed from ranks alone: numerator/(rank + offset), averaged over the runs given.

    A guess changes how wide an interval is, never where it is centred, as long as it is positive
    everywhere: so an item that a run does not return (or returns below the pool) counts as rank depth + 1,
    not as worthless. With the defaults the values lie in (0, 16/35] and serve as probabilities of
    relevance.

    Source: Schnabel et al. (2016), section 7.1 (16/(rank + 34), their TREC experiments; averaged over
    systems). Their 4(1 - rank/2000) is 0 at the last rank and is not offered.

    Parameters
    ----------
    ranks : int array, shape (n_runs, n_items)
        0 = not returned.
    depth : int
        Depth of the pool.

    Raises
    ------
    ValueError
        Ranks of the wrong shape, type or sign; depth below 1; numerator not positive; offset not above -1.

    Examples
    --------
    >>> prior_utility([[1, 0]], depth=3, numerator=4, offset=1).tolist()
    [2.0, 0.8]
    """
    rank = np.asarray(ranks)
    if rank.ndim != 2 or rank.shape[0] < 1:
        raise ValueError(f"ranks must have shape (n_runs, n_items) with at least 1 run, got {rank.shape}")
    if rank.dtype.kind not in "iu":
        raise ValueError(f"ranks must be integers, got dtype {rank.dtype}")
    if rank.size and int(rank.min()) < 0:
        raise ValueError(f"ranks must be at least 0 (0 = not returned), got {int(rank.min())}")
    if depth < 1:
        raise ValueError(f"depth must be at least 1, got {depth}")
    if not 0.0 < numerator < np.inf:
        raise ValueError(f"numerator must be positive and finite, got {numerator}")
    if not -1.0 < offset < np.inf:
        raise ValueError(f"offset must be above -1 and finite, got {offset}")
    counted = np.where(rank == 0, depth + 1, np.minimum(rank, depth + 1))
    return np.asarray((numerator / (counted + offset)).mean(axis=0), dtype=np.float64)
