"""What the judging screen sends, checked before a service sees it; and what it gets."""

import functools
import uuid
from typing import Any

from django.urls import reverse
from rest_framework import serializers

from judging.models import Campaign, Judgment, Topic
from judging.serializers.strict import Token
from judging.services.assign import AHEAD, MOST_AHEAD
from judging.services.claims import Claim, LeasedItem
from judging.services.item_frame import title_of

HOUR = 3_600_000
_NOBODY = str(uuid.UUID(int=0))


class ClaimRequest(serializers.Serializer[Any]):
    n = serializers.IntegerField(min_value=1, max_value=MOST_AHEAD, default=AHEAD)
    with_text = serializers.BooleanField(default=False)


class Submission(serializers.Serializer[Any]):
    client_token = Token()
    token = Token()
    grade = serializers.IntegerField(min_value=-128, max_value=127, allow_null=True, default=None)
    obstacle = serializers.ChoiceField(Judgment.Obstacle.choices, allow_blank=True, default="")
    comment = serializers.CharField(max_length=2000, allow_blank=True, default="")
    active_milliseconds = serializers.IntegerField(min_value=0, max_value=24 * HOUR, default=0)


class SubmissionAndClaim(Submission):
    """One request a judgment: the answer brings up to n items to judge next."""

    n = serializers.IntegerField(min_value=1, max_value=MOST_AHEAD, default=AHEAD)


class Heartbeat(serializers.Serializer[Any]):
    tokens = serializers.ListField(child=Token(), max_length=MOST_AHEAD)


def frame_url(token: Any) -> str:
    return _frame_pattern().replace(_NOBODY, str(token))


@functools.cache
def _frame_pattern() -> str:
    """Return the address of no frame: to look an address up for each item would take longer than to find the item."""
    return reverse("judging:frame", args=[_NOBODY])


def claim_json(claimed: Claim) -> dict[str, Any]:
    return {
        "items": [item_json(held, claimed) for held in claimed.items],
        "reason": claimed.reason,
        "progress": {"judged": claimed.n_judged, "goal": claimed.quota},
    }


def item_json(held: LeasedItem, claimed: Claim) -> dict[str, Any]:
    return {
        "token": str(held.token),
        "topic": {
            "title": held.topic_title,
            "description": held.topic_description,
            "narrative": held.topic_narrative,
        },
        "document": {"title": claimed.title_of(held), "frame_url": frame_url(held.token)},
        "lease_seconds": claimed.lease_seconds,
    }


def topic_json(topic: Topic) -> dict[str, str]:
    return {"title": topic.title, "description": topic.description, "narrative": topic.narrative}


def judged_json(judgment: Judgment, campaign: Campaign) -> dict[str, Any]:
    """Return a judgment with what was judged. The document's own id stays here: it would help to look grades up."""
    title = title_of(judgment.item, campaign)
    return {
        **saved_json(judgment),
        "comment": judgment.comment,
        "topic": topic_json(judgment.item.topic),
        "document": {"title": title, "frame_url": frame_url(judgment.lease_token)},
    }


def saved_json(judgment: Judgment) -> dict[str, Any]:
    return {"token": str(judgment.lease_token), "grade": judgment.grade, "obstacle": judgment.obstacle}
