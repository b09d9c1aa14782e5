"""Topics like these: the wider of two intervals, the larger of two p, effect size, sign flips; values by topic."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from analytics.estimation.comparison import holm
from analytics.estimation.estimate import Refusal, estimates
from analytics.estimation.sign_flips import FLIPS, randomisation_p, step_down_p
from analytics.estimation.targets import rows_alone
from analytics.estimation.topics import (
    between_topics,
    effect_size,
    never_narrower,
    over_topics_of,
    p_like_these,
    skewness,
    t_warning,
)
from analytics.numbers.columns import columns

ALONE = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
DIFFERENCE, SPREAD, JUDGING, TOPICS = 0.822193, 2.372739, 0.002395977, 45  # the demo's main pair


def of(value, variance, df, n=45):
    return estimates(
        np.array([value]),
        {"gold": np.array([variance])},
        degrees_of_freedom=df,
        n=np.array([n]),
        refusals={},
    )


def z_of(mean, spread, n):
    """Return n numbers with this mean and standard deviation."""
    away = np.arange(n) - (n - 1) / 2
    return mean + spread * away / away.std(ddof=1)


def test_the_fixture_of_the_main_pair_to_its_digits():
    over = over_topics_of(rows_alone(1), z_of(DIFFERENCE, SPREAD, TOPICS)[None] / TOPICS)
    these = of(DIFFERENCE, JUDGING, np.inf, 620)
    found = never_narrower(over, these.standard_error, these.low, these.high, these.degrees_of_freedom)
    assert found.is_of_topics.tolist() == [True]
    assert found.degrees_of_freedom.tolist() == [44]
    assert DIFFERENCE / found.standard_error[0] == pytest.approx(2.324503, abs=2e-6)
    assert [found.low[0], found.high[0]] == pytest.approx([0.109344, 1.535043], abs=2e-6)
    assert p_like_these(over, np.array([1e-20]))[0] == pytest.approx(0.024777, abs=1e-6)
    # as the fourteenth smallest p of 28 it is multiplied by 15, if those before it stay below
    others = [1e-6] * 13 + [0.5] * 14
    p = p_like_these(over, np.array([1e-20]))[0]
    assert holm([*others, p])[-1] == pytest.approx(0.371655, abs=2e-6)
    assert effect_size(DIFFERENCE, SPREAD**2, TOPICS, JUDGING) == pytest.approx(0.349883, abs=1e-6)
    assert between_topics(SPREAD**2, TOPICS, JUDGING) == pytest.approx(SPREAD**2 / 45 - JUDGING, rel=1e-12)
    # the control: adding V_F counts the judges twice
    assert np.sqrt(SPREAD**2 / 45 + JUDGING) > found.standard_error[0] + 0.003


def test_two_topics_drawn_with_replacement_and_judged_with_errors_the_whole_variance_is_that_of_the_values():
    true, errors = (0.0, 1.0, 4.0), (1.0, 0.5, 2.0)
    means, spreads, judging = [], [], []
    for first, second in product(range(3), repeat=2):
        for signs in product((-1, 1), repeat=2):
            z = np.array([true[k] + sign * errors[k] for k, sign in zip((first, second), signs, strict=True)])
            means.append(z.mean())
            spreads.append(z.var(ddof=1) / 2)
            judging.append((errors[first] ** 2 + errors[second] ** 2) / 4)
    assert np.var(means) == pytest.approx(2.319444, abs=1e-6)
    assert np.mean(spreads) == pytest.approx(np.var(means), rel=1e-12)
    assert np.mean(judging) == pytest.approx(0.875, rel=1e-12)
    # the control: with V_F added it is too large
    assert np.mean(spreads) + np.mean(judging) > 1.3 * np.var(means)


def test_where_the_judging_is_wider_its_interval_p_and_degrees_of_freedom_stand():
    over = over_topics_of(rows_alone(1), z_of(0.5, 0.1, 30)[None] / 30)
    these = of(0.5, 0.2**2, 12.0)
    found = never_narrower(over, these.standard_error, these.low, these.high, these.degrees_of_freedom)
    assert found.is_of_topics.tolist() == [False]
    assert [found.low[0], found.high[0]] == [these.low[0], these.high[0]]
    assert found.degrees_of_freedom.tolist() == [12]
    p = 2 * stats.t.sf(2.5, 12)
    assert p_like_these(over, np.array([p])).tolist() == [p]
    assert effect_size(0.5, 0.1**2, 30, 0.2**2) == Refusal(
        "the errors of judging explain all of the spread over topics"
    )


def test_a_stored_row_has_both_claims_and_the_numbers_for_these_topics_stay_to_the_last_bit():
    over = over_topics_of(rows_alone(1), z_of(DIFFERENCE, SPREAD, TOPICS)[None] / TOPICS)
    these = of(DIFFERENCE, JUDGING, np.inf, 620)
    alone = columns("DCG@10", "corrected", ALONE, these, settled={}).numbers
    both = columns("DCG@10", "corrected", ALONE, these, settled={}, over_topics=over).numbers
    for name in ("value", "standard_error", "low", "high", "degrees_of_freedom"):
        assert both[name].tobytes() == alone[name].tobytes(), name
    assert both["topics_degrees_of_freedom"].tolist() == [44]
    assert "topics_p_value" not in both  # a value is not tested


def test_a_pair_has_a_p_for_topics_like_these_never_below_that_for_these_and_equal_runs_have_1():
    values = np.array([z_of(0.9, 1.0, 30), z_of(0.1, 1.0, 30)[::-1], z_of(0.9, 1.0, 30)])
    first, second = np.triu_indices(3, 1)
    targets = estimates(
        np.array([0.9, 0.1, 0.9, 0.8, 0.0, -0.8]),
        {"gold": np.full(6, 0.01)},
        degrees_of_freedom=np.inf,
        n=np.full(6, 100),
        refusals={},
    )
    from analytics.estimation.estimate import Estimate
    from analytics.estimation.targets import TargetWeights
    from sampling.measures.sparse import from_dense

    over = over_topics_of(TargetWeights(from_dense(np.eye(3))), values / 30)
    same = Estimate(0.0, 0.0, 0.0, 0.0, None, 0, (), (), "the two runs are the same inside the cutoff")
    rows = columns(
        "P@10",
        "corrected",
        (first, second),
        targets,
        settled={4: same, 2: Refusal("it came late")},
        over_topics=over,
        tested=True,
        topic_values=values,
    )
    p, wide = rows.numbers["p_value"], rows.numbers["topics_p_value"]
    paired = stats.ttest_rel(values[0], values[1])
    assert wide[3] == pytest.approx(max(paired.pvalue, p[3]), rel=1e-9)
    assert wide[3] > p[3]
    assert np.isnan(wide[:3]).all()
    assert wide[4] == 1
    assert [row is None for row in rows.topic_values] == [False, False, True, True, True, True]
    assert rows.topic_values[0] == values[0].tolist()


# -- sign flips ---------------------------------------------------------------------------------------------------


def all_signs(z):
    """Return the exact p of every pair over all assignments of signs, alone and stepped down by max-t."""
    signs = np.array(list(product((-1.0, 1.0), repeat=z.shape[1])))
    sums = np.abs(signs @ z.T)
    alone = (sums >= np.abs(z.sum(axis=1)) - 1e-12).mean(axis=0)
    flipped = signs[:, None] * z
    t = np.abs(flipped.mean(axis=2)) / (flipped.std(axis=2, ddof=1) / np.sqrt(z.shape[1]))
    observed = np.abs(z.mean(axis=1)) / (z.std(axis=1, ddof=1) / np.sqrt(z.shape[1]))
    order = np.argsort(-observed)
    adjusted, before = np.zeros(len(z)), 0.0
    for place, pair in enumerate(order):
        before = max(before, (t[:, order[place:]].max(axis=1) >= observed[pair] - 1e-12).mean())
        adjusted[pair] = before
    return alone, adjusted


def test_random_signs_give_the_p_of_all_signs_alone_and_stepped_down():
    z = np.random.default_rng(5).normal(size=(4, 10)) + np.array([[1.0], [0.5], [0.0], [0.8]])
    alone, adjusted = all_signs(z)
    error = 4 * np.sqrt(0.25 / FLIPS)
    assert randomisation_p(z) == pytest.approx(alone, abs=error)
    assert step_down_p(z) == pytest.approx(adjusted, abs=error)
    assert (step_down_p(z) >= randomisation_p(z) - 2 * error).all()
    assert randomisation_p(z).tolist() == randomisation_p(z).tolist()
    # correlated pairs cost less than Holm's adjustment
    close = np.vstack([z[0] + 0.01 * k for k in range(8)])
    assert step_down_p(close)[0] < 0.5 * holm(randomisation_p(close))[0]


def test_pairs_without_a_difference_have_1_and_equal_differences_the_least_p():
    assert randomisation_p(np.zeros(8)).tolist() == [1]
    assert step_down_p(np.zeros((1, 8))).tolist() == [1]
    # all differences equal: only two of 2^30 assignments are as far
    assert randomisation_p(np.full(30, 0.2)).tolist() == [1 / (1 + FLIPS)]
    with pytest.raises(ValueError, match="finite"):
        randomisation_p([np.nan])
    with pytest.raises(ValueError, match="at least 2 topics"):
        step_down_p([[1.0]])


def test_few_or_skewed_topics_are_warned_of():
    assert t_warning(25, 2.0) == ""
    assert t_warning(24, 0.0) == "only 24 topics: t is approximate"
    assert "skewed (-2.1)" in t_warning(50, -2.1)
    values = np.random.default_rng(3).exponential(size=60)
    assert skewness(values) == pytest.approx(stats.skew(values), rel=1e-12)
    assert skewness(np.ones(4)) == 0
