"""What an assessor's whole visit answers, byte by byte.

Random identifiers, times and the names of documents and topics (all of one length here) are replaced.
"""

import re
import uuid
from contextlib import contextmanager

from django.db import connection
from django.test import Client
from django.urls import reverse

from judging.models import (
    Assessor,
    GoldAnswer,
    Slot,
)


class Person:
    """An assessor with a browser and the transcript of what it was answered."""

    def __init__(self, assessor: Assessor) -> None:
        self.assessor, self.client = assessor, Client()
        self.client.force_login(assessor.user)
        self.items: list[dict[str, str]] = []  # as the last claim gave them
        self.transcript: list[tuple[str, str]] = []
        self.statements: list[tuple[str, list[str]]] = []
        self.raw: list[str] = []

    def url(self, name: str, space: str = "judging", **arguments) -> str:
        return reverse(f"{space}:{name}", kwargs=arguments or {"campaign_id": self.assessor.campaign_id})

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


def is_gold(slot: Slot) -> bool:
    known = GoldAnswer.objects.filter(topic=slot.item.topic_id, document=slot.item.document_id)
    return slot.purpose == Slot.Purpose.CHECK and known.exists()


def visit(person: Person) -> None:
    """Do all that an assessor can do about the leased item, right and wrong."""
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
    person.get("my campaigns, for programs", reverse("console:api-my-campaigns"))
    person.get("my judgments, for programs", person.url("api-my-judgments", space="console"))
    person.get("completion, for programs", person.url("api-my-completion", space="console"))
    person.get("messages, for programs", reverse("console:api-my-messages"))


def reason(body: dict) -> dict:
    return {
        **body,
        "client_token": str(uuid.uuid4()),
        "grade": None,
        "obstacle": "language",
        "comment": "Why",
    }
