"""No file is mistaken without a question: sixty small ones of every kind, encoding and disguise."""

import gzip
import io
import re
import time
from dataclasses import replace

import pytest
from disguises import DOC_IDS, PLAIN, REFUSED, TOPIC_IDS, UNSURE, Disguise
from hypothesis import given, settings
from hypothesis import strategies as st
from small_sheets import sheet_xml, workbook, workbook_of

from judging.encodings import differing_lines
from judging.faults import Faults
from judging.file_options import options_from
from judging.likely_encodings import encoding_candidates
from judging.recognise import HEAD_BYTES, Recognition, doubts, recognise, recognise_file
from judging.records import read_documents
from judging.services.judgment_formats import judgment_format
from judging.topics import read_topics


def told(one: Disguise) -> Recognition:
    return recognise(one.name, one.data, topic_ids=one.topic_ids, doc_ids=one.doc_ids)


def name_of(one: Disguise) -> str:
    return f"{one.name}-{one.kind}-{one.file_format}-{one.encoding}{one.refused}"


def is_mistaken(one: Disguise, found: Recognition) -> bool:
    """Return whether the file is taken for something else, and nobody asks."""
    if not found.is_sure:
        return False
    return found.kind != one.kind or (bool(one.file_format) and found.file_format != one.file_format)


ALL = (*PLAIN, *UNSURE, *REFUSED)


def test_there_are_sixty_files_and_the_rule_for_mistakes_finds_one():
    assert len({(one.name, one.data) for one in ALL}) >= 60
    found = told(PLAIN[0])
    assert is_mistaken(PLAIN[0], replace(found, kind="documents"))
    assert not is_mistaken(PLAIN[0], replace(found, kind="documents", is_sure=False))


@pytest.mark.parametrize("one", PLAIN, ids=name_of)
def test_what_is_plain_is_told_and_asks_nothing(one):
    found = told(one)
    assert (found.kind, found.file_format, found.is_sure) == (one.kind, one.file_format, True), found.why
    assert found.encoding == (one.encoding or ("" if one.kind == "images" else "utf-8"))
    assert found.why.endswith(".")


@pytest.mark.parametrize("one", UNSURE, ids=name_of)
def test_what_could_be_something_else_is_a_question(one):
    found = told(one)
    assert not found.is_sure
    assert not found.is_refused
    assert found.why.endswith((".", "?"))


@pytest.mark.parametrize("one", REFUSED, ids=name_of)
def test_what_nobody_reads_is_named_with_advice(one):
    found = told(one)
    assert (found.container, found.is_refused, found.kind) == (one.refused, True, "")
    assert found.why.endswith(".")


TEXTS = [one for one in (*PLAIN, *UNSURE) if one.kind != "images" and one.data[:2] != b"PK"]


@pytest.mark.parametrize("one", TEXTS, ids=name_of)
def test_gzip_changes_nothing_but_the_container(one):
    plain, packed = told(one), told(replace(one, data=gzip.compress(one.data)))
    assert packed == replace(plain, container="gzip")


READ = {
    "topics": lambda one, found: read_topics(
        io.BytesIO(one.data), one.name, found.file_format, options=found.options
    ),
    "documents": lambda one, found: read_documents(
        io.BytesIO(one.data), one.name, file_format=found.file_format, options=found.options
    ),
    "judgments": lambda one, found: judgment_format(found.file_format).read(
        io.BytesIO(one.data), one.name, options=found.options
    ),
}


@pytest.mark.parametrize("one", [one for one in PLAIN if one.kind in READ], ids=name_of)
def test_what_is_told_is_what_the_reader_needs(one):
    assert list(READ[one.kind](one, told(one)))


def test_the_sentence_says_why():
    by_name = {name_of(one): told(one).why for one in ALL}
    assert by_name["documents.tsv-topics-tsv-"].startswith(
        "Topics: its ids are those of topics in the other files or the collection."
    )
    assert by_name["topics.tsv---pdf"] == (
        "This is a PDF: extract its text, and upload that as text, HTML or JSON lines."
    )
    assert "choose its encoding" in by_name["q.csv-topics-table-cp1252"]
    assert by_name["five.run-runs--"] == (
        "Like a run, but with 5 columns: topic Q0 document rank score tag are 6."
    )


# -- ids decide -----------------------------------------------------------------------------------------------

SHORT = "".join(f"{number}\tshort text {number}\n" for number in range(301, 306)).encode()


@pytest.mark.parametrize(
    ("topic_ids", "doc_ids", "kind", "is_sure"),
    [
        (TOPIC_IDS, DOC_IDS, "topics", True),
        (TOPIC_IDS, frozenset(), "topics", True),
        (frozenset({"9"}), TOPIC_IDS, "documents", True),
        (
            frozenset(),
            TOPIC_IDS,
            "documents",
            False,
        ),  # nothing is known of topics: they may have the same numbers
        (TOPIC_IDS, TOPIC_IDS, "", False),
        (frozenset({"9"}), frozenset({"d"}), "", False),
    ],
)
def test_ids_decide_where_they_can(topic_ids, doc_ids, kind, is_sure):
    found = recognise("data.tsv", SHORT, topic_ids=topic_ids, doc_ids=doc_ids)
    assert (found.kind, found.is_sure) == (kind, is_sure), found.why


def test_a_column_without_a_known_name_is_that_of_the_ids_that_are_known():
    data = b"code,title\n301,bears\n302,honey\n"
    found = recognise("a.csv", data, topic_ids=TOPIC_IDS, doc_ids=DOC_IDS)
    assert (found.kind, found.is_sure) == ("topics", True)
    assert found.mapping == {"id": ("code",), "title": ("title",)}


def test_six_thousand_short_documents_in_the_disguise_of_topics_are_called_documents():
    data = "".join(f"{number}\tshort text of a document {number}\n" for number in range(6_000)).encode()
    found = recognise("topics.tsv", data[:HEAD_BYTES])
    records = list(read_topics(io.BytesIO(data), "topics.tsv", found.file_format))
    lengths = sorted(len(one.title) for one in records)
    said = doubts(found.kind or "topics", len(records), lengths[len(lengths) // 2])
    assert said.startswith("these look like documents: 6,000 of them")


@pytest.mark.parametrize(
    ("kind", "n", "median", "is_doubted"),
    [
        ("topics", 1_000, 400, False),
        ("topics", 1_001, 10, True),
        ("topics", 5, 401, True),
        ("documents", 6_000, 900, False),
    ],
)
def test_many_or_long_topics_are_doubted(kind, n, median, is_doubted):
    assert bool(doubts(kind, n, median)) == is_doubted


# -- encodings ------------------------------------------------------------------------------------------------

WESTERN = "Où est la forêt? – „Grün“ kostet 5 €, naïve café, señor, Ærø"


@pytest.mark.parametrize("text", [WESTERN, "café", "\n".join(["plain text"] * 500 + [WESTERN])])
def test_windows_1252_is_found(text):
    found = encoding_candidates(text.encode("cp1252"))
    assert "cp1252" in found
    assert len(found) <= 3


@pytest.mark.parametrize("encoding", ["cp1251", "koi8-r"])
def test_russian_is_found_beside_it(encoding):
    text = "нападения чёрных медведей на людей\nпроизводство стали в городах\n" * 3
    found = encoding_candidates(text.encode(encoding))
    assert encoding in found
    assert len(found) <= 3


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", [WESTERN, "1\tмедведь\n2\tмёд и лес\n", "id,text\n1,蜂蜜と熊\n"])
def test_utf_16_is_found_without_a_mark(encoding, text):
    assert encoding_candidates(text.encode(encoding)) == (encoding,)


def test_the_lines_that_differ_are_shown_in_each_encoding():
    data = "plain\närger\nplain\nöl\n".encode("cp1252")
    assert [(one.number, one.texts) for one in differing_lines(data, ["cp1252", "cp1251"])] == [
        (2, ("ärger", "дrger")),
        (4, ("öl", "цl")),
    ]
    assert len(differing_lines(data, ["cp1252", "cp1251"], most=1)) == 1
    assert differing_lines(data, ["cp1252"]) == []


def test_utf_8_has_no_candidates_though_it_is_cut_off():
    assert encoding_candidates("forêt".encode()) == ()
    assert encoding_candidates("forêt, forê".encode()[:-1]) == ()


# -- faults ---------------------------------------------------------------------------------------------------


def test_forty_faults_of_four_files_are_named_in_one_look():
    faults = Faults()
    topics = "id;title\n" + "".join(f"{n};topic {n}\n{n} b;white space\n" for n in range(10))
    corpus = "[" + ",\n".join(f'{{"_id": "{n}"}},\n{{"_id": "d{n}", "text": "x"}}' for n in range(10)) + "]"
    qrels = "".join(f"1 0 d{n} 1\n1 0 d{n} x\n" for n in range(10))
    sheet = workbook([["query", "doc_id", "grade"], *[["1", f"d{n}", "good"] for n in range(10)]])
    options = {"mapping": {"topic": ["query"]}}
    read = [
        read_topics(io.BytesIO(topics.encode()), "t.csv", faults=faults),
        read_documents(io.BytesIO(corpus.encode()), "c.json", faults=faults),
        judgment_format("qrels").read(io.BytesIO(qrels.encode()), "q.txt", faults=faults),
        judgment_format("gold").read(
            io.BytesIO(sheet), "g.xlsx", faults=faults, options=options_from(options)
        ),
    ]
    assert [len(list(records)) for records in read] == [10, 10, 10, 0]
    assert len(faults) == 40
    said = str(faults)
    assert len(re.findall(r"(?<=[ :])(?:\d+:\d+|Sheet1!C\d+)(?=[,:)])", said)) == 40
    assert "g.xlsx:Sheet1!C2: grade must be an integer" in said
    assert said.endswith("40 faults")


# -- spreadsheets ---------------------------------------------------------------------------------------------


def test_a_spreadsheet_is_told_by_its_first_rows():
    data = workbook(
        [["url", "headline", "article"], ["a/1", "Bears", "They eat."], ["a/2", "Honey", "Sweet."]]
    )
    assert recognise("a.csv", data).container == "xlsx"
    stream = io.BytesIO(data)
    found = recognise_file(stream, "a.csv")
    assert (found.container, found.kind, found.file_format, found.is_sure) == (
        "xlsx",
        "documents",
        "table",
        True,
    )
    assert found.mapping == {"id": ("url",), "title": ("headline",), "text": ("article",)}
    assert stream.tell() == 0
    records = list(read_documents(stream, "a.csv", file_format="table", options=found.options))
    assert [one.doc_id for one in records] == ["a/1", "a/2"]


def test_of_several_sheets_it_is_said_which_is_read():
    data = workbook_of({"Notes": sheet_xml([]), "Queries": sheet_xml([["qid", "query"], ["1", "bears"]])})
    found = recognise_file(io.BytesIO(data), "a.xlsx")
    assert found.kind == "topics"
    assert found.why.endswith("Of its 2 sheets only Queries is read.")


@pytest.mark.parametrize("data", [workbook([]), workbook_of({"A": "<not xml"})], ids=["empty", "damaged"])
def test_a_spreadsheet_that_cannot_be_read_is_refused_with_a_sentence(data):
    found = recognise_file(io.BytesIO(data), "a.xlsx")
    assert found.is_refused
    assert found.why.endswith(".")


# -- anything -------------------------------------------------------------------------------------------------

SNIPPETS = st.sampled_from(
    [b"<top>", b"<DOC>", b"{", b'{"_id": "1"', b"[", b'[{"a":', b".I 1\n", b"id,text\n", b"\t", b";", b"|", b'"', b"\n",
     b"\r", b"1 Q0 d 1 1 t\n", b"1 0 d 1\n", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"PK\x03\x04", b"\x1f\x8b\x08",
     b"\0", b"\xe9", b"<html>", b"<!--", b"<meta charset=", b"query-id corpus-id score\n", b"\\", b"9" * 400, b"-1"]
)  # fmt: skip
ANYTHING = st.binary(max_size=400) | st.lists(SNIPPETS | st.binary(max_size=8), max_size=40).map(b"".join)


@given(name=st.text(max_size=20), data=ANYTHING, is_packed=st.booleans())
@settings(deadline=None, max_examples=300)
def test_nothing_makes_it_fail(name, data, is_packed):
    data = gzip.compress(data) if is_packed else data
    found = recognise(name, data, topic_ids={"1"}, doc_ids={"d"})
    assert found.kind in ("topics", "documents", "runs", "scores", "judgments", "images", "")
    assert found.why
    assert found.options.as_dict() is not None


HOSTILE = {
    "angle brackets": b"<" * HEAD_BYTES,
    "quotes": b'id,text\n"' + b'""' * (HEAD_BYTES // 2 - 10),
    "deep JSON": b"[" * HEAD_BYTES,
    "deep objects": b'{"a":' * (HEAD_BYTES // 5),
    "comments": b"<!--" + b"<!-" * (HEAD_BYTES // 3 - 10),
    "tags": b"<p " + b"a " * (HEAD_BYTES // 2 - 10),
    "local headers": b"PK\x03\x04" * (HEAD_BYTES // 4),
    "delimiters": b";" * (HEAD_BYTES - 1),
    "one byte beyond ASCII": b"\xe9 \xe8\xff" * (HEAD_BYTES // 4),
    "numbers": b"9" * HEAD_BYTES,
    "blank lines": b"\n" * (HEAD_BYTES - 2) + b"a",
    "a gzip bomb": gzip.compress(bytes(50_000_000))[:HEAD_BYTES],
    "meta": b"<meta " * (HEAD_BYTES // 6),
    "xml": b"<?xml " + b"<?xml " * (HEAD_BYTES // 6 - 2),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_beginning_takes_no_longer_than_others(data):
    assert len(data) <= HEAD_BYTES
    started = time.process_time()
    found = recognise("topics.tsv", data)
    assert time.process_time() - started < 5
    assert found.why
