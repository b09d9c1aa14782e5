"""The judgments and items that filters ask for: what indexes find, and what each row has to be looked at for.

The table of filters is judging/judgment_filters.py. A list reads `rows` in their order and looks at so many of them
for `rest`, never at the whole campaign (touchstone/api/pagination.py); a download looks at all.
"""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Any

from django.contrib.postgres.search import SearchVectorExact
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery

from judging.models import Adjudication, Item, Judgment, Slot, StuckItem
from judging.models.collections import words_asked, words_of
from judging.services.few import few_rows
from judging.services.queries import about_items, items_about, judgments_of, with_keys

WANTED = [Slot.Purpose.JUDGE, Slot.Purpose.CHECK]
# The lookup of a judgment for each filter of judgments that is one condition on its row.
CONDITIONS: dict[str, str] = {
    "grade": "grade",
    "purpose": "slot__purpose",
    "seconds_below": "active_milliseconds__lt",
    "seconds_above": "active_milliseconds__gt",
    "since": "created_at__gte",
    "before": "created_at__lt",
}
OF_ASSESSORS = ("tier", "kind")
# What one judgment of an item has to meet.
SAID = {"assessor", "obstacle", "comment", "comment_words", *CONDITIONS}


@dataclass(frozen=True)
class FilteredRows:
    """Rows that an index finds, and the conditions each of them has to meet besides; None: no others."""

    rows: QuerySet[Any]
    rest: Q | None
    tie: str = "pk"  # what ends the order of the rows

    def complete(self) -> QuerySet[Any]:
        """Return what meets all conditions, however long it takes."""
        return self.rows if self.rest is None else self.rows.filter(self.rest)

    def of_keys(self, keys: Iterable[Any]) -> "FilteredRows":
        """Return those with these keys, of which there are few, so that nothing is left to look for."""
        return replace(self, rows=with_keys(self.complete(), keys), rest=None)


def filtered_judgments(
    campaign_id: uuid.UUID, asked: Mapping[str, Any], assessor: int | None, *, is_by_time: bool = False
) -> FilteredRows:
    """Return the campaign's judgments that the filters ask for; `assessor`: whom the filter of that name means.

    `is_by_time`: they are read in the order of time, which has those of a time beside each other. `spread` is not read
    here: what computations find of items, analytics/services/digests.py asks for.
    """
    among: dict[str, Any] = {name: asked[name] for name in OF_ASSESSORS if name in asked}
    rows = judgments_of(campaign_id, **among | ({"pk": assessor} if "assessor" in asked else {}))
    topic_id, doc_id = asked.get("topic_id"), asked.get("doc_id")
    if topic_id is not None or doc_id is not None:
        rows = about_items(rows, items_about(campaign_id, topic_id, doc_id))
    conditions = _of_judgment(asked)
    if is_by_time:
        for name in {"since", "before"} & asked.keys():
            rows = rows.filter(conditions.pop(name))
    every = [*conditions.values(), *_of_item(asked, "item__", "item")]
    few = few_rows(campaign_id, asked, assessor)
    if few.items is not None:
        rows = about_items(rows, with_keys(Item.objects.all(), few.items))
    found = FilteredRows(rows, _all_of(every))
    if few.judgments is not None:
        return found.of_keys(few.judgments)
    return found if few.items is None else FilteredRows(found.complete(), None)


def filtered_items(campaign_id: uuid.UUID, asked: Mapping[str, Any], assessor: int | None) -> FilteredRows:
    """Return the campaign's items that the filters ask for; those of judgments ask for one judgment that meets all.

    `spread` is not read here either.
    """
    rows = items_about(campaign_id, asked.get("topic_id"), asked.get("doc_id"))
    conditions = _of_item(asked, "", "pk")
    few = few_rows(campaign_id, asked, assessor)
    if SAID & asked.keys():
        given = Judgment.objects.filter(assessor=assessor) if "assessor" in asked else Judgment.objects.all()
        for condition in _of_judgment(asked).values():
            given = given.filter(condition)
        if few.judgments is not None:
            rows = with_keys(rows, with_keys(given, few.judgments).values("item"))
        else:
            conditions += [*_of_filled_slots(asked), Q(Exists(given.filter(item=OuterRef("pk"))))]
    found = FilteredRows(rows, _all_of(conditions))
    if few.items is not None:
        return found.of_keys(few.items)
    return found if few.judgments is None else FilteredRows(found.complete(), None)


def _of_filled_slots(asked: Mapping[str, Any]) -> list[Q]:
    """Return that an item has a slot of a purpose that few have, which an index says at once."""
    purpose = asked.get("purpose", Slot.Purpose.JUDGE)
    if purpose in (Slot.Purpose.JUDGE, Slot.Purpose.VOID):
        return []
    return [Q(Exists(Slot.objects.filter(item=OuterRef("pk"), purpose=purpose, state=Slot.State.DONE)))]


def _of_judgment(asked: Mapping[str, Any]) -> dict[str, Q]:
    """Return by filter the condition on a judgment's row."""
    found = {name: Q(**{path: asked[name]}) for name, path in CONDITIONS.items() if name in asked}
    if "obstacle" in asked:
        given_back = Q(grade__isnull=True)
        reason = asked["obstacle"]
        found["obstacle"] = given_back if reason == "any" else given_back & Q(obstacle=reason)
    if "comment" in asked:
        found["comment"] = ~Q(comment="")
    if "comment_words" in asked:
        words = (Q(comment__icontains=word) for word in asked["comment_words"].split())
        found["comment_words"] = reduce(and_, words, ~Q(comment=""))
    return found


def _of_item(asked: Mapping[str, Any], path: str, item: str) -> list[Q]:
    """Return the conditions on an item, to which `path` leads, and `item` to its key."""
    found = []
    if "q" in asked:
        found.append(_has_in_title(asked["q"], path))
    if "state" in asked:
        found.append(_in_state(asked["state"], item))
    return found


def _has_in_title(asked: str, path: str) -> Q:
    """Return the condition that one title has all the words."""
    return Q(
        *(
            SearchVectorExact(words_of(f"{path}{name}__title"), words_asked(asked))
            for name in ("document", "topic")
        ),
        _connector=Q.OR,
    )


def _in_state(state: str, item: str) -> Q:
    wanted = Slot.objects.filter(item=OuterRef(item), purpose__in=WANTED)
    is_begun = Q(Exists(wanted.filter(state=Slot.State.DONE)))
    is_wanting = Q(Exists(wanted.exclude(state=Slot.State.DONE)))
    is_decided = Q(Exists(Adjudication.objects.in_force().filter(item=OuterRef(item))))
    return {
        "open": ~is_begun & is_wanting,
        "partly": is_begun & is_wanting,
        "complete": is_begun & ~is_wanting,
        "decided": is_decided,
        "stuck": Q(Exists(StuckItem.objects.filter(pk=OuterRef(item)))),
    }[state]


def _all_of(conditions: list[Q]) -> Q | None:
    return reduce(and_, conditions) if conditions else None


def without_texts(rows: QuerySet[Any], path: str = "item__") -> QuerySet[Any]:
    """Return judgments, or items with an empty path, with what lists name beside them, and no long text."""
    heavy = ("document__text", "document__html", "topic__description", "topic__narrative")
    joined = rows.select_related(f"{path}topic", f"{path}document")
    return joined.defer(*(f"{path}{name}" for name in heavy))


def places_of(items: list[Item]) -> dict[uuid.UUID, dict[str, Any]]:
    """Return of each item its places filled and wanted, the grades that stand, in order, and the newest decision."""
    found: dict[uuid.UUID, dict[str, Any]] = {
        item.pk: {"item": item, "filled": 0, "wanted": 0, "grades": [], "decision": None} for item in items
    }
    wanted = Slot.objects.filter(item=OuterRef("pk"), purpose__in=WANTED).order_by().values("item")
    decided = Adjudication.objects.filter(item=OuterRef("pk")).order_by("-id")
    counts = Item.objects.filter(pk__in=found).values_list(
        "pk",
        Subquery(wanted.values(n=Count("pk"))),
        Subquery(wanted.values(n=Count("pk", filter=Q(state=Slot.State.DONE)))),
        Subquery(decided.values("grade")[:1]),
    )
    for pk, n_wanted, n_filled, decision in counts:
        found[pk] |= {"wanted": n_wanted or 0, "filled": n_filled or 0, "decision": decision}
    newest = Judgment.objects.filter(item__in=found).order_by("item_id", "assessor_id", "-sequence")
    counted = newest.distinct("item_id", "assessor_id").values_list("item_id", "grade", "slot__purpose")
    for pk, grade, purpose in counted:
        if grade is not None and purpose not in (None, Slot.Purpose.VOID):
            found[pk]["grades"].append(grade)
    for one in found.values():
        one["grades"].sort()
    return found
