"""experiments/bailey_tables.py: what can be recomputed of the paper comes out, and a wrong number is noticed.

experiments/which_audit.py: each strategy is good for what docs/methods/tiers.md says.
"""

import json

import numpy as np
import pytest

from experiments import bailey_tables, which_audit
from experiments.parts import bailey
from experiments.parts.rows import failures
from sampling.strategies import strategies_for

KEYS = ["table1", "table2", "table3", "table4", "figure2", "tests", "forms"]


@pytest.fixture
def small_pools(monkeypatch):
    monkeypatch.setattr(bailey, "POOLED", 1200)
    monkeypatch.setattr(bailey, "TOPICS", 6)


def by_name(rows):
    return {line.name: line for line in rows}


def test_the_deterministic_tables_are_what_section_5_says():
    # docs/methods/derivations/bailey.md, section 3
    one, two, four = (
        by_name(rows) for rows in (bailey_tables.table1(), bailey_tables.table2(1), bailey_tables.table4())
    )
    assert one["documents a topic"].computed == pytest.approx(91.03, abs=0.005)
    assert one["share of the pool judged again"].computed == pytest.approx(0.1335, abs=5e-5)
    misprint = two["effort-based A, total of its cells"]
    assert (misprint.paper, misprint.computed) == (12, 13)
    assert "misprint" in misprint.note
    assert two["full, documents"].computed == 37
    assert two["its probability, in millionths"].computed == pytest.approx(0.58, abs=0.005)
    assert four["pooled kappa gold, silver"].computed == pytest.approx(0.333, abs=0.02)
    assert four["pooled kappa bronze, gold"].computed == pytest.approx(0.293, abs=0.02)
    shares = [
        four[f"implied share of bronze {label} in the sample"].computed
        for label in ("highly", "possibly", "not")
    ]
    assert shares == pytest.approx([0.487, 0.280, 0.233], abs=5e-4)
    assert four["gold relevant in the pool"].computed > four["bronze relevant in the pool"].computed
    assert four["gold relevant in the sample"].computed < four["bronze relevant in the sample"].computed
    assert failures({"1": list(one.values()), "2": list(two.values()), "4": list(four.values())}) == []


def test_the_printed_taus_are_whole_numbers_of_flips_and_the_orders_have_eight():
    rows = by_name(bailey_tables.figure2())
    taus = [line.computed for name, line in rows.items() if line.note.endswith("flipped")]
    assert taus == pytest.approx([0.9619, 0.9429, 0.7333, 0.6571], abs=5e-5)
    assert rows["tau of gold infAP and infNDCG"].computed == pytest.approx(0.847619, abs=5e-7)
    assert failures({"figure2": list(rows.values()), "tests": bailey_tables.tests()}) == []


def test_every_outcome_of_the_full_sample_is_the_union_whatever_the_seed():
    assert all(by_name(bailey_tables.table2(seed))["full, documents"].computed == 37 for seed in range(20))


def test_a_wrong_number_is_noticed(monkeypatch):
    changed = bailey_tables.GOLD_GIVEN_BRONZE.copy()
    changed[2] = [0.58, 0.18, 0.24]  # the row for "highly", the wrong way round
    monkeypatch.setattr(bailey_tables, "GOLD_GIVEN_BRONZE", changed)
    monkeypatch.setattr(bailey_tables, "EFFORT_BASED", np.array([[2, 1, 9], [1, 8, 8]]))
    wrong = failures({"table2": bailey_tables.table2(1), "table4": bailey_tables.table4()})
    assert any("pooled kappa bronze, gold" in sentence for sentence in wrong)
    assert any(
        "effort-based A, total of its cells: computed 12, must be 13" in sentence for sentence in wrong
    )
    assert any("effort-based, all highly" in sentence for sentence in wrong)
    assert any("full, documents" in sentence for sentence in wrong)


def test_the_synthetic_samples_have_the_papers_sizes():
    pools = bailey.draw_pools(np.random.default_rng(3))
    assert pools.grade.size == 22_500
    counts = bailey.sample_counts(pools, np.random.default_rng(4).random(22_500))
    assert np.all(counts["full"] == np.maximum(counts["topic"], counts["effort"]))
    assert counts["topic"].sum(axis=1) == pytest.approx(0.1 * pools.available.sum(axis=1), abs=0.5)
    assert counts["effort"].sum(axis=0) / pools.available.sum(axis=0) == pytest.approx(
        [0.03, 0.28, 0.42], abs=1e-3
    )
    # 91 in the paper; the pools differ from the paper's
    assert counts["full"].sum() / 33 == pytest.approx(91, abs=9)


@pytest.mark.usefixtures("small_pools")
def test_the_literal_formula_errs_more_than_the_others_and_all_judgments_not_at_all():
    pools = bailey.draw_pools(np.random.default_rng(5))
    truth = bailey.scores(pools, "infNDCG", pools.grade, "ht")
    numbers = np.random.default_rng(6).random(pools.grade.size)
    grade = bailey.sampled_grades(pools, bailey.sample_counts(pools, numbers)["full"], numbers)
    error = {
        form: bailey.agreement(truth, bailey.scores(pools, "infNDCG", grade, form)).error_of_means
        for form in ("printed", "ht", "literal")
    }
    assert error["literal"] > 2 * max(error["ht"], error["printed"])
    same = bailey.agreement(truth, bailey.scores(pools, "infNDCG", pools.grade, "printed"))
    assert (same.tau_by_topic > 0.999, same.refused) == (True, 0)
    assert same.error_by_topic == pytest.approx(0, abs=1e-12)


@pytest.mark.usefixtures("small_pools")
def test_gold_that_differs_from_bronze_is_what_the_program_says_it_is():
    pools = bailey.draw_pools(np.random.default_rng(7))
    identity = np.eye(3)
    # gold equal to bronze: the strata tell everything, and the difference form makes no error
    exact = bailey.gold_agreement(pools, identity, "infNDCG", "difference", [1])
    assert exact.error_by_topic == pytest.approx(0, abs=1e-12)
    noisy = bailey.gold_agreement(pools, bailey_tables.GOLD_GIVEN_BRONZE, "infNDCG", "difference", [1])
    assert noisy.error_by_topic > 0.02


@pytest.mark.usefixtures("small_pools")
def test_the_program_prints_json_with_all_keys_the_same_for_the_same_seed(capsys):
    for _ in range(2):
        bailey_tables.main(["--json", "--trials", "2", "--seed", "9"])
    text = capsys.readouterr().out
    half = len(text) // 2
    assert text[:half] == text[half:]
    made = json.loads(text[:half])
    assert list(made) == KEYS
    assert {line["name"] for line in made["forms"]} >= {"infAP difference: RMSe of means"}
    assert all(np.isfinite(line["computed"]) for lines in made.values() for line in lines)


@pytest.mark.parametrize("arguments", [["--trials", "1"], ["--seed", "-1"]])
def test_impossible_arguments_are_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        bailey_tables.main(arguments)
    assert "trials must be at least 2 and seed at least 0" in capsys.readouterr().err


# ---- which_audit.py -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2008])
def test_each_strategy_is_good_for_what_the_documentation_says(seed):
    made = which_audit.standard_errors(seed)
    least = {code: min(made, key=lambda name: made[name][code]) for code in which_audit.QUESTIONS}
    assert least == {"pair": "risk, for the pair", "pairs": "risk", "runs": "risk", "relevant": "rare"}
    assert made["influence, for the pair"]["pair"] < made["simple"]["pair"] / 1.8
    assert made["influence"]["pairs"] < made["simple"]["pairs"]
    assert made["rare"]["pairs"] > made["simple"]["pairs"]


def test_the_program_of_the_strategies_prints_one_line_each_and_json(capsys):
    names = [one.key for one in strategies_for(has_whole_topics=False)]
    assert which_audit.main([]) == 0
    text = capsys.readouterr().out
    assert all(f"\n{name:22}" in text for name in names)
    assert which_audit.main(["--json"]) == 0
    assert list(json.loads(capsys.readouterr().out))[: len(names)] == names
    with pytest.raises(SystemExit):
        which_audit.main(["--seed", "-1"])
