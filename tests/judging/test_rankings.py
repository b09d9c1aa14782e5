"""Run files into columns: every form and notation, the order of ties, and what comes back from the stored file."""

import gzip
import io
import random

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_samples import GOOD, _frame, _lines, _stored

from judging.rankings import (
    rankings_frame,
    read_run,
    write_rankings,
)
from judging.run_columns import hash_pairs
from judging.runs import _find_faults
from judging.textfiles import Limits
from judging.trec import TrecFormatError
from judging.trec_tables import write_run

BAD_RUNS = {
    "five columns": (GOOD + b"1 Q0 B 2 0.4\n", 2, 13),
    "seven columns": (GOOD + b"1 Q0 B 2 0.4 mine too\n", 2, 19),
    "five and seven columns": (GOOD + b"1 Q0 B 2 0.4\n1 Q0 C 3 0.3 mine too\n", 2, 13),
    "nan": (GOOD + b"1 Q0 B 2 nan mine\n", 2, 10),
    "infinity": (GOOD + b"1 Q0 B 2 -inf mine\n", 2, 10),
    "1e999": (GOOD + b"1 Q0 B 2 1e999 mine\n", 2, 10),
    "underscore": (GOOD + b"1 Q0 B 2 1_0 mine\n", 2, 10),
    "hexadecimal": (GOOD + b"1 Q0 B 2 0x10 mine\n", 2, 10),
    "word as a score": (GOOD + b"1 Q0 B 2 high mine\n", 2, 10),
    "sign as a score": (GOOD + b"1 Q0 B 2 - mine\n", 2, 10),
    "two points": (GOOD + b"1 Q0 B 2 1.2.3 mine\n", 2, 10),
    "exponent without digits": (GOOD + b"1 Q0 B 2 1e mine\n", 2, 10),
    "two tags": (GOOD + b"1 Q0 B 2 0.4 yours\n", 2, 14),
    "pair twice": (GOOD + b"1 Q0 B 2 0.4 mine\n1\tQ0\tA\t3\t0.3\tmine\n", 3, 6),
    "blank line between": (GOOD + b"\n1 Q0 B 2 0.4 mine\n", 2, 1),
    "line of blanks between": (GOOD + b" \t\n1 Q0 B 2 0.4 mine\n", 2, 1),
    "blank line first": (b"\n" + GOOD, 1, 1),
    "form feed": (b"1 Q0 A\x0c 1 0.5 mine\n", 1, 7),
    "no-break space": ("1 Q0 A\u00a0 1 0.5 mine\n".encode(), 1, 7),
    "long id": (GOOD + b"1 Q0 " + b"B" * 513 + b" 2 0.4 mine\n", 2, 6),
    "long line": (GOOD + b"1 Q0 B " + b"2" * 1_000_000 + b" 0.4 mine\n", 2, 1_000_001),
    "line of twenty megabytes": (GOOD + b"2" * 20_000_000, 2, 1_000_001),
    "bad UTF-8": (GOOD + b"1 Q0 \xc3 2 0.4 mine\n", 2, 6),
    "NUL": (GOOD + b"1 Q0 B\0 2 0.4 mine\n", 2, 7),
    "lone CR": (GOOD + b"1 Q0 B 2 0.4 mine\r1 Q0 C 3 0.3 mine\n", 2, 18),
    "lone CRs at the end": (GOOD + b"\r\r\n", 2, 1),
    "nothing": (b"", 1, 1),
    "only blank lines": (b"\n\n \n", 1, 1),
}

CONTAINERS = {
    "truncated gz": (gzip.compress(GOOD)[:-4], 2, 1),
    "trailing garbage": (gzip.compress(GOOD) + b"rubbish", 2, 1),
    "gz in gz": (gzip.compress(gzip.compress(GOOD)), 1, 1),
    "zip": (b"PK\x03\x04" + GOOD, 1, 1),
    "bomb": (gzip.compress(bytes(50_000_000)), 1, 1),
}


@pytest.mark.parametrize(("data", "line", "column"), BAD_RUNS.values(), ids=BAD_RUNS.keys())
def test_a_bad_run_is_refused_with_line_and_column_plain_and_gzipped(data, line, column):
    for form in (data, gzip.compress(data, 1)):
        with pytest.raises(TrecFormatError) as caught:
            _frame(form)
        assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize(("data", "line", "column"), CONTAINERS.values(), ids=CONTAINERS.keys())
def test_a_bad_container_is_refused(data, line, column):
    with pytest.raises(TrecFormatError) as caught:
        _frame(data)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_the_first_wrong_line_is_the_one_that_is_named():
    with pytest.raises(TrecFormatError, match="run:2:10: score must be a finite number, not 'nan'"):
        _frame(GOOD + b"1 Q0 B 2 nan mine\n1 Q0 A 3 x mine\n1 Q0\n")


SCORES = [
    b"+.5",
    b"5.",
    b"1e+5",
    b"1E5",
    b"00012",
    b"-0",
    b"+1e-3",
    b"1e-999",
    b"123456789012345678901234567890",
]


@pytest.mark.parametrize("score", SCORES)
def test_every_decimal_notation_is_a_score(score):
    assert _frame(b"1 Q0 A 1 " + score + b" t\n")["score"].to_list() == [float(score)]


FORMS = {
    "blanks and tabs": b"  1\tQ0  A 1\t\t0.5 mine\t\n1 Q0 B 2 0.4 mine",
    "CRLF": b"1 Q0 A 1 0.5 mine\r\n1 Q0 B 2 0.4 mine\r\n\r\n",
    "byte order mark": b"\xef\xbb\xbf1 Q0 A 1 0.5 mine\n1 Q0 B 2 0.4 mine\n",
    "blank lines at the end": b"1 Q0 A 1 0.5 mine\n1 Q0 B 2 0.4 mine\n\n \n",
    "other order": b"1 Q0 B 1 0.4 mine\n1 Q0 A 2 0.5 mine\n",
    "two members": gzip.compress(b"1 Q0 A 1 0.5 mine\n1 Q0") + gzip.compress(b" B 2 0.4 mine"),
}


@pytest.mark.parametrize("data", FORMS.values(), ids=FORMS.keys())
def test_the_same_run_is_read_from_every_allowed_form(data):
    assert _frame(data).rows() == [("1", "A", 1, 0.5, "mine"), ("1", "B", 2, 0.4, "mine")]


def test_order_is_by_score_then_document_descending_and_never_by_rank():
    data = b"2 Q0 A 1 1 t\n10 Q0 a 1 7 t\n10 Q0 b 2 7 t\n10 Q0 ab 3 7 t\n10 Q0 z 4 6 t\n10 Q0 c 5 8 t\n"
    frame = _frame(data)
    assert frame.select("topic_id", "doc_id", "rank").rows() == [
        ("10", "c", 1), ("10", "b", 2), ("10", "ab", 3), ("10", "a", 4), ("10", "z", 5), ("2", "A", 1),
    ]  # fmt: skip


def test_scores_that_are_equal_as_32_bit_floats_are_tied_as_in_trec_eval():
    assert _frame(b"1 Q0 A 1 1.00000000001 t\n1 Q0 B 2 1 t\n")["doc_id"].to_list() == ["B", "A"]
    assert _frame(b"1 Q0 A 1 2e300 t\n1 Q0 B 2 1e300 t\n")["doc_id"].to_list() == ["B", "A"]
    assert _frame(b"1 Q0 A 1 0.0 t\n1 Q0 B 2 -0.0 t\n")["doc_id"].to_list() == ["B", "A"]


@pytest.mark.slow
def test_a_run_of_many_blocks_with_scattered_topics_is_sorted_like_a_small_one(tmp_path):
    generator = random.Random(7)
    rows = [(str(i % 37), f"clueweb09-en{i:07d}", generator.randrange(500)) for i in range(300_000)]
    generator.shuffle(rows)
    data = "".join(f"{topic} Q0 {doc} 1 {score} scattered\n" for topic, doc, score in rows).encode()
    assert len(data) > 8 << 20
    frame = pl.DataFrame(rows, schema=["topic_id", "doc_id", "score"], orient="row")
    expected = frame.sort(["topic_id", "score", "doc_id"], descending=[False, True, True])
    found = _frame(data).select("topic_id", "doc_id", pl.col("score").cast(pl.Int64))
    assert found.equals(expected)


def test_a_run_larger_than_its_limit_is_refused():
    with pytest.raises(TrecFormatError, match="larger than the limit of 20 uncompressed bytes"):
        read_run(io.BytesIO(GOOD * 2), "run", Limits(max_bytes=20))


@given(
    st.lists(
        st.tuples(
            st.integers(0, 120),
            st.sampled_from([b"\n", b" ", b"\t", b"\r", b"x", b"\xc3\xa9", b"\xe2\x80\xa8", b"-", b""]),
        ),
        max_size=4,
    )
)
def test_the_fast_and_the_slow_pass_refuse_the_same_files(changes):
    data = b"1 Q0 A 1 0.5 mine\n1 Q0 B 2 0.4 mine\n2 Q0 A 1 5e1 mine\n2 Q0 CC 2 4.25 mine\n3 Q0 A 1 -1 mine\n"
    for place, what in changes:
        data = data[:place] + what + data[place + (what == b"") :]
    with pytest.raises(TrecFormatError) as slow:
        _find_faults(io.BytesIO(data), "run", Limits())
    slow_refuses = "64-bit hash" not in slow.value.reason
    try:
        _frame(data)
        fast_reason = None
    except TrecFormatError as error:
        fast_reason = error.reason
    assert fast_reason == (slow.value.reason if slow_refuses else None)


ids = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp"], exclude_characters="\ufeff"),
    min_size=1,
    max_size=30,
)

runs = st.dictionaries(
    ids,
    st.dictionaries(ids, st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8),
    min_size=1,
    max_size=5,
)


@given(runs, ids)
def test_a_run_reads_back_as_it_was_written_from_text_and_from_its_stored_form(run, tag):
    frame = _frame(_lines(run, tag))
    assert {(topic, doc, score) for topic, doc, _, score, _ in frame.rows()} == {
        (topic, doc, score) for topic, docs in run.items() for doc, score in docs.items()
    }
    stream = io.BytesIO()
    write_run(frame, stream)
    assert _frame(stream.getvalue()).equals(frame)
    assert rankings_frame(_stored(frame)).equals(frame)


def test_the_stored_form_does_not_depend_on_the_order_of_lines(tmp_path):
    lines = [f"{topic} Q0 d{doc} 1 {doc % 4} t\n".encode() for topic in range(5) for doc in range(20)]
    first, second = tmp_path / "first", tmp_path / "second"
    write_rankings(_frame(b"".join(lines)), first)
    random.Random(3).shuffle(lines)
    write_rankings(_frame(b"".join(lines)), second)
    assert first.read_bytes() == second.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "second"]


def test_the_pair_hash_is_the_same_for_ever():
    """Computed by a second, scalar implementation of the same definition, in integers of Python."""
    mask = (1 << 64) - 1

    def mix(state: int) -> int:
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & mask
        return state ^ (state >> 31)

    def token(data: bytes, seed: int) -> int:
        state = mix((seed + len(data) * 0x9E3779B97F4A7C15) & mask)
        for start in range(0, len(data), 8):
            state = mix(state ^ int.from_bytes(data[start : start + 8], "little"))
        return state

    pairs = [("301", "FT911-3"), ("", ""), ("1", "é" * 17), ("12345678", "clueweb09-en0003-55-31884")]
    found = hash_pairs([topic for topic, _ in pairs], [doc for _, doc in pairs]).tolist()
    assert found == [token(doc.encode(), token(topic.encode(), 0)) for topic, doc in pairs]


def test_a_boundary_between_topic_and_document_matters_for_the_hash():
    assert len(set(hash_pairs(["1", "12", "123"], ["234", "34", "4"]).tolist())) == 3
