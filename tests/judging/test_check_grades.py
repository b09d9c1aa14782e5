"""The grades of gold checks: what they tell somebody who knows all right grades, and how checks follow their shares."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from judging.check_grades import (
    CHECK_GRADES,
    TopicGold,
    allot_checks,
    shares_of_checks,
    told_by_grade,
)

# From the definition, by hand: p, the AUC of even shares, w, q.
TABLE = [
    ([0.8, 0.2], 0.65, 0.333333, [0.7, 0.3]),
    ([0.6, 0.3, 0.1], 0.666667, 0.3, [0.52, 0.31, 0.17]),
    ([0.9, 0.07, 0.03], 0.79, 0.172414, [0.802299, 0.115402, 0.082299]),
]


def area_of_pairs(ordinary, checks):
    """Return the AUC of the best guess by grade, counted over all pairs of an ordinary document and a check."""
    ratio = [Fraction(q, p) if p else None for p, q in zip(ordinary, checks, strict=True)]
    won = Fraction(0)
    for g, p in enumerate(ordinary):
        for h, q in enumerate(checks):
            if p and q:
                other, own = ratio[g], ratio[h]
                better = own is None or (other is not None and own > other)
                same = g == h or own == other
                won += p * q * (Fraction(1, 2) if same else int(better))
    return float(won / (sum(ordinary) * sum(checks)))


@pytest.mark.parametrize(("p", "even", "w", "q"), TABLE)
def test_the_weights_of_three_distributions(p, even, w, q):
    uniform = [1 / len(p)] * len(p)
    assert told_by_grade(p, uniform) == pytest.approx(even, abs=5e-7)
    made = shares_of_checks(p, "at-most")
    assert made == pytest.approx(q, abs=5e-7)
    assert (p[0] - made[0]) / (p[0] - uniform[0]) == pytest.approx(w, abs=5e-7)
    assert told_by_grade(p, made) == pytest.approx(0.55, abs=1e-12)
    assert shares_of_checks(p, "as-drawn") == pytest.approx(p)
    assert shares_of_checks(p, "in-turn") == pytest.approx(uniform)


@pytest.mark.parametrize(
    ("ordinary", "checks"),
    [
        ([8, 2], [1, 1]),
        ([6, 3, 1], [52, 31, 17]),
        ([90, 7, 3], [1, 1, 1]),
        ([5, 0, 5], [1, 2, 3]),
        ([5, 5, 0], [0, 1, 3]),
        ([1, 1, 1], [1, 1, 1]),
        ([7, 1, 1, 1], [1, 5, 2, 2]),
    ],
)
def test_the_area_is_that_of_all_pairs(ordinary, checks):
    p, q = (np.array(counts) / sum(counts) for counts in (ordinary, checks))
    assert told_by_grade(p.tolist(), q.tolist()) == pytest.approx(area_of_pairs(ordinary, checks), abs=1e-12)


def test_even_grades_need_no_restraint_and_unknown_grades_get_no_even_part():
    assert shares_of_checks([0.5, 0.5], "at-most") == [0.5, 0.5]
    assert shares_of_checks([0.3, 0.4, 0.3], "at-most") == pytest.approx([1 / 3] * 3)  # tells .5333 only
    assert shares_of_checks([0.8, 0.1, 0.1], "in-turn", [True, False, True]) == [0.5, 0.0, 0.5]


@pytest.mark.parametrize("wrong", [[0.5, 0.6], [], [-0.1, 1.1]])
def test_shares_that_are_none_are_refused(wrong):
    with pytest.raises(ValueError, match="sum to 1"):
        told_by_grade(wrong, wrong)


def test_gold_must_be_known_of_some_grade():
    with pytest.raises(ValueError, match="known must say"):
        shares_of_checks([0.5, 0.5], "in-turn", [False, False])


# -- whole checks ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [row[0] for row in TABLE] + [[0.55, 0.25, 0.15, 0.05]])
@pytest.mark.parametrize("way", [one.key for one in CHECK_GRADES])
def test_checks_follow_their_shares_within_one_top_ups_included(p, way):
    shares = shares_of_checks(p, way)
    enough = [50] * len(p)
    topics = [TopicGold(n, enough, enough) for n in (4, 1, 7, 2, 3, 5)]
    first = np.array(allot_checks(topics, shares, [0] * len(p)))
    assert first.sum(axis=1).tolist() == [4, 1, 7, 2, 3, 5]
    assert np.abs(first.sum(axis=0) - np.array(shares) * 22).max() < 1
    more = np.array(allot_checks(topics[:3], shares, first.sum(axis=0).tolist()))
    assert np.abs((first.sum(axis=0) + more.sum(axis=0)) - np.array(shares) * 34).max() < 1


def test_a_top_up_makes_up_for_checks_of_other_shares():
    made = allot_checks([TopicGold(10, [50, 50], [0, 0])], [0.7, 0.3], [2, 8])
    assert made == [[10, 0]]  # 12 to 8: 14 to 6 cannot be reached with ten more


def test_topics_without_a_grade_are_made_up_for_and_documents_of_no_run_come_last():
    poor, rich = TopicGold(4, [9, 0], [9, 9]), TopicGold(4, [9, 9], [0, 0])
    allotted = allot_checks([poor, rich, poor, rich], [0.5, 0.5], [0, 0])
    assert allotted == [[4, 0], [0, 4], [4, 0], [0, 4]]
    assert allot_checks([TopicGold(3, [1, 0], [5, 5])], [0.5, 0.5], [0, 0]) == [[1, 2]]
    assert allot_checks([TopicGold(3, [1, 0], [0, 0])], [0.5, 0.5], [0, 0]) == [[1, 0]]


def empirical_area(ordinary, checks):
    """Return the AUC of the best guess by grade among these documents."""
    here, there = (Counter(grades) for grades in (ordinary, checks))
    grades = sorted({*here, *there})
    return area_of_pairs([here[grade] for grade in grades], [there[grade] for grade in grades])


@pytest.mark.parametrize("p", [row[0] for row in TABLE])
@pytest.mark.parametrize(("way", "area"), [("at-most", 0.55), ("as-drawn", 0.50), ("in-turn", None)])
def test_who_knows_all_right_grades_gains_what_the_way_allows(p, way, area):
    """400 topics of 45 items and 5 checks; the control takes the grades in turn and tells .65 and more."""
    rng = np.random.default_rng(17)
    ordinary = rng.choice(len(p), size=400 * 45, p=p).tolist()
    gold = [TopicGold(5, rng.multinomial(80, p).tolist(), [0] * len(p)) for _ in range(400)]
    allotted = np.array(allot_checks(gold, shares_of_checks(p, way), [0] * len(p)))
    checks = np.repeat(np.arange(len(p)), allotted.sum(axis=0)).tolist()
    told = empirical_area(ordinary, checks)
    if area is None:
        assert told > 0.63
    else:
        assert told == pytest.approx(area, abs=0.01)
