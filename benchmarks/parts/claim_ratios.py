"""Part of benchmarks/claims.py: two runs in nDCG@10 on topics drawn anew, in one step and by the bootstrap.

Two kinds of campaigns, as the product gives numbers: 50 topics, the pool of 24 runs and 150 gold labels (one step), and
25 topics, the pool of 4 runs and 300 gold labels (bootstrap). The pair is the same in both.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from parts.claim_sums import BothClaims, Judged, Tally, judged_and_audited
from parts.coverage_collection import Floats, Ints, collection_of, make_ranks
from parts.coverage_grid import hash_of

from analytics.estimation.estimate import in_columns
from analytics.estimation.gold_prediction import predicted_gold
from analytics.estimation.graded_labels import on_stairs, stair_gains, stairs
from analytics.estimation.one_step import StairPhases, one_step, stair_phases
from analytics.estimation.one_step_limits import audit_size, refusal_by_size
from analytics.estimation.pseudolabels import corrected_pseudo_labels
from analytics.estimation.ratios import missing_for_macro, ratio_answer
from analytics.estimation.targets import TargetWeights
from analytics.estimation.topics import over_topics_of, skewness
from sampling.measures.ratio_derivative import derivative
from sampling.measures.registry import parse_ratio
from sampling.measures.sparse import SparseRuns, from_dense

N_POPULATION = 1000
BINARY = np.array([0.0, 1.0, 1.0])
NDCG = parse_ratio("nDCG@10")
RUN_A, RUN_B = 20, 10


@dataclass(frozen=True)
class Cell:
    """One kind of campaign: which runs are pooled, and how the number is made."""

    method: str  # one step, bootstrap
    runs: tuple[int, ...]
    n_topics: int
    n_audits: int

    @property
    def name(self) -> str:
        return f"nDCG@10 ({self.method})/{self.n_topics}/{self.n_audits}"

    @property
    def pair(self) -> list[int]:
        """Return the places of the pair among the pooled runs."""
        return [self.runs.index(RUN_A), self.runs.index(RUN_B)]


CELLS = (
    Cell("one step", tuple(range(24)), 50, 150),
    Cell("bootstrap", (5, RUN_B, 15, RUN_A), 25, 300),
)


@cache
def _ranks() -> tuple[Ints, Ints]:
    return make_ranks(np.random.default_rng(2), N_POPULATION)


@cache
def differences(cell: Cell) -> Floats:
    """Return every topic's true difference, with the pool of the cell's runs for what can be gained."""
    grade, rank = _ranks()
    pool = collection_of(grade, rank[list(cell.runs)], np.arange(N_POPULATION))
    at = derivative(
        NDCG,
        from_dense(pool.rank[cell.pair]),
        pool.topic,
        N_POPULATION,
        on_stairs(BINARY, pool.grade),
        stairs(BINARY).steps,
    )
    return np.asarray(at.value[0] - at.value[1])


def claims_of(cell: Cell, one: Judged, seed: int) -> BothClaims | None:
    """Return the pair by the cell's method, or None where the product gives no number."""
    frame, audit = one.frame, one.audit
    returned = from_dense(one.collection.rank[cell.pair])
    gold = [
        predicted_gold(frame, audit, reached, labels=one.labels, known=one.known)
        for reached in stair_gains(BINARY)
    ]
    items = stair_phases(frame, audit, BINARY, gold)
    if cell.method == "one step":
        if refusal_by_size(NDCG, audit_size(frame, audit, one.known.prior, 1)):
            return None
        step, n_positive = one_step(NDCG, items, returned), _n_positive(one)
        return BothClaims(step.estimates, over_topics_of(*_by_topic(returned, step.topic_values)), n_positive)
    return _by_bootstrap(one, items, returned, seed)


def _by_bootstrap(one: Judged, items: StairPhases, returned: SparseRuns, seed: int) -> BothClaims | None:
    labels = corrected_pseudo_labels(
        one.frame, one.audit, BINARY, prediction=items.steps @ items.prediction, after=items.after
    )
    if missing_for_macro(labels):
        return None
    found = ratio_answer(NDCG, labels, returned.dense().astype(np.int64), seed=seed)
    if found.topic_values is None:
        return None
    over = over_topics_of(*_by_topic(returned, found.topic_values))
    return BothClaims(in_columns(found.results), over, _n_positive(one))


def _n_positive(one: Judged) -> int:
    return int((one.audit.audited & (BINARY[one.audit.gold_grade] > 0)).sum())


def _by_topic(returned: SparseRuns, values: Floats) -> tuple[TargetWeights, Floats, tuple[str, ...]]:
    return TargetWeights(returned), values / values.shape[1], ("topics",)


def run_cell(cell: Cell, campaigns: int, seed: int) -> dict[str, Any]:
    """Return the summary of a cell's campaigns."""
    grade, rank = _ranks()
    truth = differences(cell)
    rng = np.random.default_rng([seed, hash_of(cell.name)])
    tally = Tally(float(truth.mean()), float(truth.var()), cell.n_topics)
    for number in range(campaigns):
        topics = rng.integers(N_POPULATION, size=cell.n_topics)
        collection = collection_of(grade, rank[list(cell.runs)], topics)
        found = claims_of(cell, judged_and_audited(collection, cell.n_topics, cell.n_audits, rng), number)
        if found is None:
            tally.refused += 1
        else:
            tally.add(found)
    return {**tally.summary(), "skewness": round(skewness(truth), 2)}
