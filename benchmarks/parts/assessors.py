"""Assessors who judge through whatever happens, and the ledger of what was acknowledged to them."""

import http.client
import http.cookiejar
import json
import random
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

GRADES = 4
JUDGMENTS_PER_ITEM = 3
PASSWORD = "of-the-benchmark"


class Unavailable(Exception):
    """The request may or may not have had its effect: send it again."""


class Refusal(Exception):
    """The product said no."""


@dataclass
class Ledger:
    """What the clients know. Its acknowledged judgments are the truth that the database must agree with."""

    sent: dict[uuid.UUID, int] = field(default_factory=dict)
    acknowledged: dict[uuid.UUID, int] = field(default_factory=dict)
    acknowledged_at: list[float] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)


class ServiceClient:
    """An assessor who calls the services directly."""

    def __init__(self, assessor: Any) -> None:
        self.assessor = assessor

    def claim(self) -> str | None:
        from judging.services import assign

        slot = self._call(assign.claim).slot
        return None if slot is None else str(slot.token)

    def submit(self, token: str, client_token: uuid.UUID, grade: int) -> None:
        from judging.services import assign

        self._call(assign.submit, token=uuid.UUID(token), client_token=client_token, grade=grade)

    def _call(self, service: Callable[..., Any], **arguments: Any) -> Any:
        from django.db import DatabaseError, InterfaceError, connection

        from judging.services.errors import Refused

        try:
            return service(assessor=self.assessor, **arguments)
        except Refused as refusal:
            raise Refusal(type(refusal).__name__) from refusal
        except (DatabaseError, InterfaceError) as fault:
            connection.close()
            raise Unavailable(type(fault).__name__) from fault


class WebClient:
    """An assessor with a browser's cookies."""

    def __init__(self, address: str, campaign: Any, username: str) -> None:
        self.address, self.api = address, f"{address}api/v1/campaigns/{campaign.pk}"
        self.cookies = http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))
        self.opener.open(f"{address}login/", timeout=20).close()
        form = {"username": username, "password": PASSWORD, "csrfmiddlewaretoken": self._csrf_token()}
        body = urllib.parse.urlencode(form).encode()
        self.opener.open(f"{address}login/", data=body, timeout=20).close()
        assert any(cookie.name == "sessionid" for cookie in self.cookies), f"{username} was not let in"

    def claim(self) -> str | None:
        item = self._post("/claim", {})["item"]
        return None if item is None else str(item["token"])

    def submit(self, token: str, client_token: uuid.UUID, grade: int) -> None:
        body = {
            "client_token": str(client_token),
            "token": token,
            "grade": grade,
            "active_milliseconds": 1000,
        }
        self._post("/judgments", body)

    def _csrf_token(self) -> str:
        return next(cookie.value or "" for cookie in self.cookies if cookie.name == "csrftoken")

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        headers = {"Content-Type": "application/json", "X-CSRFToken": self._csrf_token()}
        data = json.dumps(body).encode()
        request = urllib.request.Request(self.api + path, data=data, headers=headers)  # noqa: S310 (loopback)
        try:
            with self.opener.open(request, timeout=20) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                kind = Unavailable if error.code >= 500 else Refusal
                raise kind(f"status {error.code}") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise Unavailable(type(reason).__name__) from error


Client = ServiceClient | WebClient


def judge(client: Client, ledger: Ledger, stop: threading.Event) -> None:
    """Judge until told to stop: every request again until it is answered, and some once more after that."""
    rng = random.Random()
    while not stop.is_set():
        try:
            token = persist(client.claim, ledger, stop)
            if token is None:
                return
            client_token, grade = uuid.uuid4(), rng.randrange(GRADES)
            ledger.sent[client_token] = grade

            def send(token: str = token, client_token: uuid.UUID = client_token, grade: int = grade) -> bool:
                client.submit(token, client_token, grade)
                return True

            if persist(send, ledger, stop):
                ledger.acknowledged[client_token] = grade
                ledger.acknowledged_at.append(time.monotonic())
                if rng.random() < 0.2:  # the browser did not hear the answer
                    persist(send, ledger, stop)
        except Refusal as refusal:
            ledger.refusals[str(refusal)] += 1


def persist(request: Callable[[], Any], ledger: Ledger, stop: threading.Event) -> Any:
    while not stop.is_set():
        try:
            return request()
        except Unavailable as fault:
            ledger.faults[str(fault)] += 1
            time.sleep(0.2)  # a browser waits longer; each try costs the server a process
    return None


def run_clients(clients: list[Client], ledger: Ledger, kill_all: Callable[[], None]) -> None:
    from django.db import connection

    connection.close()  # its server will be killed
    stop = threading.Event()

    def work(client: Client) -> None:
        try:
            judge(client, ledger, stop)
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=[client]) for client in clients]
    for thread in threads:
        thread.start()
    try:
        kill_all()
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def verdict(ledger: Ledger) -> dict[str, Any]:
    """Compare the ledger with the database, which must agree with itself too."""
    from django.db.models import Count

    from judging.models import Assessor, Judgment, Slot

    stored = dict(Judgment.objects.values_list("client_token", "grade"))
    pairs = Judgment.objects.values("item", "assessor").annotate(n=Count("pk")).filter(n__gt=1)
    counted = Judgment.objects.filter(slot__isnull=False)
    over = counted.values("item").annotate(n=Count("pk")).filter(n__gt=JUDGMENTS_PER_ITEM)
    slots = counted.values("slot").annotate(n=Count("pk")).filter(n__gt=1)
    miscounted = sum(assessor.n_judged != assessor.judgments.count() for assessor in Assessor.objects.all())
    acknowledged = ledger.acknowledged
    return {
        "acknowledged": len(acknowledged),
        "lost": len(acknowledged.keys() - stored.keys()),
        "wrong": sum(stored.get(token, grade) != grade for token, grade in acknowledged.items()),
        "doubled": pairs.count() + slots.count(),
        "phantom": len(stored.keys() - ledger.sent.keys()),
        "items_over_k": over.count(),
        "slots_disagreeing": abs(Slot.objects.filter(state="done").count() - counted.count()) + miscounted,
        "refusals": dict(ledger.refusals),
        "faults_seen_by_clients": dict(ledger.faults),
    }


def longest_pauses(kills: list[tuple[float, str]], acknowledged_at: list[float]) -> dict[str, float]:
    """Return by kind the longest time without any acknowledgment between a kill and the next one, in seconds."""
    pauses: dict[str, float] = {}
    times = sorted(acknowledged_at)
    for (killed, kind), following in zip(kills, [*(at for at, _ in kills[1:]), times[-1]], strict=True):
        marks = [killed, *(at for at in times if killed < at <= following), following]
        longest = max((after - before for before, after in pairwise(marks)), default=0.0)
        pauses[kind] = round(max(pauses.get(kind, 0.0), longest), 2)
    return pauses
