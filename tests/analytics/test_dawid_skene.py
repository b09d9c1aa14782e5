"""The Dawid-Skene model: against slow and obvious loops, and a climb that never falls."""

import itertools
import math

import numpy as np
import pytest
from simulated_labels import objective_of, simulated

from analytics.aggregation.ascent import Pair, TrustRegion, apply_move, level_gradient
from analytics.aggregation.dawid_skene import dawid_skene, majority
from analytics.aggregation.fits import Point, climb
from analytics.aggregation.votes import block_size, votes
from analytics.estimation.samples import Labels


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
            Labels(*labels, **sizes), prior=prior, tolerance=0.0, most_iterations=steps, accelerate=False
        )
        posterior, confusion, prevalence, _ = slow_dawid_skene(labels, sizes, prior, steps)
        assert found.iterations == steps
        assert found.posterior == pytest.approx(posterior, abs=1e-10)
        assert found.confusion == pytest.approx(confusion, abs=1e-10)
        assert found.prevalence == pytest.approx(prevalence, abs=1e-10)


def test_without_a_prior_the_steps_are_maximum_likelihood():
    labels, sizes, _ = simulated(4, n_items=200, share=0.9)
    found = dawid_skene(Labels(*labels, **sizes), prior=0, tolerance=0.0, most_iterations=5, accelerate=False)
    posterior, confusion, _, objectives = slow_dawid_skene(labels, sizes, 0.0, 5)
    assert found.posterior == pytest.approx(posterior, abs=1e-8)
    assert found.confusion == pytest.approx(confusion, abs=1e-8)
    assert found.log_likelihood == pytest.approx(objectives[-1], abs=1e-6)


def test_known_grades_are_clamped_in_every_step():
    labels, sizes, truth = simulated(5)
    known = {3: int(truth[3]), 10: 2, 11: 0}
    found = dawid_skene(
        Labels(*labels, **sizes),
        known_item=[11, 3, 10],
        known_grade=[0, known[3], 2],
        prior=0.2,
        tolerance=0.0,
        most_iterations=6,
        accelerate=False,
    )
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
    once = dawid_skene(Labels(item, assessor, grade, **sizes), **options, prior=0.1)
    found = dawid_skene(Labels(*triple, **sizes | {"n_items": 2 * block + 40}), **options, prior=0.3)
    assert found.confusion == pytest.approx(once.confusion, abs=1e-9)
    assert found.posterior[block : block + 20] == pytest.approx(once.posterior, abs=1e-9)
    assert found.posterior[2 * block + 5 : 2 * block + 25] == pytest.approx(once.posterior, abs=1e-9)
    assert found.posterior[-1] == pytest.approx(found.prevalence)


def test_an_item_without_a_label_has_the_prevalence():
    labels, sizes, _ = simulated(7)
    bigger = sizes | {"n_items": sizes["n_items"] + 2}
    found, without = dawid_skene(Labels(*labels, **bigger)), dawid_skene(Labels(*labels, **sizes))
    assert found.posterior[-1] == pytest.approx(found.prevalence)
    assert found.prevalence == pytest.approx(without.prevalence, abs=1e-6)  # it says nothing about others
    assert majority(Labels(*labels, **bigger)).posterior[-1] == pytest.approx(
        majority(Labels(*labels, **sizes)).prevalence
    )


def test_an_assessor_without_labels_has_the_prior():
    labels, sizes, _ = simulated(8)
    found = dawid_skene(
        Labels(*labels, **sizes | {"n_assessors": 8}), prior=[[3, 1, 1], [1, 3, 1], [1, 1, 3]]
    )
    assert found.confusion[7] == pytest.approx(np.array([[3, 1, 1], [1, 3, 1], [1, 1, 3]]) / 5)
    assert dawid_skene(Labels(*labels, **sizes | {"n_assessors": 8}), prior=0).confusion[7] == pytest.approx(
        1 / 3
    )


# -- the climb ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [0, 0.1])
def test_accelerated_and_plain_reach_the_same_maximum(prior):
    labels, sizes, _ = simulated(11, n_items=400, n_assessors=20, n_grades=4, share=0.2)
    fast = dawid_skene(Labels(*labels, **sizes), prior=prior, tolerance=1e-10, most_iterations=50_000)
    plain = dawid_skene(
        Labels(*labels, **sizes), prior=prior, tolerance=1e-10, most_iterations=50_000, accelerate=False
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
    fast = dawid_skene(Labels(*labels, **sizes), **options)
    plain = dawid_skene(Labels(*labels, **sizes), **options, accelerate=False)
    assert (fast.posterior[::7] == np.eye(3)[truth[::7]]).all()
    assert fast.posterior == pytest.approx(plain.posterior, abs=1e-6)


@pytest.mark.parametrize("accelerate", [True, False])
def test_the_objective_never_falls(accelerate):
    labels, sizes, _ = simulated(12, n_items=300, n_assessors=15, n_grades=4, share=0.25, accuracy=(0.2, 0.7))
    seen = []
    for steps in range(1, 40):
        found = dawid_skene(
            Labels(*labels, **sizes), prior=0.05, tolerance=0.0, most_iterations=steps, accelerate=accelerate
        )
        # objective of the M-step after the last E-step, by one more E-step of the slow kind
        seen.append(objective_of(labels, sizes, found, 0.05))
    assert (np.diff(seen) > -1e-8).all()
    assert seen[-1] > seen[0] + 1


class Careless(TrustRegion):
    """A region of trust that proposes far too long steps."""

    def propose(self, held, at, counts):
        step = super().propose(held, at, counts)
        return type(step)(step.move.times(-30.0), step.length, step.promised, step.at_edge)


def test_a_step_that_would_lower_the_objective_is_dropped(monkeypatch):
    labels, sizes, _ = simulated(13, n_items=200, n_assessors=10, share=0.3)
    right = dawid_skene(Labels(*labels, **sizes), tolerance=1e-9)
    monkeypatch.setattr("analytics.aggregation.dawid_skene.TrustRegion", Careless)
    found = dawid_skene(Labels(*labels, **sizes), tolerance=1e-9, most_iterations=50_000)
    assert found.converged
    assert found.posterior == pytest.approx(right.posterior, abs=1e-6)
    assert found.iterations > right.iterations  # control: the bad proposals were made, and cost passes


def test_the_gradient_and_the_curvature_are_those_of_the_log_likelihood():
    labels, sizes, _ = simulated(14, n_items=40, share=0.9)
    held = votes(Labels(*labels, **sizes))
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
    held = votes(Labels(*labels, **sizes))
    found = dawid_skene(Labels(*labels, **sizes), most_iterations=3, tolerance=0.0)
    at = Pair(np.ascontiguousarray(found.confusion.transpose(2, 0, 1)), found.prevalence)
    expected = held.expect(at.rows, at.prevalence)
    held.take()
    counts = Pair(expected.counts + 0.1, expected.of_grades + 0.1)
    step = TrustRegion().propose(held, at, counts)
    reached = apply_move(at, step.move, np.full((7, 3), 1e-12))
    assert reached.rows.sum(axis=0) == pytest.approx(1.0)
    assert reached.prevalence.sum() == pytest.approx(1.0)
    assert (reached.rows > 0).all()
    assert step.promised > 0
    assert level_gradient(counts, at).rows.sum(axis=0) == pytest.approx(0.0, abs=1e-9)


def test_the_climb_says_when_it_was_stopped_early():
    labels, sizes, _ = simulated(16)
    found = dawid_skene(Labels(*labels, **sizes), most_iterations=2)
    assert not found.converged
    assert "last step still changed" in found.warning
    whole = dawid_skene(Labels(*labels, **sizes))
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
