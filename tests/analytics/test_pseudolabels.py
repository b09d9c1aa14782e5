"""Pseudo-labels against the verified fixture, exact enumeration of draws and audits, and GREG-label."""

import itertools

import numpy as np
import pytest
from audits import corrected_labels, greg_label, plain_labels

from analytics.estimation.graded_labels import mean_on_stairs, on_stairs, stairs
from analytics.estimation.pseudolabels import (
    _expected_noise,
    _Phases,
    _pseudo_labels,
    census,
)
from analytics.estimation.samples import Frame, Labels

GAINS = [0, 1, 3]
FIXTURE = {
    "prediction": [0.4, 0.3, 0.5, 0.2],
    "topic_index": [0] * 4,
    "n_topics": 1,
    "judged": [0, 2],
    "draw_probability": [0.5, 1],
    "label": [1, 1],
}


def subsets(n):
    return (np.array(chosen) for chosen in itertools.product([False, True], repeat=n))


def chance(chosen, probability):
    return float(np.prod(np.where(chosen, probability, 1 - np.asarray(probability))))


def test_the_fixture_of_the_verified_method():
    labels = plain_labels(**FIXTURE)
    assert labels.utility == pytest.approx([1.6, 0.3, 1, 0.2])
    assert labels.stair_total.tolist() == [[pytest.approx(3.1)]]
    assert labels.stair_found.tolist() == [[2]]
    assert labels.draw_noise == pytest.approx(np.array([[1.2 * 0.5**0.5, 0]]))


def test_a_gain_is_the_sum_of_the_steps_its_grade_reaches():
    for gains in ([0, 1], [0, 1, 3], [0, 0, 0.5, 0.5, 7], [2, 0, 1]):
        flight = stairs(gains)
        assert (flight.steps[:, None] * on_stairs(gains, range(len(gains)))).sum(axis=0) == pytest.approx(
            gains
        )


def test_of_several_labels_the_share_that_reaches_a_stair_counts():
    def labels(item, grade):
        return Labels(item, np.zeros(len(item), dtype=int), grade, n_items=2, n_assessors=1, n_grades=3)

    rows = mean_on_stairs(GAINS, labels([1, 0, 1, 1], [2, 1, 0, 1]))
    assert rows == pytest.approx(np.array([[1, 2 / 3], [0, 1 / 3]]))
    with pytest.raises(ValueError, match="got 0 for item 1"):
        mean_on_stairs(GAINS, labels([0], [1]))
    with pytest.raises(ValueError, match="label arrays must be equally long, got 2, 2, 1"):
        labels([0, 0], [1])


def test_every_items_pseudo_label_and_every_stairs_total_is_unbiased_whatever_the_prediction():
    grade, topic = np.array([2, 0, 1, 1]), np.array([0, 0, 1, 1])
    gain = np.array(GAINS, dtype=float)[grade]
    pi, f = np.array([0.3, 0.8, 0.5, 0.6]), np.array([0.7, 2.0, -0.4, 0.1])
    mean = np.zeros(4)
    gains_by_topic = np.zeros(2)
    for drawn in subsets(4):
        judged = np.flatnonzero(drawn)
        labels = plain_labels(
            prediction=f,
            topic_index=topic,
            n_topics=2,
            judged=judged,
            draw_probability=pi[judged],
            label=on_stairs(GAINS, grade[judged]),
            steps=stairs(GAINS).steps,
        )
        mean += chance(drawn, pi) * labels.utility
        # however the prediction is split over the stairs, their gains add up to the items' u*
        by_stair = (labels.steps[:, None] * labels.stair_total).sum(axis=0)
        assert by_stair == pytest.approx(np.bincount(topic, weights=labels.utility))
        gains_by_topic += chance(drawn, pi) * by_stair
    assert mean == pytest.approx(gain)
    assert gains_by_topic == pytest.approx(np.bincount(topic, weights=gain))


def test_the_noise_of_a_sum_is_the_estimated_poisson_variance_term_by_term():
    rng = np.random.default_rng(4)
    pi, f, label = rng.uniform(0.1, 1, size=30), rng.uniform(size=30), rng.integers(0, 2, size=30)
    labels = plain_labels(
        prediction=f,
        topic_index=np.zeros(30, dtype=int),
        n_topics=1,
        judged=np.arange(30),
        draw_probability=pi,
        label=label,
    )
    weight = rng.normal(size=30)
    terms = (1 - pi) * (weight * (label - f) / pi) ** 2
    assert (weight * labels.draw_noise[0]) ** 2 == pytest.approx(terms)
    assert not labels.audit_noise.any()


def test_in_a_replicate_fewer_are_found_too_so_that_no_bound_binds_that_does_not_bind_in_truth():
    """Without a prediction sum u* is never below the number found, whatever was drawn."""
    rng = np.random.default_rng(5)
    labels = plain_labels(
        prediction=np.zeros(40),
        topic_index=np.zeros(40, dtype=int),
        n_topics=1,
        judged=np.arange(40),
        draw_probability=rng.uniform(0.5, 0.95, size=40),
        label=rng.integers(0, 2, size=40),
    )
    noise, found_noise = labels.replicates(rng.standard_exponential((labels.noisy.size, 500)) - 1)
    total = labels.stair_total[0, 0] + noise[0].sum(axis=0)
    found = labels.stair_found[0, 0]
    assert (total >= found + found_noise[0].sum(axis=0)).all()
    assert (total < found).any()  # as a bound that stood still would have it


@pytest.mark.parametrize("p", [[[0.3, 0.9, 0.0, 1.0]], [[0.6, 0.9, 0.3, 1.0], [0.2, 0.9, 0.0, 0.4]]])
def test_the_expected_noise_is_that_of_labels_that_vary_as_predicted(p):
    """Averaged over labels with the predicted probabilities, the squared noise of the gain is the expected one."""
    rows = np.array(p)
    steps = np.array([1.0, 2.0])[: len(rows)]
    pi = np.array([0.4, 0.2, 0.9, 0.5])
    nothing = np.zeros((len(rows), 4))
    phases = _Phases(
        (steps[:, None] * rows).sum(axis=0),
        nothing,
        pi > 0,
        np.ones(4),
        nothing,
    )
    found = (steps[:, None] * _expected_noise(phases, pi, rows, steps)).sum(axis=0) ** 2
    reached = np.concatenate([np.ones((1, 4)), rows, np.zeros((1, 4))])
    expected = np.zeros(4)
    for grade, probability in enumerate(-np.diff(reached, axis=0)):
        gap = steps[:grade].sum() - phases.prediction
        expected += probability * gap**2 * (1 - pi) / pi**2
    assert found == pytest.approx(expected)


def test_the_expected_noise_of_an_audit_is_that_of_class_means_and_variances():
    phases = _Phases(
        np.array([0.2, 0.5]), np.array([[0.9, 0.1]]),
        np.array([True, False]), np.array([0.5, 0.1]), np.array([[1.0, 0.0]]), np.array([[0.09, 0.04]]),
        np.array([0.09, 0.04]),
    )  # fmt: skip
    found = _expected_noise(phases, np.array([0.5, 0.25]), np.array([[0.2, 0.5]]), np.ones(1))
    expected = [0.5 / 0.25 * (0.7**2 + 0.09 / 0.5), 0.75 / 0.0625 * (0.4**2 + 0.04 / 0.1)]
    assert found[0] ** 2 == pytest.approx(expected)


def test_cautious_noise_is_the_larger_one_topic_by_topic():
    shared = {"prediction": [0.3] * 4, "topic_index": [0, 0, 1, 1], "n_topics": 2}
    labels = plain_labels(**shared, judged=[0, 1, 2, 3], draw_probability=[0.5] * 4, label=[0, 0, 1, 1])
    expected = np.sqrt(0.3 * 0.7 * 0.5) / 0.5
    seen = 0.7 * np.sqrt(0.5) / 0.5
    # topic 0 missed whatever is relevant in it and shows little noise, topic 1 shows more than expected
    assert labels.cautious().draw_noise == pytest.approx(np.array([[expected, expected, seen, seen]]))
    assert labels.cautious().utility is labels.utility
    unpredicted = plain_labels(
        **{**shared, "prediction": [0] * 4}, judged=[0, 1], draw_probability=[0.5] * 2, label=[0, 1]
    )
    assert unpredicted.cautious().draw_noise.tolist() == unpredicted.draw_noise.tolist()


def two_phases(drawn, audited, mean, gold, f, pi, pi_a):
    """Return the pseudo-labels of a draw and audit, with class means that were known before (as a test may)."""
    judged = np.flatnonzero(drawn)
    return _pseudo_labels(
        Frame(1, np.zeros(f.size, dtype=int), judged, pi[judged]),
        _Phases(f, mean[:, judged], audited[judged], pi_a[judged], gold[:, judged]),
        np.array([1.0, 2.0]),
        ("drawing", "gold"),
    )  # fmt: skip


def test_two_phases_are_unbiased_and_so_is_their_variance_over_all_draws_and_audits():
    grade = np.array([2, 0, 1])
    gold = on_stairs(GAINS, grade)
    mean = np.array([[0.7, 0.2, 0.5], [0.4, 0.1, 0.3]])
    f, pi, pi_a = np.array([1.1, 0.4, 0.2]), np.array([0.5, 0.7, 0.4]), np.array([0.3, 0.6, 0.8])
    weight = np.array([1.0, -0.5, 2.0])
    expected, second, variance, without_audit = np.zeros(3), 0.0, 0.0, 0.0
    found = np.zeros((3, 2))  # mean, second moment, estimated variance of the counts of found items
    for drawn in subsets(3):
        for audited in subsets(3):
            if (audited & ~drawn).any():
                continue
            p = chance(drawn, pi) * chance(audited[drawn], pi_a[drawn])
            labels = two_phases(drawn, audited, mean, gold, f, pi, pi_a)
            total = float((weight * labels.utility).sum())
            noise = np.array(
                [
                    (labels.steps[:, None] * part).sum(axis=0)
                    for part in (labels.draw_noise, labels.audit_noise)
                ]
            )
            terms = (weight[labels.judged] * noise) ** 2
            expected += p * labels.utility
            second += p * total**2
            variance += p * terms.sum()
            without_audit += p * terms[0].sum()
            count = labels.stair_found[:, 0]
            found_noise = (labels.found_draw_noise**2 + labels.found_audit_noise**2).sum(axis=1)
            found += p * np.stack([count, count**2, found_noise])
    gain = np.array(GAINS, dtype=float)[grade]
    assert expected == pytest.approx(gain)
    assert variance == pytest.approx(second - float((weight * gain).sum()) ** 2)
    assert found[2] == pytest.approx(found[1] - found[0] ** 2)
    # the audit's own noise is needed: without it the variance is too small
    assert without_audit < 0.95 * variance


@pytest.mark.parametrize("gains", [[0, 1, 1], [0, 1, 3]])
def test_the_weighted_sum_of_corrected_pseudo_labels_is_greg_labels_value(gains):
    rng = np.random.default_rng(8)
    n = 300
    judged = np.flatnonzero(rng.random(n) < 0.6)
    m = judged.size
    grade, classes = rng.integers(0, 3, size=m), rng.integers(0, 4, size=m)
    pi, pi_a = rng.uniform(0.3, 1, size=m), rng.uniform(0.2, 1, size=m)
    audited = rng.random(m) < pi_a
    f, w = rng.uniform(0, 2, size=n), rng.normal(size=n)
    labels = corrected_labels(
        prediction=f,
        topic_index=np.arange(n) % 5,
        n_topics=5,
        judged=judged,
        draw_probability=pi,
        bronze_class=classes,
        audited=audited,
        gold_grade=grade,
        audit_probability=pi_a,
        gains=gains,
    )
    reference = greg_label(
        w[judged],
        draw_probability=pi,
        bronze_class=classes,
        audited=audited,
        gold_grade=grade,
        audit_probability=pi_a,
        gains=gains,
        prior=f[judged],
        prior_total=(f * w).sum(),
    )[0]
    assert (w * labels.utility).sum() == pytest.approx(reference.value)
    assert labels.counted.tolist() == audited.tolist()
    assert labels.known_noun == "audited"
    noise = (labels.steps[:, None] * labels.audit_noise).sum(axis=0)
    assert (noise**2).sum() > 0


def test_an_audit_that_finds_no_error_has_noise_all_the_same():
    n = 60
    shared = {
        "prediction": np.full(n, 0.5),
        "topic_index": np.zeros(n, dtype=int),
        "n_topics": 1,
        "judged": np.arange(n),
        "draw_probability": np.ones(n),
        "bronze_class": np.arange(n) % 2,
        "audited": np.arange(n) < 30,
        "gold_grade": np.arange(n) % 2,  # gold always says what the bronze class says
        "gains": [0, 1],
    }
    labels = corrected_labels(**shared, audit_probability=np.full(n, 0.5))
    assert labels.utility.sum() == pytest.approx(30)
    assert (labels.audit_noise**2).sum() > 0
    certain = corrected_labels(**{**shared, "audited": np.ones(n, dtype=bool)}, audit_probability=np.ones(n))
    assert certain.is_census
    assert not labels.is_census


def test_a_census_has_the_counts_themselves_and_no_noise():
    labels = census(topic_index=[0, 0, 2], n_topics=3, grades=[2, 1, 0], gains=GAINS)
    assert labels.is_census
    assert labels.utility.tolist() == [3, 1, 0]
    assert labels.stair_total.tolist() == labels.stair_found.tolist() == [[2, 0, 0], [1, 0, 0]]


def test_nothing_judged_leaves_the_prediction():
    labels = plain_labels(
        prediction=[0.5, 0.25], topic_index=[0, 0], n_topics=1, judged=[], draw_probability=[], label=[[]]
    )
    assert labels.utility.tolist() == [0.5, 0.25]
    assert not labels.is_census
    nobody = corrected_labels(
        prediction=[0.5],
        topic_index=[0],
        n_topics=1,
        judged=[],
        draw_probability=[],
        bronze_class=[],
        audited=np.zeros(0, dtype=bool),
        gold_grade=[],
        audit_probability=[],
        gains=GAINS,
    )
    assert nobody.utility.tolist() == [0.5]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"prediction": [0.4, np.nan, 0.5, 0.2]}, "prediction must be finite, got nan"),
        ({"prediction": [0.4]}, r"prediction must have shape \(4,\)"),
        ({"topic_index": [0, 0, 0, 1]}, "topic_index"),
        ({"n_topics": 0}, "n_topics must be at least 1, got 0"),
        ({"judged": [0, 0]}, "judged must name every item once"),
        ({"judged": [0, 4]}, "judged"),
        ({"draw_probability": [0, 1]}, r"draw_probability must be in \(0, 1\], got 0"),
        ({"label": [1, 1.5]}, r"label must be in \[0, 1\], got 1.5"),
        ({"label": [1]}, "label must have shape"),
        ({"steps": [0.0]}, "steps must be flat and above 0"),
        ({"steps": []}, "steps must be flat and above 0"),
    ],
)
def test_impossible_input_is_refused_by_name(changed, reason):
    with pytest.raises(ValueError, match=reason):
        plain_labels(**{**FIXTURE, **changed})


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"audited": [1, 0]}, "audited must be 2 booleans"),
        ({"audit_probability": [0.5, 0]}, r"audit_probability must be in \(0, 1\], got 0"),
        ({"bronze_class": [1]}, "bronze_class must have length 2, got 1"),
        ({"gold_grade": [3, 0]}, "gold_grade must be at most 1, got 3"),
        ({"gains": [0, 0]}, "one above 0"),
        ({"gains": [0, -1]}, "none negative"),
    ],
)
def test_an_impossible_audit_is_refused_by_name(changed, reason):
    given = {
        name: FIXTURE[name]
        for name in ("prediction", "topic_index", "n_topics", "judged", "draw_probability")
    }
    audit = {
        "bronze_class": [0, 1],
        "audited": np.array([True, False]),
        "gold_grade": [1, 0],
        "audit_probability": [0.5, 0.5],
        "gains": [0, 1],
    }
    with pytest.raises(ValueError, match=reason):
        corrected_labels(**given, **{**audit, **changed})
