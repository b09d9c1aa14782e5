import gzip
import io
import tarfile
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.trec import (
    JudgmentRecord,
    Limits,
    PrelRecord,
    QrelRecord,
    RunRecord,
    TopicRecord,
    TrecFormatError,
    open_text,
    read_crowd_labels,
    read_prels,
    read_qrels,
    read_qrels_jg,
    read_topics,
    write_prels,
    write_qrels,
    write_qrels_jg,
    write_run,
)

GOOD = b"301 0 A 1\n"


def _tar() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        member = tarfile.TarInfo("../qrels.txt")
        member.size = len(GOOD)
        archive.addfile(member, io.BytesIO(GOOD))
    return stream.getvalue()


def _zip() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("../qrels.txt", GOOD)
    return stream.getvalue()


def _damaged() -> bytes:
    data = bytearray(gzip.compress(GOOD))
    data[-8] ^= 1  # the checksum
    return bytes(data)


BAD_FILES = {
    "bad UTF-8": (GOOD + b"301 0 \xff 1\n", 2, 7, "not valid UTF-8"),
    "bad UTF-8 after a letter of two bytes": ("301 0 é".encode() + b"\xff 1\n", 1, 8, "not valid UTF-8"),
    "UTF-16": ("301 0 A 1\n".encode("utf-16"), 1, 1, "UTF-16 text; save it as UTF-8"),
    "NUL": (b"301 0 A\0 1\n", 1, 8, "NUL byte"),
    "NUL before bad UTF-8": (b"301 \0 A\xff 1\n", 1, 5, "NUL byte"),
    "lone CR": (b"301 0 A 1\r302 0 B 1\n", 1, 10, "lone carriage return; end lines with LF or CRLF"),
    "long line": (b"301 0 " + b"a" * 1_000_001, 1, 1_000_001, "line longer than 1000000 bytes"),
    "line without end": (b"a" * 5_000_000, 1, 1_000_001, "line longer than 1000000 bytes"),
    "truncated gz": (gzip.compress(GOOD)[:-4], 2, 1, "truncated gzip file: its end is missing"),
    "gz without its checksum": (_damaged(), 1, 1, None),
    "gz header only": (gzip.compress(GOOD)[:10], 1, 1, "truncated gzip file: its end is missing"),
    "trailing garbage": (gzip.compress(GOOD) + b"rubbish", 2, 1, "trailing garbage after the gzip data"),
    "damaged second member": (gzip.compress(GOOD) + gzip.compress(GOOD)[:10] + b"\xff" * 20, 2, 1, None),
    "gz in gz": (gzip.compress(gzip.compress(GOOD)), 1, 1, "gzip inside gzip; unpack it once"),
    "tar": (_tar(), 1, 1, "a tar archive, not text; unpack it first"),
    "tar as gz": (gzip.compress(_tar()), 1, 1, "a tar archive, not text; unpack it first"),
    "zip as gz": (_zip(), 1, 1, "a zip archive, not text; unpack it first"),
    "bomb of zeros": (gzip.compress(bytes(30_000_000)), 1, 1, "NUL byte"),
    "bomb of empty lines": (
        gzip.compress(GOOD + b"\n" * 30_000_000),
        10_002,
        1,
        "more than 10000 empty lines in a row",
    ),
    "bomb of one line": (gzip.compress(b"a" * 30_000_000), 1, 1_000_001, "line longer than 1000000 bytes"),
}


@pytest.mark.parametrize(("data", "line", "column", "reason"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_bad_file_is_refused_with_its_line_and_column(data, line, column, reason):
    with pytest.raises(TrecFormatError) as caught:
        list(read_qrels(io.BytesIO(data), "q.txt"))
    assert (caught.value.line, caught.value.column) == (line, column)
    assert reason is None or caught.value.reason == reason
    assert str(caught.value) == f"q.txt:{line}:{column}: {caught.value.reason}"


BAD_QRELS = {
    "three columns": (b"301 0 A\n", 1, 8),
    "five columns": (b"301 0 A 1 x\n", 1, 11),
    "grade with a point": (b"301 0 A 1.5\n", 1, 9),
    "grade in other digits": ("301 0 A \u0661\n".encode(), 1, 9),
    "grade above 127": (b"301 0 A 128\n", 1, 9),
    "grade below -127": (b"301 0 A -128\n", 1, 9),
    "pair twice": (GOOD + b"301\t1   A\t0\n", 2, 9),
    "blank line between": (GOOD + b"\n302 0 B 1\n", 2, 1),
    "vertical tab": (b"301 0 A\x0b 1\n", 1, 8),
    "no-break space in an id": ("301 0 A\u00a0B 1\n".encode(), 1, 8),
    "id of 513 bytes": (b"301 0 " + b"a" * 513 + b" 1\n", 1, 7),
}


@pytest.mark.parametrize(("data", "line", "column"), BAD_QRELS.values(), ids=BAD_QRELS.keys())
def test_a_bad_qrels_line_is_refused_with_its_column(data, line, column):
    with pytest.raises(TrecFormatError) as caught:
        list(read_qrels(io.BytesIO(data), "q.txt"))
    assert (caught.value.line, caught.value.column) == (line, column)


GOOD_FILES = {
    "byte order mark": b"\xef\xbb\xbf301 0 A 1\n302 0 B -1\n",
    "CRLF": b"301 0 A 1\r\n302 0 B -1\r\n",
    "no line end at the end": b"301 0 A 1\n302 0 B -1",
    "blank lines at the end": b"301 0 A 1\n302 0 B -1\n\n \t\n",
    "blanks and tabs": b"  301\t0  A 1\n302 0\t\tB -1 \n",
    "gz": gzip.compress(b"301 0 A 1\n302 0 B -1\n"),
    "gz of two members": gzip.compress(b"301 0 A 1\n302 0") + gzip.compress(b" B -1\n"),
    "gz of byte order mark and CRLF": gzip.compress(b"\xef\xbb\xbf301 0 A 1\r\n302 0 B -1\r\n"),
}


@pytest.mark.parametrize("data", GOOD_FILES.values(), ids=GOOD_FILES.keys())
def test_the_same_qrels_are_read_from_every_allowed_form(data):
    assert list(read_qrels(io.BytesIO(data), "q")) == [QrelRecord("301", "A", 1), QrelRecord("302", "B", -1)]


def test_a_path_is_opened_and_its_name_does_not_decide_that_it_is_gzip(tmp_path):
    path = tmp_path / "qrels.gz"
    path.write_bytes(GOOD)
    assert list(read_qrels(path, path.name)) == [QrelRecord("301", "A", 1)]


def test_a_stream_that_gives_one_byte_at_a_time_is_read_too():
    class Slow(io.BytesIO):
        def read(self, size=-1):
            return super().read(1)

    assert [line.text for line in open_text(Slow(gzip.compress(b"a\nb")), "x")] == ["a", "b"]


def test_a_bomb_of_short_lines_is_refused_by_its_ratio():
    bomb = gzip.compress(b"a\n" * 4_000_000)
    limits = Limits(ratio_from=1 << 20, max_ratio=200)
    with pytest.raises(TrecFormatError) as caught:
        list(open_text(io.BytesIO(bomb), "x", limits))
    assert caught.value.reason == "a gzip bomb: it expands to more than 200 times its size"
    assert caught.value.line <= (3 << 20) / 2  # refused at most two blocks after the allowance


def test_more_uncompressed_bytes_than_allowed_are_refused():
    with pytest.raises(TrecFormatError) as caught:
        list(open_text(io.BytesIO(b"abc\n" * 10), "x", Limits(max_bytes=39)))
    assert caught.value.reason == "larger than the limit of 39 uncompressed bytes"
    assert len(list(open_text(io.BytesIO(b"abc\n" * 10), "x", Limits(max_bytes=40)))) == 10


def test_an_error_survives_pickling():
    import pickle

    error = pickle.loads(pickle.dumps(TrecFormatError("f", 2, 3, "because")))  # noqa: S301
    assert (error.file, error.line, error.column, error.reason) == ("f", 2, 3, "because")


ids = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp"], exclude_characters="\ufeff"),
    min_size=1,
    max_size=20,
)
grades = st.integers(-127, 127)


@given(st.dictionaries(st.tuples(ids, ids), grades, max_size=20))
def test_qrels_read_back_as_they_were_written(pairs):
    records = [QrelRecord(topic_id, doc_id, grade) for (topic_id, doc_id), grade in pairs.items()]
    data = "".join(write_qrels(records)).encode()
    assert list(read_qrels(io.BytesIO(data), "q")) == records


@given(st.dictionaries(st.tuples(ids, ids, ids), grades, max_size=20))
def test_judgments_read_back_as_they_were_written(judgments):
    records = [
        JudgmentRecord(topic, document, who, grade) for (topic, document, who), grade in judgments.items()
    ]
    data = "".join(write_qrels_jg(records)).encode()
    assert list(read_qrels_jg(io.BytesIO(data), "q")) == records


@given(
    st.dictionaries(st.tuples(ids, ids), st.tuples(grades, st.floats(0, 1, exclude_min=True)), max_size=20)
)
def test_prels_read_back_as_they_were_written(pairs):
    records = [PrelRecord(topic, document, grade, 1, p) for (topic, document), (grade, p) in pairs.items()]
    data = "".join(write_prels(records)).encode()
    assert list(read_prels(io.BytesIO(data), "p")) == records


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_with_a_place(data):
    places = []
    for read in (read_qrels, read_qrels_jg, read_prels, read_topics, read_crowd_labels):
        try:
            list(read(io.BytesIO(data), "x"))
        except TrecFormatError as error:
            places.append((error.line, error.column))
    assert all(line >= 1 and column >= 1 for line, column in places)


def test_two_assessors_may_judge_a_pair_but_none_twice():
    two = b"1 alice A 1\n1 bob A 0\n"
    assert list(read_qrels_jg(io.BytesIO(two), "j")) == [
        JudgmentRecord("1", "A", "alice", 1),
        JudgmentRecord("1", "A", "bob", 0),
    ]
    with pytest.raises(TrecFormatError) as caught:
        list(read_qrels_jg(io.BytesIO(two + b"1 bob A 1\n"), "j"))
    assert (caught.value.line, caught.value.column) == (3, 7)


@pytest.mark.parametrize(
    ("line", "column"),
    [
        (b"1 A 1 1 0\n", 9),
        (b"1 A 1 1 1.01\n", 9),
        (b"1 A 1 1 nan\n", 9),
        (b"1 A 1 1 1e999\n", 9),
        (b"1 A 1 one 0.5\n", 7),
        (b"1 A x 1 0.5\n", 5),
        (b"1 A 1 1\n", 8),
    ],
)
def test_a_bad_prel_is_refused_with_its_column(line, column):
    with pytest.raises(TrecFormatError) as caught:
        list(read_prels(io.BytesIO(b"1 B 0 2 1\n" + line), "p"))
    assert (caught.value.line, caught.value.column) == (2, column)


def test_a_run_is_written_so_that_its_scores_read_back_exactly():
    assert list(write_run([RunRecord("1", "A", 1, 0.1), RunRecord("1", "B", 2, 1e-300)], "mine")) == [
        "1 Q0 A 1 0.1 mine\n",
        "1 Q0 B 2 1e-300 mine\n",
    ]


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda: list(write_qrels([QrelRecord("1 2", "A", 0)])), "topic id must be one word"),
        (lambda: list(write_qrels([QrelRecord("1", "", 0)])), "document id must be one word"),
        (lambda: list(write_qrels([QrelRecord("1", "A", 128)])), "not 128"),
        (lambda: list(write_prels([PrelRecord("1", "A", 0, 1, 0.0)])), "not 0.0"),
        (lambda: list(write_run([RunRecord("1", "A", 1, float("nan"))], "t")), "score must be finite"),
        (lambda: list(write_run([], "my tag")), "run tag must be one word"),
    ],
)
def test_what_would_not_read_back_is_not_written(write, message):
    with pytest.raises(ValueError, match=message):
        write()


def _topics(data: bytes, file_format: str | None = None) -> list[TopicRecord]:
    return list(read_topics(io.BytesIO(data), "topics", file_format))


def test_sgml_topics_are_read_with_unclosed_tags_and_labels():
    data = b"""
<top>
<num> Number: 301
<title> International Organized Crime

<desc> Description:
Identify organizations that
participate in crime.

<narr> Narrative:
A relevant document must name one.

</top>
<top><head> Tipster
<num> Number: 051
<dom> Domain: Finance
<title> Topic:  Airbus Subsidies
</top>
"""
    assert _topics(data) == [
        TopicRecord(
            "301",
            "International Organized Crime",
            "Identify organizations that participate in crime.",
            "A relevant document must name one.",
        ),
        TopicRecord("051", "Airbus Subsidies"),
    ]


def test_xml_topics_are_read_whatever_their_fields_are_called():
    data = b"""<?xml version="1.0" encoding="ISO-8859-1"?>
<webtrack2009><topic number="wt09-1" type="faceted"><query> obama &amp; family </query>
<description>Find <b>all</b> of it.</description><subtopic number="1">x</subtopic></topic>
<topic><num>Number: 2</num><title>caf\xc3\xa9</title><narrative>n</narrative></topic></webtrack2009>"""
    assert _topics(data) == [
        TopicRecord("wt09-1", "obama & family", "Find all of it."),
        TopicRecord("2", "café", "", "n"),
    ]


def test_tsv_and_jsonl_topics_keep_their_ids_as_strings():
    assert _topics(b"007\tblack bear\n1A\tspies") == [
        TopicRecord("007", "black bear"),
        TopicRecord("1A", "spies"),
    ]
    lines = b'{"_id": "PLAIN-2", "text": "spies", "metadata": {}}\n{"topic_id": 7, "title": "x", "narrative": "n"}'
    assert _topics(lines) == [TopicRecord("PLAIN-2", "spies"), TopicRecord("7", "x", "", "n")]


def test_cranfield_queries_are_numbered_by_their_ordinal_and_only_on_request():
    data = b".I 001\n.W\nwhat laws\nhold .\n.I 004\n.W\nheat\n"
    assert _topics(data, "cranfield") == [TopicRecord("1", "what laws hold ."), TopicRecord("2", "heat")]
    with pytest.raises(TrecFormatError, match="name the format 'cranfield'"):
        _topics(data)


BAD_TOPICS = {
    "empty file": (b"", 1, 1),
    "no topic": (b"<topics></topics>", 1, 1),
    "tsv with three columns": (b"1\ta\tb\n", 1, 4),
    "tsv with one column": (b"1 a\n", 1, 4),
    "tsv with an empty title": (b"1\ta\n2\t \n", 2, 3),
    "tsv with an empty id": (b"\ta\n", 1, 1),
    "tsv with a blank in the id": (b"1 2\ta\n", 1, 1),
    "tsv id twice": (b"1\ta\n2\tb\n1\tc\n", 3, 1),
    "sgml id twice": (b"<top>\n<num> 1\n<title> a\n</top>\n<top>\n<num> 1\n<title> b\n</top>\n", 6, 1),
    "sgml without a title": (b"<top>\n<num> 1\n</top>\n", 1, 1),
    "sgml with an empty title": (b"<top>\n<num> 1\n  <title>\n<desc> x</top>\n", 3, 3),
    "sgml without a number": (b" <top>\n<title> a\n</top>\n", 1, 2),
    "sgml never closed": (b"<top>\n<num> 1\n<title> a\n", 1, 1),
    "sgml text outside": (b"<top><num>1<title>a</top>\n rubbish\n", 2, 2),
    "sgml field outside": (b"<top><num>1<title>a</top>\n <desc> x\n", 2, 2),
    "xml malformed": (b"<topics>\n<topic number='1'><query>a</topic></topics>", 2, 29),
    "xml with a document type": (b"<?xml version='1.0'?>\n<!DOCTYPE t [<!ENTITY x 'y'>]>\n<t/>", 2, 13),
    "xml with an unknown entity": (b"<topics>\n<topic number='1'><query>&x;</query></topic></topics>", 2, 26),
    "xml with a topic in a topic": (b"<t><topic number='1'>\n<topic number='2'/></topic></t>", 2, 1),
    "xml id twice": (b"<t><topic id='1'><title>a</title></topic>\n <topic id='1'><title>b</title></topic></t>", 2, 2),
    "jsonl malformed": (b'{"_id": "1", "text": "a"}\n{"_id": "2" "text"}\n', 2, 13),
    "jsonl that is no object": (b'{"_id": "1", "text": "a"}\n["2"]\n', 2, 1),
    "jsonl with an id of another type": (b'{"_id": [1], "text": "a"}\n', 1, 1),
    "jsonl without a text": (b'{"_id": "1"}\n', 1, 1),
    "jsonl with NUL": (b'{"_id": "1", "text": "a\\u0000"}\n', 1, 1),
    "jsonl with a surrogate": (b'{"_id": "1", "text": "a\\ud800"}\n', 1, 1),
    "jsonl too deep": (b'{"a":' + b"[" * 100_000 + b"\n", 1, 1),
    "jsonl with a huge number": (b'{"_id": ' + b"1" * 5000 + b', "text": "a"}\n', 1, 1),
}  # fmt: skip


@pytest.mark.parametrize(("data", "line", "column"), BAD_TOPICS.values(), ids=BAD_TOPICS.keys())
def test_bad_topics_are_refused_with_line_and_column(data, line, column):
    with pytest.raises(TrecFormatError) as caught:
        _topics(data)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_an_unknown_topic_format_is_named():
    with pytest.raises(ValueError, match="not 'word'"):
        _topics(b"1\ta", "word")


CROWD_FILES = {
    "crowd-kit": b"task,worker,label\n301 A,w1,1\n301 A,w2,0\n",
    "columns": b"worker,topic_id,doc_id,label\nw1,301,A,1\nw2,301,A,0\n",
    "MTurk": (
        b'"HITId","WorkerId","Input.topic_id","Input.doc_id","Answer.comment","Answer.grade"\n'
        b'"h1","w1","301","A","two\nlines, ""quoted""","1"\n"h1","w2","301","A","","0"\n'
    ),
}


@pytest.mark.parametrize("data", CROWD_FILES.values(), ids=CROWD_FILES.keys())
def test_crowd_labels_are_read_in_the_styles_of_the_field(data):
    assert list(read_crowd_labels(io.BytesIO(data), "crowd.csv")) == [
        JudgmentRecord("301", "A", "w1", 1),
        JudgmentRecord("301", "A", "w2", 0),
    ]


BAD_CROWD = {
    "no header": (b"", 1, 1),
    "no label column": (b"task,worker\n1 A,w\n", 1, 1),
    "column twice": (b"task,task,worker,label\n", 1, 1),
    "too few cells": (b"task,worker,label\n1 A,w\n", 2, 6),
    "too many cells": (b"task,worker,label\n1 A,w,1,x\n", 2, 9),
    "task of one word": (b"task,worker,label\n1A,w,1\n", 2, 1),
    "label that is no grade": (b'task,worker,label\n"1 A",w,yes\n', 2, 9),
    "empty worker": (b"task,worker,label\n1 A,,1\n", 2, 5),
    "empty document": (b"topic_id,doc_id,worker,label\n1,,w,1\n", 2, 3),
    "judgment twice": (b"task,worker,label\n1 A,w,1\n1 B,w,1\n1 A,w,0\n", 4, 1),
    "quote never closed": (b'task,worker,label\n1 A,"w,1\n1 B,w,1\n', 2, 1),
}


@pytest.mark.parametrize(("data", "line", "column"), BAD_CROWD.values(), ids=BAD_CROWD.keys())
def test_bad_crowd_labels_are_refused_with_line_and_column(data, line, column):
    with pytest.raises(TrecFormatError) as caught:
        list(read_crowd_labels(io.BytesIO(data), "crowd.csv"))
    assert (caught.value.line, caught.value.column) == (line, column)
