"""Corrections of documents, topics and gold answers: a new version, with who and why; what was there stays on record.

Triggers put the newest version in force (migrations/0026_versions_are_kept.py), so everybody who reads a document, a
topic or a gold answer reads that. What somebody was shown stays known: a judgment names the version of its document,
and releases and computations are as they were.
"""

import uuid
from typing import Any, TypeVar

from django.db import IntegrityError, transaction

from judging.models import (
    Campaign,
    Collection,
    Document,
    DocumentVersion,
    GoldAnswer,
    GoldVersion,
    Topic,
    TopicVersion,
)
from judging.models.collections import Version
from judging.sanitise import sanitise_documents
from judging.services.errors import CorrectedMeanwhile, CorrectionRefused, NotFound
from judging.services.judgment_formats import DIGITS
from judging.services.sources import one_line
from touchstone.models import User, record

LONGEST_WHY = 2000  # characters
MEANWHILE = ("_next", "_unique")  # end the names of what says that another correction was faster


def correct_document(
    *,
    document: Document,
    user: User,
    why: str,
    title: str | None = None,
    text: str | None = None,
    is_html: bool = False,
) -> DocumentVersion:
    """Correct a document's title or text, which are made safe as at import; None leaves it as it is.

    Parameters
    ----------
    is_html:
        The new title and text are HTML; where text is given, its words and its safe HTML are stored.

    Raises
    ------
    CorrectionRefused
        If nothing changes, or there is no reason.
    CorrectedMeanwhile
        If somebody else's correction came first.
    """
    row = Document.objects.get(pk=document.pk)
    content = {"title": row.title, "text": row.text, "html": row.html}
    safe_title, safe = sanitise_documents([(title or "", is_html), (text or "", is_html)])
    if title is not None:
        content["title"] = one_line(safe_title.text)
    if text is not None:
        content |= {"text": safe.text, "html": safe.html}
    made = DocumentVersion(document=row, number=row.version + 1, **content)
    return _store_version(made, row.collection_id, user, why, "corrected a document", document=row.doc_id)


def correct_topic(
    *,
    topic: Topic,
    user: User,
    why: str,
    title: str | None = None,
    description: str | None = None,
    narrative: str | None = None,
) -> TopicVersion:
    """Correct a topic's words; None leaves them as they are. Its weight shaped draws and stays. Raises as above."""
    row = Topic.objects.get(pk=topic.pk)
    said = {"title": title, "description": description, "narrative": narrative}
    content = {name: getattr(row, name) if words is None else words.strip() for name, words in said.items()}
    if not content["title"]:
        raise CorrectionRefused("a topic has a title")
    made = TopicVersion(topic=row, number=row.version + 1, **content)
    return _store_version(made, row.collection_id, user, why, "corrected a topic", topic=row.topic_id)


def correct_gold(*, answer: GoldAnswer, user: User, why: str, grade: int | None) -> GoldVersion:
    """Correct the grade of a gold answer; it must be on the scale of each campaign that judges the pair.

    None withdraws the answer: checks of it are decoys then. A later grade puts it in force again.

    Checks are right or wrong by the new grade from now on, in every campaign of the collection. Judgments that a file
    of gold brought as an audit are judgments, and stay. Raises as above.
    """
    rows = GoldAnswer.everything.select_related("topic", "document").defer("document__text", "document__html")
    row = rows.get(pk=answer.pk)
    if grade is not None and grade not in DIGITS:
        raise CorrectionRefused(f"{grade} is no grade: grades are {DIGITS[0]} to {DIGITS[-1]}")
    for campaign in Campaign.objects.filter(
        items__topic=row.topic_id, items__document=row.document_id, deleted_at=None
    ).select_related("scale"):
        if grade is not None and grade not in campaign.scale.values():
            raise CorrectionRefused(
                f"{grade} is not on the scale of {campaign.name}, which judges this document"
            )
    made = GoldVersion(answer=row, number=row.version + 1, grade=grade)
    detail = {"topic": row.topic.topic_id, "document": row.document.doc_id, "grade": grade, "was": row.grade}
    verb = "withdrew a gold answer" if grade is None else "corrected a gold answer"
    return _store_version(made, row.topic.collection_id, user, why, verb, **detail)


Made = TypeVar("Made", bound=Version)


def _store_version(
    made: Made, collection_id: uuid.UUID, user: User, why: str, verb: str, **detail: Any
) -> Made:
    """Store a version and its event."""
    if not user.may_manage:
        raise NotFound
    if not why.strip() or len(why) > LONGEST_WHY:
        raise CorrectionRefused(f"say why, in 1 to {LONGEST_WHY:,} characters")
    made.corrected_by, made.why = user, why.strip()
    try:
        with transaction.atomic():
            collection = Collection.objects.visible_to(user).filter(pk=collection_id).first()
            if collection is None:
                raise NotFound
            made.save(force_insert=True)
            record(verb, collection, actor=user, version=made.number, why=made.why, **detail)
    except IntegrityError as error:
        name = str(getattr(getattr(error.__cause__, "diag", None), "constraint_name", "") or "")
        if name.endswith(MEANWHILE):
            raise CorrectedMeanwhile from error
        if name.endswith("_differs"):
            raise CorrectionRefused("the correction changes nothing") from error
        raise
    made.refresh_from_db(fields=["created_at"])
    return made
