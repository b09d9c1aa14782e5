"""A gate: is run B better than run A, with at most so many judgments? See docs/gate.md."""

from touchstone_ir.gate.refusal import GateRefused
from touchstone_ir.gate.state import GateState
from touchstone_ir.gate.steps import answer, next_batch, start, status

__all__ = ["GateRefused", "GateState", "answer", "next_batch", "start", "status"]
