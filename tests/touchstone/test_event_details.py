"""Events hold ids of people and show their names of today; what an older version still writes is converted."""

import pytest
from small_campaign import make_assessor, make_campaign

from judging.models import ImportedName
from judging.services.campaigns import set_status
from judging.services.entry import create_invitation, revoke_invitation
from judging.services.members import set_members
from touchstone.event_details import details_with_names
from touchstone.models import Event, User, record

pytestmark = pytest.mark.django_db


@pytest.fixture
def campaign(tmp_path):
    return make_campaign(tmp_path)


@pytest.fixture
def bob(campaign):
    return make_assessor(campaign, "bob")


def test_an_event_shows_the_name_of_today_and_holds_none(campaign, bob):
    manager = User.objects.create(username="alice", role="manager")
    set_status(assessor=bob, status="suspended", actor=manager, why="pause")
    set_members(collection=campaign.collection, is_restricted=True, users=[], actor=manager)
    invitation = create_invitation(campaign=campaign, user=manager, note="for Zoe")
    revoke_invitation(invitation=invitation, user=manager)
    events = list(Event.objects.order_by("id"))[-4:]
    assert [event.detail for event in events[:2]] == [
        {"assessor": bob.user_id, "why": "pause"},
        {"is_restricted": True, "members": [manager.pk]},
    ]
    assert "Zoe" not in str([event.detail for event in events])
    User.objects.filter(pk=bob.user_id).update(username="robert")
    shown = details_with_names(events)
    assert shown[0] == {"assessor": "robert", "why": "pause"}
    assert shown[1] == {"is_restricted": True, "members": ["alice"]}
    assert (shown[2]["note"], shown[3]) == ("for Zoe", {"note": "for Zoe"})


def test_names_are_looked_up_together(campaign, bob, django_assert_num_queries):
    events = [record("set active", campaign, assessor=bob.user_id) for _ in range(30)]
    with django_assert_num_queries(1):
        assert {detail["assessor"] for detail in details_with_names(events)} == {"bob"}
    with django_assert_num_queries(0):
        assert details_with_names([Event(detail={"n": 1})]) == [{"n": 1}]


def test_what_an_older_process_writes_is_stored_without_names(campaign, bob):
    invitation = create_invitation(campaign=campaign, user=bob.user, note="for Zoe")
    named = {
        "assessor": "bob",
        "assessors": {"bob": "Robert Smith"},
        "members": ["bob", "nobody here"],
        "source": "a lab",
        "note": "for Zoe",
        "n": 3,
    }
    event = record("of an older version", campaign, **named)
    event.refresh_from_db()
    assert event.detail == {
        "assessor": bob.user_id,
        "assessors": [bob.user_id],
        "members": [bob.user_id],
        "source": "a lab",
        "invitation": invitation.pk,
        "n": 3,
    }
    kept = ImportedName.objects.get(assessor=bob)
    assert (kept.source, kept.name) == ("a lab", "Robert Smith")
    [shown] = details_with_names([event])
    assert shown == named | {"members": ["bob"]}


def test_a_name_that_nobody_bears_becomes_nobody(campaign):
    event = record("set active", campaign, assessor="somebody who is gone")
    event.refresh_from_db()
    assert event.detail == {"assessor": None}
    assert details_with_names([event]) == [{"assessor": None}]
