"""Measure the corrected share of a crowd data set when gold is declared an audit: is the interval right, and the test?

    python benchmarks/crowd_gold.py <folder with labels.csv and gold.csv> [<folder> ...] --subsets 500 --gold 100 --json

The folders are those of docs/examples/convert_crowd.py; without any a simulated crowd takes their place. The population
is the documents that have gold, so that the true share of relevant documents is known. Of each worker's labels of a
document the last counts. Every subset of gold takes its turn as the declared audit:

- uniform: a random part of the documents; printed are the coverage of the 95 % confidence interval, the mean
  half-width, and how often the test doubts the declaration;
- by bronze score: documents are chosen in proportion to the share of workers who find them relevant (and .05), and are
  declared a random part all the same: how often the test doubts it, and what the coverage then is.

Folds, predictions and estimator are the product's own (`predicted_gold`, `two_phase`), as a computation calls them.
"""

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from analytics.estimation.gold_prediction import Foreknowledge, predicted_gold
from analytics.estimation.samples import AuditSample, Frame, Labels
from analytics.estimation.shares import share_weights
from analytics.estimation.two_phase import two_phase
from judging.judgment_tables import read_crowd_labels, read_gold
from sampling.gold_samples import uniform_choice_test
from sampling.prediction import folds

STEPS = 12  # of the bronze score, a grade
EVEN_PRIOR = 0.5
LEAST_SCORE = 0.05  # added to every bronze score, so that every document can be chosen


@dataclass(frozen=True)
class Population:
    """The documents with gold: gains are 0 or 1."""

    name: str
    pairs: list[tuple[str, str]]
    topic_index: NDArray[np.int64]
    labels: Labels
    gold: NDArray[np.int64]
    score: NDArray[np.float64]


def read(folder: Path) -> Population:
    """Read the labels and the gold of a folder; any grade from 1 on is relevant."""
    gold = {
        (row.topic_id, row.doc_id): int(row.grade > 0)
        for row in read_gold(folder / "gold.csv", "gold.csv")
        if row.grade is not None
    }
    last = {
        (row.topic_id, row.doc_id, row.assessor): int(row.grade > 0)
        for row in read_crowd_labels(folder / "labels.csv", "labels.csv", allows_repeats=True)
        if (row.topic_id, row.doc_id) in gold
    }
    pairs = sorted({(topic, document) for topic, document, _ in last})
    place = {pair: number for number, pair in enumerate(pairs)}
    topics = sorted({topic for topic, _ in pairs})
    who = sorted({worker for *_, worker in last})
    of_worker = {worker: number for number, worker in enumerate(who)}
    labels = Labels(
        np.array([place[topic, document] for topic, document, _ in last]),
        np.array([of_worker[worker] for *_, worker in last]),
        np.array(list(last.values())),
        n_items=len(pairs),
        n_assessors=len(who),
        n_grades=2,
    )
    return Population(
        folder.name,
        pairs,
        np.array([topics.index(topic) for topic, _ in pairs]),
        labels,
        np.array([gold[pair] for pair in pairs]),
        labels.means(labels.grade.astype(np.float64)),
    )


def simulated(seed: int) -> Population:
    """Return a crowd of 30 workers who err more on hard documents: 300 documents of 20 topics, 1 to 12 labels each."""
    rng = np.random.default_rng(seed)
    pairs = [(f"t{topic:02d}", f"d{document:02d}") for topic in range(20) for document in range(15)]
    gold = (rng.random(len(pairs)) < 0.4).astype(np.int64)
    wrong = rng.beta(1.5, 6.0, len(pairs))
    rows = []
    for place in range(len(pairs)):
        for worker in rng.choice(30, rng.integers(1, 13), replace=False).tolist():
            rows.append((place, worker, int(gold[place]) ^ int(rng.random() < wrong[place])))
    item, who, grade = np.array(rows, dtype=np.int64).T
    labels = Labels(item, who, grade, n_items=len(pairs), n_assessors=30, n_grades=2)
    topics = np.repeat(np.arange(20), 15)
    return Population("simulated", pairs, topics, labels, gold, labels.means(grade.astype(np.float64)))


def estimate(population: Population, chosen: NDArray[np.bool_], seed: int) -> Any:
    """Return the corrected share of all documents, gold of the chosen ones declared a random part."""
    n, ones = chosen.size, np.ones(chosen.size)
    n_topics = int(population.topic_index.max()) + 1
    frame = Frame(n_topics, population.topic_index, np.arange(n), ones)
    audit = AuditSample(
        draw_probability=ones,
        bronze_class=population.labels.classes(steps=STEPS),
        audited=chosen,
        gold_grade=np.where(chosen, population.gold, 0),
        audit_probability=np.full(n, chosen.mean()),
        n_grades=2,
    )
    topics, documents = zip(*population.pairs, strict=True)
    known = Foreknowledge(
        np.zeros((n, 0)), np.zeros(0), folds(topics, documents, seed), np.full(n, EVEN_PRIOR)
    )
    gains = np.array([0.0, 1.0])
    fitted = predicted_gold(frame, audit, gains, labels=population.labels, known=known)
    weights = share_weights(population.topic_index, n_topics).subset([0])
    return two_phase(
        weights,
        draw_probability=ones,
        audited=chosen,
        gold=audit.gains(gains)[1],
        audit_probability=audit.audit_probability,
        before=fitted.before,
        after=fitted.after,
        spread=fitted.spread,
        before_total=weights.totals(fitted.before),
    ).estimates


def choose(population: Population, n_gold: int, sizes: NDArray[np.float64], rng: Any) -> NDArray[np.bool_]:
    """Return n_gold documents, drawn without replacement with chances in proportion to the sizes."""
    chosen = np.zeros(population.gold.size, dtype=bool)
    chosen[rng.choice(chosen.size, n_gold, replace=False, p=sizes / sizes.sum())] = True
    return chosen


def measure(
    population: Population, n_subsets: int, n_gold: int, seed: int, is_uniform: bool
) -> dict[str, Any]:
    """Return coverage, width, and how often the test doubts the declaration, over seeded subsets."""
    rng = np.random.default_rng(seed)
    sizes = np.ones(population.gold.size) if is_uniform else population.score + LEAST_SCORE
    truth = float(population.gold.mean())
    covered, widths, values, refused, p_values = [], [], [], 0, []
    for number in range(n_subsets):
        chosen = choose(population, n_gold, sizes, rng)
        tested = uniform_choice_test(
            chosen,
            bronze_score=population.score,
            n_labels=population.labels.counts,
            topic_index=population.topic_index,
        )
        p_values.append(1.0 if tested is None else tested.p_value)
        found = estimate(population, chosen, seed + number)
        if found.refusals:
            refused += 1
            continue
        covered.append(bool(found.low[0] <= truth <= found.high[0]))
        widths.append(float(found.high[0] - found.low[0]) / 2)
        values.append(float(found.value[0]))
    return {
        "subsets": n_subsets,
        "refused": refused,
        "coverage": float(np.mean(covered)),
        "half_width": float(np.mean(widths)),
        "mean_value": float(np.mean(values)),
        "doubted": float(np.mean(np.array(p_values) < 0.01)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--subsets", type=int, default=500)
    parser.add_argument("--gold", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    for folder in asked.folders or [None]:
        started = time.monotonic()
        population = simulated(asked.seed) if folder is None else read(folder)
        made = {
            "set": population.name,
            "documents": population.gold.size,
            "labels": population.labels.item.size,
            "topics": int(population.topic_index.max()) + 1,
            "share": float(population.gold.mean()),
            "as_judged": float(population.score.mean()),
            "gold": asked.gold,
        } | {
            name: measure(population, asked.subsets, asked.gold, asked.seed, is_uniform)
            for name, is_uniform in (("uniform", True), ("by_bronze_score", False))
        }
        made["seconds"] = round(time.monotonic() - started, 1)
        print(json.dumps(made, indent=None if asked.json else 1), flush=True)


if __name__ == "__main__":
    main()
