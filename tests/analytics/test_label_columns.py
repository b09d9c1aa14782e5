"""Which assessors get a column of their own among what predicts gold, and what is in it."""

import numpy as np

from analytics.estimation.gold_prediction import label_columns
from analytics.estimation.samples import Labels


def test_the_panel_is_who_labelled_nine_tenths_of_the_other_folds():
    n = 40
    part = np.arange(n) % 2
    # the first labelled all, the second all of fold 0 and 60 % of fold 1, the third only fold 1
    second = np.flatnonzero((part == 0) | (np.arange(n) < 24))
    third = np.flatnonzero(part == 1)
    item = np.concatenate([np.arange(n), second, third])
    who = np.repeat([0, 1, 2], [n, second.size, third.size])
    labels = Labels(item, who, np.ones(item.size, dtype=int), n_items=n, n_assessors=3, n_grades=2)
    columns = label_columns(labels, labels.classes(), part, 2, np.ones(labels.n_items, dtype=bool))
    assert columns.is_panel.tolist() == [[True, False, True], [True, True, False]]
    assert np.isnan(columns.own[2]).tolist() == (part == 0).tolist()


def test_at_most_ten_assessors_have_a_column():
    n, many = 30, 14
    item, who = np.tile(np.arange(n), many), np.repeat(np.arange(many), n)
    labels = Labels(item, who, (item + who) % 2, n_items=n, n_assessors=many, n_grades=2)
    columns = label_columns(
        labels, labels.classes(), np.arange(n) % 3, 3, np.ones(labels.n_items, dtype=bool)
    )
    assert columns.is_panel.sum(axis=1).tolist() == [10, 10, 10]


def test_two_labels_of_one_assessor_count_as_their_mean():
    labels = Labels([0, 0, 1], [0, 0, 0], [0, 1, 1], n_items=2, n_assessors=1, n_grades=2)
    columns = label_columns(
        labels, labels.classes(), np.zeros(2, dtype=int), 2, np.ones(labels.n_items, dtype=bool)
    )
    assert columns.own.tolist() == [[0.5, 1.0]]
