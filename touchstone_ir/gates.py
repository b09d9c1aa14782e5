"""A gate in Python: `touchstone_ir.gate(folder, ...)`."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from touchstone_ir import gate_steps
from touchstone_ir.gate_state import GateState


@dataclass(frozen=True)
class Gate:
    """A gate that has started: the folder, and the steps on it."""

    folder: Path

    def next_batch(
        self,
        out: str | os.PathLike[str] | None = None,
        corpus: str | os.PathLike[str] | None = None,
        *,
        require: str = "",
    ) -> GateState:
        """Ask for the next batch: `touchstone_ir.gate_steps.next_batch`."""
        return gate_steps.next_batch(self.folder, out, corpus, require=require)

    def answer(self, batch_file: str | os.PathLike[str], *, require: str = "") -> GateState:
        """Take the grades of the batch that was asked for: `touchstone_ir.gate_steps.answer`."""
        return gate_steps.answer(self.folder, batch_file, require=require)

    def status(self, *, require: str = "") -> GateState:
        """Return where the gate stands."""
        return gate_steps.status(self.folder, require=require)


def gate(folder: str | os.PathLike[str], **question: Any) -> Gate:
    """Start a gate with the question of `touchstone_ir.gate_steps.start`, or open one without.

    A gate with the same question goes on where it was; one with another question is refused.
    """
    if question:
        gate_steps.start(folder, **question)
    else:
        gate_steps.status(folder)
    return Gate(Path(folder))
