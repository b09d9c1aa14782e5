"""Predictions of gold gains that know nothing of their own fold: every draw and audit of a small frame is gone through,
with the predictions fitted anew for each. What breaks the rules is noticed in the same way."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from enumeration import exactly, poisson_samples

from analytics.estimation.gold_prediction import Foreknowledge, GoldFits, predicted_gold
from analytics.estimation.samples import AuditSample, Frame, Labels
from analytics.estimation.two_phase import two_phase
from sampling.batches import rescaled_by_fold
from sampling.leave_out import some_of_each_fold

N = 6
TOPIC = np.array([0, 0, 0, 1, 1, 1])
FOLD = np.array([0, 1, 2, 0, 1, 2])
KNOWN = Foreknowledge(
    features=np.array([[0.3, 1.0], [1.2, 0.0], [-0.5, 1.0], [0.8, 0.0], [-1.5, 1.0], [0.1, 0.0]]),
    ridge=np.full(2, 0.5),  # so little that two gold labels move the predictions far
    fold=FOLD,
    prior=np.array([0.3, 0.4, 0.2, 0.5, 0.25, 0.35]),
)
GRADE = np.array([2, 1, 0, 2, 0, 1])
WEIGHT = np.array([0.7, -0.4, 0.2, 0.5, -0.6, 0.3])
PI = np.array([0.5, 0.4, 0.6, 0.7, 0.45, 0.55])
SIZES = np.array([3.0, 1.0, 2.0, 1.5, 1.0, 2.5])  # of audits
# Two labels of items 0, 1 and 4, one of the others; the first assessor labelled all of them.
LABELS = Labels(
    np.array([0, 1, 2, 3, 4, 5, 0, 1, 4]),
    np.array([0] * 6 + [1, 2, 1]),
    np.array([2, 0, 0, 2, 1, 1, 1, 1, 0]),
    n_items=N,
    n_assessors=3,
    n_grades=3,
)
GAINS = {"two gains": np.array([0.0, 3.0, 3.0]), "three gains": np.array([0.0, 1.0, 3.0])}


def evidence(drawn, audited, chance, pi=PI):
    """Return the frame, the audit and the labels after a draw and an audit, masks over the frame."""
    places = np.flatnonzero(drawn)
    labels = LABELS.of_items(places)
    frame = Frame(2, TOPIC, places, pi[places])
    audit = AuditSample(
        pi[places], labels.classes(), audited[places], GRADE[places], chance[places], n_grades=3
    )
    return frame, audit, labels


def value(drawn, audited, chance, gains, pi=PI):
    frame, audit, labels = evidence(drawn, audited, chance, pi)
    found = predicted_gold(frame, audit, gains, labels=labels, known=KNOWN)
    return (
        two_phase(
            WEIGHT[frame.judged],
            draw_probability=audit.draw_probability,
            audited=audit.audited,
            gold=gains[audit.gold_grade],
            audit_probability=audit.audit_probability,
            before=found.before[frame.judged],
            after=found.after,
            spread=found.spread,
            before_total=[(WEIGHT * found.before).sum()],
            fewest=0,
        )
        .estimates[0]
        .value
    )


def over_all(drawn):
    """Return audit probabilities on one scale for all judged items: two are expected to be audited."""
    sizes = np.where(drawn, SIZES, 0.0)
    return np.minimum(0.9, 2 * sizes / max(sizes.sum(), 1.0))


def by_fold(drawn):
    """Return the same with a sum in every fold that follows from the frame alone."""
    sizes = rescaled_by_fold(np.where(drawn, SIZES, 0.0), FOLD, SIZES)
    return np.where(drawn, np.minimum(0.9, 2 * sizes), 0.0)


def moments(chances, gains, pi=PI):
    """Return bias and standard deviation of the estimate over every draw and every audit of it."""
    values, weights = [], []
    for drawn, chance in poisson_samples(pi):
        if chance == 0:
            continue
        places, a = np.flatnonzero(drawn), chances(drawn)
        for taken, again in poisson_samples(a[places]):
            audited = np.zeros(N, dtype=bool)
            audited[places[taken.astype(bool)]] = True
            values.append(value(drawn, audited, a, gains, pi))
            weights.append(chance * again)
    values, weights = np.array(values), np.array(weights)
    assert weights.sum() == pytest.approx(1, **exactly)
    truth = (WEIGHT * gains[GRADE]).sum()
    mean = (weights * values).sum()
    return mean - truth, np.sqrt((weights * (values - mean) ** 2).sum())


@pytest.mark.parametrize("gains", GAINS.values(), ids=GAINS)
def test_the_corrected_number_of_a_whole_pool_is_exactly_unbiased(gains):
    bias, deviation = moments(over_all, gains, np.ones(N))
    assert abs(bias) < 1e-12
    assert deviation > 0.1


def test_of_a_draw_too_if_audits_are_scaled_fold_by_fold():
    bias, _ = moments(by_fold, GAINS["three gains"])
    assert abs(bias) < 1e-12


def test_and_if_g_learns_from_every_nth_item_of_a_fold_alone(monkeypatch):
    from analytics.estimation import gold_prediction

    of_all = moments(by_fold, GAINS["three gains"])[1]
    monkeypatch.setattr(gold_prediction, "some_of_each_fold", partial(some_of_each_fold, most=1))
    bias, deviation = moments(by_fold, GAINS["three gains"])
    assert abs(bias) < 1e-12
    assert abs(deviation - of_all) > 1e-6  # it is another number


def test_audits_scaled_over_all_judged_items_leave_a_bias_of_second_order():
    bias, deviation = moments(over_all, GAINS["three gains"])
    assert 1e-6 < abs(bias) < 0.02 * deviation


@pytest.mark.parametrize(
    ("chances", "pi"), [(over_all, np.ones(N)), (by_fold, PI)], ids=["whole pool", "drawn"]
)
def test_a_fit_that_knows_its_own_fold_biases_it(chances, pi, monkeypatch):
    monkeypatch.setattr(GoldFits, "items_of", lambda fits, fold: np.flatnonzero(fits.own == (fold + 2) % 3))
    bias, _ = moments(chances, GAINS["two gains"], pi)
    assert abs(bias) > 0.01


def test_columns_scaled_with_the_own_folds_labels_bias_a_draw(monkeypatch):
    """The fit itself is of the other folds; that the scale of its columns is not is enough to be noticed."""
    from analytics.estimation import gold_prediction

    scaled = gold_prediction._scale_over
    monkeypatch.setattr(
        gold_prediction, "_scale_over", lambda column, others: scaled(column, np.ones_like(others))
    )
    bias, _ = moments(by_fold, GAINS["two gains"])
    assert abs(bias) > 1e-6


# -- what a fit sees -------------------------------------------------------------------------------------------


def large(n=400, n_grades=3, n_folds=5, seed=4, share=0.5):
    """Return the frame, audit, labels and foreknowledge of a simulated campaign."""
    rng = np.random.default_rng(seed)
    topic = np.sort(rng.integers(0, 8, n))
    known = Foreknowledge(
        rng.normal(size=(n, 3)), np.full(3, 10.0), rng.integers(0, n_folds, n), rng.uniform(0.1, 0.6, n)
    )
    judged = np.flatnonzero(rng.random(n) < share)
    m = judged.size
    grade = rng.integers(0, n_grades, m)
    votes = np.where(rng.random((3, m)) < 0.6, grade, rng.integers(0, n_grades, (3, m)))
    kept = np.stack([np.ones(m, dtype=bool), rng.random(m) < 0.95, rng.random(m) < 0.3])
    who, item = np.nonzero(kept)
    labels = Labels(item, who, votes[kept], n_items=m, n_assessors=3, n_grades=n_grades)
    pi = np.full(m, min(share, 1.0))
    audit = AuditSample(pi, labels.classes(), rng.random(m) < 0.4, grade, np.full(m, 0.4), n_grades)
    return Frame(8, topic, judged, pi), audit, labels, known


@pytest.mark.parametrize("gains", GAINS.values(), ids=GAINS)
def test_predictions_of_a_fold_do_not_change_with_gold_and_audit_of_the_fold(gains):
    frame, audit, labels, known = large()
    own = known.fold[frame.judged] == 2
    other = replace(
        audit, audited=audit.audited ^ own, gold_grade=np.where(own, 2 - audit.gold_grade, audit.gold_grade)
    )
    one, two = (predicted_gold(frame, each, gains, labels=labels, known=known) for each in (audit, other))
    of_fold = known.fold == 2
    assert one.before[of_fold].tolist() == two.before[of_fold].tolist()
    assert one.after[own].tolist() == two.after[own].tolist()
    assert one.spread[own].tolist() == two.spread[own].tolist()
    assert abs(one.before - two.before)[~of_fold].min() > 1e-6  # other folds do see them


def test_predictions_of_a_fold_do_not_change_with_its_draw_and_labels():
    frame, audit, labels, known = large()
    own = known.fold[frame.judged] == 2
    kept = np.flatnonzero(~own | (np.arange(own.size) % 3 > 0))  # a third of the fold was not drawn
    changed = replace(labels, grade=np.where(own[labels.item], 2 - labels.grade, labels.grade))
    fewer = Frame(frame.n_topics, frame.topic_index, frame.judged[kept], frame.draw_probability[kept])
    rest = changed.of_items(kept)
    small = AuditSample(
        audit.draw_probability[kept], rest.classes(), audit.audited[kept], audit.gold_grade[kept],
        audit.audit_probability[kept], 3,
    )  # fmt: skip
    gains = GAINS["three gains"]
    one = predicted_gold(frame, audit, gains, labels=labels, known=known)
    two = predicted_gold(fewer, small, gains, labels=rest, known=known)
    of_fold = known.fold == 2
    assert one.before[of_fold].tolist() == two.before[of_fold].tolist()
    assert abs(one.before - two.before)[~of_fold].max() > 1e-6


def newton(columns, target, offset, ridge):
    """Return the penalised logistic coefficients, with nothing of the product."""
    b = np.zeros(columns.shape[0])
    for _ in range(60):
        mean = 1 / (1 + np.exp(-(offset + b @ columns)))
        gradient = columns @ (mean - target) + ridge * b
        step = np.linalg.solve((columns * (mean * (1 - mean))) @ columns.T + np.diag(ridge), gradient)
        b = b - step
        if abs(step).max() < 1e-13:
            break
    return b


def scaled(column, others):
    known = np.isfinite(column)
    centred = np.where(known, column - column[known & others].mean(), 0.0)
    return centred / np.sqrt((centred[others] ** 2).mean())


def test_both_predictions_of_a_fold_by_a_second_implementation():
    frame, audit, labels, known = large(seed=7)
    gains, fold = GAINS["three gains"], 3
    found = predicted_gold(frame, audit, gains, labels=labels, known=known)
    own, others = (known.fold[frame.judged] == fold, known.fold[frame.judged] != fold)
    m, topic = frame.judged.size, frame.topic_index
    table = labels.table()
    grades = np.full((2, m), np.nan)  # of the first two assessors; the third labelled too few
    for item, who, grade in zip(labels.item, labels.assessor, labels.grade, strict=True):
        if who < 2:
            grades[who, item] = grade
    raw = [
        table[:, 1] / table.sum(1),
        table[:, 2] / table.sum(1),
        audit.bronze_class,
        np.log(table.sum(1)),
        *grades,
    ]
    prior = np.log(known.prior / (1 - known.prior))
    features = (known.features - known.features.mean(0)) / known.features.std(0)
    fixed = np.stack(
        [np.ones(prior.size), prior - prior.mean(), *features.T, *(topic == np.arange(8)[:, None])]
    )
    ridge = np.array([0.3, 0.3, 10, 10, 10, *[1.0] * 8])
    columns = np.concatenate([fixed[:, frame.judged], [scaled(np.asarray(c, float), others) for c in raw]])
    rows = np.flatnonzero(others & audit.audited)
    offset, all_ridges = prior[frame.judged], np.concatenate([ridge, np.ones(6)])

    def fit(target):
        b = newton(columns[:, rows], target[rows], offset[rows], all_ridges)
        return 1 / (1 + np.exp(-(offset + b @ columns)))

    share = gains[audit.gold_grade] / 3
    h, square = fit(share), fit(share**2)
    b = newton(fixed[:, frame.judged][:, others], h[others], offset[others], ridge)
    g = 1 / (1 + np.exp(-(prior + b @ fixed)))
    assert found.after[own] == pytest.approx(3 * h[own], abs=1e-8)
    assert found.spread[own] == pytest.approx(9 * np.maximum(0, square - h**2)[own], abs=1e-8)
    assert found.before[known.fold == fold] == pytest.approx(3 * g[known.fold == fold], abs=1e-8)


# -- limits ----------------------------------------------------------------------------------------------------


def test_without_gold_both_are_the_prior():
    frame, audit, labels, known = large()
    nothing = replace(audit, audited=np.zeros_like(audit.audited))
    found = predicted_gold(frame, nothing, [0, 1, 3], labels=labels, known=known)
    assert found.before == pytest.approx(3 * known.prior, abs=1e-9)
    assert found.after == pytest.approx(3 * known.prior[frame.judged], abs=1e-9)


def test_without_any_gain_there_is_nothing_to_predict():
    frame, audit, labels, known = large()
    found = predicted_gold(frame, audit, [0, 0, 0], labels=labels, known=known)
    assert not found.before.any()
    assert not found.after.any()
    assert not found.spread.any()


def test_a_whole_pool_needs_no_prediction_before():
    frame, audit, labels, known = large(share=1.0)
    found = predicted_gold(frame, audit, [0, 1, 3], labels=labels, known=known)
    assert not found.before.any()
    assert found.after.all()


def test_items_of_a_batch_that_learned_are_predicted_and_not_learned_from():
    frame, audit, labels, known = large()
    learnable = np.arange(frame.judged.size) % 3 > 0
    gains = GAINS["three gains"]
    other = replace(audit, gold_grade=np.where(learnable, audit.gold_grade, 2 - audit.gold_grade))
    one, two = (
        predicted_gold(frame, each, gains, labels=labels, known=known, learnable=learnable)
        for each in (audit, other)
    )
    assert one.before.tolist() == two.before.tolist()
    assert one.after.tolist() == two.after.tolist()
    kept = np.flatnonzero(learnable)
    fewer = Frame(frame.n_topics, frame.topic_index, frame.judged[kept], frame.draw_probability[kept])
    alone = AuditSample(
        audit.draw_probability[kept], audit.bronze_class[kept], audit.audited[kept], audit.gold_grade[kept],
        audit.audit_probability[kept], 3,
    )  # fmt: skip
    three = predicted_gold(fewer, alone, gains, labels=labels.of_items(kept), known=known)
    assert one.before == pytest.approx(three.before, **exactly)
    assert one.after[kept] == pytest.approx(three.after, **exactly)


@pytest.mark.parametrize("grade", [0, 2])
def test_gold_that_is_all_equal_gives_finite_predictions(grade):
    frame, audit, labels, known = large()
    same = replace(audit, gold_grade=np.full(audit.gold_grade.size, grade))
    found = predicted_gold(frame, same, [0, 1, 3], labels=labels, known=known)
    for values in (found.before, found.after, found.spread):
        assert np.isfinite(values).all()
        assert (values >= 0).all()
    assert (found.after <= 3).all()


def test_one_topic_one_fold_and_constant_features_give_finite_predictions():
    frame, audit, labels, known = large()
    plain = Foreknowledge(np.ones((400, 3)), known.ridge, np.zeros(400, dtype=int), known.prior)
    alone = Frame(1, np.zeros(400, dtype=int), frame.judged, frame.draw_probability)
    found = predicted_gold(alone, audit, [0, 1, 3], labels=labels, known=plain)
    assert found.before == pytest.approx(3 * plain.prior, abs=1e-9)  # nothing lies outside the only fold


def test_only_items_open_to_the_audits_are_predicted_with_labels():
    frame, audit, labels, known = large()
    member = np.flatnonzero(np.arange(frame.judged.size) % 4 > 0)
    some = AuditSample(
        audit.draw_probability[member], audit.bronze_class[member], audit.audited[member], audit.gold_grade[member],
        audit.audit_probability[member], 3, member, frame.judged.size,
    )  # fmt: skip
    found = predicted_gold(frame, some, [0, 1, 3], labels=labels, known=known)
    opened = Frame(frame.n_topics, frame.topic_index, frame.judged[member], frame.draw_probability[member])
    alone = replace(some, member=np.arange(member.size), n_judged=member.size)
    again = predicted_gold(opened, alone, [0, 1, 3], labels=labels.of_items(member), known=known)
    assert found.after.tolist() == again.after.tolist()
    assert found.before.tolist() == again.before.tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prior": np.zeros(400)}, r"prior must be flat and within \(0, 1\)"),
        ({"features": np.zeros((399, 3))}, "features must have 400 items, got 399"),
        ({"features": np.full((400, 3), np.nan)}, "features must be finite, got nan"),
        ({"fold": np.full(400, -1)}, "fold must be at least 0, got -1"),
        ({"fold": np.zeros(9, dtype=int)}, "fold must have 400 items, got 9"),
        ({"ridge": np.zeros(3)}, "ridge must be above 0, got 0"),
        ({"ridge": np.ones(2)}, r"ridge must have shape \(3,\), got \(2,\)"),
    ],
)
def test_impossible_foreknowledge_is_named(change, message):
    known = large()[3]
    given = {name: getattr(known, name) for name in ("features", "ridge", "fold", "prior")}
    with pytest.raises(ValueError, match=message):
        Foreknowledge(**given | change)


def test_negative_gains_and_another_frame_are_named():
    frame, audit, labels, known = large()
    with pytest.raises(ValueError, match="gains must be at least 0, got -1"):
        predicted_gold(frame, audit, [-1, 0, 1], labels=labels, known=known)
    with pytest.raises(ValueError, match="prior must have 400 items, got 300"):
        predicted_gold(frame, audit, [0, 1, 3], labels=labels, known=large(n=300)[3])
