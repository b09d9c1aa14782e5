"""What the papers' methods say of a pair, how far the tiers agree, and what every comparison assumes."""

import uuid
from collections.abc import Mapping
from functools import partial
from typing import Any

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_GET, require_POST

from analytics.charts import Chart, dots, histogram
from analytics.services.analyses import AnalysisSubject, analysis_of, ask, find
from analytics.services.analyses.assessor_pairs import names_behind
from analytics.services.analyses.papers import under_conditions
from analytics.services.assumptions import QUESTIONS, answer_questions, newest_answers, what_forbids
from analytics.services.recomputation import measures_of
from console.api.serializers.analyses import (
    AnalysisRequest,
)
from console.campaigns import drawn_campaign
from console.researcher.plots import plot_answer
from judging.models import Assessor, Campaign
from judging.services.access import managers_only, researchers_only
from sampling.measures.registry import sums_among
from touchstone.models import user_of
from touchstone.replica import from_replica

FIELDS = ("measure", "run", "against")
CHOICE = ("claim", "family")


@require_GET
@researchers_only
@from_replica
def papers(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """What the papers' methods say of a pair of runs, and which of them may be believed."""
    row = drawn_campaign(campaign_id)
    measures = sums_among(measures_of(row))
    context: dict[str, Any] = {"campaign": row, "measures": measures, "all_runs": row.collection.runs.all()}
    context |= _analysis_context(request, row, "papers")
    if context.get("result"):
        answers = newest_answers(row)
        context["result"] = shown = under_conditions(context["result"], answers)
        for band in shown["assumption"].get("bands", []):
            band["rates"] = [band["sensitivity"], band["specificity"]]
        context |= {
            "groups": _groups(shown["lines"], context["wanted"]),
            "forbidden": what_forbids(answers),
            "is_asked": answers is not None,
        }
    return render(
        request, "console/researcher/methods.html", context, status=400 if "errors" in context else 200
    )


@require_GET
@researchers_only
@from_replica
def agreement(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """How far gold, silver and bronze agree."""
    row = drawn_campaign(campaign_id)
    context = {"campaign": row} | _analysis_context(request, row, "agreement")
    if "plot" in request.GET:
        known = context.get("result") or {"pairs": []}
        pictures = {"-".join(pair["of"]): partial(_kappa_plot, pair) for pair in known["pairs"]}
        pictures |= {one["score"]: partial(_score_plot, one) for one in known.get("scored", [])}
        return plot_answer(request, pictures)
    if context.get("result"):
        context["grades"] = list(row.scale.grades.order_by("value").values_list("label", flat=True))
        context["pairs"] = [_pair_shown(pair, context["grades"]) for pair in context["result"]["pairs"]]
        context["scored"] = [one | {"plot": _score_plot(one)} for one in context["result"].get("scored", [])]
        context["names"] = names = names_behind(row) if user_of(request).may_manage else {}
        pairs = context["result"].get("assessors", {}).get("pairs", [])
        context["assessor_pairs"] = [_named_pair(pair, names) for pair in pairs]
    return render(
        request, "console/researcher/agreement.html", context, status=400 if "errors" in context else 200
    )


@require_POST
@researchers_only
def analyse(request: HttpRequest, campaign_id: uuid.UUID, what: str) -> HttpResponse:
    """Have the analysis made, or made anew, by a job."""
    row = drawn_campaign(campaign_id)
    sent = _analysis_request(request.POST, row, what)
    if not sent.is_valid():
        raise BadRequest(str(sent.errors))
    subject = sent.validated_data["wanted"]
    job = ask(campaign=row, wanted=subject, user=user_of(request))
    back = _page_of(row, subject, {name: request.POST.get(name, "") for name in CHOICE})
    return redirect(f"{reverse('job', args=[job.pk])}?{urlencode({'back': back})}")


@require_POST
@managers_only
def conditions(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Record what no data can tell: the three questions that every comparison takes as answered."""
    row = drawn_campaign(campaign_id)
    given = {question.name: request.POST.get(question.name) for question in QUESTIONS}
    back = f"{reverse('console:pair', args=[row.pk])}?{request.POST.get('query', '')}#conditions"
    if set(given.values()) <= {"yes", "no"}:
        answers = {name: value == "yes" for name, value in given.items()}
        answer_questions(campaign=row, user=user_of(request), **answers)
        messages.success(request, "The answers were recorded.")
    else:
        messages.error(request, "Answer all three questions with yes or no.")
    return redirect(back)


def _analysis_context(request: HttpRequest, row: Campaign, what: str) -> dict[str, Any]:
    """Return what a page of an analysis shows: what is asked, and what is known of it."""
    given = {name: request.GET.get(name, "").strip() for name in FIELDS}
    sent = _analysis_request(request.GET, row, what)
    if not sent.is_valid():
        return {"given": given, "errors": {name: found[0] for name, found in sent.errors.items()}}
    subject = sent.validated_data["wanted"]
    found = find(campaign=row, wanted=subject)
    return {"given": given, "wanted": subject, "found": found, "result": found.result, "what": what}


def _analysis_request(given: Mapping[str, str], row: Campaign, what: str) -> AnalysisRequest:
    fields = FIELDS if analysis_of(what).no_claim else (*FIELDS, *CHOICE)
    named = {name: given.get(name, "").strip() for name in fields}
    return AnalysisRequest(
        data={"what": what} | {name: value for name, value in named.items() if value},
        context={"campaign": row},
    )


def _groups(lines: list[dict[str, Any]], subject: AnalysisSubject) -> list[dict[str, Any]]:
    """Return the lines by what they are about: the difference, then each run."""
    names = {
        "difference": f"{subject.run} minus {subject.against}",
        "run": subject.run,
        "against": subject.against,
    }
    return [
        {"of": of, "name": name, "lines": [line for line in lines if line["of"] == of]}
        for of, name in names.items()
    ]


def _pair_shown(pair: dict[str, Any], grades: list[str]) -> dict[str, Any]:
    """Return two tiers' tables as the page reads them: by grade names, both ways, and the topics' kappas drawn."""
    a, b = pair["of"]
    if pair["refusal"]:
        return {**pair, "a": a, "b": b}
    ways = ((a, b, pair["b_given_a"], pair["overall_b"]), (b, a, pair["a_given_b"], pair["overall_a"]))
    return {
        **pair,
        "a": a,
        "b": b,
        "tables": [
            {
                "given": given,
                "other": other,
                "rows": [{"grade": grade, **row} for grade, row in zip(grades, rows, strict=True)],
                "overall": overall,
            }
            for given, other, rows, overall in ways
        ],
        "plot": _kappa_plot(pair),
        "plot_name": f"{a}-{b}",
    }


def _kappa_plot(pair: dict[str, Any]) -> Chart | None:
    a, b = pair["of"]
    counted = pair.get("histogram")
    if not counted or not sum(counted["counts"]):
        return None
    title = f"Kappa by topic, {a} and {b}"
    return histogram(
        counted["edges"], counted["counts"], title, x_title="Scott's pi", y_title="topics", reference=0.0
    )


def _named_pair(pair: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    first, second = (names.get(name, name) for name in pair["of"])
    return pair | {"first": first, "second": second}


def _score_plot(scored: dict[str, Any]) -> Chart | None:
    """Return all runs scored by every tier that can: Figure 2 of Bailey et al. (2008)."""
    if scored["refusal"]:
        return None
    score, tiers = (
        scored["score"],
        [tier for tier in Assessor.Tier.values if tier in scored["means"]],
    )
    title = f"{score} of every run, by tier"
    about = (
        f"{score} of {len(scored['runs'])} runs by {', '.join(tiers)}, the runs in the order of {tiers[0]}."
    )
    means = {tier: scored["means"][tier] for tier in tiers}  # the database orders keys by their length
    return dots(scored["runs"], means, title, about, x_title=score)


def _page_of(row: Campaign, subject: AnalysisSubject, choice: Mapping[str, str]) -> str:
    """Return the page of an analysis: it bears the analysis's key. The choice is that of claim and family."""
    given = {"measure": subject.measure, "run": subject.run, "against": subject.against, **choice}
    query = urlencode({name: value for name, value in given.items() if value})
    page = reverse(f"console:{subject.what}", args=[row.pk])
    return f"{page}?{query}"
