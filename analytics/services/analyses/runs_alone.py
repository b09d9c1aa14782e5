"""What the runs alone say of their ranking: expected MAP, and why it is no evaluation.

Relevance is the consensus of the runs (`sampling/experts.py`), so that a run like the others scores high, whether they
are right or not. Judgments, where there are any, say how wrong the probabilities and the ranking are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.estimate import Floats, Refusal
from analytics.frames import CampaignArrays, Ints
from analytics.lowcost.expected import exact_expected_ap, expected_map
from analytics.numbers.predictions import Predictions
from analytics.services.analyses.agreement import UNJUDGED, tiers_of
from analytics.services.analyses.request import AnalysisRefused, AnalysisSubject
from analytics.services.analyses.reweighting import judged_tau, ranking_after_reweighting
from analytics.services.analyses.sensitivity import reported_numbers
from analytics.services.basis import Basis
from analytics.services.confusions import assessor_confusion_counts
from analytics.services.recomputation import Progress
from judging.models import Campaign
from sampling.expert_pools import LARGEST_POOL, topic_pools
from sampling.experts import (
    Preferences,
    RankedPool,
    calibration_by_judgments,
    consensus,
    manual_weights,
)
from sampling.selections import POOL_UNKNOWN
from sampling.similarity import mean_similarity, similarities

MANUAL_WEIGHTS = (8.0, 16.0)  # of the paper
N_BINS = 10


@dataclass(frozen=True)
class PooledTopic:
    """A topic's pool, the places of its documents in the frame, and their log odds of relevance."""

    pool: RankedPool
    places: Ints
    theta: Floats
    probability: Floats


def runs_alone(
    campaign: Campaign, arrays: CampaignArrays, wanted: AnalysisSubject, progress: Progress = lambda *_: None
) -> dict[str, Any]:
    """Return the runs by expected MAP, their similarity, and what judgments say.

    Also what changes if manual runs weigh more, or if all are reweighted by a few judgments.

    Also what changes if manual runs weigh more, or all are reweighted by a few judgments.

    Raises
    ------
    AnalysisRefused
        With fewer than two runs, or where the pool of a topic is too large for its table of pairs.
    """
    if arrays.is_foreign:
        raise AnalysisRefused(POOL_UNKNOWN)
    if len(arrays.runs) < 2:
        raise AnalysisRefused("there is only one run, so there is nothing to rank")
    pools = _pools(arrays)
    topics = []
    for place, (pool, places) in enumerate(pools):
        progress(place, 2 * len(pools), "consensus of the runs, topic by topic")
        fit = consensus(Preferences.of(pool))
        topics.append(PooledTopic(pool, places, fit.theta, fit.probability))
    expected = expected_map([exact_expected_ap(topic.pool, topic.probability) for topic in topics])
    progress(len(pools), 2 * len(pools), "similarity of the runs")
    similarity = _similarity(topics)
    reported, method = _reported_values(campaign, arrays, wanted.measure)
    progress(3 * len(pools) // 2, 2 * len(pools), "manual runs")
    manual = _manual(arrays, topics, reported)
    reweighting = ranking_after_reweighting(
        campaign,
        arrays,
        pools,
        _labels(arrays),
        expected,
        reported,
        lambda: progress(2 * len(pools) - 1, 2 * len(pools), "reweighting"),
    )
    order = sorted(range(len(arrays.runs)), key=lambda run: (-expected[run], arrays.runs[run].run_id))
    return {
        "n_topics": len(topics),
        "n_documents": sum(topic.places.size for topic in topics),
        "method": method,
        "runs": [
            {
                "run": arrays.runs[run].run_id,
                "is_manual": arrays.runs[run].is_manual,
                "expected": expected[run],
                "heavier": manual["expected"][run] if manual["expected"] else None,
                "similarity": None if isinstance(similarity, Refusal) else similarity[run],
                "reported": None if isinstance(reported, Refusal) else _number(reported[run]),
            }
            for run in order
        ],
        "similarity_refusal": similarity.reason if isinstance(similarity, Refusal) else "",
        "agreement": judged_tau(reported, expected),
        "manual": {name: value for name, value in manual.items() if name != "expected"},
        "reweighting": reweighting,
        "calibration": _calibration(arrays, topics),
    }


# -- pools ----------------------------------------------------------------------------------------------------


def _pools(arrays: CampaignArrays) -> list[tuple[RankedPool, Ints]]:
    """Return of every topic the ranks of its pooled documents by all runs, and the documents' places in the frame."""
    try:
        pools = list(topic_pools(arrays.returned, arrays.topic_index, LARGEST_POOL))
    except ValueError as error:
        raise AnalysisRefused(str(error)) from error
    if not pools:
        raise AnalysisRefused("no run returns a pooled document")
    return pools


def _similarity(topics: Sequence[PooledTopic]) -> Floats | Refusal:
    try:
        return mean_similarity([similarities(topic.pool) for topic in topics])
    except ValueError:
        return Refusal("two runs have no topic in common, so nothing says how alike they are")


# -- what judgments say ---------------------------------------------------------------------------------------


def _reported_values(
    campaign: Campaign, arrays: CampaignArrays, measure: str
) -> tuple[Floats | Refusal, str]:
    """Return the runs' values by the first method that has any, and its key; or why there are none."""
    if arrays.judged.size == 0:
        return Refusal("nobody has judged yet"), ""
    basis = Basis(campaign, arrays, Predictions(arrays), assessor_confusion_counts(arrays))
    try:
        found, method = reported_numbers(basis, measure)
    except AnalysisRefused as refusal:
        return Refusal(str(refusal)), ""
    return found.value[: len(arrays.runs)], method.key


def _manual(
    arrays: CampaignArrays, topics: Sequence[PooledTopic], reported: Floats | Refusal
) -> dict[str, Any]:
    """Return expected MAP where manual runs have the smaller of the paper's weights, and tau with either."""
    is_manual = np.array([run.is_manual for run in arrays.runs])
    n_manual = int(is_manual.sum())
    if n_manual in (0, is_manual.size):
        words = "every run is marked as manual" if n_manual else "no run is marked as manual"
        return {"refusal": words, "n_manual": n_manual, "weights": [], "expected": None}
    by_weight = [_weighted_scores(topics, manual_weights(is_manual, weight)) for weight in MANUAL_WEIGHTS]
    rows = [
        {"weight": weight, "agreement": judged_tau(reported, expected)}
        for weight, expected in zip(MANUAL_WEIGHTS, by_weight, strict=True)
    ]
    return {"refusal": "", "n_manual": n_manual, "weights": rows, "expected": by_weight[0].tolist()}


def _weighted_scores(topics: Sequence[PooledTopic], weights: Floats) -> Floats:
    fits = [consensus(Preferences.of(topic.pool, weights)) for topic in topics]
    return expected_map(
        [exact_expected_ap(topic.pool, fit.probability) for topic, fit in zip(topics, fits, strict=True)]
    )


def _calibration(arrays: CampaignArrays, topics: Sequence[PooledTopic]) -> dict[str, Any]:
    """Return of every tenth of p how many judged documents are relevant, weighted to the pool; and what p should be."""
    if arrays.judged.size == 0:
        return {"refusal": "nobody has judged yet"}
    everything = np.ones(arrays.judged.size, dtype=bool)
    if partly := arrays.no_random_part(everything):
        return {"refusal": partly}
    theta, p = np.zeros(arrays.frame.height), np.zeros(arrays.frame.height)
    for topic in topics:
        theta[topic.places], p[topic.places] = topic.theta, topic.probability
    relevant = _relevance(arrays)
    chance = arrays.draw_probability(everything)
    usable = np.isin(arrays.judged, np.concatenate([topic.places for topic in topics])) & (chance > 0)
    here, label = arrays.judged[usable], relevant[usable]
    if not here.size:
        return {"refusal": "no judged document has a probability of being judged yet"}
    fit = calibration_by_judgments(theta[here], label)
    weight = 1 / chance[usable]
    place = np.minimum((p[here] * N_BINS).astype(np.int64), N_BINS - 1)
    bins = []
    for one in np.unique(place).tolist():
        inside = place == one
        share = float(weight[inside & label].sum() / weight[inside].sum())
        ends = {"low": one / N_BINS, "high": (one + 1) / N_BINS}
        counts = {"n": int(inside.sum()), "n_relevant": int((inside & label).sum())}
        bins.append({**ends, **counts, "share": share})
    return {"refusal": "", "bins": bins, "shift": fit.shift, "slope": fit.slope, "n": int(here.size)}


def _relevance(arrays: CampaignArrays) -> NDArray[np.bool_]:
    """Return whether each judged item is relevant: by the gold tier where it audited, else by its median grade."""
    gold, *_, bronze = tiers_of(arrays)
    grade = np.where(gold.grade != UNJUDGED, gold.grade, bronze.grade)
    return np.asarray(grade >= arrays.relevant_grade)


def _labels(arrays: CampaignArrays) -> dict[int, bool]:
    """Return whether each judged document is relevant, by its place in the frame."""
    return dict(zip(arrays.judged.tolist(), _relevance(arrays).tolist(), strict=True))


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
