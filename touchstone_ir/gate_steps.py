"""The steps of a gate. Each may be repeated, and killed at any moment: done again it goes on where it was.

A step holds the folder, so steps at once come one after the other.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sampling.measures.families import Measure
from sampling.measures.kinds import Linear
from sampling.measures.registry import parse_linear
from touchstone_ir.columns import InputRefused
from touchstone_ir.gate_batches import batch_content, read_texts
from touchstone_ir.gate_folder import (
    FORMAT,
    describe_source,
    keep_question,
    open_gate,
    question_of,
    require_answer,
)
from touchstone_ir.gate_items import gate_pairs
from touchstone_ir.gate_state import GateState, state_of
from touchstone_ir.gate_storage import make_folder, sha256_of, write_file
from touchstone_ir.kept_files import grades_in
from touchstone_ir.readers import read_qrels, read_run

Name = str | os.PathLike[str]


def start(
    folder: Name,
    *,
    a: Name,
    b: Name,
    measure: Any,
    labels: Name,
    tolerance: float,
    cap: int,
    plan: int,
    batch: int,
    seed: int,
    grades: Mapping[int, int | None] | None = None,
) -> GateState:
    """Start a gate: is run B better than run A, or not worse by more than the tolerance? Ask for at most `cap` pairs.

    Parameters
    ----------
    folder : path
        Made where it is not there. It must hold no gate with another question.
    a, b, labels : paths
        Run files, and grades of a judge that errs, for every pair that the runs weigh differently.
    measure : str or measure object
        A sum over documents, such as P@10 or DCG@10.
    tolerance, cap, plan, batch : numbers
        `analytics.planning.gating.Question`.
    seed : int
        Of the pairs' permanent random numbers, within [0, 2^64).
    grades : dict, optional
        Of the labels: a grade for each that is to be another one, as `read_qrels` has it.

    Raises
    ------
    ValueError
        Input that does not fit together; nothing is changed.
    """
    place, sources = Path(folder), {"a": Path(a), "b": Path(b), "labels": Path(labels)}
    if not 0 <= seed < 2**64:
        raise InputRefused(f"seed must be within [0, 2^64), got {seed}")
    asked: Measure[Linear] = parse_linear(str(measure))
    described: dict[str, Any] = {
        "format": FORMAT,
        "measure": asked.name,
        "tolerance": float(tolerance),
        "cap": cap,
        "plan": plan,
        "batch": batch,
        "seed": seed,
    }
    if grades:
        described["grades"] = {str(grade): other for grade, other in grades.items()}
    question_of(described)
    hashes = {name: sha256_of(path) for name, path in sources.items()}
    run_a, run_b = (read_run(sources[name], name=name) for name in ("a", "b"))
    pairs = gate_pairs(run_a, run_b, read_qrels(sources["labels"], grades=grades), asked, sources["labels"])
    described |= {"topics": pairs.n_topics, "items": len(pairs.items)}
    described |= {name: describe_source(path, place, hashes[name]) for name, path in sources.items()}
    described["pairs_sha256"] = pairs.sha256()
    keep_question(place, described, pairs)
    return status(place)


def next_batch(
    folder: Name, out: Name | None = None, corpus: Name | None = None, *, require: str = ""
) -> GateState:
    """Ask for the next batch and write it to `out`; the same one until it is answered, and none after a verdict.

    Parameters
    ----------
    corpus : path, optional
        A file of documents: their texts stand in a last column.
    require : str
        "better": go on where B is merely not worse.
    """
    with open_gate(Path(folder)) as gate:
        state = state_of(gate, require)
        if state.open_batch is None:
            return state
        pairs = gate.asked_pairs(state.open_batch)
        texts = None if corpus is None else read_texts(Path(corpus), pairs)
        target = None if out is None else Path(out).absolute()
        if target is not None and grades_in(target).keys() & set(pairs):
            raise InputRefused(
                f"{target}: grades of this batch stand in this file: answer with it, or move it away"
            )
        gate.keep_batch(state.open_batch)
        if target is not None:
            make_folder(target.parent)
            write_file(target, batch_content(pairs, texts=texts))
        return state


def answer(folder: Name, batch_file: Name, *, require: str = "") -> GateState:
    """Take the grades of the batch that was asked for, and look."""
    with open_gate(Path(folder)) as gate:
        batch, grades = require_answer(gate, Path(batch_file))
        if batch > len(gate.answers):
            gate.keep_answer(batch, grades)
        gate.take_looks()
        return state_of(gate, require)


def status(folder: Name, *, require: str = "") -> GateState:
    """Return where the gate stands; a look that a kill left out is taken."""
    with open_gate(Path(folder)) as gate:
        return state_of(gate, require)
