"""experiments/minimal_collections.py: every pair of runs of a folder, and what a wrong sign looks like."""

import gzip
import json

import numpy as np
import pytest

from experiments import minimal_collections
from experiments.minimal_collections import differences, main, summary
from experiments.parts.minimal_model import wrong_share
from experiments.parts.minimal_pairs import (
    PRODUCT,
    SETTINGS,
    judge_learning,
    outcome,
    outcomes,
    pairs_of,
    priors,
    read_folder,
)
from experiments.parts.minimal_ranking import ORDERS, ranking_topics, tau, tau_table
from sampling.minimal import StoppingRule, expected_sums
from sampling.minimal_collection import total_difference

N_TOPICS, N_DOCUMENTS, DEPTH = 6, 60, 20
SKILLS = {"a-best": 2.0, "b-good": 1.0, "c-poor": 0.2, "d-cost": 0.2}


@pytest.fixture
def folder(tmp_path):
    """Runs of which each finds relevant documents better than the next; qrels of all documents; c returns few."""
    rng = np.random.default_rng(3)
    truth = rng.random((N_TOPICS, N_DOCUMENTS)) < 0.1
    (tmp_path / "runs").mkdir()
    for name, skill in SKILLS.items():
        score = skill * truth + rng.standard_normal(truth.shape)
        length = 8 if name == "c-poor" else N_DOCUMENTS
        lines = [
            f"T{topic} NF D{document:02} 7 {score[topic, document]:.6f} {'tag' if topic else 'other'}\n"
            for topic in range(N_TOPICS)
            for document in np.argsort(-score[topic])[:length].tolist()
        ]
        lines.append(lines[0])  # a document twice
        content = "".join(lines).encode()
        if name == "a-best":
            (tmp_path / "runs" / f"{name}.gz").write_bytes(gzip.compress(content))
        else:
            (tmp_path / "runs" / name).write_bytes(content)
    rows = [f"T{t} 0 D{d:02} {int(truth[t, d])}\n" for t in range(N_TOPICS) for d in range(N_DOCUMENTS)]
    (tmp_path / "qrels").write_text("".join(rows))
    return tmp_path


@pytest.fixture
def pairs(folder):
    return pairs_of(read_folder(folder, "qrels", DEPTH, ["cost"]))


def test_runs_are_cut_and_left_out_by_a_word_of_their_name(folder):
    read = read_folder(folder, "qrels", DEPTH, ["cost"])
    assert list(read.runs) == ["a-best", "b-good", "c-poor"]
    assert list(read.others) == ["d-cost"]
    assert [len(run["T0"]) for run in read.runs.values()] == [DEPTH, DEPTH, 8]
    assert sum(len(documents) for documents in read.relevant.values()) > 10
    with pytest.raises(ValueError, match="at least 2 runs for pairs, found 1"):
        read_folder(folder, "qrels", DEPTH, ["cost", "poor", "good"])


def test_equal_scores_are_in_the_order_of_an_import(tmp_path):
    (tmp_path / "runs").mkdir()
    for name in ("x", "y"):
        (tmp_path / "runs" / name).write_text("1 Q0 a 1 0 t\n1 Q0 c 2 0 t\n1 Q0 b 3 5 t\n")
    (tmp_path / "qrels").write_text("1 0 a 1\n")
    assert read_folder(tmp_path, "qrels", 2).runs["x"] == {"1": ["b", "c"]}


def test_the_truth_of_a_pair_is_the_difference_of_map_in_what_the_two_return(folder, pairs):
    read = read_folder(folder, "qrels", DEPTH)
    for pair in pairs:
        values = []
        for topic, relevant in read.relevant.items():
            lists = [read.runs[name][topic] for name in (pair.first, pair.second)]
            n_relevant = len(relevant & set().union(*lists)) or 1
            scores = []
            for ranked in lists:
                is_relevant = np.array([document in relevant for document in ranked])
                precision = np.cumsum(is_relevant) / np.arange(1, len(ranked) + 1)
                scores.append((precision * is_relevant).sum() / n_relevant)
            values.append(scores[0] - scores[1])
        assert pair.truth() == pytest.approx(np.mean(values), abs=1e-12)


def test_the_prior_is_that_of_all_runs_shifted_in_the_pool_of_the_pair(folder, pairs):
    read = read_folder(folder, "qrels", DEPTH, ["cost"])
    consensus = priors([*read.runs.values(), *read.others.values()], read.relevant)
    assert {round(np.mean(list(chances.values())), 9) for chances in consensus.values()} == {0.5}
    topic = pairs[0].topics[0]
    model = PRODUCT.model(topic)
    assert model.probability.mean() == pytest.approx(0.05, abs=1e-12)
    assert (np.argsort(model.probability) == np.argsort(topic.consensus)).all()
    assert sorted(topic.consensus) == sorted(consensus["T0"][one] for one in returned(read, pairs[0], "T0"))
    only_paired = priors(read.runs.values(), read.relevant)
    assert sorted(topic.paired_consensus) == sorted(
        only_paired["T0"][one] for one in returned(read, pairs[0], "T0")
    )


def returned(read, pair, topic):
    return {document for name in (pair.first, pair.second) for document in read.runs[name][topic]}


def test_as_printed_the_longer_run_wins_at_once_and_the_products_rule_looks_after_thirty(pairs):
    short = next(pair for pair in pairs if pair.second == "c-poor")
    printed, product = (outcome(short, setting, 1) for setting in (SETTINGS[0], PRODUCT))
    assert printed.n_judged == 0
    assert printed.worse_probability < 0.05
    assert product.n_judged >= 30


def test_what_tells_most_needs_fewer_judgments_than_random_order(pairs):
    telling, random = SETTINGS[2:4]
    assert telling.probability == random.probability == 0.05
    assert (telling.is_random, random.is_random) == (False, True)
    n_telling, n_random = (
        sum(one.n_judged for one in outcomes(pairs, each, 1)) for each in (telling, random)
    )
    assert n_telling <= 0.8 * n_random


def test_a_sign_is_wrong_only_where_the_rule_stopped(pairs):
    for setting in SETTINGS:
        for one in outcomes(pairs, setting, 1):
            says_worse = one.worse_probability > 0.5
            assert one.is_wrong == (one.has_sign and says_worse == (one.truth > 0))
    counts = summary(outcomes(pairs, SETTINGS[0], 1))
    assert counts["wrong"] >= counts["of these wrong"]


def test_a_certain_sign_of_dcg_is_right(pairs):
    certain = next(setting for setting in SETTINGS if setting.measure == "DCG")
    for one in outcomes(pairs, certain, 1):
        assert not one.is_wrong
        assert one.truth == pytest.approx(one.pair.truth("DCG"))


def test_the_share_among_judged_documents_is_no_prevalence(pairs):
    learning = next(setting for setting in SETTINGS if setting.learns)
    models = [learning.model(topic) for topic in pairs[0].topics]
    topics, n_judged, has_sign = judge_learning(pairs[0], models, learning)
    assert has_sign == (total_difference(topics).sign_probability >= 0.95)
    assert n_judged == sum(int(topic.is_judged.sum()) for topic in topics) >= 30
    share = (sum(topic.probability[topic.is_judged].sum() for topic in topics) + 1) / (n_judged + 2)
    for topic in topics:
        assert topic.probability[~topic.is_judged] == pytest.approx(share)


def test_all_runs_together_are_ranked_and_everything_judged_gives_the_true_ranking(folder):
    topics = ranking_topics(read_folder(folder, "qrels", DEPTH), 0.05)
    assert [topic.model.ranks.shape[0] for topic in topics] == [4] * N_TOPICS
    table = tau_table(topics, (0, 3, 1000), seed=1, n_orders=2)
    assert list(table) == list(ORDERS)
    assert len({table[order][0] for order in ORDERS[:3]}) == 1, (
        "before any judgment the order does not matter"
    )
    assert {taus[2] for taus in table.values()} == {1.0}


def test_scores_that_are_all_equal_order_nothing():
    assert tau(np.zeros(3), np.arange(3.0)) == 0
    assert tau(np.arange(3.0), np.arange(3.0)) == 1


def test_the_model_of_all_runs_has_the_prevalence_and_the_truth(folder):
    read = read_folder(folder, "qrels", DEPTH)
    for topic, (name, relevant) in zip(ranking_topics(read, 0.05), read.relevant.items(), strict=True):
        assert topic.model.probability.mean() == pytest.approx(0.05)
        returned = {document for run in read.runs.values() for document in run[name]}
        assert topic.labels.sum() == len(relevant & returned)
        assert expected_sums(topic.model).shape == (4,)


def test_the_program_prints_every_rule_and_the_pair_that_is_asked_for(folder, capsys):
    assert (
        main(
            [str(folder), "--qrels", "qrels", "--depth", "20", "--without", "cost", "--pair", "best", "poor"]
        )
        == 0
    )
    out = capsys.readouterr().out
    assert all(out.count(f"\n{setting.name}  ") == 2 for setting in SETTINGS)
    assert out.startswith("3 pairs")
    assert "a-best less c-poor: 0." in out
    assert all(f"\n{order} " in out for order in ORDERS)


def test_the_program_writes_every_pair_as_json(folder, capsys):
    assert main([str(folder), "--qrels", "qrels", "--depth", "20", "--output", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["rules"]) == [setting.name for setting in SETTINGS]
    assert len(found["rules"][PRODUCT.name]["pairs"]) == 6
    assert found["rules"][PRODUCT.name]["median"] >= 30
    assert {len(taus) for taus in found["ranking"]["tau"].values()} == {len(found["ranking"]["judgments"])}


def test_signs_are_mostly_right_where_the_model_is_true(folder, capsys):
    assert 0 < wrong_share(40, 0.2, StoppingRule(n_first=0)) < 0.25
    assert wrong_share(1, 0.2, StoppingRule(n_first=10**6)) == 0, "nothing stopped, nothing wrong"
    assert main([str(folder), "--qrels", "qrels", "--without", "cost", "--model", "1"], SETTINGS[:1]) == 0
    assert "1 simulated pairs for which the model is true" in capsys.readouterr().out


def test_a_pair_must_be_the_only_one(folder):
    with pytest.raises(ValueError, match=r"name 1 pair, .*: 0 fit"):
        main([str(folder), "--qrels", "qrels", "--pair", "poor", "best"])


def test_figures_that_do_not_come_out_are_named_and_end_with_status_1(folder, capsys):
    for line in (folder / "runs").iterdir():
        line.rename(line.with_name(f"{line.name}-AMC-A-rank-normal-bool-B-rank-normal"))
    (folder / "runs" / "c-poor-AMC-A-rank-normal-bool-B-rank-normal").unlink()
    (folder / "runs" / "d-cost-AMC-A-rank-normal-bool-B-rank-normal").unlink()
    assert main([str(folder), "--qrels", "qrels", "--clef"]) == 1
    assert "not as documented: p = .5, no first look, wrong: " in capsys.readouterr().err


def test_the_documented_figures_are_compared_one_by_one():
    right = {name: dict(line) for name, line in minimal_collections.CLEF.items()}
    assert differences(right) == []
    right[PRODUCT.name]["wrong"] += 1
    assert differences(right) == [f"{PRODUCT.name}, wrong: 3, must be 2"]
