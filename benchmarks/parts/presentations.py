"""Presentations of gold checks and ordinary items, collected through the product with all that an assessor can see."""

import itertools
import json
import random
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from parts import colluders

N_TOPICS, N_ITEMS, RATE = 150, 40, 0.5  # half of the presentations are gold: as many of each as time allows
SESSION = 20  # presentations
AT_ONCE = 8  # sessions that take turns
SLEEP = 0.001


@dataclass
class Seen:
    """One presentation: whether it was gold, and what its assessor could observe."""

    is_gold: bool
    session: int
    place: int  # in the session, from 0
    topic: str
    at: float  # when it was delivered
    observed: dict[str, float] = field(default_factory=dict)
    milliseconds: dict[str, float] = field(default_factory=dict)


@dataclass
class World:
    """A campaign, its assessors, and which of its items are gold: the assessors do not know that."""

    campaign: Any
    assessors: list[Any]
    gold: set[uuid.UUID]


def make_world(
    name: str,
    n_assessors: int,
    *,
    n_topics: int = N_TOPICS,
    n_items: int = N_ITEMS,
    k: int = 1,
    rate: float = RATE,
    n_gold: int | None = None,
) -> World:
    """Make an open campaign through the product's own services; all documents are of one distribution."""
    from judging.models import Assessor, Campaign, Collection, Document, GoldAnswer, Item, Slot, Topic
    from judging.services.campaigns import (
        DEFAULT_GRADES,
        add_check_slots,
        create_campaign,
        open_campaign,
        open_slots,
    )
    from touchstone.models import User

    n_gold = 2 * n_items if n_gold is None else n_gold
    rng = np.random.default_rng(7)
    collection = Collection.objects.create(name=name)
    campaign = create_campaign(
        collection=collection,
        name=name,
        user=None,
        grades=DEFAULT_GRADES,
        judgments_per_item=k,
        gold_check_rate=rate,
    )
    for number in range(n_topics):
        topic = Topic.objects.create(collection=collection, topic_id=f"t{number}", title=f"Need {number:04d}")
        lengths = np.minimum(rng.lognormal(5.5, 0.8, n_items + n_gold), 6000).astype(int)
        documents = Document.objects.bulk_create(
            Document(collection=collection, doc_id=f"t{number}d{place}", text="word " * (length // 5))
            for place, length in enumerate(lengths)
        )
        items = Item.objects.bulk_create(
            Item(campaign=campaign, topic=topic, document=document) for document in documents[:n_items]
        )
        open_slots(items=items, purpose=Slot.Purpose.JUDGE, n_each=k, seed=number)
        GoldAnswer.objects.bulk_create(
            GoldAnswer(topic=topic, document=document, grade=place % 4, source="benchmark")
            for place, document in enumerate(documents[n_items:])
        )
    topics = dict.fromkeys(collection.topics.values_list("pk", flat=True), n_items)
    add_check_slots(campaign=campaign, seed=11, new_items=topics, undrawn=lambda _: [])
    open_campaign(campaign=campaign, actor=None)
    users = User.objects.bulk_create(User(username=f"{name}-bob{n}") for n in range(n_assessors))
    Assessor.objects.bulk_create(Assessor(campaign=campaign, user=user) for user in users)
    return World(
        Campaign.objects.get(pk=campaign.pk),
        list(Assessor.objects.filter(campaign=campaign).select_related("user", "campaign")),
        set(Slot.objects.filter(campaign=campaign, purpose="check").values_list("item_id", flat=True)),
    )


def turns(n_sessions: int, n_each: int, seed: int, seconds: float) -> Iterator[int]:
    """Yield whose turn it is: so many sessions at once take turns at random; each has as many presentations."""
    rng, left, end = random.Random(seed), [n_each] * n_sessions, time.monotonic() + seconds
    waiting, active = list(range(n_sessions)), []
    while time.monotonic() < end:
        while waiting and len(active) < AT_ONCE:
            active.append(waiting.pop(0))
        if not active:
            return
        session = rng.choice(active)
        left[session] -= 1
        if not left[session]:
            active.remove(session)
        yield session


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = call()
    return result, (time.perf_counter() - start) * 1000


# -- through the services: claim and submit each on their own ----------------------------------------------------


def through_services(world: World, seconds: float, seed: int, n_sessions: int) -> list[Seen]:
    """Claim and submit as the views do, without HTTP around it: the finest look at the time that each takes."""
    from judging.services import assign

    seen: list[Seen] = []
    places = [0] * n_sessions
    for session in turns(n_sessions, SESSION, seed, seconds):
        assessor = world.assessors[session]
        claimed, claim_time = timed(lambda: assign.claim(assessor=assessor, n=1))  # noqa: B023 (called at once)
        held = claimed.item
        if held is None:
            continue
        sent = {"token": held.token, "client_token": uuid.uuid4(), "grade": 1}
        _, submit_time = timed(lambda: assign.submit(assessor=assessor, **sent))  # noqa: B023
        one = Seen(held.item_id in world.gold, session, places[session], held.topic_title, time.monotonic())
        one.milliseconds = {"claim": claim_time, "submit": submit_time}
        one.observed = {**one.milliseconds, "place": places[session]}
        seen.append(one)
        places[session] += 1
    return seen


def judge_all_there_is(assessor: Any) -> set[uuid.UUID]:
    """Let one assessor judge until there is no work; return the items."""
    from judging.services import assign

    items = set()
    while (held := assign.claim(assessor=assessor, n=1).item) is not None:
        assign.submit(assessor=assessor, token=held.token, client_token=uuid.uuid4(), grade=1)
        items.add(held.item_id)
    return items


def as_simulated(world: World, setting: colluders.Setting, seed: int) -> colluders.Campaign:
    """Let the world's assessors judge, in random turns, until no assessor has work; return it like a simulated one."""
    from judging.models import Item
    from judging.services import assign

    made = colluders.Campaign(setting, seed)
    items = list(Item.objects.filter(campaign=world.campaign).order_by("topic_id", "id"))
    number = {item.pk: place for place, item in enumerate(items)}
    topics = {topic: place for place, topic in enumerate(sorted({item.topic_id for item in items}))}
    topic_of = {item.pk: topics[item.topic_id] for item in items}
    made.kind = [colluders.GOLD if item.pk in world.gold else colluders.ORDINARY for item in items]
    made.sightings = []
    rng, active = random.Random(seed), list(range(len(world.assessors)))
    while active:
        who = rng.choice(active)
        assessor = world.assessors[who]
        held = assign.claim(assessor=assessor, n=1).item
        if held is None:
            active.remove(who)
            continue
        assign.submit(assessor=assessor, token=held.token, client_token=uuid.uuid4(), grade=1)
        made.sightings.append(
            colluders.Sighting(len(made.sightings), who, topic_of[held.item_id], number[held.item_id])
        )
    return made


# -- over HTTP: all that a browser sees ---------------------------------------------------------------------------


class Browser:
    """An assessor's browser; every answer is timed and kept with its item."""

    def __init__(self, world: World, session: int) -> None:
        from django.test import Client

        assessor = world.assessors[session]
        self.world, self.session, self.place = world, session, 0
        self.api = f"/api/v1/campaigns/{assessor.campaign_id}"
        self.client = Client(SERVER_NAME="localhost")
        self.client.force_login(assessor.user)
        self.start = time.monotonic()
        self.answer, self.delivery = self.post("/claim", {"n": 1})
        self.delivered_at = time.monotonic()

    def post(self, path: str, body: dict[str, Any]) -> tuple[Any, float]:
        return timed(lambda: self.client.post(self.api + path, body, content_type="application/json"))

    def present(self) -> tuple[Seen, uuid.UUID] | None:
        """Read and judge the item at hand; the answer brings the next one."""
        body = self.answer.json()
        if not body["items"]:
            return None
        item, token = body["items"][0], body["items"][0]["token"]
        frame, frame_time = timed(lambda: self.client.get(item["document"]["frame_url"]))
        seen = Seen(False, self.session, self.place, item["topic"]["title"], self.delivered_at)
        bits = uuid.UUID(token).int
        seen.observed = {
            "delivery": self.delivery,
            "delivery bytes": len(self.answer.content),
            "delivery headers": hash(tuple(self.answer.headers)) % 1000,
            "keys": hash(json.dumps(body, default=str)[:12] + str(shape(body))) % 1000,
            "frame": frame_time,
            "frame bytes": len(frame.content),
            "frame headers": hash(tuple(frame.headers)) % 1000,
            "place": self.place,
            "judged": body["progress"]["judged"],
            "lease seconds": item["lease_seconds"],
            "token, high": float(bits >> 104),
            "token, low": float(bits & 0xFFFFFF),
            "seconds": time.monotonic() - self.start,
        }
        sent = {
            "token": token,
            "client_token": str(uuid.uuid4()),
            "grade": 1,
            "active_milliseconds": 900,
            "n": 1,
        }
        self.answer, took = self.post("/judgments", sent)
        seen.observed |= {
            "submit": took,
            "submit bytes": len(self.answer.content),
            "submit headers": hash(tuple(self.answer.headers)) % 1000,
        }
        seen.milliseconds = {"delivery": self.delivery, "frame": frame_time, "submit": took}
        self.delivery, self.delivered_at, self.place = took, time.monotonic(), self.place + 1
        return seen, uuid.UUID(token)


def shape(value: Any) -> Any:
    """Return keys, their order and the types, without the values."""
    if isinstance(value, dict):
        return [(key, shape(inner)) for key, inner in value.items()]
    if isinstance(value, list):
        return [shape(inner) for inner in value]
    return type(value).__name__


def over_http(world: World, seconds: float, seed: int, n_sessions: int, n_each: int = SESSION) -> list[Seen]:
    from judging.models import Lease

    browsers: dict[int, Browser] = {}
    seen, tokens = [], []
    for session in turns(n_sessions, n_each, seed, seconds):
        if session not in browsers:
            browsers[session] = Browser(world, session)
        presented = browsers[session].present()
        if presented is not None:
            seen.append(presented[0])
            tokens.append(presented[1])
    item_of = dict(Lease.objects.filter(token__in=tokens).values_list("token", "slot__item"))
    for one, token in zip(seen, tokens, strict=True):
        one.is_gold = item_of[token] in world.gold
    return seen


# -- from presentations to numbers ---------------------------------------------------------------------------------


def sessions_of(seen: list[Seen]) -> dict[int, list[Seen]]:
    sessions: dict[int, list[Seen]] = {}
    for one in seen:
        sessions.setdefault(one.session, []).append(one)
    return sessions


def in_order(seen: list[Seen], name: str) -> list[Seen]:
    """Return the presentations in the order in which this was timed: an item is judged some time after its delivery."""
    return sorted(seen, key=lambda one: one.at) if name == "delivery" else seen


def add_context(seen: list[Seen]) -> None:
    """Add what an assessor sees in a row of presentations: topic changes, and times against those around."""
    for session in sessions_of(seen).values():
        since = 0
        for place, one in enumerate(session):
            is_first = place == 0 or session[place - 1].topic != one.topic
            is_last = place + 1 == len(session) or session[place + 1].topic != one.topic
            since = 0 if is_first else since + 1
            one.observed |= {
                "since topic change": since,
                "first of topic": is_first,
                "last of topic": is_last,
            }
    for name in seen[0].milliseconds:
        ordered = in_order(seen, name)
        times = np.array([one.milliseconds[name] for one in ordered])
        for place, one in enumerate(ordered):
            around = times[max(0, place - 5) : place + 6]
            one.observed[f"{name} against those around"] = times[place] - float(np.median(around))


def matrix(seen: list[Seen]) -> tuple[NDArray[np.float64], NDArray[np.bool_], list[str]]:
    names = sorted(seen[0].observed)
    features = np.array([[float(one.observed[name]) for name in names] for one in seen])
    return features, np.array([one.is_gold for one in seen]), names


def first_of_topic(seen: list[Seen]) -> tuple[int, int, int, int]:
    """Return gold and all among presentations that begin a topic (but not a session), and among all others."""
    counts = [0, 0, 0, 0]
    for session in sessions_of(seen).values():
        for before, one in itertools.pairwise(session):
            place = 0 if before.topic != one.topic else 2
            counts[place] += one.is_gold
            counts[place + 1] += 1
    return counts[0], counts[1], counts[2], counts[3]


# -- controls: faults that must be seen ------------------------------------------------------------------------------


@contextmanager
def sleep_on_gold(world: World) -> Iterator[None]:
    """Let a claim take a millisecond longer when it brings gold."""
    from judging.services import assign

    honest = assign._take

    def slow(*arguments: Any, **named: Any) -> Any:
        held, took = honest(*arguments, **named)
        if took and held[-1].item_id in world.gold:
            time.sleep(SLEEP)
        return held, took

    assign._take = slow
    try:
        yield
    finally:
        assign._take = honest


@contextmanager
def gold_first() -> Iterator[None]:
    """Give the gold checks of a session before all its other items, as Label Studio's scheduler does."""
    from judging.services import statements

    honest = statements.CLAIM_IN_TOPIC
    nearer = "(c.position < %(pivot)s, c.position) < (o.position < %(pivot)s, o.position)"
    assert nearer in honest
    first = f"(SELECT count(*) FROM judging_lease l WHERE l.assessor_id = %(me)s) < {SESSION // 2}"  # noqa: S608
    statements.CLAIM_IN_TOPIC = honest.replace(nearer, first)
    try:
        yield
    finally:
        statements.CLAIM_IN_TOPIC = honest
