"""A campaign, its manager, an invitation, and the two kinds of crowd market."""

from copy import deepcopy

import pytest
from django.test import Client
from entry_campaign import set_entry
from small_campaign import make_campaign

from touchstone.models import User


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    """Pages name static files by their hash, which collectstatic alone knows; not so here."""
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.MD5PasswordHasher"
    ]  # fast: nothing here is about it
    settings.MIDDLEWARE = [part for part in settings.MIDDLEWARE if "whitenoise" not in part]


@pytest.fixture
def alice():
    return User.objects.create(username="alice", role="manager")


@pytest.fixture(scope="module")
def made_once(module_world, tmp_path_factory):
    return make_campaign(tmp_path_factory.mktemp("world"))


@pytest.fixture
def campaign(made_once, db):
    return deepcopy(made_once)


@pytest.fixture
def manager(alice):
    client = Client()
    client.force_login(alice)
    return client


@pytest.fixture
def hit_campaign(campaign):
    return set_entry(campaign, "hit")


@pytest.fixture
def study_campaign(campaign):
    return set_entry(
        campaign,
        "study",
        completion_code="CODE77",
        completion_url="https://app.market.example/done?cc=CODE77",
    )
