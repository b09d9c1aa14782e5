"""Scores of the labels of one judge, when there may be more labels than grades.

A matrix is [true, given] and its rows sum to 1; "cannot tell" is a label, not a grade. What combines several judges
is in `experiments.papers.combining`. Source: docs/methods/derivations/noise-correction.md, sections 3 and 5.
"""

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite
from analytics.estimation.estimate import Floats

SINGULAR = 1e-9  # of det(J W^-1 J^T): 1 for labels that always tell the grade


# -- validation ---------------------------------------------------------------------------------------------


def label_matrix(matrix: ArrayLike) -> Floats:
    """Return J[true, given] with at least as many labels as grades, rows >= 0 that sum to 1."""
    j = finite("matrix", matrix)
    if j.ndim != 2 or j.shape[0] < 2 or j.shape[1] < j.shape[0]:
        raise ValueError(f"matrix must be [true, given] with given >= true >= 2, got shape {j.shape}")
    if (j < 0).any() or not np.allclose(j.sum(axis=1), 1, atol=1e-6):
        raise ValueError(f"matrix rows must be >= 0 and sum to 1, got sums {j.sum(axis=1).tolist()}")
    return j


# -- more labels than grades --------------------------------------------------------------------------------


def least_variance_scores(matrix: ArrayLike, label_shares: ArrayLike, gains: ArrayLike) -> Floats:
    """Return ``c = W^-1 J^T (J W^-1 J^T)^-1 v``, W = diag(label shares): of all c with J c = v the least noisy.

    Any c with J c = v is unbiased, ``E[c(label) | grade] = v(grade)``; this one has the smallest ``sum h c^2``.
    As many labels as grades: J^-1 v, whatever the shares. Raise ValueError if J has not full rank.

    >>> least_variance_scores([[.9, .1], [.2, .8]], [.5, .5], [0, 1]).round(6).tolist()
    [-0.142857, 1.285714]
    """
    j, h, v = label_matrix(matrix), finite("label_shares", label_shares), finite("gains", gains)
    if h.shape != (j.shape[1],) or (h <= 0).any():
        raise ValueError(f"label_shares must be {j.shape[1]} numbers above 0, got {h.tolist()}")
    if v.shape != (j.shape[0],):
        raise ValueError(f"gains must have length {j.shape[0]}, got shape {v.shape}")
    return np.asarray((j / h).T @ np.linalg.solve(_information(j, h), v))


def true_mix(matrix: ArrayLike, label_shares: ArrayLike, weighted_labels: ArrayLike) -> Floats:
    """Return pi, the true grades behind `weighted_labels[label]`: ``(J W^-1 J^T)^-1 J W^-1 h``.

    As many labels as grades: ``J^-T h`` (Goldberg Eq 17), and ``pi . v = h . c``. It may be negative.

    >>> true_mix([[.9, .1], [.2, .8]], [.5, .5], [.48, .52]).round(6).tolist()
    [0.4, 0.6]
    """
    j, w = label_matrix(matrix), finite("label_shares", label_shares)
    if w.shape != (j.shape[1],) or (w <= 0).any():
        raise ValueError(f"label_shares must be {j.shape[1]} numbers above 0, got {w.tolist()}")
    h = finite("weighted_labels", weighted_labels, w.shape)
    return np.asarray(np.linalg.solve(_information(j, w), j @ (h / w)))


def _information(j: Floats, h: Floats) -> Floats:
    information: Floats = (j / h) @ j.T
    if abs(np.linalg.det(information)) < SINGULAR:
        raise ValueError(
            "matrix must have as many independent rows as grades: its labels do not tell them apart"
        )
    return information
