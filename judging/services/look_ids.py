"""The ids that a look meets: those a file brings, and those that runs and gold name.

In the database they stand in temporary tables, so that memory does not grow with the files; without one, in sets.
"""

import heapq
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from django.db import connection

from judging.models import Collection

SHOWN = 5  # ids that are named; the statements below say so too
BATCH = 20_000
MOST_REMEMBERED = 200_000  # ids of which it is remembered whether the collection has them
TOPICS, DOCUMENTS = "topics", "documents"


@dataclass(frozen=True)
class Some:
    """So many ids, and the first of them."""

    n: int = 0
    first: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {"n": self.n, "first": list(self.first)}


@dataclass(frozen=True)
class Repeat:
    """The first id that a file brings although it, the collection or an earlier file has it, and how many there are."""

    doc_id: str
    ordinal: int
    n: int


class Ids(Protocol):
    """What a look is told of ids, and asks."""

    def brings(self, part: int, what: str, ids: Iterable[str], first_ordinal: int) -> None:
        """A part has these, the first of them as its record of that ordinal."""

    def needs(self, part: int, what: str, ids: Iterable[str]) -> None:
        """A part names these."""

    def needs_all(self, part: int, what: str, ids: list[str]) -> None:
        """A part names these and no others, each once."""

    def only_named(self) -> None:
        """No part will bring anything: what a part needs can be settled when it is told."""

    def there(self, part: int, what: str) -> Some:
        """Return which the part brings and the collection has."""

    def known_name(self, kind: str, name: str) -> Some:
        """Return the name of a run or of scores if the collection has it."""

    def twice(self, part: int, what: str) -> Repeat | None:
        """Return which the part brings for the second time."""

    def lacking(self, part: int, what: str) -> Some:
        """Return which the part names and neither the collection nor another part has."""


# -- without a database ---------------------------------------------------------------------------------------


@dataclass
class IdsInMemory:
    """For a new collection: nothing is there."""

    brought: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)
    repeated: dict[tuple[int, str], list[tuple[int, str]]] = field(default_factory=dict)
    needed: dict[tuple[int, str], dict[str, None]] = field(default_factory=dict)

    def brings(self, part: int, what: str, ids: Iterable[str], first_ordinal: int) -> None:
        known = self.brought.setdefault(what, {})
        for ordinal, one in enumerate(ids, first_ordinal):
            if one in known:
                self.repeated.setdefault((part, what), []).append((ordinal, one))
            else:
                known[one] = part, ordinal

    def needs(self, part: int, what: str, ids: Iterable[str]) -> None:
        self.needed.setdefault((part, what), {}).update(dict.fromkeys(ids))

    def needs_all(self, part: int, what: str, ids: list[str]) -> None:
        self.needs(part, what, ids)

    def only_named(self) -> None:
        pass

    def there(self, part: int, what: str) -> Some:
        return Some()

    def known_name(self, kind: str, name: str) -> Some:
        return Some()

    def twice(self, part: int, what: str) -> Repeat | None:
        found = self.repeated.get((part, what))
        return Repeat(found[0][1], found[0][0], len(found)) if found else None

    def lacking(self, part: int, what: str) -> Some:
        known = self.brought.get(what, {})
        found = sorted(one for one in self.needed.get((part, what), {}) if one not in known)
        return Some(len(found), tuple(found[:SHOWN]))


# -- with one -------------------------------------------------------------------------------------------------

TABLES = """
CREATE TEMPORARY TABLE look_brought (part integer, what text, id text, ordinal bigint) ON COMMIT DROP;
CREATE TEMPORARY TABLE look_needed (part integer, what text, id text) ON COMMIT DROP;
"""
COLUMNS = {
    TOPICS: ("judging_topic", "topic_id"),
    DOCUMENTS: ("judging_document", "doc_id"),
}
# Of runs there are thousands at a time: one value is sent, and not a row each.
ADD_NEEDED = "INSERT INTO look_needed SELECT %s, %s, jsonb_array_elements_text(%s::jsonb)"
THERE = """
SELECT count(*), (array_agg(id ORDER BY ordinal))[1:5] FROM look_brought b
 WHERE part = %(part)s AND what = %(what)s
   AND EXISTS (SELECT 1 FROM {table} k WHERE k.collection_id = %(collection)s AND k.{column} = b.id)
"""
TWICE = """
SELECT count(*) OVER (), ordinal, id FROM (
  SELECT part, ordinal, id, row_number() OVER (PARTITION BY id ORDER BY part, ordinal) AS turn
    FROM look_brought WHERE what = %(what)s) b
 WHERE turn > 1 AND part = %(part)s ORDER BY ordinal LIMIT 1
"""
# All parts at once: there may be thousands of runs, and each would read the whole table.
LACKING = """
SELECT part, count(*), array_agg(id ORDER BY id) FILTER (WHERE turn <= 5) FROM (
  SELECT part, id, row_number() OVER (PARTITION BY part ORDER BY id) AS turn FROM (
    SELECT DISTINCT part, id FROM look_needed n WHERE what = %(what)s
       AND NOT EXISTS (SELECT 1 FROM {table} k WHERE k.collection_id = %(collection)s AND k.{column} = n.id)
       AND NOT EXISTS (SELECT 1 FROM look_brought b WHERE b.what = %(what)s AND b.id = n.id)) l) m
 GROUP BY part
"""
HAS_ANY = "SELECT EXISTS (SELECT 1 FROM {table} WHERE collection_id = %(collection)s)"
NOT_THERE = """
SELECT id FROM jsonb_array_elements_text(%(ids)s::jsonb) n (id)
 WHERE NOT EXISTS (SELECT 1 FROM {table} k WHERE k.collection_id = %(collection)s AND k.{column} = n.id)
"""


class IdsInDatabase:
    """For a collection that may have ids already. The caller is in a transaction."""

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self._brought: list[tuple[int, str, str, int]] = []
        self._needed: dict[tuple[int, str], list[str]] = {}
        self._n_needed = 0
        self._settled: dict[tuple[int, str], Some] = {}
        self._lacking: dict[str, dict[int, Some]] = {}
        self._names: dict[str, set[str]] = {}
        self._has_any: dict[str, bool] = {}
        self._is_there: dict[str, dict[str, bool]] = {TOPICS: {}, DOCUMENTS: {}}
        self._brings_nothing = False
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS pg_temp.look_brought, pg_temp.look_needed")
            cursor.execute(TABLES)
        self._is_analysed = False

    def brings(self, part: int, what: str, ids: Iterable[str], first_ordinal: int) -> None:
        self._lacking = {}
        for ordinal, one in enumerate(ids, first_ordinal):
            self._brought.append((part, what, one, ordinal))
            if len(self._brought) >= BATCH:
                self._flush_brought()

    def needs(self, part: int, what: str, ids: Iterable[str]) -> None:
        self._lacking = {}
        waiting = self._needed.setdefault((part, what), [])
        n_before = len(waiting)
        waiting.extend(ids)
        self._n_needed += len(waiting) - n_before
        if self._n_needed >= BATCH:
            self._flush_needed()

    def only_named(self) -> None:
        self._brings_nothing = True

    def needs_all(self, part: int, what: str, ids: list[str]) -> None:
        if not self._brings_nothing:
            self.needs(part, what, ids)
            return
        lacking = self._not_there(what, ids)
        self._settled[part, what] = Some(len(lacking), tuple(heapq.nsmallest(SHOWN, lacking)))

    def there(self, part: int, what: str) -> Some:
        rows = self._rows(THERE, what, part=part)
        return Some(rows[0][0], tuple(rows[0][1] or ()))

    def known_name(self, kind: str, name: str) -> Some:
        if kind not in self._names:
            runs, scores = self.collection.runs, self.collection.score_lists
            names = (
                runs.values_list("run_id", flat=True)
                if kind == "runs"
                else scores.values_list("name", flat=True)
            )
            self._names[kind] = set(names)
        return Some(1, (name,)) if name in self._names[kind] else Some()

    def twice(self, part: int, what: str) -> Repeat | None:
        rows = self._rows(TWICE, what, part=part)
        return Repeat(rows[0][2], rows[0][1], rows[0][0]) if rows else None

    def lacking(self, part: int, what: str) -> Some:
        if (part, what) in self._settled:
            return self._settled[part, what]
        if what not in self._lacking:
            rows = self._rows(LACKING, what)
            self._lacking[what] = {number: Some(n, tuple(first)) for number, n, first in rows}
        return self._lacking[what].get(part, Some())

    def _not_there(self, what: str, ids: list[str]) -> list[str]:
        """Return which of these the collection lacks; each is asked for once."""
        if what not in self._has_any:
            self._has_any[what] = self._answers(HAS_ANY, what)[0][0]
        if not self._has_any[what]:
            return ids
        known = self._is_there[what]
        if unknown := [one for one in ids if one not in known]:
            absent = {row[0] for row in self._answers(NOT_THERE, what, ids=json.dumps(unknown))}
            if len(known) + len(unknown) > MOST_REMEMBERED:
                known = self._is_there[what] = {one: known[one] for one in ids if one in known}
            known.update((one, one not in absent) for one in unknown)
        return [one for one in ids if not known[one]]

    def _rows(self, sql: str, what: str, **named: Any) -> list[Any]:
        """Return the rows of a question about what is in the tables."""
        self._flush_brought()
        self._flush_needed()
        if not self._is_analysed:
            with connection.cursor() as cursor:
                cursor.execute("ANALYZE look_brought, look_needed")
            self._is_analysed = True
        return self._answers(sql, what, **named)

    def _answers(self, sql: str, what: str, **named: Any) -> list[Any]:
        table, column = COLUMNS[what]
        with connection.cursor() as cursor:
            named |= {"what": what, "collection": self.collection.pk}
            cursor.execute(sql.format(table=table, column=column), named)
            return list(cursor.fetchall())

    def _flush_brought(self) -> None:
        rows, self._brought = self._brought, []
        if not rows:
            return
        self._is_analysed = False
        with connection.cursor() as cursor, cursor.copy("COPY look_brought FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

    def _flush_needed(self) -> None:
        waiting, self._needed, self._n_needed = self._needed, {}, 0
        for (part, what), ids in waiting.items():
            self._is_analysed = False
            with connection.cursor() as cursor:
                cursor.execute(ADD_NEEDED, [part, what, json.dumps(ids)])


def most_common(grades: "Counter[int]") -> list[dict[str, int]]:
    """Return each grade with how often it occurs, from the least."""
    return [{"grade": grade, "n": n} for grade, n in sorted(grades.items())]
