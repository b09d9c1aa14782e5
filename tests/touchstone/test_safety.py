"""What strangers, mistakes and a second stack on the machine must not be able to do."""

import importlib.util
import json
import os
import sys
from collections import namedtuple
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from small_campaign import make_assessor, make_campaign

from judging.models import Collection
from touchstone import tasks, uploads
from touchstone.models import Job, User, WorkerHeartbeat
from touchstone.settings import database_from_url

REPOSITORY = Path(__file__).resolve().parents[2]
NOBODY = "00000000-0000-4000-8000-000000000000"
CLAIM = f"/api/v1/campaigns/{NOBODY}/claim"


def person(role: str, **options) -> Client:
    client = Client(**options)
    client.force_login(User.objects.create(username=f"a {role}", role=role))
    return client


def someone(role: str | None) -> Client:
    return person(role, enforce_csrf_checks=True) if role else Client(enforce_csrf_checks=True)


# -- uploads ------------------------------------------------------------------------------------------------


@pytest.fixture
def temporary_folder(tmp_path, settings):
    """An empty folder for uploads, which are written to it from the first byte on: none is held in memory."""
    folder = tmp_path / "uploads"
    folder.mkdir()
    settings.FILE_UPLOAD_TEMP_DIR, settings.FILE_UPLOAD_MAX_MEMORY_SIZE = str(folder), 0
    return folder


@pytest.fixture
def written(monkeypatch):
    """Return the list of the parts that reached a file while the test ran."""
    chunks = []
    monkeypatch.setattr(
        uploads.Gate, "receive_data_chunk", lambda self, data, start: chunks.append(len(data)) or data
    )
    return chunks


def file_of(n_bytes: int) -> SimpleUploadedFile:
    return SimpleUploadedFile("topics.tsv", b"t1\ta need\n" + b" " * (n_bytes - 10))


@pytest.mark.django_db
@pytest.mark.parametrize("role", [None, "assessor"])
@pytest.mark.parametrize("path", ["/login/", f"/manage/collections/{NOBODY}/"])
def test_who_only_judges_gets_no_byte_of_a_file_onto_the_disk(role, path, temporary_folder, written):
    client = someone(role)
    client.cookies["csrftoken"] = (
        "a" * 32
    )  # what anybody can send: Django then looks for its twin in the form
    answer = client.post(path, {"files": file_of(2_000_000), "csrfmiddlewaretoken": "a" * 32})
    assert answer.status_code == 413
    assert "Only managers and researchers upload files." in answer.content.decode()
    assert written == []
    assert list(temporary_folder.iterdir()) == []


@pytest.mark.django_db
def test_a_researcher_uploads_no_more_than_a_run(monkeypatch, temporary_folder, written):
    monkeypatch.setattr(uploads, "LARGEST_OF_RESEARCHER", 199_999)
    client = someone("researcher")
    client.cookies["csrftoken"] = "a" * 32
    answer = client.post(f"/results/{NOBODY}/runs/upload/", {"files": file_of(200_000)})
    assert answer.status_code == 413
    assert "One upload may have" in answer.content.decode()
    assert written == []
    client.post(f"/results/{NOBODY}/runs/upload/", {"files": file_of(100_000)})
    assert sum(written) == 100_000


@pytest.mark.django_db
def test_a_manager_uploads_and_anybody_sends_a_small_form(temporary_folder, written):
    made = Collection.objects.create(name="News")
    page = reverse("console:manage-collection", args=[made.pk])
    answer = person("manager").post(page, {"kind": "topics", "files": [file_of(200_000)], "source_name": ""})
    assert answer.status_code == 302
    assert sum(written) == 200_000
    assert Job.objects.count() == 1
    answer = Client().post("/login/", {"username": "nobody", "password": "wrong"})  # multipart, as it happens
    assert answer.status_code == 200


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("largest", "free", "words"),
    [
        (199_999, 10**15, "One upload may have"),
        # The request has 200,000 bytes of file and less than 1,000 around it; three copies, then 10^9 must be left.
        (10**9, 10**9 + 600_000, "not enough space left"),
        (10**9, 10**9 + 603_000, None),
    ],
)
@pytest.mark.parametrize("floor", [0, 10**9])
def test_a_manager_is_told_when_an_upload_is_too_large_or_the_disk_too_full(
    largest, free, words, floor, monkeypatch, written, settings
):
    settings.DISK_FLOOR = floor
    monkeypatch.setattr(uploads, "LARGEST", largest)
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(uploads.shutil, "disk_usage", lambda folder: usage(2 * free, free, free))
    made = Collection.objects.create(name="News")
    page = reverse("console:manage-collection", args=[made.pk])
    answer = person("manager").post(page, {"kind": "topics", "files": [file_of(200_000)], "source_name": ""})
    assert answer.status_code == (413 if words else 302)
    assert (words or "") in answer.content.decode()
    assert bool(written) == (words is None)


@pytest.mark.django_db
def test_an_upload_whose_import_would_wait_for_space_is_refused(monkeypatch, written, settings):
    settings.DISK_FLOOR = 2 * 10**9
    usage = namedtuple("usage", "total used free")
    free = 2 * 10**9 + 600_000  # the request has 200,000 bytes and a little more
    monkeypatch.setattr(uploads.shutil, "disk_usage", lambda folder: usage(2 * free, free, free))
    made = Collection.objects.create(name="News")
    page = reverse("console:manage-collection", args=[made.pk])
    sent = {"kind": "topics", "files": [file_of(200_000)], "source_name": ""}
    assert person("manager").post(page, sent).status_code == 413
    assert not written


def test_the_limits_are_those_that_are_documented():
    text = (REPOSITORY / "docs" / "operations.md").read_text()
    assert f"{uploads.LARGEST // 2**30} GiB" in text
    assert f"{uploads.SMALL:,} bytes" in text
    assert uploads.FREE_AFTERWARDS == 10**9
    assert "1 GB" in text


# -- bodies and addresses -----------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_long_body_for_the_api_is_refused_before_it_is_read():
    client = person("assessor")
    for path, most in ((CLAIM, uploads.SMALL), ("/api/nowhere", uploads.LONG)):
        answer = client.post(path, "9" * (most + 1), "application/json")
        assert answer.status_code == 413
        assert answer["Content-Type"] == "application/problem+json"
        assert answer.json()["type"] == "/problems/TooLarge"
    assert client.post(CLAIM, b"{}" + b" " * 9_998, "application/json").status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize(
    "body",
    [
        "[" * 9_999,
        "[" * 4_999 + "]" * 4_999,
        '{"a":' * 1_999,
        "[" * 900 + "]" * 900,
        "{",
        b"\xff",
        '"\\ud800"',
        '{"token": "\\u0000", "client_token": "\\ud800", "grade": 1' + "0" * 9_000 + "}",
        '{"token": {}, "client_token": [], "grade": NaN, "active_milliseconds": 1e999}',
    ],
)
def test_json_that_nobody_can_read_is_the_senders_fault(body, tmp_path):
    campaign = make_campaign(tmp_path, gold=False)
    client = Client()
    client.force_login(make_assessor(campaign, "bob").user)
    answer = client.post(reverse("judging:submit", args=[campaign.pk]), body, "application/json")
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"


@pytest.mark.django_db
@pytest.mark.parametrize(
    "address",
    ["/?next=a%00b", "/login/?%00", "/manage/%00", "/jobs/%00/", "/static/%00", f"/jobs/{NOBODY}/?back=%00"],
)
def test_a_nul_in_an_address_is_refused(address):
    for client in (Client(), person("manager")):
        answer = client.get(address)
        assert answer.status_code == 400
        assert answer["Content-Type"] == "text/plain; charset=utf-8"
        assert client.get(address.replace("%00", "x")).status_code in (200, 302, 404)
    assert Client().get(f"{CLAIM}%00").json()["status"] == 400


@pytest.mark.django_db
def test_a_nul_in_a_cookie_is_refused():
    # In quotes an octal number stands for a character: the session's key would reach PostgreSQL with a NUL.
    assert Client().get("/", headers={"cookie": r'sessionid="abcdefghijkl\000"'}).status_code == 400
    assert Client().get("/", headers={"cookie": r'sessionid="abcdefghijkl\101"'}).status_code == 200


# -- passwords ----------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_login_page_shows_the_demos_passwords_in_the_demo_alone(settings, tmp_path):
    settings.VAR = tmp_path
    (tmp_path / "demo.json").write_text(
        json.dumps([{"username": "mara", "password": "hunter22", "role": "manager"}])
    )
    assert settings.DEMO is False
    assert "hunter22" not in Client().get("/login/").content.decode()
    settings.DEMO = True
    assert "hunter22" in Client().get("/login/").content.decode()


@pytest.mark.django_db
def test_the_demo_is_not_loaded_into_a_real_database(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://db.example.org/touchstone")
    with pytest.raises(CommandError, match="not for a real database"):
        call_command("load_demo")
    assert User.objects.count() == 0


@pytest.mark.django_db
def test_a_message_stays_on_the_server(client):
    client = person("manager")
    job = Job.objects.create(kind="draw", requested_by=User.objects.get(role="manager"))
    answer = client.post(reverse("cancel-job", args=[job.pk]))
    assert answer.status_code == 302
    assert "messages" not in client.cookies
    assert "The job is being cancelled." in client.get(answer.url).content.decode()


# -- settings -----------------------------------------------------------------------------------------------


def test_the_address_of_the_database_may_have_parameters_of_libpq():
    database = database_from_url(
        "postgresql://me:p%40ss@db.example.org:6432/my%20judgments?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem"
    )
    assert database["NAME"] == "my judgments"
    assert (database["USER"], database["PASSWORD"]) == ("me", "p@ss")
    assert (database["HOST"], database["PORT"]) == ("db.example.org", "6432")
    assert database["OPTIONS"]["sslmode"] == "verify-full"
    assert database["OPTIONS"]["sslrootcert"] == "/etc/ca.pem"
    assert "synchronous_commit=on" in database["OPTIONS"]["options"]


def test_a_worker_does_not_log_in_as_the_role_that_ends_long_jobs(monkeypatch):
    address = "postgresql://touchstone_web:x@db.example.org/touchstone"
    assert "options" not in database_from_url(address)["OPTIONS"]  # the role has its settings
    monkeypatch.setattr("touchstone.settings.IS_WORKER", True)
    with pytest.raises(ImproperlyConfigured, match="a worker connects as touchstone_worker"):
        database_from_url(address)
    assert "idle_in" not in database_from_url("postgresql://me@db.example.org/x")["OPTIONS"]["options"]


@pytest.mark.parametrize(
    ("query", "words"),
    [("options=-c%20fsync%3Doff", "options= is not possible"), ("sslmod=require", "no parameter sslmod")],
)
def test_a_parameter_that_would_weaken_or_do_nothing_is_refused(query, words):
    with pytest.raises(ImproperlyConfigured, match=words):
        database_from_url(f"postgresql://me@db.example.org/touchstone?{query}")


@pytest.mark.parametrize(("command", "forgets"), [("demo", True), ("stack", True), ("migrate", False)])
def test_the_embedded_stack_ignores_the_settings_of_a_real_server(command, forgets, monkeypatch):
    specification = importlib.util.spec_from_file_location("manage_py", REPOSITORY / "manage.py")
    manage = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(manage)
    named = [
        *("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "HTTPS", "ALLOWED_HOSTS", "CSRF_TRUSTED_ORIGINS"),
        *(
            "DATABASE_OWNER_URL",
            "DATABASE_WEB_PASSWORD",
            "DATABASE_WORKER_PASSWORD",
            "DATABASE_READ_PASSWORD",
        ),
        *("DEBUG", "TOUCHSTONE_ROLE", "TOUCHSTONE_DEMO", "TOUCHSTONE_STACK"),
    ]
    for name in named:
        monkeypatch.setenv(name, "of a real server")
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "touchstone.settings")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", ["manage.py", command])
    monkeypatch.setattr(
        "django.core.management.execute_from_command_line",
        lambda arguments: seen.update({name: os.environ.get(name) for name in named}),
    )
    seen: dict[str, str | None] = {}
    manage.main()
    assert seen == dict.fromkeys(named, None if forgets else "of a real server")


# -- the clock ----------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_step_of_the_tick_that_fails_is_logged_and_the_others_are_done(monkeypatch, caplog):
    done = []

    def step(name, fault):
        def run():
            done.append(name)
            if fault:
                raise fault

        run.__name__ = name
        return run

    monkeypatch.setattr(tasks.jobs, "sweep", step("sweep", ValueError("no more")))
    monkeypatch.setattr(tasks, "start_due_audits", step("audits", KeyError("gone")))
    monkeypatch.setattr(tasks, "start_due_orders", step("orders", None))
    monkeypatch.setattr(tasks, "start_due_recomputations", step("recomputations", None))
    monkeypatch.setattr(tasks, "start_due_screenings", step("screenings", None))
    monkeypatch.setattr(tasks, "start_due_feasibility", step("feasibility", None))
    monkeypatch.setattr(tasks, "start_due_seals", step("seals", None))
    monkeypatch.setattr(tasks, "start_due_retention", step("retention", None))
    monkeypatch.setattr(tasks, "start_due_notices", step("notices", None))
    monkeypatch.setattr(tasks, "start_due_letters", step("letters", None))
    monkeypatch.setattr(tasks, "settle_ended", step("releases", None))
    monkeypatch.setattr(tasks, "PRUNING", (step("pruning", None),))
    tasks.tick()
    due = ("audits", "orders", "recomputations", "screenings", "feasibility", "seals", "retention")
    assert done == ["sweep", *due, "notices", "letters", "releases", "pruning"]
    assert [record.getMessage() for record in caplog.records] == [
        "the tick's sweep failed",
        "the tick's audits failed",
    ]


@pytest.mark.django_db
def test_a_worker_is_heard_by_the_clock_of_the_database(monkeypatch):
    from django.utils import timezone

    monkeypatch.setattr(timezone, "now", lambda: pytest.fail("two clocks"))
    for _ in range(2):
        tasks.signs.worker_lives("one")
    assert WorkerHeartbeat.objects.get().name == "one"
    assert tasks.signs.worker_is_running()
