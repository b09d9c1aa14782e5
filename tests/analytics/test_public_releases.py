"""Releases on a public page: published by managers alone, read by anybody, and else the same answer as for nothing."""

import re
import uuid

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from made_releases import audited, judged, released

from analytics.models import Release
from analytics.releases.services import releasing
from analytics.releases.services.publishing import (
    NotPublishable,
    main_estimates,
    publish,
    unpublish,
)
from analytics.releases.services.releasing import ReleaseNotReady, make_release, withdraw
from judging.models import Campaign, Run
from judging.services.campaigns import close_campaign
from touchstone.models import Event, User

pytestmark = pytest.mark.django_db


@pytest.fixture
def boss():
    return User.objects.create(username="boss", role="manager")


@pytest.fixture
def release(tmp_path):
    """A release of a closed campaign with numbers, of which one run is not published."""
    campaign = audited(tmp_path)
    campaign.collection.runs.exclude(run_id="run1").update(may_publish=True)
    close_campaign(campaign=campaign, actor=None)
    return released(
        Campaign.objects.get(pk=campaign.pk), title="Good grades", authors="Ada B.", licence="CC BY 4.0"
    )


def as_manager(boss):
    client = Client()
    client.force_login(boss)
    return client


def page(release, name="public-release"):
    return reverse(f"console:{name}", args=[release.campaign_id, release.version])


def act(release, name, client, **fields):
    return client.post(reverse(f"console:release-{name}", args=[release.campaign_id, release.pk]), fields)


def content_of(answer):
    """Return all of an answer; at its end a file is closed."""
    return b"".join(answer.streaming_content) if answer.streaming else answer.content


def plain(answer, *words):
    """Return the body without the request's id and the address."""
    text = answer.content.decode()
    for word in words:
        text = text.replace(str(word), "…")
    text = re.sub(r"<code>[0-9a-f]{32}</code>", "", text)
    return re.sub(r'nonce="[^"]*"', "", text)


def test_a_manager_publishes_by_the_version_and_takes_it_down_again(release, boss):
    client, anybody = as_manager(boss), Client()
    assert anybody.get(page(release)).status_code == 404
    act(release, "publish", client, confirmation="1.1")
    assert Release.objects.get().public_since is None
    assert anybody.get(page(release)).status_code == 404
    act(release, "publish", client, confirmation="1.0")
    shown = anybody.get(page(release)).content.decode()
    assert "Ada B." in shown
    assert release.sha256 in shown
    assert release.merkle_root in shown
    assert "pip install touchstone-ir" in shown
    assert "manage.py" not in shown
    for file in release.manifest["files"]:
        assert file["path"] in shown
        assert file["sha256"] in shown
    assert all(name in shown for name in release.manifest["counts"])
    got = anybody.get(page(release, "public-release-download"))
    assert content_of(got)[:2] == b"PK"
    assert got["ETag"] == f'"{release.sha256}"'
    act(release, "unpublish", client)
    assert anybody.get(page(release)).status_code == 404
    assert anybody.get(page(release, "public-release-download")).status_code == 404
    verbs = Event.objects.filter(verb__contains="published a release").order_by("pk")
    assert [(event.verb, event.actor) for event in verbs] == [
        ("published a release", boss),
        ("unpublished a release", boss),
    ]
    assert (
        publish(release=release, actor=boss).public_since == publish(release=release, actor=boss).public_since
    )


def test_a_release_of_simulated_judgments_says_so(release, boss):
    """The control: of a campaign that people judged nothing of the kind is said."""
    publish(release=release, actor=boss)
    assert "Simulated judgments" not in Client().get(page(release)).content.decode()
    Campaign.objects.filter(pk=release.campaign_id).update(is_simulated=True)
    assert "Simulated judgments" in Client().get(page(release)).content.decode()


def test_researchers_and_assessors_publish_nothing(release):
    for role in ("researcher", "assessor"):
        client = as_manager(User.objects.create(username=role, role=role))
        for name in ("publish", "unpublish"):
            assert act(release, name, client, confirmation="1.0").status_code in (403, 404)
    assert Release.objects.get().public_since is None


def test_all_that_is_not_public_is_the_same_404(release, boss):
    """Unknown, not published, taken down, of a deleted campaign or collection, still being made."""
    anybody, other = Client(), uuid.uuid4()
    publish(release=release, actor=boss)
    campaign, place = release.campaign, [release.campaign_id, release.version]
    for name in ("public-release", "public-release-download"):
        nowhere = anybody.get(reverse(f"console:{name}", args=[other, "1.0"]))
        assert nowhere.status_code == 404
        told = plain(nowhere, other)
        address = reverse(f"console:{name}", args=place)
        assert plain(anybody.get(address.replace("1.0", "1.7")), campaign.pk, "1.7") == plain(
            nowhere, other, "1.0"
        )
        for row, hide in ((campaign, "deleted_at"), (campaign.collection, "deleted_at")):
            type(row).objects.filter(pk=row.pk).update(**{hide: timezone.now()})
            assert plain(anybody.get(address), campaign.pk) == told
            type(row).objects.filter(pk=row.pk).update(**{hide: None})
        shown = anybody.get(address)
        assert shown.status_code == 200
        content_of(shown)
        assert anybody.post(address).status_code == 405
    make_release(campaign=campaign, version="2.0", actor=boss)
    assert anybody.get(reverse("console:public-release", args=[campaign.pk, "2.0"])).status_code == 404


def test_its_main_numbers_are_of_published_runs_alone(release, boss):
    publish(release=release, actor=boss)
    numbers = main_estimates(release)
    stored = release.computation.estimates.filter(method="corrected", run_b=None, measure=numbers.measure)
    assert {row.run.run_id: row.value for row in numbers.rows} == {
        row.run.run_id: row.value for row in stored if row.run.run_id != "run1"
    }
    values = [row.value for row in numbers.rows]
    assert len(values) == 2
    numbered = [value for value in values if value is not None]
    assert numbered
    assert values[: len(numbered)] == sorted(numbered, reverse=True)
    shown = Client().get(page(release)).content.decode()
    assert "run0" in shown
    assert "run1" not in shown
    assert f"{numbered[0]:.4f}" in shown
    assert shown.count("No number: ") == len(values) - len(numbered)


def test_a_release_without_numbers_has_a_page_too(tmp_path, boss):
    campaign = judged(tmp_path)
    made = released(campaign)
    publish(release=made, actor=boss)
    assert main_estimates(made) is None
    assert "Main numbers" not in Client().get(page(made)).content.decode()


def test_what_would_tell_too_much_or_nothing_is_not_published(tmp_path, boss, monkeypatch):
    campaign = audited(tmp_path)
    made = released(campaign)
    with pytest.raises(NotPublishable, match="campaign is open"):
        publish(release=made, actor=boss)
    answer = act(made, "publish", as_manager(boss), confirmation="1.0")
    assert answer.status_code == 302
    assert Release.objects.get(pk=made.pk).public_since is None
    close_campaign(campaign=campaign, actor=None)
    monkeypatch.setattr(releasing, "FORMAT", 1)
    older = released(Campaign.objects.get(pk=campaign.pk), version="0.9")
    with pytest.raises(NotPublishable, match="names runs that may not be published"):
        publish(release=older, actor=boss)
    Run.objects.update(may_publish=True)
    assert publish(release=older, actor=boss).public_since is not None
    withdraw(release=made, reason="Wrong.", actor=boss)
    with pytest.raises(NotPublishable, match="withdrawn"):
        publish(release=made, actor=boss)
    making = make_release(campaign=campaign, version="3.0", actor=boss)
    for refused in (publish, unpublish):
        with pytest.raises(ReleaseNotReady):
            refused(release=making, actor=boss)


def test_a_withdrawn_release_says_so_on_its_public_page(release, boss):
    publish(release=release, actor=boss)
    withdraw(release=release, reason="An error in topic 3.", actor=boss)
    shown = Client().get(page(release)).content.decode()
    assert "An error in topic 3." in shown
    assert content_of(Client().get(page(release, "public-release-download")))[:2] == b"PK"


def test_nothing_else_of_a_release_changes_with_its_page(release, boss):
    publish(release=release, actor=boss)
    with pytest.raises(IntegrityError, match="ready is ready"), transaction.atomic():
        Release.objects.filter(public_since__isnull=False).update(title="x")
