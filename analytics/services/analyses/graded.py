"""The papers' methods for any number of grades: confusion matrices, and what needs none."""

from collections.abc import Iterator

from analytics.services.analyses.case import Case
from analytics.services.analyses.wanted import Line


def graded_lines(case: Case) -> Iterator[Line]:
    """Yield the lines of the difference, then those of each run."""
    yield from ()
