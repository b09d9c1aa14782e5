"""A server that listens, Mara who owns webhooks, and plain static files."""

import threading

import pytest
from django.urls import resolve
from listener import Listener

from touchstone.models import User


@pytest.fixture
def listener(settings):
    server = Listener()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    settings.WEBHOOK_HOSTS = [server.origin]
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module", autouse=True)
def views_are_loaded() -> None:
    """The first request of a process loads every view: not within a test's transaction, which may idle for 15 s."""
    resolve("/livez")


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}


@pytest.fixture
def mara():
    return User.objects.create(username="mara", role="manager")
