"""Tables written as JSON: a run as one object, MTEB's qrels and umbrela's judgments as an object a line."""

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

import polars as pl

from judging.kinds import ITEM_COLUMNS
from judging.trec_tables import check_columns


def write_run_object(ranking: pl.DataFrame, stream: BinaryIO) -> None:
    """Write ``{topic: {document: score}}``, a line a topic; a score reads back exactly.

    >>> import io
    >>> stream = io.BytesIO()
    >>> write_run_object(pl.DataFrame({"topic_id": ["7"], "doc_id": ["a"], "score": [0.5]}), stream)
    >>> stream.getvalue()
    b'{"7": {"a": 0.5}}\\n'
    """
    check_columns(ranking.select(*ITEM_COLUMNS, "score"))
    stream.write(b"{")
    for index, topic in enumerate(ranking.partition_by("topic_id", maintain_order=True)):
        stream.write(b",\n" if index else b"")
        scores = dict(zip(topic["doc_id"].to_list(), topic["score"].to_list(), strict=True))
        stream.write(f"{_json(topic['topic_id'][0])}: {_json(scores)}".encode())
    stream.write(b"}\n")


def write_mteb(items: pl.DataFrame, stream: BinaryIO) -> None:
    """Write ``{"query-id": ..., "corpus-id": ..., "score": ...}`` of the items that have a grade."""
    graded = items.filter(pl.col("grade").is_not_null()).select(*ITEM_COLUMNS, "grade")
    check_columns(graded)
    names = {"query-id": "topic_id", "corpus-id": "doc_id", "score": "grade"}
    _write(({key: row[name] for key, name in names.items()} for row in graded.iter_rows(named=True)), stream)


def write_umbrela(judgments: pl.DataFrame, stream: BinaryIO) -> None:
    """Write judgments as umbrela does, with qid and docid beside empty texts; the model is who judged."""
    graded = judgments.filter(pl.col("grade").is_not_null()).select(*ITEM_COLUMNS, "assessor", "grade")
    check_columns(graded)
    _write((_umbrela(row) for row in graded.iter_rows(named=True)), stream)


def _umbrela(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "model": row["assessor"],
        "qid": row["topic_id"],
        "docid": row["doc_id"],
        "query": "",
        "passage": "",
        "judgment": row["grade"],
        "result_status": 1,
    }


def _write(objects: Iterator[dict[str, Any]], stream: BinaryIO) -> None:
    for one in objects:
        stream.write(f"{_json(one)}\n".encode())


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
