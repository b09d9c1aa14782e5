"""A table before it is written: columns, rows of typed cells, a caption and footnotes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A value, with the marks that stand above it; a difference has its sign."""

    value: float
    marks: tuple[str, ...] = ()
    is_signed: bool = False


@dataclass(frozen=True)
class Interval:
    low: float
    high: float


@dataclass(frozen=True)
class Span:
    """Whole numbers from `low` to `high`."""

    low: int
    high: int

    @property
    def words(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low} to {self.high}"


@dataclass(frozen=True)
class Chance:
    """A p-value."""

    p: float


@dataclass(frozen=True)
class Missing:
    """A number that there is not, with the reason whole; `note` is the mark of the footnote that says it."""

    reason: str
    note: str


Cell = str | int | Figure | Interval | Span | Chance | Missing | None  # None: nothing stands here


@dataclass(frozen=True)
class Column:
    """A column: its title in print, and its names in a CSV, where an interval has two columns."""

    title: str
    names: tuple[str, ...]
    is_number: bool = True


@dataclass(frozen=True)
class Table:
    """A table for a paper. `key` names it in a label; `notes` are its footnotes, in the order of their marks."""

    key: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        wrong = [row for row in self.rows if len(row) != len(self.columns)]
        if wrong:
            raise ValueError(f"every row must have {len(self.columns)} cells, got {len(wrong[0])}")


def number_words(value: float, *, is_signed: bool = False) -> str:
    """Return a value with three decimals, a hyphen as its minus.

    >>> number_words(0.12345), number_words(0.5, is_signed=True), number_words(-0.0004)
    ('0.123', '+0.500', '0.000')
    """
    words = f"{round(value, 3) + 0.0:{'+' if is_signed else ''}.3f}"
    return "0.000" if words == "+0.000" else words


def p_words(p: float) -> str:
    """
    >>> p_words(0.0312), p_words(0.0004)
    ('0.031', '< 0.001')
    """
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"
