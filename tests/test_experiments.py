"""experiments/schnabel_synth.py: the paper's SYNTH comes out, and a wrong SYNTH is noticed."""

import doctest
import importlib
import json
import math
import pkgutil
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binom, kendalltau, norm

from experiments import papers, schnabel_synth
from experiments.papers.designs import baseline_design, pair_design, single_design
from experiments.papers.forecasts import design_variance, expected_design_variance
from experiments.parts import paper, synth, tables
from experiments.parts.designs import (
    baseline_comparison,
    draw_estimates,
    pair_comparisons,
    ranking_comparison,
    single_designs,
)
from experiments.parts.figures import kendall_tau, picture, right_signs
from experiments.parts.rows import Report, as_json, as_text, failures, row
from sampling.measures.families import run_weights
from sampling.sizes import UnsupportedWeightError

KEYS = ["table2", "table3", "table4", "table5", "table6", "table7", "figure1", "figure2", "figure3"]


@pytest.fixture(scope="module")
def expected() -> synth.Synth:
    return synth.expected_synth()


@pytest.fixture(scope="module")
def few_grades() -> synth.GradeArray:
    return synth.draw_grades(20, np.random.default_rng(4))


@pytest.fixture(scope="module")
def made() -> Report:
    return schnabel_synth.report(trials=6, seed=3, pairs_themselves=False)


def planted(report: Report) -> list[str]:
    return [sentence.split(":")[0] for sentence in failures(report)]


# ---- the data -------------------------------------------------------------------------------------------------


def test_the_closed_form_gives_the_scores_of_section_2(expected: synth.Synth) -> None:
    # docs/methods/derivations/schnabel.md, section 2
    wanted = [284.5893, 277.8191, 271.4760, 275.1276, 270.0470]
    assert synth.true_scores(expected) == pytest.approx(wanted, abs=1e-4)
    assert tables.shallow_pool(expected) == pytest.approx([16.990, 10.015, 8.508, 4.718, 0.0], abs=6e-4)
    # Lambda, section 2: the natural logarithm
    assert run_weights(synth.DCG, synth.system_ranks()[0], 1).sum() == pytest.approx(314.7633, abs=5e-5)


def test_the_best_place_has_the_expected_grade_of_the_best_of_2000(expected: synth.Synth) -> None:
    first = expected.place == 1
    # E[u] = sum over g of P(somebody of 2,000 has at least g)
    at_least = [1 - (1 - c) ** 2000 for c in (0.005, 0.035, 0.21, 0.46)]
    assert (expected.share * expected.grade)[first].sum() == pytest.approx(sum(at_least), abs=1e-12)


def test_every_system_ranks_every_item_once() -> None:
    ranks = synth.system_ranks()
    assert (np.sort(ranks, axis=1) == np.arange(1, 2001)).all()
    assert ranks[1, [0, 74, 75]].tolist() == [75, 1, 76]
    assert ranks[3, [0, 1996, 1997, 1999]].tolist() == [4, 2000, 1, 3]
    assert ranks[4, [0, 1993]].tolist() == [8, 1]


def test_drawn_grades_have_the_probabilities_and_are_sorted(few_grades: synth.GradeArray) -> None:
    share = np.bincount(few_grades.ravel(), minlength=5) / few_grades.size
    error = np.sqrt(np.array(synth.GRADE_PROBABILITIES) / few_grades.size)
    assert (np.abs(share - synth.GRADE_PROBABILITIES) < 4 * error).all()
    assert (np.diff(few_grades.astype(int), axis=1) <= 0).all()


def test_cells_are_the_pairs_added_up(few_grades: synth.GradeArray) -> None:
    cells = synth.synth_of_grades(few_grades)
    weights, prior, utility = synth.every_pair(few_grades, [0, 1, 2, 3, 4])
    scores = synth.user_scores(few_grades)
    assert scores.mean(axis=1) == pytest.approx((weights * utility).sum(axis=1), rel=1e-12)
    assert synth.true_scores(cells) == pytest.approx((weights * utility).sum(axis=1), rel=1e-12)

    first = single_design(weights[0], prior[0])
    of_cells = single_designs(cells, 0)["Q*"]
    assert design_variance(of_cells, cells.grade, cells.weights[0]) == pytest.approx(
        design_variance(first, utility, weights[0]), rel=1e-10
    )
    # true utilities: a cell's probability is the sum of its pairs'
    pair = pair_design(weights[0], weights[1], utility)
    of_cells = pair_design(cells.weights[0], cells.weights[1], cells.grade)
    assert design_variance(of_cells, cells.grade, cells.weights[0] - cells.weights[1]) == pytest.approx(
        design_variance(pair, utility, weights[0] - weights[1]), rel=1e-10
    )
    compared = baseline_comparison(cells)
    others = baseline_design(weights[[0, 1, 2, 4]], weights[3], prior.mean(axis=0))
    assert design_variance(compared.optimal[0], cells.grade, compared.targets[0]) == pytest.approx(
        design_variance(others, utility, weights[0] - weights[3]), rel=1e-10
    )


def test_scores_of_users_vary_as_four_nested_binomials_say() -> None:
    # a user's DCG is the sum over g of Lambda(N_g), N_g = items of grade >= g; N_h given N_g is binomial again
    weights = run_weights(synth.DCG, synth.system_ranks()[1], 1)
    total = np.concatenate([[0.0], np.cumsum(weights)])
    count, at_least = np.arange(2001), (0.46, 0.21, 0.035, 0.005)
    chance = [binom.pmf(count, 2000, c) for c in at_least]
    mean = sum((p * total).sum() for p in chance)
    square = sum((p * total**2).sum() for p in chance)
    for g, h in combinations(range(4), 2):
        for n in np.flatnonzero(chance[g] > 1e-9):
            inner = (binom.pmf(count[: n + 1], n, at_least[h] / at_least[g]) * total[: n + 1]).sum()
            square += 2 * chance[g][n] * total[n] * inner
    grades = synth.draw_grades(2000, np.random.default_rng(6))
    sd = math.sqrt(square - mean**2)
    assert mean == pytest.approx(277.8191, abs=1e-4)
    assert synth.user_scores(grades)[1].std() == pytest.approx(sd, rel=4 / math.sqrt(2 * 2000))


# ---- the tables -----------------------------------------------------------------------------------------------


def test_all_rows_of_a_short_run_are_as_demanded(made: Report) -> None:
    assert failures(made) == []
    assert list(made) == KEYS


def test_the_json_has_a_name_a_paper_value_and_a_computed_value_in_every_row(made: Report) -> None:
    read = json.loads(json.dumps(as_json(made), allow_nan=False))
    assert list(read) == KEYS
    for part, lines in read.items():
        names = [line["name"] for line in lines]
        assert len(names) == len(set(names)) > 5
        for line in lines:
            assert {"name", "paper", "computed"} <= line.keys()
            unknown = line["name"].startswith("TREC ")  # no folder of runs was given
            assert (line["computed"] is None) == unknown
            assert (line["paper"] is None) <= bool(line["note"] or line["expected"] is not None)
            if unknown:
                assert part.startswith("table")
                is_named = part in ("table2", "table3", "table4")
                assert line["note"] == (paper.TREC_ABSENT if is_named else paper.TREC_REASON)


def test_the_text_has_every_row_and_every_title(made: Report) -> None:
    text = as_text(schnabel_synth.HEADINGS, made)
    assert all(line.name in text for lines in made.values() for line in lines)
    assert all(title in text for title in schnabel_synth.HEADINGS.values())
    assert "284.40   284.5893  ok: 284.5893 +- 0.0001" in text


def test_tables_5_to_7_are_those_of_section_2(made: Report) -> None:
    # docs/methods/derivations/schnabel.md, section 2: naive u~, naive u*, Q* u~, Q* u*
    wanted = {
        "table5": [2.1828, 1.1381, 0.2464, 0.2100],
        "table6": [1.3175, 0.7029, 0.1842, 0.1522],
        "table7": [0.8661, 0.4668, 0.1107, 0.0948],
    }
    for table, values in wanted.items():
        assert [line.computed for line in made[table][:4]] == pytest.approx(values, abs=1e-4)


def test_a_shift_by_5_is_noticed(
    few_grades: synth.GradeArray, made: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = synth.system_ranks()
    right[3] = (np.arange(2000) + 5) % 2000 + 1
    monkeypatch.setattr(synth, "system_ranks", lambda: right)
    on = tables.data(synth.expected_synth(), few_grades, trials=2, seed=1)
    wrong = planted({"table5": tables.table5(on, pairs_themselves=False), "table6": tables.table6(on)})
    assert {"table5, Q*, u~", "table6, naive, u~"} <= set(wrong)
    assert tables.shallow_pool(on.expected)[3] == 0.0  # the paper has 4.72


def test_other_grades_are_noticed(few_grades: synth.GradeArray, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synth, "GRADE_PROBABILITIES", (0.54, 0.25, 0.17, 0.035, 0.005))
    on = tables.data(synth.expected_synth(), few_grades, trials=2, seed=1)
    assert "table7, naive, u~" in planted({"table7": tables.table7(on)})


def test_the_deep_pool_sd_is_that_of_all_its_samples() -> None:
    scores = np.random.default_rng(2).gamma(2.0, size=(1, 800))  # 5 * 800 / 2000 = 2 users
    means = [(scores[0, a] + scores[0, b]) / 2 for a, b in combinations(range(800), 2)]
    assert tables.deep_pool_sd(scores) == pytest.approx([np.std(means)], rel=1e-9)


def test_the_last_rank_with_prior_0_is_forgiven_only_while_its_grade_is_0(expected: synth.Synth) -> None:
    q = single_designs(expected, 0)["Q*"]
    last = expected.ranks[0] == 2000
    assert q[last].tolist() == [0.0]
    assert expected.grade[last].tolist() == [0.0]
    relevant = np.where(last, 1.0, expected.grade)
    with pytest.raises(UnsupportedWeightError, match="outside the design's support"):
        design_variance(q, relevant, expected.weights[0])
    # a corrected noisy label of grade 0 has a second moment, section 8: .183673
    moment = np.maximum(expected.grade**2, 0.183673)
    with pytest.raises(UnsupportedWeightError, match="outside the design's support"):
        expected_design_variance(q, expected.grade, moment, expected.weights[0])


def test_samples_of_5_a_user_estimate_a_score_without_bias(expected: synth.Synth) -> None:
    rng = np.random.default_rng(8)
    q = single_designs(expected, 2)["Q*"]
    drawn = [draw_estimates(expected, q, expected.weights[[2]], [5000], rng)[0][0] for _ in range(60)]
    values = np.array([result.value for result in drawn])
    sd = math.sqrt(design_variance(q, expected.grade, expected.weights[2]) / 5000)
    assert abs(values.mean() - 271.4760) < 4 * sd / math.sqrt(60)
    assert 0.65 * sd < values.std(ddof=1) < 1.4 * sd


# ---- the figures ----------------------------------------------------------------------------------------------


def test_the_normal_approximation_gives_the_curves_of_figure_1(expected: synth.Synth) -> None:
    for d, design in enumerate(("naive", "optimal")):
        for budget, wanted in zip(paper.BUDGETS[2:], paper.EXPECTED_CURVES["figure1"][d][2:], strict=True):
            right = []
            for pair in pair_comparisons(expected, paper.SYSTEMS):
                target = pair.targets[0]
                variance = design_variance(getattr(pair, design)[0], expected.grade, target)
                difference = abs((target * expected.grade).sum())
                right.append(norm.cdf(difference / math.sqrt(variance / (budget * 6000))))
            assert np.mean(right) == pytest.approx(wanted, abs=0.02)


def test_kendall_tau_is_scipys_where_nothing_is_tied() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        first, second = rng.normal(size=(2, 5))
        assert kendall_tau(first, second) == pytest.approx(kendalltau(first, second).statistic)
    assert kendall_tau(np.zeros(3), np.array([1.0, 2.0, 3.0])) == 0.0
    assert right_signs(np.array([2.0, -1.0, 0.0]), np.array([1.0, 1.0, 1.0])) == pytest.approx(1 / 3)


def test_the_ranking_is_about_differences_from_the_mean(expected: synth.Synth) -> None:
    targets = ranking_comparison(expected).targets
    assert np.abs(targets.sum(axis=0)).max() < 1e-12
    difference = (targets * expected.grade).sum(axis=1)
    assert difference[0] - difference[4] == pytest.approx(284.5893 - 270.0470, abs=2e-4)


def test_a_picture_is_the_same_twice_and_names_its_axes(made: Report) -> None:
    drawn = picture("figure1", made["figure1"])
    assert drawn == picture("figure1", made["figure1"])
    assert "Figure 1 on SYNTH" in drawn
    for words in ("judgments per user", "share of right verdicts", "naive", "Q*", "<desc"):
        assert words in drawn
    assert "script" not in drawn
    assert "var(--" not in drawn


# ---- the program ----------------------------------------------------------------------------------------------


def test_the_program_says_in_words_what_was_not_reproduced_and_fails(
    made: Report, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = row("Q*, u~", 0.24, 0.30, expected=0.2464, tolerance=0.004)
    monkeypatch.setattr(schnabel_synth, "report", lambda *_, **__: {**made, "table5": [wrong]})
    assert schnabel_synth.main(["--json"]) == 1
    printed = capsys.readouterr()
    assert list(json.loads(printed.out)) == KEYS
    assert printed.err == "not reproduced: table5, Q*, u~: computed 0.3, must be 0.2464 +- 0.004\n"


def test_the_program_refuses_one_trial(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        schnabel_synth.main(["--trials", "1"])
    assert "trials must be at least 2" in capsys.readouterr().err


@pytest.mark.slow
def test_the_same_seed_prints_the_same_twice(capsys: pytest.CaptureFixture[str], tmp_path: object) -> None:
    printed = []
    for seed in ("5", "5", "6"):
        assert schnabel_synth.main(["--quick", "--trials", "4", "--json", "--seed", seed]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert printed[0] != printed[2]


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(papers.__path__)])
def test_the_examples_of_a_papers_functions_are_right(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"experiments.papers.{name}"))
    assert result.failed == 0
