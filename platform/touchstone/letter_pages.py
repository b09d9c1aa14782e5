"""Which letters a person gets: a page of the account, and the page to which each letter's last link leads."""

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt

from touchstone.letters.kinds import optional_kinds
from touchstone.letters.queueing import letters_are_sent
from touchstone.letters.unsubscribing import choose_kinds, person_of, refuse, refused_kinds
from touchstone.models import user_of


@never_cache
def letters(request: HttpRequest) -> HttpResponse:
    """My letters: one tick a kind. Nobody switches off what they asked for or were invited by."""
    user = user_of(request)
    kinds = optional_kinds(may_manage=user.may_manage)
    if request.method == "POST":
        choose_kinds(user, set(request.POST.getlist("kinds")) & {kind.key for kind in kinds})
        messages.success(request, "Saved.")
        return redirect("account-letters")
    refused = refused_kinds(user)
    switches = [{"kind": kind, "is_on": kind.key not in refused} for kind in kinds]
    return render(
        request, "account_letters.html", {"switches": switches, "letters_are_sent": letters_are_sent()}
    )


@never_cache
@csrf_exempt  # mail programs send the request themselves (RFC 8058); the link is signed, and only switches off
@login_not_required
def off(request: HttpRequest, token: str) -> HttpResponse:
    """Switch a kind of letters off, without a login; looking at the page changes nothing."""
    found = person_of(token)
    if found is None:
        raise Http404
    user, kind = found
    if request.method == "POST":
        refuse(user, kind)
    is_off = request.method == "POST" or kind.key in refused_kinds(user)
    return render(request, "letters_off.html", {"kind": kind, "is_off": is_off})
