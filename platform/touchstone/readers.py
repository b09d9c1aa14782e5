"""What a page knows of its reader: the time zone in which it names times, and when they were last seen.

Pages alone: the API, files and documents in their frame are UTC for everybody, and ask nothing more of the database.
"""

from collections.abc import Callable
from datetime import UTC, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django.contrib.auth.signals import user_logged_in
from django.db import InterfaceError, OperationalError
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from touchstone.models import User

NO_PAGES = ("/api/", "/frame/", "/livez", "/readyz", "/static/")
SEEN_AGAIN = timedelta(hours=1)


def zone_names() -> list[str]:
    """Return the names to choose from, such as Europe/Berlin; without abbreviations and offsets, which mean others."""
    return sorted(name for name in available_timezones() if "/" in name and not name.startswith("Etc/"))


def zone_of(name: str) -> tzinfo:
    """Return the zone of this name; UTC for none, and for one that the world has given up.

    >>> str(zone_of("Europe/Berlin")), str(zone_of("")), str(zone_of("Mars/Olympus"))
    ('Europe/Berlin', 'UTC', 'UTC')
    """
    try:
        return ZoneInfo(name) if name else UTC
    except (LookupError, ValueError, OSError):  # OSError: the name of a folder
        return UTC


def readers_zone(get_response: Callable[[HttpRequest], HttpResponse]) -> Any:
    """Middleware: name times in the reader's zone, and note once an hour that they were there."""

    def middleware(request: HttpRequest) -> HttpResponse:
        user = None if request.path_info.startswith(NO_PAGES) else _reader(request)
        if user is None:
            return get_response(request)
        with timezone.override(zone_of(user.time_zone)):
            answer = get_response(request)
        _note(user)
        return answer

    return middleware


def _reader(request: HttpRequest) -> User | None:
    try:
        return request.user if isinstance(request.user, User) else None
    except (OperationalError, InterfaceError):
        return None  # the database is away: the view meets the same fault, and its page tells the reader


def _note(user: User) -> None:
    if user.seen_at is None or timezone.now() - user.seen_at > SEEN_AGAIN:
        User.objects.filter(pk=user.pk).update(seen_at=Now())


def _log_in(user: User, **_: Any) -> None:
    User.objects.filter(pk=user.pk).update(seen_at=Now())


def watch_log_ins() -> None:
    """Have everybody seen who logs in."""
    user_logged_in.connect(_log_in, dispatch_uid="touchstone.readers")
