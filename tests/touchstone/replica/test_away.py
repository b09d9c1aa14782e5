"""A replica that is behind, away, frozen or interrupted is missed by nobody."""

import re
import threading
import time
import uuid

import pytest
from django.db import OperationalError, connection, connections
from django.http import HttpResponse, StreamingHttpResponse
from django.test import Client
from job_kinds import until
from read_replica import address, asked, body_of, client_of, close, commit, is_replica, outcomes, where

from touchstone import health, replica

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("replica")]


# -- a replica that is behind, or away ------------------------------------------------------------------------------


def test_over_a_minute_behind_the_primary_answers_and_then_again_the_replica(stand, clock, caplog):
    made, _ = stand
    caplog.set_level("INFO", "touchstone.replica")
    assert asked(where).content == b"replica"
    with made.paused():
        commit()
        assert asked(where).content == b"replica", "so far it is behind by less"
        clock.ahead = 61.0
        assert asked(where).content == b"primary"
        assert 61 <= replica.watch.behind() < 90
        health.watch.forget()
        found = health.watch.health()
        assert found.status == "degraded"
        assert re.fullmatch(r"[678]\d s behind", found.checks["replica"])
    made.catch_up()
    until(replica.watch.is_usable, 20)
    assert asked(where).content == b"replica"
    health.watch.forget()
    assert health.watch.health().checks["replica"] == "ok"
    assert outcomes() == {"replica": 3, "behind": 1}
    said = [record.getMessage() for record in caplog.records if record.name == "touchstone.replica"]
    assert re.fullmatch(r"replica: [678]\d s behind; researchers' pages are read from the primary", said[0])
    assert said[1:] == ["replica: it is complete; researchers' pages are read from it"]


def test_where_nobody_writes_nothing_is_behind(stand, clock):
    made, _ = stand
    commit()
    made.catch_up()
    until(replica.watch.is_usable, 20)
    clock.ahead = 61.0
    assert time.monotonic() + 61 - replica.watch._complete_at > 60, "the control: that long nobody looked"
    until(replica.watch.is_usable, 20)
    time.sleep(0.3)
    naive = made.ask("SELECT extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())")
    assert naive > 0.2, "the control: the time of the last transaction tells of a lag"
    assert asked(where).content == b"replica"


def test_what_a_process_never_saw_complete_is_not_used(stand):
    made, _ = stand
    with made.paused():
        commit()
        replica.watch.forget()
        assert replica.watch.words() == "has not caught up yet"
        assert asked(where).content == b"primary"


def test_a_replica_that_is_away_is_told_and_missed_by_nobody(stand, caplog):
    made, world = stand
    client = client_of("rita")
    page = address(world, "console:export")
    assert body_of(client.get(page))
    made.stop()
    try:
        assert body_of(client.get(page))
        health.watch.forget()
        found = health.watch.health()
        assert (found.status, found.checks["replica"]) == ("degraded", "does not answer")
        assert outcomes() == {"replica": 1, "behind": 1}
        assert "replica: does not answer; researchers' pages are read from the primary" in caplog.messages
    finally:
        made.start()
    made.catch_up()
    assert asked(where).content == b"replica"


def test_one_that_goes_away_between_two_looks_costs_one_attempt(stand, monkeypatch, caplog):
    made, _ = stand
    monkeypatch.setattr(replica, "EVERY", 1000.0)
    assert asked(where).content == b"replica"
    made.ask("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    assert asked(where).content == b"primary"
    assert outcomes() == {"replica": 1, "failed": 1}
    assert any("the primary answers" in message for message in caplog.messages)
    assert asked(where).content == b"replica", "it was looked at anew"


def test_a_frozen_replica_leaves_the_process_ready_and_its_page_is_the_primarys(stand):
    made, _ = stand
    is_frozen, may_go_on = threading.Event(), threading.Event()
    reads = threading.Event()

    def view(request):
        if is_replica():
            reads.set()
            is_frozen.wait(20)
        return where()

    def freeze():
        reads.wait(20)
        with made.frozen():
            is_frozen.set()
            found.append(replica.watch.words())
            may_go_on.wait(60)
        connections.close_all()

    found = []
    thread = threading.Thread(target=freeze)
    thread.start()
    try:
        began = time.monotonic()
        assert asked(view).content == b"primary", "it was begun on the replica"
        assert replica.LONGEST_LOOK <= time.monotonic() - began < 10
        assert found == ["does not answer"]
        health.watch.forget()
        began = time.monotonic()
        answer = Client().get("/readyz")
        assert time.monotonic() - began < 5
        assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
        assert answer.json()["checks"]["replica"] == "does not answer"
        assert asked(where).content == b"primary"
        assert outcomes() == {"failed": 1, "behind": 1}
    finally:
        may_go_on.set()
        thread.join(30)
    until(replica.watch.is_usable, 20)
    assert [asked(where).content for _ in range(3)] == [b"replica"] * 3, "and both seats are free"


def test_an_open_connection_that_says_nothing_is_given_up(stand):
    made, _ = stand
    cursor = connections[replica.ALIAS].cursor()
    began = time.monotonic()
    with made.frozen(), pytest.raises(OperationalError), replica._within(0.7):
        cursor.execute("SELECT 1")
    assert 0.7 <= time.monotonic() - began < 5, "by itself it would wait for ever"
    connections[replica.ALIAS].close()
    with replica._within(0.7):
        assert is_replica_itself()
    time.sleep(0.8)
    assert is_replica_itself(), "the control: one that answers is left alone"


def is_replica_itself():
    with replica.reading():
        return is_replica()


def test_an_address_of_the_primary_is_no_replica(stand, monkeypatch):
    monkeypatch.setitem(connections[replica.ALIAS].settings_dict, "PORT", connection.settings_dict["PORT"])
    connections[replica.ALIAS].close()
    assert replica.watch.words() == "is no replica"
    assert asked(where).content == b"primary"


def test_a_long_reading_that_replay_ends_is_begun_again_on_the_primary(stand, caplog):
    made, _ = stand
    table = f"conflict_{uuid.uuid4().hex}"
    commit(f"CREATE TABLE {table} AS SELECT 1 AS n")
    made.catch_up()
    reads = threading.Event()

    def view(request):
        if not is_replica():
            return HttpResponse("primary")
        reads.set()
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT pg_sleep(60) FROM {table}")  # noqa: S608 (a name of this test)
        return HttpResponse("replica")

    def drop():
        reads.wait(20)
        while not made.ask("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"):
            time.sleep(0.02)
        commit(f"DROP TABLE {table}")

    thread = threading.Thread(target=drop)
    thread.start()
    try:
        assert asked(view).content == b"primary"
    finally:
        thread.join(30)
    assert outcomes() == {"failed": 1}
    assert "replica: SerializationFailure; the primary answers" in caplog.messages
    assert asked(where).content == b"replica", "the replica itself is well"


# -- seats, and what is streamed ------------------------------------------------------------------------------------


def streamed(request):
    def pieces():
        for _ in range(3):
            yield "replica " if is_replica() else "primary "

    return StreamingHttpResponse(pieces())


def test_every_piece_of_an_export_is_the_replicas_and_its_seat_comes_back(stand):
    for _ in range(3):  # there are two seats
        answer = asked(streamed)
        assert not is_replica()
        assert b"".join(answer.streaming_content) == b"replica " * 3
    left = asked(streamed)
    next(left.streaming_content)
    close(left)  # as the server does when the browser has gone away
    assert [asked(where).content for _ in range(2)] == [b"replica"] * 2
    assert outcomes() == {"replica": 6}


def test_two_that_wait_for_the_replica_leave_the_other_threads_to_judging(stand):
    waiting = [asked(streamed) for _ in range(2)]
    assert asked(where).content == b"primary"
    assert outcomes() == {"replica": 2, "busy": 1}
    for answer in waiting:
        close(answer)
    assert asked(where).content == b"replica"


def test_an_export_that_fails_before_its_first_piece_is_the_primarys(stand):
    def view(request):
        def pieces():
            if is_replica():
                with connection.cursor() as cursor:
                    cursor.execute("SELECT * FROM nowhere")
            yield "primary"

        return StreamingHttpResponse(pieces())

    for _ in range(3):
        assert b"".join(asked(view).streaming_content) == b"primary"
    assert outcomes() == {"failed": 3}
    assert b"".join(asked(lambda request: StreamingHttpResponse([])).streaming_content) == b""
    assert asked(where).content == b"replica"
