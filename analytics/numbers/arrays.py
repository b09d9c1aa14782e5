"""A campaign as arrays: what its numbers are computed from, whoever made them.

`analytics.frames` makes them from rows of the database, the library from somebody's files.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from analytics.estimation.group_sequential import Look
from analytics.estimation.samples import Labels
from sampling.measures.sparse import SparseRuns
from sampling.selections import Selection

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class DrawFacts(Protocol):
    """The newest batch of a draw. `parameters`: "depth", the pool's, and "pooled", the runs in it."""

    @property
    def batch(self) -> int: ...
    @property
    def parameters(self) -> Any: ...
    @property
    def selection_kind(self) -> Selection: ...
    @property
    def has_whole_topics(self) -> bool: ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Arrays(ABC):
    """A campaign as arrays. Frame-indexed: every pooled pair. Judged: drawn items with at least one judgment."""

    draw: DrawFacts  # the newest batch: its frame knows of all
    n_topics: int
    n_grades: int
    relevant_grade: int  # the lowest that counts as relevant
    frame: pl.DataFrame
    returned: SparseRuns  # ranks [run, frame], where a run returns the item
    ranks_outside: list[Ints]  # [run], the ranks at which a run returns documents that could not be drawn
    topic_index: Ints  # [frame]
    gold_grade: Ints  # [frame], -1 where no gold answer is known
    judged: Ints  # [judged], places in the frame
    batch: Ints  # [judged], from 0: the first batch that drew the item
    first_probability: Floats  # [batch, frame], the chance that this batch is the first to draw the item
    n_drawn: Ints  # [batch, topic], items that the batch was the first to draw
    n_learned: int  # predictions use the labels of so many batches: sizes of later ones have seen these
    label_item: Ints  # [label], places in judged
    label_assessor: Ints  # [label], places in assessors
    label_grade: Ints  # [label]
    audited: NDArray[np.bool_]  # [judged]
    audit_grade: Ints  # [judged], 0 where not audited
    audit_probability: Floats  # [judged], 0 where not eligible
    fitted_gold: NDArray[np.bool_]  # [judged], audited, and predictions of gold may learn from it
    n_audits_planned: int | None  # items that the schedule of audits will audit in total
    n_audit_pending: int
    order_is_random: bool  # False once judgments were imported, and where judging goes by what it tells
    last_judgment_id: int
    audit_assumption: str = ""  # what numbers assume of gold that was imported; empty where audits were drawn
    looks: tuple[Look, ...] = ()  # declared, up to the newest complete gold audit if that is one of them
    is_by_gold_judges: bool = (
        False  # every judgment that counts is of the gold tier: nothing is left to audit
    )

    @property
    @abstractmethod
    def run_ids(self) -> Sequence[str]:
        """Return the tags of the runs, in their order."""

    @property
    @abstractmethod
    def n_assessors(self) -> int:
        """Return how many assessors there are."""

    @property
    @abstractmethod
    def has_random_order(self) -> bool:
        """Return whether what is judged first is left to chance."""

    @property
    @abstractmethod
    def ranks_of_pool(self) -> SparseRuns:
        """Return the ranks [pooled run, frame] of the runs that the draw has pooled."""

    @property
    def is_foreign(self) -> bool:
        """Return whether the sample was imported: its frame has the pairs of a file, not the pool of the runs."""
        return self.draw.selection_kind.is_foreign

    @property
    def is_complete(self) -> bool:
        """Return whether the judgments were imported as all there is: the frame has the pairs of the file."""
        return self.draw.selection_kind.is_complete

    @property
    def has_whole_topics(self) -> bool:
        """Return whether whole topics were drawn: documents of one topic are then drawn together."""
        return self.draw.has_whole_topics

    @property
    def audited_alone(self) -> NDArray[np.bool_]:
        """Return [judged] what was audited by itself; nothing where a topic's documents are audited together."""
        return np.zeros_like(self.audited) if self.has_whole_topics else self.audited

    @cached_property
    def labels(self) -> Labels:
        """Return the ordinary judgments of the judged items."""
        return Labels(
            self.label_item,
            self.label_assessor,
            self.label_grade,
            n_items=self.judged.size,
            n_assessors=self.n_assessors,
            n_grades=self.n_grades,
            relevant_grade=self.relevant_grade,
        )

    @property
    def inclusion_probability(self) -> Floats:
        """Return per judged item the probability that any batch draws it."""
        return np.asarray(self.first_probability[:, self.judged].sum(axis=0))

    @property
    def ranks(self) -> Ints:
        """Return the ranks as a table [run, frame], 0 where a run does not return the item: for small frames."""
        return self.returned.dense().astype(np.int64)

    def ranks_at(self, places: Ints) -> Ints:
        """Return the ranks [run, place] of some items of the frame, 0 where a run does not return one."""
        column = np.full(self.frame.height, -1, dtype=np.int64)
        column[places] = np.arange(places.size)
        entries = self.returned
        kept = np.flatnonzero(column[entries.item] >= 0)
        ranks = np.zeros((entries.n_runs, places.size), dtype=np.int64)
        ranks[entries.run[kept], column[entries.item[kept]]] = entries.value[kept].astype(np.int64)
        return ranks

    def draw_probability(self, members: NDArray[np.bool_]) -> Floats:
        """Return per judged item the probability that it is among `members`, a mask over the judged items.

        What is judged (or open to an audit) so far is within a topic and batch a simple random part, because the order
        of presentation is random. So the chance is the sum over batches of the chance that the batch is the first to
        draw the item, times the share of the batch's items of the topic that are members. With all drawn items judged
        it is the inclusion probability itself.
        """
        return self._chances(members)[self.judged]

    def _chances(self, members: NDArray[np.bool_]) -> Floats:
        """Return `draw_probability` for every pair of the frame."""
        return np.asarray((self.first_probability * self._share(members)[:, self.topic_index]).sum(axis=0))

    def _share(self, members: NDArray[np.bool_]) -> Floats:
        """Return by batch and topic the share of the drawn items that are members."""
        return shares(self.batch[members], self.topic_index[self.judged][members], self.n_drawn)

    def topics_in_part(self, members: NDArray[np.bool_]) -> int:
        """Return how many topics have some, but not all, of their drawn items among the members."""
        n_members = np.bincount(self.topic_index[self.judged][members], minlength=self.n_topics)
        return int(np.count_nonzero((n_members > 0) & (n_members < self.n_drawn.sum(axis=0))))

    def topics_without(self, members: NDArray[np.bool_]) -> int:
        """Return how many topics have pairs that could be drawn, but as things stand cannot be among the members.

        A topic in which a later batch drew items without a judgment yet keeps the judgments of earlier batches.
        """
        out_of_reach = (self.first_probability > 0).any(axis=0) & (self._chances(members) <= 0)
        return int(np.unique(self.topic_index[out_of_reach]).size)

    def not_covered(self, members: NDArray[np.bool_], what: str) -> tuple[str, int | None] | None:
        """Return why the members do not stand for the whole frame, and how many topics are missing; None if they do."""
        missing = self.topics_without(members)
        if missing:
            return f"{missing} of {self.n_topics} topics have no {what} yet", missing
        partly = self.no_random_part(members)
        return (partly, None) if partly else None

    def no_random_part(self, members: NDArray[np.bool_]) -> str:
        """Return why the members are no random part of what was drawn; empty where they are, or are all of it."""
        n_topics = 0 if self.order_is_random else self.topics_in_part(members)
        if not n_topics:
            return ""
        if self.has_random_order:
            why = "judgments were imported: what a file holds is not a random part"
        else:
            why = "by what they tell: what is judged so far is not a random part"
        return f"{n_topics} topics are judged in part, and {why}"

    def no_audit(self) -> str:
        """Return why there is no corrected number while no audit is complete."""
        waiting = (
            f"; {self.n_audit_pending} selected items wait for the gold tier" if self.n_audit_pending else ""
        )
        return f"no audit is complete yet{waiting}"


def shares(batch: Ints, topic: Ints, n_drawn: Ints) -> Floats:
    """Return by batch and topic the share of the drawn items that some items are, given by their batch and topic.

    Where a batch has drawn nothing of a topic its share over all topics: had it drawn something, about so much of it
    would be among them. 0 would leave the batch out of the probability also when everything is judged. But a topic
    that has drawn items and none of them among these has not been reached: there only a batch that is complete counts.
    """
    cell = np.ravel_multi_index((batch, topic), n_drawn.shape)
    n = np.bincount(cell, minlength=n_drawn.size).reshape(n_drawn.shape).astype(np.float64)
    in_all = n_drawn.sum(axis=1)
    everywhere = np.divide(n.sum(axis=1), in_all, out=np.ones(in_all.shape), where=in_all > 0)[:, None]
    reached = (n.sum(axis=0) > 0) | (n_drawn.sum(axis=0) == 0)
    share = np.where(reached | (everywhere == 1), everywhere, 0.0)
    return np.divide(n, n_drawn, out=share, where=n_drawn > 0)
