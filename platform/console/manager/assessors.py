"""The manager's table of assessors: accuracy, speed and warning signs of each."""

import uuid
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.http import urlencode

from analytics.models import Computation, Flag
from analytics.services.recomputation import latest_computation
from analytics.services.screening import current_flags, latest_screening
from console.forms.campaigns import AssessorForm
from console.manager.log_charts import overview_charts
from console.researcher.plots import plot_answer
from judging.models import Assessor, Campaign
from judging.services.access import managers_only

PAGE = 25
# What the table can be sorted by; "-" before it turns it round.
ORDERS = {
    "name": "Assessor",
    "tier": "Tier",
    "judged": "Judged",
    "seconds": "Seconds each",
    "accuracy": "Accuracy",
    "agreement": "Agreement",
    "flag": "Flag",
}
TIERS = {"gold": 0, "silver": 1, "bronze": 2}
USUAL = "flag"  # what is wrong comes first


class PeopleFilter(forms.Form):
    name = forms.CharField(label="Name contains", max_length=150, required=False)
    tier = forms.ChoiceField(choices=[("", "every tier"), *Assessor.Tier.choices], required=False)
    only = forms.ChoiceField(
        label="Only",
        choices=[
            ("", "everybody"),
            ("flagged", "flagged"),
            ("active", "not paused"),
            ("suspended", "paused"),
            ("at-quota", "at their quota"),
        ],
        required=False,
    )
    order = forms.ChoiceField(
        choices=[(sign + name, name) for name in ORDERS for sign in ("", "-")], required=False
    )


@dataclass(frozen=True)
class Person:
    """A row of the table."""

    pk: int
    name: str
    tier: str
    kind: str
    status: str
    judged: int
    quota: int | None
    seconds: float | None
    accuracy: float | None
    accuracy_low: float | None
    accuracy_high: float | None
    agreement: float | None
    n_shared: int
    flag: Flag | None  # the worst
    n_more_flags: int

    def key(self, order: str) -> Any:
        """Return what the row is sorted by; who has no such number comes last, whichever way round."""
        value = getattr(self, order)
        if order == "flag":
            p = None if value is None else value.p_adjusted
            return (value is None, 1.0 if p is None else p, self.name)
        if order == "tier":
            return (TIERS[value], self.name)
        return value


@managers_only
def assessors(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """All assessors, sorted and filtered by the query; the cost grows with them, never with what they judged."""
    row = get_object_or_404(Campaign.objects.select_related("collection", "scale"), pk=campaign_id)
    form = PeopleFilter(request.GET)
    asked = form.cleaned_data if form.is_valid() else {}
    order = asked.get("order") or USUAL
    computation = latest_computation(campaign=row)
    everybody = _people(row, computation)
    names = {str(person.pk): person.name for person in everybody}
    charts = overview_charts(latest_screening(campaign=row), row, names)
    if "plot" in request.GET:
        return plot_answer(request, charts)
    chosen = [person for person in everybody if _fits(person, asked)] if form.is_valid() else []
    page = Paginator(_sort(chosen, order), PAGE).get_page(request.GET.get("page"))
    kept = {name: asked.get(name, "") for name in ("name", "tier", "only") if asked.get(name)}
    context = {
        "campaign": row,
        "computation": computation,
        "form": form,
        "page": page,
        "n_everybody": len(everybody),
        "heads": _heads(order, kept),
        "kept": urlencode(kept | {"order": order}),
        "is_filtered": bool(kept),
        "charts": [(name, chart) for name, make in charts.items() if (chart := make()) is not None],
        "assessor_form": AssessorForm(),
    }
    return render(request, "console/manager/assessors.html", context, status=200 if form.is_valid() else 400)


def _people(row: Campaign, computation: Computation | None) -> list[Person]:
    activity = (computation.activity if computation else None) or {}
    speeds, agreements = activity.get("assessors", {}), activity.get("agreement", {})
    accuracies: dict[int, Any] = {}
    flags: dict[int, list[Flag]] = {}
    if computation is not None:
        measured = computation.confusions.filter(scope="assessor", assessor_id__isnull=False).values_list(
            "assessor_id", "accuracy", "accuracy_low", "accuracy_high"
        )
        accuracies = {person: numbers for person, *numbers in measured if person is not None}
        for flag in current_flags(row):
            flags.setdefault(flag.assessor_id, []).append(flag)
    people = []
    known = row.assessors.order_by("pk").values_list(
        "pk", "user__username", "tier", "kind", "status", "n_judged", "n_failed", "quota"
    )
    for key, name, tier, kind, status, n_judged, n_failed, quota in known:
        about = (key, name, tier, kind, status, n_judged - n_failed, quota)
        accuracy, low, high = accuracies.get(key, (None, None, None))
        agreement, n_shared = agreements.get(str(key), (None, 0))
        seconds, against = _seconds(speeds.get(str(key))), flags.get(key, [])
        worst = against[0] if against else None
        n_more = max(0, len(against) - 1)
        people.append(Person(*about, seconds, accuracy, low, high, agreement, n_shared, worst, n_more))
    return people


def _seconds(counted: list[int] | None) -> float | None:
    """Return the seconds of active time for each judgment."""
    return counted[1] / 1000 / counted[0] if counted and counted[0] else None


def _fits(person: Person, asked: dict[str, Any]) -> bool:
    only = asked["only"]
    return (
        asked["name"].lower() in person.name.lower()
        and asked["tier"] in ("", person.tier)
        and (not only or _is(person, only))
    )


def _is(person: Person, only: str) -> bool:
    if only == "flagged":
        return person.flag is not None
    if only == "at-quota":
        return person.quota is not None and person.judged >= person.quota
    return person.status == only


def _sort(people: list[Person], order: str) -> list[Person]:
    name, turned = order.removeprefix("-"), order.startswith("-")
    known = [person for person in people if person.key(name) is not None]
    unknown = [person for person in people if person.key(name) is None]
    return sorted(known, key=lambda person: person.key(name), reverse=turned) + unknown


def _heads(order: str, kept: dict[str, str]) -> list[dict[str, Any]]:
    """Return the heads of the table: a second click turns the order round."""
    heads = []
    for name, label in ORDERS.items():
        is_mine = order.removeprefix("-") == name
        turned = f"-{name}" if order == name else name
        heads.append(
            {
                "name": name,
                "label": label,
                "query": urlencode(kept | {"order": turned}),
                "sort": ("descending" if order.startswith("-") else "ascending") if is_mine else "",
                "is_number": name in ("judged", "seconds", "accuracy", "agreement"),
            }
        )
    return heads
