"""Components of the runs: in which directions runs differ, as features of a prediction, and how many of them help.

Runs of a family return the same documents, and which families return a document can say more of its relevance than
how many runs do. The first principal components of the runs' discounts hold that. On pools of few, unlike runs they
make predictions worse. So the labels choose how many there are: for every fold those of the other folds.
"""

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from sampling.leave_out import fits_without_each_fold, some_of_each_fold
from sampling.logistic import LogisticProblem, logits, minimise
from sampling.measures.families import FloatArray
from sampling.measures.sparse import SparseRuns
from sampling.pooling import as_ranks
from sampling.prediction import FEATURE_RIDGE, TOPIC_RIDGE, prediction_model, share_of_gain

COUNTS = (0, 10, 20, 40)
FEWEST_RUNS = 10
N_PARTS = 5  # of the folds, between which the number of components is chosen
MOST_CHOOSING = 400  # labels of a fold that the choice looks at
DIGITS = 8  # of an axis
PRODUCT_ITEMS = 2048  # items whose discounts in all runs fit into a cache
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

    discounts: "scipy.sparse.csr_array"
    axes: FloatArray
    mean: FloatArray

    @property
    def n_items(self) -> int:
        return int(self.discounts.shape[0])

    def first(self, count: int, items: NDArray[np.int64] | None = None) -> FloatArray:
        """Return the first `count` components of the items, or of all: array [item, count]."""
        rows = self.discounts if items is None else self.discounts[items]
        return np.asarray(rows @ self.axes[:, :count] - self.mean[:count])

    def sums(self, coefficients: FloatArray, fit: NDArray[np.int64], items: NDArray[np.int64]) -> FloatArray:
        """Return [item] the sum over components of coefficients [fit, component], each item's by its own fit.

        Made from the runs that return an item: the components themselves are not.
        """
        count = coefficients.shape[1]
        total = np.empty(items.size)
        for place, of_fit in enumerate(coefficients):  # one by one: not a bit may depend on the other fits
            by_run = np.einsum("rc,c->r", self.axes[:, :count], of_fit)
            here = np.flatnonzero(fit == place)
            total[here] = self.discounts[items[here]] @ by_run - np.einsum("c,c", self.mean[:count], of_fit)
        return total

    @property
    def counts(self) -> list[int]:
        """Return how many components a prediction may have."""
        return [count for count in COUNTS if count <= self.axes.shape[1]]


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
    discount = entries.value.astype(np.float64)  # of very many, so in place
    discount += 1.0
    np.log2(discount, out=discount)
    np.divide(1.0, discount, out=discount)
    ends = np.concatenate([[0], np.cumsum(entries.counts())]).astype(entries.run.dtype)
    table = scipy.sparse.csr_array((discount, entries.run, ends), shape=(n_items, n_runs))
    if n_runs < FEWEST_RUNS or not n_items:
        return RunComponents(table, np.zeros((n_runs, 0)), np.zeros(0))
    mean = np.asarray(table.sum(axis=0)) / n_items
    products = np.zeros((n_runs, n_runs))
    for _, block in entries.with_values(discount).blocks(PRODUCT_ITEMS):  # half as long as the sparse product
        products += block @ block.T
    covariance = products / n_items - np.outer(mean, mean)
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
    are held near 0 as the other features are. Of a fold with more than 10,000 labels every nth is used.

    Parameters
    ----------
    components : RunComponents
        Those of the whole frame. The other arguments, and the errors, are those of `sampling.prediction.cross_fitted`.
    """
    model = prediction_model(
        features=features,
        topic_index=topic_index,
        prior=prior,
        feature_ridge=feature_ridge,
        topic_ridge=topic_ridge,
    )
    if model.before.size != components.n_items:
        raise ValueError(f"components are of {components.n_items} items, the prior of {model.before.size}")
    n_folds, part = model.folds(fold)
    problem, places = model.problem(labelled, label)
    kept = some_of_each_fold(part[places], n_folds)
    problem, places = _of_labels(problem, kept), places[kept]
    chosen = _chosen_counts(problem, components, places, part[places], n_folds)
    share = np.empty(model.before.size)
    for count in np.unique(chosen).tolist():
        folds, items = np.flatnonzero(chosen == count), np.flatnonzero(chosen[part] == count)
        wide = _with_columns(problem, components.first(count, places)) if count else problem
        coefficients, effects = fits_without_each_fold(wide, part[places], n_folds, folds)
        n_known = problem.columns.shape[0]
        fit = np.searchsorted(folds, part[items])
        eta = model.logits(coefficients[:, :n_known], effects, fit, items)
        if count:
            eta += components.sums(coefficients[:, n_known:], fit, items)
        share[items] = share_of_gain(eta)
    return ComponentPrediction(share, chosen)


def _chosen_counts(
    problem: LogisticProblem,
    components: RunComponents,
    places: NDArray[np.int64],
    fold: NDArray[np.int64],
    n_folds: int,
) -> NDArray[np.int64]:
    """Return the number of components for every fold; `places` and `fold` are those of the labels.

    Folds are put into five parts. A fit leaves out two of them; its loss on the one counts in the choice for the
    other, which therefore knows neither the labels nor the number of labels of its own part.
    """
    counts, n_parts = components.counts, min(N_PARTS, n_folds)
    if len(counts) == 1 or n_parts < 3:
        return np.zeros(n_folds, dtype=np.int64)
    kept = some_of_each_fold(fold, n_folds, MOST_CHOOSING)
    wide = _with_columns(_of_labels(problem, kept), components.first(counts[-1], places[kept]))
    part, n_known = fold[kept] % n_parts, problem.columns.shape[0]
    of_parts = [_of_labels(wide, part == one) for one in range(n_parts)]
    loss = np.zeros((n_parts, len(counts)))
    for one, other in combinations(range(n_parts), 2):
        others = _of_labels(wide, (part != one) & (part != other))
        b, a = np.zeros(0), np.zeros(wide.n_groups)
        for place, count in enumerate(counts):
            n_columns = n_known + count
            # with fewer components the optimum is near
            fit = minimise(_of_columns(others, n_columns), start=(np.pad(b, (0, n_columns - b.size)), a))
            b, a = fit.coefficients, fit.effects
            for chooser, judge in ((one, other), (other, one)):
                held = _of_columns(of_parts[judge], n_columns)
                eta = logits(held, fit.coefficients, fit.effects)
                loss[chooser, place] += float((np.logaddexp(0.0, eta) - held.target * eta).sum())
    best = np.asarray(counts, dtype=np.int64)[loss.argmin(axis=1)]
    return np.asarray(best[np.arange(n_folds) % n_parts], dtype=np.int64)


def _with_columns(problem: LogisticProblem, further: FloatArray) -> LogisticProblem:
    """Return the regression with more features, [label, feature], held near 0 as the others are."""
    return replace(
        problem,
        columns=np.concatenate([problem.columns, further.T]),
        ridge=np.concatenate([problem.ridge, np.full(further.shape[1], FEATURE_RIDGE)]),
    )


def _of_columns(problem: LogisticProblem, n_columns: int) -> LogisticProblem:
    return replace(problem, columns=problem.columns[:n_columns], ridge=problem.ridge[:n_columns])


def _of_labels(problem: LogisticProblem, wanted: NDArray[np.bool_] | NDArray[np.int64]) -> LogisticProblem:
    return replace(
        problem,
        columns=problem.columns[:, wanted],
        target=problem.target[wanted],
        offset=problem.offset[wanted],
        group=problem.group[wanted],
    )
