"""What a JSON text holds: a run as one object, umbrela's judgments, or records whose keys must tell."""

import json
import re
from typing import Any

from judging.recognised import Shape, question

SAMPLE = 200  # records
MOST_KEYS = 100
SMALL = range(-3, 11)  # what all scores of judgments as an object are
UMBRELA = {"query", "passage", "judgment"}
# An object whose first values are objects of numbers: a run, of which the beginning may be all there is.
NUMBER = r"-?[0-9][0-9.eE+-]*"
WORD = r'"(?:[^"\\]|\\.){1,600}"'
RUN = re.compile(rf"\{{\s*{WORD}\s*:\s*\{{\s*{WORD}\s*:\s*(?:{NUMBER}|NaN|-?Infinity)\s*[,}}]")
MTEB_RUN = re.compile(r'\{\s*"mteb_model_meta"\s*:\s*\{')
Rows = tuple[str, list[str], list[list[str]]]  # json or jsonl, the keys, and the values of each record


def json_shape(start: str) -> Shape | Rows:
    """Return what the text holds, or its records where their keys must tell.

    >>> json_shape('{"7": {"a": 0.5}}').file_format
    'json_run'
    """
    if start.startswith("{") and (RUN.match(start) or MTEB_RUN.match(start)):
        shape = _run(start)
        if shape is not None:
            return shape
    form = "json" if start.startswith("[") else "jsonl"
    found = _elements(start) if form == "json" else _objects(start)
    if found is None:
        return _one_object(start)
    if not found:
        return question("JSON that is malformed, or longer in its first object than can be looked at.")
    objects = [one for one in found if isinstance(one, dict)]
    if len(objects) < len(found):
        return question('A JSON array, but not of objects: make it one of {"id": "1", "text": "..."}.')
    keys = list(dict.fromkeys(key for one in objects for key in one))[:MOST_KEYS]
    if set(keys) >= UMBRELA:
        why = "Judgments: it has umbrela's query, passage and judgment."
        return Shape("judgments", "umbrela", True, why, columns=tuple(keys))
    return form, keys, [[cell_text(one.get(key)) for key in keys] for one in objects]


def _run(start: str) -> Shape | None:
    """Return what an object of objects of numbers is; None if it goes on otherwise."""
    why = "A run: one JSON object of topics, each an object of documents and scores."
    if MTEB_RUN.match(start):
        return Shape("runs", "json_run", True, "A run: predictions as MTEB writes them.")
    try:
        value = json.loads(start)
    except (ValueError, RecursionError):
        return Shape("runs", "json_run", "\n{" not in start, why)
    scores = [
        score for inner in value.values() for score in (inner.values() if isinstance(inner, dict) else ["?"])
    ]
    if not all(isinstance(score, int | float) for score in scores):
        return None
    if all(score in SMALL for score in scores):
        why = "A run, or grades? One JSON object of topics, each of documents and small whole numbers."
        return Shape("runs", "json_run", False, why)
    return Shape("runs", "json_run", True, why)


def cell_text(value: Any) -> str:
    """Return a value as the text of a cell; what is no word and no whole number is empty."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _objects(start: str) -> list[Any] | None:
    """Return the objects of the first lines; None if the first is not all in one line."""
    found = []
    for line in start.split("\n")[:SAMPLE]:
        if line.strip():
            try:
                found.append(json.loads(line))
            except (ValueError, RecursionError):
                if not found:
                    return None
    return found


def _elements(start: str) -> list[Any]:
    """Return the first elements of an array."""
    decoder, place, found = json.JSONDecoder(), 1, list[Any]()
    blank = re.compile(r"[\s,]*")
    while len(found) < SAMPLE:
        match = blank.match(start, place)
        place = match.end() if match else place
        try:
            value, place = decoder.raw_decode(start, place)
        except (ValueError, RecursionError):
            break
        found.append(value)
    return found


def _one_object(start: str) -> Shape:
    """Return what to say of an object over several lines."""
    try:
        json.JSONDecoder().raw_decode(start)
    except (ValueError, RecursionError):
        return question(
            "It begins like JSON, but its first line is no object: write one object a line, or an array."
        )
    return question("One JSON object over several lines: write one object a line, or an array of objects.")
