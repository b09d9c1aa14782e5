"""Logging in by the company's account: the way to the OpenID provider, and the way back.

What is remembered in between is in a signed cookie, so that nobody fills the database by only beginning, and who comes
back in another browser is not let in. To begin is a link and no form: a page's `form-action` would have to name every
host that a company's log-in leads through. Whatever is wrong is one sentence, and nothing was changed.
"""

import hmac
import secrets
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from judging.services.entry import usable_invitation
from judging.services.errors import Refused
from touchstone import links, openid, sign_on
from touchstone.account import OwnPassword
from touchstone.api.rate_limits import Limit, address_of, count, give_back, longest_wait
from touchstone.logins import WINDOW, enter
from touchstone.models import user_of
from touchstone.openid import Person
from touchstone.settings import cookie_name

COOKIE = cookie_name("company", settings.HTTPS)
SALT, LINK_SALT = "touchstone.sign_on", "touchstone.sign_on.link"
SECONDS = 600  # to log in at the provider
LONGEST_CODE = 4096
BACK = "company-back"


class BegunElsewhere(Refused):
    status = 403
    title = "This log-in was begun in another browser or long ago"


class LogInDeclined(Refused):
    status = 403
    title = "The company's log-in lets nobody in"


class TooManyTries(Refused):
    status = 429
    title = "Too many log-ins that failed"


# What the page says, by the type of the refusal.
WORDS = {
    "BegunElsewhere": _(
        "This log-in was begun in another browser or more than ten minutes ago. Begin again."
    ),
    "LogInDeclined": _("Your company’s log-in did not let you in. Try again, or ask whoever runs it."),
    "TooManyTries": _("Too many log-ins from here have failed. Try again in a quarter of an hour."),
    "ProviderAway": _("Your company’s log-in does not answer now. Try again in a minute."),
    "NotBelieved": _(
        "The answer of your company’s log-in is not valid. If that happens again, tell a manager."
    ),
    "CodeRefused": _("This log-in was used before or took too long. Begin again."),
    "NotInvited": _(
        "You have no account here, and no invitation was sent to your address. Ask a manager for one."
    ),
    "AddressUnconfirmed": _(
        "Your company has not confirmed your address, so no invitation was looked for. Ask a manager for a link."
    ),
    "AddressKnown": _(
        "An account with your address exists. Log in to it and link it under “My account”, or ask a manager for a link."
    ),
    "AccountClosed": _("Your account here is closed. Ask a manager."),
    "LinkedElsewhere": _("Your company’s account is linked with another account here."),
    "LinkUnusable": _("The link was used, has expired or was withdrawn. Ask whoever sent it for a new one."),
    "InvitationUnusable": _("This invitation cannot be used. Ask whoever sent it for a new one."),
}


@dataclass(frozen=True)
class Flow:
    """A log-in under way: what the provider must send back, and what it is for."""

    state: str
    nonce: str
    verifier: str
    purpose: str
    value: str = ""


def sign_on_context(request: HttpRequest) -> dict[str, Any]:
    """Context of every page: by which ways people log in."""
    return {"company_login": bool(settings.OIDC_ISSUER), "password_login": settings.PASSWORD_LOGIN}


# -- there ----------------------------------------------------------------------------------------------------


@require_safe
@never_cache
@login_not_required
def begin(request: HttpRequest) -> HttpResponse:
    """The way from the log-in page."""
    return _send(request, "enter", local_path(request.GET.get("next", "")))


@require_safe
@never_cache
@login_not_required
def begin_invited(request: HttpRequest, token: str) -> HttpResponse:
    """The way from an invitation to an account."""
    return _send(request, "invited", token, lambda: links.usable_link(kind=links.INVITATION, token=token))


@require_safe
@never_cache
@login_not_required
def begin_once(request: HttpRequest, token: str) -> HttpResponse:
    """The way from a one-time link, which links the account in place of giving it a password."""
    return _send(request, "once", token, lambda: links.usable_link(kind=links.PASSWORD, token=token))


@require_safe
@never_cache
@login_not_required
def begin_campaign(request: HttpRequest, token: uuid.UUID) -> HttpResponse:
    """The way from the invitation of a campaign."""
    return _send(request, "campaign", str(token), lambda: usable_invitation(token=token))


def _send(
    request: HttpRequest, purpose: str, value: str, check: Callable[[], object] = lambda: None
) -> HttpResponse:
    """Send the browser to the provider, and remember what for."""
    if not settings.OIDC_ISSUER:
        raise Http404
    flow = Flow(
        secrets.token_urlsafe(32), secrets.token_urlsafe(32), secrets.token_urlsafe(48), purpose, value
    )
    try:
        check()
        url = openid.authorization_url(
            back=reverse(BACK), state=flow.state, nonce=flow.nonce, verifier=flow.verifier
        )
    except Refused as refusal:
        return _page(request, refusal)
    answer = HttpResponseRedirect(url)
    answer.set_cookie(
        COOKIE,
        signing.dumps([flow.state, flow.nonce, flow.verifier, flow.purpose, flow.value], salt=SALT),
        max_age=SECONDS,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
    return answer


def local_path(path: str) -> str:
    """Return the path if it is one of this site, or nothing."""
    is_safe = path.startswith("/") and url_has_allowed_host_and_scheme(path, allowed_hosts=None)
    return path if is_safe and len(path) <= 2000 else ""


# -- and back -------------------------------------------------------------------------------------------------


@require_safe
@never_cache
@login_not_required
def come_back(request: HttpRequest) -> HttpResponse:
    """Let in whom the provider vouches for; the flow's cookie is spent, unless the provider did not answer."""
    if not settings.OIDC_ISSUER:
        raise Http404
    try:
        flow = flow_of(request)
        answer = _entrance(request, flow)
    except openid.ProviderAway as refusal:
        return _page(request, refusal)
    except Refused as refusal:
        answer = _page(request, refusal)
    answer.delete_cookie(COOKIE, samesite="Lax")
    return answer


def flow_of(request: HttpRequest) -> Flow:
    """Return what this browser has begun and the provider answers, or refuse it."""
    try:
        flow = Flow(*signing.loads(request.COOKIES.get(COOKIE, ""), salt=SALT, max_age=SECONDS))
    except (signing.BadSignature, ValueError, TypeError) as error:
        raise BegunElsewhere from error
    if not is_answer(flow, request.GET.get("state", "")):
        raise BegunElsewhere
    return flow


def is_answer(flow: Flow, state: str) -> bool:
    """Return whether what comes back belongs to this flow."""
    return hmac.compare_digest(flow.state.encode(), state.encode(errors="replace"))


def _entrance(request: HttpRequest, flow: Flow) -> HttpResponse:
    tried = count([Limit(f"company address {address_of(request)}", settings.LOGIN_TRIES_PER_ADDRESS, WINDOW)])
    if longest_wait(tried) is not None:
        raise TooManyTries
    code = request.GET.get("code", "")
    if not 0 < len(code) <= LONGEST_CODE:
        raise LogInDeclined
    if not openid.is_issuer(request.GET.get("iss", settings.OIDC_ISSUER)):  # RFC 9207
        raise openid.NotBelieved("iss of the answer")
    person = openid.person_of(code=code, back=reverse(BACK), nonce=flow.nonce, verifier=flow.verifier)
    answer = ENTRANCES[flow.purpose](request, flow.value, person)
    give_back(tried)
    return answer


def _enter(request: HttpRequest, path: str, person: Person) -> HttpResponse:
    return enter(request, sign_on.enter(person), path or "home")


def _enter_invited(request: HttpRequest, token: str, person: Person) -> HttpResponse:
    user, is_new = sign_on.enter_by_invitation(person, token)
    answer = enter(request, user)
    if not is_new:
        messages.info(request, gettext("You have an account already, so the invitation was not used."))
    return answer


def _enter_once(request: HttpRequest, token: str, person: Person) -> HttpResponse:
    user = sign_on.link_by_password_link(token=token, person=person)
    answer = enter(request, user)
    messages.success(
        request,
        gettext("Your account is linked with %(name)s. You were logged out everywhere else.")
        % {"name": person.label},
    )
    return answer


def _enter_campaign(request: HttpRequest, token: str, person: Person) -> HttpResponse:
    login(request, sign_on.enter_campaign(person, uuid.UUID(token)))
    return redirect("judging:join", token=token)


def _page(request: HttpRequest, refusal: Refused) -> HttpResponse:
    """Say in one sentence why nobody was let in."""
    if isinstance(refusal, openid.NotBelieved):
        openid.logger.warning("an answer of the OpenID provider was refused: %s", refusal)
    words = WORDS.get(type(refusal).__name__, f"{refusal.title}.")
    answer = render(request, "company_refused.html", {"words": words}, status=refusal.status)
    if refusal.status == 503:
        answer["Retry-After"] = "60"
    return answer


# -- linking one's own account --------------------------------------------------------------------------------


class LinkForm(OwnPassword):
    """Who links the account says the present password, where there is one: what lets somebody in asks for it."""

    part = "company"
    old = forms.CharField(
        label=_("Present password"),
        max_length=200,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )


@never_cache
def link(request: HttpRequest) -> HttpResponse:
    """The way from one's own account; a POST is the consent to what the provider said."""
    user = user_of(request)
    if request.method != "POST":
        return _send(request, "link", str(user.pk))
    try:
        payload = request.POST.get("person", "")
        key, *about = signing.loads(payload, salt=LINK_SALT, max_age=SECONDS)
        if key != user.pk:
            raise BegunElsewhere
        person = Person(*about)
    except (signing.BadSignature, ValueError, TypeError) as error:
        return _page(request, BegunElsewhere(error))
    except BegunElsewhere as refusal:
        return _page(request, refusal)
    form = LinkForm(request.POST, user=user)
    if asks_password(request) and not (form.is_valid() and form.check_own("old")):
        context = {"form": form, "payload": payload, "label": person.label}
        return render(request, "company_link.html", context, status=400)
    try:
        sign_on.link_account(user=user, person=person)
    except Refused as refusal:
        return _page(request, refusal)
    messages.success(request, gettext("Your account is linked with %(name)s.") % {"name": person.label})
    return redirect("account")


def asks_password(request: HttpRequest) -> bool:
    return settings.PASSWORD_LOGIN and user_of(request).has_usable_password()


def _confirm(request: HttpRequest, key: str, person: Person) -> HttpResponse:
    """Ask whether this is the account to link: who lured somebody here may have logged them in as somebody else."""
    if not request.user.is_authenticated or str(request.user.pk) != key:
        raise BegunElsewhere
    known = sign_on.account_of(person)
    if known is not None and known != request.user:
        raise sign_on.LinkedElsewhere
    about = [request.user.pk, person.issuer, person.subject, person.email, person.unconfirmed_email]
    payload = signing.dumps([*about, person.name, person.username], salt=LINK_SALT)
    form = LinkForm(user=user_of(request)) if asks_password(request) else None
    return render(request, "company_link.html", {"form": form, "payload": payload, "label": person.label})


ENTRANCES: dict[str, Callable[[HttpRequest, str, Person], HttpResponse]] = {
    "enter": _enter,
    "invited": _enter_invited,
    "once": _enter_once,
    "campaign": _enter_campaign,
    "link": _confirm,
}
