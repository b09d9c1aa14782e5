import numpy as np
import pytest

from sampling.measures.sparse import SparseRuns, from_dense

#                  items 0  1  2  3  4
TABLE = np.array([[0, 2, 0, 5, 0], [1, 3, 0, 0, 0], [0, 7, 0, 4, 0]], dtype=np.int32)
RUNS = from_dense(TABLE)


def test_entries_ascend_by_item_then_run_and_give_the_table_back():
    assert RUNS.item.tolist() == [0, 1, 1, 1, 3, 3]
    assert RUNS.run.tolist() == [1, 0, 1, 2, 0, 2]
    assert RUNS.value.tolist() == [1, 2, 3, 7, 5, 4]
    assert RUNS.dense().tolist() == TABLE.tolist()
    assert RUNS.dense().dtype == np.int32


def test_blocks_are_the_table_cut_by_items():
    parts = list(RUNS.blocks(2))
    assert [(part.start, part.stop) for part, _ in parts] == [(0, 2), (2, 4), (4, 5)]
    assert np.concatenate([block for _, block in parts], axis=1).tolist() == TABLE.tolist()


def test_a_table_followed_by_another_has_the_runs_of_both():
    more = RUNS.rows([1]).followed_by(RUNS.rows([2, 0]))
    assert more.dense().tolist() == TABLE[[1, 2, 0]].tolist()
    entries = list(zip(more.item.tolist(), more.run.tolist(), strict=True))
    assert (entries, more.run.dtype) == (sorted(entries), RUNS.run.dtype)
    with pytest.raises(ValueError, match="the same 5"):
        RUNS.followed_by(from_dense(TABLE[:, :4]))


def test_rows_and_chosen_runs_are_those_of_the_table():
    assert RUNS.row(2).tolist() == TABLE[2].tolist()
    chosen = RUNS.rows([2, 0])
    assert chosen.dense().tolist() == TABLE[[2, 0]].tolist()
    assert chosen.item.tolist() == sorted(chosen.item.tolist())
    assert chosen.run[chosen.item == 1].tolist() == [0, 1]


def test_sums_counts_and_extremes_are_by_item():
    assert RUNS.counts().tolist() == [1, 3, 0, 2, 0]
    assert RUNS.item_sums(RUNS.value).tolist() == TABLE.sum(axis=0).tolist()
    assert RUNS.item_extremes(np.maximum, RUNS.value).tolist() == [1, 7, 0, 5, 0]
    assert RUNS.item_extremes(np.minimum, RUNS.value).tolist() == [1, 2, 0, 4, 0]


def test_other_values_keep_their_places_and_values_of_zero_are_dropped():
    halved = RUNS.with_values(np.where(RUNS.value > 3, 0, RUNS.value / 2))
    assert halved.dense().tolist() == np.where(TABLE > 3, 0, TABLE / 2).tolist()
    assert halved.value.size == 3


def test_a_table_without_entries_is_all_zero():
    empty = from_dense(np.zeros((2, 3)))
    assert empty.dense().tolist() == [[0, 0, 0], [0, 0, 0]]
    assert empty.item_extremes(np.maximum, empty.value).tolist() == [0, 0, 0]
    assert empty.rows([1]).row(0).tolist() == [0, 0, 0]


@pytest.mark.parametrize("values", [np.array([1.0, 2.0]), np.arange(3)])
def test_what_is_no_table_is_refused(values):
    with pytest.raises(ValueError, match="shape"):
        from_dense(values)


@pytest.mark.parametrize(
    ("attempt", "reason"),
    [
        (lambda: RUNS.row(3), r"run must be within \[0, 3\), got 3"),
        (lambda: RUNS.row(-1), "got -1"),
        (lambda: RUNS.rows([0, 3]), r"runs must be within \[0, 3\)"),
        (lambda: RUNS.rows([1, 1]), "runs must be different places"),
        (lambda: list(RUNS.blocks(0)), "size must be at least 1, got 0"),
    ],
)
def test_places_outside_the_table_are_refused(attempt, reason):
    with pytest.raises(ValueError, match=reason):
        attempt()


def test_a_table_cannot_be_rebound():
    with pytest.raises(AttributeError):
        RUNS.n_runs = 5
    assert isinstance(RUNS, SparseRuns)
