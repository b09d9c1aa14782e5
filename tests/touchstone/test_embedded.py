"""The embedded stack: real servers in a folder of their own, kept alive, stopped without a trace."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from touchstone import embedded, processes
from touchstone.management.commands import stack

# A supervisor as `manage.py stack` is one, with one sleeping program instead of the product's three.
SUPERVISOR = """
import sys
from pathlib import Path
from touchstone import embedded
root = Path(sys.argv[1])
embedded.stoppable()
try:
    with embedded.stack(root) as servers:
        # The program has a child, which outlives it: both must be gone in the end.
        sleeper = [sys.executable, "-c", "import subprocess; subprocess.run(['sleep', '600'])"]
        embedded.supervise(root, servers, [embedded.Program("sleeper", sleeper)], print)
except embedded.Stop:
    print("stopped")
except embedded.StackError as error:
    sys.exit(f"refused: {error}")
"""


def until(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)


def processes_of(root: Path) -> list[psutil.Process]:
    """Return every living process that the stack on this folder started, by its folder and by what it says itself."""
    found = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if str(root) in " ".join(process.cmdline()) and process.pid != os.getpid():
                found[process.pid] = process
    for pid, _ in state(root).get("processes", []):
        for process in processes.family_of(pid):
            found[process.pid] = process
    return [process for process in found.values() if processes.lives(process)]


def state(root: Path) -> dict:
    with contextlib.suppress(FileNotFoundError):
        return json.loads((root / "stack.json").read_text())
    return {}


def process_of(root: Path, name: str) -> psutil.Process:
    """Return the announced process of this name; its log file is its standard output."""
    for pid, _ in state(root)["processes"]:
        with contextlib.suppress(psutil.NoSuchProcess, FileNotFoundError):
            if os.readlink(f"/proc/{pid}/fd/1").endswith(f"/{name}.log"):
                return psutil.Process(pid)
    raise AssertionError(f"no process {name} is announced")


def answers(root: Path) -> bool:
    """Return whether both servers that are announced answer, and the program runs."""
    try:
        known = state(root)
        psycopg.connect(known["owner_url"], connect_timeout=2).close()
        with redis.Redis.from_url(known["redis_url"], socket_timeout=2) as client:
            client.ping()
        return len(known["processes"]) == 3 and all(psutil.pid_exists(pid) for pid, _ in known["processes"])
    except (KeyError, psycopg.OperationalError, redis.RedisError):
        return False


@contextlib.contextmanager
def supervisor(root: Path) -> Iterator[subprocess.Popen]:
    process = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, str(root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(10)
        process.stdout.close()
        processes.end(processes_of(root), seconds=10)


def count_rows(url: str) -> int:
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT count(*) FROM kept").fetchone()[0]


@pytest.fixture
def private_folder(tmp_path: Path) -> Path:
    """A folder that only its owner may enter, below another such one."""
    root = tmp_path / "closed" / "var"
    root.mkdir(parents=True)
    for folder in (root, root.parent):
        folder.chmod(0o700)
    return root


def test_the_servers_run_in_a_folder_only_its_owner_may_enter_and_keep_what_is_committed(private_folder):
    servers = embedded.Servers(private_folder)
    servers.start()
    try:
        with psycopg.connect(servers.database_url, autocommit=True) as connection:
            settings = dict(connection.execute("SELECT name, setting FROM pg_settings").fetchall())
            connection.execute("CREATE TABLE kept AS SELECT 1 AS grade")
        with redis.Redis.from_url(servers.redis_url) as client:
            assert client.ping()
    finally:
        servers.stop()
    wanted = ("synchronous_commit", "fsync", "full_page_writes", "data_checksums", "listen_addresses")
    assert [settings[name] for name in wanted] == ["on", "on", "on", "on", "127.0.0.1"]
    assert processes_of(private_folder) == []
    again = embedded.Servers(private_folder)
    again.start()
    try:
        assert count_rows(again.database_url) == 1
    finally:
        again.stop()


def test_nobody_gets_in_without_the_password_and_the_secrets_are_the_owners(servers):
    for url, fault in [
        (
            servers.database_url.replace(":" + servers.database_url.split(":")[2].split("@")[0], ":wrong"),
            "password",
        ),
        (f"postgresql://touchstone@127.0.0.1:{servers.postgres_port}/touchstone", "password"),
    ]:
        with pytest.raises(psycopg.OperationalError, match=fault):
            psycopg.connect(url, connect_timeout=2)
    with redis.Redis(port=servers.redis_port) as client, pytest.raises(redis.AuthenticationError):
        client.ping()
    assert (servers.root / "secrets").stat().st_mode & 0o777 == 0o700
    for secret in [*(servers.root / "secrets").iterdir(), servers.root / "redis" / "redis.conf"]:
        assert secret.stat().st_mode & 0o777 == 0o600
    password = (servers.root / "secrets" / "redis").read_text()
    assert password not in " ".join(psutil.Process(servers.redis.process.pid).cmdline())


def test_a_supervisor_revives_what_is_killed_refuses_a_second_and_stops_without_a_trace(private_folder):
    with supervisor(private_folder) as first:
        until(lambda: answers(private_folder))
        url = state(private_folder)["owner_url"]
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1 AS grade")

        second = subprocess.run(
            [sys.executable, "-c", SUPERVISOR, str(private_folder)],
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert second.returncode == 1
        assert second.stderr.strip() == f"refused: Touchstone already runs on {private_folder}"
        assert answers(private_folder)

        until(lambda: len(processes.family_of(process_of(private_folder, "sleeper").pid)) == 2)
        orphan = processes.family_of(process_of(private_folder, "sleeper").pid)[1]
        for name in ("postgres", "redis", "sleeper"):
            killed = process_of(private_folder, name)
            killed.kill()
            until(lambda killed=killed: not processes.lives(killed))
            until(
                lambda killed=killed: killed.pid not in [pid for pid, _ in state(private_folder)["processes"]]
            )
            until(lambda: answers(private_folder))
        assert state(private_folder)["owner_url"] == url
        assert count_rows(url) == 1

        assert not processes.lives(
            orphan
        )  # the child of the killed program had to go before it was started again
        family = processes_of(private_folder)
        first.send_signal(signal.SIGTERM)
        assert first.wait(20) == 0
        said = first.stdout.read()
    assert said.count("starting it again") == 3
    assert said.endswith("stopped\n")
    assert [process for process in family if processes.lives(process)] == []
    assert processes_of(private_folder) == []
    assert not (private_folder / "stack.json").exists()


def names_of(family):
    return {process.name() for process in family if processes.lives(process)}


def test_what_a_killed_supervisor_left_behind_is_stopped_at_the_next_start(private_folder):
    names = {"postgres", "redis-server", "sleep"}
    with supervisor(private_folder) as killed:
        until(lambda: answers(private_folder))
        until(lambda: names_of(processes_of(private_folder)) >= names)  # the program comes after its servers
        left = [process for process in processes_of(private_folder) if process.pid != killed.pid]
        killed.kill()
        killed.wait(10)
        left = [process for process in left if processes.lives(process)]  # the database's helpers come and go
        assert names_of(left) >= names
        with supervisor(private_folder) as following:
            until(lambda: state(private_folder).get("pid") == following.pid and answers(private_folder))
            assert [process for process in left if processes.lives(process)] == []
            following.send_signal(signal.SIGINT)
            assert following.wait(20) == 0
    assert processes_of(private_folder) == []


def test_a_process_that_got_the_pid_of_a_noted_one_is_left_alone(tmp_path):
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as stranger:
        noted = psutil.Process(stranger.pid).create_time() - 3600
        (tmp_path / "stack.json").write_text(json.dumps({"pid": 1, "processes": [[stranger.pid, noted]]}))
        embedded.stop_leftovers(tmp_path)
        assert stranger.poll() is None
        assert not (tmp_path / "stack.json").exists()
        stranger.kill()


def test_a_server_that_cannot_start_is_named_with_its_log(private_folder):
    servers = embedded.Servers(private_folder)
    servers.redis.command = [sys.executable, "-c", "raise SystemExit('the disk is full')"]
    try:
        with pytest.raises(embedded.StackError, match=r"redis did not start .*redis\.log"):
            servers.start()
    finally:
        servers.stop()
    assert "the disk is full" in (private_folder / "log" / "redis.log").read_text()


def test_a_stack_that_does_not_run_has_no_addresses(tmp_path):
    assert embedded.running_stack(tmp_path) == {}
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    (tmp_path / "stack.json").write_text(json.dumps({"pid": gone.pid, "database_url": "x"}))
    assert embedded.running_stack(tmp_path) == {}
    (tmp_path / "stack.json").write_text('{"pid": ')
    assert embedded.running_stack(tmp_path) == {}


def test_a_secret_is_made_once(tmp_path):
    first = embedded.secret(tmp_path, "django")
    assert len(first) >= 50
    assert embedded.secret(tmp_path, "django") == first
    assert embedded.secret(tmp_path, "redis") != first


def test_the_folder_of_a_stack_is_closed_to_others_and_one_that_is_everybodys_stays_open(tmp_path):
    made, opened, shared = tmp_path / "made" / "var", tmp_path / "opened", tmp_path / "shared"
    opened.mkdir()
    opened.chmod(0o755)
    shared.mkdir()
    shared.chmod(0o1777)
    for folder in (made, opened, shared):
        embedded.secret(folder, "django")
    assert [folder.stat().st_mode & 0o7777 for folder in (made, opened, shared)] == [0o700, 0o700, 0o1777]
    assert (shared / "secrets").stat().st_mode & 0o777 == 0o700


def test_the_servers_run_in_a_closed_folder(servers):
    assert servers.root.stat().st_mode & 0o777 == 0o700


# A web process as gunicorn is one: it ends when its port is taken, and says which stack it belongs to.
SMALL_WEB = """
import http.server, os, sys
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(os.environ["TOUCHSTONE_STACK"].encode())
http.server.HTTPServer(("127.0.0.1", int(sys.argv[-1].partition(":")[2])), Page).serve_forever()
"""


@pytest.fixture
def small_web(monkeypatch, settings, tmp_path):
    """Return a function that makes a web program on a port; what it has started is stopped in the end."""
    settings.VAR = tmp_path
    monkeypatch.setattr(stack, "_module", lambda command, *more: [sys.executable, "-c", SMALL_WEB, *more])
    made = []

    def make(port: int) -> stack.Web:
        made.append(stack.Web("web", [], port=port))
        made[-1].start(tmp_path / "log")
        return made[-1]

    yield make
    for web in made:
        web.stop()


def test_two_stacks_that_want_one_port_get_two_and_each_knows_its_own(small_web):
    first = small_web(embedded.free_port())
    first.ready()
    second = small_web(first.port)
    second.ready()
    assert second.port != first.port
    for web in (first, second):
        embedded.answers(f"{web.address}livez", web.stack, seconds=5)()
    with pytest.raises(embedded.StackError, match="somebody else does"):
        embedded.answers(f"{first.address}livez", second.stack, seconds=0.3)()


def test_a_web_process_that_falls_for_another_reason_is_not_started_on_other_ports(small_web):
    web = small_web(port := embedded.free_port())
    web.process.kill()
    web.process.wait()
    with pytest.raises(embedded.StackError, match="does not answer"):
        web.ready()
    assert web.port == port


def test_a_free_port_is_outside_of_those_lent_to_clients():
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(1024 < embedded.free_port() < low for _ in range(20))
