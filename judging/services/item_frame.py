"""What an assessor is shown of an item: a page for a sandboxed frame, in which nothing runs, loads or leaves.

A machine assessor reads the same texts without marks.
"""

import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType

from django.db.models import Case, F, QuerySet, TextField, Value, When
from django.db.models.functions import Left, Length
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.html import format_html
from django.utils.translation import get_language, gettext

from judging.highlight import marked_html, marked_text, terms
from judging.image_tags import image_paths, with_pictures
from judging.images import Picture
from judging.kinds import KINDS, ItemKey, Need, Passage, ShownItem, Texts, kind_of
from judging.models import Campaign, Document, DocumentVersion, Item, TrainingItem
from judging.services.images import pictures_of

# The document frame: nothing runs, nothing loads, nothing leaves.
FRAME_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
SHOWN_CHARACTERS = 200_000  # more would keep the browser busy, and nobody reads it
# Anchors s0, s1, ... a tenth of the frame's height apart: the judging screen cannot scroll a sandbox otherwise.
_STEPS = [f'<i id="s{number}"></i>' for number in range(2000)]
CHARACTERS_A_STEP = 20  # a narrow frame shows about so many in a tenth of its height
STEPS_AN_IMAGE = 10  # the page's style lets none be higher than the frame


def frame_response(
    request: HttpRequest, item: Item | TrainingItem, campaign: Campaign, as_of: datetime | None = None
) -> HttpResponse:
    """Return the page of a frame: the item's texts by the campaign's kind, the topic's words marked.

    `?marks=0` leaves them unmarked. HTML is shown where the collection opted in, and only whole: what is longer is
    shown as text, and that is cut. `as_of`: the document as it was in force then, else now.
    """
    kind = kind_of(campaign.kind)
    shown = shown_item(item, document_passage(item.document, campaign.collection.shows_html, as_of))
    need, texts = shown.need, kind.texts(shown)
    marks = campaign.highlights_terms and request.GET.get("marks") != "0"
    wanted = terms(need.title, need.description) if marks else frozenset()
    pictures = pictures_of(campaign.collection_id, _image_paths(texts, shown.key.document))
    return _response(request, texts, shown.key.document, pictures, wanted, kind.template)


def document_response(request: HttpRequest, document: Document, *, as_pages: bool) -> HttpResponse:
    """Return the page of a frame that shows a document by itself, as a page or as its words; nothing is marked."""
    texts = Texts(document_passage(document, as_pages))
    pictures = pictures_of(document.collection_id, _image_paths(texts, document.doc_id))
    return _response(request, texts, document.doc_id, pictures)


def preview_response(
    request: HttpRequest,
    passage: Passage,
    *,
    doc_id: str = "",
    pictures: Mapping[str, Picture | None] = MappingProxyType({}),
) -> HttpResponse:
    """Return the page of a frame that shows what is no document yet; its HTML has passed the sanitiser."""
    return _response(request, Texts(passage), doc_id, pictures)


def _response(
    request: HttpRequest,
    texts: Texts,
    doc_id: str,
    pictures: Mapping[str, Picture | None],
    wanted: frozenset[str] = frozenset(),
    template: str = KINDS[0].template,
) -> HttpResponse:
    def body(passage: Passage) -> str:
        if not passage.html:
            return marked_text(passage.text, wanted)
        return with_pictures(marked_html(passage.html, wanted), doc_id, pictures, _image_note)

    context = {
        "title": texts.title,
        "parts": [{"passage": passage, "body": body(passage)} for passage in texts],
        "steps": "".join(_STEPS[: sum(map(_n_steps, texts))]),
    }
    response = render(request, template, context)
    response.headers["Content-Security-Policy"] = FRAME_POLICY
    response.headers["X-Frame-Options"] = "SAMEORIGIN"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Cache-Control"] = "private, max-age=3600"
    return response


def _image_paths(texts: Texts, doc_id: str) -> list[str]:
    return [path for passage in texts for path in image_paths(passage.html, doc_id)]


def _image_note(address: str, is_there: bool) -> str:
    """Say in the reader's language why an image is not shown; the address is ASCII."""
    if is_there:
        words = gettext("not shown, because the images of this document are too large together: %(path)s")
    elif address.startswith("data:"):
        words = gettext("not shown: an image inside the document")
    elif address:
        words = gettext("not uploaded: %(path)s")
    else:
        return ""
    return format_html('<small lang="{}" dir="auto">{}</small>', get_language(), words % {"path": address})


def _n_steps(passage: Passage) -> int:
    lines = passage.n_characters // CHARACTERS_A_STEP + passage.text.count("\n")
    return 20 + lines + STEPS_AN_IMAGE * passage.html.count("<img ")


def title_of(item: Item | TrainingItem, campaign: Campaign) -> str:
    """Return what stands above the item's texts by the campaign's kind; the document's text is not read."""
    return kind_of(campaign.kind).title(shown_item(item, Passage(item.document.title, "")))


def whole_texts(item: Item | TrainingItem, campaign: Campaign) -> Texts:
    """Return the item's texts by the campaign's kind, plain and in full."""
    text = item.document.text
    return kind_of(campaign.kind).texts(
        shown_item(item, Passage(item.document.title, text, n_characters=len(text)))
    )


def shown_item(item: Item | TrainingItem, document: Passage) -> ShownItem:
    """Return what the campaign's kind may show of an item, the document as it was read for it."""
    topic = item.topic
    return ShownItem(
        ItemKey(topic.topic_id, item.document.doc_id),
        Need(topic.title, topic.description, topic.narrative),
        document,
    )


def document_passage(document: Document, shows_html: bool, as_of: datetime | None = None) -> Passage:
    """Return the text, cut, and the HTML if it is to be shown, as in force at a time or now. Cut in the database."""
    fits = When(n_html__lte=SHOWN_CHARACTERS if shows_html else 0, then=F("html"))
    title, text, html, n_characters = (
        _in_force(document, as_of)
        .annotate(n_html=Length("html"))
        .values_list(
            "title",
            Left("text", SHOWN_CHARACTERS),
            Case(fits, default=Value(""), output_field=TextField()),
            Length("text"),
        )[:1]
    )[0]
    return Passage(title, text, html, n_characters)


def _in_force(document: Document, as_of: datetime | None) -> QuerySet[Document] | QuerySet[DocumentVersion]:
    """Return the row with what the document said at that time: its own, or that of its version then."""
    if as_of is None or document.version == 1:
        return Document.objects.filter(pk=document.pk)
    versions = DocumentVersion.objects.filter(document=document)
    # Number 1 was written down later than it was in force.
    return (versions.filter(number__gt=1, created_at__lte=as_of) | versions.filter(number=1)).order_by(
        "-number"
    )


def prompt_texts(
    item_ids: Iterable[uuid.UUID], campaign: Campaign, longest: int | None = None
) -> dict[uuid.UUID, str]:
    """Return by item the texts as a machine assessor reads them, each document's cut after `longest` characters."""
    kind = kind_of(campaign.kind)
    text = F("document__text") if longest is None else Left("document__text", longest)
    rows = Item.objects.filter(pk__in=item_ids).values_list(
        "pk",
        "topic__topic_id",
        "document__doc_id",
        "topic__title",
        "topic__description",
        "topic__narrative",
        "document__title",
        text,
    )
    return {
        pk: kind.texts(
            ShownItem(ItemKey(topic_id, doc_id), Need(*need), Passage(title, text, n_characters=len(text)))
        ).as_prompt()
        for pk, topic_id, doc_id, *need, title, text in rows
    }
