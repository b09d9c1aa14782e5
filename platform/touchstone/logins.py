"""Logging in, and how often one may try.

Every try is counted before the password is looked at, by PostgreSQL (`touchstone.api.rate_limits`): of a hundred
wrong ones that come at once, no more than the limit are looked at. A try that was right is taken back. Who may try
is counted by the name that was typed, whether somebody has it or not, and by the address. Whoever wants to lock
somebody out therefore can: but not from a device on which that person has logged in before. Such a device has a
signed cookie, and its tries a count of their own.
"""

import hashlib
import logging
import math
import secrets
import unicodedata
from typing import Any

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.contrib.auth.views import LoginView
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext, ngettext

from touchstone.api.rate_limits import Limit, address_of, count, give_back, longest_wait
from touchstone.models import User
from touchstone.settings import cookie_name
from touchstone.views import demo_logins

logger = logging.getLogger(__name__)

WINDOW = 15 * 60
COOKIE = cookie_name("device", settings.HTTPS)
COOKIE_SECONDS = 365 * 24 * 3600
SALT = "touchstone.logins.device"
LONGEST_NAME = 150


class Login(LoginView):
    template_name = "login.html"
    redirect_authenticated_user = True

    def get_context_data(self, **fields: Any) -> dict[str, Any]:
        return super().get_context_data(
            demo_logins=demo_logins() if settings.PASSWORD_LOGIN else [], **fields
        )

    def post(self, request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponse:
        if not settings.PASSWORD_LOGIN:
            return self._refuse(no_passwords_words(), 403)
        self.tried = count(_limits(request))
        wait = longest_wait(self.tried)
        if wait is None:
            return super().post(request, *arguments, **named)
        answer = self._refuse(too_many_words(wait), 429)
        answer["Retry-After"] = str(math.ceil(wait))
        return answer

    def _refuse(self, words: str, status: int) -> HttpResponse:
        form = self.get_form_class()(self.request)
        return self.render_to_response(self.get_context_data(form=form, refused=words), status=status)

    def form_valid(self, form: Any) -> HttpResponse:
        answer: HttpResponse = super().form_valid(form)
        give_back(self.tried)
        remember_device(self.request, answer, form.get_user().get_username())
        return answer


def enter(request: HttpRequest, user: User, to: str = "home") -> HttpResponse:
    """Log the user in, and lead them to what waits for them."""
    login(request, user)
    answer = redirect(to)
    remember_device(request, answer, user.get_username())
    return answer


def too_many_words(wait: float) -> str:
    """Return the sentence for whoever has to wait so many seconds."""
    minutes = math.ceil(wait / 60)
    words = ngettext(
        "Too many wrong passwords. Try again in %(n)d minute.",
        "Too many wrong passwords. Try again in %(n)d minutes.",
        minutes,
    )
    return words % {"n": minutes}


def no_passwords_words() -> str:
    """Return the sentence for whoever sends a password where none is taken."""
    return gettext("Passwords are not used here. Log in with your company’s account.")


def typed_name(request: HttpRequest) -> str:
    """Return the name as the form reads it: else every spelling that means the same would have a count of its own."""
    return unicodedata.normalize("NFKC", request.POST.get("username", "").strip())[:LONGEST_NAME]


def _limits(request: HttpRequest) -> list[Limit]:
    name = typed_name(request)
    device = known_device(request, name)
    if device:
        return [Limit(f"login device {device}", settings.LOGIN_TRIES, WINDOW)]
    # Whoever types a name in another case tries the same account as far as the count goes.
    hashed = hashlib.sha256(name.strip().casefold().encode(errors="replace")).hexdigest()
    return [
        Limit(f"login address {address_of(request)}", settings.LOGIN_TRIES_PER_ADDRESS, WINDOW),
        Limit(f"login name {hashed}", settings.LOGIN_TRIES, WINDOW),
    ]


def known_device(request: HttpRequest, name: str) -> str | None:
    """Return the mark of a device on which somebody of this very name has logged in, if the request comes from it."""
    try:
        whose, mark = signing.loads(request.COOKIES.get(COOKIE, ""), salt=SALT, max_age=COOKIE_SECONDS)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    return str(mark) if whose == name and name else None


def remember_device(request: HttpRequest, answer: HttpResponse, name: str) -> None:
    mark = known_device(request, name) or secrets.token_hex(16)
    answer.set_cookie(
        COOKIE,
        signing.dumps([name, mark], salt=SALT),
        max_age=COOKIE_SECONDS,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _log_in(request: HttpRequest, user: Any, **others: Any) -> None:
    logger.info("account %s logged in", user.pk)


def _log_out(request: HttpRequest, user: Any, **others: Any) -> None:
    if user is not None:
        logger.info("account %s logged out", user.pk)


def _log_refusal(request: HttpRequest | None, **others: Any) -> None:
    # Not the name: it may be a password that was typed into the wrong field, and is whose it is.
    logger.warning("a log-in was refused, from %s", address_of(request) if request else "a command")


def keep_record() -> None:
    """Have every log-in, every log-out and every refused password written into the log, without a name."""
    user_logged_in.connect(_log_in, dispatch_uid="log-in")
    user_logged_out.connect(_log_out, dispatch_uid="log-out")
    user_login_failed.connect(_log_refusal, dispatch_uid="refused log-in")
