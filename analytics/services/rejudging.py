"""Judging again: the items that a policy chooses and what every policy would gain, by a job; the slots for them."""

import secrets
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from analytics.estimation.estimate import Floats, Refusal
from analytics.estimation.relevance_errors import RelevanceErrors, label_error_probability, relevance_errors
from analytics.frames import CampaignArrays, Ints, current_arrays
from analytics.services.confusions import assessor_confusion_counts
from analytics.services.disputed import doubtful_labels, items_by_key
from analytics.services.job_queue import queue_work
from analytics.services.recomputation import Progress
from analytics.services.simulations import SimulationRefused, judging_again
from judging.kinds import ITEM_COLUMNS, ItemKey
from judging.models import Campaign
from judging.services.more_judgments import complete_items, labels_in_file, open_one_more, why_nobody_could
from sampling.acceptance import merged_errors
from sampling.audit_plan import middle_grades
from sampling.draws import permanent_random_numbers
from sampling.frames import FrameRefused
from sampling.measures.registry import parse_measure
from sampling.rejudging import SampledTopic, label_influence, ranking_influence, total_influence
from sampling.rejudging_policies import PAPERS_LIMIT, RejudgingCandidates, rejudging_policy_of
from touchstone.models import Job, User

KIND = "rejudging"


@dataclass(frozen=True)
class RejudgingChoice:
    """What a manager asks for: a policy, how many judgments at most, and what the policy goes by.

    `measure` is the one whose numbers a wrong label would move; empty: the one that was drawn for.
    """

    policy: str
    most: int
    measure: str = ""
    limit: float = PAPERS_LIMIT


@dataclass(frozen=True)
class MergedErrors:
    """The errors of the joint grade (the lower median) of so many judgments, by those of one on gold checks."""

    n_judgments: int
    false_alarm: float
    miss: float


@dataclass(frozen=True)
class RejudgingPlan:
    """What a choice comes to: the items, by their ids, most urgent first; or why there is none.

    `n_possible` items are complete and have no slot more yet.
    """

    items: tuple[uuid.UUID, ...] = ()
    n_possible: int = 0
    errors: tuple[MergedErrors, ...] = ()
    refusal: str = ""


def rejudging_plan(campaign: Campaign, choice: RejudgingChoice) -> RejudgingPlan:
    """Return which items the choice would have judged once more. Nothing is stored.

    Neither audits nor decisions play a part. The classes that an audit corrects are made of all judgments: had only
    documents that were not audited another judgment, the audited ones would no longer stand for their class.
    """
    policy = rejudging_policy_of(choice.policy)
    if reason := why_nobody_could(campaign):
        return RejudgingPlan(refusal=reason)
    try:
        arrays = current_arrays(campaign)
    except FrameRefused as refusal:
        return RejudgingPlan(refusal=str(refusal))
    if not arrays.judged.size:
        return RejudgingPlan(refusal="nobody has judged yet")
    counts = assessor_confusion_counts(arrays).without_audits()
    errors = relevance_errors(counts.total, arrays.relevant_grade)
    if policy.needs_error_rates and isinstance(errors, Refusal):
        return RejudgingPlan(refusal=f"gold checks do not tell how often assessors err: {errors.reason}")
    keys = [ItemKey(*names) for names in arrays.frame[arrays.judged].select(ITEM_COLUMNS).iter_rows()]
    items = items_by_key(campaign, keys)
    possible = complete_items(campaign)
    is_possible = np.array([items[key] in possible for key in keys])
    order = policy.order(_candidates(arrays, campaign, choice, errors))
    chosen = order[is_possible[order]][: choice.most]
    return RejudgingPlan(
        tuple(items[keys[place]] for place in chosen.tolist()),
        int(is_possible.sum()),
        () if isinstance(errors, Refusal) else _errors_before_and_after(campaign, errors),
    )


def ask_rejudging(*, campaign: Campaign, choice: RejudgingChoice, user: User | None) -> Job:
    """Queue the preview of a choice, or return the job that is at it."""
    return queue_work(KIND, {"campaign": str(campaign.pk), "choice": asdict(choice)}, user)


def preview(campaign: Campaign, choice: RejudgingChoice, progress: Progress) -> dict[str, Any]:
    """Return the choice's plan, and what every policy would gain with as many judgments; or why that is not known."""
    progress(0, 1, "reading judgments")
    plan = rejudging_plan(campaign, choice)
    told: dict[str, Any] = {"plan": {**asdict(plan), "items": [str(item) for item in plan.items]}}
    if plan.refusal:
        return told
    try:
        told["gains"] = judging_again(campaign, current_arrays(campaign), choice.most, progress)
    except SimulationRefused as refusal:
        told["no_gains"] = str(refusal)
    return told


def preview_job(campaign: Campaign, job_id: uuid.UUID) -> Job | None:
    """Return the job of a preview for this campaign that is done."""
    job = Job.objects.filter(pk=job_id, kind=KIND, state=Job.State.DONE).first()
    return job if job is not None and job.payload["campaign"] == str(campaign.pk) else None


def open_rejudging(
    *, campaign: Campaign, items: Sequence[uuid.UUID], choice: RejudgingChoice, actor: User | None
) -> int:
    """Open one slot more of each of the items that a choice came to; return of how many: not of one that has it."""
    return open_one_more(
        campaign=campaign, items=items, seed=secrets.randbits(62), about=asdict(choice), actor=actor
    )


def _candidates(
    arrays: CampaignArrays, campaign: Campaign, choice: RejudgingChoice, errors: RelevanceErrors | Refusal
) -> RejudgingCandidates:
    joint = middle_grades(arrays.label_item, arrays.label_grade, arrays.judged.size)
    everything = np.ones(arrays.judged.size, dtype=bool)
    pairs = arrays.frame[arrays.judged]
    numbers = permanent_random_numbers(
        pairs["topic_id"], pairs["doc_id"], arrays.draw.seed, purpose="rejudging"
    )
    priority = None if isinstance(errors, Refusal) else _priority(arrays, campaign, choice, joint, errors)
    return RejudgingCandidates(
        is_relevant=joint >= arrays.relevant_grade,
        inclusion_probability=arrays.draw_probability(everything),
        random_number=numbers,
        priority=priority,
        limit=choice.limit,
    )


def _priority(
    arrays: CampaignArrays, campaign: Campaign, choice: RejudgingChoice, joint: Ints, errors: RelevanceErrors
) -> Floats:
    """Return influence times error probability by judged item."""
    everything = np.ones(arrays.judged.size, dtype=bool)
    measure = parse_measure(choice.measure or arrays.draw.parameters["measure"])
    if measure.kind.is_sum:
        counts = assessor_confusion_counts(arrays).without_audits()
        return doubtful_labels(arrays, campaign, counts, everything).priority
    prior = arrays.frame["prior"].to_numpy()[arrays.judged]
    wrong = label_error_probability(arrays.labels, joint, prior, errors)
    return np.asarray(_influence_on_ap(arrays, joint, measure.last_rank) * wrong)


def _influence_on_ap(arrays: CampaignArrays, joint: Ints, cutoff: int) -> Floats:
    """Return by judged item how far AP of the runs changes if its label is reversed: exactly, topic by topic."""
    ranks = arrays.ranks_at(arrays.judged).astype(np.float64)
    ranks[(ranks < 1) | (ranks > cutoff)] = np.inf
    label = (joint >= arrays.relevant_grade).astype(np.int64)
    chance = np.clip(arrays.draw_probability(np.ones(joint.size, dtype=bool)), 1e-12, 1.0)
    topic = arrays.topic_index[arrays.judged]
    influence = np.zeros(joint.size)
    of_runs = ranking_influence if len(arrays.runs) > 1 else total_influence
    for place in np.unique(topic).tolist():
        own = np.flatnonzero(topic == place)
        influence[own] = of_runs(label_influence(SampledTopic.of(ranks[:, own], label[own], chance[own])))
    return influence


def _errors_before_and_after(campaign: Campaign, errors: RelevanceErrors) -> tuple[MergedErrors, ...]:
    k = campaign.judgments_per_item
    if labels_in_file(campaign):  # of a file no single number holds for every document
        return ()
    return tuple(
        MergedErrors(n, *merged_errors(n, n // 2 + 1, errors.false_alarm, errors.miss)) for n in (k, k + 1)
    )
