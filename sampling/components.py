"""Components of the runs: in which directions runs differ, as features of a prediction, and how many of them help.

Runs of a family return the same documents, and which families return a document can say more of its relevance than
how many runs do. The first principal components of the runs' discounts hold that. On pools of few, unlike runs they
make predictions worse. So the labels choose how many there are: for every fold those of the other folds.
"""

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from sampling.arrays import integers
from sampling.logistic import LogisticProblem, logits, minimise
from sampling.measures.families import FloatArray
from sampling.measures.sparse import SparseRuns
from sampling.pooling import as_ranks
from sampling.prediction import FEATURE_RIDGE, TOPIC_RIDGE, cross_fitted, prediction_problem

COUNTS = (0, 10, 20, 40)
FEWEST_RUNS = 10
N_PARTS = 5  # of the folds, between which the number of components is chosen
MOST_LABELS = 400  # of a fold, that the choice looks at
MOST_NUMBERS = 40_000_000
DIGITS = 8  # of an axis
_NOTHING = 1e-9  # of the largest variance: what is left of a direction in which runs do not differ


@dataclass(frozen=True)
class RunComponents:
    """Components of the runs, computed for the items that are asked for: all of a large pool would fill the memory.

    Attributes
    ----------
    discounts : sparse array [item, run]
    axes : array [run, component]
        Scaled, so that every component has standard deviation 1 over the items.
    mean : array [component]
    """

    discounts: csr_array
    axes: FloatArray
    mean: FloatArray

    @property
    def n_items(self) -> int:
        return int(self.discounts.shape[0])

    def first(self, count: int, items: NDArray[np.int64] | None = None) -> FloatArray:
        """Return the first `count` components of the items, or of all: array [item, count]."""
        rows = self.discounts if items is None else self.discounts[items]
        return np.asarray(rows @ self.axes[:, :count] - self.mean[:count])

    @property
    def counts(self) -> list[int]:
        """Return how many components a prediction may have: never more numbers than a small memory holds."""
        most = min(self.axes.shape[1], MOST_NUMBERS // max(self.n_items, 1))
        return [count for count in COUNTS if count <= most]


def run_components(ranks: ArrayLike | SparseRuns) -> RunComponents:
    """Return the principal components of the runs' discounts, standardised, the largest variance first.

    A run's discount of an item is 1/log2(1 + rank), 0 if it does not return it. The components are those of the
    covariance of the runs over the items: a table of runs by runs, so that no random number is needed. Runs that agree
    in everything give fewer than the 40 that are used at most; fewer than 10 runs give none.

    Parameters
    ----------
    ranks : int array, shape (n_runs, n_items), or SparseRuns
        0 = not returned.

    Raises
    ------
    ValueError
        Ranks of the wrong shape, type or sign.

    Examples
    --------
    >>> run_components(np.eye(12, dtype=np.int64)).first(3).shape, run_components([[1, 2]]).counts
    ((12, 3), [0])
    """
    entries = as_ranks(ranks)
    n_items, n_runs = entries.n_items, entries.n_runs
    discount = 1.0 / np.log2(1.0 + entries.value.astype(np.float64))
    table = csr_array((discount, (entries.item, entries.run)), shape=(n_items, n_runs))
    if n_runs < FEWEST_RUNS or not n_items:
        return RunComponents(table, np.zeros((n_runs, 0)), np.zeros(0))
    mean = np.asarray(table.sum(axis=0)) / n_items
    covariance = (table.T @ table).toarray() / n_items - np.outer(mean, mean)
    variance, axes = np.linalg.eigh(covariance)
    floor = _NOTHING * max(float(variance[-1]), float(np.finfo(np.float64).tiny))
    kept = np.flatnonzero(variance > floor)[::-1][: COUNTS[-1]]
    axes = axes[:, kept]
    # An axis has no direction of its own, and machines differ in its last digits: made alike, so that they agree.
    axes *= np.where(axes[np.abs(axes).argmax(axis=0), np.arange(kept.size)] < 0, -1.0, 1.0)
    axes = np.round(axes, DIGITS) / np.sqrt([float(f"{one:.{DIGITS}e}") for one in variance[kept].tolist()])
    return RunComponents(table, axes, np.einsum("r,rc->c", mean, axes))


@dataclass(frozen=True)
class ComponentPrediction:
    """What `cross_fitted_with_components` returns.

    Attributes
    ----------
    share : array, shape (n_items,)
        f, as `cross_fitted` has it.
    n_components : int array, shape (n_folds,)
        How many components the other folds' labels chose for each fold, in the order of the folds.
    """

    share: FloatArray
    n_components: NDArray[np.int64]


def cross_fitted_with_components(
    *,
    components: RunComponents,
    features: ArrayLike,
    topic_index: ArrayLike,
    fold: ArrayLike,
    prior: ArrayLike,
    labelled: ArrayLike,
    label: ArrayLike,
    feature_ridge: ArrayLike = FEATURE_RIDGE,
    topic_ridge: float = TOPIC_RIDGE,
) -> ComponentPrediction:
    """Return f of every item, with as many of the components among its features as the other folds' labels choose.

    Neither f nor the number of components of a fold uses a label of that fold, nor how many there are. Components
    are held near 0 as the other features are.

    Parameters
    ----------
    components : RunComponents
        Those of the whole frame. The other arguments, and the errors, are those of `sampling.prediction.cross_fitted`.
    """
    known = np.asarray(features, dtype=np.float64)
    n_items = components.n_items
    if known.ndim != 2 or known.shape[0] != n_items:
        raise ValueError(f"features must have {n_items} rows as the components have, got {known.shape}")
    ridge = np.broadcast_to(np.asarray(feature_ridge, dtype=np.float64), (known.shape[1],))
    parts, part = np.unique(integers("fold", fold, n_items), return_inverse=True)
    given = {"topic_index": topic_index, "prior": prior, "labelled": labelled, "label": label}
    counts = components.counts
    chosen = np.zeros(parts.size, dtype=np.int64)
    if len(counts) > 1:
        problem = prediction_problem(**given, features=known, feature_ridge=ridge, topic_ridge=topic_ridge)
        places = np.asarray(labelled, dtype=np.int64)
        further = components.first(counts[-1], places)
        chosen = _chosen_counts(_with_columns(problem, further), part[places], parts.size, counts)
    share = np.empty(n_items)
    for count in np.unique(chosen).tolist():
        fitted = cross_fitted(
            **given,
            features=np.concatenate([known, components.first(count)], axis=1),
            feature_ridge=np.concatenate([ridge, np.full(count, FEATURE_RIDGE)]),
            fold=part,
            topic_ridge=topic_ridge,
        )
        here = chosen[part] == count
        share[here] = fitted[here]
    return ComponentPrediction(share, chosen)


def _chosen_counts(
    problem: LogisticProblem, fold: NDArray[np.int64], n_folds: int, counts: list[int]
) -> NDArray[np.int64]:
    """Return the number of components for every fold.

    Folds are put into five parts. A fit leaves out two of them; its loss on the one counts in the choice for the
    other, which therefore knows neither the labels nor the number of labels of its own part.
    """
    n_parts = min(N_PARTS, n_folds)
    if n_parts < 3:
        return np.zeros(n_folds, dtype=np.int64)
    kept = _some_of_each_fold(fold, n_folds)
    part = np.where(kept, fold % n_parts, -1)
    n_known = problem.columns.shape[0] - counts[-1]
    loss = np.zeros((n_parts, len(counts)))
    for place, count in enumerate(counts):
        narrow = _of_columns(problem, n_known + count)
        for one, other in combinations(range(n_parts), 2):
            fit = minimise(_of_labels(narrow, kept & (part != one) & (part != other)))
            for chooser, judge in ((one, other), (other, one)):
                held = _of_labels(narrow, part == judge)
                eta = logits(held, fit.coefficients, fit.effects)
                loss[chooser, place] += float((np.logaddexp(0.0, eta) - held.target * eta).sum())
    best = np.asarray(counts, dtype=np.int64)[loss.argmin(axis=1)]
    return np.asarray(best[np.arange(n_folds) % n_parts], dtype=np.int64)


def _some_of_each_fold(fold: NDArray[np.int64], n_folds: int) -> NDArray[np.bool_]:
    """Return which labels the choice looks at: every nth of a fold that has many, whatever the others have."""
    kept = np.zeros(fold.size, dtype=bool)
    for k in range(n_folds):
        own = np.flatnonzero(fold == k)
        kept[own[:: -(-own.size // MOST_LABELS) or 1]] = True
    return kept


def _with_columns(problem: LogisticProblem, further: FloatArray) -> LogisticProblem:
    """Return the regression with more features, [label, feature], held near 0 as the others are."""
    return replace(
        problem,
        columns=np.concatenate([problem.columns, further.T]),
        ridge=np.concatenate([problem.ridge, np.full(further.shape[1], FEATURE_RIDGE)]),
    )


def _of_columns(problem: LogisticProblem, n_columns: int) -> LogisticProblem:
    return replace(problem, columns=problem.columns[:n_columns], ridge=problem.ridge[:n_columns])


def _of_labels(problem: LogisticProblem, wanted: NDArray[np.bool_]) -> LogisticProblem:
    return replace(
        problem,
        columns=problem.columns[:, wanted],
        target=problem.target[wanted],
        offset=problem.offset[wanted],
        group=problem.group[wanted],
    )
