"""The one evaluator, against pytrec_eval, ir_measures, the two that it replaced, and by hand."""

import io
import random
import sys
from pathlib import Path

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from run_samples import ranked_documents

from judging.rankings import read_rankings, write_rankings
from judging.run_columns import columns_frame
from judging.runs import read_columns
from judging.trec import QrelRecord
from sampling.measures.registry import FAMILIES
from sampling.measures.scoring import (
    evaluate_topics,
    index_qrels,
    measure_on_scale,
    ranked_run,
)

# For these lines alone: benchmarks/judging.py is not the package of that name, benchmarks/coverage.py not the tool.
sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
from parts.former_evaluators import FormerMeasure, by_topic, former_qrels, from_stored

sys.path.pop()

TREC_EVAL = {
    "P@10": "P_10",
    "AP": "map",
    "nDCG@10": "ndcg_cut_10",
    "nDCG": "ndcg",
    "AP@5": "map_cut_5",
    "P@5": "P_5",
}
SCORES = [1.0, 1.0 + 1e-9, 0.0, -0.0, -2.5, 3e300, 1e-320, 0.1]


def columns_of(run, tag="mine"):
    lines = (
        f"{topic} Q0 {doc} 0 {score!r} {tag}\n" for topic, docs in run.items() for doc, score in docs.items()
    )
    return read_columns(io.BytesIO("".join(lines).encode()), "run")


def run_of(columns):
    """Return a run that was read as the evaluator takes it."""
    return ranked_run(columns.topic_ids, columns.offsets, columns.pair_hashes)


def stored(run):
    stream = io.BytesIO()
    write_rankings(columns_frame(columns_of(run)), stream)
    return read_rankings(stream.getvalue())


def judged_of(qrels):
    return index_qrels(
        QrelRecord(topic, doc, grade) for topic, docs in qrels.items() for doc, grade in docs.items()
    )


def by_name(ranking, qrels, name, gains=(0.0, 1.0, 2.0, 3.0), relevant_grade=1):
    """Return the values of one measure by topic, of a run given as documents."""
    measure = measure_on_scale(name, gains, relevant_grade)
    found = evaluate_topics(ranked_documents(ranking), judged_of(qrels), [measure])
    return dict(zip(found.topic_ids, found.values[0].tolist(), strict=True))


def worlds(seed, n, grades=(-2, 4)):
    """Yield random runs with ties and qrels with topics of their own."""
    generator = random.Random(seed)
    for _ in range(n):
        docs = [
            f"d{number}"[: generator.randrange(2, 4)] + "é" * generator.randrange(2) for number in range(60)
        ]
        topics = [str(number) for number in range(6)]
        run = {
            topic: {
                generator.choice(docs): generator.choice([*SCORES, generator.random()]) for _ in range(40)
            }
            for topic in topics
            if generator.random() < 0.9
        }
        qrels = {
            topic: {
                generator.choice(docs): generator.randrange(*grades)
                for _ in range(generator.randrange(1, 25))
            }
            for topic in [*topics, "unasked"]
            if generator.random() < 0.8
        }
        if set(run) & set(qrels):
            yield run, qrels


def test_it_equals_pytrec_eval_on_random_runs_with_ties():
    checked = 0
    for run, qrels in worlds(20, 150):
        shared = sorted(set(run) & set(qrels))
        # pytrec_eval 0.5.11 counts a negative grade outside its array and crashes now and then; it means 0 to it.
        counted = {
            topic: {doc: max(grade, 0) for doc, grade in docs.items()} for topic, docs in qrels.items()
        }
        expected = pytrec_eval.RelevanceEvaluator(counted, set(TREC_EVAL.values())).evaluate(run)
        rankings, judged = stored(run), judged_of(qrels)
        scale = np.arange(5)
        found = evaluate_topics(rankings, judged, [measure_on_scale(name, scale, 1) for name in TREC_EVAL])
        assert [
            topic for topic, there in zip(found.topic_ids, found.returned, strict=True) if there
        ] == shared
        for place, topic in enumerate(found.topic_ids):
            for row, name in enumerate(TREC_EVAL.values()):
                value = expected[topic][name] if topic in expected else 0.0
                assert abs(found.values[row, place] - value) < 1e-12
                checked += 1
    assert checked > 3000


def test_it_equals_the_evaluator_of_stored_runs_that_it_replaced():
    names = ["P@10", "P(rel=2)@5", "AP", "AP(rel=3)", "AP@5", "nDCG", "nDCG@10", "DCG@10", "DCG@100000"]
    for run, qrels in worlds(21, 60):
        rankings = stored(run)
        former = from_stored(rankings, former_qrels(qrels), names)
        measures = [measure_on_scale(name, np.arange(5), 1) for name in names]
        found = evaluate_topics(rankings, judged_of(qrels), measures)
        assert found.values == pytest.approx(former, rel=1e-12, abs=1e-12)


FORMER = {
    "P@10": ("P", 10, (0, 0, 1, 1), 0.0),
    "P(rel=3)@5": ("P", 5, (0, 0, 0, 1), 0.0),
    "Gain@7": ("Gain", 7, None, 0.0),
    "DCG@10": ("DCG", 10, None, 2.0),
    "DCG(dcg='ln')@10": ("DCG", 10, None, np.e),
    "RBP(p=0.5)@20": ("RBP", 20, (0, 0, 1, 1), 0.5),
    "nDCG": ("nDCG", None, None, 0.0),
    "nDCG@10": ("nDCG", 10, None, 0.0),
    "AP": ("AP", None, (0, 0, 1, 1), 0.0),
    "AP@5": ("AP", 5, (0, 0, 1, 1), 0.0),
    "Judged@10": ("Judged", 10, None, 0.0),
}


@pytest.mark.parametrize(
    "gains", [(0.0, 1.0, 2.0, 3.0), (0.0, 0.5, 0.5, 7.0), (0.25, 1.0, 3.0, 2.0)], ids=str
)
def test_it_equals_the_evaluator_of_releases_that_it_replaced_on_any_scale(gains):
    """Also where the gain of grade 0 is not 0, so that every document returned has one."""
    for run, qrels in worlds(22, 40):
        columns = columns_of(run)
        documents, edges = columns.doc_ids.to_list(), columns.offsets.tolist()
        ranking = {t: documents[a:b] for t, a, b in zip(columns.topic_ids, edges, edges[1:], strict=False)}
        measures = [measure_on_scale(name, gains, 2) for name in FORMER]
        for ranked in (run_of(columns), ranked_documents(ranking)):
            found = evaluate_topics(ranked, judged_of(qrels), measures)
            for values, (family, cutoff, own, parameter) in zip(found.values, FORMER.values(), strict=True):
                measure = FormerMeasure(family, cutoff, np.array(own or gains, dtype=float), parameter)
                former = by_topic(measure, ranking, qrels)
                expected = [former[topic] for topic in found.topic_ids]
                assert values == pytest.approx(expected, rel=1e-12, abs=1e-12), family


def test_measures_by_hand():
    """Ranking B(2) C(0) A(1), D(3) not returned: DCG = 2/log2(2) + 1/log2(4) = 2.5; ideal 3 + 2/log2(3) + 1/2."""
    ranking, qrels = {"1": ["B", "C", "A"]}, {"1": {"A": 1, "B": 2, "C": 0, "D": 3}}
    expected = {
        "DCG@3": 2.5,
        "DCG@2": 2.0,
        "nDCG@3": 2.5 / (3 + 2 / np.log2(3) + 0.5),
        "P@5": 0.4,
        "P(rel=2)@5": 0.2,
        "AP": (1 + 2 / 3) / 3,
        "AP(rel=2)": 0.5,
    }
    for name, value in expected.items():
        assert by_name(ranking, qrels, name)["1"] == pytest.approx(value, abs=1e-12), name


def test_swaps_are_the_share_of_pairs_in_the_wrong_order_unjudged_documents_at_grade_0():
    # a b u c with grades 1 3 unjudged 2: wrong are ab, ac, uc of 6 pairs; at ranks (1,2), (1,4), (3,4)
    ranking, qrels = {"t": ["a", "b", "u", "c"]}, {"t": {"a": 1, "b": 3, "c": 2}}
    assert by_name(ranking, qrels, "Swaps")["t"] == pytest.approx(3 / 6)
    assert by_name(ranking, qrels, "wSwaps")["t"] == pytest.approx((1 / 2 + 1 / 4 + 1 / 12) / 6)
    assert by_name(ranking, qrels, "Swaps@2")["t"] == 1.0
    assert by_name({"t": ["a"], "u": []}, {**qrels, "u": {"z": 1}}, "Swaps") == {"t": 0.0, "u": 0.0}


def test_judged_counts_documents_with_any_grade_among_those_returned():
    qrels = {"t": {"a": 0, "b": 2, "c": -1}, "u": {"a": 1}, "v": {"a": 1}}
    ranking = {"t": ["a", "x", "c", "b"], "u": ["x"]}
    assert by_name(ranking, qrels, "Judged@3") == {"t": 2 / 3, "u": 0.0, "v": 0.0}
    assert by_name(ranking, qrels, "Judged@9")["t"] == 3 / 4


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.key)
def test_every_family_scores_a_run_and_gives_nothing_to_one_that_returns_nothing(family):
    name = family.key if not family.kind.needs_cutoff else f"{family.key}@3"
    qrels = {"t": {"a": 1, "b": 3, "c": 0}, "u": {"a": 0}}
    found = by_name({"t": ["a", "b", "x"], "u": ["a"]}, qrels, name)
    assert 0 < found["t"] < 10
    assert found["u"] == 0
    assert by_name({}, qrels, name) == {"t": 0, "u": 0}
    assert by_name({"elsewhere": ["a"]}, qrels, name) == {"t": 0, "u": 0}


@pytest.mark.parametrize("relevant_grade", [1, 2])
@pytest.mark.parametrize("gains", [(0, 1, 2, 3), (0, 1, 3, 7)])
def test_the_name_that_ir_measures_is_given_computes_the_same(gains, relevant_grade):
    checked = 0
    for run, qrels in worlds(23, 10, grades=(0, 4)):
        columns = columns_of(run)
        # its own scores, so that ties are in trec_eval's order for both
        ranked = {t: {} for t in columns.topic_ids}
        for place, (start, stop) in enumerate(zip(columns.offsets, columns.offsets[1:], strict=False)):
            for rank, doc in enumerate(columns.doc_ids[start:stop]):
                ranked[columns.topic_ids[place]][doc] = -float(rank)
        for name in [name for family in FAMILIES for name in family.suggested]:
            measure = measure_on_scale(name, gains, relevant_grade)
            reference = measure.ir_measures and ir_measures.parse_measure(measure.ir_measures)
            if not reference or not ir_measures.pytrec_eval.supports(reference):  # RBP: by another package
                continue
            values = evaluate_topics(run_of(columns), judged_of(qrels), [measure])
            theirs = {m.query_id: m.value for m in ir_measures.iter_calc([reference], qrels, ranked)}
            for topic, value in zip(values.topic_ids, values.values[0], strict=True):
                assert value == pytest.approx(theirs.get(topic, 0.0), abs=1e-9), measure.ir_measures
                checked += 1
    assert checked > 100


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("P", "needs a cutoff"),
        ("P@0", "cutoff must be within"),
        ("nDCG(rel=2)@10", r"nDCG takes the parameters \['dcg'\], got 'rel'"),
        ("Success@5", "measure family must be one of"),
        ("P@10x", "must be spelled"),
        ("p@10", "measure family must be one of"),
        ("Judged", "measure family must be one of"),
        ("DCG", r"needs a cutoff, as in DCG@10 \(known here: P@10, Gain@10, .*, Judged@10\)"),
    ],
)
def test_an_unknown_measure_is_named(name, reason):
    with pytest.raises(ValueError, match=reason):
        measure_on_scale(name, [0, 1, 2], 1)


def test_a_pair_twice_in_the_qrels_is_refused():
    records = [QrelRecord("1", "A", 0), QrelRecord("1", "A", 1)]
    with pytest.raises(ValueError, match="twice in the qrels"):
        index_qrels(records)
