"""What an event is about: the campaign and collection it happened in, its full keys, and who may know of it."""

from dataclasses import dataclass, field
from typing import Any

from django.apps import apps
from django.core.exceptions import ValidationError

from judging.models import Campaign, Collection
from touchstone.event_details import details_with_names
from touchstone.models import ApiToken, Event, User, Webhook

OURS = ("touchstone", "judging", "sampling", "analytics")
# By what people and files name a row, beside its number here.
NATURAL_KEYS = ("run_id", "topic_id", "doc_id", "version", "batch", "sequence", "tier", "name", "title")
# What researchers read about on their own pages; who was invited, suspended or paid is the managers'.
OF_RESEARCHERS = frozenset(
    {
        "created",
        "opened",
        "closed",
        "deleted",
        "restored",
        "drawn",
        "audited",
        "released",
        "withdrew a release",
        "published a release",
        "unpublished a release",
        "erased who judged",
    }
    | {"imported topics", "imported documents", "imported runs", "imported scores", "asked for a release"}
    | {"answered what every comparison assumes"}
)


@dataclass(frozen=True)
class Subject:
    """One event's subject. `owner`: it is this person's own, and nobody else's to know."""

    kind: str
    id: str
    keys: dict[str, Any] = field(default_factory=dict)
    campaign: Campaign | None = None
    collection: Collection | None = None
    owner: int | None = None

    def as_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "id": self.id, **self.keys}

    def campaign_json(self) -> dict[str, str] | None:
        return {"id": str(self.campaign.pk), "name": self.campaign.name} if self.campaign else None

    def collection_json(self) -> dict[str, str] | None:
        return {"id": str(self.collection.pk), "name": self.collection.name} if self.collection else None


def subject_of(event: Event) -> Subject:
    kind, _, key = event.subject.partition(":")
    model = _models().get(kind)
    row = _row(model, key) if model is not None else None
    if row is None:
        return Subject(kind, key)
    if isinstance(row, ApiToken | Webhook):
        return Subject(kind, key, owner=row.user_id)
    if isinstance(row, User):
        return Subject(kind, key, {"username": row.get_username()}, owner=row.pk)
    campaign, collection = _place(row)
    return Subject(kind, key, _keys(row), campaign, collection)


def _models() -> dict[str, Any]:
    return {
        str(model._meta.model_name): model
        for label in OURS
        for model in apps.get_app_config(label).get_models()
    }


def _row(model: Any, key: str) -> Any:
    try:
        return model._default_manager.filter(pk=key).first()
    except (ValueError, ValidationError):
        return None


def _place(row: Any) -> tuple[Campaign | None, Collection | None]:
    """Return where the row belongs, by what it points to."""
    if isinstance(row, Collection):
        return None, row
    if isinstance(row, Campaign):
        return row, row.collection
    for name in ("campaign", "assessor", "item", "release", "collection"):
        above = getattr(row, name, None)
        if above is not None and hasattr(above, "_meta"):
            return _place(above)
    return None, None


def _keys(row: Any) -> dict[str, Any]:
    keys = {
        name: getattr(row, name) for name in NATURAL_KEYS if isinstance(getattr(row, name, None), str | int)
    }
    user = getattr(row, "user", None)
    if isinstance(user, User):
        keys["username"] = user.get_username()
    return keys


def may_know(user: User, event: Event, subject: Subject) -> bool:
    """Whether a person may know of the event. That something was deleted is known to who could see it before."""
    if subject.owner is not None:
        return subject.owner == user.pk
    if subject.collection is None or not user.is_active or not user.may_research:
        return False
    # A lease that is taken back is "released" too, and names its holder.
    if not user.may_manage and (event.verb not in OF_RESEARCHERS or "assessor" in event.detail):
        return False
    return Collection.objects.open_to(user).filter(pk=subject.collection.pk).exists()


def event_json(event: Event, subject: Subject) -> dict[str, Any]:
    """Return the event with the full keys of what it is about: what was deleted cannot be looked up later."""
    return {
        "id": event.pk,
        "at": event.at.isoformat(),
        "verb": event.verb,
        "actor": event.actor.get_username() if event.actor else None,
        "subject": subject.as_json(),
        "campaign": subject.campaign_json(),
        "collection": subject.collection_json(),
        "detail": details_with_names([event])[0],
    }
