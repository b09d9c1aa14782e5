"""How a collection's documents are shown: as pages or as words, with both beside each other."""

import uuid

from django.contrib import messages
from django.db.models import Case, QuerySet, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from judging.models import Collection, Document
from judging.services.access import managers_only
from judging.services.collections import change_collection
from judging.services.item_frame import document_response
from touchstone.models import user_of

WAYS = {"pages": True, "words": False}
LOOKED_AT = 200  # of so many documents, the first of them, HTML is looked for
EXAMPLES = 5
MOST_IMAGES = 10_000  # counted up to here


@require_http_methods(["GET", "HEAD", "POST"])
@managers_only
def choose_display(request: HttpRequest, collection_id: uuid.UUID) -> HttpResponse:
    """Both previews of some documents; a POST chooses one of the two ways."""
    row = get_object_or_404(Collection, pk=collection_id)
    if request.method == "POST":
        way = request.POST.get("as")
        if way not in WAYS:
            messages.error(request, "Choose pages or words.")
            return _page(request, row, status=400)
        change_collection(collection=row, changes={"shows_html": WAYS[way]}, actor=user_of(request))
        messages.success(request, f"Saved: documents are shown as {way}.")
        return redirect(request.get_full_path())
    return _page(request, row)


def _page(request: HttpRequest, row: Collection, status: int = 200) -> HttpResponse:
    examples = list(_examples(row))
    asked = request.GET.get("document", "")
    example = next((one for one in examples if str(one.pk) == asked), examples[0] if examples else None)
    context = {
        "collection": row,
        "examples": examples,
        "example": example,
        "other": example or row.documents.order_by("doc_id").only("pk", "doc_id", "title").first(),
        "n_images": row.images.all()[:MOST_IMAGES].count(),
        "most_images": MOST_IMAGES,
        "ways": [(way, is_chosen is row.shows_html) for way, is_chosen in WAYS.items()],
        "has_campaigns": row.campaigns.filter(deleted_at=None).exists(),
        "looked_at": LOOKED_AT,
    }
    return render(request, "console/manager/documents_shown.html", context, status=status)


def _examples(row: Collection) -> QuerySet[Document]:
    """Return some documents that have HTML, of the first ones of the collection; those with images first."""
    first = row.documents.order_by("doc_id").values("pk")[:LOOKED_AT]
    found = Document.objects.filter(pk__in=first).exclude(html="").only("pk", "doc_id", "title")
    return found.order_by(Case(When(html__contains="<img ", then=0), default=1), "doc_id")[:EXAMPLES]


@require_safe
@managers_only
def frame(request: HttpRequest, collection_id: uuid.UUID, document_pk: int) -> HttpResponse:
    """A document alone in its sandbox, `?as=pages` or `?as=words`."""
    documents = Document.objects.defer("text", "html")
    document = get_object_or_404(documents, pk=document_pk, collection_id=collection_id)
    return document_response(request, document, as_pages=WAYS.get(request.GET.get("as", ""), False))
