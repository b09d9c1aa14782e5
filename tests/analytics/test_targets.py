import itertools

import numpy as np
import pytest
from audits import corrected, corrected_by_topic, greg_label, inverse

import analytics.estimation.targets
from analytics.estimation.estimate import Estimate, Refusal, in_columns
from analytics.estimation.estimators import difference_estimator
from analytics.estimation.fixed_size import fixed_size
from analytics.estimation.importance import distinct_items, importance_sampling
from analytics.estimation.more_gold import advice
from analytics.estimation.targets import TargetWeights, fourth_powers, not_zero
from analytics.estimation.topics import over_topics_of
from analytics.estimation.two_phase import GREG_SOURCES
from experiments.papers.estimators import unsupported_share
from sampling.measures.sparse import from_dense

RNG = np.random.default_rng(4)
WEIGHTS = np.where(RNG.random((5, 60)) < 0.25, RNG.random((5, 60)), 0.0)
WEIGHTS[3] = WEIGHTS[1]  # two runs that are alike


def pairs_of_runs(weights):
    """Return all pairs (a, b), a < b, and the rows w_a - w_b in the same order."""
    pairs = list(itertools.combinations(range(len(weights)), 2))
    return pairs, np.array([weights[a] - weights[b] for a, b in pairs])


PAIRS, DIFFERENCES = pairs_of_runs(WEIGHTS)
TABLE = np.concatenate([WEIGHTS, DIFFERENCES])
TOPIC = np.sort(RNG.integers(0, 4, 60))


@pytest.fixture(params=[1, 100, 4_000_000])
def targets(request, monkeypatch):
    monkeypatch.setattr(analytics.estimation.targets, "BLOCK", request.param)
    return TargetWeights(from_dense(WEIGHTS))


def test_targets_are_the_runs_and_then_their_pairs(targets):
    assert targets.targets == [*((run, None) for run in range(5)), *PAIRS]
    assert len(targets) == 15


def test_weights_at_some_items_are_those_columns_of_the_whole_table(targets):
    places = [7, 3, 3, 59, 0]
    assert targets.at(places).tolist() == TABLE[:, places].tolist()
    assert targets.at([]).shape == (15, 0)


def test_totals_are_those_of_the_whole_table(targets):
    values = RNG.random(60)
    assert targets.totals(values) == pytest.approx(TABLE @ values, abs=1e-12)
    by_topic = [np.bincount(TOPIC, row * values, 4) for row in TABLE]
    assert targets.totals_by_topic(values, TOPIC, 4) == pytest.approx(np.stack(by_topic), abs=1e-12)


def test_runs_that_are_alike_have_no_items_that_tell_them_apart(targets):
    counts = targets.n_weighed()
    assert counts.tolist() == np.count_nonzero(TABLE, axis=1).tolist()
    assert targets.is_zero().tolist() == (counts == 0).tolist()
    assert np.flatnonzero(targets.is_zero()).tolist() == [targets.targets.index((1, 3))]


def test_a_run_that_returns_the_same_items_with_other_weights_is_not_alike():
    weights = np.array([[0.5, 0.25, 0.0], [0.25, 0.5, 0.0], [0.5, 0.25, 0.0], [0.0, 0.5, 0.25]])
    targets = TargetWeights(from_dense(weights))
    assert [pair for pair, same in zip(targets.targets, targets.is_zero(), strict=True) if same] == [(0, 2)]


def test_the_share_that_no_draw_can_reach_is_that_of_the_whole_table(targets):
    probability = np.where(RNG.random(60) < 0.3, 0.0, 0.5)
    assert targets.unsupported_share(probability) == pytest.approx(
        unsupported_share(TABLE, probability), abs=1e-12
    )
    assert targets.unsupported_share(np.full(60, 0.5)).tolist() == [0.0] * 15


def test_runs_that_return_nothing_have_targets_of_weight_zero():
    empty = TargetWeights(from_dense(np.zeros((2, 3))))
    assert empty.n_weighed().tolist() == [0, 0, 0]
    assert empty.is_zero().tolist() == [True, True, True]
    assert empty.totals([1.0, 1.0, 1.0]).tolist() == [0, 0, 0]
    assert empty.unsupported_share([0.0, 0.0, 0.0]).tolist() == [0, 0, 0]


# -- sums of what is not linear in the weights: against the table written out --------------------------------


def many_runs(seed=11, n_runs=9, n_items=400):
    """Return weights with ties, equal runs, runs that differ in one item, an empty run, and one that returns a part."""
    rng = np.random.default_rng(seed)
    weights = np.where(
        rng.random((n_runs, n_items)) < 0.2, 1 / np.log2(rng.integers(2, 12, (n_runs, n_items))), 0.0
    )
    weights[1] = weights[0]
    weights[2] = weights[0]
    weights[2, np.flatnonzero(weights[0])[3]] += 1e-6  # nearly equal, in one item
    weights[3] = np.where(np.arange(n_items) < n_items / 2, weights[0], 0.0)
    weights[4] = 0.0
    return weights


def table_of(weights):
    return np.concatenate([weights, pairs_of_runs(weights)[1]])


@pytest.fixture(params=[30, 2_000, 500_000])
def several(request, monkeypatch):
    monkeypatch.setattr(analytics.estimation.targets, "BLOCK", request.param)
    return TargetWeights(from_dense(many_runs()))


def test_squares_fourth_powers_and_counts_are_those_of_the_table_to_the_tenth_digit(several):
    table, rng = table_of(many_runs()), np.random.default_rng(1)
    values = rng.random((400, 2)) * 10.0 ** rng.integers(-6, 6, 400)[:, None]
    mask = rng.random(400) < 0.5
    squares, fourth, counted = several.sums(
        (np.square, values), (fourth_powers, values[:, 0]), (not_zero, mask.astype(float))
    )
    np.testing.assert_allclose(squares, table**2 @ values, rtol=1e-10)
    np.testing.assert_allclose(fourth, table**4 @ values[:, 0], rtol=1e-10)
    assert counted.tolist() == (table != 0)[:, mask].sum(axis=1).tolist()
    assert several.counts(mask).tolist() == counted.tolist()
    np.testing.assert_allclose(several.squares(values[:, 1]), table**2 @ values[:, 1], rtol=1e-10)


def test_runs_that_do_not_differ_under_the_values_give_exactly_0_and_a_sum_of_squares_is_never_negative(
    several,
):
    weights, pairs = many_runs(), several.targets
    values = np.where(np.arange(400) < 200, 1.0, 0.0)
    squares = several.squares(values)
    assert squares.min() == 0.0
    for same in ((0, 1), (0, 3), (1, 3)):  # run 3 is run 0 on the first half
        assert squares[pairs.index(same)] == 0.0
    place = np.flatnonzero(weights[0])[3]
    assert squares[pairs.index((0, 2))] == pytest.approx(
        (weights[2, place] - weights[0, place]) ** 2, rel=1e-10
    )
    # the control: as a difference of large numbers it is lost
    gram = (weights * values) @ weights.T
    assert (
        abs(gram[0, 0] + gram[2, 2] - 2 * gram[0, 2] - squares[pairs.index((0, 2))])
        > 1e-5 * squares[pairs.index((0, 2))]
    )


def test_squares_by_topic_and_spreads_around_the_topics_means_are_those_of_the_table(several):
    table, rng = table_of(many_runs()), np.random.default_rng(2)
    share, topic = rng.random(400), rng.integers(0, 6, 400)  # topic 6 has no item
    squares = several.squares_by_topic(share, topic, 7)
    spreads = np.zeros(squares.shape)
    for part, spread in several.spreads(share, topic, 7):
        spreads[part] = spread
    for t in range(6):
        mine = topic == t
        np.testing.assert_allclose(squares[:, t], table[:, mine] ** 2 @ share[mine], rtol=1e-10)
        centre = table[:, mine] @ share[mine] / share[mine].sum()
        expected = (table[:, mine] - centre[:, None]) ** 2 @ share[mine]
        np.testing.assert_allclose(spreads[:, t], expected, rtol=1e-9, atol=1e-20)
    assert not squares[:, 6].any()
    assert not spreads[:, 6].any()


def test_numbers_that_are_all_equal_have_no_spread():
    weights = TargetWeights(from_dense(np.array([[0.1] * 7, [0.3] * 7])))
    for _, spread in weights.spreads(np.linspace(0.1, 1, 7), np.zeros(7, dtype=np.int64), 1):
        assert not spread.any()


def test_items_in_another_order_and_twice_some_targets_and_scaled_weights_are_those_of_the_table(several):
    table, rng = table_of(many_runs()), np.random.default_rng(3)
    places, x = rng.integers(0, 400, 150), rng.random(150)
    np.testing.assert_allclose(several.over(places).totals(x), table[:, places] @ x, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(several.over(places).squares(x), table[:, places] ** 2 @ x, rtol=1e-10)
    chosen = np.array([4, 0, 20, 44, 9])
    np.testing.assert_array_equal(several.subset(chosen).at(np.arange(400)), table[chosen])
    factor = rng.random(400)
    np.testing.assert_allclose(
        several.times(factor).at(np.arange(400)), table * factor, rtol=1e-12, atol=1e-17
    )
    rows = rng.random((9, 3))
    together = np.concatenate([block for _, block in several.blocks(rows)])
    np.testing.assert_array_equal(together, table_of(rows))


# -- every estimator: pairs of runs as such, and written out --------------------------------------------------


def drawn_of(seed=5, n_runs=6, n_items=300):
    rng = np.random.default_rng(seed)
    rank = np.stack([rng.permutation(n_items) for _ in range(n_runs)])
    weights = np.where(rank < 60, 1 / np.log2(rank + 2.0), 0.0) / 10
    weights[1] = weights[0]
    near = np.flatnonzero(weights[0])[:2]
    weights[2] = weights[0]
    weights[2, near] = weights[0, near[::-1]]
    return weights, {
        "utility": rng.random(n_items) * 3,
        "inclusion_probability": rng.uniform(0.2, 1, n_items),
        "prior": rng.random(n_items),
        "label_variance": rng.random(n_items) - 0.3,
        "topic": np.sort(rng.integers(0, 12, n_items)),
        "rng": rng,
    }


def alike(pairs, dense):
    assert len(pairs) == len(dense)
    for one, other in zip(pairs, dense, strict=True):
        assert type(one) is type(other)
        if isinstance(other, Refusal):
            assert one == other
            continue
        numbers = ("value", "standard_error", "low", "high")
        assert [getattr(one, n) for n in numbers] == pytest.approx(
            [getattr(other, n) for n in numbers], rel=1e-9, abs=1e-12
        )
        if other.degrees_of_freedom is None:
            assert one.degrees_of_freedom is None
        else:
            assert one.degrees_of_freedom == pytest.approx(other.degrees_of_freedom, rel=1e-6)
        assert (one.n, one.sources, one.warning) == (other.n, other.sources, other.warning)


def both_forms(weights):
    return TargetWeights(from_dense(weights)), table_of(weights)


def test_poisson_draws_and_draws_of_fixed_size_agree():
    weights, d = drawn_of()
    sparse, table = both_forms(weights)
    known = {name: d[name] for name in ("utility", "inclusion_probability", "label_variance", "prior")}
    total = table @ d["prior"]
    alike(
        difference_estimator(sparse, **known, prior_total=total),
        difference_estimator(table, **known, prior_total=total),
    )
    options = {"strata": d["topic"], "join_strata": True, "prior_total": total}
    alike(fixed_size(sparse, **known, **options), fixed_size(table, **known, **options))


def test_draws_with_replacement_agree():
    weights, d = drawn_of()
    sparse, table = both_forms(weights)
    q = np.full(300, 1 / 400)
    batch = np.arange(300) % 3
    alike(
        importance_sampling(sparse, d["utility"], q, batch=batch),
        importance_sampling(table, d["utility"], q, batch=batch),
    )
    alike(distinct_items(sparse, d["utility"], q, 500), distinct_items(table, d["utility"], q, 500))


def test_above_a_bound_of_items_the_larger_variance_is_taken_and_said(monkeypatch):
    weights, d = drawn_of()
    q = np.full(300, 1 / 400)
    exact = distinct_items(weights, d["utility"], q, 500)
    monkeypatch.setattr("analytics.estimation.importance.MOST_JOINT", 299)
    larger = distinct_items(weights, d["utility"], q, 500)
    assert all(b.standard_error > a.standard_error for a, b in zip(exact, larger, strict=True))
    assert all("too large" in b.warning for b in larger)


def greg_arguments(d):
    rng = np.random.default_rng(8)
    audited = rng.random(300) < 0.5
    return {
        "draw_probability": d["inclusion_probability"],
        "bronze_class": rng.integers(0, 40, 300),
        "audited": audited,
        "gold_grade": rng.integers(0, 3, 300),
        "audit_probability": np.full(300, 0.5),
        "gains": [0.0, 1.0, 3.0],
        "prior": d["prior"],
    }


def test_greg_label_its_topics_and_its_advice_agree():
    weights, d = drawn_of()
    sparse, table = both_forms(weights)
    given, total = greg_arguments(d), table @ d["prior"]
    found = corrected(sparse, **given, prior_total=total)
    alike(found.estimates, greg_label(table, **given, prior_total=total))
    by_topic = np.stack([np.bincount(d["topic"], row * d["prior"], 12) for row in table])
    dense = corrected_by_topic(
        table, topic_index=d["topic"], n_topics=12, **given, prior_total_by_topic=by_topic
    )
    parts = sparse.run_totals(found.item_corrections, d["topic"], 12) + by_topic[:6]
    refused = {place: dense[place] for place in range(len(dense)) if isinstance(dense[place], Refusal)}
    alike(over_topics_of(sparse, parts, (*GREG_SOURCES, "topics"), refused), dense)
    words = advice(found.estimates, found.n_items)
    for place, one in enumerate(found.estimates):
        is_open = isinstance(one, Estimate) and one.standard_error > 0 and one.low <= 0 <= one.high
        assert bool(words[place]) is is_open
        if is_open:
            assert [words[place]] == advice(in_columns([one]), found.n_items[[place]])
            assert words[place].startswith(f"not resolved by {one.n} gold labels")
    assert any(words)


@pytest.mark.parametrize("gains", [[0.0, 1.0], [0.0, 1.0, 3.0]])
def test_the_matrix_inverse_agrees(gains):
    weights, d = drawn_of()
    weights[3] = np.where(np.arange(300) < 150, weights[4] / 2, 0)  # 4 less 3 has no negative weight
    sparse, table = both_forms(weights)
    rng, g = np.random.default_rng(9), len(gains)
    item = np.concatenate([np.arange(300), rng.integers(0, 300, 200)])
    assessor = rng.integers(0, 5, item.size)
    matrices = np.full((5, g, g), 0.2 / (g - 1)) + np.eye(g) * (0.8 - 0.2 / (g - 1))
    given = {
        "draw_probability": d["inclusion_probability"],
        "label_item": item,
        "label_assessor": assessor,
        "label_grade": np.where(assessor == 0, 0, rng.integers(0, g, item.size)),
        "matrices": matrices,
        "gold_per_grade": np.full((5, g), 60.0),
        "gains": gains,
        "prior": d["prior"],
        "prior_total": table @ d["prior"],
    }
    alike(
        inverse(sparse, **given, rng=np.random.default_rng(1)),
        inverse(table, **given, rng=np.random.default_rng(1)),
    )
