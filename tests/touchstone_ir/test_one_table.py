"""The one table of other tools, topic, doc, judge and truth: its judge is the labels, its truth the gold."""

import polars as pl
import pytest

import touchstone_ir as ts

RUNS = {
    "run": ["a"] * 80 + ["b"] * 80,
    "topic": [str(topic) for _ in "ab" for topic in range(40) for _ in range(2)],
    "doc": [f"{topic}-{doc}" for docs in ((0, 1), (2, 3)) for topic in range(40) for doc in docs],
    "rank": [1, 2] * 80,
}
PAIRS = [(str(topic), f"{topic}-{doc}") for topic in range(40) for doc in range(4)]
# The judge takes every third document for relevant, in truth every second is; every fifth was looked at.
JUDGE = [int(place % 3 == 0) for place in range(len(PAIRS))]
TRUTH = [place % 2 if place % 5 == 0 else None for place in range(len(PAIRS))]


def one_table() -> pl.DataFrame:
    topics, docs = zip(*PAIRS, strict=True)
    return pl.DataFrame({"topic": topics, "doc": docs, "judge": JUDGE, "truth": TRUTH})


def two_tables() -> dict[str, pl.DataFrame]:
    table = one_table()
    gold = table.filter(pl.col("truth").is_not_null()).select("topic", "doc", grade="truth")
    return {"labels": table.select("topic", "doc", grade="judge"), "gold": gold}


def rows(**given) -> list[dict]:
    runs = ts.read_run(RUNS)
    return ts.compare(runs, "P@2", gold_chosen="uniform", **given).frame.to_dicts()


@pytest.mark.parametrize("as_gold", [False, True], ids=["alone", "named twice"])
@pytest.mark.parametrize("kind", ["table", "file"])
def test_one_table_gives_the_numbers_of_labels_and_gold_in_two(kind, as_gold, tmp_path):
    table = one_table()
    if kind == "file":
        table.write_csv(tmp_path / "both.csv")
        table = tmp_path / "both.csv"
    found = rows(labels=table, gold=table) if as_gold else rows(labels=table)
    assert found[0]["n_gold"] == 32
    assert found == rows(**two_tables())


def test_truth_is_not_used_unless_it_is_said_how_it_was_chosen():
    with pytest.raises(ValueError, match="gold_chosen='uniform'"):
        ts.compare(ts.read_run(RUNS), "P@2", labels=one_table())


def test_a_table_without_any_truth_is_labels_alone():
    nothing = one_table().with_columns(truth=pl.lit(None, dtype=pl.Int64))
    found = ts.compare(ts.read_run(RUNS), "P@2", labels=nothing).frame.to_dicts()
    assert found == ts.compare(ts.read_run(RUNS), "P@2", labels=two_tables()["labels"]).frame.to_dicts()
