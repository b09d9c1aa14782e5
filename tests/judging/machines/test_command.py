"""The command of machine assessors: its refusals, and the parts that wait and limit."""

import io
import uuid

import pytest
from django.core.management import CommandError, call_command
from machine_campaign import judge, make_campaign, right
from model_server import ModelServer

from judging.management import machine_run
from judging.management.machine_model import Pace, seconds_of
from judging.management.machine_run import wait_before
from judging.models import (
    Assessor,
    Campaign,
    Collection,
    GoldAnswer,
    Judgment,
    Slot,
)
from touchstone.models import User

pytestmark = pytest.mark.django_db


# -- the command's own refusals -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"--as": None}, "name the machine with --as"),
        ({"--model": None}, "name the --model"),
        ({"--most-cost": 1}, "needs --price-in or --price-out"),
        ({"--api-key-env": "NOT_SET_ANYWHERE"}, "NOT_SET_ANYWHERE is not set"),
        ({"--address": "http://127.0.0.1:1"}, "needs --token-env"),
        ({"--prompt": "/nowhere/prompt.txt"}, "No such file"),
        ({"--batch": 51}, "51 is not in 1..50"),
        ({"--rate": 0}, "not more than 0"),
        ({"--price-in": "cheap"}, "is no amount"),
        ({"--set": "stream=true"}, "'stream' cannot be set"),
        ({"--set": "stop=end"}, "is no JSON"),
        ({"--endpoint": "ftp://127.0.0.1"}, "begins with http"),
        ({"--endpoint": "http://me:secret@127.0.0.1"}, "begins with http"),
    ],
)
def test_what_the_command_cannot_do_it_says_in_a_line(changes, words):
    campaign = make_campaign(1)
    endpoint = changes.pop("--endpoint", "http://127.0.0.1:9/v1")
    assert words in judge(campaign, None, endpoint=endpoint, **changes)["error"]
    assert not Judgment.objects.exists()


def test_a_prompt_that_cannot_work_is_refused_before_anything_is_claimed(tmp_path):
    file = tmp_path / "prompt.txt"
    file.write_text("Judge {doc}")
    campaign = make_campaign(1)
    options = {"endpoint": "http://127.0.0.1:9/v1"}
    assert "no field {doc}" in judge(campaign, None, **options, **{"--prompt": file})["error"]
    Campaign.objects.update(machine_prompt="{document_text} and so on")
    assert "must end with {document_text}" in judge(campaign, None, **options)["error"]
    assert not Slot.objects.filter(state="leased").exists()


def test_without_an_endpoint_the_assessor_is_made_and_nothing_else():
    campaign = make_campaign(1)
    for _ in range(2):
        out = io.StringIO()
        call_command("machine_assessor", campaign.name, "--as", "robot", stdout=out)
        assert out.getvalue() == f"robot is a machine assessor of {campaign.name}\n"
    robot = Assessor.objects.get()
    assert (robot.kind, robot.tier, robot.user.has_usable_password()) == ("machine", "bronze", False)
    assert not Slot.objects.filter(state="leased").exists()


def test_a_person_is_not_turned_into_a_machine():
    campaign = make_campaign(1)
    Assessor.objects.create(campaign=campaign, user=User.objects.create(username="bob"))
    done = judge(campaign, None, endpoint="http://127.0.0.1:9/v1", **{"--as": "bob"})
    assert "bob is a human assessor of this campaign" in done["error"]


def test_a_campaign_is_named_by_id_or_name_and_must_be_there():
    campaign = make_campaign(1)
    out = io.StringIO()
    with ModelServer(right) as server:
        words = ["--as", "robot", "--endpoint", server.endpoint, "--model", "tiny"]
        call_command("machine_assessor", campaign.name, *words, stdout=out, stderr=io.StringIO())
        assert out.getvalue().startswith(
            "1 judged, 0 failed; calls: 1 answered; cost 0.00000000; ended: no work"
        )
        for name in ("nothing like it", str(uuid.uuid4())):
            with pytest.raises(CommandError, match="there is no campaign"):
                call_command("machine_assessor", name, *words)


def test_a_key_in_clear_text_is_warned_of(monkeypatch):
    """192.0.2.1 is set aside for examples; the campaign is closed, so that nothing is sent there."""
    monkeypatch.setenv("KEY_OF_THE_TEST", "secret")
    campaign = make_campaign(1, state="closed")
    done = judge(campaign, None, endpoint="http://192.0.2.1/v1", **{"--api-key-env": "KEY_OF_THE_TEST"})
    assert "The key travels unencrypted to 192.0.2.1." in done["progress"]
    done = judge(campaign, None, endpoint="http://127.0.0.1/v1", **{"--api-key-env": "KEY_OF_THE_TEST"})
    assert "unencrypted" not in done["progress"]


# -- the parts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("3", 3.0),
        ("0.5", 0.5),
        ("-1", 0.0),
        ("999999", 600.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("", None),
        ("soon", None),
        ("nan", None),
        ("inf", None),
    ],
)
def test_retry_after_is_a_number_or_a_date(header, seconds):
    assert seconds_of(header) == seconds


def test_waits_double_up_to_a_minute_and_are_never_the_same_for_all(monkeypatch):
    monkeypatch.setattr(machine_run, "FIRST_WAIT", 1.0)
    for turn, most in enumerate([1, 2, 4, 8, 16, 32, 60, 60, 60]):
        waits = [wait_before(turn, None) for _ in range(50)]
        assert most / 2 <= min(waits) < max(waits) <= most
    assert all(7 <= wait_before(5, 7.0) <= 7.7 for _ in range(50))


def test_a_bucket_lets_a_burst_through_and_then_the_rate():
    pace = Pace(per_minute=60, burst=3)
    waits = [pace.take() for _ in range(6)]
    assert waits[:3] == [0, 0, 0]
    assert waits[3:] == pytest.approx([1, 2, 3], abs=0.1)
    assert Pace(per_minute=None, burst=1).take() == 0


@pytest.mark.django_db
def test_a_file_of_a_machines_grades_never_becomes_gold(tmp_path):
    collection = Collection.objects.create(name="machines are never gold")
    (tmp_path / "m.qrels").write_text("t1 0 d1 2\n")
    arguments = [str(tmp_path / "m.qrels"), "--collection", collection.name, "--gold", "--kind", "machine"]
    with pytest.raises(CommandError, match="never a gold answer"):
        call_command("import_judgments", *arguments)
    assert not GoldAnswer.objects.exists()
