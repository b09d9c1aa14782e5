"""Looking at an upload: a job reads all of it and says what would be imported. Nothing else is changed."""

from collections.abc import Container, Mapping, Sequence
from typing import Any

from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction

from judging.file_options import parse_grades
from judging.import_choices import KINDS, LABELS, LEFT_OUT, choice_fault, options_for
from judging.models import Collection, Document, Import, Topic
from judging.rankings import read_rankings
from judging.services.errors import ImportRefused
from judging.services.files import shown_name
from judging.services.imports import lock_import
from judging.services.judgment_formats import DIGITS
from judging.services.look_cards import NamedIds, look_at_parts
from judging.services.look_ids import DOCUMENTS, TOPICS, Ids, IdsInDatabase, IdsInMemory
from judging.services.sources import Progress, upload_path
from judging.services.upload_parts import Part, StoredUpload, opened_parts
from touchstone import jobs
from touchstone.files import local, store
from touchstone.models import Job, User, record

LOOK, KEEP, REPLACE = "look", "keep", "replace"
MOST_RUNS = 5  # of the collection, whose topics tell what topics are
UNSTORABLE = dict.fromkeys([0, *range(0xD800, 0xE000)], "\ufffd")


# -- uploads --------------------------------------------------------------------------------------------------


def queue_look(*, collection: Collection, files: "Sequence[File[Any]]", user: User | None) -> Import:
    """Keep uploaded files and queue a look at them; return the import that they may become."""
    if not files:
        raise ImportRefused("no file was sent")
    names = _distinct([shown_name(file.name) for file in files])
    with transaction.atomic():
        entries = [_new_entry(name, file) for file, name in zip(files, names, strict=True)]
        made = Import.objects.create(collection=collection, files=entries, user=user)
        enqueue(LOOK, made, user)
    return made


def _new_entry(name: str, file: "File[Any]") -> dict[str, Any]:
    """Store an uploaded file; return what its import says of it before anybody has looked."""
    path, n_bytes = store("uploads", file), file.size or 0
    return {"name": name, "upload": name, "path": path, "n_bytes": n_bytes, "options": {}}


def look_again(*, made: Import, choices: Mapping[str, Mapping[str, Any]], user: User | None) -> Job | None:
    """Queue another look, with what a person chose for each file; None while a job is at it already."""
    with transaction.atomic():
        row = lock_import(made, Import.State.LOOKED_AT)
        choose(row, choices)
        row.report = {}
        row.save(update_fields=["files", "report"])
        return enqueue(LOOK, row, user)


def choose(row: Import, choices: Mapping[str, Mapping[str, Any]]) -> None:
    """Write what was chosen into the entries of the import's files; what is not there is refused."""
    entries = {entry["name"]: entry for entry in row.files}
    for name, chosen in choices.items():
        if name not in entries:
            raise ImportRefused(f"{name}: the upload has no such file")
        options = {key: value for key, value in chosen.items() if key not in ("kind", "name")}
        kind = str(chosen.get("kind") or "")
        if kind and (fault := choice_fault(kind, options)):
            raise ImportRefused(f"{name}: {fault}")
        wanted = {**options, **({"kind": kind} if kind else {})}
        if wanted != (entries[name].get("options") or {}):
            entries[name].pop("reading", None)  # how it was looked at is no longer how it is read
        entries[name]["options"] = wanted


def choices_of(row: Import) -> dict[str, dict[str, Any]]:
    return {entry["name"]: dict(entry.get("options") or {}) for entry in row.files}


def enqueue(kind: str, made: Import, user: User | None, **payload: Any) -> Job | None:
    n_bytes = sum(upload["n_bytes"] for upload in _upload_rows(made))
    named = {
        "collection": str(made.collection_id),
        "import": str(made.pk),
        "uploads": [{"path": one["path"], "name": one["name"]} for one in _upload_rows(made)],
        **payload,
    }
    return jobs.enqueue(kind=kind, payload=named, active_key=f"import {made.pk}", user=user, n_bytes=n_bytes)


def discard(*, made: Import, actor: User | None) -> None:
    """Forget an upload that was looked at: its files go, the row stays."""
    with transaction.atomic():
        row = lock_import(made, Import.State.LOOKED_AT)
        paths = [one["path"] for one in _upload_rows(row)]
        others = Import.objects.filter(state=Import.State.KEPT, collection=row.collection)
        paths = [path for path in paths if not others.filter(files__contains=[{"path": path}]).exists()]
        Import.objects.filter(pk=row.pk).update(state=Import.State.DISCARDED)
        record(
            "discarded an upload", row.collection, actor=actor, files=[entry["name"] for entry in row.files]
        )
        transaction.on_commit(lambda: _delete(paths), robust=True)


def _delete(paths: Sequence[str]) -> None:
    for path in paths:
        default_storage.delete(path)


def _upload_rows(made: Import) -> list[dict[str, Any]]:
    """Return the stored files, each once: the parts of an archive share its."""
    found: dict[str, dict[str, Any]] = {}
    for entry in made.files:
        upload = {"path": entry["path"], "name": entry.get("upload") or entry["name"], "n_bytes": 0}
        found.setdefault(entry["path"], upload)["n_bytes"] += entry.get("n_bytes") or 0
    return [one for one in found.values() if one["path"]]


def stored_uploads(made: Import) -> list[StoredUpload]:
    """Return the import's stored files as this machine has them; refused where one is gone."""
    return [StoredUpload(one["path"], one["name"], upload_path(one)) for one in _upload_rows(made)]


def _distinct(names: list[str]) -> list[str]:
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{seen[name]} {name}")
    return found


def job_of(made: Import) -> Job | None:
    """Return the newest job about the import."""
    about = Job.objects.filter(kind__in=(LOOK, KEEP, REPLACE), payload__import=str(made.pk))
    return about.order_by("-created_at").first()


# -- the look -------------------------------------------------------------------------------------------------


def look(
    made: Import, progress: Progress | None = None, *, uploads: Sequence[StoredUpload] | None = None
) -> dict[str, Any]:
    """Write into the import what its files are and what is in them; return the report."""
    # The tables of ids last as long as their transaction.
    with transaction.atomic(), opened_parts(stored_uploads(made) if uploads is None else uploads) as parts:
        ids = IdsInDatabase(made.collection)
        cards = look_at_parts(parts, choices_of(made), ids, known_ids(made.collection), progress)
        if "replaces" not in made.options:  # what is there may be what is replaced
            _leave_out_known(cards)
        files = [_entry(part, card) for part, card in zip(parts, cards, strict=True)]
    with transaction.atomic():
        row = lock_import(made, Import.State.LOOKED_AT)
        row.files, row.report = files, storable({"files": cards, "obstacles": obstacles(cards)})
        row.kind = _kind_of(cards)
        row.save(update_fields=["files", "report", "kind"])
    return dict(row.report)


def _leave_out_known(cards: Sequence[dict[str, Any]]) -> None:
    """Leave out the files all of whose records the collection has, unless a person said what they are."""
    for card in cards:
        if card.get("is_there") and not card["choices"].get("kind"):
            what = LABELS[card["kind"]].lower()
            card |= {
                "left_out": card["kind"],
                "kind": LEFT_OUT,
                "choices": {**options_for(LEFT_OUT, card["choices"]), "kind": LEFT_OUT},
                "fields": [],
                "question": "",
                "why": f"{what.capitalize()}: all of it is in the collection already, so it is left out.",
            }


def look_without_database(
    uploads: Sequence[StoredUpload], choices: Mapping[str, Mapping[str, Any]]
) -> list[Any]:
    """Return the cards of files that would begin a new collection."""
    with opened_parts(uploads) as parts:
        ids: Ids = IdsInMemory()
        return look_at_parts(parts, choices, ids, NamedIds())


def _entry(part: Part, card: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": part.name,
        "upload": part.upload.name,
        "path": part.upload.stored,
        "n_bytes": part.n_bytes,
        "sha256": part.sha256(),
        "kind": card["kind"],
        "options": card["choices"],
        "file_format": card.get("file_format", ""),
        "reading": card.get("reading"),
        "left_out": card.get("left_out", ""),
    }


def take_in_left_out(row: Import) -> None:
    """Take in again what the look left out by itself: the collection has it from the import that is replaced."""
    for entry in row.files:
        if kind := entry.get("left_out"):
            entry |= {"kind": kind, "left_out": "", "options": {**entry["options"]}}
            entry["options"].pop("kind", None)


def _kind_of(cards: Sequence[Mapping[str, Any]]) -> str:
    kinds = {card["kind"] for card in cards} - {LEFT_OUT}
    return kinds.pop() if len(kinds) == 1 else ""


def obstacles(cards: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what must be settled before the files can be kept, a sentence each."""
    found = []
    for card in cards:
        name, lacks = card["name"], card.get("lacks", {})
        if card["kind"] == LEFT_OUT:
            continue
        if card["n_faults"]:
            found.append(f"{name} has {_count(card['n_faults'], 'fault')}.")
        elif card["is_refused"]:
            found.append(f"{name} cannot be read: {card['why']}")
        elif card["question"]:
            found.append(f"{name}: {card['question']}")
        elif card.get("there", {}).get("n"):
            found.append(f"{name}: {_there_words(card)}")
        elif card["kind"] == "judgments" and _lacks(lacks) and not card["choices"].get("skips_unknown"):
            found.append(f"{name} has judgments of topics or documents that the collection lacks.")
        elif off := _off_scale(card):
            found.append(
                f"{name} has grades that are on no scale: {', '.join(map(str, off))}. Choose what they become."
            )
    if cards and all(card["kind"] == LEFT_OUT for card in cards):
        is_known = any(card.get("is_there") for card in cards)
        found.append("Nothing is new: all files are left out." if is_known else "All files are left out.")
    return found


def _there_words(card: Mapping[str, Any]) -> str:
    """Say what of a file the collection has, and what to do."""
    kind, there = card["kind"], card["there"]
    if kind in ("runs", "scores"):
        what = "run" if kind == "runs" else "scores named"
        return f"the collection already has {what} {there['first'][0]}. Leave the file out."
    are = "is" if there["n"] == 1 else "are"
    words = f"{_count(there['n'], kind.removesuffix('s'))} of it {are} in the collection already."
    return f"{words} Leave the file out, or upload only what is new."


def _off_scale(card: Mapping[str, Any]) -> list[int]:
    """Return the grades of a file of gold that no scale has, and that no map brings onto one."""
    if card["kind"] != "judgments" or card["choices"].get("campaign"):
        return []
    mapped = parse_grades(card["choices"]["grade_map"]) if card["choices"].get("grade_map") else {}
    becomes = {row["grade"]: mapped.get(row["grade"], row["grade"]) for row in card.get("grades", ())}
    return [grade for grade, wanted in becomes.items() if wanted is not None and wanted not in DIGITS]


def _lacks(lacks: Mapping[str, Any]) -> bool:
    return any(lacks.get(what, {}).get("n") for what in (TOPICS, DOCUMENTS))


def _count(n: int, what: str) -> str:
    return f"1 {what}" if n == 1 else f"{n:,} {what}s"


def storable(value: Any) -> Any:
    """Return the value without the characters that no database stores."""
    if isinstance(value, str):
        return value.translate(UNSTORABLE)
    if isinstance(value, Mapping):
        return {storable(key): storable(one) for key, one in value.items()}
    return [storable(one) for one in value] if isinstance(value, list | tuple) else value


# -- what the collection knows --------------------------------------------------------------------------------


class _Rows:
    """The ids of the collection, asked one by one."""

    def __init__(self, collection: Collection, what: str) -> None:
        rows: Any = Topic.objects if what == TOPICS else Document.objects
        self.rows = rows.filter(collection=collection)
        self.column = "topic_id" if what == TOPICS else "doc_id"

    def __contains__(self, one: object) -> bool:
        return bool(self.rows.filter(**{self.column: str(one)}).exists())


def known_ids(collection: Collection) -> NamedIds:
    """Return the topics and documents that the collection has, and the topics that its newest runs name."""
    named = NamedIds(known_topics=_rows(collection, TOPICS), known_documents=_rows(collection, DOCUMENTS))
    for run in collection.runs.order_by("-created_at")[:MOST_RUNS]:
        named.topics.update(read_rankings(local(run.rankings)).topic_ids)
    return named


def _rows(collection: Collection, what: str) -> Container[str]:
    return _Rows(collection, what)


__all__ = [
    "KEEP",
    "KINDS",
    "LOOK",
    "REPLACE",
    "choices_of",
    "choose",
    "discard",
    "enqueue",
    "job_of",
    "known_ids",
    "look",
    "look_again",
    "look_without_database",
    "obstacles",
    "queue_look",
    "stored_uploads",
    "take_in_left_out",
]
