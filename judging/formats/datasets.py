"""Judgments and topics of ir_datasets: ``ir_datasets:<id>`` in the place of a file, where that package is installed."""

import importlib
from typing import Any

from judging.faults import TrecFormatError
from judging.topic_records import TopicRecord
from judging.trec import QrelRecord

PREFIX = "ir_datasets:"
# The fields of queries that hold the words, best first.
WORDS = ("title", "text", "query")


class MissingPackageError(ImportError):
    """A package that is not installed was needed for what was asked."""


def is_dataset(path: object) -> bool:
    """Return whether a path names a data set of ir_datasets."""
    return isinstance(path, str) and path.startswith(PREFIX)


def dataset_judgments(path: object) -> list[QrelRecord]:
    """Return the judgments of the data set."""
    data = _dataset(str(path), "qrels")
    return [QrelRecord(str(one.query_id), str(one.doc_id), int(one.relevance)) for one in data.qrels_iter()]


def dataset_topics(path: object) -> list[TopicRecord]:
    """Return the queries of the data set."""
    return [_topic(one) for one in _dataset(str(path), "queries").queries_iter()]


def _topic(query: Any) -> TopicRecord:
    title = next((str(getattr(query, word)) for word in WORDS if hasattr(query, word)), "")
    if not title and callable(getattr(query, "default_text", None)):
        title = str(query.default_text())
    description, narrative = (str(getattr(query, word, "")) for word in ("description", "narrative"))
    return TopicRecord(str(query.query_id), title, description, narrative)


def _dataset(path: str, what: str) -> Any:
    try:
        package = importlib.import_module("ir_datasets")
    except ImportError:
        reason = f"{path} needs the package ir_datasets, which is not installed: pip install ir_datasets"
        raise MissingPackageError(reason) from None
    try:
        data = package.load(path.removeprefix(PREFIX))
    except KeyError:
        raise TrecFormatError(path, 1, 1, "ir_datasets has no such data set") from None
    if not getattr(data, f"has_{what}")():
        raise TrecFormatError(path, 1, 1, f"this data set of ir_datasets has no {what}")
    return data
