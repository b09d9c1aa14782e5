"""Options of a file: written and read back, wrong ones refused, obeyed by every reader of tables."""

import io
from typing import Any

import pytest

from judging.faults import Faults
from judging.file_options import Changes, FileOptions, options_from, parse_grades
from judging.judgment_tables import read_crowd_labels, read_gold
from judging.records import DocumentRecord, read_documents
from judging.services.judgment_formats import grades_in, judgment_format
from judging.topics import TopicRecord, read_topics
from judging.trec import GoldRecord, JudgmentRecord, TrecFormatError, read_qrels


def stream(text: str, encoding: str = "utf-8") -> io.BytesIO:
    return io.BytesIO(text.encode(encoding))


GIVEN = {
    "encoding": "cp1252",
    "delimiter": ";",
    "mapping": {"id": ["qid"], "text": ["headline", "article"]},
    "numbers_rows": True,
    "joins_ids": True,
    "grade_map": "-2=0,-1=",
    "is_html": True,
}


def test_options_are_written_as_they_are_read():
    options = options_from(GIVEN)
    assert options == FileOptions(
        "cp1252", ";", {"id": ("qid",), "text": ("headline", "article")}, True, True, {-2: 0, -1: None}, True
    )
    assert options.as_dict() == GIVEN
    assert options_from({}) == FileOptions()
    assert FileOptions().as_dict() == {}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"encoding": "rot13"}, "encoding must be one of"),
        ({"encoding": "utf-7"}, "encoding must be one of"),
        ({"encoding": 5}, "must be strings"),
        ({"delimiter": "x"}, "delimiter must be a comma"),
        ({"delimiter": ["x"]}, "delimiter must be a comma"),
        ({"mapping": ["id"]}, "a mapping is like"),
        ({"mapping": {"colour": ["x"]}}, "a mapping names"),
        ({"mapping": {"id": ["a", "b"]}}, "id takes one column"),
        ({"mapping": {"text": ["a"] * 101}}, "at most 100 columns"),
        ({"mapping": {"text": [1]}}, "must be a list of names"),
        ({"numbers_rows": "yes"}, "must be true or false"),
        ({"grade_map": "x"}, "a grade map is like"),
        ({"colour": 1}, "options of a file are"),
    ],
)
def test_wrong_options_are_named(given: dict[str, Any], reason: str):
    with pytest.raises(ValueError, match=reason):
        options_from(given)


def test_a_grade_map_may_leave_out_and_bounds_its_grades():
    assert parse_grades("-2=0, -1=,3=2") == {-2: 0, -1: None, 3: 2}
    for text in ("1", "=1", "1=x", "1=1,1=2", "128=0", "0=-128", ""):
        with pytest.raises(ValueError, match="grade"):
            parse_grades(text)


# -- topics and documents -------------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", ";", "|", "\t"])
def test_topics_come_from_a_table_of_any_delimiter(delimiter):
    rows = (("id", "title", "narrative"), ("7", "black bear", "It must name one."), ("007", "honey", ""))
    data = "\r\n".join(delimiter.join(row) for row in rows)
    assert list(read_topics(stream("\ufeff" + data), "t.csv")) == [
        TopicRecord("7", "black bear", "", "It must name one."),
        TopicRecord("007", "honey"),
    ]


def test_columns_are_mapped_and_texts_joined_without_the_empty_ones():
    data = 'url,headline,"article, in full",note\nu1,Bears,"They\n""eat""",\nu2,,Honey,sweet\n'
    options = options_from(
        {"mapping": {"id": ["url"], "title": ["headline"], "text": ["article, in full", "note"]}}
    )
    assert list(read_documents(stream(data), "d.csv", options=options)) == [
        DocumentRecord("u1", "Bears", 'They\n"eat"'),
        DocumentRecord("u2", "", "Honey\n\nsweet"),
    ]
    topics = options_from(
        {"mapping": {"id": ["url"], "title": ["headline", "note"], "description": ["note"]}}
    )
    found = list(read_topics(stream(data), "d.csv", "table", options=topics))
    assert found == [TopicRecord("u1", "Bears"), TopicRecord("u2", "sweet", "sweet")]


def test_a_mapping_of_json_names_keys():
    data = '{"qid": 7, "q": "bear", "why": "x"}\n[]\n{"qid": "8", "q": "honey"}'
    options = options_from({"mapping": {"id": ["qid"], "title": ["q"], "narrative": ["why"]}})
    faults = Faults()
    assert list(read_topics(stream(data), "t.jsonl", faults=faults, options=options)) == [
        TopicRecord("7", "bear", "", "x"),
        TopicRecord("8", "honey"),
    ]
    assert str(faults) == "t.jsonl:2:1: expected a JSON object"


@pytest.mark.parametrize(
    ("data", "mapping", "reason"),
    [
        ("a,text\n1,x\n", {"id": ["b"]}, "d:1:1: no column named b"),
        ("a,text\n1,x\n", {}, "d:1:1: no column named _id or doc_id or id or docno"),
        ("id,b\n1,x\n", {"id": ["id"]}, "d:1:1: no column named text or contents or body"),
    ],
)
def test_a_column_that_is_not_there_ends_the_file(data, mapping, reason):
    with pytest.raises(TrecFormatError) as caught:
        list(read_documents(stream(data), "d", options=options_from({"mapping": mapping})))
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("read", "data", "file_format"),
    [
        (read_topics, "title\nbear\n\nhoney\n", "table"),
        (read_topics, "bear\nhoney\n", "tsv"),
        (read_topics, '{"title": "bear"}\n{"title": "honey"}\n', "jsonl"),
        (read_topics, '[{"title": "bear"}, {"title": "honey"}]', "json"),
    ],
)
def test_topics_without_ids_are_numbered_if_that_is_chosen(read, data, file_format):
    changes = Changes()
    found = read(
        stream(data), "t", file_format=file_format, options=FileOptions(numbers_rows=True), changes=changes
    )
    assert list(found) == [TopicRecord("1", "bear"), TopicRecord("2", "honey")]
    assert changes.as_dict() == {"n_numbered": 2}
    with pytest.raises(TrecFormatError):
        list(read(stream(data), "t", file_format=file_format))


@pytest.mark.parametrize(
    ("data", "file_format"),
    [
        ("text\nx\ny\n", "table"),
        ('{"text": "x"}\n{"text": "y"}', "jsonl"),
        ("x\ny\n", "tsv"),
        ("T\tx\n\ty", "tsv"),
    ],
)
def test_documents_without_ids_are_numbered_if_that_is_chosen(data, file_format):
    options = FileOptions(numbers_rows=True)
    found = list(read_documents(stream(data), "d", file_format=file_format, options=options))
    assert [(one.doc_id, one.text) for one in found] == [("1", "x"), ("2", "y")]


def test_a_bad_record_keeps_its_number():
    faults = Faults()
    data = "title,a\nbear,1\nhoney\nbees,3\n"
    found = list(read_topics(stream(data), "t", "table", faults, FileOptions(numbers_rows=True)))
    assert [one.topic_id for one in found] == ["1", "2"]
    assert len(faults) == 1
    faults = Faults()
    data = '{"title": "bear"}\n{}\n{"title": "bees"}'
    found = list(read_topics(stream(data), "t", "jsonl", faults, FileOptions(numbers_rows=True)))
    assert [one.topic_id for one in found] == ["1", "3"]
    assert len(faults) == 1


def test_white_space_in_ids_is_joined_if_that_is_chosen_and_ids_stay_distinct():
    data = "id,text\na b,1\na  c,2\na_b,3\na\u00a0b,4\nd,5\n"
    options, changes, faults = FileOptions(joins_ids=True), Changes(), Faults()
    found = list(read_documents(stream(data), "d", options=options, changes=changes, faults=faults))
    assert [one.doc_id for one in found] == ["a_b", "a_c", "d"]
    assert str(faults) == (
        "d:4:1: document id 'a_b' would be a_b, as 'a b' is (and one more like it, at 5:1)\n2 faults"
    )
    assert changes.as_dict() == {"n_joined": 2, "first_joined": [("a b", "a_b"), ("a  c", "a_c")]}
    with pytest.raises(TrecFormatError, match="d:2:1: document id 'a b' holds white space"):
        list(read_documents(stream(data), "d"))


# -- encodings ------------------------------------------------------------------------------------------------

UNDECODED = b"id\ttext\n1\tcaf\xe9\n2\t\x81\n3\t\x80\n"


def test_a_chosen_encoding_is_read_and_what_it_lacks_is_a_fault_of_its_line():
    faults = Faults()
    options = FileOptions(encoding="cp1252")
    found = list(read_documents(io.BytesIO(UNDECODED), "d", options=options, faults=faults))
    assert [(one.doc_id, one.text) for one in found] == [("1", "café"), ("3", "€")]
    assert str(faults) == "d:3:3: not valid cp1252"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_wide_encodings_are_read_with_and_without_mark(encoding, mark):
    data = (mark + "1\tbär 𝒳\r\n2\thönig").encode(encoding)

    class Drop:
        """A stream that gives a byte at a time."""

        def __init__(self) -> None:
            self.bytes = io.BytesIO(data)

        def read(self, size: int = -1, /) -> bytes:
            return self.bytes.read(min(size, 1))

    expected = [TopicRecord("1", "bär 𝒳"), TopicRecord("2", "hönig")]
    assert list(read_topics(io.BytesIO(data), "t", options=FileOptions(encoding=encoding))) == expected
    assert list(read_topics(Drop(), "t", options=FileOptions(encoding=encoding))) == expected


def test_half_a_character_at_the_end_is_a_fault():
    data = "1 0 a 1\n2 0 b 1".encode("utf-16-le") + b"\x00"
    faults = Faults()
    found = list(read_qrels(io.BytesIO(data), "q", options=FileOptions(encoding="utf-16-le"), faults=faults))
    assert len(found) == 1
    assert str(faults) == "q:2:8: not valid utf-16-le"


# -- judgments ------------------------------------------------------------------------------------------------


def test_judgments_of_any_columns():
    data = "Query;Page;Who;Stars\nq 1;a;ann;2\nq 1;b;ann;-1\n"
    mapping = {"topic": ["Query"], "document": ["Page"], "assessor": ["Who"], "grade": ["Stars"]}
    options = options_from({"mapping": mapping, "joins_ids": True})
    assert list(read_crowd_labels(stream(data), "c", options=options)) == [
        JudgmentRecord("q_1", "a", "ann", 2),
        JudgmentRecord("q_1", "b", "ann", -1),
    ]
    assert list(read_gold(stream(data), "c", options=options))[1] == GoldRecord("q_1", "b", -1, None)
    with pytest.raises(TrecFormatError, match="c:2:1: topic id 'q 1' holds white space"):
        list(read_crowd_labels(stream(data), "c", options=options_from({"mapping": mapping})))


@pytest.mark.parametrize(
    ("key", "data"),
    [
        ("qrels", "1 0 a 2\n1 0 b -2\n1 0 c 2\n"),
        ("beir", "query-id corpus-id score\n1 a 2\n1 b -2\n1 c 2\n"),
        ("cranfield", "1 a 2\n1 b -2\n1 a 2\n"),
        ("gold", "topic_id,doc_id,grade\n1,a,2\n1,b,-2\n1,c,2\n1,d,\n"),
        ("crowd", "task,worker,label\n1 a,w,2\n1 b,w,-2\n1 a,w,2\n"),
    ],
)
def test_the_grades_of_a_file_are_counted(key, data):
    found = grades_in(stream(data), "q", judgment_format(key))
    assert list(found.items()) == [(-2, 1), (2, 2)]


def test_grades_are_counted_past_faults():
    faults = Faults()
    assert grades_in(stream("1 0 a x\n1 0 b 1\n"), "q", judgment_format("qrels"), faults=faults) == {1: 1}
    assert len(faults) == 1


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("", "expected the header"),
        ("q1 d1 1\n", "expected the header"),
        ("query-id corpus-id score\nq1 d1\n", "expected 3 columns"),
        ("query-id corpus-id score\nq1 d1 1\nq1 d1 1\n", "occurs twice"),
        ("query-id corpus-id score\nq1 d1 x\n", "grade must be an integer"),
    ],
)
def test_wrong_qrels_of_beir_are_refused(data, reason):
    with pytest.raises(TrecFormatError, match=reason):
        list(judgment_format("beir").read(stream(data), "q"))
