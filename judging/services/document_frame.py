"""A document's page for a sandboxed frame: nothing in it runs, loads or leaves."""

from django.db.models import Case, F, TextField, Value, When
from django.db.models.functions import Left, Length
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from judging.highlight import marked_html, marked_text, terms
from judging.models import Campaign, Document, Topic

# The document frame: nothing runs, nothing loads, nothing leaves.
FRAME_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
SHOWN_CHARACTERS = 200_000  # more would keep the browser busy, and nobody reads it
# Anchors s0, s1, ... a tenth of the frame's height apart: the judging screen cannot scroll a sandbox otherwise.
_STEPS = [f'<i id="s{number}"></i>' for number in range(2000)]
CHARACTERS_A_STEP = 20  # a narrow frame shows about so many in a tenth of its height


def document_response(
    request: HttpRequest, document: Document, topic: Topic, campaign: Campaign
) -> HttpResponse:
    """Return the document's page for a frame, the topic's words marked; `?marks=0` leaves them unmarked.

    HTML is shown where the collection opted in, and only whole: what is longer is shown as text, and that is cut.
    """
    text, html, n_characters = _content(document, campaign.collection.shows_html)
    marks = campaign.highlights_terms and request.GET.get("marks") != "0"
    wanted = terms(topic.title, topic.description) if marks else frozenset()
    context = {
        "title": document.title,
        "is_html": html != "",
        "body": marked_html(html, wanted) if html else marked_text(text, wanted),
        "steps": "".join(_STEPS[: 20 + n_characters // CHARACTERS_A_STEP + text.count("\n")]),
        "is_empty": n_characters <= SHOWN_CHARACTERS and not text.strip(),
        "n_characters": n_characters,
        "n_shown": SHOWN_CHARACTERS,
        "n_hidden": 0 if html else max(0, n_characters - SHOWN_CHARACTERS),
    }
    response = render(request, "judging/frame.html", context)
    response.headers["Content-Security-Policy"] = FRAME_POLICY
    response.headers["X-Frame-Options"] = "SAMEORIGIN"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Cache-Control"] = "private, max-age=3600"
    return response


def _content(document: Document, shows_html: bool) -> tuple[str, str, int]:
    """Return the text, cut, the HTML if it is to be shown, and the text's length. Cut in the database."""
    fits = When(n_html__lte=SHOWN_CHARACTERS if shows_html else 0, then=F("html"))
    shown: tuple[str, str, int] = (
        Document.objects.annotate(n_html=Length("html"))
        .values_list(
            Left("text", SHOWN_CHARACTERS),
            Case(fits, default=Value(""), output_field=TextField()),
            Length("text"),
        )
        .get(pk=document.pk)
    )
    return shown
