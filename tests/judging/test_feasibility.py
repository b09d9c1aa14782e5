"""What can still be filled: the table, 3,000 random cases computed item by item, the size, the bounds."""

import random
import time

import numpy as np
import pytest

from judging import feasibility as module
from judging.feasibility import Feasibility, Group, feasibility

A, B, C = range(3)
NOBODY: frozenset[int] = frozenset()
TABLE = [
    ([Group(2, 1, NOBODY)], [], (2, 0, (0,)), 1, 1),
    ([Group(10, 2, frozenset({A, B, C}))], [5, 4, None], (20, 19, (0,)), 1, 1),
    (
        [Group(6, 1, frozenset({A, B})), Group(3, 1, frozenset({B})), Group(2, 2, frozenset({B, C}))],
        [2, 4, None],
        (13, 8, (0, 1, 2)),
        1,
        3,
    ),
    ([Group(3, 2, NOBODY), Group(1, 1, frozenset({A}))], [None], (7, 1, (0,)), 2, 3),
]


@pytest.mark.parametrize(("groups", "left", "expected", "newcomers", "of_two_each"), TABLE)
def test_table(groups, left, expected, newcomers, of_two_each):
    assert feasibility(groups, left) == Feasibility(*expected, newcomers, is_exact=True)
    assert feasibility(groups, left, 2) == Feasibility(*expected, of_two_each, is_exact=True)


# -- item by item: another algorithm, without groups and without a flow library ------------------------------------


def best_filling(items: list[tuple[int, set[int]]], left: list[int | None]) -> int:
    """Return how many places can be filled: place after place, people giving up items to others who may have them."""
    taken: list[set[int]] = [set() for _ in left]

    def give(item: int, seen: set[int], moved: set[int]) -> bool:
        for person in items[item][1]:
            if item in taken[person] or person in seen:
                continue
            seen.add(person)
            if left[person] is None or len(taken[person]) < left[person]:
                taken[person].add(item)
                return True
            for other in sorted(taken[person] - moved):
                moved.add(other)
                if give(other, seen, moved):
                    taken[person].remove(other)
                    taken[person].add(item)
                    return True
        return False

    return sum(give(item, set(), {item}) for item, (places, _) in enumerate(items) for _ in range(places))


def single_items(groups: list[Group]) -> list[tuple[int, set[int]]]:
    return [(group.places, set(group.who)) for group in groups for _ in range(group.n)]


def by_single_items(groups: list[Group], left: list[int | None], quota: int | None) -> Feasibility:
    items = single_items(groups)
    wanted, possible = sum(places for places, _ in items), best_filling(items, left)
    stuck, first = [], 0
    for place, group in enumerate(groups):
        # Short in some best filling: with one place less of one item as many can be filled.
        fewer = list(items)
        fewer[first] = (fewer[first][0] - 1, fewer[first][1])
        if best_filling(fewer, left) == possible:
            stuck.append(place)
        first += group.n
    newcomers = 0
    while (
        best_filling(
            [(places, who | set(range(len(left), len(left) + newcomers))) for places, who in items],
            [*left, *[quota] * newcomers],
        )
        < wanted
    ):
        newcomers += 1
    return Feasibility(wanted, possible, tuple(stuck), newcomers, is_exact=True)


def random_case(rng: random.Random) -> tuple[list[Group], list[int | None], int | None]:
    n_people = rng.randint(0, 4)
    people = range(n_people)
    groups = [
        Group(rng.randint(1, 3), rng.randint(1, 3), frozenset(one for one in people if rng.random() < 0.5))
        for _ in range(rng.randint(1, 3))
    ]
    return groups, [rng.choice([None, 0, 1, 2, 3, 5]) for _ in people], rng.choice([None, 1, 2, 4])


def test_random_cases_are_as_item_by_item():
    rng = random.Random(18)
    n_stuck = 0
    for _ in range(3000):
        groups, left, quota = random_case(rng)
        found = feasibility(groups, left, quota)
        assert found == by_single_items(groups, left, quota), (groups, left, quota)
        n_stuck += bool(found.stuck)
    assert 500 < n_stuck < 2995  # both kinds of case are among them


def test_a_large_campaign_takes_less_than_a_second():
    rng = np.random.default_rng(18)
    groups = []
    for _ in range(3900):  # nearly all the edges there may be
        who = frozenset(range(500)) - frozenset(rng.integers(0, 500, 3).tolist())
        groups.append(Group(6 + len(groups) % 2, 2, who))
    wanted = sum(group.n * group.places for group in groups)
    assert wanted >= 50_000
    left = [100] * 499 + [wanted]
    started = time.perf_counter()
    found = feasibility(groups, left)
    seconds = time.perf_counter() - started
    assert found.is_exact
    assert found.wanted == wanted
    print(f"{seconds:.2f} s for {wanted:,} places and 500 people")
    assert seconds < 3  # 1 s on a machine that does nothing else


def test_beyond_its_edges_there_are_bounds(monkeypatch):
    rng = random.Random(19)
    cases = [random_case(rng) for _ in range(300)]
    exact = [feasibility(*case) for case in cases]
    monkeypatch.setattr(module, "MOST_EDGES", -1)
    for case, truth in zip(cases, exact, strict=True):
        bound = feasibility(*case)
        assert not bound.is_exact
        assert bound.wanted == truth.wanted
        assert bound.possible >= truth.possible
        assert bound.newcomers <= truth.newcomers
        assert set(bound.stuck) <= set(truth.stuck)


def test_nothing_open_needs_nobody():
    assert feasibility([], [None]) == Feasibility(0, 0, (), 0, is_exact=True)


@pytest.mark.parametrize(
    ("groups", "left", "quota"),
    [
        ([Group(1, 1, frozenset({1}))], [None], None),
        ([Group(-1, 1, NOBODY)], [], None),
        ([], [-1], None),
        ([], [], 0),
        ([Group(2**16, 2**16, NOBODY)], [], None),
    ],
)
def test_what_cannot_be_is_refused(groups, left, quota):
    with pytest.raises(ValueError, match=r"must|people|many"):
        feasibility(groups, left, quota)
