"""The small campaign, judged and audited, with a judge who errs in a known way."""

import uuid

import pytest
from asked_analyses import given_grade
from django.test import Client
from small_campaign import (
    judge_all,
    judge_audit,
    make_assessor,
    make_campaign,
)

from analytics.services.recomputation import recompute
from sampling.services.auditing import audit
from touchstone.authentication import make_token
from touchstone.models import User


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}


@pytest.fixture
def judged(tmp_path):
    """Every pair drawn for certain and judged once by each of two who agree: the papers' own setting."""
    campaign = make_campaign(tmp_path)
    assessors = [make_assessor(campaign, f"bronze{n}") for n in range(2)]
    judge_all(
        campaign, assessors, lambda slot, _: given_grade(slot.item.topic.topic_id, slot.item.document.doc_id)
    )
    return campaign


@pytest.fixture
def audited(judged):
    """All 42 items audited as well."""
    gold = make_assessor(judged, "gold", "gold")
    audit(campaign=judged, items_each_time=42, items_in_total=42)
    judge_audit(judged, gold)
    recompute(campaign=judged)
    return judged


@pytest.fixture
def api(judged):
    user = User.objects.create(username="rhea", role="researcher")
    _, key = make_token(user=user, name=str(uuid.uuid4()), days=1)
    return Client(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {key}"})
