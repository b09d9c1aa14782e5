import io
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from judging.rankings import read_rankings, top, write_rankings
from judging.run_columns import hash_pairs
from sampling.measures.sparse import from_dense
from sampling.pooling import as_ranks, pool, pool_of_rankings, prior_utility, ranks_in_pairs


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
        ([run(("1", "a", 1))], 0, r"depth must be within \[1, 1000000000\], got 0"),
        ([run(("1", "a", 2**40))], 10, "rank must be at most 1000000000, got 1099511627776"),
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
        ([[1]], {"depth": 0}, "depth must be within"),
        ([[1]], {"numerator": 0}, "numerator must be positive"),
        ([[1]], {"numerator": math.nan}, "numerator must be positive"),
        ([[1]], {"offset": -1}, "offset must be above -1"),
    ],
)
def test_a_prior_that_could_be_zero_or_infinite_is_refused(ranks, options, reason):
    with pytest.raises(ValueError, match=reason):
        prior_utility(ranks, **{"depth": 3, **options})


# ---- stored runs


def stored(*rows):
    """Return a stored run of (topic, document, score) rows."""
    frame = pl.DataFrame(list(rows), schema=["topic_id", "doc_id", "score"], orient="row")
    target = io.BytesIO()
    write_rankings(frame.with_columns(rank=pl.lit(1), run_tag=pl.lit("x")), target)
    return read_rankings(target.getvalue())


def random_runs(n_runs=7, n_topics=5, seed=3):
    rng = np.random.default_rng(seed)
    return [
        stored(
            *(
                (f"t{topic}", f"d{doc}{'é' * (doc % 3)}", float(score))
                for topic in rng.choice(n_topics, size=rng.integers(1, n_topics + 1), replace=False)
                for score, doc in enumerate(rng.choice(60, size=rng.integers(1, 40), replace=False))
            )
        )
        for _ in range(n_runs)
    ]


@pytest.mark.parametrize("depth", [1, 4, 100])
def test_stored_runs_make_the_pool_that_their_first_documents_make(depth):
    runs = random_runs()
    by_hash, by_text = pool_of_rankings(runs, depth), pool([top(stored, depth) for stored in runs], depth)
    assert by_hash.doc_ids.tolist() == by_text.doc_ids.tolist()
    assert by_hash.topic_ids.tolist() == by_text.topic_ids.tolist()
    assert by_hash.topic_index.tolist() == by_text.topic_index.tolist()
    assert by_hash.ranks.tolist() == by_text.ranks.tolist()
    pairs = [(topic, doc) for topic, doc in zip(by_hash.topic_index, by_hash.doc_ids, strict=True)]
    assert pairs == sorted(pairs, key=lambda pair: (pair[0], pair[1].encode()))


def test_topics_that_the_collection_lacks_are_left_out_of_the_pool():
    runs = [stored(("1", "a", 2.0), ("9", "a", 1.0)), stored(("1", "b", 2.0))]
    made = pool_of_rankings(runs, 5, topic_ids=["1", "2"])
    assert made.topic_ids.tolist() == ["1"]
    assert made.doc_ids.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="pool is empty"):
        pool_of_rankings(runs, 5, topic_ids=["2"])


def test_equal_scores_rank_as_the_import_ranks_them_and_never_tie():
    made = pool_of_rankings([stored(("1", "a", 0.5), ("1", "b", 0.5), ("1", "c", 0.5))], 2)
    # trec_eval's order: equal scores by document id, descending.
    assert made.doc_ids.tolist() == ["b", "c"]
    assert made.ranks.tolist() == [[2, 1]]


@pytest.mark.parametrize(("depth", "reason"), [(0, "depth must be within"), (2**40, "depth must be within")])
def test_stored_runs_that_make_no_pool_are_refused(depth, reason):
    with pytest.raises(ValueError, match=reason):
        pool_of_rankings([stored(("1", "a", 1.0))], depth)
    with pytest.raises(ValueError, match="at least 1 run, got 0"):
        pool_of_rankings([], 5)


def test_ranks_of_given_pairs_are_those_in_the_runs_in_any_order_of_the_pairs():
    runs = random_runs()
    made = pool_of_rankings(runs[:3], 4)
    order = np.random.default_rng(1).permutation(made.doc_ids.size)
    topics = pl.Series(made.topic_ids[made.topic_index][order].tolist())
    docs = pl.Series(made.doc_ids[order].tolist())
    inside, outside = ranks_in_pairs(runs, topics, docs, 6)
    pairs = pl.DataFrame({"topic_id": topics, "doc_id": docs})
    for index, rows in enumerate(top(run, 6) for run in runs):
        on = ["topic_id", "doc_id"]
        expected = pairs.join(rows, on=on, how="left", maintain_order="left")["rank"].fill_null(0)
        assert inside.row(index).tolist() == expected.to_list()
        rows = rows.filter(pl.col("topic_id").is_in(topics.unique().implode()))
        assert (
            outside[index].tolist()
            == rows.join(pairs, on=on, how="anti", maintain_order="left")["rank"].to_list()
        )
    assert any(ranks.size for ranks in outside)


def test_documents_of_other_topics_are_outside_only_when_asked_for():
    runs = [stored(("1", "a", 1.0), ("2", "a", 1.0), ("3", "a", 1.0))]
    pairs = pl.Series(["1"]), pl.Series(["a"])
    assert [ranks.tolist() for ranks in ranks_in_pairs(runs, *pairs, 5)[1]] == [[]]
    assert [ranks.tolist() for ranks in ranks_in_pairs(runs, *pairs, 5, among=["1", "2"])[1]] == [[1]]


def test_pairs_are_looked_up_by_the_hash_that_runs_are_stored_with():
    run = stored(("1", "a", 1.0))
    assert run.hashes.tolist() == hash_pairs(["1"], ["a"]).tolist()
    other = replace(run, hashes=run.hashes + np.uint64(1))
    assert ranks_in_pairs([run], pl.Series(["1"]), pl.Series(["a"]), 5)[0].dense().tolist() == [[1]]
    assert ranks_in_pairs([other], pl.Series(["1"]), pl.Series(["a"]), 5)[0].dense().tolist() == [[0]]


# ---- dense and sparse ranks


def test_ranks_may_be_given_as_entries():
    ranks = np.array([[1, 0, 3], [0, 0, 9]])
    assert prior_utility(from_dense(ranks), depth=5) == pytest.approx(prior_utility(ranks, depth=5), abs=0)
    assert prior_utility(ranks, depth=5) == pytest.approx(
        [(16 / 35 + 16 / 40) / 2, 16 / 40, (16 / 37 + 16 / 40) / 2], rel=1e-15
    )


@pytest.mark.parametrize(
    ("ranks", "reason"),
    [
        (from_dense(np.array([[-1]])), "at least 0"),
        (from_dense(np.array([[0.5]])), "integers"),
        (from_dense(np.zeros((0, 3), dtype=np.int64)), "at least 1 run"),
    ],
)
def test_entries_that_are_no_ranks_are_refused(ranks, reason):
    with pytest.raises(ValueError, match=reason):
        as_ranks(ranks)
