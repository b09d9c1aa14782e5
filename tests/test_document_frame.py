"""The frame of a document: what is shown, how much of it, to whom."""

import uuid

import pytest
from hostile_corpus import make_campaign

from judging.models import (
    Collection,
    Lease,
)
from judging.services.item_frame import SHOWN_CHARACTERS
from touchstone.models import User


@pytest.fixture
def shown(db, client):
    """Return a function that imports one document and gets its frame."""

    def show(text: str, *, is_html=True, shows_html=True, title="", query="", topic="wings", **fields):
        document = {"_id": "source-id-7", "title": title, "text": text}
        name = f"c{Collection.objects.count()}"
        _, (token,) = make_campaign(
            [document], is_html=is_html, shows_html=shows_html, name=name, titles=[topic], **fields
        )
        client.force_login(User.objects.get(username="bob"))
        answer = client.get(f"/frame/{token}/{query}")
        assert "source-id-7" not in answer.content.decode()
        return answer, answer.content.decode().partition('<div class="page">')[2]

    return show


@pytest.mark.django_db
def test_html_is_shown_where_the_collection_opted_in_and_its_words_elsewhere(shown):
    page = "<h1>On wings</h1><table><tr><td colspan=2>a &lt; b</td></tr></table>"
    _, body = shown(page)
    assert "<h1>On <mark>wings</mark></h1>" in body
    assert '<td colspan="2">a &lt; b</td>' in body
    _, body = shown(page, shows_html=False)
    assert '<pre class="text">\nOn <mark>wings</mark>\n\na &lt; b</pre>' in body
    _, body = shown(page, is_html=False)
    assert '<pre class="text">\n&lt;h1&gt;On <mark>wings</mark>&lt;/h1&gt;' in body


@pytest.mark.django_db
def test_marks_can_be_switched_off_by_the_assessor_and_by_the_campaign(shown):
    assert "<mark>" in shown("wings")[1]
    assert "<mark>" not in shown("wings", query="?marks=0")[1]
    assert "<mark>" not in shown("wings", highlights_terms=False)[1]


@pytest.mark.django_db
def test_an_empty_document_is_called_empty_and_an_untitled_one_has_no_source_id_for_a_title(shown):
    for text in ("", "<p> </p><!-- x -->"):
        answer, body = shown(text)
        assert "This document is empty." in body
        assert "<title>Document</title>" in answer.content.decode()
    assert "This document is empty." not in shown("x", title="A <b>title")[1]


@pytest.mark.django_db
def test_of_a_long_document_the_beginning_is_shown_and_said_how_much_is_not(shown):
    text = "w" * SHOWN_CHARACTERS
    _, body = shown(text, is_html=False)
    assert text in body
    assert "characters" not in body
    _, body = shown(text + "x" * 1234, is_html=False)
    assert text in body
    assert "wx" not in body
    note = "The document has 201,234 characters. The first 200,000 are shown here; the other 1,234 are not."
    assert note in body
    assert "x" * 20 not in body


@pytest.mark.django_db
def test_html_that_is_too_long_is_shown_as_its_words_never_cut(shown):
    _, body = shown("<p>" + "<b>wing</b> " * 20_000)
    assert '<pre class="text">' in body
    assert "<b>" not in body
    assert "are not." not in body  # its text is short enough


@pytest.mark.django_db
def test_the_frame_has_its_own_policy_and_nothing_to_compare_documents_by(shown):
    headers = [dict(shown(text)[0].headers) for text in ("<p>one</p>", "two " * 999)]
    for found in headers:
        del found["Content-Length"]
    assert headers[0] == headers[1] == {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        "font-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'",
        "X-Frame-Options": "SAMEORIGIN",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "private, max-age=3600",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), "
        "publickey-credentials-get=(), usb=()",
        "X-Request-ID": "0" * 32,  # of the tests: otherwise each answer has its own
        "Vary": "Accept-Language, Cookie",
        "Content-Language": "en",
    }  # fmt: skip


@pytest.mark.django_db
def test_anothers_document_is_absent(shown, client):
    shown("text")
    token = Lease.objects.get().token
    client.force_login(User.objects.create(username="charlie"))
    foreign, absent = client.get(f"/frame/{token}/"), client.get(f"/frame/{uuid.uuid4()}/")
    assert (foreign.status_code, absent.status_code) == (404, 404)
    client.logout()
    assert client.get(f"/frame/{token}/").status_code == 302
