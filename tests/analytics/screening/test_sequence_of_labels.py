"""The serial test: fixtures of an independent implementation, and enumeration of every order."""

from itertools import pairwise, permutations

import numpy as np
import pytest

from analytics.screening.sequence import (
    change_distribution,
    exchangeable_distribution,
    serial_tails,
    sticky_distribution,
)

SIX_DIGITS = 5e-7


def test_the_distribution_of_runs():
    distribution = change_distribution(3, 4)  # R = C + 1
    assert distribution[1:] == pytest.approx(
        [0.057143, 0.142857, 0.342857, 0.257143, 0.171429, 0.028571], abs=SIX_DIGITS
    )
    runs = np.arange(distribution.size) + 1
    mean = distribution @ runs
    assert mean == pytest.approx(4.428571, abs=SIX_DIGITS)
    assert distribution @ (runs - mean) ** 2 == pytest.approx(1.387755, abs=SIX_DIGITS)


def test_tails_of_the_fixtures():
    few, many, changes, mean = serial_tails([[0, 1] * 5, [0, 0, 1, 1, 0, 0]], 0.0)
    assert (few, many, mean) == pytest.approx((0.988889, 0.051323, 7.666667), abs=SIX_DIGITS)
    assert changes == 11
    few, _, _, mean = serial_tails([[0] * 6 + [1] * 4], 0.04)
    assert (few, mean) == pytest.approx((0.013512, 4.608), abs=SIX_DIGITS)


def test_many_changes_are_tested_against_an_assessor_who_does_not_stick_at_all():
    """Up to .04 is honest: with the mean of .04 an honest assessor of stickiness 0 would seem to alternate."""
    labels = [[0, 1] * 5, [0, 0, 1, 1, 0, 0]]
    assert serial_tails(labels, 0.04)[1] == serial_tails(labels, 0.0)[1]
    assert serial_tails(labels, 0.04)[0] > serial_tails(labels, 0.0)[0]


def test_honest_assessors_of_no_stickiness_are_accused_no_oftener_than_they_may_be():
    rng = np.random.default_rng(5)
    blocks = [rng.permutation([1] * 3 + [0] * 7).tolist() for _ in range(30 * 400)]
    tails = [serial_tails(blocks[30 * one : 30 * one + 30]) for one in range(400)]
    p = np.array([min(1.0, 2 * min(few, many)) for few, many, _, _ in tails])
    assert np.mean(p <= 0.05) < 0.05
    tilted = np.array(
        [
            2 * sticky_distribution(exchangeable_distribution([(3, 7)] * 30), 0.04)[changes:].sum()
            for *_, changes, _ in tails
        ]
    )
    assert np.mean(tilted <= 0.05) > 0.07  # the control: one null hypothesis for both tails


def changes_of(labels: tuple[int, ...]) -> int:
    return sum(one != other for one, other in pairwise(labels))


@pytest.mark.parametrize("n", range(1, 9))
def test_enumeration_of_every_order(n):
    for n_relevant in range(n + 1):
        orders = set(permutations([1] * n_relevant + [0] * (n - n_relevant)))
        counts = np.bincount([changes_of(order) for order in orders])
        distribution = change_distribution(n_relevant, n - n_relevant)
        assert np.trim_zeros(distribution, "b") == pytest.approx(counts / len(orders), abs=1e-12)


def test_enumeration_of_two_blocks_up_to_twelve_labels():
    """Twelve labels are a block of ten and one of two; changes between the blocks do not count."""
    blocks = [(3, 7), (1, 1)]
    counts = np.zeros(9)
    for one in _orders(3, 7):
        for other in _orders(1, 1):
            counts[changes_of(one) + changes_of(other)] += 1
    exact = exchangeable_distribution(blocks)
    assert exact == pytest.approx(counts[: exact.size] / counts.sum(), abs=1e-12)
    # and the tilted one is proportional to exp(-g c) times the exact one
    tilted = sticky_distribution(exact, 0.04)
    inside = exact > 0
    steps = np.diff(np.log(tilted[inside] / exact[inside])) / np.diff(np.flatnonzero(inside))
    assert np.ptp(steps) < 1e-9
    places = np.arange(exact.size)
    assert tilted @ places == pytest.approx(0.96 * (exact @ places), abs=1e-9)


def _orders(n_relevant: int, n_other: int) -> list[tuple[int, ...]]:
    """Return every distinct order of the labels."""
    n = n_relevant + n_other
    return [
        tuple(int(bit) for bit in f"{number:0{n}b}")
        for number in range(2**n)
        if f"{number:0{n}b}".count("1") == n_relevant
    ]
