"""The small campaign, judged and audited, with a judge who errs in a known way."""

import uuid
from copy import deepcopy

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


def make_judged(folder):
    campaign = make_campaign(folder)
    assessors = [make_assessor(campaign, f"bronze{n}") for n in range(2)]
    judge_all(
        campaign, assessors, lambda slot, _: given_grade(slot.item.topic.topic_id, slot.item.document.doc_id)
    )
    return campaign


@pytest.fixture(scope="module")
def judged_once(module_world, tmp_path_factory):
    return make_judged(tmp_path_factory.mktemp("judged"))


@pytest.fixture
def judged(judged_once, db):
    """Every pair drawn for certain and judged once by each of two who agree: the papers' own setting."""
    return deepcopy(judged_once)


@pytest.fixture(scope="module")
def audited_once(module_world, tmp_path_factory):
    made = make_judged(tmp_path_factory.mktemp("audited"))
    audit(campaign=made, items_each_time=42, items_in_total=42)
    judge_audit(made, make_assessor(made, "gold", "gold"))
    recompute(campaign=made)
    return made


@pytest.fixture
def audited(audited_once, db):
    """All 42 items audited as well."""
    return deepcopy(audited_once)


@pytest.fixture
def api(db):
    user = User.objects.create(username="rhea", role="researcher")
    _, key = make_token(user=user, name=str(uuid.uuid4()), days=1)
    return Client(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {key}"})
