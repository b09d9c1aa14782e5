"""A seal holds every row up to its id, whoever writes meanwhile; and the job that makes seals."""

import random
import threading
import time

import psycopg
import pytest
from django.db import connection, transaction
from ledger_world import add_rows, run
from quick_flush import unguarded

from touchstone import jobs, tasks
from touchstone.chain import BEGINNING, extend
from touchstone.ledger import sealing
from touchstone.ledger.rows import TABLES, columns_of, lines
from touchstone.ledger.verification import chain_faults
from touchstone.models import Event, Job, Seal, ledger_head
from touchstone.watermark import Watermark, settle

EVENT = "touchstone_event"
N_WRITERS, SECONDS = 8, 2.0


def seals_of(table):
    return list(Seal.objects.filter(table=table).order_by("up_to_id"))


@pytest.mark.usefixtures("sealed")
def test_a_seal_continues_the_one_before_it():
    first, second, third = seals_of(EVENT)
    assert [one.n_rows for one in (first, second, third)] == [3, 3, 3]
    columns = sorted(("at", "actor_id", "verb", "subject", "detail", "salt"))
    assert first.columns == columns
    found = [one for _, one in lines(EVENT, columns, 0, second.up_to_id)]
    assert extend(BEGINNING, found[:3]).hex() == first.head
    assert extend(BEGINNING, found).hex() == second.head
    # Seals are sealed: the newest head of theirs stands for all.
    of_seals = seals_of(Seal.OF_SEALS)
    assert [one.n_rows for one in of_seals] == [len(TABLES), len(TABLES) + 1, len(TABLES) + 1]
    assert ledger_head() == of_seals[-1].head
    assert sealing.seal_new_rows()[0] == []  # nothing is new


@pytest.mark.usefixtures("sealed")
def test_a_seal_has_so_many_rows_at_most(monkeypatch):
    monkeypatch.setattr(sealing, "MOST_ROWS", 2)
    run("SET LOCAL session_replication_role = replica")
    add_rows(EVENT, 1, 5)
    made = [one for one in sealing.seal_new_rows()[0] if one.table == EVENT]
    assert [one.n_rows for one in made] == [2, 2, 1]
    assert list(chain_faults()) == []


@pytest.mark.usefixtures("sealed")
def test_a_column_that_comes_later_enters_later_seals():
    run("ALTER TABLE touchstone_event ADD COLUMN place text NOT NULL DEFAULT 'here'")
    run("SET LOCAL session_replication_role = replica")
    add_rows(EVENT, 10, 12)
    sealing.seal_new_rows()
    before, now = seals_of(EVENT)[-2:]
    assert ("place" in before.columns, "place" in now.columns) == (False, True)
    assert list(chain_faults()) == []
    with unguarded([EVENT]):
        run("UPDATE touchstone_event SET place = 'there' WHERE id <= %s", before.up_to_id)
        assert list(chain_faults()) == []
        run("UPDATE touchstone_event SET place = 'there' WHERE id = %s", now.up_to_id)
    [fault] = chain_faults()
    assert fault.startswith(f"{EVENT}: the seal of ids {before.up_to_id + 1} to {now.up_to_id} of ")


@pytest.mark.django_db
def test_seals_stay_as_they_are():
    Event.objects.create(verb="x", subject="y")
    sealing.seal_new_rows()
    for change in ("UPDATE touchstone_seal SET n_rows = 2", "DELETE FROM touchstone_seal"):
        with pytest.raises(Exception, match="append-only"), transaction.atomic():
            run(change)


# -- while others write ---------------------------------------------------------------------------------------


def write(address, end):
    """Write two events in a transaction that lasts some milliseconds, again and again."""
    chance = random.Random(threading.get_ident())
    sql = (
        "INSERT INTO touchstone_event (at, verb, subject, detail) VALUES (clock_timestamp(), 'x', 'y', '{}')"
    )
    with psycopg.connect(**address) as writer:
        while not end.is_set():
            writer.execute(sql)
            time.sleep(chance.random() / 50)
            writer.execute(sql)
            if chance.random() < 0.1:
                writer.rollback()
            else:
                writer.commit()


def seals_that_missed(monkeypatch, rule):
    """Seal again and again while eight others write; return how many seals there are, and how many miss rows."""
    monkeypatch.setattr(sealing, "settle", rule)
    monkeypatch.setattr(sealing, "TABLES", (EVENT,))
    settings = connection.get_connection_params()
    address = {
        key: settings[key] for key in ("dbname", "user", "password", "host", "port") if key in settings
    }
    end = threading.Event()
    writers = [threading.Thread(target=write, args=(address, end)) for _ in range(N_WRITERS)]
    for writer in writers:
        writer.start()
    until = time.monotonic() + SECONDS
    try:
        while time.monotonic() < until:
            sealing.seal_new_rows()
    finally:
        end.set()
        for writer in writers:
            writer.join(20)
    after, missed = 0, 0
    seals = seals_of(EVENT)
    for seal in seals:
        n = len(list(lines(EVENT, list(columns_of(EVENT)), after, seal.up_to_id)))
        missed += n != seal.n_rows
        after = seal.up_to_id
    return len(seals), missed


@pytest.mark.django_db(transaction=True)
def test_no_row_is_missed_while_eight_others_write(monkeypatch):
    n, missed = seals_that_missed(monkeypatch, settle)
    assert n >= 5
    assert missed == 0
    assert list(chain_faults()) == []


def highest_in_sight(table, known, seconds):
    """The rule that does not work: whatever can be seen."""
    return Watermark(run(f'SELECT coalesce(max(id), 0) FROM "{table}"')[0][0])  # noqa: S608


@pytest.mark.django_db(transaction=True)
def test_the_highest_id_in_sight_misses_rows(monkeypatch):
    n, missed = seals_that_missed(monkeypatch, highest_in_sight)
    assert n >= 5
    assert missed >= 3
    assert list(chain_faults()) != []


@pytest.mark.django_db(transaction=True)
def test_a_long_transaction_holds_up_its_own_rows_alone(monkeypatch):
    monkeypatch.setattr(sealing, "PATIENCE_SECONDS", 0.1)
    settings = connection.get_connection_params()
    address = {
        key: settings[key] for key in ("dbname", "user", "password", "host", "port") if key in settings
    }
    sql = (
        "INSERT INTO touchstone_event (at, verb, subject, detail) VALUES (clock_timestamp(), 'x', 'y', '{}')"
    )
    with psycopg.connect(**address) as first, psycopg.connect(**address) as second:
        first.execute(sql)
        Event.objects.create(verb="x", subject="y")
        began = time.monotonic()
        made, watermarks = sealing.seal_new_rows()
        assert time.monotonic() - began < 2.0
        assert [one for one in made if one.table == EVENT] == []
        second.execute(
            sql
        )  # one that begins before the first has ended: there is never a moment without a writer
        first.commit()
        made, watermarks = sealing.seal_new_rows(watermarks)
        assert [one.n_rows for one in made if one.table == EVENT] == [2]
        second.commit()
    made, _ = sealing.seal_new_rows(watermarks)
    assert [one.n_rows for one in made if one.table == EVENT] == [1]
    assert list(chain_faults()) == []


# -- the job --------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_new_rows_are_sealed_by_a_job_a_minute_and_nothing_by_none(caplog, monkeypatch):
    monkeypatch.setattr(jobs, "poke", lambda lane: True)
    sealing.start_due_seals()
    assert Job.objects.count() == 0  # nothing happened yet
    Event.objects.create(verb="x", subject="y")
    for _ in range(2):
        sealing.start_due_seals()
    job = Job.objects.get(kind="seal")
    with caplog.at_level("INFO", logger="touchstone.ledger.sealing"):
        tasks.work(job.lane)
    job.refresh_from_db()
    assert (job.state, job.result["n_rows"], job.result["head"]) == ("done", 1, ledger_head())
    assert ledger_head() in caplog.text
    Event.objects.create(verb="x", subject="y")
    sealing.start_due_seals()
    assert Job.objects.count() == 1  # the minute is not over
    Job.objects.update(created_at=job.created_at - 2 * sealing.EVERY)
    sealing.start_due_seals()
    second = Job.objects.exclude(pk=job.pk).get()
    tasks.work(second.lane)
    assert [one.n_rows for one in seals_of(EVENT)] == [1, 1]
    Job.objects.update(created_at=job.created_at - 2 * sealing.EVERY)
    sealing.start_due_seals()
    assert Job.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_one_at_a_time_extends_the_chains():
    Event.objects.create(verb="x", subject="y")
    settings = connection.get_connection_params()
    address = {
        key: settings[key] for key in ("dbname", "user", "password", "host", "port") if key in settings
    }
    with psycopg.connect(**address) as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", [sealing.SEALING_LOCK])
        assert sealing.seal_new_rows()[0] == []
    assert len(sealing.seal_new_rows()[0]) == 2
