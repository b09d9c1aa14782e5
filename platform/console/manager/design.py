"""Choosing what is judged: the design page of a new campaign and of a top-up, and what was drawn so far."""

import math
import uuid
from typing import Any

from django.contrib import messages
from django.contrib.humanize.templatetags.humanize import intcomma
from django.db.models import QuerySet, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST

from analytics.charts import Chart, curve
from analytics.services.forecast import Forecast, forecast, queue_forecast
from console.forms.design import DesignForm, pairs
from console.forms.error_rates import ErrorRatesForm
from console.manager.setup_steps import rail_of
from console.researcher.plots import plot_answer
from judging.models import Campaign
from judging.services.access import managers_only
from sampling.frames import newest_draw
from sampling.measures.kinds import Linear
from sampling.measures.registry import designed_ratios, keys_of, suggested_designs
from sampling.models import Draw
from sampling.outlook import floor_sentence, outlook_sentence
from sampling.questions import Design
from sampling.services.forecasting import Preview, mixture_sentence
from sampling.services.layout import missing_topics, queue_parts
from touchstone import jobs
from touchstone.models import Job, user_of

NAMES = {
    "default": "The default",
    "paper": "The paper's Q*",
    "naive": "Naive",
    "pool": "Evenly over the pool",
    "even": "Topics equally likely",
}
PHRASES = {"paper": "under the paper's Q*", "naive": "naively", "pool": "drawn evenly over the pool"}


@managers_only
def design(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Choose what to judge, or what more. The interval to expect is shown before a judgment is spent; a POST draws."""
    known: QuerySet[Any] = Campaign.objects.select_related("collection", "scale").annotate(
        n_drawn=Sum("draws__n_drawn")
    )
    row = get_object_or_404(known, pk=campaign_id)
    earlier = newest_draw(row)
    obstacle = what_stops(row, earlier)
    asked = request.POST or (request.GET if "question" in request.GET else None)
    is_imported = earlier is not None and bool(earlier.selection_kind.no_top_up)
    form = DesignForm(asked, campaign=row, user=user_of(request), earlier=None if is_imported else earlier)
    rates = ErrorRatesForm(asked)
    outlook, chosen = Forecast(), None
    if asked and not obstacle and form.is_valid() and rates.is_valid():
        chosen = form.design()
        if request.method == "POST":
            asks = "preview" in request.POST
            return _preview(request, row, chosen, rates) if asks else _draw(request, row, chosen)
        outlook = forecast(campaign=row, design=chosen, rates=rates.shares())
    preview = _preview_context(outlook, chosen, form) if chosen else None
    if "plot" in request.GET:
        return plot_answer(request, {"curve": lambda: preview["curve"] if preview else None})
    is_draft, is_part = row.state == Campaign.State.DRAFT, bool(getattr(request, "htmx", False))
    context = {
        "campaign": row,
        "earlier": earlier,
        "n_drawn": row.n_drawn or 0,
        "obstacle": obstacle,
        "form": form,
        "rates": rates,
        "asked": chosen,
        "pairs": pairs(chosen) if chosen else [],
        "forecast": outlook,
        "preview": preview,
        "runs": len(form.run_ids),
        "suggested_measures": suggested_designs(),
        "measure_help": f"A sum over documents ({', '.join(keys_of(Linear))}) or a ratio "
        f"({', '.join(designed_ratios())}), each with @ and its cutoff. The other measures are estimated from the "
        "same judgments. With a sample of whole topics: any measure that is a mean over topics, such as ERR@10.",
        **(rail_of(row.pk, "design") if is_draft and not is_part else {}),
    }
    return render(
        request, "console/manager/design.html", context, status=400 if form.errors or rates.errors else 200
    )


def _draw(request: HttpRequest, row: Campaign, design: Design) -> HttpResponse:
    payload = {"campaign": str(row.pk), "design": design.parameters()}
    job = jobs.enqueue(kind="draw", payload=payload, active_key=str(row.pk), user=user_of(request))
    back = reverse("console:campaign", args=[row.pk])
    if row.state == Campaign.State.DRAFT:  # a step of the set-up: the next one is the people
        back = reverse("console:setup-step", args=[row.pk, "people"])
    if job is None:
        messages.error(request, "A draw of this campaign is already running.")
        return redirect(back)
    return _job_page(job, back)


def _preview(request: HttpRequest, row: Campaign, design: Design, rates: ErrorRatesForm) -> HttpResponse:
    """Lead to the page that shows the forecast, by way of its job where the pool is large."""
    back = f"{reverse('console:design', args=[row.pk])}?{urlencode([*pairs(design), *rates.pairs()])}"
    job = queue_forecast(campaign=row, design=design, user=user_of(request), rates=rates.shares())
    return _job_page(job, back) if job and job.is_active else redirect(f"{back}#preview")


def _job_page(job: Job, back: str) -> HttpResponse:
    return redirect(f"{reverse('job', args=[job.pk])}?{urlencode({'back': back})}")


# -- what stands in the way ---------------------------------------------------------------------------------


def what_stops(row: Campaign, earlier: Draw | None) -> dict[str, Any]:
    """Return why nothing (more) can be drawn now, in words, with where to go; empty where it can."""
    active = Job.objects.filter(kind="draw", payload__campaign=str(row.pk), state__in=Job.ACTIVE).first()
    if active is not None:
        return {"title": "Items are being drawn", "words": "Wait until the draw is done.", "job": active}
    if earlier is None:
        if row.items.exists():
            words = (
                "Judgments were imported into this campaign, and a draw must come before judgments. Create a new "
                "campaign."
            )
            return {"title": "Nothing can be drawn here", "words": words}
        return {}
    if reason := earlier.selection_kind.no_top_up:
        words = f"{reason[:1].upper()}{reason[1:]}."
        return {"title": "This campaign cannot be topped up", "words": words}
    if earlier.selection_kind.has_exact_counts:
        words = (
            "An exact count in every topic cannot grow: its probabilities hold for this count only. "
            "For more items, create a new campaign. For later top-ups, choose a selection that draws each document "
            "independently."
        )
        return {"title": "This campaign cannot be topped up", "words": words}
    layout = layout_state(earlier)
    if layout["is_complete"]:
        return {}
    words = f"{layout['n_laid']} of {layout['n_topics']} topics are laid out; the next batch can be drawn after that."
    return {"title": f"Batch {earlier.batch} is being laid out", "words": words, "job": layout["job"]}


_laid_out: set[uuid.UUID] = set()  # a batch that is laid out stays so: this process need not count again


def layout_state(draw: Draw) -> dict[str, Any]:
    """Return how far the newest batch is laid out: topics done and in all, and the job that is at it, if any."""
    if draw.pk in _laid_out:
        return {"is_complete": True, "job": None}
    expected = Draw.objects.filter(campaign=draw.campaign_id, batch__lte=draw.batch).aggregate(
        n=Sum("n_drawn")
    )
    if draw.entries.count() >= (expected["n"] or 0):  # counting is cheap; reading a large frame is not
        _laid_out.add(draw.pk)
        return {"is_complete": True, "job": None}
    missing = missing_topics(draw)
    n_laid = draw.entries.values("item__topic").distinct().count()
    work = Job.objects.filter(kind="layout", payload__draw=str(draw.pk))
    active = (
        work.filter(state__in=Job.ACTIVE).order_by("-state", "created_at").first()
    )  # one that runs, if any
    return {
        "is_complete": not missing,
        "n_laid": n_laid,
        "n_topics": n_laid + len(missing),
        "job": active,
        "failed": None if active else work.filter(state=Job.State.FAILED).order_by("-finished_at").first(),
    }


def draw_context(row: Campaign) -> dict[str, Any]:
    """Return what the campaign's page says about its draws."""
    draws: list[Any] = list(row.draws.select_related("drawn_by").order_by("batch"))
    for batch in draws:  # the words of the form, not those of the record
        batch.method_name = batch.get_method_display()
        batch.selection_name = batch.selection_kind.label
    newest = draws[-1] if draws else None
    last = Job.objects.filter(kind="draw", payload__campaign=str(row.pk)).order_by("-created_at").first()
    if newest is not None and last is not None and last.created_at < newest.created_at:
        last = None  # it made the newest batch, or an earlier one
    return {
        "draw": newest,
        "draws": draws,
        "n_drawn": sum(draw.n_drawn for draw in draws),
        "draw_job": last,
        "layout": layout_state(newest) if newest else {},
    }


@require_POST
@managers_only
def lay_out(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Go on with the layout of the newest batch, where jobs were cancelled or failed."""
    row = get_object_or_404(Campaign, pk=campaign_id)
    newest = newest_draw(row)
    back = reverse("console:campaign", args=[row.pk])
    queued = queue_parts(draw=newest, user=user_of(request)) if newest else []
    if not queued:
        messages.info(request, "All drawn items are laid out or being laid out.")
        return redirect(f"{back}#draw")
    return _job_page(queued[0], back)


# -- the preview --------------------------------------------------------------------------------------------


def _preview_context(outlook: Forecast, asked: Design, form: DesignForm) -> dict[str, Any] | None:
    """Return the preview in words and pictures; what cannot be had is said beside the form."""
    preview, pool = outlook.preview, outlook.complete_pool
    if preview is None:
        return None
    if not preview.budgets:
        most = preview.n_drawable
        where = "the pool holds" if most == preview.n_frame else "the measure needs"
        form.add_error("depth", f"{where} only {most} documents: too few for a confidence interval")
        return None
    budget = min(asked.budget, preview.n_drawable)
    place = preview.budgets.index(min(preview.budgets, key=lambda n: abs(n - budget)))
    # Drawn with replacement, the design is one of those it is compared with.
    chosen = asked.method if asked.selection_kind.with_replacement else "default"
    if chosen not in preview.widths:
        chosen = "default"
    width = preview.widths[chosen][place]
    if form.earlier is not None and asked.budget <= preview.already:
        form.add_error("budget", f"about {preview.already:.0f} items are already drawn: enter a larger total")
    elif width is None:
        form.add_error("budget", _out_of_reach(asked))
    order = [chosen, *(name for name in ("naive", "paper", "pool", "even", "default") if name != chosen)]
    if asked.question == "pool":
        order = [name for name in order if name not in ("paper", "pool") or name == chosen]
    labels = NAMES | {chosen: "This design" if chosen == "default" else f"This design ({NAMES[chosen]})"}
    order = [name for name in order if name in preview.widths]
    return {
        "found": preview,
        "budget": preview.budgets[place],
        "rows": [
            {
                "design": labels[name],
                "half_width": _plus_or_minus(preview.widths[name][place]),
                "corrected": _plus_or_minus(preview.corrected_by_design.get(name)),
                "same_width": _round_up(preview.same_width.get(name)),
            }
            for name in order
        ],
        "half_width": _plus_or_minus(width),
        "corrected": outlook_sentence(preview.corrected) if width is not None and preview.corrected else "",
        "floor": floor_sentence(*preview.floor) if width is not None else "",
        "is_assumed": preview.corrected.get("is_assumed", False),
        "by_audit": _plus_or_minus(preview.audit_half_width) if width is not None else "",
        "other_designs": _other_designs(preview, asked) if chosen == "default" and width else "",
        "n_topics": preview.n_topics and round(preview.n_topics),
        "is_default": chosen == "default",
        "has_gaps": any(width is None for name in order for width in preview.widths[name]),
        "curve": _curve(preview, _lines(preview, order, labels), preview.budgets[place]),
        "n_new": max(0, round(budget - preview.already)),
        "n_items": budget,
        "is_everything": asked.budget >= preview.n_drawable
        and (asked.has_whole_topics or asked.question == "pool" or asked.uniform_share > 0),
        "mixture": mixture_sentence(preview.mixture, budget) if preview.mixture else "",
        "left_out": f"{100 * pool.left_out:.2g} %" if pool and pool.left_out > 0 else "",
    }


def _plus_or_minus(width: float | None) -> str:
    """Return a half-width to read: three decimals, or more where these would hide it.

    >>> [_plus_or_minus(width) for width in (0.02134, 0.00063, 0.0, None)]
    ['0.021', '0.00063', '0', '']
    """
    if width is None:
        return ""
    return f"{width:.3f}" if width >= 0.01 else f"{width:.5f}".rstrip("0").rstrip(".")


def _round_up(number: float | None) -> int | None:
    return None if number is None else math.ceil(number)


def _other_designs(preview: Preview, asked: Design) -> str:
    """Return what the same interval would cost under other designs, in a sentence."""
    others = [name for name in ("paper", "naive") if not (asked.question == "pool" and name == "paper")]
    if asked.has_whole_topics:
        others = []
    known = [(name, _round_up(preview.same_width.get(name))) for name in others]
    reached = [f"{intcomma(n)} {PHRASES[name]}" for name, n in known if n]
    never = [PHRASES[name] for name, n in known if not n]
    words = []
    if reached:
        words.append(
            f"Instead of {intcomma(asked.budget)} items, the same half-width by the drawing alone would take "
            f"about {' and '.join(reached)}."
        )
    if never:
        words.append(f"It is not reached {' or '.join(never)}, with any number of items.")
    return " ".join(words)


def _out_of_reach(asked: Design) -> str:
    if asked.selection_kind.with_replacement:
        return (
            "drawing with replacement does not reach so many different items here: enter a smaller number, or choose "
            "a selection that draws each document independently"
        )
    return "some documents that affect the question have probability 0 in this design: choose another method"


def _lines(preview: Preview, order: list[str], labels: dict[str, str]) -> dict[str, list[float | None]]:
    """Return the drawing alone of every design, and the corrected number of this one where it is forecast."""
    lines = {labels[name]: preview.widths[name] for name in order}
    if preview.corrected_widths:
        lines["Corrected number"] = preview.corrected_widths
    return lines


def _curve(preview: Preview, lines: dict[str, list[float | None]], chosen: int) -> Chart | None:
    """Return the picture of the lines that have two points at least; the table has the others."""
    mine = next(iter(lines))
    shown = {name: line for name, line in lines.items() if sum(width is not None for width in line) >= 2}
    if not shown:
        return None
    marked = chosen if mine in shown else None
    return curve(preview.budgets, shown, "Expected half-width by budget", chosen=marked)
