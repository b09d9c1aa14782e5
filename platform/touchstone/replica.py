"""A replica of the database: researchers' pages and exports are read from it, so that they take nothing from judging.

A page asks the primary who somebody is and what they may see. Then its body runs with the replica in the place of this
thread's default connection: mapper, SQL and transactions go there alike, and a replica refuses to write. The
primary is read instead by whoever has written within ten seconds, where the replica is over a minute behind or does not
answer, and where what was read on it failed before anything was sent.
"""

import functools
import logging
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import psycopg
from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
    connection,
    connections,
)
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from psycopg.errors import SerializationFailure

from touchstone import counters
from touchstone.models import User

logger = logging.getLogger(__name__)
ALIAS = "replica"
READING_METHODS = ("GET", "HEAD")
OWN_WRITE = 10  # seconds for which whoever wrote reads from the primary
MOST_BEHIND = 60.0  # seconds
EVERY, EVERY_WHEN_AWAY = 2.0, 10.0  # seconds between two looks of a process
LONGEST_LOOK = 1.5  # seconds after which a replica that says nothing is given up
STUCK = 5.0  # seconds after which a look that has not ended is an answer
# At most so many of a web process's four threads wait for the replica: one that freezes must not stop judging.
_seats = threading.BoundedSemaphore(2)
_readers: set[Any] = set()  # the connections that pages read from now
_primary: ContextVar[Any] = ContextVar("primary", default=None)
_END = object()

View = Callable[..., HttpResponseBase]


def is_there() -> bool:
    """Return whether the settings name a replica."""
    return ALIAS in settings.DATABASES


def close() -> None:
    """Close this thread's connection to it."""
    if is_there():
        connections[ALIAS].close()


# -- whose statements go where ------------------------------------------------------------------------------------


@contextmanager
def _default_is(other: Any) -> Iterator[None]:
    before = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS] = other
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = before


@contextmanager
def reading() -> Iterator[None]:
    """Let the replica be this thread's default connection."""
    known, there = _primary.set(connections[DEFAULT_DB_ALIAS]), connections[ALIAS]
    _readers.add(there)
    try:
        with _default_is(there):
            yield
    finally:
        _readers.discard(there)
        _primary.reset(known)


@contextmanager
def primary() -> Iterator[None]:
    """Let the primary be it again: for what is told of this very moment, within a page that reads the replica."""
    with _default_is(_primary.get() or connections[DEFAULT_DB_ALIAS]):
        yield


def from_replica(view: View) -> View:
    """Read this view from the replica where that may be: put it below what asks for permission."""

    view.reads_replica = True  # type: ignore[attr-defined]  # what wraps a view takes this along

    @functools.wraps(view)
    def wrapper(request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponseBase:
        if is_there() and request.method in READING_METHODS:
            outcome, answer = _try_replica(request, lambda: view(request, *arguments, **named))
            counters.add("replica requests", outcome)
            if answer is not None:
                return answer
        return view(request, *arguments, **named)

    return wrapper


def _try_replica(
    request: HttpRequest, read: Callable[[], HttpResponseBase]
) -> tuple[str, HttpResponseBase | None]:
    """Return how it went, and the answer if it is the replica's."""
    if settings.OWN_WRITE_COOKIE in request.COOKIES:
        return "own_write", None
    if not watch.is_usable():
        return "behind", None
    if not _seats.acquire(blocking=False):
        return "busy", None
    is_streamed = False
    try:
        with reading():
            answer = read()
        if answer.streaming:
            _stream(answer)
            is_streamed = True  # its end gives the seat back
        return "replica", answer
    except Http404:
        return "unknown", None  # what is new has not arrived yet
    except (OperationalError, InterfaceError, ProgrammingError) as error:  # the last: nor has a migration
        _tell_of(error)
        return "failed", None
    finally:
        if not is_streamed:
            _seats.release()


def _tell_of(error: Exception) -> None:
    cause = error.__cause__ or error
    logger.warning("replica: %s; the primary answers", type(cause).__name__)
    if not isinstance(cause, SerializationFailure):  # that one was ended by what had to be replayed
        watch.look_again()
        connections[ALIAS].close()


def _stream(answer: Any) -> None:
    """Read the first piece now, while another answer is possible, and each of the others from the replica, too."""
    pieces = _pieces(iter(answer.streaming_content))
    next(pieces)
    answer.streaming_content = pieces


def _pieces(content: Iterator[Any]) -> Iterator[Any]:
    is_begun = False
    try:
        with reading():
            piece = next(content, _END)
        is_begun = True
        yield b""  # for `_stream`, so that the end of this function is certain
        while piece is not _END:
            yield piece
            with reading():
                piece = next(content, _END)
    finally:
        if is_begun:
            _seats.release()


# -- one that freezes ---------------------------------------------------------------------------------------------


def _cut(there: Any) -> None:
    """End the wait of whoever waits on this connection by an error.

    While the kernel of a frozen server, or a proxy before it, still acknowledges what is sent, no limit of TCP's
    applies, and a limit of the server's is frozen with it.
    """
    is_open = there.connection
    if is_open is None:
        return
    with (
        suppress(OSError, psycopg.OperationalError),  # closed meanwhile, which is what was wanted
        socket.socket(fileno=os.dup(is_open.fileno())) as same,
    ):
        same.shutdown(socket.SHUT_RDWR)


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    """Give up what this thread asks the replica if it takes longer; connecting has a limit of its own."""
    there, is_done = connections[ALIAS], threading.Event()

    def watch_over() -> None:
        while not is_done.wait(seconds):
            _cut(there)

    watcher = threading.Thread(target=watch_over, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_done.set()
        watcher.join()


# -- whoever has written ------------------------------------------------------------------------------------------


def remember(answer: HttpResponseBase) -> None:
    """Let whoever gets this answer read from the primary for some seconds. The browser forgets it by its own clock."""
    if is_there():
        answer.set_cookie(
            settings.OWN_WRITE_COOKIE,
            "1",
            max_age=OWN_WRITE,
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
            samesite="Lax",
        )


def remembers_writes(get_response: View) -> View:
    """Middleware: whoever reads from the replica and has sent a form sees what came of it."""
    if not is_there():
        raise MiddlewareNotUsed

    def middleware(request: HttpRequest) -> HttpResponseBase:
        answer = get_response(request)
        if request.method not in READING_METHODS:
            user = request.user
            if isinstance(user, User) and user.may_research:
                remember(answer)
        return answer

    return middleware


# -- how far behind -----------------------------------------------------------------------------------------------

_WRITTEN = "SELECT pg_current_wal_lsn() - '0/0'"
_REPLAYED = "SELECT pg_last_wal_replay_lsn() - '0/0' WHERE pg_is_in_recovery()"


class Watch:
    """How far the replica is behind, by this process's clock alone.

    The time of the last transaction that was replayed would tell of a lag wherever nobody writes. So it is noted when
    the primary's log had which length: of what the replica has replayed it is known that it was written by then.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        self._at = self._began = self._complete_at = -float("inf")
        self._lengths: deque[tuple[float, int]] = deque(maxlen=1000)
        self._fault = ""
        self._was_usable: bool | None = None

    def is_usable(self) -> bool:
        """Return whether pages may be read from it now; look if the last look is old."""
        return not self.words()

    def behind(self) -> float:
        """Return for how many seconds at most what was written may be missing; infinite if that is not known."""
        self.words()
        return time.monotonic() - self._complete_at

    def look_again(self) -> None:
        """Look before it is used again: it failed."""
        self._complete_at, self._at = -float("inf"), -float("inf")

    def words(self) -> str:
        """Return what is wrong with it, or an empty text."""
        now = time.monotonic()
        if now - self._at >= (EVERY_WHEN_AWAY if self._fault else EVERY):
            if self._lock.acquire(blocking=False):
                try:
                    self._began = now
                    self._look()
                    self._at = time.monotonic()
                finally:
                    self._lock.release()
            elif now - self._began > STUCK:  # somebody looks, and gets no answer
                return "does not answer"
        return self._fault or self._lag_words()

    def _lag_words(self) -> str:
        behind = time.monotonic() - self._complete_at
        if behind <= MOST_BEHIND:
            return ""
        return f"{behind:.0f} s behind" if behind < float("inf") else "has not caught up yet"

    def _look(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(_WRITTEN)
            self._lengths.append((time.monotonic(), int(cursor.fetchone()[0])))
        asked_at = time.monotonic()
        try:
            with _within(LONGEST_LOOK), connections[ALIAS].cursor() as cursor:
                cursor.execute(_REPLAYED)
                row = cursor.fetchone()
        except (DatabaseError, InterfaceError):
            connections[ALIAS].close()
            self._fault, self._complete_at = "does not answer", -float("inf")
            if time.monotonic() - asked_at >= LONGEST_LOOK:  # silent: then whoever reads there waits in vain
                for there in list(_readers):
                    _cut(there)
        else:
            self._fault = "" if row else "is no replica"
            if row:
                complete = [at for at, length in self._lengths if length <= row[0]]
                self._complete_at = max([self._complete_at, *complete])
        self._tell()

    def _tell(self) -> None:
        """Write a line where it became unusable, or usable."""
        wrong = self._fault or self._lag_words()
        if self._was_usable is not False and wrong:
            logger.warning("replica: %s; researchers' pages are read from the primary", wrong)
        if self._was_usable is False and not wrong:
            logger.info("replica: it is complete; researchers' pages are read from it")
        self._was_usable = not wrong


watch = Watch()
