"""The judgments and items that filters ask for: what indexes find, and what each row has to be looked at for.

The table of filters is judging/judgment_filters.py. A list reads `rows` in their order and looks at so many of them
for `rest`, never at the whole campaign (touchstone/api/pagination.py); a download looks at all.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from judging.models import Adjudication, Item, Judgment, PlacesLeft, Slot, StuckItem
from judging.services.queries import about_items, items_about, judgments_of

FEW_STUCK = 2000  # more of them are found soon enough among all
WANTED = [Slot.Purpose.JUDGE, Slot.Purpose.CHECK]
# The lookup of a judgment for each filter of judgments that is one condition on its row.
CONDITIONS: dict[str, str] = {
    "grade": "grade",
    "purpose": "slot__purpose",
    "seconds_below": "active_milliseconds__lt",
    "seconds_above": "active_milliseconds__gt",
    "since": "created_at__gte",
    "before": "created_at__lt",
    "tier": "assessor__tier",
    "kind": "assessor__kind",
}


@dataclass(frozen=True)
class FilteredRows:
    """Rows that an index finds, and the conditions each of them has to meet besides; None: no others."""

    rows: QuerySet[Any]
    rest: Q | None
    tie: str = "pk"  # what ends the order of the rows

    def complete(self) -> QuerySet[Any]:
        """Return what meets all conditions, however long it takes."""
        return self.rows if self.rest is None else self.rows.filter(self.rest)


def filtered_judgments(
    campaign_id: uuid.UUID, asked: Mapping[str, Any], assessor: int | None
) -> FilteredRows:
    """Return the campaign's judgments that the filters ask for; `assessor`: whom the filter of that name means."""
    items, rest = _items_and_rest(campaign_id, asked)
    rows = (
        Judgment.objects.filter(assessor=assessor)
        if rest.pop("assessor", None) is not None
        else judgments_of(campaign_id)
    )
    if items is not None:
        rows = about_items(rows, items)
    times = {CONDITIONS[name]: rest.pop(name) for name in ("since", "before") if name in rest}
    rows = rows.filter(**times)  # an index has them in order of time
    return FilteredRows(rows, _all_of([*_of_item(rest, "item__", "item"), *_of_judgment(rest)]))


def filtered_items(campaign_id: uuid.UUID, asked: Mapping[str, Any], assessor: int | None) -> FilteredRows:
    """Return the campaign's items that the filters ask for; those of judgments ask for one judgment that meets all."""
    items, rest = _items_and_rest(campaign_id, asked)
    conditions = _of_item(rest, "", "pk")
    if rest:
        given = Judgment.objects.filter(item=OuterRef("pk"))
        if rest.pop("assessor", None) is not None:
            given = given.filter(assessor=assessor)
        for condition in _of_judgment(rest):
            given = given.filter(condition)
        conditions.append(Q(Exists(given)))
    return FilteredRows(items_about(campaign_id, None, None) if items is None else items, _all_of(conditions))


def _items_and_rest(
    campaign_id: uuid.UUID, asked: Mapping[str, Any]
) -> tuple[QuerySet[Item] | None, dict[str, Any]]:
    """Return the items that an index finds, None if it finds no fewer than all, and what is left to ask.

    `spread` is left out: what computations find of items, analytics/services/digests.py asks for.
    """
    rest = {name: value for name, value in asked.items() if name != "spread"}
    topic_id, doc_id = rest.pop("topic_id", None), rest.pop("doc_id", None)
    is_stuck = rest.get("state") == "stuck" and has_few_stuck(campaign_id)
    if not is_stuck and topic_id is None and doc_id is None:
        return None, rest
    items = items_about(campaign_id, topic_id, doc_id)
    if is_stuck:
        items = items.filter(pk__in=StuckItem.objects.filter(campaign=campaign_id).values("pk"))
        del rest["state"]
    return items, rest


def _of_item(rest: dict[str, Any], path: str, item: str) -> list[Q]:
    """Take what is asked of the item out of `rest`, and return its conditions."""
    found = []
    if "q" in rest:
        found.append(_has_in_title(rest.pop("q"), path))
    if "state" in rest:
        found.append(_in_state(rest.pop("state"), item))
    return found


def _of_judgment(asked: Mapping[str, Any]) -> list[Q]:
    found = [Q(**{path: asked[name]}) for name, path in CONDITIONS.items() if name in asked]
    if "obstacle" in asked:
        given_back = Q(grade__isnull=True)
        found.append(given_back if asked["obstacle"] == "any" else given_back & Q(obstacle=asked["obstacle"]))
    if "comment" in asked:
        found.append(~Q(comment=""))
    return found


def _has_in_title(words: str, path: str) -> Q:
    """Return the condition that one title has all the words."""
    of_document, of_topic = Q(), Q()
    for word in words.split():
        of_document &= Q(**{f"{path}document__title__icontains": word})
        of_topic &= Q(**{f"{path}topic__title__icontains": word})
    return of_document | of_topic


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


def has_few_stuck(campaign_id: uuid.UUID) -> bool:
    """Return whether the stuck items are so few that it is best to begin with them."""
    return PlacesLeft.objects.filter(campaign=campaign_id, n_stuck__lte=FEW_STUCK).exists()


def _all_of(conditions: list[Q]) -> Q | None:
    if not conditions:
        return None
    together = Q()
    for condition in conditions:
        together &= condition
    return together


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
    slots = Slot.objects.filter(item__in=found, purpose__in=WANTED).values_list("item_id", "state")
    for pk, state in slots:
        found[pk]["wanted"] += 1
        found[pk]["filled"] += state == Slot.State.DONE
    newest = Judgment.objects.filter(item__in=found).order_by("item_id", "assessor_id", "-sequence")
    counted = newest.distinct("item_id", "assessor_id").values_list("item_id", "grade", "slot__purpose")
    for pk, grade, purpose in counted:
        if grade is not None and purpose not in (None, Slot.Purpose.VOID):
            found[pk]["grades"].append(grade)
    decisions = Adjudication.objects.filter(item__in=found).order_by("id").values_list("item_id", "grade")
    for pk, grade in decisions:
        found[pk]["decision"] = grade
    for one in found.values():
        one["grades"].sort()
    return found
