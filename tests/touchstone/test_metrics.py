"""What Prometheus reads: it parses, is documented, says nothing of anybody, and is not to be had on the site's port."""

import math
import re
import subprocess
import sys
import urllib.request
import uuid
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import OperationalError, connection
from django.test import Client
from django.urls import get_resolver, reverse
from django.utils import timezone
from job_kinds import queue, until
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from small_campaign import lease, make_assessor, make_campaign, slots
from worlds import make_user, routes

from touchstone import counters, disks, embedded, health, jobs, lanes, metrics, replica, signs
from touchstone.ledger import sealing
from touchstone.models import Event, Job, Seal, WorkerHeartbeat
from touchstone.tasks import beat_lives

REPOSITORY = Path(__file__).resolve().parents[2]
LABELS = {"check", "folder", "view", "status", "kind", "lane", "state", "table", "head", "outcome"}


@pytest.fixture(autouse=True)
def a_quiet_machine(settings, tmp_path, monkeypatch):
    settings.VAR = tmp_path
    settings.METRICS_SITE = "http://127.0.0.1:1"
    monkeypatch.setattr(jobs, "poke", lambda job_id: True)
    counters._forget()
    health.watch.forget()
    yield
    health.watch.forget()
    counters._forget()


def scrape(monkeypatch=None):
    """Return every sample as {(name, label values): value}, and what labels there are."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(metrics.Product())
    text = generate_latest(registry).decode()
    families = list(text_string_to_metric_families(text))
    return [sample for family in families for sample in family.samples]


def values(samples):
    return {(sample.name, *sample.labels.values()): sample.value for sample in samples}


@pytest.fixture
def kept_connection(monkeypatch):
    """A scrape closes its thread's connection; in a test that is the test's own."""
    monkeypatch.setattr(connection, "close", lambda: None)


# -- what is there --------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_every_metric_is_documented_and_every_documented_one_is_there(kept_connection, monkeypatch):
    monkeypatch.setattr(replica, "is_there", lambda: True)
    monkeypatch.setattr(replica, "close", lambda: None)
    monkeypatch.setattr(replica.watch, "words", lambda: "does not answer")
    counters.add("replica requests", "behind")
    for name in (*signs.SIGNS, "worker:1"):
        signs.sign(name)
    jobs.run(queue("mark").pk)
    Client().get("/livez")
    assert "touchstone_chain_head" not in {sample.name for sample in scrape()}, "nothing is sealed so far"
    Event.objects.create(verb="x", subject="y")
    sealing.seal_new_rows()
    found = {re.sub(r"_(sum|count)$", "", sample.name) for sample in scrape()}
    section = (
        (REPOSITORY / "docs" / "operations.md").read_text().partition("## Metrics")[2].partition("\n## ")[0]
    )
    cells = re.findall(r"^\| (`touchstone_[^|]+)", section, flags=re.MULTILINE)
    listed = re.findall(r"`(touchstone_[a-z_]+)", " ".join(cells))
    assert len(listed) == len(set(listed))
    assert set(listed) == found


@pytest.mark.django_db
def test_requests_are_counted_by_the_name_of_their_address(kept_connection):
    client = Client()
    for path in ("/livez", "/livez", f"/join/{uuid.uuid4()}/", "/nowhere/", "/static/nothing.css", "/?a=%00"):
        client.get(path)
    found = {
        name[1:]: value for name, value in values(scrape()).items() if name[0] == "touchstone_requests_total"
    }
    expected = {
        ("200", "livez"): 2, ("404", "judging:join"): 1, ("404", "none"): 1, ("404", "static"): 1, ("400", "none"): 1
    }  # fmt: skip
    assert found == expected


@pytest.mark.django_db
def test_jobs_by_state_their_age_their_duration_and_their_faults(kept_connection):
    before = values(scrape())
    assert before["touchstone_job_oldest_seconds", "heavy"] == 0
    assert before["touchstone_log_lines_suppressed_total",] == 0
    assert before["touchstone_jobs", "heavy", "queued"] == before["touchstone_job_faults_total",] == 0
    jobs.run(queue("mark").pk)
    jobs.run(queue("refuse").pk)  # a person's fault, not one of ours
    jobs.run(queue("fall").pk)
    old = queue("mark")
    Job.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(minutes=11))
    past = queue("mark")
    Job.objects.filter(pk=past.pk).update(
        state="done", finished_at=timezone.now(), created_at=timezone.now() - timedelta(hours=25)
    )
    after = values(scrape())
    states = {name[2]: value for name, value in after.items() if name[:2] == ("touchstone_jobs", "heavy")}
    assert states == {"queued": 1, "running": 0, "done": 1, "failed": 2, "cancelled": 0}
    assert 659 < after["touchstone_job_oldest_seconds", "heavy"] < 720
    runs = {name[1]: value for name, value in after.items() if name[0] == "touchstone_job_seconds_count"}
    assert runs == {"mark": 1, "refuse": 1, "fall": 1}
    assert after["touchstone_job_faults_total",] == 1


@pytest.mark.django_db
def test_ages_are_absent_until_there_is_something_and_then_of_the_last(kept_connection):
    def found():
        ages = {name: value for name, value in values(scrape()).items() if name[0].endswith("_age_seconds")}
        return {name[0]: value for name, value in ages.items() if len(name) == 1}

    assert found() == {}
    WorkerHeartbeat.objects.create(name="verified backup", seen_at=timezone.now() - timedelta(hours=5))
    beat_lives()
    ages = found()
    assert set(ages) == {f"touchstone_{name}_age_seconds" for name in ("beat", "verified_backup")}
    assert 18_000 <= ages["touchstone_verified_backup_age_seconds"] < 18_060
    assert ages["touchstone_beat_age_seconds"] < 60
    assert not signs.worker_is_running(), "beat is no worker"


@pytest.mark.django_db
def test_each_lane_has_an_age_which_is_infinite_where_nobody_ever_served_it(kept_connection):
    def of_lanes():
        return [values(scrape())["touchstone_worker_age_seconds", lane] for lane in lanes.SECONDS]

    assert of_lanes() == [math.inf] * 4
    signs.worker_lives("quick:1", ["quick", "tick"])
    WorkerHeartbeat.objects.update(seen_at=timezone.now() - timedelta(minutes=3))
    signs.worker_lives("worker:2", ["numbers", "tick"])
    quick, numbers, *others = of_lanes()
    assert 180 <= quick < 240
    assert numbers < 60
    assert others == [math.inf] * 2  # heavy, mail


@pytest.mark.django_db
def test_backups_that_are_wanted_are_told_from_the_first_time_on(kept_connection, settings):
    def wanted():
        return values(scrape()).get(("touchstone_backup_wanted_seconds",))

    assert settings.BACKUP == ""
    assert wanted() is None, "the control: nobody wants any"
    settings.BACKUP = "/srv/backup"
    assert wanted() < 60
    WorkerHeartbeat.objects.update(seen_at=timezone.now() - timedelta(hours=3))
    assert 3 * 3600 <= wanted() < 3 * 3600 + 60
    settings.BACKUP = ""
    assert wanted() >= 3 * 3600, "another host's metrics say the same"
    assert ("touchstone_backup_age_seconds",) not in values(scrape())


@pytest.mark.django_db
def test_rows_that_are_sealed_are_counted_and_the_head_is_told(kept_connection):
    def seal(table, up_to_id, n_rows, head):
        Seal.objects.create(
            table=table, columns=["id"], up_to_id=up_to_id, n_rows=n_rows, head=head * 64, at=timezone.now()
        )

    seal("judging_judgment", 7, 5, "a")
    first = values(scrape())
    seal("judging_judgment", 12, 4, "b")
    seal(Seal.OF_SEALS, 2, 2, "c")
    second = values(scrape())
    assert first["touchstone_chain_rows", "judging_judgment"] == 5
    assert second["touchstone_chain_rows", "judging_judgment"] == 9
    assert second["touchstone_chain_head", "c" * 64] == 1


@pytest.mark.django_db
def test_a_sign_is_kept_when_workers_of_yesterday_are_forgotten():
    yesterday = timezone.now() - timedelta(days=1)
    for name in ("backup", "gone:1"):
        WorkerHeartbeat.objects.create(name=name, seen_at=yesterday)
    signs.worker_lives("new:2")
    assert set(WorkerHeartbeat.objects.values_list("name", flat=True)) == {"backup", "new:2"}


@pytest.mark.django_db
def test_disks_connections_clock_and_checks(kept_connection, monkeypatch, settings):
    settings.DISK_FLOOR = 5_000_000_000
    monkeypatch.setattr(disks, "free_bytes", lambda: {"var": 4_000_000_000, "temporary": 9_000_000_000})
    found = values(scrape())
    assert found["touchstone_disk_free_bytes", "var"] == 4e9
    assert found["touchstone_disk_floor_bytes",] == 5e9
    assert 1 <= found["touchstone_connections",] <= found["touchstone_connections_limit",] == 100
    assert abs(found["touchstone_clock_difference_seconds",]) < 2
    assert found["touchstone_check", "disk"] == 0
    assert found["touchstone_check", "write"] == found["touchstone_check", "schema"] == 1


@pytest.mark.django_db
def test_without_its_database_it_says_so_and_goes_on(kept_connection):
    def away(execute, sql, params, many, context):
        raise OperationalError("the connection is lost")

    with connection.execute_wrapper(away):
        found = values(scrape())
    assert found["touchstone_check", "database"] == 0
    assert "touchstone_connections" not in {name[0] for name in found}
    assert ("touchstone_disk_free_bytes", "temporary") in found


@pytest.mark.django_db
def test_a_table_that_is_gone_takes_only_its_own_numbers_along(kept_connection):
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE touchstone_workerheartbeat RENAME TO touchstone_elsewhere")
    monkey = values(scrape())
    assert monkey["touchstone_check", "schema"] == 0


# -- what is not there ----------------------------------------------------------------------------------------------


def is_plain(value, names):
    """Whether a label's value is a word of the product, and neither an identifier nor anybody's name."""
    return not re.search(r"[0-9a-f]{8}-|/|@|\s", value.replace("run-upload", "")) and value not in names


@pytest.mark.django_db
def test_no_label_names_a_person_an_item_or_its_purpose(kept_connection, tmp_path):
    campaign = make_campaign(tmp_path, budget=20, gold_check_rate=0.3)
    bob = make_assessor(campaign, "bob")
    client = Client()
    client.force_login(bob.user)
    submit = reverse("judging:submit", args=[campaign.pk])
    client.get(reverse("judging:judge", args=[campaign.pk]))
    counted = []
    for purpose in ("judge", "check"):
        slot = slots(campaign, purpose)[0]
        token = lease(bob, slot)
        client.get(reverse("judging:frame", args=[token]))
        before = counters.totals()
        body = {"token": str(token), "client_token": str(uuid.uuid4()), "grade": 1}
        assert client.post(submit, body, "application/json").status_code in (200, 201)
        counted.append(counters.totals() - before)
    assert counted[0] == counted[1] == {("requests", "judging:submit", "200"): 1}, (
        "a check counts as any item"
    )
    sealing.seal_new_rows()
    samples = scrape()
    assert "judging_judgment" in {sample.labels.get("table") for sample in samples}
    assert {name for sample in samples for name in sample.labels} <= LABELS
    names = {"bob", str(campaign.pk), campaign.name, "check", "decoy", "audit", "gold"}
    assert [
        sample for sample in samples for value in sample.labels.values() if not is_plain(value, names)
    ] == []
    views = {sample.labels["view"] for sample in samples if "view" in sample.labels}
    assert views <= {route.name for route in routes()} | {"static", "none"}


def test_a_label_that_names_somebody_is_noticed():
    """The control."""
    for value in (str(uuid.uuid4()), "bob", "/join/7/", "mara@example.org", "gold"):
        assert not is_plain(value, {"bob", "gold"})
    assert is_plain("judging:submit", {"bob", "gold"})


@pytest.mark.django_db
def test_the_site_does_not_serve_them():
    manager = Client()
    manager.force_login(make_user("mara", "manager"))
    for client in (Client(), manager):
        for path in ("/metrics", "/metrics/", "/api/v1/metrics"):
            answer = client.get(path)
            assert answer.status_code in (302, 403, 404), path
            assert "touchstone_check" not in answer.content.decode()
    assert not any("metrics" in str(route.pattern) for route in routes())
    assert get_resolver().urlconf_name == "touchstone.urls"


# -- the process ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["9464", "localhost:", "nowhere"])
def test_an_address_that_is_none_is_refused(address, settings):
    settings.METRICS_BIND = address
    with pytest.raises(CommandError, match="an address and a port"):
        call_command("metrics")


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_process_serves_on_its_own_port_and_a_second_one_waits(child_environment, tmp_path):
    port = embedded.free_port()
    environment = {**child_environment, "METRICS_BIND": f"127.0.0.1:{port}", "TOUCHSTONE_VAR": str(tmp_path)}
    environment["METRICS_SITE"] = "http://127.0.0.1:1"
    command = [sys.executable, str(REPOSITORY / "manage.py"), "metrics"]

    def text():
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
            return answer.read().decode()

    def serves():
        try:
            return "touchstone_check" in text()
        except OSError:
            return False

    first = subprocess.Popen(command, env=environment)
    try:
        until(serves, 120)
        said = tmp_path / "second.log"
        with said.open("wb") as log:
            second = subprocess.Popen(command, env=environment, stderr=log)
        try:
            until(lambda: "is taken" in said.read_text(), 120)
            assert second.poll() is None
        finally:
            second.terminate()
            second.wait(20)
        samples = [sample for family in text_string_to_metric_families(text()) for sample in family.samples]
        found = values(samples)
        assert found["touchstone_check", "write"] == 1
        assert found["touchstone_site_up",] == 0, "no site runs here"
    finally:
        first.terminate()
        first.wait(20)
