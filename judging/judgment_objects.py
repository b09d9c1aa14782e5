"""Read judgments that are JSON objects, one a line: MTEB's qrels, and what umbrela writes."""

import json
import math
import os
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from judging.faults import Faults, Noting, NotingAll, TrecFormatError
from judging.file_options import PLAIN, FileOptions, Ids
from judging.json_files import Element, json_object, json_text, open_objects
from judging.textfiles import Limits, Line, Source
from judging.trec import MAX_GRADE, MIN_GRADE, JudgmentRecord, PairIndex, QrelRecord

# The usual keys of the fields.
MTEB_KEYS = {"topic": ("query-id",), "document": ("corpus-id",), "grade": ("score",)}
UMBRELA_KEYS = {
    "topic": ("qid", "query_id", "topic_id"),
    "document": ("docid", "doc_id", "docno", "pid"),
    "grade": ("judgment",),
    "assessor": ("model",),
}
WORDS = {"topic": "topic id", "document": "document id", "assessor": "model"}
NO_MODEL = "umbrela"  # who judged, where a record names no model
Ids_by_texts = dict[tuple[str, str], deque[tuple[str, str]]]


class _Objects:
    """What the records of one file are read by."""

    def __init__(self, name: str, keys: Mapping[str, tuple[str, ...]], options: FileOptions) -> None:
        self.name, self.options = name, options
        self.keys = {field: options.mapping.get(field, usual) for field, usual in keys.items()}
        self.ids = {field: Ids(what, name, options) for field, what in WORDS.items()}

    def fail(self, line: Line, field: str, reason: str) -> NoReturn:
        """Raise `TrecFormatError` at the key of the field, or where the object begins."""
        start = line.column if isinstance(line, Element) else 1
        places = [line.text.find(json.dumps(key)) for key in self.keys[field]]
        place = max(places, default=-1)
        raise TrecFormatError(self.name, line.number, start + max(place, 0), reason)

    def has(self, value: dict[str, Any], field: str) -> bool:
        return any(value.get(key) is not None for key in self.keys[field])

    def id(self, value: dict[str, Any], field: str, line: Line) -> str:
        if not self.has(value, field):
            self.fail(line, field, f"no key {' or '.join(self.keys[field])}")
        try:
            return self.ids[field].id(json_text(value, self.keys[field], line, self.name), line.number, 1)
        except TrecFormatError as error:
            self.fail(line, field, error.reason)

    def grade(self, value: dict[str, Any], line: Line) -> int:
        """Return the grade, which may be written as 1.0."""
        key = next((key for key in self.keys["grade"] if key in value), None)
        if key is None:
            self.fail(line, "grade", f"no key {' or '.join(self.keys['grade'])}")
        found = value[key]
        is_number = isinstance(found, int | float) and not isinstance(found, bool) and math.isfinite(found)
        if not is_number or found != int(found) or not MIN_GRADE <= found <= MAX_GRADE:
            reason = f"{key} must be an integer in {MIN_GRADE}..{MAX_GRADE}, not {str(found)[:40]!r}"
            self.fail(line, "grade", reason)
        return int(found)


def object_lines(source: Source, name: str, faults: Faults | None, options: FileOptions) -> Iterator[Line]:
    """Return the objects of a file that are not blank."""
    for line in open_objects(source, name, Limits(), faults, options.encoding):
        if line.text.strip():
            yield line


def read_mteb(
    source: Source,
    name: str,
    *,
    allows_repeats: bool = False,
    faults: Faults | None = None,
    options: FileOptions = PLAIN,
) -> Iterator[QrelRecord]:
    """Return the records of ``{"query-id": ..., "corpus-id": ..., "score": ...}``; a pair twice is an error.

    >>> import io
    >>> data = io.BytesIO(b'{"query-id": "q1", "corpus-id": "d1", "score": 2.0}')
    >>> list(read_mteb(data, "example"))
    [QrelRecord(topic_id='q1', doc_id='d1', grade=2)]
    """
    seen, noting = PairIndex(allows_repeats=allows_repeats), Noting(faults)
    reading = _Objects(name, MTEB_KEYS, options)
    with NotingAll(faults):
        for line in object_lines(source, name, faults, options):
            with noting:
                value = json_object(line, name)
                topic_id, doc_id = reading.id(value, "topic", line), reading.id(value, "document", line)
                record = QrelRecord(topic_id, doc_id, reading.grade(value, line))
                before = seen.add((topic_id,), doc_id, line.number)
                if before is not None:
                    what = f"document {doc_id} of topic {topic_id}"
                    reading.fail(line, "document", f"{what} occurs twice (first on line {before})")
                yield record


def read_umbrela(
    source: Source,
    name: str,
    *,
    allows_repeats: bool = False,
    faults: Faults | None = None,
    options: FileOptions = PLAIN,
    requests: Source | None = None,
) -> Iterator[JudgmentRecord]:
    """Return the judgments of umbrela, of which the model is the assessor; those it could not read are left out.

    umbrela writes the texts of query and passage, not their ids: records need `qid` and `docid` beside them, or the
    `requests`, the file of requests that umbrela was given. Left out is what has the result status 0: there umbrela
    found no grade in the model's answer, and writes 0.
    """
    seen, noting = PairIndex(allows_repeats=allows_repeats), Noting(faults)
    reading = _Objects(name, UMBRELA_KEYS, options)
    with NotingAll(faults):
        known = None if requests is None else request_ids(requests, _requests_name(requests))
        for line in object_lines(source, name, faults, options):
            with noting:
                value = json_object(line, name)
                topic_id, doc_id = _ids(value, line, reading, known)
                grade = reading.grade(value, line)
                assessor = reading.id(value, "assessor", line) if reading.has(value, "assessor") else NO_MODEL
                if not is_read(value):
                    continue
                before = seen.add((topic_id, assessor), doc_id, line.number)
                if before is not None:
                    what = f"document {doc_id} of topic {topic_id} and model {assessor}"
                    reading.fail(line, "document", f"{what} occurs twice (first on line {before})")
                yield JudgmentRecord(topic_id, doc_id, assessor, grade)


def is_read(value: dict[str, Any]) -> bool:
    """Return whether umbrela found a grade in the model's answer."""
    return value.get("result_status") != 0


def _ids(value: dict[str, Any], line: Line, reading: _Objects, known: Ids_by_texts | None) -> tuple[str, str]:
    if reading.has(value, "topic") or reading.has(value, "document"):
        return reading.id(value, "topic", line), reading.id(value, "document", line)
    if known is None:
        reason = (
            "umbrela's record names no qid and docid: add them, or give the file of requests that it judged"
        )
        reading.fail(line, "topic", reason)
    waiting = known.get((str(value.get("query")), str(value.get("passage"))))
    if not waiting:
        reading.fail(line, "topic", "the requests have no such query and passage left")
    return waiting.popleft()


def _requests_name(source: Source) -> str:
    """Return how messages call the file of requests."""
    return os.fspath(source) if isinstance(source, str | os.PathLike) else "requests"


def request_ids(source: Source, name: str = "requests") -> Ids_by_texts:
    """Return the ids of query and passage by their texts, in the order of umbrela's requests."""
    found: Ids_by_texts = {}
    for line in object_lines(source, name, None, PLAIN):
        request = json_object(line, name)
        query: Any = request.get("query")
        for candidate in request.get("candidates") or ():
            try:
                texts = query["text"], candidate["doc"]["segment"]
                ids = str(query["qid"]), str(candidate["docid"])
            except (KeyError, TypeError):
                reason = "a request is {query: {qid, text}, candidates: [{docid, doc: {segment}}]}"
                raise TrecFormatError(name, line.number, 1, reason) from None
            found.setdefault(texts, deque()).append(ids)
    return found
