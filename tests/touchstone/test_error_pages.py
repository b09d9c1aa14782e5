"""Error pages: the status, what happened, what to do next; the last two of them without asking a database."""

import pytest
from django.db import OperationalError
from django.test import Client, RequestFactory
from django.urls import reverse

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
