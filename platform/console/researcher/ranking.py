"""The ranking of a campaign's runs with its uncertainty."""

import uuid
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from analytics.charts import Chart, rank_matrix
from analytics.estimation.claims import Claim, other_claim
from analytics.estimation.estimate import FEWEST_POSITIVE
from analytics.methods import REPORTED, ranked_methods
from analytics.services.claim_intervals import claim_test
from analytics.services.plot_data import title_of
from analytics.services.ranking import RankedRun, Ranking, ranking_of
from console.researcher.plots import plot_answer
from console.researcher.results_page import ResultsRequest, results_request, runs_in_order, top_of
from judging.services.access import researchers_only
from touchstone.replica import from_replica


@require_GET
@researchers_only
@from_replica
def ranking(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Which rank every run may have, and how far the order is from the true one."""
    results = results_request(request, campaign_id)
    ranked = {method.key: method for method in ranked_methods()}
    method = ranked.get(request.GET.get("method", REPORTED.key))
    if method is None:
        raise Http404
    claim = results.claim
    order = ranking_of(
        computation=results.computation,
        measure=results.measure,
        method=method.key,
        claim=claim,
        among=results.comparisons.family.ranked_runs,
    )
    top, tops = top_of(request, len(order.runs))
    if "plot" in request.GET:
        n = len(order.runs) if request.GET.get("format") == "csv" else top
        return plot_answer(request, {"ranks": lambda: _picture(order, n)})
    context = {
        **results.context("ranking"),
        **results.claim_context,
        "n_outside": _n_outside(results, order),
        "n_significant": results.comparisons.n_significant,
        "ranking": order,
        "method": method,
        "methods": list(ranked.values()),
        "reported": REPORTED,
        "runs": [_run_row(run, claim) for run in order.runs],
        "n_runs": len(order.runs),
        "run_ids": [run.run_id for run in order.runs],
        "top": top,
        "tops": tops,
        "ranks": _picture(order, top),
        "ranks_caption": (
            f"Chances in percent, for {claim.label.lower()}; the runs are sorted by their value. The rank of a run "
            "whose row is spread out is uncertain."
        ),
        "fewest_positive": FEWEST_POSITIVE,
        "share_apart": round(100 * order.n_apart / order.n_pairs) if order.n_pairs else 0,
    }
    return render(request, "console/researcher/ranking.html", context)


def _n_outside(results: ResultsRequest, order: Ranking) -> int:
    """Return how many runs of the computation are not ranked, because they are not of the family."""
    known = runs_in_order(results.computation, results.measure)
    return len(known) - len(order.runs) - len(order.left_out) if order.runs or order.left_out else 0


def _picture(ranks: Ranking, n: int) -> Chart | None:
    """Return the chances of the first n runs to have the first n ranks."""
    if ranks.refusal:
        return None
    return rank_matrix(
        [run.run_id for run in ranks.runs[:n]],
        [list(run.probabilities[:n]) for run in ranks.runs[:n]],
        title_of(f"Ranks in {ranks.measure}", ranks.claim),
    )


def _run_row(run: RankedRun, claim: Claim) -> dict[str, Any]:
    likely = max(range(len(run.probabilities)), key=lambda place: run.probabilities[place])
    return {
        "row": run,
        "test": claim_test(run.estimate, claim),
        "other": claim_test(run.estimate, other_claim(claim)),
        "likely": likely + 1,
        "chance": _percent(run.probabilities[likely]),
        "best": _percent(run.probabilities[0]),
    }


def _percent(share: float) -> str:
    """Return a chance to read; one that was drawn a few times of ten thousand is not called none, nor all.

    >>> _percent(0.0), _percent(0.0004), _percent(0.763), _percent(0.9996), _percent(1.0)
    ('below 1 %', 'below 1 %', '76 %', 'above 99 %', 'above 99 %')
    """
    if share < 0.01:
        return "below 1 %"
    return "above 99 %" if share > 0.99 else f"{100 * share:.0f} %"
