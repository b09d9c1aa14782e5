"""What helps a campaign whose items cannot be finished, one click each: invitations, and asking again."""

import uuid

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from judging.models import Assessor, Campaign
from judging.services.access import managers_only
from judging.services.asking_again import ask_again
from judging.services.entry import create_invitation
from touchstone.models import user_of

MOST_INVITED = 100
NOTE = "to finish what is stuck"


@require_POST
@managers_only
def invite_newcomers(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Make one link for as many people as are missing, of the tier that the stuck items want."""
    row = get_object_or_404(Campaign.objects.select_related("places_left"), pk=campaign_id)
    found = getattr(row, "places_left", None)
    if found is None or not found.newcomers:
        messages.info(request, "Nobody is missing any more.")
        return redirect("console:campaign", campaign_id=campaign_id)
    n = min(found.newcomers, MOST_INVITED)
    purposes = {one["purpose"] for one in found.stuck}
    made = create_invitation(
        campaign=row, user=user_of(request), tier=_tier(row, purposes), max_uses=n, note=NOTE
    )
    link = request.build_absolute_uri(reverse("judging:join", args=[made.token]))
    people = "One person" if n == 1 else f"{n} people"
    messages.success(request, f"{people} can join by this link within 14 days: {link}")
    return redirect("console:campaign", campaign_id=campaign_id)


def _tier(row: Campaign, purposes: set[str]) -> str:
    """Return the tier of newcomers: where only audits are stuck, that of the audits."""
    if purposes == {"audit"}:
        return Assessor.Tier.GOLD
    if purposes == {"silver"}:
        return Assessor.Tier.SILVER
    has_gold_alone = row.assessors.exists() and not row.assessors.exclude(tier=Assessor.Tier.GOLD).exists()
    return Assessor.Tier.GOLD if has_gold_alone else Assessor.Tier.BRONZE


@require_POST
@managers_only
def ask_to_look_again(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Send a message to everybody who gave a stuck item back."""
    row = get_object_or_404(Campaign, pk=campaign_id)
    n = ask_again(campaign=row, actor=user_of(request))
    if n:
        who = "One assessor was" if n == 1 else f"{n} assessors were"
        messages.success(request, f"{who} asked to look again; their review lists what they gave back.")
    else:
        messages.info(request, "Everybody who could help was asked before, and has not read it yet.")
    return redirect("console:campaign", campaign_id=campaign_id)
