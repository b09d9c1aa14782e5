"""nDCG and AP: equal to the tools when all is judged, exact enumeration, closed forms."""

import itertools

import ir_measures
import numpy as np
import pytest
from audits import corrected_labels, plain_labels
from ratio_samples import AP, GAINS, NDCG, sampled
from reference_formulas import denominators, numerators

import analytics.estimation.ratio_parts as ratio_parts
from analytics.estimation.estimators import difference_estimator
from analytics.estimation.graded_labels import on_stairs, stairs
from analytics.estimation.pseudolabels import census
from analytics.estimation.ratio_parts import numerator, ranked_items
from analytics.estimation.ratios import ratio_estimates
from sampling.measures.registry import parse_ratio


def random_runs(rng, n_topics=6, n_items=30, n_runs=3, n_grades=3):
    """Return (ranks, topic, grade): ties-free runs, some empty for a topic, one topic without relevant items."""
    topic = np.repeat(np.arange(n_topics), n_items)
    grade = rng.integers(0, n_grades, size=topic.size) * (rng.random(topic.size) < 0.4)
    grade[topic == 1] = 0
    ranks = np.zeros((n_runs, topic.size), dtype=np.int64)
    for run, t in itertools.product(range(n_runs), range(n_topics)):
        length = 0 if (run, t) in {(0, 2), (1, 1)} else rng.integers(1, n_items + 1)
        chosen = rng.permutation(n_items)[:length]
        ranks[run, t * n_items + chosen] = np.arange(1, length + 1)
    return ranks, topic, grade


def reference(name, ranks, topic, grade):
    """Return the mean over topics that ir_measures prints for one run."""
    items = range(topic.size)
    qrels: dict = {}
    run: dict = {}
    for i in items:
        qrels.setdefault(str(topic[i]), {})[str(i)] = int(grade[i])
        if ranks[i]:
            run.setdefault(str(topic[i]), {})[str(i)] = 1000.0 - ranks[i]
    return next(iter(ir_measures.calc_aggregate([ir_measures.parse_measure(name)], qrels, run).values()))


def binary(grade, relevant=1):
    return (np.asarray(grade) >= relevant).astype(np.int64)


@pytest.mark.parametrize("name", ["AP", "AP@5", "AP@20", "AP(rel=2)@20", "nDCG", "nDCG@5", "nDCG@10"])
def test_with_everything_judged_the_mean_over_topics_is_the_tools(name):
    rng = np.random.default_rng(11)
    ranks, topic, grade = random_runs(rng)
    measure = parse_ratio(name)
    gains = [0, 1, 2]
    if measure.binary:
        gains = [0, 0, 1] if measure.relevant_grade == 2 else [0, 1, 1]
    labels = census(topic_index=topic, n_topics=6, grades=grade, gains=gains)
    found = ratio_estimates(measure, labels, ranks, seed=1)
    expected = [reference(name, row, topic, grade) for row in ranks]
    assert [one.value for one in found[:3]] == pytest.approx(expected, abs=1e-12)
    differences = [expected[a] - expected[b] for a, b in ((0, 1), (0, 2), (1, 2))]
    assert [one.value for one in found[3:]] == pytest.approx(differences, abs=1e-12)
    assert all(one.standard_error == 0 and one.warning == "" for one in found)


def test_with_everything_judged_and_audited_the_corrected_value_is_the_tools_too():
    rng = np.random.default_rng(12)
    ranks, topic, grade = random_runs(rng)
    n = topic.size
    labels = corrected_labels(
        prediction=rng.uniform(size=n),
        topic_index=topic,
        n_topics=6,
        judged=np.arange(n),
        draw_probability=np.ones(n),
        bronze_class=rng.integers(0, 3, size=n),
        audited=np.ones(n, dtype=bool),
        gold_grade=grade,
        audit_probability=np.ones(n),
        gains=[0, 1, 2],
    )
    found = ratio_estimates(parse_ratio("nDCG@10"), labels, ranks, seed=1, pairs=[])
    assert [one.value for one in found] == pytest.approx(
        [reference("nDCG@10", row, topic, grade) for row in ranks], abs=1e-12
    )


def test_micro_is_the_ratio_of_the_sums_and_a_topic_without_relevant_documents_adds_nothing():
    ranks = np.array([[1, 2, 3, 1, 2, 1, 2]])
    topic, grade = [0, 0, 0, 1, 1, 2, 2], [1, 0, 1, 0, 1, 0, 0]
    labels = census(topic_index=topic, n_topics=3, grades=grade, gains=[0, 1])
    # topic 0: 1 + 2/3 of R = 2; topic 1: 1/2 of R = 1
    assert ratio_estimates(parse_ratio("micro AP"), labels, ranks, seed=1)[0].value == pytest.approx(
        (1 + 2 / 3 + 1 / 2) / 3
    )
    d = 1 / np.log2([2, 3, 4])
    expected = (d[0] + d[2] + d[1]) / (d[0] + d[1] + d[0])
    assert ratio_estimates(parse_ratio("micro nDCG"), labels, ranks, seed=1)[0].value == pytest.approx(
        expected
    )


def test_the_fixture_of_the_verified_method():
    labels = plain_labels(
        prediction=[0.4, 0.3, 0.5, 0.2],
        topic_index=[0] * 4,
        n_topics=1,
        judged=[0, 2],
        draw_probability=[0.5, 1],
        label=[1, 1],
    )
    assert denominators(AP, labels) == pytest.approx([3.1])
    assert numerators(AP, labels, [[1, 2, 3, 4]])[0] / 3.1 == pytest.approx([1.016667], abs=5e-7)
    known = census(topic_index=[0] * 4, n_topics=1, grades=[1, 0, 1, 1], gains=[0, 1])
    assert ratio_estimates(AP, known, [1, 2, 3, 4], seed=1)[0].value == pytest.approx(0.805556, abs=5e-7)


def expectation(measure, gains, ranks, topic, grade, pi, f):
    """Return (mean of the numerators, mean of sum over topics of u*^2/rank) over every possible draw."""
    mean, squares = 0.0, 0.0
    for chosen in itertools.product([False, True], repeat=grade.size):
        judged = np.flatnonzero(chosen)
        p = np.prod(np.where(chosen, pi, 1 - pi))
        labels = plain_labels(
            prediction=f,
            topic_index=topic,
            n_topics=2,
            judged=judged,
            draw_probability=pi[judged],
            label=on_stairs(gains, grade[judged]),
            steps=stairs(gains).steps,
        )
        mean = mean + p * numerators(measure, labels, ranks)
        squares += p * float((labels.utility**2 / np.maximum(ranks[0], 1)).sum())
    return mean, squares


def test_the_numerators_of_ap_and_dcg_are_unbiased_over_every_draw():
    ranks = np.array([[2, 1, 3, 0, 1, 2], [1, 0, 2, 3, 2, 1]])
    topic, grade = np.array([0, 0, 0, 0, 1, 1]), np.array([2, 0, 1, 1, 0, 2])
    pi, f = np.array([0.3, 0.8, 0.5, 0.6, 0.9, 0.2]), np.array([0.7, 0.2, 0.4, 0.1, 0.0, 1.3])
    for measure, gains in ((AP, [0, 1, 1]), (parse_ratio("AP@2"), [0, 1, 1]), (NDCG, GAINS)):
        mean, squares = expectation(measure, gains, ranks, topic, grade, pi, f)
        truth = numerators(measure, census(topic_index=topic, n_topics=2, grades=grade, gains=gains), ranks)
        assert mean == pytest.approx(truth)
        if measure is AP:
            # the diagonal must be u*: its square has another expectation
            assert squares > 0.5 + float((binary(grade) / np.maximum(ranks[0], 1)).sum())


def test_a_replicates_numerator_is_that_of_the_disturbed_pseudo_labels():
    rng = np.random.default_rng(6)
    ranks, topic, grade = random_runs(rng)
    judged = np.flatnonzero(rng.random(topic.size) < 0.5)
    made = {
        "prediction": rng.uniform(size=topic.size),
        "topic_index": topic,
        "n_topics": 6,
        "judged": judged,
        "draw_probability": np.full(judged.size, 0.5),
    }
    labels = plain_labels(**made, label=binary(grade[judged]))
    noise = rng.normal(size=(judged.size, 4))
    for name in ("AP", "AP@7", "nDCG@9"):
        measure = parse_ratio(name)
        for row in ranks:
            found = numerator(measure, labels, ranked_items(measure, labels, row)).replicates(noise)
            for k in range(4):
                utility = labels.utility.copy()
                utility[judged] += noise[:, k]
                assert found[:, k] == pytest.approx(direct(measure, row, topic, utility, 6))


def direct(measure, ranks, topic, utility, n_topics):
    """Return the numerators written as the double sum they are."""
    cutoff = measure.cutoff or ranks.max()
    sums = np.zeros(n_topics)
    for i in np.flatnonzero((ranks > 0) & (ranks <= cutoff)):
        above = (topic == topic[i]) & (ranks > 0) & (ranks < ranks[i])
        if measure.binary:
            sums[topic[i]] += (utility[i] + utility[i] * utility[above].sum()) / ranks[i]
        else:
            sums[topic[i]] += utility[i] / np.log2(ranks[i] + 1)
    return sums


def test_the_ideal_ranking_is_linear_between_whole_numbers_of_relevant_documents():
    d = 1 / np.log2(np.arange(2, 12))
    for f, expected in [(0.625, d[0] + d[1] + d[2] / 2), (1.0, d[:4].sum()), (0.1, d[0])]:
        labels = plain_labels(
            prediction=[f] * 4, topic_index=[0] * 4, n_topics=1, judged=[], draw_probability=[], label=[[]]
        )
        assert denominators(NDCG, labels) == pytest.approx([expected])
        assert denominators(parse_ratio("nDCG@1"), labels) == pytest.approx([d[0]])
    # what was found is never more than R, and R never less than 1
    found = {
        "topic_index": [0] * 4,
        "n_topics": 1,
        "judged": [0, 1],
        "draw_probability": [1, 1],
        "label": [1, 1],
    }
    assert denominators(AP, plain_labels(prediction=[0, 0, -5, -5], **found)) == pytest.approx([2])
    found["label"] = [0, 0]
    assert denominators(AP, plain_labels(prediction=[0] * 4, **found)) == pytest.approx([1])


def test_the_ideal_ranking_of_a_graded_scale_comes_from_the_counts_on_its_stairs():
    rng = np.random.default_rng(2)
    grade, topic = rng.integers(0, 3, size=40), np.repeat([0, 1], 20)
    labels = census(topic_index=topic, n_topics=2, grades=grade, gains=GAINS)
    for name, k in (("nDCG", 20), ("nDCG@5", 5)):
        best = [np.sort(np.array(GAINS)[grade[topic == t]])[::-1][:k] for t in (0, 1)]
        expected = [(row / np.log2(np.arange(2, k + 2))).sum() for row in best]
        assert denominators(parse_ratio(name), labels) == pytest.approx(expected)


def test_where_the_denominator_is_known_the_variance_is_the_poisson_variance_and_nothing_is_corrected():
    """nDCG@1 of topics in which a relevant document was found: the ideal gain is 1, the ratio is linear."""
    rng = np.random.default_rng(9)
    ranks, labels, grade = sampled(rng, 10, 40, 0.5, relevant=0.8)
    assert labels.stair_found.min() >= 1
    measure = parse_ratio("nDCG@1")
    weight = (ranks == 1) / 10
    judged = labels.judged
    prior = np.full(ranks.shape[1], 0.8)
    linear = difference_estimator(
        weight[:, judged],
        grade[judged],
        np.full(judged.size, 0.5),
        prior=prior[judged],
        prior_total=(weight * prior).sum(axis=1),
        fewest=0,
    )
    made = ratio_parts._replicate(
        measure, labels, [ranked_items(measure, labels, row) for row in ranks], 40000, 3
    )
    for average, replicates in ((made.macro, made.macro_replicates), (made.micro, made.micro_replicates)):
        assert average == pytest.approx([one.value for one in linear])
        assert replicates.var(axis=1) == pytest.approx([one.standard_error**2 for one in linear], rel=0.05)
        bias = replicates.mean(axis=1) - average
        assert np.abs(bias) == pytest.approx([0, 0], abs=4 * linear[0].standard_error / 200)


def test_the_standard_error_is_never_below_what_the_drawing_shows_and_the_value_does_not_depend_on_it():
    rng = np.random.default_rng(22)
    ranks, labels, _ = sampled(rng, 20, 60, 0.4, relevant=0.05)
    measure = parse_ratio("nDCG@20")
    seen = ratio_parts._replicate(
        measure, labels, [ranked_items(measure, labels, row) for row in ranks], 300, 7
    )
    wider = 0
    for run, found in enumerate(ratio_estimates(measure, labels, ranks, seed=7, pairs=[], replicates=300)):
        error = seen.macro_replicates[run].std(ddof=1)
        assert found.value == pytest.approx(2 * seen.macro[run] - seen.macro_replicates[run].mean())
        assert found.standard_error >= error
        wider += found.standard_error > 1.01 * error
    assert wider > 0


def test_a_difference_is_of_the_same_replicates_and_narrower_than_two_separate_intervals():
    rng = np.random.default_rng(10)
    ranks, labels, _ = sampled(rng, 20, 40, 0.5)
    ranks[1] = ranks[0]
    swapped = np.where(ranks[0] == 3, 20, np.where(ranks[0] == 20, 3, ranks[0]))
    ranks[1] = swapped
    for name in ("AP", "micro AP", "nDCG@10", "micro nDCG@10"):
        a, b, difference = ratio_estimates(parse_ratio(name), labels, ranks, seed=4)
        assert difference.value == pytest.approx(a.value - b.value)
        assert difference.standard_error < 0.6 * np.hypot(a.standard_error, b.standard_error)
        assert difference.n == np.count_nonzero(
            (ranks[0] != ranks[1])[labels.judged]
            & ((ranks.min(axis=0) <= (parse_ratio(name).cutoff or 40))[labels.judged])
        )


def test_the_same_seed_gives_the_same_bits_and_chunks_change_nothing(monkeypatch):
    rng = np.random.default_rng(14)
    ranks, labels, _ = sampled(rng, 8, 40, 0.4)
    for name in ("AP", "micro nDCG@10"):
        measure = parse_ratio(name)
        first = ratio_estimates(measure, labels, ranks, seed=5, replicates=130)
        assert first == ratio_estimates(measure, labels, ranks, seed=5, replicates=130)
        assert first[0].value != ratio_estimates(measure, labels, ranks, seed=6, replicates=130)[0].value
        with monkeypatch.context() as patched:
            patched.setattr(ratio_parts, "CHUNK_NUMBERS", 17 * labels.judged.size)
            in_chunks = ratio_estimates(measure, labels, ranks, seed=5, replicates=130)
        for one, other in zip(first, in_chunks, strict=True):
            assert one.value == pytest.approx(other.value, rel=1e-12)
            assert one.standard_error == pytest.approx(other.standard_error, rel=1e-12)


def test_the_bias_correction_takes_bias_off():
    """nDCG of 30 topics, 30 % of 120 documents each, over 60 draws: what is left is less than half."""
    rng = np.random.default_rng(15)
    n_draws, n_topics, n_items = 60, 30, 120
    ranks, _, grade = sampled(rng, n_topics, n_items, 0.3, relevant=0.2)
    topic = np.repeat(np.arange(n_topics), n_items)
    known = census(topic_index=topic, n_topics=n_topics, grades=grade, gains=[0, 1])
    truth = (numerators(NDCG, known, ranks[:1])[0] / denominators(NDCG, known)).mean()
    plain, corrected = np.zeros((2, n_draws))
    for draw in range(n_draws):
        judged = np.flatnonzero(rng.random(topic.size) < 0.3)
        labels = plain_labels(
            prediction=np.full(topic.size, 0.2),
            topic_index=topic,
            n_topics=n_topics,
            judged=judged,
            draw_probability=np.full(judged.size, 0.3),
            label=grade[judged],
        )
        plain[draw] = (numerators(NDCG, labels, ranks[:1])[0] / denominators(NDCG, labels)).mean() - truth
        corrected[draw] = ratio_estimates(NDCG, labels, ranks[:1], seed=draw, replicates=200)[0].value - truth
    assert abs(plain.mean()) > 3 * plain.std() / np.sqrt(n_draws)
    assert abs(corrected.mean()) < 0.5 * abs(plain.mean())
