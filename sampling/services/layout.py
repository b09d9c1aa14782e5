"""Laying a draw out: its items, their probabilities, their slots and the gold checks among them, topic by topic.

The draw and its frame file are the truth: a topic that was not laid out yet, or not before a worker died, is found
by comparing with it. Each topic is laid out as a whole in one transaction, so that doing it twice changes nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import polars as pl
from django.db import transaction
from django.db.models import Count, Q

from judging.models import Campaign, Document, Item, Slot, Topic
from judging.services.campaigns import add_check_slots, open_slots
from sampling.draws import permanent_random_numbers
from sampling.frames import load_frame
from sampling.models import Draw, DrawEntry
from touchstone import jobs
from touchstone.models import Job, User

BATCH = 2000
PART_ITEMS = 1000  # items a job lays out: some seconds of work, so that progress is seen and little is lost
Progress = Callable[[int, int, str], None]


def missing_topics(draw: Draw) -> dict[str, int]:
    """Return the topics of the draw that are not laid out, with how many new items each will have."""
    new = load_frame(draw).filter(pl.col("drawn_in") == draw.batch)
    wanted = dict(new.group_by("topic_id").len().sort("topic_id").iter_rows())
    made = draw.entries.filter(item__campaign=draw.campaign_id).values_list(
        "item__topic__topic_id", flat=True
    )
    for topic_id in set(made.distinct()):
        wanted.pop(topic_id, None)
    return wanted


def parts(topics: dict[str, int]) -> list[list[str]]:
    """Return the topics in groups of about `PART_ITEMS` items.

    >>> parts({"1": 900, "2": 300, "3": 5})
    [['1'], ['2', '3']]
    """
    groups: list[list[str]] = []
    size = 0
    for topic_id, n_items in topics.items():
        if not groups or size + n_items > PART_ITEMS:
            groups.append([])
            size = 0
        groups[-1].append(topic_id)
        size += n_items
    return groups


def queue_parts(*, draw: Draw, user: User | None) -> list[Job]:
    """Queue a job for every group of topics that is not laid out. Safe to call again, as after a cancellation."""
    queued = []
    for topic_ids in parts(missing_topics(draw)):
        payload = {"draw": str(draw.pk), "campaign": str(draw.campaign_id), "topics": topic_ids}
        key = f"{draw.pk}:{topic_ids[0]}"
        job = jobs.enqueue(kind="layout", payload=payload, active_key=key, user=user)
        if job is not None:
            queued.append(job)
    return queued


def lay_out(*, draw: Draw, topic_ids: Iterable[str], progress: Progress = lambda *_: None) -> int:
    """Make items, entries, slots and checks of these topics; return how many items. Topics that are there stay."""
    wanted = sorted(set(topic_ids))
    frame = load_frame(draw).filter(pl.col("topic_id").is_in(wanted))
    n_items = 0
    with transaction.atomic():
        # One at a time a campaign: two could want the same document as an item and as a check.
        Campaign.objects.select_for_update(no_key=True).get(pk=draw.campaign_id)
        missing = missing_topics(draw)
        todo = [topic_id for topic_id in wanted if topic_id in missing]
        for place, topic_id in enumerate(todo):
            progress(place, len(todo), f"topic {topic_id}")
            n_items += _lay_out_topic(draw, topic_id, frame.filter(pl.col("topic_id") == topic_id))
    progress(len(todo), len(todo), f"{n_items} items of {len(todo)} topics")
    return n_items


def _lay_out_topic(draw: Draw, topic_id: str, frame: pl.DataFrame) -> int:
    campaign = draw.campaign
    topic = Topic.objects.get(collection=campaign.collection, topic_id=topic_id)
    new = frame.filter(pl.col("drawn_in") == draw.batch)
    known = frame.filter((pl.col("drawn_in") > 0) & (pl.col("drawn_in") < draw.batch))
    items = _items(campaign, topic, new["doc_id"].to_list())
    _record_entries(draw, new, items, _existing(campaign, topic, known["doc_id"].to_list()), known)
    seed = _seed(draw, topic_id)
    _open_judge_slots(campaign, items, seed)
    undrawn = frame.filter(pl.col("drawn_in") == 0)["doc_id"].to_list()
    add_check_slots(
        campaign=campaign, seed=seed + 1, new_items={topic.pk: len(items)}, undrawn=lambda _: undrawn
    )
    return len(items)


def _seed(draw: Draw, topic_id: str) -> int:
    """Return a seed of the topic's own: the order of presentation does not depend on who lays out what, and when."""
    number = permanent_random_numbers([topic_id], [f"layout of batch {draw.batch}"], draw.seed)[0]
    return int(number * 2**52)


def _existing(campaign: Campaign, topic: Topic, doc_ids: Sequence[str]) -> list[Item]:
    found = Item.objects.filter(campaign=campaign, topic=topic, document__doc_id__in=doc_ids)
    by_doc = {item.document.doc_id: item for item in found.select_related("document")}
    return [by_doc[doc_id] for doc_id in doc_ids]


def _items(campaign: Campaign, topic: Topic, doc_ids: Sequence[str]) -> list[Item]:
    """Return the items of the documents, made where they are not there (as checks of an earlier batch are)."""
    documents = dict(
        Document.objects.filter(collection=campaign.collection, doc_id__in=doc_ids).values_list(
            "doc_id", "pk"
        )
    )
    rows = [Item(campaign=campaign, topic=topic, document_id=documents[doc_id]) for doc_id in doc_ids]
    Item.objects.bulk_create(rows, batch_size=BATCH, ignore_conflicts=True)
    return _existing(campaign, topic, doc_ids)


def _open_judge_slots(campaign: Campaign, items: Sequence[Item], seed: int) -> None:
    """Open k slots an item; an item that was a check so far keeps its slots, which count, and gets what is missing.

    Nobody judges an item twice: k slots more could not be filled by those who met it as a check.
    """
    k = campaign.judgments_per_item
    met = Counter(
        dict(
            Item.objects.filter(pk__in=[item.pk for item in items])
            .annotate(n=Count("slots", filter=Q(slots__purpose=Slot.Purpose.CHECK)))
            .values_list("pk", "n")
        )
    )
    for n_met in sorted({min(k, met[item.pk]) for item in items}):
        wanted = [item for item in items if min(k, met[item.pk]) == n_met]
        open_slots(items=wanted, purpose=Slot.Purpose.JUDGE, n_each=k - n_met, seed=seed + 2 + n_met)


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
