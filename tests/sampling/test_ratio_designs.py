"""Designs for nDCG, AP and R: their weights by hand, contrasts over all grades, draws that stay unbiased."""

from itertools import combinations

import numpy as np
import pytest
from enumeration import poisson_samples
from one_step_samples import MANY_RANKS, TOPIC

from analytics.estimation.one_step import StairPhases, one_step
from analytics.estimation.samples import Frame
from analytics.estimation.two_phase import two_phase
from sampling.contrasts import contrast_among, contrasts, default_sizes, importance, variances_of_runs
from sampling.designs import inclusion_probabilities
from sampling.measures.design_weights import PriorGrades, design_weights
from sampling.measures.kinds import Ratio
from sampling.measures.ratio_derivative import derivative
from sampling.measures.registry import parse_measure
from sampling.measures.sparse import from_dense
from sampling.questions import Design, QuestionRefused, parse_designed
from sampling.sizes import IdenticalSystemsError

P = np.array([0.9, 0.62, 0.51, 0.31, 0.2, 0.7, 0.35, 0.22, 0.81, 0.4])
GAINS = np.array([1.0, 3.0])  # of the relevant grades
MEASURES = ["nDCG@3", "graded nDCG@3", "AP@4", "R@2", "DCG@3"]
QUESTIONS = {"system": [1], "pair": [2, 0], "baseline": [1, 0, 2], "ranking": [0, 1, 2], "pool": [0, 1, 2]}


@pytest.mark.parametrize(
    ("name", "phi"),
    [
        ("nDCG@3", [0.331579, 0.072637, -0.186306, 0.140443, -0.186306, -0.186306]),
        ("R@3", [0.118343, 0.118343, -0.266272, 0.118343, -0.266272, -0.266272]),
        ("AP@3", [0.278846, 0.041667, -0.240385, 0.201923, -0.240385, -0.240385]),
    ],
)
def test_the_weights_of_a_ratio_by_hand(name, phi):
    prior = PriorGrades(np.zeros(6, int), np.array([0.9, 0.6, 0.5, 0.3, 0.2, 0.1]), np.ones(1))
    found = design_weights(parse_measure(name), from_dense(np.array([[1, 3, 0, 2, 0, 4]])), 1, prior)
    assert found.row(0) == pytest.approx(phi, abs=5e-7)


def weighed(name):
    """Return the weights of three runs, the gains of relevant grades, and phi [run, relevant grade, item]."""
    gains = GAINS if name.startswith("graded") else np.ones(1)
    measure = parse_measure(name.removeprefix("graded "))
    ranks = from_dense(MANY_RANKS)
    weights = design_weights(measure, ranks, 3, PriorGrades(TOPIC, P, gains))
    if not isinstance(measure.kind, Ratio):
        return weights, gains, np.stack([weights.along.dense()[:, None]] * gains.size)[0]
    levels = np.unique(gains)
    reached = gains >= levels[:, None]  # [stair, grade]
    steps = np.diff(levels, prepend=0.0)
    p = reached.mean(axis=1)[:, None] * P
    phi = derivative(measure, ranks, TOPIC, 3, p, steps).phi(TOPIC, steps)
    return weights, gains, np.einsum("rsi,sg->rgi", phi, reached.astype(float))


def compared(question, moved):
    """Return the question's comparisons of what a grade moves, [comparison, grade, item]."""
    rows = moved[QUESTIONS[question]]
    if question in ("system", "pool"):
        return rows
    if question == "ranking":
        return np.stack([rows[a] - rows[b] for a, b in combinations(range(3), 2)])
    return rows[1:] - rows[0]


def variance_over_grades(moves, p):
    """Return by item the mean over comparisons of the variance over all grades: relevant ones alike, or none."""
    n_grades = moves.shape[1]
    chances = np.concatenate([(1 - p)[None], np.repeat(p[None] / n_grades, n_grades, axis=0)])
    values = np.concatenate([np.zeros((len(moves), 1, p.size)), moves], axis=1)
    mean = (chances * values).sum(axis=1)
    return ((chances * values**2).sum(axis=1) - mean**2).mean(axis=0)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("name", MEASURES)
def test_a_contrast_is_the_standard_deviation_over_all_grades(name, question):
    weights, gains, moved = weighed(name)
    says = importance(question, weights, QUESTIONS[question])
    expected = variance_over_grades(compared(question, moved), P)
    found = says.variance(P) * gains.mean() ** 2
    assert found == pytest.approx(expected, abs=1e-14)
    alone = says.squared_contrast * P * (1 - P) * gains.mean() ** 2
    assert (alone == pytest.approx(expected, abs=1e-14)) is (gains.size == 1)
    if name != "DCG@3":  # the control: what a listed item adds, without what it takes from all
        listed = importance(question, type(weights)(weights.measure, weights.along), QUESTIONS[question])
        assert listed.variance(P) * gains.mean() ** 2 != pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("name", MEASURES)
def test_the_average_run_and_what_single_runs_leave_open(name):
    weights, gains, moved = weighed(name)
    size = np.abs(moved.mean(axis=1))
    expected = (size / size.sum(axis=1, keepdims=True)).mean(axis=0)
    assert importance("pool", weights, [0, 1, 2]).average_run == pytest.approx(expected, abs=1e-14)
    factor = np.linspace(0.0, 9.0, P.size)
    open_ = [(variance_over_grades(run[None], P) * factor).sum() for run in moved]
    assert variances_of_runs(weights, P, factor) * gains.mean() ** 2 == pytest.approx(open_, rel=1e-12)


@pytest.mark.parametrize("name", ["AP@4", "DCG@3"])
def test_a_run_with_a_document_that_is_never_drawn_has_no_half_width(name):
    weights, _, _ = weighed(name)
    factor = np.ones(P.size)
    factor[2] = np.inf  # run 0 does not list it; in a ratio it counts all the same
    found = np.isinf(variances_of_runs(weights, P, factor))
    assert found.tolist() == ([True] * 3 if name == "AP@4" else [False, True, True])


def test_audits_weigh_one_run_by_itself_and_several_by_their_differences():
    weights, _, moved = weighed("AP@4")
    assert contrast_among(weights.rows([1])) == pytest.approx(np.abs(moved[1, 0]), abs=1e-15)
    pair = contrast_among(weights.rows([0, 2]))
    assert pair == pytest.approx(np.abs(moved[0, 0] - moved[2, 0]), abs=1e-15)


def test_runs_that_list_alike_and_topics_without_a_predicted_document_say_nothing():
    ranks = MANY_RANKS[[0, 0, 1]]
    prior = PriorGrades(TOPIC, P, np.ones(1))
    same = design_weights(parse_measure("nDCG@3"), from_dense(ranks), 3, prior)
    with pytest.raises(IdenticalSystemsError, match="rank alike"):
        importance("pair", same, [0, 1])
    assert importance("pair", same, [0, 2]).matters.any()
    nothing = np.where(TOPIC == 1, 0.0, P)
    weights = design_weights(
        parse_measure("R@2"), from_dense(MANY_RANKS), 3, PriorGrades(TOPIC, nothing, np.ones(1))
    )
    says = importance("pair", weights, [0, 1])
    assert not says.variance(nothing)[TOPIC == 1].any()
    assert says.variance(nothing)[TOPIC == 0].any()
    assert contrasts("pair", weights.rows([0, 1]))[1] is not None


def test_graded_scales_without_a_relevant_gain_are_refused():
    ranks = from_dense(MANY_RANKS)
    with pytest.raises(ValueError, match="nothing is predicted relevant"):
        design_weights(parse_measure("nDCG@3"), ranks, 3, PriorGrades(TOPIC, P, np.zeros(2)))
    with pytest.raises(ValueError, match="depend on what is predicted"):
        design_weights(parse_measure("nDCG@3"), ranks, 3)
    for name in ("micro nDCG@3", "ERR@3", "Swaps@3"):
        with pytest.raises(ValueError, match="has no weights for a design"):
            design_weights(parse_measure(name), ranks, 3, PriorGrades(TOPIC, P, np.ones(1)))
    with pytest.raises(ValueError, match="probability must be within"):
        PriorGrades(TOPIC, P + 0.5, np.ones(1))
    with pytest.raises(ValueError, match="gains must be finite"):
        PriorGrades(TOPIC, P, np.array([np.nan]))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("micro nDCG@10", "no mean over topics"),
        ("ERR@10", "a measure of completely judged ranks, which a sample of documents cannot estimate"),
        ("Swaps@10", "which a sample of documents cannot estimate"),
        ("statAP@10", "choose AP"),
        ("AP", "needs a cutoff here, as in AP@10"),
    ],
)
def test_measures_without_a_design_are_refused_by_name(name, words):
    with pytest.raises(ValueError, match=words):
        parse_designed(name, "all")


@pytest.mark.parametrize("method", ["paper", "naive"])
def test_the_papers_designs_are_for_sums_alone(method):
    asked = {"question": "pair", "runs": ("a", "b"), "depth": 10, "budget": 10, "method": method}
    with pytest.raises(QuestionRefused, match="for nDCG@10 choose the default method"):
        Design(measure="nDCG@10", **asked, selection="replacement")
    assert Design(measure="DCG@10", **asked, selection="replacement").method == method


# -- draws with these sizes -----------------------------------------------------------------------------------


def test_a_draw_for_a_ratio_leaves_a_sum_unbiased():
    """All samples of ten items: the estimate of the DCG difference has the true one as its mean, to 12 digits."""
    weights, _, _ = weighed("nDCG@3")
    design = Design("pair", ("a", "b"), "nDCG@3", 5, 5)
    pi = inclusion_probabilities(default_sizes(design, importance("pair", weights, [0, 1]), P), 5)
    assert pi.min() < 0.5 < pi.max() <= 1
    gold = np.array([1, 0, 1, 1, 0, 0, 1, 0, 1, 0.0])
    dcg, _, _ = weighed("DCG@3")
    w = dcg.row(0) - dcg.row(1)
    mean = naive = 0.0
    for drawn, chance in poisson_samples(pi):
        places = np.flatnonzero(drawn)
        everything = np.ones(places.size)
        found = two_phase(
            w[None, places],
            draw_probability=pi[places],
            audited=everything.astype(bool),
            gold=gold[places],
            audit_probability=everything,
            before=P[places],
            after=P[places],
            spread=np.zeros(places.size),
            before_total=np.array([w @ P]),
            fewest=0,
        ).estimates.value[0]
        mean += chance * found
        naive += chance * (w @ P + (w[places] * (gold - P)[places]).sum())
    assert mean == pytest.approx(w @ gold, abs=1e-12)
    assert naive != pytest.approx(w @ gold, abs=1e-3)  # the control: not divided by pi


N_TOPICS, POOLED = 20, 30


def many_topics(seed=3):
    """Return topic, ranks of two runs that differ, and the chance of relevance, which falls with the better rank."""
    rng = np.random.default_rng(seed)
    topic = np.repeat(np.arange(N_TOPICS), POOLED)
    ease = np.repeat(rng.uniform(-2.5, 2.5, N_TOPICS), POOLED)
    liking = rng.normal(size=topic.size)
    ranks = []
    for noise in (0.8, 0.8):
        score = (liking + noise * rng.normal(size=topic.size)).reshape(N_TOPICS, POOLED)
        rank = np.argsort(np.argsort(-score, axis=1), axis=1) + 1
        ranks.append(np.where(rank <= 20, rank, 0).ravel())
    return topic, np.array(ranks), 1 / (1 + np.exp(-(liking + ease - 0.5)))


def drawn_for(name, topic, ranks, p, budget):
    weights = design_weights(
        parse_measure(name), from_dense(ranks), N_TOPICS, PriorGrades(topic, p, np.ones(1))
    )
    design = Design("pair", ("a", "b"), name, 20, budget, other_runs_share=0.0, uniform_share=0.05)
    return inclusion_probabilities(default_sizes(design, importance("pair", weights, [0, 1]), p), budget)


def test_a_design_for_ndcg_serves_ndcg_better_and_dcg_worse():
    """Simulated, one step with all that it leaves out: the same labels, judged by a draw for either measure."""
    topic, ranks, p = many_topics()
    measure, entries = parse_measure("nDCG@10"), from_dense(ranks)
    dcg = design_weights(parse_measure("DCG@10"), entries, N_TOPICS)
    w = dcg.row(0) - dcg.row(1)
    squares, of_dcg = {}, {}
    for name in ("nDCG@10", "DCG@10"):
        rng = np.random.default_rng(8)
        pi = drawn_for(name, topic, ranks, p, 120)
        of_dcg[name] = ((1 - pi) / pi * w**2 * p * (1 - p)).sum()  # exactly, over draws and labels
        errors = []
        for _ in range(400):
            gold = (rng.random(p.size) < p).astype(float)
            known = derivative(measure, entries, topic, N_TOPICS, gold[None], np.ones(1)).value.mean(axis=1)
            drawn = np.flatnonzero(rng.random(p.size) < pi)
            items = StairPhases(
                Frame(N_TOPICS, topic, drawn, pi[drawn]),
                np.ones(1),
                np.ones(drawn.size, dtype=bool),
                gold[None, drawn],
                np.ones(drawn.size),
                p[None],
                p[None, drawn],
            )
            found = one_step(measure, items, entries, fewest=0).estimates.value[2]
            errors.append(found - (known[0] - known[1]))
        squares[name] = np.mean(np.square(errors))
    assert squares["nDCG@10"] < 0.8 * squares["DCG@10"]
    assert of_dcg["DCG@10"] < 0.9 * of_dcg["nDCG@10"]  # the control
