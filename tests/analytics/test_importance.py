"""Draws with replacement: the traps of repeated labels and batches, and what is refused. Proofs: test_exact.py."""

import numpy as np
import pytest
from reference_formulas import distinct_variances

from analytics.estimation.estimate import Estimate, Refusal
from analytics.estimation.importance import (
    balance_heuristic,
    distinct_inclusion,
    distinct_items,
    importance_sampling,
)

RNG = np.random.default_rng(1)
W, U, Q = RNG.normal(size=20), RNG.integers(0, 3, 20).astype(float), RNG.uniform(0.01, 0.05, 20)


def test_the_interval_is_the_papers():
    z = W * U / Q
    found = importance_sampling(W, U, Q)[0]
    assert found.value == pytest.approx(z.mean())
    half = 1.96 * z.std(ddof=1) / np.sqrt(20)
    assert (found.low, found.high) == (pytest.approx(z.mean() - half), pytest.approx(z.mean() + half))
    assert found.degrees_of_freedom is None
    assert found.sources == ("drawing",)


def test_a_difference_of_runs_is_one_number_from_the_difference_of_weights():
    other = RNG.normal(size=20)
    a, b, difference = importance_sampling(np.array([W, other, W - other]), U, Q)
    assert difference.value == pytest.approx(a.value - b.value)
    apart = np.sqrt(a.standard_error**2 + b.standard_error**2)
    assert difference.standard_error != pytest.approx(apart, rel=0.01)


def test_one_batch_named_or_not_is_the_same():
    assert importance_sampling(W, U, Q, batch=np.zeros(20, dtype=int)) == importance_sampling(W, U, Q)


def test_own_probabilities_of_batches_give_the_means_of_batches_weighted_by_their_draws():
    batch = np.repeat([0, 1, 2], [5, 7, 8])
    found = importance_sampling(W, U, Q, batch=batch)[0]
    z = W * U / Q
    parts = [z[batch == b] for b in range(3)]
    assert found.value == pytest.approx(sum(p.size / 20 * p.mean() for p in parts))
    variance = sum((p.size / 20) ** 2 * p.var(ddof=1) / p.size for p in parts)
    assert found.standard_error**2 == pytest.approx(variance)


def test_the_balance_heuristic_needs_every_batchs_probability_at_every_draw():
    batch = np.repeat([0, 1], [12, 8])
    designs = np.array([Q, RNG.uniform(0.01, 0.05, 20)])
    found = balance_heuristic(W, U, designs, batch)[0]
    mixed = 0.6 * designs[0] + 0.4 * designs[1]
    assert found.value == pytest.approx((W * U / mixed).mean())
    own = importance_sampling(W, U, designs[batch, np.arange(20)], batch=batch)[0]
    assert own.value != pytest.approx(found.value, rel=1e-3)


def test_the_noise_term_of_reused_labels_is_the_mean_of_nu_w_squared_over_q():
    nu = RNG.uniform(0.1, 0.4, 20)
    found = importance_sampling(W, U, Q, item=np.arange(20), label_variance=nu)[0]
    assert dict(found.components)["label noise"] == pytest.approx((nu * W**2 / Q).mean())
    assert found.sources == ("drawing", "label noise")


def test_items_and_not_draws_decide_whether_there_are_enough():
    item = np.repeat(np.arange(9), [12, 1, 1, 1, 1, 1, 1, 1, 1])
    w, u, q = (x[np.minimum(item, 8)] for x in (np.ones(9), np.arange(9.0), np.full(9, 0.1)))
    assert isinstance(importance_sampling(w, u, q)[0], Estimate)
    few = importance_sampling(w, u, q, item=item)[0]
    assert isinstance(few, Refusal)
    assert (few.needed, few.reason[:14]) == (1, "9 judged items")


def test_draws_without_spread_have_no_interval_of_width_zero():
    nothing = importance_sampling(W, np.zeros(20), Q)[0]
    assert isinstance(nothing, Refusal)
    assert "all alike" in nothing.reason
    # u w proportional to Q, up to rounding: whatever is drawn, the value is the same
    alike = importance_sampling(Q / 3, np.full(20, 0.1), Q)[0]
    assert isinstance(alike, Refusal)


def test_a_batch_of_one_draw_is_refused_by_its_number():
    batch = np.repeat([0, 1, 2], [10, 1, 9])
    refused = importance_sampling(W, U, Q, batch=batch)[0]
    assert isinstance(refused, Refusal)
    assert "[1]" in refused.reason


@pytest.mark.parametrize(
    ("attempt", "reason"),
    [
        (lambda: importance_sampling(W, U, np.zeros(20)), r"draw_probability must be in \(0, 1\], got 0.0"),
        (lambda: importance_sampling(W, U * np.nan, Q), "utility must be finite, got nan"),
        (lambda: importance_sampling(W, U, Q, fewest=-1), "fewest must be at least 0, got -1"),
        (lambda: importance_sampling(W, U, Q, batch=[0]), "batch must have length 20, got 1"),
        (lambda: importance_sampling(W, U, Q, item=[0, 1]), "item must have length 20, got 2"),
        (lambda: importance_sampling(W, U, Q, label_variance=U), "label_variance needs item"),
        (
            lambda: balance_heuristic(W, U, Q, np.zeros(20, int)),
            r"must be \[batch, draw\], got shape \(20,\)",
        ),
        (lambda: balance_heuristic(W, U, [Q, -Q], [0, 1] * 10), r"in \[0, 1\], got -0.0"),
        (lambda: balance_heuristic(W, U, [Q, 0 * Q], [0, 1] * 10), "probability 0 at draw 1"),
        (lambda: balance_heuristic(W, U, [Q, Q], np.zeros(20, int)), "got 0 in batch 1"),
        (lambda: balance_heuristic(W, U, [Q, Q], np.full(20, 2)), "at most 1, got 2"),
        (lambda: balance_heuristic(W, U, [Q, Q], [0, 1]), "length 20, got 2"),
        (lambda: distinct_inclusion([0.5], 0), r"whole numbers >= 1, got \[0.0\]"),
        (lambda: distinct_inclusion([0.5], 1.5), r"whole numbers >= 1, got \[1.5\]"),
        (lambda: distinct_inclusion([0.5, 0.6], 3), "sum to at most 1 over different items"),
        (lambda: distinct_inclusion([[0.5], [0.5]], 3), "must be 2 whole numbers"),
        (lambda: distinct_variances([1.0, 2.0], [0.5], 3), "of 2 items, got 1"),
        (lambda: distinct_variances([1.0, 2.0], [0.5, 0.0], 3), "above 0 in some batch, got 0"),
        (lambda: distinct_items([1.0], [1.0], [0.0], 3), r"the chance to be drawn must be in \(0, 1\]"),
    ],
)
def test_impossible_input_is_refused_with_bound_and_value(attempt, reason):
    with pytest.raises(ValueError, match=reason):
        attempt()


def test_two_labels_for_one_item_are_not_taken_for_one_label():
    item = np.array([3, 3, *range(4, 22)])
    with pytest.raises(ValueError, match=r"share one utility, got 1\.0 and 2\.0 for item 3"):
        importance_sampling(W, [1.0, 2.0, *U[2:]], Q, item=item, label_variance=np.ones(20))
    assert isinstance(importance_sampling(W, [1.0, 2.0, *U[2:]], Q, item=item)[0], Estimate)


# -- each item counted once ----------------------------------------------------------------------------------


def test_the_chance_to_be_drawn_at_all_is_exact_for_tiny_and_certain_items():
    assert distinct_inclusion([1e-18, 1e-12], 10) == pytest.approx([1e-17, 1e-11], rel=1e-12)
    assert distinct_inclusion([1.0], 1).tolist() == [1.0]
    assert distinct_inclusion([[0.5, 0.1], [0.2, 0.0]], [2, 3]) == pytest.approx([1 - 0.25 * 0.512, 0.19])


def test_joint_chances_of_a_thousand_rare_items_are_not_lost_to_rounding():
    # n draws of rare items are nearly a simple random sample: n/(n-1) (1 - n/N...) times the sum of squares
    n, z = 1000, np.sin(np.arange(1000.0)) + 2
    q = np.full(n, 1e-9)
    pi = distinct_inclusion(q, n)
    found = distinct_variances(z * pi, q, n)[0]
    assert found == pytest.approx(n / (n - 1) * ((z - z.mean()) ** 2).sum(), rel=1e-5)


def test_the_variance_does_not_depend_on_the_blocks_it_is_summed_in(monkeypatch):
    e, q = RNG.normal(size=(2, 30)), np.full(30, 0.02)
    whole = distinct_variances(e, q, 50)
    monkeypatch.setattr("analytics.estimation.importance.BLOCK", 7)
    assert distinct_variances(e, q, 50) == pytest.approx(whole, rel=1e-12)


def test_the_rescue_gives_value_error_and_degrees_of_freedom():
    w, u, q = np.ones(20), np.arange(20.0), np.full(20, 0.03)
    pi = distinct_inclusion(q, 40)
    nu = np.full(20, 0.2)
    found = distinct_items(w, u, q, 40, prior=u / 2, prior_total=[100.0], label_variance=nu)[0]
    assert found.value == pytest.approx(100 + (u / 2 / pi).sum())
    parts = dict(found.components)
    assert parts["drawing"] == pytest.approx(distinct_variances(u / 2, q, 40)[0])
    assert parts["label noise"] == pytest.approx((nu / pi).sum())
    assert (found.n, found.degrees_of_freedom) == (20, 19)
    assert found.warning.startswith("only 20 judged items")


def test_where_the_unbiased_variance_is_negative_a_larger_one_is_taken_and_said():
    # a batch of one draw takes one of the first two items; that both were seen is a rare event with a large part
    q = np.array([[0.5, 0.5, *[0.0] * 10], [0.001, 0.001, *[0.09] * 10]])
    w, u = np.ones(12), np.array([1.0, 1.0, *[0.0] * 10])
    pi = distinct_inclusion(q, [1, 100])
    assert distinct_variances(w * u, q, [1, 100])[0] < 0
    found = distinct_items(w, u, q, [1, 100])[0]
    assert found.standard_error**2 == pytest.approx((2 * (1 - pi) / pi**2)[0])
    assert "too large" in found.warning


def test_distinct_items_that_are_few_or_all_without_error_are_refused():
    q = np.full(20, 0.03)
    assert isinstance(distinct_items(np.ones(9), np.arange(9.0), q[:9], 40)[0], Refusal)
    nothing = distinct_items(np.ones(20), np.zeros(20), q, 40)[0]
    assert isinstance(nothing, Refusal)
    assert "all alike" in nothing.reason


def test_no_input_is_changed():
    w, u, q = W.copy(), U.copy(), Q.copy()
    importance_sampling(w, u, q, item=np.arange(20), label_variance=u)
    distinct_items(w, u, q / q.sum(), 30)
    assert (w == W).all()
    assert (u == U).all()
    assert (q == Q).all()
