"""Campaigns as commands name them."""

import uuid

from django.core.management.base import CommandError

from judging.models import Campaign


def campaign_named(name: str) -> Campaign:
    """Return the campaign of that name or id; CommandError where there is none."""
    campaign = Campaign.objects.filter(name=name, deleted_at=None).first()
    if campaign is None:
        try:
            campaign = Campaign.objects.filter(pk=uuid.UUID(name), deleted_at=None).first()
        except ValueError:
            campaign = None
    if campaign is None:
        raise CommandError(f"there is no campaign {name!r}")
    return campaign
