"""Cross-fitted predictions leave the difference estimator exactly unbiased: every sample of a small frame is gone
through, with the predictions recomputed for each. What breaks the rules is noticed in the same way."""

from itertools import product

import numpy as np
import pytest

from sampling.batches import probabilities_by_fold
from sampling.prediction import cross_fitted

N = 6
FRAME = {
    "features": np.array([[0.3, 1.0], [1.2, 0.0], [-0.5, 1.0], [0.8, 0.0], [-1.5, 1.0], [0.1, 0.0]]),
    "topic_index": np.array([0, 0, 0, 1, 1, 1]),
    "fold": np.array([0, 1, 2, 0, 1, 2]),
    "prior": np.array([0.3, 0.4, 0.2, 0.5, 0.25, 0.35]),
    "feature_ridge": 0.5,  # so little that two labels move the predictions far
}
GAIN = np.array([1.0, 0.5, 0.0, 1.0, 0.0, 1.0])
WEIGHT = np.array([0.7, -0.4, 0.2, 0.5, -0.6, 0.3])
PI = np.array([0.5, 0.4, 0.3, 0.6, 0.25, 0.35])
TRUTH = float((WEIGHT * GAIN).sum())


def samples(pi):
    """Yield every Poisson sample as a mask, with its probability."""
    for bits in product((False, True), repeat=pi.size):
        drawn = np.array(bits)
        yield drawn, float(np.where(drawn, pi, 1 - pi).prod())


def fitted(drawn):
    places = np.flatnonzero(drawn)
    return cross_fitted(**FRAME, labelled=places, label=GAIN[places])


def fitted_on_all(drawn):
    """Return predictions that use the own fold's labels too: those of copies of the items in a fold of their own."""
    places = np.flatnonzero(drawn)
    twice = {name: np.concatenate([FRAME[name]] * 2) for name in ("features", "topic_index", "prior")}
    fold = np.concatenate([FRAME["fold"], np.full(N, 3)])
    f = cross_fitted(**twice, fold=fold, feature_ridge=0.5, labelled=places, label=GAIN[places])
    return f[N:]


def difference(drawn, pi, f):
    return float((WEIGHT * f).sum() + (drawn * WEIGHT * (GAIN - f) / pi).sum())


def expectation(predict):
    return sum(chance * difference(drawn, PI, predict(drawn)) for drawn, chance in samples(PI))


def test_the_difference_estimator_is_exactly_unbiased_with_cross_fitted_predictions():
    assert expectation(fitted) == pytest.approx(TRUTH, abs=1e-12)


def test_predictions_that_know_their_own_fold_bias_it():
    assert abs(expectation(fitted_on_all) - TRUTH) > 0.01


def two_batches(prediction, inclusion, prediction_of_both=None):
    """Return bias and standard deviation over every first and second batch; each item has one permanent random number.

    `prediction` of the first batch gives the sizes of the second, and f unless there is one of both.
    """
    values, chances = [], []
    for first, chance in samples(PI):
        f = prediction(first)
        pi = inclusion(f)
        for second, again in samples(np.where(first, 0.0, (pi - PI) / (1 - PI))):
            if again > 0:
                drawn = first | second
                both = f if prediction_of_both is None else prediction_of_both(drawn)
                values.append(difference(drawn, pi, both))
                chances.append(chance * again)
    values, chances = np.array(values), np.array(chances)
    mean = (chances * values).sum()
    return mean - TRUTH, np.sqrt((chances * (values - mean) ** 2).sum())


def learned(f, fold=FRAME["fold"]):
    """Return pi of both batches: 1.5 more judgments expected, for what the predictions leave in doubt."""
    return probabilities_by_fold(
        np.abs(WEIGHT) * np.sqrt(f * (1 - f)),
        fold,
        frame_sizes=np.abs(WEIGHT),
        unlearned=PI,
        earlier=PI,
        expected_count=PI.sum() + 1.5,
    )


def learned_across_folds(f):
    """Return pi on one scale for all folds: an item's pi then depends on its own label through the others' f."""
    return learned(f, np.zeros(N, dtype=np.int64))


def test_two_batches_are_exactly_unbiased_when_sizes_and_predictions_know_other_folds_of_the_first_only():
    bias, deviation = two_batches(fitted, learned)
    assert abs(bias) < 1e-12
    assert deviation > 0.1


@pytest.mark.parametrize(
    ("prediction", "inclusion"),
    [(fitted_on_all, learned), (fitted, learned_across_folds), (fitted_on_all, learned_across_folds)],
)
def test_sizes_learned_from_the_own_folds_labels_bias_the_second_batch(prediction, inclusion):
    assert abs(two_batches(prediction, inclusion)[0]) > 1e-4


def test_predictions_refitted_on_both_batches_leave_a_bias_of_second_order():
    bias, deviation = two_batches(fitted, learned, prediction_of_both=fitted)
    print(f"bias {bias:.6f}, {bias / deviation:.5f} standard deviations")
    assert 1e-4 < abs(bias) <= 0.1 * deviation


def test_refitted_predictions_that_know_their_own_fold_have_more_bias_than_that():
    bias, deviation = two_batches(fitted, learned, prediction_of_both=fitted_on_all)
    assert abs(bias) > 0.1 * deviation
