"""Lanes: whose job is next, what is too many, and what happens to a job that takes too long."""

import re
import threading
import time
from io import BytesIO

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, transaction
from django.test import Client
from job_kinds import gate, in_thread, marks, queue, state_of, until

import analytics.tasks
import judging.tasks
import sampling.tasks
import touchstone.notices
import touchstone.retention
import touchstone.tasks
from judging.models import Collection
from judging.services.files import queue_import
from touchstone import jobs, lanes
from touchstone.celery import app
from touchstone.management.commands.stack import LANES_OF, worker_command
from touchstone.models import Job, User

pytestmark = pytest.mark.django_db(transaction=True)


def person(name):
    return User.objects.create(username=name, role=User.Role.MANAGER)


def next_of(lane):
    """Take the lane's next job, and end it; return its row."""
    job = jobs._lease(Job.objects.filter(lane=lane))
    if job is not None:
        jobs._end(Job.objects.filter(pk=job.pk), Job.State.DONE)
    return job


def test_every_kind_that_is_done_names_its_lane():
    roof = (touchstone.notices, touchstone.retention, touchstone.tasks)
    of_apps = (analytics.tasks, judging.tasks, sampling.tasks, *roof)
    tasks = {module.__name__ for module in of_apps}
    done = {kind for kind, handler in jobs._handlers.items() if handler.__module__ in tasks}
    assert done == {kind.key for kind in lanes.KINDS}
    assert len(lanes.KINDS) == len(done)
    assert {kind.lane for kind in lanes.KINDS} == set(lanes.SECONDS)


def test_every_lane_is_served_and_quick_by_a_process_that_serves_nothing_else():
    assert {lane for served in LANES_OF.values() for lane in served} == set(lanes.QUEUES)
    assert {*lanes.QUEUES, lanes.MAIL} == set(lanes.SECONDS)  # a thread of each worker serves letters
    assert (lanes.QUICK,) in LANES_OF.values()
    # A worker without --queues serves all, and each serves the clock's.
    assert set(app.amqp.queues) == {*lanes.QUEUES, lanes.TICK}
    assert all(f"{lanes.TICK}" in worker_command(name)[-3].split(",") for name in LANES_OF)


def test_the_database_knows_the_same_lanes():
    for lane in lanes.SECONDS:
        Job.objects.create(kind="mark", lane=lane)
    with pytest.raises(Exception, match="touchstone_job_lane"), transaction.atomic():
        Job.objects.create(kind="mark", lane="slow")
    with pytest.raises(Exception, match="touchstone_job_lane"), transaction.atomic():
        Job.objects.create(kind="mark", turn=-1)


def test_a_larger_import_is_heavy(no_redis, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    collection = Collection.objects.create(name="c")

    def lane_of(*sizes):
        files = [SimpleUploadedFile(f"{n}.tsv", bytes(size)) for n, size in enumerate(sizes)]
        return queue_import(kind="topics", files=files, collection=collection).lane

    assert lane_of(9_999_999) == "quick"
    assert lane_of(5_000_000, 5_000_000) == "heavy"


def test_who_has_fewer_jobs_comes_first_and_then_who_came_first(no_redis):
    mara, nora = person("mara"), person("nora")
    asked = [mara, mara, None, mara, nora, None, nora]
    made = [queue("release", user=user) for user in asked]
    assert [job.turn for job in made] == [0, 1, 0, 2, 0, 1, 1]
    order = [next_of("heavy").pk for _ in made]
    assert order == [made[n].pk for n in (0, 2, 4, 1, 5, 6, 3)]
    assert next_of("heavy") is None


def test_a_lane_counts_for_itself_and_only_what_is_unfinished(no_redis):
    mara = person("mara")
    release = queue("release", user=mara)
    assert queue("audit", user=mara).turn == 0
    assert next_of("heavy") == release
    assert queue("release", user=mara).turn == 0
    running = jobs._lease(Job.objects.filter(lane="heavy"))
    assert running is not None
    assert queue("release", user=mara).turn == 1


def test_a_worker_takes_the_next_row_of_its_lane_whatever_the_message_was_sent_for(no_redis):
    first, second, other = queue("mark"), queue("mark"), queue("forecast")
    jobs.work(lanes.HEAVY)
    assert (state_of(first), state_of(second), state_of(other)) == ("done", "queued", "queued")
    jobs.work(lanes.HEAVY)
    jobs.work(lanes.HEAVY)  # a message too many
    assert (state_of(second), state_of(other), marks()) == ("done", "queued", 2)


def test_of_two_workers_at_once_each_takes_another_row(no_redis):
    first, second = queue("mark"), queue("mark")
    with transaction.atomic():
        Job.objects.select_for_update().get(pk=first.pk)  # somebody is about to take it
        taken = []

        def take():
            try:
                taken.append(jobs._lease(Job.objects.filter(lane="heavy")))
            finally:
                connection.close()

        thread = threading.Thread(target=take)
        thread.start()
        thread.join(10)
        assert taken == [second]


def test_a_message_is_not_spent_on_a_job_that_was_cancelled(no_redis):
    dead, other = queue("mark"), queue("mark")
    jobs._lease(Job.objects.filter(pk=dead.pk))
    jobs.cancel(dead)
    Job.objects.filter(pk=dead.pk).update(lease_until="2026-01-01T00:00Z")
    jobs.work(lanes.HEAVY)
    assert (state_of(dead), state_of(other)) == ("cancelled", "done")


def test_the_21st_waiting_job_of_a_person_and_lane_is_refused_and_leaves_nothing(no_redis):
    mara = person("mara")
    jobs._lease(Job.objects.filter(pk=queue("release", user=mara).pk))  # runs: it does not wait
    for _ in range(lanes.MOST_WAITING):
        queue("release", user=mara)
    with pytest.raises(jobs.TooManyJobs, match="20 of your jobs"):
        jobs.enqueue(kind="release", payload={}, user=mara)
    assert Job.objects.filter(lane="heavy").count() == lanes.MOST_WAITING + 1
    assert queue("audit", user=mara) is not None
    assert queue("release", user=person("nora")) is not None
    assert queue("release") is not None  # nobody's: the clock's
    assert queue("layout", user=mara) is not None  # a part of a draw
    jobs.cancel(Job.objects.filter(requested_by=mara, kind="release", state="queued").first())
    assert queue("release", user=mara) is not None


def test_what_is_under_way_already_is_no_job_more(no_redis):
    mara = person("mara")
    for number in range(lanes.MOST_WAITING):
        queue("release", user=mara, active_key=str(number))
    assert queue("release", user=mara, active_key="7") is None


def test_24_requests_at_once_leave_20_jobs(no_redis):
    mara, refused, start = person("mara"), [], threading.Barrier(24)

    def ask():
        try:
            start.wait()
            queue("release", user=mara)
        except jobs.TooManyJobs as error:
            refused.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=ask) for _ in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (Job.objects.count(), len(refused)) == (lanes.MOST_WAITING, 4)


def test_too_many_jobs_are_429_on_the_page_and_in_the_api(no_redis, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    mara, collection = person("mara"), Collection.objects.create(name="c")
    for _ in range(lanes.MOST_WAITING):
        queue("import", user=mara)
    client = Client()
    client.force_login(mara)
    body = {"kind": "topics", "files": BytesIO(b"1\tone\n")}
    page = client.post(f"/manage/collections/{collection.pk}/", body)
    body["files"].seek(0)
    answer = client.post(f"/api/v1/collections/{collection.pk}/imports", body)
    assert (page.status_code, answer.status_code) == (429, 429)
    assert "20 of your jobs of this kind wait already" in page.content.decode()
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["type"] == "/problems/TooManyJobs"
    assert int(answer["Retry-After"]) > 0
    assert Job.objects.count() == lanes.MOST_WAITING


def test_the_page_says_behind_how_many_of_ones_own_a_job_waits(no_redis):
    mara, nora = person("mara"), person("nora")
    pages = {}
    made = [queue("import", user=user, payload=on_collection()) for user in (mara, nora, mara, mara)]
    jobs._lease(Job.objects.filter(pk=made[0].pk))  # runs: it is ahead still
    for user in (mara, nora):
        client = Client()
        client.force_login(user)
        pages[user] = [client.get(f"/jobs/{job.pk}/").content.decode() for job in made]
    behind = [
        [re.findall(r"behind (\d+) of your own", page) for page in pages[user]] for user in (mara, nora)
    ]
    assert behind == [[[], [], ["1"], ["2"]], [[], [], [], []]]


def on_collection():
    return {"collection": str(Collection.objects.get_or_create(name="c")[0].pk)}


def test_a_job_over_its_time_moves_to_heavy_once_and_that_is_no_attempt(monkeypatch):
    woken = []
    monkeypatch.setattr(jobs, "poke", lambda lane: woken.append(lane) or True)
    monkeypatch.setitem(lanes.SECONDS, lanes.QUICK, 0.2)
    job = queue("wait")
    Job.objects.filter(pk=job.pk).update(lane=lanes.QUICK)
    woken.clear()
    with in_thread(job) as thread:
        thread.join(10)  # it gives way by itself
        assert not gate.is_set()
    assert state_of(job) == Job.State.QUEUED
    assert (job.lane, job.attempts, job.lease_token, marks()) == (lanes.HEAVY, 0, None, 0)
    assert "longer than 0.2 s" in job.note
    assert woken == [lanes.HEAVY]
    jobs.work(lanes.HEAVY)  # the gate is open
    assert (state_of(job), job.attempts, marks()) == ("done", 1, 1)


def test_a_heavy_job_over_its_time_ends_with_a_sentence(no_redis, monkeypatch):
    monkeypatch.setitem(lanes.SECONDS, lanes.HEAVY, 0.2)
    job = queue("wait")
    with in_thread(job) as thread:
        thread.join(10)
        assert not gate.is_set()
    assert (state_of(job), job.lane, marks()) == ("failed", lanes.HEAVY, 0)
    assert "took longer than" in job.error


def test_a_job_over_its_time_that_gives_no_sign_has_no_effect_any_more(no_redis, monkeypatch):
    monkeypatch.setitem(lanes.SECONDS, lanes.QUICK, 0.2)
    job = queue("wait once")
    Job.objects.filter(pk=job.pk).update(lane=lanes.QUICK)
    with in_thread(job):
        until(lambda: state_of(job) == Job.State.QUEUED)
        time.sleep(0.1)
    assert (state_of(job), job.lane, marks()) == ("queued", lanes.HEAVY, 0)


def test_a_message_bears_the_lane_and_its_time_limit(monkeypatch):
    sent = []
    monkeypatch.setattr(app, "send_task", lambda name, **options: sent.append((name, options)))
    queue("forecast")
    ((name, options),) = sent
    assert (name, options["args"], options["queue"]) == ("touchstone.tasks.work", ["quick"], "quick")
    assert options["time_limit"] == lanes.SECONDS["quick"] + jobs.GRACE_SECONDS
    longest = max(lanes.SECONDS.values()) + jobs.GRACE_SECONDS
    assert longest < app.conf.broker_transport_options["visibility_timeout"]  # else it is sent twice


def test_a_row_of_a_version_without_lanes_is_found_by_the_sweep_and_done(monkeypatch):
    woken = []
    monkeypatch.setattr(jobs, "poke", lambda lane: woken.append(lane) or True)
    columns = (
        "id, kind, payload, state, attempts, done, total, note, cancel_requested, result, error, created_at"
    )
    values = (
        "gen_random_uuid(), 'mark', '{}', 'queued', 0, 0, 0, '', FALSE, '{}', '', now() - interval '1 minute'"
    )
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO touchstone_job ({columns}) VALUES ({values})")  # noqa: S608 (our own words)
    assert jobs.sweep() == 1
    assert woken == [lanes.HEAVY]
    jobs.work(woken[0])
    assert (Job.objects.get().state, marks()) == (Job.State.DONE, 1)
