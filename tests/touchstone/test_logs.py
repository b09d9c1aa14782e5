"""Logs: whose line it is, what is never written, the same error once a minute, and files that do not grow for ever."""

import io
import json
import logging
import os
import subprocess
import sys
import time
import uuid

import psycopg
import pytest
from django.db import IntegrityError, OperationalError, connection
from django.test import Client
from django.urls import reverse
from psycopg.errors import DiskFull
from worlds import make_user

from touchstone import embedded, logs, processes

SECRET_KEY = "touchstone_" + "k" * 43


@pytest.fixture
def written(request, monkeypatch):
    """What the product's handler writes, as JSON lines, in place of what pytest captures."""
    handler = logs.Lines()
    handler.stream = io.StringIO()
    handler.setFormatter(logs.FORMATS[getattr(request, "param", "json")]())
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [handler])
    monkeypatch.setattr(root, "level", logging.INFO)
    yield lambda: handler.stream.getvalue().splitlines()
    logs.request_id.set("")


def fail(error, **extra):
    try:
        raise error
    except type(error):
        logging.getLogger("touchstone.test").exception("it failed", extra=extra)


def errors(lines):
    """Return the lines but those of log-ins."""
    return [line for line in map(json.loads, lines) if line["logger"] != "touchstone.logins"]


# -- whose line ---------------------------------------------------------------------------------------------------


def test_a_line_of_json_has_the_request_and_the_job(written):
    logs.request_id.set("r" * 32)
    token = logs.job_id.set("a job")
    logging.getLogger("touchstone.test").info("%d topics\nread", 7)
    logs.job_id.reset(token)
    line = json.loads(written()[0])
    assert line["request_id"] == "r" * 32
    assert line["job_id"] == "a job"
    assert (line["level"], line["logger"], line["message"]) == ("INFO", "touchstone.test", "7 topics read")
    assert set(line) == {"time", "level", "logger", "message", "process", "request_id", "job_id"}


@pytest.mark.parametrize("written", ["text"], indirect=True)
def test_a_line_of_text_has_them_too_and_a_traceback_stands_below(written):
    logs.request_id.set("r" * 32)
    fail(ValueError("no more"))
    first, *others = written()
    assert first.endswith(f" ERROR touchstone.test: it failed [request {'r' * 32}]")
    assert others[0] == "Traceback (most recent call last):"
    assert others[-1] == "ValueError: no more"


@pytest.mark.django_db(transaction=True)
def test_what_a_job_logs_has_its_id(written, monkeypatch):
    from job_kinds import queue

    from touchstone import jobs

    monkeypatch.setattr(jobs, "poke", lambda job_id: True)
    job = queue("fall")
    jobs.run(job.pk)
    (line,) = map(json.loads, written())
    assert line["job_id"] == str(job.pk)
    assert line["exception"].endswith("ValueError: attempt 1")
    assert logs.job_id.get() == ""


# -- the id of a request ------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_every_answer_has_an_id_of_its_own(own_ids):
    client = Client()
    addresses = ["/", "/livez", "/nowhere/", "/api/nowhere", "/?a=%00", "/api/v1/me", "/static/nothing.css"]
    found = [client.get(address)["X-Request-ID"] for address in addresses]
    assert all(len(known) == 32 and int(known, 16) >= 0 for known in found)
    assert len(set(found)) == len(addresses)


@pytest.mark.django_db
@pytest.mark.parametrize("brought", ["3f2504e0-4f89", "a" * 64, "a.b_c-d9"])
def test_the_id_of_a_proxy_is_kept(brought):
    answer = Client().get("/nowhere/", headers={"X-Request-ID": brought})
    assert answer["X-Request-ID"] == brought
    assert f"<code>{brought}</code>" in answer.content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "brought",
    [
        "",
        "short",
        "a" * 65,
        "two words",
        '"><script>alert(1)</script>',
        "abcdefgh\n",
        "-abcdefgh",
        "ähnlich12",
    ],
)
def test_an_id_that_could_forge_a_line_is_not(brought):
    answer = Client().get("/nowhere/", headers={"X-Request-ID": brought})
    assert answer["X-Request-ID"] != brought
    assert len(answer["X-Request-ID"]) == 32
    assert f"<code>{answer['X-Request-ID']}</code>" in answer.content.decode()


# -- what is not written ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("GET /hit/7/?workerId=A1&x=2 HTTP/1.1", "GET /hit/7/?… HTTP/1.1"),
        (f"key {SECRET_KEY}.", "key touchstone_…."),
        ("postgresql://touchstone:pw@db/touchstone", "postgresql://…@db/touchstone"),
        ("null value\nDETAIL:  Row (7, a comment).\nCONTEXT: here", "null value\nDETAIL: (not logged)\nCONTEXT: here"),
        ("is this so? yes", "is this so? yes"),
    ],
)  # fmt: skip
def test_secrets_are_cut_out(text, kept):
    assert logs.without_secrets(text) == kept


@pytest.mark.django_db
def test_a_row_that_postgresql_quotes_is_not_logged(written):
    user = make_user("mara", "manager")
    with pytest.raises(IntegrityError) as caught, connection.cursor() as cursor:
        cursor.execute("INSERT INTO touchstone_event (at, verb, subject, detail, actor_id) "
                       "VALUES (now(), 'v', NULL, '\"a private comment\"', %s)", [user.pk])  # fmt: skip
    assert "a private comment" in str(caught.value), "the control: PostgreSQL does quote it"
    fail(caught.value)
    assert "a private comment" not in "\n".join(written())
    assert "null value in column" in written()[0]


@pytest.mark.django_db
def test_of_an_address_only_the_route_is_written(written):
    token = uuid.uuid4()
    for path in (f"/join/{token}/?workerId=A1", f"/join/{token}/nothing/?workerId=A1"):
        assert Client().get(path).status_code == 404
    known, unknown = (json.loads(line)["message"] for line in written())
    assert known == "Not Found: /join/<uuid:token>/"
    assert unknown == "Not Found: /join/…/nothing/"


# -- the same error -----------------------------------------------------------------------------------------------


def test_the_same_error_is_written_once_a_minute_and_then_counted(written, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(logs.time, "monotonic", lambda: now[0])
    for _ in range(5):
        fail(ValueError("no more"))
    fail(KeyError("another kind"))
    assert len(written()) == 2
    now[0] += logs.AGAIN
    fail(ValueError("no more"))
    lines = [json.loads(line) for line in written()]
    assert [line.get("suppressed", 0) for line in lines] == [0, 0, 4]
    assert lines[2]["exception"].endswith("ValueError: no more")


def test_a_number_that_somebody_was_told_stands_in_the_log_although_the_error_was_written_before(written):
    for number in ("a1", "b2"):
        try:
            raise ValueError("no more")
        except ValueError:
            extra = {"fault": number}
            logging.getLogger("touchstone.test").exception("fault %s: a job failed", number, extra=extra)
    first, second = (json.loads(line) for line in written())
    assert first["message"] == "fault a1: a job failed"
    assert first["exception"].endswith("ValueError: no more")
    assert second["message"] == "fault b2: a job failed (ValueError: no more)"
    assert "exception" not in second


def test_a_flood_of_numbers_is_counted_and_not_written(written, monkeypatch):
    monkeypatch.setattr(logs, "MOST_BRIEF", 3)
    now = [1000.0]
    monkeypatch.setattr(logs.time, "monotonic", lambda: now[0])
    for _ in range(10):
        fail(ValueError("no more"), status_code=500)
    assert len(written()) == 1 + 3
    now[0] += logs.AGAIN
    fail(ValueError("no more"), status_code=500)
    *_, last = (json.loads(line) for line in written())
    assert last["suppressed"] == 9
    assert last["exception"].endswith("ValueError: no more")


def test_what_was_counted_is_told_when_the_error_does_not_come_back(written, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(logs.time, "monotonic", lambda: now[0])
    for _ in range(3):
        fail(ValueError("no more"))
    now[0] += logs.AGAIN
    logging.getLogger("touchstone.test").info("all is well")
    fail(KeyError("later"))
    fail(KeyError("later"))
    logging.getLogger().handlers[0].close()
    lines = [json.loads(line) for line in written()]
    assert [(line["message"], line.get("suppressed", 0)) for line in lines] == [
        ("it failed", 0), ("it failed", 2), ("all is well", 0), ("it failed", 0), ("it failed", 1)
    ]  # fmt: skip
    assert "exception" not in lines[1]


def test_without_a_minute_every_error_is_written(written, monkeypatch):
    """The control."""
    monkeypatch.setattr(logs, "AGAIN", 0.0)
    for _ in range(5):
        fail(ValueError("no more"))
    assert len(written()) == 5


@pytest.mark.django_db
def test_what_visitors_do_wrong_has_a_line_each(written):
    for _ in range(3):
        Client().get("/nowhere/")
    assert len(written()) == 3


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", ["/results/", "/api/v1/campaigns"])
def test_a_503_is_one_line_and_many_are_one(path, written):
    client = Client(raise_request_exception=False)
    client.force_login(make_user("mara", "manager"))

    def full(execute, sql, params, many, context):
        if "judging_campaign" in sql:
            raise OperationalError("could not extend file\nHINT: Check free disk space.") from DiskFull()
        return execute(sql, params, many, context)

    with connection.execute_wrapper(full):
        answers = [client.get(path) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [503] * 4
    (line,) = errors(written())
    assert line["message"].startswith("Service Unavailable: /")
    assert line["message"].endswith(" (OperationalError: could not extend file)")
    assert line["request_id"] == answers[0]["X-Request-ID"]
    assert "exception" not in line


@pytest.mark.django_db
def test_a_500_has_its_traceback(written, monkeypatch):
    """The control of the line above, and the page that names the request."""

    monkeypatch.setattr("touchstone.views.signs.worker_is_running", lambda: 1 / 0)
    client = Client(raise_request_exception=False)
    client.force_login(make_user("mara", "manager"))
    answer = client.get(reverse("account-tokens"))
    assert answer.status_code == 500
    (line,) = errors(written())
    assert line["exception"].endswith("ZeroDivisionError: division by zero")
    assert f"<code>{line['request_id']}</code>" in answer.content.decode()


# -- processes ----------------------------------------------------------------------------------------------------


def test_gunicorn_writes_json_too(tmp_path):
    command = [sys.executable, "-m", "gunicorn", "wsgiref.simple_server:demo_app", "--no-control-socket"]
    command += ["--bind", "127.0.0.1:0"]  # whatever port is free
    with (tmp_path / "log").open("w") as log:
        child = subprocess.Popen(
            [*command, "--logger-class", "touchstone.gunicorn_log.Log"],
            stderr=log,
            stdout=log,
            env=environment(),
        )
        try:
            until(lambda: "Booting worker" in (tmp_path / "log").read_text())
        finally:
            child.terminate()
            child.wait(20)
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert {line["logger"] for line in lines} == {"gunicorn.error"}
    assert lines[0]["message"].startswith("Starting gunicorn")


def environment():
    return {**os.environ, "LOG_FORMAT": "json"}


def until(condition, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)


def test_an_unknown_format_is_refused():
    said = subprocess.run(
        [sys.executable, "-c", "import touchstone.settings"],
        env={**environment(), "LOG_FORMAT": "xml", "SECRET_KEY": "x"},
        capture_output=True,
        text=True,
    )
    assert "LOG_FORMAT is text or json, not xml" in said.stderr


WRITER = """
import time
n = 0
while True:
    print(n, "x" * 100, flush=True)
    n += 1
    time.sleep(.0005)
"""


def test_a_log_is_five_files_of_a_limited_size_while_its_process_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "LARGEST_LOG", 10_000)
    program = processes.Program("writer", [sys.executable, "-c", WRITER])
    program.start(tmp_path)
    pid = program.process.pid
    try:
        for _ in range(8):
            until(lambda: (tmp_path / "writer.log").stat().st_size >= 10_000)
            program.rotate_log(tmp_path)
        until(lambda: (tmp_path / "writer.log").stat().st_size > 0)
        assert program.process.poll() is None
        assert program.process.pid == pid
    finally:
        program.stop()
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "writer.log", "writer.log.1", "writer.log.2", "writer.log.3", "writer.log.4"
    ]  # fmt: skip
    numbers = []
    for name in ("writer.log.4", "writer.log.3", "writer.log.2", "writer.log.1", "writer.log"):
        content = (tmp_path / name).read_bytes()
        assert b"\0" not in content, "the process writes at the end of what there is now"
        whole = content.splitlines()[1:]  # a file may begin within a line
        numbers += [int(line.split()[0]) for line in whole if line.endswith(b"x" * 100)]
    assert numbers == sorted(numbers)
    assert numbers[0] > 0


def test_a_log_that_is_not_large_stays(tmp_path):
    program = processes.Program("quiet", ["true"])
    (tmp_path / "quiet.log").write_text("a line\n")
    program.rotate_log(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["quiet.log"]


def test_the_log_of_postgresql_rotates_too(tmp_path, monkeypatch):
    servers = embedded.Servers(tmp_path / "var")
    servers.start()
    try:
        folder = servers.root / "log"
        monkeypatch.setattr(processes, "LARGEST_LOG", 1)
        with psycopg.connect(servers.database_url, autocommit=True) as database:
            for words in ("the first", "the second"):
                with pytest.raises(psycopg.errors.RaiseException):
                    database.execute(f"DO $$ BEGIN RAISE EXCEPTION '{words}'; END $$")
                until(lambda words=words: words in (folder / "postgres.log").read_text())
                servers.postgres.rotate_log(folder)
        assert "the first" in (folder / "postgres.log.2").read_text()
        assert "the second" in (folder / "postgres.log.1").read_text()
        assert (folder / "postgres.log").stat().st_size == 0
    finally:
        servers.stop()
