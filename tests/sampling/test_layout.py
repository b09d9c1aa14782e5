"""Laying a draw out: many jobs, in any order, at the same time, twice, and when workers die; judging goes on."""

import os
import signal
import subprocess
import sys
import threading
import time
import uuid

import pytest
from django.db import DatabaseError, connection, transaction
from small_campaign import DEPTH, N_FRAME, TOPICS, make_assessor, make_undrawn

import sampling.tasks  # noqa: F401 (registers the jobs)
from judging.models import Item, Slot
from judging.services.assign import claim, submit
from judging.services.campaigns import open_campaign
from sampling.frames import FrameRefused, load_frame
from sampling.models import DrawEntry
from sampling.questions import Design
from sampling.services import layout
from sampling.services.drawing import draw, record_draw
from sampling.services.layout import groups, lay_out, missing_topics, parts, queue_parts
from touchstone import jobs
from touchstone.models import Job

pytestmark = pytest.mark.django_db(transaction=True)


def design(budget=N_FRAME):
    return Design("pool", (), measure="DCG@10", depth=DEPTH, budget=budget)


@pytest.fixture
def campaign(tmp_path):
    return make_undrawn(tmp_path, gold_check_rate=0.2)


@pytest.fixture
def small_parts(monkeypatch):
    """A job a topic; nobody is woken up: `jobs.run` is called by the test."""
    monkeypatch.setattr(layout, "PART_ITEMS", 1)
    monkeypatch.setattr(jobs, "poke", lambda lane: True)


def laid_out(campaign):
    """Return everything that layout made, but for random identifiers."""
    slots = campaign.slots.values_list(
        "item__topic__topic_id", "item__document__doc_id", "purpose", "number", "position"
    )
    entries = DrawEntry.objects.filter(draw__campaign=campaign).values_list(
        "draw__batch", "item__document__doc_id", "inclusion_probability", "times"
    )
    return sorted(slots), sorted(entries)


def reference(tmp_path, campaign):
    """Return what one straight layout of the same draw makes."""
    other = make_undrawn(tmp_path, gold_check_rate=0.2)
    draw(campaign=other, design=design(30), seed=20)
    assert other.slots.filter(purpose="check").exists()
    return laid_out(other)


def in_threads(*works):
    """Run the works at the same time, each on a connection of its own; return what they raised."""
    faults, start = [], threading.Barrier(len(works))

    def run(work):
        try:
            start.wait()
            work()
        except Exception as error:
            faults.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=[work]) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    return faults


def queue_draw(campaign, budget=30):
    with transaction.atomic():
        payload = {"campaign": str(campaign.pk), "design": design(budget).parameters(), "seed": 20}
        return jobs.enqueue(kind="draw", payload=payload, active_key=str(campaign.pk))


# -- parts ------------------------------------------------------------------------------------------------------


def test_topics_are_grouped_up_to_a_size_and_none_is_lost():
    assert groups({"a": 4, "b": 3, "c": 5, "d": 0, "e": 5}, 8) == [["a", "b"], ["c", "d"], ["e"]]
    assert groups({"a": 20, "b": 1}, 8) == [["a"], ["b"]]
    assert groups({}, 8) == []


def test_parts_are_the_same_however_much_is_laid_out(campaign, small_parts):
    made = record_draw(campaign=campaign, design=design(30), seed=20)
    before = parts(made)
    assert [topic for part in before for topic in part] == TOPICS
    lay_out(draw=made, topic_ids=["t1"])
    assert parts(made) == before
    assert missing_topics(made) == ["t0", "t2"]


# -- jobs -------------------------------------------------------------------------------------------------------


def test_a_small_draw_is_one_job_and_a_large_one_many_with_the_same_result(tmp_path, campaign, monkeypatch):
    monkeypatch.setattr(jobs, "poke", lambda lane: True)
    wanted = reference(tmp_path, campaign)
    small = make_undrawn(tmp_path, gold_check_rate=0.2)
    jobs.run(queue_draw(small).pk)
    assert laid_out(small) == wanted
    assert not Job.objects.filter(kind="layout").exists()

    monkeypatch.setattr(layout, "PART_ITEMS", 1)
    job = queue_draw(campaign)
    jobs.run(job.pk)
    queued = list(Job.objects.filter(kind="layout").order_by("-created_at"))
    assert [job.payload["topics"] for job in queued] == [["t2"], ["t1"], ["t0"]]
    assert not campaign.items.exists()
    for job in queued:  # the last first
        jobs.run(job.pk)
        job.refresh_from_db()
        assert job.state == Job.State.DONE
    assert laid_out(campaign) == wanted
    assert sum(job.result["n_items"] for job in queued) == campaign.draws.get().n_drawn


def test_every_job_may_run_twice(tmp_path, campaign, small_parts):
    wanted = reference(tmp_path, campaign)
    job = queue_draw(campaign)
    for _ in range(2):
        jobs.run(job.pk)
    assert campaign.draws.count() == 1
    for part in Job.objects.filter(kind="layout"):
        for _ in range(2):
            jobs.run(part.pk)
        lay_out(draw=campaign.draws.get(), topic_ids=part.payload["topics"])
    assert laid_out(campaign) == wanted


def test_the_same_draw_asked_for_twice_is_refused_by_name_the_second_time(campaign, small_parts):
    for _ in range(2):
        job = queue_draw(campaign)
        jobs.run(job.pk)
        for part in Job.objects.filter(kind="layout"):
            jobs.run(part.pk)
    job.refresh_from_db()
    assert job.state == Job.State.FAILED
    assert job.error == "the budget counts all batches: 30 items are expected already, got 30"
    assert campaign.draws.count() == 1


def test_cancelled_parts_are_queued_again_and_those_under_way_are_not(tmp_path, campaign, small_parts):
    wanted = reference(tmp_path, campaign)
    made = record_draw(campaign=campaign, design=design(30), seed=20)
    with transaction.atomic():
        first = queue_parts(draw=made, user=None)
    assert len(first) == 3
    jobs.run(first[1].pk)
    jobs.cancel(first[0])
    with transaction.atomic():
        again = queue_parts(draw=made, user=None)
    assert [job.payload["topics"] for job in again] == [["t0"]]
    for job in [*again, first[2]]:
        jobs.run(job.pk)
    with transaction.atomic():
        assert queue_parts(draw=made, user=None) == []
    assert laid_out(campaign) == wanted


# -- at the same time -------------------------------------------------------------------------------------------


def test_the_same_topics_laid_out_by_many_at_the_same_time_are_laid_out_once(tmp_path, campaign):
    wanted = reference(tmp_path, campaign)
    made = record_draw(campaign=campaign, design=design(30), seed=20)
    orders = (["t0", "t1", "t2"], ["t2", "t1"], ["t1", "t0"], ["t2"])
    assert in_threads(*(lambda order=order: lay_out(draw=made, topic_ids=order) for order in orders)) == []
    assert laid_out(campaign) == wanted


def test_without_the_lock_those_who_come_at_the_same_time_disturb_each_other(campaign, monkeypatch):
    monkeypatch.setattr(layout, "_lock", lambda *_: None)
    honest, meeting = layout.missing_topics, threading.Barrier(2)

    def at_the_same_time(*given):
        found = honest(*given)
        meeting.wait(20)
        return found

    made = record_draw(campaign=campaign, design=design(30), seed=20)
    monkeypatch.setattr(layout, "missing_topics", at_the_same_time)
    faults = in_threads(*[lambda: lay_out(draw=made, topic_ids=["t0"])] * 2)
    assert len(faults) == 1
    assert isinstance(faults[0], DatabaseError)


def test_whoever_waits_for_a_topic_waits_longer_than_the_servers_usual_patience(campaign, monkeypatch):
    made = record_draw(campaign=campaign, design=design(30), seed=20)
    with connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() != ("0",)
    holds, goes_on = threading.Event(), threading.Event()
    waits = []

    def slow():
        with transaction.atomic():
            layout._lock(campaign.pk, ["t0"])
            holds.set()
            assert goes_on.wait(20)

    def other():
        assert holds.wait(20)
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '50ms'")
            waits.append(connection.connection.info.backend_pid)
            lay_out(draw=made, topic_ids=["t0"])

    def opens():
        assert holds.wait(20)
        until(lambda: waits and is_waiting(waits[0]))
        time.sleep(0.2)  # four times the patience
        goes_on.set()

    assert in_threads(slow, other, opens) == []
    assert missing_topics(made) == ["t1", "t2"]


def is_waiting(pid):
    with connection.cursor() as cursor:
        cursor.execute("SELECT wait_event_type FROM pg_stat_activity WHERE pid = %s", [pid])
        return cursor.fetchone() == ("Lock",)


def until(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)


# -- workers die ------------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
import django
django.setup()
from sampling.models import Draw
from sampling.services import layout
if sys.argv[2] == "half": # as if each statement were a transaction of its own
    from django.db import transaction
    from contextlib import nullcontext
    layout.transaction = type("Naive", (), {"atomic": staticmethod(nullcontext)})
honest = layout.want_judgments
def die(**given):
    print("here", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
layout.want_judgments = die
layout.lay_out(draw=Draw.objects.get(pk=sys.argv[1]), topic_ids=["t0", "t1"])
"""


def kill_a_worker(made, how, child_environment):
    command = [sys.executable, "-c", KILLED, str(made.pk), how]
    child = subprocess.run(command, env=child_environment, capture_output=True, text=True, timeout=60)
    assert child.returncode == -signal.SIGKILL, child.stderr
    assert "here" in child.stdout


def test_a_worker_killed_in_the_middle_leaves_nothing_and_the_next_attempt_lays_out(
    tmp_path, campaign, child_environment
):
    wanted = reference(tmp_path, campaign)
    made = record_draw(campaign=campaign, design=design(30), seed=20)
    kill_a_worker(made, "whole", child_environment)
    assert not campaign.items.exists()
    assert missing_topics(made) == TOPICS
    lay_out(draw=made, topic_ids=TOPICS)
    assert laid_out(campaign) == wanted


def test_without_one_transaction_the_same_death_leaves_half_topics(campaign, child_environment):
    made = record_draw(campaign=campaign, design=design(30), seed=20)
    kill_a_worker(made, "half", child_environment)
    assert campaign.items.exists()
    assert not campaign.slots.exists()
    assert missing_topics(made) == ["t2"]  # the half topics would never be laid out


# -- judging goes on --------------------------------------------------------------------------------------------


def judge_one(person):
    """Claim and submit in the face of locks: nobody may wait for more than a moment."""
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '200ms'")
    try:
        held = claim(assessor=person).item
        assert held is not None
        submit(assessor=person, token=held.token, client_token=uuid.uuid4(), grade=1)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")
    return held


def test_assessors_judge_while_a_later_batch_is_being_laid_out(campaign):
    draw(campaign=campaign, design=design(12), seed=20)
    open_campaign(campaign=campaign, actor=None)
    ann, ben = make_assessor(campaign, "ann"), make_assessor(campaign, "ben")
    holding = claim(assessor=ben, n=3).items  # among them may be checks that the next batch draws
    made = record_draw(campaign=campaign, design=design(N_FRAME))
    holds, goes_on = threading.Event(), threading.Event()

    def lays_out():
        with transaction.atomic():
            lay_out(draw=made, topic_ids=TOPICS)
            holds.set()
            assert goes_on.wait(30)

    def judges():
        try:
            assert holds.wait(30)
            before = campaign.items.count()
            for _ in range(5):
                judge_one(ann)
            for held in holding:
                submit(assessor=ben, token=held.token, client_token=uuid.uuid4(), grade=2)
            assert campaign.items.count() == before < N_FRAME
        finally:
            goes_on.set()

    assert in_threads(lays_out, judges) == []
    assert campaign.items.count() == N_FRAME
    assert Slot.objects.filter(campaign=campaign, state="done").count() == 8
    assert judge_one(ann)


def test_a_lock_on_slots_would_be_noticed(campaign):
    draw(campaign=campaign, design=design(12), seed=20)
    open_campaign(campaign=campaign, actor=None)
    ann = make_assessor(campaign, "ann")
    claim(assessor=ann)
    holds, goes_on = threading.Event(), threading.Event()

    def locks():
        with transaction.atomic():
            list(campaign.slots.select_for_update())
            holds.set()
            assert goes_on.wait(30)

    def judges():
        try:
            assert holds.wait(30)
            judge_one(ann)
        finally:
            goes_on.set()

    faults = in_threads(locks, judges)
    assert len(faults) == 1
    assert "lock timeout" in str(faults[0])


def test_a_frame_that_was_changed_is_not_laid_out(campaign):
    made = record_draw(campaign=campaign, design=design(30), seed=20)
    assert load_frame(made).height == N_FRAME
    with open(made.frame.path, "r+b") as file:
        file.seek(os.path.getsize(made.frame.path) // 2)
        file.write(b"x")
    with pytest.raises(FrameRefused, match="is not the one that was drawn from"):
        lay_out(draw=made, topic_ids=TOPICS)
    assert not Item.objects.filter(campaign=campaign).exists()
