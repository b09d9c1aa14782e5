"""Fewer steps to the maximum of a Dawid-Skene likelihood: Newton's method in a region of trust.

Expectation-maximisation never goes down, but where an item has few labels it needs a thousand steps and more. Here a
step solves the second-order model of the log-likelihood by conjugate gradients, within a distance that grows where
the model has proved right and shrinks where it has not. One product with the curvature costs less than a step of EM.
The caller accepts a step only if the (penalised) log-likelihood does not fall, and takes the EM step otherwise.

Parameters are moved as square roots of probabilities, in which a probability that goes to 0 is no special case. The
distance is EM's own (the information that the items' true grades would give), which makes EM the first direction.

Sources: A. P. Dempster, N. M. Laird, D. B. Rubin (1977); T. Steihaug (1983), the conjugate gradient in a region of
trust; T. A. Louis (1982), the curvature from the complete data; R. Varadhan and C. Roland (2008) for the safeguard.
"""

import math
from dataclasses import dataclass

import numpy as np

from analytics.aggregation.votes import Votes
from analytics.estimation.estimate import Floats

MOST_PRODUCTS = 20  # with the curvature, a step
PRECISION = 0.2  # of the solution of the second-order model
FIRST_RADIUS = 5.0  # in steps of EM
SHRINK, GROW = 0.25, 2.0
NARROWEST, WIDEST = 0.1, 3.0  # what a square root may be multiplied by in one step


@dataclass(frozen=True)
class Pair:
    """A value for each cell of rows[given, assessor, true], and one for each grade's prevalence."""

    rows: Floats
    prevalence: Floats

    def __add__(self, other: "Pair") -> "Pair":
        return Pair(self.rows + other.rows, self.prevalence + other.prevalence)

    def __sub__(self, other: "Pair") -> "Pair":
        return Pair(self.rows - other.rows, self.prevalence - other.prevalence)

    def times(self, factor: float) -> "Pair":
        return Pair(self.rows * factor, self.prevalence * factor)

    def product(self, other: "Pair") -> "Pair":
        return Pair(self.rows * other.rows, self.prevalence * other.prevalence)

    def divided_by(self, other: "Pair") -> "Pair":
        return Pair(self.rows / other.rows, self.prevalence / other.prevalence)

    def dot(self, other: "Pair") -> float:
        # not by BLAS: it would wake up threads for a sum of microseconds
        return float((self.rows * other.rows).sum() + (self.prevalence * other.prevalence).sum())


def level(move: Pair, at: Pair) -> Pair:
    """Return the relative move without what would change the sums of the probabilities `at`."""
    rows = move.rows - (at.rows * move.rows).sum(axis=0)
    return Pair(rows, move.prevalence - at.prevalence @ move.prevalence)


def level_gradient(gradient: Pair, at: Pair) -> Pair:
    """Return the transpose of `level` applied to a gradient."""
    rows = gradient.rows - at.rows * gradient.rows.sum(axis=0)
    return Pair(rows, gradient.prevalence - at.prevalence * gradient.prevalence.sum())


@dataclass(frozen=True)
class Step:
    """A proposed move in relative terms, its length, and by how much the model says the objective rises."""

    move: Pair
    length: float
    promised: float
    at_edge: bool


class TrustRegion:
    """The radius, and what it learns from steps that came out better or worse than promised."""

    def __init__(self) -> None:
        self.radius: float | None = None

    def propose(self, votes: Votes, at: Pair, counts: Pair) -> Step:
        """Return the best step from the parameters `at`, whose EM counts (prior included) are `counts`."""
        totals = Pair(counts.rows.sum(axis=0), counts.prevalence.sum(keepdims=True))
        expected = Pair(totals.rows * at.rows, totals.prevalence * at.prevalence)
        gradient = level_gradient(counts - expected, at)
        metric = (counts + expected).times(0.5)
        metric = Pair(np.where(metric.rows > 0, metric.rows, 1.0), metric.prevalence)
        if self.radius is None:
            direction = level(gradient.divided_by(metric), at)
            self.radius = FIRST_RADIUS * math.sqrt(max(direction.dot(gradient), 0.0))
        return _solve(votes, at, gradient, metric, self.radius)

    def learn(self, step: Step, gained: float) -> None:
        """Adapt the radius to what the step gained: shrink below a quarter of the promise, grow above three."""
        if gained < 0.25 * step.promised:
            self.radius = SHRINK * step.length
        elif gained > 0.75 * step.promised and step.at_edge and self.radius is not None:
            self.radius *= GROW


def _solve(votes: Votes, at: Pair, gradient: Pair, metric: Pair, radius: float) -> Step:
    """Maximise gradient.v - v.A.v / 2 within the radius, A = metric - response, by conjugate gradients."""
    residual = gradient
    direction = level(residual.divided_by(metric), at)
    steep = first = residual.dot(direction)
    move = gradient.times(0.0)
    # lengths in the metric: of the move, of the direction, and their product
    length2, along, direction2 = 0.0, 0.0, steep
    at_edge = False
    for _ in range(MOST_PRODUCTS):
        if steep <= 0:
            break
        counts = Pair(*votes.response(direction.rows, direction.prevalence))
        bent = level_gradient(metric.product(direction) - counts, at)
        curvature = direction.dot(bent)
        size = steep / curvature if curvature > 0 else math.inf
        at_edge = size == math.inf or length2 + 2 * size * along + size**2 * direction2 > radius**2
        if at_edge:
            size = (math.sqrt(along**2 + direction2 * max(0.0, radius**2 - length2)) - along) / direction2
        move, residual = move + direction.times(size), residual - bent.times(size)
        length2 += 2 * size * along + size**2 * direction2
        if at_edge:
            break
        downhill = level(residual.divided_by(metric), at)
        steeper = residual.dot(downhill)
        if steeper < PRECISION**2 * first:
            break
        ratio = steeper / steep
        along = ratio * (along + size * direction2)
        direction2 = steeper + ratio**2 * direction2
        direction, steep = downhill + direction.times(ratio), steeper
    promised = 0.5 * (gradient.dot(move) + residual.dot(move))
    return Step(move, math.sqrt(max(length2, 0.0)), promised, at_edge)


def apply_move(at: Pair, move: Pair, least: Floats) -> Pair:
    """Return the probabilities after a relative move of twice their square roots; none below `least`.

    Cells of probability 0 stay 0: they belong to grades that an assessor never gave.
    """
    rows = at.rows * np.clip(1 + move.rows / 2, NARROWEST, WIDEST) ** 2
    rows = np.where(at.rows > 0, np.maximum(rows, least), 0.0)
    prevalence = at.prevalence * np.clip(1 + move.prevalence / 2, NARROWEST, WIDEST) ** 2
    return Pair(rows / rows.sum(axis=0), prevalence / prevalence.sum())
