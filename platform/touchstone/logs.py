"""What the processes write about themselves: one line an event, as text or as JSON, and no line twice a minute.

A line carries the request or the job it belongs to. It holds no body, key, link or query string: of an address only
the route is written, and PostgreSQL's DETAIL, which quotes rows, is left out.
"""

import json
import logging
import re
import time
import traceback
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

request_id: ContextVar[str] = ContextVar("request_id", default="")
job_id: ContextVar[str] = ContextVar("job_id", default="")

AGAIN = 60.0  # seconds after which the same error is written once more
MOST_BRIEF = 60  # lines in that time for the requests and jobs that met it again; then they are only counted
FAULT, UNAVAILABLE = 500, 503
_NOT_FOR_LOGS = (
    (re.compile(r"(?m)^\s*DETAIL:.*$"), "DETAIL: (not logged)"),
    (re.compile(r"(/[^\s?\"']*)\?[^\s\"']+"), r"\1?…"),  # query strings
    (re.compile(r"touchstone_[A-Za-z0-9_-]{20,}"), "touchstone_…"),  # keys of the API
    (re.compile(r"://[^\s/@]*:[^\s/@]*@"), "://…@"),  # passwords in addresses of servers
    # Links into accounts and out of letters: their secrets are 43 characters; what was cut off or added is none either.
    (re.compile(r"(/login/(?:company/)?(?:invited|password|address)/|/letters/off/)[^\s/?\"']+"), r"\1…"),
)
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


def without_secrets(text: str) -> str:
    """Return the text without query strings, keys, passwords in addresses, and rows that PostgreSQL quotes.

    >>> without_secrets("GET /hit/7/?worker=A1 of redis://:pw@127.0.0.1:1/0")
    'GET /hit/7/?… of redis://…@127.0.0.1:1/0'
    """
    for pattern, instead in _NOT_FOR_LOGS:
        text = pattern.sub(instead, text)
    return text


def _message(record: logging.LogRecord) -> str:
    """Return the message, with the route in place of a request's path: the path of an invitation is its secret."""
    request: Any = getattr(record, "request", None)
    text = record.getMessage()
    if isinstance(getattr(request, "path", None), str) and hasattr(request, "resolver_match"):
        path, match = request.path.encode("unicode_escape").decode("ascii"), request.resolver_match
        text = text.replace(path, _UUID.sub("…", path) if match is None else f"/{match.route}")
    error = record.exc_info[1] if record.exc_info else None
    if error is not None and _is_brief(record):
        text += f" ({type(error).__name__}: {str(error).partition(chr(10))[0]})"
    return without_secrets(text).replace("\n", " ").strip()


def _is_brief(record: logging.LogRecord) -> bool:
    """Return whether one line is enough: the database is away, which its own log explains; or the rest stands above."""
    return getattr(record, "status_code", None) == UNAVAILABLE or getattr(record, "is_repeated", False)


def _trace(record: logging.LogRecord) -> str:
    if not record.exc_info or _is_brief(record):
        return ""
    return without_secrets("".join(traceback.format_exception(*record.exc_info))).rstrip()


class TextLines(logging.Formatter):
    """`2026-11-23 14:00:00,000 ERROR django.request: ... [request 3f…]`, and the traceback below it."""

    def format(self, record: logging.LogRecord) -> str:
        marks = [("request", request_id.get()), ("job", job_id.get())]
        text = f"{self.formatTime(record)} {record.levelname} {record.name}: {_message(record)}"
        text += "".join(f" [{name} {mark}]" for name, mark in marks if mark)
        if n := getattr(record, "suppressed", 0):
            text += f" (suppressed {n})"
        return "\n".join(filter(None, [text, _trace(record)]))


class JsonLines(logging.Formatter):
    """One JSON object a line, for a collector of logs."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": _message(record),
            "process": record.process,
            "request_id": request_id.get(),
            "job_id": job_id.get(),
            "suppressed": getattr(record, "suppressed", 0),
            "exception": _trace(record),
        }
        always = ("time", "level", "logger", "message", "process")
        return json.dumps({name: value for name, value in fields.items() if value or name in always})


FORMATS: dict[str, type[logging.Formatter]] = {"text": TextLines, "json": JsonLines}  # of LOG_FORMAT


@dataclass
class _Repetition:
    """An error that was written, when, and how often it came again since."""

    record: logging.LogRecord
    at: float
    n: int = 0


class Lines(logging.StreamHandler[Any]):
    """Writes to standard error; of the same error the first in a minute, then how many followed."""

    count: Callable[[], None] = staticmethod(lambda: None)  # called for each line that is not written

    def __init__(self) -> None:
        super().__init__()
        self._repetitions: dict[tuple[Any, ...], _Repetition] = {}

    def emit(self, record: logging.LogRecord) -> None:
        now = time.monotonic()
        cause = _cause(record)
        known = self._repetitions.get(cause) if cause else None
        if known is not None and now - known.at < AGAIN:
            known.n += 1
            self.count()
            # Somebody was told the number of this fault, or of the request, and will ask for it; not so in a flood.
            is_told = getattr(record, "fault", "") or getattr(record, "status_code", None) == FAULT
            if is_told and known.n <= MOST_BRIEF:
                record.is_repeated = True
                super().emit(record)
            return
        if known is not None:
            record.suppressed = known.n
        if cause:
            self._repetitions[cause] = _Repetition(record, now)
        self._tell(now - AGAIN)
        super().emit(record)

    def _tell(self, until: float) -> None:
        """Forget what was written before this moment, and say of what came again how often."""
        for cause, known in list(self._repetitions.items()):
            if known.at > until:
                continue
            del self._repetitions[cause]
            if known.n:
                again = logging.makeLogRecord({**known.record.__dict__, "exc_info": None})
                again.suppressed = known.n
                super().emit(again)

    def close(self) -> None:
        """Say at the end of the process what was counted and not said yet."""
        self.acquire()
        try:
            self._tell(float("inf"))
        finally:
            self.release()
        super().close()


def _cause(record: logging.LogRecord) -> tuple[Any, ...] | None:
    """Return what makes two errors the same: what is said, the kind of error and its place. None: no error.

    What a visitor did wrong (404, 403) is no error of ours: each has its line.
    """
    error = record.exc_info[1] if record.exc_info else None
    if error is None and record.levelno < (
        logging.ERROR if record.name.startswith("django.") else logging.WARNING
    ):
        return None
    place: tuple[Any, ...] = ()
    if error is not None and error.__traceback__ is not None:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = (frame.filename, frame.lineno)
    if _is_brief(record):  # wherever the statement stands that the database did not answer
        place = ()
    state = getattr(error.__cause__ or error, "sqlstate", None) if error is not None else None
    return (record.name, str(record.msg), getattr(record, "status_code", None), type(error), state, place)
