"""The judgments of a campaign that filled a slot, as columns in the order of their ids; and which of them are new.

New is what stands above a watermark: see touchstone/watermark.py. Inside one moment of the database very many are read
piece by piece: as one value they would fill the memory of the server's process and of ours with their packed bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics.frames.facts import Items
from analytics.frames.rows import fetch_row, fetch_rows, seconds
from judging.models import Campaign
from touchstone.watermark import Watermark, last_id

# An answer on a check that a manager had made again by others is still one, but no label of an item drawn later.
JUDGE, CHECK, AUDIT, SILVER, VOID, FORMER_CHECK = range(6)
PURPOSE = """CASE s.purpose WHEN 'check' THEN 1 WHEN 'audit' THEN 2 WHEN 'silver' THEN 3
           WHEN 'void' THEN CASE s.was WHEN 'check' THEN 5 ELSE 4 END ELSE 0 END"""
COLUMNS = {
    "id": ("i8", "j.id"),
    "item": ("uuid", "j.item_id"),
    "assessor": ("i8", "j.assessor_id"),
    "sequence": ("i2", "j.sequence"),
    "grade": ("i2", "j.grade"),
    "purpose": ("i2", PURPOSE),
    "time": ("time", "j.created_at"),
}
# Most slots want an ordinary judgment: only the others are looked for.
EVERYTHING = """
judging_judgment j
  LEFT JOIN (SELECT id, purpose, was FROM judging_slot WHERE campaign_id = %(campaign)s AND purpose <> 'judge') s
         ON s.id = j.slot_id
 WHERE j.slot_id IS NOT NULL AND j.assessor_id IN (SELECT id FROM judging_assessor WHERE campaign_id = %(campaign)s)
"""
# The same by ids. What slots are for is read once, not for every piece.
PIECE = """
judging_judgment j
 WHERE j.slot_id IS NOT NULL AND j.id > %(above)s AND j.id <= %(until)s
   AND j.assessor_id IN (SELECT id FROM judging_assessor WHERE campaign_id = %(campaign)s)
"""
SLOTS = "judging_slot s WHERE s.campaign_id = %(campaign)s AND s.purpose <> 'judge'"
# An index knows the oldest and the newest judgment of each assessor.
ENDS = """
SELECT coalesce(min(e.first), 0), coalesce(max(e.last), 0), current_setting('transaction_isolation')
  FROM judging_assessor a, LATERAL (
       SELECT (SELECT id FROM judging_judgment WHERE assessor_id = a.id ORDER BY id LIMIT 1) AS first,
              (SELECT id FROM judging_judgment WHERE assessor_id = a.id ORDER BY id DESC LIMIT 1) AS last) e
 WHERE a.campaign_id = %(campaign)s
"""
# All judgments of the items that have a new one: it may replace an older one, or have set its slot aside.
TOUCHED = """
(SELECT DISTINCT n.item_id FROM judging_judgment n
  WHERE n.id > %(after)s AND n.assessor_id IN (SELECT id FROM judging_assessor WHERE campaign_id = %(campaign)s)) t
  JOIN judging_judgment j ON j.item_id = t.item_id JOIN judging_slot s ON s.id = j.slot_id
"""
TABLE = "judging_judgment"
IDS_A_PIECE = 500_000


@dataclass(frozen=True)
class Log:
    """Judgments that filled a slot, void ones too, in the order of their ids."""

    id: NDArray[np.int64]
    item: NDArray[np.int32]  # codes
    assessor: NDArray[np.int32]  # places among all assessors of the campaign, in the order of their keys
    sequence: NDArray[np.int16]
    grade: NDArray[np.int16]
    purpose: NDArray[np.int16]
    time: NDArray[np.float64]  # seconds since 1970

    def part(self, chosen: NDArray[Any]) -> "Log":
        return Log(*(getattr(self, field.name)[chosen] for field in fields(Log)))

    def merge(self, other: "Log") -> "Log":
        """Return the log with the other's judgments. Of those that are known only the purpose can have changed."""
        if other.id.size == 0:
            return self
        place = np.minimum(np.searchsorted(self.id, other.id), max(self.id.size - 1, 0))
        is_known = self.id[place] == other.id if self.id.size else np.zeros(other.id.size, dtype=bool)
        new = other.part(np.flatnonzero(~is_known))
        both = {f.name: np.concatenate([getattr(self, f.name), getattr(new, f.name)]) for f in fields(Log)}
        both["purpose"][place[is_known]] = other.purpose[is_known]
        return Log(**both).by_id()

    def by_id(self) -> "Log":
        """Return the log in the order of its ids."""
        if (self.id[1:] > self.id[:-1]).all():
            return self
        return self.part(np.argsort(self.id, kind="stable"))

    def newest(self) -> "Log":
        """Return the log without judgments that their assessor revised."""
        revised = np.flatnonzero(self.sequence > 1)
        if revised.size == 0:
            return self
        has_revision = np.zeros(int(self.item.max()) + 1, dtype=bool)
        has_revision[self.item[revised]] = True
        rows = np.flatnonzero(has_revision[self.item])
        order = np.lexsort((self.sequence[rows], self.assessor[rows], self.item[rows]))
        rows = rows[order]
        is_last = np.ones(rows.size, dtype=bool)
        is_last[:-1] = (self.item[rows[1:]] != self.item[rows[:-1]]) | (
            self.assessor[rows[1:]] != self.assessor[rows[:-1]]
        )
        stays = np.ones(self.id.size, dtype=bool)
        stays[rows[~is_last]] = False
        return self.part(np.flatnonzero(stays))


def read_log(
    campaign: Campaign, items: Items, assessors: NDArray[np.int64], after: int | None = None
) -> tuple[Log, bool]:
    """Return all judgments, or those of the items that have a judgment after the given id; and whether that is all.

    It is not if items or assessors have come that are not among the given ones: their judgments are left out.
    """
    keys = {"campaign": campaign.pk, "after": after or 0}
    if after is None:
        first, last, isolation = fetch_row(ENDS, keys)
        # Statements that see different moments would not fit together.
        if last - first >= IDS_A_PIECE and isolation == "repeatable read":
            return _read_pieces(keys, items, assessors, first - 1, last)
    rows = fetch_rows(COLUMNS, EVERYTHING if after is None else TOUCHED, keys)
    log, is_all = _log(rows, rows["purpose"], items, assessors)
    return log.by_id(), is_all


def _read_pieces(
    keys: Mapping[str, Any], items: Items, assessors: NDArray[np.int64], above: int, last: int
) -> tuple[Log, bool]:
    """Return the judgments with these ids, `above` not included; and whether all items and assessors are known."""
    slots = fetch_rows({"id": ("i8", "s.id"), "purpose": ("i2", PURPOSE)}, SLOTS, keys)
    slots = slots[np.argsort(slots["id"], kind="stable")]
    special, purposes = slots["id"].astype(np.int64), slots["purpose"].astype(np.int16)
    columns = {name: kind for name, kind in COLUMNS.items() if name != "purpose"} | {
        "slot": ("i8", "j.slot_id")
    }
    found = []
    for start in range(above, last, IDS_A_PIECE):
        until = min(start + IDS_A_PIECE, last)
        rows = fetch_rows(columns, PIECE, {**keys, "above": start, "until": until})
        slot = rows["slot"].astype(np.int64)
        place = np.minimum(np.searchsorted(special, slot), max(special.size - 1, 0))
        is_special = special[place] == slot if special.size else np.zeros(slot.size, dtype=bool)
        purpose = np.full(slot.size, JUDGE, dtype=np.int16)
        purpose[is_special] = purposes[place[is_special]]
        piece, is_all = _log(rows, purpose, items, assessors)
        found.append((piece.by_id(), is_all))
    pieces = [piece for piece, _ in found]
    log = Log(*(np.concatenate([getattr(piece, field.name) for piece in pieces]) for field in fields(Log)))
    return log, all(is_all for _, is_all in found)


def _log(
    rows: NDArray[Any], purpose: NDArray[Any], items: Items, assessors: NDArray[np.int64]
) -> tuple[Log, bool]:
    """Return the rows whose item and assessor are known, in their order; and whether these are all."""
    item = items.codes(rows["item_high"], rows["item_low"])
    key = rows["assessor"].astype(np.int64)
    assessor = np.searchsorted(assessors, key)
    is_known = (item >= 0) & (assessor < assessors.size)
    is_known[is_known] = assessors[assessor[is_known]] == key[is_known]
    log = Log(
        id=rows["id"].astype(np.int64),
        item=item,
        assessor=assessor.astype(np.int32),
        sequence=rows["sequence"].astype(np.int16),
        grade=rows["grade"].astype(np.int16),
        purpose=purpose.astype(np.int16),
        time=seconds(rows["time"]),
    )
    is_all = bool(is_known.all())
    return (log if is_all else log.part(np.flatnonzero(is_known))), is_all


def is_still_true(log: Log, watermark: Watermark) -> bool:
    """Return whether ids have not been given out anew, and the log's last judgment is still the one of its id."""
    if last_id(TABLE) < watermark.last_id:
        return False
    if log.id.size == 0:
        return True
    last = {"last": int(log.id[-1])}
    rows = fetch_rows({"time": COLUMNS["time"]}, "judging_judgment j WHERE j.id = %(last)s", last)
    return rows.size == 1 and bool(seconds(rows["time"])[0] == log.time[-1])
