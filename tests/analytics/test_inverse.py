"""The papers' corrections: exact enumeration with a known matrix, refusals, intervals, and the assumption test."""

from itertools import product

import numpy as np
import pytest
from audits import inverse

from analytics.estimation.estimate import Estimate, Refusal
from analytics.estimation.samples import Labels
from analytics.estimation.targets import TargetWeights, as_targets
from analytics.papers.assumption import AuditedLabels, assumption_test
from analytics.papers.goldberg import corrected_value
from analytics.papers.intervals import corrected_interval, dirichlet_interval, fieller
from analytics.papers.inverse import Matrices, _inverse, label_scores, matrix_inverse
from analytics.papers.refusals import separation_refusal
from experiments.papers.inverse import matrix_inverse_with_replacement
from sampling.measures.sparse import from_dense

MATRICES = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.7, 0.3], [0.25, 0.75]]])
GOLD = np.full((2, 2), 50.0)
GAINS = np.array([0.0, 1.0])


def chance_of(assessor, grade, given):
    """Return the chance of all the given labels together."""
    return float(np.prod(MATRICES[assessor, grade, given]))


# -- exact enumeration ---------------------------------------------------------------------------------------


def test_with_known_matrices_the_poisson_form_and_its_variance_are_unbiased():
    # three items; item 0 is judged by both assessors, the others by one
    w, pi, prior = np.array([0.7, -0.4, 0.2]), np.array([0.9, 0.3, 0.6]), np.array([0.4, 0.4, 0.2])
    grade = np.array([1, 0, 1])
    item, assessor = np.array([0, 0, 1, 2]), np.array([0, 1, 1, 0])
    values, chances, expected = [], [], 0.0
    for taken in product([False, True], repeat=3):
        drawn = np.array(taken)
        chance = np.prod(np.where(drawn, pi, 1 - pi))
        total = float((prior * w).sum())
        if not drawn.any():
            values.append(total)
            chances.append(chance)
            continue
        mine = drawn[item]
        position = (np.cumsum(drawn) - 1)[item[mine]]
        for labels in product([0, 1], repeat=int(mine.sum())):
            given = np.array(labels)
            q = chance * chance_of(assessor[mine], grade[item[mine]], given)
            targets = as_targets(w[drawn])
            matrices = Matrices(
                MATRICES,
                GOLD,
                Labels(
                    position,
                    assessor[mine],
                    given,
                    n_items=int(drawn.sum()),
                    n_assessors=2,
                    n_grades=2,
                ),
            )
            mixes = matrices.mixes(targets.times(1 / pi[drawn]))
            found = _inverse(targets, pi[drawn], matrices, mixes, GAINS, prior[drawn])
            values.append(total + found.value[0])
            chances.append(q)
            expected += q * (found.parts[0][0] + found.parts[1][0])
    values, chances = np.array(values), np.array(chances)
    truth = float(w @ grade)
    assert chances.sum() == pytest.approx(1)
    assert chances @ values == pytest.approx(truth, abs=1e-12)
    assert expected == pytest.approx(chances @ (values - truth) ** 2, abs=1e-12)


def test_with_known_matrices_the_form_with_replacement_and_its_variance_are_unbiased():
    q, contrast, grade = np.array([0.5, 0.3, 0.2]), np.array([0.7, -0.4, 0.2]), np.array([1, 0, 1])
    values, chances, expected = [], [], 0.0
    for draw in product(range(3), repeat=2):
        for labels in product([0, 1], repeat=2):
            items, given, assessor = np.array(draw), np.array(labels), np.array([0, 1])
            found = matrix_inverse_with_replacement(
                contrast[items] / q[items],
                label_assessor=assessor,
                label_grade=given,
                matrices=MATRICES[[0, 0]],
                gold_per_grade=GOLD,
                gains=GAINS,
                fewest=2,
            )
            p = np.prod(q[items]) * np.prod(MATRICES[0][grade[items], given])
            values.append(found.value)
            chances.append(p)
            expected += p * dict(found.components)["drawing"]
    values, chances = np.array(values), np.array(chances)
    truth = float(contrast @ grade)
    assert chances @ values == pytest.approx(truth, abs=1e-12)
    assert expected == pytest.approx(chances @ (values - truth) ** 2, abs=1e-12)


def test_the_variance_of_the_matrix_follows_from_resampling_its_gold():
    rng = np.random.default_rng(2)
    given = np.repeat([0, 1], [180, 120])
    values = []
    for _ in range(4000):
        rows = np.stack([rng.multinomial(400, row) for row in MATRICES[0]]) / 400
        values.append(float(label_scores(rows, GAINS)[given].mean()))
    found = inverse(
        np.full(300, 1 / 300),
        draw_probability=np.ones(300),
        label_item=np.arange(300),
        label_assessor=np.zeros(300, dtype=int),
        label_grade=given,
        matrices=MATRICES[:1],
        gold_per_grade=[[400, 400]],
        gains=GAINS,
    )[0]
    assert dict(found.components)["confusion matrices"] == pytest.approx(np.var(values), rel=0.08)


# -- one call ------------------------------------------------------------------------------------------------


def call(n=40, grade=None, **changes):
    """Return the first result for n items with one label each, all of weight 1/n."""
    given = np.arange(n) % 2 if grade is None else grade
    arguments = {
        "draw_probability": np.ones(n),
        "label_item": np.arange(n),
        "label_assessor": np.zeros(n, dtype=int),
        "label_grade": given,
        "matrices": MATRICES[:1],
        "gold_per_grade": [[50, 50]],
        "gains": GAINS,
    }
    return inverse(np.full(n, 1 / n), **(arguments | changes))[0]


def test_one_assessor_on_a_whole_pool_is_goldbergs_equation_5():
    found = call()
    assert found.value == pytest.approx(corrected_value(0.5, 0.8, 0.9))
    assert found.sources == ("drawing", "label noise", "confusion matrices")


def test_a_matrix_without_observed_errors_still_has_an_error():
    found = call(matrices=[np.eye(2)])
    assert found.value == pytest.approx(0.5)
    # both grades: share 1/2, half an error in 51, 50 gold labels
    assert found.standard_error == pytest.approx(np.sqrt(2 * 0.5**2 * (0.5 / 51) * (50.5 / 51) / 50))


def test_three_grades_agree_with_the_printed_scores():
    matrix = [[0.8, 0.15, 0.05], [0.2, 0.6, 0.2], [0.05, 0.15, 0.8]]
    found = call(
        n=30,
        grade=np.repeat([0, 1, 2], [9, 9, 12]),
        matrices=[matrix],
        gold_per_grade=[[400, 500, 600]],
        gains=[1, 0.5, 0],
        rng=np.random.default_rng(1),
    )
    assert found.value == pytest.approx(0.433333, abs=6e-7)  # fixture F7


# -- refusals ------------------------------------------------------------------------------------------------


def test_a_grade_without_gold_is_refused():
    found = call(matrices=[[[0.9, 0.1], [0.0, 0.0]]], gold_per_grade=[[50, 0]])
    assert isinstance(found, Refusal)
    assert "no gold label of true grade 1" in found.reason


@pytest.mark.parametrize(("rate", "about"), [(0.8, 4), (0.65, 20), (0.6, 47), (0.55, 191)])
def test_a_weak_matrix_is_refused_with_the_gold_it_lacks(rate, about):
    # symmetric judge, D = .6 .3 .2 .1: docs/methods/derivations/noise-correction.md, section 6.1
    matrix = np.array([[rate, 1 - rate], [1 - rate, rate]])
    n = about / 2
    found = separation_refusal(matrix * n)
    assert isinstance(found, Refusal)
    assert separation_refusal(matrix * 3 * about) is None


def test_a_judge_no_better_than_chance_is_refused_without_a_promise():
    found = call(matrices=[[[0.4, 0.6], [0.6, 0.4]]])
    assert isinstance(found, Refusal)
    assert found.needed is None
    assert "chance" in found.reason


def test_three_grades_that_labels_hardly_separate_are_refused():
    flat = np.array([[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.3, 0.3, 0.4]])
    found = separation_refusal(flat * 30, np.random.default_rng(1))
    assert isinstance(found, Refusal)
    assert "Pr(det J > 0)" in found.reason
    assert separation_refusal(flat * 3000, np.random.default_rng(1)) is None


def test_labels_that_cannot_come_from_the_matrix_are_refused():
    # j = .95 far above the sensitivity .8
    found = call(n=400, grade=(np.arange(400) % 20 != 0).astype(int), gold_per_grade=[[5000, 5000]])
    assert isinstance(found, Refusal)
    assert "cannot come from these matrices" in found.reason


def test_two_impossible_runs_have_no_difference():
    # j = .95 far above the sensitivity .8: of one run all items, of the other all but twenty
    n = 400
    weights = np.full((2, n), 1 / n)
    weights[1, :20] = 0
    given = {
        "draw_probability": np.ones(n),
        "matrices": MATRICES[:1],
        "gold_per_grade": [[5000, 5000]],
        "gains": GAINS,
    }
    for often, is_refused in ((20, True), (2, False)):  # the second is the control
        grade = (np.arange(n) % often != 0).astype(int)
        labels = Labels(np.arange(n), np.zeros(n, dtype=int), grade, n_items=n, n_assessors=1, n_grades=2)
        found = matrix_inverse(TargetWeights(from_dense(weights)), labels, **given)
        assert [isinstance(one, Refusal) for one in found] == [is_refused] * 3
    assert found[2].value == pytest.approx(found[0].value - found[1].value)


def test_fewer_than_ten_items_are_refused():
    assert isinstance(call(n=9), Refusal)
    assert isinstance(call(n=10), Estimate)


def test_impossible_labels_are_named():
    with pytest.raises(ValueError, match="label_grade must be at most 1, got 2"):
        call(grade=np.full(40, 2))
    with pytest.raises(ValueError, match="got 0 for item 39"):
        call(label_item=np.minimum(np.arange(40), 38))
    with pytest.raises(ValueError, match="sum to 1"):
        call(matrices=[[[0.9, 0.2], [0.2, 0.8]]])
    with pytest.raises(ValueError, match="invertible"):
        label_scores([[0.5, 0.5], [0.5, 0.5]], [0, 1])


# -- intervals of one number ---------------------------------------------------------------------------------


def test_every_value_fieller_leaves_out_is_rejected_and_every_value_inside_is_not():
    a, va, b, vb, vab = 0.28, 0.00114, 0.7, 0.001, 0.00064
    found = fieller(a, va, b, vb, vab)

    def z(ratio):
        return abs(a - ratio * b) / np.sqrt(va + ratio**2 * vb - 2 * ratio * vab)

    assert z(found.low) == pytest.approx(1.959964, abs=1e-6)
    assert z(found.high) == pytest.approx(1.959964, abs=1e-6)
    assert z((found.low + found.high) / 2) < 1.9


def test_fieller_with_added_errors_covers_in_simulation():
    # .9 / .8, truth .4, 30 gold a grade: docs/methods/derivations/noise-correction.md, section 6.3
    rng = np.random.default_rng(3)
    inside = []
    for _ in range(1500):
        j = rng.binomial(1000, 0.4 * 0.9 + 0.6 * 0.2) / 1000
        found = corrected_interval(
            j, j * (1 - j) / 1000, (rng.binomial(30, 0.9), 30), (rng.binomial(30, 0.8), 30)
        )
        inside.append(isinstance(found, Refusal) or found.low <= 0.4 <= found.high)
    assert 0.94 <= np.mean(inside) <= 0.98


def test_the_trec_audit_that_cannot_be_inverted_is_refused():
    # j = .513 against a sensitivity of 7/25 = .28: "corrected" 3.68 in the paper
    found = corrected_interval(0.513, 0.2596**2 / 50, (7, 25), (92, 114))
    assert isinstance(found, Refusal)
    assert isinstance(corrected_interval(0.5, 0.001, (0, 0), (5, 10)), Refusal)


def test_dirichlet_draws_agree_with_fieller_for_two_grades():
    counts, labels = [[160, 40], [20, 180]], [520, 480]
    drawn = dirichlet_interval(counts, labels, [0, 1], rng=np.random.default_rng(4), draws=8000)
    exact = corrected_interval(0.48, 0.48 * 0.52 / 1000, (180, 200), (160, 200))
    assert (drawn.low, drawn.high) == pytest.approx((exact.low, exact.high), abs=0.01)
    assert drawn.accepted > 0.99


def test_dirichlet_draws_refuse_a_matrix_that_separates_nothing():
    found = dirichlet_interval([[5, 5], [5, 5]], [50, 50], [0, 1], rng=np.random.default_rng(4))
    assert isinstance(found, Refusal)
    absent = dirichlet_interval([[5, 5], [0, 0]], [50, 50], [0, 1], rng=np.random.default_rng(4))
    assert "grade 1" in absent.reason


# -- the assumption test -------------------------------------------------------------------------------------


def audit(rng, n, slope):
    """Return an audit of a judge whose specificity falls by `slope` per unit of log popularity."""
    popularity = np.log(rng.choice([1, 2, 4, 8], n))
    gold = (rng.random(n) < 0.35).astype(int)
    wrong = np.where(gold == 1, 0.15, 0.15 + slope * popularity)
    return popularity, gold, np.where(rng.random(n) < wrong, 1 - gold, gold)


def p_value(rng, n, slope):
    w, gold, given = audit(rng, n, slope)
    return assumption_test(
        w,
        AuditedLabels(gold_grade=gold, given_grade=given, audit_probability=np.full(n, 0.1), gains=GAINS),
        rng=rng,
        permutations=199,
    ).p_value


def test_the_assumption_test_has_its_size_and_finds_popularity_dependent_errors():
    rng = np.random.default_rng(9)
    size = np.mean([p_value(rng, 150, 0.0) <= 0.05 for _ in range(300)])
    power = np.mean([p_value(rng, 300, 0.2) <= 0.05 for _ in range(60)])
    assert 0.02 <= size <= 0.08
    assert power > 0.9


def test_the_shift_is_the_matrix_inverse_minus_the_difference_estimator():
    rng = np.random.default_rng(10)
    n, m = 1000, 200
    w, gold, given = audit(rng, n, 0.2)
    audited = np.sort(rng.choice(n, m, replace=False))
    g, label = gold[audited], given[audited]
    matrix = np.array([[np.mean(label[g == r] == c) for c in (0, 1)] for r in (0, 1)])
    c = label_scores(matrix, GAINS)
    inverse = float(w @ c[given])
    # the same scores, with their error measured on the audit itself (simple random: N/m)
    difference = inverse + n / m * float(w[audited] @ (g - c[label]))
    found = assumption_test(
        w[audited],
        AuditedLabels(gold_grade=g, given_grade=label, audit_probability=np.full(m, m / n), gains=GAINS),
        rng=rng,
        topic_index=np.arange(m) % 20,
    )
    assert found.shift == pytest.approx(inverse - difference)
    assert found.standard_error > 0
    assert found.topic_t is not None


def test_the_assumption_test_refuses_what_it_cannot_test():
    rng = np.random.default_rng(1)
    few = {"gold_grade": [0, 1], "given_grade": [0, 1], "audit_probability": [0.5, 0.5], "gains": [0, 1]}
    assert isinstance(assumption_test([1.0, 2.0], AuditedLabels(**few), rng=rng), Refusal)
    one = {
        "gold_grade": [0] * 12,
        "given_grade": [0] * 12,
        "audit_probability": [0.5] * 12,
        "gains": [0, 1],
    }
    assert "grade 1" in assumption_test(np.arange(12.0), AuditedLabels(**one), rng=rng).reason


def test_a_single_difference_can_be_corrected_alone():
    """A pair has weights of both signs: no share to check, and nothing to fail on."""
    rng = np.random.default_rng(3)
    matrix = [[0.9, 0.1], [0.2, 0.8]]
    found = inverse(
        np.where(np.arange(40) % 2, 0.1, -0.1),
        draw_probability=np.ones(40),
        label_item=np.arange(40),
        label_assessor=np.zeros(40, dtype=int),
        label_grade=rng.integers(2, size=40),
        matrices=[matrix],
        gold_per_grade=[[100, 100]],
        gains=[0.0, 1.0],
    )
    assert isinstance(found[0], Estimate)
