"""The pages behind a link that works once, and the page of whoever has forgotten a password.

Opening a link changes nothing: mail programs open links to look at them. The form on its page does.
"""

import hashlib
import math
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache

from judging.forms import NewAccountForm, NewPasswordForm
from judging.services.entry import propose_password, propose_username
from judging.services.errors import UserNameTaken
from touchstone import links
from touchstone.api.rate_limits import Limit, address_of, count, longest_wait
from touchstone.letters.queueing import letters_are_sent
from touchstone.links import LinkUnusable
from touchstone.logins import WINDOW, enter, too_many_words, typed_name

Page = Callable[[HttpRequest, str], HttpResponse]


def _one_time(page: Page) -> Page:
    """Return the page for whoever has the link; whatever is wrong with the link is said in the same sentence."""

    @never_cache
    @login_not_required
    def wrapper(request: HttpRequest, token: str) -> HttpResponse:
        try:
            return page(request, token)
        except LinkUnusable as refusal:
            return render(request, "link_gone.html", status=refusal.status)

    return wrapper


def _without_passwords(request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    """Show the page, which offers the company's account alone, and refuse a password that is sent to it."""
    return render(request, template, context, status=403 if request.method == "POST" else 200)


@_one_time
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """An account for whoever is invited; who is logged in already is told so."""
    link = links.usable_link(kind=links.INVITATION, token=token)
    context: dict[str, Any] = {"link": link, "company": reverse("company-invitation", args=[token])}
    if request.user.is_authenticated:
        return render(request, "link_invitation.html", context)
    if not settings.PASSWORD_LOGIN:
        return _without_passwords(request, "link_invitation.html", context)
    if request.method != "POST":
        context["form"] = NewAccountForm(initial={"username": propose_username()})
        return render(request, "link_invitation.html", context)
    form = NewAccountForm(request.POST)
    if form.is_valid():
        sent = form.cleaned_data
        try:
            user = links.join_by_invitation(token=token, username=sent["username"], password=sent["password"])
        except UserNameTaken:
            taken = gettext("Somebody already has this user name. You could use %(name)s.")
            form.add_error("username", taken % {"name": propose_username()})
        else:
            return enter(request, user)
    return render(request, "link_invitation.html", {**context, "form": form}, status=400)


@_one_time
def new_password(request: HttpRequest, token: str) -> HttpResponse:
    """A new password, proposed or typed; all sessions end, and a new one begins."""
    link = links.usable_link(kind=links.PASSWORD, token=token)
    assert link.user is not None  # noqa: S101 (a constraint of the table)
    context: dict[str, Any] = {
        "name": link.user.get_username(),
        "company": reverse("company-password", args=[token]),
    }
    if not settings.PASSWORD_LOGIN:
        return _without_passwords(request, "link_password.html", context)
    if request.method != "POST":
        context["proposal"] = propose_password()
        context["form"] = NewPasswordForm(user=link.user, initial={"password": context["proposal"]})
        return render(request, "link_password.html", context)
    form = NewPasswordForm(request.POST, user=link.user)
    if not form.is_valid():
        return render(request, "link_password.html", {**context, "form": form}, status=400)
    user = links.set_password_by_link(token=token, password=form.cleaned_data["password"])
    messages.success(request, gettext("Your new password is stored. You were logged out everywhere else."))
    return enter(request, user)


@_one_time
def address(request: HttpRequest, token: str) -> HttpResponse:
    """The proof that letters to an address arrive."""
    link = links.usable_link(kind=links.ADDRESS, token=token)
    if request.method != "POST":
        return render(request, "link_address.html", {"email": link.email})
    user = links.prove_address(token=token)
    messages.success(request, gettext("Letters now go to %(email)s.") % {"email": user.email})
    return redirect("account" if request.user == user else "login")


@never_cache
@login_not_required
def password_request(request: HttpRequest) -> HttpResponse:
    """A letter with a link to whoever forgot a password; the answer is the same whether there is such an account."""
    if not settings.PASSWORD_LOGIN:
        return _without_passwords(request, "forgotten.html", {})
    if request.method != "POST" or not letters_are_sent():
        return render(request, "forgotten.html", {"letters_are_sent": letters_are_sent()})
    name = typed_name(request)
    if not name:
        return render(request, "forgotten.html", {"letters_are_sent": True, "is_empty": True}, status=400)
    wait = longest_wait(count(_limits(request, name)))
    if wait is not None:
        answer = render(
            request, "forgotten.html", {"letters_are_sent": True, "refused": too_many_words(wait)}, status=429
        )
        answer["Retry-After"] = str(math.ceil(wait))
        return answer
    links.ask_for_password(name)
    return render(request, "forgotten.html", {"letters_are_sent": True, "is_asked": True})


def _limits(request: HttpRequest, name: str) -> list[Limit]:
    hashed = hashlib.sha256(name.casefold().encode(errors="replace")).hexdigest()
    return [
        Limit(f"forgotten address {address_of(request)}", settings.LOGIN_TRIES_PER_ADDRESS, WINDOW),
        Limit(f"forgotten name {hashed}", settings.LOGIN_TRIES, WINDOW),
    ]
