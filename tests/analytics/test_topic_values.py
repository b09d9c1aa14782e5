"""The values of topics: their means are the numbers, whatever the kind of measure, and differences are of two runs."""

import numpy as np
import pytest
from one_step_samples import MANY_RANKS, graded_world, measure_of
from one_step_samples import sampled as one_step_sample
from ratio_samples import sampled

from analytics.estimation.one_step import one_step
from analytics.estimation.pseudolabels import census
from analytics.estimation.ratios import ratio_answer
from sampling.measures.registry import parse_ratio
from sampling.measures.sparse import from_dense


@pytest.mark.parametrize("name", ["nDCG@20", "AP", "micro nDCG@20", "micro AP"])
def test_ratios_by_topic_have_the_ratio_without_its_bias_as_their_mean(name):
    ranks, labels, _ = sampled(np.random.default_rng(22), 12, 60, 0.6, relevant=0.2)
    found = ratio_answer(parse_ratio(name), labels, ranks, seed=7, replicates=200)
    values = [one.value for one in found.results]
    assert found.topic_values.shape == (2, 12)
    assert found.topic_values.mean(axis=1) == pytest.approx(values[:2], abs=1e-12)
    apart = found.topic_values[0] - found.topic_values[1]
    assert apart.mean() == pytest.approx(values[2], abs=1e-12)
    assert apart.std() > 0


def test_a_ratio_of_sums_is_spread_by_numerators_and_denominators_of_topics():
    ranks = np.array([[1, 2, 3, 1, 2, 1, 2]])
    topic, grade = [0, 0, 0, 1, 1, 2, 2], [1, 0, 1, 0, 1, 0, 0]
    labels = census(topic_index=topic, n_topics=3, grades=grade, gains=[0, 1])
    found = ratio_answer(parse_ratio("micro AP"), labels, ranks, seed=1)
    # N = 1 + 2/3, 1/2, 0 of D = 2, 1, 0, whose sum is 3
    ratio = (1 + 2 / 3 + 1 / 2) / 3
    expected = [ratio + (1 + 2 / 3 - 2 * ratio), ratio + (1 / 2 - ratio), ratio]
    assert found.topic_values[0] == pytest.approx(expected, abs=1e-12)
    alone = ratio_answer(parse_ratio("AP"), labels, ranks, seed=1)
    assert alone.topic_values[0] == pytest.approx([(1 + 2 / 3) / 2, 1 / 2, 0], abs=1e-12)


def test_where_too_little_is_known_there_are_no_values_of_topics():
    ranks, labels, _ = sampled(np.random.default_rng(3), 12, 60, 0.05, relevant=0.2)
    assert ratio_answer(parse_ratio("nDCG@20"), labels, ranks, seed=7).topic_values is None
    assert ratio_answer(parse_ratio("micro nDCG@20"), labels, ranks, seed=7).topic_values is None


def test_one_step_by_topic_has_its_numbers_as_means():
    world, gold = graded_world()
    rng = np.random.default_rng(2)
    drawn = rng.random(10) < world["pi"]
    audited = drawn & (rng.random(10) < world["chance"])
    items = one_step_sample(drawn, audited, gold, **world)
    found = one_step(measure_of("nDCG@3"), items, from_dense(MANY_RANKS), fewest=0)
    values = found.estimates.value
    assert found.topic_values.shape == (3, 3)
    assert found.topic_values.mean(axis=1) == pytest.approx(values[:3], abs=1e-12)
    for pair, (a, b) in enumerate(((0, 1), (0, 2), (1, 2))):
        apart = found.topic_values[a] - found.topic_values[b]
        assert apart.mean() == pytest.approx(values[3 + pair], abs=1e-12)
