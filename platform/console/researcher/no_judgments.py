"""The runs ranked without judgments, as a job computes it on request, with its two charts."""

import uuid
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from analytics.charts import Chart, ProbabilityBin, ScatterPoint, calibration_curve, run_scatter
from analytics.services.analyses import AnalysisSubject, find
from console.researcher.plots import plot_answer
from console.researcher.results_page import page_of, results_request
from judging.services.access import researchers_only
from touchstone.replica import from_replica

RUNS_PER_PAGE = 100
KINDS = ("automatic run", "manual run")


@require_GET
@researchers_only
@from_replica
def no_judgments(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """What the runs alone say of their ranking, and what the judgments say of that."""
    results = results_request(request, campaign_id)
    subject = AnalysisSubject("no-judgments", results.measure)
    analysis = find(campaign=results.campaign, wanted=subject)
    made = analysis.result
    if "plot" in request.GET:
        pictures = {"runs": lambda: runs_chart(made), "calibration": lambda: calibration_chart(made)}
        return plot_answer(request, pictures)
    context = {
        **results.context("no-judgments"),
        "found": analysis,
        "result": made,
        "wanted": subject,
        "what": "no-judgments",
        "n_runs": results.campaign.collection.runs.count(),
    }
    if made:
        context |= {
            "page": page_of(request, made["runs"], RUNS_PER_PAGE),
            "runs_plot": runs_chart(made),
            "calibration_plot": calibration_chart(made),
        }
    return render(request, "console/researcher/no_judgments.html", context)


def runs_chart(made: dict[str, Any] | None) -> Chart | None:
    """Return expected MAP against the value by judgments; None while fewer than two runs have one."""
    known = [row for row in made["runs"] if row["reported"] is not None] if made else []
    if made is None or len(known) < 2:
        return None
    points = [ScatterPoint(row["run"], row["reported"], row["expected"], row["is_manual"]) for row in known]
    agreement = made["agreement"]
    tau = (
        f"No tau: {agreement['refusal']}."
        if agreement["refusal"]
        else f"Tau {agreement['tau']:.3f} over {agreement['n_runs']:,} runs."
    )
    return run_scatter(
        points,
        f"Expected MAP against judged {made['measure']}",
        x_title=f"{made['measure']} by judgments",
        y_title="expected MAP without judgments",
        kinds=KINDS,
        caption=f"{tau} A mark is a run; named are those whose two places differ most.",
    )


def calibration_chart(made: dict[str, Any] | None) -> Chart | None:
    """Return how often documents of each tenth of p are relevant; None without judgments to tell."""
    bins = made["calibration"].get("bins", []) if made else []
    if not bins:
        return None
    return calibration_curve(
        [ProbabilityBin(one["low"], one["high"], one["share"], one["n"]) for one in bins],
        "Relevant documents by probability",
        x_title="probability by the consensus of the runs",
        y_title="share relevant",
    )
