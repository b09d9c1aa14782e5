"""The assumption test: its identity, exactness by enumeration, its standard error, and the words that are shown."""

import json
from itertools import permutations

import numpy as np
import pytest

from analytics.estimation.estimate import Refusal
from analytics.papers.assumption import (
    AssumptionResult,
    AuditedLabels,
    assumption_result,
    assumption_sentences,
    assumption_test,
    popularity_bands,
    popularity_thirds,
)
from analytics.papers.inverse import label_scores

GAINS = np.array([0.0, 1.0])


def judged(rng, n, slope, pi=None):
    """Return labels of a judge whose specificity falls by `slope` per unit of log popularity, as keywords."""
    log_runs = np.log(rng.choice([1, 2, 4, 8], n, p=[0.5, 0.2, 0.2, 0.1]))
    gold = (rng.random(n) < 0.35).astype(int)
    wrong = np.where(gold == 1, 0.15, 0.15 + slope * log_runs)
    given = np.where(rng.random(n) < wrong, 1 - gold, gold)
    probability = np.full(n, 0.1) if pi is None else pi(log_runs)
    return log_runs, {
        "gold_grade": gold,
        "given_grade": given,
        "audit_probability": probability,
        "gains": GAINS,
    }


def test_the_p_value_is_that_of_all_permutations_inside_grades():
    w = np.log([1, 2, 3, 4, 5, 6, 1, 2, 3, 8, 9, 7])
    gold = np.array([0] * 6 + [1] * 6)
    given = np.array([0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1, 1])
    found = assumption_test(
        w,
        AuditedLabels(gold_grade=gold, given_grade=given, audit_probability=np.full(12, 0.2), gains=GAINS),
        rng=np.random.default_rng(1),
        permutations=20_000,
    )

    matrix = np.array([[np.mean(given[gold == g] == label) for label in (0, 1)] for g in (0, 1)])
    error = label_scores(matrix, GAINS)[given] - GAINS[gold]  # sums to 0 in a grade
    lever = np.concatenate([w[:6] - w[:6].mean(), w[6:] - w[6:].mean()])
    # all orders of the six labels of one grade, as sums and sums of squares
    sums = [
        (
            np.array(list(permutations(error[part]))) @ lever[part],
            np.array(list(permutations(error[part]))) ** 2,
        )
        for part in (slice(0, 6), slice(6, 12))
    ]
    squares = [
        square @ lever[part] ** 2 for (_, square), part in zip(sums, (slice(0, 6), slice(6, 12)), strict=True)
    ]
    t = np.abs(sums[0][0][:, None] + sums[1][0]) / np.sqrt(squares[0][:, None] + squares[1])
    exact = np.mean(t >= abs(error @ lever) / np.sqrt(error**2 @ lever**2) - 1e-9)
    assert 0.02 < exact < 0.9
    assert found.p_value == pytest.approx(exact, abs=0.01)


def test_with_unequal_probabilities_the_shift_is_still_inverse_minus_difference_estimator():
    rng = np.random.default_rng(3)
    w, labels = judged(rng, 2000, 0.2, pi=lambda x: 0.05 + 0.1 * x)
    pi = labels["audit_probability"]
    audited = rng.random(2000) < pi
    gold, given = labels["gold_grade"], labels["given_grade"]
    table = np.zeros((2, 2))
    np.add.at(table, (gold[audited], given[audited]), 1 / pi[audited])
    c = label_scores(table / table.sum(axis=1, keepdims=True), GAINS)
    inverse = w @ c[given]
    difference = inverse + ((w / pi) * (gold - c[given]))[audited].sum()
    mine = {name: value[audited] for name, value in labels.items() if name != "gains"}
    found = assumption_test(
        w[audited], AuditedLabels(**mine, gains=GAINS), rng=rng, topic_index=np.arange(audited.sum()) % 20
    )
    assert found.shift == pytest.approx(inverse - difference)
    assert found.p_value < 0.05
    assert np.sign(found.topic_t) == np.sign(found.shift)


def test_the_standard_error_of_the_shift_is_its_spread_where_the_assumption_is_false():
    rng = np.random.default_rng(4)
    shifts, errors = [], []
    for _ in range(400):
        w, labels = judged(rng, 300, 0.25)
        found = assumption_test(w, AuditedLabels(**labels), rng=rng, permutations=99)
        shifts.append(found.shift)
        errors.append(found.standard_error)
    assert np.mean(errors) == pytest.approx(np.std(shifts), rel=0.1)
    assert abs(np.mean(shifts)) > 3 * np.mean(errors)


def shared_difficulty(rng, n):
    """Return three labels an item that err together on hard items, whatever the popularity; and w, the item's."""
    log_runs = np.log(rng.choice([1, 2, 4, 8], n))
    gold = (rng.random(n) < 0.4).astype(int)
    wrong = np.where(rng.random(n) < 0.3, 0.7, 0.05)
    item = np.repeat(np.arange(n), 3)
    given = np.where(rng.random(3 * n) < wrong[item], 1 - gold[item], gold[item])
    pi = np.full(3 * n, 0.1)
    return log_runs[item], item, {
        "gold_grade": gold[item], "given_grade": given, "audit_probability": pi, "gains": GAINS
    }  # fmt: skip


def test_items_are_permuted_and_not_their_labels():
    rng = np.random.default_rng(5)
    rejected = np.zeros(2)
    for _ in range(300):
        w, item, labels = shared_difficulty(rng, 80)
        for place, index in enumerate((item, None)):
            found = assumption_test(w, AuditedLabels(**labels, item_index=index), rng=rng, permutations=99)
            rejected[place] += found.p_value <= 0.05
    assert 0.02 <= rejected[0] / 300 <= 0.08
    assert rejected[1] / 300 > 0.12  # the control: as if the labels of one item were of three


def test_the_size_holds_where_the_audit_prefers_popular_documents():
    rng = np.random.default_rng(6)
    rejected = 0
    for _ in range(400):
        w, labels = judged(rng, 2000, 0.0, pi=lambda x: 0.02 + 0.07 * x)
        seen = rng.random(2000) < labels["audit_probability"]
        mine = {name: value[seen] for name, value in labels.items() if name != "gains"}
        rejected += (
            assumption_test(w[seen], AuditedLabels(**mine, gains=GAINS), rng=rng, permutations=99).p_value
            <= 0.05
        )
    assert 0.02 <= rejected / 400 <= 0.08


def test_the_result_is_stored_as_plain_values_with_its_sentences():
    rng = np.random.default_rng(7)
    w, labels = judged(rng, 400, 0.25)
    found = assumption_result(
        AuditedLabels(**labels), log_runs=w, rng=rng, topic_index=np.arange(400) % 25, target_weights=w / 100
    )
    assert isinstance(found, AssumptionResult)
    stored = json.loads(json.dumps(found.as_json()))
    assert stored["contradicted"] is True
    assert stored["n"] == 400
    assert stored["p_value"] == found.p_value <= 0.05
    assert stored["sentences"] == assumption_sentences(found)
    text = stored["words"]
    assert text == " ".join(stored["sentences"])
    assert "do not err alike" in text
    assert f"{found.shift:+.3g} ± {found.standard_error:.2g} (standard error); it is not used" in text
    # the shift of w/100 is a hundredth of that of w, whatever is permuted
    whole = assumption_test(w, AuditedLabels(**labels), rng=rng, permutations=99)
    assert found.shift == pytest.approx(whole.shift / 100)


def test_a_pass_says_not_contradicted_and_that_it_proves_nothing():
    rng = np.random.default_rng(8)
    w, labels = judged(rng, 120, 0.0)
    found = assumption_result(AuditedLabels(**labels), log_runs=w, rng=rng)
    assert found.p_value > 0.05
    assert found.shift is None
    text = " ".join(assumption_sentences(found))
    assert "not contradicted by 120 audited items" in text
    assert "proves nothing" in text
    assert "not used" not in text


@pytest.mark.parametrize("n", [0, 1, 49])
def test_below_fifty_items_it_says_how_many_are_missing(n):
    w, labels = judged(np.random.default_rng(9), n, 0.2)
    found = assumption_result(AuditedLabels(**labels), log_runs=w, rng=np.random.default_rng(9))
    assert found == Refusal(f"{n} audited items; at least 50 are needed", 50 - n)
    assert assumption_sentences(found) == [
        f"Whether judges err alike on all documents of one grade was not tested: {found.reason}."
    ]


def test_thirds_keep_equal_numbers_together():
    assert popularity_thirds(np.log([8, 1, 2, 1, 4, 2])).tolist() == [2, 0, 1, 0, 2, 1]
    assert set(popularity_thirds(np.zeros(5)).tolist()) == {1}
    # weights count items that were not audited: the first one stands for ten
    assert popularity_thirds(np.log([1, 2, 3]), [10, 1, 1]).tolist() == [1, 2, 2]
    assert popularity_thirds([]).tolist() == []


def test_rates_by_popularity_are_weighted_shares_with_intervals():
    log_runs = np.log([1, 1, 1, 4, 4, 4])
    found = popularity_bands(
        log_runs,
        AuditedLabels(
            gold_grade=[0, 0, 1, 0, 0, 2],
            given_grade=[0, 2, 1, 1, 0, 2],
            audit_probability=[0.5, 0.25, 1.0, 0.5, 0.5, 0.5],
            gains=[0, 1, 2],
        ),
    )
    assert [(band.fewest_runs, band.most_runs, band.n) for band in found] == [(1, 1, 3), (4, 4, 3)]
    assert found[0].specificity.value == pytest.approx(2 / (2 + 4))  # weights 2 right, 4 wrong
    assert found[1].specificity.value == pytest.approx(0.5)
    assert found[1].sensitivity.value == 1
    assert found[0].specificity.low < 1 / 3 < found[0].specificity.high
    none = popularity_bands(
        [0.0], AuditedLabels(gold_grade=[0], given_grade=[0], audit_probability=[1], gains=[0, 1])
    )
    assert none[0].sensitivity.value is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"given_grade": [0] * 59}, "must have length 60"),
        ({"log_runs": [-1.0] * 60}, "log_runs must be at least 0"),
        ({"audit_probability": [0.0] * 60}, r"audit_probability must be in \(0, 1\]"),
        ({"item_index": [0] * 60}, "the same for all labels of an item"),
        ({"topic_index": [0] * 59}, "topic_index must have length 60"),
        ({"permutations": 10}, "permutations must be at least 99, got 10"),
    ],
)
def test_bad_input_is_named(change, words):
    w, labels = judged(np.random.default_rng(2), 60, 0.2)
    given = {"log_runs": w, **labels, "item_index": None, "topic_index": None, "permutations": 999, **change}
    about = {name: given.pop(name) for name in ("log_runs", "topic_index", "permutations")}
    with pytest.raises(ValueError, match=words):
        assumption_result(AuditedLabels(**given), **about, rng=np.random.default_rng(2))
