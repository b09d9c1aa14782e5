"""The manager's overview of a campaign: at a glance what is wrong, how far it is, how fast it goes, what it costs."""

import uuid
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count, Exists, F, Min, OuterRef, Subquery, Sum, Value
from django.db.models.functions import Coalesce, JSONObject
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from analytics.charts import Chart, throughput
from analytics.models import Computation
from analytics.services.activity import MACHINE, SERIES, a_day, filled_days, filled_hours
from analytics.services.costs import costs
from analytics.services.dispute_queue import dispute_queue, with_disputes
from analytics.services.recomputation import queue_recomputation
from analytics.services.screening import current_flags
from console.looks import look_context
from console.manager.alerts import needs
from console.manager.design import draw_context
from console.manager.events import events_in_words, events_of
from console.manager.need_facts import with_need_facts
from console.researcher.plots import plot_answer
from judging.models import Assessor, Campaign, Message
from judging.services.access import managers_only
from judging.services.opening import opening
from judging.services.progress import Progress, progress
from sampling.models import Audit, AuditSchedule
from sampling.services.audit_schedules import next_due_time, schedule_words
from sampling.services.topic_audits import has_unfit_plan
from touchstone.models import user_of

SHOWN_EVENTS = 6
SHOWN_DAYS, SHOWN_HOURS = 60, 48


@managers_only
def campaign(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """A campaign at a glance. Nothing here is counted from its judgments: see analytics/services/activity.py."""
    row = _campaign_row(campaign_id, user_of(request))
    computation = _newest(row)
    activity = (computation.activity if computation else None) or {}
    if "plot" in request.GET:
        return plot_answer(request, {name: partial(chart, activity) for name, chart in CHARTS.items()})
    drawn = draw_context(row)
    done = _judging_progress(row, drawn, activity, progress(campaign=row))
    schedule = AuditSchedule.objects.filter(campaign=row).first()
    context = drawn | {
        "campaign": row,
        "computation": computation,
        "activity": activity,
        "progress": done,
        "charts": {name: chart(activity) for name, chart in CHARTS.items()},
        "series": _series(row, activity),
        "pace": _pace(activity, done),
        "costs": _costs(row, activity, done, schedule),
        "audits": _audits(row, schedule),
        "judges_here": row.judges_here,
        "opening": opening(row) if drawn["draw"] and row.state != Campaign.State.OPEN else None,
        **look_context(row),
        "events": events_in_words(events_of(row)[:SHOWN_EVENTS]),
    }
    return render(request, "console/manager/campaign.html", context | {"needs": needs(row, context)})


def _campaign_row(campaign_id: uuid.UUID, user: Any) -> Any:
    """Return the campaign with what single rows know: who is there, the newest audit."""
    people = Assessor.objects.filter(campaign=OuterRef("pk"), status=Assessor.Status.ACTIVE)
    audit = Audit.objects.filter(campaign=OuterRef("pk")).order_by("-sequence")
    open_ones = Message.objects.filter(assessor__campaign=OuterRef("pk"), is_from_assessor=True, read_at=None)
    asked = open_ones.order_by().values("assessor__campaign")
    of_campaign = people.order_by().values("campaign")
    everybody = Assessor.objects.filter(campaign=OuterRef("pk")).order_by().values("campaign")
    rows = Campaign.objects.select_related("collection", "scale", "places_left").annotate(
        tiers=Subquery(of_campaign.annotate(found=ArrayAgg("tier", distinct=True)).values("found")),
        judges_here=Exists(people.filter(user=user)),
        is_gold_alone=Exists(people.filter(tier=Assessor.Tier.GOLD).judges()),
        n_questions=Coalesce(Subquery(asked.annotate(n=Count("pk")).values("n")), 0),
        first_question=Subquery(asked.annotate(first=Min("pk")).values("first")),
        n_stored=Subquery(everybody.annotate(n=Sum(F("n_judged") - F("n_failed"))).values("n")),
        n_requests=Subquery(everybody.annotate(n=Sum("n_requests")).values("n")),
        requests_cost=Subquery(everybody.annotate(n=Sum("requests_cost")).values("n")),
        n_assessors=Subquery(of_campaign.annotate(n=Count("pk")).values("n")),
        newest_audit=Subquery(
            audit.values(said=JSONObject(sequence="sequence", tier="tier", expected="expected_in_total"))[:1]
        ),
        audited_by_tier=Subquery(
            audit.filter(
                declaration="",
                tier=Subquery(AuditSchedule.objects.filter(campaign=OuterRef("campaign")).values("tier")[:1]),
            )
            .values("expected_in_total")[:1]
        ),
    )  # fmt: skip
    return get_object_or_404(with_need_facts(rows), pk=campaign_id)


def _newest(row: Campaign) -> Any:
    flags = current_flags(row).order_by().values(everybody=Value(0))  # one group
    found = with_disputes(Computation.objects.filter(campaign=row).order_by("-id"), row)
    newest: Any = found.annotate(
        n_flags=Coalesce(Subquery(flags.annotate(n=Count("assessor", distinct=True)).values("n")), 0),
    ).first()
    if newest is not None:
        newest.n_disputed = len(dispute_queue(newest))
    return newest


# -- how far --------------------------------------------------------------------------------------------------


def _judging_progress(
    row: Campaign, drawn: dict[str, Any], activity: dict[str, Any], now: Progress
) -> dict[str, Any]:
    """Return how much is judged. Exact while few places are open; of a large campaign as of the newest computation."""
    if not drawn["draw"] or drawn["layout"]["is_complete"]:
        of_file = drawn["draw"].parameters.get("judgments") if drawn["draw"] else None
        total = of_file or drawn["n_drawn"] * row.judgments_per_item
    else:  # for the time of the layout alone
        total = row.slots.filter(purpose="judge").count()
    done = max(0, total - now.left) if now.is_exact else min(total, activity.get("counted", 0))
    return {
        "total": total,
        "done": done,
        "left": now.left if now.is_exact else total - done,
        "is_exact": now.is_exact,
        "percent": 100 * done // total if total else 0,
        "leased": now.leased,
        "expired": now.expired,
        "oldest_lease": now.oldest_lease,
        "audits_left": now.audits_left,
        "silver_left": now.silver_left,
    }


def _series(row: Campaign, activity: dict[str, Any]) -> list[dict[str, Any]]:
    """Return by tier (and of machines) how many judgments there are and how long one takes."""
    series = activity.get("series", {})
    return [
        {"name": name, "n": series[name][0], "seconds": series[name][1] / 1000 / series[name][0]}
        for name in SERIES
        if name in series and series[name][0]
    ]


def _pace(activity: dict[str, Any], done: dict[str, Any]) -> dict[str, Any]:
    """Return the judgments a day, and when the last one will come if it goes on so."""
    rate = a_day(activity, timezone.now())
    counted, n_stored = (
        activity.get("counted", 0),
        sum(pair[0] for pair in activity.get("series", {}).values()),
    )
    if not rate or not counted or not done["left"]:
        return {"a_day": rate, "ends": None}
    days = done["left"] * (n_stored / counted) / rate
    return {"a_day": rate, "ends": timezone.now() + timedelta(days=days) if days < 3650 else None}


def _costs(
    row: Any, activity: dict[str, Any], done: dict[str, Any], schedule: AuditSchedule | None
) -> dict[str, Any]:
    planned = 0.0
    if schedule is not None and schedule.is_active and schedule.tier == Assessor.Tier.GOLD:
        n_gold = activity.get("series", {}).get(Assessor.Tier.GOLD, [0])[0]
        planned = max(0.0, schedule.items_in_total - n_gold - done["audits_left"])
    left, gold_left = done["left"], done["audits_left"] + planned
    if row.is_gold_alone:  # gold judges judge the drawn items themselves
        left, gold_left = 0, done["audits_left"] + done["left"]
    machines, counted = float(row.requests_cost or 0), activity.get("counted", 0)
    cost = costs(row, activity, counted=counted, left=left, gold_left=gold_left, of_machines=machines)
    has_machines = MACHINE in activity.get("series", {})
    return {"found": cost, "has_machines": has_machines, "n_calls": row.n_requests or 0}


def _audits(row: Any, schedule: AuditSchedule | None) -> dict[str, Any]:
    n = row.newest_audit["sequence"] if row.newest_audit else 0
    if schedule is None:
        return {
            "n": n,
            "schedule": None,
            "words": "",
            "next_due": None,
            "has_ended": False,
            "is_unfit": False,
        }
    ended = row.audited_by_tier is not None and row.audited_by_tier >= schedule.items_in_total
    due = next_due_time(schedule, timezone.now()) if schedule.is_active and not ended else None
    return {
        "n": n,
        "schedule": schedule,
        "words": schedule_words(schedule),
        "next_due": due,
        "has_ended": ended,
        "is_unfit": has_unfit_plan(row, schedule),
    }


# -- charts ---------------------------------------------------------------------------------------------------


def day_chart(activity: dict[str, Any]) -> Chart | None:
    """Return the judgments a day by tier; None before the second day: one point says nothing about the pace."""
    days, series = filled_days(activity, timezone.now(), SHOWN_DAYS)
    if len(days) < 2 or not series:
        return None
    return throughput(
        [date.fromisoformat(day) for day in days],
        series,
        "Judgments per day, by tier",
        unit="judgments per day",
    )


def hour_chart(activity: dict[str, Any]) -> Chart | None:
    """Return the judgments an hour by tier, of the last two days; None before the second hour."""
    hours, series = filled_hours(activity, timezone.now(), SHOWN_HOURS)
    if len(hours) < 2 or not series:
        return None
    moments = [datetime.fromisoformat(f"{hour}:00:00").replace(tzinfo=UTC) for hour in hours]
    return throughput(moments, series, "Judgments per hour, by tier", unit="judgments per hour")


CHARTS = {"days": day_chart, "hours": hour_chart}


@require_POST
@managers_only
def recompute_now(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    queue_recomputation(campaign=get_object_or_404(Campaign, pk=campaign_id))
    messages.info(request, "The numbers are being recomputed.")
    return redirect("console:campaign", campaign_id=campaign_id)
