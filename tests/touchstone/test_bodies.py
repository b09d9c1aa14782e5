"""Long bodies: read whole or not at all, two at a time, and cut when they come too slowly."""

import io
import socket
import time

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from judging.models import Collection
from touchstone import bodies
from touchstone.bodies import Body, BodyCut, passage, whole_bodies
from touchstone.models import Job, User


def test_a_body_is_read_whole_and_its_beginning_alone_is_a_fault():
    whole = Body(io.BytesIO(b"x" * 100_000 + b"of the next request"), 100_000)
    assert len(whole.read(70_000)) == 70_000
    assert (whole.read(), whole.n, whole.read(10)) == (b"x" * 30_000, 100_000, b"")
    part = Body(io.BytesIO(b"x" * 60_000), 100_000)
    assert len(part.read(50_000)) == 50_000
    with pytest.raises(BodyCut, match="after 60000 of 100000 bytes"):
        part.read(50_000)


@pytest.mark.parametrize(
    ("length", "is_wrapped"), [("5", True), ("", False), ("0", False), ("-5", False), ("²", False)]
)
def test_a_body_of_a_known_length_is_the_one_that_is_watched(length, is_wrapped):
    seen = []
    application = whole_bodies(lambda environ, start: seen.append(environ["wsgi.input"]) or [])
    application({"CONTENT_LENGTH": length, "wsgi.input": io.BytesIO(b"12345")}, None)
    assert isinstance(seen[0], Body) is is_wrapped


@pytest.mark.parametrize(("bytes_per_second", "is_cut"), [(500, True), (2_000, False)])
def test_a_body_below_the_least_rate_is_cut_and_one_above_it_is_not(bytes_per_second, is_cut, monkeypatch):
    monkeypatch.setattr(bodies, "SECONDS", 0.5)
    near, far = socket.socketpair()
    body = Body(io.BytesIO(), 10**6)
    place = passage(body, near)
    try:
        for _ in range(20):
            body.n += bytes_per_second // 10
            time.sleep(0.1)
        place.end()
        far.settimeout(0.1)
        if is_cut:
            assert far.recv(1) == b""
        else:
            with pytest.raises(TimeoutError):
                far.recv(1)
    finally:
        place.end()
        near.close()
        far.close()


def test_a_place_is_free_again_once():
    taken = [passage(None, None) for _ in range(bodies.MOST_LONG)]
    assert None not in taken
    assert passage(None, None) is None
    for place in taken:
        place.end()
        place.end()
    again = [passage(None, None) for _ in range(bodies.MOST_LONG + 1)]
    assert again[-1] is None
    for place in again[:-1]:
        place.end()


@pytest.mark.django_db
def test_a_third_long_upload_is_told_to_come_again_and_a_short_one_passes():
    client = Client()
    client.force_login(User.objects.create(username="mara", role="manager"))
    page = reverse("console:manage-collection", args=[Collection.objects.create(name="News").pk])

    def upload(n_bytes):
        file = SimpleUploadedFile("topics.tsv", b"t1\ta need\n" + b" " * n_bytes)
        return client.post(page, {"kind": "topics", "files": [file], "source_name": ""})

    taken = [passage(None, None) for _ in range(bodies.MOST_LONG)]
    try:
        refused = upload(bodies.BUFFERED)
        assert (refused.status_code, refused["Retry-After"]) == (503, "60")
        assert "Other uploads are under way" in refused.content.decode()
        assert upload(1000).status_code == 302
    finally:
        for place in taken:
            place.end()
    for _ in range(bodies.MOST_LONG + 1):  # one after the other: each leaves its place
        assert upload(bodies.BUFFERED).status_code == 302
    assert Job.objects.count() == bodies.MOST_LONG + 2
