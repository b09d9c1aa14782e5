"""What a claim gives back: items in an assessor's hands."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from judging.kinds import ItemKey, Need, Passage, ShownItem, kind_of


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
    topic_id: str
    doc_id: str
    is_new: bool  # leased by this claim

    @property
    def shown_item(self) -> ShownItem:
        """Return what the campaign's kind gives titles from: all but the document's text."""
        need = Need(self.topic_title, self.topic_description, self.topic_narrative)
        return ShownItem(ItemKey(self.topic_id, self.doc_id), need, Passage(self.document_title, ""))


@dataclass(frozen=True)
class Claim:
    """What an assessor gets: leased items, the one to judge now first, or the reason for none."""

    items: list[LeasedItem]
    reason: str
    n_judged: int
    quota: int | None
    lease_seconds: int
    kind: str  # of judging: its key

    def title_of(self, held: LeasedItem) -> str:
        """Return what stands above the item's texts."""
        return kind_of(self.kind).title(held.shown_item)

    @property
    def item(self) -> LeasedItem | None:
        return self.items[0] if self.items else None
