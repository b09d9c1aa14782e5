"""Read a run file ``topic Q0 document rank score tag`` into columns, in the order trec_eval gives it.

Fast pass: numpy on blocks of bytes. Only when it finds anything wrong, a slow pass goes line by line and
says where. Order: trec_eval's (run_order.py). The rank column is never trusted.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from judging.faults import Faults, Noting, NotingAll
from judging.kinds import ItemKey
from judging.run_columns import RunColumns, columns_frame
from judging.run_order import TREC, Floats, Layout, best_rows, rank_order
from judging.textfiles import (
    BLOCK_SIZE,
    CONTROL,
    MAX_ID_BYTES,
    BrokenFileError,
    Limits,
    Source,
    TrecFormatError,
    binary,
    read_blocks,
)
from judging.tokens import PADDING, Hashes, Ints, changes, hash_tokens, token_lines
from judging.trec import Fields, read_fields

LAYOUT = "topic Q0 document rank score tag"
WIDTH = TREC.width
RUN_LIMITS = Limits(
    max_bytes=512 << 20
)  # a whole run's columns are in memory: 100 MB and about 250 bytes a line
CHUNK_SIZE = BLOCK_SIZE  # small enough that its arrays stay in the cache, and are not given back in between
WHITE = b" \t\r\n"
SCORE_BYTES = b"0123456789+-.eE\n"


class _NotFastError(Exception):
    """The fast pass met something that is wrong or unusual."""


# The fast pass.


@dataclass(frozen=True)
class _Block:
    topics: list[bytes]  # of each stretch of equal topics
    topic_of: Ints  # the stretch of each row that is kept
    docs: bytes  # one a line, of rows that are kept
    scores: Floats  # the same
    rows: Ints | None  # which are kept; None: all
    tag: bytes
    pair_hashes: Hashes  # of all rows


def _whole_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Return blocks that end with a line; empty lines at the end of the file are dropped."""
    held: list[bytes] = []
    size = 0
    for block in blocks:
        held.append(block)
        size += len(block)
        if size < CHUNK_SIZE:
            continue
        data = b"".join(held)
        lines = data[: data.rfind(b"\n") + 1]
        if not lines:
            raise _NotFastError  # a line longer than any limit
        body = _body(lines)
        end = data.find(b"\n", len(body))
        if body:
            yield data[: end + 1]
        rest = data[end + 1 :] if body else data
        held = [rest if rest.strip(WHITE) else b"\n" * (b"\n" in rest) + rest[rest.rfind(b"\n") + 1 :]]
        size = len(held[0])
    body = _body(b"".join(held))
    if body:
        yield body + b"\n"


def _body(data: bytes) -> bytes:
    """Return the data up to the last byte that is not white space."""
    body = data.rstrip(WHITE)
    if b"\r" in data[len(body) :].removesuffix(b"\r").replace(b"\r\n", b""):
        raise _NotFastError  # a lone carriage return
    return body


def _check_bytes(data: bytes) -> None:
    """Raise `_NotFastError` unless all characters are allowed in a run and all lines end well."""
    array = np.frombuffer(data, dtype=np.uint8)
    n_white = sum(np.count_nonzero(array == byte) for byte in WHITE)
    if np.count_nonzero(array <= 32) != n_white or np.any(array == 127):
        raise _NotFastError
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        raise _NotFastError
    if not data.isascii():
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            raise _NotFastError from None
        if CONTROL.search(text.replace("\r\n", "\n")):
            raise _NotFastError


@dataclass(frozen=True)
class _Column:
    """One column's tokens."""

    starts: Ints
    lengths: Ints


def _tokens(data: bytes, max_line: int, width: int) -> list[_Column]:
    """Return the columns of tokens; every line must have exactly that many."""
    array = np.frombuffer(data, dtype=np.uint8)
    white = np.ones(len(array) + 1, dtype=np.bool_)
    np.less_equal(array, 32, out=white[1:])
    edges = np.flatnonzero(white[1:] != white[:-1])
    line_ends = np.flatnonzero(array == 10)
    if len(edges) != 2 * width * len(line_ends):
        raise _NotFastError
    table = edges.reshape(-1, 2 * width)
    before = np.concatenate(([-1], line_ends[:-1]))
    if np.any(table[:, -1] > line_ends) or np.any(table[:, 0] < before):
        raise _NotFastError
    sizes = line_ends - before - 1
    if int(sizes.max()) > max_line and np.any(sizes - (array[line_ends - 1] == 13) > max_line):
        raise _NotFastError
    starts = [np.ascontiguousarray(table[:, 2 * place]) for place in range(width)]
    return [_Column(start, table[:, 2 * place + 1] - start) for place, start in enumerate(starts)]


def _scores(column: bytes) -> Floats:
    if column.translate(None, SCORE_BYTES):
        raise _NotFastError  # nan, inf, hexadecimal, underscores
    try:
        frame = pl.read_csv(
            column, has_header=False, schema={"score": pl.Float64}, separator="\1", quote_char=None
        )
    except pl.exceptions.PolarsError:
        raise _NotFastError from None
    scores: Floats = frame["score"].to_numpy()
    if len(scores) != column.count(b"\n") or not np.isfinite(scores).all():
        raise _NotFastError  # 1e999
    return scores


def _block(data: bytes, max_line: int, depth: int, run_tag: str, layout: Layout) -> _Block:
    _check_bytes(data)
    columns = _tokens(data, max_line, layout.width)
    if max(int(columns[place].lengths.max()) for place in layout.ids) > MAX_ID_BYTES:
        raise _NotFastError
    topic, document, score = (columns[place] for place in (layout.topic, layout.document, layout.score))
    padded, n_rows = data + PADDING, len(topic.starts)
    tag = run_tag.encode()
    if layout.tag is not None and not run_tag:
        tags = columns[layout.tag]
        if np.any(changes(padded, tags.starts, tags.lengths)):
            raise _NotFastError
        tag = _token(data, tags, 0)
    stretch_starts = np.flatnonzero(np.concatenate(([True], changes(padded, topic.starts, topic.lengths))))
    stretches = np.diff(np.append(stretch_starts, n_rows))
    firsts = _Column(topic.starts[stretch_starts], topic.lengths[stretch_starts])
    topics = [_token(data, firsts, place) for place in range(len(stretch_starts))]
    zeros = np.zeros(len(topics), dtype=np.uint64)
    topic_hashes = np.repeat(hash_tokens(padded, firsts.starts, firsts.lengths, zeros), stretches)
    scores = _scores(token_lines(data, score.starts, score.lengths))
    if layout.is_by_rank:
        scores = _scores_of_ranks(scores)
    topic_of = np.repeat(np.arange(len(topics)), stretches)
    pair_hashes = hash_tokens(padded, document.starts, document.lengths, topic_hashes)
    rows: Ints | None = None
    if depth:
        rows = best_rows(_codes(topics)[topic_of], scores, depth)
        topic_of, scores = topic_of[rows], scores[rows]
        document = _Column(document.starts[rows], document.lengths[rows])
    return _Block(
        topics=topics,
        topic_of=topic_of,
        docs=token_lines(data, document.starts, document.lengths),
        scores=scores,
        rows=rows,
        tag=tag,
        pair_hashes=pair_hashes,
    )


def _scores_of_ranks(ranks: Floats) -> Floats:
    if np.any((ranks < 0) | (ranks != np.floor(ranks))):
        raise _NotFastError
    return -ranks


def _token(data: bytes, column: _Column, row: int) -> bytes:
    start = int(column.starts[row])
    return data[start : start + int(column.lengths[row])]


def _codes(topics: list[bytes]) -> Ints:
    """Return a number for each, equal ones the same."""
    numbers: dict[bytes, int] = {}
    return np.array([numbers.setdefault(topic, len(numbers)) for topic in topics], dtype=np.int64)


def text_lines(column: bytes) -> pl.Series:
    """Return one string per line of a column whose tokens hold no white space."""
    return pl.read_csv(
        column, has_header=False, schema={"doc_id": pl.String}, separator="\1", quote_char=None
    )["doc_id"]


def _fast(
    source: Source, limits: Limits, encoding: str, run_tag: str = "", layout: Layout = TREC, depth: int = 0
) -> tuple[RunColumns, int]:
    """Return a run, or with a depth at least so many rows of each topic, and how many rows there are."""
    with binary(source) as stream:
        blocks = read_blocks(stream, limits, encoding)
        parts = [_block(data, limits.max_line, depth, run_tag, layout) for data in _whole_lines(blocks)]
    if not parts or any(part.tag != parts[0].tag for part in parts):
        raise _NotFastError
    pair_hashes = np.concatenate([part.pair_hashes for part in parts])
    n_rows = len(pair_hashes)
    in_order = np.sort(pair_hashes)
    if np.any(in_order[1:] == in_order[:-1]):
        raise _NotFastError  # a pair twice, or two pairs of one hash
    del in_order
    if depth:
        pair_hashes = np.concatenate(
            [part.pair_hashes if part.rows is None else part.pair_hashes[part.rows] for part in parts]
        )
    topics = [topic.decode() for part in parts for topic in part.topics]
    before = np.cumsum([0, *(len(part.topics) for part in parts)])
    topic_of = np.concatenate([part.topic_of + n for part, n in zip(parts, before[:-1], strict=True)])
    scores = np.concatenate([part.scores for part in parts])
    docs = text_lines(b"".join(part.docs for part in parts))
    tag = parts[0].tag.decode()
    del parts
    order, topic_ids, offsets = rank_order(topics, topic_of, docs, scores)
    if np.any(order[1:] < order[:-1]):  # most files are in order: save a copy of everything
        docs, scores, pair_hashes = docs.gather(order), scores[order], pair_hashes[order]
    return RunColumns(tag, topic_ids, offsets, docs, scores, pair_hashes), n_rows


def read_fast(
    source: Source, limits: Limits, encoding: str, run_tag: str, layout: Layout
) -> RunColumns | None:
    """Return the run of lines of that layout; None if anything is wrong or unusual, which a slow pass must say."""
    try:
        return _fast(source, limits, encoding, run_tag, layout)[0]
    except (_NotFastError, BrokenFileError):
        return None


def _find_faults(
    source: Source,
    name: str,
    limits: Limits,
    faults: Faults | None = None,
    encoding: str = "",
    run_tag: str = "",
) -> None:
    """Raise the first error of the file, in reading order, with its place; with ``faults``, add all to them."""
    first: dict[ItemKey, int] = {}
    tag: str | None = None
    noting, n_before = Noting(faults), len(faults or ())
    with NotingAll(faults):
        for fields in read_fields(source, name, WIDTH, LAYOUT, limits, faults, encoding):
            with noting:
                tag = tag or fields.values[5]
                _check_line(fields, "" if run_tag else tag, first)
        if len(faults or ()) > n_before:
            return  # of this file; those before it may have had others
        if tag is None:
            raise TrecFormatError(name, 1, 1, "no lines in the run")
        raise TrecFormatError(name, 1, 1, "two pairs have the same 64-bit hash; rename one document")


def _check_line(fields: Fields, tag: str, first: dict[ItemKey, int]) -> None:
    key = ItemKey(fields.id(0, "topic id"), fields.id(2, "document id"))
    fields.number_at(4, "score")
    fields.id(5, "run tag")
    if tag and fields.values[5] != tag:
        fields.fail(5, f"one run tag a file: {fields.values[5][:80]!r} after {tag[:80]!r}")
    before = first.setdefault(key, fields.number)
    if before != fields.number:
        fields.fail(2, f"document {key.document} of topic {key.topic} occurs twice (first on line {before})")


def find_faults(
    source: Source,
    name: str,
    faults: Faults,
    limits: Limits = RUN_LIMITS,
    encoding: str = "",
    run_tag: str = "",
) -> None:
    """Add to the faults all that is wrong in a run. A stream must be seekable."""
    start = 0 if isinstance(source, str | os.PathLike) else source.tell()
    try:
        _fast(source, limits, encoding, run_tag)
    except (_NotFastError, BrokenFileError):
        if not isinstance(source, str | os.PathLike):
            source.seek(start)
        _find_faults(source, name, limits, faults, encoding, run_tag)


def read_columns(
    source: Source, name: str, limits: Limits = RUN_LIMITS, encoding: str = "", run_tag: str = ""
) -> RunColumns:
    """Return a validated run, in UTF-8 or that encoding. A stream must be seekable: a second pass finds faults.

    With a `run_tag` the run has that tag, whatever the tags of its lines.
    """
    return read_first(source, name, 0, limits, encoding, run_tag)[0]


def read_first(
    source: Source,
    name: str,
    depth: int,
    limits: Limits = RUN_LIMITS,
    encoding: str = "",
    run_tag: str = "",
) -> tuple[RunColumns, int]:
    """Return the beginning of a run and how many rows all of it has. All is validated, as by `read_columns`.

    Of every topic the first ``depth`` rows are there, in their ranks, and perhaps some more behind them; at 0, all.

    >>> import io
    >>> first, n_rows = read_first(io.BytesIO(b"1 Q0 a 1 0.5 mine\\n1 Q0 b 2 0.7 mine\\n"), "example", 1)
    >>> first.doc_ids.to_list(), n_rows
    (['b'], 2)
    """
    start = 0 if isinstance(source, str | os.PathLike) else source.tell()
    try:
        return _fast(source, limits, encoding, run_tag, depth=depth)
    except (_NotFastError, BrokenFileError):
        if not isinstance(source, str | os.PathLike):
            source.seek(start)
        _find_faults(source, name, limits, encoding=encoding, run_tag=run_tag)
        raise


def read_run(source: Source, name: str, limits: Limits = RUN_LIMITS) -> pl.DataFrame:
    """Return a run as a frame: topic_id, doc_id, rank, score, run_tag; topics ascending, rows ranked.

    Refused with ``file:line:column``: not six columns, a score that is not finite, two run tags, a
    (topic, document) twice, anything `open_text` refuses. The rank is trec_eval's, never the file's.

    >>> import io
    >>> lines = b"1 Q0 a 1 0.5 mine\\n1 Q0 b 2 0.5 mine\\n"
    >>> read_run(io.BytesIO(lines), "example")["doc_id"].to_list()
    ['b', 'a']
    """
    return columns_frame(read_columns(source, name, limits))
