"""A campaign with a training round, its manager and its trainee."""

import pytest
from django.test import Client
from small_campaign import make_assessor, make_campaign
from trainees import choose

from judging.models import (
    Campaign,
)
from touchstone.models import User


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    """Pages name static files by their hash, which collectstatic alone knows; not so here."""
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}
    settings.MIDDLEWARE = [part for part in settings.MIDDLEWARE if "whitenoise" not in part]


@pytest.fixture
def campaign(tmp_path):
    """About 12 of 42 pairs are drawn, up to 12 more are checks: the other gold answers are free."""
    return make_campaign(tmp_path, budget=12, gold_check_rate=0.1)


@pytest.fixture
def alice():
    return User.objects.create(username="alice", role="manager")


@pytest.fixture
def manager(alice):
    client = Client()
    client.force_login(alice)
    return client


@pytest.fixture
def bob(campaign):
    """An assessor with four training items ahead; three of four right pass, in two attempts."""
    choose(campaign)
    Campaign.objects.filter(pk=campaign.pk).update(training_pass_share=0.75, training_attempts=2)
    return make_assessor(campaign, "bob")
