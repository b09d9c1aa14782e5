"""Overlap of relevant sets, and who disagrees with whom, against counting by hand."""

import itertools

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, jaccard_score

from analytics.agreement.overlap import assessor_pairs, overlap
from analytics.estimation.estimate import Refusal
from analytics.estimation.samples import Labels


@pytest.mark.parametrize("relevant", [1, 2, 3])
def test_overlap_is_jaccards_index_of_the_relevant_documents(relevant):
    rng = np.random.default_rng(relevant)
    a, b, weight = rng.integers(0, 4, 200), rng.integers(0, 4, 200), rng.uniform(1, 20, 200)
    assert overlap(a, b, relevant) == pytest.approx(jaccard_score(a >= relevant, b >= relevant))
    weighted = jaccard_score(a >= relevant, b >= relevant, sample_weight=weight)
    assert overlap(a, b, relevant, weight=weight) == pytest.approx(weighted)


def test_overlap_of_nothing_and_of_everything():
    nothing = overlap([0, 0], [0, 0], 1)
    assert isinstance(nothing, Refusal)
    assert nothing.reason == "neither calls a document relevant"
    assert isinstance(overlap([], [], 1), Refusal)
    assert overlap([1, 2], [3, 1], 1) == 1.0
    assert overlap([1, 0], [0, 1], 1) == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 0], [1], 1), "of the same documents"),
        (([1], [1], 1, [-1.0]), "must not be negative"),
    ],
)
def test_overlap_of_other_input_is_refused(arguments, message):
    *labels, relevant = arguments[:3]
    with pytest.raises(ValueError, match=message):
        overlap(*labels, relevant, weight=arguments[3] if len(arguments) > 3 else None)


def test_pairs_of_assessors_are_those_counted_one_by_one():
    rng = np.random.default_rng(8)
    n_items, n_assessors = 60, 6
    given = {
        (item, who): int(rng.integers(0, 3))
        for item in range(n_items)
        for who in rng.choice(n_assessors, rng.integers(1, 4), replace=False).tolist()
    }
    keys = list(given)
    rng.shuffle(keys)
    columns = [np.array(column) for column in zip(*((i, w, given[i, w]) for i, w in keys), strict=True)]
    found = assessor_pairs(Labels(*columns, n_items, n_assessors, 3, relevant_grade=2), least=1)
    shown = {
        (int(first), int(second)): place
        for place, (first, second) in enumerate(zip(found.first, found.second, strict=True))
    }
    assert all(first < second for first, second in shown)
    for pair in itertools.combinations(range(n_assessors), 2):
        both = [item for item in range(n_items) if all((item, who) in given for who in pair)]
        assert (pair in shown) == bool(both)
        one, other = ([given[item, who] >= 2 for item in both] for who in pair)
        table = np.zeros((2, 2), dtype=int)
        np.add.at(table, (np.array(one, dtype=int), np.array(other, dtype=int)), 1)
        assert found.counts[shown[pair]].tolist() == table.tolist()
        assert found.agreement[shown[pair]] == pytest.approx(np.mean(np.equal(one, other)))
        if len({*one, *other}) > 1:
            assert found.kappa[shown[pair]] == pytest.approx(cohen_kappa_score(one, other))


def test_few_common_documents_are_not_told_and_one_label_throughout_has_no_kappa():
    labels = Labels([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0], n_items=2, n_assessors=2, n_grades=2)
    assert assessor_pairs(labels, least=3).first.size == 0
    assert np.isnan(assessor_pairs(labels, least=2).kappa).tolist() == [True]
    nobody = Labels([], [], [], n_items=0, n_assessors=0, n_grades=2)
    assert assessor_pairs(nobody).first.size == 0
