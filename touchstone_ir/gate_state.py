"""Where a gate stands, and how that is said: as JSON, in Markdown, as lines."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from analytics.planning.gating import BETTER, NOT_WORSE, UNDECIDED, WORSE, Question
from touchstone_ir.columns import InputRefused
from touchstone_ir.gate_folder import GateFolder, Look

WANTED = "judgments wanted"
EXIT_CODES = {BETTER: 0, NOT_WORSE: 0, WORSE: 1, WANTED: 3, UNDECIDED: 4}
POPULATION = "these topics"


@dataclass(frozen=True)
class GateState:
    """Where a gate stands.

    Attributes
    ----------
    verdict : str
        better, not worse, worse, undecided (at the cap), or judgments wanted.
    look : Look or None
        The one that decided, else the last one.
    open_batch : int or None
        The batch that is asked for next or waits for its answer, counted from 1; None after a verdict.
    n_open : int
        Pairs in it.
    n_judged, n_items, n_topics : int
    names : tuple of str
        How the files of A and B are named.
    """

    question: Question
    measure: str
    names: tuple[str, str]
    verdict: str
    look: Look | None
    open_batch: int | None
    n_open: int
    n_judged: int
    n_items: int
    n_topics: int

    @property
    def exit_code(self) -> int:
        """Return 0 better or not worse, 1 worse, 3 judgments wanted, 4 undecided."""
        return EXIT_CODES[self.verdict]

    def sentence(self) -> str:
        """Return what the gate says, in full sentences."""
        first, second = self.names
        margin = f"by more than {self.question.tolerance:g}"
        about = f"{self.measure} of {second} against {first}"
        said = {
            BETTER: f"{second} is better than {first} in {self.measure}.",
            NOT_WORSE: f"{second} is not worse than {first} in {self.measure} {margin}.",
            WORSE: f"{second} is worse than {first} in {self.measure}.",
            UNDECIDED: f"Undecided: another batch would go beyond the cap of {self.question.cap}. {about}.",
            WANTED: f"Judgments wanted: batch {self.open_batch}, {self.n_open} pairs. {about}.",
        }[self.verdict]
        return (
            f"{said} {self.difference_words()} {self.n_judged} pairs judged of at most {self.question.cap}."
        )

    def difference_words(self) -> str:
        """Return the difference with its bounds, or why there is none yet."""
        if self.look is None:
            return "Nothing is judged yet."
        if self.look.value is None or self.look.low is None or self.look.high is None:
            return f"No difference yet: {self.look.refusal}."
        return (
            f"Difference {self.look.value:+.4f} [{self.look.low:+.4f}, {self.look.high:+.4f}], "
            f"for these {self.n_topics} topics, valid at all looks at once (95 %)."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return all of it, as JSON has it."""
        look = self.look
        return {
            "verdict": self.verdict,
            "exit_code": self.exit_code,
            "measure": self.measure,
            "a": self.names[0],
            "b": self.names[1],
            "difference": None if look is None else look.value,
            "standard_error": None if look is None else look.standard_error,
            "low": None if look is None else look.low,
            "high": None if look is None else look.high,
            "refusal": "" if look is None else look.refusal,
            "population": POPULATION,
            "topics": self.n_topics,
            "looks": 0 if look is None else look.batch,
            "judged": self.n_judged,
            "items": self.n_items,
            "tolerance": self.question.tolerance,
            "cap": self.question.cap,
            "open_batch": self.open_batch,
            "open_pairs": self.n_open,
            "sentence": self.sentence(),
        }


def state_of(gate: GateFolder, require: str = "") -> GateState:
    """Return where a gate stands; with `require` "better" it goes on where B is merely not worse."""
    if require not in ("", BETTER):
        raise InputRefused(f"require must be {BETTER!r} or nothing, got {require!r}")
    question = gate.question
    asked = question if not require else Question(0.0, question.cap, question.plan, question.batch)
    looks = gate.looks
    settled = asked.first_verdict(look.bounds for look in looks)
    open_batch, verdict = len(looks) + 1, WANTED
    if settled is not None:
        verdict = settled[1]
    elif len(looks) == len(gate.batches):
        verdict = UNDECIDED
    wants = verdict == WANTED
    look = looks[settled[0]] if settled is not None else looks[-1] if looks else None
    return GateState(
        question=question,
        measure=gate.measure.name,
        names=(gate.name_of("a"), gate.name_of("b")),
        verdict=verdict,
        look=look,
        open_batch=open_batch if wants else None,
        n_open=len(gate.asked_pairs(open_batch)) if wants else 0,
        n_judged=looks[-1].n_judged if looks else 0,
        n_items=len(gate.pairs.items),
        n_topics=gate.pairs.n_topics,
    )


# -- how it is said ---------------------------------------------------------------------------------------------


def as_json(state: GateState) -> str:
    return json.dumps(state.as_dict(), indent=2)


def as_markdown(state: GateState) -> str:
    """Return a heading with the verdict, the sentence and a table, as the summary of a job shows them."""
    rows = [f"| {name} | {value} |" for name, value in table_rows(state)]
    return "\n".join([f"### Gate: {state.verdict}", "", state.sentence(), "", "| | |", "|---|---|", *rows])


def as_table(state: GateState) -> str:
    """Return lines of a name and a value, and the sentence."""
    rows = table_rows(state)
    width = max(len(name) for name, _ in rows)
    return "\n".join([*(f"{name:{width}}  {value}" for name, value in rows), "", state.sentence()])


def table_rows(state: GateState) -> list[tuple[str, str]]:
    """Return what a reader wants to know, in order."""
    look, rows = state.look, [("verdict", state.verdict), ("measure", state.measure)]
    rows += [("A", state.names[0]), ("B", state.names[1])]
    if look is not None and look.value is not None and look.low is not None and look.high is not None:
        rows += [("B less A", f"{look.value:+.4f}"), ("L to U", f"{look.low:+.4f} to {look.high:+.4f}")]
    rows += [
        ("tolerance", f"{state.question.tolerance:g}"),
        ("judged", f"{state.n_judged} of at most {state.question.cap}, {state.n_items} pairs differ"),
        ("population", f"{POPULATION} ({state.n_topics})"),
    ]
    if state.open_batch is not None:
        rows.append(("open batch", f"{state.open_batch}, {state.n_open} pairs"))
    return rows


OUTPUTS: dict[str, Callable[[GateState], str]] = {
    "table": as_table,
    "json": as_json,
    "markdown": as_markdown,
}
