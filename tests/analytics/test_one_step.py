"""nDCG, AP and R in one step: a case by hand, derivatives by differences, all draws and audits, refusals."""

from itertools import product

import numpy as np
import pytest
from enumeration import exactly, poisson_samples
from one_step_samples import GRADED, MANY_RANKS, STEPS, TOPIC, graded_world, measure_of, sampled

from analytics.estimation.one_step import one_step
from analytics.estimation.two_phase import two_phase
from sampling.measures.ratio_derivative import derivative
from sampling.measures.sparse import from_dense

P = np.array([0.9, 0.6, 0.5, 0.3, 0.2, 0.1])
RANKS = np.array([1, 3, 0, 2, 0, 4])


@pytest.mark.parametrize(
    ("name", "value", "phi"),
    [
        ("nDCG@3", 0.719487, [0.331579, 0.072637, -0.186306, 0.140443, -0.186306, -0.186306]),
        ("R@3", 0.692308, [0.118343, 0.118343, -0.266272, 0.118343, -0.266272, -0.266272]),
        ("AP@3", 0.625, [0.278846, 0.041667, -0.240385, 0.201923, -0.240385, -0.240385]),
    ],
)
def test_value_and_derivative_by_hand(name, value, phi):
    topic = np.zeros(6, dtype=np.int64)
    at = derivative(measure_of(name), from_dense(RANKS[None]), topic, 1, P[None], np.ones(1))
    assert at.value[0, 0] == pytest.approx(value, abs=5e-7)
    assert at.phi(topic, np.ones(1))[0, 0] == pytest.approx(phi, abs=5e-7)


# -- a graded world of several runs, topics and stairs --------------------------------------------------------


def value_of(name, p, steps):
    at = derivative(measure_of(name), from_dense(MANY_RANKS), TOPIC, 3, p, steps)
    return at.value.mean(axis=1)


@pytest.mark.parametrize("name", ["nDCG@3", "graded nDCG@3", "AP@4", "R@2", "nDCG", "AP"])
def test_the_derivative_is_that_of_differences(name):
    p, steps = (GRADED, STEPS) if name.startswith("graded") else (GRADED[:1], np.ones(1))
    name = name.removeprefix("graded ")
    at = derivative(measure_of(name), from_dense(MANY_RANKS), TOPIC, 3, p, steps)
    phi, step = at.phi(TOPIC, steps), 1e-6
    for stair, item in product(range(len(p)), range(TOPIC.size)):
        near = [p.copy(), p.copy()]
        near[0][stair, item] += step
        near[1][stair, item] -= step
        slope = (value_of(name, near[0], steps) - value_of(name, near[1], steps)) / (2 * step)
        assert phi[:, stair, item] == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("name", ["nDCG@3", "AP@4", "R@2"])
def test_at_known_labels_the_value_is_the_measure(name):
    """By trec_eval's definitions; a topic without a relevant item counts 0."""
    relevant = np.array([1, 0, 1, 1, 0, 0, 1, 0, 1, 0])
    found = value_of(name, relevant[None].astype(float), np.ones(1))
    for run, rank in enumerate(MANY_RANKS):
        parts = []
        for topic in range(2):
            own = np.flatnonzero((topic == TOPIC) & (rank > 0))
            hits = relevant[own[np.argsort(rank[own])]]
            total = relevant[topic == TOPIC].sum()
            at = np.arange(1, hits.size + 1)
            if name == "nDCG@3":
                ideal = (1 / np.log2(np.arange(1, min(total, 3) + 1) + 1)).sum()
                parts.append((hits[:3] / np.log2(at[:3] + 1)).sum() / ideal)
            elif name == "AP@4":
                parts.append((hits * hits.cumsum() / at)[:4].sum() / total)
            else:
                parts.append(hits[:2].sum() / total)
        assert found[run] == pytest.approx(sum(parts) / 3, abs=1e-12)


def outcomes(name, world, gold, fewest=0):
    """Yield what every draw with every audit of it gives, and its chance."""
    measure, ranks = measure_of(name), from_dense(MANY_RANKS)
    for drawn, first in poisson_samples(world["pi"]):
        places = np.flatnonzero(drawn)
        if first == 0:
            continue
        for taken, second in poisson_samples(world["chance"][places]):
            if second == 0:
                continue
            audited = np.zeros(10, dtype=bool)
            audited[places[taken]] = True
            items = sampled(drawn, audited, gold, **world)
            yield items, one_step(measure, items, ranks, fewest=fewest), first * second


def moments(name, world, gold):
    """Return the chances, and [outcome, target] of values, variances without b^2, and b, with the last items."""
    rows = list(outcomes(name, world, gold))
    chance = np.array([one for *_, one in rows])
    assert chance.sum() == pytest.approx(1, **exactly)
    value = np.array([found.estimates.value for _, found, _ in rows])
    parts = [found.estimates.components for _, found, _ in rows]
    variance = np.array([one["drawing"] + one["gold"] for one in parts])
    return chance, value, variance, np.array([found.second_order for _, found, _ in rows]), rows[-1][0]


def with_pairs(values):
    return np.append(values, [values[0] - values[1], values[0] - values[2], values[1] - values[2]])


def linear_value(name, gold, items):
    """Return q(p) and its linear part at the true labels, of runs and pairs."""
    p, steps = items.prediction, items.steps
    at = derivative(measure_of(name), from_dense(MANY_RANKS), TOPIC, 3, p, steps)
    return with_pairs(at.value.mean(axis=1) + (at.phi(TOPIC, steps) * (gold - p)).sum(axis=(1, 2)))


def test_for_fixed_predictions_the_linear_part_is_unbiased_over_all_draws_and_audits():
    world, gold = graded_world()
    chance, value, _, bend, items = moments("nDCG@3", world, gold)
    assert chance @ value == pytest.approx(linear_value("nDCG@3", gold, items), **exactly)
    at = derivative(measure_of("nDCG@3"), from_dense(MANY_RANKS), TOPIC, 3, items.prediction, STEPS)
    assert chance @ bend == pytest.approx(second_order_of(gold - items.prediction, at), **exactly)


def test_of_a_whole_pool_the_variance_is_unbiased_over_all_audits():
    world, gold = graded_world(n_certain=10)
    world["chance"][4:8] = 1.0
    chance, value, variance, *_ = moments("nDCG@3", world, gold)
    assert chance @ variance == pytest.approx(chance @ (value - chance @ value) ** 2, **exactly)


@pytest.mark.parametrize("name", ["AP@4", "R@2"])
def test_binary_measures_are_unbiased_too_and_what_bends_in_them(name):
    world, gold = graded_world(n_certain=7, seed=8)
    one = world | {"before": GRADED[:1], "after": world["after"][:1], "steps": np.ones(1)}
    chance, value, _, bend, items = moments(name, one, gold[:1])
    assert chance @ value == pytest.approx(linear_value(name, gold[:1], items), **exactly)
    # the second derivative along the error, by differences: these denominators bend at no whole number here
    error, step = gold[:1] - items.prediction, 1e-3
    around = [value_of(name, items.prediction + t * error, np.ones(1)) for t in (-step, 0.0, step)]
    second = (around[0] - 2 * around[1] + around[2]) / step**2 / 2
    assert chance @ bend == pytest.approx(with_pairs(second), abs=1e-5)


def test_a_wrong_chance_is_noticed():
    """The positive control: audits that happen half as often as recorded leave the linear part biased."""
    world, gold = graded_world(n_certain=10)
    world["chance"][4:] = 1e-9
    total = np.zeros(6)
    for taken, chance in poisson_samples(world["chance"] / 2):
        if chance < 1e-6:
            continue
        items = sampled(np.ones(10, bool), taken, gold, **world)
        total += (
            chance * one_step(measure_of("nDCG@3"), items, from_dense(MANY_RANKS), fewest=0).estimates.value
        )
    assert np.abs(total - linear_value("nDCG@3", gold, items)).max() > 0.01


@pytest.mark.parametrize("name", ["nDCG@3", "AP@4", "R@2"])
def test_with_one_stair_it_is_the_two_phase_estimate_with_phi_for_the_weights(name):
    rng = np.random.default_rng(2)
    world, gold = graded_world()
    one = world | {"before": GRADED[:1], "after": world["after"][:1], "steps": np.ones(1)}
    drawn = rng.random(10) < 0.8
    drawn[:4] = True
    items = sampled(drawn, rng.random(10) < 0.6, gold[:1], **one)
    found = one_step(measure_of(name), items, from_dense(MANY_RANKS), fewest=0)
    p = items.prediction
    at = derivative(measure_of(name), from_dense(MANY_RANKS), TOPIC, 3, p, np.ones(1))
    phi = np.apply_along_axis(with_pairs, 0, at.phi(TOPIC, np.ones(1))[:, 0])
    start = with_pairs(at.value.mean(axis=1)) - phi @ p[0]
    places = items.frame.judged
    plain = two_phase(
        phi[:, places],
        draw_probability=items.frame.draw_probability,
        audited=items.audited,
        gold=items.gold[0],
        audit_probability=items.audit_probability,
        before=p[0, places],
        after=items.after[0],
        spread=items.after[0] * (1 - items.after[0]),
        before_total=start + phi @ p[0],
        fewest=0,
    ).estimates
    mine = found.estimates
    assert mine.value == pytest.approx(plain.value, **exactly)
    assert mine.degrees_of_freedom == pytest.approx(plain.degrees_of_freedom, rel=1e-10)
    assert mine.components["second order"] == pytest.approx(found.second_order**2, **exactly)
    assert mine.standard_error**2 == pytest.approx(plain.standard_error**2 + found.second_order**2, **exactly)
    assert mine.n.tolist() == plain.n.tolist()


def second_order_of(error, at):
    """Return the second-order Taylor term of nDCG at the true labels, of runs and pairs."""
    d_n, d_z = np.zeros((3, 3)), np.zeros(3)
    for run, item, alpha in zip(at.run, at.item, at.numerator_slope, strict=True):
        d_n[run, TOPIC[item]] += alpha * (STEPS @ error[:, item])
    for item in range(10):
        d_z[TOPIC[item]] += at.slope[:, TOPIC[item]] @ error[:, item]
    z = at.denominator
    b = (-d_n * d_z / z**2 + at.value * d_z**2 / z**2).mean(axis=1)
    return with_pairs(b)


def test_stairs_of_an_item_are_one_quantity_with_the_variance_of_nested_stairs():
    """Beside `two_phase` of weight 1 on the items' sums over stairs; their variance over the levels, one by one."""
    rng = np.random.default_rng(6)
    world, gold = graded_world()
    drawn = rng.random(10) < 0.8
    drawn[:4] = True
    items = sampled(drawn, rng.random(10) < 0.6, gold, **world)
    found = one_step(measure_of("nDCG@3"), items, from_dense(MANY_RANKS), fewest=0).estimates
    p, places = items.prediction, items.frame.judged
    at = derivative(measure_of("nDCG@3"), from_dense(MANY_RANKS), TOPIC, 3, p, STEPS)
    phi = np.apply_along_axis(with_pairs, 0, at.phi(TOPIC, STEPS))
    start = with_pairs(at.value.mean(axis=1))
    for target, own in enumerate(phi[:, :, places]):
        low, high = items.after[0], items.after[1]
        chances = np.stack([1 - low, low - high, high])  # of reaching no stair, the first alone, both
        values = np.stack([np.zeros(low.size), own[0], own[0] + own[1]])
        spread = (chances * values**2).sum(axis=0) - (chances * values).sum(axis=0) ** 2
        before = (own * p[:, places]).sum(axis=0)
        plain = two_phase(
            np.ones((1, places.size)),
            draw_probability=items.frame.draw_probability,
            audited=items.audited,
            gold=(own * items.gold).sum(axis=0),
            audit_probability=items.audit_probability,
            before=before,
            after=(own * items.after).sum(axis=0),
            spread=spread,
            before_total=[start[target]],
            fewest=0,
        ).estimates
        assert found.value[target] == pytest.approx(plain.value[0], **exactly)
        assert found.components["drawing"][target] == pytest.approx(plain.components["drawing"][0], **exactly)
        assert found.components["gold"][target] == pytest.approx(plain.components["gold"][0], **exactly)
        assert found.degrees_of_freedom[target] == pytest.approx(plain.degrees_of_freedom[0], rel=1e-9)


def test_targets_in_small_parts_are_the_same(monkeypatch):
    world, gold = graded_world()
    items = sampled(np.ones(10, bool), np.arange(10) % 2 == 0, gold, **world)
    whole = one_step(measure_of("nDCG@3"), items, from_dense(MANY_RANKS), fewest=0)
    monkeypatch.setattr("analytics.estimation.one_step.CHUNK_NUMBERS", 1)
    parts = one_step(measure_of("nDCG@3"), items, from_dense(MANY_RANKS), fewest=0)
    assert parts.estimates.value.tolist() == whole.estimates.value.tolist()
    assert parts.estimates.standard_error.tolist() == whole.estimates.standard_error.tolist()
    assert parts.second_order.tolist() == whole.second_order.tolist()
