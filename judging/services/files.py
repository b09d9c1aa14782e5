"""Files in: topics, documents, runs, judgments. All of a file or nothing; a refusal says `file:line:column: reason`."""

import hashlib
import os
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.core.files import File
from django.core.files.base import ContentFile
from django.db import connection, transaction

from judging.faults import Faults
from judging.models import Campaign, Collection, Document, Run, Topic
from judging.rankings import RunSummary, convert_runs
from judging.records import DocumentRecord, read_documents
from judging.runs import find_faults
from judging.sanitise import ALLOWANCE, Allowance, sanitise_documents
from judging.services.errors import ImportRefused
from judging.services.judgment_files import import_judgments
from judging.services.judgment_formats import parse_grade_map
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
    place_of_document,
    place_of_field,
    place_of_topic,
    refuse,
    refuse_faults,
    rows_between,
    tell_planner,
)
from judging.textfiles import Source, TrecFormatError
from judging.topics import TopicRecord, read_topics, weight_fault
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
    "runs": {"description", "is_manual", "group"},
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
    progress: Progress | None = None,
    actor: User | None = None,
) -> int:
    """Add a file's topics to the collection; return how many. Known ones, and weights unlike theirs, are errors."""
    with transaction.atomic(), open_source(source, name) as stream:
        begin_import(collection)
        there = dict(collection.topics.values_list("topic_id", "weight"))
        known, has_weight = set(there), {weight is not None for weight in there.values()}
        made, faults = [], Faults()
        read = read_topics(stream, name, file_format, faults)
        for index, topic in numbered_records(read, stream, progress, "topics", faults):
            reason = _topic_fault(topic, known) or weight_fault(topic, has_weight)
            if reason:
                refuse(name, place_of_topic(stream.from_start(), name, index, file_format), reason)
            made.append(
                Topic(
                    collection=collection,
                    topic_id=topic.topic_id,
                    title=topic.title,
                    description=topic.description,
                    narrative=topic.narrative,
                    weight=topic.weight,
                )
            )
        Topic.objects.bulk_create(made, batch_size=1000)
        tell_planner(Topic)
        rows = rows_between(made[0].pk, made[-1].pk) if made else {}
        _record("imported topics", collection, stream, actor, file=name, n_topics=len(made), **rows)
    return len(made)


def _topic_fault(topic: TopicRecord, known: set[str]) -> str:
    limit = longest(Topic, "topic_id")
    if len(topic.topic_id) > limit:
        return f"topic id longer than {limit} characters"
    return f"the collection already has topic {topic.topic_id}" if topic.topic_id in known else ""


def _record(verb: str, subject: Any, stream: MeteredSource, actor: User | None, **detail: Any) -> None:
    record(verb, subject, actor=actor, sha256=stream.digest.hexdigest(), n_bytes=stream.done, **detail)


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
INSERT INTO judging_document (collection_id, doc_id, title, text, html, version)
SELECT %s, doc_id, title, text, html, 1 FROM incoming_document ORDER BY ordinal
"""


def import_documents(
    *,
    collection: Collection,
    source: Source,
    name: str,
    file_format: str | None = None,
    is_html: bool = False,
    allowance: Allowance = ALLOWANCE,
    warn: Callable[[str], None] | None = None,
    progress: Progress | None = None,
    actor: User | None = None,
) -> int:
    """Add a file's documents to the collection; return how many.

    Texts are made safe here, once; of HTML (`is_html`, the caller's declaration) the words and the safe HTML remain.
    HTML that costs more than the `allowance` is kept as its source, and `warn` gets a sentence that says of how many.
    One document is in memory at a time. An id twice in the file, or one the collection has already, is an error at its
    second place.
    """
    as_source, faults = _AsSource(), Faults()
    with transaction.atomic(), open_source(source, name) as stream:
        begin_import(collection)
        read = read_documents(stream, name, is_html=is_html, file_format=file_format, faults=faults)
        valid = _valid_records(read, stream, name, file_format)
        rows = numbered_records(valid, stream, progress, "documents", faults)
        count = copy_rows("incoming_document", INCOMING, _safe(rows, allowance, as_source))
        if progress:
            progress(stream.total, stream.total, f"{count:,} documents read, storing them")
        _refuse_known_documents(collection, stream, name, file_format)
        with connection.cursor() as cursor:
            _, first, last = add_rows(cursor, ADD_DOCUMENTS, [collection.pk])
            cursor.execute("DROP TABLE incoming_document")
        tell_planner(Document)
        detail = {"n_documents": count, "is_html": is_html, **as_source.detail(), **rows_between(first, last)}
        _record("imported documents", collection, stream, actor, file=name, **detail)
    if warn and as_source.n:
        warn(as_source.sentence())
    return count


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


def _valid_records(
    found: Iterable[DocumentRecord], stream: MeteredSource, name: str, file_format: str | None
) -> Iterator[DocumentRecord]:
    limit = longest(Document, "doc_id")
    for index, document in enumerate(found):
        if len(document.doc_id) > limit:
            place = place_of_document(stream.from_start(), name, index, file_format)
            refuse(name, place, f"document id longer than {limit} characters")
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


def _refuse_known_documents(
    collection: Collection, stream: MeteredSource, name: str, file_format: str | None
) -> None:
    with connection.cursor() as cursor:
        faults = []
        for sql, parameters, reason in (
            (TWICE, [], "document {} occurs twice"),
            (KNOWN, [collection.pk], "the collection already has document {}"),
        ):
            cursor.execute(sql, parameters)
            faults += [(ordinal, reason.format(doc_id)) for ordinal, doc_id in cursor.fetchall()]
    if faults:
        ordinal, reason = min(faults)
        refuse(name, place_of_document(stream.from_start(), name, ordinal, file_format), reason)


# -- runs -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _RunFile:
    path: str
    name: str
    n_bytes: int
    sha256: str


def import_runs(
    *,
    collection: Collection,
    files: Sequence[tuple[Source, str]],
    description: str = "",
    is_manual: bool = False,
    group: str = "",
    progress: Progress | None = None,
    actor: User | None = None,
) -> list[Run]:
    """Add run files, each given with its name for messages; return the runs.

    The run tag is the run's id: one the collection has already is an error. Topics the collection lacks are none:
    every returned run carries them as `unknown_topics`.
    """
    with ExitStack() as stack, transaction.atomic():
        begin_import(collection)
        found = [_run_file(source, name, stack) for source, name in files]
        topics = set(collection.topics.values_list("topic_id", flat=True))
        taken = set(collection.runs.values_list("run_id", flat=True))
        made: list[Run] = []
        total = sum(file.n_bytes for file in found)

        def write(index: int, summary: RunSummary, payload: bytes) -> None:
            _refuse_run(found[index], summary.run_tag, taken)
            taken.add(summary.run_tag)
            run = Run.objects.create(
                collection=collection,
                run_id=summary.run_tag,
                description=description,
                is_manual=is_manual,
                group=group,
                rankings=store("rankings", ContentFile(payload), ".rankings"),
                n_topics=len(summary.topic_ids),
                n_lines=summary.n_rows,
            )
            run.unknown_topics = [topic_id for topic_id in summary.topic_ids if topic_id not in topics]
            made.append(run)
            if progress:
                done = sum(file.n_bytes for file in found[: index + 1])
                progress(done, total, f"{len(made)} of {len(found)} runs")

        try:
            convert_runs([file.path for file in found], write)
        except TrecFormatError as error:
            # Files are handed over in order, so those before the bad one are good.
            faults = Faults()
            for file in found[len(made) :]:
                find_faults(file.path, file.name, faults)
            refuse_faults(faults)
            # The name is that of the next file: the path in the error may be that of an upload.
            refuse(found[len(made)].name, (error.line, error.column), error.reason)
        _record_runs(collection, made, found, actor)
    return made


def _run_file(source: Source, name: str, stack: ExitStack) -> _RunFile:
    """Return the run as a path: a stream is copied to a temporary file."""
    if not isinstance(source, str | os.PathLike):
        copy = stack.enter_context(tempfile.NamedTemporaryFile(prefix="run-"))  # noqa: SIM115 (the stack closes it)
        shutil.copyfileobj(source, copy)
        copy.flush()
        source = copy.name
    with open(source, "rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return _RunFile(str(source), name, stream.tell(), digest)


def _refuse_run(file: _RunFile, run_id: str, taken: set[str]) -> None:
    limit = longest(Run, "run_id")
    reason = ""
    if len(run_id) > limit:
        reason = f"run tag longer than {limit} characters"
    elif run_id in taken:
        reason = f"the collection already has run {run_id}"
    if reason:
        refuse(file.name, place_of_field(file.path, file.name, 0, 6, 5), reason)


def _record_runs(collection: Collection, made: list[Run], found: list[_RunFile], actor: User | None) -> None:
    record(
        "imported runs",
        collection,
        actor=actor,
        n_runs=len(made),
        n_lines=sum(run.n_lines for run in made),
        files=[
            {
                "run": run.run_id,
                "file": file.name,
                "sha256": file.sha256,
                "n_unknown_topics": len(run.unknown_topics),
            }
            for run, file in zip(made, found, strict=True)
        ],
    )


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
            "uploads": [{"path": store("uploads", file), "name": _shown_name(file.name)} for file in files],
            "options": options,
        }
        n_bytes = sum(file.size or 0 for file in files)
        job = jobs.enqueue(kind="import", payload=payload, user=user, n_bytes=n_bytes)
    remove_orphans("uploads", _is_waiting)
    if job is None:
        raise RuntimeError("a job without a key was not queued")
    return job


def _shown_name(name: str | None) -> str:
    """Return a stranger's file name as messages show it; no file of ours is ever called so."""
    shown = "".join(character for character in Path(name or "").name if character.isprintable())
    return shown[:100] or "file"


def _is_waiting(name: str) -> bool:
    waiting = Job.objects.filter(kind="import", state__in=Job.ACTIVE)
    return waiting.filter(payload__uploads__contains=[{"path": name}]).exists()
