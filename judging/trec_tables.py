"""Tables written as the files the field uses: qrels, qrels_jg, prels, runs and crowd labels, a row a line.

Ids, which hold no white space, are written as they are, in the order of the rows. A number reads back exactly. What a
reader of these files could not read back is refused with a ValueError, before anything is written.
"""

from typing import BinaryIO

import polars as pl

from judging.kinds import ITEM_COLUMNS
from judging.textfiles import CONTROL
from judging.trec import MAX_GRADE, MIN_GRADE

# The prels codes of a pair that the model of a minimal test collection chose, and of one drawn with the probability
# on its line.
CHOSEN_METHOD, DRAWN_METHOD = 0, 1
CROWD_HEADER = b"task,worker,label\n"
WORDS = {"topic_id": "topic id", "doc_id": "document id", "assessor": "assessor", "run_tag": "run tag"}
NO_WORD = rf"^$|\s|{CONTROL.pattern}"


def write_qrels(items: pl.DataFrame, stream: BinaryIO) -> None:
    """Write ``topic 0 document grade`` of the items that have a grade.

    >>> import io
    >>> stream = io.BytesIO()
    >>> write_qrels(pl.DataFrame({"topic_id": ["301"], "doc_id": ["FT911-3"], "grade": [1]}), stream)
    >>> stream.getvalue()
    b'301 0 FT911-3 1\\n'
    """
    graded = items.filter(pl.col("grade").is_not_null())
    _write(graded.select("topic_id", pl.lit(0), "doc_id", "grade"), stream)


def write_qrels_jg(judgments: pl.DataFrame, stream: BinaryIO) -> None:
    """Write ``topic assessor document grade`` of every judgment."""
    _write(judgments.select("topic_id", "assessor", "doc_id", "grade"), stream)


def write_prels(items: pl.DataFrame, stream: BinaryIO, method: int = DRAWN_METHOD) -> None:
    """Write ``topic document grade method probability`` of the items that have a grade: all of them were drawn."""
    graded = items.filter(pl.col("grade").is_not_null())
    columns = (*ITEM_COLUMNS, "grade", pl.lit(method), "inclusion_probability")
    _write(graded.select(*columns), stream)


def write_run(ranking: pl.DataFrame, stream: BinaryIO) -> None:
    """Write ``topic Q0 document rank score tag``."""
    columns = ("topic_id", pl.lit("Q0"), "doc_id", "rank", "score", "run_tag")
    _write(ranking.select(*columns), stream)


def write_crowd_labels(judgments: pl.DataFrame, stream: BinaryIO) -> None:
    """Write the rows below CROWD_HEADER as CSV; the task is ``topic document``.

    Ids stay what they are: an apostrophe against spreadsheets would make them others.

    >>> import io
    >>> stream = io.BytesIO()
    >>> columns = {"topic_id": ["301"], "doc_id": ["=1,2"], "assessor": ["ann"], "grade": [1]}
    >>> write_crowd_labels(pl.DataFrame(columns), stream)
    >>> stream.getvalue()
    b'"301 =1,2",ann,1\\n'
    """
    check_columns(judgments.select(*ITEM_COLUMNS, "assessor", "grade"))
    task = pl.concat_str("topic_id", pl.lit(" "), "doc_id")
    rows = judgments.select(task, "assessor", "grade")
    rows.write_csv(stream, include_header=False, quote_style="necessary")


def _write(rows: pl.DataFrame, stream: BinaryIO) -> None:
    """Write the columns of each row parted by blanks; nothing is quoted."""
    check_columns(rows)
    rows.write_csv(stream, include_header=False, separator=" ", quote_style="never")


def check_columns(rows: pl.DataFrame) -> None:
    """Refuse an id that is not one word, a grade no reader takes, a probability outside (0, 1], an infinite score."""
    for name, what in WORDS.items():
        if name in rows.columns:
            wrong = rows[name].filter(rows[name].str.contains(NO_WORD).fill_null(value=True))
            _refuse(wrong, f"{what} must be one word to be written in a TREC file")
    if "grade" in rows.columns:
        wrong = rows["grade"].filter(~rows["grade"].is_between(MIN_GRADE, MAX_GRADE))
        _refuse(wrong, f"grade must be in {MIN_GRADE}..{MAX_GRADE} to be written in qrels")
    if "inclusion_probability" in rows.columns:
        chance = rows["inclusion_probability"]
        _refuse(chance.filter(~((chance > 0) & (chance <= 1))), "inclusion probability must be in (0, 1]")
    if "score" in rows.columns:
        _refuse(rows["score"].filter(~rows["score"].is_finite()), "score must be finite")


def _refuse(wrong: pl.Series, rule: str) -> None:
    if wrong.len():
        raise ValueError(f"{rule}, not {wrong[0]!r}")
