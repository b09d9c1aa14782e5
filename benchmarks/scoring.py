"""Measure the evaluator beside the one that releases had before it: a run of 50 topics x 1,000 documents.

    python benchmarks/scoring.py [--topics 50] [--documents 1000] [--judged 1500] [--repetitions 20] [--seed 1]

Both get the same run and the same qrels in the form they work on (arrays of hashes, or documents by topic), and both
are timed from the files as well: reading the run, indexing, scoring. In turns, in one process; the fastest of all
repetitions counts. The JSON has seconds, the ratio, and by how much the values differ at most.
"""

import argparse
import io
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from parts.former_evaluators import FormerMeasure, by_topic

from judging.run_columns import columns_frame
from judging.runs import read_columns
from judging.trec import QrelRecord, read_qrels
from sampling.measures.scoring import RankedRun, evaluate_topics, index_qrels, measure_on_scale, ranked_run

GAINS = np.arange(4.0)
BINARY = np.array([0.0, 1.0, 1.0, 1.0])
MEASURES = {
    "P@10": FormerMeasure("P", 10, BINARY),
    "DCG@10": FormerMeasure("DCG", 10, GAINS, 2.0),
    "RBP@100": FormerMeasure("RBP", 100, BINARY, 0.8),
    "nDCG@10": FormerMeasure("nDCG", 10, GAINS),
    "nDCG": FormerMeasure("nDCG", None, GAINS),
    "AP": FormerMeasure("AP", None, BINARY),
    "Judged@10": FormerMeasure("Judged", 10, GAINS),
}
Ranking = dict[str, list[str]]
Grades = dict[str, dict[str, int]]


def make_files(n_topics: int, n_documents: int, n_judged: int, seed: int) -> tuple[bytes, bytes]:
    """Return a run file and a qrels file; half of what is judged is returned."""
    rng = np.random.default_rng(seed)
    run, qrels = [], []
    for topic in range(401, 401 + n_topics):
        names = [
            f"clueweb09-en{number:07d}" for number in rng.permutation(2_000_000)[: 2 * n_documents + n_judged]
        ]
        listed = names[:n_documents]
        judged = names[n_documents - n_judged // 2 : n_documents + n_judged - n_judged // 2]
        rng.shuffle(listed)
        run += [
            f"{topic} Q0 {name} {place} {n_documents - place} mine\n" for place, name in enumerate(listed)
        ]
        grades = rng.choice(4, p=[0.8, 0.12, 0.06, 0.02], size=n_judged).tolist()
        qrels += [f"{topic} 0 {name} {grade}\n" for name, grade in zip(judged, grades, strict=True)]
    return "".join(run).encode(), "".join(qrels).encode()


def as_documents(run: bytes, records: list[QrelRecord]) -> tuple[Ranking, Grades]:
    """Return the run and the qrels as the former evaluator takes them."""
    rows = columns_frame(read_columns(io.BytesIO(run), "run"))
    ranking: Ranking = {}
    for topic, document in zip(rows["topic_id"].to_list(), rows["doc_id"].to_list(), strict=True):
        ranking.setdefault(topic, []).append(document)
    grades: Grades = {}
    for record in records:
        grades.setdefault(record.topic_id, {})[record.doc_id] = record.grade
    return ranking, grades


def run_of(run: bytes) -> RankedRun:
    """Return the run as the evaluator takes it."""
    columns = read_columns(io.BytesIO(run), "run")
    return ranked_run(columns.topic_ids, columns.offsets, columns.pair_hashes)


def fastest(repetitions: int, *candidates: Callable[[], Any]) -> list[float]:
    """Return the least seconds of each, run in turns."""
    best = [float("inf")] * len(candidates)
    for _ in range(repetitions):
        for place, candidate in enumerate(candidates):
            started = time.perf_counter()
            candidate()
            best[place] = min(best[place], time.perf_counter() - started)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, usual in (
        ("topics", 50),
        ("documents", 1000),
        ("judged", 1500),
        ("repetitions", 20),
        ("seed", 1),
    ):
        parser.add_argument(f"--{name}", type=int, default=usual)
    given = parser.parse_args()
    run, qrels = make_files(given.topics, given.documents, given.judged, given.seed)
    records = list(read_qrels(io.BytesIO(qrels), "qrels"))
    ranking, grades = as_documents(run, records)
    ranked, judged = run_of(run), index_qrels(records)
    measures = {name: measure_on_scale(name, GAINS, 1) for name in MEASURES}
    figures: dict[str, Any] = {
        "n_rows": given.topics * given.documents,
        "n_qrels": len(records),
        "measures": {},
    }
    largest = 0.0
    for name, former in MEASURES.items():
        ours = evaluate_topics(ranked, judged, [measures[name]])
        theirs = by_topic(former, ranking, grades)
        differences = np.abs(ours.values[0] - [theirs[topic] for topic in ours.topic_ids])
        largest = max(largest, float(differences.max()))
    everything = list(measures.values())

    def former_from_files() -> None:
        read = as_documents(run, records)
        for former in MEASURES.values():
            by_topic(former, *read)

    def from_files() -> None:
        evaluate_topics(run_of(run), index_qrels(records), everything)

    rows = {
        name: (
            lambda name=name: evaluate_topics(ranked, judged, [measures[name]]),  # type: ignore[misc]
            lambda name=name: by_topic(MEASURES[name], ranking, grades),  # type: ignore[misc]
        )
        for name in MEASURES
    }
    rows["all of them"] = (
        lambda: evaluate_topics(ranked, judged, everything),
        lambda: [by_topic(former, ranking, grades) for former in MEASURES.values()],
    )
    rows["all of them, from the run file and the qrels"] = (from_files, former_from_files)
    for name, candidates in rows.items():
        ours_s, theirs_s = fastest(given.repetitions, *candidates)
        figures["measures"][name] = {
            "seconds": ours_s,
            "by_topic_seconds": theirs_s,
            "ratio": theirs_s / ours_s,
        }
    figures["largest_difference"] = largest
    json.dump(figures, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
