"""Read a run that is one JSON object, ``{topic: {document: score}}``, as BEIR, MTEB, ranx and pytrec_eval have it.

MTEB's predictions hold such objects by subset and split, below the model's name. Fast pass: the decoder of json. Only
when it finds anything wrong, a slow pass goes member by member and says where.
"""

import json
import math
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NoReturn

from judging.json_files import DECODER
from judging.run_tables import PlacedRow, RunFile
from judging.textfiles import (
    CONTROL,
    MAX_ID_BYTES,
    BrokenFileError,
    TrecFormatError,
    binary,
    check_id,
    read_blocks,
)

MTEB_META = "mteb_model_meta"
MOST_BYTES = 256 << 20  # the text and all its values are in memory
SPACE = re.compile(r"[ \t\r\n]*")
SURROGATE = re.compile("[\ud800-\udfff]")
LARGEST = sys.float_info.max
FORM = '{"topic": {"document": score}}'


class _NotFastError(Exception):
    """The fast pass met something that is wrong or unusual."""


def object_rows(file: RunFile) -> Iterator[PlacedRow]:
    """Return the rows of ``{topic: {document: score}}``; scores must be finite, and no name may occur twice.

    >>> import io
    >>> file = RunFile(io.BytesIO(b'{"7": {"a": 0.5, "b": 2}}'), "example")
    >>> [(row.topic_id, row.doc_id, row.score) for row in object_rows(file)]
    [('7', 'a', 0.5), ('7', 'b', 2.0)]
    """
    text = _text(file)
    try:
        found = _fast(text)
    except _NotFastError:
        found = _slow(_Text(text, file.name))
    yield from found


def _text(file: RunFile) -> str:
    limits = replace(file.limits, max_bytes=min(file.limits.max_bytes, MOST_BYTES))
    with binary(file.source) as stream:
        try:
            data = b"".join(read_blocks(stream, limits, file.encoding))
        except BrokenFileError as error:
            raise TrecFormatError(file.name, 1, 1, str(error)) from None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        _Text(before, file.name).fail(len(before), f"not valid {file.encoding or 'UTF-8'}")


# -- fast -----------------------------------------------------------------------------------------------------


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) != len(members):
        raise _NotFastError
    return found


def _refuse_constant(_: str) -> NoReturn:
    raise _NotFastError  # NaN, Infinity


def _fast(text: str) -> Iterator[PlacedRow]:
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise _NotFastError from None
    if not isinstance(value, dict):
        raise _NotFastError
    tag = ""
    if MTEB_META in value:
        tag = _model(value.pop(MTEB_META))
        value = _only(_only(value))
    if not all(isinstance(scores, dict) for scores in value.values()):
        raise _NotFastError
    for ids in (value, *value.values()):
        joined = "\n".join(ids)
        if len(joined.split()) != len(ids) or CONTROL.search(joined):
            raise _NotFastError  # white space in an id, or nothing
        if max(map(len, ids), default=0) * 4 > MAX_ID_BYTES or SURROGATE.search(joined):
            raise _NotFastError
    for scores in value.values():
        if not all(type(score) in (int, float) and abs(score) <= LARGEST for score in scores.values()):
            raise _NotFastError
    return (
        PlacedRow(topic_id, doc_id, float(score), 1, 1, tag)
        for topic_id, scores in value.items()
        for doc_id, score in scores.items()
    )


def _only(value: Any) -> Any:
    if not isinstance(value, dict) or len(value) != 1:
        raise _NotFastError
    (inner,) = value.values()
    if not isinstance(inner, dict):
        raise _NotFastError
    return inner


def _model(meta: Any) -> str:
    """Return the model's name as one word."""
    name = meta.get("model_name") if isinstance(meta, dict) else None
    return "_".join(name.split()) if isinstance(name, str) else ""


# -- slow -----------------------------------------------------------------------------------------------------


class _Text:
    """The text of a file, whose objects are gone through member by member."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, name
        self._at, self._line, self._newline = (
            0,
            1,
            -1,
        )  # how far lines were counted, and the last line end before

    def fail(self, at: int, reason: str) -> NoReturn:
        raise TrecFormatError(self.name, *self.place(at), reason)

    def place(self, at: int) -> tuple[int, int]:
        """Return line and column; places are asked for forwards, so that a long text is gone through once."""
        if at < self._at:
            self._at, self._line, self._newline = 0, 1, -1
        self._line += self.text.count("\n", self._at, at)
        self._newline = max(self._newline, self.text.rfind("\n", self._at, at))
        self._at = at
        return self._line, at - self._newline

    def skip(self, at: int) -> int:
        found = SPACE.match(self.text, at)
        return found.end() if found else at

    def decode(self, at: int) -> tuple[Any, int]:
        try:
            return DECODER.raw_decode(self.text, at)
        except json.JSONDecodeError as error:
            self.fail(error.pos, f"malformed JSON ({error.msg})")
        except (ValueError, RecursionError) as error:
            self.fail(at, f"JSON refused ({type(error).__name__})")

    def members(self, at: int, what: str) -> Iterator[tuple[str, int, Any, int]]:
        """Yield key, its place, value and its place of the object that begins there; a key twice is an error."""
        if not self.text.startswith("{", at):
            self.fail(at, f"{what} must be a JSON object: a run is {FORM}")
        self.decode(at)  # what is malformed is told before what it holds
        first: dict[str, int] = {}
        at = self.skip(at + 1)
        while not self.text.startswith("}", at):
            key, end = self.decode(at)
            if key in first:
                line, column = self.place(first[key])
                self.fail(at, f"{key[:80]!r} occurs twice in {what} (first at {line}:{column})")
            first[key] = at
            value_at = self.skip(self.skip(end) + 1)
            value, end = self.decode(value_at)
            yield key, at, value, value_at
            at = self.skip(end)
            at = self.skip(at + 1) if self.text.startswith(",", at) else at


def _slow(text: _Text) -> Iterator[PlacedRow]:
    start = text.skip(0)
    top = list(text.members(start, "the file"))
    _, end = text.decode(start)
    if text.skip(end) != len(text.text):
        text.fail(text.skip(end), "expected nothing behind the JSON object")
    tag = next((_model(value) for key, _, value, _ in top if key == MTEB_META), "")
    if any(key == MTEB_META for key, *_ in top):
        top = _one_split(text, top)
    for topic_id, topic_at, _, inner_at in top:
        _id(text, topic_id, "topic id", topic_at)
        for doc_id, doc_at, score, score_at in text.members(inner_at, f"topic {topic_id[:80]}"):
            _id(text, doc_id, "document id", doc_at)
            if type(score) not in (int, float) or not math.isfinite(score):
                text.fail(score_at, f"score must be a finite number, not {str(score)[:40]!r}")
            line, column = text.place(doc_at)
            yield PlacedRow(topic_id, doc_id, float(score), line, column, tag)


def _one_split(text: _Text, top: list[tuple[str, int, Any, int]]) -> list[tuple[str, int, Any, int]]:
    """Return the topics of MTEB's predictions, which must be those of one subset and one split."""
    inner = [member for member in top if member[0] != MTEB_META]
    for what in ("subset", "split"):
        if len(inner) != 1:
            named = ", ".join(key[:40] for key, *_ in inner[:10]) or "none"
            text.fail(0, f"MTEB's predictions of one {what} are one run; this file has {named}")
        ((key, _, _, at),) = inner
        inner = list(text.members(at, f"{what} {key[:80]}"))
    return inner


def _id(text: _Text, value: str, what: str, at: int) -> None:
    check_id(value, what, text.name, *text.place(at))
