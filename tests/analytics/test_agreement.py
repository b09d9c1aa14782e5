import itertools

import numpy as np
import pytest

from analytics.agreement.alpha import Alpha, krippendorff_alpha
from analytics.agreement.tiers import (
    Kappa,
    cohen_kappa,
    kappa_histogram,
    kappas_by_topic,
    label_tables,
    scott_pi,
)
from analytics.estimation.estimate import Refusal

# docs/methods/derivations/bailey.md, section 4: B5 and B6; H, P, N of B6 are grades 2, 1, 0
B5 = [[20, 5, 5], [10, 15, 5], [0, 5, 35]]
B6 = np.array([[2, 0, 0], [2, 2, 2], [3, 2, 7]])
B6_POOL = [300, 60, 40]


def pairs(table):
    """One document a count: its labels by both judges."""
    a, b = np.indices(np.shape(table))
    return np.repeat(a.ravel(), np.ravel(table)), np.repeat(b.ravel(), np.ravel(table))


def six(values):
    return pytest.approx(values, abs=5e-7)


def pool_weights(label, pool):
    """Return N_l/n_l of each document's label: what one document of a stratified sample stands for."""
    return (np.array(pool) / np.bincount(label))[label]


# ---- conditional tables ---------------------------------------------------------------------------------------


def test_b6_gold_given_bronze_needs_no_weights():
    bronze, gold = pairs(B6)
    weights = pool_weights(bronze, B6_POOL)
    for weight in (None, weights):
        rows = label_tables(bronze, gold, 3, weight=weight).b_given_a
        assert rows[2] == six((0.25, 0.166667, 0.583333))
        assert rows[1] == six((0.333333, 0.333333, 0.333333))
        assert rows[0] == six((1, 0, 0))


def test_b6_overall_rows_and_bronze_given_gold_need_the_pools_weights():
    bronze, gold = pairs(B6)
    raw = label_tables(bronze, gold, 3)
    assert raw.overall_b == six((0.35, 0.20, 0.45))
    assert raw.a_given_b[2] == six((0, 0.222222, 0.777778))
    assert raw.a_given_b[1] == six((0, 0.5, 0.5))
    assert raw.a_given_b[0] == six((0.285714, 0.285714, 0.428571))
    right = label_tables(bronze, gold, 3, weight=pool_weights(bronze, B6_POOL))
    assert right.overall_b == six((0.825000, 0.066667, 0.108333))
    assert right.a_given_b[2] == six((0, 0.461538, 0.538462))
    assert right.a_given_b[1] == six((0, 0.75, 0.25))
    assert right.a_given_b[0] == six((0.909091, 0.060606, 0.030303))
    assert right.overall_a == six((300 / 400, 60 / 400, 40 / 400))
    assert right.counts.tolist() == B6.tolist()


def test_the_weighted_tables_are_the_pools_over_all_audits():
    """Of four documents two are audited with unequal chances: weighted counts are right on average, raw ones not."""
    bronze, gold = np.array([1, 1, 0, 0]), np.array([1, 0, 0, 1])
    pi = np.array([0.9, 0.4, 0.2, 0.5])
    right, raw = np.zeros((2, 2)), np.zeros((2, 2))
    for chosen in itertools.product([False, True], repeat=4):
        s = np.array(chosen)
        chance = np.prod(np.where(s, pi, 1 - pi))
        if s.any():
            tables = label_tables(bronze[s], gold[s], 2, weight=1 / pi[s])
            right, raw = right + chance * tables.weighted, raw + chance * tables.counts
    assert right == pytest.approx(np.ones((2, 2)))
    assert raw == pytest.approx(np.array([[0.2, 0.5], [0.4, 0.9]]))


def test_a_label_that_nobody_gave_has_a_reason_and_no_row():
    tables = label_tables([0, 0], [1, 0], 3)
    assert tables.b_given_a[0] == (0.5, 0.5, 0)
    assert tables.b_given_a[2] == Refusal("no document has label 2", 1)
    assert tables.a_given_b[2] == Refusal("no document has label 2", 1)


def test_a_tier_without_members_is_refused_by_name():
    nothing = np.zeros(0, dtype=int)
    refusal = Refusal("no document was judged by both tiers", 1)
    assert label_tables(nothing, nothing, 3) == refusal
    assert scott_pi(np.zeros((3, 3))) == cohen_kappa(np.zeros((3, 3))) == refusal


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: label_tables([0, 3], [0, 0], 3), "label_a must be at most 2, got 3"),
        (lambda: label_tables([0, 1], [0, -1], 3), "label_b must be at least 0, got -1"),
        (lambda: label_tables([0, 1], [0], 3), "label_b must have 2 documents, got 1"),
        (lambda: label_tables([0], [0], 1), "n_grades must be at least 2, got 1"),
        (lambda: label_tables([0], [0], 2, weight=[0.0]), "weight must be positive, got 0"),
        (lambda: label_tables([0], [0], 2, weight=[np.nan]), "weight must be finite"),
        (lambda: scott_pi([[1, 2, 3]]), "table must be square"),
        (lambda: scott_pi([[1, -2], [3, 4]]), "table must not be negative, got -2"),
        (lambda: cohen_kappa([[1.5, 2.0], [3.0, 4.0]]), "n must be given for a table of weights"),
        (lambda: kappas_by_topic([0], [0], [1], 1, 2), "topic_index must be at most 0, got 1"),
        (lambda: kappas_by_topic([0], [0], [0, 0], 1, 2), "topic_index must have 1 documents, got 2"),
        (lambda: kappa_histogram([], [0.0]), "edges must rise and be at least 2"),
        (lambda: kappa_histogram([scott_pi(B5)], [0, 0.5]), "edges must hold all kappas"),
    ],
)
def test_impossible_tables_are_refused_with_bound_and_value(call, reason):
    with pytest.raises(ValueError, match=reason):
        call()


# ---- kappa ----------------------------------------------------------------------------------------------------


def test_b5_scotts_pi_is_siegel_and_castellans_kappa():
    first, second = scott_pi(B5), scott_pi([[30, 20], [5, 45]])
    assert (first.observed, first.expected) == six((0.7, 0.346250))
    assert (first.value, first.null_variance, first.z) == six((0.541109, 0.005296, 7.435252))
    assert (second.value, second.expected, second.null_variance) == six((0.488491, 0.511250, 0.010460))
    assert second.z == six(4.776209)
    assert second.n == 100


def test_b5_cohens_kappa_is_another_number():
    assert cohen_kappa(B5).value == six(0.541985)
    assert cohen_kappa([[30, 20], [5, 45]]).value == six(0.5)


def test_the_null_variance_of_cohens_kappa_is_that_of_all_permutations():
    """Over all pairings of the labels of seven documents: the closed form has N where the permutations have N - 1."""
    a, b = np.array([0, 0, 0, 1, 1, 2, 2]), np.array([0, 1, 1, 1, 2, 2, 2])
    values = []
    for order in itertools.permutations(range(7)):
        table = np.zeros((3, 3))
        np.add.at(table, (a, b[list(order)]), 1)
        values.append(cohen_kappa(table).value)
    assert np.mean(values) == pytest.approx(0, abs=1e-12)
    table = np.zeros((3, 3))
    np.add.at(table, (a, b), 1)
    assert cohen_kappa(table).null_variance == pytest.approx(np.var(values) * 6 / 7, rel=1e-12)


def test_perfect_agreement_is_one_and_disagreement_throughout_below_zero():
    assert scott_pi([[5, 0], [0, 5]]).value == cohen_kappa([[5, 0], [0, 5]]).value == 1
    all_disagreeing = scott_pi([[0, 5], [5, 0]])
    assert all_disagreeing.value == -1
    assert all_disagreeing.p_value < 0.01


def test_kappa_without_variation_is_refused():
    assert "same label from both" in scott_pi([[9, 0], [0, 0]]).reason
    assert "same label from both" in cohen_kappa([[9, 0], [0, 0]]).reason
    # one judge gives one label only: Cohen's kappa is 0 by construction and cannot be tested, Scott's pi can
    assert "one judge gave all 9 documents the same label" in cohen_kappa([[5, 4], [0, 0]]).reason
    # labels 14 : 4 of 18, so P(E) = (196 + 16)/324
    assert scott_pi([[5, 4], [0, 0]]).value == pytest.approx((5 / 9 - 212 / 324) / (1 - 212 / 324))


def test_a_table_of_weights_gives_the_pools_kappa_and_the_samples_error():
    bronze, gold = pairs(B6)
    tables = label_tables(bronze, gold, 3, weight=pool_weights(bronze, B6_POOL))
    pool = np.array([[300, 0, 0], [20, 20, 20], [10, 40 / 6, 70 / 3]])
    got = scott_pi(tables.weighted, n=20)
    whole = scott_pi(pool, n=400)
    assert got.value == pytest.approx(whole.value)
    assert got.null_variance == pytest.approx(20 * whole.null_variance)
    assert got.n == 20


def test_kappas_by_topic_are_those_of_each_topics_table():
    a, b = pairs(B5)
    c, d = pairs([[30, 20], [5, 45]])
    label_a, label_b = np.concatenate([a, c, [0, 0]]), np.concatenate([b, d, [0, 0]])
    topic = np.repeat([0, 1, 3], [a.size, c.size, 2])
    one, two, empty, constant = kappas_by_topic(label_a, label_b, topic, 4, 3)
    assert (one.value, two.value) == six((0.541109, 0.488491))
    assert empty == Refusal("no document was judged by both tiers", 1)
    assert isinstance(constant, Refusal)
    histogram = kappa_histogram([one, two, empty, constant])
    assert histogram.refused == 2
    assert histogram.significant == 2
    assert histogram.substantial == 0
    where = dict(zip(histogram.edges[:-1], histogram.counts, strict=True))
    assert where == {edge: 2 if edge == 0.4 else 0 for edge in histogram.edges[:-1]}


def test_a_significant_disagreement_is_not_counted_as_agreement():
    worst = scott_pi([[0, 50], [50, 0]])
    assert isinstance(worst, Kappa)
    histogram = kappa_histogram([worst, scott_pi([[50, 0], [0, 50]])])
    assert (histogram.significant, histogram.substantial) == (1, 1)
    assert (histogram.counts[0], histogram.counts[-1]) == (1, 1)


# ---- alpha ----------------------------------------------------------------------------------------------------

# Krippendorff (2011), section C: four observers, twelve units, missing values
KRIPPENDORFF = """
    1 2 3 3 2 1 4 1 2 . . .
    1 2 3 3 2 2 4 1 2 5 . 3
    . 3 3 3 2 3 4 2 2 5 1 .
    1 2 3 3 2 4 4 1 2 5 1 .
"""


def labels_of(text):
    rows = [line.split() for line in text.strip().splitlines()]
    found = [(item, int(value)) for row in rows for item, value in enumerate(row) if value != "."]
    return np.array(found).T


def by_definition(item, grade, metric):
    """1 - mean disagreement inside documents / mean disagreement of all pairs of pairable labels."""
    pairable = [np.flatnonzero(item == i) for i in np.unique(item) if np.count_nonzero(item == i) > 1]
    values = grade[np.concatenate(pairable)]
    n = np.bincount(values)

    def distance(c, k):
        if metric == "nominal":
            return float(c != k)
        if metric == "interval":
            return float((c - k) ** 2)
        low, high = min(c, k), max(c, k)
        return float((n[low : high + 1].sum() - (n[c] + n[k]) / 2) ** 2)

    inside = sum(
        sum(distance(grade[i], grade[j]) for i in places for j in places if i != j) / (len(places) - 1)
        for places in pairable
    )
    total = sum(distance(c, k) for i, c in enumerate(values) for j, k in enumerate(values) if i != j)
    return 1 - inside / (total / (len(values) - 1))


@pytest.mark.parametrize(
    ("metric", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_alpha_is_that_of_krippendorffs_example(metric, published):
    item, grade = labels_of(KRIPPENDORFF)
    got = krippendorff_alpha(item, grade, metric=metric)
    assert got.value == pytest.approx(published, abs=5e-4)
    assert got.value == pytest.approx(by_definition(item, grade, metric), rel=1e-12)
    assert (got.n_documents, got.n_labels) == (11, 40)


@pytest.mark.parametrize("metric", ["nominal", "ordinal", "interval"])
def test_alpha_is_its_definition_on_random_labels_with_gaps(metric):
    rng = np.random.default_rng(11)
    item = rng.integers(0, 15, 50)
    grade = np.clip(item % 4 + rng.integers(-1, 2, 50), 0, 4)
    got = krippendorff_alpha(item, grade, metric=metric, n_grades=6)
    assert got.value == pytest.approx(by_definition(item, grade, metric), rel=1e-12)


def test_the_order_of_labels_and_unused_grades_change_nothing():
    item, grade = labels_of(KRIPPENDORFF)
    order = np.random.default_rng(1).permutation(item.size)
    first = krippendorff_alpha(item, grade, metric="ordinal", seed=4)
    assert krippendorff_alpha(item[order] + 7, grade[order], metric="ordinal", n_grades=9, seed=4) == first


def test_for_two_complete_judges_alpha_is_scotts_pi_with_a_small_sample_correction():
    a, b = pairs(B5)
    alpha = krippendorff_alpha(np.tile(np.arange(100), 2), np.concatenate([a, b])).value
    # alpha = 1 - (1 - pi)(2N - 1)/2N
    assert alpha == pytest.approx(1 - (1 - scott_pi(B5).value) * 199 / 200, rel=1e-12)


def test_the_bootstrap_interval_covers_the_alpha_of_the_population():
    """120 documents of two labels that agree with probability .8: 95 % of 100 intervals, +- 4 standard errors."""
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(100):
        first = rng.integers(0, 2, 120)
        second = np.where(rng.random(120) < 0.8, first, 1 - first)
        got = krippendorff_alpha(np.tile(np.arange(120), 2), np.concatenate([first, second]), replicates=400)
        covered += got.interval[0] <= 0.6 <= got.interval[1]
    assert covered / 100 == pytest.approx(0.95, abs=4 * (0.95 * 0.05 / 100) ** 0.5)


def test_the_same_seed_gives_the_same_interval():
    item, grade = labels_of(KRIPPENDORFF)
    first, second, other = (krippendorff_alpha(item, grade, seed=seed) for seed in (3, 3, 4))
    assert first == second
    assert first.interval != other.interval
    assert first.interval[0] < first.value < first.interval[1]


def test_alpha_of_one_assessor_and_of_one_label_is_refused():
    assert krippendorff_alpha([0, 1, 2], [0, 1, 0]) == Refusal("no document has labels of 2 assessors", 1)
    assert krippendorff_alpha([], []) == Refusal("no document has labels of 2 assessors", 1)
    same = krippendorff_alpha([0, 0, 1, 1, 2], [1, 1, 1, 1, 0])
    assert same == Refusal("all labels of the 2 documents with 2 or more are the same")


def test_assessors_who_always_disagree_get_an_alpha_below_zero():
    got = krippendorff_alpha(np.repeat(np.arange(20), 2), np.tile([0, 1], 20))
    # inside documents every pair differs; of all 40 x 39 pairs 800 do
    assert got.value == pytest.approx(1 - 1 / (800 / (40 * 39)))


def test_an_interval_from_few_documents_or_from_almost_no_variation_is_refused():
    few = krippendorff_alpha([0, 0, 1, 1], [0, 0, 1, 0])
    assert isinstance(few, Alpha)
    assert few.interval == Refusal("2 documents with 2 labels or more; an interval needs 10", 8)
    rare = krippendorff_alpha(np.repeat(np.arange(30), 2), np.append(np.zeros(59, dtype=int), 1))
    # the one document with another label is missing from (29/30)^30 = 36 % of the samples
    assert "of the bootstrap's samples have one label only" in rare.interval.reason
    assert 0.32 < float(rare.interval.reason.split("%")[0]) / 100 < 0.40


@pytest.mark.parametrize(
    ("grade", "settings", "reason"),
    [
        ([0, 1], {"metric": "ratio"}, "metric must be nominal, ordinal or interval, got 'ratio'"),
        ([0, 1], {"replicates": 10}, "replicates must be at least 100, got 10"),
        ([0, 3], {"n_grades": 3}, "label_grade must be at most 2, got 3"),
        ([0], {}, "label_grade must have 2 labels, got 1"),
        ([0, -1], {}, "label_grade must be at least 0, got -1"),
    ],
)
def test_impossible_labels_are_refused(grade, settings, reason):
    with pytest.raises(ValueError, match=reason):
        krippendorff_alpha([0, 0], grade, **settings)
