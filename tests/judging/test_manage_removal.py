"""Deleting and restoring, members, and the words of collections and runs, through the manager's pages."""

import pytest
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from small_campaign import make_assessor, make_campaign

from judging.models import Campaign, Collection, Run
from touchstone.models import Event, User

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}
    settings.MIDDLEWARE = [part for part in settings.MIDDLEWARE if "whitenoise" not in part]


@pytest.fixture
def campaign(tmp_path) -> Campaign:
    return make_campaign(tmp_path)


def client_of(name: str, role: str = "manager") -> Client:
    user, _ = User.objects.get_or_create(username=name, defaults={"role": role})
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def alice() -> Client:
    return client_of("alice")


def said(answer) -> list[str]:
    return [str(message) for message in get_messages(answer.wsgi_request)]


def test_a_campaign_is_deleted_by_typing_its_name_and_restored_closed(alice, campaign):
    bob = make_assessor(campaign, "bob")
    address = reverse("console:manage-campaign-delete", args=[campaign.pk])
    for wrong in ("", campaign.name.upper(), campaign.name[:-1], f"{campaign.name}x"):
        assert alice.post(address, {"confirmation": wrong}).status_code == 400
    assert Campaign.objects.get(pk=campaign.pk).deleted_at is None
    answer = alice.post(address, {"confirmation": campaign.name})
    assert answer.url == reverse("console:manage-deleted")
    gone = Campaign.objects.get(pk=campaign.pk)
    assert (gone.state, gone.deleted_at is None) == ("closed", False)
    for name in (
        "console:campaign",
        "console:assessors",
        "console:setup",
        "console:manage-campaign-delete",
    ):
        assert alice.get(reverse(name, args=[campaign.pk])).status_code == 404, name
    assert campaign.name not in alice.get(reverse("console:manage")).content.decode()
    assert campaign.assessors.filter(pk=bob.pk).exists()
    deleted = reverse("console:manage-deleted")
    assert f"Restore {campaign.name}" in alice.get(deleted).content.decode()
    answer = alice.post(deleted, {"kind": "campaign", "key": str(campaign.pk)})
    assert said(answer)[-1] == f"Restored: {campaign.name}."
    back = Campaign.objects.get(pk=campaign.pk)
    assert (back.state, back.deleted_at) == ("closed", None)
    assert alice.get(reverse("console:campaign", args=[campaign.pk])).status_code == 200
    verbs = Event.objects.filter(subject=f"campaign:{campaign.pk}", actor__username="alice").order_by("id")
    assert list(verbs.values_list("verb", flat=True)) == ["closed", "deleted", "restored"]


def test_a_collection_takes_its_campaigns_with_it_and_comes_back_before_them(alice, campaign):
    collection = campaign.collection
    address = reverse("console:manage-collection-delete", args=[collection.pk])
    assert campaign.name in alice.get(address).content.decode()
    assert alice.post(address, {"confirmation": campaign.name}).status_code == 400  # not the collection's
    assert alice.post(address, {"confirmation": collection.name}).status_code == 302
    for name, key in (("console:manage-collection", collection.pk), ("console:campaign", campaign.pk)):
        assert alice.get(reverse(name, args=[key])).status_code == 404
    deleted = reverse("console:manage-deleted")
    assert (
        alice.post(deleted, {"kind": "campaign", "key": str(campaign.pk)}).status_code == 404
    )  # it was not deleted
    assert alice.post(deleted, {"kind": "collection", "key": str(collection.pk)}).status_code == 302
    assert Collection.objects.get(pk=collection.pk).deleted_at is None
    assert alice.get(reverse("console:campaign", args=[campaign.pk])).status_code == 200


@pytest.mark.parametrize("sent", [{}, {"kind": "user", "key": "1"}, {"kind": "campaign", "key": "x"}])
def test_restoring_what_is_not_there_is_absent(alice, sent):
    assert alice.post(reverse("console:manage-deleted"), sent).status_code == 404


def test_only_members_see_a_restricted_collection_and_what_was_deleted_of_it(alice, campaign):
    boris, eve = client_of("boris"), client_of("eve")
    client_of("carla", "assessor")
    address = reverse("console:manage-members", args=[campaign.collection_id])
    for wrong in ("nobody", "carla", "boris nobody"):  # who is unknown, or no manager or researcher
        answer = alice.post(address, {"is_restricted": "on", "members": wrong})
        assert answer.status_code == 400
        assert "no manager or researcher is called" in answer.content.decode()
    assert eve.get(address).status_code == 200
    assert alice.post(address, {"is_restricted": "on", "members": "boris"}).status_code == 302
    collection = Collection.objects.get(pk=campaign.collection_id)
    names = set(collection.members.values_list("user__username", flat=True))
    assert (collection.is_restricted, names) == (True, {"alice", "boris"})  # whoever sets them stays one
    for client, status in ((alice, 200), (boris, 200), (eve, 404)):
        assert client.get(address).status_code == status
        assert client.get(reverse("console:campaign", args=[campaign.pk])).status_code == status
    assert collection.name not in eve.get(reverse("console:manage")).content.decode()
    assert collection.name not in eve.get(reverse("console:setup-new")).content.decode()
    new = reverse("console:manage-campaign-new")
    assert eve.post(new, {"collection": str(collection.pk), "name": "mine"}).status_code == 400
    assert collection.name not in eve.get(new).content.decode()
    assert collection.name in boris.get(new).content.decode()  # the control
    delete = reverse("console:manage-collection-delete", args=[collection.pk])
    alice.post(delete, {"confirmation": collection.name})
    deleted = reverse("console:manage-deleted")
    assert collection.name in boris.get(deleted).content.decode()
    assert collection.name not in eve.get(deleted).content.decode()
    assert eve.post(deleted, {"kind": "collection", "key": str(collection.pk)}).status_code == 404
    assert Collection.objects.get(pk=collection.pk).deleted_at is not None


def test_source_licence_and_what_may_be_published_are_changed_with_an_event(alice, campaign):
    address = reverse("console:manage-collection-edit", args=[campaign.collection_id])
    fields = {"name": "News", "source": "an archive", "licence": "CC BY 4.0", "may_publish_documents": "on"}
    assert alice.post(address, fields).status_code == 302
    row = Collection.objects.get(pk=campaign.collection_id)
    assert (row.source, row.licence, row.may_publish_documents) == ("an archive", "CC BY 4.0", True)
    event = Event.objects.get(verb="changed", subject=f"collection:{row.pk}")
    assert set(event.detail["fields"]) == {"name", "source", "licence", "may_publish_documents"}
    alice.post(address, fields)  # the same again
    assert Event.objects.filter(verb="changed").count() == 1


def test_a_run_may_be_published_when_a_manager_says_so(alice, campaign):
    run = Run.objects.filter(collection=campaign.collection_id).first()
    address = reverse("console:manage-run", args=[campaign.collection_id, run.pk])
    assert (
        alice.post(
            address, {"description": "BM25", "may_publish": "on", "is_manual": "on", "run_id": "x"}
        ).status_code
        == 302
    )
    row = Run.objects.get(pk=run.pk)
    assert (row.description, row.may_publish, row.is_manual, row.run_id) == ("BM25", True, True, run.run_id)
    assert Event.objects.get(verb="changed a run").detail["run"] == run.run_id
    other = Collection.objects.create(name="other")
    assert alice.get(reverse("console:manage-run", args=[other.pk, run.pk])).status_code == 404


@pytest.mark.parametrize("role", ["assessor", "researcher"])
def test_none_of_it_exists_for_others(role, campaign):
    client = client_of("charlie", role)
    run = Run.objects.filter(collection=campaign.collection_id).first()
    for name, arguments in (
        ("console:manage-deleted", []),
        ("console:manage-campaign-delete", [campaign.pk]),
        ("console:manage-collection-delete", [campaign.collection_id]),
        ("console:manage-members", [campaign.collection_id]),
        ("console:manage-run", [campaign.collection_id, run.pk]),
        ("console:setup-new", []),
        ("console:setup", [campaign.pk]),
        ("console:setup-step", [campaign.pk, "people"]),
        ("console:setup-collection", [campaign.collection_id, "runs"]),
        ("console:adjudication", [campaign.pk]),
        ("console:decide", [campaign.pk]),
        ("console:events", [campaign.pk]),
        ("console:assessors", [campaign.pk]),
        ("console:said", [campaign.pk]),
    ):
        address = reverse(name, args=arguments)
        assert client.get(address).status_code in (404, 405), address  # 405: it takes forms alone
        assert client.post(address, {"confirmation": campaign.name}).status_code == 404, address
    assert Campaign.objects.get(pk=campaign.pk).deleted_at is None


def test_what_lost_its_name_is_restored_under_another(alice, campaign):
    row, page = campaign.collection, reverse("console:manage-deleted")
    Collection.objects.filter(pk=row.pk).update(deleted_at=timezone.now())
    Collection.objects.create(name=row.name)
    assert 'name="name" required' in " ".join(alice.get(page).content.decode().split())
    sent = {"kind": "collection", "key": str(row.pk)}
    answer = alice.post(page, sent, follow=True)
    assert said(answer) == [
        f"Another collection is called “{row.name}” now. Restore this one under another name."
    ]
    assert said(alice.post(page, {**sent, "name": "new"}, follow=True)) == ["Restored: new."]
    assert Collection.objects.get(pk=row.pk).name == "new"
