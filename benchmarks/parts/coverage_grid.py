"""Parts of benchmarks/coverage.py: what campaigns of the grid are made of, and the tally of their intervals.

And the guard: the papers' matrix inverse must come out bad under errors that depend on popularity, and good once the
labels are shuffled inside gold grades; else this simulation could not tell a right interval from a wrong one.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from parts.coverage_collection import (
    GAINS,
    N_ASSESSORS,
    N_GRADES,
    N_RUNS,
    N_TOPICS,
    Collection,
    Floats,
    Labels,
    collection_of,
    judge,
    make_collection,
    make_ranks,
)

from analytics.estimation import samples
from analytics.estimation.confusion import assessor_counts
from analytics.estimation.estimate import Estimates
from analytics.estimation.samples import AuditSample
from analytics.papers.inverse import matrix_inverse
from experiments.papers.correction import greg_label_by_topic
from experiments.papers.designs import ranking_design
from sampling.designs import average_run_design, inclusion_probabilities, mixture, uniform_design
from sampling.draws import poisson_draw
from sampling.judged import Judged, question_influence
from sampling.measures.sparse import from_dense
from sampling.strategies import strategy_probabilities

Bools = NDArray[np.bool_]

DRAWN = 1300  # items expected of a draw for a ranking


@dataclass(frozen=True)
class Cell:
    """One kind of campaign."""

    item_design: str  # whole, drawn
    audit_design: str  # simple, influence
    n_audits: int
    noise: str
    votes: int
    assignment: str  # random, not_random

    @property
    def name(self) -> str:
        parts = (self.item_design, self.audit_design, self.n_audits, self.noise, self.votes, self.assignment)
        return "/".join(str(part) for part in parts)


# -- one campaign -------------------------------------------------------------------------------------------


def draw_probabilities(collection: Collection) -> Floats:
    """Return the default design for a ranking: contrast times doubt, 5 % for other runs and 1 % for all items.

    The doubt is the same everywhere here: nothing was known of relevance before judging.
    """
    prior = np.full(collection.grade.size, 0.3)
    own = ranking_design(collection.runs, np.sqrt(prior * (1 - prior)))
    others = [average_run_design(collection.runs), uniform_design(prior.size)]
    return inclusion_probabilities(mixture(own, others, [0.05, 0.01]), DRAWN)


def chosen(probability: Floats, rng: np.random.Generator) -> Bools:
    """Return a Poisson draw as a mask."""
    taken = np.zeros(probability.size, dtype=bool)
    taken[poisson_draw(probability, rng.uniform(1e-12, 1, probability.size))] = True
    return taken


def audit_design(cell: Cell, runs: Floats, drawn: Floats) -> Floats:
    """Return the audit probabilities of the judged items."""
    nothing = np.zeros(drawn.size, dtype=np.int64)  # neither design goes by topics, grades or expected errors
    influence = question_influence(from_dense(runs), drawn)
    judged = Judged(influence, drawn, nothing, nothing, np.zeros(drawn.size), n_grades=1)
    strategy = "simple" if cell.audit_design == "simple" else "influence"
    return strategy_probabilities(strategy, judged, expected_count=cell.n_audits)


# -- tallies ------------------------------------------------------------------------------------------------


class Tally:
    """Counts over repetitions, target by target: the systems first, then the pairs."""

    def __init__(self, truth: Floats) -> None:
        self.truth = truth
        self.rows: list[Floats] = []

    def add(self, estimates: Estimates) -> None:
        row = np.stack([estimates.low, estimates.high, estimates.value, estimates.standard_error], axis=1)
        row[list(estimates.refusals)] = np.nan
        self.rows.append(row)

    def summary(self, n_singles: int = N_RUNS) -> dict[str, Any]:
        """Return coverage of systems and pairs, wrong signs, bias in standard errors, and refusals."""
        low, high, value, error = np.moveaxis(np.stack(self.rows), 2, 0)
        given = np.isfinite(low)
        inside = (low <= self.truth) & (self.truth <= high) & given
        count = np.maximum(1, given.sum(axis=0))
        covered = inside.sum(axis=0) / count
        wrong = ((low > 0) & (self.truth < 0)) | ((high < 0) & (self.truth > 0))
        z = np.where(given, (value - self.truth) / np.where(error > 0, error, 1.0), 0.0)
        of_pair = np.arange(self.truth.size) >= n_singles
        pairs, singles = (_ever_given(given, part) for part in (of_pair, ~of_pair))
        by_repetition = inside[:, pairs].sum(axis=1) / np.maximum(1, given[:, pairs].sum(axis=1))
        spread = by_repetition.std(ddof=1) if len(self.rows) > 1 else 0.0
        return {
            "repetitions": len(self.rows),
            "pairs": round(float(covered[pairs].mean()), 4),
            "pairs_se": round(float(spread / np.sqrt(len(self.rows))), 4),
            "pairs_5th_percentile": round(true_quantile(covered[pairs], count[pairs]), 4),
            "pairs_5th_percentile_seen": round(float(np.quantile(covered[pairs], 0.05)), 4),
            "singles": round(float(covered[singles].mean()), 4),
            "wrong_sign_significant": round(float(wrong[:, pairs].sum() / max(1, given[:, pairs].sum())), 5),
            "pairs_mean_error_in_se": round(float(z[:, pairs].sum() / max(1, given[:, pairs].sum())), 3),
            "mean_half_width": round(float(np.nanmean(((high - low) / 2)[:, pairs])), 4)
            if given.any()
            else None,
            "refused": round(float(1 - given.mean()), 4),
        }


def _ever_given(given: Bools, part: Bools) -> NDArray[np.int64]:
    """Return the places of a part's targets; without those that are never given, such as two runs that are the same."""
    ever = np.flatnonzero(part & given.any(axis=0))
    return ever if ever.size else np.flatnonzero(part)


def true_quantile(covered: Floats, count: NDArray[np.int64]) -> float:
    """Return the 5th percentile over pairs of the true coverage, without what so many repetitions scatter it by.

    500 repetitions scatter a share of .95 by .01, and the lowest of 100 such shares look bad by chance. Deviations
    from the mean are shrunk so that their variance is the observed one less the binomial.
    """
    centre, spread = float(covered.mean()), float(covered.var())
    scatter = float((covered * (1 - covered) / count).mean())
    kept = np.sqrt(max(0.0, spread - scatter) / spread) if spread > 0 else 0.0
    return float(np.quantile(centre + kept * (covered - centre), 0.05))


def hash_of(name: str) -> int:
    """Return a number that depends on the name alone, the same in every process."""
    return int.from_bytes(name.encode(), "little") % (2**61 - 1)


# -- the guard ----------------------------------------------------------------------------------------------


def run_guard(noise: str, votes: int, n_audits: int, repetitions: int, seed: int) -> dict[str, Any]:
    """Return coverage of the matrix inverse, whole and without V_J or label noise: whole pool, simple audit.

    docs/methods/derivations/real-judges.md, sections 1.2 and 4.4.
    """
    collection = make_collection(1)
    truth = collection.truth
    rng = np.random.default_rng([seed, hash_of(f"{noise}/{votes}/{n_audits}")])
    tallies = {name: Tally(truth) for name in ("matrix_inverse", "without_V_J", "without_label_noise")}
    slopes = []
    for _ in range(repetitions):
        inverse = inverse_of(collection, noise, votes, n_audits, rng)
        tallies["matrix_inverse"].add(inverse)
        tallies["without_V_J"].add(without(inverse, "confusion matrices"))
        tallies["without_label_noise"].add(without(inverse, "label noise"))
        if not inverse.refusals:
            slopes.append(float(np.polyfit(truth[N_RUNS:], inverse.value[N_RUNS:], 1)[0]))
    summaries: dict[str, Any] = {name: tally.summary() for name, tally in tallies.items()}
    summaries["slope_of_differences"] = round(float(np.mean(slopes)), 3) if slopes else None
    return {**summaries, "holds": guard_holds(noise, votes, n_audits, summaries)}


def guard_holds(noise: str, votes: int, n_audits: int, summary: dict[str, Any]) -> dict[str, bool]:
    """Return whether what must fail fails. At 100 many matrices are refused: nothing is asked of the rest.

    One label an item brings so much noise that the interval holds half of the pairs, bias and all; three make it what
    it is for real judges. Shuffled, the three labels of an item still agree too well for the inverse's noise term.
    """
    pairs = {name: summary[name]["pairs"] for name in ("matrix_inverse", "without_label_noise")}
    if n_audits < 300:
        return {}
    if noise == "popularity":
        least, most = (0.28, 0.42) if votes == 3 else (0.40, 0.65)
        return {"inverse_fails": least <= pairs["matrix_inverse"] <= most}
    return {
        "inverse_holds": (0.93 if votes == 1 else 0.90) <= pairs["matrix_inverse"] <= 0.985,
        "fails_without_label_noise": pairs["without_label_noise"] < 0.6,
        **({"fails_without_V_J": summary["without_V_J"]["singles"] < 0.85} if n_audits == 300 else {}),
    }


def inverse_of(
    collection: Collection, noise: str, votes: int, n_audits: int, rng: np.random.Generator
) -> Estimates:
    """Return the matrix inverse of every target, one pooled matrix from a simple random audit of the same pool."""
    labels = judge(collection, noise, votes, random_assignment=True, rng=rng)
    n = collection.grade.size
    counts = audited_counts(collection, labels, chosen(np.full(n, min(1.0, n_audits / n)), rng), 1)
    rows = counts.sum(axis=2, keepdims=True)
    return matrix_inverse(
        collection.targets,
        labels_of(labels, n),
        draw_probability=np.ones(n),
        matrices=counts / np.where(rows > 0, rows, 1),
        gold_per_grade=rows[:, :, 0],
        gains=GAINS,
        rng=rng,
    )


def labels_of(labels: Labels, n_items: int) -> samples.Labels:
    """Return the labels as if one assessor had given all of them."""
    return samples.Labels(
        labels.item,
        np.zeros(labels.item.size, dtype=np.int64),
        labels.given,
        n_items=n_items,
        n_assessors=1,
        n_grades=N_GRADES,
    )


def audited_counts(collection: Collection, labels: Labels, audited: Bools, n_assessors: int) -> Floats:
    """Return counts[assessor, true, given] of the audited items' labels; one assessor: all together."""
    mine = audited[labels.item]
    who = labels.assessor[mine] if n_assessors == N_ASSESSORS else np.zeros(int(mine.sum()), dtype=np.int64)
    return assessor_counts(
        who, collection.grade[labels.item[mine]], labels.given[mine], n_assessors, N_GRADES
    )


def without(results: Estimates, part: str) -> Estimates:
    """Return the normal intervals that leave one source of error out."""
    kept = [variance for name, variance in results.components.items() if name != part]
    error = (
        np.sqrt(np.sum(kept, axis=0)) if kept else results.standard_error
    )  # no parts where all are refused
    return replace(
        results, low=results.value - 1.96 * error, high=results.value + 1.96 * error, standard_error=error
    )


# -- topics as a sample -------------------------------------------------------------------------------------


def run_topics(design: str, n_audits: int, repetitions: int, seed: int) -> dict[str, Any]:
    """Return coverage of the (paired) t over topics of the mean over 2,000 topics, 50 of them new every time."""
    rng = np.random.default_rng([seed, n_audits, design == "simple"])
    grade, rank = make_ranks(np.random.default_rng(2), 2000)
    whole = collection_of(grade, rank, np.arange(2000))
    tally = Tally(whole.truth)
    cell = Cell("whole", design, n_audits, "popularity", 1, "random")
    for _ in range(repetitions):
        sample = collection_of(grade, rank, rng.integers(2000, size=N_TOPICS))
        labels = judge(sample, "popularity", 1, random_assignment=True, rng=rng)
        n = sample.grade.size
        audit_pi = audit_design(cell, sample.runs, np.ones(n))
        audit = AuditSample(
            draw_probability=np.ones(n),
            bronze_class=labels_of(labels, n).classes(),
            audited=chosen(audit_pi, rng),
            gold_grade=sample.grade,
            audit_probability=audit_pi,
            n_grades=N_GRADES,
        )
        tally.add(
            greg_label_by_topic(sample.targets, audit, GAINS, topic_index=sample.topic, n_topics=N_TOPICS)
        )
    summary = tally.summary()
    return {**summary, "holds": {"pairs": 0.93 <= summary["pairs"] <= 0.96}}
