"""Formats of judgments: each tool's own file is read, written and read back; what is wrong is told with its place."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from tool_files import FILES, GRADES, JUDGMENT_FILES, LABELS, alike, grades_of, requests_of

from judging import formats
from judging.faults import TrecFormatError


@pytest.mark.parametrize("name", JUDGMENT_FILES)
def test_a_tools_judgments_are_read_written_and_read_back(name: str, tmp_path: Path) -> None:
    key = JUDGMENT_FILES[name]
    columns = formats.read_judgment_columns(FILES / name, **requests_of(name))
    expected = LABELS if key in ("umbrela", "pairs") else GRADES
    found = grades_of(columns)
    if key in ("qrels_jg", "crowd"):
        assert list(columns["grade"]) == [*GRADES.values(), *GRADES.values(), *LABELS.values()]
        assert columns["assessor"] == [name for name in ("ann", "ben", "eve") for _ in GRADES]
    elif key == "gold":
        assert list(columns["grade"]) == [2, None, 0, 3]
        assert columns["probability"].tolist() == [0.72] * 4
    else:
        assert {pair: grade for pair, grade in found.items() if grade is not None} == expected
    if all(grade is not None for grade in found.values()):
        assert columns["grade"].dtype == np.int64
    path = tmp_path / f"again.{key}"
    formats.write(columns, path, format=key)
    assert alike(formats.read_judgment_columns(path, format=key), columns)


def test_samples_have_their_probabilities() -> None:
    prels = formats.read_judgment_columns(FILES / "trec.prels")
    assert prels["probability"].tolist() == [0.5, 0.25, 1.0, 0.125, 0.5]
    strata = formats.read_judgment_columns(FILES / "trec.strata")
    assert strata["probability"].tolist() == [1.0, 0.5, 1.0, 0.5, 1.0, 1.0]
    assert strata["grade"] == [2, 0, 1, None, 0, 3]
    assert strata["stratum"].tolist() == [1, 2, 1, 2, 1, 1]


def test_a_stratum_without_a_sampled_document_is_refused() -> None:
    stream = io.BytesIO(b"1 0 a 1 2\n1 0 b 2 -1\n")
    with pytest.raises(TrecFormatError, match=r"stream:2:7: stratum 2 of topic 1 has no sampled document"):
        formats.read_judgment_columns(stream, format="stratified")


def test_labels_stand_beside_the_truth() -> None:
    columns = formats.read_judgment_columns(FILES / "pairs.csv")
    assert columns["judge"].tolist() == [2, 1, 0, 0, 3]
    assert columns["truth"] == [2, 0, None, None, 3]


def test_a_map_changes_grades_and_leaves_lines_out() -> None:
    lines = io.BytesIO(b"1 0 a -2\n1 0 b -1\n1 0 c 1\n1 0 d 2\n")
    columns = formats.read_judgment_columns(lines, format="qrels", grades={-2: 0, -1: None, 2: 1})
    assert grades_of(columns) == {("1", "a"): 0, ("1", "c"): 1, ("1", "d"): 1}
    pairs = io.BytesIO(b"topic,doc,judge,truth\n1,a,2,2\n1,b,-1,0\n1,c,0,-1\n")
    columns = formats.read_judgment_columns(pairs, format="pairs", grades={2: 1, -1: None})
    assert columns == {
        "topic_id": ["1", "1"],
        "doc_id": ["a", "c"],
        "grade": pytest.approx([1, 0]),
        "judge": pytest.approx([1, 0]),
        "truth": [1, None],
    }


def test_umbrelas_records_need_their_ids() -> None:
    with pytest.raises(TrecFormatError, match=r"umbrela.jsonl:1:1: umbrela's record names no qid and docid"):
        formats.read_judgment_columns(FILES / "umbrela.jsonl")
    with pytest.raises(ValueError, match="requests are for umbrela's judgments, not for qrels"):
        formats.read_judgment_columns(FILES / "ranx.qrels.trec", requests=FILES / "umbrela.requests.jsonl")
    other = io.BytesIO(b'{"query": {"qid": "1", "text": "other"}, "candidates": []}\n')
    with pytest.raises(
        TrecFormatError, match=r"umbrela.jsonl:1:1: the requests have no such query and passage left"
    ):
        formats.read_judgment_columns(FILES / "umbrela.jsonl", requests=other)


def test_what_umbrela_could_not_read_has_no_grade() -> None:
    lines = [
        {"qid": "1", "docid": one, "query": "", "passage": "", "judgment": grade, "result_status": status}
        for one, grade, status in (("a", 2, 1), ("b", 0, 0), ("c", 0, 1))
    ]
    stream = io.BytesIO("".join(json.dumps(line) + "\n" for line in lines).encode())
    columns = formats.read_judgment_columns(stream)
    assert grades_of(columns) == {("1", "a"): 2, ("1", "c"): 0}
    assert columns["assessor"] == ["umbrela", "umbrela"]


BAD_JUDGMENTS = {
    "a pair twice": ("1 0 a 1\n1 0 a 0\n", "qrels", "f:2:5: document a of topic 1 occurs twice (first on line 1)"),
    "probability 0": ("1 a 1 1 0\n", "prels", "f:1:9: inclusion probability must be in (0, 1], not 0"),
    "nan": ('{"query-id": "1", "corpus-id": "a", "score": NaN}\n', "mteb",
            "f:1:37: score must be an integer in -127..127, not 'nan'"),
    "half a grade": ('{"query-id": "1", "corpus-id": "a", "score": 0.5}\n', "mteb",
                     "f:1:37: score must be an integer in -127..127, not '0.5'"),
    "no topic": ('{"corpus-id": "a", "score": 1}\n', "mteb", "f:1:1: no key query-id"),
    "a pair twice in JSON": ('{"query-id": "1", "corpus-id": "a", "score": 1}\n' * 2, "mteb",
                             "f:2:19: document a of topic 1 occurs twice (first on line 1)"),
    "no judge": ("topic,doc,truth\n1,a,1\n", "pairs",
                 "f:1:1: no column named judge; its columns are topic, doc, truth"),
    "no label": ("topic,doc,judge,truth\n1,a,,1\n", "pairs", "f:2:5: judge must be an integer in -127..127, not ''"),
    "a pair twice in a table": ("topic,doc,judge,truth\n1,a,1,1\n1,a,1,\n", "pairs",
                                "f:3:3: document a of topic 1 occurs twice (first on line 2)"),
    "nothing": ("topic,doc,judge,truth\n", "pairs", "f:1:1: no judgments in the file"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD_JUDGMENTS)
def test_bad_judgments_are_told_with_their_place(what: str) -> None:
    text, key, message = BAD_JUDGMENTS[what]
    stream = io.BytesIO(text.encode())
    stream.name = "f"
    with pytest.raises(TrecFormatError) as caught:
        formats.read_judgment_columns(stream, format=key)
    assert str(caught.value) == message
