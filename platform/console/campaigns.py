"""The campaign that an address names, for pages and API. Who may see it is asked before, in judging.services.access."""

import uuid

from django.shortcuts import get_object_or_404

from judging.models import Campaign


def campaign_of(campaign_id: uuid.UUID) -> Campaign:
    return get_object_or_404(Campaign.objects.select_related("collection", "scale"), pk=campaign_id)


def drawn_campaign(campaign_id: uuid.UUID) -> Campaign:
    """Return a campaign that was drawn; of any other there are no numbers, and nothing to find here."""
    drawn = Campaign.objects.select_related("collection", "scale").filter(draws__batch=1)
    return get_object_or_404(drawn, pk=campaign_id)
