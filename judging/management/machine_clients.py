"""The two ways of a machine assessor to its campaign: within this process, or over the REST API of a Touchstone.

Both are the contract that people judge under: claim, submit with a client token, heartbeat.
"""

import json
import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import httpx
from django.db import InterfaceError, OperationalError, connection

from judging.models import Assessor, Judgment
from judging.services import assign, leases, machines

TRIES = 6  # for the database or the server to come back: about half a minute
# The API takes no longer bodies (touchstone/uploads.py); a judgment with its call always fits.
LONGEST_BODY = 9_500
T = TypeVar("T")


class NotServed(Exception):
    """The Touchstone refuses, or cannot be reached; the message is for whoever started the machine."""


@dataclass(frozen=True)
class Work:
    """An item to judge: its lease, and the fields of a prompt that it fills."""

    token: str
    fields: Mapping[str, str]


@dataclass(frozen=True)
class Verdict:
    """What is sent for an item: a judgment, unless it is None, and the calls made for it."""

    judgment: Mapping[str, Any] | None
    calls: Sequence[Mapping[str, Any]]


class Client(Protocol):
    def instructions(self) -> Mapping[str, Any]:
        """Return the scale, the guidelines, the prompt, the length of a lease."""

    def claim(self, n: int) -> tuple[list[Work], str]:
        """Return items to judge, those held before first; or the reason for none."""

    def send(self, verdicts: Sequence[Verdict]) -> int:
        """Store all of it; return how many judgments were refused."""

    def extend(self, tokens: Sequence[str]) -> None:
        """Keep the leases for another while."""

    def release(self, tokens: Sequence[str]) -> None:
        """Give leases back."""


class Direct:
    """The services of this process's database."""

    def __init__(self, assessor: Assessor) -> None:
        self.assessor = assessor

    def instructions(self) -> Mapping[str, Any]:
        return machines.instructions(assessor=self.assessor)

    def claim(self, n: int) -> tuple[list[Work], str]:
        claimed = self._retry(lambda: assign.claim(assessor=self.assessor, n=n))
        texts = self._retry(lambda: machines.texts_of(claim=claimed, campaign=self.assessor.campaign))
        works = [
            Work(
                str(held.token),
                {
                    "topic_title": held.topic_title,
                    "topic_description": held.topic_description,
                    "topic_narrative": held.topic_narrative,
                    "document_title": claimed.title_of(held),
                    "document_text": texts[held.item_id],
                },
            )
            for held in claimed.items
        ]
        return works, claimed.reason

    def send(self, verdicts: Sequence[Verdict]) -> int:
        submissions = [_with_uuids(verdict.judgment) for verdict in verdicts if verdict.judgment]
        calls = [_with_uuids(call) for verdict in verdicts for call in verdict.calls]
        outcomes, _ = self._retry(
            lambda: machines.save_batch(assessor=self.assessor, submissions=submissions, calls=calls)
        )
        return sum(not isinstance(outcome, Judgment) for outcome in outcomes)

    def extend(self, tokens: Sequence[str]) -> None:
        self._retry(lambda: leases.extend(assessor=self.assessor, tokens=[uuid.UUID(one) for one in tokens]))

    def release(self, tokens: Sequence[str]) -> None:
        self._retry(
            lambda: machines.give_back(assessor=self.assessor, tokens=[uuid.UUID(one) for one in tokens])
        )

    def _retry(self, do: Callable[[], T]) -> T:
        """Do it, and when the database was away, do it again: whatever this client does may be done twice."""
        for wait in _waits():
            try:
                return do()
            except (OperationalError, InterfaceError):
                connection.close()
                time.sleep(wait)
        return do()


class Remote:
    """The REST API of a Touchstone, with a key."""

    def __init__(self, address: str, campaign: uuid.UUID, client: httpx.Client, key: str) -> None:
        self.base = f"{address.rstrip('/')}/api/v1/campaigns/{campaign}/"
        self.client = client
        self.headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def instructions(self) -> Mapping[str, Any]:
        return self._ask("GET", "instructions")

    def claim(self, n: int) -> tuple[list[Work], str]:
        answer = self._ask("POST", "claim", json.dumps({"n": n, "with_text": True}))
        works = [
            Work(
                item["token"],
                {
                    **{f"topic_{name}": text for name, text in item["topic"].items()},
                    "document_title": item["document"]["title"],
                    "document_text": item["document"]["text"],
                },
            )
            for item in answer["items"]
        ]
        return works, answer["reason"]

    def send(self, verdicts: Sequence[Verdict]) -> int:
        refused = 0
        for body in bodies(verdicts):
            answer = self._ask("POST", "batch", body)
            refused += sum(entry["status"] != httpx.codes.OK for entry in answer["saved"])
        return refused

    def extend(self, tokens: Sequence[str]) -> None:
        self._ask("POST", "heartbeat", json.dumps({"tokens": list(tokens)}))

    def release(self, tokens: Sequence[str]) -> None:
        self._ask("POST", "batch", json.dumps({"release": list(tokens)}))

    def _ask(self, method: str, name: str, body: str | None = None) -> dict[str, Any]:
        """Return the answer; a server that is away or busy is asked again, with the same body."""
        why = ""
        for wait in (*_waits(), 0.0):
            try:
                response = self.client.request(
                    method, self.base + name, content=body and body.encode(), headers=self.headers
                )
            except httpx.HTTPError as error:
                why = f"{type(error).__name__}: {error}"
            else:
                if response.status_code == httpx.codes.OK:
                    return _json(response)
                why = _refusal(response)
                if response.status_code < httpx.codes.INTERNAL_SERVER_ERROR:
                    break
            time.sleep(wait)
        raise NotServed(f"{self.base}{name}: {why}")


def bodies(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield the verdicts as bodies of requests, in order, each as long as one may be.

    A judgment and its calls stay together, so that a repeated request stores neither twice. Only calls that are too
    long for that (many retries, each with a long reason) go ahead by themselves.
    """
    parts: list[Verdict] = []
    for verdict in verdicts:
        if _length([verdict]) > LONGEST_BODY:
            *early, last = verdict.calls
            parts += [Verdict(None, [call]) for call in early] + [Verdict(verdict.judgment, [last])]
        else:
            parts.append(verdict)
    waiting: list[Verdict] = []
    for part in parts:
        n_judgments = sum(one.judgment is not None for one in waiting)
        if waiting and (_length([*waiting, part]) > LONGEST_BODY or n_judgments == machines.MOST_AT_ONCE):
            yield _body(waiting)
            waiting = []
        waiting.append(part)
    if waiting:
        yield _body(waiting)


def _body(verdicts: Sequence[Verdict]) -> str:
    judgments = [verdict.judgment for verdict in verdicts if verdict.judgment]
    calls = [call for verdict in verdicts for call in verdict.calls]
    return json.dumps({"judgments": judgments, "calls": calls}, ensure_ascii=False, default=str)


def _length(verdicts: Sequence[Verdict]) -> int:
    return len(_body(verdicts).encode())


def _json(response: httpx.Response) -> dict[str, Any]:
    try:
        answer = response.json()
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise NotServed(f"{response.url} does not answer like a Touchstone")
    return answer


def _refusal(response: httpx.Response) -> str:
    try:
        return f"{response.status_code} {response.json()['title']}"
    except (ValueError, LookupError, TypeError):
        return f"{response.status_code} {response.headers.get('Location', '')}".strip()


def _with_uuids(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: uuid.UUID(value) if name in ("token", "client_token") else value
        for name, value in fields.items()
    }


def _waits() -> Iterator[float]:
    for turn in range(TRIES - 1):
        yield 2**turn * random.uniform(0.5, 1.0)
