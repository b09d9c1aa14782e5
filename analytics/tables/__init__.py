"""Tables for a paper: runs, pairs and the ranking as LaTeX, Markdown and CSV, with marks of what is significant.

Values, intervals, p-values, what is significant and the words about them are arguments: nothing is estimated here.
"""

from analytics.tables.contents import (
    Difference,
    Rank,
    RunNumber,
    Terms,
    pairs_table,
    ranking_table,
    runs_table,
)
from analytics.tables.formats import TABLE_FORMATS, table_format
from analytics.tables.marks import DAGGERS, MARKS, NO_MARKS, marks_of
from analytics.tables.table import Table

__all__ = [
    "DAGGERS",
    "MARKS",
    "NO_MARKS",
    "TABLE_FORMATS",
    "Difference",
    "Rank",
    "RunNumber",
    "Table",
    "Terms",
    "marks_of",
    "pairs_table",
    "ranking_table",
    "runs_table",
    "table_format",
]
