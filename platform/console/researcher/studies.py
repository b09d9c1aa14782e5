"""Analyses that a job computes on request: topic by topic, sensitivity to the evidence."""

import math
import uuid
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from analytics.charts import Chart, ForestRow, forest, topic_differences
from analytics.estimation.claims import claim_of
from analytics.methods import REPORTED, method_of
from analytics.services.analyses import AnalysisSubject, find, under_claim
from analytics.services.plot_data import title_of
from console.researcher.plots import plot_answer
from console.researcher.results_page import ResultsRequest, page_of, results_request, runs_in_order
from judging.services.access import researchers_only
from sampling.measures.registry import parse_measure
from touchstone.replica import from_replica

TOPICS_PER_PAGE = 25
TOPICS_PLOTTED = 40
HARDEST = 20
SORTS = ("difference", "hardest", "topic")
VARIANTS_PLOTTED = 60


@require_GET
@researchers_only
@from_replica
def topics(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """How two runs differ in every topic, and which topics are hard for all runs."""
    results = results_request(request, campaign_id)
    runs = list(results.campaign.collection.runs.values_list("run_id", flat=True))
    run, against = _pair(request, results, runs)
    context: dict[str, Any] = {
        **results.context("topics"),
        "run_ids": runs,
        "run": run,
        "against": against,
        "kind": parse_measure(results.measure).kind,
        "reported": REPORTED,
    }
    if not run or not context["kind"].is_sum:
        return render(request, "console/researcher/topics.html", context)
    subject = AnalysisSubject("topics", results.measure, run, against)
    analysis = find(campaign=results.campaign, wanted=subject)
    made = analysis.result
    rows = _sort_rows(made["topics"], request.GET.get("sort", "")) if made else []
    if "plot" in request.GET:
        return plot_answer(
            request,
            {
                "differences": lambda: differences_chart(made, rows, request.GET.get("format") == "csv"),
                "hardest": lambda: hardest_chart(made, request.GET.get("format") == "csv"),
            },
        )
    context |= {"found": analysis, "result": made, "wanted": subject, "what": "topics"}
    if made:
        sort = request.GET.get("sort", "")
        context |= {
            "page": page_of(request, rows, TOPICS_PER_PAGE),
            "sort": sort if sort in SORTS else SORTS[0],
            "differences": differences_chart(made, rows),
            "hardest": hardest_chart(made),
            **_captions(made, min(TOPICS_PLOTTED, len(rows))),
        }
    return render(request, "console/researcher/topics.html", context)


def _captions(made: dict[str, Any], n_plotted: int) -> dict[str, str]:
    return {
        "differences_caption": (
            f"The {n_plotted} topics that differ most, of {made['n_topics']:,}. A point with a line has a 95 % "
            f"confidence interval ({made['n_with_interval']:,} topics). A point alone has too few audited documents "
            "for one: it is what the whole audit predicts of its documents."
        ),
        "hardest_caption": (
            f"The mean of {made['n_runs']:,} runs, the lowest first. A topic that is hard for all runs may have "
            "few relevant documents, or words that no run understands."
        ),
    }


def _pair(request: HttpRequest, results: ResultsRequest, runs: list[str]) -> tuple[str, str]:
    """Return the two runs that are asked for, else the pair that was drawn for, else the two best."""
    given = request.GET.get("run", ""), request.GET.get("against", "")
    if given[0] in runs and given[1] in runs and given[0] != given[1]:
        return given
    order = [run.run_id for run in runs_in_order(results.computation, results.measure)] or runs
    return (order[0], order[1]) if len(order) > 1 else ("", "")


def _sort_rows(rows: list[dict[str, Any]], sort: str) -> list[dict[str, Any]]:
    if sort == "topic":
        return rows
    if sort == "hardest":
        return sorted(rows, key=lambda row: _number(row["mean"]["value"], math.inf))
    return sorted(rows, key=lambda row: -abs(_number(row["difference"]["value"], 0.0)))


def _number(value: float | None, missing: float) -> float:
    return missing if value is None else value


def differences_chart(
    made: dict[str, Any] | None, rows: list[dict[str, Any]], is_whole: bool = False
) -> Chart | None:
    """Return the topics in which the runs differ most, the largest gain first; the file of numbers has all."""
    if not made or not rows:
        return None
    largest = rows if is_whole else _sort_rows(rows, "difference")[:TOPICS_PLOTTED]
    shown = sorted(largest, key=lambda row: -_number(row["difference"]["value"], -math.inf))
    parts = [row["difference"] for row in shown]
    return topic_differences(
        [row["topic_id"] for row in shown],
        [part["value"] for part in parts],
        [part["low"] for part in parts],
        [part["high"] for part in parts],
        f"{made['run']} minus {made['against']} by topic",
        measure=f"difference in {made['measure']}",
    )


def hardest_chart(made: dict[str, Any] | None, is_whole: bool = False) -> Chart | None:
    """Return the topics in which all runs together do worst."""
    if not made:
        return None
    known = [row for row in made["topics"] if row["mean"]["value"] is not None]
    shown = _sort_rows(known, "hardest")[: None if is_whole else HARDEST]
    if not shown:
        return None
    rows = [
        ForestRow(
            row["topic_id"], REPORTED.short, row["mean"]["value"], row["mean"]["low"], row["mean"]["high"]
        )
        for row in shown
    ]
    title = f"Mean {made['measure']} of all runs, the hardest topics"
    return forest(rows, title, measure=f"mean {made['measure']}")


@require_GET
@researchers_only
@from_replica
def sensitivity(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Which verdicts other evidence would change: tiers, aggregation rules, halves of the time, no single assessor."""
    results = results_request(request, campaign_id)
    subject = AnalysisSubject("sensitivity", results.measure, family=results.choice["family"])
    analysis = find(campaign=results.campaign, wanted=subject)
    made = under_claim(analysis.result, results.claim) if analysis.result else None
    if "plot" in request.GET:
        return plot_answer(request, {"variants": lambda: variants_chart(made)})
    context = {
        **results.context("sensitivity"),
        **results.claim_context,
        "found": analysis,
        "result": made,
        "wanted": subject,
        "what": "sensitivity",
        "reported": REPORTED,
        "variants": variants_chart(made),
        "variants_caption": (
            f"The same difference under every variant, with intervals for {results.claim.label.lower()}. To the right "
            "of the dashed line lie differences in favour of the first run. Filled marks are corrected by the audit; "
            "open marks take grades as correct."
        ),
        "groups": _groups(made) if made else [],
        "n_reversed": sum(variant["n_reversed"] for variant in made["variants"]) if made else 0,
        "n_runs": results.campaign.collection.runs.count(),
    }
    return render(request, "console/researcher/sensitivity.html", context)


GROUPS = {
    "tier": "Tier",
    "rule": "Label aggregation",
    "drift": "Time of judging",
    "assessor": "Without one assessor",
}


def _groups(made: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": name, "words": words, "variants": [v for v in made["variants"] if v["group"] == name]}
        for name, words in GROUPS.items()
    ]


def variants_chart(made: dict[str, Any] | None) -> Chart | None:
    """Return the difference that the analysis looks at, under every variant."""
    if not made or not made["pair"]:
        return None
    rows = [_variant_row("as reported", made["base"])]
    rows += [_variant_row(variant["label"], variant) for variant in made["variants"][:VARIANTS_PLOTTED]]
    names = [row.label for row in rows]
    unique = [
        row if names.count(row.label) == 1 else ForestRow(f"{row.label} ({place})", *_rest(row))
        for place, row in enumerate(rows)
    ]
    a, b = made["pair"]
    claim = claim_of(made["claim"])
    words = f"{a} minus {b} under other evidence, with 95 % confidence intervals for {claim.label.lower()}"
    title = title_of(f"{a} minus {b}", claim)
    return forest(unique, title, words, measure=f"difference in {made['measure']}", reference=0.0)


def _rest(row: ForestRow) -> tuple[Any, ...]:
    return row.method, row.value, row.low, row.high, row.refused


def _variant_row(label: str, variant: dict[str, Any]) -> ForestRow:
    method = method_of(variant["method"]).short
    part = variant["difference"]
    if part["value"] is None:
        return ForestRow(label, method, refused=part["refusal"] or variant["refusal"])
    return ForestRow(label, method, part["value"], part["low"], part["high"])
