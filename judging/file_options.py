"""What a person may say of a file that its reader cannot see: encoding, columns, missing ids, grades."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from judging.encodings import encoding_key
from judging.textfiles import TrecFormatError, check_id

DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "vertical bar"}
# The fields of a record, by what is in the file; an id is one column, of texts several may be joined.
MAPPED_FIELDS = {
    "topics": ("id", "title", "description", "narrative", "weight"),
    "documents": ("id", "title", "text"),
    "judgments": ("topic", "document", "assessor", "grade", "probability"),
}
JOINED_FIELDS = {"title", "text", "description", "narrative"}
ALL_FIELDS = sorted({name for names in MAPPED_FIELDS.values() for name in names})
MOST_COLUMNS = 100
LARGEST_GRADE = 127


@dataclass(frozen=True)
class FileOptions:
    """What was chosen for a file; all readers of tables obey it.

    Attributes
    ----------
    encoding : str
        A key of `judging.encodings.ENCODINGS`; ``""`` is UTF-8.
    delimiter : str
        A key of `DELIMITERS`; ``""``: as the header says.
    mapping : mapping
        Fields of `MAPPED_FIELDS` to columns; a field that is not named is looked for by its usual names.
    numbers_rows : bool
        Records have no id: they are numbered 1, 2, ... in the order of the file.
    joins_ids : bool
        White space in an id becomes ``_``, if ids stay distinct.
    grade_map : mapping
        Grades of the file to grades, or to None: left out. Grades that it does not name stay.
    is_html : bool
        The documents are HTML.
    """

    encoding: str = ""
    delimiter: str = ""
    mapping: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    numbers_rows: bool = False
    joins_ids: bool = False
    grade_map: Mapping[int, int | None] = field(default_factory=dict)
    is_html: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return what differs from the default, as JSON has it; `options_from` reads it.

        >>> FileOptions(encoding="cp1252", grade_map={-2: 0, -1: None}).as_dict()
        {'encoding': 'cp1252', 'grade_map': '-2=0,-1='}
        """
        given: dict[str, Any] = {
            "encoding": self.encoding,
            "delimiter": self.delimiter,
            "mapping": {name: list(columns) for name, columns in self.mapping.items()},
            "numbers_rows": self.numbers_rows,
            "joins_ids": self.joins_ids,
            "grade_map": written_grades(self.grade_map),
            "is_html": self.is_html,
        }
        return {name: value for name, value in given.items() if value}


PLAIN = FileOptions()


def options_from(given: Mapping[str, Any]) -> FileOptions:
    """Return the options that JSON names, as `FileOptions.as_dict` writes them. Raises ValueError.

    >>> options_from({"encoding": "windows-1252", "mapping": {"id": ["qid"]}})
    FileOptions(encoding='cp1252', delimiter='', mapping={'id': ('qid',)}, numbers_rows=False, joins_ids=False, \
grade_map={}, is_html=False)
    """
    known = set(FileOptions.__dataclass_fields__)
    if unknown := set(given) - known:
        raise ValueError(f"options of a file are {sorted(known)}, not {sorted(map(str, unknown))}")
    delimiter = given.get("delimiter", "")
    if delimiter not in ("", *DELIMITERS):
        raise ValueError(f"delimiter must be a {', '.join(DELIMITERS.values())}, not {str(delimiter)[:20]!r}")
    for name in ("numbers_rows", "joins_ids", "is_html"):
        if not isinstance(given.get(name, False), bool):
            raise ValueError(f"{name} must be true or false, not {str(given[name])[:40]!r}")
    encoding, grades = given.get("encoding", ""), given.get("grade_map", "")
    if not isinstance(encoding, str) or not isinstance(grades, str):
        raise ValueError("encoding and grade_map must be strings")
    return FileOptions(
        encoding=encoding_key(encoding) if encoding else "",
        delimiter=delimiter,
        mapping=_mapping(given.get("mapping", {})),
        numbers_rows=given.get("numbers_rows", False),
        joins_ids=given.get("joins_ids", False),
        grade_map=parse_grades(grades) if grades else {},
        is_html=given.get("is_html", False),
    )


def _mapping(given: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(given, dict):
        raise ValueError('a mapping is like {"id": ["qid"], "title": ["query"]}')
    found: dict[str, tuple[str, ...]] = {}
    for name, columns in given.items():
        if name not in ALL_FIELDS:
            raise ValueError(f"a mapping names {', '.join(ALL_FIELDS)}, not {str(name)[:40]!r}")
        columns = [columns] if isinstance(columns, str) else columns
        if not isinstance(columns, list) or not all(isinstance(column, str) for column in columns):
            raise ValueError(f"the columns of {name} must be a list of names")
        if len(columns) > (MOST_COLUMNS if name in JOINED_FIELDS else 1):
            raise ValueError(
                f"at most {MOST_COLUMNS} columns can be joined"
                if name in JOINED_FIELDS
                else f"{name} takes one column"
            )
        if columns:
            found[name] = tuple(columns)
    return found


def parse_grades(text: str) -> dict[int, int | None]:
    """Return what grades of a file become: ``"1=3,2=3,-1=0"``, and ``"-2="`` for what is left out. Raises ValueError.

    >>> parse_grades("-2=0,-1=")
    {-2: 0, -1: None}
    """
    grades: dict[int, int | None] = {}
    for part in text.split(","):
        given, sign, wanted = part.partition("=")
        try:
            pair = int(given), int(wanted) if wanted.strip() else None
        except ValueError:
            sign = ""
        if not sign:
            raise ValueError(f"a grade map is like '1=3,2=0,-1=', not {text[:100]!r}")
        if pair[0] in grades:
            raise ValueError(f"grade {pair[0]} occurs twice in the grade map")
        if max(abs(pair[0]), abs(pair[1] or 0)) > LARGEST_GRADE:
            raise ValueError(f"grades are from -{LARGEST_GRADE} to {LARGEST_GRADE}: {part.strip()[:40]!r}")
        grades[pair[0]] = pair[1]
    return grades


def written_grades(grades: Mapping[int, int | None]) -> str:
    """Return the grade map as `parse_grades` reads it."""
    return ",".join(f"{given}={'' if wanted is None else wanted}" for given, wanted in grades.items())


@dataclass
class Changes:
    """What a reader changed because it was chosen: for the log."""

    n_numbered: int = 0
    n_joined: int = 0
    first: list[tuple[str, str]] = field(default_factory=list)  # an id of the file, and what it became

    def as_dict(self) -> dict[str, Any]:
        """Return what is to be logged; nothing where nothing was changed."""
        numbered = {"n_numbered": self.n_numbered} if self.n_numbered else {}
        joined = {"n_joined": self.n_joined, "first_joined": self.first} if self.n_joined else {}
        return numbered | joined


class Ids:
    """The ids of a file's records as its options want them."""

    def __init__(self, what: str, name: str, options: FileOptions, changes: Changes | None = None) -> None:
        self.what, self.name, self.options = what, name, options
        self.changes = changes if changes is not None else Changes()
        self._came_from: dict[str, str] = {}  # joined ids alone: the database finds other repeats

    def number(self) -> str:
        """Return the number of the next record, which bad records have too."""
        self.changes.n_numbered += 1
        return str(self.changes.n_numbered)

    def id(self, value: str, line: int, column: int) -> str:
        """Return the id: checked, and with ``_`` for white space if that was chosen."""
        if not self.options.joins_ids:
            return check_id(value, self.what, self.name, line, column)
        words = value.split()
        joined = "_".join(words)
        self._refuse_alike(joined, value, is_joined=len(words) > 1, line=line, column=column)
        checked = check_id(joined, self.what, self.name, line, column)
        if len(words) > 1:
            self.changes.n_joined += 1
            if len(self.changes.first) < 5:
                self.changes.first.append((value, checked))
        return checked

    def _refuse_alike(self, joined: str, value: str, *, is_joined: bool, line: int, column: int) -> None:
        """Refuse an id that two others of the file became, or that another one is already."""
        other = self._came_from.get(joined)
        if other is not None and other != value:
            reason = f"{self.what} {value[:80]!r} would be {joined[:80]}, as {other[:80]!r} is"
            raise TrecFormatError(self.name, line, column, reason)
        if is_joined:
            self._came_from[joined] = value
