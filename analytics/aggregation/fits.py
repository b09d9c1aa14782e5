"""What all models of assessors share: the result, when it is refused, and the climb to the most likely parameters."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analytics.aggregation.ascent import Pair, Step
from analytics.aggregation.votes import Votes, shares
from analytics.estimation.estimate import Floats, Ints, Refusal

PRIOR = 0.1  # a tenth of a label in every cell: none is 0, and a row's own labels soon outweigh it
TOLERANCE = 1e-5
MOST_ITERATIONS = 5000
EM_FIRST = 20  # steps of plain EM before the first that is not
NEAR = 0.1  # after an accelerated step that moved no posterior by more, a plain one looks whether it is over
ROUNDING = 1e-14  # of the objective: less is no fall but the last digits of a sum
COMMON, LOST = (
    0.05,
    0.1,
)  # a grade of a twentieth of the labels that is fitted to a tenth of that has got lost
TIE = 1e-9  # posteriors closer than that are tied


@dataclass(frozen=True)
class Aggregation:
    """What the labels say together.

    `posterior[item, grade]`; `confusion[assessor, true, given]`, the model's own estimate of how each errs;
    `prevalence[grade]`. `iterations` counts how often all posteriors were computed. `log_likelihood` is that of the
    labels (and of the known grades), without the prior; None where there is no model. An item without a label has
    the prevalence for its posterior, an assessor without a label the prior's row. `warning` is empty if all is well.
    """

    posterior: Floats
    confusion: Floats
    prevalence: Floats
    iterations: int
    converged: bool
    log_likelihood: float | None
    warning: str = ""

    @property
    def _is_best(self) -> NDArray[np.bool_]:
        best: NDArray[np.bool_] = self.posterior >= self.posterior.max(axis=1, keepdims=True) - TIE
        return best

    @property
    def grade(self) -> Ints:
        """The most probable grade of each item; the lowest of those that tie."""
        return np.asarray(self._is_best.argmax(axis=1), dtype=np.int64)

    def decisions(self, item: Ints) -> Floats:
        """Return [item, grade]: 1 for the most probable grade, equal parts of 1 for those that tie."""
        best = self._is_best[item]
        return np.asarray(best / best.sum(axis=1, keepdims=True))

    @property
    def is_tied(self) -> NDArray[np.bool_]:
        """Items whose most probable grade is shared by another: an honest "undecided"."""
        return np.asarray(self._is_best.sum(axis=1) > 1)


@dataclass(frozen=True)
class Point:
    """Parameters with what one pass over the labels says of them."""

    at: Pair
    counts: Pair  # expected counts under the posterior, prior included
    log_likelihood: float
    objective: float  # log-likelihood and log prior: what never falls
    change: float  # of the posterior, against the one before


Evaluate = Callable[[Pair], Point]
Update = Callable[[Point], Pair]


# -- the loop -----------------------------------------------------------------------------------------------


def climb(
    held: Votes,
    first: Pair,
    evaluate: Evaluate,
    update: Update,
    *,
    tolerance: float,
    most_iterations: int,
    propose: Callable[[Point], tuple[Step, Pair]] | None = None,
    learn: Callable[[Step, float], None] | None = None,
) -> tuple[Point, int, bool]:
    """Alternate E and M until a plain step changes no posterior by `tolerance`; return point, passes, converged.

    With `propose`, steps are accelerated; one that would lower the objective is dropped, and the plain one taken.
    """
    point = evaluate(first)
    held.take()
    passes, plain, look = 1, 0, False
    while passes < most_iterations:
        if propose is not None and learn is not None and plain >= EM_FIRST and not look:
            step, target = propose(point)
            trial = evaluate(target)
            passes += 1
            gained = trial.objective - point.objective
            learn(step, gained)
            risen = gained >= -ROUNDING * abs(point.objective)
            look = not risen or trial.change < NEAR
            if risen:
                held.take()
                point = trial
            continue
        point = evaluate(update(point))
        held.take()
        passes, plain, look = passes + 1, plain + 1, False
        if point.change < tolerance:
            return point, passes, True
    return point, passes, False


def check_stop(tolerance: float, most_iterations: int) -> None:
    """Raise ValueError for a tolerance below 0 or no iteration at all."""
    if not tolerance >= 0:
        raise ValueError(f"tolerance must be >= 0, got {tolerance}")
    if most_iterations < 1:
        raise ValueError(f"most_iterations must be at least 1, got {most_iterations}")


def cannot_fit(held: Votes, model: str) -> Refusal | None:
    """Return why a model of assessors cannot be fitted to these labels, or None."""
    n_labels = int(held.cells.sum())
    if n_labels == 0:
        return Refusal(f"{model}: there are no labels", 2)
    n_assessors = int((held.cells.sum(axis=0) > 0).sum())
    if n_assessors < 2:
        return Refusal(
            f"{model}: one assessor cannot be told from the truth; labels of another are needed", 1
        )
    if held.known.item.size:
        return None
    if not (held.labels_of_item > 1).any():
        return Refusal(f"{model}: no item has two labels, so assessors cannot be compared", 1)
    if held.vote_counts().max() < 2:
        return Refusal(f"{model}: no two labels of any item agree; the labels share no information", None)
    return None


def start_from_shares(held: Votes) -> None:
    """Begin with the vote shares, known grades apart: an assessor who agrees with the others is likely right.

    An item without a label begins with the mean of the others.
    """
    given = held.vote_counts()
    held.put(given / np.maximum(held.labels_of_item, 1.0)[:, None])
    if held.counted.any() and not held.counted.all():
        held.posterior[~held.counted] = held.posterior[held.counted].mean(axis=0)


def warn_if_switched(pooled: Floats) -> str:
    """Return a warning if pooled expected counts[given, true] are no better than chance, else nothing.

    The likelihood is the same when grades are renamed; where most labels are wrong, the fit may have settled there.
    """
    rows = shares(pooled[:, None])[:, 0]
    accuracy, chance = float(rows.diagonal().mean()), 1 / rows.shape[0]
    if accuracy <= chance:
        return (
            f"the fitted assessors are below chance ({accuracy:.3f} of {chance:.3f}): grades may be exchanged"
        )
    wrong = np.flatnonzero(rows.argmax(axis=1) != np.arange(rows.shape[0]))
    if wrong.size:
        given = int(wrong[0])
        return (
            f"label {given} is given more often for true grade {int(rows[given].argmax())} than for its own"
        )
    return ""


def warn_if_collapsed(held: Votes, prevalence: Floats) -> str:
    """Return a warning if a grade is hardly fitted to any item though many labels give it, else nothing."""
    given = held.cells.sum(axis=1) / held.cells.sum()
    lost = np.flatnonzero((given >= COMMON) & (prevalence < LOST * given))
    if not lost.size:
        return ""
    grade = int(lost[0])
    return (
        f"grade {grade} is {given[grade]:.1%} of the labels and {prevalence[grade]:.1%} of the fitted grades: "
        "the labels disagree too much for this model"
    )


def fit_result(held: Votes, point: Point, final: Pair, passes: int, converged: bool) -> Aggregation:
    """Return the result: the posterior of the last E-step, the parameters of the M-step after it."""
    warnings = [] if converged else ["the last step still changed a posterior by more than the tolerance"]
    switched = warn_if_switched(held.counts()[0].sum(axis=1))
    prevalence = final.prevalence
    warnings += [warning for warning in (switched, warn_if_collapsed(held, prevalence)) if warning]
    posterior = held.posterior.copy()
    posterior[~held.counted] = prevalence
    return Aggregation(
        posterior,
        np.ascontiguousarray(final.rows.transpose(1, 2, 0)),
        prevalence,
        passes,
        converged,
        point.log_likelihood,
        "; ".join(warnings),
    )
