"""Files of topics and of crowd labels: read in the styles of the field, and refused with line and column."""

import io

import pytest

from judging.judgment_tables import read_crowd_labels
from judging.trec import (
    JudgmentRecord,
    TopicRecord,
    TrecFormatError,
    read_topics,
)


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
    "tsv with a third column that is no weight": (b"1\ta\tb\n", 1, 5),
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
