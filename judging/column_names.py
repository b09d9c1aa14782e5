"""What the names of columns and keys tell of a table: the fields of a record that they usually stand for."""

import re
from collections.abc import Mapping, Sequence

from judging.judgment_tables import USUAL_COLUMNS

# Names in small letters without signs: "Query-ID" and "query_id" are alike.
NAMES = {
    "topic_id": "topicid queryid qid topicnumber topicno topic querynumber queryno inputtopicid number num",
    "doc_id": "docid docno documentid documentno corpusid pid passageid url uri link doc inputdocid did articleid",
    "id": "id key identifier",
    "query": "query querytext topictitle searchterm searchterms search question keywords",
    "title": "title headline heading subject name caption",
    "description": "description desc",
    "narrative": "narrative narr",
    "text": "text",
    "body": "body contents content article articletext passage passagetext abstract fulltext document documenttext "
    "html page summary snippet",
    "grade": "grade label relevance rel rating relevancegrade judgment judgement answergrade score",
    "assessor": "worker workerid assessor assessorid annotator annotatorid judge user userid rater",
    "probability": "probability inclusionprobability",
    "task": "task",
    "weight": "weight",
    "rank": "rank",
}
ROLES = {name: role for role, names in NAMES.items() for name in names.split()}
SIGNS = re.compile(r"[^a-z0-9]")


def role_of(title: str) -> str:
    """Return which field a column of this name usually is, or ``""``.

    >>> role_of("Query-ID"), role_of("colour")
    ('topic_id', '')
    """
    return ROLES.get(SIGNS.sub("", title.lower()), "")


def roles_of(titles: Sequence[str]) -> dict[str, str]:
    """Return the first column of each role."""
    found: dict[str, str] = {}
    for title in titles:
        found.setdefault(role_of(title), title)
    found.pop("", None)
    return found


def _first(roles: Mapping[str, str], *wanted: str) -> tuple[str, ...]:
    return next(((roles[role],) for role in wanted if role in roles), ())


def topic_mapping(roles: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the columns of a topic's fields."""
    ids = _first(roles, "topic_id", "id", "doc_id")
    titles = _first(roles, "query", "title", "text", "description", "body")
    found = {"id": ids, "title": titles}
    found |= {field: _first(roles, field) for field in ("description", "narrative", "weight")}
    return {
        field: columns
        for field, columns in found.items()
        if columns and (field != "description" or columns != titles)
    }


def document_mapping(roles: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the columns of a document's fields."""
    texts = _first(roles, "body", "text", "description", "query", "title")
    found = {"id": _first(roles, "doc_id", "id", "topic_id"), "title": _first(roles, "title"), "text": texts}
    return {
        field: columns
        for field, columns in found.items()
        if columns and (field != "title" or columns != texts)
    }


def judgment_mapping(roles: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the columns of a judgment's fields; empty if they are not those of judgments."""
    has_pair = ("topic_id" in roles or "query" in roles) and "doc_id" in roles
    if "grade" not in roles or not (has_pair or "task" in roles):
        return {}
    found = {"grade": _first(roles, "grade"), "assessor": _first(roles, "assessor")}
    found["probability"] = _first(roles, "probability")
    if has_pair:
        found |= {"topic": _first(roles, "topic_id", "query"), "document": _first(roles, "doc_id")}
    return {field: columns for field, columns in found.items() if columns}


def unambiguous(mapping: Mapping[str, tuple[str, ...]], titles: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the mapping without fields that two columns are usually called: their reader refuses to choose.

    >>> unambiguous({"topic": ("qid",), "document": ("doc",)}, ["qid", "topic", "doc"])
    {'document': ('doc',)}
    """
    counts = {field: sum(title in usual for title in titles) for field, usual in USUAL_COLUMNS.items()}
    return {field: columns for field, columns in mapping.items() if counts.get(field, 0) < 2}


def leaning(roles: Mapping[str, str]) -> tuple[str, int]:
    """Return which of topics and documents the columns tell, and how clearly: 2 clearly, 1 rather, 0 not at all."""
    is_topic = bool({"topic_id", "query", "narrative"} & set(roles))
    is_document = bool({"doc_id", "body"} & set(roles))
    if is_topic != is_document:
        return ("topics", 2) if is_topic else ("documents", 2)
    if is_topic:
        return "", 0
    if {"title", "text"} <= set(roles):
        return "documents", 1
    return ("topics", 1) if "title" in roles and "text" not in roles else ("", 0)
