"""Old judgments for a new run: support, worth, and topping up; against closed forms and brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.estimation.estimate import Refusal
from analytics.estimation.estimators import difference_estimator
from analytics.estimation.reuse import reusability, top_up
from experiments.papers.designs import pair_design
from experiments.papers.forecasts import forecast_half_width
from sampling.designs import inclusion_probabilities
from sampling.draws import permanent_random_numbers, poisson_draw
from sampling.sizes import IdenticalSystemsError, UnsupportedWeightError

Z = 1.959963984540054
RNG = np.random.default_rng(1)
W = np.where(RNG.random(200) < 0.5, RNG.uniform(0.01, 0.1, 200), 0.0)
OLD = np.clip(RNG.uniform(-0.2, 0.5, 200), 0.02, 1)
SPREAD = RNG.uniform(0.1, 0.5, 200)


# -- reuse ---------------------------------------------------------------------------------------------------


def test_a_design_made_for_the_target_is_worth_all_of_its_judgments():
    pi = inclusion_probabilities(W, 30)
    found = reusability(W, pi, np.full(200, 0.3))[0]
    assert found.share_outside == 0
    assert found.expected_judgments == pytest.approx(30)
    assert found.effective_judgments == pytest.approx(30)
    assert found.relative_variance == pytest.approx(1)
    assert found.refusal is None


def test_effective_judgments_are_kishs_ratio_of_expected_sums():
    found = reusability(W, OLD, SPREAD)[0]
    seen = W > 0
    assert found.effective_judgments == pytest.approx(W.sum() ** 2 / (W[seen] ** 2 / OLD[seen]).sum())
    assert found.expected_judgments == pytest.approx(OLD[seen].sum())
    # Kish's ratio of one draw, with both sums averaged over many draws
    sums = np.zeros(2)
    for _ in range(3000):
        a = (W / OLD)[RNG.random(200) < OLD]
        sums += [a.sum(), (a**2).sum()]
    assert (sums[0] / 3000) ** 2 / (sums[1] / 3000) == pytest.approx(found.effective_judgments, rel=0.03)


def test_the_relative_variance_is_that_of_both_designs_at_the_same_expected_number():
    found = reusability(W, OLD, SPREAD)[0]
    own = inclusion_probabilities(W * SPREAD, OLD.sum())

    def variance(pi):
        return sum((1 - p) / p * (w * s) ** 2 for w, s, p in zip(W, SPREAD, pi, strict=True) if w > 0)

    assert found.relative_variance == pytest.approx(variance(OLD) / variance(own))
    assert found.half_width == pytest.approx(Z * np.sqrt(variance(OLD)))


def test_judgments_of_a_pair_are_refused_for_a_run_that_returns_what_both_rank_alike():
    ranks = np.array([0.5, 0.3, 0.2, 0.0])
    first, second = ranks, ranks[[0, 2, 1, 3]]
    pi = inclusion_probabilities(pair_design(first, second, np.ones(4)), 2)
    third = np.array([0.3, 0.5, 0.0, 0.2])
    pair, other = reusability(np.array([first - second, third]), pi, np.full(4, 0.5))
    assert pair.refusal is None
    assert other.share_outside == pytest.approx(0.5)
    for answer in (other.refusal, other.half_width, other.relative_variance):
        assert isinstance(answer, Refusal)
        assert "50.0% of the weight" in answer.reason


def test_documents_outside_the_frame_count_as_outside():
    found = reusability(W, OLD, SPREAD, weight_outside=[W.sum() / 4])[0]
    assert found.share_outside == pytest.approx(0.2)
    assert isinstance(found.refusal, Refusal)
    # what it says of the part inside stays known
    assert found.effective_judgments == reusability(W, OLD, SPREAD)[0].effective_judgments


def test_a_run_wholly_outside_has_no_effective_judgments():
    found = reusability([0.0, 0.0, 1.0], [0.5, 0.5, 0.0], [0.5, 0.5, 0.5])[0]
    assert (found.share_outside, found.effective_judgments, found.expected_judgments) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize("share", [0.01, 0.2])
def test_a_small_floor_makes_reuse_legal_and_useless(share):
    """Judgments of one tenth of the frame, with `share` of them spread evenly, asked about another tenth."""
    n, m = 2000, 100
    weights, mine = np.zeros(n), np.zeros(n)
    mine[:200], weights[200:400] = 1.0, 1.0
    pi = inclusion_probabilities((1 - share) * mine / 200 + share / n, m)
    found = reusability(weights, pi, np.full(n, 0.3))[0]
    assert found.refusal is None
    # its 200 items have pi = share m/n; a design of its own would give them m/200
    reached, own = share * m / n, m / 200
    assert found.effective_judgments == pytest.approx(200 * reached)
    assert found.relative_variance == pytest.approx((1 / reached - 1) / (1 / own - 1))
    assert found.relative_variance > 90


def test_an_own_design_that_would_judge_everything_is_said_and_not_divided_by():
    pi = np.full(10, 0.5)
    target = np.array([1.0, 1.0] + [0.0] * 8)
    answer = reusability(target, pi, np.full(10, 0.5))[0].relative_variance
    assert isinstance(answer, Refusal)
    assert "judge all the target weighs" in answer.reason
    assert reusability(target, np.ones(10), np.full(10, 0.5))[0].relative_variance == 1.0


def test_the_size_of_weights_does_not_matter_for_shares_and_ratios():
    one = reusability(W, OLD, SPREAD)[0]
    for scale in (1e-250, 1e250):
        other = reusability(W * scale, OLD, SPREAD)[0]
        assert one.effective_judgments == pytest.approx(other.effective_judgments)
        assert one.relative_variance == pytest.approx(other.relative_variance)
        assert one.half_width * scale == pytest.approx(other.half_width)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"frame_weights": np.zeros(3)}, "weigh something, got 0 for target 0"),
        ({"frame_weights": [1.0, np.nan, 0.0]}, "weights must be finite, got nan"),
        ({"inclusion_probability": [0.5, 1.5, 0.5]}, r"in \[0, 1\], got 1.5"),
        ({"inclusion_probability": [0.5, np.nan, 0.5]}, "inclusion_probability must be finite"),
        ({"inclusion_probability": [0.5]}, r"shape \(3,\)"),
        ({"spread": [0.5, -0.1, 0.5]}, "spread must be >= 0, got -0.1"),
        ({"weight_outside": [-1.0]}, r"1 numbers >= 0, got \[-1.0\]"),
        ({"weight_outside": [1.0, 1.0]}, "1 numbers >= 0"),
    ],
)
def test_impossible_questions_are_refused_with_bound_and_value(change, reason):
    options = {
        "frame_weights": [1.0, 1.0, 0.0],
        "inclusion_probability": [0.5] * 3,
        "spread": [0.5] * 3,
        **change,
    }
    with pytest.raises(ValueError, match=reason):
        reusability(**options)


# -- topping up ----------------------------------------------------------------------------------------------


def forecast(pi, weights=W):
    return float(forecast_half_width(pi, weights, SPREAD**2))


def test_a_top_up_reaches_the_wanted_half_width_and_keeps_every_probability():
    before = forecast(OLD)
    found = top_up(W, OLD, SPREAD, half_width=before / 3)
    assert found.half_width_before == pytest.approx((before,))
    assert found.half_width_after == pytest.approx((before / 3,), rel=1e-9)
    assert found.half_width_after[0] <= before / 3
    assert forecast(found.inclusion_probability) == pytest.approx(before / 3)
    assert (found.inclusion_probability >= OLD).all()
    assert (found.inclusion_probability[W == 0] == OLD[W == 0]).all()
    assert found.expected_new_judgments == pytest.approx((found.inclusion_probability - OLD).sum())


def test_no_cheaper_probabilities_reach_the_half_width():
    """Whatever is moved from some items to others, scaled to the same expected number, makes the forecast wider."""
    found = top_up(W, OLD, SPREAD, half_width=forecast(OLD) / 2)
    extra, matters = found.inclusion_probability - OLD, W > 0
    rng = np.random.default_rng(3)
    for _ in range(300):
        other = extra + matters * rng.uniform(0, 0.05, 200) * (rng.random(200) < 0.1)
        other = np.minimum(other, 1 - OLD)
        other *= extra.sum() / other.sum()
        assert other.sum() == pytest.approx(found.expected_new_judgments)
        assert forecast(OLD + other) > found.half_width_after[0]


def test_the_marginal_gain_of_a_judgment_is_equal_wherever_there_is_room():
    new = top_up(W, OLD, SPREAD, budget=20).inclusion_probability
    free = (new > OLD) & (new < 1)
    gain = ((W * SPREAD) ** 2 / new**2)[W > 0]
    price = gain[free[W > 0]]
    assert price == pytest.approx(np.full(price.size, price[0]))
    assert (gain[(new == OLD)[W > 0]] <= price[0] * (1 + 1e-9)).all()


def test_a_budget_is_spent_and_no_more_and_agrees_with_the_half_width_it_buys():
    spent = top_up(W, OLD, SPREAD, budget=15)
    assert spent.expected_new_judgments == pytest.approx(15)
    assert spent.expected_new_judgments <= 15
    back = top_up(W, OLD, SPREAD, half_width=spent.half_width_after[0])
    assert back.expected_new_judgments == pytest.approx(15)


def test_a_run_of_unknown_documents_is_covered_by_the_top_up():
    weights = np.append(W, [0.05, 0.02])
    pi = np.append(OLD, [0.0, 0.0])
    found = top_up(weights, pi, np.append(SPREAD, [0.3, 0.3]), budget=5)
    assert found.share_outside_before == pytest.approx((0.07 / (W.sum() + 0.07),))
    assert found.share_outside_after == (0.0,)
    assert isinstance(found.half_width_before[0], Refusal)
    assert found.half_width_after[0] < np.inf
    assert (found.inclusion_probability[-2:] > 0).all()


def test_what_is_good_enough_already_needs_nothing():
    wide = 2 * forecast(OLD)
    found = top_up(W, OLD, SPREAD, half_width=wide)
    assert found.expected_new_judgments == 0
    assert (found.inclusion_probability == OLD).all()


def test_a_budget_beyond_the_pool_judges_all_that_matters_and_says_so():
    found = top_up(W, OLD, SPREAD, budget=1e6)
    room = (1 - OLD)[W > 0].sum()
    assert found.expected_new_judgments == pytest.approx(room)
    assert found.half_width_after == (0.0,)
    assert "more than is left to judge" in found.warning
    assert top_up(W, OLD, SPREAD, budget=1).warning == ""


def test_several_targets_all_reach_the_half_width():
    rows = np.array([W, np.roll(W, 50), W - np.roll(W, 50)])
    before = forecast_half_width(OLD, rows, SPREAD**2)
    found = top_up(rows, OLD, SPREAD, half_width=before.max() / 2)
    assert max(found.half_width_after) == pytest.approx(before.max() / 2)
    assert found.half_width_before == pytest.approx(tuple(before))


def test_with_permanent_random_numbers_the_top_up_keeps_every_judgment_and_stays_unbiased():
    """A new run on the judgments of an old draw, topped up: the mean over seeds is the truth."""
    n = 60
    topics, docs = ["t"] * n, [f"d{i}" for i in range(n)]
    rng = np.random.default_rng(5)
    w, u = rng.uniform(0.5, 1, n), rng.integers(0, 2, n).astype(float)
    old = np.where(np.arange(n) < 40, 0.3, 0.0)
    new = top_up(w, old, np.full(n, 0.5), budget=15).inclusion_probability
    values, naive = [], []
    for seed in range(400):
        numbers = permanent_random_numbers(topics, docs, seed)
        first, both = poisson_draw(old, numbers), poisson_draw(new, numbers)
        assert np.isin(first, both).all()
        options = {"prior_total": [0.5 * w.sum()], "fewest": 0}
        values.append(
            difference_estimator(w[both], u[both], new[both], prior=np.full(both.size, 0.5), **options)[
                0
            ].value
        )
        naive.append((w[first] * u[first] / old[first]).sum())
    truth, error = (w * u).sum(), np.std(values) / 20
    assert abs(np.mean(values) - truth) < 4 * error
    assert abs(np.mean(naive) - truth) > 10 * error  # without the documents outside


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(1e-6, 1e3), st.floats(0, 1), st.floats(1e-3, 1), st.booleans()),
        min_size=1,
        max_size=20,
    ),
    st.floats(1e-3, 30),
)
def test_whatever_the_frame_probabilities_only_rise_and_the_budget_holds(items, budget):
    weights, old, spread, negative = (np.array(column) for column in zip(*items, strict=True))
    weights = np.where(negative, -weights, weights)
    found = top_up(weights, old, spread, budget=budget)
    new = found.inclusion_probability
    assert (new >= old).all()
    assert (new <= 1).all()
    assert found.expected_new_judgments <= budget * (1 + 1e-9)
    assert found.expected_new_judgments == pytest.approx(min(budget, (1 - old).sum()), rel=1e-6, abs=1e-9)
    assert not np.isnan(found.half_width_after[0])


@pytest.mark.parametrize(
    ("change", "error", "reason"),
    [
        ({"frame_weights": np.zeros(3)}, IdenticalSystemsError, "nothing to judge"),
        ({"spread": [0.5, 0.0, 0.5]}, UnsupportedWeightError, "got 0 for 1 pairs"),
        ({"half_width": None}, ValueError, "either half_width or budget"),
        ({"budget": 3.0}, ValueError, "either half_width or budget"),
        ({"half_width": 0.0}, ValueError, "half_width must be above 0 and finite, got 0.0"),
        ({"half_width": np.nan}, ValueError, "half_width must be above 0 and finite, got nan"),
        ({"half_width": None, "budget": -1.0}, ValueError, "budget must be above 0 and finite, got -1.0"),
        ({"half_width": None, "budget": np.inf}, ValueError, "budget must be above 0 and finite, got inf"),
        ({"frame_weights": [1.0, np.inf, 0]}, ValueError, "weights must be finite, got inf"),
        ({"inclusion_probability": [-0.5, 0.5, 0.5]}, ValueError, r"in \[0, 1\], got -0.5"),
    ],
)
def test_impossible_top_ups_are_refused_by_name(change, error, reason):
    options = {
        "frame_weights": [1.0, 1.0, 0.0],
        "inclusion_probability": [0.5] * 3,
        "spread": [0.5] * 3,
        "half_width": 0.1,
        **change,
    }
    with pytest.raises(error, match=reason):
        top_up(**options)


def test_a_spread_of_zero_is_allowed_where_nothing_is_weighed():
    found = top_up([1.0, 0.0], [0.5, 0.5], [0.5, 0.0], budget=0.2)
    assert found.inclusion_probability == pytest.approx([0.7, 0.5])


def test_no_input_is_changed_and_the_answer_is_the_same_twice():
    w, old, spread = W.copy(), OLD.copy(), SPREAD.copy()
    first, second = (top_up(w, old, spread, budget=10).inclusion_probability for _ in range(2))
    assert (first == second).all()
    assert (w == W).all()
    assert (old == OLD).all()
    assert (spread == SPREAD).all()
