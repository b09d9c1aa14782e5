"""The manager's side of the judging contract: who may see it at all.

Charlie and everybody else who is no manager must not even see that it exists.
"""

import re
import uuid
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from manager_requests import post
from small_campaign import lease, make_campaign, slots

from judging.models import (
    Assessor,
    Campaign,
    CampaignTopic,
    Collection,
    Slot,
)
from touchstone.models import Event, Job, User

pytestmark = pytest.mark.django_db


def body(answer) -> str:
    """Return the answer without the form's token, which is new in every answer."""
    return re.sub(r'(csrfmiddlewaretoken" value=|X-CSRFToken": |nonce=)"[^"]*"', "", answer.content.decode())


def routes(campaign: Campaign, assessor: int, token: uuid.UUID) -> list[tuple[str, str, dict[str, Any]]]:
    """Return every route of the manager's side with the method that it takes and a valid form."""
    collection = campaign.collection_id
    edit = {"name": "x", "lease_seconds": 60, "break_minutes": 0}
    about_one = [campaign.pk, assessor]
    return [
        ("get", reverse("console:manage"), {}),
        ("get", reverse("console:manage-campaign-new"), {}),
        ("post", reverse("console:manage-campaign-new"), {}),
        ("post", reverse("console:manage-collection-new"), {"name": "mine"}),
        ("get", reverse("console:manage-collection", args=[collection]), {}),
        ("post", reverse("console:manage-collection", args=[collection]), {"kind": "topics"}),
        ("post", reverse("console:manage-collection-edit", args=[collection]), {"name": "mine"}),
        ("get", reverse("console:manage-campaign-edit", args=[campaign.pk]), {}),
        ("post", reverse("console:manage-campaign-edit", args=[campaign.pk]), edit),
        ("post", reverse("console:manage-campaign-state", args=[campaign.pk]), {"state": "closed"}),
        ("get", reverse("console:manage-leases", args=[campaign.pk]), {}),
        ("post", reverse("console:manage-lease-release", args=[campaign.pk, token]), {}),
        ("post", reverse("console:manage-leases-release", args=[campaign.pk]), {}),
        ("get", reverse("console:manage-topics", args=[campaign.pk]), {}),
        ("post", reverse("console:manage-topics", args=[campaign.pk]), {}),
        ("post", reverse("console:manage-assessor-add", args=[campaign.pk]), {"username": "eve", "tier": "gold"}),
        ("post", reverse("console:manage-assessor-status", args=about_one), {"status": "suspended"}),
        ("get", reverse("console:campaign", args=[campaign.pk]), {}),
        ("get", reverse("console:assessor", args=about_one), {}),
        ("post", reverse("console:assessor", args=about_one), {"quota": "3"}),
        ("post", reverse("console:requeue", args=about_one), {"confirmation": "bob"}),
    ]  # fmt: skip


def facts() -> list[object]:
    """Return everything that a route of the manager could have changed."""
    tables = (Campaign, Collection, Assessor, Slot, CampaignTopic, Job, User, Event)
    ignored = {"last_login"}
    return [
        list(
            model.objects.order_by("pk").values(
                *(f.name for f in model._meta.fields if f.name not in ignored)
            )
        )
        for model in tables
    ]


@pytest.mark.parametrize("role", ["assessor", "researcher", None])
def test_no_route_exists_for_anybody_but_a_manager_and_none_changes_a_thing(role, campaign, bob):
    client = Client()
    if role:
        client.force_login(User.objects.create(username="charlie", role=role))
    token = lease(bob, slots(campaign)[0])
    before = facts()
    absent = body(client.get("/manage/nothing/"))
    for method, path, fields in routes(campaign, bob.pk, token):
        answer = getattr(client, method)(path, fields)
        if role is None:
            assert answer.status_code == 302, path
            assert answer.url.startswith("/login/"), path
        else:
            assert (answer.status_code, body(answer)) == (404, absent), path
    assert facts() == before


def test_an_assessor_of_the_campaign_sees_no_more_of_it_than_a_stranger(campaign, bob):
    client = Client()
    client.force_login(bob.user)
    for method, path, fields in routes(campaign, bob.pk, uuid.uuid4()):
        assert getattr(client, method)(path, fields).status_code == 404, path


def test_what_belongs_to_another_campaign_looks_like_what_does_not_exist(alice, campaign, bob, tmp_path):
    (tmp_path / "other").mkdir()
    other = make_campaign(tmp_path / "other")
    token = lease(bob, slots(campaign)[0])
    absent = body(alice.get("/manage/nothing/"))
    foreign = [
        ("get", reverse("console:assessor", args=[other.pk, bob.pk])),
        ("post", reverse("console:assessor", args=[other.pk, bob.pk])),
        ("post", reverse("console:requeue", args=[other.pk, bob.pk])),
        ("post", reverse("console:manage-assessor-status", args=[other.pk, bob.pk])),
        ("post", reverse("console:manage-lease-release", args=[other.pk, token])),
        ("post", reverse("console:manage-lease-release", args=[campaign.pk, uuid.uuid4()])),
        ("get", reverse("console:assessor", args=[campaign.pk, 2**63])),
        ("get", reverse("console:assessor", args=[campaign.pk, 10**30])),
        *[(way, reverse(name, args=[uuid.uuid4()])) for way, name in (
            ("get", "console:manage-leases"), ("get", "console:manage-topics"), ("post", "console:manage-topics"),
            ("post", "console:manage-leases-release"), ("get", "console:manage-campaign-edit"),
            ("post", "console:manage-collection-edit"), ("get", "console:campaign"),
        )],
    ]  # fmt: skip
    for method, path in foreign:
        answer = getattr(alice, method)(path)
        assert (answer.status_code, body(answer)) == (404, absent), path
    assert Slot.objects.get(token=token).state == "leased"


def test_a_release_needs_the_token_of_the_form(campaign, bob):
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create(username="alice", role="manager"))
    token = lease(bob, slots(campaign)[0])
    post(client, "console:manage-lease-release", campaign.pk, token, status=403)
    assert client.get(reverse("console:manage-lease-release", args=[campaign.pk, token])).status_code == 405
    assert Slot.objects.filter(token=token).exists()
