"""Checking topics: a plan, the topics it draws, what was found in them, and what that says of all topics."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from judging.models import Campaign, Slot, Topic
from judging.services.errors import Refused
from sampling.acceptance import AcceptancePlan, acceptance_plan, most_bad_topics
from sampling.draws import permanent_random_numbers
from sampling.models import TopicCheck, TopicCheckPlan, TopicFinding
from touchstone.models import User, record

PURPOSE = "topic check"  # of the permanent random numbers
CONFIDENCE = 0.95


class TopicCheckRefused(Refused):
    title = "Topics cannot be checked like this"


class TopicChecked(Refused):
    status = 409
    title = "This topic is checked already"


@dataclass(frozen=True)
class TopicCheckStatus:
    """Where the checks of a plan stand.

    Attributes
    ----------
    n_checked, n_bad : int
        Checks made, and how many found a bad topic.
    is_accepted : bool or None
        None while the checks that are left may decide it.
    most_bad_topics : int
        Exact upper 95 % bound of the number of bad topics among all; all of them before the first check.
    next_check : TopicCheck or None
        The drawn topic to check next; None if all are checked.
    """

    n_checked: int
    n_bad: int
    is_accepted: bool | None
    most_bad_topics: int
    next_check: TopicCheck | None


def judged_topics(campaign: Campaign) -> QuerySet[Topic]:
    """Return the topics in which somebody has judged, in the order of their ids."""
    done = Slot.objects.filter(
        campaign=campaign, purpose=Slot.Purpose.JUDGE, state=Slot.State.DONE, topic=OuterRef("pk")
    )
    return Topic.objects.filter(Exists(done), collection=campaign.collection_id).order_by("topic_id")


def limits(n_topics: int, good_share: float, limit_share: float) -> tuple[int, int]:
    """Return the numbers of bad topics that two shares mean among so many topics.

    Examples
    --------
    >>> limits(638, 0.1, 0.364)
    (64, 232)
    """
    return round(n_topics * good_share), max(1, round(n_topics * limit_share))


def proposed_plan(
    n_topics: int, n_bad_good: int, n_bad_limit: int, *, alpha: float, beta: float
) -> AcceptancePlan:
    """Return the plan with the fewest checks; `TopicCheckRefused` with the values where there is none."""
    if not n_topics:
        raise TopicCheckRefused("nobody has judged a topic yet")
    try:
        return acceptance_plan(n_topics, n_bad_good, n_bad_limit, alpha=alpha, beta=beta)
    except ValueError as error:
        raise TopicCheckRefused(f"{error} ({n_topics} topics)") from error


def plan_checks(
    *,
    campaign: Campaign,
    n_bad_good: int,
    n_bad_limit: int,
    alpha: float = 0.05,
    beta: float = 0.05,
    seed: int | None = None,
    user: User | None,
) -> TopicCheckPlan:
    """Make a plan and draw its topics at random, without replacement, from a recorded seed."""
    topics = list(judged_topics(campaign))
    plan = proposed_plan(len(topics), n_bad_good, n_bad_limit, alpha=alpha, beta=beta)
    seed = secrets.randbits(62) if seed is None else seed
    with transaction.atomic():
        Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)  # one plan at a time
        made = TopicCheckPlan.objects.create(
            campaign=campaign,
            sequence=campaign.topic_check_plans.count() + 1,
            n_topics=len(topics),
            n_bad_good=n_bad_good,
            n_bad_limit=n_bad_limit,
            alpha=alpha,
            beta=beta,
            n_checks=plan.n_checked,
            most_bad=plan.most_bad,
            producer_risk=plan.producer_risk,
            consumer_risk=plan.consumer_risk,
            seed=seed,
            made_by=user,
        )
        names = [topic.topic_id for topic in topics]
        order = np.argsort(permanent_random_numbers(names, names, seed, PURPOSE), kind="stable")
        TopicCheck.objects.bulk_create(
            TopicCheck(plan=made, sequence=place + 1, topic=topics[one])
            for place, one in enumerate(order[: plan.n_checked].tolist())
        )
        record(
            "planned topic checks",
            campaign,
            actor=user,
            sequence=made.sequence,
            n_topics=made.n_checks,
            most_bad=made.most_bad,
            seed=seed,
        )
    return made


def plan_of(row: TopicCheckPlan) -> AcceptancePlan:
    """Return a stored plan as `sampling/acceptance.py` knows it."""
    return AcceptancePlan(row.n_checks, row.most_bad, row.producer_risk, row.consumer_risk)


def status_of(row: TopicCheckPlan) -> TopicCheckStatus:
    """Return where the checks of a plan stand."""
    return statuses_of([row])[0]


def statuses_of(rows: Sequence[TopicCheckPlan]) -> list[TopicCheckStatus]:
    """Return where the checks of each plan stand, by two statements however many plans there are."""
    counted = TopicFinding.objects.filter(topic_check__plan__in=rows).values_list("topic_check__plan")
    counts = {
        plan: (n, n_bad)
        for plan, n, n_bad in counted.annotate(n=Count("pk"), n_bad=Count("pk", filter=Q(is_bad=True)))
    }
    unchecked = TopicCheck.objects.filter(plan__in=rows, finding=None).select_related("topic")
    following = {one.plan_id: one for one in unchecked.order_by("plan_id", "sequence").distinct("plan_id")}
    return [_status(row, *counts.get(row.pk, (0, 0)), following.get(row.pk)) for row in rows]


def _status(
    row: TopicCheckPlan, n_checked: int, n_bad: int, following: TopicCheck | None
) -> TopicCheckStatus:
    return TopicCheckStatus(
        n_checked,
        n_bad,
        plan_of(row).decision(n_checked, n_bad),
        most_bad_topics(row.n_topics, n_checked, n_bad, CONFIDENCE),
        following,
    )


def _check_order(check: TopicCheck, status: TopicCheckStatus) -> None:
    if TopicFinding.objects.filter(topic_check=check).exists():
        raise TopicChecked(check.topic.topic_id)
    if status.next_check is not None and status.next_check.pk != check.pk:
        # A choice of what to check first would make the sample one that is not random.
        raise TopicCheckRefused(f"topic {status.next_check.topic.topic_id} comes first")


def record_finding(
    *, check: TopicCheck, is_bad: bool, reason: str = "", user: User | None
) -> TopicCheckStatus:
    """Store what a check found; return where the plan stands after it."""
    plan = check.plan
    with transaction.atomic():
        # The campaign's row, as when a plan is made: a row lock needs the right to change, and a plan never changes.
        Campaign.objects.select_for_update(no_key=True).get(pk=plan.campaign_id)
        status = status_of(plan)
        _check_order(check, status)
        TopicFinding.objects.create(topic_check=check, is_bad=is_bad, reason=reason, decided_by=user)
        after = status_of(plan)
        told: dict[str, Any] = {"sequence": plan.sequence, "topic": check.topic.topic_id}
        record(f"checked topic: {'bad' if is_bad else 'good'}", plan.campaign, actor=user, **told)
        if status.is_accepted is None and after.is_accepted is not None:
            verb = "accepted topics" if after.is_accepted else "rejected topics"
            counts = {"n_checked": after.n_checked, "n_bad": after.n_bad}
            record(verb, plan.campaign, actor=user, sequence=plan.sequence, **counts)
    return after
