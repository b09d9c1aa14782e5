"""Two runs, a fallible judge's labels and the truth, for tests of gates; and a whole gate played through."""

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from touchstone_ir import gate_steps as gates
from touchstone_ir.gate_state import GateState

QUESTION = {"measure": "P@5", "tolerance": 0.02, "cap": 90, "plan": 40, "batch": 20, "seed": 7}
N_TOPICS, N_DOCS, DEPTH = 20, 30, 8


def rows_of(path: Path) -> list[list[str]]:
    """Return the rows of a CSV."""
    return list(csv.reader(io.StringIO(path.read_text(), newline="")))


@dataclass(frozen=True)
class GateFiles:
    """Files of a gate in a folder, and the true grade of every pair."""

    folder: Path
    truth: dict[tuple[str, str], int]

    @property
    def sources(self) -> dict[str, Path]:
        """Return what `start` wants of files."""
        return {
            "a": self.folder / "old.run",
            "b": self.folder / "new.run",
            "labels": self.folder / "llm.qrels",
        }

    def start(self, name: str = "G", **other: Any) -> GateState:
        """Start a gate in this folder."""
        given: dict[str, Any] = {**self.sources, **QUESTION, **other}
        return gates.start(self.folder / name, **given)

    def fill(self, batch: Path) -> Path:
        """Write the true grades into a batch, as a judge who is right does."""
        rows = list(csv.reader(io.StringIO(batch.read_text(), newline="")))
        with batch.open("w", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(rows[0])
            writer.writerows([*row[:2], self.truth[row[0], row[1]], *row[3:]] for row in rows[1:])
        return batch

    def play(self, name: str = "G", most: int = 99) -> GateState:
        """Judge batches until there is a verdict, or so many."""
        folder, batch = self.folder / name, self.folder / "batch.csv"
        state = gates.status(folder)
        for _ in range(most):
            if state.open_batch is None:
                break
            gates.next_batch(folder, batch)
            state = gates.answer(folder, self.fill(batch))
        return state


def write_gate_files(folder: Path, better_by: float = 1.0, seed: int = 1) -> GateFiles:
    """Write both runs and the labels; the larger `better_by`, the better is B."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    merit = rng.normal(size=(N_TOPICS, N_DOCS))
    grade = (merit > 0.5).astype(int)
    errs = rng.random(grade.shape) < np.where(grade > 0, 0.15, 0.25)
    skill = {"old": 0.8, "new": 0.8 + better_by}
    for name, good in skill.items():
        score = good * merit + rng.normal(size=grade.shape)
        lines = [
            f"t{topic:02} Q0 d{doc} {rank} {score[topic, doc]:.6f} {name}\n"
            for topic in range(N_TOPICS)
            for rank, doc in enumerate(np.argsort(-score[topic])[:DEPTH], 1)
        ]
        (folder / f"{name}.run").write_text("".join(lines))
    labels = np.where(errs, 1 - grade, grade)
    pairs = [(topic, doc) for topic in range(N_TOPICS) for doc in range(N_DOCS)]
    qrels = "".join(f"t{topic:02} 0 d{doc} {labels[topic, doc]}\n" for topic, doc in pairs)
    (folder / "llm.qrels").write_text(qrels)
    return GateFiles(folder, {(f"t{topic:02}", f"d{doc}"): int(grade[topic, doc]) for topic, doc in pairs})


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file below a folder, by its path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
