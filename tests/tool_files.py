"""The files of tools in tests/fixtures/formats: what they hold, and how a test asks for a tool."""

import ast
import csv
import importlib.util
import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

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


def function_of(path: str, name: str) -> Any:
    """Return a function of an installed package whose import would need torch; a test is skipped where it lacks."""
    package = path.split("/")[0]
    spec = importlib.util.find_spec(package)
    if spec is None:
        pytest.skip(f"{package} is not installed: tests/fixtures/formats/README.md says how")
    source = Path(spec.submodule_search_locations[0]).parent / path
    tree = ast.parse(source.read_text(encoding="utf-8"))
    node = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name)
    node.decorator_list, node.returns = [], None
    for argument in (*node.args.args, *node.args.kwonlyargs):
        argument.annotation = None
    names: dict[str, Any] = {"json": json, "csv": csv, "defaultdict": defaultdict, "Any": Any, "Path": Path}
    exec(compile(ast.Module([node], []), str(source), "exec"), names)  # noqa: S102 (of an installed package)
    return names[name]


def program(variable: str, what: str) -> str:
    """Return the path of a program that no package brings, from the environment; without it a test is skipped."""
    path = os.environ.get(variable, "")
    if not path:
        pytest.skip(f"{what} is not there: {variable} names it (tests/fixtures/formats/README.md)")
    return path
