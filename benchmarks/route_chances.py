"""Why are the two routes of benchmarks/chain.py --routes as wide as they are? Pure functions, seeded; JSON.

    python benchmarks/route_chances.py [--seed 1] [--repetitions 60] [--gold 200]

The same collection and machine as there. Every repetition chooses gold labels for a pair of runs in several ways, and
prints each way's mean half-width over that of the route by score, and how often it covered the truth:

- "score": the draw with the machine's labels as scores, judged by experts;
- "score's chances": an audit of the machine's judgments of the whole pool, with the chances of that draw;
- "influence, .2" and ".05": one audit by influence, so much of it spread evenly;
- "influence, .2, learned" and ".05, learned": half of it, and then as much that learned from it;
- "assumed doubt, learned": the first half by influence times the doubt that a score leaves whose error rates are the
  product's assumption, .05 spread evenly.
"""

import argparse
import json
import os
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "platform"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from parts.synthetic import GAINS, POOL_DEPTH, Floats, make_population
from parts.two_routes import MEASURE, machine_grades

from analytics.estimation.gold_prediction import Foreknowledge, GoldPrediction, predicted_gold
from analytics.estimation.samples import AuditSample, Frame, Labels
from analytics.estimation.two_phase import two_phase
from sampling.audit_plan import Auditable
from sampling.designs import inclusion_probabilities, normalise
from sampling.judged import Judged, question_influence
from sampling.measures.families import weights_of_runs
from sampling.measures.registry import parse_linear
from sampling.measures.sparse import from_dense
from sampling.prediction import FEATURE_RIDGE, N_FOLDS, cross_fitted, posterior_prior, rank_features
from sampling.questions import Design, default_sizes, importance, prior_of_runs
from sampling.strategies import strategy_probabilities

SCORE_RIDGE = 1.0  # analytics/numbers/predictions.py
MEASURES = {MEASURE: GAINS, "P@10": (GAINS > 0).astype(float)}


class Pool:
    """The whole pool with the machine's labels, and what is known before gold."""

    def __init__(self, seed: int) -> None:
        population = make_population(np.random.default_rng(seed))
        pooled = population.share > 0
        self.grade = population.grade[pooled]
        self.machine = machine_grades(population, "popularity", seed)[pooled]
        self.returned = from_dense(population.rank[:, pooled])
        self.topics, self.topic = np.unique(np.array(population.topic_ids)[pooled], return_inverse=True)
        self.size = self.grade.size
        prior = prior_of_runs(self.returned, POOL_DEPTH)
        features = rank_features(self.returned, POOL_DEPTH)
        fold = np.random.default_rng(3).integers(0, N_FOLDS, self.size)
        ridge = np.full(features.shape[1], FEATURE_RIDGE)
        self.known = Foreknowledge(features, ridge, fold, prior)
        self.with_score = np.column_stack([features, self.machine / 3, np.zeros(self.size)])
        self.score_ridge = np.concatenate([ridge, [SCORE_RIDGE, FEATURE_RIDGE]])
        assumed = Design("pair", ("a", "b"), MEASURE, POOL_DEPTH, 1)
        self.doubtful = posterior_prior(
            prior, self.machine / 3, sensitivity=assumed.sensitivity, specificity=assumed.specificity
        )
        self.labels = Labels(
            np.arange(self.size),
            np.zeros(self.size, dtype=np.int64),
            self.machine,
            n_items=self.size,
            n_assessors=1,
            n_grades=GAINS.size,
        )
        self.weights = {
            name: weights_of_runs(parse_linear(name), self.returned, self.topics.size) for name in MEASURES
        }

    def judged(self, influence: Floats, gold_spread: Floats | None = None) -> Judged:
        ones, nothing = np.ones(self.size), np.zeros(self.size, dtype=np.int64)
        return Judged(
            influence,
            ones,
            nothing,
            self.machine,
            np.zeros(self.size),
            GAINS.size,
            self.known.fold,
            gold_spread,
        )

    def predicted(self, chance: Floats, number: Floats, gains: Floats) -> GoldPrediction:
        ones = np.ones(self.size)
        frame = Frame(self.topics.size, self.topic, np.arange(self.size), ones)
        audit = AuditSample(ones, self.machine, number < chance, self.grade, chance, GAINS.size)
        return predicted_gold(frame, audit, gains, labels=self.labels, known=self.known)


class Pair:
    """One repetition: a pair of runs, and the permanent numbers of its draw and of its audits."""

    def __init__(self, pool: Pool, runs: tuple[int, int], gold: int, rng: np.random.Generator) -> None:
        self.pool, self.runs, self.gold = pool, runs, gold
        self.drawing, self.auditing = rng.uniform(1e-12, 1, (2, pool.size))
        self.influence = question_influence(pool.weights[MEASURE].rows(list(runs)), np.ones(pool.size))

    def weight(self, measure: str) -> Floats:
        """Return by item how much it counts for the difference of the pair."""
        first, second = (self.pool.weights[measure].row(run) for run in self.runs)
        return np.asarray(first - second)

    def chances_by_score(self) -> Floats:
        says = importance(
            "pair", parse_linear(MEASURE), self.pool.returned, list(self.runs), self.pool.topics.size
        )
        design = Design("pair", ("a", "b"), MEASURE, POOL_DEPTH, self.gold, prior="scores", scores="machine")
        return inclusion_probabilities(default_sizes(design, says, self.pool.doubtful), self.gold)

    def chances(self) -> dict[str, Floats]:
        """Return the chances of an audit by its way."""
        pool, half, found = self.pool, self.gold / 2, {"score's chances": self.chances_by_score()}
        doubt = np.sqrt(pool.doubtful * (1 - pool.doubtful))
        first = {"assumed doubt": 0.05 * half / pool.size + 0.95 * half * normalise(self.influence * doubt)}
        for even in (0.2, 0.05):
            given: dict[str, Any] = {"even_share": even}
            judged = pool.judged(self.influence)
            name = f"influence, {even}"
            found[name] = strategy_probabilities("influence", judged, expected_count=self.gold, **given)
            first[name] = strategy_probabilities("influence", judged, expected_count=half, **given)
        first["assumed doubt"] = inclusion_probabilities(first["assumed doubt"], half)
        for name, earlier in first.items():
            spread = pool.predicted(earlier, self.auditing, GAINS).spread
            auditable = Auditable(pool.judged(self.influence, spread), earlier)
            found[f"{name}, learned"] = auditable.probabilities("learned", half)
        return found

    def drawn(self, measure: str) -> tuple[float, bool]:
        """Return half-width and coverage of the route by score."""
        pool, gains, weight = self.pool, MEASURES[measure], self.weight(measure)
        pi = self.chances_by_score()
        seen = np.flatnonzero(self.drawing < pi)
        gold, ones, none = gains[pool.grade], np.ones(seen.size), np.zeros(seen.size)
        g = gains.max() * cross_fitted(
            features=pool.with_score,
            topic_index=pool.topic,
            fold=pool.known.fold,
            prior=pool.known.prior,
            labelled=seen,
            label=gold[seen] / gains.max(),
            feature_ridge=pool.score_ridge,
        )
        known = (pi[seen], ones > 0, gold[seen], ones, g[seen], gold[seen], none)
        return self._told(measure, weight[seen], known, float(weight @ g))

    def audited(self, measure: str, chance: Floats) -> tuple[float, bool]:
        """Return half-width and coverage of an audit of the whole pool."""
        pool, gains = self.pool, MEASURES[measure]
        found = pool.predicted(chance, self.auditing, gains)
        ones, none = np.ones(pool.size), np.zeros(pool.size)
        seen = self.auditing < chance
        known = (ones, seen, gains[pool.grade], chance, none, found.after, found.spread)
        return self._told(measure, self.weight(measure), known, 0.0)

    def _told(self, measure: str, weight: Floats, known: tuple[Any, ...], total: float) -> tuple[float, bool]:
        names = ("draw_probability", "audited", "gold", "audit_probability", "before", "after", "spread")
        given = dict(zip(names, known, strict=True))
        found = two_phase(weight[None], **given, before_total=np.array([total])).estimates
        truth = self.weight(measure) @ MEASURES[measure][self.pool.grade]
        low, high = float(found.low[0]), float(found.high[0])
        return (high - low) / 2, low <= truth <= high


def compared(seed: int, repetitions: int, gold: int) -> dict[str, Any]:
    """Return by measure and way the ratio of mean half-widths to the route by score, and the coverage."""
    pool = Pool(seed)
    n_runs = pool.returned.n_runs
    pairs = [(a, b) for a in range(n_runs) for b in range(a + 1, n_runs)]
    told: dict[str, dict[str, list[tuple[float, bool]]]] = {name: defaultdict(list) for name in MEASURES}
    for number in range(repetitions):
        pair = Pair(pool, pairs[number % len(pairs)], gold, np.random.default_rng([seed, number]))
        chances = pair.chances()
        for measure, ways in told.items():
            ways["score"].append(pair.drawn(measure))
            for way, chance in chances.items():
                ways[way].append(pair.audited(measure, chance))
    result: dict[str, Any] = {}
    for measure, ways in told.items():
        widths = {way: float(np.nanmean([width for width, _ in rows])) for way, rows in ways.items()}
        result[measure] = {
            way: {
                "width_over_score": round(width / widths["score"], 3),
                "coverage": round(float(np.mean([covered for _, covered in ways[way]])), 3),
            }
            for way, width in widths.items()
        }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repetitions", type=int, default=60)
    parser.add_argument("--gold", type=int, default=200)
    options = parser.parse_args()
    if min(options.repetitions, options.gold) < 1:
        parser.error("--repetitions and --gold must be at least 1")
    facts = {"seed": options.seed, "repetitions": options.repetitions, "gold": options.gold}
    print(json.dumps({**facts, **compared(options.seed, options.repetitions, options.gold)}, indent=1))


if __name__ == "__main__":
    main()
