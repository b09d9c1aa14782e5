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

from parts.throwaway import GRADES, JUDGMENTS_PER_ITEM, PASSWORD

AHEAD = 2  # as the judging screen asks: the item at hand, and the next one to fetch beforehand


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
    """An assessor who calls the services that the views call."""

    def __init__(self, assessor: Any) -> None:
        self.who = {"user_id": assessor.user_id, "campaign_id": assessor.campaign_id}

    def claim(self) -> str | None:
        from judging.services import assign

        item = self._call(assign.claim_as, n=AHEAD).item
        return None if item is None else str(item.token)

    def submit(self, token: str, client_token: uuid.UUID, grade: int) -> str:
        """Submit as the judging screen does; return the token of what comes next, empty if nothing does."""
        from judging.services import assign

        sent = {"token": uuid.UUID(token), "client_token": client_token, "grade": grade}
        item = self._call(assign.submit_and_claim, n=AHEAD, **sent)[1].item
        return "" if item is None else str(item.token)

    def _call(self, service: Callable[..., Any], **arguments: Any) -> Any:
        from django.db import DatabaseError, InterfaceError, connection

        from judging.services.errors import Refused

        try:
            return service(**self.who, **arguments)
        except Refused as refusal:
            raise Refusal(type(refusal).__name__) from refusal
        except (DatabaseError, InterfaceError) as fault:
            connection.close()
            raise Unavailable(type(fault).__name__) from fault


class WebClient:
    """An assessor with a browser's cookies."""

    def __init__(self, address: str, campaign_id: uuid.UUID, username: str, password: str = PASSWORD) -> None:
        self.api = f"{address}api/v1/campaigns/{campaign_id}"
        self.cookies = http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))
        self.opener.open(f"{address}login/", timeout=20).close()
        form = {"username": username, "password": password, "csrfmiddlewaretoken": self._cookie("csrftoken")}
        body = urllib.parse.urlencode(form).encode()
        self.opener.open(f"{address}login/", data=body, timeout=20).close()
        assert self._cookie("sessionid"), f"{username} was not let in"

    def claim(self) -> str | None:
        items = self._answered("/claim", {"n": AHEAD})["items"]
        return str(items[0]["token"]) if items else None

    def submit(self, token: str, client_token: uuid.UUID, grade: int) -> str:
        """Submit as the judging screen does; return the token of what comes next, empty if nothing does."""
        body = {
            "client_token": str(client_token),
            "token": token,
            "grade": grade,
            "active_milliseconds": 1000,
            "n": AHEAD,
        }
        items = self._answered("/judgments", body)["items"]
        return str(items[0]["token"]) if items else ""

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
        """Send one request; return the status and the body of the answer, whatever it says."""
        request = urllib.request.Request(  # noqa: S310 (loopback)
            self.api + path, data=json.dumps(body).encode(), headers=self.headers()
        )
        try:
            with self.opener.open(request, timeout=20) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise Unavailable(type(reason).__name__) from error

    def headers(self) -> dict[str, str]:
        return {"Content-Type": "application/json", "X-CSRFToken": self._cookie("csrftoken")}

    def cookie_header(self) -> str:
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in self.cookies)

    def _cookie(self, name: str) -> str:
        return next((cookie.value or "" for cookie in self.cookies if cookie.name == name), "")

    def _answered(self, path: str, body: dict[str, Any]) -> Any:
        status, answer = self.post(path, body)
        if status >= 400:
            raise (Unavailable if status >= 500 else Refusal)(f"status {status}")
        return json.loads(answer)


Client = ServiceClient | WebClient


def judge(client: Client, ledger: Ledger, stop: threading.Event) -> None:
    """Judge until told to stop: every request again until it is answered, and some once more after that."""
    rng = random.Random()
    following: str | None = None
    while not stop.is_set():
        try:
            token = following or persist(client.claim, ledger, stop)
            if token is None:
                return
            client_token, grade = uuid.uuid4(), rng.randrange(GRADES)
            ledger.sent[client_token] = grade
            following = None

            def send(token: str = token, client_token: uuid.UUID = client_token, grade: int = grade) -> str:
                return client.submit(token, client_token, grade)

            following = persist(send, ledger, stop)
            if following is not None:
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


def verdict(ledger: Ledger, campaign: Any = None) -> dict[str, Any]:
    """Compare the ledger with the database, or with one campaign there; the database must agree with itself too."""
    from django.db.models import Count

    from judging.models import Assessor, Judgment, Slot

    theirs = Judgment.objects.all() if campaign is None else Judgment.objects.filter(item__campaign=campaign)
    stored = dict(theirs.values_list("client_token", "grade"))
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
