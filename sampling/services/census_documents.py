"""Which documents count for a run or a pair: what is judged of them, and what has gold."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
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

# What counts is either known as an item, by its place in the question, or is looked for by topic and document.
# An item is complete as `complete_items_query` knows it.
_ITEMS = """
WITH wanted AS (
  SELECT w.place, i.id, e.most >= 1 AS is_certain, e.is_settled
    FROM unnest(%(others)s::int[], %(topics)s::text[], %(documents)s::text[]) w (place, topic_id, doc_id)
    JOIN judging_topic t ON t.collection_id = %(collection)s AND t.topic_id = w.topic_id
    JOIN judging_document d ON d.collection_id = %(collection)s AND d.doc_id = w.doc_id
    JOIN judging_item i ON i.campaign_id = %(campaign)s AND i.topic_id = t.id AND i.document_id = d.id
   CROSS JOIN LATERAL (
         SELECT max(inclusion_probability) AS most, bool_or(draw_id = %(newest)s) AS is_settled
           FROM sampling_drawentry WHERE item_id = i.id) e
   WHERE e.most IS NOT NULL
), of_both AS (
  SELECT place, id, NULL AS new_id, NULL::bool AS is_certain
    FROM unnest(%(places)s::int[], %(ids)s::uuid[]) k (place, id)
  UNION ALL
  SELECT place, id, CASE WHEN is_settled THEN id::text END, is_certain FROM wanted
)
SELECT b.place, b.new_id, b.is_certain,
       s.n_done >= coalesce((SELECT judgments_wanted FROM judging_item WHERE id = b.id), %(fewest)s),
       s.has_gold, s.waits
  FROM of_both b
 CROSS JOIN LATERAL (
       SELECT count(*) FILTER (WHERE purpose IN ('judge', 'check') AND state = 'done') AS n_done,
              count(*) FILTER (WHERE purpose = 'audit' AND state = 'done') > 0 AS has_gold,
              count(*) FILTER (WHERE purpose = 'audit' AND state <> 'done') > 0 AS waits
         FROM judging_slot WHERE item_id = b.id) s
"""
KEPT = 8  # questions
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
    question = _question(newest, measure, [run] if against is None else [run, against])
    weighed = question.pairs
    complete: dict[int, _DocumentFacts] = {}
    for start in range(0, len(weighed), ASKED_AT_ONCE):
        complete |= _complete_among(
            campaign, question, range(start, min(start + ASKED_AT_ONCE, len(weighed)))
        )
    judged = sorted(complete)
    lacking = [place for place in judged if not complete[place].has_gold]
    return CensusDocuments(
        lacking=tuple(weighed[place] for place in lacking),
        n_weighed=len(weighed),
        n_unjudged=len(weighed) - len(judged),
        n_uncertain=sum(not complete[place].is_certain for place in judged),
        n_awaited=sum(complete[place].waits for place in lacking),
    )


class _DocumentFacts(NamedTuple):
    """Whether a completely judged item has gold, was drawn for certain by some batch, and waits for gold."""

    has_gold: bool
    is_certain: bool
    waits: bool


@dataclass
class _Question:
    """What has a weight, and what never changes of it: its item, and whether it was certain to be drawn.

    That is settled once the newest draw has laid the item out, which it does topic by topic; no draw is made before
    its predecessor is laid out. What is not settled is looked up again.
    """

    newest: Draw
    pairs: list[tuple[str, str]]
    items: dict[int, tuple[str, bool]] = field(default_factory=dict)


_kept: OrderedDict[tuple[Any, ...], _Question] = OrderedDict()
_guard = threading.Lock()


def _question(newest: Draw, measure: Measure[Any], runs: list[Run]) -> _Question:
    """Return the question, kept if it is of a usual size: another price or difference asks it again."""
    key = (newest.pk, measure.name, *(run.pk for run in runs))
    with _guard:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key]
    made = _Question(newest, _weighed_pairs(newest, measure, runs))
    if len(made.pairs) <= ASKED_AT_ONCE:
        with _guard:
            made = _kept.setdefault(key, made)
            while len(_kept) > KEPT:
                _kept.popitem(last=False)
    return made


def _complete_among(
    campaign: Campaign, question: _Question, places: Sequence[int]
) -> dict[int, _DocumentFacts]:
    """Return those of these pairs that are completely judged: each is looked up, whatever else the campaign holds."""
    items = question.items
    known = [place for place in places if place in items]
    others = [(place, *question.pairs[place]) for place in places if place not in items]
    keys: dict[str, Any] = {
        # As one text each: a value by itself is written with more care than thousands of them deserve.
        "places": f"{{{','.join(map(str, known))}}}",
        "ids": f"{{{','.join(items[place][0] for place in known)}}}",
        "others": [place for place, _, _ in others],
        "topics": [topic for _, topic, _ in others],
        "documents": [document for _, _, document in others],
        "newest": question.newest.pk,
        "campaign": campaign.pk,
        "collection": campaign.collection_id,
        "fewest": campaign.judgments_per_item,
    }
    with connection.cursor() as cursor:
        cursor.execute(_ITEMS, keys)
        rows = cursor.fetchall()
    certain = {row[0]: row[2] for row in rows if row[2] is not None}
    certain |= {place: items[place][1] for place in known}
    if not connection.in_atomic_block:  # an item that is not committed may never be
        question.items = items | {row[0]: (row[1], row[2]) for row in rows if row[1] is not None}
    return {
        place: _DocumentFacts(has_gold, certain[place], waits)
        for place, _, _, is_complete, has_gold, waits in rows
        if is_complete
    }


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
