"""Runs, judgments and topics from whatever holds them, and what is refused with words that name it."""

import math
from collections import namedtuple

import ir_measures
import pandas
import polars as pl
import pytest

import touchstone_ir as ts
from touchstone_ir.columns import NAMES, InputRefused

QREL = {"topic": ["1", "1", "2"], "doc": ["a", "b", "a"], "grade": [1, 0, 2]}
NESTED = {"1": {"a": 1, "b": 0}, "2": {"a": 2}}
Scored = namedtuple("Scored", "query_id doc_id score")


class Arrow:
    """Anything that gives Arrow's stream, as DuckDB's relations do."""

    def __init__(self, frame):
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema=None):
        return self.frame.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "source",
    [
        QREL,
        NESTED,
        pl.DataFrame(QREL),
        pl.LazyFrame(QREL),
        pandas.DataFrame(QREL),
        Arrow(pl.DataFrame(QREL)),
        [ir_measures.Qrel("1", "a", 1), ir_measures.Qrel("1", "b", 0), ir_measures.Qrel("2", "a", 2)],
        [
            {"qid": "1", "docno": "a", "label": 1},
            {"qid": "1", "docno": "b", "label": 0},
            {"qid": "2", "docno": "a", "label": 2},
        ],
        {"query_id": [1, 1, 2], "pid": ["a", "b", "a"], "rel": ["1", "0", "2"]},
        pandas.DataFrame({"qid": [1, 1, 2], "doc_id": ["a", "b", "a"], "relevance": [1.0, 0.0, 2.0]}),
    ],
    ids=lambda source: type(source).__name__,
)
def test_judgments_are_the_same_from_whatever_holds_them(source):
    found = ts.read_qrels(source)
    assert found.select("topic", "doc", "grade").to_dict(as_series=False) == QREL


@pytest.mark.parametrize("topic", NAMES["topic"])
@pytest.mark.parametrize("doc", NAMES["doc"])
def test_other_tools_names_are_known(topic, doc):
    found = ts.read_qrels({topic: ["1"], doc: ["a"], "rel": [1], "somebody else's": [3]})
    assert found.columns == ["topic", "doc", "grade"]


@pytest.mark.parametrize(
    "source",
    [
        {"1": {"b": 0.5, "a": 0.5, "c": 2}},
        [Scored("1", "b", 0.5), Scored("1", "a", 0.5), Scored("1", "c", 2)],
        {"qid": ["1"] * 3, "docno": ["b", "a", "c"], "score": [0.5, 0.5, 2]},
        pandas.DataFrame({"qid": ["1"] * 3, "docno": ["c", "b", "a"], "rank": [0, 1, 2]}),
    ],
)
def test_a_run_is_ranked_as_trec_eval_ranks_it(source):
    found = ts.read_run(source, name="r")
    assert found.select("run", "topic", "doc", "rank").rows() == [
        ("r", "1", "c", 1),
        ("r", "1", "b", 2),
        ("r", "1", "a", 3),
    ]


def test_scores_that_are_alike_as_32_bit_numbers_are_ties():
    found = ts.read_run({"1": {"a": 1.0 + 1e-12, "b": 1.0}}, name="r")
    assert found["doc"].to_list() == ["b", "a"]


def test_a_table_may_hold_many_runs_by_their_names():
    found = ts.read_run({"system": ["x", "y"], "qid": ["1", "1"], "docno": ["a", "a"], "score": [1, 2]})
    assert found["run"].to_list() == ["x", "y"]


def test_topics_have_their_texts():
    found = ts.read_topics({"qid": [1], "query": ["bears"], "narr": ["black ones"]})
    assert found.rows() == [("1", "bears", "", "black ones")]


def test_negative_grades_are_asked_about():
    source = {"topic": ["1", "1"], "doc": ["a", "b"], "grade": [-2, 1]}
    with pytest.raises(InputRefused, match="1 line has the grade -2"):
        ts.read_qrels(source)
    assert ts.read_qrels(source, grades={-2: 0})["grade"].to_list() == [0, 1]
    assert ts.read_qrels(source, grades={-2: None})["grade"].to_list() == [1]


@pytest.mark.parametrize(
    ("read", "source", "words"),
    [
        (ts.read_qrels, {"qid": ["1"], "topic": ["1"], "doc": ["a"], "grade": [1]}, "both mean topic"),
        (ts.read_qrels, {"qid": ["1"], "grade": [1]}, "no column doc"),
        (ts.read_qrels, {"topic": ["1"], "doc": ["a"], "grade": ["x"]}, "grade must be numbers, got 'x'"),
        (ts.read_qrels, {"topic": ["1"], "doc": ["a"], "grade": [0.5]}, "whole numbers, got 0.5"),
        (ts.read_qrels, {"topic": ["1"], "doc": [None], "grade": [1]}, "a row has no doc"),
        (ts.read_qrels, {"topic": ["1", "1"], "doc": ["a", "a"], "grade": [1, 1]}, "judged twice in topic 1"),
        (
            ts.read_qrels,
            {"topic": ["1"], "doc": ["a"], "grade": [1], "pi": [0.0]},
            r"within \(0, 1\], got 0.0",
        ),
        (
            ts.read_qrels,
            {"topic": ["1"], "doc": ["a"], "grade": [1], "pi": [1.5]},
            r"within \(0, 1\], got 1.5",
        ),
        (ts.read_qrels, 7, "int holds no table"),
        (ts.read_qrels, [], "there are no records"),
        (ts.read_qrels, [object()], "no named fields"),
        (ts.read_run, {"1": {"a": math.nan}}, "a run has no name"),
        (ts.read_run, {"run": ["r"], "qid": ["1"], "docno": ["a"], "score": [math.nan]}, "no finite number"),
        (ts.read_run, {"run": ["r"], "qid": ["1"], "docno": ["a"]}, "no column score"),
        (
            ts.read_run,
            {"run": ["r"] * 2, "qid": ["1"] * 2, "docno": ["a"] * 2, "score": [1, 2]},
            "comes twice in topic 1",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(read, source, words):
    with pytest.raises(InputRefused, match=words):
        read(source)


def test_two_sources_of_one_name_are_refused():
    one = {"run": ["r"], "qid": ["1"], "docno": ["a"], "score": [1]}
    with pytest.raises(InputRefused, match="two sources hold a run of the name r"):
        ts.read_run(one, one)


def test_a_fault_in_a_file_is_named_with_its_line(tmp_path):
    path = tmp_path / "bad.qrels"
    path.write_text("".join(f"1 0 d{number} 1\n" for number in range(20)) + "1 0 b x\n")
    with pytest.raises(ValueError, match=r"bad\.qrels:21:"):
        ts.read_qrels(path)


@pytest.mark.parametrize(
    ("lines", "reading", "place"),
    [
        ("1 amy a 1\n1 bob a -1\n", {"format": "qrels_jg"}, "{path}:2"),
        ("1 0 a 1\n1 0 b -1\n", {"format": "qrels"}, "{path}:2"),
        (
            "1 0 a 1\n1 0 b -1\n",
            {"format": "qrels", "grades": {0: None}},
            "{path}",
        ),  # its lines are not counted
    ],
)
def test_a_negative_grade_is_named_with_its_own_line(tmp_path, lines, reading, place):
    path = tmp_path / "judged.txt"  # by itself it may be either
    path.write_text(lines)
    with pytest.raises(InputRefused) as caught:
        ts.read_qrels(path, **reading)
    assert str(caught.value).startswith(
        f"{place.format(path=path)}: 1 line has the grade -1: say with grades="
    )


def test_a_pair_judged_twice_is_named_with_its_second_line_where_the_format_is_given(tmp_path):
    path = tmp_path / "judged.txt"
    path.write_text("1 0 a 1\n1 0 b 1\n1 0 a 0\n")
    with pytest.raises(ValueError, match=rf"^{path}:3:.*a.*twice|^{path}:3:.*twice"):
        ts.read_qrels(path, format="qrels")


def test_judgments_that_a_grade_map_leaves_out_are_no_judgments(tmp_path):
    path, run = tmp_path / "l.qrels", {"1": {"a": 1.0}}
    path.write_text("1 0 a 0\n1 0 b 1\n")
    left = ts.read_qrels(path, grades={0: None, 1: None})
    with pytest.raises(InputRefused, match="there is no judgment"):
        ts.estimate(ts.read_run(run, name="mine"), "P@1", labels=left)


def test_without_a_common_topic_the_topic_of_the_line_is_named(tmp_path):
    path = tmp_path / "l.qrels"
    path.write_text("5 0 a 0\n10 0 b 1\n")
    with pytest.raises(InputRefused, match=rf"^{path}:1: .* '5' is one here, 'q1' one of the runs"):
        ts.estimate(ts.read_run({"q1": {"a": 1.0}}, name="mine"), "P@1", labels=path)


def test_a_run_read_as_judgments_says_which_reader_to_take(tmp_path):
    path = tmp_path / "bm25.run"
    path.write_text("1 Q0 a 1 0.5 bm25\n")
    with pytest.raises(ValueError, match="read_run"):
        ts.read_qrels(path)
