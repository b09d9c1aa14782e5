"""Simulated assessors for the demonstration: no person gave these grades.

Their errors depend on the true grade and on how many systems return the document, as those of real judges do:
a document that is not relevant fools them two and a half times as often when most systems return it. The rates
are those measured for the best of three judges on a TREC passage collection (63 systems, 53 topics). Errors
that depended on the true grade alone would make every correction by a confusion matrix look right.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judging.behaviour import binary
from judging.erring_assessors import Pace

GRADES = 4  # 0 not relevant, 1 marginal, 2 relevant, 3 highly relevant

# By popularity third: documents that few, some and most systems return.
SPECIFICITY = np.array([0.80, 0.69, 0.49])  # probability of grade 0 where the true grade is 0
SENSITIVITY = np.array([0.81, 0.86, 0.90])  # mean probability of 1 or more where the true grade is

FALSE_ALARM = np.array([0.0, 0.65, 0.25, 0.10])  # the grades of what is wrongly taken for relevant
MISS = np.array([0.0, 1.5, 1.0, 0.5])  # by true grade: a marginal document is overlooked most easily
STEP = 0.35  # within the relevant grades, an error by one more step is this much rarer

GUESS = np.array([0.40, 0.25, 0.20, 0.15])  # the grades of somebody who does not look
PLAIN_RELEVANT = 2  # the grade that stands for "relevant" where a scale has other grades than 0 to 3


@dataclass(frozen=True)
class SimulatedAssessor:
    """A simulated assessor: skill 1 errs as the best measured judge, skill 0 does not look at documents."""

    username: str
    skill: float
    median_seconds: float


# Two weak ones and one who hardly looks: somebody for the quality checks to find.
ASSESSORS = (
    SimulatedAssessor("sim-ada", skill=1.0, median_seconds=24.0),
    SimulatedAssessor("sim-ben", skill=0.95, median_seconds=19.0),
    SimulatedAssessor("sim-chi", skill=0.95, median_seconds=28.0),
    SimulatedAssessor("sim-dora", skill=0.9, median_seconds=15.0),
    SimulatedAssessor("sim-emil", skill=0.85, median_seconds=21.0),
    SimulatedAssessor("sim-fay", skill=0.6, median_seconds=11.0),
    SimulatedAssessor("sim-gus", skill=0.5, median_seconds=13.0),
    SimulatedAssessor("sim-hal", skill=0.1, median_seconds=4.0),
)


def popularity_third(popularity_share: ArrayLike) -> NDArray[np.intp]:
    """Return 0, 1 or 2 for documents that up to a third, up to two thirds, or more systems return.

    Raises
    ------
    ValueError
        If a share is not in [0, 1].

    Examples
    --------
    >>> popularity_third([0.125, 0.5, 1.0]).tolist()
    [0, 1, 2]
    """
    shares = np.asarray(popularity_share, dtype=np.float64)
    if not np.all((shares >= 0) & (shares <= 1)):
        wrong = shares[~((shares >= 0) & (shares <= 1))].flat[0]
        raise ValueError(f"popularity_share must be in [0, 1], got {wrong}")
    return np.searchsorted(np.array([1 / 3, 2 / 3]), shares, side="left")


def simulated_grade(rng: np.random.Generator, true_grade: int, popularity_share: float, skill: float) -> int:
    """Return the grade that a simulated assessor gives to one document.

    Parameters
    ----------
    rng
        Source of one uniform number.
    true_grade
        0 to 3.
    popularity_share
        Share of the systems that return the document within the pool's depth, in [0, 1].
    skill
        In [0, 1]: 1 errs as the best measured judge, 0 guesses.

    Raises
    ------
    ValueError
        If an argument is outside its bounds.
    """
    return int(simulated_grades(rng, [true_grade], [popularity_share], skill)[0])


def simulated_grades(
    rng: np.random.Generator, true_grades: ArrayLike, popularity_shares: ArrayLike, skill: ArrayLike
) -> NDArray[np.int64]:
    """Return the grades that simulated assessors give to items: as `simulated_grade`, item by item.

    Parameters
    ----------
    rng
        Source of one uniform number an item.
    true_grades, popularity_shares
        Arrays over items; see `simulated_grade`.
    skill
        One number, or an array over items where the assessors differ.

    Raises
    ------
    ValueError
        If the arrays differ in length, or a value is outside its bounds.
    """
    grades = np.asarray(true_grades)
    thirds = popularity_third(popularity_shares)
    if grades.ndim != 1 or grades.shape != thirds.shape:
        shapes = f"{grades.shape} and {thirds.shape}"
        raise ValueError(f"true_grades and popularity_shares must be of one length, got {shapes}")
    known = np.isin(grades, np.arange(GRADES))
    if not known.all():
        raise ValueError(f"true_grades must be in 0..{GRADES - 1}, got {grades[~known][0]}")
    _check_skill(skill)
    skills = np.broadcast_to(np.asarray(skill, dtype=np.float64), grades.shape)[:, np.newaxis]
    probabilities = skills * _table()[thirds, grades.astype(np.intp)] + (1 - skills) * GUESS
    # The last sum may be 1 - 1e-16: leave it out, and the highest grade takes what remains.
    bounds = np.cumsum(probabilities, axis=1)[:, :-1]
    given: NDArray[np.int64] = (rng.random(len(grades))[:, np.newaxis] >= bounds).sum(axis=1)
    return given


def simulated_labels(
    rng: np.random.Generator, true_labels: ArrayLike, popularity_shares: ArrayLike, skill: float
) -> NDArray[np.int64]:
    """Return the binary labels that a simulated assessor gives: `simulated_grades` on a scale of any length.

    Parameters
    ----------
    rng
        Source of one uniform number an item.
    true_labels, popularity_shares
        Arrays over items: 0 or 1; see `simulated_grade`.
    skill
        In [0, 1].

    Raises
    ------
    ValueError
        If the arrays differ in length, or a value is outside its bounds.
    """
    grades = PLAIN_RELEVANT * binary(true_labels)
    return (simulated_grades(rng, grades, popularity_shares, skill) > 0).astype(np.int64)


def simulated_seconds(rng: np.random.Generator, n_items: int, median_seconds: float) -> NDArray[np.float64]:
    """Return the seconds that a simulated assessor spends on each item: log-normal around the median.

    Raises
    ------
    ValueError
        If the number of items is negative, or the median not positive.
    """
    if n_items < 0:
        raise ValueError(f"n_items must be >= 0, got {n_items}")
    if not median_seconds > 0:
        raise ValueError(f"median_seconds must be > 0, got {median_seconds}")
    pace = Pace(start=math.log(median_seconds), relevant=0.0, position=0.0)
    return pace.seconds(np.zeros(n_items, dtype=np.int64), rng.standard_normal(n_items))


def _check_skill(skill: ArrayLike) -> None:
    skills = np.atleast_1d(np.asarray(skill, dtype=np.float64))
    inside = (skills >= 0) & (skills <= 1)
    if not inside.all():
        raise ValueError(f"skill must be in [0, 1], got {skills[~inside][0]}")


def _table() -> NDArray[np.float64]:
    """Return confusion[third, true_grade, given_grade] at skill 1."""
    table = np.zeros((len(SPECIFICITY), GRADES, GRADES))
    table[:, 0, :] = (1 - SPECIFICITY)[:, np.newaxis] * FALSE_ALARM
    table[:, 0, 0] = SPECIFICITY
    given = np.arange(1, GRADES)
    for true_grade in given:
        closeness = STEP ** np.abs(given - true_grade)
        missed = (1 - SENSITIVITY) * MISS[true_grade]
        table[:, true_grade, 0] = missed
        table[:, true_grade, 1:] = (1 - missed)[:, np.newaxis] * closeness / closeness.sum()
    return table
