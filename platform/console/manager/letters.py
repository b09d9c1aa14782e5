"""The managers' page of letters: what was sent, what waits, what failed, and what only a person can decide."""

import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from judging.services.access import managers_only
from touchstone.letters.kinds import BY_KEY
from touchstone.letters.queueing import letters_are_sent
from touchstone.letters.sending import send_again
from touchstone.models import Letter, record, user_of

PAGE = 50


class LettersFilter(forms.Form):
    state = forms.ChoiceField(
        label="Show", choices=[("", "all letters"), *Letter.State.choices], required=False
    )


@never_cache
@managers_only
def letters(request: HttpRequest) -> HttpResponse:
    """Letters of the last 90 days, the newest first; what they say is on no page, not even their title."""
    asked = LettersFilter(request.GET)
    state = asked.cleaned_data["state"] if asked.is_valid() else ""
    found = Letter.objects.select_related("user").order_by("-created_at", "pk")
    page = Paginator(found.filter(state=state) if state else found, PAGE).get_page(request.GET.get("page"))
    context: dict[str, Any] = {
        "filter": asked,
        "page": page,
        "kept": urlencode({"state": state} if state else {}),
        "letters": [(letter, _kind(letter)) for letter in page],
        "counts": Letter.objects.values("state").annotate(n=Count("pk")).order_by("state"),
        "letters_are_sent": letters_are_sent(),
    }
    return render(request, "console/manager/letters.html", context)


def _kind(letter: Letter) -> str:
    known = BY_KEY.get(letter.kind)
    return str(known.label) if known else letter.kind


@require_POST
@managers_only
def resend(request: HttpRequest, letter_id: uuid.UUID) -> HttpResponse:
    """Send a letter again that was given up, or that may have arrived."""
    letter = get_object_or_404(Letter, pk=letter_id)
    if send_again(letter):
        record("sent a letter again", letter, actor=user_of(request), kind=letter.kind)
        messages.success(request, "The letter is sent again.")
    else:
        messages.info(request, "Nothing was changed: the letter waits or was sent.")
    return redirect("console:manage-letters")
