"""Aggregation of labels: against slow and obvious loops, exact cases, invariances, guarantees and hostile input."""

import itertools
import math

import numpy as np
import pytest

from analytics.aggregation.ascent import Pair, TrustRegion, level_gradient, moved
from analytics.aggregation.fits import Point, climb, warn_if_collapsed
from analytics.aggregation.joining import (
    Aggregation,
    SpammerAggregation,
    aggregate_confusion,
    dawid_skene,
    majority,
    one_coin,
    spammers,
)
from analytics.aggregation.votes import block_size, votes
from analytics.estimators import Refusal

MODELS = [dawid_skene, one_coin, spammers]


def simulated(seed, n_items=60, n_assessors=7, n_grades=3, share=0.7, accuracy=(0.5, 0.9)):
    """Return item, assessor, grade of labels and the sizes; who labels what is random."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(n_grades, size=n_items, p=rng.dirichlet(np.full(n_grades, 5.0)))
    item, assessor = np.nonzero(rng.random((n_items, n_assessors)) < share)
    right = rng.uniform(*accuracy, size=n_assessors)[assessor]
    guess = rng.integers(0, n_grades, item.size)
    grade = np.where(rng.random(item.size) < right, truth[item], guess)
    sizes = {"n_items": n_items, "n_assessors": n_assessors, "n_grades": n_grades}
    return (item, assessor, grade), sizes, truth


def slow_dawid_skene(labels, sizes, prior, steps, known=None):
    """Return posterior, confusion, prevalence and objectives after `steps` of EM: loops over the labels, no logs."""
    triples = list(zip(*(part.tolist() for part in labels), strict=True))
    n_items, n_assessors, n_grades = sizes["n_items"], sizes["n_assessors"], sizes["n_grades"]
    known = known or {}
    grades = range(n_grades)
    posterior = np.zeros((n_items, n_grades))
    for i, _, g in triples:
        posterior[i, g] += 1
    posterior /= posterior.sum(axis=1, keepdims=True)
    objectives = []
    for step in range(steps + 1):
        for i, g in known.items():
            posterior[i] = np.eye(n_grades)[g]
        confusion = np.full((n_assessors, n_grades, n_grades), prior)
        for i, a, g in triples:
            for t in grades:
                confusion[a, t, g] += posterior[i, t]
        confusion /= confusion.sum(axis=2, keepdims=True)
        prevalence = posterior.sum(axis=0) + prior
        prevalence /= prevalence.sum()
        if step == steps:
            break
        joint = np.tile(prevalence, (n_items, 1))
        for i, a, g in triples:
            for t in grades:
                joint[i, t] *= confusion[a, t, g]
        objective = prior * (np.log(confusion).sum() + np.log(prevalence).sum()) if prior else 0.0
        objective += sum(
            math.log(joint[i, known[i]] if i in known else joint[i].sum()) for i in range(n_items)
        )
        objectives.append(objective)
        posterior = joint / joint.sum(axis=1, keepdims=True)
    return posterior, confusion, prevalence, objectives


# -- Dawid-Skene against the obvious ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("prior", [0.1, 1.0])
def test_dawid_skene_is_what_slow_loops_give_step_by_step(seed, prior):
    labels, sizes, _ = simulated(seed)
    for steps in (1, 2, 7):
        found = dawid_skene(
            *labels, **sizes, prior=prior, tolerance=0.0, most_iterations=steps, accelerate=False
        )
        posterior, confusion, prevalence, _ = slow_dawid_skene(labels, sizes, prior, steps)
        assert found.iterations == steps
        assert found.posterior == pytest.approx(posterior, abs=1e-10)
        assert found.confusion == pytest.approx(confusion, abs=1e-10)
        assert found.prevalence == pytest.approx(prevalence, abs=1e-10)


def test_without_a_prior_the_steps_are_maximum_likelihood():
    labels, sizes, _ = simulated(4, n_items=200, share=0.9)
    found = dawid_skene(*labels, **sizes, prior=0, tolerance=0.0, most_iterations=5, accelerate=False)
    posterior, confusion, _, objectives = slow_dawid_skene(labels, sizes, 0.0, 5)
    assert found.posterior == pytest.approx(posterior, abs=1e-8)
    assert found.confusion == pytest.approx(confusion, abs=1e-8)
    assert found.log_likelihood == pytest.approx(objectives[-1], abs=1e-6)


def test_known_grades_are_clamped_in_every_step():
    labels, sizes, truth = simulated(5)
    known = {3: int(truth[3]), 10: 2, 11: 0}
    found = dawid_skene(
        *labels, **sizes, known_item=[11, 3, 10], known_grade=[0, known[3], 2], prior=0.2, tolerance=0.0,
        most_iterations=6, accelerate=False,
    )  # fmt: skip
    posterior, confusion, _, objectives = slow_dawid_skene(labels, sizes, 0.2, 6, known)
    assert found.posterior == pytest.approx(posterior, abs=1e-10)
    assert found.confusion == pytest.approx(confusion, abs=1e-10)
    assert found.posterior[10].tolist() == [0, 0, 1]
    objective = objectives[-1]
    plain = slow_dawid_skene(labels, sizes, 0.2, 5, known)
    log_prior = 0.2 * (np.log(plain[1]).sum() + np.log(plain[2]).sum())
    assert found.log_likelihood == pytest.approx(objective - log_prior, abs=1e-8)


def test_blocks_of_items_give_what_one_block_gives():
    # three copies of one problem, so far apart that they fall into different blocks; the others have no labels
    (item, assessor, grade), sizes, _ = simulated(6, n_items=20)
    block = block_size(3)
    places = np.concatenate([item, item + block, item + 2 * block + 5])
    triple = (places, np.tile(assessor, 3), np.tile(grade, 3))
    options = {"tolerance": 0.0, "most_iterations": 4, "accelerate": False}
    once = dawid_skene(item, assessor, grade, **sizes, **options, prior=0.1)
    found = dawid_skene(*triple, **sizes | {"n_items": 2 * block + 40}, **options, prior=0.3)
    assert found.confusion == pytest.approx(once.confusion, abs=1e-9)
    assert found.posterior[block : block + 20] == pytest.approx(once.posterior, abs=1e-9)
    assert found.posterior[2 * block + 5 : 2 * block + 25] == pytest.approx(once.posterior, abs=1e-9)
    assert found.posterior[-1] == pytest.approx(found.prevalence)


def test_an_item_without_a_label_has_the_prevalence():
    labels, sizes, _ = simulated(7)
    bigger = sizes | {"n_items": sizes["n_items"] + 2}
    found, without = dawid_skene(*labels, **bigger), dawid_skene(*labels, **sizes)
    assert found.posterior[-1] == pytest.approx(found.prevalence)
    assert found.prevalence == pytest.approx(without.prevalence, abs=1e-6)  # it says nothing about others
    assert majority(*labels, **bigger).posterior[-1] == pytest.approx(majority(*labels, **sizes).prevalence)


def test_an_assessor_without_labels_has_the_prior():
    labels, sizes, _ = simulated(8)
    found = dawid_skene(*labels, **sizes | {"n_assessors": 8}, prior=[[3, 1, 1], [1, 3, 1], [1, 1, 3]])
    assert found.confusion[7] == pytest.approx(np.array([[3, 1, 1], [1, 3, 1], [1, 1, 3]]) / 5)
    assert dawid_skene(*labels, **sizes | {"n_assessors": 8}, prior=0).confusion[7] == pytest.approx(1 / 3)


# -- the climb ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [0, 0.1])
def test_accelerated_and_plain_reach_the_same_maximum(prior):
    labels, sizes, _ = simulated(11, n_items=400, n_assessors=20, n_grades=4, share=0.2)
    fast = dawid_skene(*labels, **sizes, prior=prior, tolerance=1e-10, most_iterations=50_000)
    plain = dawid_skene(
        *labels, **sizes, prior=prior, tolerance=1e-10, most_iterations=50_000, accelerate=False
    )
    assert fast.converged
    assert plain.converged
    assert fast.posterior == pytest.approx(plain.posterior, abs=1e-6)
    assert fast.confusion == pytest.approx(plain.confusion, abs=1e-5)
    assert fast.iterations < plain.iterations / 2


def test_accelerated_and_plain_agree_with_clamped_items_and_a_prior_that_knows_more():
    labels, sizes, truth = simulated(17, n_items=300, n_assessors=12, n_grades=3, share=0.25)
    options = {
        "known_item": np.arange(0, 300, 7), "known_grade": truth[::7], "prior": np.eye(3) + 0.2, "tolerance": 1e-10,
    }  # fmt: skip
    fast = dawid_skene(*labels, **sizes, **options)
    plain = dawid_skene(*labels, **sizes, **options, accelerate=False)
    assert (fast.posterior[::7] == np.eye(3)[truth[::7]]).all()
    assert fast.posterior == pytest.approx(plain.posterior, abs=1e-6)


@pytest.mark.parametrize("accelerate", [True, False])
def test_the_objective_never_falls(accelerate):
    labels, sizes, _ = simulated(12, n_items=300, n_assessors=15, n_grades=4, share=0.25, accuracy=(0.2, 0.7))
    seen = []
    for steps in range(1, 40):
        found = dawid_skene(
            *labels, **sizes, prior=0.05, tolerance=0.0, most_iterations=steps, accelerate=accelerate
        )
        # objective of the M-step after the last E-step, by one more E-step of the slow kind
        seen.append(objective_of(labels, sizes, found, 0.05))
    assert (np.diff(seen) > -1e-8).all()
    assert seen[-1] > seen[0] + 1


def objective_of(labels, sizes, found, prior):
    joint = np.tile(np.log(found.prevalence), (sizes["n_items"], 1))
    item, assessor, grade = labels
    np.add.at(joint, item, np.log(found.confusion[assessor, :, grade]))
    log_likelihood = np.logaddexp.reduce(joint, axis=1).sum()
    return log_likelihood + prior * (np.log(found.confusion).sum() + np.log(found.prevalence).sum())


class Careless(TrustRegion):
    """A region of trust that proposes far too long steps."""

    def propose(self, held, at, counts):
        step = super().propose(held, at, counts)
        return type(step)(step.move.times(-30.0), step.length, step.promised, step.at_edge)


def test_a_step_that_would_lower_the_objective_is_dropped(monkeypatch):
    labels, sizes, _ = simulated(13, n_items=200, n_assessors=10, share=0.3)
    right = dawid_skene(*labels, **sizes, tolerance=1e-9)
    monkeypatch.setattr("analytics.aggregation.joining.TrustRegion", Careless)
    found = dawid_skene(*labels, **sizes, tolerance=1e-9, most_iterations=50_000)
    assert found.converged
    assert found.posterior == pytest.approx(right.posterior, abs=1e-6)
    assert found.iterations > right.iterations  # control: the bad proposals were made, and cost passes


def test_the_gradient_and_the_curvature_are_those_of_the_log_likelihood():
    labels, sizes, _ = simulated(14, n_items=40, share=0.9)
    held = votes(*labels, **sizes)
    rng = np.random.default_rng(0)
    rows = np.moveaxis(rng.dirichlet(np.full(3, 4.0), size=(7, 3)), 2, 0)
    prevalence = np.array([0.5, 0.3, 0.2])
    direction = Pair(rng.normal(size=rows.shape), rng.normal(size=3))

    def at(size):
        found = held.expect(
            rows * np.exp(size * direction.rows), prevalence * np.exp(size * direction.prevalence)
        )
        return found

    held.expect(rows, prevalence)
    centre = at(0.0)
    held.take()
    slope = (at(1e-5).log_likelihood - at(-1e-5).log_likelihood) / 2e-5
    assert slope == pytest.approx(direction.dot(Pair(centre.counts, centre.of_grades)), rel=1e-6)
    moved_counts = (at(1e-5).counts - at(-1e-5).counts) / 2e-5
    assert held.response(direction.rows, direction.prevalence)[0] == pytest.approx(moved_counts, abs=1e-6)


def test_proposed_steps_stay_probabilities():
    labels, sizes, _ = simulated(15)
    held = votes(*labels, **sizes)
    found = dawid_skene(*labels, **sizes, most_iterations=3, tolerance=0.0)
    at = Pair(np.ascontiguousarray(found.confusion.transpose(2, 0, 1)), found.prevalence)
    expected = held.expect(at.rows, at.prevalence)
    held.take()
    counts = Pair(expected.counts + 0.1, expected.of_grades + 0.1)
    step = TrustRegion().propose(held, at, counts)
    reached = moved(at, step.move, np.full((7, 3), 1e-12))
    assert reached.rows.sum(axis=0) == pytest.approx(1.0)
    assert reached.prevalence.sum() == pytest.approx(1.0)
    assert (reached.rows > 0).all()
    assert step.promised > 0
    assert level_gradient(counts, at).rows.sum(axis=0) == pytest.approx(0.0, abs=1e-9)


def test_the_climb_says_when_it_was_stopped_early():
    labels, sizes, _ = simulated(16)
    found = dawid_skene(*labels, **sizes, most_iterations=2)
    assert not found.converged
    assert "last step still changed" in found.warning
    whole = dawid_skene(*labels, **sizes)
    assert whole.converged
    assert whole.warning == ""


def test_the_loop_takes_the_plain_step_after_a_refused_one():
    # objective -x^2; the plain step halves x, the proposal doubles it
    class Nothing:
        def take(self):
            pass

    points = []

    def evaluate(at):
        points.append(at)
        return Point(at, at, -(at**2), -(at**2), abs(at))

    end, passes, converged = climb(
        Nothing(), 1.0, evaluate, lambda point: point.at / 2, tolerance=1e-9, most_iterations=200,
        propose=lambda point: (None, 2 * point.at), learn=lambda step, gained: None,
    )  # fmt: skip
    assert converged
    assert abs(end.at) < 1e-9
    assert any(later == 2 * earlier for earlier, later in itertools.pairwise(points))
    assert passes == len(points)


# -- exact small cases --------------------------------------------------------------------------------------


def test_a_majority_is_the_vote_share_and_shows_ties():
    found = majority(
        [0, 0, 0, 1, 1, 2, 3, 3, 3], [0, 1, 2, 0, 1, 2, 0, 1, 2], [2, 2, 0, 1, 0, 1, 0, 1, 2],
        n_items=4, n_assessors=3, n_grades=3,
    )  # fmt: skip
    assert found.posterior[0] == pytest.approx([1 / 3, 0, 2 / 3])
    assert found.grade.tolist() == [2, 0, 1, 0]
    assert found.tied.tolist() == [False, True, False, True]
    assert found.log_likelihood is None


def test_one_assessor_may_vote_but_not_be_modelled():
    labels = ([0, 1, 2], [0, 0, 0], [1, 0, 1])
    sizes = {"n_items": 3, "n_assessors": 1, "n_grades": 2}
    assert majority(*labels, **sizes).grade.tolist() == [1, 0, 1]
    refused = dawid_skene(*labels, **sizes)
    assert isinstance(refused, Refusal)
    assert refused.reason.startswith("Dawid-Skene: one assessor")
    assert one_coin(*labels, **sizes).reason.startswith("one-coin: one assessor")
    assert spammers(*labels, **sizes).reason.startswith("spammers: one assessor")


def test_one_coin_weighs_votes_by_the_log_odds_of_accuracy():
    labels, sizes, _ = simulated(21, n_items=500, n_grades=3)
    found = one_coin(*labels, **sizes, tolerance=1e-12, prior=0)
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
    found = spammers(item, assessor, grade, n_items=400, n_assessors=5, n_grades=3)
    assert isinstance(found, SpammerAggregation)
    assert found.trust == pytest.approx(trust, abs=0.08)
    assert found.spam[3] == pytest.approx([0.1, 0.1, 0.8], abs=0.06)
    shares = majority(item, assessor, grade, n_items=400, n_assessors=5, n_grades=3)
    assert (found.grade == truth).mean() > (shares.grade == truth).mean() + 0.02


def test_the_spammer_model_is_at_a_maximum_when_it_stops():
    labels, sizes, _ = simulated(23, n_items=150, accuracy=(0.3, 0.8))
    found = spammers(*labels, **sizes, tolerance=1e-10, prior=0.5)

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
        found = model(item, assessor, grade, n_items=3, n_assessors=n, n_grades=2)
        assert np.isfinite(found.posterior).all()
        assert found.posterior.sum(axis=1) == pytest.approx(1.0)
        assert math.isfinite(found.log_likelihood)


def test_likelihoods_too_small_for_floats_are_taken_from_the_largest():
    # 200 assessors, each of whom finds every grade's label nearly impossible for both items
    sizes = {"n_items": 2, "n_assessors": 200, "n_grades": 2}
    item, assessor = np.repeat([0, 1], 200), np.tile(np.arange(200), 2)
    held = votes(item, assessor, np.tile([0, 1], 200), **sizes, known_item=[1], known_grade=[1])
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
    first, second = model(*labels, **sizes), model(*(part[order] for part in labels), **sizes)
    assert (first.posterior == second.posterior).all()
    assert (first.confusion == second.confusion).all()


@pytest.mark.parametrize("model", [majority, *MODELS])
def test_names_of_assessors_and_grades_do_not_matter(model):
    (item, assessor, grade), sizes, _ = simulated(32)
    renamed = np.random.default_rng(0).permutation(7)
    swapped = np.array([2, 0, 1])
    first = model(item, assessor, grade, **sizes, tolerance=1e-10) if model is not majority else model(
        item, assessor, grade, **sizes
    )  # fmt: skip
    options = {} if model is majority else {"tolerance": 1e-10}
    second = model(item, renamed[assessor], swapped[grade], **sizes, **options)
    assert second.posterior[:, swapped] == pytest.approx(first.posterior, abs=1e-6)
    assert second.confusion[np.ix_(renamed, swapped, swapped)] == pytest.approx(first.confusion, abs=1e-5)


def test_inputs_are_not_changed():
    labels, sizes, _ = simulated(33)
    before = [part.copy() for part in labels]
    prior = np.full((3, 3), 0.1)
    dawid_skene(*labels, **sizes, prior=prior)
    assert all((part == kept).all() for part, kept in zip(labels, before, strict=True))
    assert (prior == 0.1).all()


# -- warnings, refusals, hostile input ----------------------------------------------------------------------


def test_gold_turns_round_assessors_that_are_all_wrong():
    rng = np.random.default_rng(41)
    truth = rng.integers(0, 2, 300)
    item, assessor = np.repeat(np.arange(300), 3), np.tile(np.arange(3), 300)
    grade = np.where(rng.random(900) < 0.85, 1 - truth[item], truth[item])
    alone = dawid_skene(item, assessor, grade, n_items=300, n_assessors=3, n_grades=2)
    assert (alone.grade == truth).mean() < 0.2  # nothing in the labels says that they are wrong
    anchored = dawid_skene(
        item, assessor, grade, n_items=300, n_assessors=3, n_grades=2,
        known_item=np.arange(100), known_grade=truth[:100],
    )  # fmt: skip
    assert (anchored.grade[100:] == truth[100:]).mean() > 0.8
    assert "below chance" in anchored.warning
    assert alone.warning == ""


def test_a_grade_that_gets_lost_is_warned_of():
    labels, sizes, _ = simulated(43, n_grades=2)
    held = votes(*labels, **sizes)
    share = (labels[2] == 1).mean()
    lost = warn_if_collapsed(held, np.array([1 - share / 11, share / 11]))
    assert lost.startswith(f"grade 1 is {share:.1%} of the labels and {share / 11:.1%} of the fitted grades")
    assert warn_if_collapsed(held, np.array([1 - share / 9, share / 9])) == ""


def test_labels_that_never_agree_are_refused():
    refused = dawid_skene([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0], n_items=2, n_assessors=2, n_grades=2)
    assert isinstance(refused, Refusal)
    assert "no two labels of any item agree" in refused.reason
    one_agrees = dawid_skene([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 1], n_items=2, n_assessors=2, n_grades=2)
    assert isinstance(one_agrees, Aggregation)


@pytest.mark.parametrize("model", MODELS)
def test_too_little_is_refused_with_its_reason(model):
    sizes = {"n_items": 2, "n_assessors": 2, "n_grades": 2}
    assert "no labels" in model([], [], [], **sizes).reason
    assert "no item has two labels" in model([0, 1], [0, 1], [0, 1], **sizes).reason
    assert isinstance(model([0, 1], [0, 1], [0, 1], **sizes, known_item=[0], known_grade=[0]), Aggregation)


def test_a_majority_of_nothing_is_refused():
    assert isinstance(majority([], [], [], n_items=2, n_assessors=1, n_grades=2), Refusal)


@pytest.mark.parametrize("model", [majority, *MODELS])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"label_grade": [0, 3, 1, 1]}, "label_grade must be at most 2, got 3"),
        ({"label_grade": [0, -1, 1, 1]}, "label_grade must be at least 0, got -1"),
        ({"label_grade": [0.5, 1, 1, 1]}, "label_grade must be a flat array of integers"),
        ({"label_item": [0, 0, 1, 2]}, "label_item must be at most 1, got 2"),
        ({"label_assessor": [0, 1, 0]}, "equally long"),
        ({"known_item": [0]}, "belong together"),
        ({"known_item": [0, 0], "known_grade": [1, 1]}, "an item once, got 0 twice"),
        ({"known_item": [0], "known_grade": [3]}, "known_grade must be at most 2"),
        ({"known_item": [0, 1], "known_grade": [1]}, "equally long"),
        ({"prior": -0.1}, "prior must be >= 0"),
        ({"prior": np.nan}, "prior must be finite"),
        ({"n_grades": 1}, "n_grades must be at least 2"),
        ({"n_items": 0}, "must be at least 1"),
    ],
    ids=lambda value: None if isinstance(value, dict) else value[:24],
)
def test_wrong_input_is_named(model, change, words):
    given = {
        "label_item": [0, 0, 1, 1], "label_assessor": [0, 1, 0, 1], "label_grade": [0, 1, 1, 1],
        "n_items": 2, "n_assessors": 2, "n_grades": 3,
    }  # fmt: skip
    with pytest.raises(ValueError, match=words):
        model(**given | change)


def test_wrong_stopping_rules_and_priors_are_named():
    labels, sizes, _ = simulated(42)
    with pytest.raises(ValueError, match="tolerance must be >= 0, got -1"):
        dawid_skene(*labels, **sizes, tolerance=-1)
    with pytest.raises(ValueError, match="most_iterations must be at least 1, got 0"):
        one_coin(*labels, **sizes, most_iterations=0)
    with pytest.raises(ValueError, match="prior must be a number"):
        dawid_skene(*labels, **sizes, prior=[0.1, 0.2])


def test_a_second_label_of_an_assessor_counts_as_a_second_label():
    found = majority([0, 0, 0], [0, 0, 1], [1, 1, 0], n_items=1, n_assessors=2, n_grades=2)
    assert found.posterior[0] == pytest.approx([1 / 3, 2 / 3])


# -- the aggregate's own matrix -----------------------------------------------------------------------------


def test_the_aggregates_matrix_counts_ties_in_parts():
    found = majority([0, 0, 1, 2], [0, 1, 0, 0], [0, 1, 1, 0], n_items=3, n_assessors=2, n_grades=2)
    assert aggregate_confusion(found, [0, 1, 2], [1, 1, 0]).tolist() == [[1, 0], [0.5, 1.5]]
    assert aggregate_confusion(found, [0, 1], [1, 1], [2.0, 4.0]).tolist() == [[0, 0], [1, 5]]


def test_a_soft_matrix_uses_the_posterior():
    labels, sizes, truth = simulated(51)
    found = dawid_skene(*labels, **sizes)
    soft = aggregate_confusion(found, np.arange(60), truth, soft=True)
    by_hand = [[found.posterior[truth == t, g].sum() for g in range(3)] for t in range(3)]
    assert soft == pytest.approx(np.array(by_hand))
    with pytest.raises(ValueError, match="weight must be >= 0, got -1"):
        aggregate_confusion(found, [0], [1], [-1.0])
    with pytest.raises(ValueError, match="equally long"):
        aggregate_confusion(found, [0, 1], [1])
