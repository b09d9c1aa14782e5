"""Formats of files: each tool's own file is read, written and read back; what is wrong is told with its place."""

import importlib.util
import io
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tool_files import FILES, JUDGMENT_FILES, RANKS, RUN, RUN_FILES

from judging import formats
from judging.faults import TrecFormatError
from judging.formats.kinds import JUDGMENTS, RUNS, TOPICS
from judging.formats.table import JUDGMENT_FORMATS, RUN_FORMATS, TOPIC_FORMATS
from judging.recognise import recognise
from judging.run_tables import RunFile, msmarco_rows, read_msmarco, read_ranked
from judging.topics import FORMATS as TOPIC_READERS

# -- the table ------------------------------------------------------------------------------------------------


def test_every_format_has_a_key_of_its_own_and_words() -> None:
    keys = [one.key for one in formats.FORMATS]
    assert len(set(keys)) == len(keys)
    assert all(one.label and one.help and one.tool for one in formats.FORMATS)
    assert {one.holds for one in formats.FORMATS} == {RUNS, JUDGMENTS, TOPICS}


def test_every_format_but_cranfields_has_a_file_of_its_tool() -> None:
    named = {form for form, _ in RUN_FILES.values()} | set(JUDGMENT_FILES.values())
    assert named == {one.key for one in (*RUN_FORMATS, *JUDGMENT_FORMATS)} - {"cranfield"}


def test_topic_formats_name_readers_of_topics() -> None:
    assert {one.reader for one in TOPIC_FORMATS} | {"json"} == set(TOPIC_READERS)


@pytest.mark.parametrize(
    ("name", "key"), [*((n, k) for n, (k, _) in RUN_FILES.items()), *JUDGMENT_FILES.items()]
)
def test_a_tools_file_is_recognised_by_its_content(name: str, key: str) -> None:
    found = recognise("file", (FILES / name).read_bytes())
    assert (found.file_format, found.is_sure) == (key, True), found.why
    assert formats.recognised_format(FILES / name).key == key


def test_an_unknown_format_is_told_with_those_there_are() -> None:
    with pytest.raises(
        ValueError, match=r"format must be one of run, msmarco, json_run, pyterrier, qrels, .*, not 'x'"
    ):
        formats.format_of("x")
    assert formats.format_of("run").label == "TREC run"


# -- runs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RUN_FILES)
def test_a_tools_run_is_read_written_and_read_back(name: str, tmp_path: Path) -> None:
    key, called = RUN_FILES[name]
    read, columns = formats.read_run_columns(FILES / name)
    assert read == called
    pairs = list(zip(columns["topic_id"], columns["doc_id"], strict=True))
    if key == "msmarco":  # it has ranks alone, in the order of its tool
        assert [pair[1] for pair in pairs] == ["d1", "d3", "d2", "d4", "d5", "d6", "d2", "d1"]
    else:
        assert [(*pair, score) for pair, score in zip(pairs, columns["score"], strict=True)] == RUN
    assert columns["rank"].tolist() == RANKS
    assert (columns["score"].dtype, columns["rank"].dtype) == (np.float64, np.int64)
    for form in RUN_FORMATS:
        path = tmp_path / f"again.{form.key}"
        formats.write(columns, path, format=form.key, name=read)
        again, written = formats.read_run_columns(path, format=form.key)
        assert (again == read) is form.names_run
        assert written["doc_id"] == columns["doc_id"]
        assert written["rank"].tolist() == RANKS
        assert form.key == "msmarco" or written["score"].tolist() == columns["score"].tolist()


def test_a_run_of_several_tags_needs_a_name(tmp_path: Path) -> None:
    path = tmp_path / "two.run"
    path.write_text("1 Q0 a 1 2 x\n1 Q0 b 2 1 y\n")
    with pytest.raises(
        TrecFormatError, match=r"two.run:2:12: one run tag a file: 'y' after 'x'; give the run a name"
    ):
        formats.read_run_columns(path)
    name, columns = formats.read_run_columns(path, name="mine")
    assert (name, columns["doc_id"]) == ("mine", ["a", "b"])
    path.write_text("qid,docno,rank,score,name\n1,a,1,2,x\n1,b,2,1,y\n")
    with pytest.raises(
        TrecFormatError, match=r"two.run:3:3: one run a file: 'y' after 'x'; give the run a name"
    ):
        formats.read_run_columns(path)
    assert formats.read_run_columns(path, name="mine")[0] == "mine"


def test_a_fast_and_a_slow_pass_over_a_json_run_read_the_same() -> None:
    spaced = json.dumps({"7": {"a": 1, "b": 2.5}, "8": {"c": -3}}, indent=3).encode()
    name, columns = formats.read_run_columns(io.BytesIO(spaced), format="json_run", name="x")
    assert (name, columns["topic_id"], columns["doc_id"]) == ("x", ["7", "7", "8"], ["b", "a", "c"])


LINES = [
    f"{topic}\t{document}\t{rank}" for topic in "ab" for rank, document in enumerate(["x", "z", "y", "w"])
]


@pytest.mark.parametrize("seed", range(5))
def test_a_fast_and_a_slow_pass_over_three_columns_read_the_same(seed: int) -> None:
    shuffled = "\n".join(np.random.default_rng(seed).permutation(LINES)).encode()
    fast = read_msmarco(RunFile(io.BytesIO(shuffled), "f"), "mine")
    slow = read_ranked(msmarco_rows, RunFile(io.BytesIO(shuffled), "f"), "mine")
    assert fast.doc_ids.to_list() == slow.doc_ids.to_list() == ["x", "z", "y", "w"] * 2
    assert fast.topic_ids == slow.topic_ids == ("a", "b")
    for name in ("offsets", "scores", "pair_hashes"):
        assert getattr(fast, name).tolist() == getattr(slow, name).tolist()
    assert fast.run_tag == slow.run_tag == "mine"


# (what is wrong, the format, and the error)
BAD_RUNS = {
    "nan in a run": ("1 Q0 a 1 nan x\n", "run", "f:1:10: score must be a finite number, not 'nan'"),
    "pair twice in a run": ("1 Q0 a 1 2 x\n1 Q0 a 2 1 x\n", "run",
                            "f:2:6: document a of topic 1 occurs twice (first on line 1)"),
    "rank twice": ("1 a 1\n1 b 1\n", "msmarco", "f:2:5: rank 1 of topic 1 occurs twice (first on line 1)"),
    "no rank": ("1 a 1\n1 b x\n", "msmarco", "f:2:5: rank must be a whole number from 0, not 'x'"),
    "pair twice in three columns": ("1 a 1\n1 a 2\n", "msmarco",
                                    "f:2:3: document a of topic 1 occurs twice (first at 1:3)"),
    "nan in JSON": ('{"1": {"a": NaN}}', "json_run", "f:1:13: score must be a finite number, not 'nan'"),
    "a word in JSON": ('{"1": {"a": 1,\n  "b": "2"}}', "json_run", "f:2:8: score must be a finite number, not '2'"),
    "truth in JSON": ('{"1": {"a": true}}', "json_run", "f:1:13: score must be a finite number, not 'True'"),
    "document twice in JSON": ('{"1": {"a": 1,\n"a": 2}}', "json_run",
                               "f:2:1: 'a' occurs twice in topic 1 (first at 1:8)"),
    "topic twice in JSON": ('{"1": {"a": 1}, "1": {"b": 1}}', "json_run",
                            "f:1:17: '1' occurs twice in the file (first at 1:2)"),
    "a blank id in JSON": ('{"1": {"a b": 1}}', "json_run",
                           "f:1:8: document id 'a b' holds white space or a control character"),
    "cut off": ('{"1": {"a": 1}', "json_run", "f:1:15: malformed JSON (Expecting ',' delimiter)"),
    "more behind": ('{"1": {"a": 1}}\n{}', "json_run", "f:2:1: expected nothing behind the JSON object"),
    "no object": ('{"1": [1]}', "json_run",
                  'f:1:7: topic 1 must be a JSON object: a run is {"topic": {"document": score}}'),
    "two splits": ('{"mteb_model_meta": {}, "default": {"dev": {}, "test": {}}}', "json_run",
                   "f:1:1: MTEB's predictions of one split are one run; this file has dev, test"),
    "nothing": ("{}", "json_run", "f:1:1: no lines in the run"),
    "no document": ("qid,rank,score\n1,1,2\n", "pyterrier",
                    "f:1:1: no column named docno or doc_id or pid or document; its columns are qid, rank, score"),
    "doubly named": ("qid,docno,qid,score\n1,a,1,2\n", "pyterrier", "f:1:1: two columns have the same name: 'qid'"),
    "two topics": ("qid,topic_id,docno,score\n1,1,a,2\n", "pyterrier",
                   "f:1:1: the columns qid and topic_id mean the same: leave one out"),
    "nan in a table": ("qid,docno,score\n1,a,NaN\n", "pyterrier", "f:2:5: score must be a finite number, not 'NaN'"),
    "an empty score": ("qid,docno,score\n1,a,\n", "pyterrier", "f:2:5: score must be a finite number, not ''"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD_RUNS)
def test_a_bad_run_is_told_with_its_place(what: str) -> None:
    text, key, message = BAD_RUNS[what]
    stream = io.BytesIO(text.encode())
    stream.name = "f"
    with pytest.raises(TrecFormatError) as caught:
        formats.read_run_columns(stream, format=key)
    assert str(caught.value) == message


# -- the wrong reader -----------------------------------------------------------------------------------------


def test_a_file_of_another_kind_is_told_with_its_reader(tmp_path: Path) -> None:
    with pytest.raises(
        TrecFormatError, match=r"trec:1:1: this holds judgments \(qrels\): read_qrels reads it"
    ):
        formats.read_run_columns(FILES / "ranx.qrels.trec")
    with pytest.raises(
        TrecFormatError, match=r"ranx.json:1:1: this holds runs \(JSON run\): read_run reads it"
    ):
        formats.read_judgment_columns(FILES / "ranx.json")
    topics = tmp_path / "queries.tsv"
    topics.write_text("query_id\tquery\n7\tblack bear attacks\n")
    with pytest.raises(TrecFormatError, match=r"queries.tsv:1:1: this holds topics .*: read_topics reads it"):
        formats.read_judgment_columns(topics)
    with pytest.raises(ValueError, match="the format qrels holds judgments: read_qrels reads it"):
        formats.read_run_columns(FILES / "ranx.trec", format="qrels")


def test_a_name_decides_between_formats_that_a_content_allows(tmp_path: Path) -> None:
    lines = "7 1 a 1\n7 2 b 0\n"  # who judged, or a number that means nothing?
    (tmp_path / "a.qrels").write_text(lines)
    (tmp_path / "a.txt").write_text(lines)
    assert formats.recognised_format(tmp_path / "a.qrels").key == "qrels"
    with pytest.raises(
        TrecFormatError,
        match=r"a.txt:1:1: Judgments: is the second .* Name one of the formats qrels, qrels_jg",
    ):
        formats.read_judgment_columns(tmp_path / "a.txt")
    assert len(formats.read_judgment_columns(tmp_path / "a.txt", format="qrels")["grade"]) == 2


def test_topics_are_read(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text('{"_id": "7", "text": "black bear attacks"}\n')
    assert formats.read_topic_columns(path) == {
        "topic_id": ["7"], "title": ["black bear attacks"], "description": [""], "narrative": [""],
    }  # fmt: skip


# -- writing and converting -----------------------------------------------------------------------------------


def test_what_cannot_be_written_is_refused_and_leaves_no_file(tmp_path: Path) -> None:
    columns = {"topic_id": ["1"], "doc_id": ["a b"], "grade": [1]}
    path = tmp_path / "a.qrels"
    with pytest.raises(
        ValueError, match="document id must be one word to be written in a TREC file, not 'a b'"
    ):
        formats.write(columns, path, format="qrels")
    with pytest.raises(ValueError, match="prels needs the column probability, which is missing"):
        formats.write(columns, path, format="prels")
    with pytest.raises(ValueError, match="the format cranfield only comes in"):
        formats.write(columns, path, format="cranfield")
    assert list(tmp_path.iterdir()) == []


def test_conversion_finds_both_formats_by_itself(tmp_path: Path) -> None:
    (made,) = formats.convert(FILES / "mteb.jsonl", tmp_path / "gold.qrels")
    assert made.read_text() == "q1 0 d1 2\nq1 0 d2 0\nq1 0 d3 1\nq2 0 d1 0\nq2 0 d2 3\n"
    (packed,) = formats.convert(FILES / "ranx.json", tmp_path / "a.run.gz", name="mine")
    assert formats.read_run_columns(packed)[0] == "mine"
    (table,) = formats.convert(FILES / "crowdkit.csv", tmp_path / "again.csv")
    assert table.read_bytes() == (FILES / "crowdkit.csv").read_bytes()
    with pytest.raises(ValueError, match=r"the ending of a\.txt tells no format of judgments"):
        formats.convert(made, tmp_path / "a.txt")
    with pytest.raises(ValueError, match="judgments cannot be written as run, which holds runs"):
        formats.convert(made, tmp_path / "a.txt", to_format="run")


def test_a_table_of_labels_and_truth_becomes_labels_and_gold(tmp_path: Path) -> None:
    labels, gold = formats.convert(FILES / "pairs.csv", tmp_path / "j.qrels")
    assert (labels.name, gold.name) == ("j.labels.qrels", "j.gold.qrels")
    assert labels.read_text() == "q1 0 d1 2\nq1 0 d2 1\nq1 0 d3 0\nq2 0 d1 0\nq2 0 d2 3\n"
    assert gold.read_text() == "q1 0 d1 2\nq1 0 d2 0\nq2 0 d2 3\n"


def test_a_polars_frame_is_written_as_columns_are() -> None:
    stream = io.BytesIO()
    formats.write(pl.DataFrame({"topic_id": ["1"], "doc_id": ["a"], "grade": [2]}), stream, format="mteb")
    assert stream.getvalue() == b'{"query-id": "1", "corpus-id": "a", "score": 2}\n'


# -- ir_datasets ----------------------------------------------------------------------------------------------


def test_a_data_set_needs_ir_datasets(monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ir_datasets", None)
    with pytest.raises(
        formats.MissingPackageError, match="needs the package ir_datasets, which is not installed"
    ):
        formats.read_judgment_columns("ir_datasets:beir/scifact/test")


@pytest.mark.skipif(importlib.util.find_spec("ir_datasets") is None, reason="ir_datasets is not installed")
def test_an_unknown_data_set_is_refused() -> None:
    with pytest.raises(
        TrecFormatError, match="ir_datasets:nothing/such:1:1: ir_datasets has no such data set"
    ):
        formats.read_judgment_columns("ir_datasets:nothing/such")
