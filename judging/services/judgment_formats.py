"""Files of judgments: the formats, how to read them, and the place of a fault."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from judging.services.sources import MeteredSource, Place, place_of_cell, place_of_field, refuse
from judging.textfiles import Source
from judging.trec import (
    JudgmentRecord,
    QrelRecord,
    read_crowd_labels,
    read_fields,
    read_qrels,
    read_qrels_jg,
)

DIGITS = range(10)  # what a grade can be on any scale
REJECT = "reject"
REPEATS = {REJECT: "refuse the file", "first": "keep the first", "last": "keep the last"}


@dataclass(frozen=True)
class JudgmentFormat:
    """How to read a file of judgments, and in which column of how many topic, document, assessor, grade stand."""

    read: Callable[..., Iterator[QrelRecord] | Iterator[JudgmentRecord]]
    width: int
    columns: Mapping[str, int]


def _cranfield(source: Source, name: str, *, allows_repeats: bool = False) -> Iterator[QrelRecord]:
    """Return the records of Cranfield's three columns ``query document code``; repeats that agree are allowed."""
    for fields in read_fields(source, name, 3, "topic document grade"):
        yield QrelRecord(fields.id(0, "topic id"), fields.id(1, "document id"), fields.grade(2))


FORMATS = {
    "qrels": JudgmentFormat(read_qrels, 4, {"topic": 0, "document": 2, "grade": 3}),
    "qrels_jg": JudgmentFormat(read_qrels_jg, 4, {"topic": 0, "assessor": 1, "document": 2, "grade": 3}),
    "crowd": JudgmentFormat(read_crowd_labels, 0, {"topic": 0, "assessor": 0, "document": 0, "grade": 0}),
    "cranfield": JudgmentFormat(_cranfield, 3, {"topic": 0, "document": 1, "grade": 2}),
}


@dataclass(frozen=True)
class JudgmentFile:
    """The file being imported."""

    stream: MeteredSource
    name: str
    format: JudgmentFormat

    def refuse(self, index: int, what: str, reason: str) -> None:
        refuse(self.name, self.place(index, what), reason)

    def place(self, index: int, what: str) -> Place:
        source = self.stream.from_start()
        if self.format.width == 0:
            return place_of_cell(source, self.name, index, what)
        return place_of_field(source, self.name, index, self.format.width, self.format.columns[what])


def parse_grade_map(text: str) -> dict[int, int]:
    """Return what grades of a file become: "1=3,2=3,3=2,4=1,5=0,-1=0" for Cranfield, whose best code is 1.

    Raises ValueError.
    """
    grades: dict[int, int] = {}
    for part in text.split(","):
        given, _, wanted = part.partition("=")
        try:
            pair = int(given), int(wanted)
        except ValueError:
            raise ValueError(f"a grade map is like '1=3,2=0', not {text[:100]!r}") from None
        if pair[0] in grades:
            raise ValueError(f"grade {pair[0]} is there twice in the grade map")
        grades[pair[0]] = pair[1]
    return grades
