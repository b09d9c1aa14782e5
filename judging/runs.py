"""Read a run file ``topic Q0 document rank score tag`` into columns, in the order trec_eval gives it.

Fast pass: numpy on blocks of bytes. Only when it finds anything wrong, a slow pass goes line by line and
says where. Order: trec_eval's (trec_order.py). The rank column is never trusted.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from judging.faults import Faults, Noting, NotingAll
from judging.kinds import ItemKey
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
from judging.trec import Fields, read_fields
from judging.trec_order import best_rows, rank_order

LAYOUT = "topic Q0 document rank score tag"
WIDTH = 6
RUN_LIMITS = Limits(
    max_bytes=512 << 20
)  # a whole run's columns are in memory: 100 MB and about 250 bytes a line
CHUNK_SIZE = 8 * BLOCK_SIZE
WHITE = b" \t\r\n"
CONTROL_BYTES = bytes([*range(9), 11, 12, *range(14, 32), 127])
SCORE_BYTES = b"0123456789+-.eE\n"
PADDING = b"\0" * 8

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Hashes = NDArray[np.uint64]
Floats = NDArray[np.float64]


class _NotFastError(Exception):
    """The fast pass met something that is wrong or unusual."""


@dataclass(frozen=True)
class RunColumns:
    """A run in trec_eval's order: topics ascending as strings, rows ranked within topic.

    ``offsets[t] : offsets[t + 1]`` are topic t's rows. ``pair_hashes`` are `hash_pairs` of the rows.
    """

    run_tag: str
    topic_ids: tuple[str, ...]
    offsets: Ints
    doc_ids: pl.Series
    scores: Floats
    pair_hashes: Hashes


# 64-bit hash of tokens. Our own few lines, because the stored form needs the same value on every machine and
# version for ever. Mixer: the finaliser of splitmix64 (Steele, Lea & Flood 2014), a bijection of 64 bits.


def _mix(state: Hashes) -> Hashes:
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


_KEEP = np.array([(1 << (8 * kept)) - 1 for kept in range(9)], dtype=np.uint64)  # masks of the last word


def hash_tokens(data: bytes, starts: Ints, lengths: Ints, seeds: Hashes) -> Hashes:
    """Return a 64-bit hash of ``data[start : start + length]`` for every token, seeded by ``seeds``.

    ``data`` must go on for 8 bytes after the last token. Two tokens of one seed collide with chance 2^-64.
    """
    words = np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))  # a word at every byte
    state = _mix(seeds + lengths.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    longest = int(lengths.max(initial=0))
    for done in range(0, longest, 8):
        active: Ints | slice = slice(None) if done == 0 else np.flatnonzero(lengths > done)
        kept = np.minimum(lengths[active] - done, 8)
        word = words[starts[active] + done].astype(np.uint64) & _KEEP[kept]
        state[active] = _mix(state[active] ^ word)
    return state


def hash_pairs(topic_ids: list[str], doc_ids: list[str]) -> Hashes:
    """Return the 64-bit hash of every (topic, document), as stored runs hold it.

    >>> hash_pairs(["301", "30"], ["FT911-3", "1FT911-3"]).dtype
    dtype('uint64')
    """
    topics = _hash_strings(topic_ids, np.zeros(len(topic_ids), dtype=np.uint64))
    return _hash_strings(doc_ids, topics)


def _hash_strings(values: list[str], seeds: Hashes) -> Hashes:
    encoded = [value.encode() for value in values]
    lengths = np.array([len(value) for value in encoded], dtype=np.int64)
    starts = np.cumsum(lengths) - lengths
    return hash_tokens(b"".join(encoded) + PADDING, starts, lengths, seeds)


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
    if data.translate(None, CONTROL_BYTES) != data:
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


def _tokens(data: bytes, max_line: int) -> tuple[Ints, Ints]:
    """Return starts and ends of the tokens, shape [line, 6]; every line must have exactly six."""
    array = np.frombuffer(data, dtype=np.uint8)
    white = np.ones(len(array) + 1, dtype=np.bool_)
    np.less_equal(array, 32, out=white[1:])
    edges = np.flatnonzero(white[1:] != white[:-1])
    line_ends = np.flatnonzero(array == 10)
    if len(edges) != 2 * WIDTH * len(line_ends):
        raise _NotFastError
    starts, ends = edges[0::2].reshape(-1, WIDTH), edges[1::2].reshape(-1, WIDTH)
    before = np.concatenate(([-1], line_ends[:-1]))
    if np.any(ends[:, -1] > line_ends) or np.any(starts[:, 0] < before):
        raise _NotFastError
    sizes = line_ends - before - 1
    if int(sizes.max()) > max_line and np.any(sizes - (array[line_ends - 1] == 13) > max_line):
        raise _NotFastError
    return starts, ends


def _column(array: Bytes, starts: Ints, ends: Ints) -> bytes:
    """Return the tokens of one column, each followed by a line end."""
    # The byte after a token is white space: it becomes the line end.
    edges = np.stack([starts, ends + 1], axis=1).ravel()
    kept = np.tile(np.array([False, True]), len(starts))
    column = array[: edges[-1]][np.repeat(kept, np.diff(edges, prepend=0))]
    column[np.cumsum(ends - starts + 1) - 1] = 10
    return bytes(column.tobytes())


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


def _block(data: bytes, max_line: int, depth: int) -> _Block:
    _check_bytes(data)
    starts, ends = _tokens(data, max_line)
    lengths = ends - starts
    if int(lengths[:, [0, 2, 5]].max()) > MAX_ID_BYTES:
        raise _NotFastError
    array, padded = np.frombuffer(data, dtype=np.uint8), data + PADDING
    zeros = np.zeros(len(starts), dtype=np.uint64)
    topic_hashes = hash_tokens(padded, starts[:, 0], lengths[:, 0], zeros)
    stretch_starts = np.flatnonzero(np.concatenate(([True], topic_hashes[1:] != topic_hashes[:-1])))
    topics = [data[starts[row, 0] : ends[row, 0]] for row in stretch_starts.tolist()]
    tag_hashes = hash_tokens(padded, starts[:, 5], lengths[:, 5], zeros)
    if np.any(tag_hashes != tag_hashes[0]):
        raise _NotFastError
    scores = _scores(_column(array, starts[:, 4], ends[:, 4]))
    stretches = np.diff(np.append(stretch_starts, len(starts)))
    topic_of = np.repeat(np.arange(len(topics)), stretches)
    rows: Ints | None = None
    documents = starts[:, 2], ends[:, 2]
    pair_hashes = hash_tokens(padded, starts[:, 2], lengths[:, 2], topic_hashes)
    if depth:
        codes = np.unique(topic_hashes[stretch_starts], return_inverse=True)[1]
        rows = best_rows(np.repeat(codes, stretches), scores, depth)
        topic_of, scores = topic_of[rows], scores[rows]
        documents = starts[rows, 2], ends[rows, 2]
    return _Block(
        topics=topics,
        topic_of=topic_of,
        docs=_column(array, *documents),
        scores=scores,
        rows=rows,
        tag=data[starts[0, 5] : ends[0, 5]],
        pair_hashes=pair_hashes,
    )


def text_lines(column: bytes) -> pl.Series:
    """Return one string per line of a column whose tokens hold no white space."""
    return pl.read_csv(
        column, has_header=False, schema={"doc_id": pl.String}, separator="\1", quote_char=None
    )["doc_id"]


def _fast(source: Source, limits: Limits, encoding: str, depth: int = 0) -> tuple[RunColumns, int]:
    """Return a run, or with a depth at least so many rows of each topic, and how many rows there are."""
    with binary(source) as stream:
        blocks = read_blocks(stream, limits, encoding)
        parts = [_block(data, limits.max_line, depth) for data in _whole_lines(blocks)]
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


def _find_faults(
    source: Source, name: str, limits: Limits, faults: Faults | None = None, encoding: str = ""
) -> None:
    """Raise the first error of the file, in reading order, with its place; with ``faults``, add all to them."""
    first: dict[ItemKey, int] = {}
    tag: str | None = None
    noting, n_before = Noting(faults), len(faults or ())
    with NotingAll(faults):
        for fields in read_fields(source, name, WIDTH, LAYOUT, limits, faults, encoding):
            with noting:
                tag = tag or fields.values[5]
                _check_line(fields, tag, first)
        if len(faults or ()) > n_before:
            return  # of this file; those before it may have had others
        if tag is None:
            raise TrecFormatError(name, 1, 1, "no lines in the run")
        raise TrecFormatError(name, 1, 1, "two pairs have the same 64-bit hash; rename one document")


def _check_line(fields: Fields, tag: str, first: dict[ItemKey, int]) -> None:
    key = ItemKey(fields.id(0, "topic id"), fields.id(2, "document id"))
    fields.number_at(4, "score")
    fields.id(5, "run tag")
    if fields.values[5] != tag:
        fields.fail(5, f"one run tag a file: {fields.values[5][:80]!r} after {tag[:80]!r}")
    before = first.setdefault(key, fields.number)
    if before != fields.number:
        fields.fail(2, f"document {key.document} of topic {key.topic} occurs twice (first on line {before})")


def find_faults(
    source: Source, name: str, faults: Faults, limits: Limits = RUN_LIMITS, encoding: str = ""
) -> None:
    """Add to the faults all that is wrong in a run. A stream must be seekable."""
    start = 0 if isinstance(source, str | os.PathLike) else source.tell()
    try:
        _fast(source, limits, encoding)
    except (_NotFastError, BrokenFileError):
        if not isinstance(source, str | os.PathLike):
            source.seek(start)
        _find_faults(source, name, limits, faults, encoding)


def read_columns(source: Source, name: str, limits: Limits = RUN_LIMITS, encoding: str = "") -> RunColumns:
    """Return a validated run, in UTF-8 or that encoding. A stream must be seekable: a second pass finds faults."""
    return _read(source, name, limits, encoding)[0]


def read_first(
    source: Source, name: str, depth: int, limits: Limits = RUN_LIMITS, encoding: str = ""
) -> tuple[RunColumns, int]:
    """Return the beginning of a run and how many rows all of it has. All is validated, as by `read_columns`.

    Of every topic the first ``depth`` rows are there, in their ranks, and perhaps some more behind them.

    >>> import io
    >>> first, n_rows = read_first(io.BytesIO(b"1 Q0 a 1 0.5 mine\\n1 Q0 b 2 0.7 mine\\n"), "example", 1)
    >>> first.doc_ids.to_list(), n_rows
    (['b'], 2)
    """
    return _read(source, name, limits, encoding, depth)


def _read(source: Source, name: str, limits: Limits, encoding: str, depth: int = 0) -> tuple[RunColumns, int]:
    start = 0 if isinstance(source, str | os.PathLike) else source.tell()
    try:
        return _fast(source, limits, encoding, depth)
    except (_NotFastError, BrokenFileError):
        if not isinstance(source, str | os.PathLike):
            source.seek(start)
        _find_faults(source, name, limits, encoding=encoding)
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


def columns_frame(columns: RunColumns) -> pl.DataFrame:
    """Return the frame of `read_run`."""
    counts = np.diff(columns.offsets)
    rank = np.arange(len(columns.scores)) - np.repeat(columns.offsets[:-1], counts) + 1
    topics = pl.Series("topic_id", columns.topic_ids, dtype=pl.String)
    return pl.DataFrame(
        {
            "topic_id": topics.gather(np.repeat(np.arange(len(counts)), counts)),
            "doc_id": columns.doc_ids,
            "rank": rank.astype(np.uint32),
            "score": columns.scores,
            "run_tag": pl.repeat(columns.run_tag, len(rank), eager=True),
        }
    )
