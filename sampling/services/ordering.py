"""The order of judging by what it tells: what comes next in every topic, and what the model says so far.

The order stands in the places of the open slots, a look in a row of JudgingLook: both are written by the job `order`.
What a process worked out of a draw it keeps, so that a job looks at those topics alone in which something changed.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl
from django.db import connection, transaction
from django.db.models import Count, F, OuterRef, QuerySet, Subquery, Sum
from django.utils import timezone

from judging.judging_orders import INFORMATIVE_ORDER
from judging.kinds import ITEM_COLUMNS
from judging.models import Assessor, Campaign, CampaignTopic, Judgment, Slot
from judging.services.places import exchange_places
from sampling.arrays import FloatArray, IndexArray
from sampling.expert_pools import topic_pools
from sampling.experts import Preferences, consensus
from sampling.frames import FrameRefused, load_frame, mean_gains, newest_draw, pooled_runs, returned_in_frame
from sampling.judging_order import leading
from sampling.minimal import Difference, ModelTopic, StoppingRule, shift_to_prevalence
from sampling.minimal_collection import ModelLook, look
from sampling.models import Draw, JudgingLook
from touchstone import jobs
from touchstone.models import Job

RULE = StoppingRule()
N_NEW = 5  # judgments after which the order is written anew
LULL = timedelta(seconds=20)  # with fewer, after so long
PAUSE_FACTOR = 3  # at most a quarter of the time is spent on one campaign
AFTER_A_FAILURE = timedelta(minutes=1)
KEPT_DRAWS = 2  # by a process
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
Progress = Callable[[int, int, str], None]
Obstacles = dict[str, set[str]]  # by topic the documents that somebody could not judge


@dataclass
class TopicState:
    """A topic of a draw as it was last looked at, and what was worked out of it then."""

    topic_id: str
    places: IndexArray  # in the frame
    prior: ModelTopic
    seen: bytes = b""  # its judgments, when they were read last
    written: bytes | None = None  # the same, when its order was last written and committed
    judged: ModelTopic | None = None
    differences: dict[tuple[int, int], Difference] = field(default_factory=dict)


@dataclass(frozen=True)
class DrawState:
    """A draw's topics, its frame's pairs, and its runs."""

    pairs: pl.DataFrame
    run_ids: list[str]
    topics: list[TopicState]


_kept: OrderedDict[Any, DrawState] = OrderedDict()
_guard = threading.Lock()


def order_judging(*, campaign: Campaign, progress: Progress = lambda *_: None) -> JudgingLook:
    """Write what comes next in every topic in which something changed, and record the look.

    One at a time in a campaign. The places are written last, all at once: until then nobody notices.
    """
    started = time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL lock_timeout = 0")
        cursor.execute(LOCK, [f"order of {campaign.pk}"])
    draw = newest_draw(campaign)
    if draw is None:
        raise FrameRefused(f"campaign {campaign} has no draw: there is nothing to put in order")
    counts = _with_counts(Campaign.objects.filter(pk=campaign.pk)).get()
    state = _state_of(draw, progress)
    obstacles = _obstacles(campaign)
    _take_judgments(campaign, state, obstacles)
    progress(len(state.topics), len(state.topics) + 1, "what a judgment tells")
    found = look([_model(one) for one in state.topics], RULE, known=[one.differences for one in state.topics])
    previous = newest_look(campaign)
    is_known = previous is not None and (previous.n_batches, previous.n_topics) == (
        draw.batch,
        counts.n_topics,
    )
    affected = [index for index, one in enumerate(state.topics) if not is_known or one.written != one.seen]
    n_moved = sum(exchange_places(slots) for slots in _orders(campaign, state, found, affected, obstacles))
    transaction.on_commit(lambda: _keep_written(state, affected), robust=True)
    return JudgingLook.objects.create(
        campaign=campaign,
        n_pooled=state.pairs.height,
        n_work=counts.n_work or 0,
        last_judgment_id=counts.newest or 0,
        n_batches=draw.batch,
        n_topics=counts.n_topics,
        n_moved=n_moved,
        seconds=time.monotonic() - started,
        **_summary(state.run_ids, found),
    )


def _keep_written(state: DrawState, affected: Sequence[int]) -> None:
    for index in affected:
        state.topics[index].written = state.topics[index].seen


def newest_look(campaign: Campaign) -> JudgingLook | None:
    """Return what the model said last; None before the order was first written."""
    return JudgingLook.objects.filter(campaign=campaign).order_by("-id").first()


def _summary(run_ids: Sequence[str], found: ModelLook) -> dict[str, Any]:
    pairs = [
        [run_ids[better], run_ids[other], 1.0 - difference.worse_probability]
        for (better, other), difference in zip(found.pairs, found.differences, strict=True)
    ]
    scores = dict(zip(run_ids, found.scores.tolist(), strict=True))
    return {"n_judged": found.n_judged, "scores": scores, "pairs": pairs, "may_stop": found.has_signs}


# -- the model ------------------------------------------------------------------------------------------------


def _state_of(draw: Draw, progress: Progress) -> DrawState:
    with _guard:
        known = _kept.get(draw.pk)
    if known is None:
        known = _fresh_state(draw, progress)
        with _guard:
            _kept[draw.pk] = known
            while len(_kept) > KEPT_DRAWS:
                _kept.popitem(last=False)
    return known


def _fresh_state(draw: Draw, progress: Progress) -> DrawState:
    """Return the topics before any judgment: their documents as likely as the runs together say, at the prevalence."""
    frame = load_frame(draw)
    runs = pooled_runs(draw)
    returned = returned_in_frame(frame, runs, draw.parameters["depth"])
    names: list[str] = frame["topic_id"].unique().sort().to_list()
    topic_index = frame["topic_id"].cast(pl.Enum(names)).to_physical().to_numpy().astype(np.int64)
    topics: list[TopicState] = []
    for pool, places in topic_pools(returned, topic_index):
        progress(len(topics), len(names) + 1, "consensus of the runs, topic by topic")
        chances = shift_to_prevalence(consensus(Preferences.of(pool)).probability, RULE.prevalence)
        name = names[int(topic_index[places[0]])]
        topics.append(TopicState(name, places, ModelTopic.of(pool.ranks, chances)))
    return DrawState(frame.select(ITEM_COLUMNS), [run.run_id for run in runs], topics)


def _model(state: TopicState) -> ModelTopic:
    return state.prior if state.judged is None else state.judged


def _take_judgments(campaign: Campaign, state: DrawState, obstacles: Obstacles) -> None:
    """Bring every topic up to what is judged now.

    Relevant is a document of which more than half of the grades are: the lower median.
    """
    is_relevant = (np.array(campaign.scale.values()) >= campaign.scale.relevant_grade).astype(np.float64)
    share = mean_gains(campaign, is_relevant)
    joined = state.pairs.join(share, on=ITEM_COLUMNS, how="left", maintain_order="left")["value"]
    value = joined.fill_null(-1.0).to_numpy()
    for one in state.topics:
        own = value[one.places]
        seen = own.tobytes() + repr(sorted(obstacles.get(one.topic_id, ()))).encode()
        if seen == one.seen:
            continue
        is_judged = own >= 0
        chances = np.where(is_judged, (own > 0.5).astype(np.float64), one.prior.probability)
        one.judged = replace(one.prior, probability=chances, is_judged=is_judged)
        one.seen, one.differences = seen, {}


def _obstacles(campaign: Campaign) -> Obstacles:
    """Return by topic the documents that somebody could not judge."""
    rows = Judgment.objects.filter(item__campaign=campaign, grade__isnull=True)
    found: dict[str, set[str]] = {}
    for topic_id, doc_id in rows.values_list("item__topic__topic_id", "item__document__doc_id"):
        found.setdefault(topic_id, set()).add(doc_id)
    return found


# -- the order ------------------------------------------------------------------------------------------------


def _orders(
    campaign: Campaign, state: DrawState, found: ModelLook, affected: Sequence[int], obstacles: Obstacles
) -> list[list[int]]:
    """Return for every affected topic the slots that exchange their places, in the order that they are to have.

    Documents that somebody could not judge come last: whoever said so would find them in front at every claim.
    """
    by_topic = _open_slots(campaign, [state.topics[index].topic_id for index in affected])
    orders = []
    for index in affected:
        one = state.topics[index]
        doc_ids = state.pairs["doc_id"].gather(one.places).to_list()
        place = {doc_id: n for n, doc_id in enumerate(doc_ids)}
        model, hindered = _model(one), obstacles.get(one.topic_id, set())
        rows = [
            (place[doc_id], slot, position)
            for slot, position, doc_id in by_topic.get(one.topic_id, [])
            if doc_id in place and not model.is_judged[place[doc_id]]
        ]
        rows.sort()
        worth: FloatArray = np.array(
            [-np.inf if doc_ids[n] in hindered else found.spread[index][n] for n, _, _ in rows]
        )
        order = leading(worth, np.array([position for _, _, position in rows], dtype=np.int64))
        if order.size:
            orders.append([rows[n][1] for n in order.tolist()])
    return orders


def _open_slots(campaign: Campaign, topic_ids: Sequence[str]) -> dict[str, list[tuple[int, int, str]]]:
    rows = Slot.objects.filter(
        campaign=campaign,
        purpose=Slot.Purpose.JUDGE,
        state=Slot.State.OPEN,
        topic__in=campaign.collection.topics.filter(topic_id__in=topic_ids),
    ).values_list("topic__topic_id", "pk", "position", "item__document__doc_id")
    found: dict[str, list[tuple[int, int, str]]] = {}
    for topic_id, slot, position, doc_id in rows.iterator():
        found.setdefault(topic_id, []).append((slot, position, doc_id))
    return found


# -- when -----------------------------------------------------------------------------------------------------


def queue_order(*, campaign: Campaign) -> None:
    """Queue the order of a campaign that judges by what it tells; one that waits or runs already is enough."""
    if not campaign.has_random_order:
        payload = {"campaign": str(campaign.pk)}
        jobs.enqueue(kind="order", payload=payload, active_key=str(campaign.pk))


def start_due_orders() -> None:
    """Queue the order of every campaign that has new judgments, batches or topics since its newest look.

    Judgments are known by counters that assessors have anyway: to submit one costs nothing more. Where nobody wakes up
    a worker, this finds at any later time what is missing.
    """
    rows = Campaign.objects.filter(
        judging_order=INFORMATIVE_ORDER, deleted_at=None, collection__deleted_at=None
    )
    failures = Job.objects.filter(
        kind="order", state=Job.State.FAILED, finished_at__gt=timezone.now() - AFTER_A_FAILURE
    )
    failed = {payload["campaign"] for payload in failures.values_list("payload", flat=True)}
    for campaign in _with_counts(rows):
        if campaign.n_topics and str(campaign.pk) not in failed and _is_due(campaign, newest_look(campaign)):
            queue_order(campaign=campaign)


def _is_due(campaign: Any, last: JudgingLook | None) -> bool:
    if last is None or (last.n_batches, last.n_topics) != (campaign.n_batches, campaign.n_topics):
        return True
    age = timezone.now() - last.created_at
    if age < PAUSE_FACTOR * timedelta(seconds=last.seconds):
        return False
    is_enough = (campaign.n_work or 0) - last.n_work >= N_NEW
    return is_enough or (age > LULL and (campaign.newest or 0) > last.last_judgment_id)


def _with_counts(rows: QuerySet[Campaign]) -> QuerySet[Any]:
    """Add how many batches and topics there are, what assessors have done in all, and their newest judgment."""
    newest = Judgment.objects.filter(assessor=OuterRef("pk")).order_by("-id")
    people = Assessor.objects.filter(campaign=OuterRef("pk")).order_by()
    of_people = people.annotate(newest=Subquery(newest.values("id")[:1]))
    draws = Draw.objects.filter(campaign=OuterRef("pk")).order_by().values("campaign")
    topics = CampaignTopic.objects.filter(campaign=OuterRef("pk")).order_by().values("campaign")
    return rows.annotate(
        n_batches=Subquery(draws.annotate(n=Count("pk")).values("n")),
        n_topics=Subquery(topics.annotate(n=Count("pk")).values("n")),
        n_work=Subquery(people.values("campaign").annotate(n=Sum("n_judged")).values("n")),
        newest=Subquery(of_people.order_by(F("newest").desc(nulls_last=True)).values("newest")[:1]),
    )
