"""Which grades to look at once more: how likely an item's joint grade is wrong, and how much that would move.

A guide for the eyes of a manager, never an estimate: errors of several judges are taken to be independent, which makes
the shares too sure. The order of the items hardly depends on that.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analytics.estimation.samples import Labels
from sampling.measures.sparse import SparseRuns

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Disputes:
    """The items in question, the worst first.

    Attributes
    ----------
    item : int64 array
        Places among the items.
    influence : float64 array
        How far a wrong grade of the item moves the differences between runs: the spread of its weights times the gain
        that would be wrong, if it is wrong.
    error_probability : float64 array
        How likely the joint grade is wrong.
    """

    item: Ints
    influence: Floats
    error_probability: Floats


def grade_shares(labels: Labels, confusion: Floats | None = None) -> Floats:
    """Return how likely each grade is the true one, [item, grade].

    With `confusion[assessor, true, given]`, all above 0, by Bayes' rule from the frequency of the grades given and how
    each judge errs. Without it every item counts one label more, spread as grades are everywhere.

    Examples
    --------
    >>> labels = Labels([0, 0, 1], [0, 1, 0], [1, 0, 1], n_items=2, n_assessors=2, n_grades=2)
    >>> grade_shares(labels).round(3).tolist()
    [[0.444, 0.556], [0.167, 0.833]]
    """
    item, who, grade = labels.item, labels.assessor, labels.grade
    n_items, n_grades = labels.n_items, labels.n_grades
    frequency = np.bincount(grade, minlength=n_grades).astype(np.float64)
    frequency /= max(frequency.sum(), 1.0)
    if confusion is None:
        cells = np.bincount(item * n_grades + grade, minlength=n_items * n_grades)
        counts = cells.reshape(n_items, n_grades) + frequency
        return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300))
    by_label = np.log(np.asarray(confusion, dtype=np.float64)).transpose(1, 0, 2).reshape(n_grades, -1)
    place = who * n_grades + grade
    columns = [np.bincount(item, by_label[true][place], n_items) for true in range(n_grades)]
    logs = np.stack(columns, axis=1) + np.log(np.maximum(frequency, 1e-9))
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def spreads(weights: SparseRuns) -> Floats:
    """Return by item how far runs weigh it differently: the root mean square of w_a - w_b over all pairs of runs.

    Of a single run it is the weight, of none it is 0.

    Examples
    --------
    >>> from sampling.measures.sparse import from_dense
    >>> spreads(from_dense(np.array([[0.5, 0.2, 0.0], [0.1, 0.2, 0.2]]))).round(6).tolist()
    [0.4, 0.0, 0.2]
    """
    n = weights.n_runs
    if n <= 1:
        return np.abs(weights.item_sums(weights.value.astype(np.float64)))
    value = weights.value.astype(np.float64)
    squares, sums = weights.item_sums(value * value), weights.item_sums(value)
    apart = np.maximum(n * squares - sums * sums, 0.0)
    apart[apart < 1e-12 * n * squares] = 0.0  # what rounding leaves where all weigh alike
    return np.asarray(np.sqrt(apart / (n * (n - 1) / 2)))


def disputes(
    weights: SparseRuns,
    shares: ArrayLike,
    joint_grade: ArrayLike,
    gains: ArrayLike,
    candidates: ArrayLike,
    most: int,
) -> Disputes:
    """Return at most so many candidates with the largest influence times error probability, the worst first.

    Parameters
    ----------
    weights : SparseRuns
        w of every run at every item.
    shares : array, shape (n_items, n_grades)
        How likely each grade is the true one: `grade_shares`.
    joint_grade : array, shape (n_items,)
        The grade that the item's judgments say together.
    gains : array, shape (n_grades,)
    candidates : array of bool, shape (n_items,)
        The items that may be in question at all.

    Examples
    --------
    >>> from sampling.measures.sparse import from_dense
    >>> found = disputes(from_dense(np.array([[0.5, 0.5], [0.0, 0.0]])), [[0.9, 0.1], [0.4, 0.6]], [0, 1], [0.0, 1.0],
    ...                  [True, True], 5)
    >>> found.item.tolist(), found.error_probability.round(6).tolist(), found.influence.round(6).tolist()
    ([1, 0], [0.4, 0.1], [0.5, 0.5])
    """
    share, grade = np.asarray(shares, dtype=np.float64), np.asarray(joint_grade, dtype=np.int64)
    gain = np.asarray(gains, dtype=np.float64)
    wrong = np.maximum(1.0 - share[np.arange(grade.size), grade], 0.0)
    # The mean step over all grades that it may have instead; its own grade adds nothing.
    step = np.abs(gain[None, :] - gain[:, None])
    moved = (share @ step)[np.arange(grade.size), grade]
    spread = spreads(weights)
    priority = np.where(np.asarray(candidates, dtype=bool), spread * moved, 0.0)
    n = min(most, int(np.count_nonzero(priority > 0)))
    if n == 0:
        return Disputes(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))
    largest = np.argpartition(-priority, n - 1)[:n]
    item = largest[np.lexsort((largest, -priority[largest]))]
    influence = np.divide(priority[item], wrong[item], out=np.zeros(n), where=wrong[item] > 0)
    return Disputes(item, influence, np.minimum(wrong[item], 1.0))
