"""The manager's page "Assessor accuracy": all assessors together, in groups, after label aggregation; and drift."""

import uuid
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from analytics.charts import Chart, confusion_heat
from analytics.models import Computation, ConfusionEstimate
from analytics.services.recomputation import latest_computation
from console.manager.assessor import matrix_rows
from console.researcher.plots import plot_answer
from console.researcher.prose import assumption_words
from judging.models import Campaign
from judging.services.access import managers_only

Scope = ConfusionEstimate.Scope
SHOWN_TOPICS = 50  # those with the most gold
# What each group is there to tell; in the order of the page.
TELLS = {
    Scope.TIER: ("By tier", "Gold is the standard; silver and bronze are measured against it."),
    Scope.POPULARITY: (
        "By how many runs return the document",
        "From audits. Where these rows differ, the papers' matrix inverse corrects too much or too little.",
    ),
    Scope.PERIOD: (
        "By period",
        "Quarters of the known grades by when they were judged (UTC): do assessors tire or learn?",
    ),
    Scope.AGGREGATE: (
        "By label aggregation",
        "From audits: the aggregated label of an item by each aggregation method, compared with its gold grade.",
    ),
    Scope.TOPIC: ("By topic", f"From audits; the {SHOWN_TOPICS} topics with the most gold grades."),
}


@managers_only
def errors(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Assessor accuracy, as the newest computation found it."""
    row = get_object_or_404(Campaign.objects.select_related("collection", "scale"), pk=campaign_id)
    computation = latest_computation(campaign=row)
    labels = [f"{grade.value} {grade.label}" for grade in row.scale.grades.all()]
    confusions = computation.confusions.exclude(scope=Scope.ASSESSOR).order_by("id") if computation else []
    groups: dict[str, list[ConfusionEstimate]] = {}
    for confusion in confusions:
        groups.setdefault(confusion.scope, []).append(confusion)
    everybody = next(iter(groups.get(Scope.POOLED, [])), None)
    if "plot" in request.GET:
        return plot_answer(request, {"all": lambda: _heat_map(everybody, labels)})
    context = {
        "campaign": row,
        "computation": computation,
        "labels": labels,
        "everybody": everybody,
        "rows": matrix_rows(everybody, labels) if everybody else [],
        "heat_map": _heat_map(everybody, labels),
        "groups": [
            {
                "scope": scope,
                "title": title,
                "tells": tells,
                "rows": _group_rows(groups[scope], row.scale.relevant_grade),
            }
            for scope, (title, tells) in TELLS.items()
            if scope in groups
        ],
        "assumption": assumption_words(computation),
        "changing": _changing(computation),
    }
    return render(request, "console/manager/errors.html", context)


def _heat_map(everybody: ConfusionEstimate | None, labels: list[str]) -> Chart | None:
    if everybody is None or all(row is None for row in everybody.matrix):
        return None
    return confusion_heat(
        labels, everybody.matrix, everybody.low, everybody.high, everybody.counts, "How all assessors grade"
    )


def _group_rows(confusions: list[ConfusionEstimate], relevant_grade: int) -> list[dict[str, Any]]:
    """Return what a row of a group's table shows: the groups with the most gold, in their own order."""
    most = sorted(confusions, key=lambda c: -sum(map(sum, c.counts)))[:SHOWN_TOPICS]
    return [
        {
            "row": confusion,
            "n": sum(map(sum, confusion.counts)),
            "relevant": _share(confusion.counts[relevant_grade:], relevant_grade, above=True),
            "not_relevant": _share(confusion.counts[:relevant_grade], relevant_grade, above=False),
        }
        for confusion in sorted(most, key=lambda c: c.pk)
    ]


def _share(rows: list[list[float]], relevant_grade: int, *, above: bool) -> float | None:
    """Return how much of these true grades was given on the right side of "relevant"."""
    total = sum(map(sum, rows))
    right = sum(sum(row[relevant_grade:] if above else row[:relevant_grade]) for row in rows)
    return right / total if total else None


def _changing(computation: Computation | None) -> list[ConfusionEstimate]:
    """Return the assessors whose answers change with time, the surest first."""
    if computation is None:
        return []
    tested = computation.confusions.filter(scope=Scope.ASSESSOR, drift_p_value__lt=0.05)
    return list(tested.select_related("assessor__user").order_by("drift_p_value")[:20])
