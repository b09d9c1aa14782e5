"""Members of restricted collections, messages to assessors, adjudication: who may, what is kept, what is refused."""

import threading

import pytest
from django.db import IntegrityError, connection, transaction
from small_campaign import make_assessor, make_campaign, make_collection, slots

from judging.models import Adjudication, Campaign, Collection, Message
from judging.services.adjudication import adjudicate
from judging.services.deletion import delete_campaign, delete_collection, restore_campaign
from judging.services.errors import GradeOffScale, MembersUnfit, MessageUnfit, NotFound
from judging.services.members import set_members
from judging.services.messages import ask, mark_read, messages_to, send, unread, waiting
from touchstone.models import Event, User


@pytest.fixture
def alice(db):
    return User.objects.create(username="alice", role="manager")


@pytest.fixture
def maria(db):
    return User.objects.create(username="maria", role="manager")


@pytest.fixture
def rita(db):
    return User.objects.create(username="rita", role="researcher")


@pytest.fixture
def collection(db, tmp_path):
    return make_collection(tmp_path)


@pytest.fixture
def campaign(db, tmp_path):
    return make_campaign(tmp_path)


@pytest.fixture
def bob(campaign):
    return make_assessor(campaign, "bob")


def sees(user, collection):
    return Collection.objects.visible_to(user).filter(pk=collection.pk).exists()


def last_event(row):
    subject = f"{row._meta.model_name}:{row.pk}"
    return Event.objects.filter(subject=subject).order_by("id").last()


# -- members --------------------------------------------------------------------------------------------------


def test_a_restricted_collection_is_seen_by_its_members_alone(collection, alice, maria, rita):
    assert sees(maria, collection)
    set_members(collection=collection, is_restricted=True, users=[alice, rita], actor=alice)
    assert [sees(user, collection) for user in (alice, rita, maria)] == [True, True, False]
    assert last_event(collection).verb == "set members"
    assert last_event(collection).detail == {
        "is_restricted": True,
        "members": sorted([alice.pk, rita.pk]),
    }
    set_members(collection=collection, is_restricted=False, users=[], actor=rita)
    assert [sees(user, collection) for user in (alice, rita, maria)] == [True, True, True]


def test_nobody_removes_himself(collection, alice, maria):
    kept = set_members(collection=collection, is_restricted=True, users=[maria], actor=alice)
    assert kept == [alice, maria]
    assert sees(alice, collection)
    assert set_members(collection=collection, is_restricted=True, users=[], actor=alice) == [alice]
    assert not sees(maria, collection)


def test_whoever_is_no_member_any_more_changes_nothing(collection, alice, maria):
    set_members(collection=collection, is_restricted=True, users=[], actor=alice)
    with pytest.raises(NotFound):
        set_members(collection=collection, is_restricted=False, users=[maria], actor=maria)
    assert [member.user_id for member in collection.members.all()] == [alice.pk]


def test_assessors_cannot_be_members(collection, alice):
    bob = User.objects.create(username="bob")
    with pytest.raises(MembersUnfit, match="bob"):
        set_members(collection=collection, is_restricted=True, users=[bob], actor=alice)
    assert not collection.members.exists()
    assert not Collection.objects.get(pk=collection.pk).is_restricted


def test_a_deleted_collection_has_no_members_to_set(collection, alice):
    delete_collection(collection=collection, confirmation=collection.name, actor=alice)
    with pytest.raises(NotFound):
        set_members(collection=collection, is_restricted=True, users=[], actor=alice)


def test_what_changes_nothing_is_no_event(collection, alice):
    for _ in range(2):
        set_members(collection=collection, is_restricted=True, users=[alice], actor=alice)
    assert Event.objects.filter(subject=f"collection:{collection.pk}", verb="set members").count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_managers_who_shut_each_other_out_at_once_one_stays(tmp_path):
    alice = User.objects.create(username="alice", role="manager")
    maria = User.objects.create(username="maria", role="manager")
    collection = make_collection(tmp_path)
    for _ in range(4):
        set_members(collection=collection, is_restricted=True, users=[alice, maria], actor=alice)
        outcomes = in_parallel(
            lambda: set_members(collection=collection, is_restricted=True, users=[], actor=alice),
            lambda: set_members(collection=collection, is_restricted=True, users=[], actor=maria),
        )
        assert sorted(type(error).__name__ for error in outcomes) == ["NoneType", "NotFound"]
        (left,) = collection.members.all()
        assert left.user_id == (alice if outcomes[0] is None else maria).pk
        left.delete()
        Collection.objects.filter(pk=collection.pk).update(is_restricted=False)


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
    return outcomes


# -- messages -------------------------------------------------------------------------------------------------


def test_a_message_stays_unread_until_its_reader_says_so(bob, alice):
    first = send(assessor=bob, text="  Please read the guidelines again.\r\nThank you ", sender=alice)
    second = send(assessor=bob, text="One more thing", sender=alice)
    assert first.text == "Please read the guidelines again.\nThank you"
    assert unread(user=bob.user) == [first, second]
    assert waiting(bob) == ([first, second], False)
    ask(assessor=bob, text="Is a list of names enough?")
    assert waiting(bob) == ([first, second], True)
    mark_read(message=first, user=bob.user)
    when = first.read_at
    assert when is not None
    mark_read(message=first, user=bob.user)
    assert Message.objects.get(pk=first.pk).read_at == when
    assert unread(user=bob.user) == [second]
    assert set(messages_to(user=bob.user)) == {first, second}


def test_a_message_reaches_nobody_else(campaign, bob, alice):
    dora = make_assessor(campaign, "dora")
    sent = send(assessor=bob, text="for Bob", sender=alice)
    assert unread(user=dora.user) == []
    assert unread(user=alice) == []
    with pytest.raises(NotFound):
        mark_read(message=sent, user=dora.user)
    assert Message.objects.get(pk=sent.pk).read_at is None


def test_only_managers_who_see_the_campaign_send(campaign, bob, alice, maria, rita):
    with pytest.raises(NotFound):
        send(assessor=bob, text="hello", sender=rita)
    with pytest.raises(NotFound):
        send(assessor=bob, text="hello", sender=bob.user)
    set_members(collection=campaign.collection, is_restricted=True, users=[], actor=alice)
    with pytest.raises(NotFound):
        send(assessor=bob, text="hello", sender=maria)
    assert not Message.objects.exists()
    send(assessor=bob, text="hello", sender=alice)
    assert Message.objects.count() == 1


@pytest.mark.parametrize("text", ["", "  \n ", "x" * 2001])
def test_a_message_has_one_to_2000_characters(bob, alice, text):
    with pytest.raises(MessageUnfit):
        send(assessor=bob, text=text, sender=alice)
    assert not Message.objects.exists()


def test_messages_of_a_deleted_campaign_are_hidden_with_it(campaign, bob, alice):
    sent = send(assessor=bob, text="hello", sender=alice)
    delete_campaign(campaign=campaign, confirmation=campaign.name, actor=alice)
    assert unread(user=bob.user) == []
    with pytest.raises(NotFound):
        send(assessor=bob, text="again", sender=alice)
    restore_campaign(campaign=campaign, actor=alice)
    assert unread(user=bob.user) == [sent]


def test_the_log_says_who_wrote_to_whom_and_not_what(campaign, bob, alice):
    send(assessor=bob, text="a word for Bob alone", sender=alice)
    event = last_event(campaign)
    assert (event.verb, event.actor, event.detail) == ("sent a message", alice, {"assessor": bob.user_id})


# -- adjudication ---------------------------------------------------------------------------------------------


def test_the_newest_decision_counts_and_all_are_kept(campaign, alice, maria):
    item = slots(campaign)[0].item
    first = adjudicate(item=item, grade=3, reason="the narrative says so", actor=alice)
    second = adjudicate(item=item, grade=1, reason="", actor=maria)
    assert list(item.adjudications.order_by("id")) == [first, second]
    assert (second.grade, second.decided_by) == (1, maria)
    assert last_event(campaign).verb == "adjudicated"
    assert last_event(campaign).detail == {"item": str(item.pk), "grade": 1}


def test_a_decision_pressed_twice_is_one(campaign, alice):
    item = slots(campaign)[0].item
    first = adjudicate(item=item, grade=3, reason="x", actor=alice)
    assert adjudicate(item=item, grade=3, reason="x", actor=alice) == first
    adjudicate(item=item, grade=2, reason="x", actor=alice)
    again = adjudicate(item=item, grade=3, reason="x", actor=alice)
    assert item.adjudications.count() == 3
    assert item.adjudications.order_by("-id").first() == again


@pytest.mark.parametrize("grade", [-1, 4, 127])
def test_a_decision_off_the_scale_is_refused(campaign, alice, grade):
    item = slots(campaign)[0].item
    with pytest.raises(GradeOffScale):
        adjudicate(item=item, grade=grade, reason="", actor=alice)
    with pytest.raises(IntegrityError, match="off the scale"), transaction.atomic():
        Adjudication.objects.create(item=item, grade=grade, decided_by=alice)
    assert not Adjudication.objects.exists()


def test_only_managers_who_see_the_campaign_decide(campaign, alice, maria, rita, bob):
    item = slots(campaign)[0].item
    set_members(collection=campaign.collection, is_restricted=True, users=[rita], actor=alice)
    for user in (maria, rita, bob.user):
        with pytest.raises(NotFound):
            adjudicate(item=item, grade=1, reason="", actor=user)
    assert not Adjudication.objects.exists()
    adjudicate(item=item, grade=1, reason="", actor=alice)
    assert Campaign.objects.get(pk=campaign.pk).items.filter(adjudications__grade=1).get() == item
