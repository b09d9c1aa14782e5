"""Imports that are taken back as a whole, or replaced by another one, as long as nothing rests on them."""

import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, QuerySet

from judging.models import Campaign, Import, ImportedName, Judgment, Run, ScoreList, Slot
from judging.services.deletion import locked_collection
from judging.services.errors import CorrectionRefused, NotFound
from judging.services.imports import TOOK_BACK, lock_import
from judging.services.leases import set_aside
from sampling.models import DrawEntry
from touchstone.ledger.removal import REMOVABLE, refusals_in_words, vouch_for
from touchstone.models import User, record

LONGEST_WHY = 2000  # characters
MINE = "r.imported_by_id = %(made)s"
SEALED = tuple(table for table, _ in REMOVABLE.values())
RESTS_ON = "SELECT what, campaign, n FROM touchstone_rests_on(%s)"
TAKE_BACK = "SELECT touchstone_take_back(%s, %s, %s)::text"


@dataclass(frozen=True)
class Rest:
    """So many things of a kind that rest on an import, in a campaign or in none."""

    what: str  # "items", "draws", "releases", ...
    n: int
    campaign: Campaign | None

    @property
    def is_deleted(self) -> bool:
        return self.campaign is not None and self.campaign.deleted_at is not None

    def __str__(self) -> str:
        """Return it in words.

        >>> str(Rest("training items", 2, None))
        'training items (2)'
        """
        words = f"{self.what} ({self.n:,})"
        if self.campaign is None:
            return words
        deleted = ", which is deleted" if self.is_deleted else ""
        return f"{words} of {self.campaign.name}{deleted}"


def what_rests_on(made: Import) -> list[Rest]:
    """Return what rests on a kept import, in campaigns of every state; as long as there is something, it stays."""
    with connection.cursor() as cursor:
        cursor.execute(RESTS_ON, [made.pk])
        rows: list[tuple[str, uuid.UUID | None, int]] = cursor.fetchall()
    campaigns = Campaign.objects.in_bulk([campaign for _, campaign, _ in rows if campaign])
    return [Rest(what, n, campaigns[campaign] if campaign else None) for what, campaign, n in rows]


def take_back(*, made: Import, why: str, actor: User) -> dict[str, int]:
    """Remove what an import brought, and set its judgments aside; return how many rows of each table.

    Parameters
    ----------
    why:
        The reason, not blank; it stands in the events with the actor.

    Raises
    ------
    ImportInUse
        With a sentence that names what rests on the import.
    ImportStateWrong
        If the import is not kept (any more).
    CollectionBusy
        If an import or a draw holds the collection, and does not end within the lock timeout.
    """
    if not actor.may_manage:
        raise NotFound
    if not why.strip() or len(why) > LONGEST_WHY:
        raise CorrectionRefused(f"say why, in 1 to {LONGEST_WHY:,} characters")
    with locked_collection(made.collection, actor), refusals_in_words(), connection.cursor() as cursor:
        row = lock_import(made, Import.State.KEPT)
        spans = spans_of(row)
        for table in SEALED:
            if table in spans:
                first, last = spans[table]
                mine = f"{MINE} AND r.id BETWEEN %(first)s AND %(last)s"
                vouch_for(table, mine, {"made": row.pk, "first": first, "last": last})
        stored = [
            *_stored_paths(Run, "rankings", row, spans),
            *_stored_paths(ScoreList, "scores", row, spans),
        ]
        n_set_aside = _set_judgments_aside(row, spans)
        cursor.execute(TAKE_BACK, [row.pk, actor.pk, why.strip()])
        counts: dict[str, int] = json.loads(cursor.fetchone()[0])
        counts |= {"judging_judgment": n_set_aside} if n_set_aside else {}
        facts = {"import": str(row.pk), "why": why.strip(), "rows": counts}
        record(TOOK_BACK, row.collection, actor=actor, **facts)
        if row.campaign is not None:
            record(TOOK_BACK, row.campaign, actor=actor, **facts)
        transaction.on_commit(lambda: _delete(stored), robust=True)
    return counts


def spans_of(made: Import) -> dict[str, tuple[int, int]]:
    """Return by table between which ids the rows of an import are."""
    found: dict[str, tuple[int, int]] = {}
    for entry in made.files:
        for table, (first, last) in entry.get("rows", {}).items():
            low, high = found.get(table, (first, last))
            found[table] = (min(low, first), max(high, last))
    return found


def _stored_paths(
    model: type[Any], column: str, made: Import, spans: dict[str, tuple[int, int]]
) -> Iterable[str]:
    found: QuerySet[Any] = model._base_manager.filter(imported_by=made)
    return found.filter(pk__range=spans.get(model._meta.db_table, (0, 0))).values_list(column, flat=True)


def _delete(paths: Sequence[str]) -> None:
    for path in paths:
        default_storage.delete(path)


def _set_judgments_aside(made: Import, spans: dict[str, tuple[int, int]]) -> int:
    """Make the places void that the import's judgments filled; those that a draw wanted are open again.

    Between the ids others may have judged meanwhile: the import's are those of assessors that imports made, as one
    import at a time adds to a campaign.
    """
    if "judging_judgment" not in spans or made.campaign is None:
        return 0
    names = ImportedName.objects.filter(assessor=OuterRef("assessor"))
    brought = Judgment.objects.filter(
        Exists(names), pk__range=spans["judging_judgment"], item__campaign=made.campaign, sequence=1
    )
    filled = Slot.objects.filter(pk__in=brought.values("slot")).exclude(purpose=Slot.Purpose.VOID)
    drawn = Exists(DrawEntry.objects.filter(item=OuterRef("item")))
    n = filled.exclude(drawn).update(purpose=Slot.Purpose.VOID)
    return n + set_aside(filled.filter(drawn))
