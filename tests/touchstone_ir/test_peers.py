"""benchmarks/peers.py in small: samples, what is made of answers, and its control; no peer is needed."""

import math
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

# For these lines alone: benchmarks/coverage.py is not the tool that some library looks for.
sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
import peers
from parts.peer_intervals import METHODS, Rows, answers
from parts.peer_samples import Population, World, peer_samples

sys.path.pop()

N_TOPICS = 12
CONTROL, (UNIFORM, WEIGHTED) = peers.CONTROL, tuple(peers.OURS)


@pytest.fixture(scope="module")
def population() -> Population:
    return Population.make(1, 300)


@pytest.fixture(scope="module")
def world(population) -> World:
    return population.world(N_TOPICS, 0.0, np.random.default_rng(5))


@pytest.fixture(scope="module")
def samples(world):
    rng = np.random.default_rng(6)
    audit = peers.Repetition(world, rng).audit("influence", 40)
    return peer_samples(world, 40, audit, rng)


def precision_at_ten(world, grade):
    """P@10 of either run, summed document by document."""
    found = [0, 0]
    for ranks, one in zip(world.ranks.T, grade, strict=True):
        for run in (0, 1):
            found[run] += bool(1 <= ranks[run] <= 10 and one > 0)
    return [count / (10 * world.n_topics) for count in found]


def test_the_rows_of_every_sample_have_the_difference_as_judged_for_their_mean(world, samples):
    first, second = precision_at_ten(world, world.given)
    assert set(samples) == {key for _, key, _ in METHODS.values()}
    for sample in samples.values():
        assert Rows(sample).proxy.mean() * sample["scale"] == pytest.approx(first - second, abs=1e-12)


def test_the_truth_of_a_world_is_the_difference_by_true_grades(world):
    first, second = precision_at_ten(world, world.grade)
    assert world.truth == pytest.approx(first - second, abs=1e-12)


def test_with_every_document_labelled_the_rows_have_the_true_difference(world):
    rng = np.random.default_rng(7)
    audit = peers.Repetition(world, rng).audit("influence", 40)
    for key in ("documents", "shares", "ranks"):
        sample = peer_samples(world, 10_000, audit, rng)[key]
        assert np.mean(Rows(sample).truth) * sample["scale"] == pytest.approx(world.truth, abs=1e-12)


def test_a_peer_is_told_the_truth_of_labelled_rows_alone_and_about_as_many_as_were_asked_for(samples):
    for key, sample in samples.items():
        rows = Rows(sample)
        assert np.flatnonzero(~np.isnan(rows.truth)).tolist() == sample["labelled"]
        assert len(sample["gold"][0]) == len(sample["gold"][1]) == len(sample["labelled"]) < rows.proxy.size
        spread = {"documents": 0, "shares": 0, "ranks": 1, "topics": 20, "drawn": 20}[key]
        assert abs(sample["n_labels"] - 40) <= spread


def test_whole_topics_are_labelled_whole_and_shares_follow_the_runs(samples):
    topics, shares = Rows(samples["topics"]), Rows(samples["shares"])
    is_labelled = ~np.isnan(topics.truth)
    by_topic = np.bincount(topics.group, is_labelled)
    assert set(by_topic.tolist()) == {0.0, 10.0}
    proxy, truth = topics.by_group()
    assert np.isnan(truth).sum() == np.count_nonzero(by_topic == 0)
    assert proxy[0] == pytest.approx(topics.proxy[topics.group == 0].mean())
    labelled = np.bincount(shares.group[~np.isnan(shares.truth)])
    assert np.abs(labelled - 40 * np.bincount(shares.group) / shares.group.size).max() <= 0.5


def answer(low, high, truth, *, method="m", n=60):
    bounds = None if low is None else (low, high)
    both = dict.fromkeys((peers.THESE, peers.LIKE_THESE), bounds)
    return peers.Answer(method, n, both, {peers.THESE: truth, peers.LIKE_THESE: 9.0}, 58, 0.25)


def test_coverage_width_and_verdicts_of_five_answers():
    told = [
        answer(0.1, 0.3, 0.2),  # right
        answer(-0.4, -0.2, -0.5),  # right, does not cover
        answer(0.1, 0.2, -0.1),  # wrong
        answer(-0.1, 0.5, 0.0),  # undecided
        answer(None, None, 0.0),  # refused
    ]
    found = peers.summary(told, peers.THESE)
    assert found["answered"] == 4
    assert found["refused"] == 1
    assert found["coverage"] == 0.5
    assert found["coverage_se"] == 0.25
    assert found["half_width"] == pytest.approx((0.1 + 0.1 + 0.05 + 0.3) / 4, abs=1e-4)
    assert found["half_width_median"] == pytest.approx(0.1)
    assert found["root_mean_square_error"] == pytest.approx(
        math.sqrt((0 + 0.2**2 + 0.25**2 + 0.2**2) / 4), abs=5e-5
    )
    shares = [found[f"share_{name}"] for name in ("right", "wrong", "undecided")]
    assert shares == [0.5, 0.25, 0.25]
    assert peers.summary(told, peers.LIKE_THESE)["coverage"] == 0
    assert "coverage" not in peers.summary(told[4:], peers.THESE)


def test_a_goal_holds_where_ours_covers_and_no_peer_that_covers_is_as_narrow():
    def row(coverage, half_width):
        return {"60": {"coverage": coverage, "half_width": half_width}}

    by_method = {
        UNIFORM: row(0.95, 0.2),
        WEIGHTED: row(0.95, 0.1),
        "narrow": row(0.94, 0.15),
        "invalid": row(0.8, 0.01),
        "refuses": {"60": {}},
        CONTROL: {"0": {"coverage": 0.3}},
    }
    found = peers.goals(by_method, [60])
    assert found[f"{UNIFORM}, 60"]["narrower_peers"] == {"narrow": 0.15}
    assert [found[f"{key}, 60"]["holds"] for key in (UNIFORM, WEIGHTED)] == [False, True]
    by_method[WEIGHTED] = row(0.99, 0.1)
    assert not peers.goals(by_method, [60])[f"{WEIGHTED}, 60"]["holds"]
    assert peers.control_goal(by_method) == {"coverage": 0.3, "holds": True}
    by_method[CONTROL] = {"0": {"coverage": 0.9}}
    assert not peers.control_goal(by_method)["holds"]


def test_peers_that_are_not_installed_answer_nothing_and_are_named(samples):
    process = peers.Peers.start(sys.executable)
    try:
        assert process.packages == {"truescore": None, "ppi-python": None, "glide-py": None}
        assert process.ask(samples) == {}
        assert peers.peers_there(process)["glide-py"] == "not run: not installed"
    finally:
        process.end()
    assert peers.peers_there(None) == "not run: --peers names no interpreter"


def test_a_method_that_refuses_is_told_with_its_reason(samples, monkeypatch):
    def refuse(rows):
        raise ValueError("too few")

    monkeypatch.setitem(METHODS, "refusing", ("ppi-python", "documents", refuse))
    monkeypatch.setitem(METHODS, "exact", ("ppi-python", "documents", lambda rows: (-1.0, 1.0)))
    there = {"truescore": None, "ppi-python": None, "glide-py": None}
    assert answers(samples, there) == {}
    for name in [key for key, (package, _, _) in METHODS.items() if package == "ppi-python" and "PPI" in key]:
        monkeypatch.delitem(METHODS, name)
    found = answers(samples, there | {"ppi-python": "0"})
    scale = samples["documents"]["scale"]
    assert (found["exact"]["low"], found["exact"]["high"]) == (-scale, scale)
    refused = peers.peer_answer("refusing", 40, found["refusing"], {peers.THESE: 0.1, peers.LIKE_THESE: 0.1})
    assert refused.bounds == {peers.THESE: None, peers.LIKE_THESE: None}
    assert found["refusing"]["refusal"] == "too few"


def test_labels_alone_of_a_judge_that_favours_a_system_fail_and_ours_do_not(population, capsys):
    options = Namespace(repetitions=30, seed=1, sizes=[100])
    found = peers.of_judge(population, 0.3, options, None)
    for claim in (peers.THESE, peers.LIKE_THESE):
        assert found["control"][claim]["holds"]
        for method in (UNIFORM, WEIGHTED):
            # 25 or fewer of 30 have probability .003 where the chance to cover is .95
            assert found[claim][method]["100"]["coverage"] > 25 / 30
