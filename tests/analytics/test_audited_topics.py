"""Audits of whole topics: the case by hand, every draw and audit of it, predictions across folds, bad input."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from enumeration import exactly, poisson_samples, summary

from analytics.estimation.audited_topics import (
    TopicAudit,
    TopicPrediction,
    audited_topics,
    noun_of,
    topic_prediction,
)
from analytics.estimation.estimate import Estimate, Refusal
from analytics.estimation.two_phase import two_phase
from analytics.estimation.whole_topics import TakenTopics
from sampling.whole_topics import topic_probabilities

SHARE = np.array([0.5, 0.3, 0.15, 0.05])
CHANCE = topic_probabilities(SHARE, [0.2, 0.4, 0.3, 0.5], [10, 20, 10, 40], 30)
LABELLED = np.array([0.5, 0.3, 0.4, 0.6])
GOLD = np.array([0.6, 0.9, 0.5, 0.1])
ALL = TakenTopics(SHARE, np.ones(4), np.ones(4, dtype=bool))
FIRST_AND_THIRD = np.array([True, False, True, False])


def of_audit(audited, labelled=LABELLED, topics=ALL, before=LABELLED, chance=CHANCE):
    """Return the estimate; gold of topics that were not audited is not there."""
    found = audited_topics(
        topics,
        TopicAudit(chance, audited),
        np.where(audited, GOLD, np.nan),
        TopicPrediction(before, np.where(topics.taken, labelled, np.nan)),
        fewest=0,
    )[0]
    assert isinstance(found, Estimate)
    return found


def test_the_fixture_by_hand():
    """Everything is judged, f is the value by labels: .5 .3 .4 .6, and topics 1 and 3 are audited."""
    found = of_audit(FIRST_AND_THIRD)
    assert found.value == pytest.approx(0.531307, abs=5e-7)
    assert found.standard_error**2 == pytest.approx(0.001690, abs=5e-7)
    terms, rest = np.array([0.00065550, 0.00103427]), np.array([0.177419, 0.629838])
    expected = 2 * terms.sum() ** 2 / (rest * terms**2).sum()
    assert found.degrees_of_freedom == pytest.approx(expected, rel=1e-4)
    assert found.n == 2
    assert noun_of(found.sources) == "audited topics"


@pytest.mark.parametrize("labelled", [LABELLED, np.zeros(4), np.array([3.0, -1.0, 0.2, 0.9])])
def test_value_and_variance_are_exactly_unbiased_over_all_audits(labelled):
    outcomes = [(of_audit(audited, labelled), chance) for audited, chance in poisson_samples(CHANCE)]
    mean, variance, expected_variance = summary(outcomes)
    assert mean == pytest.approx((SHARE * GOLD).sum(), **exactly)
    assert expected_variance == pytest.approx(variance, **exactly)


def test_documents_taken_as_audited_one_by_one_are_noticed():
    """The positive control: two documents of a topic, of one gain each, taken as independent of each other."""
    outcomes, apart = [], []
    for audited, chance in poisson_samples(CHANCE):
        outcomes.append((of_audit(audited), chance))
        item = np.repeat(np.arange(4), 2)
        seen = audited[item]
        found = two_phase(
            np.repeat(SHARE / 2, 2)[None],
            draw_probability=np.ones(8),
            audited=seen,
            gold=GOLD[item],
            audit_probability=CHANCE[item],
            before=LABELLED[item],
            after=LABELLED[item],
            spread=np.zeros(8),
            before_total=[(SHARE * LABELLED).sum()],
            fewest=0,
        ).estimates[0]
        apart.append((found, chance))
    _, variance, right = summary(outcomes)
    mean, same_variance, wrong = summary(apart)
    assert mean == pytest.approx((SHARE * GOLD).sum(), **exactly)
    assert same_variance == pytest.approx(variance, **exactly)
    assert right == pytest.approx(variance, **exactly)
    assert wrong == pytest.approx(variance / 2, **exactly)  # half of what it is


RHO = np.array([1.0, 0.6, 0.5, 0.7])


def both_phases(audit_chance):
    """Yield every draw and audit with its chance."""
    for drawn, of_draw in poisson_samples(RHO):
        if not drawn[0]:
            continue  # of chance 0
        for audited, of_audit_ in poisson_samples(np.where(drawn, audit_chance, 0.0)):
            if not (audited & ~drawn).any():
                yield drawn, audited, of_draw * of_audit_


def test_drawn_and_audited_topics_have_no_bias_and_the_variance_of_two_phases():
    outcomes = []
    before = np.array([0.2, 0.5, 0.3, 0.4])
    for drawn, audited, chance in both_phases(CHANCE):
        found = of_audit(audited, topics=TakenTopics(SHARE, RHO, drawn), before=before)
        items = np.flatnonzero(drawn)
        same = two_phase(
            SHARE[None, items],
            draw_probability=RHO[items],
            audited=audited[items],
            gold=GOLD[items],
            audit_probability=CHANCE[items],
            before=before[items],
            after=LABELLED[items],
            spread=np.zeros(items.size),
            before_total=[(SHARE * before).sum()],
            fewest=0,
        ).estimates[0]
        for name in ("value", "standard_error", "low", "high"):
            assert getattr(found, name) == pytest.approx(getattr(same, name), **exactly)
        df = found.degrees_of_freedom, same.degrees_of_freedom
        assert df == (None, None) or df[0] == pytest.approx(df[1], **exactly)
        outcomes.append((found, chance))
    mean, variance, expected_variance = summary(outcomes)
    assert mean == pytest.approx((SHARE * GOLD).sum(), **exactly)
    assert expected_variance >= variance - 1e-12  # the drawing counts at least half of what is predicted


def test_with_every_topic_audited_nothing_is_left():
    found = of_audit(np.ones(4, dtype=bool), chance=np.ones(4))
    assert (found.value, found.standard_error) == (pytest.approx((SHARE * GOLD).sum()), 0)
    assert found.warning == ""


# -- predictions across folds ---------------------------------------------------------------------------------

FOLD = np.array([0, 0, 1, 1, 2])
PLUG_IN = np.array([[0.2, 0.4, 0.5, 0.3, 0.6]])
AGREEMENT = np.array([0.9, 0.1, 0.5, 0.4, 0.8])
LABELS = np.array([[0.7, 0.2, 0.6, 0.8, 0.9]])
VALUES = np.array([[0.9, 0.1, 0.8, 0.6, 0.4]])
FIVE, DRAW, AUDIT = np.full(5, 0.2), np.array([0.5, 0.3, 0.8, 0.6, 0.4]), np.array([0.6, 0.5, 0.3, 0.7, 0.4])


def across_folds(drawn, audited, fold=FOLD):
    topics = TakenTopics(FIVE, DRAW, drawn)
    unknown = np.where(drawn, LABELS, np.nan), np.where(audited, VALUES, np.nan)
    return topic_prediction(PLUG_IN, AGREEMENT, *unknown, topics, audited, fold)


def of_own_fold(drawn, audited):
    """Return predictions that saw their own fold: every topic stands there twice, once without its audit."""
    twice = TakenTopics(np.tile(FIVE, 2), np.tile(DRAW, 2), np.concatenate([drawn, drawn]))
    both = topic_prediction(
        np.tile(PLUG_IN, 2),
        np.tile(AGREEMENT, 2),
        np.tile(LABELS, 2),
        np.tile(VALUES, 2),
        twice,
        np.concatenate([audited, np.zeros(5, dtype=bool)]),
        np.repeat([0, 1], 5),
    )
    return TopicPrediction(both.before[:, 5:], both.after[:, 5:])


def mean_value(predicted):
    total = 0.0
    for drawn, audited in product(product([False, True], repeat=5), repeat=2):
        taken, seen = np.array(drawn), np.array(audited)
        if (seen & ~taken).any():
            continue
        chance = np.prod(np.where(taken, DRAW * np.where(seen, AUDIT, 1 - AUDIT), 1 - DRAW))
        topics = TakenTopics(FIVE, DRAW, taken)
        found = audited_topics(topics, TopicAudit(AUDIT, seen), VALUES, predicted(taken, seen), fewest=0)
        total += float(chance) * found.value[0]
    return total


def test_with_predictions_from_the_other_folds_the_value_is_exactly_unbiased():
    assert mean_value(across_folds) == pytest.approx(VALUES.mean(), **exactly)


def test_a_prediction_that_saw_its_own_fold_is_biased():
    """The positive control of the enumeration."""
    assert abs(mean_value(of_own_fold) - VALUES.mean()) > 0.001


def test_without_audits_the_prediction_is_the_value_by_labels():
    nothing = np.zeros(5, dtype=bool)
    found = across_folds(np.ones(5, dtype=bool), nothing)
    assert found.after.tolist() == LABELS.tolist()
    assert across_folds(nothing, nothing).before.tolist() == PLUG_IN.tolist()


def test_one_fold_by_hand():
    """All is drawn, topic 5 alone is audited. With x = (1, label, agreement): b = y (x/r) / (1 + sum x^2/r)."""
    audited = np.array([False, False, False, False, True])
    found = across_folds(np.ones(5, dtype=bool), audited)
    others = np.arange(2, 5)  # what folds 1 and 2 have, seen from fold 0
    scaled = [(row - row[others].mean()) / row[others].std() for row in (LABELS[0], AGREEMENT)]
    x, ridge = np.array([1.0, scaled[0][4], scaled[1][4]]), np.array([10.0, 30.0, 30.0])
    b = (0.4 - 0.9) * (x / ridge) / (1 + (x**2 / ridge).sum())
    expected = LABELS[0, 0] + b @ [1.0, scaled[0][0], scaled[1][0]]
    assert found.after[0, 0] == pytest.approx(expected, rel=1e-12)
    assert found.after[0, 4] == LABELS[0, 4]


def test_many_audited_topics_teach_how_labels_err():
    rng = np.random.default_rng(8)
    plug_in, agreement, drawn = rng.random((1, 400)), rng.random(400), np.ones(400, dtype=bool)
    theta = rng.random((1, 400))
    labelled = 0.4 + 0.5 * theta + rng.normal(0, 0.03, (1, 400))
    audited = rng.random(400) < 0.5
    topics = TakenTopics(np.full(400, 1 / 400), drawn * 1.0, drawn)
    found = topic_prediction(plug_in, agreement, labelled, theta, topics, audited, np.arange(400) % 10)
    assert (theta - found.after).std() < 0.09 < 0.13 < (theta - labelled).std()


# -- refusals and bad input -----------------------------------------------------------------------------------


def test_few_topics_are_refused():
    found = audited_topics(
        ALL, TopicAudit(CHANCE, FIRST_AND_THIRD), GOLD, TopicPrediction(LABELLED, LABELLED)
    )
    assert found[0] == Refusal("2 audited topics; at least 10 are needed", 8)


def test_input_that_does_not_fit_is_refused():
    predicted = TopicPrediction(LABELLED, LABELLED)
    good = TopicAudit(CHANCE, FIRST_AND_THIRD)
    for wrong in (0.0, -0.1, 1.1):
        with pytest.raises(ValueError, match="probability of a drawn topic"):
            audited_topics(ALL, replace(good, probability=np.full(4, wrong)), GOLD, predicted)
    with pytest.raises(ValueError, match="must be finite"):
        audited_topics(ALL, replace(good, probability=np.full(4, np.nan)), GOLD, predicted)
    with pytest.raises(ValueError, match="must have been drawn"):
        audited_topics(TakenTopics(SHARE, CHANCE, ~FIRST_AND_THIRD), good, GOLD, predicted)
    with pytest.raises(ValueError, match="must be audited"):
        audited_topics(ALL, replace(good, probability=np.ones(4)), GOLD, predicted)
    with pytest.raises(ValueError, match="audited must be boolean"):
        audited_topics(ALL, replace(good, audited=np.ones(3, dtype=bool)), GOLD, predicted)
    with pytest.raises(ValueError, match="value must be finite"):
        audited_topics(ALL, good, np.full(4, np.nan), predicted)
    with pytest.raises(ValueError, match="plug_in, audited and fold"):
        topic_prediction(PLUG_IN, AGREEMENT, LABELS, VALUES, ALL, FIRST_AND_THIRD, FOLD)
