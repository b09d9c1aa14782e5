"""Assessors who tell the truth or do not look: a model in the manner of MACE.

With probability theta an assessor gives the true grade; otherwise they spam: the grade comes from a distribution
of their own that has nothing to do with the item. So P(given l | true t) = theta [l = t] + (1 - theta) xi(l).
Source: D. Hovy, T. Berg-Kirkpatrick, A. Vaswani, E. Hovy: Learning Whom to Trust with MACE (2013). They take the grades
as equally frequent and average over parameters; here the prevalence is estimated, and the most likely parameters are.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analytics.aggregation.ascent import Pair
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
from analytics.aggregation.votes import LEAST, votes
from analytics.estimation.checks import finite
from analytics.estimation.estimate import Floats, Refusal
from analytics.estimation.samples import Labels


@dataclass(frozen=True, kw_only=True)
class SpammerAggregation(Aggregation):
    """`trust[assessor]` is theta, the share of honest labels; `spam[assessor, grade]` how the others fall."""

    trust: Floats
    spam: Floats


def spammer_rows(trust: Floats, spam: Floats) -> Floats:
    """Return rows[given, assessor, true].

    >>> spammer_rows(np.array([0.5]), np.array([[0.2, 0.8]])).round(6).tolist()
    [[[0.6, 0.1]], [[0.4, 0.9]]]
    """
    honest = trust[:, None] * np.eye(spam.shape[1])[:, None, :]
    return np.asarray(honest + ((1 - trust)[:, None] * spam).T[:, :, None])


@dataclass(frozen=True)
class _Parameters:
    trust: Floats
    spam: Floats


def _m_step(counts: Floats, old: _Parameters, added: float) -> _Parameters:
    """Return the M-step from expected counts[given, assessor, true]: a right label is honest or a lucky guess."""
    right = np.diagonal(counts, axis1=0, axis2=2)
    honest = old.trust[:, None]
    honest_right = right * honest / (honest + (1 - honest) * old.spam)
    guessed = np.maximum(counts.sum(axis=2).T - honest_right, 0.0) + added
    from_truth = honest_right.sum(axis=1) + added
    return _Parameters(
        from_truth / (from_truth + guessed.sum(axis=1) + added * (1 - counts.shape[0])),
        guessed / guessed.sum(axis=1, keepdims=True),
    )


def spammers(
    labels: Labels,
    *,
    known_item: ArrayLike | None = None,
    known_grade: ArrayLike | None = None,
    prior: ArrayLike = PRIOR,
    tolerance: float = TOLERANCE,
    most_iterations: int = MOST_ITERATIONS,
) -> SpammerAggregation | Refusal:
    """Return the fit of the model above: one theta and one distribution xi an assessor.

    Assumption: whether an assessor looks at an item does not depend on the item, and an assessor who looks never errs.
    `prior` is a number: honest labels, spam labels, and spam labels of every grade that each assessor counts
    beforehand. Plain EM; the start is the vote share, with half of each assessor's labels honest.
    """
    check_stop(tolerance, most_iterations)
    held = votes(labels, known_item, known_grade)
    added = float(finite("prior", prior, ()))
    if added < 0:
        raise ValueError(f"prior must be >= 0, got {added}")
    refused = cannot_fit(held, "spammers")
    if refused is not None:
        return refused

    floor = max(added, LEAST)
    state = _Parameters(
        np.full(labels.n_assessors, 0.5), np.full((labels.n_assessors, labels.n_grades), 1 / labels.n_grades)
    )

    def parameters(counts: Floats, of_grades: Floats) -> Pair:
        nonlocal state
        state = _m_step(counts, state, floor)
        of_grades = np.maximum(of_grades + added, LEAST)
        return Pair(spammer_rows(state.trust, state.spam), of_grades / of_grades.sum())

    def evaluate(at: Pair) -> Point:
        expected = held.expect(at.rows, at.prevalence)
        logs = np.log(state.trust * (1 - state.trust)).sum() + np.log(state.spam).sum()
        log_prior = added * float(logs + np.log(at.prevalence).sum())
        counts = Pair(expected.counts, expected.of_grades)
        return Point(
            at, counts, expected.log_likelihood, expected.log_likelihood + log_prior, expected.change
        )

    def update(point: Point) -> Pair:
        return parameters(point.counts.rows, point.counts.prevalence)

    start_from_shares(held)
    point, passes, converged = climb(
        held,
        parameters(*held.counts()),
        evaluate,
        update,
        tolerance=tolerance,
        most_iterations=most_iterations,
    )
    fit = fit_result(held, point, update(point), passes, converged)
    return SpammerAggregation(**vars(fit), trust=state.trust, spam=state.spam)
