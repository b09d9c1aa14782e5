"""One logistic regression for every fold, each on the labels of all other folds, quickly where labels are many.

From nowhere, Newton's method takes six steps on 225,000 labels. Here every fit starts from one on a part of the same
labels, and what a step needs is summed once for all fits: a label serves all folds but its own. What a fit uses is
summed fold by fold, in the same order whatever the fold that it leaves out contains, so that not a single bit of it
depends on a label of that fold, or on how many there are. (Which other fits are made beside it may move its last bit.)
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sampling.logistic import LogisticProblem, minimise
from sampling.measures.families import FloatArray

FIRST_PARTS = (64, 8)  # every 64th label, then every 8th, then all
FEW_LABELS = 20_000  # below: every fit by itself, from nowhere
SMALL = 1e-8  # what a step promises to take off twice the loss of a label: after that step nothing is left to gain
MOST_STEPS = 12
MOST_FITTED = 10_000  # labels of a fold: with more, predictions hardly move, and memory and time grow
ROWS = 1024  # labels of which all intermediate numbers fit into a cache


def fits_without_each_fold(
    problem: LogisticProblem,
    fold: NDArray[np.int64],
    n_folds: int,
    left_out: NDArray[np.int64] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return coefficients [fit, column] and effects [fit, group], each fitted to the labels of all folds but one.

    `fold` is that of each label, `left_out` the folds without which a fit is wanted: default, each in its turn. The
    first column of the problem must be 1 throughout. The target may be [fold, label]: then the fit without a fold has
    labels of its own. Ends where `sampling.logistic.minimise` does, but for about 1e-9 in a probability.

    Raises
    ------
    ValueError
        The first column is not 1.
    """
    if problem.columns.size and np.any(problem.columns[0] != 1.0):
        raise ValueError(f"the first column must be 1 throughout, got {problem.columns[0].min()}")
    wanted = np.arange(n_folds) if left_out is None else left_out
    enough = (fold.size - np.bincount(fold, minlength=n_folds) >= FEW_LABELS)[wanted]
    settled = np.zeros(wanted.size, dtype=bool)
    b, a = np.zeros((wanted.size, problem.columns.shape[0])), np.zeros((wanted.size, problem.n_groups))
    if enough.any():
        folds = [_sort_by_group(_subset(problem, np.flatnonzero(fold == k))) for k in range(n_folds)]
        few = [_thin(own, FIRST_PARTS[0]) for own in folds]
        first = [minimise(_join_folds(few, k)) for k in wanted.tolist()]
        b, a = np.stack([fit.coefficients for fit in first]), np.stack([fit.effects for fit in first])
        for part in (*FIRST_PARTS[1:], 1):
            b, a, settled = _fit_folds([_thin(own, part) for own in folds], wanted, b, a)
    for place in np.flatnonzero(~(settled & enough)).tolist():
        # few labels; or full steps have run away, and then what they started from is no help
        k = int(wanted[place])
        fit = minimise(_of_fit(_subset(problem, np.flatnonzero(fold != k)), k))
        b[place], a[place] = fit.coefficients, fit.effects
    return b, a


# -- parts of the labels ------------------------------------------------------------------------------------


def some_of_each_fold(fold: NDArray[np.int64], n_folds: int, most: int = MOST_FITTED) -> NDArray[np.int64]:
    """Return the places of labels enough for a fit: every nth of a fold that has many, whatever the others have."""
    kept = np.zeros(fold.size, dtype=bool)
    for k in range(n_folds):
        own = np.flatnonzero(fold == k)
        kept[own[:: -(-own.size // most) or 1]] = True
    return np.flatnonzero(kept)


def _subset(problem: LogisticProblem, labels: NDArray[np.int64]) -> LogisticProblem:
    return replace(
        problem,
        columns=problem.columns[:, labels],
        target=problem.target[..., labels],
        offset=problem.offset[labels],
        group=problem.group[labels],
    )


def _of_fit(problem: LogisticProblem, fit: int) -> LogisticProblem:
    """Return the problem with the labels of one fit."""
    return replace(problem, target=problem.target[fit]) if problem.target.ndim > 1 else problem


def _sort_by_group(own: LogisticProblem) -> LogisticProblem:
    """Return the labels group by group, each column in one piece."""
    ordered = _subset(own, np.argsort(own.group, kind="stable"))
    return replace(ordered, columns=np.ascontiguousarray(ordered.columns))


def _thin(own: LogisticProblem, part: int) -> LogisticProblem:
    """Return every nth label."""
    if part == 1:
        return own
    few = _subset(own, np.arange(part // 2, own.group.size, part))
    return replace(few, columns=np.ascontiguousarray(few.columns))


def _join_folds(folds: list[LogisticProblem], left_out: int) -> LogisticProblem:
    """Return the labels of the other folds."""
    others = [own for k, own in enumerate(folds) if k != left_out]
    joined = replace(
        folds[0],
        columns=np.concatenate([own.columns for own in others], axis=1),
        target=np.concatenate([own.target for own in others], axis=-1),
        offset=np.concatenate([own.offset for own in others]),
        group=np.concatenate([own.group for own in others]),
    )
    return _of_fit(joined, left_out)


# -- all fits at once ---------------------------------------------------------------------------------------


_Block = tuple[slice, list[tuple[int, int]]]  # of `_blocks`


@dataclass(frozen=True)
class _Sums:
    """Gradient and Hessian of every fit, without the penalties. Of the Hessian the products of two groups are 0."""

    hessian: FloatArray  # [fit, column, column]
    crossed: FloatArray  # [fit, group, column]: the curvature of a group with a column; the first column is 1
    slopes: FloatArray  # [fit, group, column]: the same of the gradient


def _fit_folds(
    folds: list[LogisticProblem], left_out: NDArray[np.int64], b: FloatArray, a: FloatArray
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Return coefficients and effects after full Newton steps, and which fits have settled.

    A fit of which a step would gain no less than the one before is given up, and is where it began.
    """
    began = b, a
    settled, last = np.zeros(left_out.size, dtype=bool), np.full(left_out.size, np.inf)
    blocks = [list(_blocks(own.group)) for own in folds]
    n_labels = np.array([own.group.size for own in folds])
    enough = SMALL * (1.0 + n_labels.sum() - n_labels[left_out])
    for _ in range(MOST_STEPS):
        move, move_groups, gained = _newton_steps(_sums(folds, blocks, left_out, b, a), folds[0], b, a)
        going = ~settled & (gained < last)
        b, a = b - going[:, None] * move, a - going[:, None] * move_groups
        settled |= going & (gained <= enough)
        last = np.where(going, gained, -np.inf)
        if settled.all() or not going.any():
            break
    b, a = (np.where(settled[:, None], now, before) for now, before in zip((b, a), began, strict=True))
    return b, a, settled


def _sums(
    folds: list[LogisticProblem],
    blocks: list[list[_Block]],
    left_out: NDArray[np.int64],
    b: FloatArray,
    a: FloatArray,
) -> _Sums:
    n_fits, n_columns = b.shape
    first, second = np.triu_indices(n_columns)
    upper = np.zeros((n_fits, first.size))
    both = np.zeros((2, n_fits, a.shape[1], n_columns))
    for k, own in enumerate(folds):
        others = np.flatnonzero(left_out != k)
        coefficients, effects = b[others].T, np.ascontiguousarray(a[others].T)
        by_fit, parts = np.zeros((first.size, others.size)), []
        for rows, segments in blocks[k]:
            columns, group = own.columns[:, rows], own.group[rows]
            eta = columns.T @ coefficients + own.offset[rows, None] + effects[group]
            with np.errstate(over="ignore"):
                mean = 1.0 / (1.0 + np.exp(-eta))
            target = own.target[left_out[others], rows].T if own.target.ndim > 1 else own.target[rows, None]
            weights = np.concatenate([mean * (1.0 - mean), mean - target], axis=1)
            by_fit += (columns[first] * columns[second]) @ weights[:, : others.size]
            parts += [columns[:, start:stop] @ weights[start:stop] for start, stop in segments]
        if parts:
            present = own.group[np.flatnonzero(np.diff(own.group, prepend=-1))]
            by_group = np.stack(parts).reshape(len(parts), n_columns, 2, -1).transpose(2, 3, 0, 1)
            both[:, others[:, None], present] += by_group
        upper[others] += by_fit.T
    hessian = np.zeros((n_fits, n_columns, n_columns))
    hessian[:, first, second] = hessian[:, second, first] = upper
    return _Sums(hessian, *both)


def _blocks(group: NDArray[np.int64]) -> Iterator[_Block]:
    """Yield whole groups of labels, about a thousand at a time: which rows, and each group's rows within them."""
    edges = [*np.flatnonzero(np.diff(group, prepend=-1)).tolist(), group.size]
    begin, segments = 0, []
    for start, end in pairwise(edges):
        segments.append((start - begin, end - begin))
        if end - begin >= ROWS or end == group.size:
            yield slice(begin, end), segments
            begin, segments = end, []


def _newton_steps(
    sums: _Sums, penalties: LogisticProblem, b: FloatArray, a: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return Hessian^-1 gradient of every fit, and what it promises to take off twice the loss.

    The groups' diagonal block is eliminated first, as in `sampling.logistic`.
    """
    by_column = sums.slopes.sum(axis=1) + penalties.ridge * b
    by_group = sums.slopes[:, :, 0] + penalties.group_ridge * a
    own = sums.crossed[:, :, 0] + penalties.group_ridge
    shares = sums.crossed / own[:, :, None]
    schur = sums.hessian + np.diag(penalties.ridge) - np.swapaxes(sums.crossed, 1, 2) @ shares
    right = by_column - (shares * by_group[:, :, None]).sum(axis=1)
    move = np.linalg.solve(schur, right[:, :, None])[:, :, 0]
    move_groups = (by_group - (sums.crossed * move[:, None, :]).sum(axis=2)) / own
    gained = (move * by_column).sum(axis=1) + (move_groups * by_group).sum(axis=1)
    return move, move_groups, gained
