"""Images of a collection: how they are stored, and which of them a document shows."""

import base64
import re

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from hostile_corpus import make_campaign
from uploaded_images import image_file, noise, opened, plain, wide_png

from judging.image_tags import image_paths, with_pictures
from judging.images import MOST_SHOWN
from judging.models import Collection, Document, DocumentImage, Import
from judging.services.images import pictures_of, store_images
from touchstone.models import Event, User

pytestmark = pytest.mark.django_db

SOURCE = re.compile(r'src="data:image/(\w+);base64,([^"]+)"')
PAGE = (
    "<p><a href='https://a.example/'>away</a> wings</p>"
    "<img src='figures/a.png' alt='A plot'><img src='../b%20c.png'><img src='figures/none.png' alt='Another'>"
    "<img src='https://a.example/d.png'>"
)


@pytest.fixture
def shown(client):
    """Return a function that imports a document and returns another, which gets its frame."""

    def make(text: str, doc_id: str = "site/a.html", shows_html: bool = True):
        document = {"_id": doc_id, "text": text}
        campaign, (token,) = make_campaign(
            [document], is_html=True, shows_html=shows_html, name="c", titles=["wings"]
        )
        client.force_login(User.objects.get(username="bob"))
        return campaign.collection, lambda: client.get(f"/frame/{token}/").content.decode()

    return make


def test_images_that_come_after_the_document_are_shown_and_the_others_are_named(shown):
    collection, page = shown(PAGE)
    before = page()
    assert "data:image" not in before
    assert (
        '<span class="image">A plot <small lang="en" dir="auto">not uploaded: figures/a.png</small></span>'
        in before
    )
    stored = store_images(
        collection=collection,
        images=iter([("site/figures/a.png", plain("red")), ("b c.png", plain("blue"))]),
        actor=None,
    )
    assert (stored.n, stored.faults) == (2, [])
    after = page()
    assert [
        opened(base64.b64decode(data)).convert("RGB").getpixel((3, 3)) for _, data in SOURCE.findall(after)
    ] == [
        (255, 0, 0),
        (0, 0, 255),
    ]
    assert '<img alt="A plot" src="data:image/png;base64,' in after
    assert "not uploaded: figures/none.png" in after
    assert "Another <small" in after
    assert "not uploaded: https://a.example/d.png" in after
    assert '<a title="https://a.example/">away</a> <mark>wings</mark>' in after
    assert "href=" not in after.partition('<div class="page">')[2]
    assert "data-path" not in after


def test_as_words_no_image_is_looked_up(shown):
    collection, page = shown(PAGE, shows_html=False)
    store_images(collection=collection, images=[("site/figures/a.png", plain())])
    with CaptureQueriesContext(connection) as queries:
        words = page()
    assert "data:image" not in words
    assert not any("judging_documentimage" in (query["sql"] or "") for query in queries)


def test_a_frame_asks_twice_for_all_its_images(shown):
    collection, page = shown("".join(f"<img src={number}.png>" for number in range(30)), doc_id="d1")
    store_images(
        collection=collection, images=[(f"{number}.png", plain(size=(number + 1, 1))) for number in range(30)]
    )
    with CaptureQueriesContext(connection) as queries:
        text = page()
    assert len(SOURCE.findall(text)) == 30
    assert sum("judging_documentimage" in (query["sql"] or "") for query in queries) == 2


def test_a_document_of_images_alone_is_not_called_empty(shown):
    _, page = shown("<img src='a.png'>")
    text = page()
    assert "This document is empty." not in text
    assert "not uploaded: a.png" in text


def test_an_image_inside_the_document_is_not_shown(shown):
    _, page = shown(f"<img alt=x src='data:image/png;base64,{base64.b64encode(plain()).decode()}'>")
    text = page()
    assert "data:image" not in text
    assert "x <small" in text
    assert "not shown: an image inside the document" in text


def test_of_a_document_four_megabytes_are_shown_and_the_rest_is_named(shown):
    """Each of the pictures has about 400 kB; one that stands twice counts twice."""
    files = {f"{number}.png": image_file(noise(420, 300, number)) for number in range(12)}
    tags = "<img src=0.png>" + "".join(f"<img src={name}>" for name in files)
    collection, page = shown(tags, doc_id="d1")
    assert store_images(collection=collection, images=files.items()).n == 12
    text = page()
    sizes = [len(base64.b64decode(data)) for _, data in SOURCE.findall(text)]
    assert sum(sizes) <= MOST_SHOWN < sum(sizes) + 400_000
    assert len(sizes) == 11
    assert text.count("not shown, because the images of this document are too large together") == 13 - 11


def test_what_cannot_be_shown_is_left_out_named_and_written_down(django_user_model):
    collection = Collection.objects.create(name="c")
    alice = django_user_model.objects.create(username="alice")
    files = [
        ("a.png", plain()),
        ("logo.svg", b"<svg onload='alert(1)'/>"),
        ("big.png", wide_png(30_000, 30_000)),
        ("../up.png", plain()),
        ("x/../a.png", plain("blue")),
        ("p" * 501, plain()),
        ("b.gif", image_file(opened(plain()), "GIF")),
    ]
    stored = store_images(collection=collection, images=files, actor=alice)
    assert stored.n == 2
    assert stored.faults == [
        "logo.svg: SVG images are not shown, because they can hold scripts and addresses; save it as PNG",
        "big.png: 30,000 x 30,000 pixels; an image has at most 50 million",
        "../up.png: the path leads above the upload, or has more than 500 characters",
        "x/../a.png: the upload has two images there",
        f"{'p' * 100}: the path leads above the upload, or has more than 500 characters",
    ]
    event = Event.objects.get(verb="imported images")
    assert (event.actor, event.detail["n_images"], event.detail["n_left_out"]) == (alice, 2, 5)
    assert event.detail["left_out"] == stored.faults
    first, last = stored.rows["judging_documentimage"]
    made = Import.objects.get()
    assert (made.state, made.kind, made.user) == ("kept", "images", alice)
    assert set(collection.images.values_list("imported_by", flat=True)) == {made.pk}
    (entry,) = made.files
    assert (entry["name"], entry["counts"], entry["rows"]) == (
        "images",
        {"images": 2},
        {"judging_documentimage": [first, last]},
    )
    assert list(collection.images.order_by("pk").values_list("path", "pk")) == [
        ("a.png", first),
        ("b.gif", last),
    ]


def test_the_same_file_again_is_no_fault_and_another_in_its_place_is():
    collection, other = Collection.objects.create(name="c"), Collection.objects.create(name="d")
    store_images(collection=collection, images=[("a.png", plain())])
    again = store_images(collection=collection, images=[("a.png", plain()), ("b.png", plain("blue"))])
    assert (again.n, again.faults) == (1, [])
    changed = store_images(collection=collection, images=[("a.png", plain("lime"))])
    assert (changed.n, changed.faults, changed.rows) == (
        0,
        ["a.png: the collection has another image there"],
        {},
    )
    assert store_images(collection=other, images=[("a.png", plain("lime"))]).n == 1
    assert set(pictures_of(collection.pk, ["a.png", "c.png"])) == {"a.png"}


def test_the_database_keeps_images_short_known_and_unchanged():
    collection = Collection.objects.create(name="c")
    store_images(collection=collection, images=[("a.png", plain())])
    whole = {
        "collection": collection,
        "path": "b.png",
        "sha256": "0" * 64,
        "media_type": "image/png",
        "content": b"x",
    }
    for wrong in (
        {"path": "a.png"},
        {"path": "a b.png"},
        {"path": ""},
        {"media_type": "image/svg+xml"},
        {"content": bytes((512 << 10) + 1)},
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            DocumentImage.objects.create(**whole | wrong)
    DocumentImage.objects.create(**whole | {"content": bytes(512 << 10)})  # the control
    for change in (
        lambda rows: rows.update(path="c.png"),
        lambda rows: rows.delete(),
    ):
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            change(DocumentImage.objects.filter(path="a.png"))


def test_a_failed_upload_leaves_no_image():
    collection = Collection.objects.create(name="c")

    def files():
        yield "a.png", plain()
        raise ValueError("the zip ends here")

    with pytest.raises(ValueError, match="the zip ends here"):
        store_images(collection=collection, images=files())
    assert not collection.images.exists()
    assert not Event.objects.filter(verb="imported images").exists()


def test_a_page_that_was_made_safe_before_links_were_kept_is_shown_as_it_was(shown):
    collection, page = shown("<p>wings</p>")
    old = Document.objects.create(collection=collection, doc_id="old", html="<p>a<b>b</b></p>", text="ab")
    assert image_paths(old.html, old.doc_id) == []
    assert with_pictures(old.html, old.doc_id, {}, "".format) == old.html
    assert "<p><mark>wings</mark></p>" in page()
