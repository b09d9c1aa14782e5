"""A campaign's judgments and items, looked up so that a page costs the same however much else the database holds."""

import uuid
from collections.abc import Iterable
from typing import Any, TypeVar

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import BooleanField, F, Func, OuterRef, QuerySet, Subquery, UUIDField
from django.db.models.expressions import RawSQL

from judging.models import Assessor, Document, Item, Judgment, Topic

Rows = TypeVar("Rows", bound=QuerySet[Any])


def judgments_of(campaign_id: uuid.UUID, **among: Any) -> QuerySet[Judgment]:
    """Return the campaign's judgments, so that a page of them in their order costs the same in any database.

    Only those by assessors that meet the conditions. A judgment names its assessor, not its campaign. The assessors'
    oldest and newest judgments, which an index gives, say between which ids the campaign's lie: pages read no others,
    however many campaigns there are beside it.
    """
    of_assessor = Judgment.objects.filter(assessor=OuterRef("pk")).values("id")
    ends = Assessor.objects.filter(campaign_id=campaign_id, **among).annotate(
        oldest=Subquery(of_assessor.order_by("id")[:1]), newest=Subquery(of_assessor.order_by("-id")[:1])
    )
    found = [row for row in ends.values_list("pk", "oldest", "newest") if row[1] is not None]
    if not found:
        return Judgment.objects.none()
    ids, oldest, newest = zip(*found, strict=True)
    if len(ids) == 1:
        return Judgment.objects.filter(assessor=ids[0])
    return Judgment.objects.filter(assessor__in=ids, id__gte=min(oldest), id__lte=max(newest))


def items_about(campaign_id: uuid.UUID, topic_id: str | None, doc_id: str | None) -> QuerySet[Item]:
    """Return the campaign's items about a topic, of a document, or both: by their keys, which the index has."""
    found, mine = Item.objects.filter(campaign_id=campaign_id), {"collection__campaigns": campaign_id}
    if topic_id is not None:
        found = found.filter(topic=Subquery(Topic.objects.filter(topic_id=topic_id, **mine).values("pk")))
    if doc_id is not None:
        found = found.filter(document=Subquery(Document.objects.filter(doc_id=doc_id, **mine).values("pk")))
    return found


def about_items(rows: QuerySet[Judgment], items: QuerySet[Item]) -> QuerySet[Judgment]:
    """Return the judgments that are about these items.

    Their keys are gathered first, as an array, and then looked up in order: a join would be planned as a walk through
    all judgments from the oldest on, in the hope that the first page is soon full.
    """
    return rows.filter(_is_one_of(ArraySubquery(Judgment.objects.filter(item__in=items).values("pk"))))


def with_keys(rows: Rows, keys: Iterable[Any] | QuerySet[Any]) -> Rows:
    """Return the rows with these keys, of which there are few, so that they are looked up before they are ordered.

    As an array whose length the planner does not know: of one that it knows it may think that walking through all rows
    in their order finds the first page sooner.
    """
    if isinstance(keys, QuerySet):
        return rows.filter(_is_one_of(ArraySubquery(keys)))
    kind = "uuid" if isinstance(rows.model._meta.pk, UUIDField) else "bigint"
    return rows.filter(_is_one_of(RawSQL(f"ARRAY(SELECT unnest(%s::{kind}[]))", [list(keys)])))  # noqa: S611


def _is_one_of(keys: Any) -> Func:
    return Func(F("pk"), keys, template="%(expressions)s)", arg_joiner=" = ANY(", output_field=BooleanField())
