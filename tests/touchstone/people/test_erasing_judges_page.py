"""The page that erases who judged: what is lost comes first, the campaign's name is typed, and a job does it."""

from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse
from made_releases import audited, released

from judging.services.campaigns import close_campaign
from touchstone import tasks
from touchstone.ledger.verification import chain_faults
from touchstone.models import Job, User
from touchstone.people.erasing_judges import STAND_IN, judges_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def boss():
    return User.objects.create(username="boss", role="manager")


@pytest.fixture
def campaign(tmp_path):
    return audited(tmp_path)


def page(campaign, user, **fields):
    client = Client()
    client.force_login(user)
    address = reverse("console:manage-campaign-erase-judges", args=[campaign.pk])
    return client.post(address, fields) if fields else client.get(address)


def test_it_says_what_is_lost_and_does_it_for_whoever_types_the_name(campaign, boss):
    release = released(campaign)
    close_campaign(campaign=campaign, actor=boss)
    shown = page(campaign, boss).content.decode()
    for words in (
        "Pay.",
        "My judgments",
        "Releases made again",
        "3 people",
        "1 release",
        "Copies of the log",
    ):
        assert words in shown
    assert shown.index("What is lost") < shown.index("Type the campaign")
    wrong = page(campaign, boss, confirmation="another name")
    assert wrong.status_code == 400
    assert "Nothing was erased" in wrong.content.decode()
    assert not Job.objects.filter(kind="erase-judges").exists()
    assert page(campaign, boss, confirmation=campaign.name).status_code == 302
    job = Job.objects.get(kind="erase-judges")
    assert job.requested_by == boss
    work = SimpleNamespace(job=job, payload=job.payload, result={})
    tasks._erase_judges(work)  # as a worker does it, but for the lease, which only other transactions renew
    assert work.result["people"] == 3
    assert not judges_of(campaign).exists()
    assert campaign.assessors.filter(user__username__startswith=STAND_IN).count() == 3
    release.refresh_from_db()
    assert release.pseudonym_key == ""
    assert list(chain_faults()) == []
    assert "nobody is named" in page(campaign, boss).content.decode()


def test_an_open_campaign_has_no_form_and_its_name_does_nothing(campaign, boss):
    shown = page(campaign, boss).content.decode()
    assert "not closed" in shown
    assert "Type the campaign" not in shown
    refused = page(campaign, boss, confirmation=campaign.name)
    assert refused.status_code == 409
    assert not Job.objects.filter(kind="erase-judges").exists()


def test_nobody_but_managers_finds_the_page(campaign):
    for role in ("researcher", "assessor"):
        user = User.objects.create(username=role, role=role)
        assert page(campaign, user).status_code in (403, 404)
        assert page(campaign, user, confirmation=campaign.name).status_code in (403, 404)


def test_the_page_of_a_release_claims_no_more_of_the_key_than_that_nobody_can_make_it_again(campaign, boss):
    release = released(campaign)
    client = Client()
    client.force_login(boss)
    address = reverse("console:release", args=[campaign.pk, release.pk])
    for _ in range(2):
        shown = client.get(address).content.decode()
        assert "can no longer be identified" not in shown
        assert "can then tell which assessor" not in shown
        client.post(
            reverse("console:release-forget", args=[campaign.pk, release.pk]), {"confirmation": "1.0"}
        )
    assert "nobody can make this release again" in shown
