"""The expected variance of the corrected number: by hand, and over all that can happen to some items."""

from functools import cache
from itertools import product

import numpy as np
import pytest
from enumeration import exactly, poisson_samples

from analytics.estimation.targets import TargetWeights
from analytics.estimation.two_phase import Phases, two_phase_sums
from sampling.audit_plays import AuditPlay
from sampling.campaign_plan import PlayedWidths
from sampling.measures.sparse import from_dense
from sampling.outlook import (
    Outlook,
    assumed_errors,
    class_predictions,
    grade_chances,
    label_classes,
    outlook,
    outlook_sentence,
    spread_between_topics,
)
from sampling.strategies import strategy_keys

W = np.array([0.5, -0.3, 0.2])
PI = np.array([0.5, 1.0, 0.25])
AUDIT = np.array([0.25, 0.5, 0.8])
GAINS = np.array([0.0, 1.0, 3.0])
CHANCES = np.array([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4], [0.5, 0.25, 0.25]])
ERRORS = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]])


def of(**changed):
    given = {"classes": ERRORS, "gains": GAINS, "audit_probability": AUDIT} | changed
    return outlook(W**2, PI, CHANCES, **given)


def test_two_items_by_hand():
    """p = .5, a label is right with .75 and the audit takes every second: class means are .25 and .75."""
    matrix = [[0.75, 0.25], [0.25, 0.75]]
    found = outlook(
        [1.0, 4.0],
        [0.5, 1.0],
        [[0.5, 0.5], [0.5, 0.5]],
        classes=matrix,
        gains=[0.0, 1.0],
        audit_probability=[0.5, 0.5],
    )
    assert found.drawing == pytest.approx(0.25)  # 1 times 1 times 1/4, and nothing of the certain item
    left = 0.75 * 0.25**2 + 0.25 * 0.75**2  # the same from either true grade
    assert found.assessors == pytest.approx(1 / 0.5 * left + 4 * left)
    assert found.half_width == pytest.approx(1.959964 * np.sqrt(found.drawing + found.assessors), rel=1e-6)
    assert found.drawing_share == pytest.approx(found.drawing / found.variance)


def test_two_labels_are_classed_by_their_sum():
    classes = label_classes(ERRORS, 2)
    expected = np.zeros((3, 5))
    for grade, one, two in product(range(3), repeat=3):
        expected[grade, one + two] += ERRORS[grade, one] * ERRORS[grade, two]
    assert classes == pytest.approx(expected, abs=1e-15)
    assert of(classes=classes).assessors < of().assessors


def outcomes_of_an_item(item):
    """Yield (gain, judged, class, audited, chance) of everything that can happen to an item."""
    for grade, gain in enumerate(GAINS):
        chance = CHANCES[item, grade]
        if PI[item] < 1:
            yield gain, False, 0, False, chance * (1 - PI[item])
        for given in range(ERRORS.shape[1]):
            of_label = chance * PI[item] * ERRORS[grade, given]
            yield gain, True, given, True, of_label * AUDIT[item]
            yield gain, True, given, False, of_label * (1 - AUDIT[item])


@cache
def enumerated():
    """Return the mean squared error, and the mean of the estimated drawing and audit variances, of the two phases."""
    after = class_predictions(PI @ CHANCES, ERRORS, GAINS)
    before = CHANCES @ GAINS
    square, parts, total = 0.0, np.zeros(2), 0.0
    for state in product(*(list(outcomes_of_an_item(item)) for item in range(W.size))):
        gain, judged, given, audited, chances = (np.array(column) for column in zip(*state, strict=True))
        chance = float(np.prod(chances))
        h = after[given]
        value = (
            W @ before + (W / PI * (h - before))[judged].sum() + (W / PI / AUDIT * (gain - h))[audited].sum()
        )
        square += chance * (value - W @ gain) ** 2
        total += chance
        if judged.any():
            left = np.square(GAINS - after[given][:, None]) @ np.ones(3) / 3  # any spread: it must not matter
            items = Phases(PI, audited, gain, AUDIT, before, h, left)
            kept = np.flatnonzero(judged)
            own = Phases(*(getattr(items, name)[kept] for name in items.__dataclass_fields__))
            sums = two_phase_sums(TargetWeights(from_dense(W[kept][None])), own)
            parts += chance * np.array([sums.drawing[0], sums.audit[0]])
    assert total == pytest.approx(1, **exactly)
    return square, parts


def test_it_is_the_expected_variance_over_all_grades_draws_labels_and_audits():
    square, parts = enumerated()
    found = of()
    assert found.drawing + found.assessors == pytest.approx(square, **exactly)
    assert [found.drawing, found.assessors] == pytest.approx(parts, **exactly)


def test_the_drawing_alone_is_not_the_variance():
    square, _ = enumerated()
    assert of().drawing < 0.8 * square


def simple_audit(drawn):
    """Return the chances of an audit that spreads one expected item evenly over what was drawn."""
    return np.where(drawn, 1 / max(drawn.sum(), 1), 1.0)


def test_of_chances_that_depend_on_the_draw_the_mean_of_their_inverse_counts():
    """The plain mean of the chances makes the forecast too small: by more than a tenth here."""
    pi = np.array([0.5, 0.75, 0.25])
    exact, inverse, plain = 0.0, np.zeros(3), np.zeros(3)
    left = (ERRORS * np.square(GAINS[:, None] - class_predictions(pi @ CHANCES, ERRORS, GAINS))).sum(axis=1)
    for drawn, chance in poisson_samples(pi):
        a = simple_audit(drawn)
        exact += chance * ((W / pi) ** 2 * (1 / a - 1) * (CHANCES @ left))[drawn].sum()
        inverse += chance * np.where(drawn, 1 / a, 0.0)
        plain += chance * np.where(drawn, a, 0.0)
    given = {"classes": ERRORS, "gains": GAINS}
    right = outlook(W**2, pi, CHANCES, audit_probability=pi / inverse, **given)
    wrong = outlook(W**2, pi, CHANCES, audit_probability=plain / pi, **given)
    assert right.assessors == pytest.approx(exact, **exactly)
    assert wrong.assessors < 0.9 * exact


def test_of_chances_that_depend_on_the_label_the_forecast_is_too_large():
    """What the formula leaves out: an audit of high labels looks where most is left in doubt.

    With chances of .2, .4 and .6 the assessors' part comes out three fifths too large, its half-width a quarter.
    """
    of_label = np.array([0.2, 0.4, 0.6])
    h = class_predictions(PI @ CHANCES, ERRORS, GAINS)
    squares = np.square(GAINS[:, None] - h[None])
    exact = (W**2 / PI * (CHANCES @ (ERRORS * squares * (1 / of_label - 1)).sum(axis=1))).sum()
    mean = 1 / (CHANCES @ ERRORS @ (1 / of_label))
    found = of(audit_probability=mean).assessors
    assert 1.1 < np.sqrt(found / exact) < 1.3


def test_an_item_that_gets_gold_for_certain_adds_nothing():
    audit = np.array([1.0, 0.5, 0.8])
    alone = outlook(W[1:] ** 2, PI[1:], CHANCES[1:], classes=ERRORS, gains=GAINS, audit_probability=AUDIT[1:])
    assert of(audit_probability=np.ones(3)).assessors == 0
    zero = of(audit_probability=audit)
    terms = [of(audit_probability=np.where(np.arange(3) == i, audit, 1.0)).assessors for i in range(3)]
    assert terms[0] == 0
    assert zero.assessors == pytest.approx(sum(terms))
    assert alone.assessors != zero.assessors  # class means are those of all items


def test_once_the_draw_is_known_the_judges_part_is_a_sum_over_it_whose_mean_is_the_forecast():
    mean = sum(
        chance * of(drawn=drawn).assessors
        for drawn, chance in poisson_samples(PI)
        if chance > 0 and drawn.any()
    )
    assert mean == pytest.approx(of().assessors, **exactly)


def test_without_a_planned_audit_there_is_no_corrected_number():
    found = of(audit_probability=None)
    assert (found.assessors, found.variance, found.half_width, found.drawing_share) == (None, None, None, 0)


def test_a_document_with_weight_and_no_chance_leaves_no_forecast():
    pi = np.array([0.5, 1.0, 0.0])
    found = outlook(W**2, pi, CHANCES, classes=ERRORS, gains=GAINS, audit_probability=np.array([0.5, 0.5, 0]))
    assert (found.half_width, found.drawing_share) == (None, 0)


def test_the_assumed_spread_between_topics_is_its_mean_over_all_grades_that_may_be():
    """Three topics with one or two documents, each relevant or not: every outcome with its chance, S^2/n of each."""
    weight, p = np.array([0.5, 0.2, 0.4, 0.3]), np.array([0.2, 0.5, 0.7, 0.9])
    topic, n = np.array([0, 0, 1, 2]), 3
    mean = 0.0
    for outcome in product((0, 1), repeat=4):
        values = n * np.bincount(topic, weight * outcome)
        mean += np.prod(np.where(outcome, p, 1 - p)) * values.var(ddof=1) / n
    found = spread_between_topics(from_dense(weight[None]), [(0, None)], topic, n, gain=p, square=p)
    assert found == pytest.approx(mean, rel=1e-12)
    alone = spread_between_topics(from_dense(weight[None]), [(0, None)], topic, n, gain=p, square=p**2)
    assert alone < 0.5 * mean  # grades taken as certain: most of it is missed


def test_the_spread_between_topics_of_pairs_is_that_of_the_difference_and_of_several_its_mean():
    rows = np.array([[0.5, 0.2, 0.0], [0.1, 0.4, 0.3]])
    given = {"gain": np.array([0.2, 0.5, 0.7]), "square": np.array([0.3, 0.5, 0.9])}
    topic = np.array([0, 1, 2])

    def of(table, comparisons):
        return spread_between_topics(from_dense(table), comparisons, topic, 4, **given)

    pair = of(rows, [(0, 1)])
    assert pair == pytest.approx(of(rows[:1] - rows[1:], [(0, None)]))
    assert of(rows, [(0, 1), (0, None)]) == pytest.approx((pair + of(rows, [(0, None)])) / 2)


def test_played_topics_are_as_wide_as_their_variance_and_never_narrower_than_these_topics():
    plays = PlayedWidths((1.0,) * 4000, (0.2,) * 4000, 0.3, 4000)
    wide = plays.over_topics(0.8, 10, np.random.default_rng(1))
    squares = np.square(wide.half_widths)
    assert squares.mean() == pytest.approx(2.262157**2 * (0.2 + 0.8), rel=0.03)
    assert set(wide.variances) == {1.0}
    narrow = plays.over_topics(0.0, 10, np.random.default_rng(1))
    assert min(narrow.half_widths) == 1.0


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"audit_probability": [0.5, 0.5]},
            "audit_probability of an item that can be judged must be above 0",
        ),
        ({"audit_probability": [0.5, 0.5, 0.0]}, "audit_probability of an item that can be judged"),
        ({"gains": [0.0, 1.0]}, "must be of as many items"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(changed, words):
    with pytest.raises(ValueError, match=words):
        of(**changed)


@pytest.mark.parametrize("rates", [(0.5, 0.5), (0.8, 0.3), (-0.1, 0.2), (1.1, 0.0)])
def test_rates_of_labels_that_say_nothing_are_refused(rates):
    with pytest.raises(ValueError, match="misses and false alarms"):
        assumed_errors(4, 1, rates)


def test_the_assumption_says_that_it_is_one():
    errors = assumed_errors(4, 2)
    assert errors.is_assumed
    assert errors.origin == "assumed, not measured: 20 % misses and 15 % false alarms"
    assert errors.matrix.sum(axis=1) == pytest.approx(1)
    assert errors.matrix[:2, 2:].sum(axis=1) == pytest.approx(0.15)
    assert errors.matrix[2:, :2].sum(axis=1) == pytest.approx(0.20)


def test_the_words_say_both_claims_with_their_parts():
    shares = {"drawing": 0.5, "assessors": 0.5, "topics": 0.0}
    about = {
        "half_width": 0.005,
        "middle": None,
        "n_plays": 0,
        "shares": shares,
        "refusal": "",
        "n_gold": 1200.4,
        "errors_from": "assumed",
        "topics_like_these": None,
    }
    assert outlook_sentence(about) == (
        "Corrected number: expect ± 0.005 for these topics, with 1,200 gold labels; of its variance drawing 50 % and "
        "assessors' errors 50 %. Assessors' errors: assumed."
    )
    like = {
        "half_width": 0.25,
        "middle": [0.2, 0.3],
        "shares": {"drawing": 0.1, "assessors": 0.1, "topics": 0.8},
        "topics_from": "measured in this campaign",
    }
    words = outlook_sentence(about | {"topics_like_these": like, "middle": [0.004, 0.006], "n_plays": 20})
    assert words.startswith(
        "Corrected number: expect ± 0.250 for topics like these (80 % of 20 simulated campaigns: ± 0.200 to ± 0.300), "
        "with 1,200 gold labels; of its variance topics 80 %, drawing 10 % and assessors' errors 10 %. For these "
        "topics alone: ± 0.005 (80 % of 20 simulated campaigns: ± 0.004 to ± 0.006)"
    )
    assert words.endswith("Assessors' errors: assumed. Spread between topics: measured in this campaign.")
    exact = outlook_sentence(about | {"shares": {}, "half_width": 0.0})
    assert exact.startswith("Corrected number: expect ± 0.000 for these topics, with")
    assert outlook_sentence({"refusal": "No audit"}) == "No audit."


# -- plays ------------------------------------------------------------------------------------------------------


def play(**changed):
    given = {
        "draw_probability": np.full(40, 0.5),
        "contrast": np.linspace(0, 1, 40),
        "topic_index": np.arange(40) % 4,
        "chances": grade_chances(np.linspace(0.1, 0.9, 40), 3, 1),
        "errors": ERRORS,
        "gains": GAINS,
        "n_labels": 2,
    }
    return AuditPlay(**given | changed)


@pytest.mark.parametrize("strategy", strategy_keys())
def test_every_strategy_is_played_and_selects_as_many_as_planned(strategy):
    found = play(draw_probability=np.ones(40)).audit_probabilities(strategy, 8, np.random.default_rng(1))
    assert ((found > 0) & (found <= 1)).all()
    by_labels = strategy in (
        "topic",
        "effort",
        "full",
    )  # of chances that vary, 1 over the mean of 1/a is less
    assert found.sum() < 8.01
    assert found.sum() > (2 if by_labels else 6.8)


def test_an_even_audit_of_all_that_is_judged_is_the_number_over_those_drawn():
    found = play(draw_probability=np.ones(40)).audit_probabilities("simple", 10, np.random.default_rng(1))
    assert found == pytest.approx(np.full(40, 0.25))
    drawn = np.arange(40) < 20
    known = play().audit_probabilities("simple", 10, np.random.default_rng(1), drawn=drawn)
    assert known == pytest.approx(np.full(40, 0.5))
    everything = play().audit_probabilities("influence", 1000, np.random.default_rng(1))
    assert everything == pytest.approx(np.ones(40))


def test_what_no_play_drew_is_like_its_neighbours_in_influence():
    drawn = np.arange(40) % 2 == 0
    found = play().audit_probabilities("influence", 5, np.random.default_rng(1), drawn=drawn)
    inside = np.arange(1, 39, 2)
    assert found[inside] == pytest.approx((found[inside - 1] + found[inside + 1]) / 2)


def test_a_draw_that_is_always_empty_has_the_planned_share():
    drawn = np.zeros(40, dtype=bool)
    assert play().audit_probabilities("influence", 5, np.random.default_rng(1), drawn=drawn) == pytest.approx(
        0.25
    )


@pytest.mark.parametrize(("n_items", "plays"), [(0, 20), (5, 0)])
def test_a_play_of_nothing_is_refused(n_items, plays):
    with pytest.raises(ValueError, match="must be"):
        play().audit_probabilities("influence", n_items, np.random.default_rng(1), plays=plays)


def test_an_outlook_without_variance_has_no_shares():
    assert Outlook(0.0, 0.0).half_width == 0
    assert Outlook(0.0, 0.0).drawing_share == 0
