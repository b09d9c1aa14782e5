"""How people come in, for API clients: invitations, market, consent, training; and the assessor's own side of it."""

import uuid
from datetime import timedelta

import pytest
from api_tools import api_client
from django.utils import timezone
from small_campaign import give, lease, make_assessor, make_undrawn, slots, true_grade

from judging.models import Assessor, Campaign, Invitation, Message, Participant
from judging.services import crowd
from judging.services.assign import submit
from judging.services.campaigns import open_campaign
from judging.services.deletion import delete_campaign
from judging.services.messages import send
from judging.services.training import choose_training_items
from sampling.questions import Design
from sampling.services.drawing import draw

pytestmark = pytest.mark.django_db
MARKET = {"entry": "closed", "judgments_per_participant": 20}


@pytest.fixture
def alice(db):
    return api_client("alice")


@pytest.fixture
def rita(db):
    return api_client("rita", "researcher")


@pytest.fixture
def campaign(db, tmp_path):
    """Half of the pool is drawn: gold answers are left for training."""
    made = make_undrawn(tmp_path)
    draw(campaign=made, design=Design("pool", (), measure="DCG@10", depth=10, budget=30), seed=20)
    open_campaign(campaign=made, actor=None)
    return made


@pytest.fixture
def bob(campaign):
    return make_assessor(campaign, "bob")


@pytest.fixture
def bob_client(bob):
    """Bob's API client."""
    return api_client("bob", "assessor")


def there(campaign, part=""):
    return f"/campaigns/{campaign.pk}{part}"


def mine(campaign, part=""):
    return f"/me/campaigns/{campaign.pk}{part}"


# -- invitations ----------------------------------------------------------------------------------------------


def test_an_invitation_is_made_followed_and_revoked(alice, campaign):
    path = there(campaign, "/invitations")
    made = alice.post(path, 201, note="for Dora", tier="silver", quota=10, max_uses=2, days=3)
    row = Invitation.objects.get(pk=made["id"])
    assert made["link"].endswith(f"/join/{row.token}/")
    assert (made["state"], made["tier"], made["quota"], made["n_used"]) == ("open", "silver", 10, 0)
    assert timedelta(days=2.9) < row.expires_at - timezone.now() < timedelta(days=3.1)
    dora = api_client("dora", "assessor")
    assert dora.client.post(f"/join/{row.token}/").status_code == 302
    assert campaign.assessors.get(user=dora.user).tier == "silver"
    assert alice.rows(path)[0]["n_used"] == 1
    assert alice.post(f"{path}/{made['id']}/revoke")["state"] == "revoked"
    assert api_client("eve", "assessor").client.get(f"/join/{row.token}/").status_code == 404


def test_invitations_say_why_they_do_not_work_any_more(alice, campaign):
    path = there(campaign, "/invitations")
    pks = [alice.post(path, 201)["id"] for _ in range(4)]
    Invitation.objects.filter(pk=pks[1]).update(n_used=1)
    Invitation.objects.filter(pk=pks[2]).update(expires_at=timezone.now() - timedelta(seconds=1))
    Invitation.objects.filter(pk=pks[3]).update(revoked_at=timezone.now())
    states = {row["id"]: row["state"] for row in alice.rows(path, page_size=3)}
    assert [states[pk] for pk in pks] == ["open", "used up", "expired", "revoked"]
    assert [row["id"] for row in alice.rows(path, state="expired")] == [pks[2]]
    alice.get(path, 400, state="lost")


@pytest.mark.parametrize(
    "wrong",
    [
        {"tier": "best"},
        {"quota": 0},
        {"max_uses": 0},
        {"max_uses": 1001},
        {"days": 366},
        {"days": "3"},
        {"note": "x" * 101},
        {"token": str(uuid.UUID(int=1))},
    ],
)
def test_a_bad_invitation_is_refused(alice, campaign, wrong):
    alice.send("POST", there(campaign, "/invitations"), 400, wrong)
    assert not Invitation.objects.exists()


# -- the market -----------------------------------------------------------------------------------------------


def test_the_market_is_set_and_read(alice, campaign):
    sent = {"entry": "study", "judgments_per_participant": 5, "completion_code": "C0DE"}
    answer = alice.put(there(campaign, "/market"), **sent, completion_url="https://market.example/done")
    assert answer["completion_code"] == "C0DE"
    assert answer["study_url"].endswith(f"/study/{campaign.entry_key}/")
    assert alice.get(there(campaign, "/market")) == answer
    campaign.refresh_from_db()
    assert (campaign.entry, campaign.judgments_per_participant) == ("study", 5)


@pytest.mark.parametrize(
    "wrong",
    [
        {"entry": "hit"},
        {"entry": "hit", "market_origin": "market.example"},
        {"entry": "hit", "market_origin": "http://market.example"},
        {"entry": "hit", "market_origin": "https://market.example/path"},
        {"entry": "study"},
        {"entry": "study", "completion_code": "x", "completion_url": "javascript:alert(1)"},
        {"entry": "study", "completion_code": "x", "completion_url": "http://market.example/"},
        {"judgments_per_participant": 0},
        {"entry": "open"},
        {"entry_key": str(uuid.UUID(int=1))},
    ],
)
def test_a_bad_market_is_refused(alice, campaign, wrong):
    before = alice.get(there(campaign, "/market"))
    alice.send("PUT", there(campaign, "/market"), 400, {**MARKET, **wrong})
    assert alice.get(there(campaign, "/market")) == before


def test_codes_tell_whose_they_are_and_names_are_erased(alice, rita, campaign, bob):
    Participant.objects.create(campaign=campaign, assessor=bob, participant="worker-1", session="s1")
    code = crowd.own_code(campaign, bob.pk)
    answer = alice.post(there(campaign, "/codes"), codes=[code.lower(), "AAAAA-AAAAA"])
    assert [(row["username"], row["assessor"]) for row in answer["codes"]] == [("bob", bob.pk), (None, None)]
    (row,) = alice.rows(there(campaign, "/participants"))
    assert (row["participant"], row["username"], row["n_judged"]) == ("worker-1", "bob", 0)
    assert alice.rows(there(campaign, "/participants"), participant="worker-2") == []
    for wrong in ({"sure": False}, {}, {"sure": "true"}, {"sure": 1}):
        alice.send("POST", there(campaign, "/participants/erase"), 400, wrong)
    rita.post(there(campaign, "/participants/erase"), 404, sure=True)
    assert Participant.objects.get().participant == "worker-1"
    assert alice.post(there(campaign, "/participants/erase"), sure=True) == {"n_erased": 1}
    assert alice.rows(there(campaign, "/participants"))[0]["participant"] == ""
    for wrong in ({}, {"codes": []}, {"codes": ["x"] * 201}, {"codes": "x"}):
        alice.send("POST", there(campaign, "/codes"), 400, wrong)


# -- consent --------------------------------------------------------------------------------------------------


def test_consent_is_asked_for_and_given_once(alice, campaign, bob_client, bob):
    assert alice.put(there(campaign, "/consent"), text="We keep\r\nit.") == {"text": "We keep\nit."}
    assert alice.get(there(campaign, "/consent")) == {"text": "We keep\nit."}
    assert bob_client.rows("/me/campaigns")[0]["comes_first"] == "consent"
    assert bob_client.get(mine(campaign, "/consent")) == {"text": "We keep\nit.", "consented_at": None}
    bob_client.post(mine(campaign, "/consent"), 400, agrees=False)
    bob_client.post(mine(campaign, "/consent"), 400)
    first = bob_client.post(mine(campaign, "/consent"), agrees=True)
    assert first["consented_at"] is not None
    assert bob_client.post(mine(campaign, "/consent"), agrees=True) == first
    assert bob_client.rows("/me/campaigns")[0]["comes_first"] is None
    alice.put(there(campaign, "/consent"), 400, text=5)
    alice.put(there(campaign, "/consent"), 400, text="x" * 20_001)
    alice.put(there(campaign, "/consent"), text="x" * 20_000)


# -- training -------------------------------------------------------------------------------------------------


def test_training_is_chosen_explained_and_ruled(alice, campaign):
    path = there(campaign, "/training")
    assert alice.get(path)["items"] == []
    chosen = alice.post(f"{path}/items", n=3, seed=7)
    assert [item["position"] for item in chosen["items"]] == [1, 2, 3]
    assert all(item["grade"] == true_grade(item["topic_id"], item["doc_id"]) for item in chosen["items"])
    ruled = alice.put(f"{path}/rules", attempts=4, pass_share=0.5)
    assert (ruled["attempts"], ruled["pass_share"], ruled["is_fixed"]) == (4, 0.5, False)
    texts = [{"position": 2, "text": "a\r\nb"}, {"position": 20, "text": "nowhere"}]
    explained = alice.put(f"{path}/explanations", explanations=texts)
    assert [item["explanation"] for item in explained["items"]] == ["", "a\nb", ""]
    assert alice.get(path) == explained
    alice.post(f"{path}/items", 409, n=20)
    for part, wrong in (
        ("items", {"n": 21}),
        ("items", {"n": "3"}),
        ("items", {}),
    ):
        alice.send("POST", f"{path}/{part}", 400, wrong)
    for part, wrong in (
        ("rules", {"attempts": 0, "pass_share": 0.5}),
        ("rules", {"attempts": 2, "pass_share": 1.1}),
        ("rules", {"attempts": 2}),
        ("explanations", {"explanations": [{"position": 1}]}),
        ("explanations", {"explanations": [{"position": 1, "text": "x" * 5001}]}),
    ):
        alice.send("PUT", f"{path}/{part}", 400, wrong)
    assert alice.get(path) == explained


def test_an_assessor_trains_and_is_told_after_each_answer(alice, campaign, bob_client):
    choose_training_items(campaign=campaign, n=2, seed=1)
    alice.put(there(campaign, "/training/rules"), attempts=1, pass_share=1)
    start = bob_client.get(mine(campaign, "/training"))
    assert [(item["given"], item["reference"], item["explanation"]) for item in start["items"]] == [
        (None, None, "")
    ] * 2
    assert bob_client.rows("/me/campaigns")[0]["comes_first"] == "training"
    right = {item.position: item.grade for item in campaign.training_items.all()}
    wrong = (right[1] + 1) % 4
    outcome = bob_client.post(mine(campaign, "/training"), position=1, attempt=1, grade=wrong)
    assert (outcome["items"][0]["given"], outcome["items"][0]["reference"]) == (wrong, right[1])
    assert outcome["items"][1]["reference"] is None
    again = bob_client.post(mine(campaign, "/training"), position=1, attempt=1, grade=right[1])
    assert again["items"][0]["given"] == wrong
    bob_client.post(mine(campaign, "/training"), position=2, attempt=1, grade=right[2])
    bob_client.post(mine(campaign, "/training"), 409, position=1, attempt=2, grade=right[1])
    (stuck,) = alice.get(there(campaign, "/training/trainees"))["trainees"]
    assert (stuck["username"], stuck["n_answered"], stuck["n_right"], stuck["is_stuck"]) == (
        "bob",
        2,
        1,
        True,
    )
    alice.post(there(campaign, f"/assessors/{stuck['assessor']}/training-attempts"))
    assert bob_client.get(mine(campaign, "/training"))["attempt"] == 2
    for position in (1, 2):
        last = bob_client.post(
            mine(campaign, "/training"), position=position, attempt=2, grade=right[position]
        )
    assert (last["is_passed"], last["is_complete"]) == (True, True)
    assert bob_client.rows("/me/campaigns")[0]["comes_first"] is None
    alice.post(there(campaign, "/training/items"), 409, n=1)
    assert alice.get(there(campaign, "/training"))["is_fixed"] is True


# -- what is an assessor's own --------------------------------------------------------------------------------


def test_an_assessor_sees_own_campaigns_and_judgments(campaign, bob_client, bob):
    assert bob_client.rows("/me/campaigns")[0]["n_judged"] == 0
    token = lease(bob, slots(campaign)[0])
    dora = make_assessor(campaign, "dora")
    give(dora, slots(campaign)[1], 3)
    submit(assessor=bob, token=token, client_token=token, grade=2, comment="?", active_milliseconds=90_000)
    (row,) = bob_client.rows("/me/campaigns")
    assert (row["campaign"], row["name"], row["n_judged"], row["minutes"]) == (
        str(campaign.pk), campaign.name, 1, 1.5,
    )  # fmt: skip
    (judgment,) = bob_client.rows(mine(campaign, "/judgments"))
    assert (judgment["topic"], judgment["grade"], judgment["comment"]) == ("Need t0", 2, "?")
    end = bob_client.get(mine(campaign, "/completion"))
    assert (end["n_judged"], end["is_done"], end["code"], end["is_participant"]) == (1, False, "", False)


def test_nobody_elses_campaign_is_there_for_an_assessor(alice, campaign, bob_client):
    eve = api_client("eve", "assessor")
    for part in ("/judgments", "/consent", "/training", "/completion"):
        nowhere = eve.get(f"/me/campaigns/{uuid.uuid4()}{part}", 404)
        assert eve.get(mine(campaign, part), 404) == nowhere
        assert alice.get(mine(campaign, part), 404) == nowhere
    assert eve.rows("/me/campaigns") == eve.rows("/me/messages") == []
    eve.post(mine(campaign, "/consent"), 404, agrees=True)
    Campaign.objects.filter(pk=campaign.pk).update(state="closed")
    assert bob_client.rows("/me/campaigns") == []


def test_messages_are_read_by_whom_they_are_for(alice, campaign, bob_client, bob):
    sent = send(assessor=bob, text="Hello", sender=alice.user)
    (row,) = bob_client.rows("/me/messages", is_unread="true")
    assert (row["text"], row["campaign_name"], row["read_at"]) == ("Hello", campaign.name, None)
    assert "alice" not in str(row)
    eve = api_client("eve", "assessor")
    nowhere = eve.post(f"/me/messages/{2**40}/read", 404)
    assert eve.post(f"/me/messages/{sent.pk}/read", 404) == nowhere
    assert Message.objects.get().read_at is None
    first = bob_client.post(f"/me/messages/{sent.pk}/read")
    assert first["read_at"] is not None
    assert bob_client.post(f"/me/messages/{sent.pk}/read") == first
    assert bob_client.rows("/me/messages", is_unread="true") == []
    assert bob_client.rows("/me/messages") == [first]
    assert alice.rows(there(campaign, f"/assessors/{bob.pk}/messages"))[0]["read_at"] == first["read_at"]
    delete_campaign(campaign=campaign, confirmation=campaign.name, actor=alice.user)
    assert bob_client.rows("/me/messages") == []


def test_what_concerns_managers_is_not_there_for_others(campaign, bob_client, rita):
    nothing = bob_client.get(f"/campaigns/{uuid.uuid4()}/market", 404)
    parts = ("invitations", "market", "participants", "consent", "training", "training/trainees")
    for part in parts:
        for who in (bob_client, rita):
            assert who.get(there(campaign, f"/{part}"), 404) == nothing
    assert Assessor.objects.count() == 1
