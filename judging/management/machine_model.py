"""Talking to a model: one call at a time, bounded in time and size; how fast, and for how much, all calls together."""

import json
import math
import re
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from judging.models import MachineCall
from judging.prompts import grade_of

Status = MachineCall.Status
LONGEST_DETAIL = 2000
LONGEST_REASON = 300  # of an answer that is no model's
LARGEST_ANSWER = 1_000_000
LARGEST_COUNT = 2_147_483_647
LONGEST_WAIT = 600.0
DEAREST = Decimal("999999.99999999")  # what a row can hold
# Nothing about the item can make these better: the address, the key or the model's name is wrong.
SET_UP_IS_WRONG = frozenset({300, 301, 302, 303, 307, 308, 401, 402, 404, 405})
WORTH_A_RETRY = frozenset({408, 409, 425, 429})
TOO_MANY_REQUESTS = 429
# Everything below the blank but the line feed; DEL to the end of C1; halves of characters.
_UNSTORABLE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True)
class Reply:
    """What came of one call."""

    status: str
    detail: str
    milliseconds: int
    grade: int | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    tells_usage: bool = False
    http_status: int = 0
    retry_after: float | None = None

    @property
    def is_worth_a_retry(self) -> bool:
        return self.status in (Status.OVERLOADED, Status.UNREACHABLE)


@dataclass(frozen=True)
class Model:
    """A model behind an address that understands `/chat/completions`."""

    endpoint: str
    name: str
    key: str
    timeout: float
    parameters: Mapping[str, Any]
    client: httpx.Client

    def ask(self, messages: list[dict[str, str]], grades: Collection[int]) -> Reply:
        """Ask once. Whatever comes back, or nothing, is a Reply."""
        body = {"model": self.name, "messages": messages, **self.parameters}
        body = {name: value for name, value in body.items() if value is not None}
        start = time.monotonic()
        try:
            facts = self._exchange(body, grades, start + self.timeout)
        except httpx.TimeoutException:
            facts = _unreachable(f"no answer within {self.timeout:g} seconds")
        except httpx.HTTPError as error:
            facts = _unreachable(f"{type(error).__name__}: {error}")
        milliseconds = min(LARGEST_COUNT, round(1000 * (time.monotonic() - start)))
        return Reply(**{**facts, "detail": self._storable(facts["detail"])}, milliseconds=milliseconds)

    def _exchange(self, body: Any, grades: Collection[int], deadline: float) -> dict[str, Any]:
        # Not compressed: what is counted while it is read is what has to be held.
        headers = {"Accept-Encoding": "identity"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        address = self.endpoint.rstrip("/") + "/chat/completions"
        with self.client.stream("POST", address, json=body, headers=headers) as response:
            content = b""
            for chunk in response.iter_raw():
                content += chunk
                if time.monotonic() > deadline:  # it answers, but a byte at a time
                    return _unreachable(f"no whole answer within {self.timeout:g} seconds")
                if len(content) > LARGEST_ANSWER:
                    return {
                        "status": Status.UNUSABLE,
                        "detail": f"more than {LARGEST_ANSWER:,} bytes",
                        "http_status": response.status_code,
                    }
        if response.status_code == httpx.codes.OK:
            return {"http_status": 200, **_read_answer(content, grades)}
        return _read_refusal(response, content)

    def _storable(self, text: str) -> str:
        """Return the text as it may be kept: without the key, should somebody echo it, and what PostgreSQL refuses."""
        if self.key:
            text = text.replace(self.key, "[key]")
        return _UNSTORABLE.sub(" ", text)[:LONGEST_DETAIL]


def _unreachable(why: str) -> dict[str, Any]:
    return {"status": Status.UNREACHABLE, "detail": why[:LONGEST_REASON]}


def _read_refusal(response: httpx.Response, content: bytes) -> dict[str, Any]:
    status = response.status_code
    retry = status in WORTH_A_RETRY or status >= httpx.codes.INTERNAL_SERVER_ERROR
    return {
        "status": Status.OVERLOADED if retry else Status.REFUSED,
        "detail": f"{status} {content.decode('utf-8', 'replace')[:LONGEST_REASON]}",
        "http_status": status,
        "retry_after": seconds_of(response.headers.get("Retry-After", "")),
    }


def _read_answer(content: bytes, grades: Collection[int]) -> dict[str, Any]:
    """Return grade and usage of a chat completion; of anything else, that it is unusable, and what it was."""
    text = content.decode("utf-8", "replace")
    unusable = {"status": Status.UNUSABLE, "detail": text}
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return unusable
    if not isinstance(answer, dict):
        return unusable
    usage = _usage(answer.get("usage"))
    try:
        choice = answer["choices"][0]
        said, ended = choice["message"]["content"], choice.get("finish_reason")
    except (LookupError, TypeError, AttributeError):
        return {**unusable, **usage}
    if not isinstance(said, str):
        return {**unusable, **usage}
    # Of an answer that was cut off, the end is missing: the grade was to come, or a second digit.
    grade = None if ended == "length" else grade_of(said, grades)
    if grade is None:
        return {
            "status": Status.UNUSABLE,
            "detail": f"[{ended}] {said}" if ended == "length" else said,
            **usage,
        }
    return {"status": Status.ANSWERED, "detail": said, "grade": grade, **usage}


def _usage(usage: Any) -> dict[str, Any]:
    if not isinstance(usage, dict):
        return {}
    counts = {name: usage.get(name) for name in ("prompt_tokens", "completion_tokens")}
    if not all(type(n) is int and 0 <= n <= LARGEST_COUNT for n in counts.values()):
        return {}
    return {**counts, "tells_usage": True}


def seconds_of(retry_after: str) -> float | None:
    """Return how long a Retry-After header asks to wait: it is a number of seconds or a date."""
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return None
    return min(max(seconds, 0.0), LONGEST_WAIT) if math.isfinite(seconds) else None


class Pace:
    """A token bucket: `per_minute` calls in the long run, `burst` of them at once; None is as fast as it goes."""

    def __init__(self, per_minute: float | None, burst: int) -> None:
        self.per_second = None if per_minute is None else per_minute / 60
        self.burst = burst
        self.tokens = float(burst)
        self.at = time.monotonic()
        self.lock = threading.Lock()

    def take(self) -> float:
        """Take a token, also one that is not there yet; return for how many seconds to wait before it is."""
        if self.per_second is None:
            return 0.0
        with self.lock:
            now = time.monotonic()
            self.tokens = min(self.burst, self.tokens + (now - self.at) * self.per_second) - 1
            self.at = now
            return max(0.0, -self.tokens / self.per_second)


class Purse:
    """What the calls cost by the prices of a million tokens, and how much they may cost."""

    def __init__(self, price_in: Decimal, price_out: Decimal, most: Decimal | None) -> None:
        self.price_in, self.price_out, self.most = price_in, price_out, most
        self.spent = Decimal(0)
        self.lock = threading.Lock()

    def cost_of(self, reply: Reply) -> Decimal:
        price = reply.prompt_tokens * self.price_in + reply.completion_tokens * self.price_out
        return min(DEAREST, (price / 1_000_000).quantize(Decimal("1e-8")))

    def pay(self, reply: Reply) -> Decimal:
        cost = self.cost_of(reply)
        with self.lock:
            self.spent += cost
        return cost

    @property
    def is_empty(self) -> bool:
        return self.most is not None and self.spent >= self.most
