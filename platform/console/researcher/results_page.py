"""What every page of a campaign's results shares: what is asked, the tabs, the order of the runs."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import F, Func, IntegerField, OuterRef, QuerySet, Subquery
from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from django.utils.http import urlencode

from analytics.estimation.claims import ALL, CLAIMS, QUESTION, Claim, claim_of, other_claim
from analytics.methods import ranked_methods
from analytics.models import Computation, before_cutting
from analytics.services.comparisons import Comparisons
from analytics.services.families import asked_family, family_columns
from analytics.services.recomputation import declared_gold, latest_computation, measures_of
from analytics.tables import TABLE_FORMATS
from console.campaigns import first_topic_selection
from console.claims import choice_of, comparisons_of
from judging.models import Campaign
from sampling.measures.registry import usual_spelling
from sampling.models import Audit, Draw
from sampling.selections import COMPLETE

TOPS = (10, 20, 40)


@dataclass(frozen=True)
class ResultsRequest:
    """A drawn campaign, its newest computation, and the measure that is asked for."""

    campaign: Campaign
    computation: Computation | None
    measure: str
    measures: list[str]
    is_complete: (
        bool  # its judgments were imported as all there is: gold can be declared an audit there alone
    )
    choice: Mapping[str, str]  # of claim, family and adjustment
    choice_refusal: str  # why what was asked is none; then the choice is the default
    asked: Mapping[str, str] = field(default_factory=dict)  # what of it was asked for, by name

    @cached_property
    def declaration(self) -> Audit | None:
        """The imported gold on which the numbers rest, with what is assumed of it; None where an audit was drawn."""
        return declared_gold(self.computation) if self.is_complete else None

    @cached_property
    def comparisons(self) -> Comparisons:
        """Return the differences in the measure with the claim, in the family that is asked for."""
        return comparisons_of(self.campaign, self.computation, self.measure, **self.choice)

    @property
    def claim(self) -> Claim:
        """Return the claim that is made."""
        return claim_of(self.choice["claim"])

    @property
    def claim_context(self) -> dict[str, Any]:
        """Return what a page shows of the claim and the family, with the other choices."""
        comparisons = self.comparisons
        asked = self.choice["family"]
        declared = asked_family(self.campaign).name if asked else comparisons.family.name
        return {
            **self.values_context,
            "family": comparisons.family,
            "families": dict.fromkeys([declared, QUESTION, ALL]),
            "n_family": comparisons.n_family,
            "adjustment": comparisons.adjustment,
            "is_declared": comparisons.family.name == declared,
        }

    @property
    def values_context(self) -> dict[str, Any]:
        """Return what a page of values alone shows of the claim: no pair is read, so there is no family."""
        return {
            "claims": CLAIMS,
            "claim": self.claim,
            "other_claim": other_claim(self.claim),
            "choice_refusal": self.choice_refusal,
        }

    def context(self, tab: str) -> dict[str, Any]:
        """Return what the head of the page shows."""
        return {
            "campaign": self.campaign,
            "computation": self.computation,
            "declared": self.declaration,
            "measure": self.measure,
            "measures": self.measures,
            "tab": tab,
            "asked": self.asked,
            "asked_choice": f"&{urlencode(self.asked)}" if self.asked else "",
            "table_formats": TABLE_FORMATS,
        }


@dataclass(frozen=True)
class Run:
    """A run in the order of its value by the first ranked method that has one; `value` is None where none has."""

    key: int
    run_id: str
    value: float | None


def results_request(request: HttpRequest, campaign_id: uuid.UUID) -> ResultsRequest:
    """Return what is asked; a campaign that was not drawn, or another measure than it has, is absent."""
    rows = Campaign.objects.select_related("collection", "scale").filter(draws__batch=1)
    newest_topics = Draw.objects.filter(campaign=OuterRef("pk")).order_by("-batch")
    length = Func(F("parameters__topics"), function="jsonb_array_length", output_field=IntegerField())
    known = {
        "selection": F("draws__selection"),
        "topic_selection": first_topic_selection(),
        "n_drawn_topics": Subquery(newest_topics.values(n=length)[:1]),
    }
    rows = rows.annotate(**known, **family_columns()).prefetch_related("draws")
    row: Any = get_object_or_404(rows, pk=campaign_id)
    measures = measures_of(row)
    measure = usual_spelling(request.GET.get("measure", measures[0]))
    if measure not in measures:
        raise Http404
    newest = latest_computation(campaign=row)
    choice, fault = choice_of(request, row)
    asked = {name: value for name, value in choice.items() if name in request.GET and not fault}
    return ResultsRequest(row, newest, measure, measures, row.selection == COMPLETE.key, choice, fault, asked)


def runs_in_order(computation: Computation | None, measure: str) -> list[Run]:
    """Return the runs that the computation knows, the best first: two numbers a run are read, no pair."""
    if computation is None:
        return []
    ranked = [method.key for method in ranked_methods()]
    own = computation.estimates.filter(measure=measure, run_b=None, method__in=ranked)
    rows: Iterable[tuple[Any, ...]] = own.values_list("run", "run__run_id", "method", before_cutting("value"))
    found: dict[int, dict[str, Any]] = {}
    for key, run_id, method, value in rows:
        found.setdefault(key, {"run_id": run_id})[method] = value
    made = [Run(key, row["run_id"], _first(*map(row.get, ranked))) for key, row in found.items()]
    return sorted(made, key=lambda run: (run.value is None, -(run.value or 0.0), run.run_id))


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


def top_of(request: HttpRequest, n_runs: int) -> tuple[int, list[int]]:
    """Return how many of the best runs are shown, and between what one may choose (nothing for few runs)."""
    choices = [top for top in TOPS if top < n_runs]
    if choices and n_runs <= TOPS[-1]:
        choices.append(n_runs)
    elif choices:
        choices = list(TOPS)
    given = request.GET.get("top", "")
    if given.isdecimal() and int(given) in choices:
        return int(given), choices
    return (choices[0] if choices else n_runs), choices


def page_of(request: HttpRequest, rows: Sequence[Any] | QuerySet[Any], per_page: int) -> Page[Any]:
    """Return the page that is asked for; a wrong number is the nearest one."""
    return Paginator(rows, per_page).get_page(request.GET.get("page"))
