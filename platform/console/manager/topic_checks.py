"""Topics checked: a plan, the next topic to look at, and whether the collection is accepted, with its risk in words."""

import uuid
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST

from analytics.services.simulations import BAD_TOPICS, ask_simulation, newest_simulation
from console.forms.topic_checks import BAD, FindingForm, TopicPlanForm
from judging.models import Campaign, Judgment, Slot
from judging.services.access import managers_only
from sampling.models import TopicCheck, TopicCheckPlan
from sampling.services.topic_checks import (
    TopicCheckStatus,
    judged_topics,
    plan_checks,
    record_finding,
    statuses_of,
)
from touchstone.models import user_of

SHOWN_ITEMS = 10  # documents of a topic to look at, half of them judged relevant where there are as many
SHOWN_PEOPLE = 20  # those who judged most of the topic
SHOWN_PLANS = 20
ASKED = ("good", "limit", "alpha", "beta")


@managers_only
def topic_checks(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """The newest plan with its next topic. A POST shows a plan; with `draw`, it makes the plan and draws its topics."""
    row = get_object_or_404(Campaign.objects.select_related("collection", "scale"), pk=campaign_id)
    n_topics = judged_topics(row).count()
    job = newest_simulation(campaign=row, what=BAD_TOPICS)
    simulated = job.result if job else None
    form = TopicPlanForm(
        request.POST if request.method == "POST" else None,
        n_topics=n_topics,
        limit_share=simulated["limit_share"] if simulated else None,
    )
    if "draw" in request.POST and form.is_valid():
        made = plan_checks(campaign=row, user=user_of(request), **form.arguments())
        messages.success(request, f"{made.n_checks} of {made.n_topics} topics are drawn.")
        return redirect("console:topic-checks", campaign_id=campaign_id)
    newest = list(row.topic_check_plans.select_related("made_by").order_by("-sequence")[:SHOWN_PLANS])
    plans = [_plan_row(*one) for one in zip(newest, statuses_of(newest), strict=True)]
    context = {
        "campaign": row,
        "form": form,
        "n_topics": n_topics,
        "proposal": _proposal(form),
        "simulation": _percents(simulated) if simulated else None,
        "simulated_at": job.finished_at if job else None,
        "plans": plans,
        "current": _current(row, plans[0]) if plans else None,
    }
    status = 400 if form.is_bound and not form.is_valid() else 200
    return render(request, "console/manager/topic_checks.html", context, status=status)


@require_POST
@managers_only
def simulate(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Have a job find how many bad topics the campaign's ranking of runs stands."""
    row = get_object_or_404(Campaign, pk=campaign_id)
    job = ask_simulation(campaign=row, what=BAD_TOPICS, user=user_of(request))
    back = urlencode({"back": reverse("console:topic-checks", args=[row.pk])})
    return redirect(f"{reverse('job', args=[job.pk])}?{back}")


@require_POST
@managers_only
def check(request: HttpRequest, campaign_id: uuid.UUID, check_id: int) -> HttpResponse:
    """Store what the check of a topic found; the next topic follows."""
    rows = TopicCheck.objects.select_related("plan__campaign", "topic")
    row = get_object_or_404(rows, pk=check_id, plan__campaign=campaign_id)
    form = FindingForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Nothing was saved: choose “Good” or “Bad”, and at most 2,000 characters.")
        return redirect("console:topic-checks", campaign_id=campaign_id)
    sent = form.cleaned_data
    is_bad = sent["finding"] == BAD
    record_finding(check=row, is_bad=is_bad, reason=sent["reason"].strip(), user=user_of(request))
    messages.success(request, f"Topic {row.topic.topic_id[:80]} is recorded as {sent['finding']}.")
    return redirect("console:topic-checks", campaign_id=campaign_id)


# -- what is shown ----------------------------------------------------------------------------------------------


def _proposal(form: TopicPlanForm) -> dict[str, Any] | None:
    """Return the plan that the form asks for: of its first values where nothing was sent."""
    asked = form
    if not form.is_bound and form.n_topics:
        asked = TopicPlanForm({name: form.fields[name].initial for name in ASKED}, n_topics=form.n_topics)
    if not asked.is_bound or not asked.is_valid():
        return None
    return {"plan": asked.plan, **_risks(asked.plan), **asked.cleaned_data}


def _percents(found: dict[str, Any]) -> dict[str, Any]:
    """Return the shares of a simulation in percent, None where they are not known."""
    measured = found["measured"]
    return {
        "n_topics": found["n_topics"],
        "n_runs": found["n_runs"],
        "mixed": 100 * found["mixed"]["limit_share"],
        "measured": 100 * measured["limit_share"] if measured else None,
        "false_alarm": 100 * found["false_alarm"] if measured else None,
        "miss": 100 * found["miss"] if measured else None,
    }


def _risks(plan: Any) -> dict[str, Any]:
    return {"producer": 100 * plan.producer_risk, "consumer": 100 * plan.consumer_risk}


def _plan_row(plan: TopicCheckPlan, status: TopicCheckStatus) -> dict[str, Any]:
    share = 100 * status.most_bad_topics / plan.n_topics
    return {"row": plan, "status": status, "most_bad_share": share, **_risks(plan)}


def _current(row: Campaign, newest: dict[str, Any]) -> dict[str, Any]:
    """Return the newest plan with the topic to check next, and what to look at there."""
    plan: TopicCheckPlan = newest["row"]
    status: TopicCheckStatus = newest["status"]
    shown = newest | {"n_left": plan.n_checks - status.n_checked}
    if status.next_check is not None:
        shown |= _evidence(row, status.next_check, plan.seed)
    shown["findings"] = list(
        plan.checks.filter(finding__isnull=False)
        .select_related("topic", "finding__decided_by")
        .order_by("-sequence")[:SHOWN_PLANS]
    )
    return shown


def _evidence(row: Campaign, check: TopicCheck, seed: int) -> dict[str, Any]:
    """Return who judged the topic and how, and some of its documents at random with the grades given."""
    given = _grades_of(row, check.topic_id)
    lowest = row.scale.relevant_grade
    by_item: dict[uuid.UUID, list[_GivenGrade]] = defaultdict(list)
    by_assessor: dict[int, list[_GivenGrade]] = defaultdict(list)
    for one in given:
        by_item[one.item].append(one)
        by_assessor[one.assessor].append(one)
    people: list[dict[str, Any]] = [
        {
            "pk": assessor,
            "name": theirs[0].username,
            "n": len(theirs),
            "n_relevant": sum(one.grade >= lowest for one in theirs),
            "seconds": float(np.median([one.milliseconds for one in theirs])) / 1000,
        }
        for assessor, theirs in by_assessor.items()
    ]
    items = [
        {
            "pk": item,
            "title": all_of[0].title or all_of[0].doc_id,
            "grades": ", ".join(str(one.grade) for one in all_of),
            "is_relevant": any(one.grade >= lowest for one in all_of),
        }
        for item, all_of in by_item.items()
    ]
    return {
        "people": sorted(people, key=lambda one: (-one["n"], one["name"]))[:SHOWN_PEOPLE],
        "n_people": len(people),
        "n_items": len(items),
        "items": _sample(items, [seed, check.sequence]),
    }


class _GivenGrade(NamedTuple):
    """A grade that an assessor gave a document of the topic, the newest one; `grade` is never None."""

    item: uuid.UUID
    assessor: int
    grade: Any
    milliseconds: int
    username: str
    title: str
    doc_id: str


def _grades_of(row: Campaign, topic: int) -> list[_GivenGrade]:
    found = Judgment.objects.filter(
        item__campaign=row, item__topic=topic, slot__purpose=Slot.Purpose.JUDGE, grade__isnull=False
    )
    newest = found.order_by("item__document__doc_id", "assessor_id", "-sequence").distinct(
        "item__document__doc_id", "assessor_id"
    )
    columns = newest.values_list(
        "item",
        "assessor",
        "grade",
        "active_milliseconds",
        "assessor__user__username",
        "item__document__title",
        "item__document__doc_id",
    )
    return [_GivenGrade(*one) for one in columns]


def _sample(items: list[dict[str, Any]], seed: list[int]) -> list[dict[str, Any]]:
    """Return some documents at random: as many that somebody called relevant as others, where there are enough."""
    order = [items[one] for one in np.random.default_rng(seed).permutation(len(items))]
    relevant = [item for item in order if item["is_relevant"]]
    others = [item for item in order if not item["is_relevant"]]
    n_relevant = min(len(relevant), max(SHOWN_ITEMS // 2, SHOWN_ITEMS - len(others)))
    return relevant[:n_relevant] + others[: SHOWN_ITEMS - n_relevant]
