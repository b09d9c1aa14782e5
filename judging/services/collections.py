"""Making collections, and changing what is said about them and their runs. What was imported never changes."""

from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, transaction

from judging.models import Collection, Run
from judging.services.errors import NameTaken
from touchstone.models import User, record


def create_collection(*, name: str, user: User | None, **fields: Any) -> Collection:
    try:
        with transaction.atomic():
            made = Collection.objects.create(name=name, **fields)
            record("created", made, actor=user, name=name)
    except IntegrityError as error:
        raise NameTaken from error
    return made


def change_collection(*, collection: Collection, changes: Mapping[str, Any], actor: User | None) -> None:
    """Set the fields that really differ; the event names them."""
    changed = really_changed(collection, changes)
    if not changed:
        return
    try:
        with transaction.atomic():
            Collection.objects.filter(pk=collection.pk).update(**changed)
            record("changed", collection, actor=actor, fields=sorted(changed))
    except IntegrityError as error:
        raise NameTaken from error


def change_run(*, run: Run, changes: Mapping[str, Any], actor: User | None) -> None:
    """Describe a run, or say whether releases may carry it."""
    changed = really_changed(run, changes)
    if changed:
        with transaction.atomic():
            Run.objects.filter(pk=run.pk).update(**changed)
            record("changed a run", run.collection, actor=actor, run=run.run_id, fields=sorted(changed))


def really_changed(row: Any, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields whose value is another now, so that nobody's other change is written over."""
    return {name: value for name, value in changes.items() if getattr(row, name) != value}
