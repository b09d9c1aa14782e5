"""Campaigns as commands name them."""

import uuid

from django.core.management.base import CommandError

from judging.models import Campaign


def campaign_named(wanted: str) -> Campaign:
    """Return the campaign of that name or id; CommandError where there is none."""
    found = Campaign.objects.filter(name=wanted, deleted_at=None).first()
    if found is None:
        try:
            found = Campaign.objects.filter(pk=uuid.UUID(wanted), deleted_at=None).first()
        except ValueError:
            found = None
    if found is None:
        raise CommandError(f"there is no campaign {wanted!r}")
    return found
