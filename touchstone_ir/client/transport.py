"""Requests that arrive once: an idempotency key on every POST, and patience where the server asks for it."""

import email.utils
import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any, BinaryIO

import httpx

from touchstone_ir.client.faults import ApiError

PATIENCE = {429, 503}  # and 409 where the answer says when to come again
LONGEST_PAUSE = 60.0
Files = Mapping[str, tuple[str, BinaryIO]]


class Transport:
    """One server and one key. Usable as a context manager; not to be shared by threads that close it.

    A POST that got no answer may have been carried out: it is sent again with the same idempotency key, so that the
    server carries it out once and gives the same answer again.
    """

    def __init__(
        self,
        address: str,
        key: str,
        *,
        tries: int = 6,
        timeout: float = 30.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.tries = tries
        self._http = httpx.Client(
            base_url=address.rstrip("/"),
            headers={"Authorization": f"Bearer {key}", "Accept": "application/json"},
            timeout=timeout,
            transport=transport,
        )

    def close(self) -> None:
        self._http.close()

    def get(self, path: str, **query: Any) -> Any:
        """Return the JSON of an address below /api/v1; queries that are None are left out."""
        return _json(self._send("GET", path, params=_query(query)))

    def post(self, path: str, body: Any = None, *, idempotency_key: str | None = None, **fields: Any) -> Any:
        """Send JSON; with `fields` (and files among them, as `files={"file": (name, stream)}`) a form."""
        files: Files = fields.pop("files", {})
        key = idempotency_key or str(uuid.uuid4())
        headers = {"Idempotency-Key": key}
        if files:
            form = {name: _text(value) for name, value in fields.items() if value is not None}
            return _json(self._send("POST", path, headers=headers, data=form, files=files))
        return _json(self._send("POST", path, headers=headers, json={} if body is None else body))

    def patch(self, path: str, body: Any) -> Any:
        return _json(self._send("PATCH", path, json=body))

    def pages(self, path: str, **query: Any) -> Iterator[Any]:
        """Return the rows of a list, page by page as they are wanted."""
        page = self.get(path, **query)
        while True:
            yield from page["results"]
            if page["next"] is None:
                return
            page = _json(self._send("GET", page["next"]))

    @contextmanager
    def stream(self, path: str, headers: Mapping[str, str] | None = None) -> Iterator[httpx.Response]:
        """Open a file to be read part by part."""
        with self._http.stream("GET", _address(path), headers=headers) as answer:
            if answer.status_code >= 400 and answer.status_code != 416:
                answer.read()
                raise _fault(answer)
            yield answer

    def persist(self, act: Callable[[], None]) -> None:
        """Do it until the connection holds; only for what may be done in part and again."""
        for attempt in range(1, self.tries + 1):
            try:
                return act()
            except httpx.TransportError:
                if attempt == self.tries:
                    raise
                time.sleep(_pause(attempt))

    def _send(self, method: str, path: str, **parts: Any) -> httpx.Response:
        for attempt in range(1, self.tries + 1):
            is_last = attempt == self.tries
            _rewind(parts.get("files"))
            try:
                answer = self._http.request(method, _address(path), **parts)
            except httpx.TransportError:
                if is_last:
                    raise
                time.sleep(_pause(attempt))
                continue
            wait = _retry_after(answer)
            may_help = answer.status_code in PATIENCE or (answer.status_code == 409 and wait is not None)
            if may_help and not is_last:
                time.sleep(_pause(attempt) if wait is None else wait)
                continue
            if answer.status_code >= 400:
                raise _fault(answer)
            return answer
        raise ValueError(f"tries must be at least 1, got {self.tries}")


def _address(path: str) -> str:
    """Return the address of a path; those that the server names itself are whole already."""
    return path if path.startswith(("http://", "https://", "/api/")) else f"/api/v1/{path}"


def _query(given: Mapping[str, Any]) -> dict[str, str]:
    return {name: _text(value) for name, value in given.items() if value is not None}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _rewind(files: Files | None) -> None:
    for _, stream in (files or {}).values():
        stream.seek(0)


def _pause(attempt: int) -> float:
    """Return 1, 2, 4 ... seconds, a part of it by chance: many clients must not come back at the same moment."""
    longest = min(LONGEST_PAUSE, 2.0 ** (attempt - 1))
    return longest * random.uniform(0.5, 1.0)


def _retry_after(answer: httpx.Response) -> float | None:
    """Return the seconds that the server asks to wait, given as a number or as a date."""
    given = answer.headers.get("Retry-After")
    if given is None:
        return None
    try:
        seconds = float(given)
    except ValueError:
        try:
            seconds = (email.utils.parsedate_to_datetime(given) - _time_now()).total_seconds()
        except ValueError:
            return None
    return min(LONGEST_PAUSE, max(0.0, seconds))


def _time_now() -> datetime:
    return datetime.now(timezone.utc)  # datetime.UTC is of Python 3.11


def _json(answer: httpx.Response) -> Any:
    return answer.json() if answer.content else None


def _fault(answer: httpx.Response) -> ApiError:
    try:
        body = answer.json()
    except ValueError:
        body = {"detail": answer.text[:500]}
    return ApiError(answer.status_code, body if isinstance(body, dict) else {"detail": str(body)[:500]})
