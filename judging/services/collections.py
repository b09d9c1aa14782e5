"""Making collections, and changing what is said about them and their runs. What was imported never changes."""

from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from judging.models import Collection, Run
from judging.services.deletion import locked_collection
from judging.services.errors import CorrectionRefused, NameTaken, NotFound
from touchstone.models import User, record

LONGEST_WHY = 2000  # characters


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


def set_run_aside(*, run: Run, why: str, actor: User) -> None:
    """Take a run out of later pools, comparisons and releases; what was drawn, computed and released stays.

    Its tag is free for another run. Twice is once.
    """
    if not actor.may_manage:
        raise NotFound
    if not why.strip() or len(why) > LONGEST_WHY:
        raise CorrectionRefused(f"say why, in 1 to {LONGEST_WHY:,} characters")
    with locked_collection(run.collection, actor) as row:
        found = Run.everything.filter(pk=run.pk, set_aside_at=None)
        if found.update(set_aside_at=Now(), set_aside_why=why.strip()):
            record("set a run aside", row, actor=actor, run=run.run_id, why=why.strip())


def take_run_in(*, run: Run, actor: User) -> None:
    """Let a run that was set aside be pooled and compared again; refused if another one has its tag now."""
    if not actor.may_manage:
        raise NotFound
    with locked_collection(run.collection, actor) as row:
        found = Run.everything.filter(pk=run.pk, set_aside_at__isnull=False)
        try:
            with transaction.atomic():
                is_back = found.update(set_aside_at=None, set_aside_why="")
        except IntegrityError as error:
            raise NameTaken from error
        if is_back:
            record("took a run in again", row, actor=actor, run=run.run_id)


def really_changed(row: Any, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields whose value is another now, so that nobody's other change is written over."""
    return {name: value for name, value in changes.items() if getattr(row, name) != value}
