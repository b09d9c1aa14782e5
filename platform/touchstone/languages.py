"""The language of the assessors' pages: chosen, asked for by a link, or the browser's.

Only these pages are translated. Managers' and researchers' pages, the API and files are English, whatever a browser
says: a page of which a part is translated is worse than an English one, and a program that reads a sentence would fail
in another language. So a language is active during a request for an assessors' page and at no other time: not during a
request of the API, and not in a worker, which makes the releases.
"""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from touchstone.models import User

# How the addresses begin that assessors and newcomers see: the pages of judging.urls, and the front door.
ASSESSORS_ADDRESSES = (
    "/judge/",
    "/frame/",
    "/join/",
    "/hit/",
    "/study/",
    "/complete/",
    "/login/",
    "/logout/",
    "/language/",
    "/letters/",
)
LINK = "lang"  # the parameter of an entry link; in the session, what the link asked for
COOKIE_SECONDS = 365 * 24 * 3600


def is_for_assessors(path: str) -> bool:
    """Return whether the page at this path is translated.

    >>> is_for_assessors("/judge/"), is_for_assessors("/manage/"), is_for_assessors("/api/v1/me")
    (True, False, False)
    """
    return path in ("/", "/account/") or path.startswith(ASSESSORS_ADDRESSES)


def assessors_language(get_response: Callable[[HttpRequest], HttpResponse]) -> Any:
    """Middleware: answer a request for an assessors' page in the reader's language.

    It stands behind the session and the user, whom it asks, and before all that may answer with a page about an error.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        if not is_for_assessors(request.path_info):
            return get_response(request)
        link = supported_language(request.GET.get(LINK, ""))
        with translation.override(
            _chosen_language(request) or link or _of_session(request) or _of_browser(request)
        ):
            response = get_response(request)
            response.headers["Content-Language"] = translation.get_language() or settings.LANGUAGE_CODE
        patch_vary_headers(response, ["Accept-Language"])
        if link and request.user.is_authenticated and _of_session(request) != link:
            request.session[LINK] = link  # the pages behind the entry have no parameter
        return response

    return middleware


def supported_language(code: str) -> str:
    """Return the language of Touchstone that serves a reader of this one ("de" for "de-at"), or "" if none does."""
    try:
        return translation.get_supported_language_variant(code)
    except LookupError:
        return ""


def _chosen_language(request: HttpRequest) -> str:
    """Return what the reader chose: in the account or, before a choice there, in this browser."""
    user: Any = request.user
    try:
        kept = user.language if user.is_authenticated else ""
    except (OperationalError, InterfaceError):
        kept = ""  # the database is away: the view meets the same fault, and its page tells the reader
    return supported_language(kept) or supported_language(
        request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME, "")
    )


def _of_session(request: HttpRequest) -> str:
    try:
        return supported_language(request.session.get(LINK, ""))
    except (OperationalError, InterfaceError):
        return ""  # as above


def _of_browser(request: HttpRequest) -> str:
    """Return the first language of the browser's list that there is, or English."""
    return translation.get_language_from_request(request)


def language_context(request: HttpRequest) -> dict[str, Any]:
    """Context of the assessors' pages: the languages to choose from, and the one that the address asks for."""
    if not is_for_assessors(request.path_info):
        return {}
    languages = []
    for code, name in settings.LANGUAGES:
        query = request.GET.copy()
        query[LINK] = code
        languages.append(
            {
                "code": code,
                "name": name,
                "address": f"{request.path}?{query.urlencode()}",
                "is_current": code == translation.get_language(),
            }
        )
    return {"languages": languages, "link_language": supported_language(request.GET.get(LINK, ""))}


@require_POST
@login_not_required
def choose(request: HttpRequest) -> HttpResponse:
    """Keep the language that was chosen: with the account; before the log-in, in a cookie."""
    code = request.POST.get("language", "")
    if code not in dict(settings.LANGUAGES):
        raise SuspiciousOperation("there is no such language")
    back = request.POST.get("next", "")
    if not (back.startswith("/") and url_has_allowed_host_and_scheme(back, allowed_hosts=None)):
        back = "/"
    response = HttpResponseRedirect(back)
    if isinstance(request.user, User):
        User.objects.filter(pk=request.user.pk).update(language=code)
    else:
        response.set_cookie(
            settings.LANGUAGE_COOKIE_NAME,
            code,
            max_age=COOKIE_SECONDS,
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
            samesite="Lax",
        )
    return response
