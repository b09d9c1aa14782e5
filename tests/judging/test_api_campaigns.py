"""Campaigns and their assessors for API clients: creation, changes, opening, deletion; rules, pauses and messages."""

import uuid
from copy import deepcopy

import pytest
from api_tools import api_client
from django.contrib.auth import authenticate
from small_campaign import give, lease, make_assessor, make_campaign, make_collection, make_undrawn, slots

from judging.models import Assessor, Campaign, CampaignTopic, Judgment, Slot
from touchstone.models import Event, User

pytestmark = pytest.mark.django_db
GRADES = [{"value": 0, "label": "no", "gain": 0}, {"value": 1, "label": "yes", "gain": 2.5}]


@pytest.fixture
def alice(db):
    return api_client("alice")


@pytest.fixture
def maria(db):
    return api_client("maria")


@pytest.fixture
def rita(db):
    return api_client("rita", "researcher")


@pytest.fixture(scope="module")
def made_once(module_world, tmp_path_factory):
    return make_campaign(tmp_path_factory.mktemp("world"))


@pytest.fixture
def campaign(made_once, db):
    return deepcopy(made_once)


@pytest.fixture
def bob(campaign):
    return make_assessor(campaign, "bob")


def there(campaign, part=""):
    return f"/campaigns/{campaign.pk}{part}"


def assessor_path(assessor, part=""):
    return f"/campaigns/{assessor.campaign_id}/assessors/{assessor.pk}{part}"


def verbs(campaign):
    return list(
        Event.objects.filter(subject=f"campaign:{campaign.pk}").order_by("id").values_list("verb", flat=True)
    )


# -- campaigns ------------------------------------------------------------------------------------------------


def test_a_campaign_is_made_with_its_scale(alice, tmp_path):
    collection = make_collection(tmp_path)
    made = alice.post(
        "/campaigns", 201, collection=str(collection.pk), name="Round 1", grades=GRADES, judgments_per_item=3
    )
    assert made["scale"] == {"relevant_grade": 1, "grades": GRADES}
    assert (made["state"], made["judgments_per_item"], made["collection"]) == ("draft", 3, str(collection.pk))
    row = Campaign.objects.get(pk=made["id"])
    assert row.created_by.username == "alice"
    assert alice.get(there(row)) == made
    assert alice.get(there(row, "/scale")) == made["scale"]
    usual = alice.post("/campaigns", 201, collection=str(collection.pk), name="Round 2")
    assert [grade["value"] for grade in usual["scale"]["grades"]] == [0, 1, 2, 3]
    assert usual["check_grades"] == "at-most"
    changed = alice.send("PATCH", f"/campaigns/{usual['id']}", 200, {"check_grades": "as-drawn"})
    assert changed["check_grades"] == "as-drawn"


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": None},
        {"collection": "x"},
        {"collection": str(uuid.UUID(int=0))},
        {"grades": GRADES[:1]},
        {"grades": GRADES[::-1]},
        {"grades": [{**GRADES[0], "gain": -1}, GRADES[1]]},
        {"grades": [{**GRADES[0], "gain": 1e9}, GRADES[1]]},
        {"grades": [{**GRADES[0], "label": ""}, GRADES[1]]},
        {"grades": [{**GRADES[0], "more": 1}, GRADES[1]]},
        {"grades": "0 1"},
        {"relevant_grade": 4},
        {"relevant_grade": 0},
        {"judgments_per_item": 0},
        {"judgments_per_item": 21},
        {"judgments_per_item": "2"},
        {"judgments_per_item": True},
        {"judgments_per_item": 2**63},
        {"lease_seconds": 0},
        {"lease_seconds": 86401},
        {"gold_check_rate": 0.6},
        {"gold_check_rate": "0.1"},
        {"gold_check_exposures": 0},
        {"decoys_per_check": 6},
        {"check_grades": "by-luck"},
        {"break_minutes": -1},
        {"pause_below": 0.5},
        {"cost_per_judgment": 0},
        {"bronze_score": "best"},
        {"machine_prompt": "no place for the document"},
        {"guidelines": 5},
        {"highlights_terms": "yes"},
        {"state": "open"},
        {"is_simulated": True},
    ],
)
def test_a_bad_campaign_is_refused(alice, tmp_path, wrong):
    collection = make_collection(tmp_path)
    alice.send("POST", "/campaigns", 400, {"collection": str(collection.pk), "name": "x", **wrong})
    assert not Campaign.objects.exists()


def test_nobody_makes_a_campaign_of_what_he_may_not_see(alice, maria, tmp_path):
    collection = make_collection(tmp_path)
    alice.put(f"/collections/{collection.pk}/members", is_restricted=True, members=[])
    theirs = maria.post("/campaigns", 400, collection=str(collection.pk), name="x")
    assert theirs == maria.post("/campaigns", 400, collection=str(uuid.uuid4()), name="x")
    assert not Campaign.objects.exists()


def test_what_may_change_is_changed_and_the_event_names_it(alice, rita, campaign):
    before = alice.get(there(campaign))
    changes = {"guidelines": "Read\r\nall", "lease_seconds": 60, "cost_per_gold": 2.5, "name": campaign.name}
    after = alice.patch(there(campaign), **changes)
    assert after == {**before, "guidelines": "Read\nall", "lease_seconds": 60, "cost_per_gold": 2.5}
    event = Event.objects.filter(subject=f"campaign:{campaign.pk}").latest("id")
    assert (event.verb, event.detail) == (
        "changed",
        {"fields": ["cost_per_gold", "guidelines", "lease_seconds"]},
    )
    assert rita.get(there(campaign)) == after
    rita.patch(there(campaign), 404, lease_seconds=61)
    assert alice.get(there(campaign)) == after


@pytest.mark.parametrize("name", ["judgments_per_item", "collection", "scale", "state", "created_at", "id"])
def test_what_is_fixed_cannot_be_changed(alice, campaign, name):
    before = alice.get(there(campaign))
    alice.send("PATCH", there(campaign), 400, {name: before[name]})
    assert alice.get(there(campaign)) == before


def test_a_name_is_taken_once(alice, campaign, tmp_path):
    other = make_undrawn(tmp_path)
    alice.patch(there(other), 409, name=campaign.name)
    alice.post("/campaigns", 409, collection=str(other.collection_id), name=campaign.name)
    assert Campaign.objects.get(pk=other.pk).name == other.name
    alice.post(f"{there(campaign)}/delete", confirmation=campaign.name)
    assert alice.patch(there(other), name=campaign.name)["name"] == campaign.name
    alice.post(f"{there(campaign)}/restore", 409)
    assert alice.post(f"{there(campaign)}/restore", name="again")["name"] == "again"


def test_a_campaign_is_opened_and_closed(alice, campaign, tmp_path):
    assert alice.post(there(campaign, "/state"), state="closed")["state"] == "closed"
    assert alice.post(there(campaign, "/state"), state="open")["state"] == "open"
    assert verbs(campaign)[-2:] == ["closed", "opened"]
    for wrong in ({"state": "draft"}, {"state": "gone"}, {}, {"state": None}):
        alice.send("POST", there(campaign, "/state"), 400, wrong)
    undrawn = make_undrawn(tmp_path)
    assert alice.post(there(undrawn, "/state"), 409, state="open")["detail"] == "draw its items first"


def test_a_campaign_is_deleted_by_its_typed_name_and_comes_back(alice, maria, campaign):
    alice.post(there(campaign, "/delete"), 400, confirmation="x")
    assert alice.post(there(campaign, "/delete"), confirmation=campaign.name)["state"] == "closed"
    assert alice.get(there(campaign), 404) == alice.get(f"/campaigns/{uuid.uuid4()}", 404)
    (gone,) = maria.rows("/deleted-campaigns")
    assert (gone["id"], gone["collection_is_deleted"]) == (str(campaign.pk), False)
    alice.post(f"/collections/{campaign.collection_id}/delete", confirmation=campaign.collection.name)
    assert maria.rows("/deleted-campaigns")[0]["collection_is_deleted"] is True
    maria.post(there(campaign, "/restore"), 409)
    maria.post(f"/collections/{campaign.collection_id}/restore")
    assert maria.post(there(campaign, "/restore"))["deleted_at"] is None
    assert alice.get(there(campaign))["state"] == "closed"


def test_lists_show_what_one_may_see(alice, maria, rita, campaign, tmp_path):
    (tmp_path / "2").mkdir()
    other = make_campaign(tmp_path / "2")
    alice.put(f"/collections/{other.collection_id}/members", is_restricted=True, members=["rita"])
    assert [row["id"] for row in alice.rows("/campaigns", page_size=1)] == [str(other.pk), str(campaign.pk)]
    assert [row["id"] for row in maria.rows("/campaigns")] == [str(campaign.pk)]
    assert len(rita.rows("/campaigns")) == 2
    assert [row["id"] for row in rita.rows("/campaigns", collection=str(other.collection_id))] == [
        str(other.pk)
    ]
    assert rita.rows("/campaigns", state="draft") == []


def test_progress_says_what_is_left(alice, campaign, bob):
    give(bob, slots(campaign)[0], 1)
    lease(bob, slots(campaign)[2])
    found = alice.get(there(campaign, "/progress"))
    assert (found["left"], found["is_exact"], found["leased"], found["expired"]) == (83, True, 1, 0)
    assert found["oldest_lease"] is not None


# -- topics kept for teams ------------------------------------------------------------------------------------


def test_topics_are_kept_for_a_team_and_opened_again(alice, campaign):
    assert alice.post(there(campaign, "/topic-teams"), team="red", topics=["t0", "t2"]) == {"n_topics": 2}
    assert {row["topic"]: row["team"] for row in alice.rows(there(campaign, "/topic-teams"))} == {
        "t0": "red", "t1": "", "t2": "red",
    }  # fmt: skip
    alice.post(there(campaign, "/topic-teams"), team="", topics=["t0"])
    assert [row["topic"] for row in alice.rows(there(campaign, "/topic-teams"), team="red")] == ["t2"]
    for wrong in (
        {"team": "red", "topics": []},
        {"team": "red", "topics": ["t0", "t9"]},
        {"team": "x" * 61, "topics": ["t0"]},
        {"topics": ["t0"]},
    ):
        alice.send("POST", there(campaign, "/topic-teams"), 400, wrong)
    assert CampaignTopic.objects.filter(campaign=campaign, team="red").count() == 1


# -- assessors ------------------------------------------------------------------------------------------------


def test_an_unknown_name_becomes_an_account_with_a_password_said_once(alice, campaign):
    made = alice.post(there(campaign, "/assessors"), 201, username="dora", tier="silver")
    assert (made["username"], made["tier"], made["kind"], made["status"]) == (
        "dora", "silver", "human", "active",
    )  # fmt: skip
    user = authenticate(username="dora", password=made["password"])
    assert user is not None
    assert user.role == "assessor"
    assert "password" not in alice.get(f"{there(campaign, '/assessors')}/{made['id']}")
    assert made["password"] not in str(Event.objects.values_list("detail", flat=True))


def test_who_has_an_account_keeps_his_password_and_joins_once(alice, campaign):
    User.objects.create(username="dora", password="unusable")
    made = alice.post(there(campaign, "/assessors"), 201, username="dora")
    assert made["password"] is None
    assert User.objects.get(username="dora").password == "unusable"
    alice.post(there(campaign, "/assessors"), 409, username="dora")
    assert campaign.assessors.count() == 1


def test_a_refused_assessor_leaves_no_account(alice, campaign):
    for wrong in (
        {"username": "a b"},
        {"username": ""},
        {"username": 5},
        {"username": "eve", "tier": "best"},
        {"username": "eve", "kind": "simulated"},
        {"username": "eve", "kind": "machine", "tier": "gold"},
        {"username": "eve", "role": "manager"},
        {},
    ):
        alice.send("POST", there(campaign, "/assessors"), 400, wrong)
    assert not User.objects.exclude(username="alice").exists()


def test_a_machine_is_added_and_nobody_logs_in_as_it(alice, campaign):
    made = alice.post(there(campaign, "/assessors"), 201, username="model-1", kind="machine")
    assert (made["kind"], made["tier"], made["password"]) == ("machine", "bronze", None)
    assert not User.objects.get(username="model-1").has_usable_password()


def test_assessors_are_listed_with_their_work(alice, campaign, bob):
    dora = make_assessor(campaign, "dora", tier="gold")
    give(bob, slots(campaign)[0], 1)
    rows = alice.rows(there(campaign, "/assessors"), page_size=1)
    assert [(row["username"], row["n_judged"]) for row in rows] == [("bob", 1), ("dora", 0)]
    assert [row["id"] for row in alice.rows(there(campaign, "/assessors"), tier="gold")] == [dora.pk]
    assert [row["id"] for row in alice.rows(there(campaign, "/assessors"), username="bob")] == [bob.pk]
    assert [row["username"] for row in alice.rows(there(campaign, "/assessors"), order="-n_judged")] == [
        "bob",
        "dora",
    ]


def test_rules_change_only_what_is_named(alice, bob):
    first = alice.patch(assessor_path(bob), quota=5, team="red", first_topics=["t2", "t0"])
    assert (first["quota"], first["team"], first["first_topics"]) == (5, "red", ["t0", "t2"])
    second = alice.patch(assessor_path(bob), quota=None)
    assert (second["quota"], second["team"], second["first_topics"]) == (None, "red", ["t0", "t2"])
    assert alice.patch(assessor_path(bob), first_topics=[])["first_topics"] == []
    for wrong in (
        {"quota": 0},
        {"team": "x" * 61},
        {"first_topics": ["t9"]},
        {"tier": "gold"},
        {"status": "x"},
    ):
        alice.send("PATCH", assessor_path(bob), 400, wrong)
    bob.refresh_from_db()
    assert (bob.tier, bob.quota, bob.team) == ("bronze", None, "red")


def test_an_assessor_is_paused_and_what_he_holds_goes_back(alice, campaign, bob):
    lease(bob, slots(campaign)[0])
    assert alice.post(assessor_path(bob, "/status"), status="suspended")["status"] == "suspended"
    assert not Slot.objects.filter(assessor=bob, state="leased").exists()
    assert alice.post(assessor_path(bob, "/status"), status="active")["status"] == "active"
    alice.post(assessor_path(bob, "/status"), 400, status="gone")
    log = [row["verb"] for row in alice.rows(there(campaign, "/events"), actor="alice")]
    assert log[:2] == ["set active", "set suspended"]


def test_judgments_are_wanted_again_when_the_name_is_typed(alice, campaign, bob):
    give(bob, slots(campaign)[0], 1)
    alice.post(assessor_path(bob, "/requeue"), 400, confirmation="Bob")
    assert Slot.objects.filter(purpose="void").count() == 0
    assert alice.post(assessor_path(bob, "/requeue"), confirmation="bob") == {"n_requeued": 1}
    assert Slot.objects.filter(purpose="void").count() == 1
    assert Judgment.objects.filter(assessor=bob).count() == 1


def test_messages_are_sent_and_listed(alice, rita, bob):
    sent = alice.post(assessor_path(bob, "/messages"), 201, text=" Hello\r\nBob ")
    assert (sent["text"], sent["sender"], sent["read_at"]) == ("Hello\nBob", "alice", None)
    alice.post(assessor_path(bob, "/messages"), 201, text="again")
    assert [row["text"] for row in alice.rows(assessor_path(bob, "/messages"))] == ["again", "Hello\nBob"]
    for wrong in ({}, {"text": ""}, {"text": "  "}, {"text": "x" * 2001}, {"text": 1}):
        alice.send("POST", assessor_path(bob, "/messages"), 400, wrong)
    rita.post(assessor_path(bob, "/messages"), 404, text="x")
    assert bob.messages.count() == 2


def test_an_assessor_of_another_campaign_is_not_there(alice, bob, tmp_path):
    (tmp_path / "2").mkdir()
    other = make_campaign(tmp_path / "2")
    nowhere = f"/campaigns/{other.pk}/assessors/{2**40}"
    theirs = f"/campaigns/{other.pk}/assessors/{bob.pk}"
    assert alice.get(theirs, 404) == alice.get(nowhere, 404)
    assert alice.patch(theirs, 404, quota=5) == alice.patch(nowhere, 404, quota=5)
    for act, body in (
        ("status", {"status": "suspended"}),
        ("requeue", {"confirmation": "bob"}),
        ("messages", {"text": "x"}),
        ("training-attempts", {}),
    ):
        assert alice.post(f"{theirs}/{act}", 404, **body) == alice.post(f"{nowhere}/{act}", 404, **body)
    bob.refresh_from_db()
    assert (bob.status, bob.quota) == ("active", None)


def test_assessors_and_researchers_find_no_managers_things(campaign, bob, rita):
    bob_client = api_client("bob", "assessor")
    nothing = bob_client.get(f"/campaigns/{uuid.uuid4()}/assessors", 404)
    for part in ("/assessors", "/topic-teams", "/events", "/progress", f"/assessors/{bob.pk}"):
        assert bob_client.get(there(campaign, part), 404) == nothing
        assert rita.get(there(campaign, part), 404) == nothing
    assert bob_client.get(there(campaign), 404) == nothing
    rita.post(there(campaign, "/assessors"), 404, username="eve")
    assert Assessor.objects.count() == 1
