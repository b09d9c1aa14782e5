"""Numbers of runs from files: what each combination of labels, gold and draw means, and what is refused."""

import itertools

import ir_measures
import numpy as np
import polars as pl
import pytest

import touchstone_ir as ts
from touchstone_ir.columns import InputRefused

N_TOPICS, N_DOCS = 12, 20


@pytest.fixture(scope="module")
def world():
    """Two runs that return all documents of every topic, in orders of their own, and the truth of each."""
    rng = np.random.default_rng(7)
    topics = [f"t{number}" for number in range(N_TOPICS)]
    truth, runs = {}, {"a": {}, "b": {}}
    for topic in topics:
        truth[topic] = {
            f"{topic}-{doc}": int(rng.random() < 0.3) + int(rng.random() < 0.2) for doc in range(N_DOCS)
        }
        for run, noise in (("a", 1.0), ("b", 1.5)):
            runs[run][topic] = {doc: grade + noise * rng.normal() for doc, grade in truth[topic].items()}
    return truth, runs


@pytest.fixture(scope="module")
def runs(world):
    return pl.concat([ts.read_run(ranking, name=name) for name, ranking in world[1].items()])


@pytest.fixture(scope="module")
def labels(world):
    """The truth with every seventh pair wrong."""
    found = {topic: dict(grades) for topic, grades in world[0].items()}
    pairs = [(topic, doc) for topic in found for doc in found[topic]]
    for topic, doc in pairs[::7]:
        found[topic][doc] = 0 if found[topic][doc] else 1
    return found


def as_table(grades, **columns):
    rows = [(topic, doc, grade) for topic, found in grades.items() for doc, grade in found.items()]
    frame = pl.DataFrame(rows, schema=["topic", "doc", "grade"], orient="row")
    return frame.with_columns(**columns)


@pytest.mark.parametrize("measure", ["P@5", "P(rel=2)@10", "nDCG@10", "AP@20", "RR@10", "R@10"])
def test_labels_alone_give_the_value_that_ir_measures_gives(world, runs, labels, measure):
    found = ts.estimate(runs, measure, labels=labels).frame
    expected = [
        ir_measures.calc_aggregate([ir_measures.parse_measure(measure)], labels, world[1][run])
        for run in ("a", "b")
    ]
    assert found["value"].to_list() == pytest.approx([next(iter(one.values())) for one in expected], abs=1e-9)
    assert found["n_gold"].to_list() == [0, 0]


def test_labels_alone_have_an_interval_over_topics_and_none_for_these_topics(runs, labels):
    row = ts.compare(runs, "P@5", labels=labels, claim="these-topics").frame.row(0, named=True)
    assert row["value"] is not None
    assert (row["low"], row["p"]) == (None, None)
    assert "gold" in row["refusal"]
    assert row["low_other"] < row["value"] < row["high_other"]
    assert "bias is unknown" in row["warning"]


def test_gold_of_all_labelled_pairs_gives_the_truth_without_an_error(world, runs, labels):
    gold = as_table(world[0], probability=pl.lit(1.0))
    found = ts.compare(runs, ["P@5", "DCG@10"], labels=labels, gold=gold, claim="these-topics").frame
    truth = ts.compare(runs, ["P@5", "DCG@10"], labels=world[0]).frame
    assert found["value"].to_list() == pytest.approx(truth["value"].to_list(), abs=1e-12)
    assert found["standard_error"].to_list() == pytest.approx([0, 0], abs=1e-12)


def test_gold_that_leaves_out_pairs_although_all_in_it_were_certain_is_refused(world, runs, labels):
    gold = as_table(world[0], probability=pl.lit(1.0)).head(120)
    found = ts.compare(runs, "P@5", labels=labels, gold=gold).frame
    assert found["value"].to_list() == [None]
    assert "an audit could select" in found["refusal"][0]


def test_the_mean_over_audits_is_the_truth_and_intervals_cover_it(world, runs, labels):
    """150 audits by the product's own choice: unbiased within three standard errors, and covered."""
    truth = ts.compare(runs, "P@5", labels=world[0], of="a").frame["value"][0]
    errors, covered = [], []
    for seed in range(150):
        chosen = ts.audit(runs, "P@5", labels=labels, n=60, seed=seed)
        row = ts.compare(
            runs, "P@5", labels=labels, gold=_graded(chosen, world[0]), of="a", claim="these-topics"
        ).frame
        if row["value"][0] is None:
            continue
        errors.append(row["value"][0] - truth)
        covered.append(row["low"][0] <= truth <= row["high"][0])
    assert len(errors) > 145
    assert abs(np.mean(errors)) < 3 * np.std(errors) / np.sqrt(len(errors))
    assert np.mean(covered) > 0.91
    # The control: labels alone are wrong by more than that.
    given = ts.compare(runs, "P@5", labels=labels, of="a").frame["value"][0]
    assert abs(given - truth) > 3 * np.std(errors) / np.sqrt(len(errors))


def _graded(pairs, truth):
    grades = [truth[topic][doc] for topic, doc in pairs.select("topic", "doc").iter_rows()]
    return pairs.with_columns(grade=pl.Series(grades, dtype=pl.Int64))


def test_a_draw_with_labels_and_gold_is_unbiased(world, runs, labels):
    truth = ts.compare(runs, "P@5", labels=world[0], of="a").frame["value"][0]
    designed = ts.design(runs, "P@5", budget=45)
    errors = []
    for seed in range(80):
        drawn = ts.draw(designed, seed=seed)
        some = _graded(drawn, labels).drop("probability", "batch")
        chosen = ts.audit(runs, "P@5", labels=some, draw=drawn, n=25, seed=seed)
        both = ts.compare(runs, "P@5", labels=some, draw=drawn, gold=_graded(chosen, world[0]), of="a").frame
        alone = ts.compare(runs, "P@5", gold=_graded(drawn, world[0]), of="a").frame
        errors.append([both["value"][0] - truth, alone["value"][0] - truth])
    bias = np.mean(errors, axis=0)
    assert (np.abs(bias) < 3 * np.std(errors, axis=0) / np.sqrt(len(errors))).all()


def test_a_topic_of_which_nothing_was_drawn_is_one_of_the_mean(world, runs):
    """Few pairs are drawn, so that most draws leave a topic out: with right labels the mean over draws is the truth."""
    truth = ts.compare(runs, "P@5", labels=world[0], of="a").frame["value"][0]
    designed = ts.design(runs, "P@5", budget=20)
    errors, n_left_out = [], 0
    for seed in range(80):
        drawn = ts.draw(designed, seed=seed)
        n_left_out += drawn["topic"].n_unique() < N_TOPICS
        found = ts.compare(
            runs, "P@5", labels=_graded(drawn, world[0]).drop("probability"), draw=drawn, of="a"
        )
        assert found.n_topics == N_TOPICS
        if found.frame["value"][0] is not None:
            errors.append(found.frame["value"][0] - truth)
    assert n_left_out > 40
    assert len(errors) > 75
    assert abs(np.mean(errors)) < 3 * np.std(errors) / np.sqrt(len(errors))


def test_holm_is_over_all_rows_of_a_result(runs, labels):
    three = pl.concat(
        [runs, runs.filter(pl.col("run") == "a").with_columns(run=pl.lit("c"), rank=21 - pl.col("rank"))]
    )
    found = ts.compare(three, ["P@5", "P@10"], labels=labels)
    p = sorted(found.frame["p"].to_list())
    assert len(p) == 6
    assert min(found.frame["p_adjusted"].to_list()) == pytest.approx(min(1.0, 6 * p[0]))
    assert "6 comparisons" in found.caption


def test_rows_are_turned_as_they_are_asked_for(runs, labels):
    usual = ts.compare(runs, "P@5", labels=labels).frame.row(0, named=True)
    assert usual["value"] > 0
    turned = ts.compare(runs, "P@5", labels=labels, of=usual["against"]).frame.row(0, named=True)
    assert (turned["run"], turned["against"]) == (usual["against"], usual["run"])
    for name, other in (("value", "value"), ("low", "high"), ("high", "low"), ("as_given", "as_given")):
        assert turned[name] == pytest.approx(-usual[other])
    assert turned["p"] == usual["p"]


def test_two_runs_that_are_the_same_differ_by_nothing(runs, labels):
    twins = pl.concat([runs, runs.filter(pl.col("run") == "a").with_columns(run=pl.lit("twin"))])
    row = ts.compare(twins, "P@5", labels=labels, of="twin", against="a").frame.row(0, named=True)
    assert (row["value"], row["p"], row["verdict"]) == (0.0, 1.0, "the same")


def test_a_run_that_returns_unlabelled_documents_is_bounded_or_refused(world, runs, labels):
    missing = {topic: dict(itertools.islice(found.items(), 10)) for topic, found in labels.items()}
    row = ts.estimate(runs, "P@5", labels=missing).frame.row(0, named=True)
    assert row["value"] is None
    assert "could not be drawn" in row["refusal"]
    assert "page of results" not in row["refusal"]


def test_ranks_hold_the_order_of_the_values(runs, labels):
    found = ts.rank(runs, "P@5", labels=labels).frame
    assert found["rank"].to_list() == [1, 2]
    assert found["value"][0] >= found["value"][1]
    assert all(
        low <= rank <= high for low, rank, high in found.select("rank_low", "rank", "rank_high").iter_rows()
    )


def test_few_gold_labels_are_a_row_with_a_refusal(world, runs, labels):
    gold = as_table(world[0], probability=pl.lit(0.5)).head(9)
    row = ts.compare(runs, "P@5", labels=labels, gold=gold).frame.row(0, named=True)
    assert row["value"] is None
    assert "at least 10 are needed" in row["refusal"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"labels": None}, "give labels=, gold= or both"),
        ({"gold": {"t0": {"elsewhere": 1}}}, "has no label"),
        ({"gold_chosen": "by hand"}, "gold_chosen must be"),
        ({"claim": "all-topics"}, "claim must be"),
        ({"gains": {0: 0, 1: 1}}, "no gain of the grade 2"),
        ({"labels": {"elsewhere": {"d": 1}}}, "no common topic"),
        ({"of": "c"}, "the run c is not there"),
        ({"of": "a", "against": "a"}, "against itself"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(runs, labels, change, words):
    with pytest.raises(InputRefused, match=words):
        ts.compare(runs, "P@5", **{"labels": labels} | change)


def test_tables_are_checked_as_files_are(world, runs, labels):
    table = as_table(labels)
    for given, words in [
        ({"labels": pl.concat([table, table.head(1)])}, "judged twice"),
        ({"labels": table.with_columns(grade=-pl.col("grade"))}, "have the grade"),
        ({"gold": as_table(world[0], probability=pl.lit(1.5))}, r"within \(0, 1\]"),
        ({"draw": table.select("topic", "doc", probability=pl.lit(2.0))}, r"within \(0, 1\]"),
        ({"draw": pl.concat([table.head(2)] * 2).with_columns(probability=pl.lit(0.5))}, "judged twice"),
    ]:
        with pytest.raises(InputRefused, match=words):
            ts.compare(runs, "P@5", **{"labels": table} | given)
    two_experts = pl.concat(
        [as_table(world[0], probability=pl.lit(0.5), assessor=pl.lit(name)) for name in "xy"]
    )
    with pytest.raises(InputRefused, match="has several grades"):
        ts.compare(runs, "P@5", labels=table, gold=two_experts)


def test_ranks_of_a_table_are_made_anew_or_must_count_from_1(runs, labels):
    expected = ts.estimate(runs, "P@5", labels=labels).frame["value"].to_list()
    from_0 = runs.select("run", "topic", "doc", pl.col("rank") - 1)
    assert ts.estimate(from_0, "P@5", labels=labels).frame["value"].to_list() == expected
    with pytest.raises(InputRefused, match="count from 1"):
        ts.estimate(runs.with_columns(rank=pl.col("rank") - 1), "P@5", labels=labels)


def test_a_measure_that_gold_cannot_correct_is_refused_and_has_its_value_as_given(world, runs, labels):
    gold = as_table(world[0], probability=pl.lit(0.9))
    row = ts.estimate(runs, "RR@10", labels=labels, gold=gold).frame.row(0, named=True)
    assert (row["value"], row["verdict"]) == (None, "refused")
    assert "corrected serves" in row["refusal"]
    assert row["as_given"] == ts.estimate(runs, "RR@10", labels=labels).frame["value"][0]


def test_gold_without_probabilities_is_refused_unless_it_is_declared_random(world, runs, labels):
    gold = as_table(world[0]).sample(80, seed=3)
    with pytest.raises(InputRefused, match="gold_chosen='uniform'"):
        ts.compare(runs, "P@5", labels=labels, gold=gold)
    row = ts.compare(runs, "P@5", labels=labels, gold=gold, gold_chosen="uniform").frame.row(0, named=True)
    assert row["value"] is not None
    assert "assumes that the 80 documents" in row["warning"]


@pytest.mark.parametrize("measure", ["infAP", "P", "Bpref", "nonsense@3"])
def test_a_measure_that_is_not_served_is_refused_with_those_that_are(runs, labels, measure):
    with pytest.raises(InputRefused, match="P@10"):
        ts.estimate(runs, measure, labels=labels)


def test_measures_are_printed_with_the_grade_that_counts_as_relevant(runs, labels):
    found = ts.estimate(runs, ["RBP@20", ir_measures.P @ 5], labels=labels, relevant=2).frame
    assert found["measure"].unique(maintain_order=True).to_list() == ["RBP(p=0.8,rel=2)@20", "P(rel=2)@5"]
