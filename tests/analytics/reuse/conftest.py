"""The small campaign, drawn evenly over its 42 pairs, 20 expected."""

import pytest
from late_run import BUDGET, add_late_run
from small_campaign import (
    make_campaign,
)


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}


@pytest.fixture
def campaign(tmp_path):
    made = make_campaign(tmp_path, budget=BUDGET)
    add_late_run(made.collection, tmp_path)
    return made
