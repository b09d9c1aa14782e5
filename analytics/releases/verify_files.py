"""Files of a release that say a part of its tables again, line by line; NumPy and the product are not needed.

Part of every release, beside verify.py. A new file of this kind is an entry in LINE_FILES.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

if __package__:
    from analytics.releases.verify_facts import json_lines
else:  # in a release, the files lie beside each other
    from verify_facts import json_lines  # type: ignore

Graded = tuple[
    str, str, int, float | None
]  # topic, document, grade, inclusion probability where it was drawn


@dataclass(frozen=True)
class LineFile:
    """A file by name, and its lines as they follow from the graded items and from the tables of the release."""

    name: str
    lines: Callable[[Path, Sequence[Graded]], Iterator[str]]


def counted_lines(folder: Path, graded: Sequence[Graded]) -> Iterator[str]:
    for row in json_lines(folder / "judgments.jsonl"):
        if row["counted"]:
            yield f"{row['topic_id']} {row['assessor']} {row['doc_id']} {row['grade']}"


def prels_lines(folder: Path, graded: Sequence[Graded]) -> Iterator[str]:
    """Yield the drawn items with the code of how they came to be judged: 0 by a model's choice, 1 by the draw alone."""
    draws = [json.loads(path.read_text("utf-8")) for path in (folder / "draws").glob("draw-*.json")]
    method = 0 if any(draw.get("judging_order") == "informative" for draw in draws) else 1
    return (f"{t} {d} {grade} {method} {p!r}" for t, d, grade, p in graded if p)


LINE_FILES = (
    LineFile("qrels.txt", lambda folder, graded: (f"{t} 0 {d} {grade}" for t, d, grade, _ in graded)),
    LineFile("prels.txt", prels_lines),
    LineFile("qrels_jg.txt", counted_lines),
    LineFile(
        "beir/qrels/test.tsv",
        lambda folder, graded: chain(
            ["query-id\tcorpus-id\tscore"], (f"{t}\t{d}\t{grade}" for t, d, grade, _ in graded)
        ),
    ),
)


def words_of(line: str) -> list[Any]:
    """Return the words of a line, the last as a number where it is one: 1e-05 and 0.00001 are the same."""
    *words, last = line.split()
    return [*words, float(last) if last.replace(".", "").replace("e-", "").isdecimal() else last]
