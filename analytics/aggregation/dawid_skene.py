"""One grade from many labels: majority, one coin an assessor, Dawid and Skene's matrices, spammers.

Which to use, and what none of them can do, is in docs/methods/aggregation.md: an aggregated label is a good score for
`analytics.estimation.correction`, and no estimate of prevalence by itself.

All take the same arguments: the labels; `known_item` and `known_grade`, items whose grade is known (gold): their
posterior is that grade from beginning to end. `prior` is the number of labels that every cell of a confusion matrix
counts beforehand, and every grade's prevalence (there, the mean of the cells); 0 is maximum likelihood.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from analytics.aggregation.ascent import Pair, Step, TrustRegion, apply_move
from analytics.aggregation.fits import (
    MOST_ITERATIONS,
    PRIOR,
    TOLERANCE,
    Aggregation,
    Point,
    cannot_fit,
    check_stop,
    climb,
    fit_result,
    start_from_shares,
)
from analytics.aggregation.spammers import SpammerAggregation, spammers
from analytics.aggregation.votes import LEAST, pseudo_labels, shares, votes
from analytics.estimation.checks import finite
from analytics.estimation.estimate import Floats, Refusal
from analytics.estimation.samples import Labels

__all__ = [
    "Aggregation", "SpammerAggregation", "dawid_skene", "majority", "one_coin", "spammers",
]  # fmt: skip

# -- the models ---------------------------------------------------------------------------------------------


def majority(
    labels: Labels,
    *,
    known_item: ArrayLike | None = None,
    known_grade: ArrayLike | None = None,
    prior: ArrayLike = PRIOR,
) -> Aggregation | Refusal:
    """Return vote shares as posterior; `is_tied` marks equal votes. Nothing is fitted.

    Its confusion matrices compare each assessor with a vote that includes their own, and are too kind for that.

    >>> found = majority(Labels([0, 0, 1], [0, 1, 0], [1, 0, 1], n_items=2, n_assessors=2, n_grades=2))
    >>> found.grade.tolist(), found.is_tied.tolist()
    ([0, 1], [True, False])
    """
    held = votes(labels, known_item, known_grade)
    added = pseudo_labels(prior, labels.n_assessors, labels.n_grades)
    if not held.counted.any():
        return Refusal("majority: there are no labels", 1)

    start_from_shares(held)
    counts, of_grades = held.counts()
    final = Pair(shares(held.with_prior(counts, added)), of_grades / of_grades.sum())
    point = Point(final, final, 0.0, 0.0, 0.0)
    return replace(fit_result(held, point, final, 0, True), log_likelihood=None)


def dawid_skene(
    labels: Labels,
    *,
    known_item: ArrayLike | None = None,
    known_grade: ArrayLike | None = None,
    prior: ArrayLike = PRIOR,
    tolerance: float = TOLERANCE,
    most_iterations: int = MOST_ITERATIONS,
    accelerate: bool = True,
) -> Aggregation | Refusal:
    """Return the fit of one confusion matrix an assessor.

    Assumption: given an item's true grade, assessors err independently, each by a matrix of their own that is the same
    for all items of the grade. Real assessors make the same errors on hard items: the posterior is then overconfident,
    and the matrices from it are biased (docs/methods/derivations/real-judges.md, section 4.2).

    Maximised is the likelihood times Dirichlet(1 + prior) for each row and the prevalence; `prior` may be a number, a
    table [true, given], or one an assessor; 0 is maximum likelihood. The start is the vote share. `accelerate`
    takes steps of `analytics.aggregation.ascent`, never downhill; it ends when a plain EM step changes no posterior by
    `tolerance`. Source: A. P. Dawid and A. M. Skene (1979), with clamped gold as in semi-supervised EM.
    """
    check_stop(tolerance, most_iterations)
    held = votes(labels, known_item, known_grade)
    added = pseudo_labels(prior, labels.n_assessors, labels.n_grades)
    refused = cannot_fit(held, "Dawid-Skene")
    if refused is not None:
        return refused

    def with_prior(counts: Floats, of_grades: Floats) -> Pair:
        return Pair(held.with_prior(counts, added), np.maximum(of_grades + added.mean(), LEAST))

    def evaluate(at: Pair) -> Point:
        expected = held.expect(at.rows, at.prevalence)
        log_prior = _log_prior(added, at.rows) + float(added.mean() * np.log(at.prevalence).sum())
        counts = with_prior(expected.counts, expected.of_grades)
        return Point(
            at, counts, expected.log_likelihood, expected.log_likelihood + log_prior, expected.change
        )

    def update(point: Point) -> Pair:
        return Pair(shares(point.counts.rows), point.counts.prevalence / point.counts.prevalence.sum())

    region = TrustRegion()

    def propose(point: Point) -> tuple[Step, Pair]:
        step = region.propose(held, point.at, point.counts)
        least = LEAST / np.maximum(point.counts.rows.sum(axis=0), 1.0)
        return step, apply_move(point.at, step.move, least)

    start_from_shares(held)
    begin = with_prior(*held.counts())
    point, passes, converged = climb(
        held,
        Pair(shares(begin.rows), begin.prevalence / begin.prevalence.sum()),
        evaluate,
        update,
        tolerance=tolerance,
        most_iterations=most_iterations,
        propose=propose if accelerate else None,
        learn=region.learn,
    )
    return fit_result(held, point, update(point), passes, converged)


def _log_prior(added: Floats, rows: Floats) -> float:
    """Return sum of pseudo-labels times log probability; a cell without pseudo-labels counts nothing."""
    logs = np.log(np.where(added > 0, rows, 1.0))
    return float((added * logs).sum())


def one_coin(
    labels: Labels,
    *,
    known_item: ArrayLike | None = None,
    known_grade: ArrayLike | None = None,
    prior: ArrayLike = PRIOR,
    tolerance: float = TOLERANCE,
    most_iterations: int = MOST_ITERATIONS,
) -> Aggregation | Refusal:
    """Return the fit of one accuracy an assessor, errors going to the other grades evenly.

    Assumption: as `dawid_skene`, and an assessor's errors are equal on all grades and in all directions. `prior` is
    a number: labels added to the assessor's right ones, and as many to the wrong ones. Plain EM, from the vote share.
    Sources: A. P. Dawid and A. M. Skene (1979) with tied cells; Y. Zhang, X. Chen, D. Zhou, M. Jordan (2016), 4.
    """
    check_stop(tolerance, most_iterations)
    held = votes(labels, known_item, known_grade)
    added = float(finite("prior", prior, ()))
    if added < 0:
        raise ValueError(f"prior must be >= 0, got {added}")
    refused = cannot_fit(held, "one-coin")
    if refused is not None:
        return refused

    floor = max(added, LEAST)

    def accuracies(counts: Floats) -> Floats:
        right = np.trace(counts, axis1=0, axis2=2)
        accuracy: Floats = (right + floor) / (held.cells.sum(axis=0) + 2 * floor)
        return accuracy

    def parameters(counts: Floats, of_grades: Floats) -> Pair:
        of_grades = np.maximum(of_grades + added, LEAST)
        return Pair(coin_rows(accuracies(counts), labels.n_grades), of_grades / of_grades.sum())

    def evaluate(at: Pair) -> Point:
        expected = held.expect(at.rows, at.prevalence)
        right = at.rows[0, :, 0]
        log_prior = added * float(np.log(right * (1 - right)).sum() + np.log(at.prevalence).sum())
        counts = Pair(expected.counts, expected.of_grades)
        return Point(
            at, counts, expected.log_likelihood, expected.log_likelihood + log_prior, expected.change
        )

    def update(point: Point) -> Pair:
        return parameters(point.counts.rows, point.counts.prevalence)

    start_from_shares(held)
    first = parameters(*held.counts())
    point, passes, converged = climb(
        held, first, evaluate, update, tolerance=tolerance, most_iterations=most_iterations
    )
    return fit_result(held, point, update(point), passes, converged)


def coin_rows(accuracy: Floats, n_grades: int) -> Floats:
    """Return rows[given, assessor, true]: the accuracy in the diagonal, the rest evenly beside it.

    >>> coin_rows(np.array([0.8]), 3).round(6).tolist()
    [[[0.8, 0.1, 0.1]], [[0.1, 0.8, 0.1]], [[0.1, 0.1, 0.8]]]
    """
    same = np.eye(n_grades)[:, None, :]
    wrong = (1 - accuracy) / (n_grades - 1)
    return np.asarray(accuracy[:, None] * same + wrong[:, None] * (1 - same))


# -- how good is the aggregate ------------------------------------------------------------------------------


def posterior_from_matrices(
    labels: Labels,
    *,
    confusion: ArrayLike,
    tolerance: float = TOLERANCE,
    most_iterations: int = MOST_ITERATIONS,
) -> Aggregation | Refusal:
    """Return the posterior under matrices that were measured elsewhere, on gold; only the prevalence is fitted.

    `confusion[assessor, true, given]`, all above 0 where a label was given:
    `analytics.estimation.confusion.shrink`. Assumption: that of `dawid_skene`, and that these matrices hold for
    these items (docs/methods/derivations/real-judges.md, section 4.2: a good score, a bad calibrator).

    >>> good = [[0.9, 0.1], [0.1, 0.9]]
    >>> labels = Labels([0, 0, 1], [0, 1, 0], [1, 1, 0], n_items=2, n_assessors=2, n_grades=2)
    >>> found = posterior_from_matrices(labels, confusion=[good, good])
    >>> found.grade.tolist()
    [1, 0]
    """
    check_stop(tolerance, most_iterations)
    matrices = finite("confusion", confusion)
    n_grades = labels.n_grades
    if matrices.shape != (labels.n_assessors, n_grades, n_grades):
        raise ValueError(
            f"confusion must be [assessor, true, given] of the labels, got shape {matrices.shape}"
        )
    held = votes(labels)
    rows = np.ascontiguousarray(matrices.transpose(2, 0, 1))
    if (rows[held.cells > 0] <= 0).any():
        raise ValueError("confusion must be above 0 for every grade that was given")
    if not held.counted.any():
        return Refusal("empirical Bayes: there are no labels", 1)

    held.put(np.full((labels.n_items, n_grades), 1 / n_grades))
    prevalence, passes = np.full(n_grades, 1 / n_grades), 0
    while True:
        expected = held.expect(rows, prevalence)
        held.take()
        passes += 1
        if expected.change < tolerance or passes == most_iterations:
            break
        prevalence = np.maximum(expected.of_grades, LEAST) / np.maximum(expected.of_grades, LEAST).sum()
    converged = expected.change < tolerance
    return Aggregation(
        held.posterior.copy(), matrices, prevalence, passes, converged, expected.log_likelihood
    )
