"""Files in: topics, documents, runs, judgments. All of a file or nothing; a refusal says `file:line:column: reason`."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.core.files import File
from django.db import connection, transaction
from django.db.models import Model
from django.utils import timezone

from judging.faults import Faults
from judging.file_options import PLAIN, Changes, FileOptions
from judging.models import Campaign, Collection, Document, Import, Topic
from judging.places import place_of_document, place_of_topic
from judging.records import DocumentRecord, read_documents
from judging.sanitise import ALLOWANCE, Allowance, sanitise_documents
from judging.services.errors import ImportRefused
from judging.services.imports import add_file, made_now, rows_of
from judging.services.judgment_files import import_judgments
from judging.services.judgment_formats import parse_grade_map
from judging.services.run_files import import_runs
from judging.services.sources import (
    MeteredSource,
    Progress,
    add_rows,
    begin_import,
    copy_rows,
    longest,
    numbered_records,
    one_line,
    open_source,
    refuse,
    rows_between,
    tell_planner,
)
from judging.textfiles import BLOCK_SIZE, Source
from judging.topics import TopicRecord, read_topics, weight_fault
from judging.zipped import Member, open_zip, read_pages
from touchstone import jobs
from touchstone.files import remove_orphans, store
from touchstone.models import Job, User, record

__all__ = [
    "KINDS",
    "import_documents",
    "import_judgments",
    "import_runs",
    "import_topics",
    "parse_grade_map",
    "queue_import",
]

# What may be imported, and the options that a job may pass on to its service.
KINDS = {
    "topics": {"file_format"},
    "documents": {"file_format", "is_html"},
    "runs": {"description", "is_manual", "group", "file_format", "run_name"},
    "scores": {"list_name"},
    "judgments": {
        "file_format", "as_gold", "source_name", "grade_map", "kind", "method_codes", "complete", "repeats",
        "gold_chosen", "by_topic",
    },
}  # fmt: skip


def import_topics(
    *,
    collection: Collection,
    source: Source,
    name: str,
    file_format: str | None = None,
    options: FileOptions = PLAIN,
    progress: Progress | None = None,
    actor: User | None = None,
    made: Import | None = None,
) -> int:
    """Add a file's topics to the collection; return how many. Known ones, and weights unlike theirs, are errors."""
    with transaction.atomic(), open_source(source, name) as stream:
        begin_import(collection)
        there = dict(collection.topics.values_list("topic_id", "weight"))
        known, has_weight = set(there), {weight is not None for weight in there.values()}
        made = made_now(made, collection=collection, kind="topics", actor=actor)
        rows, faults, changes = list[Topic](), Faults(), Changes()
        read = read_topics(stream, name, file_format, faults, options, changes)
        for index, topic in numbered_records(read, stream, progress, "topics", faults):
            reason = _topic_fault(topic, known) or weight_fault(topic, has_weight)
            if reason:
                place = place_of_topic(stream.from_start(), name, index, file_format, options)
                refuse(name, place, reason)
            rows.append(
                Topic(
                    collection=collection,
                    topic_id=topic.topic_id,
                    title=topic.title,
                    description=topic.description,
                    narrative=topic.narrative,
                    weight=topic.weight,
                    imported_by=made,
                )
            )
        Topic.objects.bulk_create(rows, batch_size=1000)
        tell_planner(Topic)
        span = rows_between(rows[0].pk, rows[-1].pk) if rows else {}
        detail = {"file": name, "n_topics": len(rows), **changes.as_dict(), **span}
        _record("imported topics", collection, stream, actor, made, **detail)
        _add_file(made, name, stream, "topics", len(rows), Topic, span)
    return len(rows)


def _topic_fault(topic: TopicRecord, known: set[str]) -> str:
    limit = longest(Topic, "topic_id")
    if len(topic.topic_id) > limit:
        return f"topic id longer than {limit} characters"
    return f"the collection already has topic {topic.topic_id}" if topic.topic_id in known else ""


def _record(
    verb: str, subject: Any, stream: MeteredSource, actor: User | None, made: Import, **detail: Any
) -> None:
    facts = {"sha256": stream.digest.hexdigest(), "n_bytes": stream.done, "import": str(made.pk)}
    record(verb, subject, actor=actor, **facts, **detail)


def _add_file(
    made: Import,
    name: str,
    stream: MeteredSource,
    kind: str,
    n: int,
    model: type[Model],
    span: dict[str, list[int]],
) -> None:
    rows = rows_of(model, *span.get("rows", (None, None)))
    sha256 = stream.digest.hexdigest()
    add_file(made, name=name, n_bytes=stream.done, sha256=sha256, kind=kind, counts={kind: n}, rows=rows)


# -- documents ------------------------------------------------------------------------------------------------

INCOMING = "ordinal bigint, doc_id text, title text, text text, html text"
TWICE = """
SELECT ordinal, doc_id FROM (
  SELECT ordinal, doc_id, min(ordinal) OVER (PARTITION BY doc_id) AS first FROM incoming_document) i
 WHERE ordinal > first ORDER BY ordinal LIMIT 1
"""
KNOWN = """
SELECT ordinal, doc_id FROM incoming_document i
 WHERE (SELECT d.id FROM judging_document d WHERE d.collection_id = %s AND d.doc_id = i.doc_id) IS NOT NULL
 ORDER BY ordinal LIMIT 1
"""
ADD_DOCUMENTS = """
INSERT INTO judging_document (collection_id, imported_by_id, doc_id, title, text, html, version)
SELECT %s, %s, doc_id, title, text, html, 1 FROM incoming_document ORDER BY ordinal
"""


def import_documents(
    *,
    collection: Collection,
    source: Source,
    name: str,
    file_format: str | None = None,
    is_html: bool = False,
    options: FileOptions = PLAIN,
    pages: Sequence[Member] | None = None,
    allowance: Allowance = ALLOWANCE,
    warn: Callable[[str], None] | None = None,
    progress: Progress | None = None,
    actor: User | None = None,
    made: Import | None = None,
) -> int:
    """Add a file's documents to the collection; return how many.

    Texts are made safe here, once; of HTML (`is_html`, the caller's declaration) the words and the safe HTML remain.
    HTML that costs more than the `allowance` is kept as its source, and `warn` gets a sentence that says of how many.
    One document is in memory at a time. An id twice in the file, or one the collection has already, is an error at its
    second place. `pages`: the source is an archive, and each of these members a document.
    """
    as_source, faults, changes = _AsSource(), Faults(), Changes()
    with transaction.atomic(), open_source(source, name) as stream:
        begin_import(collection)
        made = made_now(made, collection=collection, kind="documents", actor=actor)
        file = _DocumentFile(stream, name, file_format, replace(options, is_html=is_html), pages)
        valid = _valid_records(file.read(faults, changes), file)
        rows = numbered_records(valid, stream, progress, "documents", faults)
        count = copy_rows("incoming_document", INCOMING, _safe(rows, allowance, as_source))
        if progress:
            progress(stream.total, stream.total, f"{count:,} documents read, storing them")
        _refuse_known_documents(collection, file)
        with connection.cursor() as cursor:
            _, first, last = add_rows(cursor, ADD_DOCUMENTS, [collection.pk, made.pk])
            cursor.execute("DROP TABLE incoming_document")
        tell_planner(Document)
        span = rows_between(first, last)
        detail = {"n_documents": count, "is_html": is_html, **as_source.detail(), **changes.as_dict(), **span}
        _record("imported documents", collection, stream, actor, made, file=name, **detail)
        _add_file(made, name, stream, "documents", count, Document, span)
    if warn and as_source.n:
        warn(as_source.sentence())
    return count


@dataclass(frozen=True)
class _DocumentFile:
    """A file of documents, or an archive whose members are documents."""

    stream: MeteredSource
    name: str
    file_format: str | None
    options: FileOptions
    pages: Sequence[Member] | None

    def read(self, faults: Faults, changes: Changes) -> Iterator[DocumentRecord]:
        if self.pages is None:
            how: dict[str, Any] = {"is_html": self.options.is_html, "file_format": self.file_format}
            yield from read_documents(
                self.stream, self.name, faults=faults, options=self.options, changes=changes, **how
            )
            return
        while self.stream.read(BLOCK_SIZE):
            pass  # counted and hashed as a whole: members are not read in the order of the file
        with open_zip(self.stream.from_start(), self.name) as archive:
            yield from read_pages(archive, self.pages, faults=faults, options=self.options, changes=changes)

    def refuse(self, index: int, reason: str) -> None:
        """Refuse the record of that index."""
        if self.pages is not None:
            refuse(f"{self.name}/{self.pages[index].name}", (1, 1), reason)
        source = self.stream.from_start()
        refuse(self.name, place_of_document(source, self.name, index, self.file_format, self.options), reason)


@dataclass
class _AsSource:
    """The documents that could not be made safe in time and memory: how many, and the first of them."""

    n: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, doc_id: str) -> None:
        self.n += 1
        self.first += [doc_id] if self.n <= 20 else []

    def detail(self) -> dict[str, Any]:
        return {"n_as_source": self.n, "as_source": self.first} if self.n else {}

    def sentence(self) -> str:
        what = "1 document is" if self.n == 1 else f"{self.n:,} documents are"
        return f"{what} shown as source text, because the HTML could not be sanitised in time"


def _valid_records(found: Iterable[DocumentRecord], file: _DocumentFile) -> Iterator[DocumentRecord]:
    limit = longest(Document, "doc_id")
    for index, document in enumerate(found):
        if len(document.doc_id) > limit:
            file.refuse(index, f"document id longer than {limit} characters")
        yield document


def _safe(
    found: Iterable[tuple[int, DocumentRecord]], allowance: Allowance, as_source: _AsSource
) -> Iterator[tuple[int, str, str, str, str]]:
    """Return ordinal, id, title, text, HTML; the sanitiser takes one document, title then text, before it answers."""
    waiting: deque[tuple[int, DocumentRecord]] = deque()

    def raw() -> Iterator[tuple[str, bool]]:
        for index, document in found:
            waiting.append((index, document))
            yield document.title, document.is_html
            yield document.text, document.is_html

    safe = sanitise_documents(raw(), allowance=allowance)
    for title, text in zip(safe, safe, strict=True):
        index, document = waiting.popleft()
        if title.fell_back or text.fell_back:
            as_source.add(document.doc_id)
        yield index, document.doc_id, one_line(title.text), text.text, text.html


def _refuse_known_documents(collection: Collection, file: _DocumentFile) -> None:
    with connection.cursor() as cursor:
        faults = []
        for sql, parameters, reason in (
            (TWICE, [], "document {} occurs twice"),
            (KNOWN, [collection.pk], "the collection already has document {}"),
        ):
            cursor.execute(sql, parameters)
            faults += [(ordinal, reason.format(doc_id)) for ordinal, doc_id in cursor.fetchall()]
    if faults:
        file.refuse(*min(faults))


# -- uploads --------------------------------------------------------------------------------------------------


def queue_import(
    *,
    kind: str,
    files: "Sequence[File[Any]]",
    collection: Collection,
    campaign: Campaign | None = None,
    options: dict[str, Any] | None = None,
    user: User | None = None,
) -> Job:
    """Keep uploaded files and queue their import; `options` go to the service of that kind."""
    options = options or {}
    if kind not in KINDS:
        raise ImportRefused(f"kind must be one of {', '.join(KINDS)}, not {kind!r}")
    if unknown := set(options) - KINDS[kind]:
        raise ImportRefused(f"options of {kind} are {sorted(KINDS[kind])}, not {sorted(unknown)}")
    if not files:
        raise ImportRefused("no file was sent")
    with transaction.atomic():
        payload = {
            "kind": kind,
            "collection": str(collection.pk),
            "campaign": str(campaign.pk) if campaign else None,
            "uploads": [{"path": store("uploads", file), "name": shown_name(file.name)} for file in files],
            "options": options,
        }
        n_bytes = sum(file.size or 0 for file in files)
        job = jobs.enqueue(kind="import", payload=payload, user=user, n_bytes=n_bytes)
    remove_orphans("uploads", _is_waiting)
    if job is None:
        raise RuntimeError("a job without a key was not queued")
    return job


def shown_name(name: str | None) -> str:
    """Return a stranger's file name as messages show it; no file of ours is ever called so."""
    shown = "".join(character for character in Path(name or "").name if character.isprintable())
    return shown[:100] or "file"


def clear_uploads(kept_for: timedelta) -> int:
    """Delete the uploaded files that nothing names, and those of imports kept longer ago; return how many."""
    since = timezone.now() - kept_for
    return remove_orphans("uploads", lambda name: _is_waiting(name, since))


def _is_waiting(name: str, since: datetime | None = None) -> bool:
    """Return whether a job, or an import that may be kept or replaced (kept `since`), names the file."""
    named = [{"path": name}]
    waiting = Job.objects.filter(kind="import", state__in=Job.ACTIVE, payload__uploads__contains=named)
    held = Import.objects.filter(state__in=[Import.State.LOOKED_AT, Import.State.KEPT], files__contains=named)
    if since is not None:
        held = held.exclude(state=Import.State.KEPT, kept_at__lt=since)
    return waiting.exists() or held.exists()
