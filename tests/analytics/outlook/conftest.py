"""A campaign of which nothing is drawn, and its plan of audits, for forecasts of the corrected number."""

import pytest
from design_campaign import undrawn
from small_campaign import make_collection

from sampling.models import AuditSchedule


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}


@pytest.fixture
def campaign(tmp_path):
    return undrawn(make_collection(tmp_path))


@pytest.fixture
def plan():
    """Return what plans the audits of a campaign."""

    def planned(campaign, **fields):
        given = {"items_each_time": 5, "items_in_total": 16, "strategy": "simple"}
        return AuditSchedule.objects.create(campaign=campaign, **given | fields)

    return planned
