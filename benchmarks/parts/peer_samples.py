"""Samples of human labels for benchmarks/peers.py: two runs of a made collection, and the rows that each peer reads.

A row has a value for either run, as labelled by the judge and, where somebody looked, by a human; the mean of the
differences of all rows, times `scale`, is the difference in P@10. Rows are

- documents: what exactly one of the runs returns (a document that both return adds nothing to the difference);
- shares: the same documents, as many of either run as it has among them;
- drawn: the same documents, labelled where our own audit drew them;
- ranks: what both runs return at a rank of a topic, so that a row takes up to two labels;
- topics: the same rows, labelled in whole topics, of which only the documents above need a label.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from parts.coverage_collection import CUTOFF, N_RUNS, Collection, Ints, collection_of, judge, make_ranks

N_POPULATION = 2000
ERRORS = "popularity"


@dataclass(frozen=True, eq=False)
class Population:
    """Topics to take some of, with the mean difference of every pair of systems over all of them."""

    grade: Ints
    rank: Ints

    @classmethod
    def make(cls, seed: int, n_topics: int = N_POPULATION) -> "Population":
        return cls(*make_ranks(np.random.default_rng(seed), n_topics))

    def precision(self, system: int) -> float:
        """Return the mean P@10 of a system."""
        found = (self.rank[system] >= 0) & (self.grade > 0)
        return float(found.sum(axis=1).mean() / CUTOFF)

    def world(self, n_topics: int, favour: float, rng: np.random.Generator) -> "World":
        """Return some of the topics, two systems in either order, and labels of a judge.

        `favour` is the chance that a document called not relevant is called relevant after all where it is not, and
        only the first system returns it.
        """
        topics = rng.choice(self.grade.shape[0], n_topics, replace=False)
        collection = collection_of(self.grade, self.rank, topics)
        first, second = rng.choice(N_RUNS, 2, replace=False).tolist()
        given = judge(collection, ERRORS, 1, random_assignment=True, rng=rng).given
        only_first = (collection.rank[first] > 0) & (collection.rank[second] == 0)
        is_favoured = only_first & (collection.grade == 0) & (rng.random(given.size) < favour)
        given = np.where(is_favoured & (given == 0), 1, given)
        of_all_topics = self.precision(first) - self.precision(second)
        return world_of(collection, (first, second), given, n_topics, of_all_topics)


@dataclass(frozen=True, eq=False)
class World:
    """What two runs return: topic, ranks [run, item] (0: not returned), the judge's and the true grade."""

    topic: Ints
    ranks: Ints
    given: Ints
    grade: Ints
    n_topics: int
    true_of_all_topics: float

    @property
    def returned(self) -> Any:
        return self.ranks > 0

    @property
    def differs(self) -> Any:
        """Return which items exactly one of the runs returns."""
        return self.returned[0] != self.returned[1]

    @property
    def truth(self) -> float:
        """Return the difference over these topics."""
        found = (self.returned & (self.grade > 0)).sum(axis=1)
        return float(found[0] - found[1]) / (CUTOFF * self.n_topics)

    def ids(self) -> dict[str, list[str]]:
        """Return topics and documents by their names."""
        topics = [f"t{topic:02}" for topic in self.topic]
        return {"topic": topics, "doc": [f"d{place:04}" for place in range(self.topic.size)]}

    def table(self, grade: Ints) -> pl.DataFrame:
        return pl.DataFrame(self.ids()).with_columns(grade=pl.Series(grade))

    def run(self, number: int) -> pl.DataFrame:
        ranked = pl.DataFrame(self.ids()).with_columns(rank=pl.Series(self.ranks[number]))
        return ranked.filter(pl.col("rank") > 0).select(
            "topic", "doc", score=-pl.col("rank").cast(pl.Float64)
        )


def world_of(
    collection: Collection, pair: tuple[int, int], given: Ints, n_topics: int, true_of_all_topics: float
) -> World:
    """Return what a pair of systems returns, with the labels [item of the collection]."""
    ranks = collection.rank[list(pair)]
    place = np.flatnonzero((ranks > 0).any(axis=0))
    return World(
        collection.topic[place],
        ranks[:, place],
        given[place],
        collection.grade[place],
        n_topics,
        true_of_all_topics,
    )


# -- rows of peers ------------------------------------------------------------------------------------------

Sample = dict[str, Any]


def peer_samples(world: World, n: int, audit: pl.DataFrame, rng: np.random.Generator) -> dict[str, Sample]:
    """Return about n human labels for each kind of rows; `audit` is what our own audit drew."""
    return {
        "documents": documents_sample(world, n, rng),
        "shares": shares_sample(world, n, rng),
        "drawn": drawn_sample(world, audit),
        "ranks": ranks_sample(world, n, rng),
        "topics": topics_sample(world, n, rng),
    }


def documents_sample(world: World, n: int, rng: np.random.Generator) -> Sample:
    items = np.flatnonzero(world.differs)
    return _item_rows(world, items, rng.choice(items.size, min(n, items.size), replace=False))


def shares_sample(world: World, n: int, rng: np.random.Generator) -> Sample:
    items = np.flatnonzero(world.differs)
    is_second = world.returned[1, items]
    sides = np.flatnonzero(~is_second), np.flatnonzero(is_second)
    n_first = round(n * sides[0].size / items.size)
    labelled = [
        rng.choice(side, min(size, side.size), replace=False)
        for side, size in zip(sides, (n_first, n - n_first), strict=True)
    ]
    return _item_rows(world, items, np.concatenate(labelled)) | {"group": is_second.astype(int).tolist()}


def drawn_sample(world: World, audit: pl.DataFrame) -> Sample:
    """Return the documents that our audit drew; in P@10 all that count have one probability."""
    items = np.flatnonzero(world.differs)
    place = pl.DataFrame(world.ids()).with_row_index("item")[items].with_row_index("row")
    found = place.join(audit, on=["topic", "doc"])
    (probability,) = found["probability"].unique().to_list()
    return _item_rows(world, items, found["row"].to_numpy()) | {"probability": [probability] * items.size}


def ranks_sample(world: World, n: int, rng: np.random.Generator) -> Sample:
    """Return ranks in random order, as many as take n labels; a document at two ranks takes one."""
    rows = _rank_rows(world)
    order = rng.permutation(rows.shape[1])
    _, first_place = np.unique(rows[:, order].T.ravel(), return_index=True)
    labels_up_to = np.cumsum(np.bincount(first_place // 2, minlength=order.size))
    labelled = order[labels_up_to <= n]
    return _rank_sample(world, rows, labelled, int(labels_up_to[labelled.size - 1]))


def topics_sample(world: World, n: int, rng: np.random.Generator) -> Sample:
    """Return as many whole topics as take n labels on average, two at least."""
    needed = np.bincount(world.topic[world.differs], minlength=world.n_topics)
    count = min(max(round(n / needed.mean()), 2), world.n_topics - 2)
    chosen = rng.choice(world.n_topics, count, replace=False)
    rows = _rank_rows(world)
    group = world.topic[rows[0]]
    sample = _rank_sample(world, rows, np.flatnonzero(np.isin(group, chosen)), int(needed[chosen].sum()))
    return sample | {"group": group.tolist()}


def _item_rows(world: World, items: Ints, labelled: Ints) -> Sample:
    labelled = np.sort(labelled)
    returned = world.returned[:, items]
    return {
        "judge": (returned & (world.given[items] > 0)).astype(int).tolist(),
        "gold": (returned & (world.grade[items] > 0)).astype(int)[:, labelled].tolist(),
        "labelled": labelled.tolist(),
        "scale": items.size / (CUTOFF * world.n_topics),
        "n_labels": int(labelled.size),
    }


def _rank_rows(world: World) -> Ints:
    """Return the items [run, topic and rank]."""
    orders = [np.lexsort((ranks, world.topic)) for ranks in world.ranks]
    return np.stack([order[ranks[order] > 0] for order, ranks in zip(orders, world.ranks, strict=True)])


def _rank_sample(world: World, rows: Ints, labelled: Ints, n_labels: int) -> Sample:
    labelled = np.sort(labelled)
    return {
        "judge": (world.given[rows] > 0).astype(int).tolist(),
        "gold": (world.grade[rows[:, labelled]] > 0).astype(int).tolist(),
        "labelled": labelled.tolist(),
        "scale": 1.0,
        "n_labels": n_labels,
    }
