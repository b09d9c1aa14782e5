"""How many judgments each design needs on a pool whose truth is known: designs, exact variances, and simulations."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from analytics.estimators import Estimate, difference_estimator
from parts.trec_like import Floats, Ints, JudgedPool
from sampling.designs import (
    average_run_design,
    design_variance,
    draws_for_distinct,
    inclusion_probabilities,
    mixture,
    naive_design,
    normalised,
    pair_design,
    poisson_variance,
    uniform_design,
)
from sampling.pooling import prior_utility
from sampling.prediction import (
    FEATURE_RIDGE,
    N_FOLDS,
    cross_fitted,
    learned_inclusion,
    posterior_prior,
    rank_features,
)

SENSITIVITY, SPECIFICITY = 0.75, 0.95  # of the machine judge: true, and assumed
POOR_SENSITIVITY, POOR_SPECIFICITY = 0.5, 0.7  # of one that is much worse than assumed
JUDGE_RIDGE = 1.0


@dataclass(frozen=True)
class Guess:
    """What is known of every item before any label."""

    prior: Floats
    features: Floats
    ridge: Floats


@dataclass(frozen=True)
class KnownPool:
    """A pool with what all its runs, and a simulated machine judge, say before any label."""

    pool: JudgedPool
    judge: Floats  # a machine's labels, 0 or 1
    poor_judge: Floats

    @cached_property
    def features(self) -> Floats:
        return rank_features(self.pool.ranks, self.pool.depth)

    def prior(self, unreturned: float = 10.0) -> Floats:
        """Return the guess from all runs; an item not returned counts as rank `unreturned` times the depth."""
        rank = np.where(self.pool.ranks == 0, unreturned * self.pool.depth, self.pool.ranks)
        return np.asarray((16.0 / (rank + 34.0)).mean(axis=0), dtype=np.float64)

    @cached_property
    def ranks_only(self) -> Guess:
        return Guess(self.prior(), self.features, np.full(self.features.shape[1], FEATURE_RIDGE))

    @cached_property
    def paper_prior(self) -> Guess:
        """As `ranks_only`, but an item not returned counts as rank depth + 1."""
        return Guess(prior_utility(self.pool.ranks, self.pool.depth), self.features, self.ranks_only.ridge)

    @cached_property
    def with_judge(self) -> Guess:
        return self._with(self.judge)

    @cached_property
    def with_poor_judge(self) -> Guess:
        return self._with(self.poor_judge)

    def _with(self, labels: Floats) -> Guess:
        posterior = posterior_prior(self.prior(), labels, sensitivity=SENSITIVITY, specificity=SPECIFICITY)
        features = np.column_stack([self.features, labels])
        return Guess(posterior, features, np.append(self.ranks_only.ridge, JUDGE_RIDGE))

    @cached_property
    def average_run(self) -> Floats:
        return average_run_design(self.pool.weights)


def known(pool: JudgedPool, rng: np.random.Generator) -> KnownPool:
    """Return the pool with two machine judges whose errors are independent of everything else."""
    luck = rng.random((2, pool.relevant.size))
    rates = ((SENSITIVITY, SPECIFICITY), (POOR_SENSITIVITY, POOR_SPECIFICITY))
    labels = [
        np.where(numbers < np.where(pool.relevant > 0, *rate), pool.relevant, 1.0 - pool.relevant)
        for numbers, rate in zip(luck, rates, strict=True)
    ]
    return KnownPool(pool, *labels)


@dataclass(frozen=True)
class Pair:
    """The difference of two runs of a pool (or one run alone), and the paper's guess from these two."""

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
    def own_prior(self) -> Floats:
        return prior_utility(self.own_ranks, self.known.pool.depth)

    @cached_property
    def own_guess(self) -> Guess:
        """The paper's guess and features of the two compared runs only."""
        features = rank_features(self.own_ranks, self.known.pool.depth)
        return Guess(self.own_prior, features, np.full(features.shape[1], FEATURE_RIDGE))

    @property
    def truth(self) -> float:
        return float((self.g * self.known.pool.relevant).sum())

    @property
    def support(self) -> int:
        return int(np.count_nonzero(self.g))

    def with_replacement(self, naive: bool, distinct: float) -> float:
        """Return the exact variance of the paper's Q* (or of the naive design) at a number of distinct judgments."""
        a, b = self.known.pool.weights[[self.first, self.second]]
        both = np.stack([a, b])
        q = naive_design(both, self.own_prior) if naive else pair_design(a, b, self.own_prior)
        return design_variance(q, self.known.pool.relevant, self.g) / draws_for_distinct(q, distinct)

    def horvitz_thompson(self, distinct: float) -> float:
        """Return the exact Poisson variance with the sizes of Q*."""
        pi = inclusion_probabilities(np.abs(self.g) * self.own_prior, distinct)
        return float(poisson_variance(pi, self.g, self.known.pool.relevant**2))

    def raw_difference(self, guess: Guess, distinct: float) -> float:
        """Return the exact variance of the difference estimator whose prediction is the guess as it is."""
        pi = inclusion_probabilities(np.abs(self.g) * spread(guess.prior), distinct)
        return float(poisson_variance(pi, self.g, (self.known.pool.relevant - guess.prior) ** 2))


def spread(probability: Floats) -> Floats:
    """Return sqrt(p (1 - p))."""
    return np.asarray(np.sqrt(probability * (1.0 - probability)))


@dataclass(frozen=True)
class Plan:
    """A design without replacement with the cross-fitted difference estimator.

    Attributes
    ----------
    guess : callable
        What is known of the items, from the pair.
    other_runs, uniform : float
        Shares of the average of all runs and of the uniform design.
    two_stage : bool
        Half the budget as planned, the rest with sizes learned from it; predictions from the first half.
    topic_ridge : float
    all_labels : bool
        Fit, and size, on the truth of the whole pair: not attainable, a bound.
    """

    guess: Callable[[Pair], Guess]
    other_runs: float = 0.0
    uniform: float = 0.0
    two_stage: bool = False
    topic_ridge: float = 1.0
    all_labels: bool = False


@dataclass(frozen=True)
class Realised:
    """One draw: probabilities, selected items and predictions of the whole frame."""

    pi: Floats
    drawn: Ints
    prediction: Floats

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


def realised(plan: Plan, pair: Pair, count: float, rng: np.random.Generator) -> Realised:
    """Return one draw of about `count` judgments, predicted from its labels."""
    pool, guess = pair.known.pool, plan.guess(pair)
    numbers = rng.random(pool.relevant.size)
    fold = rng.integers(0, N_FOLDS, pool.relevant.size)

    def predicted(items: Ints) -> Floats:
        return cross_fitted(
            features=guess.features,
            topic_index=pool.topic_index,
            fold=fold,
            prior=guess.prior,
            labelled=items,
            label=pool.relevant[items],
            feature_ridge=guess.ridge,
            topic_ridge=plan.topic_ridge,
        )

    contrast = np.abs(pair.g)
    if plan.all_labels:
        f = predicted(np.flatnonzero(pair.g))
        pi = inclusion_probabilities(contrast * spread(f), count)
        return Realised(pi, np.flatnonzero(numbers < pi), f)
    question = normalised(contrast * spread(guess.prior))
    sizes = question
    if plan.other_runs + plan.uniform > 0:
        others = [pair.known.average_run, uniform_design(question.size)]
        sizes = mixture(question, others, [plan.other_runs, plan.uniform])
    pi = inclusion_probabilities(sizes, count / 2 if plan.two_stage else count)
    drawn = np.flatnonzero(numbers < pi)
    f = predicted(drawn)
    if plan.two_stage:
        pi = learned_inclusion(contrast, f, fold, frame_sizes=sizes, earlier=pi, expected_count=count)
        drawn = np.flatnonzero(numbers < pi)
    return Realised(pi, drawn, f)


ALL_RUNS = Plan(lambda pair: pair.known.ranks_only)
PLANS = {
    "pair's ranks only": Plan(lambda pair: pair.own_guess),
    "all runs, unreturned = depth + 1": Plan(lambda pair: pair.known.paper_prior),
    "default, without mixture": ALL_RUNS,
    "default, without topic intercepts": Plan(lambda pair: pair.known.ranks_only, topic_ridge=1e9),
    "default": Plan(lambda pair: pair.known.ranks_only, other_runs=0.15, uniform=0.05),
    "two batches, without mixture": Plan(lambda pair: pair.known.ranks_only, two_stage=True),
    "machine judge, without mixture": Plan(lambda pair: pair.known.with_judge),
    "machine judge": Plan(lambda pair: pair.known.with_judge, other_runs=0.15, uniform=0.05),
    "machine judge, two batches, without mixture": Plan(lambda pair: pair.known.with_judge, two_stage=True),
    "machine judge, much worse than assumed": Plan(
        lambda pair: pair.known.with_poor_judge, other_runs=0.15, uniform=0.05
    ),
    "fitted to all labels (not attainable)": Plan(lambda pair: pair.known.ranks_only, all_labels=True),
}
