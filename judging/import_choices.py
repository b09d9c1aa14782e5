"""What a person may choose for a file of an import: its kind, and the options that this kind takes."""

from collections.abc import Iterable, Mapping
from typing import Any

LEFT_OUT = "none"
READING = ("encoding", "delimiter", "mapping", "numbers_rows", "joins_ids", "file_format")
# In the order in which they are imported: what is named comes before what names it.
KINDS: dict[str, tuple[str, ...]] = {
    "documents": (*READING, "is_html"),
    "topics": READING,
    "runs": ("encoding", "file_format", "run_name", "description", "is_manual", "group"),
    "scores": ("encoding", "list_name"),
    "judgments": (
        *READING, "grade_map", "source_name", "campaign", "as_gold", "repeats", "assessor_kind", "method_codes",
        "complete", "gold_chosen", "by_topic", "skips_unknown",
    ),
    "images": (),
    LEFT_OUT: (),
}  # fmt: skip
LABELS = {
    "documents": "Documents",
    "topics": "Topics",
    "runs": "Run",
    "scores": "Scores of a model",
    "judgments": "Judgments",
    "images": "Images of documents",
    LEFT_OUT: "Left out",
    "": "Not known",
}
ORDER = tuple(KINDS)


def choice_fault(kind: str, options: Iterable[str]) -> str:
    """Return what is wrong with the choices for a file, or "".

    >>> choice_fault("topics", ["grade_map"])
    'topics take no grade_map'
    """
    if kind not in KINDS:
        return f"kind must be one of {', '.join(KINDS)}, not {kind!r}"
    wrong = sorted(set(options) - set(KINDS[kind]))
    return f"{kind} take no {', '.join(wrong)}" if wrong else ""


def options_for(kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the options that a kind takes: with another kind the others are forgotten."""
    return {name: value for name, value in options.items() if name in KINDS.get(kind, ())}
