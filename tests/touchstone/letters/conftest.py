"""A mail server, and settings that name it."""

import pytest
from mail_server import mail_server

from touchstone import jobs
from touchstone.models import User


@pytest.fixture(autouse=True)
def no_redis(monkeypatch):
    monkeypatch.setattr(jobs, "poke", lambda lane: True)


@pytest.fixture
def box(settings):
    with mail_server() as (port, box):
        settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = "127.0.0.1", port, 5
        settings.SITE_URL = "https://judge.example.org"
        settings.DEFAULT_FROM_EMAIL = "Touchstone <touchstone@judge.example.org>"
        box.port = port
        yield box


@pytest.fixture
def nora(db):
    return User.objects.create(username="nora", email="nora@example.org", role=User.Role.MANAGER)
