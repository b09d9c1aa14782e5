"""A campaign as arrays, with the probabilities of its items by its draws and judgments so far."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from analytics.numbers.arrays import Arrays, Floats, Ints, shares
from judging.models import Assessor, Run
from sampling.draws import permanent_random_numbers
from sampling.frames import pooled_runs, returned_in_frame
from sampling.measures.sparse import SparseRuns
from sampling.models import Draw


@dataclass(frozen=True, eq=False, kw_only=True)
class CampaignArrays(Arrays):
    """A campaign of the database as arrays. Labels and checks stand in the order of their judgments' ids."""

    draw: Draw
    runs: list[Run]
    assessors: list[Assessor]
    label_time: Floats  # [label], when it was given, in seconds since 1970
    label_judgment: Ints  # [label], the judgment's id
    n_fitted_audits: int  # complete audits of the gold tier that they learn from
    n_fitted_expected: float  # judged items that these were to select
    check_assessor: Ints  # [check]
    check_true: Ints
    check_given: Ints
    check_time: Floats
    check_judgment: Ints  # the judgment's id
    silver_label_item: Ints  # [silver label], places in judged: what the silver tier said in its audits
    silver_label_assessor: Ints
    silver_label_grade: Ints
    silver_probability: Floats  # [judged], of the complete silver audits; 0 where not eligible
    n_audits: int  # of any tier, complete or not
    n_judgments: int

    @property
    def run_ids(self) -> list[str]:
        """Return the tags of the runs, in their order."""
        return [run.run_id for run in self.runs]

    @property
    def n_assessors(self) -> int:
        """Return how many assessors there are."""
        return len(self.assessors)

    @property
    def has_random_order(self) -> bool:
        """Return whether what is judged first is left to chance."""
        return bool(self.draw.campaign.has_random_order)

    @cached_property
    def ranks_of_pool(self) -> SparseRuns:
        """Return the ranks [pooled run, frame] of the runs that the draw has pooled, set aside since or not.

        A run that came after the draw must not move the numbers of the others, nor may one that is set aside.
        """
        place = {run.pk: index for index, run in enumerate(self.runs)}
        pooled, returned = pooled_runs(self.draw), self.returned
        gone = [run for run in pooled if run.pk not in place]
        if gone:
            place |= {run.pk: len(self.runs) + index for index, run in enumerate(gone)}
            returned = returned.followed_by(
                returned_in_frame(self.frame, gone, self.draw.parameters["depth"])
            )
        return returned.rows([place[run.pk] for run in pooled])


def first_drawn(draw: Draw, frame: pl.DataFrame) -> Floats:
    """Return [batch, item] the probability that this batch is the first to draw the item.

    Batches of one seed are nested: together they draw with the largest of their probabilities. Batches drawn with
    replacement are independent.
    """
    own = frame.select(f"batch_{batch}" for batch in range(1, draw.batch + 1)).to_numpy().T
    independent = draw.selection_kind.with_replacement
    together = 1 - np.cumprod(1 - own, axis=0) if independent else np.maximum.accumulate(own, axis=0)
    return np.asarray(np.diff(together, axis=0, prepend=0.0))


def out_of_turn(draw: Draw, frame: pl.DataFrame, topic_index: Ints, shown: Ints, members: Ints) -> Ints:
    """Return those items, shown as checks before a batch drew them, that do not count among the members yet.

    A batch is judged in random order, but what had been a check is ahead. It counts when its turn comes: once so large
    a part of what the batch drew of its topic is among the members as the item's own random number says.
    """
    drawn_in = frame["drawn_in"].to_numpy().astype(np.int64)
    others = np.setdiff1d(members, shown)
    n_others = np.zeros((draw.batch, int(topic_index.max()) + 1), dtype=np.int64)
    rest = np.setdiff1d(np.flatnonzero(drawn_in), shown)
    np.add.at(n_others, (drawn_in[rest] - 1, topic_index[rest]), 1)
    share = shares(drawn_in[others] - 1, topic_index[others], n_others)
    pairs = frame[shown]
    numbers = permanent_random_numbers(pairs["topic_id"], pairs["doc_id"], draw.seed, purpose="order")
    return shown[numbers >= share[drawn_in[shown] - 1, topic_index[shown]]]
