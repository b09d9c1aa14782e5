"""The folder of a gate: its question, fixed with the first step; its batches, answers and looks, which only grow.

    gate.json       the question, and SHA-256 of the files and of the items; written last when a gate starts
    pairs.csv       every labelled pair, with both ranks and the judge's grade
    batches/0001.csv, ...    what was asked for, as it follows from the question alone
    answers/0001.csv, ...    the same with grades
    looks.jsonl     a line a complete batch: the corrected difference and its bounds

A step reads all of this anew and refuses what does not fit together. It may be killed at any write and done again
(`touchstone_ir.gate_storage`), and no two go on at once (`touchstone_ir.gate_lock`).
"""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from analytics.estimation.estimate import Refusal
from analytics.estimation.sequences import FEWEST_WATCHED
from analytics.planning.gating import GateBatch, Question
from sampling.measures.families import Measure
from sampling.measures.kinds import Linear
from sampling.measures.registry import parse_linear
from touchstone_ir.columns import InputRefused
from touchstone_ir.gate_batches import batch_content, read_grades, require_pairs
from touchstone_ir.gate_items import GatePairs, Pair, words_of
from touchstone_ir.gate_lock import hold
from touchstone_ir.gate_storage import append_line, make_folder, sha256_of, whole_lines, write_file

FORMAT = 1
SOURCES = ("a", "b", "labels")


@dataclass(frozen=True)
class Look:
    """A line of looks.jsonl. Numbers are None where nothing can be said yet, and `refusal` says why."""

    batch: int  # from 1
    n_judged: int
    question_sha256: str  # of gate.json
    answers_sha256: str
    value: float | None = None
    standard_error: float | None = None
    low: float | None = None
    high: float | None = None
    refusal: str = ""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Return L and U, or None."""
        return None if self.low is None or self.high is None else (self.low, self.high)


class GateFolder:
    """A gate that has started.

    Raises
    ------
    InputRefused
        A file of it was altered, or a run or the labels since it started.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder
        described = folder / "gate.json"
        try:
            content = described.read_bytes()
            self.question_sha256 = hashlib.sha256(content).hexdigest()
            self.described: dict[str, Any] = json.loads(content)
            if self.described["format"] != FORMAT:
                raise InputRefused(
                    f"{described}: format {self.described['format']}, but this version reads {FORMAT}"
                )
            self.question = question_of(self.described)
            self.measure: Measure[Linear] = parse_linear(self.described["measure"])
            self.seed = int(self.described["seed"])
            self.sources: dict[str, dict[str, str]] = {name: self.described[name] for name in SOURCES}
        except (KeyError, TypeError, json.JSONDecodeError) as error:
            raise InputRefused(f"{described}: it was altered ({error})") from None
        self._require_unchanged()
        content = (folder / "pairs.csv").read_bytes()
        if hashlib.sha256(content).hexdigest() != self.described["pairs_sha256"]:
            raise InputRefused(f"{folder / 'pairs.csv'}: it was altered since the gate started")
        self.pairs = GatePairs.of_content(content, self.measure)

    def _require_unchanged(self) -> None:
        """Refuse a run or labels that are still there and are others now; a copied gate does without them."""
        for name, source in self.sources.items():
            path = self.path / source["path"]
            if path.is_file() and (now := sha256_of(path)) != source["sha256"]:
                what = "the labels" if name == "labels" else f"run {name.upper()}"
                raise InputRefused(
                    f"{os.path.normpath(path)}: {what} changed since the gate started (SHA-256 {now[:12]}..., then "
                    f"{source['sha256'][:12]}...); start another gate in another folder"
                )

    def name_of(self, source: str) -> str:
        """Return how a file is named: without its folder and its ending."""
        return Path(self.sources[source]["path"]).name.removesuffix(".gz").removesuffix(".run")

    # -- batches --------------------------------------------------------------------------------------------

    @cached_property
    def batches(self) -> list[GateBatch]:
        """Return all batches up to the cap, asked for or not: they follow from the question."""
        return list(self.question.batches(self.pairs.weight, self.pairs.numbers(self.seed)))

    def asked_pairs(self, batch: int) -> list[Pair]:
        """Return what a batch asks for, counted from 1."""
        return [self.pairs.items[place] for place in self.batches[batch - 1].new.tolist()]

    def batch_path(self, batch: int) -> Path:
        """Return where a batch is kept."""
        return self.path / "batches" / f"{batch:04}.csv"

    def answer_path(self, batch: int) -> Path:
        """Return where the answer to a batch is kept."""
        return self.path / "answers" / f"{batch:04}.csv"

    def keep_batch(self, batch: int) -> None:
        """Keep a batch before anybody is asked; refused where what is kept is another one."""
        self._require_batch(batch)
        write_file(self.batch_path(batch), batch_content(self.asked_pairs(batch)))

    def _require_batch(self, batch: int) -> None:
        path = self.batch_path(batch)
        if path.is_file() and path.read_bytes() != batch_content(self.asked_pairs(batch)):
            raise InputRefused(f"{path}: it is not the batch that this gate asks for: it was altered")

    def batch_of(self, pair: Pair) -> int | None:
        """Return which batch asks for a pair, or None."""
        numbers = range(1, len(self.batches) + 1)
        return next((number for number in numbers if pair in self.asked_pairs(number)), None)

    # -- answers --------------------------------------------------------------------------------------------

    @cached_property
    def answers(self) -> list[dict[Pair, int]]:
        """Return the grades of the answered batches; refused where one was altered."""
        found: list[dict[Pair, int]] = []
        for batch in range(1, len(self.batches) + 1):
            path = self.answer_path(batch)
            if not path.is_file():
                break
            self._require_batch(batch)
            rows = read_grades(path)
            require_pairs(path, rows, self.asked_pairs(batch), f"batch {batch}")
            found.append({pair: grade for pair, (grade, _) in rows.items()})
        return found

    def keep_answer(self, batch: int, grades: dict[Pair, int]) -> None:
        """Keep the answer to the next batch."""
        write_file(self.answer_path(batch), batch_content(self.asked_pairs(batch), grades))
        self.answers.append(grades)

    # -- looks ----------------------------------------------------------------------------------------------

    @cached_property
    def looks(self) -> list[Look]:
        """Return the looks so far; refused where a line is none, or an answer is another one now."""
        path = self.path / "looks.jsonl"
        found: list[Look] = []
        for number, line in enumerate(whole_lines(path), 1):
            try:
                look = Look(**json.loads(line))
            except (TypeError, ValueError):
                raise InputRefused(f"{path}:{number}: it is no look of a gate: it was altered") from None
            if look.batch != number:
                raise InputRefused(f"{path}:{number}: the look at batch {look.batch}, where {number} comes")
            if look.question_sha256 != self.question_sha256:
                raise InputRefused(
                    f"{self.path / 'gate.json'}: it was altered since batch {number} was looked at"
                )
            answer = self.answer_path(number)
            if not answer.is_file() or sha256_of(answer) != look.answers_sha256:
                raise InputRefused(f"{answer}: it is not what was looked at: it was altered")
            found.append(look)
        return found

    def take_looks(self) -> None:
        """Take every look that is missing: after a kill, one whose answer is kept already."""
        for batch in range(len(self.looks) + 1, len(self.answers) + 1):
            look = self._look(batch)
            line = json.dumps(asdict(look), separators=(",", ":")).encode()
            append_line(self.path / "looks.jsonl", line)
            self.looks.append(look)

    def _look(self, batch: int) -> Look:
        asked, items = self.batches[batch - 1], self.pairs.items
        grades = {pair: grade for answer in self.answers[:batch] for pair, grade in answer.items()}
        found = self.pairs.difference(asked, [grades[items[place]] for place in asked.asked.tolist()])
        n_judged = int(asked.asked.size)
        look = Look(batch, n_judged, self.question_sha256, sha256_of(self.answer_path(batch)))
        if isinstance(found, Refusal):
            return replace(look, refusal=found.reason)
        bounds = self.question.bounds(found.value, found.standard_error, n_judged, len(items))
        if bounds is None:
            return replace(look, refusal=f"{n_judged} pairs are judged; at least {FEWEST_WATCHED} are needed")
        low, high = bounds
        return replace(look, value=found.value, standard_error=found.standard_error, low=low, high=high)


@contextmanager
def open_gate(folder: Path) -> Iterator[GateFolder]:
    """Hold a gate that has started, with every look that a kill left out: no other step changes it meanwhile."""
    if not (folder / "gate.json").is_file():
        raise InputRefused(f"{folder}: no gate has started here (there is no gate.json)")
    with hold(folder):
        gate = GateFolder(folder)
        gate.take_looks()
        yield gate


# -- the start ------------------------------------------------------------------------------------------------


def question_of(described: dict[str, Any]) -> Question:
    """Return the question that gate.json describes."""
    return Question(**{name: described[name] for name in ("tolerance", "cap", "plan", "batch")})


def describe_source(path: Path, folder: Path, sha256: str) -> dict[str, str]:
    """Return how gate.json names a file: its path from the folder, so that both can be copied together."""
    relative = os.path.relpath(path.absolute(), folder.absolute())
    return {"path": Path(relative).as_posix(), "sha256": sha256}


def keep_question(folder: Path, described: dict[str, Any], pairs: GatePairs) -> None:
    """Write a new gate, its question last; refused where another one is there."""
    content = json.dumps(described, indent=2).encode() + b"\n"
    path = folder / "gate.json"
    make_folder(folder)
    with hold(folder):
        if path.is_file():
            differences = differing_keys(json.loads(path.read_bytes()), described)
            if differences:
                raise InputRefused(f"{path}: a gate with another question is here already: {differences}")
            return
        for part in (folder / "batches", folder / "answers"):
            make_folder(part)
        write_file(folder / "pairs.csv", pairs.content)
        write_file(path, content)


def differing_keys(there: dict[str, Any], asked_now: dict[str, Any]) -> str:
    """Return in words where two descriptions differ.

    >>> differing_keys({"cap": 400, "seed": 7}, {"cap": 300, "seed": 7})
    'cap is 400 there, 300 here'
    """
    names = dict.fromkeys([*there, *asked_now])
    keys: Sequence[str] = [key for key in names if there.get(key) != asked_now.get(key)]
    words = [
        f"{key} is another file"
        if key in SOURCES
        else f"{key} is {there.get(key)} there, {asked_now.get(key)} here"
        for key in keys
    ]
    return "; ".join(words)


def require_answer(gate: GateFolder, path: Path) -> tuple[int, dict[Pair, int]]:
    """Return which batch a file answers, and its grades; refused unless it is the next one, or one answered alike."""
    rows = read_grades(path)
    next_batch = len(gate.answers) + 1
    first = next(iter(rows), None)
    batch = None if first is None else gate.batch_of(first)
    if batch is None or batch > next_batch:
        batch = min(next_batch, len(gate.batches))
    if batch == next_batch and not gate.batch_path(batch).is_file():
        raise InputRefused(f"{path}: batch {batch} was not asked for yet: `next` does")
    require_pairs(path, rows, gate.asked_pairs(batch), f"batch {batch}")
    grades = {pair: grade for pair, (grade, _) in rows.items()}
    if batch < next_batch:
        for pair, grade in gate.answers[batch - 1].items():
            if grades[pair] != grade:
                rows[pair][1].fail(
                    "grade",
                    f"{words_of(pair)} of batch {batch} was answered with {grade} before, now {grades[pair]}",
                )
    return batch, grades
