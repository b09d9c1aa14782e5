import math

import numpy as np
import polars as pl
import pytest

from sampling.pooling import pool, prior_utility


def run(*rows):
    schema = {"topic_id": pl.String, "doc_id": pl.String, "rank": pl.Int64}
    return pl.DataFrame(list(rows), schema=schema, orient="row")


def test_a_pool_is_the_union_of_the_first_documents_sorted_by_bytes():
    first = run(("2", "b", 1), ("2", "a", 2), ("10", "a", 1))
    second = run(("2", "B", 1), ("2", "c", 2), ("10", "é", 1))
    made = pool([first, second], depth=1)
    assert made.topic_ids.tolist() == ["10", "2"]
    assert made.topic_index.tolist() == [0, 0, 1, 1]
    assert made.doc_ids.tolist() == ["a", "é", "B", "b"]
    assert made.ranks.tolist() == [[1, 0, 0, 1], [0, 1, 1, 0]]


def test_frame_order_is_that_of_utf8_bytes_for_hostile_ids():
    ids = ["a", "A", "é", "z", "\U0001f600", "\uffff", "10", "9", "a b", "a\u0000"]
    made = pool([run(*[("t", doc_id, rank) for rank, doc_id in enumerate(ids, start=1)])], depth=len(ids))
    assert made.doc_ids.tolist() == sorted(ids, key=lambda text: text.encode())


def test_an_item_keeps_the_deep_rank_of_a_run_that_did_not_pool_it():
    made = pool([run(("1", "a", 1), ("1", "b", 7)), run(("1", "b", 1))], depth=2)
    assert made.ranks.tolist() == [[1, 7], [0, 1]]


def test_the_order_of_rows_and_the_type_of_ids_do_not_matter():
    rows = [("1", "a", 1), ("1", "b", 2), ("2", "a", 1)]
    numbers = pl.DataFrame({"topic_id": [2, 1, 1], "doc_id": ["a", "b", "a"], "rank": [1, 2, 1]})
    assert pool([run(*rows)], 2).ranks.tolist() == pool([numbers], 2).ranks.tolist() == [[1, 2, 1]]


def test_a_run_that_returned_nothing_has_no_ranks():
    assert pool(
        [run(("1", "a", 1)), run(), pl.DataFrame(schema=["topic_id", "doc_id", "rank"])], 5
    ).ranks.tolist() == [
        [1],
        [0],
        [0],
    ]


@pytest.mark.parametrize(
    ("tops", "depth", "reason"),
    [
        ([], 10, "at least 1 run"),
        ([run()], 10, "pool is empty"),
        ([run(("1", "a", 5))], 4, "pool is empty"),
        ([run(("1", "a", 1))], 0, "depth must be at least 1, got 0"),
        ([run(("1", "a", 0))], 10, "rank must be at least 1, got 0"),
        ([run(("1", "a", 1), ("1", "a", 2))], 10, "a document twice: topic_id '1', doc_id 'a'"),
        ([run(("1", "a", 1), ("1", "b", 1))], 10, "two documents at one rank: topic_id '1', rank 1"),
        ([run(("1", None, 1))], 10, "must not be missing"),
        ([pl.DataFrame({"topic_id": ["1"], "doc_id": ["a"]})], 10, "misses"),
        ([pl.DataFrame({"topic_id": ["1"], "doc_id": ["a"], "rank": [1.5]})], 10, "must be an integer"),
    ],
)
def test_runs_that_make_no_pool_are_refused_with_the_reason(tops, depth, reason):
    with pytest.raises(ValueError, match=reason):
        pool(tops, depth)


def test_prior_utility_of_an_unranked_item_is_that_of_the_first_rank_below_the_pool():
    values = prior_utility([[1, 3, 0, 100]], depth=3)
    assert values == pytest.approx([16 / 35, 16 / 37, 16 / 38, 16 / 38])


def test_prior_utility_is_averaged_over_runs():
    assert prior_utility([[1, 0], [2, 1]], depth=2, numerator=4, offset=1) == pytest.approx(
        [(2 + 4 / 3) / 2, 1.5]
    )


def test_prior_utility_never_reaches_zero_or_one():
    values = prior_utility(np.arange(100_001)[np.newaxis], depth=100_000)
    assert values.min() > 0
    assert values.max() < 1


@pytest.mark.parametrize(
    ("ranks", "options", "reason"),
    [
        ([1, 2], {}, "shape"),
        ([[1.0]], {}, "integers"),
        ([[-1]], {}, "at least 0"),
        ([[1]], {"depth": 0}, "depth must be at least 1"),
        ([[1]], {"numerator": 0}, "numerator must be positive"),
        ([[1]], {"numerator": math.nan}, "numerator must be positive"),
        ([[1]], {"offset": -1}, "offset must be above -1"),
    ],
)
def test_a_prior_that_could_be_zero_or_infinite_is_refused(ranks, options, reason):
    with pytest.raises(ValueError, match=reason):
        prior_utility(ranks, **{"depth": 3, **options})
