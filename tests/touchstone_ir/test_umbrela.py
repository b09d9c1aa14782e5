"""umbrela's judgments name texts alone: the requests that it judged tell topics and documents."""

import json

import pytest
from tool_files import FILES, LABELS

import touchstone_ir as ts
from touchstone_ir.command import main

JUDGED, REQUESTS = FILES / "umbrela.jsonl", FILES / "umbrela.requests.jsonl"


def test_judgments_are_read_with_their_requests():
    found = ts.read_qrels(JUDGED, requests=REQUESTS)
    assert {(row["topic"], row["doc"]): row["grade"] for row in found.to_dicts()} == LABELS
    assert found["assessor"].unique().to_list() == ["gpt-4o"]
    mapped = ts.read_qrels(JUDGED, requests=REQUESTS, grades={3: 1, 2: 1})
    assert mapped["grade"].max() == 1


def test_judgments_are_converted_with_their_requests(tmp_path, capsys):
    out = tmp_path / "llm.qrels"
    assert main(["convert", str(JUDGED), "--requests", str(REQUESTS), "-o", str(out)]) == 0
    lines = [line.split() for line in out.read_text().splitlines()]
    assert {(topic, doc): int(grade) for topic, _, doc, grade in lines} == LABELS
    again = tmp_path / "llm.umbrela.jsonl"
    assert main(["convert", str(JUDGED), "--requests", str(REQUESTS), "-o", str(again)]) == 0
    assert ts.read_qrels(again).equals(ts.read_qrels(JUDGED, requests=REQUESTS))  # it has ids of its own
    capsys.readouterr()


def test_requests_that_do_not_fit_are_refused(tmp_path, capsys):
    other = tmp_path / "other.jsonl"
    other.write_text('{"query": {"qid": "1", "text": "others"}, "candidates": []}\n')
    words = f"{JUDGED}:1:1: the requests have no such query and passage left"
    with pytest.raises(ValueError, match=f"^{words}$"):
        ts.read_qrels(JUDGED, requests=other)
    other.write_text(
        '{"query": {"qid": "1", "text": "others"}, "candidates": []}\n{"candidates": [{"docid": "d1"}]}\n'
    )
    with pytest.raises(ValueError, match=rf"^{other}:2:1: a request is {{query"):
        ts.read_qrels(JUDGED, requests=other)
    out = tmp_path / "x.qrels"
    for source, reason in (
        (FILES / "ranx.qrels.trec", "requests are for umbrela's judgments, not for qrels"),
        (FILES / "ranx.trec", f"{FILES / 'ranx.trec'} holds runs: requests are for umbrela's judgments"),
    ):
        assert main(["convert", str(source), "--requests", str(REQUESTS), "-o", str(out)]) == 2
        assert capsys.readouterr().err == f"touchstone convert: {reason}\n"
    with pytest.raises(ValueError, match=r"requests= is for a file of umbrela's judgments"):
        ts.read_qrels({"q1": {"d1": 1}}, requests=REQUESTS)
    assert not out.exists()


def test_a_negative_grade_is_asked_about_with_the_requests_that_were_given(tmp_path):
    lines = JUDGED.read_text().splitlines()
    first = json.loads(lines[0])
    judged = tmp_path / "judged.jsonl"
    judged.write_text("\n".join([json.dumps({**first, "judgment": -1}), *lines[1:]]) + "\n")
    with pytest.raises(ValueError, match=rf"^{judged}:1: 1 line has the grade -1: say with grades="):
        ts.read_qrels(judged, requests=REQUESTS)
