"""The researcher's pages of runs: all campaigns, the runs of one, a pair of runs, downloads."""

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import Max, Sum
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.http import urlencode

from analytics.charts import Chart
from analytics.estimation.claims import Claim, other_claim
from analytics.estimation.wording import sentence
from analytics.latex import latex_sentence
from analytics.methods import REPORTED, Method, ranked_methods, reported_first
from analytics.models import Computation, Estimate
from analytics.services import exports
from analytics.services.claim_intervals import claim_test
from analytics.services.plot_data import forest_of_runs, pair_forest
from analytics.services.verdicts import estimates_of, estimates_of_two, reported_of, reverse_difference
from console.looks import look_context
from console.researcher.downloads import export_file
from console.researcher.plots import asked_methods, plot_answer
from console.researcher.prose import (
    always_words,
    assumption_words,
    conditions_context,
    methods_words,
    variance_words,
)
from console.researcher.results_page import (
    ResultsRequest,
    Run,
    page_of,
    results_request,
    runs_in_order,
    top_of,
)
from console.researcher.shares import share_context
from judging.models import Campaign
from judging.models import Run as RunRow
from judging.services.access import researchers_only
from sampling.frames import newest_draw
from sampling.measures.registry import parse_measure
from sampling.models import Draw
from touchstone.models import user_of
from touchstone.replica import from_replica

RUNS_PER_PAGE = 25
CAMPAIGNS_PER_PAGE = 50
OLD_NAMES_OF_RUNS = {"run": "a", "against": "b"}  # of the pair page, in addresses that people kept


@researchers_only
def results(request: HttpRequest) -> HttpResponse:
    """All campaigns with something to read."""
    campaigns = (
        Campaign.objects.visible_to(user_of(request))
        .annotate(n_drawn=Sum("draws__n_drawn"))
        .filter(n_drawn__isnull=False)
        .select_related("collection")
        .order_by("-created_at", "pk")
    )
    page = page_of(request, campaigns, CAMPAIGNS_PER_PAGE)
    newest = _newest_computations([row.pk for row in page])
    rows = [{"campaign": row, "computation": newest.get(row.pk)} for row in page]
    return render(request, "console/researcher/results.html", {"rows": rows, "page": page})


def _newest_computations(campaigns: list[uuid.UUID]) -> dict[uuid.UUID, Computation]:
    newest = Computation.objects.filter(campaign__in=campaigns).order_by().values("campaign")
    keys = [row["newest"] for row in newest.annotate(newest=Max("pk"))]
    return {row.campaign_id: row for row in Computation.objects.filter(pk__in=keys)}


@researchers_only
@from_replica
def campaign(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Every run's one number for the claim, and by every method; a plot of the best. Pairs have a page of their own."""
    results = results_request(request, campaign_id)
    order = runs_in_order(results.computation, results.measure)
    top, tops = top_of(request, len(order))
    if "plot" in request.GET:
        # The file of numbers has all runs.
        shown = order if request.GET.get("format") == "csv" else order[:top]
        return plot_answer(request, {"forest": lambda: _forest(results, shown, request)})
    page = page_of(request, order, RUNS_PER_PAGE)
    shown_keys = {run.key for run in [*page, *order[:top]]}
    estimates = estimates_of(results.computation, results.measure, run_b__isnull=True, run__in=shown_keys)
    best = {run.key for run in order[:top]}
    methods = _methods_of(estimates, results.measure)
    main = _main_method(estimates)
    row = results.campaign
    draw = newest_draw(row)
    drawn_pair = _drawn_pair(row, draw)
    context = {
        **results.context("runs"),
        "title": row.name,
        "draw": draw,
        "is_as_given": is_as_given(draw, results.computation),
        "drawn_pair": drawn_pair,
        **_drawn_pair_context(results, drawn_pair),
        "page": page,
        "runs": _by_run(results, estimates, list(page), methods, main),
        "n_runs": len(order),
        "run_ids": [run.run_id for run in order],
        "top": top,
        "tops": tops,
        "plot": forest_of_runs(
            [e for e in estimates if e.run_id in best], results.measure, (main.key,), results.claim
        ),
        "has_values": any(estimate.value is not None for estimate in estimates),
        "methods": methods,
        "main": main,
        "forest_caption": _forest_caption(
            results.claim, main, is_as_given=is_as_given(draw, results.computation)
        ),
        "method_keys": ",".join(method.key for method in methods),
        "no_interval": next((e.warning for e in estimates if e.value is not None and e.low is None), ""),
        "judged_name": judged_name(results.measure),
        "is_open": row.state == Campaign.State.OPEN,
        "assumption": assumption_words(results.computation),
        "exports": exports.EXPORTS,
        **share_context(results.computation),
        **look_context(row),
    }
    return render(request, "console/researcher/campaign_results.html", context)


def _forest(results: ResultsRequest, runs: list[Run], request: HttpRequest) -> Chart | None:
    """Return the picture of these runs by the methods that are asked for, else by the one that the page shows."""
    keys = [run.key for run in runs]
    estimates = estimates_of(results.computation, results.measure, run_b__isnull=True, run__in=keys)
    methods = asked_methods(request) or (_main_method(estimates).key,)
    return forest_of_runs(estimates, results.measure, methods, results.claim)


def _forest_caption(claim: Claim, main: Method, *, is_as_given: bool) -> str:
    """Return the words below the picture of the runs."""
    words = (
        f"The best runs first: the mark is the {main.short} value, the line its 95 % confidence interval for "
        f"{claim.label.lower()}."
    )
    if main.is_reported:
        words += " It includes the assessors' errors."
    elif is_as_given:
        words += " It takes every grade as correct."
    else:
        words += " It takes every grade as correct, so that it is too short."
    return f"{words} To compare two runs, use the page of pairs, even if their intervals overlap."


def _main_method(estimates: list[Estimate]) -> Method:
    """Return the method whose one number a run is shown: the reported one; else the next ranked one with a number."""
    known = {estimate.method for estimate in estimates if estimate.value is not None}
    return next((method for method in ranked_methods() if method.key in known), REPORTED)


def is_as_given(draw: Draw | None, computation: Computation | None) -> bool:
    """Return whether every grade is taken as given: no corrected number is to report.

    Nothing can be audited, or whole topics were drawn and none of them has gold.
    """
    if draw is None:
        return False
    has_gold = computation is not None and (computation.n_audited > 0 or computation.is_by_gold_judges)
    return draw.selection_kind.is_foreign or (draw.has_whole_topics and not has_gold)


def _drawn_pair(row: Campaign, draw: Any) -> dict[str, str]:
    """Return the pair that the newest batch was drawn for, and where to read of it."""
    if draw is None or draw.question != "pair":
        return {}
    run_a, run_b = draw.parameters["runs"][:2]
    measure = draw.parameters["measure"]
    query = urlencode({"measure": measure, "run": run_a, "against": run_b})
    return {
        "run_a": run_a,
        "run_b": run_b,
        "measure": measure,
        "url": f"{reverse('console:pair', args=[row.pk])}?{query}",
    }


def _drawn_pair_context(results: ResultsRequest, drawn: dict[str, str]) -> dict[str, Any]:
    """Return the claim with what is said of the pair that was drawn for; without such a pair no pair is read."""
    if not drawn or results.computation is None or drawn["measure"] != results.measure:
        return results.values_context
    stored = results.computation.estimates.filter(measure=results.measure, method=REPORTED.key)
    named = {
        "run__run_id__in": (drawn["run_a"], drawn["run_b"]),
        "run_b__run_id__in": (drawn["run_a"], drawn["run_b"]),
    }
    found = stored.filter(**named).select_related("run", "run_b").first()
    if found is None:
        return results.values_context
    estimate = found if found.run.run_id == drawn["run_a"] else reverse_difference(found)
    return {**results.claim_context, "drawn_verdict": sentence(results.comparisons.of(estimate))}


@researchers_only
@from_replica
def pair(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """One pair of runs: the difference by every method, its interval, p, and the verdict in words."""
    results = results_request(request, campaign_id)
    row, computation, measure = results.campaign, results.computation, results.measure
    all_runs = list(row.collection.runs.all())
    named = {run.run_id: run for run in all_runs}
    run_a, run_b = (
        named.get(request.GET.get(name, request.GET.get(old, ""))) for name, old in OLD_NAMES_OF_RUNS.items()
    )
    if run_a is None or run_b is None:
        raise Http404
    estimates, alone = estimates_of_two(computation, measure, run_a, run_b)
    if "plot" in request.GET:
        by = asked_methods(request)
        draw = {
            "forest": lambda: pair_forest(computation, measure, run_a, run_b, estimates, by, results.claim)
        }
        return plot_answer(request, draw)
    corrected = reported_of(estimates)
    said = said_of(results, corrected)
    as_given = is_as_given(newest_draw(row), computation)
    advice = "It takes every grade as correct." if as_given else "Report “corrected”."
    context = {
        **results.context("pairs"),
        "title": f"{run_a} against {run_b}",
        "is_as_given": as_given,
        "run_a": run_a,
        "run_b": run_b,
        "all_runs": all_runs,
        "estimates": estimates,
        "rows": [(estimate, *results.comparisons.tests(estimate)) for estimate in estimates],
        "plot": pair_forest(computation, measure, run_a, run_b, estimates, claim=results.claim),
        "caption": (
            f"{run_a} minus {run_b} in {measure}, by method: the mark is the difference, the line its 95 % confidence "
            f"interval for {results.claim.label.lower()}; a mark alone has none for them. An interval that crosses "
            f"the dashed line contains 0. {advice}"
        ),
        **results.claim_context,
        **said,
        "always": always_words(
            corrected,
            computation,
            is_open=row.state == Campaign.State.OPEN,
            significant=said["compared"] is not None and said["compared"].test.significant,
        ),
        "variance": variance_words(corrected),
        "shares": _shares(alone, [run_a, run_b]),
        "assumption": assumption_words(computation),
        "measure_is_linear": parse_measure(measure).kind.is_sum,
        **conditions_context(row),
    }
    return render(request, "console/researcher/pair.html", context)


def said_of(results: ResultsRequest, corrected: Estimate | None) -> dict[str, Any]:
    """Return the verdict and what a methods section can quote; empty where there is no number."""
    if corrected is None:
        return {"verdict": "", "quoted": "", "compared": None}
    compared = results.comparisons.of(corrected)
    words, quoted = sentence(compared), ""
    if compared.value is not None and results.computation is not None:
        row: Any = results.campaign
        quoted = methods_words(
            results.computation,
            corrected,
            words,
            n_topics=row.n_drawn_topics or 0,
            declared=results.declaration,
        )
    return {"verdict": words, "quoted": quoted, "quoted_latex": latex_sentence(quoted), "compared": compared}


@researchers_only
@from_replica
def download_plot(request: HttpRequest, campaign_id: uuid.UUID, file_format: str) -> HttpResponse:
    """The forest plot as a file, or its numbers, under an address that ends in what it is."""
    found = results_request(request, campaign_id)
    order = runs_in_order(found.computation, found.measure)
    top, _ = top_of(request, len(order))
    given = request.GET.copy()
    given.update({"plot": "forest", "format": file_format})
    request.GET = given  # type: ignore[assignment]  # Django's own are immutable, which nobody minds here
    runs = order if file_format == "csv" else order[:top]
    return plot_answer(request, {"forest": lambda: _forest(found, runs, request)})


@researchers_only
@from_replica
def export(request: HttpRequest, campaign_id: uuid.UUID, kind: str) -> StreamingHttpResponse:
    """The campaign's judgments in one of the formats of EXPORTS, streamed."""
    row = get_object_or_404(Campaign, pk=campaign_id)
    return export_file(exports.export_format(kind), row)


def _methods_of(estimates: list[Estimate], measure: str) -> list[Method]:
    """Return the methods that have a column: those with estimates that serve the measure, the one to report first."""
    stored, parsed = {estimate.method for estimate in estimates}, parse_measure(measure)
    return [method for method in reported_first() if method.key in stored and method.is_shown(parsed)]


def _by_run(
    results: ResultsRequest, estimates: list[Estimate], order: list[Run], methods: list[Method], main: Method
) -> list[dict[str, Any]]:
    """Return the runs of a page in their order: the one number with both claims, and the estimate by every method."""
    runs = {estimate.run_id: estimate.run for estimate in estimates}
    known = {(estimate.run_id, estimate.method): estimate for estimate in estimates}
    return [
        {
            "run": runs[run.key],
            **_number_of(results, known.get((run.key, main.key))),
            "estimates": [known.get((run.key, method.key)) for method in methods],
            "reported": known.get((run.key, REPORTED.key)),
            "judged": _with_shares(known.get((run.key, method.key)) for method in methods),
        }
        for run in order
        if run.key in runs
    ]


def _number_of(results: ResultsRequest, estimate: Estimate | None) -> dict[str, Any]:
    """Return a run's one number with its interval for the claim, and for the other one."""
    if estimate is None:
        return {"estimate": None}
    test, other = (claim_test(estimate, claim) for claim in (results.claim, other_claim(results.claim)))
    return {"estimate": estimate, "test": test, "other": other}


def judged_name(measure: str) -> str:
    """Return what the share of judged documents within the measure's cutoff is called, as in ir_measures.

    >>> judged_name("DCG@10"), judged_name("AP")
    ('Judged@10', 'Judged')
    """
    cutoff = parse_measure(measure).cutoff
    return "Judged" if cutoff is None else f"Judged@{cutoff}"


def _with_shares(estimates: Iterable[Estimate | None]) -> Estimate | None:
    """Return one of a run's estimates that says how much of what it returns first was judged, and has a gold label."""
    return next((e for e in estimates if e is not None and e.judged_words), None)


def _shares(rows: Sequence[Estimate], runs: Sequence[RunRow]) -> list[tuple[str, str]]:
    """Return of each run how much of what it returns first was judged, where its estimates know that."""
    known = {run.run_id: _with_shares(e for e in rows if e.run_id == run.pk) for run in runs}
    return [(run_id, estimate.judged_words) for run_id, estimate in known.items() if estimate is not None]
