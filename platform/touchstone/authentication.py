"""API keys: `Authorization: Bearer <key>`. The database knows only the SHA-256 of a key."""

import hashlib
import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied, Throttled
from rest_framework.negotiation import BaseContentNegotiation, DefaultContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response

from judging.services.errors import Refused
from touchstone import views
from touchstone.api.rate_limits import count_wrong_key
from touchstone.api.scopes import scope_of
from touchstone.models import ApiToken, User, all_scopes, record

PREFIX = "touchstone_"  # scanners that look for forgotten secrets know it by this
MOST_TOKENS = 20
SCHEME = b"bearer"


class TooManyTokens(Refused):
    status = 409
    title = f"At most {MOST_TOKENS} keys. Revoke one first"


class TokenNameTaken(Refused):
    status = 409
    title = "You already have a key with this name"


class ScopeMissing(PermissionDenied):
    default_code = "scope_missing"


class TokenAuthentication(BaseAuthentication):
    """Unknown, revoked, expired, or its person gone: one query and one answer for all of them.

    A request without the header is none of ours, and answered as it was before there were keys. Scopes are asked for
    here and not by a permission: no view can choose other permissions and forget them.
    """

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        scheme, _, key = get_authorization_header(request).partition(b" ")
        if scheme.lower() != SCHEME:
            return None
        # A long random key is found by its hash: how long that takes tells nothing about any key.
        found = usable_tokens().filter(key_sha256=hashlib.sha256(key).hexdigest()).first()
        if found is None:
            wait = count_wrong_key(request)
            if wait is not None:
                raise Throttled(wait)
            raise AuthenticationFailed("This key is not valid")
        scope = scope_of(request.parser_context.get("view"), request.method or "")
        if scope not in found.scopes:
            raise ScopeMissing(f"This key lacks the scope “{scope}”")
        return found.user, found

    def authenticate_header(self, request: Request) -> str | None:
        brought = get_authorization_header(request).partition(b" ")[0].lower() == SCHEME
        return 'Bearer realm="Touchstone"' if brought else None


class OneRenderer(BaseContentNegotiation):
    """The API speaks JSON, whatever a request would like to hear."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return DefaultContentNegotiation().select_parser(request, parsers)

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type


def problem(error: Exception, context: dict[str, Any]) -> Response | None:
    """Return `touchstone.views.problem`, and with it the header that tells a program to bring a valid key."""
    response = views.problem(error, context)
    header = getattr(error, "auth_header", None)
    if response is not None and header:
        response["WWW-Authenticate"] = header
    return response


def usable_tokens() -> Any:
    """Return the tokens that open the door now, by the clock of the database."""
    return ApiToken.objects.select_related("user").filter(
        Q(expires_at__isnull=True) | Q(expires_at__gt=Now()), revoked_at__isnull=True, user__is_active=True
    )


def make_token(
    *, user: User, name: str, days: int, scopes: Sequence[str] | None = None
) -> tuple[ApiToken, str]:
    """Make a key that is valid for so many days; return its row and the key, which nobody can read again.

    Without scopes it may do all that its person may.
    """
    granted = [scope for scope in all_scopes() if scopes is None or scope in scopes]
    with transaction.atomic():
        User.objects.select_for_update().get(
            pk=user.pk
        )  # so that two requests do not pass the limit together
        mine = usable_tokens().filter(user=user)
        if mine.count() >= MOST_TOKENS:
            raise TooManyTokens
        if mine.filter(name=name).exists():
            raise TokenNameTaken
        key = PREFIX + secrets.token_urlsafe(32)
        token = ApiToken.objects.create(
            user=user, name=name, scopes=granted, key_sha256=hashlib.sha256(key.encode()).hexdigest()
        )
        ApiToken.objects.filter(pk=token.pk).update(expires_at=Now() + timedelta(days=days))
        token.refresh_from_db()
        record("made a key", token, actor=user, name=name, days=days, scopes=granted)
    return token, key


def revoke_token(*, token: ApiToken, actor: User | None) -> None:
    """End a key for ever; the row stays as the record of it."""
    with transaction.atomic():
        if ApiToken.objects.filter(pk=token.pk, revoked_at__isnull=True).update(revoked_at=Now()):
            record("revoked a key", token, actor=actor, name=token.name)


def tokens_of(user: User) -> Any:
    """Return the user's tokens, those that still work first, the newest first; `works` tells them apart."""
    works = Q(revoked_at__isnull=True) & (Q(expires_at__isnull=True) | Q(expires_at__gt=Now()))
    return ApiToken.objects.filter(user=user).annotate(works=works).order_by(F("works").desc(), "-created_at")
