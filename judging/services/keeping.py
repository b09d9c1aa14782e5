"""Keeping an import: all files of an upload become rows of the collection, in one transaction, or nothing does."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import OperationalError, transaction
from psycopg.errors import LockNotAvailable

from judging.file_options import FileOptions, options_from
from judging.formats.run_names import run_format_keys
from judging.import_choices import KINDS, LEFT_OUT, ORDER, options_for
from judging.models import Campaign, Collection, DocumentImage, GoldAnswer, Import
from judging.services.errors import CollectionBusy, CollectionDeleted, ImportRefused
from judging.services.files import import_documents, import_judgments, import_runs, import_topics
from judging.services.images import store_images
from judging.services.imports import keep_state, lock_import
from judging.services.look_cards import format_of, reading_options, recognise_part
from judging.services.looking import KEEP, choose, enqueue, known_ids, stored_uploads
from judging.services.scores import import_scores
from judging.services.sources import Progress
from judging.services.upload_parts import Part, StoredUpload, opened_parts
from judging.zipped import open_zip
from touchstone.models import Job, User


@dataclass
class _Keeping:
    """The import that is kept, and what its services are told."""

    row: Import
    actor: User | None
    progress: Progress | None
    notes: list[str] = field(default_factory=list)

    @property
    def common(self) -> dict[str, Any]:
        return {
            "collection": self.row.collection,
            "made": self.row,
            "actor": self.actor,
            "progress": self.progress,
        }


@dataclass(frozen=True)
class _File:
    """A part with what it is and how it is read."""

    part: Part
    kind: str
    file_format: str | None
    options: FileOptions
    chosen: Mapping[str, Any]

    def chosen_options(self, *names: str) -> dict[str, Any]:
        """Return those of the options that were chosen."""
        return {name: self.chosen[name] for name in names if name in self.chosen}


def queue_keep(
    *, made: Import, user: User | None, files: Sequence[Mapping[str, Any]] | None = None
) -> Job | None:
    """Queue the import of what was looked at; None while a job is at it already. Raise as `keep` does."""
    with transaction.atomic():
        row = lock_import(made, Import.State.LOOKED_AT)
        _hold(row.collection)
        choose(row, {str(one["name"]): one for one in files or ()})
        row.save(update_fields=["files"])
        return enqueue(KEEP, row, user)


def keep(
    made: Import,
    *,
    files: Sequence[Mapping[str, Any]] | None = None,
    actor: User | None,
    progress: Progress | None = None,
    uploads: Sequence[StoredUpload] | None = None,
    before: Mapping[str, int] | None = None,
) -> Import:
    """Import the files of an upload that was looked at; `files` are choices for some of them, each with its name.

    `uploads`: where the files are, if they are not stored. `before`: what the collection had, if something was taken
    back for it.

    Raises
    ------
    ImportRefused
        With `file:line:column: reason` of the first file that cannot be imported as it is.
    ImportStateWrong, CollectionBusy
        If it is kept already; if another import into the collection is running.
    """
    with transaction.atomic():
        row = lock_import(made, Import.State.LOOKED_AT)
        _hold(row.collection)
        choose(row, {str(one["name"]): one for one in files or ()})
        counts = counts_of(row.collection) if before is None else dict(before)
        keeping = _Keeping(row, actor, progress)
        with opened_parts(stored_uploads(row) if uploads is None else uploads) as parts:
            _import_all(keeping, _files(row, parts))
        row.report = {
            **row.report,
            "before": counts,
            "after": counts_of(row.collection),
            "notes": keeping.notes,
        }
        row.save(update_fields=["files", "report"])
        keep_state(row)
    return row


def _hold(collection: Collection) -> None:
    """Lock the collection for the import; refused while another one has it."""
    try:
        with transaction.atomic():
            found = Collection.objects.select_for_update(no_key=True, nowait=True)
            row = found.get(pk=collection.pk)
    except OperationalError as error:
        if isinstance(error.__cause__, LockNotAvailable):
            raise CollectionBusy from error
        raise
    if row.deleted_at is not None:
        raise CollectionDeleted


def counts_of(collection: Collection) -> dict[str, int]:
    """Return how many rows of each kind the collection has."""
    return {
        "topics": collection.topics.count(),
        "documents": collection.documents.count(),
        "runs": collection.runs.count(),
        "scores": collection.score_lists.count(),
        "gold": GoldAnswer.objects.filter(topic__collection=collection).count(),
        "images": DocumentImage.objects.filter(collection=collection).count(),
    }


def _files(row: Import, parts: Sequence[Part]) -> list[_File]:
    """Return the parts with how they are read: as they were looked at, or by what was chosen since."""
    entries = {entry["name"]: entry for entry in row.files}
    found = []
    for part in parts:
        entry = entries.get(part.name)
        if entry is None or part.fault:
            raise ImportRefused(part.fault or f"{part.name}: nobody has looked at it; upload it again")
        chosen = dict(entry.get("options") or {})
        kind = str(chosen.pop("kind", "") or entry.get("kind") or "")
        kind = "judgments" if kind == "gold" else kind  # as what was kept once calls them
        if kind not in KINDS:
            raise ImportRefused(f"{part.name}: choose what it is before it is kept")
        if kind == LEFT_OUT:
            continue
        chosen = options_for(kind, chosen)
        reading = entry.get("reading")
        if reading is None or entry.get("kind") != kind:
            seen = recognise_part(part, known_ids(row.collection))
            if seen is None or seen.is_refused:
                raise ImportRefused(f"{part.name}: {seen.why if seen else 'it cannot be read'}")
            options = reading_options(seen, kind, chosen)
            file_format = format_of(seen, kind, chosen, part.name)
        else:
            options, file_format = options_from(reading), entry.get("file_format") or None
        entry["kind"] = kind
        found.append(_File(part, kind, file_format, options, chosen))
    if not found:
        raise ImportRefused("all files are left out: there is nothing to import")
    return found


def _import_all(keeping: _Keeping, files: Sequence[_File]) -> None:
    """Import what is named before what names it."""
    for kind in ORDER:
        these = [file for file in files if file.kind == kind]
        if kind == "runs":
            _runs(keeping, these)
            continue
        for file in these:
            SERVICES[kind](keeping, file)


def _topics(keeping: _Keeping, file: _File) -> None:
    import_topics(
        source=file.part.path,
        name=file.part.name,
        file_format=file.file_format,
        options=file.options,
        **keeping.common,
    )


def _documents(keeping: _Keeping, file: _File) -> None:
    import_documents(
        source=file.part.path,
        name=file.part.name,
        file_format=file.file_format,
        is_html=file.options.is_html,
        options=file.options,
        pages=file.part.members or None,
        warn=keeping.notes.append,
        **keeping.common,
    )


def _runs(keeping: _Keeping, files: Sequence[_File]) -> None:
    """Import the runs, those with the same description, group, format and encoding together; a named one alone."""
    alike: dict[tuple[Any, ...], list[_File]] = {}
    for file in files:
        form = file.file_format if file.file_format in run_format_keys() else ""
        wanted = {**file.chosen, "encoding": file.options.encoding, "file_format": form or ""}
        alike.setdefault(tuple(sorted(wanted.items())), []).append(file)
    for options, these in alike.items():
        named = [(file.part.path, file.part.name) for file in these]
        import_runs(files=named, **dict(options), **keeping.common)


def _scores(keeping: _Keeping, file: _File) -> None:
    import_scores(
        source=file.part.path,
        name=file.part.name,
        encoding=file.options.encoding,
        **file.chosen_options("list_name"),
        **keeping.common,
    )


def _judgments(keeping: _Keeping, file: _File) -> None:
    """Import gold answers, or the judgments of a campaign if one is named."""
    chosen = dict(file.chosen)
    for name in ("encoding", "delimiter", "mapping", "numbers_rows", "joins_ids", "file_format"):
        chosen.pop(name, None)
    campaign = _campaign(keeping.row, chosen.pop("campaign", None), file.part.name)
    as_gold = chosen.pop("as_gold", campaign is None)
    if "assessor_kind" in chosen:
        chosen["kind"] = chosen.pop("assessor_kind")
    if not chosen.get("grade_map"):
        chosen.pop("grade_map", None)
    import_judgments(
        source=file.part.path,
        name=file.part.name,
        campaign=campaign,
        as_gold=as_gold,
        file_format=file.file_format or "qrels",
        options=file.options,
        warn=keeping.notes.append,
        **{"complete": None, **chosen},
        **keeping.common,
    )


def _campaign(row: Import, key: Any, name: str) -> Campaign | None:
    if not key:
        return None
    found = row.collection.campaigns.filter(pk=key, deleted_at=None).first()
    if found is None:
        raise ImportRefused(f"{name}: the collection has no such campaign")
    return found


def _images(keeping: _Keeping, file: _File) -> None:
    part, row = file.part, keeping.row

    def content() -> Iterator[tuple[str, bytes]]:
        if not part.members:
            yield part.name, part.path.read_bytes()
            return
        with open_zip(part.path, part.upload.name) as archive:
            for member in part.members:
                with archive.open(member) as stream:
                    yield member.name, stream.read()

    common = {name: value for name, value in keeping.common.items() if name != "collection"}
    stored = store_images(collection=row.collection, images=content(), name=part.name, **common)
    keeping.notes.extend(stored.faults)


SERVICES: dict[str, Callable[[_Keeping, _File], None]] = {
    "topics": _topics,
    "documents": _documents,
    "scores": _scores,
    "judgments": _judgments,
    "images": _images,
}
