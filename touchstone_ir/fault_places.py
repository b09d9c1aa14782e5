"""Where a pair that does not fit stands: what is said of a table is said of a line, once its file is known."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from touchstone_ir.columns import InputRefused


@dataclass(frozen=True)
class Misfit:
    """A pair that does not fit: the argument that brought it (labels, gold, draw, earlier), and what is wrong."""

    table: str
    pair: tuple[str, str]
    words: str


def pair_refused(table: str, pair: tuple[str, str], words: str) -> InputRefused:
    """Return the refusal of a pair of one of several tables, which names its line once the file is known.

    >>> pair_refused("gold", ("1", "a"), "document a of topic 1 has no label")
    InputRefused('gold: document a of topic 1 has no label')
    """
    refusal = InputRefused(f"{table}: {words}")
    refusal.about = Misfit(table, pair, words)
    return refusal


def with_place(error: Exception, sources: Mapping[str, Any]) -> Exception:
    """Return the error; one about a pair of a file that the sources name says file and line."""
    about = getattr(error, "about", None)
    source = sources.get(about.table) if isinstance(about, Misfit) else None
    if not isinstance(about, Misfit) or not isinstance(source, str | os.PathLike):
        return error
    return InputRefused(f"{place_of(source, about.pair)}: {about.words}")


@contextmanager
def told_with_places(**sources: Any) -> Iterator[None]:
    """Tell errors about pairs with the lines of the files that hold them; what is no path has none."""
    try:
        yield
    except InputRefused as error:
        raise with_place(error, sources) from None


def place_of(source: str | os.PathLike[str], pair: tuple[str, str], nth: int = 1, **reading: Any) -> str:
    """Return the file and the line where it names a pair for the nth time; the file alone where none is found.

    The file is read once more, as it was (`format`, `requests`): what is wrong with that is not what was to be said.
    """
    from judging import formats

    try:
        line = formats.line_of_pair(source, *pair, nth=nth, **reading)
    except (OSError, ValueError):
        line = None
    return os.fspath(source) if line is None else f"{os.fspath(source)}:{line}"
