"""Relevance from the runs alone: the consensus of the runs, each an expert who prefers what it ranks higher.

A run prefers what it returns to everything below it and to everything else of the pool; it says nothing of two
documents that it does not return. With n_ij the (weighted) number of runs that prefer document i to j, theta maximises

    sum n_ij ln s(theta_i - theta_j) + sum [a ln s(theta_i) + b ln s(-theta_i)],   s the logistic function,

and p = s(theta) is the probability of relevance. It is no estimate of the truth: with a = b the probabilities sum to
half the number of documents, whatever the runs say. `calibration_by_prevalence` and `calibration_by_judgments` make a
prior of them.
Source: Carterette and Allan (2007), section 4.2.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import ArrayLike

from sampling.arrays import FloatArray, numbers
from sampling.logistic import LogisticProblem, minimise

LONGEST_STEP = 4.0  # of a log odds, in one step of Newton's method
LAST_STEP = 1e-9
MOST_STEPS = 200
MOST_WEIGHT = 1e9
SLOPE_RIDGE, SHIFT_RIDGE = 1.0, 0.01  # what a calibration needs where all judgments are alike


@dataclass(frozen=True)
class RankedPool:
    """The documents of one topic's pool, and where the runs rank them.

    Attributes
    ----------
    ranks : (n_runs, n_documents) array
        From 1; infinite where a run does not return the document.
    """

    ranks: FloatArray

    @classmethod
    def of(cls, ranks: ArrayLike) -> "RankedPool":
        """Return the pool; ValueError without runs or documents, for ranks below 1, two documents at one rank."""
        table = np.asarray(ranks, dtype=np.float64)
        if table.ndim != 2 or table.size == 0:
            raise ValueError(f"ranks must be of at least 1 run and 1 document, got shape {table.shape}")
        refused = table[~(table >= 1)]
        if refused.size:
            raise ValueError(f"ranks must be at least 1, got {refused[0]}")
        in_order = np.sort(table, axis=1)
        run, place = np.nonzero((in_order[:, 1:] == in_order[:, :-1]) & np.isfinite(in_order[:, 1:]))
        if run.size:
            raise ValueError(
                f"run {run[0]} must have 1 document at rank {in_order[run[0], place[0]]:g}, got 2"
            )
        if not np.isfinite(table).any():
            raise ValueError("ranks must be finite somewhere: no run returns a document of the pool")
        return cls(table)

    @property
    def n_runs(self) -> int:
        """Return the number of runs."""
        return int(self.ranks.shape[0])

    @property
    def n_documents(self) -> int:
        """Return the number of documents."""
        return int(self.ranks.shape[1])

    @cached_property
    def returns(self) -> FloatArray:
        """1 where the run returns the document, else 0."""
        return np.isfinite(self.ranks).astype(np.float64)

    @cached_property
    def places(self) -> FloatArray:
        """The rank among the documents of the pool; infinite where a run does not return the document."""
        order = np.argsort(self.ranks, axis=1, kind="stable")
        places = np.empty(self.ranks.shape)
        np.put_along_axis(places, order, np.arange(1.0, self.n_documents + 1)[np.newaxis], axis=1)
        return np.where(self.returns > 0, places, np.inf)

    @cached_property
    def n_preferences(self) -> FloatArray:
        """How many preferences each run has: (n_runs,)."""
        below = np.where(self.returns > 0, self.n_documents - self.places, 0.0)
        counts: FloatArray = below.sum(axis=1)
        return counts

    def part(self, documents: ArrayLike) -> "RankedPool":
        """Return the pool of some of its documents: a mask, or their places. It may be one that no run returns."""
        return RankedPool(self.ranks[:, np.asarray(documents)])


@dataclass(frozen=True)
class Preferences:
    """What the runs prefer, counted: no pair is listed.

    Attributes
    ----------
    wins : (n_documents,) array
        By how many runs, and to how many documents, each is preferred: sum_l w_l (N - rank_l(i)).
    pairs : (n_documents, n_documents) array
        How many runs prefer one of the two to the other: n_ij + n_ji; 0 on the diagonal.
    a, b : float
        Above 0: the prior, as if each document had so often been judged relevant and not relevant.
    """

    wins: FloatArray
    pairs: FloatArray
    a: float = 1.0
    b: float = 1.0

    @classmethod
    def of(
        cls, pool: RankedPool, weights: ArrayLike | None = None, *, a: float = 1.0, b: float = 1.0
    ) -> "Preferences":
        """Return the preferences of weighted runs; ValueError for weights that are all 0, and a or b not above 0."""
        weight = run_weights(weights, pool.n_runs)
        for name, value in (("a", a), ("b", b)):
            if not 0 < value <= MOST_WEIGHT:
                raise ValueError(f"{name} must be within (0, {MOST_WEIGHT:g}], got {value}")
        wins = weight @ np.where(pool.returns > 0, pool.n_documents - pool.places, 0.0)
        alone = weight @ pool.returns
        pairs = alone[:, np.newaxis] + alone - (pool.returns.T * weight) @ pool.returns
        np.fill_diagonal(pairs, 0.0)
        return cls(wins, pairs, float(a), float(b))

    def objective(self, theta: FloatArray) -> float:
        """Return the logarithm of the likelihood with the prior."""
        of_pairs = np.triu(self.pairs * np.logaddexp.outer(theta, theta), 1).sum()
        of_prior = (self.a + self.b) * np.logaddexp(0.0, theta).sum() - self.a * theta.sum()
        return float(self.wins @ theta - of_pairs - of_prior)


def run_weights(weights: ArrayLike | None, n_runs: int) -> FloatArray:
    """Return one weight a run, 1 each for None; ValueError unless at least 0 and not all 0."""
    if weights is None:
        return np.ones(n_runs)
    checked = numbers("weights", weights, n_runs, most=MOST_WEIGHT)
    if not checked.any():
        raise ValueError("weights must be above 0 for at least 1 run, got 0 for all")
    return checked


def manual_weights(is_manual: ArrayLike, weight: float) -> FloatArray:
    """Return `weight` for every manual run and 1 for the others; the paper takes 8 to 16.

    Source: Carterette and Allan (2007), section 4.4: manual runs are few, and return what no other run does.
    """
    weights: FloatArray = np.where(np.asarray(is_manual, dtype=bool), float(weight), 1.0)
    return run_weights(weights, weights.size)


def topic_prior(n_relevant: int, n_judged: int) -> tuple[float, float]:
    """Return a and b of a topic: 1 + the judged that are relevant, 1 + the others judged.

    With them the mean of p is (relevant + 1) / (judged + 2), which the paper prints with + 1.

    >>> topic_prior(1, 3)
    (2.0, 3.0)
    """
    if not 0 <= n_relevant <= n_judged:
        raise ValueError(f"n_relevant must be within [0, {n_judged}], got {n_relevant}")
    return 1.0 + n_relevant, 1.0 + n_judged - n_relevant


# -- the fit --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Consensus:
    """What the runs together say of the documents: log odds of relevance, and how many steps it took."""

    theta: FloatArray
    steps: int

    @property
    def probability(self) -> FloatArray:
        """Return the probability of relevance of every document, before any calibration."""
        p: FloatArray = scipy.special.expit(self.theta)
        return p


def consensus(preferences: Preferences) -> Consensus:
    """Return the log odds that explain the preferences best: Newton's method, each step by conjugate gradients.

    The objective is strictly concave, so the optimum is unique. Steps change no log odds by more than 4 and are halved
    where they go too far.

    Raises
    ------
    ValueError
        Where no optimum is reached: one run of hundreds of documents outweighs all others a billion times.

    Examples
    --------
    >>> pool = RankedPool.of([[1, 2, np.inf, np.inf], [1, np.inf, 2, np.inf], [2, 1, np.inf, np.inf]])
    >>> consensus(Preferences.of(pool)).probability.round(6).tolist()
    [0.786233, 0.618335, 0.41599, 0.179443]
    """
    theta = _start(preferences)
    gradient, curvature = _gradient(preferences, theta)
    largest = LONGEST_STEP
    for step in range(1, MOST_STEPS + 1):
        direction = _direction(preferences, theta, gradient, curvature, min(0.1, largest))
        largest = float(np.abs(direction).max())
        direction *= min(1.0, LONGEST_STEP / max(largest, LAST_STEP))
        slope = float(gradient @ direction)
        while True:
            candidate = theta + direction
            new_gradient, new_curvature = _gradient(preferences, candidate)
            if largest < LAST_STEP or float(new_gradient @ direction) >= -0.5 * slope:
                break
            direction, slope, largest = direction / 2, slope / 2, largest / 2
        theta, gradient, curvature = candidate, new_gradient, new_curvature
        if largest < LAST_STEP:
            return Consensus(theta, step)
    raise ValueError(
        f"weights must differ less, got {preferences.wins.max():.3g} wins of one document: "
        f"no optimum after {MOST_STEPS} steps"
    )


def _start(preferences: Preferences) -> FloatArray:
    """Return log odds near the optimum: of wins to losses, shifted to the mean probability that the prior leads to."""
    a, b = preferences.a, preferences.b
    losses = preferences.pairs.sum(axis=1) - preferences.wins
    theta = np.log((preferences.wins + a) / (np.maximum(losses, 0.0) + b))
    return np.asarray(theta + calibration_by_prevalence(theta, a / (a + b)).shift)


def _gradient(preferences: Preferences, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the gradient, and the curvature W_ij = (n_ij + n_ji) s(theta_i - theta_j) s(theta_j - theta_i)."""
    chance = scipy.special.expit(np.subtract.outer(theta, theta))
    losses = preferences.pairs * chance
    a, b = preferences.a, preferences.b
    gradient = (
        preferences.wins
        - losses.sum(axis=1)
        + a * scipy.special.expit(-theta)
        - b * scipy.special.expit(theta)
    )
    losses *= chance.T
    return gradient, losses


def _direction(
    preferences: Preferences, theta: FloatArray, gradient: FloatArray, curvature: FloatArray, tolerance: float
) -> FloatArray:
    """Return about -Hessian^-1 gradient: minus the Hessian is diag(row sums of W + (a + b) p (1 - p)) - W."""
    of_prior = (preferences.a + preferences.b) * scipy.special.expit(theta) * scipy.special.expit(-theta)
    diagonal = np.maximum(curvature.sum(axis=1) + of_prior, np.finfo(np.float64).tiny)

    def product(vector: FloatArray) -> FloatArray:
        flat = vector.reshape(-1)
        return np.asarray(diagonal * flat - curvature @ flat)

    shape = (theta.size, theta.size)
    hessian = scipy.sparse.linalg.LinearOperator(shape, matvec=product, dtype=np.float64)
    inverse_diagonal = scipy.sparse.linalg.LinearOperator(
        shape, matvec=lambda vector: vector / diagonal, dtype=np.float64
    )
    found, _ = scipy.sparse.linalg.cg(
        hessian, gradient, rtol=tolerance, atol=0.0, maxiter=10 * theta.size, M=inverse_diagonal
    )
    return np.asarray(found)


# -- calibration ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Calibration:
    """Two numbers that make probabilities of log odds: s(shift + slope theta)."""

    shift: float
    slope: float = 1.0

    def probability(self, theta: ArrayLike) -> FloatArray:
        """Return the probability of relevance."""
        p: FloatArray = scipy.special.expit(self.shift + self.slope * np.asarray(theta, dtype=np.float64))
        return p


def calibration_by_prevalence(theta: ArrayLike, prevalence: float) -> Calibration:
    """Return the shift with which the probabilities have a mean: the share of relevant documents that is expected.

    Raises
    ------
    ValueError
        For a prevalence that does not lie between 0 and 1.

    Examples
    --------
    >>> round(calibration_by_prevalence([-1.0, 1.0, 3.0], 0.5).shift, 6)
    -1.0
    """
    values = numbers("theta", theta, least=-1e6, most=1e6)
    if not 0 < prevalence < 1:
        raise ValueError(f"prevalence must be within (0, 1), got {prevalence}")
    centre = float(scipy.special.logit(prevalence))

    def excess(shift: float) -> float:
        return float(scipy.special.expit(shift + values).mean()) - prevalence

    low, high = centre - float(values.max()), centre - float(values.min())
    if excess(low) >= 0 or excess(high) <= 0:  # all alike, but for rounding
        return Calibration((low + high) / 2)
    return Calibration(float(scipy.optimize.brentq(excess, low, high, xtol=1e-12)))


def calibration_by_judgments(theta: ArrayLike, is_relevant: ArrayLike) -> Calibration:
    """Return the shift and slope that fit judged documents best: a logistic regression on their log odds.

    With a little of the identity: precisions .01 of the shift around 0 and 1 of the slope around 1 keep both finite
    where all judgments are alike, or theta tells them apart without an error. The judged documents must be drawn at
    random: those of the highest log odds, as an order of judging takes them, are relevant more often than theirs.
    """
    values = numbers("theta", theta, least=-1e6, most=1e6)
    labels = np.asarray(is_relevant)
    refused = labels[~np.isin(labels, (0, 1))]
    if refused.size or labels.shape != values.shape:
        raise ValueError(
            f"is_relevant must be {values.size} times 0 or 1, got {refused[0] if refused.size else labels.shape}"
        )
    fit = minimise(
        LogisticProblem(
            columns=values[np.newaxis],
            target=labels.astype(np.float64),
            offset=values,
            group=np.zeros(values.size, dtype=np.int64),
            n_groups=1,
            ridge=np.array([SLOPE_RIDGE]),
            group_ridge=SHIFT_RIDGE,
        )
    )
    return Calibration(float(fit.effects[0]), 1.0 + float(fit.coefficients[0]))
