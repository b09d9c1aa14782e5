"""What a manager asks of the pages, and what these say."""

from django.contrib.messages import get_messages
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from small_campaign import make_assessor

from judging.models import (
    Assessor,
    Campaign,
)

NUL, LONG = "a\0b", "x" * 20_000


def page(client: Client, name: str, *arguments, status=200, **query) -> str:
    answer = client.get(reverse(name, args=arguments), query)
    assert answer.status_code == status
    return words(answer)


def post(client: Client, view: str, /, *arguments, status=302, query="", **fields):
    answer = client.post(reverse(view, args=arguments) + query, fields)
    assert answer.status_code == status, words(answer)
    return answer


def words(answer) -> str:
    return " ".join(answer.content.decode().split())


def said(answer) -> list[str]:
    """Return the messages that the answer leaves for the next page."""
    return [str(message) for message in get_messages(answer.wsgi_request)]


def assessors(campaign: Campaign, n: int) -> list[Assessor]:
    return [make_assessor(campaign, f"person{number:02}") for number in range(n)]


def statements(client: Client, name: str, *arguments) -> int:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        page(client, name, *arguments)
    return len(captured)
