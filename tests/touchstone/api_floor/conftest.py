"""Mara, who asks, and the one host that webhooks may call."""

import pytest
from api_requests import HOST
from django.urls import resolve

from touchstone.models import User


@pytest.fixture(scope="module", autouse=True)
def views_are_loaded() -> None:
    """The first request of a process loads every view: not within a test's transaction, which may idle for 15 s."""
    resolve("/livez")


@pytest.fixture(autouse=True)
def one_host(settings):
    settings.WEBHOOK_HOSTS = [HOST]
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}


@pytest.fixture
def mara(db):
    return User.objects.create(username="mara", role="manager")
