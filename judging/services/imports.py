"""Imports as rows: what was brought names the import, so that it can be taken back."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Model
from django.db.models.functions import Now

from judging.models import Campaign, Collection, Import
from judging.services.errors import ImportStateWrong, NotFound
from judging.services.judgment_formats import JudgmentFile
from touchstone.models import User

TOOK_BACK = "took back an import"  # verb of the event: from then on judgments that it brought do not count

Rows = Mapping[str, Sequence[int]]  # by table the first and the last id


def rows_of(model: type[Model], first: int | None, last: int | None) -> Rows:
    """Return between which ids the rows of a file are, by their table."""
    return {} if first is None or last is None else {model._meta.db_table: (first, last)}


def made_now(
    made: Import | None,
    *,
    collection: Collection,
    kind: str,
    actor: User | None,
    campaign: Campaign | None = None,
) -> Import:
    """Return the import that rows shall name: the one given, else a new one, which is kept at once."""
    if made is not None:
        return made
    return Import.objects.create(
        collection=collection,
        campaign=campaign,
        kind=kind,
        user=actor,
        state=Import.State.KEPT,
        kept_at=Now(),
    )


def add_file(
    made: Import,
    *,
    name: str,
    n_bytes: int,
    sha256: str,
    kind: str,
    counts: Mapping[str, int],
    rows: Rows | None = None,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Note in the import what a file brought: in the entry of its name that brought nothing yet, else in a new one."""
    entry = next((one for one in made.files if one["name"] == name and not one.get("counts")), None)
    if entry is None:
        entry = {"name": name, "path": "", "options": dict(options or {})}
        made.files.append(entry)
    entry |= {"n_bytes": n_bytes, "sha256": sha256, "kind": kind, "counts": dict(counts)}
    entry["rows"] = {table: list(span) for table, span in (rows or {}).items()}
    made.save(update_fields=["files"])


def keep_state(made: Import) -> None:
    """Say that an import that was looked at is kept now; the caller has locked it."""
    made.state = Import.State.KEPT
    Import.objects.filter(pk=made.pk).update(state=made.state, kept_at=Now())


def add_table(made: Import, file: JudgmentFile, kind: str, n: int, rows: Rows) -> None:
    """Note what a file of grades brought: so many gold answers or judgments, and between which ids they are."""
    digest = file.stream.digest.hexdigest()
    add_file(
        made, name=file.name, n_bytes=file.stream.done, sha256=digest, kind=kind, counts={kind: n}, rows=rows
    )


def lock_import(made: Import, *states: str) -> Import:
    """Return the import's row, locked until the transaction ends; refused in any other state than these.

    Raises
    ------
    NotFound
        If there is no such import any more.
    ImportStateWrong
        With the state it is in.
    """
    row = Import.objects.select_for_update(of=["self"]).filter(pk=made.pk).first()
    if row is None:
        raise NotFound
    if row.state not in states:
        raise ImportStateWrong(Import.State(row.state).label.lower())
    return row
