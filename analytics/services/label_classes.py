"""What the judgments of an item say together: the bronze score whose classes the audit corrects."""

from collections.abc import Callable
from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np

from analytics.aggregation.dawid_skene import (
    Aggregation,
    dawid_skene,
    majority,
    one_coin,
    posterior_from_matrices,
    spammers,
)
from analytics.aggregation.grade_tables import supermajorities
from analytics.estimation.confusion import assessor_counts, shrink
from analytics.estimation.estimate import Refusal
from analytics.frames import CampaignArrays, Floats, Ints
from analytics.frames.cuts import with_checks
from judging.label_aggregation import DEFAULT_LABEL_SCORE, label_score_of
from judging.models import Campaign

STEPS = 12  # classes a grade
Result = Ints | Aggregation | Refusal
# Classes, matrices and forecasts of one recomputation ask for the same label.
_results: WeakKeyDictionary[CampaignArrays, dict[str, Result]] = WeakKeyDictionary()


def bronze_classes(arrays: CampaignArrays, campaign: Campaign) -> Ints:
    """Return the class of every judged item, ordered: better labels have higher numbers.

    Any label serves: it decides how narrow the corrected interval is, never whether it is right. It may use judgments
    and gold checks, but never the audit, whose items it would otherwise know.
    """
    result = _result(arrays, used_score(arrays, campaign))
    if isinstance(result, Aggregation):
        expected = result.posterior[: arrays.judged.size] @ np.arange(arrays.n_grades)
        return np.rint(expected * STEPS).astype(np.int64)
    return vote_share(arrays) if isinstance(result, Refusal) else result


def used_score(arrays: CampaignArrays, campaign: Campaign) -> str:
    """Return the campaign's choice, or the mean of grades while the choice cannot be had.

    Nobody gave scores, or a model has too little to learn from: then every number says which label it used.
    """
    score = campaign.bronze_score
    return DEFAULT_LABEL_SCORE if isinstance(_result(arrays, score), Refusal) else score


def joined_grades(arrays: CampaignArrays, campaign: Campaign) -> dict[str, tuple[str, Floats]]:
    """Return, by ways of joining the grades of an item, its words and shares[judged, grade]; a tie is shared."""
    score = used_score(arrays, campaign)
    ways: dict[str, tuple[str, Result]] = {"majority": ("majority of an item's grades", _majority(arrays))}
    ways |= {score: (label_score_of(score).label, _result(arrays, score))}
    everything = np.arange(arrays.judged.size)
    return {
        name: (words, result.decisions(everything))
        for name, (words, result) in ways.items()
        if isinstance(result, Aggregation)
    }


def _result(arrays: CampaignArrays, score: str) -> Result:
    """Return the label of every item, made once."""
    results = _results.setdefault(arrays, {})
    if score not in results:
        results[score] = LABELS[score](arrays)
    return results[score]


# -- the labels -----------------------------------------------------------------------------------------------


def vote_share(arrays: CampaignArrays) -> Ints:
    return arrays.labels.classes(steps=STEPS)


def first_label(arrays: CampaignArrays) -> Ints:
    """Return the grade given first to each item; who comes first is chance."""
    first = np.full(arrays.judged.size, arrays.label_item.size, dtype=np.int64)
    np.minimum.at(first, arrays.label_item, np.arange(arrays.label_item.size))
    return arrays.label_grade[first].astype(np.int64) * STEPS


def supermajority(arrays: CampaignArrays) -> Ints:
    labels = arrays.labels
    return supermajorities(labels.table(), labels.relevant_grade) * STEPS


def imported_score(arrays: CampaignArrays) -> Ints | Refusal:
    if "score" not in arrays.frame.columns:
        return Refusal("no scores were imported before the draw", 1)
    scores = arrays.frame["score"].to_numpy()[arrays.judged]
    return np.where(np.isnan(scores), -1, np.rint(np.nan_to_num(scores) * STEPS)).astype(np.int64)


def _without_declared_gold(arrays: CampaignArrays) -> CampaignArrays:
    """Return the arrays without checks where numbers rest on declared gold.

    Every gold answer of a complete file is a check of its labels. As an audit it is what corrected numbers rest on: a
    score that had learned from it would know the gold of the very items that it is to predict.
    """
    if not arrays.audit_assumption:
        return arrays
    return with_checks(arrays, np.zeros(arrays.check_assessor.size, dtype=bool))


def gold_check_posterior(arrays: CampaignArrays) -> Aggregation | Refusal:
    """Return the posterior under each assessor's errors, as measured on gold checks."""
    if not arrays.judged.size:
        return NOTHING_JUDGED
    arrays = _without_declared_gold(arrays)
    if not arrays.check_true.size:
        return Refusal("there are no gold checks", 1)
    answers = (arrays.check_assessor, arrays.check_true, arrays.check_given)
    shrunk = shrink(assessor_counts(*answers, len(arrays.assessors), arrays.n_grades))
    if isinstance(shrunk, Refusal):
        return shrunk
    return posterior_from_matrices(arrays.labels, confusion=shrunk.matrices)


def posterior_of(
    model: Callable[..., Aggregation | Refusal],
) -> Callable[[CampaignArrays], Aggregation | Refusal]:
    """Return the function that fits a model; items beyond the judged are gold checks, each answer one of its own."""

    def fit(arrays: CampaignArrays) -> Aggregation | Refusal:
        arrays = _without_declared_gold(arrays)
        n_judged, n_checks = arrays.judged.size, arrays.check_true.size
        if not n_judged:
            return NOTHING_JUDGED
        checks = np.arange(n_judged, n_judged + n_checks)
        labels = replace(
            arrays.labels,
            item=np.concatenate([arrays.label_item, checks]),
            assessor=np.concatenate([arrays.label_assessor, arrays.check_assessor]),
            grade=np.concatenate([arrays.label_grade, arrays.check_given]),
            n_items=n_judged + n_checks,
        )
        return model(labels, known_item=checks, known_grade=arrays.check_true)

    return fit


def _majority(arrays: CampaignArrays) -> Aggregation | Refusal:
    if not arrays.judged.size:
        return NOTHING_JUDGED
    return majority(arrays.labels)


NOTHING_JUDGED = Refusal("nobody has judged yet", 1)
# How every row of `judging.label_aggregation` is computed: as classes, or as a model whose expected grade makes them.
LABELS: dict[str, Callable[[CampaignArrays], Result]] = {
    "vote-share": vote_share,
    "one-label": first_label,
    "dawid-skene": posterior_of(dawid_skene),
    "one-coin": posterior_of(one_coin),
    "spammers": posterior_of(spammers),
    "empirical-bayes": gold_check_posterior,
    "supermajority": supermajority,
    "machine": imported_score,
}
