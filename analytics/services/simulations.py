"""Simulations of a campaign's own errors, made by a job when somebody asks.

How many bad topics its ranking stands, what judging again would gain, and what careless assessors would cost.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
from django.db.models import OuterRef, Subquery, TextField, Value
from django.db.models.functions import Cast, JSONObject

from analytics.estimation.estimate import Refusal
from analytics.frames import CampaignArrays, Ints, campaign_arrays
from analytics.planning.bad_topics import LEAST_TAU, Tolerance, flips, mixture_labels, tolerance
from analytics.planning.rejudging_gain import VoteErrors, rejudging_gains
from analytics.services.careless import careless_outcome
from analytics.services.job_queue import newest_job, queue_work
from analytics.services.plan_terms import usual_pair
from analytics.services.recomputation import Progress, measures_of
from judging.models import Campaign
from judging.services.errors import Refused
from sampling.arrays import FloatArray
from sampling.audit_plan import middle_grades
from sampling.frames import FrameRefused
from sampling.rejudging import SampledTopic
from sampling.selections import NOT_BY_DOCUMENT
from touchstone.models import Job, User

KIND = "simulation"
BAD_TOPICS = "bad topics"
CARELESS_ASSESSORS = "careless assessors"
SEED = 2010
FEWEST_LABELS = 20  # of items whose true label is known, relevant or not, for an error rate


class SimulationRefused(Refused):
    status = 409
    title = "This cannot be simulated yet"


def ask_simulation(*, campaign: Campaign, what: str, user: User | None) -> Job:
    """Queue the simulation, or return the job that is at it."""
    return queue_work(KIND, {"campaign": str(campaign.pk), "what": what}, user)


def newest_simulation(*, campaign: Campaign, what: str) -> Job | None:
    """Return the newest job that has made this simulation."""
    payload = {"campaign": str(campaign.pk), "what": what}
    return newest_job(KIND, payload=payload, state=Job.State.DONE)


def newest_result(what: str) -> Subquery:
    """Return, as a column of campaigns, what the newest job that has made this simulation found, and when."""
    asked = JSONObject(campaign=Cast(OuterRef("pk"), TextField()), what=Value(what))
    made = Job.objects.filter(kind=KIND, state=Job.State.DONE, payload__contains=asked)
    return Subquery(
        made.order_by("-created_at").values(said=JSONObject(result="result", at="finished_at"))[:1]
    )


def simulate(*, campaign: Campaign, what: str, progress: Progress) -> dict[str, Any]:
    """Return what a simulation of the campaign's errors says."""
    return SIMULATIONS[what](campaign, progress)


def bad_topics(campaign: Campaign, progress: Progress) -> dict[str, Any]:
    """Return at which share of bad topics Kendall's tau between rankings of the runs falls below .9.

    `mixed`: bad topics are judged by assessors who err in the known ways, evenly. `measured`: at the error rates that
    gold checks and audits have shown, where they are many enough. `limit_share` is the smaller of the two.
    """
    progress(0, 2, "reading judgments")
    arrays = _arrays(campaign)
    topics, _ = sampled_topics(arrays)
    rates = error_rates(arrays)
    rng = np.random.default_rng(SEED)
    try:
        mixed = tolerance(topics, mixture_labels, rng)
        progress(1, 2, "simulating the campaign's own errors")
        measured = tolerance(topics, flips(*rates), rng) if rates else None
    except ValueError as error:
        raise SimulationRefused(str(error)) from error
    return {
        "least_tau": LEAST_TAU,
        "n_topics": len(topics),
        "n_runs": len(arrays.runs),
        "n_judgments": arrays.n_judgments,
        "mixed": _curve(mixed),
        "measured": _curve(measured) if measured else None,
        "false_alarm": rates[0] if rates else None,
        "miss": rates[1] if rates else None,
        "limit_share": min(mixed.limit_share, measured.limit_share if measured else 1.0),
    }


def judging_again(
    campaign: Campaign, arrays: CampaignArrays, most: int, progress: Progress
) -> dict[str, Any]:
    """Return what each policy of judging again gains, with votes that err as gold checks and audits have shown.

    Raises
    ------
    SimulationRefused
        If too few errors are known, or the runs cannot be ranked.
    """
    rates = error_rates(arrays)
    if rates is None:
        raise SimulationRefused(
            f"it takes known answers to {FEWEST_LABELS} relevant and {FEWEST_LABELS} other documents"
        )
    topics, places = sampled_topics(arrays)
    votes = VoteErrors(campaign.judgments_per_item, *rates)
    prior = arrays.frame["prior"].to_numpy()[arrays.judged[places]]
    rng = np.random.default_rng(SEED)
    try:
        gains = rejudging_gains(
            topics,
            prior,
            votes,
            rng,
            most=most,
            progress=lambda done, total: progress(done, total, "simulating every policy"),
        )
    except ValueError as error:
        raise SimulationRefused(str(error)) from error
    return {"n_judged": places.size, **asdict(votes), **asdict(gains)}


def careless_assessors(campaign: Campaign, progress: Progress) -> dict[str, Any]:
    """Return the half-width of the main comparison if a fifth of the assessors guessed, beside the present one."""
    progress(0, 1, "reading judgments")
    measure, pair = measures_of(campaign)[0], usual_pair(campaign)
    if not all(pair):
        raise SimulationRefused("a comparison needs two runs")
    arrays = _arrays(campaign)
    if arrays.has_whole_topics:
        raise SimulationRefused(NOT_BY_DOCUMENT)
    outcome = careless_outcome(
        campaign,
        arrays,
        measure,
        pair,
        np.random.default_rng(SEED),
        progress=lambda done, total: progress(done, total, "guessing"),
    )
    if isinstance(outcome, Refusal):
        raise SimulationRefused(outcome.reason)
    return {"measure": measure, "runs": list(pair), **asdict(outcome)}


SIMULATIONS: dict[str, Callable[[Campaign, Progress], dict[str, Any]]] = {
    BAD_TOPICS: bad_topics,
    CARELESS_ASSESSORS: careless_assessors,
}


def _arrays(campaign: Campaign) -> CampaignArrays:
    try:
        return campaign_arrays(campaign)
    except FrameRefused as refusal:
        raise SimulationRefused(str(refusal)) from refusal


def sampled_topics(arrays: CampaignArrays) -> tuple[list[SampledTopic], Ints]:
    """Return the judged topics, and the places of their documents among the judged ones, topic by topic.

    Documents stand in judging order, with the lower median of their ordinary grades.
    """
    if arrays.has_whole_topics:
        raise SimulationRefused(NOT_BY_DOCUMENT)
    n_judged = arrays.judged.size
    if partly := arrays.no_random_part(np.ones(n_judged, dtype=bool)):
        raise SimulationRefused(partly)
    grades = middle_grades(arrays.label_item, arrays.label_grade, n_judged)
    chances = arrays.draw_probability(np.ones(n_judged, dtype=bool))
    usable = np.flatnonzero((grades >= 0) & (chances > 0))
    first = np.full(n_judged, np.iinfo(np.int64).max)
    np.minimum.at(first, arrays.label_item, arrays.label_judgment)
    usable = usable[np.argsort(first[usable], kind="stable")]
    topic = arrays.topic_index[arrays.judged[usable]]
    places = _judged_ranks(arrays)
    parts = [usable[topic == one] for one in np.unique(topic)]
    topics = [
        SampledTopic.of(
            places[:, part], (grades[part] >= arrays.relevant_grade).astype(np.int64), chances[part]
        )
        for part in parts
    ]
    return topics, np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def _judged_ranks(arrays: CampaignArrays) -> FloatArray:
    """Return the ranks [run, judged], infinite where a run does not return the item."""
    returned = arrays.returned
    place = np.full(arrays.topic_index.size, -1)
    place[arrays.judged] = np.arange(arrays.judged.size)
    is_judged = place[returned.item] >= 0
    ranks = np.full((len(arrays.runs), arrays.judged.size), np.inf)
    ranks[returned.run[is_judged], place[returned.item[is_judged]]] = returned.value[is_judged]
    return ranks


def error_rates(arrays: CampaignArrays) -> tuple[float, float] | None:
    """Return the rates of false alarms and misses on gold checks and audited items; None where they are too few."""
    is_audited = arrays.audited[arrays.label_item]
    true = np.concatenate([arrays.check_true, arrays.audit_grade[arrays.label_item[is_audited]]])
    given = np.concatenate([arrays.check_given, arrays.label_grade[is_audited]])
    is_relevant, says_relevant = true >= arrays.relevant_grade, given >= arrays.relevant_grade
    if min(np.count_nonzero(is_relevant), np.count_nonzero(~is_relevant)) < FEWEST_LABELS:
        return None
    return float(says_relevant[~is_relevant].mean()), float((~says_relevant[is_relevant]).mean())


def _curve(found: Tolerance) -> dict[str, Any]:
    return {"limit_share": found.limit_share, "shares": found.shares.tolist(), "taus": found.taus.tolist()}
