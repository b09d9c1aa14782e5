"""The beginning of a run is that of the whole run, whatever its ties, topics, ids and blocks; all of it is checked."""

import io
import random

import numpy as np
import pytest

from judging import runs
from judging.faults import TrecFormatError
from judging.formats.run_names import format_in, read_named_beginning
from judging.run_tables import RunFile
from judging.runs import read_columns, read_first
from judging.tokens import PADDING, changes, token_lines


def a_run(seed, *, n_topics=4, n_documents=60, scattered=False, long_ids=False):
    """Return lines of few different scores, so that many documents are tied, in no order."""
    chance = random.Random(seed)
    name = "a-document-with-a-name-so-long-that-it-is-copied-in-another-way-{}" if long_ids else "d{}"
    rows = [
        (f"t{topic}", name.format(number), chance.randrange(1, 12) / 4)
        for topic in range(n_topics)
        for number in chance.sample(range(900), n_documents)
    ]
    if scattered:
        chance.shuffle(rows)
    return "".join(f"{topic} Q0 {doc} 1 {score} tag\n" for topic, doc, score in rows).encode()


def of_topics(columns, depth):
    """Return the first documents and scores of each topic."""
    bounds = zip(columns.offsets[:-1], columns.offsets[1:], strict=True)
    parts = [slice(start, min(start + depth, end)) for start, end in bounds]
    documents, scores = columns.doc_ids.to_list(), columns.scores.tolist()
    return {
        topic: list(zip(documents[part], scores[part], strict=True))
        for topic, part in zip(columns.topic_ids, parts, strict=True)
    }


@pytest.mark.parametrize("depth", [1, 7, 59, 60, 1000])
@pytest.mark.parametrize("given", [{}, {"scattered": True}, {"long_ids": True}, {"n_documents": 1}])
@pytest.mark.parametrize("chunk", [300, 1 << 20])
def test_the_beginning_is_that_of_the_whole_run(monkeypatch, depth, given, chunk):
    monkeypatch.setattr(runs, "CHUNK_SIZE", chunk)
    monkeypatch.setattr(runs, "read_blocks", in_small_blocks(chunk))
    data = a_run(depth, **given)
    whole = read_columns(io.BytesIO(data), "run")
    first, n_rows = read_first(io.BytesIO(data), "run", depth)
    assert n_rows == len(whole.scores) == data.count(b"\n")
    assert (first.run_tag, first.topic_ids) == (whole.run_tag, whole.topic_ids)
    assert of_topics(first, depth) == of_topics(whole, depth)
    hashes = dict(zip(whole.pair_hashes.tolist(), whole.doc_ids.to_list(), strict=True))
    assert [hashes[one] for one in first.pair_hashes.tolist()] == first.doc_ids.to_list()


def in_small_blocks(size):
    read = runs.read_blocks

    def blocks(*given):
        for block in read(*given):
            yield from (block[start : start + size] for start in range(0, len(block), size))

    return blocks


def test_less_is_kept_of_a_run_than_it_has():
    data = b"".join(f"t Q0 d{rank} {rank} {2000 - rank} tag\n".encode() for rank in range(1500))
    first, n_rows = read_first(io.BytesIO(data), "run", 100)
    assert (len(first.doc_ids), n_rows) == (100, 1500)


def test_a_given_name_counts_whatever_the_lines_say():
    data = b"t Q0 a 1 0.5 one\nt Q0 b 2 0.7 other\n"
    first, n_rows = read_first(io.BytesIO(data), "run", 1, run_tag="mine")
    assert (first.run_tag, first.doc_ids.to_list(), n_rows) == ("mine", ["b"], 2)


@pytest.mark.parametrize(
    ("key", "data", "name"),
    [
        ("run", b"t Q0 a 1 0.5 own\nt Q0 b 2 0.7 own\n", "own"),
        ("msmarco", b"t\tb\t1\nt\ta\t2\n", "file"),
        ("json_run", b'{"t": {"a": 0.5, "b": 0.7}}', "file"),
        ("pyterrier", b"qid,docno,rank,score\nt,a,1,0.5\nt,b,0,0.7\n", "file"),
    ],
)
def test_every_format_has_a_beginning(key, data, name):
    first, n_rows = read_named_beginning(format_in(None, key), RunFile(io.BytesIO(data), "file.txt"), 1)
    assert (first.run_tag, first.doc_ids[0], n_rows) == (name, "b", 2)


@pytest.mark.parametrize(
    ("line", "place"),
    [
        (b"t Q0 d0 9 1 tag\n", "run:1501:6"),  # a pair again, far behind the ranks that are kept
        (b"t Q0 new 9 nan tag\n", "run:1501:12"),
        (b"t Q0 new 9 1 other\n", "run:1501:14"),
        (b"t Q0 new 9 1\n", "run:1501"),
    ],
)
def test_what_is_wrong_behind_the_first_ranks_is_found(line, place):
    data = b"".join(f"t Q0 d{rank} {rank} {2000 - rank} tag\n".encode() for rank in range(1500))
    with pytest.raises(TrecFormatError, match=f"^{place}"):
        read_first(io.BytesIO(data + line), "run", 100)


def test_tokens_are_compared_by_all_their_bytes():
    # Words of eight bytes: equal in the first, other in the second or in the length alone.
    tokens = [b"12345678", b"12345678", b"123456789", b"123456788", b"12345678", b"1", b"1"]
    lengths = np.array([len(one) for one in tokens])
    starts = np.cumsum(lengths + 1) - lengths - 1
    data = b" ".join(tokens) + b" " + PADDING
    assert changes(data, starts, lengths).tolist() == [False, True, True, True, True, False]
    assert token_lines(data, starts, lengths) == b"\n".join(tokens) + b"\n"
