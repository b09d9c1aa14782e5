"""What a claim gives back: items in an assessor's hands."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple


class LeasedItem(NamedTuple):
    """An item leased to the assessor, as the screen needs it: a row of the statements that claim."""

    slot_id: int
    item_id: uuid.UUID
    token: uuid.UUID
    lease_until: datetime
    topic_title: str
    topic_description: str
    topic_narrative: str
    document_title: str
    is_new: bool  # leased by this claim


@dataclass(frozen=True)
class Claim:
    """What an assessor gets: leased items, the one to judge now first, or the reason for none."""

    items: list[LeasedItem]
    reason: str
    n_judged: int
    quota: int | None
    lease_seconds: int

    @property
    def item(self) -> LeasedItem | None:
        return self.items[0] if self.items else None
