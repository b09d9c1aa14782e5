"""Where a pair that does not fit stands: what is said of a table is said of a line, once its file is known."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from touchstone_ir.columns import InputRefused


class PairRefused(InputRefused):
    """A pair of one of several tables does not fit to the others.

    Attributes
    ----------
    table : str
        The argument that brought it: labels, gold, draw or earlier.
    pair : tuple of str
        Topic and document.
    words : str
        What is wrong.
    """

    def __init__(self, table: str, pair: tuple[str, str], words: str) -> None:
        super().__init__(f"{table}: {words}")
        self.table, self.pair, self.words = table, pair, words


def with_place(error: Exception, sources: Mapping[str, Any]) -> Exception:
    """Return the error; one about a pair of a file that is named there says file and line.

    >>> with_place(PairRefused("gold", ("1", "a"), "has no label"), {"gold": None})
    PairRefused('gold: has no label')
    """
    source = sources.get(error.table) if isinstance(error, PairRefused) else None
    if not isinstance(error, PairRefused) or not isinstance(source, str | os.PathLike):
        return error
    return InputRefused(f"{place_of(source, error.pair)}: {error.words}")


@contextmanager
def told_with_places(**sources: Any) -> Iterator[None]:
    """Tell errors about pairs with the lines of the files that hold them; what is no path has none."""
    try:
        yield
    except PairRefused as error:
        raise with_place(error, sources) from None


def place_of(source: str | os.PathLike[str], pair: tuple[str, str], nth: int = 1) -> str:
    """Return the file and the line where it names a pair for the nth time."""
    from judging import formats

    line = formats.line_of_pair(source, *pair, nth=nth)
    return os.fspath(source) if line is None else f"{os.fspath(source)}:{line}"
