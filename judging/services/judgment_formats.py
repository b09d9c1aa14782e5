"""Files of judgments as imports take them: the formats, the place of a fault, the grades of a file."""

from collections import Counter
from dataclasses import dataclass

from judging.faults import Faults
from judging.file_options import PLAIN, FileOptions, parse_grades
from judging.formats.kinds import JudgmentFormat
from judging.formats.table import JUDGMENT_FORMATS
from judging.places import Place
from judging.services.errors import ImportRefused
from judging.services.sources import MeteredSource, refuse
from judging.textfiles import Source

DIGITS = range(10)  # what a grade can be on any scale
REJECT = "reject"
REPEATS = {REJECT: "refuse the file", "first": "keep the first", "last": "keep the last"}


FORMATS = tuple(one for one in JUDGMENT_FORMATS if not one.imported_as)
DEFAULT_FORMAT = FORMATS[0].key


def judgment_format(key: str) -> JudgmentFormat:
    """Return the format of that key; ImportRefused for any other."""
    for one in FORMATS:
        if one.key == key:
            return one
    raise ImportRefused(f"file_format must be one of {', '.join(judgment_format_keys())}, not {key!r}")


def format_to_import(key: str) -> str:
    """Return the key of the format as which an import reads files of that one.

    >>> format_to_import("pairs"), format_to_import("qrels")
    ('gold', 'qrels')
    """
    return next((one.imported_as for one in JUDGMENT_FORMATS if one.key == key and one.imported_as), key)


def judgment_format_keys() -> list[str]:
    return [one.key for one in FORMATS]


def gold_format_choices() -> list[tuple[str, str]]:
    """Return key and label of the formats that gold answers come in."""
    return [(one.key, one.label) for one in FORMATS if one.sample is None]


def audit_format_choices() -> list[tuple[str, str]]:
    """Return key and label of the formats of gold answers that may become an audit of a campaign."""
    return [(one.key, one.label) for one in FORMATS if one.sample is None or one.has_probabilities]


def labels_format_choices() -> list[tuple[str, str]]:
    """Return key and label of the formats whose lines name assessors."""
    return [(one.key, one.label) for one in FORMATS if one.names_assessors]


def sample_format_choices() -> list[tuple[str, str]]:
    """Return key and label of the formats of samples."""
    return [(one.key, one.label) for one in FORMATS if one.sample is not None]


@dataclass(frozen=True)
class JudgmentFile:
    """The file being imported."""

    stream: MeteredSource
    name: str
    format: JudgmentFormat
    options: FileOptions = PLAIN

    def refuse(self, index: int, what: str, reason: str) -> None:
        refuse(self.name, self.place(index, what), reason)

    def place(self, index: int, what: str) -> Place:
        return self.format.place(self.stream.from_start(), self.name, index, what, self.options)


def parse_grade_map(text: str) -> dict[int, int | None]:
    """Return what grades of a file become: "1=3,2=3,3=2,4=1,5=0,-1=0" for Cranfield, whose best code is 1.

    "-2=" leaves a grade out; grades that it does not name stay. Raises ImportRefused.
    """
    try:
        return parse_grades(text)
    except ValueError as error:
        raise ImportRefused(str(error)) from None


def grades_in(
    source: Source,
    name: str,
    form: JudgmentFormat,
    options: FileOptions = PLAIN,
    faults: Faults | None = None,
) -> Counter[int]:
    """Return how often the file has each grade, in the order of grades; without faults, a wrong line is raised."""
    records = form.read(source, name, allows_repeats=True, faults=faults, options=options)
    found = Counter(record.grade for record in records if record.grade is not None)
    return Counter(dict(sorted(found.items())))
