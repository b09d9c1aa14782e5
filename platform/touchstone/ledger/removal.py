"""Imports that are taken back: rows on which nothing rests go, and the ledger still verifies."""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.utils import DataError
from psycopg import errors

from judging.models import Collection
from judging.refusal import Refused
from judging.services.deletion import locked_collection
from judging.services.errors import CollectionBusy, CorrectionRefused, NotFound
from touchstone.ledger.rows import columns_of, line_sql
from touchstone.ledger.sealing import SEALING_LOCK
from touchstone.models import Erasure, Event, Seal, User

# By the verb of an import's event: the table of its rows, and which of them are the collection's.
REMOVABLE = {
    "imported documents": ("judging_document", "r.collection_id = %(place)s"),
    "imported topics": ("judging_topic", "r.collection_id = %(place)s"),
    "imported gold answers": (
        "judging_goldanswer",
        "r.topic_id IN (SELECT t.id FROM judging_topic t WHERE t.collection_id = %(place)s)",
    ),
}
ADD_ERASURES = """
INSERT INTO touchstone_erasure ("table", "row", old, new)
SELECT %(table)s, r.id, encode(sha256(convert_to({line}, 'UTF8')), 'hex'), %(removed)s FROM {table} r
 WHERE {mine} AND r.id BETWEEN %(first)s AND %(last)s AND r.id > %(after)s AND r.id <= %(until)s ORDER BY r.id
"""


class ImportInUse(Refused):
    status = 409
    title = "The import cannot be removed: something rests on it"


class ImportNotRemovable(Refused):
    status = 404
    title = "There is no such import, or it was removed already"


def remove_import(*, collection: Collection, import_id: int, why: str, actor: User) -> int:
    """Remove the topics, documents or gold answers of an import on which nothing rests; return how many rows went.

    Parameters
    ----------
    import_id:
        The id of the import's event. Imports by versions that did not write down their rows cannot be removed.
    why:
        The reason, not blank; it stands in the event with the actor.

    Raises
    ------
    ImportInUse
        With a sentence that names what rests on the import.
    ImportNotRemovable
        If the collection has no such import, or it was removed already.
    CollectionBusy
        If somebody holds the collection, an import or a draw, and does not end within the lock timeout.
    """
    if not actor.may_manage:
        raise NotFound
    if not why.strip():
        raise CorrectionRefused("say why the import is removed")
    with locked_collection(collection, actor) as row, refusals_in_words(), connection.cursor() as cursor:
        _vouch_for_event(row.pk, import_id)
        cursor.execute("SELECT touchstone_remove_import(%s, %s, %s)", [import_id, actor.pk, why])
        [n] = cursor.fetchone()
    return int(n)


@contextmanager
def refusals_in_words() -> Iterator[None]:
    """Have what the owner's functions refuse raised as a refusal, and nothing of the block done."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        if isinstance(error.__cause__, errors.RestrictViolation):
            raise ImportInUse(str(error.__cause__.diag.message_primary)) from error
        raise
    except (DataError, OperationalError) as error:
        if isinstance(error.__cause__, errors.LockNotAvailable | errors.DeadlockDetected):
            raise CollectionBusy from error
        raise


def _vouch_for_event(place: uuid.UUID, import_id: int) -> None:
    found = Event.objects.filter(
        pk=import_id, subject=f"collection:{place}", verb__in=REMOVABLE, detail__has_key="rows"
    ).first()
    if found is None:
        raise ImportNotRemovable
    table, mine = REMOVABLE[found.verb]
    first, last = found.detail["rows"]
    if not vouch_for(table, mine, {"place": place, "first": first, "last": last}):
        raise ImportNotRemovable


def vouch_for(table: str, mine: str, span: Mapping[str, Any]) -> bool:
    """Write down what of the rows is sealed, while nothing is sealed: the chain goes on with these hashes.

    `mine` is a condition of a row r, `span` what it names with the first and last id; return whether there is a row.
    """
    keys = {"table": table, "removed": Erasure.REMOVED, **span}
    first, last = span["first"], span["last"]
    types = columns_of(table)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [SEALING_LOCK])
        cursor.execute(
            f"SELECT FROM {table} r WHERE {mine} AND r.id BETWEEN %(first)s AND %(last)s LIMIT 1", keys
        )
        if cursor.fetchone() is None:
            return False
        after = 0
        for seal in Seal.objects.filter(table=table).order_by("up_to_id"):
            if seal.up_to_id >= first and after < last:
                line = line_sql(table, {name: types[name] for name in seal.columns})
                sql = ADD_ERASURES.format(table=table, mine=mine, line=line.replace("%", "%%"))
                cursor.execute(sql, {**keys, "after": after, "until": seal.up_to_id})
            after = seal.up_to_id
    return True
