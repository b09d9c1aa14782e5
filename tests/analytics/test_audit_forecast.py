"""Forecasts of audits: they agree with what the audits then give, within the error they state."""

from dataclasses import replace

import numpy as np
import pytest
from small_campaign import judge_all, judge_audit, make_assessor, make_campaign, truth_of

from analytics.estimation.estimate import Refusal
from analytics.models import AuditForecast, Estimate
from analytics.planning.audit_outlook import AuditedTarget, Outlook, gold_given_bronze, outlook
from analytics.services.audit_forecast import asked_targets, share_of
from analytics.services.recomputation import recompute
from sampling.audit_plan import Auditable, items_of_next_audit, middle_grades
from sampling.judged import Judged, question_influence
from sampling.measures.sparse import from_dense
from sampling.models import AuditSchedule, Draw
from sampling.services.auditing import audit
from sampling.strategies import strategies_for, strategy_keys

GAINS = np.array([0.0, 1.0, 2.0])
NO_CHECKS = np.zeros((3, 3))
DRAWN = 0.6


# -- a world whose errors depend on popularity, as those of real judges do ------------------------------------


def world(rng, n_topics=40, pooled=30, cutoff=10):
    """Return the drawn items of a pair of runs: w_a - w_b, runs' weights, topic, true and given grade."""
    topic = np.repeat(np.arange(n_topics), pooled)
    popularity = rng.random(topic.size)
    gold = (rng.random(topic.size) < 0.15 + 0.4 * popularity) * (1 + (rng.random(topic.size) < 0.4))
    weights = np.zeros((2, topic.size))
    for run in range(2):
        for number in range(n_topics):
            chance = popularity[topic == number] / popularity[topic == number].sum()
            places = rng.choice(pooled, cutoff, replace=False, p=chance)
            weights[run, number * pooled + places] = 1 / np.log2(np.arange(cutoff) + 2) / n_topics
    false_alarm = np.select([popularity < 1 / 3, popularity < 2 / 3], [0.20, 0.31], 0.51)
    is_right = rng.random(topic.size) < np.where(gold > 0, 0.85, 1 - false_alarm)
    bronze = np.where(is_right, gold, np.where(gold > 0, 0, 1 + (rng.random(topic.size) < 0.3)))
    drawn = rng.random(topic.size) < DRAWN
    return weights[:, drawn], topic[drawn], gold[drawn].astype(int), bronze[drawn].astype(int)


def play(seed, strategy, n_first, n_more, *, change=lambda target: target, checks=NO_CHECKS):
    """Audit, forecast the next audit, make it; return half-width before, forecast, half-width after."""
    rng = np.random.default_rng(seed)
    weights, topic, gold, bronze = world(rng)
    n = gold.size
    drawn = np.full(n, DRAWN)
    judged = Judged(
        question_influence(from_dense(weights), drawn), drawn, topic, bronze, np.ones(n), GAINS.size
    )
    items = Auditable(judged, np.zeros(n))
    numbers = rng.random(n)
    first = items.probabilities(strategy, n_first) if n_first else np.zeros(n)
    target = AuditedTarget(
        weight=weights[0] - weights[1],
        draw_probability=drawn,
        prior=np.full(n, 0.4),
        bronze_class=bronze,
        bronze_grade=bronze,
        audited=numbers < first,
        gold_grade=gold,
        audit_probability=first,
        gains=GAINS,
    )
    pi = replace(items, earlier=first).probabilities(strategy, n_more)
    forecast = outlook(change(target), pi, checks, np.random.default_rng(seed + 1))
    after = replace(target, audited=numbers < pi, audit_probability=pi).half_width()
    return target.half_width(), forecast, after


def errors(strategy, seeds, **options):
    """Return by how many of its standard errors each forecast is off, and forecast / outcome."""
    found = [play(seed, strategy, 60, 60, **options) for seed in seeds]
    assert all(isinstance(forecast, Outlook) for _, forecast, _ in found)
    off = np.array([(after - forecast.half_width) / forecast.standard_error for _, forecast, after in found])
    ratio = np.array([forecast.half_width / after for _, forecast, after in found])
    return off, ratio


@pytest.mark.parametrize("strategy", ["influence", "simple", "rare"])
def test_forecasts_agree_with_what_the_next_audit_gives_within_their_error(strategy):
    off, ratio = errors(strategy, range(25))
    # Of 25 within 2 standard errors: at least 19, 4 binomial standard errors below 25 x .95.
    assert np.count_nonzero(np.abs(off) < 2) >= 19
    assert abs(off.mean()) < 1
    assert ratio.mean() == pytest.approx(1, abs=0.05)


def test_a_forecast_that_forgets_the_drawing_error_is_found_out():
    """The control: without it the forecast is half of what comes, and no interval of its holds."""
    everything_drawn = lambda target: replace(target, draw_probability=np.ones(target.weight.size))  # noqa: E731
    off, ratio = errors("influence", range(8), change=everything_drawn)
    assert np.count_nonzero(np.abs(off) < 2) == 0
    assert ratio.mean() < 0.7


def test_a_first_audit_can_be_forecast_from_gold_checks_alone():
    rng = np.random.default_rng(5)
    _, _, gold, bronze = world(rng)
    sample = rng.choice(gold.size, 150, replace=False)
    checks = np.zeros((3, 3))
    np.add.at(checks, (gold[sample], bronze[sample]), 1)
    found = [play(seed, "influence", 0, 100, checks=checks) for seed in range(12)]
    assert all(isinstance(before, Refusal) for before, _, _ in found)
    off = np.array([(after - forecast.half_width) / forecast.standard_error for _, forecast, after in found])
    assert np.count_nonzero(np.abs(off) < 3) >= 9
    ratio = np.mean([forecast.half_width / after for _, forecast, after in found])
    assert ratio == pytest.approx(1, abs=0.12)


def test_a_larger_audit_narrows_more_and_one_of_everything_leaves_the_drawing_error():
    widths = [play(3, "influence", 60, n_more)[1].half_width for n_more in (30, 100, 300)]
    assert widths == sorted(widths, reverse=True)
    _, everything, after = play(3, "influence", 60, 10_000)
    # The gold error is gone; what is left is the error of the draw, which the forecast knows but for gold grades.
    assert everything.half_width == pytest.approx(after, rel=0.1)


def test_forecasts_are_the_same_for_the_same_seed_and_change_nothing():
    first, again = play(4, "simple", 60, 60)[1], play(4, "simple", 60, 60)[1]
    assert first == again


def small_target(**changes):
    n = 40
    rng = np.random.default_rng(1)
    bronze = rng.integers(0, 3, n)
    target = AuditedTarget(
        weight=rng.normal(size=n),
        draw_probability=np.full(n, 0.5),
        prior=np.zeros(n),
        bronze_class=bronze,
        bronze_grade=bronze,
        audited=np.zeros(n, dtype=bool),
        gold_grade=np.zeros(n, dtype=int),
        audit_probability=np.zeros(n),
        gains=GAINS,
    )
    return replace(target, **changes)


def test_without_any_gold_there_is_no_forecast_and_with_too_little_neither():
    rng = np.random.default_rng(0)
    refused = outlook(small_target(), np.full(40, 0.5), NO_CHECKS, rng)
    assert isinstance(refused, Refusal)
    assert refused.reason == "no audit or gold check has measured the assessors' accuracy yet"
    refused = outlook(small_target(), np.full(40, 0.1), np.eye(3), rng)
    assert isinstance(refused, Refusal)
    assert "this audit would not be enough" in refused.reason


@pytest.mark.parametrize(
    ("pi", "plays", "message"),
    [
        (np.full(40, 1.5), 40, r"in \(0, 1\]"),
        (np.zeros(40), 40, r"in \(0, 1\]"),
        (np.full(40, np.nan), 40, r"in \(0, 1\]"),
        (np.full(39, 0.5), 40, "40 numbers"),
        (np.full(40, 0.2), 40, "nowhere be below"),
        (np.full(40, 0.5), 1, "at least 2, got 1"),
    ],
)
def test_bad_probabilities_are_named(pi, plays, message):
    audited = small_target(audit_probability=np.full(40, 0.4))
    with pytest.raises(ValueError, match=message):
        outlook(audited, pi, np.eye(3), np.random.default_rng(0), plays=plays)


def test_gold_given_bronze_follows_bayes_where_the_shares_are_consistent():
    given = np.array([[0.8, 0.2], [0.3, 0.7]])  # P(given | true), seen on 100,000 checks a grade
    share = np.array([0.4, 0.6])
    n_given = np.rint(10_000 * share @ given).astype(int)
    bronze = np.repeat([0, 1], n_given)
    joint = share[:, None] * given
    expected = (joint / joint.sum(axis=0)).T
    assert gold_given_bronze(1e5 * given, bronze) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("counts", "bronze", "message"),
    [
        ([[1, 2]], [0], "square"),
        ([[-1, 0], [0, 1]], [0], "square"),
        (np.eye(2), [2], "0 to 1"),
        (np.eye(2), [], "at least one"),
    ],
)
def test_bad_counts_are_named(counts, bronze, message):
    with pytest.raises(ValueError, match=message):
        gold_given_bronze(counts, bronze)


# -- the plan: sizes and nested probabilities -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("already", "each", "total", "n_judged", "n_drawn", "expected"),
    [
        (0, 50, 200, 100, 400, 50),
        (0, 50, 200, 60, 400, 30),  # in step: 60 of 400 judged, so 30 of 200
        (0, 50, 200, 0, 400, None),
        (190, 50, 200, 400, 400, 10),
        (199.5, 50, 200, 400, 400, 0.5),  # it completes the total
        (99.5, 50, 200, 200, 400, None),  # half an item is not worth an audit
        (200, 50, 200, 400, 400, None),
        (0, 500, 900, 100, 100, 100),
    ],
)
def test_the_next_audit_is_as_large_as_planned_and_in_step_with_the_judging(
    already, each, total, n_judged, n_drawn, expected
):
    found = items_of_next_audit(
        already=already, each_time=each, in_total=total, n_judged=n_judged, n_drawn=n_drawn
    )
    assert found == (None if expected is None else pytest.approx(expected))


def test_impossible_sizes_are_named():
    with pytest.raises(ValueError, match="5 of 4"):
        items_of_next_audit(already=0, each_time=1, in_total=1, n_judged=5, n_drawn=4)


@pytest.mark.parametrize("strategy", strategy_keys())
def test_nested_probabilities_add_exactly_as_many_items_as_wanted(strategy):
    rng = np.random.default_rng(8)
    n = 300
    judged = Judged(
        influence=rng.gamma(0.3, size=n),
        inclusion_probability=rng.uniform(0.1, 1, n),
        topic_index=rng.integers(0, 12, n),
        bronze_grade=rng.integers(0, 3, n),
        error_variance=rng.uniform(0, 1, n),
        n_grades=3,
    )
    items = Auditable(judged, np.where(rng.random(n) < 0.5, rng.uniform(0, 0.6, n), 0.0))
    for n_more in (1, 20, 90):
        pi = items.probabilities(strategy, n_more)
        assert (pi >= items.earlier).all()
        assert (pi > 0).all()
        assert pi.sum() - items.earlier.sum() == pytest.approx(n_more, abs=1e-3)
    assert items.probabilities(strategy, 1e9).tolist() == [1.0] * n
    for wrong in (0, -1, np.inf, np.nan):
        with pytest.raises(ValueError, match="n_more"):
            items.probabilities(strategy, wrong)


def test_middle_grades_are_medians_between_two_the_lower():
    rng = np.random.default_rng(2)
    item = np.repeat(np.arange(50), rng.integers(1, 6, 50))
    grade = rng.integers(0, 4, item.size)
    shuffled = rng.permutation(item.size)
    expected = [sorted(grade[item == i])[(np.count_nonzero(item == i) - 1) // 2] for i in range(50)]
    assert middle_grades(item[shuffled], grade[shuffled], 50).tolist() == expected
    with pytest.raises(ValueError, match="must have a label"):
        middle_grades([0, 2], [1, 1], 3)


# -- from rows ------------------------------------------------------------------------------------------------


def a_bit_wrong(slot, place):
    number = int(slot.item.document.doc_id[-2:])
    return (truth_of(slot) + (place and number % 3 == 0)) % 4


def computed(campaign):
    """Recompute and return the forecasts by strategy."""
    computation = recompute(campaign=campaign)
    return computation, {row.strategy: row for row in AuditForecast.objects.filter(computation=computation)}


@pytest.mark.django_db
def test_after_a_recomputation_every_strategy_has_a_forecast_for_the_question_s_pair(tmp_path):
    campaign = make_campaign(tmp_path, kind="pair")
    judge_all(campaign, [make_assessor(campaign, "ann"), make_assessor(campaign, "ben")], a_bit_wrong)
    _, rows = computed(campaign)
    assert set(rows) == {one.key for one in strategies_for(has_whole_topics=False)}
    assert {row.refusal for row in rows.values()} == {
        "no audit or gold check has measured the assessors' accuracy yet"
    }
    AuditSchedule.objects.create(campaign=campaign, items_each_time=8, items_in_total=42)
    audit(campaign=campaign, items_each_time=24, items_in_total=42, seed=5)
    _, rows = computed(campaign)
    assert "wait for the gold tier; the forecast follows" in rows["simple"].refusal
    judge_audit(campaign, make_assessor(campaign, "greta", tier="gold"))
    computation, rows = computed(campaign)
    shown = Estimate.objects.get(
        computation=computation,
        run__run_id="run0",
        run_b__run_id="run2",
        measure="DCG@10",
        method="corrected",
    )
    for row in rows.values():
        assert row.refusal == ""
        assert (row.run.run_id, row.run_b.run_id, row.measure, row.n_more) == ("run0", "run2", "DCG@10", 8)
        assert row.half_width_now == pytest.approx((shown.unbounded_high - shown.unbounded_low) / 2)
        assert 0 < row.half_width_after < row.half_width_now
        assert row.half_width_error > 0
        assert row.middle_low <= row.half_width_after <= row.middle_high
        assert 0 <= row.drawing_share <= 1
        between = shown.topics_standard_error**2 - shown.standard_error**2
        assert between > 0
        assert row.topics_half_width_after > row.half_width_after
        # V follows from the topics' part: two degrees of freedom, and the audit narrows what is not theirs.
        judging = between * (1 - row.topics_share) / row.topics_share
        assert 0 < judging < shown.standard_error**2


@pytest.mark.django_db
def test_when_everything_is_audited_the_forecast_says_so(tmp_path):
    campaign = make_campaign(tmp_path, kind="pair")
    judge_all(campaign, [make_assessor(campaign, "ann"), make_assessor(campaign, "ben")], a_bit_wrong)
    audit(campaign=campaign, items_each_time=42, items_in_total=42, seed=5)
    judge_audit(campaign, make_assessor(campaign, "greta", tier="gold"))
    _, rows = computed(campaign)
    assert {row.refusal for row in rows.values()} == {"every judged item is already audited"}


@pytest.mark.django_db
def test_of_several_runs_the_one_with_the_median_half_width_is_forecast(tmp_path):
    campaign = make_campaign(tmp_path, kind="pool")
    judge_all(campaign, [make_assessor(campaign, "ann"), make_assessor(campaign, "ben")], a_bit_wrong)
    audit(campaign=campaign, items_each_time=30, items_in_total=42, seed=5)
    judge_audit(campaign, make_assessor(campaign, "greta", tier="gold"))
    computation, rows = computed(campaign)
    shown = Estimate.objects.filter(computation=computation, run_b=None, measure="DCG@10", method="corrected")
    widths = sorted((row.unbounded_high - row.unbounded_low) / 2 for row in shown)
    assert len(widths) == 3
    assert rows["simple"].half_width_now == pytest.approx(widths[1])
    assert rows["simple"].run_b is None


@pytest.mark.parametrize(
    ("question", "runs", "expected"),
    [
        ("pair", ["c", "a"], [(0, 2)]),
        ("system", ["b"], [(1, None)]),
        ("baseline", ["b", "a", "c"], [(0, 1), (1, 2)]),
        ("ranking", [], [(0, 1), (0, 2), (1, 2)]),
        ("pool", [], [(0, None), (1, None), (2, None)]),
    ],
)
def test_the_question_says_which_runs_or_pairs_are_forecast(question, runs, expected):
    draw = Draw(question=question, parameters={"runs": runs})
    assert asked_targets(draw, ["a", "b", "c"]) == expected


def test_a_share_of_all_there_is_is_not_above_one_by_a_rounding():
    whole = 0.2912607248243877
    alike = [whole] * 200
    assert whole / np.mean(alike) > 1  # what is guarded against
    assert share_of(whole, alike) == 1
    assert share_of(1.0, [2.0, 6.0]) == 0.25
    assert share_of(0.0, [0.0] * 3) == 0
