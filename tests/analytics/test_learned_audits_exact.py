"""Audits that learn from earlier ones: every pair of audits of a small pool is gone through, with sizes and predictions
fitted anew for each. What breaks the rules is noticed in the same way."""

from functools import cache

import numpy as np
import pytest
from enumeration import exactly, poisson_samples

from analytics.estimation.gold_prediction import Foreknowledge, predicted_gold
from analytics.estimation.samples import AuditSample, Frame, Labels
from analytics.estimation.two_phase import two_phase
from sampling.audit_plan import Auditable
from sampling.judged import Judged

N = 6
TOPIC = np.array([0, 0, 0, 1, 1, 1])
FOLD = np.array([0, 1, 2, 0, 1, 2])
OWN_FOLDS_TOO = np.zeros(N, dtype=np.int64)
FEATURES = np.array([[0.3, 1.0], [1.2, 0.0], [-0.5, 1.0], [0.8, 0.0], [-1.5, 1.0], [0.1, 0.0]])
PRIOR = np.array([0.3, 0.4, 0.2, 0.5, 0.25, 0.35])
GRADE = np.array([2, 1, 0, 2, 0, 1])
WEIGHT = np.array([0.7, -0.4, 0.2, 0.5, -0.6, 0.3])
LABELS = Labels(
    np.array([0, 1, 2, 3, 4, 5, 0, 1, 4]),
    np.array([0] * 6 + [1, 2, 1]),
    np.array([2, 0, 0, 2, 1, 1, 1, 1, 0]),
    n_items=N,
    n_assessors=3,
    n_grades=3,
)
GAINS = np.array([0.0, 1.0, 3.0])
TRUTH = float(WEIGHT @ GAINS[GRADE])
FIRST = np.array([0.5, 0.4, 0.3, 0.6, 0.35, 0.45])  # probabilities of the first audit
MORE = 1.5  # items that the second adds
FRAME = Frame(2, TOPIC, np.arange(N), np.ones(N))


def known(fold=FOLD):
    """Return what is known beforehand; ridges are so small that two gold labels move the predictions far."""
    return Foreknowledge(FEATURES, np.full(2, 0.5), fold, PRIOR)


def audit_of(audited, chance):
    return AuditSample(np.ones(N), LABELS.classes(), audited, GRADE, chance, n_grades=3)


@cache
def predicted(audited, fitted, is_honest=True):
    """Return h and s2, fitted to the gold of `fitted`; a dishonest fit knows the fold that it predicts."""
    sample = audit_of(np.array(audited), np.ones(N))
    usable = np.array(fitted)
    if is_honest:
        return predicted_gold(FRAME, sample, GAINS, labels=LABELS, known=known(), fitted_gold=usable)
    # Twice the pool: the second half is a fold of its own, predicted from all of the first.
    twice = Labels(
        np.concatenate([LABELS.item, LABELS.item + N]),
        np.tile(LABELS.assessor, 2),
        np.tile(LABELS.grade, 2),
        n_items=2 * N,
        n_assessors=3,
        n_grades=3,
    )
    nobody = np.zeros(N, dtype=bool)
    sample = AuditSample(
        np.ones(2 * N),
        twice.classes(),
        np.concatenate([usable, nobody]),
        np.tile(GRADE, 2),
        np.ones(2 * N),
        n_grades=3,
    )
    found = predicted_gold(
        Frame(2, np.tile(TOPIC, 2), np.arange(2 * N), np.ones(2 * N)),
        sample,
        GAINS,
        labels=twice,
        known=Foreknowledge(
            np.tile(FEATURES, (2, 1)),
            np.full(2, 0.5),
            np.concatenate([FOLD, np.full(N, 3)]),
            np.tile(PRIOR, 2),
        ),
    )
    return type(found)(found.before[N:], found.after[N:], found.spread[N:])


def second_probabilities(spread, *, fold=FOLD, earlier=FIRST, has_learned=False, strategy="learned"):
    judged = Judged(
        influence=np.abs(WEIGHT),
        inclusion_probability=np.ones(N),
        topic_index=TOPIC,
        bronze_grade=LABELS.table().argmax(axis=1),
        error_variance=np.ones(N),
        n_grades=3,
        fold=fold,
        gold_spread=spread,
    )
    return Auditable(judged, earlier, has_learned).probabilities(strategy, MORE)


def value(audited, chance, after):
    """Return the estimate and its variance after the audits, of the whole pool: g cancels."""
    found = two_phase(
        WEIGHT,
        draw_probability=np.ones(N),
        audited=audited,
        gold=np.where(audited, GAINS[GRADE], 0.0),
        audit_probability=chance,
        before=np.zeros(N),
        after=after.after,
        spread=after.spread,
        before_total=0.0,
        fewest=0,
    ).estimates
    return found.value[0]


def later(first, pi):
    """Yield every union of the first audit and a later one, with its chance: one permanent number an item."""
    more = np.where(first, 0.0, (pi - FIRST) / (1 - FIRST))
    for mask, chance in poisson_samples(more):
        if chance > 0 and not (mask & first).any():
            yield first | mask, chance


def outcomes(*, sizes_are_honest=True, fold=FOLD, is_exact=True, fit_is_honest=True):
    """Yield the estimate after two audits with its chance."""
    for first, chance in poisson_samples(FIRST):
        told = predicted(tuple(first), tuple(first), sizes_are_honest)
        pi = second_probabilities(told.spread, fold=fold)
        for both, again in later(first, pi):
            fitted = tuple(first) if is_exact else tuple(both)
            yield value(both, pi, predicted(tuple(both), fitted, fit_is_honest)), chance * again


def moments(found):
    values, chances = np.array(list(found)).T
    assert chances.sum() == pytest.approx(1, **exactly)
    mean = float(values @ chances)
    return mean, float(np.sqrt(chances @ (values - mean) ** 2))


def test_sizes_and_predictions_from_the_first_audit_of_other_folds_are_exactly_unbiased():
    mean, _ = moments(outcomes())
    assert mean == pytest.approx(TRUTH, **exactly)


def test_predictions_refitted_on_both_audits_are_biased_by_a_little_only():
    mean, sd = moments(outcomes(is_exact=False))
    print(f"refit: bias {mean - TRUTH:.6f}, {(mean - TRUTH) / sd:.4f} standard deviations")
    assert mean != pytest.approx(TRUTH, abs=1e-6)
    assert abs(mean - TRUTH) < 0.1 * sd


@pytest.mark.parametrize(
    "broken",
    [
        {"sizes_are_honest": False},
        {"fit_is_honest": False},
        {"fold": OWN_FOLDS_TOO},  # one constant for all folds
    ],
    ids=["sizes that know their own fold", "a fit that knows its own fold", "one scale for all folds"],
)
def test_what_knows_its_own_fold_is_found(broken):
    mean, sd = moments(outcomes(**broken))
    print(f"{broken}: bias {mean - TRUTH:.6f}, {(mean - TRUTH) / sd:.4f} standard deviations")
    assert abs(mean - TRUTH) > 1e-4


def test_three_audits_are_exactly_unbiased_if_the_last_goes_fold_by_fold_too():
    """The last does not learn itself: its sums of folds alone must not carry what the second learned."""

    def mean_of(*, by_fold):
        total = 0.0
        for first, chance in poisson_samples(FIRST):
            told = predicted(tuple(first), tuple(first))
            pi = second_probabilities(told.spread)
            pi = second_probabilities(None, earlier=pi, has_learned=by_fold, strategy="simple")
            more = np.where(first, 1.0, (pi - FIRST) / (1 - FIRST))
            # Linear in the later audits: their expectation needs no enumeration.
            residual = (GAINS[GRADE] - told.after) * more / pi
            total += chance * float(WEIGHT @ (told.after + residual))
        return total

    assert mean_of(by_fold=True) == pytest.approx(TRUTH, **exactly)
    assert abs(mean_of(by_fold=False) - TRUTH) > 1e-6


# -- probabilities --------------------------------------------------------------------------------------------


def test_a_fold_gets_what_influence_gives_it_and_documents_in_doubt_more():
    spread = np.array([1.0, 0.01, 1.0, 0.01, 0.01, 1.0])
    pi = second_probabilities(spread, earlier=np.zeros(N))
    even = second_probabilities(spread, earlier=np.zeros(N), strategy="influence")
    for k in range(3):
        assert pi[k == FOLD].sum() == pytest.approx(even[k == FOLD].sum(), abs=1e-6)
    assert pi[0] > even[0]
    assert pi[3] < even[3]
    # Fold 0: items 0 and 3. 5 % evenly, of the rest .7 against .5 times the root of .01, scaled to influence's share.
    share = 0.95 * 1.2 / 2.7 * np.array([0.7, 0.05]) / 0.75 + 0.05 / 6
    assert pi[[0, 3]] / pi[[0, 3]].sum() == pytest.approx(share / share.sum(), abs=1e-9)


def test_without_enough_gold_it_is_influence_of_which_a_twentieth_is_spread_evenly():
    influence = np.abs(WEIGHT) / np.abs(WEIGHT).sum()
    for strategy, even in (("learned", 0.05), ("influence", 0.2)):
        found = second_probabilities(None, fold=None, earlier=np.zeros(N), strategy=strategy)
        assert found == pytest.approx(MORE * (even / N + (1 - even) * influence), abs=1e-9)


@pytest.mark.parametrize("strategy", ["learned", "influence", "full"])
def test_after_an_audit_that_learned_sums_are_right_and_nothing_falls(strategy):
    rng = np.random.default_rng(4)
    n = 400
    judged = Judged(
        influence=rng.gamma(0.3, size=n),
        inclusion_probability=rng.uniform(0.1, 1, n),
        topic_index=rng.integers(0, 12, n),
        bronze_grade=rng.integers(0, 3, n),
        error_variance=rng.uniform(0, 1, n),
        n_grades=3,
        fold=rng.integers(0, 10, n),
        gold_spread=rng.uniform(0, 1, n) ** 4,
    )
    earlier = np.where(rng.random(n) < 0.8, rng.uniform(0, 0.6, n), 0.0)
    for n_more in (0.5, 3, 40, 120):
        pi = Auditable(judged, earlier, has_learned=True).probabilities(strategy, n_more)
        assert (pi >= earlier).all()
        assert pi.min() > 0
        assert pi.max() <= 1
        assert pi.sum() - earlier.sum() == pytest.approx(n_more, abs=1e-4)


def test_folds_are_needed():
    judged = Judged(np.ones(4), np.ones(4), np.zeros(4, int), np.zeros(4, int), np.ones(4), n_grades=2)
    with pytest.raises(ValueError, match="needs the fold of every item, got None"):
        Auditable(judged, np.zeros(4), has_learned=True).probabilities("simple", 1)
    with pytest.raises(ValueError, match="gold_spread needs the fold"):
        Judged(np.ones(4), np.ones(4), np.zeros(4, int), np.zeros(4, int), np.ones(4), 2, None, np.ones(4))
