"""How methods of evaluation are tested: subsets of runs, the bootstrap over topics, the mean over collections."""

import json

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from scipy.stats import kendalltau

from analytics.lowcost.evaluation_methods import EVALUATION_METHODS, Trial, chosen_method, full_judgments
from analytics.lowcost.method_trials import (
    Comparison,
    collection_trials,
    kendall_tau_b,
    overall_difference,
    topics_of,
)
from analytics.lowcost.run_folder import read_folder

N_RUNS, N_TOPICS, N_DOCUMENTS = 8, 12, 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A collection in which the first run ranks best and the last worst."""
    path = tmp_path_factory.mktemp("collection")
    (path / "runs").mkdir()
    rng = np.random.default_rng(7)
    relevant = rng.random((N_TOPICS, N_DOCUMENTS)) < 0.15
    (path / "qrels.txt").write_text(
        "".join(f"t{t} 0 d{d} {int(relevant[t, d])}\n" for t in range(N_TOPICS) for d in range(N_DOCUMENTS))
    )
    for run in range(N_RUNS):
        lines = []
        for t in range(N_TOPICS):
            scores = relevant[t] + (0.3 + 0.25 * run) * rng.standard_normal(N_DOCUMENTS)
            order = np.argsort(-scores)[:40]
            lines += [f"t{t} Q0 d{d} {place + 1} {100 - place} r{run}\n" for place, d in enumerate(order)]
        (path / "runs" / f"r{run}").write_text("".join(lines))
    return path


@pytest.fixture(scope="module")
def collection(folder):
    return read_folder(folder, "qrels.txt")


def scores_of(spelling, collection, is_manual=()):
    manual = tuple(is_manual) or (False,) * N_RUNS
    topics = topics_of(collection.topics, range(N_RUNS))
    return chosen_method(spelling).scores(Trial(topics, manual, np.random.default_rng(3)))


def test_tau_is_that_of_scipy_with_ties_too():
    rng = np.random.default_rng(1)
    first, second = rng.integers(0, 4, (50, 6)).astype(float), rng.integers(0, 4, (50, 6)).astype(float)
    expected = [kendalltau(a, b).statistic for a, b in zip(first, second, strict=True)]
    assert kendall_tau_b(first, second) == pytest.approx(np.nan_to_num(expected))


def test_every_method_scores_every_run_in_every_topic(collection):
    for method in EVALUATION_METHODS:
        manual = (True,) + (False,) * (N_RUNS - 1) if method.key == "manual" else ()
        found = scores_of(method.key, collection, manual)
        assert found.shape == (N_TOPICS, N_RUNS), method.key
        assert np.isfinite(found).all(), method.key


def test_a_pool_as_deep_as_the_runs_and_a_sample_of_everything_are_the_full_judgments(collection):
    full = full_judgments(collection.topics)
    assert scores_of("pool:40", collection) == pytest.approx(full)
    assert scores_of("statAP:1000", collection) == pytest.approx(full)
    assert scores_of("mtc:1000", collection) == pytest.approx(full)


def test_a_subset_s_pool_is_what_its_runs_return(collection):
    topics = topics_of(collection.topics, [2, 5])
    for topic, whole in zip(topics, collection.topics, strict=True):
        assert topic.pool.ranks.shape[0] == 2
        assert np.isfinite(topic.pool.ranks).any(axis=0).all()
        assert set(topic.doc_ids) <= set(whole.doc_ids)
        assert topic.average_precision() == pytest.approx(whole.average_precision()[[2, 5]])


def test_a_method_compared_with_its_twin_differs_by_nothing_and_a_better_one_is_found(collection):
    methods = [chosen_method(text) for text in ("uniform", "no-judgments", "pool:40")]
    found = collection_trials(
        "made", collection, methods, n_subsets=20, sizes=[3, 6], rng=np.random.default_rng(2)
    )
    assert found.taus["pool:40"] == pytest.approx((1.0, 1.0))
    full = found.comparisons[1]
    assert full.difference == pytest.approx(1 - np.mean(found.taus["uniform"]))
    assert 0 < full.low < full.difference < full.high
    assert full.standard_error > 0
    same = [chosen_method("pool:40"), chosen_method("pool:1000")]
    twins = collection_trials("made", collection, same, n_subsets=5, sizes=[4], rng=np.random.default_rng(2))
    assert (twins.comparisons[0].difference, twins.comparisons[0].standard_error) == (0.0, 0.0)
    with pytest.raises(ValueError, match="rank alike"):
        overall_difference(twins.comparisons, "two-sided")


def test_the_interval_does_not_shrink_with_the_number_of_subsets_alone(collection):
    methods = [chosen_method("no-judgments"), chosen_method("pool:5")]
    widths = []
    for n_subsets in (20, 80):
        found = collection_trials(
            "made", collection, methods, n_subsets=n_subsets, sizes=[4], rng=np.random.default_rng(4)
        ).comparisons[0]
        widths.append(found.high - found.low)
    assert widths[1] > 0.6 * widths[0]  # by subsets alone it would be half as wide


def test_the_random_effects_mean():
    """Effects .1 .3 with variances .01 .01: Q = 2, between = (2 - 1) / 100 = .01, mean .2, error sqrt(.02 / 2)."""
    rows = [Comparison("b", 0.5, effect, 0, 0, 0.1) for effect in (0.1, 0.3)]
    found = overall_difference(rows, "two-sided")
    assert found.difference == pytest.approx(0.2)
    assert found.heterogeneity == pytest.approx(0.01)
    assert found.high - found.difference == pytest.approx(1.959964 * 0.1, abs=1e-6)
    assert found.p_value == pytest.approx(0.0455003, abs=1e-6)  # z = 2
    assert overall_difference(rows, "greater").p_value == pytest.approx(0.0227501, abs=1e-6)
    assert overall_difference(rows, "less").p_value == pytest.approx(0.9772499, abs=1e-6)
    assert overall_difference(rows[:1], "two-sided").difference == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("spelling", "words"),
    [
        ("best", "must be one of no-judgments"),
        ("popular:3", "takes no number"),
        ("pool:0", "at least 1"),
        ("pool:1.5", "at least 1"),
        ("mtc:x", "at least 1"),
    ],
)
def test_a_wrong_method_is_named(spelling, words):
    with pytest.raises(ValueError, match=words):
        chosen_method(spelling)


def test_the_command_prints_a_table_and_json(folder, capsys):
    options = {"qrels": "qrels.txt", "methods": "no-judgments,pool:5", "subsets": 4, "size": "3,5"}
    call_command("compare_methods", str(folder), str(folder), **options)
    told = capsys.readouterr().out
    assert f"{N_RUNS} runs, {N_TOPICS} topics" in told
    assert "pool:5 less no-judgments: " in told
    assert "over 2 collections: pool:5 less no-judgments: " in told
    call_command("compare_methods", str(folder), output="json", **options)
    made = json.loads(capsys.readouterr().out)
    assert made["collections"][0]["sizes"] == [3, 5]
    assert made["overall"][0]["method"] == "pool:5"
    call_command("compare_methods", str(folder), output="json", **options)
    assert json.loads(capsys.readouterr().out) == made  # the seed decides


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"methods": "pool:5"}, "methods must be at least 2"),
        ({"methods": "pool:5,pool:5"}, "all different"),
        ({"methods": "pool:5,manual"}, "no run of the collection is manual"),
        ({"size": "2,x"}, "whole numbers"),
        ({"size": "3,3"}, "each size stands once"),
        ({"size": "9"}, r"within \[2, 8\]"),
        ({"subsets": 1}, "subsets must be at least 2"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"qrels": "nothing.txt"}, "nothing.txt"),
    ],
)
def test_bad_input_of_the_command_is_named(folder, change, words):
    options = {"qrels": "qrels.txt", "methods": "no-judgments,pool:5", "subsets": 3, "size": "3"} | change
    with pytest.raises(CommandError, match=words):
        call_command("compare_methods", str(folder), **options)


def test_manual_runs_are_named_in_a_file(folder, capsys):
    options = {"qrels": "qrels.txt", "methods": "no-judgments,manual:8", "subsets": 3, "size": "8"}
    (folder / "manual").write_text("r0\n")
    try:
        call_command("compare_methods", str(folder), **options)
        (folder / "manual").write_text("nobody\n")
        with pytest.raises(CommandError, match="'nobody'"):
            call_command("compare_methods", str(folder), **options)
    finally:
        (folder / "manual").unlink()
    assert "manual:8 less no-judgments" in capsys.readouterr().out
