"""An import that was kept is replaced by another one: taken back, and the other kept, both or nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.core.files.storage import default_storage
from django.db import transaction

from judging.models import Import
from judging.services.errors import ImportRefused, NotFound, Refused
from judging.services.imports import lock_import
from judging.services.keeping import counts_of, keep
from judging.services.looking import LOOK, REPLACE, choose, enqueue, take_in_left_out
from judging.services.sources import Progress
from touchstone.jobs import Context, JobRefused
from touchstone.ledger.take_back import take_back
from touchstone.models import User, record

GONE = (
    "the uploaded files of this import are no longer stored: upload them again, and replace it by that import"
)
OF_THE_LOOK = ("name", "upload", "path", "n_bytes", "sha256", "kind", "options", "reading", "file_format")


def read_again(*, made: Import, actor: User, looks: bool = True) -> Import:
    """Return a new import of the same stored files, which brought nothing yet and may replace the kept one.

    Raises
    ------
    ImportRefused
        If the files are not stored any more, or never were.
    """
    if not actor.may_manage:
        raise NotFound
    with transaction.atomic():
        row = lock_import(made, Import.State.KEPT)
        stored = [entry for entry in row.files if entry.get("path")]
        if not stored or not all(default_storage.exists(entry["path"]) for entry in stored):
            raise ImportRefused(GONE)
        again = Import.objects.create(
            collection=row.collection,
            campaign=row.campaign,
            kind=row.kind,
            files=[{name: entry[name] for name in OF_THE_LOOK if name in entry} for entry in stored],
            options={"replaces": str(row.pk)},
            user=actor,
        )
        if looks:
            enqueue(LOOK, again, actor)
    return again


def queue_replace(
    *,
    made: Import,
    actor: User,
    other: Import | None = None,
    files: Sequence[Mapping[str, Any]] | None = None,
    why: str = "",
) -> Import:
    """Queue that the other import takes the place of a kept one; return the other.

    Parameters
    ----------
    other:
        An import of the same collection that was looked at. Without it the stored files of `made` are read again.
    files:
        Choices for some of the files, each with its name, as for `keep`.
    """
    with transaction.atomic():
        lock_import(made, Import.State.KEPT)
        if other is None:
            other = read_again(made=made, actor=actor, looks=False)
        row = lock_import(other, Import.State.LOOKED_AT)
        if row.collection_id != made.collection_id:
            raise NotFound
        row.options = {"replaces": str(made.pk)}
        take_in_left_out(row)
        choose(row, {str(one["name"]): one for one in files or ()})
        row.save(update_fields=["files", "options"])
        enqueue(REPLACE, row, actor, why=why)
    return row


def replace_import(
    *, made: Import, by: Import, why: str, actor: User, progress: Progress | None = None
) -> Import:
    """Take an import back and keep the other one in its place, in one transaction; return the other one.

    Raises
    ------
    ImportInUse
        With a sentence that names what rests on the import.
    ImportRefused
        If a file cannot be imported as it is; then nothing is taken back.
    """
    if by.collection_id != made.collection_id:
        raise NotFound
    why = why.strip() or f"replaced by the import {by.pk}"
    with transaction.atomic():
        before = counts_of(made.collection)
        take_back(made=made, why=why, actor=actor)
        kept = keep(by, actor=actor, progress=progress, before=before)
        told = {"import": str(made.pk), "by": str(kept.pk), "why": why}
        record("replaced an import", made.collection, actor=actor, **told)
    return kept


def replace_by_job(context: Context) -> None:
    """Do what `queue_replace` has queued: all of it, or nothing."""
    by = Import.objects.select_related("collection").get(pk=context.payload["import"])
    made = Import.objects.select_related("collection", "campaign").get(pk=by.options["replaces"])
    actor = context.job.requested_by
    try:
        if actor is None:
            raise NotFound
        kept = replace_import(
            made=made, by=by, why=context.payload["why"], actor=actor, progress=context.progress
        )
    except Refused as refusal:
        raise JobRefused(f"{str(refusal) or refusal.title}") from refusal
    context.note = "replaced"
    context.result = {"import": str(kept.pk), "before": kept.report["before"], "after": kept.report["after"]}
