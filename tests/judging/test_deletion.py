"""Deleted is hidden and closed, and comes back; whoever deletes types the name; races end in one of the two orders."""

import threading

import pytest
from django.db import IntegrityError, close_old_connections, connection, transaction
from small_campaign import give, lease, make_assessor, make_campaign, make_undrawn, slots

from judging.models import Assessor, Campaign, Collection, CollectionMember, Judgment
from judging.services.assign import claim, submit
from judging.services.campaigns import CampaignNotReady, close_campaign, open_campaign
from judging.services.deletion import (
    delete_campaign,
    delete_collection,
    restore_campaign,
    restore_collection,
)
from judging.services.errors import (
    CampaignNotOpen,
    CollectionBusy,
    CollectionDeleted,
    ConfirmationWrong,
    NotFound,
)
from touchstone.models import Event, User


@pytest.fixture
def campaign(db, tmp_path):
    return make_campaign(tmp_path)


@pytest.fixture
def alice(db):
    return User.objects.create(username="alice", role="manager")


@pytest.fixture
def maria(db):
    return User.objects.create(username="maria", role="manager")


def verbs(row):
    subject = f"{row._meta.model_name}:{row.pk}"
    return list(Event.objects.filter(subject=subject).order_by("id").values_list("verb", flat=True))


def state(campaign):
    return Campaign.objects.get(pk=campaign.pk).state


@pytest.mark.parametrize("typed", ["", "Campaign", " {}", "{} ", "{}x", "*"])
def test_a_wrong_name_deletes_nothing(campaign, alice, typed):
    before = verbs(campaign), verbs(campaign.collection)
    for row, delete, key in (
        (campaign, delete_campaign, "campaign"),
        (campaign.collection, delete_collection, "collection"),
    ):
        with pytest.raises(ConfirmationWrong):
            delete(**{key: row}, confirmation=typed.format(row.name), actor=alice)
        row.refresh_from_db()
        assert row.deleted_at is None
    assert state(campaign) == "open"
    assert (verbs(campaign), verbs(campaign.collection)) == before


def test_a_deleted_campaign_is_closed_and_hidden_and_comes_back_closed(campaign, alice):
    delete_campaign(campaign=campaign, confirmation=campaign.name, actor=alice)
    assert state(campaign) == "closed"
    assert not Campaign.objects.visible_to(alice).filter(pk=campaign.pk).exists()
    assert Collection.objects.visible_to(alice).filter(pk=campaign.collection_id).exists()
    assert verbs(campaign)[-2:] == ["closed", "deleted"]
    restore_campaign(campaign=campaign, actor=alice)
    assert Campaign.objects.visible_to(alice).filter(pk=campaign.pk).exists()
    assert state(campaign) == "closed"
    assert verbs(campaign)[-1] == "restored"


def test_twice_is_once(campaign, alice):
    for _ in range(2):
        delete_campaign(campaign=campaign, confirmation=campaign.name, actor=alice)
    first = Campaign.objects.get(pk=campaign.pk).deleted_at
    for _ in range(2):
        delete_collection(collection=campaign.collection, confirmation=campaign.collection.name, actor=alice)
    for _ in range(2):
        restore_collection(collection=campaign.collection, actor=alice)
    assert Campaign.objects.get(pk=campaign.pk).deleted_at == first
    for _ in range(2):
        restore_campaign(campaign=campaign, actor=alice)
    assert verbs(campaign).count("deleted") == verbs(campaign).count("restored") == 1
    assert verbs(campaign.collection).count("deleted") == verbs(campaign.collection).count("restored") == 1


def test_a_deleted_collection_hides_and_closes_its_campaigns_and_brings_them_back(campaign, alice, tmp_path):
    (tmp_path / "other").mkdir()
    elsewhere = make_campaign(tmp_path / "other")
    delete_collection(collection=campaign.collection, confirmation=campaign.collection.name, actor=alice)
    assert state(campaign) == "closed"
    assert state(elsewhere) == "open"
    assert list(Campaign.objects.visible_to(alice)) == [elsewhere]
    assert list(Collection.objects.visible_to(alice)) == [elsewhere.collection]
    assert Campaign.objects.get(pk=campaign.pk).deleted_at is None
    restore_collection(collection=campaign.collection, actor=alice)
    assert set(Campaign.objects.visible_to(alice)) == {campaign, elsewhere}
    assert state(campaign) == "closed"


def test_a_campaign_deleted_by_itself_stays_so_when_its_collection_comes_back(campaign, alice):
    delete_campaign(campaign=campaign, confirmation=campaign.name, actor=alice)
    delete_collection(collection=campaign.collection, confirmation=campaign.collection.name, actor=alice)
    with pytest.raises(CollectionDeleted):
        restore_campaign(campaign=campaign, actor=alice)
    restore_collection(collection=campaign.collection, actor=alice)
    assert not Campaign.objects.visible_to(alice).exists()
    restore_campaign(campaign=campaign, actor=alice)
    assert Campaign.objects.visible_to(alice).get() == campaign


def test_nothing_is_removed_and_late_work_is_kept(campaign, alice):
    bob = make_assessor(campaign, "bob")
    give(bob, slots(campaign)[0], 2)
    token = lease(bob, slots(campaign)[2])
    delete_collection(collection=campaign.collection, confirmation=campaign.collection.name, actor=alice)
    assert Judgment.objects.filter(assessor=bob).count() == 1
    assert Assessor.objects.open_to(bob.user).count() == 0
    with pytest.raises(CampaignNotOpen):
        claim(assessor=bob)
    late = submit(assessor=bob, token=token, client_token=token, grade=1)
    assert late.grade == 1
    assert Judgment.objects.filter(assessor=bob).count() == 2


def test_what_is_deleted_cannot_be_opened(campaign, alice):
    delete_campaign(campaign=campaign, confirmation=campaign.name, actor=alice)
    with pytest.raises(CampaignNotReady):
        open_campaign(campaign=campaign, actor=alice)
    restore_campaign(campaign=campaign, actor=alice)
    delete_collection(collection=campaign.collection, confirmation=campaign.collection.name, actor=alice)
    with pytest.raises(CampaignNotReady):
        open_campaign(campaign=campaign, actor=alice)
    assert state(campaign) == "closed"
    restore_collection(collection=campaign.collection, actor=alice)
    open_campaign(campaign=campaign, actor=alice)
    assert state(campaign) == "open"


def test_the_database_refuses_an_open_campaign_that_is_deleted(campaign, alice):
    delete_campaign(campaign=campaign, confirmation=campaign.name, actor=alice)
    with pytest.raises(IntegrityError, match="judging_campaign_deleted_is_closed"), transaction.atomic():
        Campaign.objects.filter(pk=campaign.pk).update(state="open")


def test_who_may_not_see_a_restricted_collection_deletes_and_restores_nothing(campaign, alice, maria):
    collection = campaign.collection
    Collection.objects.filter(pk=collection.pk).update(is_restricted=True)
    CollectionMember.objects.create(collection=collection, user=alice)
    for act in (
        lambda: delete_collection(collection=collection, confirmation=collection.name, actor=maria),
        lambda: delete_campaign(campaign=campaign, confirmation=campaign.name, actor=maria),
        lambda: restore_collection(collection=collection, actor=maria),
        lambda: restore_campaign(campaign=campaign, actor=maria),
    ):
        with pytest.raises(NotFound):
            act()
    assert state(campaign) == "open"
    delete_collection(collection=collection, confirmation=collection.name, actor=alice)
    with pytest.raises(NotFound):
        restore_collection(collection=collection, actor=maria)
    restore_collection(collection=collection, actor=alice)
    assert Collection.objects.visible_to(alice).filter(pk=collection.pk).exists()


def test_a_draft_stays_a_draft(db, tmp_path, alice):
    campaign = make_undrawn(tmp_path)
    delete_campaign(campaign=campaign, confirmation=campaign.name, actor=alice)
    restore_campaign(campaign=campaign, actor=alice)
    assert state(campaign) == "draft"
    assert "closed" not in verbs(campaign)


# -- races ----------------------------------------------------------------------------------------------------


def in_parallel(*actions):
    """Run the actions at the same moment on connections of their own; return what each raised or None."""
    start, outcomes = threading.Barrier(len(actions)), [None] * len(actions)

    def run(place, action):
        start.wait()
        try:
            action()
        except Exception as error:  # the test looks at it
            outcomes[place] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(actions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    close_old_connections()
    return outcomes


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("delete_first", [True, False])
def test_a_campaign_opened_while_its_collection_is_deleted_ends_closed(tmp_path, delete_first):
    alice = User.objects.create(username="alice", role="manager")
    campaign = make_campaign(tmp_path)
    collection = campaign.collection
    for _ in range(4):
        close_campaign(campaign=campaign, actor=alice)
        actions = [
            lambda: delete_collection(collection=collection, confirmation=collection.name, actor=alice),
            lambda: open_campaign(campaign=campaign, actor=alice),
        ]
        outcomes = in_parallel(*(actions if delete_first else reversed(actions)))
        assert all(error is None or isinstance(error, CampaignNotReady) for error in outcomes)
        assert Collection.objects.get(pk=collection.pk).deleted_at is not None
        assert state(campaign) == "closed"
        restore_collection(collection=collection, actor=alice)


@pytest.mark.django_db(transaction=True)
def test_two_deletions_at_once_are_one(tmp_path):
    alice = User.objects.create(username="alice", role="manager")
    campaign = make_campaign(tmp_path)
    typed = {"confirmation": campaign.name, "actor": alice}
    assert in_parallel(*[lambda: delete_campaign(campaign=campaign, **typed)] * 4) == [None] * 4
    assert verbs(campaign).count("deleted") == 1
    assert verbs(campaign).count("closed") == 1


@pytest.mark.django_db(transaction=True)
def test_a_collection_that_is_being_imported_into_says_so(tmp_path):
    alice = User.objects.create(username="alice", role="manager")
    collection = make_undrawn(tmp_path).collection
    outcomes = []

    def delete():
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '100ms'")
        try:
            delete_collection(collection=collection, confirmation=collection.name, actor=alice)
        except Exception as error:  # the test looks at it
            outcomes.append(error)
        finally:
            connection.close()

    with transaction.atomic():
        Collection.objects.select_for_update(no_key=True).get(pk=collection.pk)
        thread = threading.Thread(target=delete)
        thread.start()
        thread.join()
    assert [type(error) for error in outcomes] == [CollectionBusy]
    assert Collection.objects.get(pk=collection.pk).deleted_at is None
