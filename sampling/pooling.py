"""Depth pools: the frame of items that a draw may select, and what ranks alone say about their utility."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from judging.rankings import Rankings
from judging.tokens import PADDING, hash_tokens
from sampling.measures.families import FloatArray
from sampling.measures.sparse import SparseRuns, from_dense
from sampling.siphash import TEXT_BLOCK, hash_texts, laid_out

_COLUMNS = ("topic_id", "doc_id", "rank")
MAX_RANK = 1_000_000_000
Ints = NDArray[np.int64]


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
    returned : SparseRuns of int32
        Each run's own rank of the item, where the run returns it.
    depth : int
        Depth of the pool.
    """

    topic_ids: NDArray[np.object_]
    topic_index: NDArray[np.int64]
    doc_ids: NDArray[np.object_]
    returned: SparseRuns
    depth: int

    @cached_property
    def ranks(self) -> NDArray[np.int32]:
        """The same as a dense array [run, item], 0 where a run does not return the item: 4 bytes a cell, made on
        first use. For large pools take `returned`."""
        return self.returned.dense()


@dataclass(frozen=True)
class _Rows:
    """What one run returns: per row a 64-bit key of the pair, the place of its topic, its rank, its document."""

    keys: NDArray[np.uint64]
    topic_of: Ints
    rank: NDArray[np.int32]
    place: Ints  # of the row's document in docs


def pool(run_tops: Sequence[pl.DataFrame], depth: int) -> Pool:
    """Return the union over runs of each topic's first `depth` documents, with every run's rank of every
    item.

    An item that another run brought in keeps this run's rank even when that is deeper than the pool. Rankings as the
    product stores them are pooled faster by `pool_of_rankings`.

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
    _require_depth(depth)
    if not run_tops:
        raise ValueError("a pool needs at least 1 run, got 0")
    runs = [_checked_run(index, top) for index, top in enumerate(run_tops)]
    topic_ids = sorted({topic_id for run in runs for topic_id in run["topic_id"].unique()})
    place = pl.DataFrame({"topic_id": topic_ids}, schema={"topic_id": pl.String}).with_row_index("place")
    rows = []
    for run in runs:
        topic_of = run.join(place, on="topic_id", how="left", maintain_order="left")["place"].to_numpy()
        topic = topic_of.astype(np.uint64)
        keys = hash_texts(run["doc_id"], topic, np.zeros_like(topic))
        rank = run["rank"].to_numpy().astype(np.int32)
        rows.append(_Rows(keys, topic_of.astype(np.int64), rank, np.arange(run.height)))
    return _pool_of(rows, topic_ids, (run["doc_id"] for run in runs), depth)


def pool_of_rankings(
    rankings: Sequence[Rankings], depth: int, topic_ids: Collection[str] | None = None
) -> Pool:
    """Return the pool of stored runs: the union of each topic's first `depth` documents, with each run's rank.

    Ranks below the depth are not kept, also of documents that another run brought in. Pairs are distinguished by their
    64-bit hashes in the stored form: two of n pairs are taken for one with chance n^2/2^65, 10^-7 for 1.7 million.

    Parameters
    ----------
    rankings : sequence of Rankings
        One per run.
    depth : int
    topic_ids : collection of str, optional
        Topics to pool; a run's other topics are left out. All topics unless given.

    Raises
    ------
    ValueError
        No runs, a depth outside its bounds, or nothing to pool.
    """
    _require_depth(depth)
    if not rankings:
        raise ValueError("a pool needs at least 1 run, got 0")
    named = {topic_id for run in rankings for topic_id in run.topic_ids}
    topics = sorted(named if topic_ids is None else named.intersection(topic_ids))
    rows = [_rows_of_rankings(run, topics, depth) for run in rankings]
    return _pool_of(rows, topics, (run.doc_ids for run in rankings), depth)


def _rows_of_rankings(run: Rankings, topic_ids: list[str], depth: int) -> _Rows:
    """Return the rows of a stored run within the depth, in the order of its hashes."""
    known = {topic_id: index for index, topic_id in enumerate(topic_ids)}
    topic_place = np.array([known.get(topic_id, -1) for topic_id in run.topic_ids], dtype=np.int64)
    sizes = np.diff(run.topic_offsets)
    rank_of_row = np.arange(int(sizes.sum())) - np.repeat(run.topic_offsets[:-1], sizes) + 1
    topic_of_row = np.repeat(topic_place, sizes)
    place = run.positions.astype(np.int64)
    inside = np.flatnonzero((rank_of_row[place] <= depth) & (topic_of_row[place] >= 0))
    place = place[inside]
    return _Rows(run.hashes[inside], topic_of_row[place], rank_of_row[place].astype(np.int32), place)


def ranks_in_pairs(
    rankings: Iterable[Rankings],
    topic_ids: pl.Series,
    doc_ids: pl.Series,
    depth: int,
    among: Iterable[str] | None = None,
) -> tuple[SparseRuns, list[Ints]]:
    """Return the ranks of stored runs for given (topic, document) pairs, and those of documents that are not among
    them.

    Parameters
    ----------
    rankings : iterable of Rankings, of which one is held at a time
    topic_ids, doc_ids : Series of str, length n_items
        Pairs that are all different, in any order.
    depth : int
        Ranks below it are left out.
    among : collection of str, optional
        Topics whose other documents are told; the pairs' topics unless given.

    Returns
    -------
    SparseRuns of int32, shape (n_runs, n_items)
    list of int arrays
        Per run the ranks, in the order of its rows, of documents of those topics that are not among the pairs.
    """
    _require_depth(depth)
    topics = sorted({*topic_ids.unique(), *(among or ())})
    hashes = _stored_hashes(topic_ids, doc_ids)
    order = np.argsort(hashes, kind="stable")
    hashes, order = hashes[order], order.astype(np.int32)
    found: list[tuple[NDArray[np.int32], NDArray[np.int32]]] = []
    outside = []
    for run in rankings:
        rows = _rows_of_rankings(run, topics, depth)
        place = np.minimum(np.searchsorted(hashes, rows.keys), max(hashes.size - 1, 0))
        is_pooled = hashes[place] == rows.keys if hashes.size else np.zeros(rows.keys.size, dtype=np.bool_)
        found.append((order[place[is_pooled]], rows.rank[is_pooled]))
        outside.append(rows.rank[~is_pooled][np.argsort(rows.place[~is_pooled])].astype(np.int64))
    return _by_item(found, len(doc_ids)), outside


def _by_item(found: list[tuple[NDArray[np.int32], NDArray[np.int32]]], n_items: int) -> SparseRuns:
    """Return the table of what each run returns, items (each once) and ranks; every entry is put where it belongs."""
    count = np.zeros(n_items, dtype=np.int64)
    for items, _ in found:
        count[items] += 1
    free = np.cumsum(count) - count  # the place of an item's next entry
    run, value = np.empty((2, int(count.sum())), dtype=np.int32)
    for index, (items, ranks) in enumerate(found):
        at = free[items]
        run[at], value[at] = index, ranks
        free[items] = at + 1
    return SparseRuns(len(found), n_items, run, np.repeat(np.arange(n_items, dtype=np.int32), count), value)


def _stored_hashes(topic_ids: pl.Series, doc_ids: pl.Series) -> NDArray[np.uint64]:
    """Return `judging.run_columns.hash_pairs` of many pairs, without a Python object a pair."""
    hashes = np.empty(len(doc_ids), dtype=np.uint64)
    for start in range(0, len(doc_ids), TEXT_BLOCK):
        seeds = np.zeros(len(doc_ids.slice(start, TEXT_BLOCK)), dtype=np.uint64)
        for texts in (topic_ids.slice(start, TEXT_BLOCK), doc_ids.slice(start, TEXT_BLOCK)):
            data, lengths = laid_out(texts)
            seeds = hash_tokens(data + PADDING, np.cumsum(lengths) - lengths, lengths, seeds)
        hashes[start : start + TEXT_BLOCK] = seeds
    return hashes


def _pool_of(rows: list[_Rows], topic_ids: list[str], docs: Iterator[pl.Series], depth: int) -> Pool:
    """Return the pool; `docs` gives the documents of one run after the other."""
    keys = np.concatenate([run.keys for run in rows])
    rank = np.concatenate([run.rank for run in rows])
    sizes = np.array([run.keys.size for run in rows])
    order = np.argsort(keys, kind="stable")  # equal pairs side by side, in the order of the runs
    keys, rank = keys[order], rank[order]
    group_starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1]))) if keys.size else order
    group_sizes = np.diff(np.append(group_starts, keys.size))
    if keys.size:
        pooled = np.minimum.reduceat(rank, group_starts) <= depth
        group_starts, group_sizes = group_starts[pooled], group_sizes[pooled]
    if group_starts.size == 0:
        raise ValueError(
            f"the pool is empty: none of the {len(rows)} runs returns a document within depth {depth}"
        )
    first = order[group_starts]  # the pair's row in the first run that returns it
    by_run = np.argsort(first, kind="stable")
    first, group_starts, group_sizes = first[by_run], group_starts[by_run], group_sizes[by_run]
    topic_of = np.concatenate([run.topic_of for run in rows])[first]
    doc_ids = _documents(rows, first, docs)
    frame_order = _frame_order(topic_of, doc_ids)
    group_starts, group_sizes = group_starts[frame_order], group_sizes[frame_order]
    n_entries = int(group_sizes.sum())
    # Where the entries of each item stand among the sorted rows, item after item.
    entries = np.repeat(group_starts - (np.cumsum(group_sizes) - group_sizes), group_sizes) + np.arange(
        n_entries
    )
    run_of = np.repeat(np.arange(len(rows), dtype=np.int32), sizes)
    topics, topic_index = np.unique(topic_of[frame_order], return_inverse=True)
    return Pool(
        topic_ids=np.array([topic_ids[place] for place in topics.tolist()], dtype=object),
        topic_index=topic_index.astype(np.int64),
        doc_ids=doc_ids.to_numpy().astype(object, copy=False)[frame_order],
        returned=SparseRuns(
            n_runs=len(rows),
            n_items=first.size,
            run=run_of[order[entries]],
            item=np.repeat(np.arange(first.size, dtype=np.int32), group_sizes),
            value=rank[entries],
        ),
        depth=depth,
    )


def _documents(rows: list[_Rows], first: Ints, docs: Iterator[pl.Series]) -> pl.Series:
    """Return the document of every pair, given the ascending places of first rows among the rows of all runs."""
    ends = np.cumsum([run.keys.size for run in rows])
    bounds = np.searchsorted(first, np.concatenate(([0], ends)))
    parts = []
    for index, (run, texts) in enumerate(zip(rows, docs, strict=True)):
        mine = first[bounds[index] : bounds[index + 1]] - (ends[index] - run.keys.size)
        parts.append(texts.cast(pl.String).gather(run.place[mine]).alias("doc_id"))
    return pl.concat(parts)


def _frame_order(topic_of: Ints, doc_ids: pl.Series) -> Ints:
    """Return the order by topic, then document. Polars compares strings by their UTF-8 bytes, in any locale."""
    order = np.argsort(topic_of.astype(np.min_scalar_type(int(topic_of.max()))), kind="stable")
    starts = np.flatnonzero(np.diff(topic_of[order], prepend=-1))
    in_order = doc_ids.gather(order)
    parts = [
        order[start:stop][in_order.slice(start, stop - start).arg_sort().to_numpy()]
        for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), order.size], strict=True)
    ]
    return np.concatenate(parts)


def _require_depth(depth: int) -> None:
    if not 1 <= depth <= MAX_RANK:
        raise ValueError(f"depth must be within [1, {MAX_RANK}], got {depth}")


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
    lowest, highest = run.select(low=pl.col("rank").min(), high=pl.col("rank").max()).row(0)
    if lowest < 1:
        raise ValueError(f"run {index}: rank must be at least 1, got {lowest}")
    if highest > MAX_RANK:
        raise ValueError(f"run {index}: rank must be at most {MAX_RANK}, got {highest}")
    for column, meaning in (("doc_id", "a document twice"), ("rank", "two documents at one rank")):
        repeated = run.filter(run.select("topic_id", column).is_duplicated())
        if not repeated.is_empty():
            topic_id, value = repeated.row(0)[0], repeated[column][0]
            raise ValueError(f"run {index} has {meaning}: topic_id {topic_id!r}, {column} {value!r}")
    return run


def prior_utility(
    ranks: ArrayLike | SparseRuns,
    depth: int,
    *,
    numerator: float = 16.0,
    offset: float = 34.0,
    unreturned_rank: int | None = None,
) -> FloatArray:
    """Return the prior utility from ranks alone: numerator/(rank + offset), averaged over the runs given.

    A prior changes how wide an interval is, never where it is centred, as long as it is positive
    everywhere: so an item that a run does not return (or returns below the pool) counts as rank depth + 1,
    not as worthless. With the defaults the values lie in (0, 16/35] and serve as probabilities of
    relevance.

    Source: Schnabel et al. (2016), section 7.1 (16/(rank + 34), their TREC experiments; averaged over
    systems). Their 4(1 - rank/2000) is 0 at the last rank and is not offered.

    Parameters
    ----------
    ranks : int array, shape (n_runs, n_items), or SparseRuns
        0 = not returned.
    depth : int
        Depth of the pool.
    unreturned_rank : int, optional
        The rank that an item counts as where a run does not return it; every deeper rank counts as this one. The
        paper's depth + 1 unless given. `far_rank` suits priors from many runs: a run that returns 100
        documents of a large collection says much more against all others than that they are 101st.

    Raises
    ------
    ValueError
        Ranks of the wrong shape, type or sign; depth out of bounds; numerator not positive; offset not above -1;
        unreturned_rank not below the depth.

    Examples
    --------
    >>> prior_utility([[1, 0]], depth=3, numerator=4, offset=1).tolist()
    [2.0, 0.8]
    """
    entries = as_ranks(ranks)
    _require_depth(depth)
    if not 0.0 < numerator < np.inf:
        raise ValueError(f"numerator must be positive and finite, got {numerator}")
    if not -1.0 < offset < np.inf:
        raise ValueError(f"offset must be above -1 and finite, got {offset}")
    last = depth + 1 if unreturned_rank is None else unreturned_rank
    if last <= depth:
        raise ValueError(f"unreturned_rank must be above the depth, {depth}, got {last}")
    values = numerator / (np.minimum(entries.value.astype(np.int64), last) + offset)
    unranked = numerator / (last + offset)
    total = entries.item_sums(values) + (entries.n_runs - entries.counts()) * unranked
    return np.asarray(total / entries.n_runs, dtype=np.float64)


def far_rank(ranks: ArrayLike | SparseRuns, depth: int) -> int:
    """Return ten times the deepest rank known (at least the depth): what an item counts as where it is not returned.

    It is unknown where a run would have ranked a document that it did not return, except below all it did: typically
    far below, a collection being much larger than a ranking. Ten times is an order of magnitude, not an estimate; three
    and thirty times give designs nearly as good (docs/benchmarks.md).

    Examples
    --------
    >>> far_rank([[1, 0], [2, 30]], depth=10)
    300
    """
    _require_depth(depth)
    return 10 * max(depth, int(as_ranks(ranks).value.max(initial=0)))


def as_ranks(ranks: ArrayLike | SparseRuns) -> SparseRuns:
    """Return ranks as entries; ValueError unless they are integers, not negative, of at least one run.

    Examples
    --------
    >>> as_ranks([[1, 0], [2, 1]]).item.tolist()
    [0, 0, 1]
    """
    if isinstance(ranks, SparseRuns):
        shape, values = ranks.shape, ranks.value
    else:
        values = np.asarray(ranks)
        shape = values.shape
    if len(shape) != 2 or shape[0] < 1:
        raise ValueError(f"ranks must have shape (n_runs, n_items) with at least 1 run, got {shape}")
    if values.dtype.kind not in "iu":
        raise ValueError(f"ranks must be integers, got dtype {values.dtype}")
    if values.size and int(values.min()) < 0:
        raise ValueError(f"ranks must be at least 0 (0 = not returned), got {int(values.min())}")
    return ranks if isinstance(ranks, SparseRuns) else from_dense(values)
