"""A collection's documents and topics, found by id and words, with their ranks in runs and their items in campaigns."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from django.db.models import Exists, Model, OuterRef, QuerySet

from judging.models import Campaign, Collection, Document, Item, Run, Topic
from judging.models.collections import words_asked, words_of
from judging.rankings import first_documents, ranks_of_document
from judging.services.queries import with_keys
from touchstone.files import local
from touchstone.models import User

MOST_FOUND = 1000  # by words: who finds more adds a word
MOST_LINES = 1_000_000  # of runs, read for one page
FIRST_DOCUMENTS = 5
SHOWN_ITEMS = 50
Rows = TypeVar("Rows", bound=Model)


def documents_found(collection: Collection, asked: str) -> QuerySet[Document]:
    """Return the collection's documents with this id, or these words in the title; all of them if nothing is asked."""
    return _search(Document.objects.filter(collection=collection), "doc_id", asked).defer("text", "html")


def topics_found(collection: Collection, asked: str) -> QuerySet[Topic]:
    """Return the collection's topics with this id, or these words in the title; all of them if nothing is asked."""
    return _search(Topic.objects.filter(collection=collection), "topic_id", asked)


def _search(rows: QuerySet[Rows], name: str, asked: str) -> QuerySet[Rows]:
    if not asked:
        return rows
    # The words first, and so many at most: a walk in the order of ids would read every title of the collection.
    called = rows.filter(**{name: asked}).order_by().values("pk")
    titled = (
        rows.annotate(words=words_of("title"))
        .filter(words=words_asked(asked))
        .order_by()
        .values("pk")[:MOST_FOUND]
    )
    return with_keys(rows, called.union(titled, all=True))


# -- in runs --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class InRuns:
    """What some runs return: a row a run, and the name of the last run read if more are left."""

    rows: list[tuple[Run, Any]]
    more_after: str | None


def ranks_in_runs(document: Document, after: str = "") -> InRuns:
    """Return of each run by topic the rank of the document, of so many runs as one page may read."""
    return _read(document.collection_id, after, lambda path: ranks_of_document(path, document.doc_id))


def first_in_runs(topic: Topic, after: str = "") -> InRuns:
    """Return of each run the first documents for the topic, of so many runs as one page may read."""
    return _read(
        topic.collection_id, after, lambda path: first_documents(path, topic.topic_id, FIRST_DOCUMENTS)
    )


def _read(collection_id: Any, after: str, read: Callable[[Path], Any]) -> InRuns:
    rows: list[tuple[Run, Any]] = []
    n_lines = 0
    runs = Run.objects.filter(collection=collection_id, run_id__gt=after).order_by("run_id")
    for run in runs.iterator(chunk_size=200):
        n_lines += run.n_lines
        if rows and n_lines > MOST_LINES:
            return InRuns(rows, rows[-1][0].run_id)
        rows.append((run, read(local(run.rankings))))
    return InRuns(rows, None)


# -- in campaigns ---------------------------------------------------------------------------------------------


def items_of_document(document: Document, user: User) -> list[Item]:
    """Return the document's items in the campaigns that the user may see, without texts; some of them if many."""
    rows = Item.objects.filter(document=document, campaign__in=Campaign.objects.visible_to(user))
    joined = rows.select_related("campaign", "topic", "document").defer("document__text", "document__html")
    return list(joined.order_by("campaign__name", "topic__topic_id", "pk")[:SHOWN_ITEMS])


def campaigns_of_topic(topic: Topic, user: User) -> QuerySet[Campaign]:
    """Return the campaigns that judge documents for the topic, of those that the user may see."""
    items = Item.objects.filter(campaign=OuterRef("pk"), topic=topic)
    mine = Campaign.objects.visible_to(user).filter(Exists(items), collection=topic.collection_id)
    return mine.order_by("name")


def documents_called(collection_id: Any, doc_ids: Iterable[str]) -> dict[str, int]:
    """Return the keys of the documents with these ids."""
    rows = Document.objects.filter(collection=collection_id, doc_id__in=set(doc_ids))
    return dict(rows.values_list("doc_id", "pk"))


def topics_called(collection_id: Any, topic_ids: Iterable[str]) -> dict[str, int]:
    """Return the keys of the topics with these ids."""
    rows = Topic.objects.filter(collection=collection_id, topic_id__in=set(topic_ids))
    return dict(rows.values_list("topic_id", "pk"))
