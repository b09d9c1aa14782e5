"""The doors for people whom a crowd market sends, and the page with the code at the end of their work.

Nothing is made by looking: an account appears only when somebody presses the button (POST), so that a market's link
checker makes none. Names of the market travel in addresses, as markets do it; they are stored in Participant alone.
"""

import uuid
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.safestring import mark_safe
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from judging.guidelines import guidelines_html
from judging.models import Campaign
from judging.services import assign, crowd
from judging.services.crowd import Visitor
from judging.services.entry import next_gate
from judging.services.errors import CampaignNotOpen, EntryParametersUnclear, NoPlaceLeft, Refused
from judging.services.refusal_texts import TEXTS, texts_of

NOT_ACCEPTED_YET = "ASSIGNMENT_ID_NOT_AVAILABLE"
START_SECONDS = 12 * 3600  # as long as a worker may leave the market's page open before starting
# What is to be done about a refusal, for somebody who knows nothing of campaigns.
ADVICE: dict[type[Refused], Any] = {
    CampaignNotOpen: _(
        "It has not opened yet, or it is finished. Please return the task on the market, so that nobody waits for "
        "you. Nothing was stored about you."
    ),
    NoPlaceLeft: _(
        "Every document has been judged or is being judged right now. Please return the task on the market. Nothing "
        "was stored about you."
    ),
    EntryParametersUnclear: _(
        "Please open the task once more from the market's page. If you see this page again, tell whoever published "
        "the task. Nothing was stored."
    ),
}


@require_safe
@login_not_required
def hit(request: HttpRequest, entry_key: uuid.UUID) -> HttpResponse:
    """The page that the market shows in its frame: a preview, or the way to the judging and the form that submits."""
    campaign = _campaign(entry_key, Campaign.Entry.HIT)
    context: dict[str, Any] = {
        "campaign": campaign,
        "guidelines": mark_safe(guidelines_html(campaign.guidelines)),  # noqa: S308 (sanitised)
    }
    asked = request.GET
    status = 200
    if asked.get("assignmentId") != NOT_ACCEPTED_YET:
        try:
            context |= _hit_context(campaign, asked)
        except (CampaignNotOpen, NoPlaceLeft, EntryParametersUnclear) as refusal:
            context |= _texts(refusal)
            status = refusal.status
    return _allow_framing(
        render(request, "judging/hit.html", context, status=status), crowd.market_origins(campaign)
    )


def _hit_context(campaign: Campaign, asked: Any) -> dict[str, Any]:
    """Return what the page needs once a worker has accepted the HIT."""
    visitor = crowd.visitor(
        participant=asked.get("workerId", ""),
        study=asked.get("hitId", ""),
        session=asked.get("assignmentId", ""),
    )
    # Compared as text with the sites the manager named: an address that only looks like one of them is another text.
    submit_to = asked.get("turkSubmitTo", "").removesuffix("/")
    if submit_to not in crowd.market_origins(campaign):
        raise EntryParametersUnclear(
            gettext("The link does not lead back to the market that this campaign works with.")
        )
    crowd.check_entry(campaign=campaign, visitor=visitor)
    signed = signing.dumps(
        [visitor.participant, visitor.study, visitor.session], salt=_salt(campaign), compress=True
    )
    start = reverse("judging:hit-start", args=[campaign.entry_key])
    return {
        "start_url": f"{start}?{urlencode({'visitor': signed})}",
        "submit_url": f"{submit_to}/mturk/externalSubmit",
        "assignment": visitor.session,
    }


def _allow_framing(response: HttpResponse, origins: list[str]) -> HttpResponse:
    """Let the campaign's market, and nobody else, show this page in a frame and receive its form."""
    sites = " ".join(origins) or "'none'"
    response.headers["Content-Security-Policy"] = (
        f"default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; "
        f"form-action {sites}; frame-ancestors {sites}"
    )
    response.xframe_options_exempt = True
    return _without_names(response)


def _without_names(response: HttpResponse) -> HttpResponse:
    """Keep the market's names, which stand in this page's address, out of the Referer and of caches.

    Not "no-referrer": browsers then send no Origin either, and our own forms would be refused.
    """
    response.headers["Referrer-Policy"] = "strict-origin"
    response.headers["Cache-Control"] = "no-store"
    return response


@login_not_required
def hit_start(request: HttpRequest, entry_key: uuid.UUID) -> HttpResponse:
    """What the frame's button opens in a tab of its own, where cookies work."""
    campaign = _campaign(entry_key, Campaign.Entry.HIT)
    signed = (request.POST if request.method == "POST" else request.GET).get("visitor", "")
    try:
        names = signing.loads(signed, salt=_salt(campaign), max_age=START_SECONDS)
    except signing.BadSignature:
        return _refusal_page(request, EntryParametersUnclear(gettext("The link has expired or was changed.")))
    return _confirm(request, campaign, Visitor(*names), {"visitor": signed})


@login_not_required
def study(request: HttpRequest, entry_key: uuid.UUID) -> HttpResponse:
    """The link of a study: who, in which study, in which session, asked to press a button."""
    campaign = _campaign(entry_key, Campaign.Entry.STUDY)
    try:
        visitor = crowd.study_visitor(request.POST if request.method == "POST" else request.GET)
    except EntryParametersUnclear as refusal:
        return _refusal_page(request, refusal)
    fields = {"participant": visitor.participant, "study": visitor.study, "session": visitor.session}
    return _confirm(request, campaign, visitor, fields)


def _confirm(
    request: HttpRequest, campaign: Campaign, visitor: Visitor, fields: dict[str, str]
) -> HttpResponse:
    """Ask for the button; when it was pressed, let the visitor in. Nobody who is logged in is switched silently."""
    try:
        known = crowd.check_entry(campaign=campaign, visitor=visitor)
    except (CampaignNotOpen, NoPlaceLeft) as refusal:
        return _refusal_page(request, refusal)
    user = request.user
    if user.is_authenticated and (known is None or known.assessor.user_id != user.pk):
        context = {"campaign": campaign, "next": f"{request.path}?{urlencode(fields)}"}
        return _without_names(render(request, "judging/entry_other_user.html", context, status=409))
    if request.method != "POST":
        context = {"campaign": campaign, "fields": fields, "known": known}
        return _without_names(render(request, "judging/study.html", context))
    assessor = crowd.enter(campaign=campaign, visitor=visitor)
    login(request, assessor.user)
    is_open = campaign.state == Campaign.State.OPEN
    page = (next_gate(assessor) or "judging:judge") if is_open else "judging:complete"
    return redirect(page, campaign_id=campaign.pk)


@require_safe
def complete(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """The end of the work: the code for the market, or how much is left to do."""
    assessor = assign.assessor_of(user=request.user, campaign_id=campaign_id)
    found = crowd.completion(assessor=assessor)
    context = {
        "campaign": assessor.campaign,
        "completion": found,
        "refusal": TEXTS.get(found.refusal),
        "is_hit": assessor.campaign.entry == Campaign.Entry.HIT,
        "back_url": found.url if found.url.startswith("https://") else "",
    }
    return _without_names(render(request, "judging/complete.html", context))


def _campaign(entry_key: uuid.UUID, entry: str) -> Campaign:
    there = Campaign.objects.filter(deleted_at=None, collection__deleted_at=None).select_related("collection")
    return get_object_or_404(there, entry_key=entry_key, entry=entry)


def _salt(campaign: Campaign) -> str:
    return f"judging.hit.{campaign.entry_key}"


def _refusal_page(request: HttpRequest, refusal: Refused) -> HttpResponse:
    return _without_names(
        render(request, "judging/entry_refused.html", _texts(refusal), status=refusal.status)
    )


def _texts(refusal: Refused) -> dict[str, Any]:
    """Return what happened and what to do, in the reader's language; a detail says which part of a link is wrong."""
    title, _advice = texts_of(refusal)
    return {"title": title, "detail": str(refusal), "advice": ADVICE[type(refusal)]}
