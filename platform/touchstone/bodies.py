"""The body of a request as a web process reads it: whole, and not too slowly.

The front door holds the first mebibyte of a body (deploy/Caddyfile). What is longer flows through it, and keeps a
thread of a web process until its end. Nothing here imports Django.
"""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterable
from typing import Any

BUFFERED = 2**20  # bytes that the front door holds (request_buffers)
SLICE = 2**14  # bytes: what has come is known this exactly
LEAST_RATE = 1_000  # bytes a second
SECONDS = 30.0  # over which the rate is taken
MOST_LONG = (
    2  # long bodies at a time in a web process, which has four threads: the others go on with short requests
)


class BodyCut(OSError):
    """The body ended before its length; Django makes an UnreadablePostError of it."""


class Body:
    """`wsgi.input` that says how much has come, and never takes a part for the whole."""

    def __init__(self, source: Any, length: int) -> None:
        self._source, self.length, self.n = source, length, 0

    def read(self, size: int = -1) -> bytes:
        left = self.length - self.n
        wanted = left if size is None or size < 0 else min(size, left)
        parts = []
        while wanted > 0:
            part = self._source.read(min(wanted, SLICE))
            self.n += len(part)
            if not part:
                raise BodyCut(f"the body ended after {self.n} of {self.length} bytes")
            wanted -= len(part)
            parts.append(part)
        return b"".join(parts)

    def readline(self, size: int = -1) -> bytes:
        line: bytes = self._source.readline(size)
        self.n += len(line)
        return line


def whole_bodies(application: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    """Return the WSGI application with every body of a known length read through `Body`."""

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        length = environ.get("CONTENT_LENGTH") or "0"
        if length.isascii() and length.isdigit() and int(length):
            environ["wsgi.input"] = Body(environ["wsgi.input"], int(length))
        return application(environ, start_response)

    return serve


_places = threading.BoundedSemaphore(MOST_LONG)


class Passage:
    """A place for one long body, watched until it is all there; `end` frees the place."""

    def __init__(self, body: Body | None, connection: socket.socket | None) -> None:
        self._over = threading.Event()
        if body is not None and connection is not None:
            threading.Thread(target=self._watch, args=[body, connection], daemon=True).start()

    def _watch(self, body: Body, connection: socket.socket) -> None:
        before = body.n
        while not self._over.wait(SECONDS) and body.n < body.length:
            if body.n - before < LEAST_RATE * SECONDS:
                # Whoever waits for the next bytes reads the end instead.
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
                return
            before = body.n

    def end(self) -> None:
        if not self._over.is_set():
            self._over.set()
            _places.release()


def passage(body: Body | None, connection: socket.socket | None) -> Passage | None:
    """Return a place for a long body, or None if all are taken."""
    return Passage(body, connection) if _places.acquire(blocking=False) else None
