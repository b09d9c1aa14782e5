"""The papers' correction of a measure: labels replaced by scores from inverted confusion matrices.

It is right only if an assessor errs alike on all documents of one grade. Real judges do not
(docs/methods/derivations/real-judges.md, section 1), so these numbers are shown by name and never reported as the
result; `analytics.papers.assumption` tests it.
`matrices[assessor, true, given]`, rows sum to 1; the other arrays are described in `analytics.estimation.correction`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analytics.estimation.checks import finite, probabilities
from analytics.estimation.estimate import Estimates, Floats, Ints, Refusal, all_refused, estimates, too_few_of
from analytics.estimation.estimators import known_prior, poisson_degrees_of_freedom
from analytics.estimation.samples import Labels
from analytics.estimation.targets import TargetWeights, Weights, as_targets, fourth_powers, not_zero
from analytics.papers.separation import SINGULAR, matrices_refusal

INVERSE_SOURCES = ("drawing", "label noise", "confusion matrices")
AT_ONCE = 500  # targets whose feasibility is looked at together


# -- one matrix ---------------------------------------------------------------------------------------------


def label_scores(matrix: ArrayLike, gains: ArrayLike) -> Floats:
    """Return ``c = J^-1 v``: scores of the labels with ``E[c(label) | true grade] = v(true grade)``.

    Assumption: J is known and the same for all items of a grade. Raise ValueError if J is singular.
    Source: Goldberg et al. (2017), Eq 18.

    >>> label_scores([[.9, .1], [.2, .8]], [0, 1]).round(6).tolist()
    [-0.142857, 1.285714]
    """
    j, v = _matrix(matrix), finite("gains", gains)
    if v.shape != (j.shape[0],):
        raise ValueError(f"gains must have length {j.shape[0]}, got shape {v.shape}")
    return np.asarray(np.linalg.solve(j, v))


def score_variance(matrix: ArrayLike, scores: ArrayLike) -> Floats:
    """Return ``tau^2(g) = Var(c(label) | true grade g)``, never negative."""
    return score_variances(finite("matrix", matrix), finite("scores", scores))


def score_variances(matrices: Floats, scores: Floats) -> Floats:
    """Return tau^2 [..., true] of matrices [..., true, given] and scores [..., given]."""
    centred = scores[..., None, :] - (matrices * scores[..., None, :]).sum(axis=-1, keepdims=True)
    return np.asarray((matrices * centred**2).sum(axis=-1))


def matrix_variance(mix: ArrayLike, tau_squared: ArrayLike, gold_per_grade: ArrayLike) -> float:
    """Return ``V_J = sum pi(g)^2 tau^2(g) / n_g``, the variance from estimating J.

    Assumption: the audit's rows are independent multinomials of size n_g; mix is ``pi = J^-T h``.
    Source: docs/methods/derivations/noise-correction.md, section 3.3.
    """
    n = finite("gold_per_grade", gold_per_grade)
    if (n <= 0).any():
        raise ValueError(f"gold_per_grade must be above 0, got {n.min()}")
    return float((finite("mix", mix) ** 2 * finite("tau_squared", tau_squared) / n).sum())


def _matrix(matrix: ArrayLike) -> Floats:
    j = finite("matrix", matrix)
    if j.ndim != 2 or j.shape[0] != j.shape[1] or j.shape[0] < 2:
        raise ValueError(f"matrix must be square with at least 2 grades, got shape {j.shape}")
    if (j < 0).any() or not np.allclose(j.sum(axis=1), 1, atol=1e-6):
        raise ValueError(f"matrix rows must be >= 0 and sum to 1, got sums {j.sum(axis=1).tolist()}")
    if abs(np.linalg.det(j)) < SINGULAR:
        raise ValueError(f"matrix must be invertible, got determinant {np.linalg.det(j):.3g}")
    return j


def smoothed_matrices(matrix: Floats, n: Floats, added: float = 0.5) -> Floats:
    """Return rows with half an observation added to every cell: a row without errors is not free of them."""
    grades = matrix.shape[-1]
    rows: Floats = (matrix * n[..., None] + added) / (n[..., None] + added * grades)
    return rows


# -- the estimator ------------------------------------------------------------------------------------------


def checked_matrices(
    matrices: ArrayLike, gold_per_grade: ArrayLike, gains: ArrayLike, labels: Labels
) -> tuple[Floats, Floats, Floats]:
    """Return matrices, gold and gains; ValueError unless they are of the assessors and grades of the labels."""
    n_grades = labels.n_grades
    v = finite("gains", gains, (n_grades,))
    j = finite("matrices", matrices, (labels.n_assessors, n_grades, n_grades))
    gold = finite("gold_per_grade", gold_per_grade, j.shape[:2])
    used = gold > 0  # rows without gold are refused later, whatever stands in them
    if (j[used] < 0).any() or not np.allclose(j[used].sum(axis=-1), 1, atol=1e-6):
        raise ValueError("matrix rows must be >= 0 and sum to 1")
    return j, gold, v


@dataclass(frozen=True)
class Matrices:
    """The matrices of the assessors who labelled anything, and what V_J needs of them. Assessor is a place in them."""

    matrices: Floats  # [assessor, true, given]
    gold: Floats  # [assessor, true]
    labels: Labels

    def scores(self, gains: Floats) -> Floats:
        """Return c = J^-1 v [assessor, given]."""
        return np.asarray(
            np.linalg.solve(self.matrices, np.broadcast_to(gains[:, None], (*self.gold.shape, 1)))[..., 0]
        )

    def noise(self, scores: Floats) -> Floats:
        """Return nu = J^-1 tau^2 [assessor, given]."""
        spread = score_variances(self.matrices, scores)
        return np.asarray(np.linalg.solve(self.matrices, spread[:, :, None])[..., 0])

    def item_sum(self, table: Floats, share: Floats) -> Floats:
        """Return per item the sum over its labels of share * table[assessor, given]."""
        value = share * table[self.labels.assessor, self.labels.grade]
        return np.bincount(self.labels.item, weights=value, minlength=self.labels.n_items).astype(np.float64)

    def mixes(self, targets: TargetWeights) -> Floats:
        """Return pi_a = J_a^-T h_a [run, assessor, true]: the weighted true-grade mix of what each one labelled."""
        n_assessors, n_grades = self.gold.shape
        n_cells = n_assessors * n_grades
        cell = self.labels.assessor * n_grades + self.labels.grade
        h = targets.totals_at(self.labels.item, self.labels.share, cell, n_cells)
        h = h.reshape(-1, n_assessors, n_grades)
        # J^T pi = h, all runs of one assessor at once
        solved = np.linalg.solve(np.swapaxes(self.matrices, 1, 2), np.transpose(h, (1, 2, 0)))
        return np.ascontiguousarray(np.transpose(solved, (2, 0, 1)))


@dataclass(frozen=True)
class _Inverse:
    """Value without the frame total, variances and degrees of freedom, by target."""

    value: Floats
    parts: tuple[Floats, Floats, Floats]
    degrees_of_freedom: Floats
    n: Ints
    is_positive: NDArray[np.bool_]  # no weight is negative


def _below_zero(weights: Floats) -> Floats:
    return np.asarray(weights < 0, dtype=np.float64)


def _inverse(
    targets: TargetWeights, pi: Floats, given: Matrices, mixes: Floats, gains: Floats, prior: Floats
) -> _Inverse:
    c = given.scores(gains)
    surprise = (given.item_sum(c, given.labels.share) - prior) / pi
    noise = given.item_sum(given.noise(c), given.labels.share**2) / pi  # unbiased, but may be negative
    drawing, positive = (1 - pi) * surprise**2, np.maximum(0.0, noise)
    squares, spread, counted, negative = targets.sums(
        (np.square, np.stack([drawing, noise, positive], axis=1)),
        (fourth_powers, (1 - pi) * (drawing + positive) ** 2),
        (not_zero, np.ones(pi.size)),
        (_below_zero, np.ones(pi.size)),
    )
    drawn, noisy, clamped = squares.T
    cells, cell_spread = _matrix_variances(targets, given, mixes, c)

    parts = (drawn, np.maximum(0.0, noisy), cells)
    sampled = (parts[0] + parts[1]) ** 2 / poisson_degrees_of_freedom(drawn + clamped, spread)
    below = cell_spread + sampled
    df = np.divide(sum(parts) ** 2, below, out=np.full(below.shape, np.inf), where=below > 0)
    n = np.rint(counted).astype(np.int64)
    return _Inverse(targets.totals(surprise), parts, np.maximum(1.0, df), n, negative == 0)


def _matrix_variances(
    targets: TargetWeights, given: Matrices, mixes: Floats, scores: Floats
) -> tuple[Floats, Floats]:
    """Return V_J by target, and the sum of its squared terms over their degrees of freedom."""
    tau = score_variances(smoothed_matrices(given.matrices, given.gold), scores) / given.gold
    of_spread = tau**2 / np.maximum(1, given.gold - 1)
    variance, spread = np.zeros((2, len(targets)))
    for part, mix in targets.blocks(mixes.reshape(mixes.shape[0], -1)):
        squares = mix**2
        variance[part], spread[part] = squares @ tau.ravel(), squares**2 @ of_spread.ravel()
    return variance, spread


def matrix_inverse(
    weights: Weights,
    labels: Labels,
    *,
    draw_probability: ArrayLike,
    matrices: ArrayLike,
    gold_per_grade: ArrayLike,
    gains: ArrayLike,
    prior: ArrayLike | None = None,
    prior_total: ArrayLike | None = None,
    rng: np.random.Generator | None = None,
) -> Estimates:
    """Return the measure with every label replaced by its score ``J_a^-1 v``, one result per target.

    Assumption: given the true grade, an assessor's label depends on nothing else (not on the document, nor on
    who returned it), and the labels of one item are independent. False for real judges: the interval then
    misses the truth most of the time, and no amount of gold helps. Poisson draw.
    `gold_per_grade[assessor, grade]` is what each row rests on (n + k for shrunk rows). One pooled matrix:
    labels of one assessor. Variance: drawing + label noise + V_J (cells + 1/2); t by Satterthwaite.
    Refused where a matrix cannot be inverted safely, and, for targets without negative weights and pairs of
    these, where the implied share of a grade is negative by more than 1.96 standard errors. `rng` is for 3 or more
    grades.

    Source: Goldberg et al. (2017), Eq 17-18; docs/methods/derivations/noise-correction.md, sections 3 and 6.
    """
    targets = as_targets(weights)
    n_targets, n_items = len(targets), targets.n_items
    pi = probabilities("draw_probability", draw_probability, n_items)
    if labels.n_items != n_items:
        raise ValueError(f"weights must be of the {labels.n_items} items of the labels, got {n_items}")
    j, gold, v = checked_matrices(matrices, gold_per_grade, gains, labels)
    f, totals = known_prior(prior, prior_total, n_items, (n_targets,))

    present, own = labels.of_assessors()
    refused = matrices_refusal(j[present], gold[present], rng)
    if refused is not None:
        return all_refused(n_targets, refused)
    weighed = np.flatnonzero(targets.runs.counts())  # no other item plays a part
    targets, pi, f = targets.over(weighed), pi[weighed], f[weighed]
    given = Matrices(j[present], gold[present], own.of_items(weighed))
    mixes = given.mixes(targets.times(1 / pi))
    found = _inverse(targets, pi, given, mixes, v, f)
    return estimates(
        totals + found.value,
        dict(zip(INVERSE_SOURCES, found.parts, strict=True)),
        degrees_of_freedom=found.degrees_of_freedom,
        n=found.n,
        refusals=_with_pairs(targets, _infeasible(targets, pi, given, mixes, found.is_positive))
        | too_few_of(found.n),
    )


def _with_pairs(targets: TargetWeights, runs: dict[int, Refusal]) -> dict[int, Refusal]:
    """Return the refusals with those of every pair that has a refused run: impossible values have no difference."""
    if not targets.paired or not runs:
        return runs
    n_runs, pairs = targets.runs.n_runs, {}
    for place, both in enumerate(zip(*(side.tolist() for side in targets.pairs), strict=True)):
        refused = next((runs[run] for run in both if run in runs), None)
        if refused is not None:
            pairs[n_runs + place] = Refusal(f"of one of the two runs, {refused.reason}", refused.needed)
    return runs | pairs


def _infeasible(
    targets: TargetWeights, pi: Floats, given: Matrices, mixes: Floats, is_positive: NDArray[np.bool_]
) -> dict[int, Refusal]:
    """Return the refusals of targets to which J^-1 gives a negative share (binary: j outside [1-mN, mR])."""
    total = targets.totals(1 / pi)
    every = np.flatnonzero(is_positive & (total > 0))
    found: dict[int, Refusal] = {}
    if every.size == 0:  # only differences: there is no share to be negative
        return found
    for asked in np.array_split(every, 1 + every.size // AT_ONCE):
        some, mix = targets.subset(asked), targets.of_targets(mixes, asked)
        for grade in reversed(range(given.gold.shape[1])):  # the lowest grade is the one that is named
            one = np.eye(given.gold.shape[1])[grade]
            share = _inverse(some, pi, given, mix, one, np.zeros(pi.size))
            for place in np.flatnonzero(share.value < -1.96 * np.sqrt(sum(share.parts))):
                target = int(asked[place])
                found[target] = Refusal(
                    f"the matrices imply a share of {share.value[place] / total[target]:.3f} for grade {grade}: "
                    "the labels of this target cannot come from these matrices; gold labels of these very items "
                    "are needed"
                )
    return found
