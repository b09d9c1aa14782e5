"""Pools of topics from the entries of a table, and the prior of designs from the consensus of the runs."""

import numpy as np
import pytest

from sampling.expert_pools import prior_of_experts, topic_pools
from sampling.experts import Preferences, consensus
from sampling.measures.sparse import from_dense

TOPIC = np.array([0, 1, 0, 1, 2, 0])
RANKS = np.array([[1, 2, 2, 1, 0, 0], [2, 0, 1, 1, 0, 3]])


def test_every_topic_has_its_documents_and_one_that_no_run_returns_is_left_out():
    found = list(topic_pools(from_dense(RANKS), TOPIC))
    assert [places.tolist() for _, places in found] == [[0, 2, 5], [1, 3]]
    assert found[0][0].ranks.tolist() == [[1, 2, np.inf], [2, 1, 3]]
    assert found[1][0].ranks.tolist() == [[2, 1], [np.inf, 1]]


def test_the_prior_has_the_order_of_the_consensus_and_the_mean_of_the_other():
    prior = np.array([0.1, 0.2, 0.1, 0.4, 0.3, 0.1])
    made = prior_of_experts(from_dense(RANKS), TOPIC, prior)
    assert made[[0, 2, 5]].mean() == pytest.approx(0.1)
    assert made[[1, 3]].mean() == pytest.approx(0.3)
    assert made[4] == 0.3
    assert np.all((made > 0) & (made < 1))
    for pool, places in topic_pools(from_dense(RANKS), TOPIC):
        theta = consensus(Preferences.of(pool)).theta
        assert np.array_equal(np.argsort(made[places]), np.argsort(theta))


def test_a_topic_of_too_many_documents_is_refused():
    with pytest.raises(ValueError, match=r"at most 2 pooled documents .* got 3"):
        list(topic_pools(from_dense(RANKS), TOPIC, largest=2))
