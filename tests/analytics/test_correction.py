"""GREG-label and the raw number: enumeration of all draws and audits, simulation, classes, and refusals."""

from itertools import product

import numpy as np
import pytest
from audits import corrected_by_topic, greg_label

from analytics.estimation.correction import correct
from analytics.estimation.estimate import Estimate, Refusal, estimate, in_columns
from analytics.estimation.estimators import difference_estimator
from analytics.estimation.labels import merged_classes
from analytics.estimation.more_gold import advice, gold_labels_for
from analytics.estimation.samples import AuditSample, Labels
from analytics.estimation.targets import as_targets
from analytics.estimation.two_phase import Phases, two_phase_sums
from experiments.papers.labels import naive

# -- exact enumeration ---------------------------------------------------------------------------------------

W = np.array([0.7, -0.4, 0.2])
GAIN = np.array([2.0, 1.0, 0.0])
PI = np.array([0.9, 0.3, 0.6])
AUDIT_PI = np.array([0.5, 0.8, 0.25])
PRIOR = np.array([1.5, 0.5, 1.0])


def draws_and_audits():
    """Yield every (drawn, audited) pair of masks over the frame with its chance."""
    for taken in product([False, True], repeat=3):
        drawn = np.array(taken)
        chance = np.prod(np.where(drawn, PI, 1 - PI))
        for checked in product([False, True], repeat=int(drawn.sum())):
            audited = np.array(checked, dtype=bool)
            pi = AUDIT_PI[drawn]
            yield drawn, audited, chance * np.prod(np.where(audited, pi, 1 - pi))


def judged(drawn, audited, mean, variance):
    items = Phases(
        PI[drawn], audited, GAIN[drawn], AUDIT_PI[drawn], PRIOR[drawn], mean[drawn], variance[drawn]
    )
    return as_targets(W[None, drawn]), items


def value(targets, items):
    return (PRIOR * W).sum() + targets.totals(items.item_corrections)[0]


def variance_with_guards(targets, items):
    sums = two_phase_sums(targets, items)
    return float(sums.cautious_drawing[0] + max(sums.audit[0], sums.expected_audit[0]))


@pytest.mark.parametrize("mean", [np.zeros(3), np.array([1.9, 0.2, 0.7]), np.array([-5.0, 9.0, 3.0])])
def test_greg_label_is_unbiased_for_any_fixed_class_means(mean):
    expected = sum(p * value(*judged(d, a, mean, np.zeros(3))) for d, a, p in draws_and_audits())
    assert expected == pytest.approx((W * GAIN).sum(), abs=1e-12)


def exact_variance(mean):
    rows = [(value(*judged(d, a, mean, np.zeros(3))), p) for d, a, p in draws_and_audits()]
    truth = (W * GAIN).sum()
    return sum(p * (found - truth) ** 2 for found, p in rows)


def test_the_design_variance_is_unbiased_over_all_draws_and_audits():
    # class means equal to the prior and no spread: both guards are 0 and the design forms stand alone
    frozen = [(judged(d, a, PRIOR, np.zeros(3)), p) for d, a, p in draws_and_audits()]
    expected = sum(p * variance_with_guards(*j) for j, p in frozen)
    assert expected == pytest.approx(exact_variance(PRIOR), abs=1e-12)


def test_with_its_guards_the_variance_is_never_too_small_on_average():
    mean = np.array([1.9, 0.2, 0.7])
    frozen = [(judged(d, a, mean, np.full(3, 0.3)), p) for d, a, p in draws_and_audits()]
    expected = sum(p * variance_with_guards(*j) for j, p in frozen)
    assert expected >= exact_variance(mean)


# -- simulation ----------------------------------------------------------------------------------------------


def population(rng, n=300):
    """Return one frame: weights of a pair, true grades, labels that mislead more where the weight is large."""
    w = rng.choice([-0.02, -0.01, 0, 0.01, 0.02], n)
    grade = (rng.random(n) < 0.3).astype(np.int64)
    flip = rng.random(n) < np.where(w > 0, 0.35, 0.1)
    return w, grade, np.where(flip, 1 - grade, grade)


def greg_of_one_audit(rng, w, grade, label, pi, audit_pi):
    drawn = rng.random(w.size) < pi
    audited = rng.random(int(drawn.sum())) < audit_pi[drawn]
    return greg_label(
        w[drawn],
        draw_probability=pi[drawn],
        bronze_class=label[drawn],
        audited=audited,
        gold_grade=np.where(audited, grade[drawn], -1),
        audit_probability=audit_pi[drawn],
        gains=[0, 1],
    )[0]


def test_greg_label_is_centred_and_covers_where_errors_depend_on_the_weight():
    rng = np.random.default_rng(11)
    w, grade, label = population(rng)
    truth = float(w @ grade)
    pi = np.clip(0.3 + 25 * abs(w), 0, 0.9)
    found = [greg_of_one_audit(rng, w, grade, label, pi, np.full(w.size, 0.4)) for _ in range(1000)]
    values = np.array([e.value for e in found])
    covered = np.mean([e.low <= truth <= e.high for e in found])
    assert abs(values.mean() - truth) < 3 * values.std() / np.sqrt(1000)
    assert 0.93 <= covered <= 0.98
    mean_variance = np.mean([e.standard_error**2 for e in found])
    assert 0.95 < mean_variance / values.var() < 1.25


def test_topics_as_a_sample_cover_the_population_of_topics():
    rng = np.random.default_rng(5)
    n_topics, per_topic = 30, 12
    covered = []
    for _ in range(400):
        effect = rng.normal(0.1, 0.3, n_topics)  # the population's difference is 0.1 per topic
        topic = np.repeat(np.arange(n_topics), per_topic)
        w = np.tile([1.0, -1.0], n_topics * per_topic // 2) * 2 / per_topic / n_topics
        chance = np.clip(0.5 + np.where(w > 0, 0.5, -0.5) * effect[topic], 0, 1)
        grade = (rng.random(topic.size) < chance).astype(np.int64)
        label = np.where(rng.random(topic.size) < 0.2, 1 - grade, grade)
        audited = rng.random(topic.size) < 0.4
        found = corrected_by_topic(
            w,
            topic_index=topic,
            n_topics=n_topics,
            draw_probability=np.ones(topic.size),
            bronze_class=label,
            audited=audited,
            gold_grade=grade,
            audit_probability=np.full(topic.size, 0.4),
            gains=[0, 1],
        )[0]
        covered.append(found.low <= 0.1 <= found.high)
    assert found.degrees_of_freedom == 29
    assert "topics" in found.sources
    assert 0.92 <= np.mean(covered) <= 0.98


# -- one call, by hand ---------------------------------------------------------------------------------------


def arrays(n=40, audited=20):
    """Return a valid input: half the items of class 1, the first `audited` audited with equal chance."""
    label = np.arange(n) % 2
    return {
        "draw_probability": np.ones(n),
        "bronze_class": label,
        "audited": np.arange(n) < audited,
        "gold_grade": label * (np.arange(n) % 4 != 3),
        "audit_probability": np.full(n, audited / n),
        "gains": [0.0, 1.0],
    }


def test_the_value_by_hand():
    # class 0: all gold 0. Class 1: items 1 5 9 13 17 gold 1, items 3 7 11 15 19 gold 0: mu = 1/2
    weights = np.where(np.arange(40) % 2, 1.0, 3.0)
    found = greg_label(weights, **arrays())[0]
    # H_1 mu_1 = 20 / 2; residuals of class 1 are +-1/2 five times each and cancel
    assert found.value == pytest.approx(10.0)
    assert found.n == 20
    assert found.degrees_of_freedom == 19
    parts = dict(found.components)
    assert parts["drawing"] == 0.0
    # V_design = sum (1 - pi)/pi^2 (w r)^2 = .5/.25 * 10/4. V_pooled: the audit has 5 ones among 20, mean 1/4 and
    # variance 3/16, which class 1 takes as one observation more; class 0 is at the floor of half an error in 21
    s2_1 = (10 * 0.25 * 10 / 9 + 3 / 16) / 11 + 10 * (1 / 4) ** 2 / 121
    s2_0 = 0.5 / 21 * (20.5 / 21)
    pooled = 20 * 9 * s2_0 + 20 * 1 * s2_1
    assert parts["gold"] == pytest.approx(max(5.0, pooled))


def test_a_full_audit_gives_the_gold_value_with_no_audit_error():
    given = arrays(audited=40)
    weights = np.linspace(-1, 1, 40)
    found = greg_label(weights, **given)[0]
    assert found.value == pytest.approx(weights @ given["gold_grade"])
    assert dict(found.components)["gold"] == 0.0


def test_an_audit_without_any_error_still_has_an_error_bar():
    given = arrays()
    given["gold_grade"] = given["bronze_class"]
    found = greg_label(np.ones(40), **given)[0]
    assert found.value == pytest.approx(20)
    assert found.standard_error > 0.5
    given["gold_grade"] = np.zeros(40, dtype=int)
    assert greg_label(np.ones(40), **given)[0].standard_error > 0.5


def test_with_gold_for_all_it_is_the_plain_difference_estimator():
    rng = np.random.default_rng(3)
    pi, prior = rng.uniform(0.2, 1, 40), rng.random(40)
    given = arrays(audited=40) | {"draw_probability": pi, "prior": prior, "prior_total": [7.0]}
    w = rng.normal(size=40)
    found = greg_label(w, **given)[0]
    plain = difference_estimator(w, given["gold_grade"], pi, prior=prior, prior_total=[7.0])[0]
    assert found.value == pytest.approx(plain.value)
    assert found.standard_error == pytest.approx(plain.standard_error)


def test_topic_values_add_up_to_the_whole():
    rng = np.random.default_rng(4)
    w = rng.normal(size=(2, 40))
    given = arrays() | {"prior": rng.random(40)}
    known = rng.random((2, 5))
    whole = greg_label(w, **given, prior_total=known.sum(axis=1))
    topics = corrected_by_topic(
        w, topic_index=np.arange(40) % 4, n_topics=5, **given, prior_total_by_topic=known
    )
    assert [e.value for e in topics] == pytest.approx([e.value for e in whole])


def test_many_targets_at_once_equal_one_at_a_time():
    w = np.random.default_rng(6).normal(size=(4, 40))
    together = greg_label(w, **arrays())
    for row, found in zip(w, together, strict=True):
        alone = greg_label(row, **arrays())[0]
        assert (found.value, found.standard_error) == pytest.approx((alone.value, alone.standard_error))


def test_the_order_of_items_does_not_matter():
    rng = np.random.default_rng(8)
    w, given, order = rng.normal(size=40), arrays(), rng.permutation(40)
    turned = {k: np.asarray(v)[order] if k != "gains" else v for k, v in given.items()}
    a, b = greg_label(w, **given)[0], greg_label(w[order], **turned)[0]
    assert (a.value, a.standard_error) == pytest.approx((b.value, b.standard_error), rel=1e-12)


# -- refusals and errors -------------------------------------------------------------------------------------


def test_fewer_than_ten_audited_items_with_weight_are_refused():
    weights = np.where(np.arange(40) < 8, 1.0, 0.0)
    refused, fine = greg_label(np.stack([weights, np.ones(40)]), **arrays())
    assert isinstance(refused, Refusal)
    assert refused.needed == 2
    assert isinstance(fine, Estimate)


def test_a_missing_audit_probability_is_refused_only_where_the_item_counts():
    given = arrays()
    given["audit_probability"][39] = 0.0
    with_it, without_it = np.ones(40), np.where(np.arange(40) == 39, 0.0, 1.0)
    refused, fine = greg_label(np.stack([with_it, without_it]), **given)
    assert isinstance(refused, Refusal)
    assert "no audit probability" in refused.reason
    assert isinstance(fine, Estimate)


def test_nothing_judged_is_refused():
    empty = {k: np.zeros(0, dtype=bool if k == "audited" else int) for k in arrays() if k != "gains"}
    assert isinstance(greg_label(np.zeros((1, 0)), **empty, gains=[0, 1])[0], Refusal)


def test_one_topic_says_nothing_about_others():
    found = corrected_by_topic(np.ones(40), topic_index=np.zeros(40, dtype=int), n_topics=1, **arrays())[0]
    assert isinstance(found, Refusal)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"audit_probability": np.full(40, 1.5)}, r"audit_probability must be in \[0, 1\], got 1.5"),
        ({"audit_probability": np.zeros(40)}, "audited item must be above 0"),
        ({"draw_probability": np.zeros(40)}, r"draw_probability must be in \(0, 1\], got 0"),
        ({"gold_grade": np.full(40, 7)}, "gold_grade must be at most 1, got 7"),
        ({"bronze_class": np.zeros(39, dtype=int)}, "bronze_class must have length 40, got 39"),
        ({"audited": np.ones(40)}, "audited must be 40 booleans"),
        ({"gains": [0.0]}, "n_grades must be at least 2, got 1"),
        ({"gains": [[0.0, 1.0]]}, r"gains must be of 2 grades, got shape \(1, 2\)"),
        ({"gains": [0.0, np.nan]}, "gains must be finite"),
        ({"prior": np.zeros(40)}, "belong together"),
    ],
)
def test_impossible_inputs_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        greg_label(np.ones(40), **(arrays() | change))


def test_weights_of_other_items_than_the_judged_ones_are_refused():
    with pytest.raises(ValueError, match="weights must be of the 40 judged items, got 39"):
        greg_label(np.ones(39), **arrays())


def test_an_audit_of_some_of_the_judged_items_takes_their_weights_and_predictions():
    given, weights, prior = arrays(), np.linspace(-1, 1, 50), np.linspace(0, 1, 50)
    gains = given.pop("gains")
    places = np.arange(50) % 5 != 0
    some = AuditSample(**given, n_grades=2, member=np.flatnonzero(places), n_judged=50)
    found = correct(weights, some, gains, prior=prior, prior_total=[3.0]).estimates[0]
    alone = greg_label(weights[places], **given, gains=gains, prior=prior[places], prior_total=[3.0])[0]
    assert found == alone
    with pytest.raises(ValueError, match="member must be at most 49, got 50"):
        AuditSample(**given, n_grades=2, member=np.arange(11, 51), n_judged=50)


# -- classes, scores, the raw number -------------------------------------------------------------------------


def test_poor_classes_join_their_ordered_neighbours():
    classes = np.repeat([-3, 0, 4, 9], [12, 4, 20, 30])
    audited = np.ones(66, dtype=bool)
    # the class of 4 joins the poorer neighbour (12 < 20)
    assert np.bincount(merged_classes(classes, audited)).tolist() == [16, 20, 30]
    audited[36:] = False  # the last class has none and can only join the one before
    assert np.bincount(merged_classes(classes, audited)).tolist() == [16, 50]


def test_too_little_audit_for_two_classes_leaves_one():
    assert merged_classes(np.arange(3), np.ones(3, dtype=bool)).tolist() == [0, 0, 0]


def test_vote_classes_keep_the_shares_of_different_redundancy_apart():
    nobody, sizes = np.zeros(6, dtype=int), {"n_assessors": 1, "n_grades": 2}
    labels = Labels([0, 0, 0, 1, 1, 2], nobody, [1, 0, 0, 1, 0, 1], n_items=3, **sizes)
    assert labels.classes().tolist() == [4, 6, 12]
    with pytest.raises(ValueError, match="steps must be at least 1, got 0"):
        labels.classes(steps=0)
    with pytest.raises(ValueError, match="0 for item 1"):
        Labels([0], [0], [1], n_items=2, **sizes).means([1.0])


def test_naive_takes_the_mean_gain_of_the_labels_and_says_what_it_leaves_out():
    n = 12
    found = naive(
        np.ones(n),
        draw_probability=np.full(n, 0.5),
        label_item=np.repeat(np.arange(n), 2),
        label_grade=np.tile([0, 2], n),
        gains=[0, 1, 3],
    )[0]
    assert found.value == 36.0  # 12 items of mean gain 1.5, each standing for 2
    assert found.standard_error == pytest.approx(np.sqrt(12 * 0.5 * 9))
    assert found.sources == ("drawing",)
    assert "bias is unknown" in found.warning


# -- planning ------------------------------------------------------------------------------------------------


def test_gold_labels_for_a_half_width_solves_the_simple_audit_variance():
    n, s2, h = 2000, 3e-7, 0.05
    m = gold_labels_for(h, n, s2)

    def half_width(size):
        return 1.959963984540054 * np.sqrt(n**2 * (1 - size / n) / size * s2)

    assert half_width(m) <= h < half_width(m - 1)


def example(value, drawing, gold):
    parts = (("drawing", drawing), ("gold", gold))
    return estimate(
        value, drawing + gold, degrees_of_freedom=None, n=100, sources=("drawing", "gold"), components=parts
    )


def advice_for(difference, n_items):
    return advice(in_columns([difference]), np.array([n_items]))[0]


def test_an_unresolved_difference_says_how_many_gold_labels_resolve_it():
    # from a half-width of .0392 to .03: about (.0392/.03)^2 times as many
    words = "not resolved by 100 gold labels; about 171 needed"
    assert advice_for(example(0.03, 0.0, 0.02**2), 100_000) == words


def test_a_resolved_difference_needs_nothing():
    assert advice_for(example(0.05, 0.0, 0.02**2), 1000) == ""


def test_gold_cannot_help_where_the_drawing_error_is_too_large():
    assert "judge more items" in advice_for(example(0.03, 0.02**2, 0.001**2), 1000)
