"""Alice manages, Bob and Dora judge."""

from copy import deepcopy

import pytest
from django.test import Client
from small_campaign import make_assessor, make_campaign

from judging.models import (
    Assessor,
    Campaign,
)
from touchstone.models import User


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    """Pages name static files by their hash, which collectstatic alone knows; not so here."""
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}
    settings.MIDDLEWARE = [part for part in settings.MIDDLEWARE if "whitenoise" not in part]


@pytest.fixture(scope="module")
def made_once(module_world, tmp_path_factory) -> Campaign:
    return make_campaign(tmp_path_factory.mktemp("world"))


@pytest.fixture
def campaign(made_once, db) -> Campaign:
    return deepcopy(made_once)


@pytest.fixture
def bob(campaign) -> Assessor:
    return make_assessor(campaign, "bob")


@pytest.fixture
def dora(campaign) -> Assessor:
    return make_assessor(campaign, "dora")


@pytest.fixture
def alice(db) -> Client:
    client = Client()
    client.force_login(User.objects.create(username="alice", role="manager"))
    return client
