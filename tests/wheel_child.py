"""What tests/test_wheel.py runs in a Python of its own, where the wheel is installed: imports, examples and numbers.

    python -I tests/wheel_child.py '{"modules": [...], "core": "touchstone_ir._core.", "data": "docs/examples/data"}'

It answers with JSON on standard output. The test's own process calls `numbers_of` too, on the tree.
"""

import contextlib
import doctest
import importlib
import io
import json
import platform
import sys
import traceback
import warnings
import zlib
from pathlib import Path
from typing import Any

SEED = 20261121


def numbers_of(core: str, data: str) -> dict[str, Any]:
    """Return numbers of the façade, and of modules whose names begin with `core`, which is "" in the tree."""
    import numpy

    return {
        "numpy": numpy.__version__,
        "drawn": drawn_numbers(core, Path(data)),
        **facade_numbers(Path(data)),
    }


def drawn_numbers(core: str, data: Path) -> list[Any]:
    """Return a difference estimated from drawn documents, as docs/examples/compare_two_runs.ipynb does it."""
    import numpy as np

    def part(module: str, *names: str) -> list[Any]:
        return [getattr(importlib.import_module(core + module), name) for name in names]

    (read_run,) = part("judging.runs", "read_run")
    (read_qrels,) = part("judging.trec", "read_qrels")
    (inclusion_probabilities,) = part("sampling.designs", "inclusion_probabilities")
    random_numbers, poisson_draw = part("sampling.draws", "permanent_random_numbers", "poisson_draw")
    (run_weights,) = part("sampling.measures.families", "run_weights")
    (parse_linear,) = part("sampling.measures.registry", "parse_linear")
    pool, prior_utility = part("sampling.pooling", "pool", "prior_utility")
    (difference_estimator,) = part("analytics.estimation.estimators", "difference_estimator")
    (always_valid_factor,) = part("analytics.estimation.sequences", "always_valid_factor")

    grades = {
        (row.topic_id, row.doc_id): row.grade for row in read_qrels(data / "grades.qrels", "grades.qrels")
    }
    pooled = pool([read_run(data / f"{name}.run", name) for name in ("bm25", "tf-idf")], depth=10)
    pairs = list(zip(pooled.topic_ids[pooled.topic_index], pooled.doc_ids, strict=True))
    a, b = run_weights(parse_linear("P@10"), pooled.ranks, n_topics=45)
    prior = prior_utility(pooled.ranks, depth=10)
    pi = inclusion_probabilities(np.abs(a - b) * np.sqrt(prior * (1 - prior)), expected_count=150)
    drawn = poisson_draw(pi, random_numbers(*zip(*pairs, strict=True), seed=SEED))
    judged = [grades[pairs[item]] > 0 for item in drawn]
    total = float(((a - b) * prior).sum())
    weights = (a - b)[drawn]
    found = difference_estimator(weights, judged, pi[drawn], prior=prior[drawn], prior_total=[total])[0]
    factor = float(always_valid_factor(len(drawn), 120, n_items=len(pairs)))
    return [len(drawn), float(pi.sum()), found.value, found.low, found.high, factor]


def facade_numbers(data: Path) -> dict[str, Any]:
    """Return what the façade says of two runs, labels that err, and an audit of them."""
    import polars as pl

    import touchstone_ir as ts

    runs = ts.read_run(data / "bm25.run", data / "tf-idf.run")
    gold = ts.read_qrels(data / "grades.qrels")
    errs = [
        zlib.crc32(f"{topic} {doc}".encode()) % 7 == 0 for topic, doc in gold.select("topic", "doc").rows()
    ]
    wrong = pl.Series("errs", errs)
    labels = gold.with_columns(grade=pl.when(wrong).then(3 - pl.col("grade")).otherwise(pl.col("grade")))
    audit = ts.audit(runs, "P@10", labels=labels, n=120, seed=7)
    checked = audit.select("topic", "doc", "probability").join(gold, on=["topic", "doc"])
    measures = ["P@10", "DCG@10"]
    return {
        "audit": audit.select("topic", "doc", "probability").rows(),
        "compare": ts.compare(runs, measures, labels=labels, gold=checked).frame.to_dicts(),
        "estimate": ts.estimate(runs, measures, labels=labels, gold=checked).frame.to_dicts(),
        "rank": ts.rank(runs, "P@10", labels=labels, gold=checked).frame.to_dicts(),
    }


def import_all(names: list[str]) -> dict[str, str]:
    """Import the modules; return what went wrong, by name."""
    failed = {}
    for name in names:
        try:
            importlib.import_module(name)
        except Exception:  # whatever it is, it is told
            failed[name] = traceback.format_exc(limit=-2)
    return failed


def run_examples(names: list[str]) -> tuple[int, dict[str, str]]:
    """Run the examples of the modules; return how many there are, and the report of each module with a wrong one."""
    count, wrong = 0, {}
    for name in names:
        report = io.StringIO()
        with contextlib.redirect_stdout(report):
            found = doctest.testmod(
                sys.modules[name], optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            )
        count += found.attempted
        if found.failed:
            wrong[name] = report.getvalue()[-2000:]
    return count, wrong


def main(question: dict[str, Any]) -> dict[str, Any]:
    warnings.filterwarnings("error", module="touchstone_ir")
    sys.path[:0] = question.get("before", [])
    failed = import_all(question["modules"])
    count, wrong = run_examples([name for name in question["modules"] if name not in failed])
    return {
        "python": platform.python_version(),
        "failed": failed,
        "examples": count,
        "wrong": wrong,
        "numbers": numbers_of(question["core"], question["data"]) if question.get("data") else {},
    }


if __name__ == "__main__":
    json.dump(main(json.loads(sys.argv[1])), sys.stdout)
