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
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, get_resolver, reverse
from small_campaign import make_assessor, make_campaign

from judging.models import Assessor, GoldAnswer, Judgment, Lease, Slot
from judging.services import assign
from judging.services.errors import Refused
from touchstone.models import User

pytestmark = pytest.mark.django_db

# Rows get numbers that nothing else in an answer looks like.
SEQUENCES = {"judging_slot": 7_100_001, "judging_judgment": 7_200_001, "judging_document": 7_300_001}
NUMBER_OF_A_ROW = re.compile(r"\b7[123]\d{5}\b")
SAME_LENGTH = {"touchstone_user": 8_100_001, "judging_assessor": 8_200_001, "judging_topic": 8_300_001}
WORDS = re.compile(r"\b(gold|golds|checks?|gold.?check|decoys?|audits?|audited|honeypots?)\b", re.IGNORECASE)
N_PEOPLE, N_COMPARED = 30, 3

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
}
# What stands in an address, from the largest set of names that addresses use.
NAMES = {"campaign_id", "token", "collection_id", "job_id", "assessor_id", "entry_key", "position"}


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
        "position": 1,
    }
    arguments = {}
    for key, converter in pattern.pattern.converters.items():
        kind = type(converter).__name__
        arguments[key] = known.get(key) or (
            uuid.uuid4() if kind == "UUIDConverter" else 1 if kind == "IntConverter" else "t0"
        )
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
        with CaptureQueriesContext(connection) as queries:
            response = send()
        self.transcript.append((label, normalised(response)))
        self.statements.append((label, [statement(query["sql"]) for query in queries]))
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
        (r"expires=[^;]+", "<date>"),
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?", "<time>"),
        (r"\bbob\d\d\b", "<name>"),
        (r"\b8[123]\d{5}\b", "<my number>"),
    ):
        text = re.sub(pattern, name, text)
    return text


def statement(sql: str) -> str:
    """Return the text of a statement without its values."""
    sql = re.sub(r"'(?:[^']|'')*'", "?", sql)
    sql = re.sub(r"\b(TRUE|FALSE|NULL)\b", "?", sql, flags=re.IGNORECASE)
    return re.sub(r"\b\d+(\.\d+)?(e-?\d+)?\b", "?", sql)


def slot_of(token) -> Slot:
    return Lease.objects.select_related("slot__item").get(token=token).slot


def is_gold(slot: Slot) -> bool:
    known = GoldAnswer.objects.filter(topic=slot.item.topic_id, document=slot.item.document_id)
    return slot.purpose == Slot.Purpose.CHECK and known.exists()


@pytest.fixture
def campaign(tmp_path):
    with connection.cursor() as cursor:
        for table, start in {**SEQUENCES, **SAME_LENGTH}.items():
            cursor.execute(
                f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), %s)",  # noqa: S608 (our own names)
                [start],
            )
    return make_campaign(tmp_path, budget=24, kind="pool", gold_check_rate=0.4)


@pytest.fixture
def people(campaign):
    """Return those who got a gold check as their first item, and those who got an ordinary one."""
    gold, ordinary = [], []
    for number in range(10, 10 + N_PEOPLE):
        person = Person(make_assessor(campaign, f"bob{number}"))
        person.items = person.post("claim", "claim", n=1).json()["items"]
        (gold if is_gold(slot_of(person.items[0]["token"])) else ordinary).append(person)
    assert min(len(gold), len(ordinary)) >= N_COMPARED, "the coin fell too unevenly: about once in 10,000 runs"
    return gold[:N_COMPARED], ordinary[:N_COMPARED]


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


def reason(body: dict) -> dict:
    return {**body, "client_token": str(uuid.uuid4()), "grade": None, "obstacle": "language", "comment": "Why"}




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
