"""The outermost middleware: every request has an id, which its answer and its log lines show, and is counted."""

import re
import uuid
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.signals import request_finished
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse

from touchstone import counters, logs

HEADER = "X-Request-ID"
# What a proxy of ours sends; anything else could forge lines of the log, or fill it.
_TOKEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{7,63}")


def ids_and_counts(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: take the id that a proxy gave the request, or give it one; count the answer by view and status."""

    def middleware(request: HttpRequest) -> HttpResponse:
        brought = request.headers.get(HEADER, "")
        known = brought if _TOKEN.fullmatch(brought) else new_id()
        logs.request_id.set(known)
        answer = get_response(request)
        answer[HEADER] = known
        counters.add("requests", _view(request), str(answer.status_code))
        return answer

    return middleware


def new_id() -> str:
    return uuid.uuid4().hex


def _view(request: HttpRequest) -> str:
    """Return the name of the address, never its words: those may name a campaign, an invitation or a person."""
    if request.resolver_match is not None:
        return request.resolver_match.view_name
    return "static" if request.path.startswith(settings.STATIC_URL) else "none"


@receiver(request_finished)
def forget(**_: Any) -> None:
    """The thread goes on without a request: what it logs from now on is of none."""
    logs.request_id.set("")
