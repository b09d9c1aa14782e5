"""A gate: is run B better than run A, with at most so many judgments? See docs/gate.md.

The package is called gates because `touchstone_ir.gate` is the function.
"""

from touchstone_ir.gates.handle import Gate, gate
from touchstone_ir.gates.state import GateState
from touchstone_ir.gates.steps import answer, next_batch, start, status

__all__ = ["Gate", "GateState", "answer", "gate", "next_batch", "start", "status"]
