"""Which items are in question, and by which of five rules: a table."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analytics.estimation.samples import Labels

Mask = NDArray[np.bool_]
GRADES_APART = 2


@dataclass(frozen=True)
class Reason:
    """One rule: its key as stored and as the API spells it, and what it says of an item, as a sentence."""

    key: str
    label: str
    help: str


RELEVANCE = Reason(
    "relevance", "Relevance", "Less than two thirds of the grades are on either side of relevance."
)
APART = Reason("apart", "Grades apart", "Two grades are 2 or more apart.")
DOUBTFUL = Reason(
    "doubtful",
    "Doubtful and influential",
    "The aggregated label is probably wrong, and that would move a comparison.",
)
STUCK = Reason("stuck", "Stuck", "Nobody is left who may still judge it.")
ASKED = Reason("asked", "Asked about", "An assessor asks about it.")
REASONS = (RELEVANCE, APART, DOUBTFUL, STUCK, ASKED)


def reason(key: str) -> Reason:
    """Return the reason of this key; KeyError if there is none."""
    return {one.key: one for one in REASONS}[key]


def is_split(labels: Labels) -> Mask:
    """Return by item whether less than two thirds of its grades are on either side of relevance.

    >>> is_split(Labels([0, 0, 1, 1, 1, 2], [0, 1, 0, 1, 2, 0], [0, 2, 0, 1, 1, 1], 3, 3, 3)).tolist()
    [True, False, False]
    """
    n = np.bincount(labels.item, minlength=labels.n_items)
    relevant = np.bincount(labels.item[labels.grade >= labels.relevant_grade], minlength=labels.n_items)
    return np.asarray((3 * relevant < 2 * n) & (3 * (n - relevant) < 2 * n))


def is_apart(labels: Labels, steps: int = GRADES_APART) -> Mask:
    """Return by item whether two of its grades are so many steps apart.

    >>> is_apart(Labels([0, 0, 1, 1], [0, 1, 0, 1], [0, 2, 1, 2], 2, 2, 3)).tolist()
    [True, False]
    """
    lowest, highest = np.full(labels.n_items, labels.n_grades), np.full(labels.n_items, -1)
    np.minimum.at(lowest, labels.item, labels.grade)
    np.maximum.at(highest, labels.item, labels.grade)
    return np.asarray(highest - lowest >= steps)


def is_unanimous(labels: Labels) -> Mask:
    """Return by item whether all its grades are alike."""
    return ~is_apart(labels, 1)


def in_question(labels: Labels, doubtful: ArrayLike, candidates: ArrayLike) -> dict[str, Mask]:
    """Return of each rule that goes by grades the items in question, by its key.

    Parameters
    ----------
    labels : Labels
        The grades that count.
    doubtful : array of bool, shape (n_items,)
        What is listed for its influence times its probability of error (`sampling.rejudging.shortest_queue`).
    candidates : array of bool, shape (n_items,)
        The items that may be in question at all: neither gold nor a manager has decided them.
    """
    may = np.asarray(candidates, dtype=bool)
    rules = {
        RELEVANCE.key: is_split(labels),
        APART.key: is_apart(labels),
        DOUBTFUL.key: np.asarray(doubtful, dtype=bool),
    }
    return {key: mask & may for key, mask in rules.items()}
