"""Part of benchmarks/coverage.py: the whole chain for one pair of runs, on a population of topics.

A population of topics, pooled documents and runs is made once. Every repetition takes a sample of topics, one pair of
runs, draws items for that pair (Poisson), lets three of six assessors judge each, runs gold checks, audits (Poisson,
pi proportional to |w_a - w_b|), and estimates. Assessors err

- "class_conditional": alike on all documents of a grade: what the papers assume;
- "popularity": by how many runs return the document (docs/methods/derivations/real-judges.md, section 1.1).

Expected: greg_label .93-.97 under both; matrix_inverse about .95 under the first, far below under the second; naive far
below wherever judges are biased.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from analytics.estimation import samples
from analytics.estimation.confusion import assessor_counts, audit_counts
from analytics.estimation.correction import correct
from analytics.estimation.estimate import Estimate, Refusal
from analytics.estimation.samples import AuditSample
from analytics.papers.inverse import matrix_inverse
from experiments.papers.correction import greg_label_by_topic
from experiments.papers.designs import pair_design
from experiments.papers.labels import naive
from sampling.designs import average_run_design, inclusion_probabilities, mixture, uniform_design
from sampling.draws import poisson_draw
from sampling.judged import Judged, question_influence
from sampling.measures.sparse import from_dense
from sampling.strategies import strategy_probabilities

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

N_POPULATION, N_TOPICS, N_DOCUMENTS, N_RUNS, CUTOFF = 2000, 50, 60, 10, 10
N_ASSESSORS, VOTES, GOLD_CHECKS = 6, 3, 1000
DRAWN, AUDITED = 700, 150
DISCOUNT = 1 / np.log2(np.arange(2, CUTOFF + 2))
MEASURES = {
    "P@10": (np.full(CUTOFF, 1 / CUTOFF), np.array([0.0, 1.0, 1.0])),
    "DCG@10": (DISCOUNT, np.array([0.0, 1.0, 2.0])),
}
# sensitivity and specificity by number of runs that return the document: 1, 2-3, 4 and more (judge B)
BY_POPULARITY = ((0.90, 0.72), (0.94, 0.57), (0.94, 0.38))
ALIKE = ((0.93, 0.57),) * 3


@dataclass(frozen=True)
class Population:
    """Topics x documents: true grade, number of runs that return it, and its rank in every run (-1: not)."""

    grade: Ints
    returned_by: Ints
    rank: Ints  # [run, topic, document]


@dataclass(frozen=True)
class Frame:
    """One repetition's pooled items of the sampled topics, with the weights of all runs."""

    topic: Ints
    grade: Ints
    returned_by: Ints
    weights: Floats


def make_population(rng: np.random.Generator) -> Population:
    """Return a population in which popular documents are relevant more often, and more often deceptive."""
    shape = (N_POPULATION, N_DOCUMENTS)
    merit = rng.normal(size=shape)
    difficulty = rng.normal(scale=0.4, size=(N_POPULATION, 1))
    latent = merit - 1.2 - difficulty + rng.normal(scale=0.6, size=shape)
    grade = (latent > 0).astype(np.int64) + (latent > 0.9)
    surface = rng.normal(size=shape)  # what runs see alike without it being relevance
    skill = np.linspace(0.7, 1.3, N_RUNS)
    taste = np.linspace(0.9, 0.3, N_RUNS)[rng.permutation(N_RUNS)]
    noise = np.linspace(1.8, 0.4, N_RUNS)  # weak runs return what no other run returns
    rank = np.full((N_RUNS, *shape), -1, dtype=np.int64)
    for run in range(N_RUNS):
        score = skill[run] * merit + taste[run] * surface + rng.normal(scale=noise[run], size=shape)
        order = np.argsort(-score, axis=1)[:, :CUTOFF]
        np.put_along_axis(rank[run], order, np.arange(CUTOFF)[None, :], axis=1)
    return Population(grade, (rank >= 0).sum(axis=0), rank)


def take_frame(population: Population, topics: Ints, rank_weights: Floats) -> Frame:
    """Return the pooled items of the sampled topics; a topic taken twice is two topics."""
    rank = population.rank[:, topics]
    pooled = (rank >= 0).any(axis=0)
    table = np.append(rank_weights, 0.0) / topics.size  # index -1: not returned
    topic = np.broadcast_to(np.arange(topics.size)[:, None], pooled.shape)[pooled]
    grade, returned_by = population.grade[topics][pooled], population.returned_by[topics][pooled]
    return Frame(topic.astype(np.int64), grade, returned_by, table[rank[:, pooled]])


def assessor_matrices(rates: tuple[tuple[float, float], ...]) -> Floats:
    """Return confusion[popularity, assessor, true, given] of six assessors around the given rates."""
    matrices = np.zeros((3, N_ASSESSORS, 3, 3))
    for band, (sensitivity, specificity) in enumerate(rates):
        for assessor, shift in enumerate(np.linspace(-0.05, 0.05, N_ASSESSORS)):
            hit, clear = sensitivity + shift, specificity + shift
            matrices[band, assessor] = [
                [clear, 0.7 * (1 - clear), 0.3 * (1 - clear)],
                [1 - hit, 0.75 * hit, 0.25 * hit],
                [0.6 * (1 - hit), 0.2 * hit + 0.4 * (1 - hit), 0.8 * hit],
            ]
    return matrices


def judge(matrices: Floats, band: Ints, grade: Ints, assessor: Ints, rng: np.random.Generator) -> Ints:
    """Return one given grade per (item, assessor)."""
    cumulated = np.cumsum(matrices[band, assessor, grade], axis=-1)[:, :2]
    return (rng.random(grade.size)[:, None] > cumulated).sum(axis=1).astype(np.int64)


def popularity_band(returned_by: Ints) -> Ints:
    """Return 0, 1, 2 for documents that 1, 2-3, 4 or more runs return."""
    return np.digitize(returned_by, [2, 4]).astype(np.int64)


@dataclass(frozen=True)
class Labels:
    """Three labels per drawn item and the assessors' counts from gold checks."""

    item: Ints
    assessor: Ints
    given: Ints
    gold_counts: Floats


def collect(frame: Frame, drawn: Ints, matrices: Floats, rng: np.random.Generator) -> Labels:
    """Return the labels of the drawn items, and gold checks on random items of the frame."""
    item = np.repeat(np.arange(drawn.size), VOTES)
    assessor = np.argsort(rng.random((drawn.size, N_ASSESSORS)), axis=1)[:, :VOTES].ravel()
    band = popularity_band(frame.returned_by)
    given = judge(matrices, band[drawn][item], frame.grade[drawn][item], assessor, rng)
    checked = rng.integers(frame.grade.size, size=N_ASSESSORS * GOLD_CHECKS)
    who = np.repeat(np.arange(N_ASSESSORS), GOLD_CHECKS)
    answers = judge(matrices, band[checked], frame.grade[checked], who, rng)
    counts = assessor_counts(who, frame.grade[checked], answers, N_ASSESSORS, 3)
    return Labels(item, assessor, given, counts)


def estimate_all(
    frame: Frame, pair: tuple[int, int], gains: Floats, matrices: Floats, rng: np.random.Generator
) -> dict[str, Estimate | Refusal]:
    """Return every method's estimate of one pair's difference, from one draw, its labels and one audit."""
    a, b = frame.weights[list(pair)]
    g = a - b
    prior = np.full(g.size, 0.3 * gains[-1])
    everything = frame.weights
    design = mixture(
        pair_design(a, b, prior), [average_run_design(everything), uniform_design(g.size)], [0.15, 0.05]
    )
    pi = inclusion_probabilities(design, DRAWN)
    drawn = poisson_draw(pi, rng.uniform(1e-12, 1, g.size))
    w, pi_drawn = g[drawn], pi[drawn]
    labels = collect(frame, drawn, matrices, rng)

    nothing = np.zeros(w.size, dtype=np.int64)  # this design goes by influence alone
    influence = question_influence(from_dense(np.stack([a[drawn], b[drawn]])), pi_drawn)
    judged = Judged(influence, pi_drawn, nothing, nothing, np.zeros(w.size), n_grades=1)
    audit_pi = strategy_probabilities("influence", judged, expected_count=AUDITED)
    audited = np.zeros(drawn.size, dtype=bool)
    audited[poisson_draw(audit_pi, rng.uniform(1e-12, 1, drawn.size))] = True
    by_topic = np.bincount(frame.topic, weights=g * prior, minlength=N_TOPICS)
    given = samples.Labels(
        labels.item,
        labels.assessor,
        labels.given,
        n_items=drawn.size,
        n_assessors=N_ASSESSORS,
        n_grades=gains.size,
    )
    shared = {"draw_probability": pi_drawn, "gains": gains, "prior": prior[drawn]}
    audit = AuditSample(
        draw_probability=pi_drawn,
        bronze_class=given.classes(),
        audited=audited,
        gold_grade=frame.grade[drawn],
        audit_probability=audit_pi,
        n_grades=gains.size,
    )
    arrays = {"label_item": labels.item, "label_grade": labels.given}
    total = [float(by_topic.sum())]
    counts = labels.gold_counts + audited_counts(frame.grade[drawn], labels, audited, audit_pi)
    rows = counts.sum(axis=2, keepdims=True)
    return {
        "naive": naive(w, **arrays, **shared, prior_total=total)[0],
        "greg_label": correct(w, audit, gains, prior=prior[drawn], prior_total=total).estimates[0],
        "matrix_inverse": matrix_inverse(
            w,
            given,
            **shared,
            prior_total=total,
            matrices=counts / np.where(rows > 0, rows, 1),
            gold_per_grade=rows[:, :, 0],
            rng=rng,
        )[0],
        "greg_label_by_topic": greg_label_by_topic(
            w,
            audit,
            gains,
            topic_index=frame.topic[drawn],
            n_topics=N_TOPICS,
            prior=prior[drawn],
            prior_total_by_topic=by_topic[None, :],
        )[0],
    }


def audited_counts(grade: Ints, labels: Labels, audited: NDArray[np.bool_], audit_pi: Floats) -> Floats:
    """Return effective counts[assessor, true, given] of the audited items' labels."""
    tables = []
    for assessor in range(N_ASSESSORS):
        mine = (labels.assessor == assessor) & audited[labels.item]
        item = labels.item[mine]
        tables.append(audit_counts(grade[item], labels.given[mine], audit_pi[item], 3))
    return np.stack(tables)


def tally(estimates: list[tuple[Estimate | Refusal, float]]) -> dict[str, float | int]:
    """Return coverage, its standard error, mean error in mean standard errors, and refusals."""
    given = [(e, truth) for e, truth in estimates if isinstance(e, Estimate)]
    n = len(given)
    inside = sum(e.low <= truth <= e.high for e, truth in given) / max(1, n)
    errors = np.array([e.value - truth for e, truth in given])
    widths = np.array([e.high - e.low for e, _ in given]) / 2
    wrong = sum((e.low > 0 > truth) or (e.high < 0 < truth) for e, truth in given) / max(1, n)
    return {
        "coverage": round(inside, 4),
        "coverage_se": round((inside * (1 - inside) / max(1, n)) ** 0.5, 4),
        "bias": round(float(errors.mean()), 5) if n else 0.0,
        "rmse": round(float(np.sqrt((errors**2).mean())), 5) if n else 0.0,
        "mean_half_width": round(float(widths.mean()), 5) if n else 0.0,
        "wrong_sign_significant": round(wrong, 4),
        "refused": len(estimates) - n,
    }


def simulate(repetitions: int, seed: int) -> dict[str, dict[str, dict[str, dict[str, float | int]]]]:
    """Return the tallies[noise][measure][method]."""
    rng = np.random.default_rng(seed)
    population = make_population(rng)
    pairs = list(combinations(range(N_RUNS), 2))
    results: dict[str, dict[str, dict[str, dict[str, float | int]]]] = {}
    for noise, rates in (("class_conditional", ALIKE), ("popularity", BY_POPULARITY)):
        matrices = assessor_matrices(rates)
        results[noise] = {}
        for measure, (rank_weights, gains) in MEASURES.items():
            whole = take_frame(population, np.arange(N_POPULATION), rank_weights)
            expected = whole.weights @ gains[whole.grade]
            estimates: dict[str, list[tuple[Estimate | Refusal, float]]] = {}
            for repetition in range(repetitions):
                pair = pairs[repetition % len(pairs)]
                frame = take_frame(population, rng.integers(N_POPULATION, size=N_TOPICS), rank_weights)
                truth = float((frame.weights[pair[0]] - frame.weights[pair[1]]) @ gains[frame.grade])
                for method, result in estimate_all(frame, pair, gains, matrices, rng).items():
                    # topics as a sample: the target is the difference over the whole population of topics
                    of_all = float(expected[pair[0]] - expected[pair[1]])
                    target = of_all if method == "greg_label_by_topic" else truth
                    estimates.setdefault(method, []).append((result, target))
            results[noise][measure] = {
                method: tally(pairs_found) for method, pairs_found in estimates.items()
            }
    return results
