"""What a design achieves with some judgments on a pool whose truth is known: exact variances, and single draws."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product

import numpy as np
from parts.popular_judges import GOLD_ELSEWHERE, calibrated, calibration, popular_judge
from parts.trec_like import Floats, Ints, JudgedPool

from analytics.estimation.estimate import Estimate
from analytics.estimation.estimators import difference_estimator
from experiments.papers.designs import naive_design, pair_design
from experiments.papers.forecasts import design_variance, poisson_variance
from sampling.batches import learned_sizes, probabilities_by_fold
from sampling.components import (
    ComponentPrediction,
    RunComponents,
    cross_fitted_with_components,
    run_components,
)
from sampling.contrasts import Importance, default_sizes
from sampling.designs import average_run_design, inclusion_probabilities
from sampling.expert_pools import prior_of_experts
from sampling.forecasts import draws_for_distinct
from sampling.measures.sparse import from_dense
from sampling.pooling import prior_utility
from sampling.prediction import FEATURE_RIDGE, N_FOLDS, cross_fitted, posterior_prior, rank_features
from sampling.questions import Design, prior_of_runs
from sampling.score_calibration import Calibration

GOOD = (0.75, 0.95)  # sensitivity and specificity of a machine judge
POOR = (0.5, 0.7)
CAUTIOUS = (0.65, 0.85)  # what is assumed of a judge of whom .75 and .95 are believed
JUDGE_RIDGE = 1.0
# Plans whose scores gold of another pool calibrates: the judge, and the gold labels there.
CALIBRATED = {
    **{f"machine judge by popularity, calibrated on {n:,}": ("popular_judge", n) for n in GOLD_ELSEWHERE},
    "poor machine judge, calibrated on 300": ("poor_judge", 300),
}


@dataclass(frozen=True)
class PriorModel:
    """What is known of every item before any label."""

    prior: Floats
    features: Floats
    ridge: Floats


@dataclass(frozen=True)
class KnownPool:
    """A pool with what its runs, and three simulated machine judges, say before any label.

    `calibrations` are of the fields of judges on another pool, by the gold labels there; none without another pool.
    """

    pool: JudgedPool
    judge: Floats  # a machine's labels, 0 or 1
    poor_judge: Floats
    popular_judge: Floats
    calibrations: dict[tuple[str, int], Calibration]

    @cached_property
    def all_runs(self) -> PriorModel:
        """The product's prior and features."""
        ranks, depth = self.pool.ranks, self.pool.depth
        return with_features(prior_of_runs(ranks, depth), rank_features(ranks, depth))

    @cached_property
    def all_runs_as_in_the_paper(self) -> PriorModel:
        """The same, but an item that a run does not return counts as rank depth + 1."""
        return with_features(prior_utility(self.pool.ranks, self.pool.depth), self.all_runs.features)

    @cached_property
    def experts(self) -> PriorModel:
        """The consensus of the runs, with the same mean in every topic as the product's prior."""
        ranks = self.all_runs
        prior = prior_of_experts(from_dense(self.pool.ranks), self.pool.topic_index, ranks.prior)
        return with_features(prior, ranks.features)

    @cached_property
    def judged(self) -> PriorModel:
        return self._with(self.judge, GOOD)

    @cached_property
    def judged_cautiously(self) -> PriorModel:
        return self._with(self.judge, CAUTIOUS)

    @cached_property
    def judged_poorly(self) -> PriorModel:
        return self._with(self.poor_judge, GOOD)

    @cached_property
    def judged_poorly_and_cautiously(self) -> PriorModel:
        return self._with(self.poor_judge, CAUTIOUS)

    @cached_property
    def judged_by_popularity(self) -> PriorModel:
        return self._with(self.popular_judge, CAUTIOUS)

    def calibrated_elsewhere(self, judge: str, n_gold: int) -> PriorModel:
        """The labels of the judge in that field, as so many gold labels of another pool read them."""
        if (judge, n_gold) not in self._calibrated:
            labels = getattr(self, judge)
            prior = calibrated(self.pool, labels, self.calibrations[judge, n_gold])
            self._calibrated[judge, n_gold] = self._with_prior(prior, labels)
        return self._calibrated[judge, n_gold]

    @cached_property
    def _calibrated(self) -> dict[tuple[str, int], PriorModel]:
        return {}

    def _with(self, labels: Floats, assumed: tuple[float, float]) -> PriorModel:
        prior = self.all_runs.prior
        return self._with_prior(
            posterior_prior(prior, labels, sensitivity=assumed[0], specificity=assumed[1]), labels
        )

    def _with_prior(self, prior: Floats, labels: Floats) -> PriorModel:
        ranks = self.all_runs
        features = np.column_stack([ranks.features, labels])
        return PriorModel(prior, features, np.append(ranks.ridge, JUDGE_RIDGE))

    @cached_property
    def components(self) -> RunComponents:
        return run_components(self.pool.ranks)

    @cached_property
    def average_run(self) -> Floats:
        return average_run_design(self.pool.weights)


def with_features(prior: Floats, features: Floats) -> PriorModel:
    """Return a prior model whose features all have the usual ridge."""
    return PriorModel(prior, features, np.full(features.shape[1], FEATURE_RIDGE))


def known(pools: list[JudgedPool], seed: int) -> list[KnownPool]:
    """Return the pools with three machine judges each.

    The errors of two are independent of everything else, those of the third follow popularity. With two pools the
    gold of each calibrates the judges for the other.
    """
    rng, others = np.random.default_rng([seed, 7]), np.random.default_rng([seed, 8])
    labels = [_labels_of_two(pool, rng) for pool in pools]
    judges = [(*two, popular_judge(pool, others)) for two, pool in zip(labels, pools, strict=True)]
    fits: list[dict[tuple[str, int], Calibration]] = [{} for _ in pools]
    for (judge, n), place in product(CALIBRATED.values(), range(2 if len(pools) == 2 else 0)):
        given = judges[place][("judge", "poor_judge", "popular_judge").index(judge)]
        fits[1 - place][judge, n] = calibration(pools[place], given, n, others)
    return [
        KnownPool(pool, *three, calibrations=fit)
        for pool, three, fit in zip(pools, judges, fits, strict=True)
    ]


def _labels_of_two(pool: JudgedPool, rng: np.random.Generator) -> list[Floats]:
    luck = rng.random((2, pool.relevant.size))
    return [
        np.where(numbers < np.where(pool.relevant > 0, *rate), pool.relevant, 1.0 - pool.relevant)
        for numbers, rate in zip(luck, (GOOD, POOR), strict=True)
    ]


@dataclass(frozen=True)
class Pair:
    """The difference of two runs of a pool (or one run alone)."""

    known: KnownPool
    first: int
    second: int | None

    @cached_property
    def g(self) -> Floats:
        weights = self.known.pool.weights
        alone = weights[self.first]
        return np.asarray(alone if self.second is None else alone - weights[self.second])

    @cached_property
    def own_ranks(self) -> Ints:
        return self.known.pool.ranks[[self.first, self.second]]

    @cached_property
    def own_prior(self) -> PriorModel:
        """The paper's prior, from the two compared runs only, with features of these two."""
        depth = self.known.pool.depth
        return with_features(prior_utility(self.own_ranks, depth), rank_features(self.own_ranks, depth))

    @cached_property
    def says(self) -> Importance:
        return Importance(np.square(self.g), np.abs(self.g), self.known.average_run)

    @property
    def truth(self) -> float:
        return float((self.g * self.known.pool.relevant).sum())

    @cached_property
    def support(self) -> int:
        return int(np.count_nonzero(self.g))

    def with_replacement(self, naive: bool, distinct: float) -> float:
        """Return the exact variance of the paper's Q* (or of the naive design) at a number of distinct judgments."""
        both = self.known.pool.weights[[self.first, self.second]]
        prior = self.own_prior.prior
        q = naive_design(both, prior) if naive else pair_design(both[0], both[1], prior)
        return design_variance(q, self.known.pool.relevant, self.g) / draws_for_distinct(q, distinct)

    def horvitz_thompson(self, count: float) -> float:
        """Return the exact Poisson variance with the sizes of Q*."""
        pi = inclusion_probabilities(np.abs(self.g) * self.own_prior.prior, count)
        return float(poisson_variance(pi, self.g, self.known.pool.relevant**2))

    def raw_difference(self, count: float) -> float:
        """Return the exact Poisson variance of the difference estimator whose prediction is the paper's prior."""
        p = self.own_prior.prior
        pi = inclusion_probabilities(np.abs(self.g) * np.sqrt(p * (1 - p)), count)
        return float(poisson_variance(pi, self.g, (self.known.pool.relevant - p) ** 2))


@dataclass(frozen=True)
class Plan:
    """The product's default design, with variations.

    Attributes
    ----------
    prior : callable
        What is known of the items, from the pair.
    other_runs, uniform : float
        Shares of the average of all runs and of the uniform design.
    two_batches : bool
        Half the budget as planned, the rest with sizes learned from its labels; predictions from the first half's.
    topic_ridge : float
    components : bool
        Components of the runs among the features, as many as the labels choose.
    refitted : bool
        Predictions from the labels of both batches.
    all_labels : bool
        Sizes and predictions from the truth of the whole pair: not attainable, a bound.
    """

    prior: Callable[[Pair], PriorModel]
    other_runs: float = 0.0
    uniform: float = 0.0
    two_batches: bool = False
    topic_ridge: float = 1.0
    components: bool = False
    refitted: bool = False
    all_labels: bool = False

    @property
    def design(self) -> Design:
        return Design(
            "pair",
            ("a", "b"),
            "DCG(dcg='ln')@100",
            depth=100,
            budget=1,
            other_runs_share=self.other_runs,
            uniform_share=self.uniform,
        )


@dataclass(frozen=True)
class Realised:
    """One draw: probabilities, drawn items, and predictions for the whole frame."""

    pi: Floats
    drawn: Ints
    prediction: Floats
    n_components: tuple[int, ...] = ()  # of every fold

    def variance(self, pair: Pair) -> float:
        """Return sum of (1 - pi)/pi g^2 (u - f)^2 over the frame, f as it came out."""
        return float(poisson_variance(self.pi, pair.g, (pair.known.pool.relevant - self.prediction) ** 2))

    def estimate(self, pair: Pair) -> Estimate:
        used = self.drawn[pair.g[self.drawn] != 0.0]
        result = difference_estimator(
            pair.g[used],
            pair.known.pool.relevant[used],
            self.pi[used],
            prior=self.prediction[used],
            prior_total=(pair.g * self.prediction).sum(),
            fewest=2,
        )[0]
        assert isinstance(result, Estimate)
        return result


def realised(
    plan: Plan, pair: Pair, count: float, rng: np.random.Generator, *, n_folds: int = N_FOLDS
) -> Realised:
    """Return one draw of about `count` judgments, with predictions from its labels."""
    pool, model, design = pair.known.pool, plan.prior(pair), plan.design
    numbers = rng.random(pool.relevant.size)
    fold = rng.integers(0, n_folds, pool.relevant.size)

    def predicted(items: Ints) -> ComponentPrediction:
        known = {
            "features": model.features,
            "topic_index": pool.topic_index,
            "fold": fold,
            "prior": model.prior,
            "labelled": items,
            "label": pool.relevant[items],
            "feature_ridge": model.ridge,
            "topic_ridge": plan.topic_ridge,
        }
        if plan.components:
            return cross_fitted_with_components(components=pair.known.components, **known)
        return ComponentPrediction(cross_fitted(**known), np.zeros(n_folds, dtype=np.int64))

    if plan.all_labels:
        f = predicted(np.flatnonzero(pair.g)).share
        pi = inclusion_probabilities(default_sizes(design, pair.says, f), count)
        return Realised(pi, np.flatnonzero(numbers < pi), f)
    sizes = default_sizes(design, pair.says, model.prior)
    pi = inclusion_probabilities(sizes, count / 2 if plan.two_batches else count)
    drawn = np.flatnonzero(numbers < pi)
    found = predicted(drawn)
    if plan.two_batches:
        learned = learned_sizes(design, pair.says, prior=model.prior, learned=found.share, fold=fold)
        before = {"unlearned": pi, "earlier": pi, "frame_sizes": sizes}
        pi = probabilities_by_fold(learned, fold, **before, expected_count=count)
        drawn = np.flatnonzero(numbers < pi)
        if plan.refitted:
            found = predicted(drawn)
    return Realised(pi, drawn, found.share, tuple(found.n_components.tolist()))


def _calibrated_elsewhere(judge: str, n_gold: int, pair: Pair) -> PriorModel:
    return pair.known.calibrated_elsewhere(judge, n_gold)


PLANS = {
    "pair's ranks only": Plan(lambda pair: pair.own_prior),
    "all runs, unreturned = depth + 1": Plan(lambda pair: pair.known.all_runs_as_in_the_paper),
    "default without topic intercepts, no mixture": Plan(lambda pair: pair.known.all_runs, topic_ridge=1e9),
    "default, no mixture": Plan(lambda pair: pair.known.all_runs),
    "default, 5 % other runs, 1 % uniform": Plan(lambda pair: pair.known.all_runs, 0.05, 0.01),
    "default, 15 % other runs, 5 % uniform": Plan(lambda pair: pair.known.all_runs, 0.15, 0.05),
    "two batches, no mixture": Plan(lambda pair: pair.known.all_runs, two_batches=True),
    "two batches, refitted, no mixture": Plan(
        lambda pair: pair.known.all_runs, two_batches=True, refitted=True
    ),
    "components, no mixture": Plan(lambda pair: pair.known.all_runs, components=True),
    "components, 5 % other runs, 1 % uniform": Plan(
        lambda pair: pair.known.all_runs, 0.05, 0.01, components=True
    ),
    "components, two batches, no mixture": Plan(
        lambda pair: pair.known.all_runs, two_batches=True, components=True
    ),
    "components, two batches, refitted, no mixture": Plan(
        lambda pair: pair.known.all_runs, two_batches=True, components=True, refitted=True
    ),
    "components, two batches, 5 % and 1 %": Plan(
        lambda pair: pair.known.all_runs, 0.05, 0.01, two_batches=True, components=True
    ),
    "components, two batches, refitted, 5 % and 1 %": Plan(
        lambda pair: pair.known.all_runs, 0.05, 0.01, two_batches=True, components=True, refitted=True
    ),
    "machine judge, no mixture": Plan(lambda pair: pair.known.judged),
    "machine judge, 5 % and 1 %": Plan(lambda pair: pair.known.judged, 0.05, 0.01),
    "machine judge, 15 % and 5 %": Plan(lambda pair: pair.known.judged, 0.15, 0.05),
    "machine judge assumed cautiously, no mixture": Plan(lambda pair: pair.known.judged_cautiously),
    "machine judge, two batches, no mixture": Plan(lambda pair: pair.known.judged, two_batches=True),
    "poor machine judge believed good, no mixture": Plan(lambda pair: pair.known.judged_poorly),
    "poor machine judge assumed cautiously, no mixture": Plan(
        lambda pair: pair.known.judged_poorly_and_cautiously
    ),
    "machine judge by popularity, 5 % and 1 %": Plan(
        lambda pair: pair.known.judged_by_popularity, 0.05, 0.01
    ),
    "poor machine judge, 5 % and 1 %": Plan(lambda pair: pair.known.judged_poorly_and_cautiously, 0.05, 0.01),
    **{name: Plan(partial(_calibrated_elsewhere, *which), 0.05, 0.01) for name, which in CALIBRATED.items()},
    "fitted to all labels (not attainable)": Plan(lambda pair: pair.known.all_runs, all_labels=True),
    "consensus of the runs, no mixture": Plan(lambda pair: pair.known.experts),
}
# The product's: its default shares for other runs and evenly. The first without what its predictions have since gained.
MIXED = (
    "default, 5 % other runs, 1 % uniform",
    "components, 5 % other runs, 1 % uniform",
    "components, two batches, 5 % and 1 %",
    "components, two batches, refitted, 5 % and 1 %",
    "machine judge, 5 % and 1 %",
    "machine judge by popularity, 5 % and 1 %",
    *CALIBRATED,
    "poor machine judge, 5 % and 1 %",
)
MIXED_SIMULATED = (
    "components, 5 % other runs, 1 % uniform",
    "components, two batches, refitted, 5 % and 1 %",
)
