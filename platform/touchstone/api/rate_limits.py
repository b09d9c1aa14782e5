"""How often: counted by PostgreSQL, so that many at once are counted as surely as one after the other.

A count belongs to a window of time of the database's clock. The row of a window is made by whoever comes first and
raised by all others in one statement, which returns the number that is this request's own: nobody reads a number that
another may be raising. What is over a limit is counted, too.
"""

import ipaddress
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection
from django.http import HttpRequest
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

MINUTE = 60
PRUNED_AT_ONCE = 10_000
# %s: key, seconds, seconds, seconds
ROW = """(%s, floor(extract(epoch FROM clock_timestamp()) / %s)::bigint, 1,
         to_timestamp((floor(extract(epoch FROM clock_timestamp()) / %s) + 1) * %s))"""
COUNT = """
INSERT INTO touchstone_ratecounter AS counted (key, "window", n, ends_at) VALUES {rows}
    ON CONFLICT (key, "window") DO UPDATE SET n = counted.n + 1
RETURNING counted.n, counted."window", greatest(0, extract(epoch FROM counted.ends_at - clock_timestamp()))::float8
"""


@dataclass(frozen=True)
class Limit:
    """At most so many in a window of so many seconds."""

    key: str
    most: int
    seconds: int = MINUTE


@dataclass(frozen=True)
class Count:
    limit: Limit
    n: int
    window: int
    wait: float  # seconds to the end of the window

    @property
    def is_over(self) -> bool:
        return self.n > self.limit.most


def count(limits: Sequence[Limit]) -> list[Count]:
    """Count one more of each, in one statement.

    Wider limits come first, so that no two requests wait for each other.
    """
    values = [value for limit in limits for value in (limit.key, limit.seconds, limit.seconds, limit.seconds)]
    with connection.cursor() as cursor:
        cursor.execute(COUNT.format(rows=", ".join([ROW] * len(limits))), values)
        rows = cursor.fetchall()
    return [Count(limit, *row) for limit, row in zip(limits, rows, strict=True)]


def give_back(counted: Sequence[Count]) -> None:
    """Take back what should not have counted: a login that was right."""
    with connection.cursor() as cursor:
        for one in counted:
            cursor.execute(
                'UPDATE touchstone_ratecounter SET n = n - 1 WHERE key = %s AND "window" = %s AND n > 0',
                [one.limit.key, one.window],
            )


def longest_wait(counted: Sequence[Count]) -> float | None:
    """Return how long to wait, or None if nothing is over its limit."""
    return max((one.wait for one in counted if one.is_over), default=None)


def prune_counters() -> int:
    """Forget windows that are over."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM touchstone_ratecounter WHERE id IN (SELECT id FROM touchstone_ratecounter"
            " WHERE ends_at < clock_timestamp() - interval '1 minute' LIMIT %s)",
            [PRUNED_AT_ONCE],
        )
        return int(cursor.rowcount)


def address_of(request: HttpRequest) -> str:
    """Return where a request comes from: the connection's other end, or what the nearest of our own proxies saw there.

    What a client writes into X-Forwarded-For counts for nothing: the header is read only where the connection comes
    from one of our proxies (PROXY_ADDRESSES), and of it only the last entries, as many as the operator says there are.
    A network of IPv6 addresses is one address: it belongs to one customer.
    """
    address = str(request.META.get("REMOTE_ADDR", ""))
    if settings.TRUSTED_PROXIES and _is_proxy(address):
        passed = [part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",")]
        if len(passed) >= settings.TRUSTED_PROXIES:
            address = passed[-settings.TRUSTED_PROXIES]
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)


def _is_proxy(address: str) -> bool:
    """Return whether a proxy of ours has this address. A socket file has none, and only we can connect to it."""
    if not address:
        return True
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(parsed in network for network in settings.PROXY_ADDRESSES)


class Limits(BaseThrottle):
    """So many requests a minute for each key, for each person in a session, and for each address.

    The requests of the judging screen are counted by the web process that answers them, and not by the database: each
    of their statements is a tenth of an answer's time (docs/contract.md). A program that judges brings a key, and is
    counted like others.
    """

    waiting: float | None = None

    def allow_request(self, request: Request, view: Any) -> bool:
        if request.auth is None and getattr(view, "scope", None) == "judge":
            self.waiting = judging_requests.count(str(request.session.session_key), settings.JUDGING_REQUESTS)
            return self.waiting is None
        limits = [Limit(f"address {address_of(request)}", settings.API_REQUESTS_PER_ADDRESS)]
        if request.auth is not None:
            limits.append(Limit(f"key {request.auth.pk}", settings.API_REQUESTS))
        elif request.user is not None and request.user.is_authenticated:
            limits.append(Limit(f"user {request.user.pk}", settings.API_REQUESTS))
        self.waiting = longest_wait(count(limits))
        return self.waiting is None

    def wait(self) -> float | None:
        return self.waiting


class Minute:
    """Counts of the current minute, of this process alone; at its end all are forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._minute, self._counts = -1, Counter[str]()

    def count(self, key: str, most: int) -> float | None:
        """Count one more of the key; return how many seconds to wait, or None if it is within the limit."""
        now = time.monotonic()
        with self._lock:
            if int(now // MINUTE) != self._minute:
                self._minute = int(now // MINUTE)
                self._counts.clear()
            self._counts[key] += 1
            return None if self._counts[key] <= most else MINUTE - now % MINUTE


judging_requests = Minute()


def count_wrong_key(request: HttpRequest) -> float | None:
    """Count a key that is not valid; return how long the address has to wait when it brought too many."""
    return longest_wait(count([Limit(f"wrong key {address_of(request)}", settings.API_WRONG_KEYS)]))
