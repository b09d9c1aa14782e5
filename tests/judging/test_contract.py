"""The contract with assessors under a crowd and over HTTP: benchmarks/contract.py in small, each with its control.

A control breaks the same promise in the usual way, under the same load: if it passed, the test would be blind.
"""

import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import database_roles
import psycopg
import pytest
from django.db import connection, transaction

from judging.models import Judgment, Lease, Slot
from judging.services import assign
from judging.services.campaigns import set_status
from judging.services.errors import Refused
from judging.services.leases import requeue
from touchstone import embedded
from touchstone.rights import WEB

# For these lines alone: benchmarks/judging.py is not the package of that name, benchmarks/coverage.py not the tool
# that some library looks for.
sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
from parts.assessors import WebClient
from parts.claims import at_once, could_have, last_items, naive_storm, over_assigned, repeated, storm
from parts.resending import AT_ONCE, measure_resending
from parts.throwaway import assessors_of, make_campaign

sys.path.pop()
pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture(params=["as owner", "as web"])
def each_role(request, servers) -> Iterator[None]:
    """Once as everything else in these tests is asked, once as the product's web processes log in."""
    if request.param == "as owner":
        yield
        return
    request.getfixturevalue("made_roles")
    with database_roles.logged_in(servers, WEB):
        yield


# -- claims of a crowd --


@pytest.mark.usefixtures("each_role")
@pytest.mark.parametrize(("ahead", "is_one_request"), [(1, False), (2, True)])
def test_a_crowd_fills_every_slot_once_and_hears_no_false_no_work(ahead, is_one_request):
    found = storm(seed=ahead, n_items=60, n_assessors=12, ahead=ahead, is_one_request=is_one_request)
    assert found["assignments"] == 60 * 3
    for fault in ("over_assigned", "duplicates", "false_empty", "unfilled", "unexplained", "too_many_ahead"):
        assert found[fault] == 0, (fault, found)
    assert 1 <= found["leases_at_once"] <= ahead
    assert set(found["faults"]) <= {"AlreadyJudged"}  # by the assessor's other tab
    assert found["empty"] >= 12  # everybody ends with an empty answer, so some were checked


@pytest.mark.parametrize(("is_unique", "at_least"), [(False, 21), (True, 6)])
def test_the_usual_queryset_gives_the_same_crowd_too_much(child_environment, is_unique, at_least):
    for _ in range(5):  # on a busy machine the callers come one after the other, and less goes wrong
        found = naive_storm(child_environment["DATABASE_URL"], is_unique=is_unique)
        if found["over_assigned"] >= at_least:
            break
    assert found["over_assigned"] >= at_least
    assert found["assignments"] > 200 * 3
    if is_unique:
        assert found["duplicates"] == 0


@pytest.mark.usefixtures("each_role")
def test_three_callers_get_the_last_three_slots_of_an_item():
    assert last_items(seed=0, ahead=1, rounds=8) == {"calls": 24, "unserved": 0, "false_empty": 0}


def test_what_is_counted_as_too_much():
    given = [("bob", 1), ("dora", 1), ("emil", 1), ("bob", 2), ("bob", 2)]
    assert over_assigned(given, limit=3) == 0
    assert over_assigned(given, limit=2) == 1
    assert repeated(given) == 1


# -- "no work" --


class Holder:
    """Somebody who locks the only open slot and gives it back untouched: a claim that took another one, or died."""

    def __init__(self, database_url: str) -> None:
        self.connection = psycopg.connect(database_url)
        self.connection.execute("SELECT 1 FROM judging_slot WHERE state = 'open' FOR UPDATE")

    def let_go(self) -> None:
        self.connection.rollback()
        self.connection.close()


@pytest.fixture
def one_open_slot(child_environment) -> Iterator[tuple]:
    """The assessor, and the holder of the lock on the only slot left for them."""
    campaign = make_campaign(1, 1, n_topics=1)
    campaign.slots.filter(number__gt=1).delete()
    holder = Holder(child_environment["DATABASE_URL"])
    yield assessors_of(campaign)[0], holder
    holder.connection.close()


def test_a_locked_slot_is_waited_for_before_no_work_is_said(one_open_slot):
    bob, holder = one_open_slot
    threading.Timer(0.3, holder.let_go).start()
    began = time.monotonic()
    assert assign.claim(assessor=bob).item is not None
    assert time.monotonic() - began >= 0.25


def test_who_only_skips_locked_slots_says_no_work_falsely_and_is_caught(one_open_slot):
    bob, _ = one_open_slot
    with transaction.atomic():
        facts = assign._facts(bob.user_id, bob.campaign_id)
        claimed = assign._claim(facts, 1, is_patient=False)
    assert claimed.reason == "no work"
    assert could_have(bob) == 1


# -- the assessor's lock --


@pytest.mark.usefixtures("each_role")
def test_eight_tabs_of_one_assessor_get_the_same_lease():
    (bob,) = assessors_of(make_campaign(20, 1))

    claim = in_thread(lambda: assign.claim(assessor=bob).item.token)
    assert set(at_once([claim] * 8)) == set(Lease.objects.values_list("token", flat=True))
    assert Lease.objects.count() == Slot.objects.filter(state="leased").count() == 1


@pytest.mark.parametrize(("statements", "is_right"), [(2, True), (1, False)])
def test_the_lock_must_be_alone_in_its_statement(child_environment, statements, is_right):
    """A statement reads what was committed when it began: before it waited for the lock that stands in it."""
    url, lock = child_environment["DATABASE_URL"], "SELECT pg_advisory_xact_lock(7, 1)"
    read = "SELECT count(*) FROM trap"
    asked = [lock, read] if statements == 2 else [f"{lock}, ({read})"]

    def lease_unless_leased(barrier: threading.Barrier) -> None:
        with psycopg.connect(url) as mine:
            barrier.wait()
            for sql in asked:
                held = mine.execute(sql).fetchone()[-1]
            if not held:
                mine.execute("INSERT INTO trap VALUES (1)")
            time.sleep(0.02)  # the others wait for the lock meanwhile

    with psycopg.connect(url, autocommit=True) as other:
        other.execute("CREATE TABLE trap (assessor integer)")
        try:
            at_once([lease_unless_leased] * 8)
            leases = other.execute(read).fetchone()[0]
        finally:
            other.execute("DROP TABLE trap")
    assert (leases == 1) is is_right, leases


# -- managers meanwhile --


def in_thread(do):
    """Return a task for at_once(); what the product refuses is an answer too."""

    def task(barrier: threading.Barrier):
        try:
            connection.ensure_connection()
            barrier.wait()
            return do()
        except Refused as refusal:
            return refusal
        finally:
            connection.close()

    return task


@pytest.mark.usefixtures("each_role")
def test_who_is_suspended_while_he_claims_and_submits_is_left_without_a_lease():
    (bob,) = assessors_of(make_campaign(60, 1))
    for _ in range(20):
        token = assign.claim(assessor=bob).item.token
        sent = {"token": token, "client_token": uuid.uuid4(), "grade": 1}
        who = {"user_id": bob.user_id, "campaign_id": bob.campaign_id}
        submit = in_thread(lambda who=who, sent=sent: assign.submit_and_claim(**who, n=2, **sent))
        claim = in_thread(lambda: assign.claim(assessor=bob, n=2))
        at_once([submit, claim, in_thread(lambda: set_status(assessor=bob, status="suspended", actor=None))])
        assert not Slot.objects.filter(state="leased").exists()
        assert Judgment.objects.filter(client_token=sent["client_token"]).count() == 1
        set_status(assessor=bob, status="active", actor=None)


@pytest.mark.usefixtures("each_role")
def test_a_judgment_requeued_while_its_assessor_changes_his_mind_is_wanted_again_once():
    (bob,) = assessors_of(make_campaign(20, 1))
    for _ in range(20):
        token = assign.claim(assessor=bob).item.token
        stored = assign.submit(assessor=bob, token=token, client_token=uuid.uuid4(), grade=1)
        change = {"token": token, "client_token": uuid.uuid4(), "obstacle": "topic"}
        revise = in_thread(lambda change=change: assign.revise(assessor=bob, **change))
        at_once([revise, in_thread(lambda: requeue(assessor=bob, actor=None))])
        slots = Slot.objects.filter(item=stored.item_id)
        assert sorted(slots.values_list("purpose", "state")) == [("judge", "open")] * 3 + [("void", "done")]


# -- sent again, over HTTP --


@pytest.fixture
def client(child_environment, servers, made_roles) -> Iterator[WebClient]:
    """Bob's browser, and gunicorn as the product runs it: with the rights of a web process."""
    from touchstone.management.commands.stack import WEB as COMMAND

    database = child_environment["DATABASE_URL"].rpartition("/")[2]
    environment = {
        **child_environment,
        "DATABASE_URL": f"{servers.url_of(WEB).rpartition('/')[0]}/{database}",
    }
    campaign = make_campaign(20, 1)
    address = f"127.0.0.1:{embedded.free_port()}"
    command = [sys.executable, "-m", *COMMAND, "--bind", address, "--log-level", "error"]
    server = subprocess.Popen(command, env=environment)
    try:
        embedded.answers(f"http://{address}/livez")()
        yield WebClient(f"http://{address}/", campaign.pk, f"{campaign.name}-bob0")
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)


def test_a_judgment_sent_again_is_one_row_one_answer_and_with_another_grade_a_conflict(client):
    rounds = 12  # six times at once; then twice each: cut off before the reply, within it, within the request
    found = measure_resending(client, seconds=120, rounds=rounds)
    assert found["judgments"] == Judgment.objects.count() == rounds
    for fault in ("server_errors", "wrong_rows", "wrong_answers", "wrong_conflicts", "wrong_progress"):
        assert found[fault] == 0, (fault, found)
    assert found["statuses"] == {"200": 6 * AT_ONCE + 6 * 3, "409": 2 * rounds}
