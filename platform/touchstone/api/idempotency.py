"""`Idempotency-Key`: a request that comes twice is carried out once, and answered twice alike.

The row that remembers the answer is written in the transaction of the effect: either both are there or none is, however
the process or the connection dies. While the first request is under way, a lock of that transaction says so, and the
second is answered 409 at once instead of waiting. An answer of 500 or more rolls everything back and is not remembered.
"""

import functools
import hashlib
import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models.functions import Now
from rest_framework.exceptions import ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle

from judging.services.errors import Refused
from touchstone.models import IdempotentRequest, user_of

HEADER = "Idempotency-Key"
KEY = re.compile(r"[!-~]{1,200}")
KEPT = timedelta(hours=24)
PRUNED_AT_ONCE = 10_000
KEPT_HEADERS = ("Location", "Retry-After")
Handler = Callable[..., Response]


class KeyOfAnotherRequest(Refused):
    status = 409
    title = "This idempotency key was used for another request"


class RequestUnderWay(Refused):
    status = 409
    title = "The first request with this idempotency key is still being carried out"
    wait = 1


class AnswerNotKept(Exception):
    """An answer that is a file cannot be given again; no POST answers so."""


class OncePerKey(BaseThrottle):
    """Not a throttle: settings.py can have this done for every view, after its guards, before its work."""

    def allow_request(self, request: Request, view: Any) -> bool:
        key = request.headers.get(HEADER)
        if key is not None and request.method == "POST" and request.user.is_authenticated:
            if not KEY.fullmatch(key):
                raise ValidationError({HEADER: ["has 1 to 200 visible ASCII characters"]})
            view.post = functools.partial(_answer_once, view, view.post, key)
        return True


def _answer_once(
    view: Any, handler: Handler, key: str, request: Request, *arguments: Any, **named: Any
) -> Response:
    fingerprint = _fingerprint(
        request
    )  # reads the body: however slowly it comes, no transaction waits for it
    with transaction.atomic():
        if not _lock(f"once {request.user.pk} {key}"):
            raise RequestUnderWay
        mine = IdempotentRequest.objects.filter(user=user_of(request), key=key)
        mine.filter(created_at__lt=Now() - KEPT).delete()
        known = mine.first()
        if known is not None:
            if known.request_sha256 != fingerprint:
                raise KeyOfAnotherRequest
            return _given_again(known)
        try:
            with transaction.atomic():
                answer = handler(request, *arguments, **named)
        except Exception as error:
            answer = view.handle_exception(error)  # raises again what is our fault
        # What may go well another time (a fault of ours, too many requests, something in the way) is not remembered.
        if answer.status_code >= 500 or answer.status_code in (409, 429):
            transaction.set_rollback(True)
        else:
            IdempotentRequest.objects.create(
                user=user_of(request),
                key=key,
                request_sha256=fingerprint,
                status=answer.status_code,
                body=_stored_answer(answer),
            )
    return answer


def _lock(name: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))", [name])
        return bool(cursor.fetchone()[0])


def _stored_answer(answer: Response) -> dict[str, Any]:
    if not isinstance(answer, Response):
        raise AnswerNotKept(type(answer).__name__)
    # A view whose answer holds a secret says what may be kept instead.
    data = getattr(answer, "kept_data", answer.data)
    return {
        # As text: the database would put the names of an object in an order of its own.
        "text": JSONRenderer().render(data).decode(),
        "content_type": answer.content_type,
        "headers": {name: answer[name] for name in KEPT_HEADERS if name in answer},
    }


def _given_again(known: IdempotentRequest) -> Response:
    kept: Any = known.body
    data = json.loads(kept["text"]) if kept["text"] else None
    answer = Response(data, status=known.status, content_type=kept["content_type"])
    for name, value in {**kept["headers"], "Idempotency-Replayed": "true"}.items():
        answer[name] = value
    return answer


def _fingerprint(request: Request) -> str:
    """Return the SHA-256 of what is asked: method, address and body; of files, of their bytes."""
    digest = hashlib.sha256(f"{request.method} {request.get_full_path()}\n".encode())
    data: Any = request.data
    if request.FILES:
        for name, files in sorted(request.FILES.lists()):
            for file in files:
                inner = hashlib.sha256()
                for chunk in file.chunks():
                    inner.update(chunk)
                file.seek(0)
                digest.update(f"{name}\0{file.name}\0{inner.hexdigest()}\n".encode())
        data = sorted((name, data.getlist(name)) for name in data if name not in request.FILES)
    digest.update(json.dumps(data, sort_keys=True, default=str).encode())
    return digest.hexdigest()


def prune_requests() -> int:
    """Forget answers of more than a day ago."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM touchstone_idempotentrequest WHERE id IN (SELECT id FROM touchstone_idempotentrequest"
            " WHERE created_at < now() - %s LIMIT %s)",
            list[Any]([KEPT, PRUNED_AT_ONCE]),
        )
        return int(cursor.rowcount)
