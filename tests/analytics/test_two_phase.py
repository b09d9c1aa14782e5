"""One estimator for draws and audits: a case by hand, all draws and audits of it, its limits, and refusals."""

from itertools import product

import numpy as np
import pytest
from enumeration import exactly, poisson_samples

from analytics.estimation.estimate import Estimate, Refusal
from analytics.estimation.estimators import difference_estimator
from analytics.estimation.targets import TargetWeights, as_targets
from analytics.estimation.two_phase import Phases, two_phase, two_phase_sums
from sampling.measures.sparse import from_dense

# Five items of the frame. The first draw took 1, 2, 3 and 5, its audit 1 and 3.
W = np.array([0.5, -0.3, 0.4, 0.2, -0.6])
PI = np.array([0.8, 0.5, 1.0, 0.4, 0.6])
BEFORE = np.array([0.3, 0.4, 0.2, 0.5, 0.1])
AFTER = np.array([0.6, 0.2, 0.1, 0.5, 0.3])
CHANCE = np.array([0.5, 0.25, 0.5, 0.4, 0.2])
GOLD = np.array([1.0, 0.0, 0.0, 1.0, 0.0])
DRAWN, AUDITED = np.array([0, 1, 2, 4]), np.array([0, 2])


def columns(drawn, audited, gold=GOLD, after=AFTER):
    """Return what is known of the drawn items; gold that nobody saw is not there."""
    return {
        "draw_probability": PI[drawn],
        "audited": audited[drawn],
        "gold": np.where(audited, gold, np.nan)[drawn],
        "audit_probability": CHANCE[drawn],
        "before": BEFORE[drawn],
        "after": after[drawn],
        "spread": (after * (1 - after))[drawn],
    }


def test_the_fixture_by_hand():
    audited = np.isin(np.arange(5), AUDITED)
    found = two_phase(W[DRAWN], **columns(DRAWN, audited), before_total=[(W * BEFORE).sum()], fewest=0)
    one = found.estimates[0]
    assert one.value == pytest.approx(0.637500, abs=5e-7)
    assert dict(one.components) == pytest.approx({"drawing": 0.186781, "gold": 0.128200}, abs=5e-7)
    assert one.standard_error**2 == pytest.approx(0.314981, abs=5e-7)
    assert one.degrees_of_freedom == pytest.approx(12.373765, abs=5e-7)
    sums = two_phase_sums(as_targets(W[DRAWN]), Phases(**columns(DRAWN, audited)))
    assert float(sums.predicted[0]) / 2 == pytest.approx(0.080891, abs=5e-7)
    assert found.n_items.tolist() == [4]
    assert (W[DRAWN] * found.item_corrections).sum() + (W * BEFORE).sum() == pytest.approx(0.6375, **exactly)


def outcomes(gold, after):
    """Yield value, unbiased variance, variance with its bounds, and chance, of every draw with every audit of it."""
    for drawn, chance in poisson_samples(PI):
        places = np.flatnonzero(drawn)
        for taken, again in poisson_samples(CHANCE[places]):
            audited = np.zeros(5, dtype=bool)
            audited[places[taken.astype(bool)]] = True
            given = columns(places, audited, gold, after)
            found = two_phase(W[places], **given, before_total=[(W * BEFORE).sum()], fewest=0).estimates[0]
            sums = two_phase_sums(as_targets(W[places]), Phases(**given))
            unbiased = float(sums.drawing[0] + sums.audit[0])
            yield found.value, unbiased, found.standard_error**2, chance * again


@pytest.mark.parametrize("gold", [GOLD, np.array([3.0, 0.0, 1.0, 2.0, 0.5])])
@pytest.mark.parametrize("after", [AFTER, np.array([0.9, 0.9, 0.0, 0.2, 0.7])])
def test_value_and_variance_are_unbiased_over_all_draws_and_audits(gold, after):
    value, variance, bounded, chance = np.array(list(outcomes(gold, after))).T
    truth = (W * gold).sum()
    assert chance.sum() == pytest.approx(1, **exactly)
    assert (chance * value).sum() == pytest.approx(truth, **exactly)
    true_variance = (chance * (value - truth) ** 2).sum()
    assert (chance * variance).sum() == pytest.approx(true_variance, **exactly)
    assert (chance * bounded).sum() > true_variance


def test_the_moments_of_the_fixture():
    value, variance, _, chance = np.array(list(outcomes(GOLD, AFTER))).T
    assert (W * GOLD).sum() == pytest.approx(0.7, **exactly)
    assert (chance * value).sum() == pytest.approx(0.7, **exactly)
    assert (chance * variance).sum() == pytest.approx(0.389125, **exactly)


def test_an_audit_whose_chance_is_not_the_recorded_one_is_noticed():
    """The positive control: with twice the true chance recorded, the enumeration is off."""
    total = 0.0
    for taken, chance in poisson_samples(CHANCE / 2):
        given = columns(np.arange(5), taken) | {"draw_probability": np.ones(5)}
        found = two_phase(W, **given, before_total=[(W * BEFORE).sum()], fewest=0).estimates[0]
        total += chance * found.value
    assert abs(total - 0.7) > 0.01


# -- what it becomes where a phase is certain -----------------------------------------------------------------


def sample(n=60, seed=3):
    rng = np.random.default_rng(seed)
    return {
        "weights": rng.normal(size=(4, n)) * (rng.random((4, n)) < 0.8),
        "draw_probability": rng.uniform(0.1, 1, n),
        "audited": np.arange(n) < n // 2,
        "gold": rng.random(n),
        "audit_probability": rng.uniform(0.2, 0.9, n),
        "before": rng.random(n),
        "after": rng.random(n),
        "spread": rng.random(n) / 4,
        "before_total": rng.normal(size=4),
    }


def test_where_the_whole_pool_is_judged_g_cancels():
    given = sample() | {"draw_probability": np.ones(60)}
    totals = [given["weights"] @ before for before in (given["before"], np.zeros(60))]
    a, b = (
        two_phase(**given | {"before": before, "before_total": total}).estimates
        for before, total in zip((given["before"], np.zeros(60)), totals, strict=True)
    )
    assert a.value == pytest.approx(b.value, **exactly)
    assert a.standard_error == pytest.approx(b.standard_error, **exactly)
    assert a.components["drawing"].tolist() == [0.0] * 4


@pytest.mark.parametrize("gold", [np.random.default_rng(9).random(60), np.arange(60) % 2 * 3.0])
def test_where_experts_judge_the_draw_it_is_the_difference_estimator(gold):
    """And "as judged" is the same with the mean gain of the labels for the gold gain."""
    given = sample() | {
        "audited": np.ones(60, bool),
        "audit_probability": np.ones(60),
        "gold": gold,
        "after": gold,
    }
    found = two_phase(**given).estimates
    plain = difference_estimator(
        given["weights"],
        gold,
        given["draw_probability"],
        prior=given["before"],
        prior_total=given["before_total"],
    )
    for mine, other in zip(found, plain, strict=True):
        assert isinstance(mine, Estimate)
        assert isinstance(other, Estimate)
        numbers = [
            [one.value, one.standard_error, one.low, one.high, one.degrees_of_freedom]
            for one in (mine, other)
        ]
        assert numbers[0] == pytest.approx(numbers[1], **exactly)
        assert (mine.n, mine.sources, mine.warning) == (other.n, other.sources, other.warning)


def test_where_an_audit_is_certain_the_prediction_of_its_items_does_not_matter():
    given = sample()
    given["audit_probability"] = np.where(np.arange(60) < 20, 1.0, given["audit_probability"])
    other = given | {
        "after": np.where(np.arange(60) < 20, 9.0, given["after"]),
        "spread": given["spread"].copy(),
    }
    other["spread"][:20] = 5.0
    assert two_phase(**given).estimates == two_phase(**other).estimates


def test_everything_known_is_a_census():
    gold = np.arange(12.0)
    certain = {
        "draw_probability": np.ones(12),
        "audited": np.ones(12, bool),
        "audit_probability": np.ones(12),
    }
    found = two_phase(
        np.ones(12),
        **certain,
        gold=gold,
        before=np.zeros(12),
        after=gold,
        spread=np.ones(12),
        before_total=[0.0],
    ).estimates[0]
    assert (found.value, found.standard_error, found.degrees_of_freedom) == (66.0, 0.0, None)


def test_pairs_of_runs_without_a_table_equal_the_written_out_differences():
    given = sample()
    weights = given.pop("weights")
    first, second = np.triu_indices(4, 1)
    rows = np.concatenate([weights, weights[first] - weights[second]])
    total = np.concatenate(
        [given["before_total"], given["before_total"][first] - given["before_total"][second]]
    )
    sparse = two_phase(TargetWeights(from_dense(weights)), **given | {"before_total": total}).estimates
    dense = two_phase(rows, **given | {"before_total": total}).estimates
    for name in ("value", "standard_error", "low", "high", "degrees_of_freedom", "n"):
        assert getattr(sparse, name) == pytest.approx(getattr(dense, name), **exactly)


def exact_predictions(**change):
    """Return items whose gold gain was predicted before they were drawn, against expectation."""
    given = sample() | {"audited": np.ones(60, bool), "audit_probability": np.full(60, 0.999)}
    return given | {"gold": given["before"], "draw_probability": np.full(60, 0.1)} | change


def test_the_drawing_counts_at_least_half_of_what_is_predicted():
    given = exact_predictions()
    found = two_phase(**given).estimates
    expected = (given["after"] - given["before"]) ** 2 + given["spread"]
    predicted = (given["weights"] ** 2 * 0.9 / 0.01 * expected).sum(axis=1)
    assert found.components["drawing"] == pytest.approx(predicted / 2, **exactly)


def test_the_degrees_of_freedom_are_at_least_1_and_t_is_used_with_many():
    # one item carries all: 2 (kappa/2)^2 / (.9 kappa^2) = .56
    one_large = np.where(np.arange(60) == 0, 1.0, 1e-6)
    given = exact_predictions(weights=one_large, before_total=[0.0])
    assert two_phase(**given).estimates[0].degrees_of_freedom == 1.0
    found = two_phase(**sample(n=4000)).estimates[0]
    assert 100 < found.degrees_of_freedom < 4000


# -- refusals and errors ---------------------------------------------------------------------------------------


def test_fewer_audited_items_with_weight_than_wanted_are_refused():
    given = sample()
    given["weights"] = np.stack([np.where(np.arange(60) < 8, 1.0, 0.0), np.ones(60)])
    given["before_total"] = np.zeros(2)
    refused, fine = two_phase(**given).estimates
    assert refused == Refusal("8 audited items with non-zero weight; at least 10 are needed", 2)
    assert isinstance(fine, Estimate)
    assert isinstance(two_phase(**given, fewest=8).estimates[0], Estimate)


def test_an_item_that_no_audit_could_take_is_refused_only_where_it_counts():
    given = sample()
    given["audit_probability"][59] = 0.0
    given["weights"] = np.stack([np.ones(60), np.where(np.arange(60) == 59, 0.0, 1.0)])
    given["before_total"] = np.zeros(2)
    refused, fine = two_phase(**given).estimates
    assert refused == Refusal("1 judged items with non-zero weight have no audit probability", 1)
    assert isinstance(fine, Estimate)


def test_errors_that_are_all_0_are_refused_rather_than_given_without_width():
    given = sample() | {"spread": np.zeros(60), "draw_probability": np.ones(60)}
    given["gold"] = given["after"]
    assert "all alike" in two_phase(**given).estimates[0].reason


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"audit_probability": np.full(60, 1.5)}, r"audit_probability must be in \[0, 1\], got 1.5"),
        ({"audit_probability": np.zeros(60)}, "audited item must be above 0"),
        ({"draw_probability": np.zeros(60)}, r"draw_probability must be in \(0, 1\], got 0"),
        ({"audited": np.ones(60)}, "audited must be flat and boolean, got float64"),
        ({"gold": np.full(60, np.nan)}, "gold must be finite, got nan"),
        ({"gold": np.zeros(59)}, r"gold must have shape \(60,\), got \(59,\)"),
        ({"spread": np.full(60, -0.1)}, "spread must be at least 0, got -0.1"),
        ({"after": np.zeros(59)}, r"after must have shape \(60,\), got \(59,\)"),
        ({"weights": np.ones((4, 59))}, "weights must be of the 60 judged items, got 59"),
        ({"before_total": np.zeros(3)}, r"before_total must have shape \(4,\), got \(3,\)"),
    ],
)
def test_impossible_inputs_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        two_phase(**sample() | change)


def test_no_weights_of_any_kind_make_a_variance_negative():
    for seed, scale in product(range(20), (0.0, 0.01, 5.0)):
        given = sample(seed=seed)
        given["spread"] = given["spread"] * scale
        found = two_phase(**given).estimates
        assert (found.standard_error > 0).all()
        assert (found.degrees_of_freedom >= 1).all()
