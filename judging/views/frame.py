"""A document, alone in a sandbox."""

import uuid
from typing import Any

from django.db.models import Case, F, TextField, Value, When
from django.db.models.functions import Left, Length
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from judging.highlight import LONGEST_TOPIC, marked_html, marked_text, terms
from judging.models import Lease

# The document frame: nothing runs, nothing loads, nothing leaves.
FRAME_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
SHOWN_CHARACTERS = 200_000  # more would keep the browser busy, and nobody reads it
_DOCUMENT = "slot__item__document__"
_TOPIC = "slot__item__topic__"


def frame(request: HttpRequest, token: uuid.UUID) -> HttpResponse:
    """The document of a lease; only its assessor gets it. `?marks=0` leaves the topic's words unmarked.

    HTML is shown where the collection opted in, and only whole: what is longer is shown as text, and that is cut.
    """
    document = _document(request, token)
    if document is None:
        raise Http404
    marks = document["highlights_terms"] and request.GET.get("marks") != "0"
    wanted = terms(document["topic_title"], document["topic_description"]) if marks else frozenset()
    is_html, n_hidden = document["html"] != "", 0
    if is_html:
        body = marked_html(document["html"], wanted)
    else:
        body = marked_text(document["text"], wanted)
        n_hidden = max(0, document["n_characters"] - SHOWN_CHARACTERS)
    context = {
        "title": document["title"],
        "is_empty": not n_hidden and not document["text"].strip(),
        "is_html": is_html,
        "body": body,
        "n_characters": document["n_characters"],
        "n_shown": SHOWN_CHARACTERS,
        "n_hidden": n_hidden,
    }
    response = render(request, "judging/frame.html", context)
    response.headers["Content-Security-Policy"] = FRAME_POLICY
    response.headers["X-Frame-Options"] = "SAMEORIGIN"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Cache-Control"] = "private, max-age=3600"
    return response


def _document(request: HttpRequest, token: uuid.UUID) -> dict[str, Any] | None:
    """Return what the frame needs of the lease's document, cut in the database: a document may have megabytes."""
    is_shown = {f"{_DOCUMENT}collection__shows_html": True, "n_html__lte": SHOWN_CHARACTERS}
    columns = [
        "title",
        "n_characters",
        "text",
        "html",
        "topic_title",
        "topic_description",
        "highlights_terms",
    ]
    return (
        Lease.objects.filter(token=token, assessor__user=request.user)
        .annotate(
            title=Left(f"{_DOCUMENT}title", LONGEST_TOPIC),
            n_characters=Length(f"{_DOCUMENT}text"),
            n_html=Length(f"{_DOCUMENT}html"),
            text=Left(f"{_DOCUMENT}text", SHOWN_CHARACTERS),
            html=Case(
                When(**is_shown, then=F(f"{_DOCUMENT}html")), default=Value(""), output_field=TextField()
            ),
            topic_title=Left(f"{_TOPIC}title", LONGEST_TOPIC),
            topic_description=Left(f"{_TOPIC}description", LONGEST_TOPIC),
            highlights_terms=F("assessor__campaign__highlights_terms"),
        )
        .values(*columns)
        .first()
    )
