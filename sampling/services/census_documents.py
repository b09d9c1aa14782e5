"""Which documents count for a run or a pair: what is judged of them, and what has gold."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from django.db.models import Exists, OuterRef, Q

from judging.kinds import ITEM_COLUMNS
from judging.models import Campaign, Run, Slot
from judging.rankings import read_rankings, top
from sampling.frames import ASKED_AT_ONCE
from sampling.measures.families import Measure, run_weights
from sampling.models import Draw, DrawEntry
from sampling.services.auditing import complete_items_query
from touchstone.files import local

Documents = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class CensusDocuments:
    """The documents that count for a run or a pair, as pairs (topic, document) in this order.

    `lacking` are completely judged and have no gold label: those that a census asks for; `n_awaited` of them wait for
    one already. `n_weighed` is all that count, `n_unjudged` of these are not completely judged, or could not be;
    `n_uncertain` are, and their draw was not certain.
    """

    lacking: Documents
    n_weighed: int
    n_unjudged: int
    n_uncertain: int
    n_awaited: int

    @property
    def is_whole(self) -> bool:
        """Return whether all that counts is judged and was certain to be: gold then leaves no error of the draw."""
        return self.n_unjudged == 0 and self.n_uncertain == 0


def census_documents(
    campaign: Campaign, newest: Draw, measure: Measure[Any], run: Run, against: Run | None
) -> CensusDocuments:
    """Return the documents with a weight in the measure, of a run or of the difference of two.

    It reads the tops of the runs and their items, and no frame. `measure` is a sum over documents.
    """
    weighed = _weighed_pairs(newest, measure, [run] if against is None else [run, against])
    complete: dict[tuple[str, str], tuple[bool, bool, bool]] = {}
    documents = sorted({document for _, document in weighed})
    audits = Slot.objects.filter(item=OuterRef("pk"), purpose=Slot.Purpose.AUDIT)
    is_done = Q(state=Slot.State.DONE)
    is_certain = DrawEntry.objects.filter(item=OuterRef("pk"), inclusion_probability__gte=1)
    for start in range(0, len(documents), ASKED_AT_ONCE):
        part = Q(document__doc_id__in=documents[start : start + ASKED_AT_ONCE])
        items = complete_items_query(campaign).filter(part)
        rows = items.annotate(
            has_gold=Exists(audits.filter(is_done)),
            is_certain=Exists(is_certain),
            waits=Exists(audits.exclude(is_done)),
        )
        for topic, document, *known in rows.values_list(
            "topic__topic_id", "document__doc_id", "has_gold", "is_certain", "waits"
        ):
            complete[topic, document] = known[0], known[1], known[2]
    judged = [pair for pair in weighed if pair in complete]
    lacking = tuple(pair for pair in judged if not complete[pair][0])
    return CensusDocuments(
        lacking=lacking,
        n_weighed=len(weighed),
        n_unjudged=len(weighed) - len(judged),
        n_uncertain=sum(not complete[pair][1] for pair in judged),
        n_awaited=sum(complete[pair][2] for pair in lacking),
    )


def _weighed_pairs(newest: Draw, measure: Measure[Any], runs: list[Run]) -> list[tuple[str, str]]:
    """Return (topic, document) of all that has a weight, in this order."""
    topics = newest.parameters["topics"]
    tables = []
    for sign, run in zip((1.0, -1.0), runs, strict=False):
        rows = top(read_rankings(local(run.rankings)), max(1, measure.last_rank))
        rows = rows.filter(pl.col("topic_id").is_in(topics))
        weight = sign * run_weights(measure, rows["rank"].to_numpy().astype(np.int64), len(topics))
        tables.append(rows.select(*ITEM_COLUMNS, pl.Series("weight", weight, dtype=pl.Float64)))
    sums = pl.concat(tables).group_by(ITEM_COLUMNS).agg(pl.col("weight").sum())
    return sums.filter(pl.col("weight") != 0).sort(ITEM_COLUMNS).select(ITEM_COLUMNS).rows()
