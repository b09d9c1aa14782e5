"""The campaign that an address names, for pages and API. Who may see it is asked before, in judging.services.access."""

import uuid
from typing import Any

from django.db.models import TextField, Value
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce
from django.shortcuts import get_object_or_404

from judging.models import Campaign


def campaign_of(campaign_id: uuid.UUID) -> Campaign:
    return get_object_or_404(Campaign.objects.select_related("collection", "scale"), pk=campaign_id)


def drawn_campaign(campaign_id: uuid.UUID, *together: str, **columns: Any) -> Campaign:
    """Return a campaign that was drawn; of any other there are no numbers, and nothing to find here.

    It knows its `topic_selection`, so that nothing more is asked for the usual claim, and `columns` besides. Rows that
    are read `together` with it are not asked for again.
    """
    drawn = Campaign.objects.select_related("collection", "scale").filter(draws__batch=1)
    known = drawn.annotate(topic_selection=first_topic_selection(), **columns)
    return get_object_or_404(known.prefetch_related(*together), pk=campaign_id)


def first_topic_selection() -> Coalesce:
    """Return how topics were chosen, where campaigns are filtered by their first batch; empty in older draws."""
    return Coalesce(
        KeyTextTransform("topic_selection", "draws__parameters"), Value(""), output_field=TextField()
    )
