"""Mara manages; her collection is empty."""

import pytest
from django.test import Client

from judging.models import Collection
from touchstone.models import User


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    """Pages name static files by their hash, which collectstatic alone knows; not so here."""
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}
    settings.MIDDLEWARE = [part for part in settings.MIDDLEWARE if "whitenoise" not in part]


@pytest.fixture
def collection(db):
    return Collection.objects.create(name="News")


@pytest.fixture
def mara(db):
    return User.objects.create(username="mara", role="manager")


@pytest.fixture
def at_the_page(mara):
    client = Client()
    client.force_login(mara)
    return client
