"""Tables written as the files the field uses: qrels, qrels_jg, prels, runs, crowd labels and the like, a row a line.

Ids, which hold no white space, are written as they are, in the order of the rows. A number reads back exactly. What a
reader of these files could not read back is refused with a ValueError, before anything is written.
"""

from typing import BinaryIO

import polars as pl

from judging.kinds import ITEM_COLUMNS
from judging.textfiles import CONTROL
from judging.trec import BEIR_HEADER, MAX_GRADE, MIN_GRADE, NOT_SAMPLED

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


def write_crowd_file(judgments: pl.DataFrame, stream: BinaryIO) -> None:
    """Write the CSV of crowd labels with its header."""
    check_columns(judgments.select(*ITEM_COLUMNS, "assessor", "grade"))
    stream.write(CROWD_HEADER)
    write_crowd_labels(judgments, stream)


def write_beir_qrels(items: pl.DataFrame, stream: BinaryIO) -> None:
    """Write the table ``query-id corpus-id score`` with its head, parted by tabs."""
    rows = items.filter(pl.col("grade").is_not_null()).select(*ITEM_COLUMNS, "grade")
    check_columns(rows)
    stream.write(("\t".join(BEIR_HEADER) + "\n").encode())
    rows.write_csv(stream, include_header=False, separator="\t", quote_style="never")


def write_stratified(items: pl.DataFrame, stream: BinaryIO) -> None:
    """Write ``topic 0 document stratum grade``, the grade -1 where the item has none."""
    grade = pl.col("grade").fill_null(NOT_SAMPLED)
    _write(items.select("topic_id", pl.lit(0), "doc_id", "stratum", grade), stream)


def write_gold(items: pl.DataFrame, stream: BinaryIO) -> None:
    """Write ``topic_id,doc_id,grade`` as CSV, and the probability where the items have one; no grade is empty."""
    chance = [pl.col("inclusion_probability").alias("probability")]
    rows = items.select(*ITEM_COLUMNS, "grade", *(chance if "inclusion_probability" in items.columns else ()))
    check_columns(rows)
    rows.write_csv(stream, quote_style="necessary")


def write_pairs(items: pl.DataFrame, stream: BinaryIO) -> None:
    """Write ``topic,doc,judge,truth`` as CSV, the truth empty where nobody looked; and the probability, if there.

    Items without a judge's label of their own have their grade for it, and no truth.

    >>> import io
    >>> stream = io.BytesIO()
    >>> write_pairs(pl.DataFrame({"topic_id": ["301"], "doc_id": ["a"], "judge": [1], "truth": [None]}), stream)
    >>> stream.getvalue()
    b'topic,doc,judge,truth\\n301,a,1,\\n'
    """
    if "judge" not in items.columns:
        items = items.with_columns(judge="grade", truth=pl.lit(None))
    columns = {"topic": "topic_id", "doc": "doc_id", "judge": "judge", "truth": "truth"}
    if "inclusion_probability" in items.columns:
        columns["probability"] = "inclusion_probability"
    check_columns(items.select(*ITEM_COLUMNS, pl.col("judge").alias("grade")))
    items.select(**columns).write_csv(stream, quote_style="necessary")


def write_msmarco(ranking: pl.DataFrame, stream: BinaryIO) -> None:
    """Write ``topic document rank``, parted by tabs: MS MARCO's run, without scores."""
    rows = ranking.select(*ITEM_COLUMNS, "rank")
    check_columns(rows)
    rows.write_csv(stream, include_header=False, separator="\t", quote_style="never")


def write_pyterrier(ranking: pl.DataFrame, stream: BinaryIO) -> None:
    """Write ``qid,docno,rank,score,name`` as CSV; ranks begin with 0, as PyTerrier's do."""
    check_columns(ranking.select(*ITEM_COLUMNS, "score", "run_tag"))
    rank = pl.col("rank").cast(pl.Int64) - 1
    rows = ranking.select(qid="topic_id", docno="doc_id", rank=rank, score="score", name="run_tag")
    rows.write_csv(stream, quote_style="necessary")


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
