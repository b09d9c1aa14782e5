"""Laying a draw out: its items, their probabilities, their slots and the gold checks among them, topic by topic.

The draw and its frame file are the truth: a topic that was not laid out yet, or not before a worker died, is found
by comparing with it. Each topic is laid out as a whole in one transaction, so that doing it twice changes nothing.
"""

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import polars as pl
from django.db import connection, transaction

from judging.kinds import ITEM_COLUMNS, ItemKey
from judging.models import Campaign, Document, Item, Topic
from judging.services.campaigns import add_check_slots, want_judgments
from sampling.draws import permanent_random_numbers
from sampling.frames import load_frame
from sampling.models import Draw, DrawEntry
from sampling.services.ordering import queue_order
from touchstone import jobs
from touchstone.models import Job, User

BATCH = 2000
PART_ITEMS = 1000  # items a job lays out: some seconds of work, so that progress is seen and little is lost
N_LOCKS = (
    64  # a campaign; topics share them, so that however many topics there are, the table of locks stays small
)
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
LOCK_SHARED = "SELECT pg_advisory_xact_lock_shared(hashtextextended(%s, 0))"
Progress = Callable[[int, int, str], None]


def missing_topics(draw: Draw, frame: pl.DataFrame | None = None) -> list[str]:
    """Return the topics of the draw, or those in this part of its frame, that are not laid out."""
    topic_ids = list(_sizes_of_topics(load_frame(draw) if frame is None else frame, draw.batch))
    made = Item.objects.filter(
        campaign=draw.campaign_id, topic__topic_id__in=topic_ids, draw_entries__draw=draw
    )
    there = set(made.values_list("topic__topic_id", flat=True).distinct())
    return [topic_id for topic_id in topic_ids if topic_id not in there]


def parts(draw: Draw) -> list[list[str]]:
    """Return all topics of the draw in groups of about `PART_ITEMS` new items, always the same ones."""
    return groups(_sizes_of_topics(load_frame(draw), draw.batch), PART_ITEMS)


def groups(sizes: dict[str, int], at_most: int) -> list[list[str]]:
    """Return the names in groups whose sizes sum to no more than that, where a single one does not.

    >>> groups({"1": 900, "2": 300, "3": 5}, 1000)
    [['1'], ['2', '3']]
    """
    parts: list[list[str]] = []
    total = 0
    for name, size in sizes.items():
        if not parts or total + size > at_most:
            parts.append([])
            total = 0
        parts[-1].append(name)
        total += size
    return parts


def _sizes_of_topics(frame: pl.DataFrame, batch: int) -> dict[str, int]:
    """Return how many items each topic has that the batch is the first to draw; 0 where all came earlier."""
    drawn = frame.filter(pl.col("drawn_in") > 0)
    sizes = drawn.group_by("topic_id").agg((pl.col("drawn_in") == batch).sum()).sort("topic_id")
    return dict(sizes.iter_rows())


def queue_parts(*, draw: Draw, user: User | None) -> list[Job]:
    """Queue a job for every part that is not laid out and not under way. Safe to call again: cancelled ones resume."""
    missing = set(missing_topics(draw))
    queued = []
    for number, topic_ids in enumerate(parts(draw)):
        if missing.isdisjoint(topic_ids):
            continue
        payload = {"draw": str(draw.pk), "campaign": str(draw.campaign_id), "topics": topic_ids}
        job = jobs.enqueue(kind="layout", payload=payload, active_key=f"{draw.pk}:{number}", user=user)
        if job is not None:
            queued.append(job)
    return queued


def lay_out(*, draw: Draw, topic_ids: Iterable[str], progress: Progress = lambda *_: None) -> int:
    """Make items, entries, slots and checks of these topics; return how many items. Topics that are there stay."""
    names = sorted(set(topic_ids))
    frame = load_frame(draw).filter(pl.col("topic_id").is_in(names))
    n_items = n_topics = 0
    with transaction.atomic():
        _lock(draw.campaign_id, names)
        _keep_gold(draw.campaign.collection_id)
        todo = missing_topics(draw, frame)
        sizes = {
            topic_id: n for topic_id, n in _sizes_of_topics(frame, draw.batch).items() if topic_id in todo
        }
        for some in groups(sizes, PART_ITEMS):
            progress(n_topics, len(todo), f"topics from {some[0]}")
            n_items += _lay_out_topics(draw, frame.filter(pl.col("topic_id").is_in(some)))
            n_topics += len(some)
        queue_order(campaign=draw.campaign)
    progress(n_topics, n_topics, f"{n_items} items of {n_topics} topics")
    return n_items


def _lock(campaign_id: object, topic_ids: Sequence[str]) -> None:
    """Wait until no other worker lays these topics out: two could make the same items, or a check of a drawn item.

    However long that takes. Always in one order, so that no two jobs wait for each other.
    """
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL lock_timeout = 0")
        for number in sorted({zlib.crc32(topic_id.encode()) % N_LOCKS for topic_id in topic_ids}):
            cursor.execute(LOCK, [f"layout of {campaign_id}, {number}"])


def _keep_gold(collection_id: object) -> None:
    """See to it that no gold answer is removed while it becomes a check: `touchstone_remove_import` waits."""
    with connection.cursor() as cursor:
        cursor.execute(LOCK_SHARED, [f"gold of {collection_id}"])


def _lay_out_topics(draw: Draw, frame: pl.DataFrame) -> int:
    campaign = draw.campaign
    topics = {
        topic.topic_id: topic
        for topic in campaign.collection.topics.filter(topic_id__in=frame["topic_id"].unique().to_list())
    }
    new = frame.filter(pl.col("drawn_in") == draw.batch)
    known = frame.filter((pl.col("drawn_in") > 0) & (pl.col("drawn_in") < draw.batch))
    items = _items(campaign, topics, new)
    _record_entries(draw, new, items, _existing(campaign, topics, known), known)
    seed = _seed(draw)
    want_judgments(items=items, k=campaign.judgments_per_item, seed=seed)
    n_new = Counter(item.topic_id for item in items)
    undrawn = frame.filter(pl.col("drawn_in") == 0)
    allotted = draw.parameters.get("check_grades")
    add_check_slots(
        campaign=campaign,
        seed=seed + 1,
        new_items={topic.pk: n_new[topic.pk] for topic in topics.values()},
        undrawn=lambda topic_id: undrawn.filter(pl.col("topic_id") == topic_id)["doc_id"].to_list(),
        grades={topic.pk: allotted["numbers"].get(name, []) for name, topic in topics.items()}
        if allotted
        else None,
    )
    return len(items)


def _seed(draw: Draw) -> int:
    """Return a seed of the batch's own. It orders each topic by itself, whichever worker lays it out."""
    number = permanent_random_numbers([""], [f"batch {draw.batch}"], draw.seed, purpose="layout")[0]
    return int(number * 2**52)


def _existing(campaign: Campaign, topics: Mapping[str, Topic], pairs: pl.DataFrame) -> list[Item]:
    """Return the items of the pairs, in their order."""
    items = Item.objects.filter(
        campaign=campaign, topic__in=topics.values(), document__doc_id__in=pairs["doc_id"].unique().to_list()
    )
    few = ("campaign_id", "topic__topic_id", "document__doc_id")  # never the documents' texts
    by_key = {item.key: item for item in items.select_related("topic", "document").only(*few)}
    return [by_key[ItemKey(*names)] for names in pairs.select(ITEM_COLUMNS).iter_rows()]


def _items(campaign: Campaign, topics: Mapping[str, Topic], pairs: pl.DataFrame) -> list[Item]:
    """Return the items of the pairs, made where they are not there (as checks of an earlier batch are)."""
    doc_ids = pairs["doc_id"].unique().to_list()
    documents = dict(
        Document.objects.filter(collection=campaign.collection, doc_id__in=doc_ids).values_list(
            "doc_id", "pk"
        )
    )
    rows = (
        Item(campaign=campaign, topic=topics[topic_id], document_id=documents[doc_id])
        for topic_id, doc_id in pairs.select(ITEM_COLUMNS).iter_rows()
    )
    Item.objects.bulk_create(rows, batch_size=BATCH, ignore_conflicts=True)
    return _existing(campaign, topics, pairs)


def _record_entries(
    draw: Draw, new: pl.DataFrame, items: list[Item], earlier_items: list[Item], known: pl.DataFrame
) -> None:
    """Record every batch's probability at every item drawn so far: this batch's at all, earlier ones' at the new."""
    rows = [
        *_entries(draw, new, items),
        *_entries(draw, known, earlier_items),
        *(
            entry
            for earlier in Draw.objects.filter(campaign=draw.campaign_id, batch__lt=draw.batch)
            for entry in _entries(earlier, new, items)
        ),
    ]
    DrawEntry.objects.bulk_create(rows, batch_size=BATCH)


def _entries(draw: Draw, frame: pl.DataFrame, items: Sequence[Item]) -> list[DrawEntry]:
    probability = frame[f"batch_{draw.batch}"].to_numpy()
    times = frame[f"times_{draw.batch}"].to_numpy()
    return [
        DrawEntry(draw=draw, item=item, inclusion_probability=float(pi), times=int(n))
        for item, pi, n in zip(items, probability, np.asarray(times), strict=True)
    ]
