"""The manager's page of audits: plan them, see what the next one would narrow, and what the earlier ones did."""

import math
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from django.contrib import messages
from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_POST

from analytics.methods import REPORTED
from analytics.models import AuditForecast, Computation, Estimate, before_cutting
from analytics.services.recomputation import latest_computation, queue_recomputation
from console.forms.audits import AuditPlanForm, ScoreForm
from judging.models import Assessor, Campaign, Slot
from judging.services.access import managers_only
from judging.services.campaigns import set_score_and_costs
from sampling.measures.registry import suggested_designs, usual_spelling
from sampling.models import Audit, AuditEntry, AuditSchedule, AuditTier, Draw
from sampling.selections import FOREIGN, NOT_AUDITED
from sampling.services.audit_schedules import next_due_time, save_schedule, schedule_words
from sampling.services.auditable import AuditRefused
from sampling.services.auditing import PURPOSES, queue_audit
from sampling.services.topic_audits import draws_of_topics, has_unfit_plan
from sampling.strategies import CENSUS, FEWEST_GOLD, STRATEGIES, strategy_of
from touchstone.models import user_of

SHOWN_AUDITS = 20
SAME_SIZE = 0.05  # an audit and its forecast may differ by this part of the audit


@managers_only
def audits(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """All about audits. A POST saves the schedule; with `now`, it audits at once."""
    row = _campaign(campaign_id)
    if request.method != "POST":
        return _page(request, row)
    form = AuditPlanForm(request.POST, campaign=row, schedule=_schedule(row))
    if not form.is_valid():
        return _page(request, row, plan=form)
    try:
        schedule = save_schedule(campaign=row, actor=user_of(request), **form.fields_of_schedule())
    except AuditRefused as refusal:
        messages.error(request, f"{refusal}.")
        return redirect("console:audits", campaign_id=campaign_id)
    if "now" not in request.POST:
        when = (
            f"audits run {schedule_words(schedule)}" if schedule.is_active else "audits are started manually"
        )
        messages.success(request, f"Saved: {when}.")
        return redirect("console:audits", campaign_id=campaign_id)
    job = queue_audit(campaign=row, user=user_of(request))
    if job is None:
        messages.info(request, "An audit of this campaign is already being drawn.")
        return redirect("console:audits", campaign_id=campaign_id)
    back = urlencode({"back": reverse("console:audits", args=[row.pk])})
    return redirect(f"{reverse('job', args=[job.pk])}?{back}")


@require_POST
@managers_only
def census(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Audit every judged document that counts for a run or a pair, at once."""
    row = _campaign(campaign_id)
    names = ("run", "against", "measure")
    asked = {name: request.POST.get(name, "").strip() for name in names}
    try:
        job = queue_audit(campaign=row, user=user_of(request), strategy=CENSUS, **asked)
    except AuditRefused as refusal:
        messages.error(request, f"{refusal}.")
        return redirect("console:audits", campaign_id=campaign_id)
    if job is None:
        messages.info(request, "An audit of this campaign is already being drawn.")
        return redirect("console:audits", campaign_id=campaign_id)
    back = urlencode({"back": reverse("console:audits", args=[row.pk])})
    return redirect(f"{reverse('job', args=[job.pk])}?{back}")


@require_POST
@managers_only
def score(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Choose the bronze score, and enter what judgments cost."""
    row = _campaign(campaign_id)
    before = row.bronze_score
    form = ScoreForm(request.POST, instance=row)
    if not form.is_valid():
        return _page(request, _campaign(campaign_id), scoring=form)
    set_score_and_costs(campaign=row, actor=user_of(request), **form.cleaned_data)
    if form.cleaned_data["bronze_score"] != before:
        queue_recomputation(campaign=row)
        messages.success(request, "Saved. The numbers are being recomputed.")
    else:
        messages.success(request, "Saved.")
    return redirect("console:audits", campaign_id=campaign_id)


def _campaign(campaign_id: uuid.UUID) -> Any:
    """Return the campaign with its schedule, who is there, and how much the schedule's tier has audited."""
    people = Assessor.objects.filter(campaign=OuterRef("pk"), status=Assessor.Status.ACTIVE)
    audits = Audit.objects.filter(
        campaign=OuterRef("pk"), tier=OuterRef("audit_schedule__tier"), declaration=""
    )
    by_hand = Audit.objects.filter(campaign=OuterRef("pk"), tier=AuditTier.GOLD, declaration="")
    each_campaign = by_hand.order_by().values("campaign")
    rows = Campaign.objects.select_related("collection", "scale", "audit_schedule").annotate(
        tiers=Subquery(
            people.order_by()
            .values("campaign")
            .annotate(found=ArrayAgg("tier", distinct=True))
            .values("found")
        ),
        is_gold_alone=Exists(people.filter(tier=Assessor.Tier.GOLD).judges()),
        has_draw=Exists(Draw.objects.filter(campaign=OuterRef("pk"))),
        is_foreign=Exists(Draw.objects.filter(campaign=OuterRef("pk"), selection=FOREIGN.key)),
        has_whole_topics=Exists(draws_of_topics().filter(campaign=OuterRef("pk"))),
        n_by_hand=Subquery(each_campaign.annotate(n=Count("pk")).values("n")),
        most_by_hand=Subquery(each_campaign.annotate(most=Max("expected_in_total")).values("most")),
        expected=Subquery(audits.order_by("-sequence").values("expected_in_total")[:1]),
    )
    return get_object_or_404(rows, pk=campaign_id)


def _schedule(row: Any) -> AuditSchedule:
    """Return the schedule; where there is none, one not saved, whose next audit adds to those made by hand."""
    schedule: AuditSchedule | None = getattr(row, "audit_schedule", None)
    if schedule is not None:
        return schedule
    if not row.n_by_hand:
        return AuditSchedule()
    each = max(1, round(row.most_by_hand / row.n_by_hand))
    return AuditSchedule(items_each_time=each, items_in_total=math.ceil(row.most_by_hand) + each)


def _page(
    request: HttpRequest,
    row: Any,
    *,
    plan: AuditPlanForm | None = None,
    scoring: ScoreForm | None = None,
) -> HttpResponse:
    schedule = _schedule(row)
    computation = latest_computation(campaign=row)
    forecasts = _forecasts(row, computation)
    best = next((found["row"].strategy for found in forecasts if found["is_best"]), "")
    history = _history(row)
    context = {
        "campaign": row,
        "draw": row.has_draw,
        "has_no_audits": row.is_foreign,
        "not_audited": NOT_AUDITED,
        "has_unfit_plan": has_unfit_plan(row, schedule),
        "schedule": schedule if schedule.pk else None,
        **_timing(schedule if schedule.pk else None, row.expected),
        "plan": plan or AuditPlanForm(campaign=row, schedule=schedule, best=best),
        "scoring": scoring or ScoreForm(instance=row),
        "computation": computation,
        "forecasts": forecasts,
        "refusals": _refusals(forecasts),
        "best": best,
        "suggested_measures": suggested_designs(),
        "recommended": _recommendation(computation, has_whole_topics=row.has_whole_topics),
        "history": history,
        "n_audits": history[0]["row"].sequence if history else 0,
        "shown_audits": SHOWN_AUDITS,
        "tiers": set(row.tiers or ()),
        "is_gold_alone": row.is_gold_alone,
    }
    is_wrong = bool((plan and plan.errors) or (scoring and scoring.errors))
    return render(request, "console/manager/audits.html", context, status=400 if is_wrong else 200)


def _timing(schedule: AuditSchedule | None, expected: float | None) -> dict[str, Any]:
    """Return when audits come; `expected` is what those of the schedule's tier select in all."""
    if schedule is None:
        return {"schedule_words": "", "next_due": None, "has_ended": False}
    ended = expected is not None and expected >= schedule.items_in_total
    due = next_due_time(schedule, timezone.now()) if schedule.is_active and not ended else None
    return {"schedule_words": schedule_words(schedule), "next_due": due, "has_ended": ended}


def _recommendation(computation: Computation | None, *, has_whole_topics: bool) -> str:
    """Return the strategy that is recommended for the next audit, by its label; empty before there is enough gold."""
    if computation is None or has_whole_topics or computation.n_audited < FEWEST_GOLD:
        return ""
    return next((strategy.label for strategy in STRATEGIES if strategy.learns), "")


# -- forecasts ------------------------------------------------------------------------------------------------


def _forecasts(row: Campaign, computation: Computation | None) -> list[dict[str, Any]]:
    """Return the newest computation's forecasts, the narrowest first; all audits are of one size, so of one cost."""
    if computation is None:
        return []
    forecasts = list(computation.audit_forecasts.select_related("run", "run_b"))
    forecasts.sort(key=lambda one: (one.half_width_after is None, one.half_width_after or 0.0, one.strategy))
    least = forecasts[0] if forecasts and forecasts[0].half_width_after is not None else None
    return [
        {
            "row": one,
            "name": strategy_of(one.strategy).label,
            **_widths(one),
            "cost": one.n_more * row.cost_per_gold if row.cost_per_gold else None,
            "is_best": one is least,
            "is_as_good": least is not None and one is not least and _is_as_good(one, least),
        }
        for one in forecasts
    ]


def _is_as_good(one: AuditForecast, least: AuditForecast) -> bool:
    """Return whether the two differ by less than the error of the better one's forecast."""
    if one.half_width_after is None or least.half_width_after is None:
        return False
    return bool(one.half_width_after - least.half_width_after < (least.half_width_error or 0.0))


def _shares(one: AuditForecast) -> str:
    """Return what makes up the variance after the audit, in words; empty for forecasts of older versions."""
    if one.drawing_share is None:
        return ""
    drawing = round(100 * one.drawing_share)
    said = f"for these topics drawing {drawing} % and assessors' errors {100 - drawing} %"
    if one.topics_share is None:
        return said
    return f"{said}; for topics like these, the topics {round(100 * one.topics_share)} %"


def _widths(one: AuditForecast) -> dict[str, Any]:
    narrower = None
    if one.half_width_now and one.half_width_after is not None:
        narrower = round(100 * (1 - one.half_width_after / one.half_width_now))
    return {
        "now": _number(one.half_width_now),
        "after": _number(one.half_width_after),
        "error": _number(one.half_width_error, 1),
        "middle": ""
        if one.middle_low is None
        else f"± {_number(one.middle_low)} to ± {_number(one.middle_high)}",
        "topics": _number(one.topics_half_width_after),
        "shares": _shares(one),
        "percent": narrower,
    }


def _number(value: float | None, digits: int = 3) -> str:
    """Return a width with so many digits that count, without an exponent.

    >>> _number(0.01234), _number(0.0004, 1), _number(None)
    ('0.0123', '0.0004', '')
    """
    if value is None:
        return ""
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{places}f}"


def _refusals(forecasts: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(found["row"].refusal for found in forecasts if found["row"].refusal))


# -- history --------------------------------------------------------------------------------------------------


def _open_slots(row: Campaign, *purposes: str) -> QuerySet[Slot]:
    """Return what audits still wait for, by the index of unfinished slots."""
    return row.slots.filter(purpose__in=purposes or list(PURPOSES.values())).exclude(state=Slot.State.DONE)


def _history(row: Campaign) -> list[dict[str, Any]]:
    """Return the newest audits with what they wait for, what had been forecast, and what came out."""
    computations = Computation.objects.filter(campaign=row)
    before = computations.filter(created_at__lt=OuterRef("created_at")).order_by("-id")
    # Complete: every selected item has its gold label, and the numbers have seen them.
    after = computations.filter(
        id__gt=OuterRef("before"), n_audits__gte=OuterRef("sequence"), n_audited__gte=OuterRef("n_selected")
    ).order_by("id")
    earlier = Audit.objects.filter(
        campaign=row, tier=OuterRef("tier"), sequence__lt=OuterRef("sequence"), declaration=""
    ).order_by("-sequence")
    found = row.audits.annotate(
        before=Subquery(before.values("pk")[:1]),
        earlier=Subquery(earlier.values("expected_in_total")[:1]),
    ).annotate(after=Subquery(after.values("pk")[:1]))
    newest: list[Any] = list(found.order_by("-sequence")[:SHOWN_AUDITS])
    waiting = _waiting(row, newest)
    forecasts = {
        (one.computation_id, one.strategy): one
        for one in AuditForecast.objects.filter(computation__in=[audit.before for audit in newest])
    }
    outcomes = _outcomes(newest, forecasts.values())
    return [_audit_row(audit, waiting.get(audit.pk, 0), forecasts, outcomes) for audit in newest]


def _audit_row(
    audit: Any,
    n_waiting: int,
    forecasts: dict[tuple[Any, ...], AuditForecast],
    outcomes: dict[tuple[Any, ...], float],
) -> dict[str, Any]:
    """Return an audit's row; a forecast of an audit of another size says so, and is not held against what came out."""
    forecast = forecasts.get((audit.before, audit.strategy)) if audit.tier == AuditTier.GOLD else None
    shown = {
        "row": audit,
        "strategy": strategy_of(audit.strategy).label,
        "n_judged": audit.n_selected - n_waiting,
        "is_complete": not n_waiting,
        "forecast": forecast,
        "outcome": "",
    }
    if forecast is None or forecast.half_width_after is None:
        return shown
    n_more = audit.expected_in_total - (audit.earlier or 0.0)
    is_of_this_size = abs(n_more - forecast.n_more) <= SAME_SIZE * n_more
    target = (forecast.run_id, forecast.run_b_id, usual_spelling(forecast.measure))
    outcome = None if n_waiting else outcomes.get((audit.after, *target))
    return shown | {
        **_widths(forecast),
        "n_more": n_more,
        "is_of_this_size": is_of_this_size,
        "outcome": _number(outcome),
        "errors_off": _errors_off(outcome, forecast) if is_of_this_size else None,
    }


def _errors_off(outcome: float | None, forecast: AuditForecast) -> float | None:
    """Return by how many standard errors the forecast was off."""
    if outcome is None or not forecast.half_width_error or forecast.half_width_after is None:
        return None
    return round(abs(outcome - forecast.half_width_after) / forecast.half_width_error, 1)


def _waiting(row: Campaign, audits: Sequence[Audit]) -> dict[uuid.UUID, int]:
    """Return by audit how many selected items nobody has judged yet; the cost follows what waits."""
    tiers: dict[str, str] = {
        purpose: tier for tier, purpose in PURPOSES.items() if any(a.tier == tier for a in audits)
    }
    open_items: dict[str, list[uuid.UUID]] = defaultdict(list)
    for purpose, item in _open_slots(row, *tiers).values_list("purpose", "item_id") if tiers else ():
        open_items[purpose].append(item)
    if not open_items:
        return {}
    of_tier = Q()
    for purpose, items in open_items.items():
        of_tier |= Q(audit__tier=tiers[purpose], item__in=items)
    counts = AuditEntry.objects.filter(of_tier, audit__in=[audit.pk for audit in audits], selected=True)
    return dict(counts.values("audit").annotate(n=Count("pk")).values_list("audit", "n"))


def _outcomes(audits: Sequence[Any], forecasts: Iterable[AuditForecast]) -> dict[tuple[Any, ...], float]:
    """Return the half-widths of the corrected numbers in the computations after these audits."""
    wanted = [audit.after for audit in audits if audit.after and audit.tier == AuditTier.GOLD]
    targets = {(one.run_id, one.run_b_id, one.measure) for one in forecasts}
    found: dict[tuple[Any, ...], float] = {}
    rows = Estimate.objects.filter(
        computation__in=wanted,
        run__in={run for run, _, _ in targets},
        method=REPORTED.key,
        value__isnull=False,
    )
    asked = Q()
    for run, run_b, measure in targets:
        asked |= Q(run=run, run_b=run_b, measure=measure)
    names = ("computation", "run", "run_b", "measure", before_cutting("low"), before_cutting("high"))
    for computation, run, run_b, measure, low, high in (
        rows.filter(asked).values_list(*names) if wanted else ()
    ):
        found[computation, run, run_b, usual_spelling(measure)] = (high - low) / 2
    return found
