"""Penalised fractional logistic regression with group intercepts: the fit behind sampling/prediction.py.

Same input, same bits: sums are NumPy's own, and the only systems solved by LAPACK are as small as the number of
columns.
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from sampling.measures.families import FloatArray

_SUFFICIENT = 1e-4  # share of the promised decrease that a step must give (Armijo's rule)
_SHORTEST = 2.0**-40


@dataclass(frozen=True)
class LogisticProblem:
    """Labels and penalties; `loss` is what `minimise` makes least.

    Attributes
    ----------
    columns : array, shape (n_columns, n_labels)
    target : array, shape (n_labels,)
        Within [0, 1]. For `sampling.leave_out` also one row a fit, shape (n_fits, n_labels).
    offset : array, shape (n_labels,)
        Logit before any coefficient.
    group : int array, shape (n_labels,)
        Within [0, n_groups).
    n_groups : int
    ridge : array, shape (n_columns,)
        Positive: the precision of each coefficient around 0.
    group_ridge : float
        Positive: the precision of each group's intercept around 0.
    """

    columns: FloatArray
    target: FloatArray
    offset: FloatArray
    group: NDArray[np.int64]
    n_groups: int
    ridge: FloatArray
    group_ridge: float


@dataclass(frozen=True)
class LogisticFit:
    """Return of `minimise`.

    Attributes
    ----------
    coefficients : array, shape (n_columns,)
    effects : array, shape (n_groups,)
        Intercepts of the groups; 0 for a group without labels.
    steepness : float
        Largest absolute entry of the gradient: 0 at the optimum.
    steps : int
        Newton steps taken.
    """

    coefficients: FloatArray
    effects: FloatArray
    steepness: float
    steps: int


def logits(problem: LogisticProblem, coefficients: FloatArray, effects: FloatArray) -> FloatArray:
    """Return eta = offset + sum_j b_j x_j + a_group, one per label."""
    fitted = np.einsum("j,ji->i", coefficients, problem.columns)
    return np.asarray(problem.offset + fitted + effects[problem.group], dtype=np.float64)


def loss(
    problem: LogisticProblem, coefficients: FloatArray, effects: FloatArray, eta: FloatArray | None = None
) -> float:
    """Return sum [log(1 + exp eta) - y eta] + 1/2 sum_j ridge_j b_j^2 + 1/2 group_ridge sum a^2.

    `eta` are the logits, where they are known already.
    """
    at = logits(problem, coefficients, effects) if eta is None else eta
    penalty = (problem.ridge * coefficients**2).sum() + problem.group_ridge * (effects**2).sum()
    return float((np.logaddexp(0.0, at) - problem.target * at).sum() + 0.5 * penalty)


def gradient(
    problem: LogisticProblem, coefficients: FloatArray, effects: FloatArray, eta: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the loss's gradient by coefficients and by effects, and the fitted means."""
    mean = scipy.special.expit(logits(problem, coefficients, effects) if eta is None else eta)
    residual = mean - problem.target
    by_column = np.einsum("ji,i->j", problem.columns, residual) + problem.ridge * coefficients
    by_group = np.bincount(problem.group, residual, problem.n_groups) + problem.group_ridge * effects
    return by_column, by_group, mean


def minimise(
    problem: LogisticProblem,
    *,
    start: tuple[FloatArray, FloatArray] | None = None,
    most_steps: int = 100,
    damped: bool = True,
) -> LogisticFit:
    """Return the coefficients and effects of least loss, by Newton's method with step halving.

    The loss is strictly convex and every step lowers it, so that the end is the optimum whatever the labels:
    separable, all equal, or none at all (then everything is 0). It begins at 0, or at `start`, coefficients
    and effects, where something near the optimum is known. `damped` False takes full steps: it serves the test that
    shows that they can run away.

    Source: Papke and Wooldridge (1996) for shares as labels; McCullagh and Nelder (1989) for the steps.
    """
    b, a = start or (np.zeros(problem.columns.shape[0]), np.zeros(problem.n_groups))
    eta = logits(problem, b, a)
    now = loss(problem, b, a, eta)
    for step in range(most_steps + 1):
        by_column, by_group, mean = gradient(problem, b, a, eta)
        steepness = float(max(np.abs(by_column).max(initial=0.0), np.abs(by_group).max(initial=0.0)))
        if step == most_steps or steepness <= 1e-10 * (1.0 + mean.size):
            break
        move, move_groups = _newton_direction(problem, mean * (1.0 - mean), by_column, by_group)
        promised = float((move * by_column).sum() + (move_groups * by_group).sum())
        length = 1.0
        while True:
            new_b, new_a = b - length * move, a - length * move_groups
            new_eta = logits(problem, new_b, new_a)
            value = loss(problem, new_b, new_a, new_eta)
            enough = value <= now - _SUFFICIENT * length * promised
            if enough or not damped or length <= _SHORTEST:
                break
            length /= 2.0
        if damped and not value < now:  # the loss is flat to the last bit, its gradient need not be
            by_column, by_group, _ = gradient(problem, b - move, a - move_groups)
            left = float(max(np.abs(by_column).max(initial=0.0), np.abs(by_group).max(initial=0.0)))
            if left < steepness:
                b, a, steepness = b - move, a - move_groups, left
            break
        b, a, eta, now = new_b, new_a, new_eta, value
    return LogisticFit(b, a, steepness, step)


def _newton_direction(
    problem: LogisticProblem, curvature: FloatArray, by_column: FloatArray, by_group: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return Hessian^-1 gradient: the groups' diagonal block is eliminated first (Schur complement), so that
    the cost grows with the labels and not with the square of the groups.
    """
    curved = problem.columns * curvature
    hessian = np.einsum("ji,ki->jk", curved, problem.columns)
    hessian += np.diag(problem.ridge)
    crossed = np.stack([np.bincount(problem.group, row, problem.n_groups) for row in curved])
    own = np.bincount(problem.group, curvature, problem.n_groups) + problem.group_ridge
    schur = hessian - np.einsum("jt,kt->jk", crossed / own, crossed)
    move = np.linalg.solve(schur, by_column - (crossed * (by_group / own)).sum(axis=1))
    return move, (by_group - (crossed * move[:, None]).sum(axis=0)) / own
