"""Minimal test collections: fixtures of an independent implementation, and every number beside enumeration."""

from itertools import combinations, product

import numpy as np
import pytest

from sampling.minimal import (
    Difference,
    ModelTopic,
    StoppingRule,
    certain_sign,
    discount_contrast,
    expected_sums,
    gain_difference,
    next_document,
    pair_spread,
    precision_difference,
    precision_weights,
    shift_to_prevalence,
)
from sampling.minimal_collection import AVERAGE_PRECISION, CUMULATED_GAIN, total_difference

SIX_DIGITS = 1e-6
NONE = np.inf
TWO_RUNS = [[1, 2, 3, 4, 5], [3, 1, 2, 5, 4]]
THIRD_RUN = [1, NONE, 2, 3, NONE]
CHANCES = [0.5, 0.2, 0.4, 0.3, 0.6]


def fixture() -> ModelTopic:
    return ModelTopic.of(TWO_RUNS, [0.5] * 5)


def random_topic(rng: np.random.Generator, n_runs: int = 2, n: int = 7) -> ModelTopic:
    """Return runs that return different documents, and probabilities of which some are 0 or 1."""
    ranks = np.array([rng.permutation(n) + 1.0 for _ in range(n_runs)])
    ranks[rng.random(ranks.shape) < 0.3] = NONE
    chances = rng.random(n)
    chances[0] = rng.integers(0, 2)
    return ModelTopic.of(ranks, chances)


def precision_sum(ranks: np.ndarray, labels: np.ndarray) -> float:
    """Return AP times R of one run, from the definition: the sum of the precision at each relevant document."""
    return sum(
        labels[ranks <= rank].sum() / rank for rank in ranks[(labels == 1) & np.isfinite(ranks)].tolist()
    )


def gain_sum(ranks: np.ndarray, labels: np.ndarray) -> float:
    return float((labels / np.log2(1 + ranks)).sum())


def enumerated(topic: ModelTopic, score, first: int = 0, second: int = 1) -> Difference:
    """Return mean and variance of the difference over every possible truth."""
    mean = square = 0.0
    for truth in product((0, 1), repeat=topic.probability.size):
        labels = np.array(truth)
        chance = np.where(labels == 1, topic.probability, 1 - topic.probability).prod()
        value = score(topic.ranks[first], labels) - score(topic.ranks[second], labels)
        mean, square = mean + chance * value, square + chance * value**2
    return Difference(mean, square - mean**2)


# ---- fixtures -------------------------------------------------------------------------------------------------


def test_a_pair_before_and_after_its_first_judgment():
    topic = fixture()
    before = precision_difference(topic)
    assert (before.expected, before.variance) == pytest.approx((0, 0.230972), abs=SIX_DIGITS)
    first, second = precision_weights(topic)
    assert first - second == pytest.approx([0.75, -0.5, -0.25, 0.125, -0.125], abs=SIX_DIGITS)
    assert next_document([AVERAGE_PRECISION.spread(topic)], [topic.is_judged]) == (0, 0)

    topic = topic.with_judgment(0, True)
    after = precision_difference(topic)
    assert (after.expected, after.variance) == pytest.approx((0.375, 0.072639), abs=SIX_DIGITS)
    assert after.worse_probability == pytest.approx(0.082055, abs=SIX_DIGITS)
    assert after.sign_probability == pytest.approx(1 - 0.082055, abs=SIX_DIGITS)
    first, second = precision_weights(topic)
    assert first - second == pytest.approx([0.75, -0.416667, -0.25, 0.15, -0.15], abs=SIX_DIGITS)
    assert next_document([AVERAGE_PRECISION.spread(topic)], [topic.is_judged]) == (0, 1)


def test_gains_of_the_pair():
    topic = fixture()
    assert discount_contrast(topic) == pytest.approx(
        [0.5, -0.369070, -0.130930, 0.043824, -0.043824], abs=SIX_DIGITS
    )
    difference = gain_difference(topic)
    assert (difference.expected, difference.variance) == pytest.approx((0, 0.101799), abs=SIX_DIGITS)
    assert next_document([CUMULATED_GAIN.spread(topic)], [topic.is_judged]) == (0, 0)


def test_weights_of_a_run_that_does_not_return_everything():
    topic = ModelTopic.of([*TWO_RUNS, THIRD_RUN], CHANCES)
    weights = precision_weights(topic)
    assert weights[2] == pytest.approx([1.3, 0, 0.85, 0.633333, 0], abs=SIX_DIGITS)
    assert pair_spread(weights) == pytest.approx([1.37, 3.153333, 0.43, 0.21, 1.17], abs=SIX_DIGITS)
    assert AVERAGE_PRECISION.spread(topic) == pytest.approx(pair_spread(weights) / 2, rel=1e-15)


def test_the_normal_approximation_shares_out_the_ties():
    topic = fixture()
    differences = [
        precision_sum(topic.ranks[0], np.array(truth)) - precision_sum(topic.ranks[1], np.array(truth))
        for truth in product((0, 1), repeat=5)
    ]
    assert np.mean(np.array(differences) < -1e-12) == 0.4375
    assert np.mean(np.abs(differences) < 1e-12) == 0.125
    assert precision_difference(topic).worse_probability == pytest.approx(0.4375 + 0.125 / 2)


# ---- beside enumeration ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "seeds"), [(1, 3), (2, 5), (5, 8), (7, 6), (10, 1)])
def test_expectation_and_variance_are_those_of_every_possible_truth(n, seeds):
    for seed in range(seeds):
        topic = random_topic(np.random.default_rng(seed), n=n)
        for compute, score in ((precision_difference, precision_sum), (gain_difference, gain_sum)):
            exact, computed = enumerated(topic, score), compute(topic)
            assert computed.expected == pytest.approx(exact.expected, abs=1e-12)
            assert computed.variance == pytest.approx(exact.variance, abs=1e-12)


def test_a_weight_is_what_a_relevant_document_adds_to_the_expectation():
    rng = np.random.default_rng(8)
    topic = random_topic(rng, n_runs=4, n=9)
    weights = precision_weights(topic)
    for document in range(9):
        relevant, other = (topic.with_judgment(document, label) for label in (True, False))
        assert weights[:, document] == pytest.approx(
            expected_sums(relevant) - expected_sums(other), abs=1e-12
        )


def test_blocks_give_the_variance_of_the_whole(monkeypatch):
    topic = random_topic(np.random.default_rng(5), n=40)
    whole = precision_difference(topic)
    monkeypatch.setattr("sampling.minimal.BLOCK_SIZE", 90)
    assert precision_difference(topic).variance == pytest.approx(whole.variance, rel=1e-12)


def test_the_spread_is_the_sum_over_all_pairs_of_runs():
    values = np.random.default_rng(2).random((6, 11))
    pairs = sum(np.abs(values[a] - values[b]) for a, b in combinations(range(6), 2))
    assert pair_spread(values) == pytest.approx(pairs, rel=1e-12)


def test_everything_judged_gives_average_precision_itself():
    rng = np.random.default_rng(4)
    topic = random_topic(rng, n=8)
    labels = rng.integers(0, 2, 8)
    for document, label in enumerate(labels.tolist()):
        topic = topic.with_judgment(document, bool(label))
    difference = total_difference([topic])
    first, second = (precision_sum(ranks, labels) / max(1, labels.sum()) for ranks in topic.ranks)
    assert difference.expected == pytest.approx(first - second, abs=1e-12)
    assert difference.variance == 0
    assert next_document([AVERAGE_PRECISION.spread(topic)], [topic.is_judged]) is None


# ---- several topics and runs ----------------------------------------------------------------------------------


def test_topics_are_divided_by_their_expected_number_of_relevant_documents():
    rng = np.random.default_rng(6)
    topics = [random_topic(rng), random_topic(rng, n=5)]
    parts = [precision_difference(topic) for topic in topics]
    shares = [topic.probability.sum() for topic in topics]
    total = total_difference(topics)
    assert total.expected == pytest.approx(sum(p.expected / r for p, r in zip(parts, shares, strict=True)))
    assert total.variance == pytest.approx(sum(p.variance / r**2 for p, r in zip(parts, shares, strict=True)))


def test_the_next_document_is_sought_in_all_topics_and_the_first_of_equals_is_taken():
    spread = [np.array([0.1, 0.3]), np.array([0.3, 0.5, 0.5])]
    nothing = [np.zeros(2, dtype=bool), np.zeros(3, dtype=bool)]
    assert next_document(spread, nothing) == (1, 1)
    assert next_document(spread, [nothing[0], np.array([False, True, True])]) == (0, 1)
    assert next_document(spread, [np.ones(2, dtype=bool), np.array([True, True, False])]) == (1, 2)
    zeros = [np.zeros(2), np.zeros(3)]
    assert next_document(zeros, nothing) == (0, 0), "identical runs still have a next document"


# ---- the certain end for DCG ------------------------------------------------------------------------------------


def test_the_sign_of_dcg_is_certain_when_nothing_left_can_turn_it():
    topic = fixture()
    assert certain_sign([topic]) == 0
    topic = topic.with_judgment(0, True)
    assert certain_sign([topic]) == 0, "0.5 may still become 0.5 - 0.369070 - 0.130930 - 0.043824"
    topic = topic.with_judgment(1, False)
    assert certain_sign([topic]) == 1, "0.5 is above 0.130930 + 0.043824"
    assert certain_sign([topic], 1, 0) == -1


def test_the_certain_sign_is_that_of_every_completion():
    rng = np.random.default_rng(12)
    seen = set()
    for _ in range(60):
        topic = random_topic(rng, n=6)
        for document in rng.permutation(6)[: rng.integers(0, 7)].tolist():
            topic = topic.with_judgment(document, bool(rng.integers(0, 2)))
        values = []
        for rest in product((0, 1), repeat=int((~topic.is_judged).sum())):
            labels = topic.probability.copy()
            labels[~topic.is_judged] = rest
            values.append(gain_sum(topic.ranks[0], labels) - gain_sum(topic.ranks[1], labels))
        sure = 1 if min(values) > 1e-12 else -1 if max(values) < -1e-12 else 0
        if min(abs(min(values)), abs(max(values))) > 1e-12:
            assert certain_sign([topic]) == sure
            seen.add(sure)
    assert seen == {-1, 0, 1}


def test_two_topics_are_certain_together_when_one_outweighs_the_other():
    first = fixture().with_judgment(0, True).with_judgment(1, False).with_judgment(2, False)
    other = ModelTopic.of([[2, 3], [3, 2]], [0.5, 0.5])
    assert certain_sign([other]) == 0
    assert certain_sign([first, other]) == 1


# ---- the rule ---------------------------------------------------------------------------------------------------


def test_nobody_looks_before_thirty_judgments():
    rule = StoppingRule()
    sure = Difference(1.0, 1e-9)
    assert not rule.is_reached([sure], 29)
    assert rule.is_reached([sure], 30)
    assert not rule.is_reached([sure, Difference(0.0, 1.0)], 30), "every pair must have a sign"
    assert StoppingRule(n_first=0).is_reached([sure], 0)


def test_the_level_itself_is_enough_and_equals_have_no_sign():
    at_level = Difference(1.6448536269514729, 1.0)
    assert at_level.sign_probability == pytest.approx(0.95, abs=1e-12)
    assert StoppingRule(level=0.9499999).is_reached([at_level], 30)
    assert Difference(0.0, 0.0).worse_probability == 0.5
    assert Difference(0.2, 0.0).worse_probability == 0
    assert Difference(-0.2, 0.0).worse_probability == 1


def test_as_printed_the_run_that_returns_more_wins_before_anything_is_judged():
    longer, shorter = np.arange(1, 101.0), np.where(np.arange(100) < 60, np.arange(1, 101.0), NONE)
    topics = [ModelTopic.of([longer, shorter], np.full(100, 0.5)) for _ in range(30)]
    assert StoppingRule(n_first=0).is_reached([total_difference(topics)], 0)
    assert not StoppingRule().is_reached([total_difference(topics)], 0)


@pytest.mark.parametrize("prevalence", [0.001, 0.05, 0.5, 0.93])
def test_a_shift_moves_the_log_odds_by_a_constant(prevalence):
    chances = np.random.default_rng(1).random(50)
    shifted = shift_to_prevalence(chances, prevalence)
    assert shifted.mean() == pytest.approx(prevalence, abs=1e-12)
    steps = np.log(shifted / (1 - shifted)) - np.log(chances / (1 - chances))
    assert steps == pytest.approx(steps[0], abs=1e-9)


def test_certain_documents_stay_certain():
    shifted = shift_to_prevalence([0.0, 1.0, 0.5, 0.7, *[0.2] * 36], 0.05)
    assert (shifted[0], shifted[1]) == (0, 1)
    assert shifted.mean() == pytest.approx(0.05, abs=1e-12)


def test_extreme_probabilities_are_shifted_without_nan():
    shifted = shift_to_prevalence([1e-300, 1 - 1e-16, 0.5], 0.05)
    assert np.isfinite(shifted).all()
    assert shifted.mean() == pytest.approx(0.05, abs=1e-12)


# ---- bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranks", "chances", "words"),
    [
        ([[1, 2]], [0.5, 0.5], "at least 2 runs"),
        ([1, 2], [0.5, 0.5], "2 axes"),
        ([[1, 2], [0, 1]], [0.5, 0.5], "at least 1, got 0"),
        ([[1, 2], [np.nan, 1]], [0.5, 0.5], "at least 1, got nan"),
        ([[1, 2], [1, 1]], [0.5, 0.5], "got 1 twice"),
        ([[1, 2], [2, 1]], [0.5, 1.5], "within"),
        ([[1, 2], [2, 1]], [0.5, np.nan], "within"),
        ([[1, 2], [2, 1]], [0.5], "2 items"),
        (np.empty((2, 0)), [], "at least 1 item"),
    ],
)
def test_a_topic_that_cannot_be_is_refused(ranks, chances, words):
    with pytest.raises(ValueError, match=words):
        ModelTopic.of(ranks, chances)


def test_a_document_is_judged_once_and_only_in_the_pool():
    topic = fixture().with_judgment(2, False)
    with pytest.raises(ValueError, match="judged yet, got 2"):
        topic.with_judgment(2, True)
    for document in (5, -1):
        with pytest.raises(ValueError, match="below 5"):
            topic.with_judgment(document, True)


@pytest.mark.parametrize("chance", [0.0, 1.0])
def test_probabilities_that_leave_no_doubt_give_numbers(chance):
    topic = ModelTopic.of(TWO_RUNS, [chance] * 5)
    difference = total_difference([topic])
    assert difference.variance == 0
    assert difference.worse_probability == 0.5
    assert next_document([AVERAGE_PRECISION.spread(topic)], [topic.is_judged]) is not None
    with pytest.raises(ValueError, match=r"no shift gives a mean of .*: 5 are 0 or 1"):
        shift_to_prevalence([chance] * 5, 0.05)


def test_too_many_certain_documents_are_refused():
    with pytest.raises(ValueError, match="no shift"):
        shift_to_prevalence([1.0, 1.0, 0.5], 0.05)
    with pytest.raises(ValueError, match="no shift"):
        shift_to_prevalence([0.0, 0.0, 0.5], 0.5)


@pytest.mark.parametrize("prevalence", [0.0, 1.0, -0.1, np.nan])
def test_a_prevalence_is_within_0_and_1(prevalence):
    with pytest.raises(ValueError, match="prevalence must be within"):
        shift_to_prevalence([0.5, 0.5], prevalence)
    with pytest.raises(ValueError, match="prevalence must be within"):
        StoppingRule(prevalence=prevalence)


@pytest.mark.parametrize(("field", "value"), [("level", 0.5), ("level", 1.0), ("n_first", -1)])
def test_a_rule_that_never_or_always_stops_is_refused(field, value):
    with pytest.raises(ValueError, match=f"{field} must be"):
        StoppingRule(**{field: value})


def test_identical_runs_and_runs_that_return_nothing_never_have_a_sign():
    same = ModelTopic.of([TWO_RUNS[0], TWO_RUNS[0]], CHANCES)
    nothing = ModelTopic.of([[NONE] * 5, [NONE] * 5], CHANCES)
    for topic in (same, nothing):
        difference = total_difference([topic])
        assert (difference.expected, difference.variance) == (0, 0)
        assert not StoppingRule().is_reached([difference], 1000)
        assert certain_sign([topic]) == 0
        assert AVERAGE_PRECISION.spread(topic).tolist() == [0] * 5
