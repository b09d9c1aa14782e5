"""Whether the open places of a campaign can still be filled by the people it has: a maximum flow.

Items alike in places and in who may judge them form a group. From the source n x places go to a group of n items, from
a group at most n to a person (nobody judges an item twice), and from a person what the quota leaves. What a person
takes of a group can always be dealt out so that no item has them twice: the flow is the best item by item.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

MOST_EDGES = 2_000_000  # beyond them there are bounds alone
_Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Group:
    """So many items, each with so many open places, that the same people may judge: numbers of people, from 0."""

    n: int
    places: int
    who: frozenset[int]


@dataclass(frozen=True)
class Feasibility:
    """What can still be filled.

    Attributes
    ----------
    wanted, possible : int
        Open places, and how many of them can be filled at best.
    stuck : tuple of int
        The groups that some best filling leaves short.
    newcomers : int
        The fewest new people, free to take any item, with whom all places can be filled.
    is_exact : bool
        If not, at most `possible` can be filled, at least the groups of `stuck` cannot, and at least `newcomers`
        people are missing.
    """

    wanted: int
    possible: int
    stuck: tuple[int, ...]
    newcomers: int
    is_exact: bool


def feasibility(
    groups: Sequence[Group], left: Sequence[int | None], newcomer_quota: int | None = None
) -> Feasibility:
    """Return what people with so much left of their quotas (None: no limit) can fill of these groups.

    Raises
    ------
    ValueError
        If a number is negative, a newcomer may take nothing, or a group names nobody's number.
    """
    _check(groups, left, newcomer_quota)
    wanted = sum(group.n * group.places for group in groups)
    if wanted >= 2**31:
        raise ValueError("there are too many places")
    # Whoever must miss: a place of an item that has fewer people than places.
    lacking = [max(0, group.places - len(group.who)) if group.n else 0 for group in groups]
    if sum(len(group.who) for group in groups) > MOST_EDGES:
        most = _at_most(groups, left)
        fewest = _fewest(wanted - most, lacking, newcomer_quota)
        stuck = tuple(place for place, lack in enumerate(lacking) if lack)
        return Feasibility(wanted, most, stuck, fewest, is_exact=False)
    graph = _Graph(groups, left)
    first = graph.fill()
    newcomers, best = 0, first
    while best.filled < wanted:
        # A cut that so many newcomers do not fill bounds what any number of them fills: by it, fewer than `next` fail.
        fewest = _fewest(wanted - first.filled, lacking, newcomer_quota)
        newcomers = max(newcomers + 1, fewest, graph.next_newcomers(best, newcomers, newcomer_quota))
        best = graph.fill(newcomers, newcomer_quota)
    return Feasibility(wanted, first.filled, first.short, newcomers, is_exact=True)


def possible(groups: Sequence[Group], left: Sequence[int | None]) -> int:
    """Return how many places can be filled at best, as `feasibility` does, and nothing else.

    >>> possible([Group(2, 1, frozenset({0, 1}))], [1, 0])
    1
    """
    if sum(len(group.who) for group in groups) > MOST_EDGES:
        return _at_most(groups, left)
    return _Graph(groups, left).fill().filled


def _check(groups: Sequence[Group], left: Sequence[int | None], newcomer_quota: int | None) -> None:
    if newcomer_quota is not None and newcomer_quota < 1:
        raise ValueError(f"a newcomer must be allowed at least one judgment, got {newcomer_quota}")
    if any(quota is not None and quota < 0 for quota in left):
        raise ValueError("what a quota leaves must not be negative")
    for group in groups:
        if group.n < 0 or group.places < 0:
            raise ValueError(f"items and places must not be negative, got {group}")
        if group.who and not (min(group.who) >= 0 and max(group.who) < len(left)):
            raise ValueError(f"there are {len(left)} people, and a group names others")


def _at_most(groups: Sequence[Group], left: Sequence[int | None]) -> int:
    """Return a number that no filling exceeds: by the items alone, or by the quotas alone."""
    by_items = sum(group.n * min(group.places, len(group.who)) for group in groups)
    could = np.zeros(len(left), dtype=np.int64)
    for group in groups:
        could[list(group.who)] += group.n
    by_people = sum(
        min(int(n), n if quota is None else quota) for n, quota in zip(could.tolist(), left, strict=True)
    )
    return min(by_items, by_people)


def _fewest(missing: int, lacking: Sequence[int], quota: int | None) -> int:
    """Return how many newcomers it takes at least."""
    by_quota = -(-missing // quota) if quota else min(missing, 1)
    return max(by_quota, max(lacking, default=0))


@dataclass(frozen=True)
class _Filling:
    """A best filling: how many places, the groups that some best filling leaves short, and whether newcomers are the
    lack: whatever they could still take, each of them is full."""

    filled: int
    short: tuple[int, ...]
    has_full_newcomers: bool


class _Graph:
    """The edges, made once: source, groups, people, all newcomers as one, sink."""

    def __init__(self, groups: Sequence[Group], left: Sequence[int | None]) -> None:
        n_groups, n_people = len(groups), len(left)
        self.n = np.array([group.n for group in groups], dtype=np.int64)
        self.supply = self.n * np.array([group.places for group in groups], dtype=np.int64)
        sizes = np.array([len(group.who) for group in groups], dtype=np.int64)
        self.group = np.repeat(np.arange(n_groups), sizes)
        everybody = chain.from_iterable(group.who for group in groups)
        self.person = np.fromiter(everybody, dtype=np.int64, count=int(sizes.sum()))
        could = np.bincount(self.person, weights=self.n[self.group], minlength=n_people).astype(np.int64)
        limit = [n if quota is None else min(n, quota) for n, quota in zip(could.tolist(), left, strict=True)]
        self.limit = np.array(limit, dtype=np.int64)
        self.n_groups, self.n_people = n_groups, n_people

    def next_newcomers(self, best: _Filling, newcomers: int, quota: int | None) -> int:
        """Return a number of newcomers that no smaller one can do with, by the smallest cut with too few of them."""
        wanted = int(self.supply.sum())
        if best.has_full_newcomers:
            rest = wanted - best.filled + self._of_newcomers(newcomers, quota)
            return -(-rest // quota) if quota else 1
        short = list(best.short)
        n, supply = self.n[short], self.supply[short]
        rest = wanted - best.filled + int(np.minimum(n * newcomers, supply).sum())
        low, high = newcomers + 1, max(newcomers + 1, int((-(-supply // np.maximum(n, 1))).max(initial=0)))
        while low < high:
            middle = (low + high) // 2
            if int(np.minimum(n * middle, supply).sum()) >= rest:
                high = middle
            else:
                low = middle + 1
        return low

    def _of_newcomers(self, newcomers: int, quota: int | None) -> int:
        """Return what so many newcomers can take in all."""
        wanted = int(self.supply.sum())
        return min(wanted, newcomers * quota if quota else wanted * newcomers)

    def fill(self, newcomers: int = 0, quota: int | None = None) -> _Filling:
        """Return how many places can be filled, and the groups that some best filling leaves short."""
        # Only the job that computes this loads SciPy.
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import breadth_first_order, maximum_flow

        first_person = 1 + self.n_groups
        stranger = first_person + self.n_people
        sink = stranger + 1
        groups, people = 1 + np.arange(self.n_groups), first_person + np.arange(self.n_people)
        wanted = int(self.supply.sum())
        of_strangers = self._of_newcomers(newcomers, quota)
        start = np.concatenate([np.zeros(self.n_groups), 1 + self.group, groups, people, [stranger]]).astype(
            np.int32
        )
        end = np.concatenate(
            [
                groups,
                first_person + self.person,
                np.full(self.n_groups, stranger),
                np.full(self.n_people + 1, sink),
            ]
        ).astype(np.int32)
        room = np.concatenate(
            [
                self.supply,
                np.minimum(self.n, self.supply)[self.group],
                np.minimum(self.n * newcomers, self.supply),
                np.minimum(self.limit, wanted),
                [of_strangers],
            ]
        ).astype(np.int32)
        capacity = csr_array((room, (start, end)), shape=(sink + 1, sink + 1))
        capacity.eliminate_zeros()
        if not capacity.nnz:
            return _Filling(0, tuple(np.flatnonzero(self.supply).tolist()), has_full_newcomers=False)
        result = maximum_flow(capacity, 0, sink)
        # Whatever the source still reaches, by what is free or could be given back, some best filling leaves short.
        residual = csr_array(capacity - result.flow)
        residual.eliminate_zeros()
        reached = breadth_first_order(residual, 0, return_predecessors=False)
        short = np.sort(reached[(reached >= 1) & (reached < first_person)]) - 1
        return _Filling(int(result.flow_value), tuple(short.tolist()), bool((reached == stranger).any()))
