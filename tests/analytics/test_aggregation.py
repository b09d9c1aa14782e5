"""Label aggregation: exact small cases, invariances, warnings, refusals and hostile input."""

import math

import numpy as np
import pytest
from simulated_labels import objective_of, simulated

from analytics.aggregation.dawid_skene import (
    Aggregation,
    SpammerAggregation,
    dawid_skene,
    majority,
    one_coin,
    spammers,
)
from analytics.aggregation.fits import warn_if_collapsed
from analytics.aggregation.votes import votes
from analytics.estimation.estimate import Refusal
from analytics.estimation.samples import Labels
from experiments.papers.aggregation import aggregate_confusion

MODELS = [dawid_skene, one_coin, spammers]


# -- exact small cases --------------------------------------------------------------------------------------


def test_a_majority_is_the_vote_share_and_shows_ties():
    found = majority(
        Labels(
            [0, 0, 0, 1, 1, 2, 3, 3, 3],
            [0, 1, 2, 0, 1, 2, 0, 1, 2],
            [2, 2, 0, 1, 0, 1, 0, 1, 2],
            n_items=4,
            n_assessors=3,
            n_grades=3,
        )
    )
    assert found.posterior[0] == pytest.approx([1 / 3, 0, 2 / 3])
    assert found.grade.tolist() == [2, 0, 1, 0]
    assert found.is_tied.tolist() == [False, True, False, True]
    assert found.log_likelihood is None


def test_one_assessor_may_vote_but_not_be_modelled():
    labels = ([0, 1, 2], [0, 0, 0], [1, 0, 1])
    sizes = {"n_items": 3, "n_assessors": 1, "n_grades": 2}
    assert majority(Labels(*labels, **sizes)).grade.tolist() == [1, 0, 1]
    refused = dawid_skene(Labels(*labels, **sizes))
    assert isinstance(refused, Refusal)
    assert refused.reason.startswith("Dawid-Skene: one assessor")
    assert one_coin(Labels(*labels, **sizes)).reason.startswith("one-coin: one assessor")
    assert spammers(Labels(*labels, **sizes)).reason.startswith("spammers: one assessor")


def test_one_coin_weighs_votes_by_the_log_odds_of_accuracy():
    labels, sizes, _ = simulated(21, n_items=500, n_grades=3)
    found = one_coin(Labels(*labels, **sizes), tolerance=1e-12, prior=0)
    accuracy = found.confusion[:, 0, 0]
    item, assessor, grade = labels
    for i in range(20):
        mine = item == i
        score = np.log(found.prevalence)
        for a, g in zip(assessor[mine], grade[mine], strict=True):
            score[g] += math.log(accuracy[a] * 2 / (1 - accuracy[a]))
        expected = np.exp(score - score.max())
        assert found.posterior[i] == pytest.approx(expected / expected.sum(), abs=1e-6)
    for a in range(7):  # at the maximum the accuracy is the expected share of right labels
        mine = assessor == a
        assert accuracy[a] == pytest.approx(found.posterior[item[mine], grade[mine]].mean(), abs=1e-6)
    assert found.confusion[0, 0, 1] == pytest.approx((1 - accuracy[0]) / 2)


def test_spammers_are_found_and_their_labels_do_not_count():
    rng = np.random.default_rng(22)
    truth = rng.integers(0, 3, 400)
    item = np.repeat(np.arange(400), 5)
    assessor = np.tile(np.arange(5), 400)
    trust = np.array([0.9, 0.8, 0.85, 0.0, 0.3])
    spam = rng.choice(3, size=2000, p=[0.1, 0.1, 0.8])
    grade = np.where(rng.random(2000) < trust[assessor], truth[item], spam)
    found = spammers(Labels(item, assessor, grade, n_items=400, n_assessors=5, n_grades=3))
    assert isinstance(found, SpammerAggregation)
    assert found.trust == pytest.approx(trust, abs=0.08)
    assert found.spam[3] == pytest.approx([0.1, 0.1, 0.8], abs=0.06)
    shares = majority(Labels(item, assessor, grade, n_items=400, n_assessors=5, n_grades=3))
    assert (found.grade == truth).mean() > (shares.grade == truth).mean() + 0.02


def test_the_spammer_model_is_at_a_maximum_when_it_stops():
    labels, sizes, _ = simulated(23, n_items=150, accuracy=(0.3, 0.8))
    found = spammers(Labels(*labels, **sizes), tolerance=1e-10, prior=0.5)

    def objective(trust, spam):
        confusion = trust[:, None, None] * np.eye(3) + ((1 - trust)[:, None] * spam)[:, None, :]
        moved_fit = Aggregation(found.posterior, confusion, found.prevalence, 0, True, None)
        logs = np.log(trust * (1 - trust)).sum() + np.log(spam).sum()
        return objective_of(labels, sizes, moved_fit, 0.0) + 0.5 * logs

    best = objective(found.trust, found.spam)
    rng = np.random.default_rng(1)
    for _ in range(30):
        trust = found.trust + 1e-3 * rng.normal(size=7)
        spam = found.spam * np.exp(1e-3 * rng.normal(size=(7, 3)))
        assert objective(trust, spam / spam.sum(axis=1, keepdims=True)) < best


def test_the_log_domain_survives_a_thousand_labels_of_one_item():
    n = 1200
    item = np.concatenate([np.zeros(n, dtype=int), np.repeat([1, 2], 400)])
    assessor = np.concatenate([np.arange(n), np.tile(np.arange(400), 2)])
    grade = np.concatenate([np.arange(n) % 2, np.zeros(400, dtype=int), np.ones(400, dtype=int)])
    for model in (dawid_skene, one_coin, spammers):
        found = model(Labels(item, assessor, grade, n_items=3, n_assessors=n, n_grades=2))
        assert np.isfinite(found.posterior).all()
        assert found.posterior.sum(axis=1) == pytest.approx(1.0)
        assert math.isfinite(found.log_likelihood)


def test_likelihoods_too_small_for_floats_are_taken_from_the_largest():
    # 200 assessors, each of whom finds every grade's label nearly impossible for both items
    sizes = {"n_items": 2, "n_assessors": 200, "n_grades": 2}
    item, assessor = np.repeat([0, 1], 200), np.tile(np.arange(200), 2)
    held = votes(Labels(item, assessor, np.tile([0, 1], 200), **sizes), known_item=[1], known_grade=[1])
    rows = np.tile([[[1 - 1e-9, 1e-9]], [[1e-9, 1 - 1e-9]]], (1, 200, 1))
    found = held.expect(rows, np.array([0.25, 0.75]))
    held.take()
    assert held.posterior[0] == pytest.approx([0.25, 0.75])  # 100 for, 100 against: the prevalence decides
    each = 100 * math.log(1e-9) + 100 * math.log1p(-1e-9)
    assert found.log_likelihood == pytest.approx(2 * each + math.log(0.75), rel=1e-12)


# -- invariances --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [majority, *MODELS])
def test_the_order_of_labels_does_not_matter(model):
    labels, sizes, _ = simulated(31)
    order = np.random.default_rng(0).permutation(labels[0].size)
    first, second = model(Labels(*labels, **sizes)), model(Labels(*(part[order] for part in labels), **sizes))
    assert (first.posterior == second.posterior).all()
    assert (first.confusion == second.confusion).all()


@pytest.mark.parametrize("model", [majority, *MODELS])
def test_names_of_assessors_and_grades_do_not_matter(model):
    (item, assessor, grade), sizes, _ = simulated(32)
    renamed = np.random.default_rng(0).permutation(7)
    swapped = np.array([2, 0, 1])
    first = (
        model(Labels(item, assessor, grade, **sizes), tolerance=1e-10)
        if model is not majority
        else model(Labels(item, assessor, grade, **sizes))
    )
    options = {} if model is majority else {"tolerance": 1e-10}
    second = model(Labels(item, renamed[assessor], swapped[grade], **sizes), **options)
    assert second.posterior[:, swapped] == pytest.approx(first.posterior, abs=1e-6)
    assert second.confusion[np.ix_(renamed, swapped, swapped)] == pytest.approx(first.confusion, abs=1e-5)


def test_inputs_are_not_changed():
    labels, sizes, _ = simulated(33)
    before = [part.copy() for part in labels]
    prior = np.full((3, 3), 0.1)
    dawid_skene(Labels(*labels, **sizes), prior=prior)
    assert all((part == kept).all() for part, kept in zip(labels, before, strict=True))
    assert (prior == 0.1).all()


# -- warnings, refusals, hostile input ----------------------------------------------------------------------


def test_gold_turns_round_assessors_that_are_all_wrong():
    rng = np.random.default_rng(41)
    truth = rng.integers(0, 2, 300)
    item, assessor = np.repeat(np.arange(300), 3), np.tile(np.arange(3), 300)
    grade = np.where(rng.random(900) < 0.85, 1 - truth[item], truth[item])
    alone = dawid_skene(Labels(item, assessor, grade, n_items=300, n_assessors=3, n_grades=2))
    assert (alone.grade == truth).mean() < 0.2  # nothing in the labels says that they are wrong
    anchored = dawid_skene(
        Labels(item, assessor, grade, n_items=300, n_assessors=3, n_grades=2),
        known_item=np.arange(100),
        known_grade=truth[:100],
    )
    assert (anchored.grade[100:] == truth[100:]).mean() > 0.8
    assert "below chance" in anchored.warning
    assert alone.warning == ""


def test_a_grade_that_gets_lost_is_warned_of():
    labels, sizes, _ = simulated(43, n_grades=2)
    held = votes(Labels(*labels, **sizes))
    share = (labels[2] == 1).mean()
    lost = warn_if_collapsed(held, np.array([1 - share / 11, share / 11]))
    assert lost.startswith(f"grade 1 is {share:.1%} of the labels and {share / 11:.1%} of the fitted grades")
    assert warn_if_collapsed(held, np.array([1 - share / 9, share / 9])) == ""


def test_labels_that_never_agree_are_refused():
    refused = dawid_skene(
        Labels([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0], n_items=2, n_assessors=2, n_grades=2)
    )
    assert isinstance(refused, Refusal)
    assert "no two labels of any item agree" in refused.reason
    one_agrees = dawid_skene(
        Labels([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 1], n_items=2, n_assessors=2, n_grades=2)
    )
    assert isinstance(one_agrees, Aggregation)


@pytest.mark.parametrize("model", MODELS)
def test_too_little_is_refused_with_its_reason(model):
    sizes = {"n_items": 2, "n_assessors": 2, "n_grades": 2}
    assert "no labels" in model(Labels([], [], [], **sizes)).reason
    assert "no item has two labels" in model(Labels([0, 1], [0, 1], [0, 1], **sizes)).reason
    assert isinstance(
        model(Labels([0, 1], [0, 1], [0, 1], **sizes), known_item=[0], known_grade=[0]), Aggregation
    )


def test_a_majority_of_nothing_is_refused():
    assert isinstance(majority(Labels([], [], [], n_items=2, n_assessors=1, n_grades=2)), Refusal)


def model_of(model, *, item, assessor, grade, n_items, n_assessors, n_grades, **others):
    labels = Labels(item, assessor, grade, n_items, n_assessors, n_grades)
    return model(labels, **others)


@pytest.mark.parametrize("model", [majority, *MODELS])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"grade": [0, 3, 1, 1]}, "label_grade must be at most 2, got 3"),
        ({"grade": [0, -1, 1, 1]}, "label_grade must be at least 0, got -1"),
        ({"grade": [0.5, 1, 1, 1]}, "label_grade must be a flat array of integers"),
        ({"item": [0, 0, 1, 2]}, "label_item must be at most 1, got 2"),
        ({"assessor": [0, 1, 0]}, "equally long"),
        ({"known_item": [0]}, "belong together"),
        ({"known_item": [0, 0], "known_grade": [1, 1]}, "an item once, got 0 twice"),
        ({"known_item": [0], "known_grade": [3]}, "known_grade must be at most 2"),
        ({"known_item": [0, 1], "known_grade": [1]}, "equally long"),
        ({"prior": -0.1}, "prior must be >= 0"),
        ({"prior": np.nan}, "prior must be finite"),
        ({"n_grades": 1}, "n_grades must be at least 2"),
        ({"n_items": 0}, "label_item must be at most -1"),
    ],
    ids=lambda value: None if isinstance(value, dict) else value[:24],
)
def test_wrong_input_is_named(model, change, words):
    given = {
        "item": [0, 0, 1, 1], "assessor": [0, 1, 0, 1], "grade": [0, 1, 1, 1],
        "n_items": 2, "n_assessors": 2, "n_grades": 3,
    }  # fmt: skip
    with pytest.raises(ValueError, match=words):
        model_of(model, **given | change)


def test_wrong_stopping_rules_and_priors_are_named():
    labels, sizes, _ = simulated(42)
    with pytest.raises(ValueError, match="tolerance must be >= 0, got -1"):
        dawid_skene(Labels(*labels, **sizes), tolerance=-1)
    with pytest.raises(ValueError, match="most_iterations must be at least 1, got 0"):
        one_coin(Labels(*labels, **sizes), most_iterations=0)
    with pytest.raises(ValueError, match="prior must be a number"):
        dawid_skene(Labels(*labels, **sizes), prior=[0.1, 0.2])


def test_a_second_label_of_an_assessor_counts_as_a_second_label():
    found = majority(Labels([0, 0, 0], [0, 0, 1], [1, 1, 0], n_items=1, n_assessors=2, n_grades=2))
    assert found.posterior[0] == pytest.approx([1 / 3, 2 / 3])


# -- the aggregate's own matrix -----------------------------------------------------------------------------


def test_the_aggregates_matrix_counts_ties_in_parts():
    found = majority(Labels([0, 0, 1, 2], [0, 1, 0, 0], [0, 1, 1, 0], n_items=3, n_assessors=2, n_grades=2))
    assert aggregate_confusion(found, [0, 1, 2], [1, 1, 0]).tolist() == [[1, 0], [0.5, 1.5]]
    assert aggregate_confusion(found, [0, 1], [1, 1], [2.0, 4.0]).tolist() == [[0, 0], [1, 5]]


def test_a_soft_matrix_uses_the_posterior():
    labels, sizes, truth = simulated(51)
    found = dawid_skene(Labels(*labels, **sizes))
    soft = aggregate_confusion(found, np.arange(60), truth, soft=True)
    by_hand = [[found.posterior[truth == t, g].sum() for g in range(3)] for t in range(3)]
    assert soft == pytest.approx(np.array(by_hand))
    with pytest.raises(ValueError, match="weight must be >= 0, got -1"):
        aggregate_confusion(found, [0], [1], [-1.0])
    with pytest.raises(ValueError, match="equally long"):
        aggregate_confusion(found, [0, 1], [1])
