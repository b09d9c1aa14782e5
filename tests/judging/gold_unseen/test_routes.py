"""Gold unseen on every route that an assessor reaches, over time, and in the slots themselves."""

import re
import uuid
from collections import Counter
from contextlib import contextmanager

import pytest
from django.db import connection, transaction
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse
from django.urls.converters import UUIDConverter
from small_campaign import make_assessor
from transcripts import Person, is_gold, normalised

from judging.models import (
    Assessor,
    Campaign,
    CampaignTopic,
    Collection,
    Document,
    GoldAnswer,
    Item,
    Judgment,
    Slot,
    Topic,
)
from judging.services import assign
from judging.services.campaigns import (
    DEFAULT_GRADES,
    add_check_slots,
    create_campaign,
    open_campaign,
    open_slots,
)
from judging.services.errors import Refused
from judging.services.machines import give_back
from touchstone import health
from touchstone.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def every_probe_looks_anew(monkeypatch):
    """What one probe found is kept for the next ones: here each is compared with another."""
    monkeypatch.setattr(health, "EVERY", 0.0)


# -- which routes there are -------------------------------------------------------------------------------------

# Of every route that an assessor can reach: how this file looks at it. "visit": the transcript below asks for it;
# "asked": asked for in the middle of the visit, by whoever holds a gold check and by whoever holds none, and compared.
ROUTES = {
    "home": "asked",
    "language": "asked",
    "login": "asked",
    "logout": "asked",
    "livez": "asked",
    "readyz": "asked",
    "account": "asked",
    "forgotten": "asked",
    "account-tokens": "asked",
    "account-letters": "asked",
    "api-guide": "asked",
    "api-me": "asked",
    "api-schema": "asked",
    "judging:home": "visit",
    "judging:judge": "visit",
    "judging:my-data": "visit",
    "judging:frame": "visit",
    "judging:claim": "visit",
    "judging:submit": "visit",
    "judging:revise": "visit",
    "judging:heartbeat": "visit",
    "judging:history": "visit",
    "judging:questions": "asked",
    "judging:complete": "visit",
    "judging:consent": "asked",
    "judging:training": "asked",
    "judging:instructions": "asked",
    "judging:batch": "asked",
    "console:api-my-campaigns": "visit",
    "console:api-my-judgments": "visit",
    "console:api-my-completion": "visit",
    "console:api-my-messages": "visit",
    "console:api-my-consent": "asked",
    "console:api-my-training": "asked",
}


def routes() -> dict[str, URLPattern]:
    """Return every route of the product by its name."""
    found = {}

    def walk(patterns, prefix):
        for entry in patterns:
            if isinstance(entry, URLPattern):
                assert entry.name, f"{entry.pattern} has no name"
                found[prefix + entry.name] = entry
            else:
                walk(entry.url_patterns, f"{entry.namespace}:" if entry.namespace else prefix)

    walk(get_resolver().url_patterns, "")
    return found


def address(name: str, pattern: URLPattern, assessor: Assessor, token: uuid.UUID) -> str:
    """Return the route's address for this assessor: campaign, lease, account."""
    known = {
        "campaign_id": assessor.campaign_id,
        "token": token,
        "collection_id": assessor.campaign.collection_id,
        "assessor_id": assessor.pk,
        "entry_key": assessor.campaign.entry_key,
    }
    arguments = {}
    for key in pattern.pattern.regex.groupindex:
        word = re.search(rf"\(\?P<{key}>([\w-]+)[|)]", pattern.pattern.regex.pattern)
        is_random = isinstance(pattern.pattern.converters.get(key), UUIDConverter)
        arguments[key] = known.get(key) or (word[1] if word else uuid.uuid4() if is_random else 1)
    return reverse(name, kwargs=arguments)


# -- every route ------------------------------------------------------------------------------------------------


@contextmanager
def undone():
    """Whatever happens inside is taken back, also what a refused request left behind."""
    try:
        with transaction.atomic():
            yield
            raise _UndoneError
    except _UndoneError:
        pass


class _UndoneError(Exception):
    pass


def answers(person: Person, method: str, name: str, pattern: URLPattern):
    token = person.items[0]["token"]
    made = []
    with undone():
        client = Client()
        client.force_login(person.assessor.user)
        url = address(name, pattern, person.assessor, token)
        made.append(
            client.get(url) if method == "get" else client.post(url, {}, content_type="application/json")
        )
        made.append(normalised(made[0]))
    return made


def test_every_route_an_assessor_reaches_is_looked_at_here(people):
    """A route that is new is reached by the gold check's holder and by the other one, and must answer both alike."""
    reached = set()
    gold, ordinary = people[0][0], people[1][0]
    for name, pattern in routes().items():
        for method in ("get", "post"):
            response, of_gold = answers(gold, method, name, pattern)
            _, of_ordinary = answers(ordinary, method, name, pattern)
            assert of_gold == of_ordinary, f"{method} {name}"
            if response.status_code not in (403, 404, 405):
                reached.add(name)
    assert reached - ROUTES.keys() == set(), "an assessor reaches these: say in ROUTES how they are looked at"
    assert ROUTES.keys() <= routes().keys()
    assert {name for name, how in ROUTES.items() if how == "visit"} <= reached


# -- what happens over time --------------------------------------------------------------------------------------


def expire(assessor: Assessor) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE judging_slot SET lease_until = clock_timestamp() - interval '1 second' "
            "WHERE assessor_id = %s AND state = 'leased'",
            [assessor.pk],
        )


def test_an_expired_lease_comes_back_as_the_same_item_whatever_it_is(people):
    for person in [*people[0], *people[1]]:
        before = person.items[0]["token"]
        for _ in range(3):
            expire(person.assessor)
            again = person.post("claim after expiry", "claim", n=1).json()["items"]
            assert [item["token"] for item in again] == [before]
    assert len({person.transcript[-1] for person in [*people[0], *people[1]]}) == 1


def test_late_work_is_answered_alike_whatever_it_is(people):
    """The lease expired, a manager took it back, and then the judgment comes after all."""
    for person in [*people[0], *people[1]]:
        token = person.items[0]["token"]
        expire(person.assessor)
        Slot.objects.filter(token=token).update(
            state="open", assessor=None, token=None, leased_at=None, lease_until=None
        )
        body = {"token": token, "client_token": str(uuid.uuid4()), "grade": 1}
        person.post("heartbeat of a lost lease", "heartbeat", tokens=[token])
        person.get("frame of a lost lease", person.url("frame", token=token))
        person.post("late", "submit", **body, n=1)
        person.get("history", person.url("history"))
        assert Judgment.objects.get(lease_token=token).slot_id is not None
    assert len({tuple(person.transcript[1:]) for person in [*people[0], *people[1]]}) == 1


def test_cannot_judge_is_answered_alike_whatever_it_is(people):
    for person in [*people[0], *people[1]]:
        token = person.items[0]["token"]
        body = {"token": token, "client_token": str(uuid.uuid4()), "obstacle": "language", "comment": "Why"}
        person.post("cannot judge", "submit", **body, n=1)
        person.post("cannot judge, again", "submit", **body, n=1)
        person.get("history", person.url("history"))
        person.post("after all", "revise", **graded(body))
        person.get("my data", person.url("my-data"))
    assert len({tuple(person.transcript[1:]) for person in [*people[0], *people[1]]}) == 1


def graded(body: dict) -> dict:
    return {**body, "client_token": str(uuid.uuid4()), "obstacle": "", "grade": 1}


def judge_everything(assessor: Assessor, most: int = 200) -> list[Slot]:
    """Judge until there is no work; return the slots in the order of presentation."""
    slots: list[Slot] = []
    for _ in range(most):
        claimed = assign.claim(assessor=assessor)
        if claimed.item is None:
            return slots
        slots.append(Slot.objects.select_related("item").get(pk=claimed.item.slot_id))
        assign.submit(
            assessor=assessor, token=claimed.item.token, client_token=uuid.uuid4(), grade=len(slots) % 4
        )
    raise AssertionError("there is always more work")


def test_looking_again_when_there_is_no_work_never_brings_a_check(campaign):
    """Checks that the assessor has not seen come with ordinary work, never instead of it."""
    bob = make_assessor(campaign, "bob10")
    assert len(judge_everything(bob)) > campaign.slots.filter(purpose="judge", number=1).count()
    client = Client()
    client.force_login(bob.user)
    url = reverse("judging:claim", args=[campaign.pk])
    replies = {
        client.post(url, {"n": n % 50 + 1}, content_type="application/json").content for n in range(200)
    }
    assert len(replies) == 1
    assert b'"items":[],"reason":"no work"' in replies.pop()


def make_short_topics(n_topics: int, n_checks: int) -> Campaign:
    """Return an open campaign whose topics have one ordinary item and many gold checks each."""
    collection = Collection.objects.create(name=f"short topics {uuid.uuid4()}")
    campaign = create_campaign(
        collection=collection, name=collection.name, user=None, grades=DEFAULT_GRADES, gold_check_rate=0.5
    )
    for number in range(n_topics):
        topic = Topic.objects.create(collection=collection, topic_id=f"t{number}", title="A need")
        CampaignTopic.objects.create(campaign=campaign, topic=topic, check_rate=0.5)
        documents = Document.objects.bulk_create(
            Document(collection=collection, doc_id=f"{topic.topic_id}d{n}", text="Text")
            for n in range(1 + n_checks)
        )
        items = Item.objects.bulk_create(
            Item(campaign=campaign, topic=topic, document=document) for document in documents
        )
        GoldAnswer.objects.bulk_create(
            GoldAnswer(topic=topic, document=document, grade=1, source="test") for document in documents[1:]
        )
        open_slots(items=items[:1], purpose="judge", n_each=1, seed=number)
        open_slots(items=items[1:], purpose="check", n_each=1, seed=number)
    open_campaign(campaign=campaign, actor=None)
    return campaign


def test_the_first_item_of_a_topic_may_be_a_check_wherever_the_topic_comes():
    """At a rate of 0.5 none of 29 topics begins with a check once in 500 million runs."""
    bob = make_assessor(make_short_topics(n_topics=30, n_checks=15), "bob10")
    first = {}
    for slot in judge_everything(bob, most=600):
        first.setdefault(slot.topic_id, slot.purpose)
    assert len(first) == 30
    assert "check" in list(first.values())[1:]


def test_giving_items_back_and_asking_again_tells_nothing_about_the_next_one(campaign):
    """Who could draw again and again at one place would see whether it draws from the few checks or from the rest."""
    bob = make_assessor(campaign, "bob10")
    Assessor.objects.filter(pk=bob.pk).update(kind=Assessor.Kind.MACHINE)
    kinds = set()
    for _ in range(40):
        held = assign.claim(assessor=bob).item
        kinds.add(Slot.objects.get(pk=held.slot_id).purpose)
        assert give_back(assessor=Assessor.objects.get(pk=bob.pk), tokens=[held.token]) == 1
    assert kinds == {"judge", "check"}


# -- a check, a decoy and their slots ----------------------------------------------------------------------------


def test_decoys_and_gold_checks_have_slots_of_one_kind_and_number():
    """In a long topic with little gold a check is shown more often than other items, and a decoy repeats like it."""
    campaign = make_short_topics(n_topics=1, n_checks=0)
    topic = campaign.collection.topics.get()
    documents = Document.objects.bulk_create(
        Document(collection=campaign.collection, doc_id=f"more{n}", text="Text") for n in range(110)
    )
    drawn, others = documents[:100], documents[100:]
    Item.objects.bulk_create(Item(campaign=campaign, topic=topic, document=document) for document in drawn)
    GoldAnswer.objects.create(topic=topic, document=others[0], grade=1, source="test")
    campaign.gold_check_rate, campaign.decoys_per_check = 0.1, 1
    n_made = add_check_slots(
        campaign=campaign,
        seed=3,
        new_items={topic.pk: 101},
        undrawn=lambda _: [document.doc_id for document in others],
    )
    assert n_made == 2
    kinds = Counter(
        (slot.item_id, is_gold(slot))
        for slot in campaign.slots.filter(purpose="check").select_related("item")
    )
    assert {gold for _, gold in kinds} == {True, False}
    assert len(set(kinds.values())) == 1
    assert min(kinds.values()) > 1


def test_a_person_without_a_campaign_is_told_nothing(campaign):
    charlie = User.objects.create(username="charlie")
    with pytest.raises(Refused):
        assign.assessor_of(user=charlie, campaign_id=campaign.pk)
