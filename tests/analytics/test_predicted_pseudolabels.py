"""Pseudo-labels with predicted gold: the fixture of the two phases, and every draw and audit of it."""

import itertools

import numpy as np
import pytest

from analytics.estimation.pseudolabels import corrected_pseudo_labels
from analytics.estimation.samples import AuditSample, Frame

GAINS = [0, 1, 3]


def subsets(n):
    return (np.array(chosen) for chosen in itertools.product([False, True], repeat=n))


def chance(chosen, probability):
    return float(np.prod(np.where(chosen, probability, 1 - np.asarray(probability))))


PHASES = {  # five items of the frame, of which the audits may take all; the gold and the predictions of one stair
    "weight": np.array([0.5, -0.3, 0.4, 0.2, -0.6]),
    "pi": np.array([0.8, 0.5, 1.0, 0.4, 0.6]),
    "before": np.array([0.3, 0.4, 0.2, 0.5, 0.1]),
    "after": np.array([0.6, 0.2, 0.1, 0.5, 0.3]),
    "chance": np.array([0.5, 0.25, 0.5, 0.4, 0.2]),
    "gold": np.array([1, 0, 0, 1, 0]),
}


def predicted_labels(drawn, audited, after=PHASES["after"]):
    places = np.flatnonzero(drawn)
    pi, chance, gold = (PHASES[name][places] for name in ("pi", "chance", "gold"))
    audit = AuditSample(pi, np.zeros(places.size, dtype=int), audited[places], gold, chance, n_grades=2)
    frame = Frame(1, np.zeros(5, dtype=int), places, pi)
    return corrected_pseudo_labels(
        frame, audit, [0, 1], prediction=PHASES["before"], after=after[None, places]
    )


def test_with_predicted_gold_the_weighted_sum_is_that_of_the_two_phases():
    drawn, audited = np.array([1, 1, 1, 0, 1], dtype=bool), np.array([1, 0, 1, 0, 0], dtype=bool)
    labels = predicted_labels(drawn, audited)
    assert (PHASES["weight"] * labels.utility).sum() == pytest.approx(0.6375, abs=5e-7)
    assert labels.known_noun == "audited"


def test_with_predicted_gold_the_sum_is_unbiased_and_its_noise_is_never_too_small_over_all_draws_and_audits():
    mean = square = noise = 0.0
    for drawn in subsets(5):
        for audited in subsets(5):
            if (audited & ~drawn).any():
                continue
            p = chance(drawn, PHASES["pi"]) * chance(audited[drawn], PHASES["chance"][drawn])
            labels = predicted_labels(drawn, audited)
            total = (PHASES["weight"] * labels.utility).sum()
            mean, square = mean + p * total, square + p * total**2
            parts = labels.draw_noise[0] ** 2 + labels.audit_noise[0] ** 2
            noise += p * (PHASES["weight"][labels.judged] ** 2 * parts).sum()
    assert mean == pytest.approx(0.7, abs=1e-12)
    assert square - mean**2 == pytest.approx(0.389125, abs=5e-7)
    assert noise > 0.389125


def test_a_graded_prediction_has_the_noise_of_its_gain():
    after = np.array([[0.5, 1.0], [0.25, 1.0]])
    audit = AuditSample(
        np.ones(2),
        np.zeros(2, dtype=int),
        np.array([False, True]),
        np.array([0, 2]),
        np.full(2, 0.5),
        n_grades=3,
    )
    frame = Frame(1, np.zeros(2, dtype=int), np.arange(2), np.ones(2))
    labels = corrected_pseudo_labels(frame, audit, GAINS, prediction=np.zeros(2), after=after)
    gain = (labels.steps[:, None] * labels.audit_noise).sum(axis=0)
    # gains 0, 1 and 3 with chances of a half, a quarter and a quarter: a variance of 1.5, times 1/a - 1
    assert gain**2 == pytest.approx([1.5, 0.0])
    assert (labels.steps @ after).tolist() == labels.utility.tolist()
