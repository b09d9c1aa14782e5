"""A campaign without a design, and its manager."""

import pytest
from design_campaign import undrawn
from django.urls import reverse
from small_campaign import make_collection

from touchstone.models import User


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    """Pages name static files by their hash, which collectstatic alone knows; not so here."""
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}
    settings.MIDDLEWARE = [part for part in settings.MIDDLEWARE if "whitenoise" not in part]


@pytest.fixture
def manager(db, client):
    made = User.objects.create(username="mia", role="manager")
    client.force_login(made)
    return made


@pytest.fixture
def page(client, manager):
    """Return a function: the text of a campaign's page (by default of its design) as the manager sees it."""

    def get(campaign, status=200, name="console:design", **query):
        answer = client.get(reverse(name, args=[campaign.pk]), query)
        assert answer.status_code == status, answer.content.decode()[:3000]
        return " ".join(answer.content.decode().split())

    return get


@pytest.fixture
def post(client, manager):
    """Return a function that sends the design form; it gives back the answer, redirects followed."""

    def send(campaign, name="console:design", **fields):
        return client.post(reverse(name, args=[campaign.pk]), fields, follow=True)

    return send


@pytest.fixture
def campaign(db, tmp_path):
    return undrawn(make_collection(tmp_path))
