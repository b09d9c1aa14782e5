import gzip
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.records import DocumentRecord, read_documents
from judging.trec import TrecFormatError


def _read(data: bytes, **options) -> list[DocumentRecord]:
    return list(read_documents(io.BytesIO(data), "documents", **options))


def test_beir_and_other_json_lines_are_read():
    data = b"""{"_id": "d1", "title": "Wings", "text": "lift", "metadata": {"url": "x"}}

{"docno": 7, "contents": "drag\\nand thrust"}
{"doc_id": "d3", "body": "", "title": null}
{"id": "d4", "text": "x"}"""
    assert _read(data) == [
        DocumentRecord("d1", "Wings", "lift"),
        DocumentRecord("7", "", "drag\nand thrust"),
        DocumentRecord("d3", "", ""),
        DocumentRecord("d4", "", "x"),
    ]


def test_csv_and_tsv_with_a_header_are_read_in_any_order_of_columns():
    csv = b'text,id,title\n"two\nlines, ""quoted""",d1,T\nx,d2,\n'
    assert _read(csv) == [DocumentRecord("d1", "T", 'two\nlines, "quoted"'), DocumentRecord("d2", "", "x")]
    tsv = b'docno\ttext\nd1\ta "quote\nd2\tb\n'
    assert _read(tsv) == [DocumentRecord("d1", "", 'a "quote'), DocumentRecord("d2", "", "b")]


def test_trec_documents_are_read_without_their_markup():
    data = b"""<DOC>
<DOCNO> FT911-1 </DOCNO>
<PROFILE>_AN-BEOA7AAIFT</PROFILE>
<HEADLINE>
FT  14 MAY 91 /
Crime
</HEADLINE>
<TEXT>
<P>
A &amp; B &lt;b&gt;
</P>
</TEXT>
<PUB>The Financial Times</PUB>
</DOC>
<DOC><DOCNO>FT911-2</DOCNO><TEXT>one</TEXT><TEXT>, two</TEXT></DOC>
"""
    assert _read(data) == [
        DocumentRecord("FT911-1", "FT 14 MAY 91 / Crime", "\nA & B <b>\n"),
        DocumentRecord("FT911-2", "", "one, two"),
    ]


def test_a_web_document_keeps_its_html_when_the_collection_says_it_is_html():
    data = b"<DOC>\n<DOCNO>W1</DOCNO>\n<DOCHDR>\nhttp://x\n</DOCHDR>\n<html><title>T</title><p>a<b>b</b>\n</DOC>\n"
    assert _read(data, is_html=True) == [DocumentRecord("W1", "T", "<html><p>a<b>b</b>", is_html=True)]


def test_cranfield_documents_are_read_with_the_text_after_their_last_part():
    data = (
        b".I 1\n.T\nwings in\na slipstream .\n.A\nb,m.\n.B\nj. 1958.\n.W\nfirst .\n  second .\n.I 2\n.T\n.W\n"
    )
    assert _read(data) == [
        DocumentRecord("1", "wings in a slipstream .", "first .\n  second ."),
        DocumentRecord("2", "", ""),
    ]


@pytest.mark.parametrize(
    "change", [gzip.compress, lambda data: b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n")]
)
def test_gzip_and_byte_order_mark_and_crlf_change_nothing(change):
    for data in (
        b'{"_id": "1", "text": "x"}\n',
        b"id,text\n1,x\n",
        b"<DOC>\n<DOCNO>1</DOCNO>\n<TEXT>x</TEXT></DOC>\n",
    ):
        assert _read(change(data)) == [DocumentRecord("1", "", "x")]


def test_what_no_database_stores_is_replaced_in_texts():
    assert _read(b'{"_id": "1", "title": "\\ud800t", "text": "a\\u0000b"}') == [
        DocumentRecord("1", "\ufffdt", "a\ufffdb")
    ]


BAD = {
    "empty file": (b"\n \n", 1, 1, "no documents in the file"),
    "json malformed": (b'{"_id": "1", "text": "a"}\n{"_id": }\n', 2, 9, None),
    "json without an id": (b'{"text": "a"}\n', 1, 1, "no field named _id or doc_id or id or docno"),
    "json with an empty id": (b'{"_id": "", "text": "a"}\n', 1, 1, "document id is empty"),
    "json with a blank in the id": (b'\n{"_id": "a b", "text": "a"}\n', 2, 1, None),
    "json with a surrogate in the id": (
        b'{"_id": "\\ud800", "text": "a"}\n',
        1,
        1,
        "document id holds a lone surrogate",
    ),
    "json without a text": (b'{"_id": "1"}\n', 1, 1, "no field named text or contents or body"),
    "json text of another type": (b'{"_id": "1", "text": ["a"]}\n', 1, 1, "text must be a string, not list"),
    "csv without an id column": (b"title,text\na,b\n", 1, 1, "no column named _id or doc_id or id or docno"),
    "csv without a text column": (b"id,title\na,b\n", 1, 1, "no column named text or contents or body"),
    "csv with an empty id": (b"text,id\na,1\nb,\n", 3, 3, "document id is empty"),
    "csv with a blank in the id": (b'text,id\n"a,b",1 2\n', 2, 7, None),
    "csv with a missing cell": (b"id,text\n1\n", 2, 2, "expected 2 columns, found 1"),
    "tsv with too many cells": (b"id\ttext\n1\ta\tb\n", 2, 5, "expected 2 columns, found 3"),
    "words": (b"once upon a time\n", 1, 1, "no documents in the file"),
    "trec without a number": (b"<DOC>\n<TEXT>a</TEXT>\n</DOC>\n", 1, 1, "document id is empty"),
    "trec with an empty number": (b"<DOC>\n <DOCNO> </DOCNO>\n</DOC>\n", 2, 2, "document id is empty"),
    "trec never closed": (b"<DOC>\n<DOCNO>1</DOCNO>\n", 1, 1, "<DOC> is never closed"),
    "trec in trec": (b"<DOC>\n<DOCNO>1</DOCNO>\n <DOC>\n", 3, 2, "<DOC> inside <DOC>"),
    "trec with text between": (b"<DOC><DOCNO>1</DOCNO></DOC>\n  rubbish <DOC>\n", 2, 3, "expected <DOC>"),
    "cranfield with an empty id": (b".I 1\n.W\na\n.I \n.W\nb\n", 4, 4, "document id is empty"),
    "bad UTF-8": (b'{"_id": "1", "text": "a"}\n{"_id": "\xff"}\n', 2, 10, "not valid UTF-8"),
    "NUL": (b"id,text\n1,a\0\n", 2, 4, "NUL byte"),
    "lone CR": (b"id,text\n1,a\r2,b\n", 2, 4, "lone carriage return; end lines with LF or CRLF"),
    "truncated gz": (gzip.compress(b"id,text\n1,a\n")[:-4], 3, 1, "truncated gzip file: its end is missing"),
    "zip": (b"PK\x03\x04....", 1, 1, "a damaged zip (File is not a zip file)"),
}


@pytest.mark.parametrize(("data", "line", "column", "reason"), BAD.values(), ids=BAD.keys())
def test_bad_documents_are_refused_with_line_and_column(data, line, column, reason):
    with pytest.raises(TrecFormatError) as caught:
        _read(data)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert reason is None or caught.value.reason == reason


LONG = {
    "json": (b'{"_id": "1", "text": "a"}\n{"_id": "2", "text": "' + b"a" * 1001 + b'"}\n', 2),
    "csv": (b"id,text\n1,a\n2," + b"a" * 1001 + b"\n", 3),
    "csv of many lines": (b'id,text\n1,a\n2,"' + b"aaaa\n" * 1000, 3),
    "trec": (b"<DOC>\n<DOCNO>1</DOCNO>\n" + b"a" * 99 + b"\n" * 1000, 1),
    "cranfield": (b".I 1\n.W\n" + b"aaaaaaaaa\n" * 101, 1),
}


@pytest.mark.parametrize(("data", "line"), LONG.values(), ids=LONG.keys())
def test_a_document_longer_than_allowed_is_refused(data, line):
    with pytest.raises(TrecFormatError, match="longer than") as caught:
        _read(data, max_document=1000)
    assert caught.value.line == line


def test_a_document_as_long_as_allowed_is_read():
    assert len(_read(b'{"_id": "2", "text": "' + b"a" * 1000 + b'"}\n', max_document=1000)[0].text) == 1000


def test_an_unknown_document_format_is_named():
    with pytest.raises(ValueError, match="not 'word'"):
        _read(b"", file_format="word")


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused_with_a_place(data):
    places = []
    for start in (b"", b"<DOC>", b".I 1\n", b"id,text\n", b"{"):
        try:
            _read(start + data)
        except TrecFormatError as error:
            places.append((error.line, error.column))
    assert all(line >= 1 and column >= 1 for line, column in places)
