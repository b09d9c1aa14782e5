"""Predictions of gold gains after a batch whose sizes were learned: every first batch, second batch and audit of a
small frame is gone through, with the predictions fitted anew for each."""

import numpy as np
import pytest
from enumeration import exactly, poisson_samples

from analytics.estimation.gold_prediction import Foreknowledge, predicted_gold
from analytics.estimation.samples import AuditSample, Frame, Labels
from analytics.estimation.two_phase import two_phase
from sampling.batches import probabilities_by_fold
from sampling.prediction import cross_fitted

N = 5
TOPIC = np.array([0, 0, 0, 1, 1])
FOLD = np.array([0, 1, 2, 0, 1])
KNOWN = Foreknowledge(
    features=np.array([[0.3, 1.0], [1.2, 0.0], [-0.5, 1.0], [0.8, 0.0], [-1.5, 1.0]]),
    ridge=np.full(2, 0.5),  # so little that two gold labels move the predictions far
    fold=FOLD,
    prior=np.array([0.3, 0.4, 0.2, 0.5, 0.25]),
)
GOLD = np.array([1, 1, 0, 1, 0])
LABEL = np.array([1, 0, 0, 1, 1])  # of one judge, who errs
GAINS = np.array([0.0, 1.0])
WEIGHT = np.array([0.7, -0.4, 0.2, 0.5, -0.6])
FIRST = np.array([0.5, 0.4, 0.6, 0.5, 0.45])
CHANCE = np.array([0.5, 1.0, 0.4, 0.7, 1.0])  # of an audit


def second_batch(first):
    """Return pi of both batches together: one judgment more is expected, by what the first leaves in doubt."""
    places = np.flatnonzero(first)
    f = cross_fitted(
        features=KNOWN.features, topic_index=TOPIC, fold=FOLD, prior=KNOWN.prior,
        labelled=places, label=LABEL[places].astype(float), feature_ridge=0.5,
    )  # fmt: skip
    sizes, frame_sizes = np.abs(WEIGHT) * np.sqrt(f * (1 - f)), np.abs(WEIGHT)
    before = {"unlearned": FIRST, "earlier": FIRST}
    return probabilities_by_fold(
        sizes, FOLD, frame_sizes=frame_sizes, **before, expected_count=FIRST.sum() + 1.0
    )


def value(first, drawn, pi, audited, is_refitted):
    places = np.flatnonzero(drawn)
    labels = Labels(
        np.arange(places.size), np.zeros(places.size, dtype=int), LABEL[places],
        n_items=places.size, n_assessors=1, n_grades=2,
    )  # fmt: skip
    frame = Frame(2, TOPIC, places, pi[places])
    audit = AuditSample(pi[places], LABEL[places], audited[places], GOLD[places], CHANCE[places], n_grades=2)
    learnable = None if is_refitted else first[places].astype(bool)
    found = predicted_gold(frame, audit, GAINS, labels=labels, known=KNOWN, learnable=learnable)
    estimates = two_phase(
        WEIGHT[places],
        draw_probability=pi[places],
        audited=audit.audited,
        gold=GAINS[audit.gold_grade],
        audit_probability=audit.audit_probability,
        before=found.before[places],
        after=found.after,
        spread=found.spread,
        before_total=[(WEIGHT * found.before).sum()],
        fewest=0,
    ).estimates
    return estimates[0].value


def moments(is_refitted):
    """Return bias and standard deviation over every first batch, second batch and audit."""
    values, weights = [], []
    for first, chance in poisson_samples(FIRST):
        pi = second_batch(first.astype(bool))
        later = np.where(first, 0.0, (pi - FIRST) / (1 - FIRST))
        for second, again in poisson_samples(later):
            drawn = first.astype(bool) | second.astype(bool)
            places = np.flatnonzero(drawn)
            if again == 0:
                continue
            for taken, third in poisson_samples(CHANCE[places]):
                if third == 0:  # it leaves out what is audited for certain
                    continue
                audited = np.zeros(N, dtype=bool)
                audited[places[taken.astype(bool)]] = True
                values.append(value(first, drawn, pi, audited, is_refitted))
                weights.append(chance * again * third)
    values, weights = np.array(values), np.array(weights)
    assert weights.sum() == pytest.approx(1, **exactly)
    mean = (weights * values).sum()
    return mean - (WEIGHT * GOLD).sum(), np.sqrt((weights * (values - mean) ** 2).sum())


def test_a_batch_that_learned_leaves_no_bias_if_it_is_predicted_and_not_learned_from():
    bias, deviation = moments(is_refitted=False)
    assert abs(bias) < 1e-12
    assert deviation > 0.1


def test_learned_from_as_well_it_leaves_a_bias_of_second_order():
    bias, deviation = moments(is_refitted=True)
    print(f"bias {bias:.6f}, {bias / deviation:.5f} standard deviations")
    assert 1e-6 < abs(bias) <= 0.1 * deviation
