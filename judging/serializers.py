"""What the judging screen sends, checked before a service sees it; and what it gets."""

from typing import Any

from rest_framework import serializers

from judging.models import Assessor, Document, Judgment, Slot, Topic

HOUR = 3_600_000


class Submission(serializers.Serializer):
    client_token = serializers.UUIDField()
    token = serializers.UUIDField()
    grade = serializers.IntegerField(min_value=-128, max_value=127)
    active_milliseconds = serializers.IntegerField(min_value=0, max_value=24 * HOUR, default=0)


def topic_json(topic: Topic) -> dict[str, str]:
    return {"title": topic.title, "description": topic.description, "narrative": topic.narrative}


def document_json(document: Document, frame_url: str) -> dict[str, str]:
    return {"title": document.title or document.doc_id, "frame_url": frame_url}


def item_json(slot: Slot, frame_url: str, lease_seconds: int) -> dict[str, Any]:
    return {
        "token": str(slot.token),
        "topic": topic_json(slot.item.topic),
        "document": document_json(slot.item.document, frame_url),
        "lease_seconds": lease_seconds,
    }


def saved_json(judgment: Judgment) -> dict[str, Any]:
    return {"token": str(judgment.lease_token), "grade": judgment.grade}


def progress_json(assessor: Assessor) -> dict[str, Any]:
    return {"judged": assessor.n_judged, "goal": None}
