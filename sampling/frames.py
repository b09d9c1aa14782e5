"""Rows and ranking files to arrays for sampling: the pool of a campaign's runs, and the recorded frame of its draw."""

import hashlib
import io
import uuid
from collections import Counter
from collections.abc import Sequence
from operator import attrgetter

import numpy as np
import polars as pl
from django.db import connection
from django.db.models import Q

from judging.kinds import ITEM_COLUMNS
from judging.models import Campaign, Collection, Run
from judging.rankings import Rankings, read_rankings
from judging.refusal import Refused
from sampling.measures.families import FloatArray
from sampling.measures.sparse import SparseRuns
from sampling.models import Draw, DrawEntry
from sampling.pooling import Pool, pool_of_rankings, ranks_in_pairs
from sampling.selections import SELECTIONS
from touchstone.files import FileDamaged, local

ASKED_AT_ONCE = 20_000  # documents in one query


class FrameRefused(Refused):
    """The pool cannot be judged, for a reason the user can act on."""

    title = "The pool cannot be judged"


def collection_pool(collection: Collection, runs: Sequence[Run], depth: int) -> Pool:
    """Return the depth pool of the runs over the collection's topics; every pooled document must be there to read."""
    topic_ids = set(collection.topics.values_list("topic_id", flat=True))
    pooled = pool_of_rankings([_rankings(run) for run in runs], depth, topic_ids)
    _require_documents(collection, pooled)
    return pooled


def _rankings(run: Run) -> Rankings:
    return read_rankings(local(run.rankings))


def _require_documents(collection: Collection, pooled: Pool) -> None:
    doc_ids = list(dict.fromkeys(pooled.doc_ids))
    known: set[str] = set()
    for start in range(0, len(doc_ids), ASKED_AT_ONCE):
        part = doc_ids[start : start + ASKED_AT_ONCE]
        known.update(collection.documents.filter(doc_id__in=part).values_list("doc_id", flat=True))
    missing = sorted(doc_id for doc_id in doc_ids if doc_id not in known)
    if missing:
        raise FrameRefused(
            f"{len(missing)} pooled documents are not in the collection, for example {missing[0]!r}: "
            "import them, or choose a smaller depth"
        )


def frame_file(pooled: Pool, columns: dict[str, np.ndarray]) -> bytes:
    """Return the frame with the given columns as the bytes of a Parquet file."""
    topic_ids = pl.Series(list(pooled.topic_ids), dtype=pl.String)
    frame = pl.DataFrame(
        {
            "topic_id": topic_ids.gather(pooled.topic_index),
            "doc_id": pl.Series(list(pooled.doc_ids), dtype=pl.String),
            **columns,
        }
    )
    return columns_file(frame)


def columns_file(frame: pl.DataFrame) -> bytes:
    """Return a frame that has all its columns as the bytes of a Parquet file."""
    target = io.BytesIO()
    frame.write_parquet(target, compression="zstd")
    return target.getvalue()


def load_frame(draw: Draw) -> pl.DataFrame:
    """Return the recorded frame of a batch, in frame order.

    topic_id, doc_id, prior, fold, random_number, score where the design names some; per batch so far `batch_1` (its own
    probability), `times_1` and, with replacement, `single_1` (Q of one draw); inclusion_probability of any of them;
    drawn_in, the batch that drew the pair first, or 0.
    """
    try:
        content = local(draw.frame).read_bytes()
    except FileNotFoundError as error:
        raise FrameRefused(
            f"the frame file of campaign {draw.campaign} is gone: restore it from a backup"
        ) from error
    except FileDamaged as error:
        raise _not_drawn_from(draw) from error
    if hashlib.sha256(content).hexdigest() != draw.frame_sha256:
        raise _not_drawn_from(draw)
    return pl.read_parquet(content)


def _not_drawn_from(draw: Draw) -> FrameRefused:
    return FrameRefused(f"the frame file of campaign {draw.campaign} is not the one that was drawn from")


def returned_in_frame(frame: pl.DataFrame, runs: Sequence[Run], depth: int) -> SparseRuns:
    """Return the ranks of the frame's items, where a run returns the item within the depth."""
    return ranks_in_pairs([_rankings(run) for run in runs], frame["topic_id"], frame["doc_id"], depth)[0]


# -- which runs a draw has pooled: those of then, whatever has their tags since -----------------------------


def pooled_runs(draw: Draw) -> list[Run]:
    """Return the runs that the draw has pooled, by tag, set aside since or not.

    A draw keeps their tags. The run that it pooled is the newest one of the tag that was there when it was made, and
    was not set aside before anything was drawn. Where a later batch has pooled two of a tag, the one that the batches
    before it had pooled was set aside in between: they are the newest two.
    """
    left = Counter(draw.parameters.get("pooled") or ())
    if not left:
        return []
    first = Draw.objects.filter(campaign=draw.campaign_id, batch=1).values("created_at")
    rows = Run.everything.filter(
        Q(set_aside_at=None) | Q(set_aside_at__gt=first),
        collection__campaigns=draw.campaign_id,
        run_id__in=left,
        created_at__lte=draw.created_at,
    )
    found = []
    for run in rows.order_by("run_id", "-created_at", "-pk"):
        if left[run.run_id]:
            left[run.run_id] -= 1
            found.append(run)
    return found


def runs_learned_from(draw: Draw) -> list[Run]:
    """Return the runs that say something of the documents of a draw: pooled, or asked about where none is recorded."""
    if draw.parameters.get("pooled"):
        return pooled_runs(draw)
    named = Run.objects.filter(collection__campaigns=draw.campaign_id, run_id__in=draw.parameters["runs"])
    return list(named)


def tags_of_then(draw: Draw, runs: Sequence[Run]) -> list[str]:
    """Return the tags by which the draw knows runs: empty for one that came later, under a tag that was pooled."""
    pooled = draw.parameters.get("pooled") or ()
    return ["" if run.run_id in pooled and run.created_at > draw.created_at else run.run_id for run in runs]


# -- draws and judgments of a campaign ----------------------------------------------------------------------

# The newest grade of every assessor and item. A check that a later batch drew counts like any other judgment of it.
MEAN_GRADES = """
SELECT t.topic_id, d.doc_id, g.grade
  FROM (SELECT DISTINCT ON (j.item_id, j.assessor_id) j.item_id, j.grade
          FROM judging_judgment j JOIN judging_slot s ON s.id = j.slot_id
         WHERE s.campaign_id = %s AND s.purpose IN ('judge', 'check')
         ORDER BY j.item_id, j.assessor_id, j.sequence DESC) g
  JOIN judging_item i ON i.id = g.item_id
  JOIN judging_topic t ON t.id = i.topic_id
  JOIN judging_document d ON d.id = i.document_id
"""


def newest_draw(campaign: Campaign) -> Draw | None:
    """Return the campaign's last batch, whose frame contains all earlier ones."""
    if "draws" in getattr(campaign, "_prefetched_objects_cache", ()):
        return max(campaign.draws.all(), key=attrgetter("batch"), default=None)
    return campaign.draws.order_by("-batch").first()


def mean_gains(campaign: Campaign, gains: FloatArray) -> pl.DataFrame:
    """Return topic_id, doc_id and the mean gain of the grades given so far, a row per judged item."""
    with connection.cursor() as cursor:
        cursor.execute(MEAN_GRADES, [campaign.pk])
        rows = cursor.fetchall()
    schema = {"topic_id": pl.String, "doc_id": pl.String, "value": pl.Float64}
    frame = pl.DataFrame(
        [(topic, doc, float(gains[grade])) for topic, doc, grade in rows], schema, orient="row"
    )
    return frame.group_by(ITEM_COLUMNS).agg(pl.col("value").mean()).sort(ITEM_COLUMNS)


def item_probabilities(campaign: Campaign) -> dict[uuid.UUID, float]:
    """Return each item's probability of some batch: of one seed the largest, with replacement 1 - prod(1 - pi)."""
    known: dict[uuid.UUID, float] = {}
    independent = {selection.key for selection in SELECTIONS if selection.with_replacement}
    rows = DrawEntry.objects.filter(draw__campaign=campaign).values_list(
        "item_id", "inclusion_probability", "draw__selection"
    )
    for item, probability, selection in rows.iterator():
        before = known.get(item, 0.0)
        if selection in independent:
            known[item] = before + (1 - before) * probability
        else:
            known[item] = max(before, probability)
    return known
