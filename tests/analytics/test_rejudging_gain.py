"""What judging again would gain: simulated votes, policies, and Kendall's tau with the true ranking."""

import numpy as np
import pytest
from sampled_topics import make_topics

from analytics.planning.rejudging_gain import VoteErrors, rejudging_gains
from sampling.rejudging import SampledTopic
from sampling.rejudging_policies import rejudging_policy_keys


def gains(votes, most, seed=1, topics=None, n_trials=12):
    topics = make_topics() if topics is None else topics
    rng = np.random.default_rng(seed)
    truth = np.concatenate([topic.is_relevant for topic in topics])
    prior = 0.3 + 0.3 * truth + 0.1 * rng.standard_normal(truth.size)
    return rejudging_gains(topics, prior, votes, rng, most=most, n_trials=n_trials)


def test_votes_without_errors_are_right_before_and_after():
    found = gains(VoteErrors(1, 0.0, 0.0), most=20, n_trials=2)
    assert (found.tau, found.n_wrong) == (pytest.approx(1.0), 0.0)
    by_policy = {one.policy: one for one in found.policies}
    assert list(by_policy) == rejudging_policy_keys()
    assert by_policy["random"].n_judgments == 20
    assert [one.tau for one in found.policies] == pytest.approx([1.0] * 3)


def test_wrong_labels_are_as_many_as_the_error_rates_say():
    n = 40 * 40
    found = gains(VoteErrors(3, 0.2, 0.2), most=1)
    assert found.n_wrong == pytest.approx(0.104 * n, rel=0.1)  # 2 of 3 at .2: .104


def test_a_third_vote_where_two_disagree_mends_more_than_one_at_random():
    # Of two votes relevant takes both: misses are frequent, and a third vote can mend them.
    found = gains(VoteErrors(2, 0.1, 0.25), most=200)
    by_policy = {one.policy: one for one in found.policies}
    mended = {key: found.n_wrong - one.n_wrong for key, one in by_policy.items()}
    assert mended["influence"] > 2 * mended["random"]
    assert by_policy["influence"].tau > found.tau


def test_no_policy_asks_for_more_than_was_offered():
    found = gains(VoteErrors(1, 0.2, 0.2), most=7, n_trials=3)
    assert max(one.n_judgments for one in found.policies) == 7


@pytest.mark.parametrize(
    ("topics", "words"),
    [
        ([], "topics must be at least 1, got 0"),
        ([SampledTopic.of([[1, 2]], [0, 1], [1, 1])], "at least 3, got 1"),
        ([SampledTopic.of([[1, 2]] * 3, [0, 0], [1, 1])], r"must differ in score, got 0\.0"),
    ],
)
def test_without_a_ranking_nothing_is_simulated(topics, words):
    prior = np.zeros(sum(topic.is_relevant.size for topic in topics))
    with pytest.raises(ValueError, match=words):
        rejudging_gains(topics, prior, VoteErrors(1, 0.1, 0.1), np.random.default_rng(1), most=1)
