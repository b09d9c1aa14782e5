"""Judging one at a time where it tells most: what is chosen, when it stops, and what the model then says."""

import numpy as np
import pytest

from sampling.minimal import ModelTopic, StoppingRule, expected_sums, precision_difference
from sampling.minimal_collection import (
    AVERAGE_PRECISION,
    CUMULATED_GAIN,
    collect,
    neighbours,
    total_difference,
)

NONE = np.inf
BOTH = [AVERAGE_PRECISION, CUMULATED_GAIN]


def made_topics(
    seed: int, n_topics: int = 6, n_runs: int = 2, n: int = 30, share: float = 0.3, noise: float = 1.0
) -> tuple[list[ModelTopic], list[np.ndarray]]:
    """Return topics and their truth: each run finds relevant documents better than the next one."""
    rng = np.random.default_rng(seed)
    topics, labels = [], []
    for _ in range(n_topics):
        truth = (rng.random(n) < share).astype(int)
        skill = np.linspace(1.5, 0.3, n_runs)[:, np.newaxis]
        score = skill * truth + noise * rng.standard_normal((n_runs, n))
        ranks = (-score).argsort(axis=1).argsort(axis=1) + 1.0
        ranks[ranks > 0.8 * n] = NONE
        topics.append(ModelTopic.of(ranks, np.full(n, share)))
        labels.append(truth)
    return topics, labels


def places_at_random(topics: list[ModelTopic], seed: int) -> list[tuple[int, int]]:
    places = [(t, d) for t, topic in enumerate(topics) for d in range(topic.is_judged.size)]
    return [places[k] for k in np.random.default_rng(seed).permutation(len(places))]


# ---- several topics ---------------------------------------------------------------------------------------------


def test_topics_are_divided_by_their_expected_number_of_relevant_documents():
    topics, labels = made_topics(6)
    topics[1] = topics[1].with_judgment(3, bool(labels[1][3]))
    parts = [(precision_difference(topic), topic.probability.sum()) for topic in topics]
    total = total_difference(topics)
    assert total.expected == pytest.approx(sum(part.expected / r for part, r in parts), abs=1e-14)
    assert total.variance == pytest.approx(sum(part.variance / r**2 for part, r in parts), rel=1e-14)


def test_gains_are_added_undivided():
    topics, _ = made_topics(6)
    one = CUMULATED_GAIN.difference(topics[0], 0, 1)
    assert total_difference([topics[0]] * 3, measure="DCG").expected == pytest.approx(3 * one.expected)


def test_a_topic_in_which_nothing_can_be_relevant_counts_nothing():
    topic = ModelTopic.of([[1, 2], [2, 1]], [0.0, 0.0])
    difference = total_difference([topic])
    assert (difference.expected, difference.variance) == (0, 0)


def test_neighbours_are_in_the_order_of_the_scores_and_equals_in_their_own():
    assert neighbours(np.array([0.2, 0.5, 0.3])) == [(1, 2), (2, 0)]
    assert neighbours(np.array([0.2, 0.2, 0.3])) == [(2, 0), (0, 1)]


# ---- judging ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", BOTH, ids=lambda one: one.key)
def test_every_choice_is_the_largest_spread_of_what_is_left(objective):
    topics, labels = made_topics(3, n_topics=3, n_runs=4, n=9)
    made = collect(topics, labels, None, measure=objective.key)
    assert sorted(made.places) == [(t, d) for t in range(3) for d in range(9)]
    for index, document in made.places:
        values = [
            np.where(topic.is_judged, -1, objective.spread(topic)).max() for topic in topics
        ]  # -1: judged
        assert objective.spread(topics[index])[document] == pytest.approx(max(values), abs=1e-15)
        topics[index] = topics[index].with_judgment(document, bool(labels[index][document]))


@pytest.mark.parametrize("objective", BOTH, ids=lambda one: one.key)
def test_what_is_reported_is_what_the_judged_topics_give(objective):
    topics, labels = made_topics(5, n_runs=5)
    made = collect(topics, labels, None, limit=7, measure=objective.key)
    assert not made.has_signs
    for pair, difference in zip(made.pairs, made.differences, strict=True):
        again = total_difference(made.topics, *pair, objective.key)
        assert difference.expected == pytest.approx(again.expected, abs=1e-14)
        assert difference.variance == pytest.approx(again.variance, rel=1e-12)
        assert difference.expected >= 0
        assert made.scores[pair[0]] - made.scores[pair[1]] == pytest.approx(difference.expected / len(topics))


def test_a_limit_holds_in_every_topic():
    topics, labels = made_topics(5, n=12)
    made = collect(topics, labels, None, limit=5)
    assert [int(topic.is_judged.sum()) for topic in made.topics] == [5] * 6
    assert [topic.is_judged.any() for topic in topics] == [False] * 6, (
        "the topics given are left as they were"
    )
    made = collect(topics, labels, None, limit=100)
    assert len(made.places) == 6 * 12
    assert collect(topics, labels, None, limit=0).places == ()


def test_everything_judged_gives_map_and_no_variance():
    topics, labels = made_topics(2, n_runs=3)
    made = collect(topics, labels, None)
    expected = [expected_sums(t) / max(1, y.sum()) for t, y in zip(made.topics, labels, strict=True)]
    assert made.scores == pytest.approx(np.mean(expected, axis=0))
    assert [one.variance for one in made.differences] == pytest.approx([0, 0])


def test_judging_stops_at_the_level_and_not_one_judgment_later():
    topics, labels = made_topics(1, n_topics=10)
    rule = StoppingRule(n_first=0)
    made = collect(topics, labels, rule)
    assert made.has_signs
    assert made.differences[0].sign_probability >= rule.level
    for index, document in made.places:
        assert total_difference(topics).sign_probability < rule.level
        topics[index] = topics[index].with_judgment(document, bool(labels[index][document]))
    assert total_difference(topics).sign_probability >= rule.level


def test_the_first_look_comes_after_thirty_judgments():
    topics, labels = made_topics(7, n_topics=10)
    assert len(collect(topics, labels, StoppingRule(level=0.7, n_first=0)).places) < 30
    assert len(collect(topics, labels, StoppingRule(level=0.7)).places) == 30


def test_judging_in_a_given_order():
    topics, labels = made_topics(4)
    sequence = places_at_random(topics, 1)
    made = collect(topics, labels, StoppingRule(), sequence=sequence)
    assert made.places == tuple(sequence[: len(made.places)])
    short = collect(topics, labels, StoppingRule(level=0.999999), sequence=sequence[:3])
    assert (len(short.places), short.has_signs) == (3, False)


def test_what_tells_most_needs_at_most_eight_tenths_of_random_order():
    chosen, random = [], []
    for seed in range(12):
        topics, labels = made_topics(seed, n_topics=10, n=40)
        chosen.append(len(collect(topics, labels, StoppingRule(n_first=0)).places))
        sequence = places_at_random(topics, seed)
        random.append(len(collect(topics, labels, StoppingRule(n_first=0), sequence=sequence).places))
    assert sum(chosen) <= 0.8 * sum(random)


def test_dcg_stops_when_its_sign_is_certain_whatever_the_rule_asks():
    topics, labels = made_topics(3, n_topics=1, noise=0.1)
    made = collect(topics, labels, StoppingRule(level=0.9999999999, n_first=1000), measure="DCG")
    assert made.has_signs
    assert len(made.places) < 30
    assert CUMULATED_GAIN.sign(made.topics, *made.pairs[0]) == 1
    less = list(topics)
    for index, document in made.places[:-1]:
        less[index] = less[index].with_judgment(document, bool(labels[index][document]))
    assert CUMULATED_GAIN.sign(less, *made.pairs[0]) == 0


def test_identical_runs_are_judged_to_the_end():
    topics, labels = made_topics(1, n_topics=2, n=8)
    same = [ModelTopic.of(topic.ranks[[0, 0]], topic.probability) for topic in topics]
    for objective in BOTH:
        made = collect(same, labels, StoppingRule(), measure=objective.key)
        assert (len(made.places), made.has_signs) == (16, False)
        assert made.differences[0].sign_probability == 0.5


def test_a_measure_without_a_model_is_refused():
    topics, labels = made_topics(1, n_topics=1)
    for call in (
        lambda: collect(topics, labels, None, measure="P"),
        lambda: total_difference(topics, measure="P"),
    ):
        with pytest.raises(ValueError, match=r"one of .*'AP', 'DCG'.*, got 'P'"):
            call()


# ---- bad input ----------------------------------------------------------------------------------------------------


def test_labels_must_fit_the_topics():
    topics, labels = made_topics(1, n_topics=2)
    for wrong, words in (
        (labels[:1], "of 2 topics"),
        ([labels[0], labels[1][:-1]], "30 times 0 or 1"),
        ([labels[0], labels[1] + 1], "30 times 0 or 1"),
    ):
        with pytest.raises(ValueError, match=words):
            collect(topics, wrong, StoppingRule())
    with pytest.raises(ValueError, match="at least 1"):
        collect([], [], StoppingRule())


def test_every_topic_has_the_same_runs():
    topics, labels = made_topics(1, n_topics=1)
    more, others = made_topics(1, n_topics=1, n_runs=3)
    with pytest.raises(ValueError, match="same runs"):
        collect([*topics, *more], [*labels, *others], StoppingRule())


def test_a_sequence_that_names_a_document_twice_is_refused():
    topics, labels = made_topics(1, n_topics=1)
    with pytest.raises(ValueError, match="judged yet, got 3"):
        collect(topics, labels, None, sequence=[(0, 3), (0, 3)])
