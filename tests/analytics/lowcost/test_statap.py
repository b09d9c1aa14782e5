"""statAP beside fixtures of an independent implementation, the product's AP without predictions, and trec_eval."""

import numpy as np
import pytest
import pytrec_eval

from analytics.estimation.estimate import Refusal
from analytics.estimation.pseudolabels import pseudo_labels
from analytics.estimation.ratio_parts import Denominator, numerator, ranked_items
from analytics.estimation.samples import Frame
from analytics.lowcost.statap import linearised_variance, mean_over_topics, program_variance, statap
from sampling.measures.registry import parse_ratio
from sampling.rejudging import SampledTopic

SIX_DIGITS = 1e-6
RANKS = [[1, 3, 4, 8, np.inf], [2, 1, np.inf, 5, 3]]
LABELS, CHANCES = [1, 0, 1, 1, 1], [0.9, 0.6, 0.5, 0.2, 0.1]
TOPIC = SampledTopic.of(RANKS, LABELS, CHANCES)


def test_the_fixtures():
    assert TOPIC.weights.sum() == pytest.approx(18.111111, abs=SIX_DIGITS)
    assert statap(TOPIC) == pytest.approx([0.261503, 1.087935], abs=SIX_DIGITS)
    assert statap(TOPIC, "printed") == pytest.approx([0.433964, 2.968643], abs=SIX_DIGITS)
    assert program_variance(TOPIC) == pytest.approx([0.040607, 0.593857], abs=SIX_DIGITS)


def bucket_joint(chance: np.ndarray, bucket: np.ndarray, size: int) -> np.ndarray:
    same = bucket[:, None] == bucket
    return np.where(same, 1.0, 1 - 1 / size) * np.outer(chance, chance)


def test_the_linearised_variance_of_the_fixture():
    chance, bucket = np.array([0.6, 0.6, 0.3, 0.3, 0.1]), np.array([0, 0, 1, 1, 2])
    topic = SampledTopic.of(RANKS[:1], LABELS, chance)
    variance = linearised_variance(topic, bucket_joint(chance, bucket, 5))
    assert variance == pytest.approx([0.078906], abs=SIX_DIGITS)


def random_topic(rng: np.random.Generator, n: int = 14, share: float = 0.4) -> SampledTopic:
    ranks = np.array([rng.permutation(n) + 1.0 for _ in range(3)])
    ranks[rng.random(ranks.shape) < 0.3] = np.inf
    labels = (rng.random(n) < share).astype(int)
    labels[0] = 1
    return SampledTopic.of(ranks, labels, rng.uniform(0.05, 1, n))


def test_statap_is_the_products_ap_with_predictions_of_0():
    rng, measure = np.random.default_rng(11), parse_ratio("AP")
    for _ in range(20):
        topic = random_topic(rng)
        n = topic.is_relevant.size
        frame = Frame(1, np.zeros(n, dtype=int), np.arange(n), topic.inclusion_probability)
        labels = pseudo_labels(frame, prediction=np.zeros(n), label=topic.is_relevant.astype(float))
        for run, ranks in enumerate(topic.ranks):
            whole = np.where(np.isfinite(ranks), ranks, 0).astype(np.int64)
            above = numerator(measure, labels, ranked_items(measure, labels, whole)).value[0]
            below = Denominator(measure, labels).values()[0][0, 0]
            assert above / below == pytest.approx(statap(topic)[run], abs=1e-12)


def test_certain_documents_give_the_map_of_trec_eval_and_no_variance():
    rng = np.random.default_rng(4)
    for _ in range(10):
        drawn = random_topic(rng)
        topic = SampledTopic.of(drawn.ranks, drawn.is_relevant.astype(int), np.ones(14))
        qrels = {"1": {f"d{i}": int(x) for i, x in enumerate(topic.is_relevant)}}
        for form in ("usual", "printed"):
            for values, ranks in zip(statap(topic, form), topic.ranks, strict=True):
                # a document of no grade at every rank that no judged one takes
                run = {"1": {f"u{rank}": -float(rank) for rank in range(1, 15)}}
                for document, rank in enumerate(ranks):
                    if np.isfinite(rank):
                        del run["1"][f"u{int(rank)}"]
                        run["1"][f"d{document}"] = -rank
                theirs = pytrec_eval.RelevanceEvaluator(qrels, {"map"}).evaluate(run)["1"]["map"]
                assert values == pytest.approx(theirs, abs=1e-9)
        assert not linearised_variance(topic).any()


def test_the_linearised_variance_of_independent_draws_is_the_one_with_products_of_probabilities():
    topic = random_topic(np.random.default_rng(8))
    chance = topic.inclusion_probability
    assert linearised_variance(topic) == pytest.approx(
        linearised_variance(topic, np.outer(chance, chance)), abs=1e-12
    )


def test_the_order_of_documents_does_not_matter():
    topic = random_topic(np.random.default_rng(5))
    order = np.random.default_rng(6).permutation(14)
    other = SampledTopic(topic.ranks[:, order], topic.is_relevant[order], topic.inclusion_probability[order])
    for compute in (statap, linearised_variance, program_variance):
        assert compute(other) == pytest.approx(compute(topic), abs=1e-12)


def test_an_empty_topic_is_0_and_has_no_variance():
    topic = SampledTopic.of([[1, 2]], [0, 0], [0.5, 0.5])
    for compute in (statap, lambda t: statap(t, "printed"), linearised_variance, program_variance):
        assert compute(topic).tolist() == [0.0]
    nobody = SampledTopic.of([[np.inf]], [1], [0.5])
    for compute in (statap, lambda t: statap(t, "printed"), linearised_variance):
        assert compute(nobody).tolist() == [0.0]
    assert np.isfinite(program_variance(nobody)).all()


def test_the_tracks_variance_is_at_most_1():
    topic = SampledTopic.of([[1, 2, np.inf]], [1, 1, 1], [0.001, 0.002, 0.9])
    assert program_variance(topic) <= 1


def test_empty_topics_count_0_or_nothing_and_their_number_is_told():
    values = np.array([[0.4, 0.0, 0.8], [0.2, 0.0, 0.4]])
    is_empty = np.array([False, True, False])
    zero, skip = mean_over_topics(values, is_empty), mean_over_topics(values, is_empty, "skip")
    assert zero.value == pytest.approx([0.4, 0.2])
    assert skip.value == pytest.approx([0.6, 0.3])
    assert (zero.n_topics, zero.n_empty, skip.n_topics, skip.n_empty) == (3, 1, 2, 1)


@pytest.mark.parametrize("choice", ["zero", "skip"])
def test_a_mean_without_any_relevant_document_is_refused(choice):
    refusal = mean_over_topics(np.zeros((2, 2)), np.array([True, True]), choice)
    assert isinstance(refusal, Refusal)
    assert "any of the 2 topics" in refusal.reason


@pytest.mark.parametrize("joint", [np.ones((2, 2)), np.zeros((5, 5)), np.full((5, 5), 1.5)])
def test_wrong_joint_probabilities_are_refused(joint):
    with pytest.raises(ValueError, match="joint_probability must"):
        linearised_variance(TOPIC, joint)


def test_unknown_words_are_refused():
    with pytest.raises(ValueError, match="form must be one of"):
        statap(TOPIC, "exact")
    with pytest.raises(ValueError, match="empty_topics must be one of"):
        mean_over_topics(np.zeros((1, 1)), np.array([False]), "drop")
