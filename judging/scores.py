"""Read imported scores: how surely relevant a program says that documents are, each within [0, 1].

Two layouts, told apart by the first line: a run's six columns, whose rank and tag say nothing here, or three.
"""

import os
from itertools import islice

import polars as pl

from judging.faults import Faults, Noting, NotingAll
from judging.kinds import ITEM_COLUMNS, ItemKey
from judging.run_columns import columns_frame, hash_pairs
from judging.runs import LAYOUT, RUN_LIMITS, read_columns
from judging.runs import WIDTH as RUN_WIDTH
from judging.textfiles import Limits, Source, TrecFormatError, open_text
from judging.trec import TOKEN, Fields, read_fields

WIDTH = 3
PLAIN_LAYOUT = "topic document score"
COLUMNS = {RUN_WIDTH: (0, 2, 4), WIDTH: (0, 1, 2)}  # where topic, document and score stand
LAYOUTS = {RUN_WIDTH: LAYOUT, WIDTH: PLAIN_LAYOUT}


SCHEMA = {"topic_id": pl.String, "doc_id": pl.String, "score": pl.Float64}


def read_scores(
    source: Source,
    name: str,
    limits: Limits = RUN_LIMITS,
    faults: Faults | None = None,
    encoding: str = "",
) -> pl.DataFrame:
    """Return scores as a frame: topic_id, doc_id, score. A stream must be seekable: a fault is located afterwards.

    Read as ``topic Q0 document rank score tag`` (one tag a file) or ``topic document score``, separated by blanks or
    tabs, whichever the first line is. Refused with ``file:line:column``: another number of columns, a score that is
    not a number within [0, 1], a (topic, document) twice, anything `open_text` refuses. With ``faults`` all that
    is wrong is added to them; then there are no scores.

    >>> import io
    >>> read_scores(io.BytesIO(b"1\\ta\\t0.25\\n1\\tb\\t1\\n"), "example")["score"].to_list()
    [0.25, 1.0]
    """
    start = 0 if isinstance(source, str | os.PathLike) else source.tell()
    with NotingAll(faults):
        width = _width(source, name, limits, encoding)
        rewind(source, start)
        try:
            return _scores(source, name, width, limits, encoding)
        except TrecFormatError:
            rewind(source, start)
            _find_faults(source, name, width, limits, faults, encoding)
            if not faults:
                raise
    return pl.DataFrame(schema=SCHEMA)


def _scores(source: Source, name: str, width: int, limits: Limits, encoding: str) -> pl.DataFrame:
    """Return the scores, or raise a fault of the file, not always its first."""
    if width == RUN_WIDTH:
        frame = columns_frame(read_columns(source, name, limits, encoding)).select(*ITEM_COLUMNS, "score")
        if not frame["score"].is_between(0.0, 1.0).all():
            raise TrecFormatError(name, 1, 1, "a score is not within [0, 1]")
        return frame
    frame = _plain(source, name, limits, encoding)
    hashes = hash_pairs(frame["topic_id"].to_list(), frame["doc_id"].to_list())
    if pl.Series(hashes).n_unique() != frame.height:
        raise TrecFormatError(name, 1, 1, "two pairs have the same 64-bit hash; rename one document")
    return frame


def rewind(source: Source, start: int) -> None:
    if not isinstance(source, str | os.PathLike):
        source.seek(start)


def _width(source: Source, name: str, limits: Limits, encoding: str) -> int:
    """Return how many columns the file has, by its first line."""
    first = next(islice(open_text(source, name, limits, encoding=encoding), 1), None)
    values = TOKEN.findall(first.text) if first else []
    if not values:
        raise TrecFormatError(name, 1, 1, "no lines in the scores, or none in the first line")
    if len(values) not in COLUMNS:
        layouts = f"{WIDTH} columns ({PLAIN_LAYOUT}) or {RUN_WIDTH} ({LAYOUT})"
        raise TrecFormatError(name, 1, 1, f"expected {layouts}, found {len(values)}")
    return len(values)


def _plain(source: Source, name: str, limits: Limits, encoding: str) -> pl.DataFrame:
    topics, documents, scores = [], [], []
    for fields in read_fields(source, name, WIDTH, PLAIN_LAYOUT, limits, encoding=encoding):
        topics.append(fields.id(0, "topic id"))
        documents.append(fields.id(1, "document id"))
        scores.append(_score(fields, 2))
    return pl.DataFrame([topics, documents, scores], schema=SCHEMA)


def _score(fields: Fields, index: int) -> float:
    value = fields.number_at(index, "score")
    if not 0.0 <= value <= 1.0:
        fields.fail(index, f"score must be within [0, 1], not {fields.values[index][:40]}")
    return value


def _find_faults(
    source: Source, name: str, width: int, limits: Limits, faults: Faults | None, encoding: str
) -> None:
    """Raise the first error of the file, in reading order, with its place; with ``faults``, add all to them."""
    topic, document, score = COLUMNS[width]
    seen: dict[ItemKey, int] = {}
    noting = Noting(faults)
    for fields in read_fields(source, name, width, LAYOUTS[width], limits, faults, encoding):
        with noting:
            key = ItemKey(fields.id(topic, "topic id"), fields.id(document, "document id"))
            _score(fields, score)
            before = seen.setdefault(key, fields.number)
            if before != fields.number:
                what = f"document {key.document} of topic {key.topic}"
                fields.fail(document, f"{what} occurs twice (first on line {before})")
