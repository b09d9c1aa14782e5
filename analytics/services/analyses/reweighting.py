"""The consensus of the runs after a few judgments that the method itself chooses (`sampling/reweighting.py`).

A campaign's judgments are of documents that a draw chose, so the method can go on only as far as it asks for one of
them: its first round that asks for another is named, document by document, and no later one is guessed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy

from analytics.agreement.rankings import rank_agreement
from analytics.estimation.estimate import Floats, Refusal
from analytics.frames import CampaignArrays, Ints
from analytics.lowcost.expected import exact_expected_ap, expected_map
from judging.models import Campaign, Item
from sampling.experts import RankedPool
from sampling.reweighting import Reweighting, reweighting, round_count, with_judgments

SAME = 9  # decimals of a weight's logarithm: products in another order are one weight


def ranking_after_reweighting(
    campaign: Campaign,
    arrays: CampaignArrays,
    pools: Sequence[tuple[RankedPool, Ints]],
    labels: Mapping[int, bool],
    expected: Floats,
    reported: Floats | Refusal,
    report: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Return the runs by expected MAP after the rounds, the order of their weights, or what a round asks for.

    Parameters
    ----------
    pools
        Of every topic the ranks, and the places of its documents in the frame.
    labels
        Whether a document is relevant, by its place in the frame; without those that nobody has judged.
    expected, reported
        Of every run, expected MAP without judgments and the value by judgments.
    report
        Called now and then: a job that was cancelled raises.
    """
    n_rounds = round_count(len(arrays.runs))
    if not n_rounds:
        return {"refusal": f"{len(arrays.runs)} runs ask for no judgment: it takes 3 runs"}

    def judge(topic: int, document: int) -> bool | None:
        report()
        return labels.get(int(pools[topic][1][document]))

    made = reweighting([pool for pool, _ in pools], judge, n_rounds=n_rounds)
    lacking = _documents_asked_for(campaign, arrays, pools, made)
    after = None if lacking else _scores(pools, made)
    n_relevant = [sum(known.values()) for known in made.judged]
    n_pairs = sum(count * (len(known) - count) for count, known in zip(n_relevant, made.judged, strict=True))
    return {
        "refusal": "",
        "n_rounds": n_rounds,
        "n_rounds_made": max(len(known) for known in made.judged),
        "n_judged": sum(len(known) for known in made.judged),
        "n_relevant": sum(n_relevant),
        "n_pairs": n_pairs,
        "lacking": lacking,
        "runs": [] if after is None else _rows(arrays, expected, after, made.weights, reported),
        "agreement": {"refusal": "a round is not made"} if after is None else judged_tau(reported, after),
        "weights": _weights_agreement(reported, made, n_pairs, is_complete=after is not None),
    }


def judged_tau(reported: Floats | Refusal, other: Floats) -> dict[str, Any]:
    """Return tau between the ranking by judgments and another, over the runs that have a number."""
    if isinstance(reported, Refusal):
        return {"refusal": reported.reason}
    known = np.isfinite(reported)
    if known.sum() < 2:
        return {"refusal": "fewer than two runs have a number from judgments"}
    found = rank_agreement(reported[known], other[known])
    tau = found if isinstance(found, Refusal) else found.tau_b
    if isinstance(tau, Refusal):
        return {"refusal": tau.reason}
    return {"refusal": "", "tau": tau, "n_runs": int(known.sum())}


def _scores(pools: Sequence[tuple[RankedPool, Ints]], made: Reweighting) -> Floats:
    """Return expected MAP of every run; a judged document is relevant with 1 or 0."""
    return expected_map(
        [
            exact_expected_ap(pool, with_judgments(fit.probability, known))
            for (pool, _), fit, known in zip(pools, made.consensuses, made.judged, strict=True)
        ]
    )


def _documents_asked_for(
    campaign: Campaign, arrays: CampaignArrays, pools: Sequence[tuple[RankedPool, Ints]], made: Reweighting
) -> list[dict[str, Any]]:
    """Return the documents that a round asked for in vain, and whether they are among the campaign's items."""
    places = [int(pools[topic][1][document]) for topic, document in made.lacking]
    pairs = list(arrays.frame[places].select("topic_id", "doc_id").iter_rows()) if places else []
    items = Item.objects.filter(
        campaign=campaign,
        topic__topic_id__in=[topic for topic, _ in pairs],
        document__doc_id__in=[document for _, document in pairs],
    )
    drawn = set(items.values_list("topic__topic_id", "document__doc_id"))
    return [
        {"topic": topic, "document": document, "is_drawn": (topic, document) in drawn}
        for topic, document in pairs
    ]


def _rows(
    arrays: CampaignArrays, expected: Floats, after: Floats, weights: Floats, reported: Floats | Refusal
) -> list[dict[str, Any]]:
    """Return the runs, the highest expected MAP after reweighting first. Equal weights share a place."""
    before = _places(expected)
    by_weight = _places(_comparable(weights))
    order = sorted(range(len(arrays.runs)), key=lambda run: (-after[run], arrays.runs[run].run_id))
    return [
        {
            "run": arrays.runs[run].run_id,
            "is_manual": arrays.runs[run].is_manual,
            "expected": after[run],
            "place_before": before[run],
            "place_by_weight": by_weight[run],
            "reported": None
            if isinstance(reported, Refusal) or not np.isfinite(reported[run])
            else reported[run],
        }
        for run in order
    ]


def _comparable(weights: Floats) -> Floats:
    """Return the logarithms of the weights, equal where the same factors came in another order."""
    return np.asarray(np.round(np.log(weights), SAME), dtype=np.float64)


def _places(values: Floats) -> list[int]:
    """Return the place of each value, 1 for the highest; equal ones share the better place.

    >>> _places(np.array([0.2, 0.5, 0.2]))
    [2, 1, 2]
    """
    return [int(place) for place in scipy.stats.rankdata(-np.asarray(values), method="min")]


def _weights_agreement(
    reported: Floats | Refusal, made: Reweighting, n_pairs: int, *, is_complete: bool
) -> dict[str, Any]:
    if not is_complete:
        return {"refusal": "a round is not made"}
    if not n_pairs:
        return {
            "refusal": "no topic has both a relevant document and another among them, so all weights are equal"
        }
    return judged_tau(reported, _comparable(made.weights))
