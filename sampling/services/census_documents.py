"""Which documents count for a run or a pair: what is judged of them, and what has gold."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from django.db import connection

from judging.kinds import ITEM_COLUMNS
from judging.models import Campaign, Run
from judging.rankings import read_rankings, top
from sampling.frames import ASKED_AT_ONCE
from sampling.measures.families import Measure, run_weights
from sampling.models import Draw
from touchstone.files import local

# As `complete_items_query` knows what is complete.
_COMPLETE = """
SELECT w.topic_id, w.doc_id, s.has_gold, e.most >= 1, s.waits
  FROM unnest(%(topics)s::text[], %(documents)s::text[]) w (topic_id, doc_id)
  JOIN judging_topic t ON t.collection_id = %(collection)s AND t.topic_id = w.topic_id
  JOIN judging_document d ON d.collection_id = %(collection)s AND d.doc_id = w.doc_id
  JOIN judging_item i ON i.campaign_id = %(campaign)s AND i.topic_id = t.id AND i.document_id = d.id
 CROSS JOIN LATERAL (
       SELECT count(*) FILTER (WHERE purpose IN ('judge', 'check') AND state = 'done') AS n_done,
              count(*) FILTER (WHERE purpose = 'audit' AND state = 'done') > 0 AS has_gold,
              count(*) FILTER (WHERE purpose = 'audit' AND state <> 'done') > 0 AS waits
         FROM judging_slot WHERE item_id = i.id) s
 CROSS JOIN LATERAL (SELECT max(inclusion_probability) AS most FROM sampling_drawentry WHERE item_id = i.id) e
 WHERE e.most IS NOT NULL AND s.n_done >= coalesce(i.judgments_wanted, %(fewest)s)
"""
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
    complete: dict[tuple[str, str], _DocumentFacts] = {}
    for start in range(0, len(weighed), ASKED_AT_ONCE):
        complete |= _complete_among(campaign, weighed[start : start + ASKED_AT_ONCE])
    judged = [pair for pair in weighed if pair in complete]
    lacking = tuple(pair for pair in judged if not complete[pair].has_gold)
    return CensusDocuments(
        lacking=lacking,
        n_weighed=len(weighed),
        n_unjudged=len(weighed) - len(judged),
        n_uncertain=sum(not complete[pair].is_certain for pair in judged),
        n_awaited=sum(complete[pair].waits for pair in lacking),
    )


class _DocumentFacts(NamedTuple):
    """Whether a completely judged item has gold, was drawn for certain by some batch, and waits for gold."""

    has_gold: bool
    is_certain: bool
    waits: bool


def _complete_among(
    campaign: Campaign, pairs: list[tuple[str, str]]
) -> dict[tuple[str, str], _DocumentFacts]:
    """Return those of the pairs that are completely judged: each is looked up, whatever else the campaign holds."""
    topics, documents = zip(*pairs, strict=True)
    keys: dict[str, Any] = {"topics": list(topics), "documents": list(documents), "campaign": campaign.pk}
    keys |= {"collection": campaign.collection_id, "fewest": campaign.judgments_per_item}
    with connection.cursor() as cursor:
        cursor.execute(_COMPLETE, keys)
        return {(topic, document): _DocumentFacts(*known) for topic, document, *known in cursor.fetchall()}


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
