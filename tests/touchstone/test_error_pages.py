"""Error pages: the status, what happened, what to do next; the last two of them without asking a database."""

import contextlib

import psycopg
import pytest
from django.db import OperationalError, connection
from django.test import Client, RequestFactory
from django.urls import reverse
from small_campaign import make_assessor, make_campaign

from touchstone import views
from touchstone.models import User


def _after(error: Exception, method: str = "GET", path: str = "/results/"):
    """What the last handler answers while the error is under way. No database here: asking one would fail the test."""
    request = RequestFactory().generic(method, path)
    try:
        raise error
    except type(error):
        return views.fault(request)


def test_a_fault_of_ours_has_a_page_of_the_product_and_tells_nothing_of_the_fault():
    answer = _after(ZeroDivisionError("the secret cause"))
    text = answer.content.decode()
    assert answer.status_code == 500
    assert "Something went wrong on the server" in text
    assert "touchstone/style" in text
    assert "Try again" in text
    assert "secret cause" not in text


@pytest.mark.parametrize(("method", "reloads"), [("GET", True), ("POST", False)])
def test_without_a_database_a_page_that_was_read_loads_itself_again_and_what_was_sent_does_not(
    method, reloads
):
    answer = _after(OperationalError("the connection is lost"), method)
    text = answer.content.decode()
    assert (answer.status_code, answer["Retry-After"]) == (503, "1")
    assert "The database cannot answer now" in text
    assert ('http-equiv="refresh"' in text) is reloads


def test_a_program_gets_a_problem_and_no_page():
    answer = _after(OperationalError("the connection is lost"), path="/api/v1/campaigns")
    assert answer.status_code == 503
    assert answer["Content-Type"] == "application/problem+json"


@pytest.mark.django_db
def test_an_address_that_names_nothing_says_what_to_do_next():
    stranger = Client().get("/nowhere/")
    assert stranger.status_code == 404
    assert reverse("login") in stranger.content.decode()
    client = Client()
    client.force_login(User.objects.create(username="bob"))
    answer = client.get("/nowhere/")
    assert answer.status_code == 404
    words = answer.content.decode()
    assert "There is no such page" in words
    assert "ask a manager" in words
    assert 'href="/"' in words


@pytest.mark.django_db
def test_an_address_that_only_a_form_sends_to_has_words_for_who_opens_it():
    client = Client()
    client.force_login(User.objects.create(username="bob"))
    answer = client.get(reverse("logout"))
    assert answer.status_code == 405
    assert "POST" in answer["Allow"]
    assert "This address is not a page" in answer.content.decode()


@pytest.mark.django_db
def test_a_page_that_has_expired_says_to_load_it_again():
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create(username="bob"))
    answer = client.post(reverse("logout"))
    assert answer.status_code == 403
    assert "Load it again, then repeat what you did." in answer.content.decode()


@pytest.mark.django_db
def test_a_connection_that_breaks_in_a_pipeline_is_unavailable_and_another_fault_is_a_fault(
    tmp_path, monkeypatch
):
    campaign = make_campaign(tmp_path, gold=False)
    client = Client(raise_request_exception=False)
    client.force_login(make_assessor(campaign, "bob").user)
    url = reverse("judging:claim", args=[campaign.pk])
    for error, status in (
        (psycopg.OperationalError("the server closed the connection"), 503),
        (KeyError("x"), 500),
    ):

        @contextlib.contextmanager
        def broken(connection, error=error):
            yield
            raise error  # where a pipeline synchronises: behind every cursor of Django's

        with monkeypatch.context() as patch:
            patch.setattr(psycopg.Connection, "pipeline", broken)
            patch.setattr(connection, "close", lambda: None)  # the test's own
            answer = client.post(url, {}, "application/json")
        assert answer.status_code == status
    assert client.post(url, {}, "application/json").status_code == 200
