"""A manager, pages asked for in their name, and a judged campaign."""

import pytest
from django.urls import reverse
from page_campaign import make_judged

from touchstone.models import User


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    """Pages name static files by their hash, which collectstatic alone knows; not so here."""
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}
    settings.MIDDLEWARE = [part for part in settings.MIDDLEWARE if "whitenoise" not in part]


@pytest.fixture
def manager(db):
    return User.objects.create(username="mia", role="manager")


@pytest.fixture
def page(client, manager):
    """Return a function: the text of a page as the manager sees it, and its status."""
    client.force_login(manager)

    def get(name, *args, status=200, **query):
        answer = client.get(reverse(name, args=args), query)
        assert answer.status_code == status, answer.content.decode()[:2000]
        return " ".join(answer.content.decode().split())

    return get


@pytest.fixture
def post(client, manager):
    client.force_login(manager)

    def send(view, /, *args, **fields):
        return client.post(reverse(view, args=args), fields, follow=True)

    return send


@pytest.fixture
def judged(db):
    return make_judged()
