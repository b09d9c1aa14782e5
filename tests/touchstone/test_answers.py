"""What every answer says to browsers, over HTTPS; and what no other site gets to read."""

import pytest
from django.conf import settings as django_settings
from django.test import Client

from touchstone.models import User

PLACES = [
    "/",
    "/login/",
    "/manage/",
    "/api/v1/me",
    "/api/v1/schema",
    "/nowhere/",
    "/?next=%00",
    "/static/nothing.css",
]


@pytest.fixture
def answers(settings):
    """Give the answers to a manager, to a stranger and to another site, as they are over HTTPS."""
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_HSTS_SECONDS, settings.SECURE_HSTS_INCLUDE_SUBDOMAINS = 31_536_000, True
    manager = Client(raise_request_exception=False)
    manager.force_login(User.objects.create(username="mara", role="manager"))
    clients = (manager, Client(raise_request_exception=False))
    headers = {"Origin": "https://elsewhere.example"}
    return {
        (place, n): client.get(place, headers=headers, secure=True)
        for place in PLACES
        for n, client in enumerate(clients)
    }


@pytest.mark.django_db
def test_every_answer_over_https_asks_for_https_and_is_what_it_says_it_is(answers):
    for place, answer in answers.items():
        assert answer["Strict-Transport-Security"] == "max-age=31536000; includeSubDomains", place
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["Referrer-Policy"] == "same-origin"
        policy = answer["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in policy
        assert "base-uri 'none'" in policy
        # Nothing is said of plug-ins: what holds for everything holds for them.
        assert "default-src 'none'" in policy
        assert "object-src" not in policy
        if answer["Content-Type"].startswith("text/"):
            assert "charset=utf-8" in answer["Content-Type"]


@pytest.mark.django_db
def test_no_other_site_may_read_an_answer(answers):
    for place, answer in answers.items():
        allowed = [name for name in answer.headers if name.lower().startswith("access-control-")]
        assert allowed == [], place
    asked = Client().options(
        "/api/v1/me",
        headers={"Origin": "https://elsewhere.example", "Access-Control-Request-Method": "GET"},
    )
    assert "Access-Control-Allow-Origin" not in asked.headers


@pytest.mark.django_db
def test_a_plain_request_is_sent_to_https_and_stores_nothing(settings):
    settings.SECURE_SSL_REDIRECT = True
    answer = Client().post("/login/", {"username": "mara", "password": "sent in clear"})
    assert (answer.status_code, answer["Location"]) == (301, "https://testserver/login/")
    assert not answer.cookies


@pytest.mark.django_db
def test_folders_are_not_listed_and_files_of_uploads_have_no_address():
    assert django_settings.MEDIA_URL in ("", "/")
    for place in ("/static/", "/static/touchstone/", "/files/", "/media/", "/.git/config", "/manage.py"):
        assert Client().get(place).status_code == 404, place


@pytest.mark.django_db
def test_an_address_is_decoded_once():
    assert Client().get("/login/?next=%00").status_code == 400
    # Decoded a second time, this would be the same.
    assert Client().get("/login/?next=%2500").status_code == 200
