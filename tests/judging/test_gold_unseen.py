"""Gold unseen: whoever holds a gold check gets the very answers that whoever holds an ordinary item gets.

A transcript is what an assessor's whole visit answers, byte by byte, once random identifiers, times and the names of
documents and topics (all of one length here) are replaced. Gold and ordinary transcripts must be one.
"""

import re
import uuid
from collections import Counter
from contextlib import contextmanager

import pytest
from django.db import connection, transaction
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse
from django.urls.converters import UUIDConverter
from small_campaign import DEPTH, make_assessor, make_campaign

from judging.models import (
    Assessor,
    Campaign,
    CampaignTopic,
    Collection,
    Document,
    GoldAnswer,
    Item,
    Judgment,
    Lease,
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
from sampling.questions import Design
from sampling.services.drawing import draw
from touchstone.models import User

pytestmark = pytest.mark.django_db

# Rows get numbers that nothing else in an answer looks like.
SEQUENCES = {"judging_slot": 7_100_001, "judging_judgment": 7_200_001, "judging_document": 7_300_001}
NUMBER_OF_A_ROW = re.compile(r"\b7[123]\d{5}\b")
SAME_LENGTH = {"touchstone_user": 8_100_001, "judging_assessor": 8_200_001, "judging_topic": 8_300_001}
WORDS = re.compile(r"\b(gold|golds|checks?|gold.?check|decoys?|audits?|audited|honeypots?)\b", re.IGNORECASE)
MOST_PEOPLE, N_COMPARED = 40, 3

# -- which routes there are -------------------------------------------------------------------------------------

# Of every route that an assessor can reach: how this file looks at it. "visit": the transcript below asks for it;
# "asked": asked for in the middle of the visit, by whoever holds a gold check and by whoever holds none, and compared.
ROUTES = {
    "home": "asked",
    "login": "asked",
    "logout": "asked",
    "livez": "asked",
    "readyz": "asked",
    "account-tokens": "asked",
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
    "judging:complete": "visit",
    "judging:consent": "asked",
    "judging:training": "asked",
    "judging:instructions": "asked",
    "judging:batch": "asked",
    "judging:api-my-campaigns": "visit",
    "judging:api-my-judgments": "visit",
    "judging:api-my-completion": "visit",
    "judging:api-my-messages": "visit",
    "judging:api-my-consent": "asked",
    "judging:api-my-training": "asked",
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
    """Return the route's address for this assessor: his campaign, his lease, himself."""
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


# -- people -----------------------------------------------------------------------------------------------------


class Person:
    """An assessor with a browser and the transcript of what it was answered."""

    def __init__(self, assessor: Assessor) -> None:
        self.assessor, self.client = assessor, Client()
        self.client.force_login(assessor.user)
        self.transcript: list[tuple[str, str]] = []
        self.statements: list[tuple[str, list[str]]] = []
        self.raw: list[str] = []

    def url(self, name: str, **arguments) -> str:
        return reverse(f"judging:{name}", kwargs=arguments or {"campaign_id": self.assessor.campaign_id})

    def get(self, label: str, url: str):
        return self._answered(label, lambda: self.client.get(url))

    def post(self, label: str, name: str, **body):
        url = self.url(name)
        return self._answered(label, lambda: self.client.post(url, body, content_type="application/json"))

    def _answered(self, label: str, send):
        with statements_run() as run:
            response = send()
        self.transcript.append((label, normalised(response)))
        self.statements.append((label, run))
        self.raw.append(visible(response))
        return response


def content(response) -> str:
    body = b"".join(response.streaming_content) if response.streaming else response.content
    return body.decode()


def visible(response) -> str:
    """Return all that comes back, but for the style of the page and the random identifiers."""
    headers = "\n".join(f"{name}: {value}" for name, value in response.headers.items())
    cookies = "\n".join(morsel.OutputString() for morsel in response.cookies.values())
    return replaced(f"{headers}\n{cookies}\n{re.sub(r'(?s)<style>.*?</style>', '', content(response))}")


def normalised(response) -> str:
    """Return the answer with everything replaced that is random, a time, or a name all of whose kind are as long."""
    headers = "\n".join(f"{name}: {value}" for name, value in response.headers.items())
    cookies = "\n".join(morsel.OutputString() for morsel in response.cookies.values())
    return f"{response.status_code}\n" + replaced(f"{headers}\n{cookies}\n\n{content(response)}")


def replaced(text: str) -> str:
    for pattern, name in (
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<random>"),
        (r"\bt\d(d\d\d)", r"<document>"),
        (r"\bNeed t\d", "<topic>"),
        (r"nonce-[\w+/=-]+", "<nonce>"),
        (r'nonce="[\w+/=-]+"', "<nonce>"),
        (r'(csrf_?token"?[=:] ?"?|csrfmiddlewaretoken" value=")[\w-]{32,64}', "<csrf>"),
        (r"sessionid=\w+", "<session>"),
        (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", "<date>"),
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?", "<time>"),
        (r"\bbob\d\d\b", "<name>"),
        (r"\b8[123]\d{5}\b", "<my number>"),
    ):
        text = re.sub(pattern, name, text)
    return text


@contextmanager
def statements_run():
    """Yield the texts of the statements that run inside, without their values and the names of savepoints."""
    texts = []

    def note(execute, sql, parameters, many, context):
        texts.append(re.sub(r'"s\d+_x\d+"', "<savepoint>", str(sql)))
        return execute(sql, parameters, many, context)

    with connection.execute_wrapper(note):
        yield texts


def slot_of(token) -> Slot:
    return Lease.objects.select_related("slot__item").get(token=token).slot


def is_gold(slot: Slot) -> bool:
    known = GoldAnswer.objects.filter(topic=slot.item.topic_id, document=slot.item.document_id)
    return slot.purpose == Slot.Purpose.CHECK and known.exists()


@pytest.fixture
def campaign(tmp_path, request):
    with connection.cursor() as cursor:
        for table, start in {**SEQUENCES, **SAME_LENGTH}.items():
            cursor.execute(
                "SELECT setval(pg_get_serial_sequence(%s, 'id'), %s)",
                [table, start],
            )
    if not hasattr(request, "param"):
        return make_campaign(tmp_path, budget=24, kind="pool", gold_check_rate=0.4)
    made = make_campaign(tmp_path, budget=12, kind="pool", gold_check_rate=0.4)
    bob = make_assessor(made, "bob99")
    for _ in range(5):
        assign.submit(
            assessor=bob, token=assign.claim(assessor=bob).item.token, client_token=uuid.uuid4(), grade=1
        )
    draw(campaign=made, design=Design("pool", (), measure="DCG@10", depth=DEPTH, budget=24))
    return made


@pytest.fixture
def people(campaign):
    """Return those who got a gold check as their first item, and those who got an ordinary one."""
    gold, ordinary = [], []
    for number in range(10, 10 + MOST_PEOPLE):
        person = Person(make_assessor(campaign, f"bob{number}"))
        person.items = person.post("claim", "claim", n=1).json()["items"]
        (gold if is_gold(slot_of(person.items[0]["token"])) else ordinary).append(person)
        if min(len(gold), len(ordinary)) == N_COMPARED:
            return gold[:N_COMPARED], ordinary[:N_COMPARED]
    raise AssertionError("the coin fell too unevenly: less than once in 10,000 runs")


# -- the visit --------------------------------------------------------------------------------------------------


def visit(person: Person) -> None:
    """Do all that an assessor can do about the item he holds, right and wrong."""
    token = person.items[0]["token"]
    body = {"client_token": str(uuid.uuid4()), "token": token, "grade": 1, "active_milliseconds": 1500}
    person.post("claim again", "claim", n=1)
    person.get("frame", person.url("frame", token=token))
    person.get("frame without marks", person.url("frame", token=token) + "?marks=0")
    person.get("frame of nobody", person.url("frame", token=uuid.uuid4()))
    person.get("screen", person.url("judge"))
    person.post("heartbeat", "heartbeat", tokens=[token])
    person.post("heartbeat of nobody", "heartbeat", tokens=[str(uuid.uuid4())])
    person.post("claim with text", "claim", n=1, with_text=True)
    person.post("claim of nothing", "claim", n=0)
    person.post("revise too early", "revise", **{**body, "client_token": str(uuid.uuid4())})
    person.post("grade off the scale", "submit", **{**body, "grade": 9})
    person.post("grade that is none", "submit", **{**body, "grade": "x"})
    person.post("neither grade nor reason", "submit", **{**body, "grade": None})
    person.post("reason that is none", "submit", **{**body, "grade": None, "obstacle": "bored"})
    person.post("unknown lease", "submit", **{**body, "token": str(uuid.uuid4())})
    person.post("submit", "submit", **body, n=1)
    person.post("submit again", "submit", **body, n=1)
    person.post("token reused", "submit", **{**body, "grade": 2}, n=1)
    person.post("judged already", "submit", **{**body, "client_token": str(uuid.uuid4())}, n=1)
    person.get("history", person.url("history"))
    person.post("revise", "revise", **{**body, "client_token": str(uuid.uuid4()), "grade": 2})
    person.post("revise to a reason", "revise", **reason(body))
    person.get("history after revising", person.url("history"))
    person.get("frame of a judged item", person.url("frame", token=token))
    person.post("heartbeat of a judged item", "heartbeat", tokens=[token])
    person.get("home", reverse("judging:home"))
    person.get("my data", person.url("my-data"))
    person.get("completion", person.url("complete"))
    person.get("my campaigns, for programs", reverse("judging:api-my-campaigns"))
    person.get("my judgments, for programs", person.url("api-my-judgments"))
    person.get("completion, for programs", person.url("api-my-completion"))
    person.get("messages, for programs", reverse("judging:api-my-messages"))


def reason(body: dict) -> dict:
    return {
        **body,
        "client_token": str(uuid.uuid4()),
        "grade": None,
        "obstacle": "language",
        "comment": "Why",
    }


def test_a_whole_visit_answers_the_same_bytes_for_a_gold_check_and_an_ordinary_item(people):
    gold, ordinary = people
    for person in [*gold, *ordinary]:
        visit(person)
    expected = ordinary[0].transcript
    assert len(expected) > 25
    assert {answer.partition("\n")[0] for _, answer in expected} == {"200", "400", "404", "409"}
    for person in [*gold, *ordinary]:
        for (label, answer), (_, wanted) in zip(person.transcript, expected, strict=True):
            assert answer == wanted, f"{label} differs"


@pytest.mark.parametrize("campaign", ["topped up"], indirect=True)
def test_a_whole_visit_answers_the_same_bytes_after_a_later_batch(campaign, people):
    assert campaign.draws.count() == 2
    test_a_whole_visit_answers_the_same_bytes_for_a_gold_check_and_an_ordinary_item(people)


def test_a_visit_runs_the_same_statements_for_a_gold_check_and_an_ordinary_item(people):
    gold, ordinary = people
    for person in [*gold, *ordinary]:
        visit(person)
    # Submitting answers with what comes next. Once in a while that is in another topic, which has to be looked for:
    # the shortest list is the one of an assessor who stays where he is.
    for place, (label, _) in enumerate(ordinary[0].statements):
        shortest = [
            min((person.statements[place][1] for person in group), key=len) for group in (gold, ordinary)
        ]
        assert shortest[0] == shortest[1], label
    assert any("judging_slot" in sql for _, statements in ordinary[0].statements for sql in statements)


def test_no_answer_says_what_an_item_is_for_or_which_row_or_document_it_is(people):
    for person in [*people[0], *people[1]]:
        visit(person)
        for (label, _), raw in zip(person.transcript, person.raw, strict=True):
            assert not WORDS.search(raw), (label, WORDS.search(raw))
            assert not NUMBER_OF_A_ROW.search(raw), (label, NUMBER_OF_A_ROW.search(raw))
            if not label.startswith(("frame", "claim with text")):  # the text of a document here is its id
                assert "<document>" not in raw, label


# -- the comparison itself can fail ------------------------------------------------------------------------------


def telling_purpose(token) -> str:
    return Slot.objects.get(token=token).purpose


@pytest.mark.parametrize("leak", ["order of keys", "one key more", "a number", "other lease time"])
def test_a_body_that_tells_is_caught(people, leak, monkeypatch):
    from judging import serializers

    honest = serializers.item_json

    def telling(held, lease_seconds):
        made = honest(held, lease_seconds)
        if telling_purpose(held.token) == "check":
            return {
                "order of keys": dict(reversed(made.items())),
                "one key more": {**made, "kind": ""},
                "a number": {**made, "topic": {**made["topic"], "narrative": str(held.slot_id)}},
                "other lease time": {**made, "lease_seconds": lease_seconds - 1},
            }[leak]
        return made

    monkeypatch.setattr(serializers, "item_json", telling)
    gold, ordinary = people
    for person in (gold[0], ordinary[0]):
        person.post("claim again", "claim", n=1)
    assert gold[0].transcript[-1] != ordinary[0].transcript[-1]


@pytest.mark.parametrize("leak", ["a header", "a cookie", "a status"])
def test_a_header_that_tells_is_caught(people, leak, monkeypatch):
    gold, ordinary = people
    honest = Client.request

    def telling(self, **request):
        response = honest(self, **request)
        if self is gold[0].client:
            if leak == "a header":
                response.headers["ETag"] = '"1"'
            elif leak == "a cookie":
                response.set_cookie("seen", "1")
            else:
                response.status_code = 203
        return response

    monkeypatch.setattr(Client, "request", telling)
    for person in (gold[0], ordinary[0]):
        person.post("claim again", "claim", n=1)
    assert gold[0].transcript[-1] != ordinary[0].transcript[-1]


def test_a_statement_more_is_caught(people, monkeypatch):
    gold, ordinary = people
    honest = assign.claim_as

    def telling(**whose):
        claimed = honest(**whose)
        if telling_purpose(claimed.item.token) == "check":
            Slot.objects.exists()
        return claimed

    monkeypatch.setattr(assign, "claim_as", telling)
    for person in (gold[0], ordinary[0]):
        person.post("claim again", "claim", n=1)
    assert gold[0].transcript[-1] == ordinary[0].transcript[-1]
    assert gold[0].statements[-1] != ordinary[0].statements[-1]


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
    slots = []
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
    """If there are checks left that he has not seen, they come with ordinary work, never instead of it."""
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
