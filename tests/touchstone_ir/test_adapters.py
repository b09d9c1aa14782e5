"""Corrected numbers inside of ir_measures, and experiments in the manner of PyTerrier."""

import re
import subprocess
import sys

import ir_measures
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.stats
from retrieved import as_pandas, example_of_page, make_world, write_files

import touchstone_ir as ts
from touchstone_ir.adapters import experiment, ir_measure
from touchstone_ir.columns import InputRefused

SUMS_AND_RATIOS = ["P@5", "P(rel=2)@10", "DCG@10", "RBP(p=0.8)@20", "nDCG@10", "AP@20", "R@10"]


@pytest.fixture(scope="module")
def world():
    return make_world()


@pytest.fixture(scope="module")
def qrels(world):
    """The labels as a table of ir_measures."""
    return as_pandas(world.labels, topic="query_id", doc="doc_id", grade="relevance")


def run_of(world, name):
    return as_pandas(world.run(name), topic="query_id", doc="doc_id", score="score")


def values_of_topics(measure, qrels, run):
    return {metric.query_id: metric.value for metric in ir_measures.iter_calc([measure], qrels, run)}


# -- the number, and its parts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SUMS_AND_RATIOS)
def test_the_mean_is_the_corrected_number_of_the_run(world, qrels, name):
    measure = ir_measure(name, labels=world.labels, gold=world.gold)
    for run in ("a", "b"):
        expected = ts.estimate(world.run(run), name, labels=world.labels, gold=world.gold).frame
        found = ir_measures.calc_aggregate([measure], qrels, run_of(world, run))
        assert found[measure] == pytest.approx(expected["value"][0], abs=1e-12)
        assert abs(found[measure] - expected["as_given"][0]) > 1e-6  # the labels alone say something else


@pytest.mark.parametrize("name", SUMS_AND_RATIOS)
def test_with_all_runs_it_is_the_number_of_a_comparison_and_its_t_test_the_paired_t(world, qrels, name):
    given = {"labels": world.labels, "gold": world.gold}
    measure = ir_measure(name, runs=world.runs, **given)
    parts = {run: values_of_topics(measure, qrels, run_of(world, run)) for run in ("a", "b")}
    values = dict(ts.estimate(world.runs, name, **given).frame.select("run", "value").iter_rows())
    assert {run: np.mean([*found.values()]) for run, found in parts.items()} == pytest.approx(
        values, abs=1e-12
    )
    row = ts.compare(world.runs, name, of="a", against="b", **given).frame.row(0, named=True)
    differences = [parts["a"][topic] - parts["b"][topic] for topic in world.topics]
    assert np.mean(differences) == pytest.approx(row["value"], abs=1e-12)
    test = scipy.stats.ttest_rel([*parts["a"].values()], [*parts["b"].values()])
    assert row["p"] == pytest.approx(max(test.pvalue, row["p_other"]), abs=1e-9)


@pytest.mark.parametrize("has_labels", [True, False])
def test_it_takes_a_draw_and_gold_alone(world, qrels, has_labels):
    drawn = world.draw
    labels = world.labels.join(drawn, on=["topic", "doc"], how="semi")
    gold = world.gold.join(drawn, on=["topic", "doc"], how="semi")
    given = {"labels": labels, "gold": gold, "draw": drawn} if has_labels else {"gold": world.gold}
    expected = ts.estimate(world.run("a"), "P@5", **given).frame["value"][0]
    measure = ir_measure("P@5", **given)
    found = measure.calc_aggregate(qrels, run_of(world, "a"))
    assert found == pytest.approx(expected, abs=1e-12)


def test_declared_gold_gains_and_the_relevant_grade_are_taken(world, qrels):
    gold = world.gold.drop("probability")
    for name, given in (
        ("P@5", {"gold_chosen": "uniform", "relevant": 2}),
        ("DCG@10", {"gold_chosen": "uniform", "gains": {0: 0, 1: 1, 2: 5}}),
    ):
        measure = ir_measure(name, labels=world.labels, gold=gold, **given)
        expected = ts.estimate(world.run("a"), name, labels=world.labels, gold=gold, **given).frame
        assert measure.calc_aggregate(qrels, run_of(world, "a")) == pytest.approx(
            expected["value"][0], abs=1e-12
        )


def test_a_number_beyond_the_range_is_cut_off_as_everywhere_and_its_parts_are_not(world, qrels):
    """Everything is relevant where gold looked, and by chance a little more of it was looked at than expected."""
    gold = world.gold.with_columns(grade=pl.lit(1)).with_row_index()
    gold = gold.filter(pl.col("index") % 13 != 3).drop("index")
    measure = ir_measure("P@5", labels=world.labels, gold=gold)
    parts = values_of_topics(measure, qrels, run_of(world, "a"))
    assert np.mean([*parts.values()]) > 1.0001
    assert measure.calc_aggregate(qrels, run_of(world, "a")) == 1
    expected = ts.estimate(world.run("a"), "P@5", labels=world.labels, gold=gold, by_topic=True)
    assert expected.frame["value"].to_list() == [1]
    assert [*parts.values()] == expected.topics["value"].to_list()


def test_ir_measures_own_measures_stand_beside_it(world, qrels):
    measure = ir_measure("P@5", labels=world.labels, gold=world.gold)
    named = ir_measure("P@5", labels=world.labels, gold=world.gold.head(60), name="fewer")
    assert (str(measure), str(named)) == ("corrected P(rel=1)@5", "fewer")
    assert measure != named
    both = ir_measures.calc_aggregate([measure, named, ir_measures.P @ 5], qrels, run_of(world, "a"))
    labels = {topic: dict(rows.select("doc", "grade").iter_rows()) for (topic,), rows in world.grouped()}
    alone = ir_measures.calc_aggregate([ir_measures.P @ 5], labels, run_of(world, "a"))
    assert both[ir_measures.P @ 5] == alone[ir_measures.P @ 5]
    assert len({*both.values()}) == 3


def test_ids_that_are_numbers_in_the_qrels_stay_numbers(world):
    labels, gold, run = (
        table.with_columns(topic=pl.col("topic").str.strip_prefix("t"))
        for table in (world.labels, world.gold, world.run("a"))
    )
    qrels = as_pandas(labels, topic="query_id", doc="doc_id", grade="relevance").astype({"query_id": int})
    table = as_pandas(run, topic="query_id", doc="doc_id", score="score").astype({"query_id": int})
    measure = ir_measure("P@5", labels=labels, gold=gold)
    values = values_of_topics(measure, qrels, table)
    assert sorted(values) == list(range(len(world.topics)))
    expected = ts.estimate(run, "P@5", labels=labels, gold=gold).frame["value"][0]
    assert np.mean([*values.values()]) == pytest.approx(expected, abs=1e-12)


# -- what it refuses ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("RR@10", "no corrected parts by topic: RR@10 is a measure of completely judged ranks"),
        ("Success@5", "served here"),
        (["P@5", "P@10"], "an adapter is one measure, got P@5, P@10"),
    ],
)
def test_a_measure_without_parts_is_refused_at_once(world, name, words):
    with pytest.raises(InputRefused, match=words):
        ir_measure(name, labels=world.labels, gold=world.gold)


def test_what_does_not_fit_together_is_refused_at_once(world):
    with pytest.raises(InputRefused, match="labels alone correct nothing: give gold="):
        ir_measure("P@5", labels=world.labels)
    with pytest.raises(InputRefused, match="gold has no column probability"):
        ir_measure("P@5", labels=world.labels, gold=world.gold.drop("probability"))
    with pytest.raises(InputRefused, match=r"gold: document .* has no label"):
        ir_measure("P@5", labels=world.labels.head(3), gold=world.gold)
    with pytest.raises(InputRefused, match="leave out labels=, gold="):
        ir_measure("P@5", labels=world.labels, gold=world.gold, release="some.zip")
    with pytest.raises(InputRefused, match=r"nothing\.zip"):
        ir_measure("P@5", release="nothing.zip")


def test_a_cutoff_is_part_of_the_measure(world):
    with pytest.raises(InputRefused, match="make another one with ir_measure"):
        ir_measure("P@5", labels=world.labels, gold=world.gold) @ 10


def test_qrels_of_other_topics_are_refused(world, qrels):
    measure = ir_measure("P@5", labels=world.labels, gold=world.gold)
    run = run_of(world, "a")
    with pytest.raises(InputRefused, match=r"topic t0 has labels and is not in the qrels \(1 such topics\)"):
        measure.calc_aggregate(qrels[qrels["query_id"] != "t0"], run)
    more = pd.concat([qrels, qrels[:1].assign(query_id="t99")])
    with pytest.raises(InputRefused, match="topic t99 is in the qrels and has no label"):
        measure.calc_aggregate(more, run)


def test_a_run_without_a_number_is_refused_with_the_reason(world, qrels):
    few = ir_measure("P@5", labels=world.labels, gold=world.gold.head(6))
    with pytest.raises(InputRefused, match=r"no corrected parts by topic: .*audited items"):
        few.calc_aggregate(qrels, run_of(world, "a"))
    measure = ir_measure("P@5", labels=world.labels, gold=world.gold)
    unknown = run_of(world, "a")
    unknown["doc_id"] = unknown["doc_id"] + "x"
    with pytest.raises(InputRefused, match="no corrected parts by topic"):
        measure.calc_aggregate(qrels, unknown)


def test_a_run_that_is_none_of_those_named_is_refused(world, qrels):
    measure = ir_measure("P@5", labels=world.labels, gold=world.gold, runs=world.run("a"))
    with pytest.raises(InputRefused, match=r"none of runs= \(a\)"):
        measure.calc_aggregate(qrels, run_of(world, "b"))


def test_without_ir_measures_its_name_is_said(world, monkeypatch):
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    with pytest.raises(InputRefused, match="pip install ir_measures"):
        ir_measure("P@5", labels=world.labels, gold=world.gold)


def test_the_library_loads_no_adapter_and_an_adapter_no_tool():
    code = (
        "import sys, touchstone_ir; touchstone_ir.estimate; print('touchstone_ir.adapters' in sys.modules);"
        "sys.modules['ir_datasets'] = None; import touchstone_ir.adapters as found;"
        "print([one for one in ('ir_measures', 'pyterrier', 'pandas', 'touchstone_ir.adapters.measures') "
        "if one in sys.modules], 'ir_measure' in dir(found))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n[] True\n"


# -- experiments --------------------------------------------------------------------------------------------------


class Searcher:
    """A transformer of PyTerrier: topics in, results out, with columns whose names mean something else here."""

    def __init__(self, run, name):
        self.run, self.name, self.asked = run, name, []

    def transform(self, topics):
        self.asked.append(topics)
        found = as_pandas(self.run, topic="qid", doc="docno", score="score")
        found = found[found["qid"].isin(topics["qid"])]
        return found.assign(docid=range(len(found)), query="?", text="!", rank=0)

    def __repr__(self):
        return self.name


@pytest.fixture
def topics(world):
    return pd.DataFrame({"qid": list(world.topics), "query": [f"need {one}" for one in world.topics]})


def test_an_experiment_says_what_a_comparison_of_the_same_runs_says(world, topics):
    systems = [Searcher(world.run("a"), "a"), Searcher(world.run("b"), "b")]
    given = {"labels": world.labels, "gold": world.gold}
    found = experiment(systems, topics, ["P@5", "nDCG@10"], **given)
    expected = ts.compare(world.runs, ["P@5", "nDCG@10"], against="a", **given)
    assert found.frame.equals(expected.frame)
    assert found.frame["against"].to_list() == ["a", "a"]
    assert found.frame["low"].null_count() == 0
    assert systems[0].asked[0] is topics


def test_systems_are_functions_tables_or_transformers_under_any_name(world, topics):
    given = {"labels": world.labels, "gold": world.gold}
    table = as_pandas(world.run("a"), topic="qid", doc="docno", score="score")
    expected = ts.compare(world.runs, "P@5", against="b", **given).frame
    systems = {"a": table, "b": lambda asked: Searcher(world.run("b"), "").transform(asked)}
    assert experiment(systems, topics, "P@5", baseline="b", **given).frame.equals(expected)
    named = experiment([*systems.values()], topics, "P@5", names=["a", "b"], baseline=1, **given)
    assert named.frame.equals(expected)
    tables = {name: world.run(name).drop("run") for name in ("a", "b")}
    assert experiment(tables, None, "P@5", baseline="b", **given).frame.equals(expected)


def test_without_a_baseline_every_pair_is_compared(world, topics):
    given = {"labels": world.labels, "gold": world.gold}
    tables = {name: world.run(run).drop("run") for name, run in (("a", "a"), ("b", "b"), ("c", "a"))}
    found = experiment(tables, topics, "P@5", baseline=None, **given).frame
    assert found.height == 3
    assert found.filter(pl.col("is_same")).height == 1


def test_the_numbers_are_about_the_topics_that_were_asked(world, topics):
    some = topics.head(15)
    found = experiment(
        [Searcher(world.run("a"), "a"), Searcher(world.run("b"), "b")],
        some,
        "P@5",
        labels=world.labels,
        gold=world.gold,
    )
    kept = pl.col("topic").is_in(some["qid"].to_list())
    expected = ts.compare(
        world.runs.filter(kept),
        "P@5",
        against="a",
        labels=world.labels.filter(kept),
        gold=world.gold.filter(kept),
    )
    assert (found.n_topics, expected.n_topics) == (15, 15)
    assert found.frame.equals(expected.frame)


def test_what_does_not_fit_is_refused_before_any_system_searches(world, topics):
    systems = [Searcher(world.run("a"), "a"), Searcher(world.run("b"), "b")]
    given = {"labels": world.labels, "gold": world.gold}
    for words, arguments in (
        (r"baseline=2 is none of the systems: a, b", {"baseline": 2}),
        (r"baseline='c' is none", {"baseline": "c"}),
        (r"there are 2 systems and 1 names=", {"names": ["x"]}),
        (r"two systems are called x", {"names": ["x", "x"]}),
        (r"gold has no column probability", {"gold": world.gold.drop("probability")}),
    ):
        with pytest.raises(InputRefused, match=words):
            experiment(systems, topics, "P@5", **(given | arguments))
    with pytest.raises(InputRefused, match="at least two systems, got 1"):
        experiment(systems[:1], topics, "P@5", **given)
    with pytest.raises(InputRefused, match="served here"):
        experiment(systems, topics, "Success@5", **given)
    with pytest.raises(InputRefused, match="none of the topics has a label"):
        experiment(systems, topics.assign(qid="q"), "P@5", **given)
    with pytest.raises(InputRefused, match="there is no column qid"):
        experiment(systems, topics.drop(columns="qid"), "P@5", **given)
    assert [system.asked for system in systems] == [[], []]


def test_a_system_that_returns_no_results_is_named(world, topics):
    given = {"labels": world.labels, "gold": world.gold}
    right = world.run("a").drop("run")
    for words, system in (
        ("the system x returned list, which is no table", lambda asked: []),
        ("the system x: a run: there is no column doc", lambda asked: topics.assign(score=1.0)),
        ("the system x is neither a system nor a table", 7),
    ):
        with pytest.raises(InputRefused, match=words):
            experiment({"a": right, "x": system}, topics, "P@5", **given)
    with pytest.raises(InputRefused, match="the system x needs topics"):
        experiment({"a": right, "x": lambda asked: asked}, None, "P@5", **given)


# -- docs/pyterrier.md --------------------------------------------------------------------------------------------


def test_the_experiment_of_the_documentation_works(world, topics, tmp_path, monkeypatch):
    write_files(world, tmp_path)
    monkeypatch.chdir(tmp_path)
    names = {"topics": topics, "bm25": Searcher(world.run("a"), "a"), "dense": Searcher(world.run("b"), "b")}
    exec(example_of_page("ta.experiment("), names)  # noqa: S102 (our own documentation)
    given = {"labels": world.labels, "gold": world.gold}
    expected = ts.compare(world.runs, ["P@10", "nDCG@10"], against="a", **given).frame
    assert names["result"].frame["value"].to_list() == pytest.approx(expected["value"].to_list(), abs=1e-12)
    assert names["result"].frame["against"].to_list() == ["bm25", "bm25"]


def test_the_measure_of_the_documentation_works(world, tmp_path, monkeypatch, capsys):
    write_files(world, tmp_path)
    monkeypatch.chdir(tmp_path)
    exec(example_of_page("ir_measures.calc_aggregate("), {})  # noqa: S102
    printed = re.findall(r"(corrected )?nDCG@10: ([0-9.]+)", capsys.readouterr().out)  # in any order
    row = ts.estimate(world.run("a"), "nDCG@10", labels=world.labels, gold=world.gold).frame.row(
        0, named=True
    )
    found = {word.strip(): float(number) for word, number in printed}
    assert found == pytest.approx({"corrected": row["value"], "": row["as_given"]}, abs=1e-9)
