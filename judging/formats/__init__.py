"""File formats of the field: one table of them, and readers and writers of columns by it."""

from judging.formats.converting import convert
from judging.formats.datasets import MissingPackageError
from judging.formats.kinds import JUDGMENTS, RUNS, TOPICS, Format
from judging.formats.reading import (
    line_of_pair,
    read_judgment_columns,
    read_run_columns,
    read_topic_columns,
    recognised_format,
)
from judging.formats.table import FORMATS, format_of
from judging.formats.writing import write

__all__ = [
    "FORMATS",
    "JUDGMENTS",
    "RUNS",
    "TOPICS",
    "Format",
    "MissingPackageError",
    "convert",
    "format_of",
    "line_of_pair",
    "read_judgment_columns",
    "read_run_columns",
    "read_topic_columns",
    "recognised_format",
    "write",
]
