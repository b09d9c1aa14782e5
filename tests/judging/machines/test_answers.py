"""Machine assessors: answers that are no grade, and an endpoint in trouble."""

import itertools
import time

import pytest
from machine_campaign import (
    N_ITEMS,
    grades_of,
    judge,
    make_campaign,
    n_leased,
    number_in,
    right,
    right_grades,
    spoil,
)
from model_server import ModelServer, completion

from judging.management.machine_model import LARGEST_ANSWER
from judging.models import (
    Assessor,
    Judgment,
    MachineCall,
    Slot,
)
from judging.services import assign
from touchstone.models import User

pytestmark = pytest.mark.django_db


def call_statuses():
    return list(MachineCall.objects.order_by("id").values_list("status", flat=True))


# -- answers that are none ----------------------------------------------------------------------------------

NOT_AN_ANSWER = {
    "prose": (completion("I would say it is quite relevant."), "I would say"),
    "off the scale": (completion('{"grade": 7}'), '{"grade": 7}'),
    "empty": (completion(""), ""),
    "no content": (completion(None), '"content": null'),
    "cut off": (completion('{"grade": 1}', finish="length"), "[length]"),
    "wrong JSON": ((200, {"grade": 1}), '{"grade": 1}'),
    "no choices": ((200, {"choices": []}), '{"choices": []}'),
    "a list": ((200, [1, 2]), "[1, 2]"),
    "not JSON": ((200, b"<html>grade: 1</html>"), "<html>"),
    "deep JSON": ((200, b"[" * 100_000), "[[["),
    "not UTF-8": ((200, b"\xff\xfe\x00"), ""),
    "nothing": ((200, b""), ""),
}


@pytest.mark.parametrize("how", NOT_AN_ANSWER)
def test_an_answer_without_a_clear_grade_is_a_failure_and_the_item_goes_to_others(how):
    campaign = make_campaign()
    answer, detail = NOT_AN_ANSWER[how]
    with ModelServer(spoil(3, 4, by=answer)) as server:
        done = judge(campaign, server)
    assert grades_of(campaign) == right_grades() | {3: "failed", 4: "failed"}
    assert (done["judged"], done["failed"], done["error"]) == (N_ITEMS - 2, 2, "")
    assert sorted(call_statuses()) == ["answered"] * (N_ITEMS - 2) + ["unusable"] * 2
    assert all(detail in call.detail for call in MachineCall.objects.filter(status="unusable"))
    assert set(Slot.objects.filter(state="open").values_list("position", flat=True)) == {3, 4}
    alice = Assessor.objects.create(campaign=campaign, user=User.objects.create(username="alice"))
    assert len(assign.claim(assessor=alice, n=10).items) == 2
    with ModelServer(right) as server:  # the machine itself never gets them again
        assert judge(campaign, server)["judged"] == 0


def test_a_long_answer_is_kept_to_2000_characters():
    campaign = make_campaign()
    with ModelServer(spoil(3, by=completion("é\0\ud800" + "x" * 5000))) as server:
        judge(campaign, server)
    kept = MachineCall.objects.get(status="unusable").detail
    assert len(kept) == 2000
    assert kept.startswith("é  xxx")


def test_a_huge_answer_is_not_read_to_its_end():
    campaign = make_campaign()
    endless = (200, itertools.repeat(b" " * 100_000))
    with ModelServer(spoil(3, by=endless)) as server:
        judge(campaign, server)
        assert server.n_bytes_sent < LARGEST_ANSWER + 20_000_000  # what the sockets buffer
    assert grades_of(campaign) == right_grades() | {3: "failed"}


def test_an_endpoint_that_refuses_an_item_does_not_stop_the_others():
    campaign = make_campaign()
    refusal = (400, {"error": {"message": "this content is filtered"}})
    with ModelServer(spoil(0, by=refusal)) as server:
        done = judge(campaign, server)
    assert grades_of(campaign) == right_grades() | {0: "failed"}
    assert done["calls"] == {"answered": N_ITEMS - 1, "refused": 1}
    assert "400" in MachineCall.objects.get(status="refused").detail
    assert "filtered" in MachineCall.objects.get(status="refused").detail
    assert len(server.asked) == N_ITEMS  # a refusal is not asked again


@pytest.mark.parametrize("status", [301, 401, 402, 404])
def test_a_wrong_key_address_or_model_ends_the_run_and_marks_nothing(status):
    campaign = make_campaign()
    with ModelServer(lambda prompt, n: (status, {"error": "no"}, {"Location": "/elsewhere"})) as server:
        done = judge(campaign, server)
    assert done["reason"] == "refused"
    assert "look at its address, the key and the model's name" in done["error"]
    assert not Judgment.objects.exists()
    assert n_leased() == 0
    assert set(call_statuses()) == {"refused"}
    assert set(server.paths) == {"/v1/chat/completions"}
    assert len(server.asked) <= 4


@pytest.mark.parametrize("answer", [completion("What?"), (400, {"error": "no such parameter"})])
def test_a_machine_that_grades_nothing_at_all_marks_nothing(answer):
    campaign = make_campaign()
    with ModelServer(lambda prompt, n: answer) as server:
        done = judge(campaign, server)
    assert done["reason"] == "no usable answer"
    assert not Judgment.objects.exists()
    assert n_leased() == 0
    assert MachineCall.objects.count() == len(server.asked) == N_ITEMS
    with ModelServer(right) as server:  # with a better prompt all of it can be judged
        assert judge(campaign, server)["judged"] == N_ITEMS


# -- an endpoint in trouble ---------------------------------------------------------------------------------


def trouble_first(times, trouble):
    return lambda prompt, n: trouble if n < times else right(prompt)


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_trouble_that_passes_is_waited_for(status):
    campaign = make_campaign(3)
    with ModelServer(trouble_first(2, (status, b"busy"))) as server:
        done = judge(campaign, server)
    assert grades_of(campaign) == right_grades(range(3))
    assert done["calls"] == {"answered": 3, "overloaded": 6}
    assert {call.detail for call in MachineCall.objects.filter(status="overloaded")} == {f"{status} busy"}


def test_retry_after_is_kept():
    campaign = make_campaign(1)
    times = []

    def busy_first(prompt, n):
        times.append(time.monotonic())
        return right(prompt) if n else (429, b"", {"Retry-After": "1"})

    with ModelServer(busy_first) as server:
        judge(campaign, server)
    assert times[1] - times[0] >= 1.0


def test_endless_trouble_ends_the_run_and_marks_nothing():
    campaign = make_campaign()
    with ModelServer(lambda prompt, n: (503, b"down")) as server:
        done = judge(campaign, server, **{"--retries": 2, "--parallel": 1})
    assert done["reason"] == "unreachable"
    assert "does not answer" in done["error"]
    assert not Judgment.objects.exists()
    assert n_leased() == 0
    assert call_statuses() == ["overloaded"] * 3
    assert len(server.asked) == 3


def test_a_refused_connection_ends_the_run_and_marks_nothing():
    campaign = make_campaign()
    done = judge(campaign, None, endpoint="http://127.0.0.1:9/v1", **{"--retries": 1, "--parallel": 1})
    assert done["reason"] == "unreachable"
    assert not Judgment.objects.exists()
    assert n_leased() == 0
    assert call_statuses() == ["unreachable"] * 2
    assert "ConnectError" in MachineCall.objects.first().detail


def drip():
    while True:
        yield b" "
        time.sleep(0.05)


def silence():
    time.sleep(30)
    yield b"{}"


@pytest.mark.parametrize("slowly", [drip, silence])
def test_an_endpoint_that_is_too_slow_is_not_waited_for(slowly):
    campaign = make_campaign()
    with ModelServer(lambda prompt, n: (200, slowly())) as server:
        start = time.monotonic()
        done = judge(campaign, server, **{"--timeout": 0.3, "--retries": 1, "--parallel": 1})
        assert time.monotonic() - start < 15
    assert done["reason"] == "unreachable"
    assert not Judgment.objects.exists()
    assert call_statuses() == ["unreachable"] * 2
    assert "0.3 seconds" in MachineCall.objects.first().detail


def test_an_item_that_breaks_the_endpoint_again_and_again_is_a_failure():
    campaign = make_campaign()
    with ModelServer(spoil(0, by=(500, b"crashed"))) as server:
        done = judge(campaign, server, **{"--retries": 3})
    assert grades_of(campaign) == right_grades() | {0: "failed"}
    assert done["calls"] == {"answered": N_ITEMS - 1, "overloaded": 4}


def test_an_item_that_came_too_fast_again_and_again_is_asked_later():
    campaign = make_campaign()

    def busy_for_one(prompt, n):
        return (429, b"slow down") if number_in(prompt) == 0 and n < 3 else right(prompt)

    with ModelServer(busy_for_one) as server:
        done = judge(campaign, server, **{"--retries": 1, "--batch": 4, "--parallel": 2})
    assert grades_of(campaign) == right_grades()
    assert done["reason"] == "no work"
