"""Parts of benchmarks/coverage.py: tables of docs/methods/derivations/noise-correction.md, sections 3.3 and 5.

Targets were computed once by another program, and tables are named as there (3.1, 3.4).

Table 3.1 does not print its matrices and weights. Ours have its truths and, about, its shares of V_J in the variance,
which is what its coverage depends on; the JSON says where they differ.
"""

import math
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from parts.coverage_papers import around, checked, covers

from analytics.estimation.confusion import assessor_counts
from analytics.estimation.estimate import Estimate, Refusal
from analytics.estimation.samples import Labels
from analytics.papers.goldberg import corrected_value
from analytics.papers.inverse import label_scores, matrix_inverse
from experiments.papers.combining import majority_matrix, pattern_matrix, pattern_scores
from experiments.papers.inverse import matrix_inverse_with_replacement

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# -- 3.1: five assessors in a sampling estimator ------------------------------------------------------------

# four kinds of items, drawn equally often: w of two systems, and the shares of true grades
WEIGHTS_3_1 = np.array([[1.8, 1.2, 0.6, 0.4], [1.2, 1.8, 0.6, 0.4]])
SHARES_3_1 = {
    2: np.array([[0.15, 0.85], [0.6333, 0.3667], [0.6, 0.4], [0.6, 0.4]]),
    3: np.array([[0.07, 0.3, 0.63], [0.4647, 0.3, 0.2353], [0.4536, 0.3, 0.2464], [0.4536, 0.3, 0.2464]]),
}
GAINS_3_1 = {2: np.array([0.0, 1.0]), 3: np.array([0.0, 0.5, 1.0])}
TWO_GRADES = ((0.70, 0.70), (0.76, 0.72), (0.82, 0.78), (0.84, 0.84), (0.90, 0.88))  # D of the weakest .40
KEPT_3_1 = (0.45, 0.55, 0.62, 0.7, 0.78)  # three grades: how much of a label is the true grade
TABLE_3_1 = {  # G, n, gold per assessor and grade, difference: (share of V_J, J known, full, ignoring V_J, raw)
    (2, 2000, 60, False): (0.52, 0.952, 0.968, 0.826, 0.937),
    (2, 20000, 60, False): (0.91, 0.950, 0.964, 0.425, 0.058),
    (3, 2000, 60, False): (0.29, 0.949, 0.957, 0.899, 0.842),
    (3, 20000, 60, False): (0.81, 0.949, 0.959, 0.591, 0.012),
    (3, 20000, 200, False): (0.56, 0.950, 0.954, 0.800, 0.013),
    (2, 20000, 60, True): (0.72, 0.952, 0.967, 0.696, 0.0),
    (3, 20000, 60, True): (0.46, 0.947, 0.960, 0.844, 0.0),
}


def matrices_3_1(n_grades: int) -> Floats:
    """Return the five assessors' true matrices."""
    if n_grades == 2:
        return np.array([[[m_n, 1 - m_n], [1 - m_r, m_r]] for m_r, m_n in TWO_GRADES])
    spread = np.array([[0.5, 0.35, 0.15], [0.3, 0.4, 0.3], [0.15, 0.35, 0.5]])
    return np.stack([kept * np.eye(3) + (1 - kept) * spread for kept in KEPT_3_1])


def run_assessors(row: tuple[int, int, int, bool], repetitions: int, seed: int) -> dict[str, Any]:
    """Return coverage with known matrices, with V_J, without it, and of raw labels."""
    n_grades, n, gold, difference = row
    rng = np.random.default_rng([seed, n_grades, n, gold, difference])
    true, gains, shares = matrices_3_1(n_grades), GAINS_3_1[n_grades], SHARES_3_1[n_grades]
    weights = WEIGHTS_3_1[0] - WEIGHTS_3_1[1] if difference else WEIGHTS_3_1[0]
    truth = float(weights @ (shares @ gains)) / 4
    hits = dict.fromkeys(("known", "full", "ignoring_V_J", "raw"), 0)
    values, errors, parts = [], [], []
    for _ in range(repetitions):
        kind, assessor = rng.integers(4, size=n), rng.integers(5, size=n)
        grade = graded(shares[kind], rng)
        label = graded(true[assessor, grade], rng)
        w = weights[kind]
        given = {"label_assessor": assessor, "label_grade": label, "gains": gains}
        audit = np.stack([np.stack([rng.multinomial(gold, row_) for row_ in one]) for one in true])
        known = matrix_inverse_with_replacement(
            w, **given, matrices=true, gold_per_grade=np.full(audit.shape[:2], 1e12)
        )
        full = matrix_inverse_with_replacement(
            w, **given, matrices=audit / gold, gold_per_grade=audit.sum(axis=2).astype(float)
        )
        assert isinstance(known, Estimate)
        if isinstance(full, Refusal):
            continue
        drawing = dict(full.components)["drawing"]
        raw = w * gains[label]
        values.append(full.value)
        errors.append(full.standard_error)
        parts.append(1 - drawing / full.standard_error**2)
        hits["known"] += covers(known.low, known.high, truth)
        hits["full"] += covers(full.low, full.high, truth)
        hits["ignoring_V_J"] += covers(*around(full.value, math.sqrt(drawing)), truth)
        hits["raw"] += covers(*around(float(raw.mean()), float(raw.std() / math.sqrt(n))), truth)
    count, (share, known_target, full_target, ignoring, raw_target) = len(values), TABLE_3_1[row]
    measured = float(np.mean(parts))
    return {
        "truth": round(truth, 4),
        "share_V_J": {"value": round(measured, 3), "printed": share},
        "sd": round(float(np.std(values)), 4),
        "mean_se": round(float(np.mean(errors)), 4),
        "known": checked(hits["known"] / count, known_target, 0.007, count),
        "full": checked(hits["full"] / count, full_target, 0.007, count),
        # what the normal distribution leaves of 95 % if a share of the variance is left out
        "ignoring_V_J": checked(
            hits["ignoring_V_J"] / count, math.erf(1.96 * math.sqrt(1 - measured) / math.sqrt(2)), 0.02, count
        )
        | {"printed": ignoring},
        "raw": {"value": round(hits["raw"] / count, 4), "printed": raw_target},
        "refused": repetitions - count,
    }


def graded(shares: Floats, rng: np.random.Generator) -> Ints:
    """Return one grade per row of shares."""
    below = rng.random(len(shares))[:, None] > np.cumsum(shares, axis=1)[:, :-1]
    return np.asarray(below.sum(axis=1))


# -- 3.4: three votes ---------------------------------------------------------------------------------------

PREVALENCE_3_4 = np.array([0.4, 0.6])
JUDGES_3_4 = np.array([[[0.9, 0.1], [0.1, 0.9]]] * 5 + [[[0.75, 0.25], [0.35, 0.65]]] * 5)
POOLED_3_4 = JUDGES_3_4.mean(axis=0)


def run_majority_exactly() -> dict[str, Any]:
    """Return means and deviations of every estimator by enumeration: the same mix of judges, and the five poor ones."""
    same = [list(triple) for triple in combinations(range(10), 3)]
    poor = [list(triple) for triple in combinations(range(5, 10), 3)]
    pooled_majority = np.mean([majority_matrix(JUDGES_3_4[triple]) for triple in same], axis=0)
    result: dict[str, Any] = {}
    for name, triples, targets in (
        ("same_mix", same, (0.5562, 0.6354, 0.6, 0.6, 0.6, 0.6)),
        ("poor_judges", poor, (0.4934, 0.5307, 0.5209, 0.6, 0.6, 0.6)),
    ):
        raw = np.mean([PREVALENCE_3_4 @ majority_matrix(JUDGES_3_4[triple])[:, 1] for triple in triples])
        scores = {
            "majority_by_its_triple": [of_majority(majority_matrix(JUDGES_3_4[t])) for t in triples],
            "mean_of_scores": [mean_scores(JUDGES_3_4[t]) for t in triples],
            # the table's weights are for equally frequent grades; with .4 and .6 the deviations are .5887 and .8103
            "least_variance_pattern": [pattern_scores(JUDGES_3_4[t], [0.5, 0.5], [0, 1]) for t in triples],
        }
        moments = {
            kind: moments_of([pattern_matrix(JUDGES_3_4[t]) for t in triples], of_triples)
            for kind, of_triples in scores.items()
        }
        values = {
            "raw_majority": float(raw),
            "majority_single_judge_matrix": corrected_value(float(raw), POOLED_3_4[1, 1], POOLED_3_4[0, 0]),
            "majority_pooled_majority_matrix": corrected_value(
                float(raw), pooled_majority[1, 1], pooled_majority[0, 0]
            ),
            **{kind: mean for kind, (mean, _) in moments.items()},
        }
        result[name] = {
            kind: checked(value, target, 6e-5)
            for (kind, value), target in zip(values.items(), targets, strict=True)
        }
        printed = (0.644, 0.696, 0.590) if name == "same_mix" else (None, 0.825, 0.814)
        for (kind, (_, sd)), target in zip(moments.items(), printed, strict=True):
            if target is not None:
                result[name][f"{kind}_sd"] = checked(sd, target, 6e-4)
    return result


def of_majority(matrix: Floats) -> Floats:
    """Return the score of each of the eight patterns of three votes, J of the majority inverted."""
    ones = np.array([bin(pattern).count("1") for pattern in range(8)])
    return np.asarray(label_scores(matrix, [0.0, 1.0])[(ones >= 2).astype(int)])


def mean_scores(matrices: Floats) -> Floats:
    """Return the mean of the judges' own scores by pattern, the last judge's vote changing fastest."""
    c = np.stack([label_scores(matrix, [0.0, 1.0]) for matrix in matrices])
    votes = np.array([[(pattern >> shift) & 1 for shift in (2, 1, 0)] for pattern in range(8)])
    return np.asarray(c[np.arange(3), votes].mean(axis=1))


def moments_of(patterns: list[Floats], scores: list[Floats]) -> tuple[float, float]:
    """Return mean and standard deviation of an item's score, over triples, grades and votes."""
    share = [PREVALENCE_3_4 @ pattern for pattern in patterns]
    mean = float(np.mean([p @ score for p, score in zip(share, scores, strict=True)]))
    square = float(np.mean([p @ score**2 for p, score in zip(share, scores, strict=True)]))
    return mean, math.sqrt(square - mean**2)


def run_majority_audited(repetitions: int, seed: int) -> dict[str, Any]:
    """Return spread and coverage of majority and of mean scores: 3,000 items, 300 gold documents, three votes each."""
    rng = np.random.default_rng([seed, 34])
    intervals: dict[str, list[tuple[float, bool]]] = {"majority": [], "mean_of_scores": []}
    for _ in range(repetitions):
        _, who, votes = three_votes(3000, rng)
        gold, gold_who, gold_votes = three_votes(300, rng)
        counts = assessor_counts(np.zeros(300, dtype=np.int64), gold, majority(gold_votes), 1, 2)[0]
        by_majority = matrix_inverse_with_replacement(
            np.ones(3000),
            label_assessor=np.zeros(3000, dtype=np.int64),
            label_grade=majority(votes),
            matrices=(counts / counts.sum(axis=1, keepdims=True))[None],
            gold_per_grade=counts.sum(axis=1)[None],
            gains=[0.0, 1.0],
        )
        table = assessor_counts(gold_who.ravel(), np.repeat(gold, 3), gold_votes.ravel(), 10, 2)
        sizes = table.sum(axis=2, keepdims=True)
        by_scores = matrix_inverse(
            np.full(3000, 1e-6 / 3),  # 3,000,000 items, drawn with probability .001
            Labels(
                np.repeat(np.arange(3000), 3),
                who.ravel(),
                votes.ravel(),
                n_items=3000,
                n_assessors=10,
                n_grades=2,
            ),
            draw_probability=np.full(3000, 1e-3),
            matrices=table / np.maximum(sizes, 1),
            gold_per_grade=sizes[:, :, 0],
            gains=[0.0, 1.0],
            prior=np.full(3000, 0.6),
            prior_total=[0.6],
        )[0]
        for name, result in (("majority", by_majority), ("mean_of_scores", by_scores)):
            if isinstance(result, Estimate):
                intervals[name].append((result.value, covers(result.low, result.high, 0.6)))
    targets = {"majority": (0.0248, 0.960), "mean_of_scores": (0.0367, 0.970)}
    return {
        name: {
            "sd": checked(
                float(np.std([value for value, _ in intervals[name]])),
                sd,
                sd * (2 / math.sqrt(2 * 400) + 2 / math.sqrt(2 * repetitions)),
            ),
            "coverage": checked(
                float(np.mean([held for _, held in intervals[name]])), coverage, 0.02, repetitions
            ),
            "refused": repetitions - len(intervals[name]),
        }
        for name, (sd, coverage) in targets.items()
    }


def three_votes(n: int, rng: np.random.Generator) -> tuple[Ints, Ints, Ints]:
    """Return true grades, and who of ten judges voted how, [item, vote]."""
    grade = (rng.random(n) < 0.6).astype(np.int64)
    who = np.argsort(rng.random((n, 10)), axis=1)[:, :3]
    votes = (rng.random((n, 3)) < JUDGES_3_4[who, grade[:, None], 1]).astype(np.int64)
    return grade, who, votes


def majority(votes: Ints) -> Ints:
    return np.asarray((votes.sum(axis=1) >= 2).astype(np.int64))
