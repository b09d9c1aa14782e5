"""Several machine assessors at once, and their ends; the machine's address and the tool over REST."""

import json
import signal
import subprocess
import sys
import threading
import time
import uuid
from decimal import Decimal
from pathlib import Path

import pytest
from django.db.models import Sum
from machine_campaign import grades_of, judge, make_campaign, n_leased, right, right_grades, spoil
from model_server import ModelServer, completion

from judging.management import machine_clients
from judging.management.machine_clients import LONGEST_BODY, Verdict, bodies
from judging.models import (
    Assessor,
    Judgment,
    MachineCall,
    Slot,
)
from judging.services import machines
from touchstone import uploads
from touchstone.authentication import make_token
from touchstone.models import User

pytestmark = pytest.mark.django_db

REPOSITORY = Path(__file__).resolve().parents[3]


# -- several machines, and their ends -----------------------------------------------------------------------


def start_machine(child_environment, campaign, server, username="robot", **more):
    arguments = {"--as": username, "--endpoint": server.endpoint, "--model": "tiny", "--batch": 4, **more}
    words = [str(word) for pair in arguments.items() for word in pair]
    return subprocess.Popen(
        [sys.executable, "manage.py", "machine_assessor", str(campaign.pk), *words, "--output", "json"],
        cwd=REPOSITORY,
        env=child_environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process):
    out, err = process.communicate(timeout=60)
    return process.returncode, json.loads(out) if out else {}, err


@pytest.mark.django_db(transaction=True)
def test_two_machines_at_once_judge_each_item_once_each(child_environment):
    campaign = make_campaign(30, k=2)

    def unhurried(prompt, n):
        time.sleep(0.01)
        return right(prompt)

    with ModelServer(unhurried) as server:
        both = [start_machine(child_environment, campaign, server, name) for name in ("one", "two")]
        codes = [ended(process)[0] for process in both]
    assert codes == [0, 0]
    assert Slot.objects.filter(state="done").count() == 60
    for name in ("one", "two"):
        assert Judgment.objects.filter(assessor__user__username=name, slot__isnull=False).count() == 30
    assert Judgment.objects.count() == MachineCall.objects.count() == 60


@pytest.mark.django_db(transaction=True)
def test_one_machine_started_twice_judges_nothing_twice(child_environment):
    campaign = make_campaign(20)

    def unhurried(prompt, n):
        time.sleep(0.02)
        return right(prompt)

    with ModelServer(unhurried) as server:
        both = [start_machine(child_environment, campaign, server) for _ in range(2)]
        for process in both:
            ended(process)
        judge(campaign, server)
    assert grades_of(campaign) == right_grades(range(20))


@pytest.mark.django_db(transaction=True)
def test_a_machine_killed_in_mid_run_loses_nothing_and_doubles_nothing(child_environment):
    """It is killed when the model has answered some of a batch that was not sent yet."""
    campaign = make_campaign(12)
    reached = threading.Event()

    def slow_after_six(prompt, n):
        if len(server.asked) > 6:
            reached.set()
            time.sleep(0.2)
        return right(prompt)

    with ModelServer(slow_after_six) as server:
        process = start_machine(child_environment, campaign, server, **{"--parallel": 1})
        assert reached.wait(60)
        process.send_signal(signal.SIGKILL)
        assert ended(process)[0] == -signal.SIGKILL
        left = Judgment.objects.count()
        held = set(Slot.objects.filter(state="leased").values_list("token", flat=True))
        assert left == 4
        assert len(held) == 4
        code, summary, _ = ended(start_machine(child_environment, campaign, server))
    assert (code, summary["judged"]) == (0, 8)
    assert grades_of(campaign) == right_grades(range(12))
    assert Slot.objects.filter(state="done").count() == 12
    # The very leases that the killed one held were judged: they came back first.
    assert held <= set(Judgment.objects.values_list("lease_token", flat=True))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_machine_stores_what_was_answered_and_gives_the_rest_back(number, child_environment):
    campaign = make_campaign(12)
    reached = threading.Event()

    def slow(prompt, n):
        if len(server.asked) == 3:
            reached.set()
        time.sleep(0.1)
        return right(prompt)

    with ModelServer(slow) as server:
        process = start_machine(child_environment, campaign, server, **{"--parallel": 1, "--batch": 10})
        assert reached.wait(60)
        process.send_signal(number)
        code, summary, error = ended(process)
    assert (code, summary["reason"]) == (0, "interrupted"), error
    assert 3 <= summary["judged"] < 10
    assert Judgment.objects.count() == len(server.asked) == summary["judged"]
    assert n_leased() == 0


# -- over REST ----------------------------------------------------------------------------------------------


@pytest.fixture
def touchstone(live_server, monkeypatch):
    """Return a function: the options with which a machine judges over the API of a live server."""

    def options(user, campaign):
        key = make_token(user=user, name=str(uuid.uuid4()), days=1)[1]
        monkeypatch.setenv("TOUCHSTONE_KEY_OF_THE_TEST", key)
        return {"--address": live_server.url, "--token-env": "TOUCHSTONE_KEY_OF_THE_TEST", "--as": None}

    return options


@pytest.mark.django_db(transaction=True)
def test_over_rest_it_is_the_same(touchstone):
    campaign = make_campaign(20)
    robot = machines.add_machine(campaign=campaign, username="robot")
    answers = spoil(3, 4, by=completion("é\ud83d\ude00" * 3000))
    with ModelServer(answers) as server:
        done = judge(campaign, server, **touchstone(robot.user, campaign), **{"--price-in": 1})
    assert done["error"] == ""
    assert grades_of(campaign) == right_grades(range(20)) | {3: "failed", 4: "failed"}
    assert MachineCall.objects.count() == 20
    assert (
        Decimal(done["cost"]) == MachineCall.objects.aggregate(cost=Sum("cost"))["cost"] == Decimal("0.002")
    )
    assert "Need: A need" in server.prompts[0]


@pytest.mark.django_db(transaction=True)
def test_over_rest_an_unreachable_endpoint_gives_the_leases_back(touchstone):
    campaign = make_campaign()
    robot = machines.add_machine(campaign=campaign, username="robot")
    done = judge(
        campaign,
        None,
        endpoint="http://127.0.0.1:9/v1",
        **touchstone(robot.user, campaign),
        **{"--retries": 0, "--parallel": 1},
    )
    assert done["reason"] == "unreachable"
    assert (Judgment.objects.count(), MachineCall.objects.count(), n_leased()) == (0, 1, 0)


@pytest.mark.django_db(transaction=True)
def test_over_rest_a_bad_key_and_a_person_are_turned_away(touchstone, monkeypatch):
    campaign = make_campaign()
    robot = machines.add_machine(campaign=campaign, username="robot")
    bob = User.objects.create(username="bob")
    Assessor.objects.create(campaign=campaign, user=bob)
    with ModelServer(right) as server:
        done = judge(campaign, server, **touchstone(bob, campaign))
        assert "Only machine assessors may do this" in done["error"]
        done = judge(campaign, server, **touchstone(User.objects.create(username="charlie"), campaign))
        assert "There is no such campaign" in done["error"]
        options = touchstone(robot.user, campaign)
        monkeypatch.setenv("TOUCHSTONE_KEY_OF_THE_TEST", "nonsense")
        assert "This key is not valid" in judge(campaign, server, **options)["error"]
    assert server.asked == []


@pytest.mark.django_db(transaction=True)
def test_over_rest_a_server_that_was_away_is_asked_again(touchstone, monkeypatch):
    """A reply is lost after the judgments were stored: the same request comes again and changes nothing."""
    monkeypatch.setattr(machine_clients, "_waits", lambda: iter([0.01] * 3))
    campaign = make_campaign(3)
    robot = machines.add_machine(campaign=campaign, username="robot")
    lost = []
    original = machine_clients.httpx.Client.request

    def lose_the_first_reply(self, method, url, **named):
        answer = original(self, method, url, **named)
        if url.endswith("/batch") and not lost:
            lost.append(url)
            raise machine_clients.httpx.ReadError("connection reset")
        return answer

    monkeypatch.setattr(machine_clients.httpx.Client, "request", lose_the_first_reply)
    with ModelServer(right) as server:
        done = judge(campaign, server, **touchstone(robot.user, campaign))
    assert (done["error"], done["judged"], done["refused"], len(lost)) == ("", 3, 0, 1)
    assert grades_of(campaign) == right_grades(range(3))
    assert MachineCall.objects.count() == 3


def test_requests_are_never_longer_than_the_api_takes():
    assert LONGEST_BODY < uploads.SMALL
    call = {
        "token": str(uuid.uuid4()), "status": "unreachable", "model": "m" * 200, "detail": "\U0001f600" * 2000,
        "prompt_tokens": 2**31 - 1, "completion_tokens": 2**31 - 1, "milliseconds": 2**31 - 1,
        "cost": Decimal("999999.99999999"),
    }  # fmt: skip
    judgment = {
        "token": call["token"],
        "client_token": call["token"],
        "grade": 9,
        "active_milliseconds": 2**31 - 1,
    }
    short = {**call, "detail": "x" * 10}
    verdicts = [
        Verdict({**judgment, "grade": n}, [short] * (n % 3 + 1) if n % 7 else [call] * 3) for n in range(120)
    ]
    sent = [json.loads(body) for body in bodies(verdicts)]
    assert max(len(body.encode()) for body in bodies(verdicts)) <= LONGEST_BODY
    assert [one["grade"] for body in sent for one in body["judgments"]] == list(range(120))
    assert max(len(body["judgments"]) for body in sent) <= 50
    assert sum(len(body["calls"]) for body in sent) == sum(len(verdict.calls) for verdict in verdicts)
