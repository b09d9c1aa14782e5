"""More than two thirds of the votes: the rule, its errors, and the verifier's own version of it."""

from itertools import product

import numpy as np
import pytest

from analytics.aggregation.grade_tables import supermajorities
from analytics.aggregation.rules import aggregation_rule_of
from analytics.estimation.samples import Labels
from analytics.releases.verify_grades import CLASSES, RULES
from sampling.acceptance import merged_errors


def table_of(grades, n_grades=4):
    return np.bincount(grades, minlength=n_grades)[None, :].astype(np.int32)


@pytest.mark.parametrize(
    ("n_votes", "need"), [(1, 1), (2, 2), (3, 3), (4, 3), (5, 4), (6, 5), (7, 5), (8, 6), (9, 7)]
)
def test_an_item_is_relevant_from_so_many_votes(n_votes, need):
    for n_relevant in range(n_votes + 1):
        votes = [1] * n_relevant + [0] * (n_votes - n_relevant)
        assert supermajorities(table_of(votes), 1).tolist() == [int(n_relevant >= need)]


@pytest.mark.parametrize(
    ("grades", "relevant_grade", "expected"),
    [
        ([3, 2, 1], 1, 2),
        ([3, 3, 1, 1], 1, 1),
        ([3, 3, 3, 0], 1, 3),
        ([3, 3, 0], 1, 0),  # two of three are no supermajority
        ([3, 3, 1], 2, 1),  # the grades below the relevant one win
        ([3, 1, 0, 0], 2, 0),
        ([2, 2, 3], 2, 2),
        ([3, 1], 2, 1),
    ],
)
def test_the_grade_is_the_lower_median_of_the_winning_side(grades, relevant_grade, expected):
    assert supermajorities(table_of(grades), relevant_grade).tolist() == [expected]


@pytest.mark.parametrize(
    ("n_votes", "expected"), [(2, (0.04, 0.19)), (3, (0.008, 0.271)), (4, (0.0272, 0.0523))]
)
def test_its_errors_are_those_of_the_merged_votes(n_votes, expected):
    false_alarm, miss = 0.2, 0.1
    errors = [0.0, 0.0]
    for votes in product((0, 1), repeat=n_votes):
        (label,) = supermajorities(table_of(votes, 2), 1)
        n_relevant = sum(votes)
        errors[0] += label * false_alarm**n_relevant * (1 - false_alarm) ** (n_votes - n_relevant)
        errors[1] += (1 - label) * (1 - miss) ** n_relevant * miss ** (n_votes - n_relevant)
    assert errors == pytest.approx(merged_errors(n_votes, 2 * n_votes // 3 + 1, false_alarm, miss))
    assert errors == pytest.approx(expected)


def test_the_rule_knows_the_relevant_grade_and_items_without_grades():
    labels = Labels([0, 0, 0, 2], [0, 1, 2, 0], [3, 3, 1, 1], n_items=3, n_assessors=3, n_grades=4)
    rule = aggregation_rule_of("supermajority")
    assert np.asarray(rule.grades(labels)).tolist() == [3, -1, 1]
    with pytest.raises(ValueError, match="relevant_grade must be at least 1, got 0"):
        Labels([0], [0], [0], n_items=1, n_assessors=1, n_grades=2, relevant_grade=0)


def test_the_verifier_says_the_same_of_every_combination_of_grades():
    combinations = [votes for n in range(1, 6) for votes in product(range(4), repeat=n)]
    table = np.concatenate([table_of(votes) for votes in combinations])
    item = np.repeat(np.arange(len(combinations)), [len(votes) for votes in combinations])
    grade = np.concatenate([np.array(votes) for votes in combinations])
    for relevant in (1, 2, 3):
        again = [RULES["supermajority"](votes, relevant) for votes in combinations]
        assert supermajorities(table, relevant).tolist() == again
        assert [CLASSES["supermajority"](votes, relevant) for votes in combinations] == [
            12 * g for g in again
        ]
    labels = Labels(item, np.zeros_like(item), grade, len(combinations), 1, 4)
    assert labels.classes().tolist() == [CLASSES["vote-share"](votes, 1) for votes in combinations]
    for key in ("median", "majority"):
        rule = aggregation_rule_of(key)
        assert np.asarray(rule.grades(labels)).tolist() == [RULES[key](votes, 1) for votes in combinations]
