"""The interval for the population of topics: exact over a population of topics, and what is refused."""

from itertools import product

import numpy as np
import pytest
from enumeration import exactly, poisson_samples, summary
from reference_formulas import topic_parts
from scipy import stats

from analytics.estimation.estimate import Estimate, Refusal
from analytics.estimation.estimators import difference_estimator
from analytics.estimation.topics import over_topics

KINDS_U = np.array([[2.0, 1.0], [0.0, 3.0], [4.0, 4.0]])  # utilities of the two pairs of each kind of topic
KINDS_CHANCE = np.array([0.5, 0.3, 0.2])


def campaigns(n_topics):
    """Yield every choice of topics from the population and every Poisson sample of their pairs."""
    pi = np.tile([0.5, 0.8], n_topics)
    for kinds in product(range(3), repeat=n_topics):
        u = KINDS_U[list(kinds)].ravel()
        for m, p in poisson_samples(pi):
            yield u, pi, m, p * float(np.prod(KINDS_CHANCE[list(kinds)]))


def test_the_interval_over_topics_holds_drawing_and_topics_and_that_of_these_topics_does_not():
    n = 2
    w, topic = np.tile([1.0, 0.5], n) / n, np.repeat(np.arange(n), 2)
    f = np.ones(2 * n)
    whole, these = [], []
    for u, pi, m, p in campaigns(n):
        known = np.bincount(topic, w * f)
        parts = topic_parts(
            w[m], u[m], pi[m], topic_index=topic[m], n_topics=n, prior=f[m], prior_total_by_topic=known
        )[0]
        found = over_topics(parts)
        # all topics alike: no estimate, whose spread is 0
        value, spread = (
            (found.value, found.standard_error**2) if hasattr(found, "value") else (parts.sum(), 0.0)
        )
        whole.append((value, spread, p))
        same = difference_estimator(w[m], u[m], pi[m], prior=f[m], prior_total=[known.sum()], fewest=0)[0]
        assert same.value == pytest.approx(value, abs=1e-12)
        these.append((same, p))
    mean, variance, estimated = summary(whole)
    assert mean == pytest.approx((KINDS_CHANCE * (KINDS_U * [1.0, 0.5]).sum(axis=1)).sum(), **exactly)
    assert estimated == pytest.approx(variance, **exactly)
    assert summary(these)[2] < 0.7 * variance


def test_a_topic_that_stands_twice_doubles_the_weight_of_its_pairs_which_are_judged_once():
    # topics x, x, y: the mean over three; the pairs of x are in the frame once, with 2/3 instead of 1/3
    lam, u, pi = np.array([1.0, 0.5]), np.array([2.0, 1.0, 3.0, 1.0]), np.array([0.5, 0.4, 0.6, 0.7])
    w = np.concatenate([2 * lam, lam]) / 3
    value = (2 * (lam * u[:2]).sum() + (lam * u[2:]).sum()) / 3
    mean, variance, estimated = summary(
        (difference_estimator(w[m], u[m], pi[m], fewest=0)[0], p) for m, p in poisson_samples(pi)
    )
    assert mean == pytest.approx(value, **exactly)
    assert estimated == pytest.approx(variance, **exactly)
    # as two pairs that share their label: the same value, half the variance of x
    two = np.array([0, 1, 0, 1, 2, 3])
    apart = np.concatenate([lam, lam, lam]) / 3
    _, _, wrong = summary(
        (
            difference_estimator(apart[m[two]], u[two][m[two]], pi[two][m[two]], fewest=0)[0],
            p,
        )
        for m, p in poisson_samples(pi)
    )
    assert wrong < 0.7 * variance


def test_the_value_is_that_of_the_estimate_and_topics_without_a_drawn_item_count():
    rng = np.random.default_rng(6)
    w, u, pi, f = rng.normal(size=(2, 30)), rng.random(30), rng.uniform(0.2, 1, 30), rng.random(30)
    topic, known = rng.integers(0, 5, 30), rng.normal(size=(2, 8))
    these = difference_estimator(w, u, pi, prior=f, prior_total=known.sum(axis=1))
    parts = topic_parts(w, u, pi, topic_index=topic, n_topics=8, prior=f, prior_total_by_topic=known)
    assert parts[:, 5:] == pytest.approx(known[:, 5:])
    for part, same in zip(parts, these, strict=True):
        found = over_topics(part, ("drawing", "label noise", "topics"))
        assert found.value == pytest.approx(same.value)
        assert (found.n, found.degrees_of_freedom) == (8, 7)
        assert found.sources == ("drawing", "label noise", "topics")
        assert "8 topics" in found.warning
    without = topic_parts(w, u, pi, topic_index=topic, n_topics=8)
    assert not without[:, 5:].any()


def test_for_a_fully_judged_difference_it_is_the_paired_t():
    rng = np.random.default_rng(7)
    a, b = rng.random(12), rng.random(12)
    found = over_topics((a - b) / 12)
    low, high = stats.ttest_rel(a, b).confidence_interval()
    assert (found.value, found.low, found.high) == pytest.approx(((a - b).mean(), low, high), abs=1e-12)
    assert found.warning == ""


def test_one_topic_or_topics_without_spread_are_refused():
    assert over_topics([0.5]) == Refusal("1 topic says nothing about others; at least 2 are needed", 1)
    assert isinstance(over_topics([0.1, 0.1, 0.1 + 1e-17]), Refusal)
    assert isinstance(over_topics([0.0, 0.0]), Refusal)
    assert isinstance(over_topics([0.1, 0.1 + 1e-9]), Estimate)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_part_that_is_not_finite_is_refused(bad):
    with pytest.raises(ValueError, match="parts must be finite"):
        over_topics([0.1, bad])
    with pytest.raises(ValueError, match="flat"):
        over_topics([[0.1, 0.2]])
