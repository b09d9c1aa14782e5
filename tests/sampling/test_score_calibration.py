"""What gold elsewhere says of scores: the fit is the one defined, and a prediction that starts from it is unbiased."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

from sampling.prediction import cross_fitted, rank_features, standardise
from sampling.score_calibration import Calibration, fit_calibration, is_binary, log_popularity


def elsewhere(n, seed, intercept=-0.8, slope=2.5, popularity=-0.6):
    """Return documents with gold: their prior, score, popularity and relevance, drawn from these coefficients."""
    rng = np.random.default_rng(seed)
    prior, score = rng.uniform(0.05, 0.45, n), rng.uniform(0, 1, n)
    popular = np.log(rng.uniform(0.05, 5, n))
    chance = expit(logit(prior) + intercept + slope * (score - 0.5) + popularity * popular)
    return prior, score, popular, (rng.random(n) < chance).astype(float)


def test_popularity_is_the_log_odds_that_a_run_returns_the_document_within_the_depth():
    ranks = np.array([[1, 0, 9, 3], [2, 0, 0, 9], [0, 4, 0, 1]])
    odds = np.array([2.5 / 1.5, 1.5 / 2.5, 0.5 / 3.5, 2.5 / 1.5])
    assert log_popularity(ranks, 5) == pytest.approx(np.log(odds), abs=1e-12)
    assert rank_features(ranks, 5)[:, 1] == pytest.approx(standardise(np.log(odds)[:, None])[:, 0], abs=1e-12)


def test_the_fit_has_the_least_penalised_loss():
    prior, score, popular, relevant = elsewhere(80, seed=3)

    def loss(at):
        eta = (
            logit(prior) + at[0] + at[1] * (score - 0.5) + at[2] * (popular - popular.mean()) / popular.std()
        )
        fit = (np.logaddexp(0, eta) - relevant * eta).sum()
        return fit + 0.15 * (at[0] ** 2 + at[1] ** 2) + 5 * at[2] ** 2  # half of the ridges .3, .3 and 10

    best = minimize(loss, np.zeros(3), tol=1e-12).x
    unit = best[2] / popular.std()
    found = fit_calibration(prior, score, popular, relevant)
    assert (found.intercept, found.slope, found.popularity) == pytest.approx(
        (best[0] - unit * popular.mean(), best[1], unit), abs=1e-5
    )
    assert (found.n_gold, found.n_relevant) == (80, relevant.sum())


def test_much_gold_finds_what_made_it():
    found = fit_calibration(*elsewhere(200_000, seed=4))
    assert found.intercept == pytest.approx(-0.8, abs=0.05)
    assert found.slope == pytest.approx(2.5, abs=0.1)
    assert found.popularity == pytest.approx(-0.6, abs=0.05)


def test_the_prior_is_the_formula():
    found = Calibration(-0.3, 1.5, 0.2, 60, 20.0).prior([0.2, 0.4], [1.0, 0.25], [-1.0, 2.0])
    odds = np.array([0.25 * np.exp(-0.3 + 0.75 - 0.2), (0.4 / 0.6) * np.exp(-0.3 - 0.375 + 0.4)])
    assert found == pytest.approx(odds / (1 + odds), abs=1e-12)


def test_a_popularity_that_is_the_same_everywhere_says_nothing():
    prior, score, _, relevant = elsewhere(60, seed=5)
    assert fit_calibration(prior, score, np.full(60, 1.3), relevant).popularity == 0.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n": 49}, "49 documents have gold and a score; 50 or more are needed"),
        ({"n": 0}, "0 documents have gold and a score"),
        ({"relevant": [1.0] * 60}, "all 60 documents with gold and a score are relevant"),
        ({"relevant": [0.0] * 60}, "all 60 documents with gold and a score are not relevant"),
        ({"score": [0.25] * 60}, "have the score 0.25"),
        ({"score": [np.nan] * 60}, "score must be within"),
        ({"score": [1.5] * 60}, "score must be within"),
        ({"score": [0.5, 0.2]}, "score must have 60 items, got 2"),
        ({"popularity": [np.inf] * 60}, "popularity must be within"),
        ({"prior": [1.0] * 60}, r"prior must be within \(0, 1\), got 1"),
        ({"relevant": [2.0] * 60}, "relevant must be within"),
    ],
)
def test_what_cannot_be_fitted_is_refused_by_name(change, words):
    n = change.get("n", 60)
    prior, score, popularity, relevant = elsewhere(n, seed=6)
    given = {"prior": prior, "score": score, "popularity": popularity, "relevant": relevant} | change
    given.pop("n", None)
    with pytest.raises(ValueError, match=words):
        fit_calibration(**given)


def test_fifty_documents_are_enough():
    assert fit_calibration(*elsewhere(50, seed=6)).n_gold == 50


def test_labels_of_yes_and_no_are_told_from_probabilities():
    assert is_binary([1.0, 0.0, 0.0])
    assert not is_binary([1.0, 0.0, 1 / 3])


# -- exactness ------------------------------------------------------------------------------------------------

N = 6
FEATURES = np.array([[0.3, 1.0], [1.2, 0.0], [-0.5, 1.0], [0.8, 0.0], [-1.5, 1.0], [0.1, 0.0]])
TOPIC, FOLD = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 2, 0, 1, 2])
PRIOR = np.array([0.3, 0.4, 0.2, 0.45, 0.25, 0.35])
SCORE = np.array([0.9, 0.6, 0.1, 0.2, 0.4, 0.8])
POPULAR = np.array([1.1, 0.4, -1.0, 0.2, -0.7, -1.2])
GAIN = np.array([1.0, 0.5, 0.0, 1.0, 0.0, 1.0])
WEIGHT = np.array([0.7, -0.4, 0.2, 0.5, -0.6, 0.3])
PI = np.array([0.5, 0.4, 0.3, 0.6, 0.25, 0.35])
TRUTH = float((WEIGHT * GAIN).sum())
OTHERS = elsewhere(54, seed=7)


def with_gold(items):
    """Return the coefficients where the gold of other documents is known, and that of these items of the frame."""
    own = [values[items] for values in (PRIOR, SCORE, POPULAR, GAIN)]
    return fit_calibration(
        *(np.concatenate([values, more]) for values, more in zip(OTHERS, own, strict=True))
    )


def bias(calibration_of):
    """Return the bias over every sample; the coefficients follow from what was drawn as the given function says."""
    expected = 0.0
    for bits in product((False, True), repeat=N):
        drawn = np.array(bits)
        chance = float(np.where(drawn, PI, 1 - PI).prod())
        places = np.flatnonzero(drawn)
        f = cross_fitted(
            features=np.column_stack([FEATURES, SCORE]),
            topic_index=TOPIC,
            fold=FOLD,
            prior=calibration_of(places).prior(PRIOR, SCORE, POPULAR),
            feature_ridge=0.5,
            labelled=places,
            label=GAIN[places],
        )
        expected += chance * float((WEIGHT * f).sum() + (drawn * WEIGHT * (GAIN - f) / PI).sum())
    return expected - TRUTH


@pytest.mark.parametrize("shared", [[], [0, 3, 4], list(range(N))], ids=["nothing", "three", "all"])
def test_an_estimate_is_exactly_unbiased_also_where_documents_with_gold_are_shared(shared):
    fixed = with_gold(shared)
    assert abs(bias(lambda drawn: fixed)) < 1e-12


def test_gold_that_comes_of_the_draw_would_bias_it():
    assert abs(bias(with_gold)) > 1e-4
