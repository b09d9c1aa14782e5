"""Files of judgments: qrels, qrels_jg, prels and runs, read from every form and refused with line and column."""

import gzip
import io
import tarfile
import zipfile

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.judgment_tables import read_crowd_labels
from judging.trec import (
    JudgmentRecord,
    Limits,
    PrelRecord,
    QrelRecord,
    StratifiedRecord,
    TrecFormatError,
    open_text,
    read_prels,
    read_qrels,
    read_qrels_jg,
    read_stratified,
    read_topics,
)
from judging.trec_tables import write_prels, write_qrels, write_qrels_jg, write_run

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


@pytest.mark.slow
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
COLUMNS = {"topic_id": pl.String, "doc_id": pl.String, "assessor": pl.String, "grade": pl.Int16}
COLUMNS |= {"inclusion_probability": pl.Float64, "rank": pl.Int64, "score": pl.Float64, "run_tag": pl.String}


def _written(write, *rows: dict) -> bytes:
    """Return the file of these rows."""
    stream = io.BytesIO()
    write(pl.DataFrame(list(rows), schema=COLUMNS), stream)
    return stream.getvalue()


def _records(write, records) -> io.BytesIO:
    """Return the file of records that a reader yields."""
    names = COLUMNS.keys()
    return io.BytesIO(
        _written(write, *({name: getattr(record, name, None) for name in names} for record in records))
    )


@given(st.dictionaries(st.tuples(ids, ids), grades, max_size=20))
def test_qrels_read_back_as_they_were_written(pairs):
    records = [QrelRecord(topic_id, doc_id, grade) for (topic_id, doc_id), grade in pairs.items()]
    assert list(read_qrels(_records(write_qrels, records), "q")) == records


@given(st.dictionaries(st.tuples(ids, ids, ids), grades, max_size=20))
def test_judgments_read_back_as_they_were_written(judgments):
    records = [
        JudgmentRecord(topic, document, who, grade) for (topic, document, who), grade in judgments.items()
    ]
    assert list(read_qrels_jg(_records(write_qrels_jg, records), "q")) == records


@given(
    st.dictionaries(st.tuples(ids, ids), st.tuples(grades, st.floats(0, 1, exclude_min=True)), max_size=20)
)
def test_prels_read_back_as_they_were_written(pairs):
    records = [PrelRecord(topic, document, grade, 1, p) for (topic, document), (grade, p) in pairs.items()]
    assert list(read_prels(_records(write_prels, records), "p")) == records


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_with_a_place(data):
    places = []
    for read in (read_qrels, read_qrels_jg, read_prels, read_stratified, read_topics, read_crowd_labels):
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


def test_a_pair_that_prels_or_strata_name_twice_is_refused_with_both_lines():
    for read, lines in (
        (read_prels, b"1 A 1 1 0.5\n2 A 1 1 0.5\n1 A 0 1 0.5\n"),
        (read_stratified, b"1 0 A 1 1\n2 0 A 1 1\n1 0 A 2 0\n"),
    ):
        with pytest.raises(
            TrecFormatError, match=r"document A of topic 1 occurs twice \(first on line 1\)"
        ) as caught:
            list(read(io.BytesIO(lines), "p"))
        assert caught.value.line == 3


def test_a_probability_that_is_not_known_is_refused_by_its_line():
    with pytest.raises(
        TrecFormatError, match="p:2:9: inclusion probability must be a finite number, not 'NA'"
    ):
        list(read_prels(io.BytesIO(b"1 B 0 1 1\n1 A 1 1 NA\n"), "p"))


def test_strata_are_read_with_what_was_not_sampled():
    lines = b"1 0 A 1 2\n1 0 B 2 -1\n"
    assert list(read_stratified(io.BytesIO(lines), "s")) == [
        StratifiedRecord("1", "A", 1, 2),
        StratifiedRecord("1", "B", 2, -1),
    ]


@pytest.mark.parametrize(
    ("line", "column", "reason"),
    [
        (b"1 0 A one 1\n", 7, "stratum must be an integer"),
        (b"1 0 A 1 -2\n", 9, "grade must be at least 0, or -1 where not sampled, not -2"),
        (b"1 A 1 1 0.5\n", 9, "grade must be an integer"),
        (b"1 0 A 1\n", 8, "expected 5 columns"),
    ],
)
def test_a_bad_line_of_strata_is_refused_with_its_column(line, column, reason):
    with pytest.raises(TrecFormatError, match=reason) as caught:
        list(read_stratified(io.BytesIO(b"1 0 B 1 0\n" + line), "s"))
    assert (caught.value.line, caught.value.column) == (2, column)


def _row(**fields):
    return {"topic_id": "1", "doc_id": "A", "assessor": "a", "grade": 0, "rank": 1, "run_tag": "t"} | fields


def test_a_run_is_written_so_that_its_scores_read_back_exactly():
    rows = [_row(score=0.1), _row(doc_id="B", rank=2, score=1e-300)]
    assert _written(write_run, *rows) == b"1 Q0 A 1 0.1 t\n1 Q0 B 2 1e-300 t\n"


@pytest.mark.parametrize(
    ("write", "fields", "message"),
    [
        (write_qrels, {"topic_id": "1 2"}, "topic id must be one word"),
        (write_qrels, {"doc_id": ""}, "document id must be one word"),
        (write_qrels, {"doc_id": "a\u3000b"}, "document id must be one word"),
        (write_qrels_jg, {"assessor": "a\x1fb"}, "assessor must be one word"),
        (write_qrels_jg, {"assessor": None}, "assessor must be one word"),
        (write_qrels, {"grade": 128}, "not 128"),
        (write_prels, {"inclusion_probability": 0.0}, "not 0.0"),
        (write_prels, {"inclusion_probability": 1.5}, "not 1.5"),
        (write_run, {"score": float("nan")}, "score must be finite"),
        (write_run, {"score": 1.0, "run_tag": "my tag"}, "run tag must be one word"),
    ],
)
def test_what_would_not_read_back_is_not_written(write, fields, message):
    with pytest.raises(ValueError, match=message):
        _written(write, _row(**fields))
