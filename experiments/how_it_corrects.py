"""Pictures for docs/methods/how-it-corrects.md: a judge's confusion matrix, and what three methods make of the grades.

    .venv/bin/python experiments/how_it_corrects.py --figures docs/images

Simulated: 60 topics, two runs of 20 documents each, one judge who is fooled by documents that many systems return (the
rates by the number of systems are those of a real judge), an audit of 400 documents at random. Deterministic: the same
seed writes the same files.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from analytics.charts import Chart, ForestRow, confusion_heat, forest
from analytics.estimation.confusion import audit_counts, confusion_from_counts
from analytics.estimation.correction import correct
from analytics.estimation.estimate import Estimate
from analytics.estimation.samples import AuditSample, Labels
from analytics.papers.inverse import matrix_inverse

N_TOPICS, DEPTH, N_AUDITED = 60, 20, 400
# Returned by one system, by two or three, by four or more: how often relevant, and how often the judge is right.
PREVALENCE = np.array([0.15, 0.26, 0.47])
SENSITIVITY, SPECIFICITY = np.array([0.81, 0.86, 0.90]), np.array([0.80, 0.69, 0.49])
GRADES = ["0 not relevant", "1 relevant"]


@dataclass(frozen=True)
class Judged:
    """Documents of two runs, as one array each: the truth, the judge's grades, and the weight of A minus B."""

    weight: NDArray[np.float64]
    true: NDArray[np.int64]
    given: NDArray[np.int64]


def judged(rng: np.random.Generator, *, depends_on_popularity: bool) -> Judged:
    """Return the documents that only A or only B returns: A's are the popular ones. What both return cancels out."""
    n = N_TOPICS * DEPTH
    a = rng.choice(3, n, p=[0.2, 0.3, 0.5])
    b = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    popularity = np.concatenate([a, b])
    true = (rng.random(2 * n) < PREVALENCE[popularity]).astype(np.int64)
    sensitivity, specificity = SENSITIVITY[popularity], SPECIFICITY[popularity]
    if not depends_on_popularity:  # the same judge on average, but alike on all documents of a grade
        sensitivity = np.full(2 * n, sensitivity[true == 1].mean())
        specificity = np.full(2 * n, specificity[true == 0].mean())
    is_right = rng.random(2 * n) < np.where(true == 1, sensitivity, specificity)
    weight = np.concatenate([np.ones(n), -np.ones(n)]) / n
    return Judged(weight, true, np.where(is_right, true, 1 - true))


def estimates(documents: Judged, rng: np.random.Generator) -> dict[str, tuple[float, float, float]]:
    """Return the difference of the two runs and the ends of its interval, by method."""
    n = documents.true.size
    audited = np.zeros(n, dtype=bool)
    audited[rng.choice(n, N_AUDITED, replace=False)] = True
    alpha = np.full(n, N_AUDITED / n)
    counts = audit_counts(documents.true[audited], documents.given[audited], alpha[audited], 2)
    gains = np.array([0.0, 1.0])
    audit = AuditSample(np.ones(n), documents.given, audited, documents.true, alpha, n_grades=2)
    corrected = correct(documents.weight, audit, gains).estimates[0]
    inverse = matrix_inverse(
        documents.weight,
        Labels(
            np.arange(n), np.zeros(n, dtype=np.int64), documents.given, n_items=n, n_assessors=1, n_grades=2
        ),
        draw_probability=np.ones(n),
        matrices=np.array([confusion_from_counts(counts).as_array()]),
        gold_per_grade=counts.sum(axis=1)[None],
        gains=gains,
        rng=rng,
    )[0]
    naive, true = float(documents.weight @ documents.given), float(documents.weight @ documents.true)
    by_method = {"naive": (naive, naive, naive), "true value": (true, true, true)}
    for name, result in (("corrected", corrected), ("matrix inverse", inverse)):
        if not isinstance(result, Estimate):
            raise RuntimeError(f"{name}: {result.reason}")
        by_method[name] = (result.value, result.low, result.high)
    return by_method


def pictures(seed: int) -> dict[str, Chart]:
    rng = np.random.default_rng(seed)
    rows = []
    for label, depends in (
        ("errors alike everywhere", False),
        ("errors by popularity", True),
    ):
        documents = judged(rng, depends_on_popularity=depends)
        by_method = estimates(documents, rng)
        for method in ("naive", "corrected", "matrix inverse", "true value"):
            rows.append(ForestRow(label, method, *by_method[method]))
            value, low, high = by_method[method]
            print(f"{label:35} {method:15} {value:+.3f}  ({low:+.3f} to {high:+.3f})")
    counts = audit_counts(documents.true, documents.given, np.ones(documents.true.size), 2)
    matrix = confusion_from_counts(counts)
    return {
        "how-confusion": confusion_heat(
            GRADES, matrix.matrix, matrix.low, matrix.high, counts.tolist(), "How one judge grades"
        ),
        "how-corrects": forest(
            rows,
            "One judge, three methods",
            "Difference of two runs with 95 % confidence intervals by four methods, for errors that are alike on all "
            "documents "
            "and for errors that are more frequent on popular documents. The matrix inverse holds the true value only "
            "in the first case, the corrected number in both.",
            "share of relevant documents, A minus B",
            reference=0.0,
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figures", type=Path, default=Path("docs/images"))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for name, drawn in pictures(options.seed).items():
        target = options.figures / f"{name}.svg"
        target.write_text(drawn.standalone_svg())
        print(target)


if __name__ == "__main__":
    main()
