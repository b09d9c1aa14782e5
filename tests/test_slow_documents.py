"""Documents are slow: thirty that cost a sanitiser much time are imported in bounded time."""

import io
import json
import sys
import time

import pytest
from hostile_corpus import make_campaign

from judging.models import (
    Collection,
    Document,
)
from judging.sanitise import Allowance
from judging.services.errors import ImportRefused
from judging.services.files import import_documents
from judging.services.item_frame import SHOWN_CHARACTERS
from touchstone.models import Event, User

_children: list[str] = []


def _note_children(event: str, arguments: tuple) -> None:
    if event in ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.exec", "os.system"):
        _children.append(event)


sys.addaudithook(_note_children)  # cannot be taken away again; it costs nothing

SLOW = {
    "nested": "<div>" * 50_000,
    "attributes": "<p " + " ".join(f"a{number}=1" for number in range(200_000)) + ">x",
    "comments": "<!--" * 200_000,
    "unclosed comments": "<!-- x " * 200_000,
    "unclosed tags": "<b><i><p><ul><li><table><tr><td>" * 2_000,
    "unclosed attribute": '<p title="' + "x" * 1_000_000,
    "brackets": "<" * 300_000,
    "quoted brackets": '<"' * 150_000,
    "ampersands": "&" * 300_000,
    "entities": "&lt;script&gt;" * 20_000,
    "formatting": "<p>" + "".join(f"<b a{number}>" for number in range(1_000)) + "<p>x" * 1_000,
    "spaces": "x" + " " * 1_000_000 + "x",
    "lines": "x" + "\n \t" * 200_000 + "x",
    "letters": "a" * 1_000_000 + "!",
    "words": "wing lift drag " * 70_000,
    "accents": "a" + "\u0301\u0316" * 300_000,
    "accented words": ("a" + "\u0301\u0316" * 20 + " ") * 10_000,
    "expanding": "\ufdfa " * 300_000,
    "addresses": "http://" + "a." * 300_000,
    "backtracking": ("a" * 50 + "! ") * 10_000,
    "underscores": "_a" * 200_000,
    "emoji": "\U0001f468\u200d" * 150_000,
    "right to left": "\u202e\u05d0 " * 150_000,
    "cells": "<table>" + "<tr><td>x" * 20_000,
    "lists": "<ul><li>" * 5_000,
    "long table": "<td colspan=999 rowspan=999>x" * 20_000,
    "cdata": "<svg><![CDATA[" + "]]" * 200_000,
    "text": "word " * 1_900_000,
    "empty": "<p></p>" * 100_000,
    "nothing": "",
}  # fmt: skip


@pytest.fixture
def slow(db, client):
    documents = [
        {"_id": f"source-{number}", "title": name, "text": text}
        for number, (name, text) in enumerate(SLOW.items())
    ]
    campaign, tokens = make_campaign(
        documents, is_html=True, shows_html=True, name="slow", titles=["wing lift accents xaaa"]
    )
    client.force_login(User.objects.get(username="bob"))
    return campaign, dict(zip(SLOW, tokens, strict=True))


@pytest.mark.django_db
def test_thirty_slow_documents_are_imported_in_bounded_time_and_no_view_starts_the_sanitiser(slow, client):
    _, tokens = slow
    assert len(tokens) == 30
    assert _children  # the import did, so the watch works
    as_source = Document.objects.filter(html="").exclude(text="").values_list("title", flat=True)
    assert {"nested", "attributes", "formatting"} <= set(as_source)
    assert Event.objects.get(verb="imported documents").detail["n_as_source"] >= 3
    _children.clear()
    client.get(f"/frame/{tokens['nothing']}/")  # the first request of a process loads its templates
    for name, token in tokens.items():
        before = time.process_time()
        answer = client.get(f"/frame/{token}/")
        assert time.process_time() - before < 1, name
        assert answer.status_code == 200
        assert len(answer.content) < 12 * SHOWN_CHARACTERS, name
        assert b"<div><div>" not in answer.content
    assert _children == []


@pytest.mark.django_db
def test_a_document_of_more_than_ten_megabytes_is_refused_with_its_place():
    collection = Collection.objects.create(name="big")
    line = b'{"_id": "d1", "text": "ok"}\n{"_id": "d2", "text": "' + b"word " * 10_000_000 + b'"}\n'
    with pytest.raises(ImportRefused, match=r"^big:2:1: document longer than 10000000 characters$"):
        import_documents(collection=collection, source=io.BytesIO(line), name="big", is_html=True)
    assert not collection.documents.exists()


@pytest.mark.django_db
def test_an_import_says_how_many_documents_it_could_not_make_safe():
    collection, said = Collection.objects.create(name="c"), []
    lines = [
        {"_id": f"d{number}", "text": "<div>" * 50_000 if number < 2 else "<b>x</b>"} for number in range(4)
    ]
    source = io.BytesIO("".join(f"{json.dumps(line)}\n" for line in lines).encode())
    allowance = Allowance(cpu_seconds=2, total_seconds=1)  # the first one overdraws it
    count = import_documents(
        collection=collection, source=source, name="c", is_html=True, allowance=allowance, warn=said.append
    )
    assert count == 4
    assert said == ["4 documents are shown as source text, because the HTML could not be sanitised in time"]
    assert list(collection.documents.order_by("doc_id").values_list("text", "html")) == [
        (line["text"], "") for line in lines
    ]
