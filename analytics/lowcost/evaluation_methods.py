"""Methods of evaluation that need few or no judgments, as a table: each scores runs topic by topic.

For trials of the methods themselves (`analytics/lowcost/method_trials.py`): all of them see the same runs, and the
judgments that a method asks for come from the collection's qrels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from analytics.lowcost.expected import expected_ap
from analytics.lowcost.run_folder import FolderTopic, average_precision
from analytics.lowcost.statap import statap
from sampling.arrays import FloatArray
from sampling.buckets import cut_buckets, run_prior
from sampling.experts import Preferences, RankedPool, consensus, manual_weights
from sampling.minimal import ModelTopic, StoppingRule, shift_to_prevalence
from sampling.minimal_collection import collect
from sampling.rejudging import SampledTopic
from sampling.reweighting import reweighting, with_judgments
from sampling.similarity import pseudo_judgments

Topics = Sequence[FolderTopic]


@dataclass(frozen=True)
class Trial:
    """What a method gets: the topics of some runs, which of the runs are manual, and random numbers of its own."""

    topics: Topics
    is_manual: tuple[bool, ...]
    rng: np.random.Generator


@dataclass(frozen=True)
class EvaluationMethod:
    """One method.

    Attributes
    ----------
    key, label : str
        As the command spells it, and what it does.
    scores : callable
        From a trial and the method's number the scores [topic, run].
    number : float or None
        Where none is given; None for a method without a number.
    unit : str
        What the number counts.
    """

    key: str
    label: str
    scores: Callable[[Trial, float], FloatArray]
    number: float | None = None
    unit: str = ""


@dataclass(frozen=True)
class ChosenMethod:
    """A method with its number, as spelled: `statAP:200`."""

    spelling: str
    method: EvaluationMethod
    number: float

    def scores(self, trial: Trial) -> FloatArray:
        """Return the scores [topic, run]."""
        return self.method.scores(trial, self.number)


def full_judgments(topics: Topics) -> FloatArray:
    """Return AP [topic, run] of the whole runs by all judgments of the qrels."""
    return np.array([topic.average_precision() for topic in topics])


def _pools(topics: Topics) -> list[RankedPool]:
    return [topic.pool for topic in topics]


def _no_judgments_scores(trial: Trial, number: float) -> FloatArray:
    return _expectations(trial, np.ones(len(trial.is_manual)))


def _manual_scores(trial: Trial, number: float) -> FloatArray:
    if not any(trial.is_manual):
        raise ValueError("no run of the collection is manual: name them in its file manual")
    return _expectations(trial, manual_weights(trial.is_manual, number))


def _expectations(trial: Trial, weights: FloatArray) -> FloatArray:
    """Return E[AP] by the consensus of the runs."""
    fits = [consensus(Preferences.of(pool, weights)) for pool in _pools(trial.topics)]
    pairs = zip(_pools(trial.topics), fits, strict=True)
    return np.array([expected_ap(pool, fit.probability) for pool, fit in pairs])


def _reweighting_scores(trial: Trial, number: float) -> FloatArray:
    pools = _pools(trial.topics)
    found = reweighting(pools, lambda topic, document: bool(trial.topics[topic].is_relevant[document]))
    parts = zip(pools, found.consensuses, found.judged, strict=True)
    return np.array(
        [expected_ap(pool, with_judgments(fit.probability, judged)) for pool, fit, judged in parts]
    )


def _judged_alone_scores(trial: Trial, number: float) -> FloatArray:
    """Return AP by the judged documents alone."""
    found = reweighting(
        _pools(trial.topics), lambda topic, document: bool(trial.topics[topic].is_relevant[document])
    )
    rows = []
    for topic, judged in zip(trial.topics, found.judged, strict=True):
        relevant = [document for document, label in judged.items() if label]
        rows.append(average_precision(topic.ranks[:, relevant]))
    return np.array(rows)


def _pseudo_judgment_scores(trial: Trial, *, by_popularity: bool) -> FloatArray:
    """Return AP of the whole runs by random documents in the place of the relevant ones: as many as the pool has."""
    rows = []
    for topic in trial.topics:
        n_relevant = int(topic.is_relevant.sum())
        drawn = pseudo_judgments(topic.pool, n_relevant, trial.rng, by_popularity=by_popularity)
        rows.append(average_precision(topic.ranks[:, drawn]))
    return np.array(rows)


def _popular_scores(trial: Trial, number: float) -> FloatArray:
    return _pseudo_judgment_scores(trial, by_popularity=True)


def _uniform_scores(trial: Trial, number: float) -> FloatArray:
    return _pseudo_judgment_scores(trial, by_popularity=False)


def _statap_scores(trial: Trial, number: float) -> FloatArray:
    """Return statAP from as many judgments of each topic, drawn by buckets."""
    rows = []
    for topic in trial.topics:
        order = np.argsort(topic.pool.ranks, axis=1, kind="stable")
        lengths = np.isfinite(topic.pool.ranks).sum(axis=1)
        returned = [row[:length].tolist() for row, length in zip(order, lengths, strict=True)]
        buckets = cut_buckets(run_prior(returned, topic.pool.n_documents), int(number))
        drawn = buckets.sample(trial.rng)
        sample = SampledTopic.of(
            topic.ranks[:, drawn],
            topic.is_relevant[drawn].astype(np.int64),
            buckets.inclusion_probability[drawn],
        )
        rows.append(statap(sample))
    return np.array(rows)


def _pool_scores(trial: Trial, number: float) -> FloatArray:
    """Return AP by the relevant documents that some run has at this rank or above."""
    rows = []
    for topic in trial.topics:
        is_judged = (topic.ranks <= number).any(axis=0)
        rows.append(average_precision(topic.ranks[:, is_judged & topic.is_relevant]))
    return np.array(rows)


def _mtc_scores(trial: Trial, number: float) -> FloatArray:
    """Return E[AP] after as many judgments of each topic, each of the document that tells most about the runs."""
    rule = StoppingRule()
    rows = []
    for topic in trial.topics:
        fit = consensus(Preferences.of(topic.pool, np.ones(topic.pool.n_runs)))
        model = ModelTopic.of(topic.pool.ranks, shift_to_prevalence(fit.probability, rule.prevalence))
        rows.append(collect([model], [topic.is_relevant], None, limit=int(number)).scores)
    return np.array(rows)


EVALUATION_METHODS = (
    EvaluationMethod("no-judgments", "expected AP by the consensus of the runs", _no_judgments_scores),
    EvaluationMethod(
        "manual", "the same, manual runs weighing more", _manual_scores, 8.0, "weight of a manual run"
    ),
    EvaluationMethod("reweighted", "expected AP after floor(ln runs) judgments a topic", _reweighting_scores),
    EvaluationMethod("reweighted-judged", "AP by those judgments alone", _judged_alone_scores),
    EvaluationMethod(
        "popular", "AP by random documents, those that many runs return oftener", _popular_scores
    ),
    EvaluationMethod("uniform", "AP by random documents of the pool", _uniform_scores),
    EvaluationMethod("statAP", "statAP from a sample by buckets", _statap_scores, 200.0, "judgments a topic"),
    EvaluationMethod("pool", "AP by a shallow pool", _pool_scores, 10.0, "depth"),
    EvaluationMethod(
        "mtc", "expected AP of minimal test collections", _mtc_scores, 20.0, "judgments a topic"
    ),
)


def chosen_method(spelling: str) -> ChosenMethod:
    """Return the method of a spelling: its key and, after a colon, its number.

    >>> chosen_method("pool:5").number
    5.0
    """
    key, sign, text = spelling.partition(":")
    method = next((one for one in EVALUATION_METHODS if one.key == key), None)
    if method is None:
        keys = ", ".join(one.key for one in EVALUATION_METHODS)
        raise ValueError(f"the method must be one of {keys}, got {key!r}")
    if not sign:
        return ChosenMethod(spelling, method, method.number or 0.0)
    if method.number is None:
        raise ValueError(f"{key} takes no number, got {spelling!r}")
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if not 1 <= number < 1e9 or (method.unit != "weight of a manual run" and number != int(number)):
        raise ValueError(f"{key} takes a number of at least 1 ({method.unit}), got {text!r}")
    return ChosenMethod(spelling, method, number)
