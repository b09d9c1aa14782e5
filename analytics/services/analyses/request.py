"""What an analysis is asked, and the lines of its answer."""

from dataclasses import dataclass, replace

from analytics.estimation.estimate import Estimate, Refusal
from judging.services.errors import Refused


class AnalysisRefused(Refused):
    status = 409
    title = "This cannot be analysed yet"


@dataclass(frozen=True)
class AnalysisSubject:
    """Which analysis, of which measure, and for "papers" of which two runs; of which family where that matters."""

    what: str
    measure: str
    run: str = ""
    against: str = ""
    family: str = ""  # the declared one


@dataclass(frozen=True)
class Line:
    """A number by a named method, or why there is none. `of` is "difference", "run" or "against".

    `kind`: "interval" holds the truth in 95 of 100 cases if the method's assumptions hold; "range" claims nothing of
    the kind; "exact" needs neither. `one_audit`: the method takes for granted that one audit serves both runs.
    """

    of: str
    name: str
    source: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    kind: str = "interval"
    one_audit: bool = False
    note: str = ""
    refusal: str = ""


def sentences(*parts: str) -> str:
    """Return what there is to note, one sentence after another, without the last full stop.

    >>> sentences("Biased", "", "only 12 items")
    'Biased. Only 12 items'
    """
    return ". ".join(part[:1].upper() + part[1:] for part in parts if part)


def refuse_line(line: Line, refusal: Refusal | str) -> Line:
    """Return the line with a reason in place of numbers."""
    if isinstance(refusal, str):
        reason = refusal
    else:
        needed = (
            f" (about {refusal.needed} more needed)"
            if refusal.needed and "needed" not in refusal.reason
            else ""
        )
        reason = refusal.reason + needed
    return replace(line, value=None, low=None, high=None, p_value=None, refusal=reason)


def fill_line(line: Line, found: Estimate | Refusal, p_value: float | None = None) -> Line:
    """Return the line with the numbers of an estimate, or its refusal."""
    if isinstance(found, Refusal):
        return refuse_line(line, found)
    note = sentences(line.note, found.warning)
    return replace(line, value=found.value, low=found.low, high=found.high, p_value=p_value, note=note)
