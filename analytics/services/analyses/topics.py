"""Topic by topic: how two runs differ in each, with an interval where there is one, and which are hard for all runs.

A single topic has few audited documents. Where there are enough for an interval its number is the corrected one, made
of its own documents. Elsewhere it would be unbiased and useless: one audited document more or less changes everything.
There the value is a synthetic one, as for small areas: what the whole audit predicts of the documents, of those judged
with their grades. It has no interval: nobody can say how far this topic is
from the average.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from analytics.estimation.audit_correction import corrected_sums
from analytics.estimation.estimate import Estimates, Floats, Refusal
from analytics.estimation.evidence import Evidence, LinearTargets
from analytics.estimation.naive import from_grades
from analytics.estimation.samples import AuditSample
from analytics.estimation.targets import TargetWeights
from analytics.frames import CampaignArrays
from analytics.methods import NAIVE, REPORTED
from analytics.numbers.predictions import Predictions
from analytics.numbers.targets import linear_targets
from analytics.services.analyses.request import AnalysisRefused, AnalysisSubject
from analytics.services.basis import Basis
from analytics.services.confusions import assessor_confusion_counts
from analytics.services.recomputation import Progress
from judging.models import Campaign
from sampling.measures.registry import parse_linear, parse_measure
from sampling.measures.sparse import SparseRuns

MOST_TOPICS = 2000


def topics(
    campaign: Campaign, arrays: CampaignArrays, wanted: AnalysisSubject, progress: Progress = lambda *_: None
) -> dict[str, Any]:
    """Return for every topic the difference of two runs and the mean of all runs, corrected (else as judged)."""
    kind = parse_measure(wanted.measure).kind
    if not kind.is_sum:
        raise AnalysisRefused(
            f"{wanted.measure} is {kind.noun}; choose a sum over documents, such as DCG or P"
        )
    basis = Basis(campaign, arrays, Predictions(arrays), assessor_confusion_counts(arrays))
    evidence = basis.evidence
    if evidence.not_judged is not None:
        raise AnalysisRefused(evidence.not_judged.reason)
    targets = linear_targets(basis, parse_linear(wanted.measure))
    first, second = (_place(arrays, name) for name in (wanted.run, wanted.against))
    for place in (first, second):
        refusal = targets.refusal_of_run(place)
        if refusal is not None:
            raise AnalysisRefused(f"{refusal.reason}: topic by topic there is no number")
    usable = [place for place in range(len(arrays.runs)) if targets.refusal_of_run(place) is None]
    runs = targets.weights.runs
    progress(1, 3, "topic by topic")
    difference = runs.row(first) - runs.row(second)
    of_pair = _by_topic(evidence, targets, difference, evidence.audit)
    naive = _by_topic(evidence, targets, difference, None)
    progress(2, 3, "all runs together")
    of_all = _by_topic(evidence, targets, _mean(runs, usable), evidence.audit)
    parameters = arrays.draw.parameters["topics"]
    titles = dict(campaign.collection.topics.filter(topic_id__in=parameters).values_list("topic_id", "title"))
    n_judged = np.bincount(arrays.topic_index[arrays.judged], minlength=arrays.n_topics)
    n_audited = np.bincount(arrays.topic_index[arrays.judged[arrays.audited]], minlength=arrays.n_topics)
    largest = targets.measure.kind.largest(targets.measure, targets.gains)
    rows = [
        {
            "topic_id": topic_id,
            "title": titles.get(topic_id, ""),
            "n_judged": n_judged[place],
            "n_audited": n_audited[place],
            "difference": _part(of_pair, place, -largest, largest),
            "naive": _part(naive, place, -largest, largest),
            "mean": _part(of_all, place, 0.0, largest),
        }
        for place, topic_id in enumerate(_names(arrays))
    ]
    kept = _most_different(rows)
    return {
        "method": (NAIVE if isinstance(evidence.audit, Refusal) else REPORTED).key,
        "range": largest,
        "n_topics": len(rows),
        "n_runs": len(usable),
        "n_runs_left_out": len(arrays.runs) - len(usable),
        "n_with_interval": sum(row["difference"]["low"] is not None for row in rows),
        "topics": kept,
    }


def _names(arrays: CampaignArrays) -> list[str]:
    """Return the topics' ids in the order of their places."""
    names = [""] * arrays.n_topics
    for place, topic_id in zip(arrays.topic_index.tolist(), arrays.frame["topic_id"].to_list(), strict=True):
        names[place] = topic_id
    return [name or f"({place})" for place, name in enumerate(names)]


def _place(arrays: CampaignArrays, run_id: str) -> int:
    place = next((place for place, run in enumerate(arrays.runs) if run.run_id == run_id), None)
    if place is None:
        raise AnalysisRefused(f"the collection has no run {run_id!r}")
    return place


def _mean(runs: SparseRuns, usable: list[int]) -> Floats:
    """Return the mean of the usable runs' weights, over the frame."""
    if not usable:
        raise AnalysisRefused("no run has a number: all runs return documents that could not be drawn")
    mask = np.zeros(runs.n_runs, dtype=bool)
    mask[usable] = True
    return runs.item_sums(np.where(mask[runs.run], runs.value, 0.0)) / len(usable)


def _by_topic(
    evidence: Evidence, targets: LinearTargets, weights: Floats, audit: AuditSample | Refusal | None
) -> Estimates:
    """Return the estimate of every topic: a target whose weights are those of the topic, times the number of topics.

    Corrected by the audit, if there is one; else the grades are taken as given.
    """
    here = np.flatnonzero(weights)
    entries = SparseRuns(
        evidence.frame.n_topics,
        weights.size,
        evidence.frame.topic_index[here].astype(np.int32),
        here.astype(np.int32),
        weights[here] * evidence.frame.n_topics,
    )
    of_topics = TargetWeights(entries, paired=False)
    totals = of_topics.totals(targets.prediction)
    judged = of_topics.over(evidence.frame.judged)
    if isinstance(audit, AuditSample) and targets.gold is not None:
        before = targets.gold.before
        totals = of_topics.totals(before)
        found = corrected_sums(judged, totals, evidence, audit, targets).estimates
        # by item what its labels, and those of all others, mean by the whole audit
        surprise = targets.gold.after - before[evidence.frame.judged[audit.member]]
        return _with_values(found, totals + judged.over(audit.member).totals(surprise))
    prior = targets.prediction[evidence.frame.judged]
    found = from_grades(evidence, judged, targets.utility, prior, totals)
    if evidence.is_foreign:  # nothing is predicted: the values are those of the sample, everywhere
        return found
    # Of few documents each stands for so many that the sum may be below 0: there, the grades and the predictions.
    return _with_values(found, totals + judged.totals(targets.utility - prior))


def _with_values(found: Estimates, value: Floats) -> Estimates:
    """Return the estimates with other values where there is no interval."""
    refused = np.isin(np.arange(value.size), list(found.refusals))
    return replace(found, value=np.where(refused, value, found.value))


def _part(found: Estimates, place: int, least: float, largest: float) -> dict[str, Any]:
    """Return a topic's number within its range, without ends where there is no interval; and what it was before."""
    refusal = found.refusals.get(place)
    # What rounding leaves of 0 is 0 everywhere: else a topic in which nothing differs has an interval beside its value.
    value, low, high = (_without_rounding(numbers[place]) for numbers in (found.value, found.low, found.high))
    cut = {
        name: min(max(number, least), largest)
        for name, number in zip(("value", "low", "high"), (value, low, high), strict=True)
    }
    return {
        "value": cut["value"],
        "low": None if refusal else cut["low"],
        "high": None if refusal else cut["high"],
        "unbounded_value": value,
        "unbounded_low": None if refusal else low,
        "unbounded_high": None if refusal else high,
        "n": int(found.n[place]),
        "refusal": refusal.reason if refusal else "",
    }


def _without_rounding(number: float) -> float:
    return float(number) if abs(number) > 1e-12 else 0.0


def _most_different(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows by topic id; of very many topics those that differ most."""
    kept = sorted(rows, key=lambda row: -abs(row["difference"]["value"]))[:MOST_TOPICS]
    return sorted(kept, key=lambda row: row["topic_id"])
