"""How a collection's documents are shown: both previews, and the switch."""

import io
import json

import pytest
from django.urls import reverse
from uploaded_images import plain

from judging.models import Collection
from judging.services.files import import_documents
from judging.services.images import store_images
from touchstone.models import Event

pytestmark = pytest.mark.django_db


@pytest.fixture
def collection() -> Collection:
    made = Collection.objects.create(name="News")
    lines = [
        {"_id": "a.html", "title": "Without", "text": "<h1>One</h1><p>two</p>"},
        {"_id": "b.html", "title": "With", "text": "<p>Three <img src='c.png' alt='A plot'></p>"},
    ]
    source = io.BytesIO("".join(f"{json.dumps(line)}\n" for line in lines).encode())
    import_documents(collection=made, source=source, name="d", is_html=True)
    store_images(collection=made, images=[("c.png", plain())])
    return made


def page_of(client, made, query="", status=200):
    answer = client.get(reverse("console:manage-collection-shown", args=[made.pk]) + query)
    assert answer.status_code == status
    return answer.content.decode()


def test_the_switch_stands_below_both_previews_and_is_recorded(alice, collection):
    text = page_of(alice, collection)
    frame = reverse(
        "console:manage-document-frame", args=[collection.pk, collection.documents.get(doc_id="b.html").pk]
    )
    for way in ("pages", "words"):
        assert f'src="{frame}?as={way}"' in text
    assert 'id="as-words">As words <span class="tag ok">now</span>' in text
    answer = alice.post(reverse("console:manage-collection-shown", args=[collection.pk]), {"as": "pages"})
    assert answer.status_code == 302
    collection.refresh_from_db()
    assert collection.shows_html is True
    assert Event.objects.get(verb="changed").detail["fields"] == ["shows_html"]
    assert 'id="as-pages">As pages <span class="tag ok">now</span>' in page_of(alice, collection)
    assert (
        "shown as pages"
        in alice.get(reverse("console:manage-collection", args=[collection.pk])).content.decode()
    )


def test_the_example_with_an_image_comes_first_and_another_can_be_chosen(alice, collection):
    other = collection.documents.get(doc_id="a.html")
    assert ">With</a></strong>" in page_of(alice, collection)
    text = page_of(alice, collection, f"?document={other.pk}")
    assert ">Without</a></strong>" in text
    assert f"documents/{other.pk}/frame/?as=pages" in text
    assert ">With</a></strong>" in page_of(alice, collection, "?document=x")


def test_a_preview_is_the_document_alone_in_its_sandbox(alice, collection):
    document = collection.documents.get(doc_id="b.html")
    address = reverse("console:manage-document-frame", args=[collection.pk, document.pk])
    pages, words = (alice.get(f"{address}?as={way}") for way in ("pages", "words"))
    assert 'src="data:image/png;base64,' in pages.content.decode()
    assert '<pre class="text">\nThree</pre>' in words.content.decode()
    for answer in (pages, words):
        assert answer.headers["Content-Security-Policy"].startswith("sandbox; default-src 'none'")
    elsewhere = Collection.objects.create(name="Else")
    wrong = reverse("console:manage-document-frame", args=[elsewhere.pk, document.pk])
    assert alice.get(wrong).status_code == 404


def test_no_choice_changes_nothing(alice, collection):
    for choice in ({}, {"as": "html"}, {"as": "pages\x00"}):
        answer = alice.post(reverse("console:manage-collection-shown", args=[collection.pk]), choice)
        assert answer.status_code == 400
    collection.refresh_from_db()
    assert collection.shows_html is False


def test_without_html_and_without_documents_the_page_says_so(alice):
    made = Collection.objects.create(name="Plain")
    assert "No documents yet" in page_of(alice, made)
    source = io.BytesIO(b'{"_id": "d1", "text": "plain"}\n')
    import_documents(collection=made, source=source, name="d")
    text = page_of(alice, made)
    assert "None of the first 200 documents is HTML: both ways show the same." in text
    assert text.count("<iframe") == 2
