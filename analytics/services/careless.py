"""What careless assessors would cost: the half-width of the main comparison if some of the assessors guessed."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from analytics.estimation.estimate import Refusal
from analytics.frames import CampaignArrays, Ints
from analytics.methods import REPORTED
from analytics.numbers.estimates import method_columns
from analytics.numbers.predictions import Predictions
from analytics.numbers.targets import targets_of
from analytics.services.basis import Basis
from analytics.services.confusions import assessor_confusion_counts
from judging.behaviour import grades_for_labels
from judging.erring_assessors import erring_assessor
from judging.models import Campaign
from sampling.measures.registry import parse_measure

CARELESS_SHARE = 0.2
N_TRIALS = 10
GUESSING = erring_assessor("random")


@dataclass(frozen=True)
class CarelessOutcome:
    """Half-widths of the 95 % confidence interval of one comparison, as it is and with careless assessors.

    Attributes
    ----------
    n_assessors, n_careless : int
        Who has judged, and how many of them guess in each trial.
    half_width : float
        As it is.
    careless_half_width : float
        In the mean of the trials.
    """

    n_assessors: int
    n_careless: int
    half_width: float
    careless_half_width: float


def careless_outcome(
    campaign: Campaign,
    arrays: CampaignArrays,
    measure: str,
    pair: tuple[str, str],
    rng: np.random.Generator,
    *,
    share: float = CARELESS_SHARE,
    n_trials: int = N_TRIALS,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> CarelessOutcome | Refusal:
    """Return the half-widths of the corrected difference of a pair of runs; or the reason for none.

    In each trial another random part of the assessors gives relevant by chance, as often as the topic has relevant
    documents (the random assessor of `judging/erring_assessors.py`), on ordinary judgments and gold checks alike; the
    grades they gave stand for the truth. Audits stay as they are.
    """
    people = np.unique(arrays.label_assessor)
    if people.size < 2:
        return Refusal("assessors must be at least 2, and fewer have judged", 2 - people.size)
    n_careless = max(1, round(share * people.size))
    now = _half_width(campaign, arrays, measure, pair)
    if isinstance(now, Refusal):
        return now
    widths = []
    for trial in range(n_trials):
        progress(trial, n_trials)
        chosen = rng.permutation(people)[:n_careless]
        width = _half_width(campaign, with_guesses(arrays, chosen, rng), measure, pair)
        if isinstance(width, Refusal):
            return width
        widths.append(width)
    return CarelessOutcome(people.size, n_careless, now, float(np.mean(widths)))


def with_guesses(arrays: CampaignArrays, assessors: Ints, rng: np.random.Generator) -> CampaignArrays:
    """Return the campaign as if these assessors had guessed in every topic and on every gold check."""
    label_grade, check_given = arrays.label_grade.copy(), arrays.check_given.copy()
    topic = arrays.topic_index[arrays.judged[arrays.label_item]]
    own = np.flatnonzero(np.isin(arrays.label_assessor, assessors))
    for places in _groups(own, arrays.label_assessor[own] * arrays.n_topics + topic[own]):
        label_grade[places] = _guesses(arrays.label_grade[places], arrays.relevant_grade, rng)
    checked = np.flatnonzero(np.isin(arrays.check_assessor, assessors))
    for places in _groups(checked, arrays.check_assessor[checked]):
        check_given[places] = _guesses(arrays.check_true[places], arrays.relevant_grade, rng)
    return replace(arrays, label_grade=label_grade, check_given=check_given)


def _groups(places: Ints, key: Ints) -> list[Ints]:
    """Return the places by their key."""
    order = np.argsort(key, kind="stable")
    bounds = np.flatnonzero(np.diff(key[order])) + 1
    return [group for group in np.split(places[order], bounds) if group.size]


def _guesses(grades: Ints, relevant_grade: int, rng: np.random.Generator) -> Ints:
    labels = GUESSING.labels((grades >= relevant_grade).astype(np.int64), rng.random(grades.size))
    return grades_for_labels(grades, labels, relevant_grade)


def _half_width(
    campaign: Campaign, arrays: CampaignArrays, measure: str, pair: tuple[str, str]
) -> float | Refusal:
    """Return the half-width of the reported interval of the difference between two runs."""
    basis = Basis(campaign, arrays, Predictions(arrays), assessor_confusion_counts(arrays))
    rows = method_columns(basis, REPORTED, targets_of(basis, parse_measure(measure)))
    names = [run.run_id for run in arrays.runs]
    wanted = {names.index(name) for name in pair}
    place = next(
        row
        for row, ends in enumerate(zip(rows.run.tolist(), rows.run_b.tolist(), strict=True))
        if set(ends) == wanted
    )
    if rows.refusal[place]:
        return Refusal(rows.refusal[place])
    return float(rows.numbers["unbounded_high"][place] - rows.numbers["unbounded_low"][place]) / 2
