"""With little room on a disk jobs wait, say why, and go on by themselves; who judges notices nothing."""

import uuid
from importlib import import_module

import pytest
from django.test import Client
from django.urls import reverse
from job_kinds import expire_lease, marks, queue, state_of
from small_campaign import make_assessor, make_campaign
from worlds import make_user

from judging.models import Judgment
from touchstone import disks, jobs
from touchstone.models import Job

pytestmark = pytest.mark.django_db(transaction=True)

FREE = 1_300_000_000


@pytest.fixture(autouse=True)
def a_disk_of_its_own(settings, monkeypatch):
    """1.3 GB are free on the fullest of the disks; a test says how many are to stay free."""
    settings.DISK_FLOOR = 2_000_000_000
    monkeypatch.setattr(disks, "free_bytes", lambda: {"var": 10**12, "files": FREE})


def test_a_job_waits_below_the_floor_and_goes_on_by_itself(no_redis, settings):
    job = queue("mark")
    for _ in range(4):  # waiting is no attempt
        jobs.run(job.pk)
        assert state_of(job) == Job.State.QUEUED
    assert (job.attempts, job.error, marks()) == (0, "", 0)
    assert job.note == (
        "Waiting for space on a disk: 1.3 GB free, less than 2 GB. "
        "It goes on by itself when there is space; judging goes on."
    )
    settings.DISK_FLOOR = FREE
    Job.objects.update(created_at="2026-01-01T00:00Z")
    assert jobs.sweep() == 1, "whoever waits is woken up"
    jobs.run(job.pk)
    assert (state_of(job), job.note, job.attempts, marks()) == (Job.State.DONE, "marked", 1, 1)


def test_a_job_runs_where_exactly_the_floor_is_free(no_redis, settings):
    """The control: nothing but the room decides."""
    settings.DISK_FLOOR = FREE
    job = queue("mark")
    jobs.run(job.pk)
    assert (state_of(job), marks()) == (Job.State.DONE, 1)


def test_a_job_whose_worker_died_waits_too(no_redis):
    job = queue("mark")
    Job.objects.filter(pk=job.pk).update(
        state="running", lease_token=job.pk, lease_until="2026-01-01T00:00Z", attempts=1
    )
    expire_lease(job)
    jobs.run(job.pk)
    assert (state_of(job), job.attempts, job.lease_token, marks()) == (Job.State.QUEUED, 1, None, 0)


def test_a_waiting_job_can_be_cancelled(no_redis):
    job = queue("mark")
    jobs.run(job.pk)
    jobs.cancel(job)
    assert state_of(job) == Job.State.CANCELLED


def test_page_and_api_say_why(no_redis):
    manager = make_user("mara", "manager")
    job = queue("release", payload={}, user=manager)
    jobs.run(job.pk)
    client = Client()
    client.force_login(manager)
    page = client.get(reverse("job", args=[job.pk])).content.decode()
    assert "Waiting for space on a disk: 1.3 GB free, less than 2 GB." in page
    answer = client.get(reverse("console:api-job", args=[job.pk])).json()
    assert (answer["state"], answer["note"][:27]) == ("queued", "Waiting for space on a disk")


def test_every_kind_waits_but_the_order_of_judging_the_seals_letters_and_what_makes_room():
    import_module("touchstone.tasks")  # each app's tasks register its kinds
    assert jobs._need_little_room == {
        "order", "seal", "retention", "letters", "notices", "forgotten"
    }  # fmt: skip
    heavy = {
        "import",
        "draw",
        "layout",
        "audit",
        "estimate",
        "release",
        "analysis",
        "screening",
        "run-upload",
    }
    assert heavy <= set(jobs._handlers)


def test_judging_goes_on(no_redis, tmp_path):
    campaign = make_campaign(tmp_path, gold=False)
    client = Client()
    client.force_login(make_assessor(campaign, "bob").user)
    claim, submit = (reverse(f"judging:{name}", args=[campaign.pk]) for name in ("claim", "submit"))
    item = client.post(claim, {}, "application/json").json()["items"][0]
    body = {"token": item["token"], "client_token": str(uuid.uuid4()), "grade": 1}
    assert client.post(submit, body, "application/json").status_code in (200, 201)
    assert Judgment.objects.count() == 1
    asked = queue("estimate", payload={"campaign": str(campaign.pk)})
    jobs.run(asked.pk)
    assert state_of(asked) == Job.State.QUEUED
