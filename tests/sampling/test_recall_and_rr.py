"""Recall and reciprocal rank: by hand, and as ir_measures has them."""

import ir_measures
import numpy as np
import pytest
from run_samples import ranked_documents

from analytics.releases.verify_measures import COMPLETE
from judging.trec import QrelRecord
from sampling.measures.registry import parse_measure
from sampling.measures.rr import RR, reciprocal_rank
from sampling.measures.scoring import evaluate_topics, index_qrels, measure_on_scale

QRELS = {"1": {"a": 2, "b": 0, "c": 1, "d": 1, "e": 3}, "2": {"a": 0, "b": 1}, "3": {"a": 0}}
RANKING = {"1": ["b", "c", "x", "a", "d"], "2": ["b", "a"], "3": ["a"]}


def ours(name):
    lines = (QrelRecord(topic, doc, grade) for topic, docs in QRELS.items() for doc, grade in docs.items())
    measure = measure_on_scale(name, [0, 1, 2, 3], 1)
    found = evaluate_topics(ranked_documents(RANKING), index_qrels(lines), [measure])
    return measure, dict(zip(found.topic_ids, found.values[0].tolist(), strict=True))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("R@2", [1 / 4, 1, 0]),
        ("R@5", [3 / 4, 1, 0]),
        ("R(rel=2)@5", [1 / 2, 0, 0]),
        ("RR@5", [1 / 2, 1, 0]),
        ("RR@1", [0, 1, 0]),
        ("RR(rel=2)@5", [1 / 4, 0, 0]),
    ],
)
def test_by_hand_and_as_ir_measures_has_them(name, values):
    measure, found = ours(name)
    assert [found[topic] for topic in "123"] == pytest.approx(values, abs=1e-15)
    run = {topic: {doc: -rank for rank, doc in enumerate(docs)} for topic, docs in RANKING.items()}
    theirs = ir_measures.iter_calc([ir_measures.parse_measure(measure.ir_measures)], QRELS, run)
    assert found == pytest.approx(
        {"1": 0.0, "2": 0.0, "3": 0.0} | {row.query_id: row.value for row in theirs}
    )


def test_other_spellings_are_read_and_both_need_a_cutoff():
    assert parse_measure("Recall@10").name == "R@10"
    assert parse_measure("MRR(rel=2)@10").name == "RR(rel=2)@10"
    assert parse_measure("micro R@10").averaging == "micro"
    for name in ("R", "RR"):
        with pytest.raises(ValueError, match=f"needs a cutoff, as in {name}@10"):
            parse_measure(name)


def test_an_item_of_two_opinions_counts_as_the_mean_of_both_worlds():
    """.5 at rank 1, then 1: half of the worlds have their first relevant document at rank 1, half at rank 2."""
    measure = parse_measure("RR@3")
    assert reciprocal_rank(measure, np.array([[0.5, 1, 0], [0, 0, 0.5], [0, 0, 0]])).tolist() == [
        0.75,
        1 / 6,
        0,
    ]
    form = COMPLETE[RR.key]
    assert [form.of_topic(np.array(row)) for row in ([0.5, 1, 0], [0, 0, 0.5], [0.0])] == pytest.approx(
        [0.75, 1 / 6, 0]
    )
    assert form.binary
