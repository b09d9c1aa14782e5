"""The files of tools in tests/fixtures/formats: what they hold, and how a test asks for a tool."""

from pathlib import Path

import pytest

FILES = Path(__file__).parent / "fixtures/formats"
# What make.py of the fixtures says: the run in trec_eval's order (d3 before d2, their scores being one), the grades.
RUN = [
    ("q1", "d1", 12.5), ("q1", "d3", 7.25), ("q1", "d2", 7.25), ("q1", "d4", 1.0), ("q1", "d5", 0.5),
    ("q1", "d6", 0.25), ("q2", "d2", 3.0), ("q2", "d1", -1.5),
]  # fmt: skip
RANKS = [1, 2, 3, 4, 5, 6, 1, 2]
GRADES = {("q1", "d1"): 2, ("q1", "d2"): 0, ("q1", "d3"): 1, ("q2", "d1"): 0, ("q2", "d2"): 3}
LABELS = {("q1", "d1"): 2, ("q1", "d2"): 1, ("q1", "d3"): 0, ("q2", "d1"): 0, ("q2", "d2"): 3}
RUN_FILES = {
    "pyterrier.res": ("run", "bm25"),
    "ranx.trec": ("run", "bm25"),
    "beir.run": ("run", "bm25"),
    "pyterrier.minimal.tsv": ("msmarco", "pyterrier.minimal"),
    "ranx.json": ("json_run", "ranx"),
    "mteb.predictions.json": ("json_run", "example/bm25"),
    "pyterrier.csv": ("pyterrier", "bm25"),
}
JUDGMENT_FILES = {
    "ranx.qrels.trec": "qrels",
    "touchstone.qrels_jg": "qrels_jg",
    "trec.prels": "prels",
    "trec.strata": "stratified",
    "beir.tsv": "beir",
    "mteb.jsonl": "mteb",
    "umbrela.jsonl": "umbrela",
    "crowdkit.csv": "crowd",
    "touchstone.gold.csv": "gold",
    "pairs.csv": "pairs",
}


def requests_of(name: str) -> dict:
    return {"requests": FILES / "umbrela.requests.jsonl"} if name == "umbrela.jsonl" else {}


def grades_of(columns: dict) -> dict:
    return dict(
        zip(zip(columns["topic_id"], columns["doc_id"], strict=True), list(columns["grade"]), strict=True)
    )


def alike(one: dict, other: dict) -> bool:
    """Return whether columns have the same names and values."""
    return one.keys() == other.keys() and all(list(one[name]) == list(other[name]) for name in one)


def tool(name: str):
    """Return a tool's package; a test that needs it is skipped, and says which."""
    return pytest.importorskip(
        name, reason=f"{name} is not installed: tests/fixtures/formats/README.md says how"
    )
