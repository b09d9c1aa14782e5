"""May a run be scored with a campaign's judgments? The page for researchers, and its button for managers."""

import json
import uuid
from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_GET, require_POST

from analytics.estimation.outside import Standing
from analytics.services.outside import OutsideWorth
from analytics.services.recomputation import measures_of
from analytics.services.reuse import Answer, ReuseQuestion, ReuseRefused, answer
from analytics.services.top_up import TopUpAnswer, design_of, lacking_for
from console.api.serializers.analyses import ReuseDraw, ReuseRequest
from console.campaigns import drawn_campaign
from console.manager.design import what_stops
from judging.models import Campaign
from judging.services.access import managers_only, researchers_only
from sampling.frames import FrameRefused, newest_draw
from sampling.measures.registry import sums_among
from sampling.outlook import outlook_sentence
from sampling.services.queueing import DrawRunning, queue_draw
from touchstone.models import user_of
from touchstone.replica import from_replica

FIELDS = ("run", "against", "measure", "half_width")


@require_GET
@researchers_only
@from_replica
def reuse(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """What the judgments say of the run that is asked about, and what it lacks."""
    row = drawn_campaign(campaign_id)
    given = {name: request.GET.get(name, "").strip() for name in FIELDS}
    context: dict[str, Any] = {
        "campaign": row,
        "draw": newest_draw(row),
        "given": given,
        "runs": row.collection.runs.all(),
        "measures": sums_among(measures_of(row)),
    }
    if given["run"]:
        sent = ReuseRequest(data=_not_empty(given), context={"campaign": row})
        if sent.is_valid():
            context |= _reuse_context(row, sent.validated_data, request.user)
        else:
            context["errors"] = {name: found[0] for name, found in sent.errors.items()}
    return render(
        request, "console/researcher/reuse.html", context, status=400 if "errors" in context else 200
    )


def _reuse_context(row: Campaign, sent: Mapping[str, Any], user: Any) -> dict[str, Any]:
    asked = sent["asked"]
    try:
        reuse = answer(campaign=row, asked=asked)
    except (ReuseRefused, FrameRefused) as refusal:
        return {"asked": asked, "refusal": str(refusal)}
    target, top_up = lacking_for(
        campaign=row, asked=asked, said=reuse, half_width=sent["half_width"], user=user
    )
    design = top_up.lacking.design if top_up.lacking else None
    return {
        "asked": asked,
        "answer": reuse,
        "verdict": verdict(asked, reuse),
        "wanted": target,
        "wanted_is_usual": sent["half_width"] is None,
        "found": top_up,
        "shown": _reuse_numbers(reuse, target, top_up),
        "design": json.dumps(design.parameters(), indent=2) if design else "",
        "obstacle": what_stops(row, newest_draw(row)) if design else {},
    }


def verdict(asked: ReuseQuestion, reuse: Answer) -> str:
    """Return the answer in a sentence or two."""
    what = f"{asked.run} minus {asked.against} in" if asked.against else f"{asked.run} in"
    what = f"{what} {asked.measure}"
    if reuse.outside is not None:
        return f"{_outside_verdict(what, reuse.n_outside, reuse.outside)}{_likely(reuse.outside)}"
    if reuse.too_few:
        return f"Not with these judgments alone: of the documents that affect {what}, {reuse.too_few}."
    if not reuse.half_width:
        sure = "every document that affects it was drawn with probability 1"
    else:
        width = _digits(reuse.half_width)
        half = f"a half-width of about ± {width}"
        sure = f"every document that affects it could be drawn; by the drawing alone expect {half}"
    if reuse.n_judged == reuse.n_drawn:
        return f"Yes, {what}: {sure}."
    return f"Yes, {what}, once its {reuse.n_drawn:,} drawn items are judged ({reuse.n_judged:,} are): {sure}."


def _outside_verdict(what: str, n_documents: int, worth: OutsideWorth) -> str:
    """Return whether the number can be reported although some documents could not be judged."""
    documents = "1 document" if n_documents == 1 else f"{n_documents:,} documents"
    moves = f"{documents} that could not be judged may move it by {_reach(worth.above, worth.below)}"
    if worth.half_width is None:
        return f"Not yet, {what}: {moves}."
    half = f"the half-width of {_digits(worth.half_width)}"
    held = {
        Standing.YES: f", at most a tenth of {half}",
        Standing.WIDER: f", at most {half}, and the interval includes that",
        Standing.NOT_YET: f", more than {half}",
    }[Standing[worth.standing.upper()]]
    return f"{worth.words.capitalize()}: {what} – {moves}{held}."


def _reach(above: float, below: float) -> str:
    """Return how far a number may move, up and down.

    >>> _reach(0.05, 0.0), _reach(0.05, 0.2)
    ('up to +0.050', 'between −0.200 and +0.050')
    """
    return f"between −{_digits(below)} and +{_digits(above)}" if below else f"up to +{_digits(above)}"


def _likely(worth: OutsideWorth) -> str:
    """Return what is likely, as a sentence; empty where nothing is known."""
    if worth.expected_above is None or worth.expected_below is None:
        return ""
    expected = _reach(worth.expected_above, worth.expected_below).removeprefix("up to ")
    cautious = _reach(worth.cautious_above or 0.0, worth.cautious_below or 0.0).removeprefix("up to ")
    return (
        f" If they are relevant as often as what single pooled runs brought in alone, expect {expected}; as often as "
        f"at the most fruitful of these runs, {cautious}. Neither is a guarantee."
    )


def _reuse_numbers(reuse: Answer, target: float | None, top_up: TopUpAnswer) -> dict[str, Any]:
    """Return the numbers to read."""
    made = top_up.lacking
    now = reuse.half_width_now if reuse.half_width_now != reuse.half_width else None
    return {
        "outside": _percent(reuse.share_outside),
        "expected": f"{reuse.expected_judgments:,.0f}",
        "effective": f"{reuse.effective_judgments:,.0f}",
        "half_width": _digits(reuse.outside.half_width if reuse.outside else reuse.half_width),
        "half_width_now": _digits(now),
        "corrected": outlook_sentence(reuse.corrected),
        **_corrected_numbers(reuse.corrected),
        "variance": "" if reuse.relative_variance is None else f"{reuse.relative_variance:.2g}",
        "wanted": _digits(target),
        "n_new": max(1, round(made.n_new)) if made else 0,
        "judgments": f"{max(1, round(made.judgments)):,}" if made else "",
        "after": _digits(made.half_width_after or None) if made else "",
        "corrected_after": outlook_sentence(made.corrected) if made and made.corrected else "",
    }


def _corrected_numbers(corrected: Mapping[str, Any]) -> dict[str, str]:
    """Return the half-width that is expected of the reported number for the default claim, and for these topics."""
    if corrected["half_width"] is None:
        return {"corrected_width": "", "corrected_note": "none is expected: see above"}
    like = corrected["topics_like_these"]
    these = _digits(corrected["half_width"])
    if like is None:
        return {"corrected_width": these, "corrected_note": "for these topics, assessors’ errors included"}
    return {
        "corrected_width": _digits(like["half_width"]),
        "corrected_note": f"for topics like these; ± {these} for these topics",
    }


def _digits(width: float | None) -> str:
    """Return a half-width to read: three decimals, or two digits where these would hide it.

    >>> _digits(0.02134), _digits(0.00063), _digits(0.0), _digits(None)
    ('0.021', '0.00063', '0', '')
    """
    if width is None:
        return ""
    return f"{width:.3f}" if width >= 0.01 else f"{width:.2g}"


def _percent(share: float) -> str:
    """Return a share to read; a small one is never shown as none.

    >>> _percent(0.0), _percent(0.123), _percent(0.0001)
    ('0 %', '12 %', 'less than 0.1 %')
    """
    if 0 < share < 0.001:
        return "less than 0.1 %"
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"


@require_POST
@managers_only
def draw(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Draw the top-up that was shown."""
    row = drawn_campaign(campaign_id)
    sent = ReuseDraw(
        data=_not_empty({name: request.POST.get(name, "") for name in (*FIELDS, "budget")}),
        context={"campaign": row},
    )
    if not sent.is_valid():
        raise BadRequest(str(sent.errors))
    given = {name: request.POST.get(name, "") for name in FIELDS if request.POST.get(name)}
    back = f"{reverse('console:reuse', args=[row.pk])}?{urlencode(given)}"
    try:
        design = design_of(row, sent.validated_data["asked"], sent.validated_data["budget"])
        job = queue_draw(campaign=row, design=design, seed=None, user=user_of(request))
    except (ReuseRefused, DrawRunning) as refusal:
        messages.error(request, f"{refusal.title}: {refusal}.")
        return redirect(back)
    return redirect(f"{reverse('job', args=[job.pk])}?{urlencode({'back': back})}")


def _not_empty(given: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in given.items() if value}
