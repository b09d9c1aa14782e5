"""The batch address of machine assessors: each judgment and call by itself, once, and only for machines."""

import threading
import uuid

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client
from machine_campaign import N_ITEMS, call_for, judge, n_leased, right
from model_server import ModelServer

from judging.models import (
    Assessor,
    GoldAnswer,
    Judgment,
    MachineCall,
    Slot,
)
from judging.services import assign, machines
from judging.services.errors import AlreadyJudged, GradeOffScale, LeaseUnknown
from touchstone.models import User

pytestmark = pytest.mark.django_db


# -- the batch address --------------------------------------------------------------------------------------


def post_batch(assessor, body, name="batch"):
    client = Client()
    client.force_login(assessor.user)
    return client.post(f"/api/v1/campaigns/{assessor.campaign_id}/{name}", body, "application/json")


def bodies_for(assessor, n, **changes):
    held = assign.claim(assessor=assessor, n=n).items
    return [
        {"token": str(one.token), "client_token": str(uuid.uuid4()), "grade": 1, **changes} for one in held
    ]


def test_one_bad_judgment_does_not_spoil_the_others(robot):
    good, off, obstacle, both, late = bodies_for(robot, 5)
    unknown = {**late, "token": str(uuid.uuid4()), "client_token": str(uuid.uuid4())}
    obstacle = {"token": obstacle["token"], "client_token": obstacle["client_token"], "obstacle": "failed"}
    sent = [good, {**off, "grade": 9}, "nonsense", obstacle, {**both, "grade": None}, unknown, {}, late, None]
    answer = post_batch(robot, {"judgments": sent})
    assert answer.status_code == 200
    saved = answer.json()["saved"]
    assert [entry["status"] for entry in saved] == [200, 400, 400, 200, 400, 404, 400, 200, 400]
    assert [entry["token"] for entry in saved] == [
        good["token"],
        off["token"],
        None,
        obstacle["token"],
        both["token"],
        unknown["token"],
        None,
        late["token"],
        None,
    ]
    assert saved[0] == {"token": good["token"], "grade": 1, "obstacle": "", "status": 200}
    assert saved[5]["type"] == "/problems/LeaseUnknown"
    assert Judgment.objects.count() == 3


def test_the_same_batch_twice_is_stored_once(robot):
    sent = bodies_for(robot, 3)
    body = {"judgments": sent, "calls": [call_for(one) for one in sent]}
    first, second = post_batch(robot, body), post_batch(robot, body)
    assert first.json() == second.json()
    assert [entry["status"] for entry in first.json()["saved"] + first.json()["calls"]] == [200] * 6
    assert (Judgment.objects.count(), MachineCall.objects.count()) == (3, 3)
    other = post_batch(robot, {"judgments": [{**sent[0], "grade": 2}]}).json()["saved"][0]
    assert (other["status"], other["type"]) == (409, "/problems/TokenReused")
    again = post_batch(robot, {"judgments": [{**sent[0], "client_token": str(uuid.uuid4())}]}).json()[
        "saved"
    ][0]
    assert (again["status"], again["type"]) == (409, "/problems/AlreadyJudged")


@pytest.mark.django_db(transaction=True)
def test_the_same_batch_eight_times_at_once_is_stored_once(robot):
    sent = bodies_for(robot, 4)
    body = {"judgments": sent, "calls": [call_for(one) for one in sent]}
    answers = []

    def send():
        try:
            answers.append(post_batch(robot, body).json())
        finally:
            connection.close()

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    assert all(answer == answers[0] for answer in answers)
    assert (Judgment.objects.count(), MachineCall.objects.count()) == (4, 4)


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "great"},
        {"model": ""},
        {"model": "m" * 201},
        {"detail": "x" * 2001},
        {"detail": "\0"},
        {"cost": "-1"},
        {"cost": "NaN"},
        {"cost": "1e300"},
        {"prompt_tokens": -1},
        {"milliseconds": 2**31},
        {"token": "x"},
    ],
)
def test_a_call_that_cannot_be_stored_does_not_spoil_the_others(robot, changes):
    sent = bodies_for(robot, 2)
    calls = [call_for(sent[0], **changes), "nonsense", call_for(sent[1])]
    answer = post_batch(robot, {"judgments": sent, "calls": calls}).json()
    assert [entry["status"] for entry in answer["calls"]] == [400, 400, 200]
    assert [entry["status"] for entry in answer["saved"]] == [200, 200]
    assert MachineCall.objects.count() == 1


def test_a_call_needs_a_lease_of_ones_own(robot):
    sent = bodies_for(robot, 1)
    other = machines.add_machine(campaign=robot.campaign, username="other")
    calls = [call_for(sent[0]), call_for({"token": str(uuid.uuid4())})]
    answer = post_batch(other, {"calls": calls}).json()
    assert [entry["status"] for entry in answer["calls"]] == [404, 404]
    assert not MachineCall.objects.exists()


def test_calls_of_a_refused_judgment_are_kept(robot):
    sent = bodies_for(robot, 1, grade=9)
    post_batch(robot, {"judgments": sent, "calls": [call_for(sent[0])]})
    assert (Judgment.objects.count(), MachineCall.objects.count()) == (0, 1)


def test_only_machines_send_calls_give_leases_back_and_read_the_prompt(robot):
    bob = Assessor.objects.create(campaign=robot.campaign, user=User.objects.create(username="bob"))
    sent = bodies_for(bob, 1)
    for body in ({"judgments": sent, "calls": [call_for(sent[0])]}, {"release": [sent[0]["token"]]}):
        answer = post_batch(bob, body)
        assert (answer.status_code, answer.json()["type"]) == (403, "/problems/NotAMachine")
    client = Client()
    client.force_login(bob.user)
    assert client.get(f"/api/v1/campaigns/{bob.campaign_id}/instructions").status_code == 403
    assert not Judgment.objects.exists()
    assert post_batch(bob, {"judgments": sent}).json()["saved"][0]["status"] == 200


def test_a_machine_gives_back_its_own_leases_alone(robot):
    other = machines.add_machine(campaign=robot.campaign, username="other")
    own, others = bodies_for(robot, 2), bodies_for(other, 1)
    body = {"release": [own[0]["token"], others[0]["token"], str(uuid.uuid4())]}
    assert post_batch(robot, body).json()["released"] == 1
    assert n_leased() == 2


@pytest.mark.parametrize(
    "body",
    [
        {"judgments": [{}] * 51},
        {"judgments": {}},
        {"calls": "x"},
        {"release": ["x"]},
        {"release": [None]},
        [],
    ],
)
def test_a_batch_that_is_none_is_refused_as_a_whole(robot, body):
    answer = post_batch(robot, body)
    assert (answer.status_code, answer.json()["type"]) == (400, "/problems/Invalid")


def test_charlie_is_in_no_campaign_and_learns_nothing(robot):
    charlie = Assessor(user=User.objects.create(username="charlie"), campaign=robot.campaign)
    known = post_batch(charlie, {"judgments": []})
    nowhere = post_batch(Assessor(user=charlie.user, campaign_id=uuid.uuid4()), {"judgments": []})
    assert known.status_code == nowhere.status_code == 404
    assert known.content == nowhere.content


def test_the_services_give_the_reasons(robot):
    one, two = bodies_for(robot, 2)
    entries = [
        {"token": uuid.UUID(one["token"]), "client_token": uuid.uuid4(), "grade": 1},
        {"token": uuid.UUID(one["token"]), "client_token": uuid.uuid4(), "grade": 1},
        {"token": uuid.UUID(two["token"]), "client_token": uuid.uuid4(), "grade": 5},
        {"token": uuid.uuid4(), "client_token": uuid.uuid4(), "grade": 1},
    ]
    outcomes, stored = machines.save_batch(assessor=robot, submissions=entries)
    assert [type(outcome) for outcome in outcomes] == [Judgment, AlreadyJudged, GradeOffScale, LeaseUnknown]
    assert stored == []


# -- never gold ---------------------------------------------------------------------------------------------


def test_the_database_refuses_a_machine_the_gold_tier(robot):
    for change in ({"tier": "gold"}, {"tier": "gold", "kind": "machine"}):
        with pytest.raises(IntegrityError, match="judging_assessor_no_machine_gold"), transaction.atomic():
            Assessor.objects.filter(pk=robot.pk).update(**change)
    alice = Assessor.objects.create(
        campaign=robot.campaign, user=User.objects.create(username="alice"), tier="gold"
    )
    with pytest.raises(IntegrityError, match="judging_assessor_no_machine_gold"), transaction.atomic():
        Assessor.objects.filter(pk=alice.pk).update(kind="machine")


def test_a_machine_is_never_given_an_audit_slot(robot):
    Slot.objects.update(purpose="audit")
    assert assign.claim(assessor=robot, n=10).items == []


def test_what_a_machine_judges_makes_no_gold_answer(robot):
    with ModelServer(right) as server:
        judge(robot.campaign, server)
    assert Judgment.objects.count() == N_ITEMS
    assert not GoldAnswer.objects.exists()
