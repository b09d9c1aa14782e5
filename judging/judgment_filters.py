"""Which judgments and items a list shows: one table, read alike by pages, the API, downloads and commands."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

ITEMS, JUDGMENTS = "items", "judgments"
LONGEST = 200
STATES = {
    "open": "nothing judged yet",
    "partly": "some judgments missing",
    "complete": "all judgments given",
    "stuck": "nobody can finish it",
    "decided": "decided by a manager",
}
PURPOSES = {
    "judge": "ordinary judgment",
    "check": "gold check or decoy",
    "audit": "audit",
    "silver": "silver audit",
    "void": "set aside",
}
OBSTACLES = {
    "any": "any reason",
    "unreadable": "cannot be read",
    "language": "language not understood",
    "topic": "the topic is unclear",
    "harmful": "disturbing content",
    "other": "another reason",
    "failed": "the machine gave no usable answer",
}
TIERS = {"gold": "gold", "silver": "silver", "bronze": "bronze"}
KINDS = {"human": "people", "machine": "machines", "simulated": "simulated assessors"}
YES = {"yes": "with a comment"}


class FilterFaults(ValueError):
    """What is wrong with the filters, by name."""

    def __init__(self, faults: dict[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {fault}" for name, fault in faults.items()))
        self.faults = faults


@dataclass(frozen=True)
class Filter:
    """One condition: its name in addresses, what a form calls it, and what may be given."""

    name: str
    label: str
    kind: str  # text, grade, spread, seconds, time, choice
    help: str
    choices: Mapping[str, str] | None = None
    lists: tuple[str, ...] = (ITEMS, JUDGMENTS)
    is_managers: bool = False  # what it tells apart, managers alone may know


FILTERS = (
    Filter("topic_id", "Topic", "text", "About the topic with this id."),
    Filter("doc_id", "Document", "text", "Of the document with this id."),
    Filter("q", "Words in a title", "text", "The title of the document or topic has these words."),
    Filter("state", "State", "choice", "How far the item is.", STATES),
    Filter("purpose", "Purpose", "choice", "What the judgment was wanted for.", PURPOSES, is_managers=True),
    Filter("grade", "Grade", "grade", "Somebody gave this grade."),
    Filter("spread", "Grades apart", "spread", "Its grades are at least so far apart."),
    Filter("assessor", "Assessor", "text", "By this assessor, as the rows name them."),
    Filter("obstacle", "Could not be judged", "choice", "Given back for this reason.", OBSTACLES),
    Filter("comment", "Comment", "choice", "With a comment.", YES, is_managers=True),
    Filter(
        "comment_words",
        "Words in a comment",
        "text",
        "With a comment that has these words.",
        is_managers=True,
    ),
    Filter("since", "From", "time", "Judged at this time (UTC) or later."),
    Filter("before", "Before", "time", "Judged before this time (UTC)."),
    Filter("seconds_below", "Seconds below", "seconds", "Judged in less time.", lists=(JUDGMENTS,)),
    Filter("seconds_above", "Seconds above", "seconds", "Judged in more time.", lists=(JUDGMENTS,)),
    Filter("tier", "Tier", "choice", "By assessors of this tier.", TIERS, lists=(JUDGMENTS,)),
    Filter("kind", "People or machines", "choice", "By people, or by machines.", KINDS, lists=(JUDGMENTS,)),
)


def filters_of(which: str, is_manager: bool) -> list[Filter]:
    """Return the filters of a list that somebody may use."""
    return [one for one in FILTERS if which in one.lists and (is_manager or not one.is_managers)]


def read_filters(asked: Mapping[str, str], which: str, is_manager: bool) -> dict[str, Any]:
    """Return the values of the filters that are given; an empty one is none.

    Raises
    ------
    FilterFaults
        Naming every filter whose value is none.

    >>> read_filters({"grade": "2", "assessor": "bob", "page": "7"}, "judgments", True)
    {'grade': 2, 'assessor': 'bob'}
    """
    read: dict[str, Any] = {}
    faults: dict[str, str] = {}
    for one in filters_of(which, is_manager):
        text = asked.get(one.name, "").strip()
        if text:
            try:
                read[one.name] = _value(one, text)
            except ValueError as fault:
                faults[one.name] = str(fault)
    if faults:
        raise FilterFaults(faults)
    return read


def _value(one: Filter, text: str) -> Any:
    if len(text) > LONGEST or "\0" in text:
        raise ValueError(f"at most {LONGEST} characters can be asked for")
    if one.choices is not None:
        if text not in one.choices:
            raise ValueError(f"must be one of {', '.join(one.choices)}")
        return text
    return _READERS[one.kind](text)


def _grade(text: str) -> int:
    if len(text) != 1 or text not in "0123456789":
        raise ValueError("must be a grade from 0 to 9")
    return int(text)


def _spread(text: str) -> int:
    if len(text) != 1 or text not in "123456789":
        raise ValueError("must be a number of grades from 1 to 9")
    return int(text)


def _milliseconds(text: str) -> int:
    fault = "must be a number of seconds from 0 to 1000000"
    try:
        seconds = float(text)
    except ValueError:
        raise ValueError(fault) from None
    if not 0 <= seconds <= 1e6:
        raise ValueError(fault)
    return round(1000 * seconds)


def _time(text: str) -> datetime:
    fault = "must be a date or time, as 2025-03-31 or 2025-03-31T12:00:00"
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise ValueError(fault) from None


_READERS: dict[str, Any] = {
    "text": str,
    "grade": _grade,
    "spread": _spread,
    "seconds": _milliseconds,
    "time": _time,
}
