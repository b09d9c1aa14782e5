"""PyTerrier itself, where it is installed: its experiments over corrected numbers, and its systems in ours."""

import math
import warnings

import ir_measures
import pandas as pd
import polars as pl
import pytest
import scipy.special
from retrieved import as_pandas, example_of_page, make_world, write_files

import touchstone_ir as ts
from touchstone_ir.adapters import experiment, ir_measure

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTerrier's own


@pytest.fixture(scope="module")
def pt():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(
            "pyterrier", reason="PyTerrier is not installed: pip install python-terrier"
        )


@pytest.fixture(scope="module")
def world():
    return make_world()


@pytest.fixture
def topics(world):
    return pd.DataFrame({"qid": list(world.topics), "query": [f"need {one}" for one in world.topics]})


@pytest.fixture
def qrels(world):
    return as_pandas(world.labels, topic="qid", doc="docno", grade="label")


def results(world, name):
    """Return a run as PyTerrier has it: ranks begin at 0."""
    table = world.run(name).with_columns(rank=pl.col("rank") - 1)
    return as_pandas(table, topic="qid", doc="docno", score="score", rank="rank")


def paired_t(differences):
    """Return the two-sided p of a mean, by the formula of Student."""
    n, mean = len(differences), sum(differences) / len(differences)
    variance = sum((one - mean) ** 2 for one in differences) / (n - 1)
    return 2 * scipy.special.stdtr(n - 1, -abs(mean) / math.sqrt(variance / n))


@pytest.mark.parametrize("is_together", [False, True])
@pytest.mark.parametrize("name", ["P@5", "nDCG@10"])
def test_its_means_are_the_corrected_numbers_and_its_p_the_paired_t_of_their_parts(
    pt, world, topics, qrels, name, is_together
):
    given = {"labels": world.labels, "gold": world.gold}
    measure = ir_measure(name, runs=world.runs if is_together else None, **given)
    systems = [pt.apply.generic(lambda asked: results(world, "a")), results(world, "b")]
    found = pt.Experiment(
        systems, topics, qrels, [measure, ir_measures.P @ 5], baseline=0, names=["a", "b"]
    ).set_index("name")
    if is_together:
        expected = ts.estimate(world.runs, name, by_topic=True, **given)
        frames, parts = expected.frame, expected.topics
    else:
        alone = [ts.estimate(world.run(run), name, by_topic=True, **given) for run in ("a", "b")]
        frames, parts = (
            pl.concat([one.frame for one in alone]),
            pl.concat([one.topics for one in alone]),
        )
    for run, value in frames.select("run", "value").iter_rows():
        assert found.loc[run, str(measure)] == pytest.approx(value, abs=1e-12)
    of_a, of_b = (parts.filter(pl.col("run") == run)["value"].to_list() for run in ("a", "b"))
    p = found.loc["b", f"{measure} p-value"]
    assert p == pytest.approx(paired_t([b - a for a, b in zip(of_a, of_b, strict=True)]), abs=1e-12)
    if is_together:
        row = ts.compare(world.runs, name, **given).frame.row(0, named=True)
        assert row["p"] == pytest.approx(max(p, row["p_other"]), abs=1e-9)
    assert not pt.java.started()


def test_batches_of_topics_are_refused(pt, world, topics, qrels):
    measure = ir_measure("P@5", labels=world.labels, gold=world.gold)
    system = pt.apply.generic(
        lambda asked: results(world, "a")[lambda frame: frame["qid"].isin(asked["qid"])]
    )
    with pytest.raises(ValueError, match="do not evaluate in batches"):
        pt.Experiment([system], topics, qrels, [measure], batch_size=5)


def test_its_transformers_are_systems_of_our_experiment(pt, world, topics):
    """Their tables have docid and query as well, which would be documents and topics elsewhere."""
    given = {"labels": world.labels, "gold": world.gold}
    first = pt.apply.generic(lambda asked: results(world, "a").merge(asked, on="qid").assign(docid=1))
    found = experiment([first, results(world, "b")], topics, "P@5", names=["a", "b"], **given)
    assert found.frame.equals(ts.compare(world.runs, "P@5", against="a", **given).frame)
    pipeline = experiment([first % 5, first], topics, "P@5", names=["top", "whole"], **given).frame
    assert pipeline["is_same"].to_list() == [True]


def test_the_example_of_the_documentation_works(pt, world, topics, tmp_path, monkeypatch, capsys):
    write_files(world, tmp_path)
    monkeypatch.chdir(tmp_path)
    names = {"topics": topics, "bm25": results(world, "a"), "dense": results(world, "b")}
    exec(example_of_page("pt.Experiment("), names)  # noqa: S102 (our own documentation)
    assert str(names["measure"]) == "corrected P(rel=1)@10"
    assert "P_10" in capsys.readouterr().out
