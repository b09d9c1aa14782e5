"""Measures of stored runs: equal to pytrec_eval, and by hand."""

import gzip
import io
import random

import numpy as np
import polars as pl
import pytest
import pytrec_eval
from run_samples import GOOD, _frame, _lines, _stored

from judging.rankings import (
    convert_runs,
    evaluate,
    evaluate_topics,
    find_ranks,
    index_qrels,
    read_rankings,
    top,
    write_rankings,
)
from judging.runs import hash_pairs
from judging.trec import QrelRecord, TrecFormatError

NAMES = {
    "P@10": "P_10",
    "AP": "map",
    "nDCG@10": "ndcg_cut_10",
    "nDCG": "ndcg",
    "AP@5": "map_cut_5",
    "P@5": "P_5",
}


def _judged(qrels: dict[str, dict[str, int]]):
    return index_qrels(
        QrelRecord(topic, doc, grade) for topic, docs in qrels.items() for doc, grade in docs.items()
    )


def test_evaluation_from_the_stored_form_equals_pytrec_eval_on_random_runs_with_ties():
    generator = random.Random(20)
    checked = 0
    for _ in range(150):
        docs = [
            f"d{number}"[: generator.randrange(2, 4)] + "é" * generator.randrange(2) for number in range(60)
        ]
        topics = [str(number) for number in range(6)]
        scores = [1.0, 1.0 + 1e-9, 0.0, -0.0, -2.5, 3e300, 1e-320, 0.1]
        run = {
            topic: {
                generator.choice(docs): generator.choice([*scores, generator.random()]) for _ in range(40)
            }
            for topic in topics
            if generator.random() < 0.9
        }
        qrels = {
            topic: {
                generator.choice(docs): generator.randrange(-2, 4) for _ in range(generator.randrange(1, 25))
            }
            for topic in [*topics, "unasked"]
            if generator.random() < 0.8
        }
        shared = sorted(set(run) & set(qrels))
        if not shared:
            continue
        # pytrec_eval 0.5.11 counts a negative grade outside its array and crashes now and then; it means 0 to it.
        counted = {
            topic: {doc: max(grade, 0) for doc, grade in docs.items()} for topic, docs in qrels.items()
        }
        expected = pytrec_eval.RelevanceEvaluator(counted, set(NAMES.values())).evaluate(run)
        rankings, judged = _stored(_frame(_lines(run))), _judged(qrels)
        found = evaluate_topics(rankings, judged, list(NAMES))
        assert [
            topic for topic, there in zip(found.topic_ids, found.returned, strict=True) if there
        ] == shared
        for place, topic in enumerate(found.topic_ids):
            for row, name in enumerate(NAMES.values()):
                value = expected[topic][name] if topic in expected else 0.0
                assert abs(found.values[row, place] - value) < 1e-12
                checked += 1
        means = evaluate(rankings, judged, list(NAMES))
        complete = evaluate(rankings, judged, list(NAMES), all_topics=True)
        for measure, name in NAMES.items():
            total = sum(expected[topic][name] for topic in shared)
            assert abs(means[measure] - total / len(shared)) < 1e-12
            assert abs(complete[measure] - total / len(qrels)) < 1e-12
    assert checked > 3000


def test_measures_by_hand():
    """Ranking B(2) C(0) A(1), D(3) not returned: DCG = 2/log2(2) + 1/log2(4) = 2.5; ideal 3 + 2/log2(3) + 1/2."""
    rankings = _stored(_frame(_lines({"1": {"A": 1.0, "B": 3.0, "C": 2.0}})))
    judged = _judged({"1": {"A": 1, "B": 2, "C": 0, "D": 3}})
    found = evaluate(
        rankings, judged, ["DCG@3", "DCG@2", "DCG", "nDCG@3", "P@5", "P(rel=2)@5", "AP", "AP(rel=2)"]
    )
    assert found == pytest.approx(
        {
            "DCG@3": 2.5,
            "DCG@2": 2.0,
            "DCG": 2.5,
            "nDCG@3": 2.5 / (3 + 2 / np.log2(3) + 0.5),
            "P@5": 0.4,
            "P(rel=2)@5": 0.2,
            "AP": (1 + 2 / 3) / 3,
            "AP(rel=2)": 0.5,
        },
        abs=1e-12,
    )


@pytest.mark.parametrize("measure", ["P", "P@0", "nDCG(rel=2)@10", "MRR", "P@10x", "p@10"])
def test_an_unknown_measure_is_named(measure):
    with pytest.raises(ValueError, match=r"measure|threshold"):
        evaluate(_stored(_frame(GOOD)), _judged({"1": {"A": 1}}), [measure])


def test_a_run_without_any_judged_topic_has_no_mean():
    with pytest.raises(ValueError, match="run mine returns no topic of the qrels"):
        evaluate(_stored(_frame(GOOD)), _judged({"2": {"A": 1}}), ["AP"])


def test_a_pair_twice_in_the_qrels_is_refused():
    with pytest.raises(ValueError, match="twice in the qrels"):
        index_qrels([QrelRecord("1", "A", 1), QrelRecord("1", "A", 2)])


def test_ranks_are_found_by_pair_and_are_0_where_the_run_does_not_return_it():
    rankings = _stored(_frame(b"1 Q0 A 1 2 t\n1 Q0 B 1 3 t\n2 Q0 A 1 1 t\n"))
    hashes = hash_pairs(["1", "1", "2", "2", "3"], ["A", "B", "A", "B", "A"])
    assert find_ranks(rankings, ["1", "2", "3"], np.array([0, 0, 1, 1, 2]), hashes).tolist() == [
        2,
        1,
        1,
        0,
        0,
    ]


def test_the_top_of_a_run_has_at_most_depth_documents_a_topic():
    rankings = _stored(_frame(b"1 Q0 A 1 2 t\n1 Q0 B 1 3 t\n1 Q0 C 1 1 t\n2 Q0 A 1 1 t\n"))
    assert top(rankings, 2).rows() == [("1", "B", 1, 3.0), ("1", "A", 2, 2.0), ("2", "A", 1, 1.0)]
    assert top(rankings, 9).height == 4
    with pytest.raises(ValueError, match="at least 1, not 0"):
        top(rankings, 0)


def test_files_are_converted_in_order_and_the_first_bad_one_fails_all(tmp_path):
    paths = []
    for number in range(8):
        path = tmp_path / f"run{number}.gz"
        path.write_bytes(gzip.compress(_lines({"1": {f"d{number}": 1.0}}, f"tag{number}")))
        paths.append(path)
    written = []
    summaries = convert_runs(
        paths, lambda index, summary, payload: written.append((index, read_rankings(payload)))
    )
    assert [summary.run_tag for summary in summaries] == [f"tag{number}" for number in range(8)]
    assert [(index, stored.run_tag, stored.doc_ids.to_list()) for index, stored in written] == [
        (number, f"tag{number}", [f"d{number}"]) for number in range(8)
    ]
    paths[5].write_bytes(b"1 Q0 A 1 nan t\n")
    written.clear()
    with pytest.raises(TrecFormatError, match=r"run5.gz:1:10: score"):
        convert_runs(paths, lambda index, summary, payload: written.append(index))
    assert written == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="at least 1, not 0"):
        convert_runs(paths, lambda index, summary, payload: None, workers=0)


def test_a_stored_file_is_read_from_a_path_and_a_damaged_one_is_refused(tmp_path):
    path = tmp_path / "run"
    write_rankings(_frame(GOOD), path)
    assert read_rankings(path).doc_ids.to_list() == ["A"]
    data = path.read_bytes()
    for damaged in (data[:-64], data[:-1] + b"x", data[:8] + b"\xff" * 8 + data[16:], b"", GOOD):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="rankings file"):
            read_rankings(path)


def test_a_frame_that_is_no_run_is_not_written():
    frame = _frame(GOOD)
    with pytest.raises(ValueError, match="twice"):
        write_rankings(pl.concat([frame, frame]), io.BytesIO())
    with pytest.raises(ValueError, match="finite"):
        write_rankings(frame.with_columns(score=pl.lit(float("nan"))), io.BytesIO())
    with pytest.raises(ValueError, match="one run tag"):
        write_rankings(frame.clear(), io.BytesIO())
