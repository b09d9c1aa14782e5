"""The front door: what it holds, what it hands on, what it says when nobody is behind it; the stack with it."""

import base64
import contextlib
import hashlib
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from touchstone import embedded, front
from touchstone.processes import Program, answers, family_of, lives

REPOSITORY = Path(__file__).resolve().parents[2]
# A web process with one thread, as a wall: whatever reaches it slowly stops it. It says what it was sent.
WALL = """
import json, os, sys
from wsgiref.simple_server import make_server, WSGIRequestHandler
class Quiet(WSGIRequestHandler):
    def log_message(self, *args): pass
def application(environ, start_response):
    n = len(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
    names = ("HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_PROTO", "HTTP_HOST")
    said = json.dumps({"pid": os.getpid(), "bytes": n, **{name: environ.get(name) for name in names}}).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(said)))])
    return [said]
make_server("127.0.0.1", int(sys.argv[1]), application, handler_class=Quiet).serve_forever()
"""
HALF_BODY = b"POST /manage/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n" + b"x" * 50
TOKEN = "dGhpcyBpcyBhIHNlY3JldCBvZiBhIGxpbmssIGlzbi0"  # 43 characters, as in links into accounts
PLACES = ("login/invited", "login/password", "login/address", "login/company/invited", "letters/off")
SECRET_PATHS = [f"/{place}/{TOKEN}/" for place in PLACES]
HALF_HEAD = b"GET /manage/ HTTP/1.1\r\nHost: loc"


class Site:
    """A front door before walls, on a port of its own."""

    def __init__(self, folder: Path, n: int, config: Path | None = None) -> None:
        self.folder, self.port = folder, embedded.free_port()
        self.ports = [embedded.free_port() for _ in range(n)]
        self.walls: list[Program] = []
        places = [f"127.0.0.1:{port}" for port in self.ports]
        settings = front.environment(f"http://:{self.port}", places, folder / "front", bind="127.0.0.1")
        command = [*front.command()[:-1], str(config)] if config else front.command()
        self.door = Program("front", command, settings)

    def start(self) -> None:
        self.door.start(self.folder / "log")
        until(lambda: not embedded.is_free(self.port))

    def build(self, port: int) -> Program:
        wall = Program(f"wall-{port}", [sys.executable, "-c", WALL, str(port)])
        wall.start(self.folder / "log")
        self.walls.append(wall)
        return wall

    def stop(self) -> None:
        for program in (self.door, *self.walls):
            program.stop()


def until(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.05)


def ask(
    port: int, path: str = "/", body: bytes = b"", **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST" if body else "GET", path, body or None, headers)
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


@contextlib.contextmanager
def half_sent(port: int, data: bytes, n: int):
    with contextlib.ExitStack() as stack:
        for _ in range(n):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            connection.sendall(data)
        yield


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path, 1)
    made.build(made.ports[0])
    made.start()
    until(lambda: not embedded.is_free(made.ports[0]))
    yield made
    made.stop()


def is_blocked(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status != 200
    except OSError:
        return True
    finally:
        connection.close()


def test_what_is_half_sent_never_reaches_a_web_process(site):
    for data in (HALF_HEAD, HALF_BODY):
        with half_sent(site.port, data, 20):
            assert not is_blocked(site.port)
    with half_sent(site.ports[0], HALF_BODY, 1):  # the control: without the front door one is enough
        assert is_blocked(site.ports[0])


def test_a_client_is_who_the_front_door_saw_whatever_it_wrote_itself(site):
    spoofed = {"X-Forwarded-For": "6.6.6.6", "X-Forwarded-Proto": "https"}
    direct = json.loads(ask(site.ports[0], **spoofed)[1])
    assert (direct["HTTP_X_FORWARDED_FOR"], direct["HTTP_X_FORWARDED_PROTO"]) == ("6.6.6.6", "https")
    answer, body = ask(site.port, **spoofed)
    passed = json.loads(body)
    assert (passed["HTTP_X_FORWARDED_FOR"], passed["HTTP_X_FORWARDED_PROTO"]) == ("127.0.0.1", "http")
    assert passed["HTTP_HOST"] == f"127.0.0.1:{site.port}"
    assert "Caddy" not in str(answer.getheaders())


def test_only_methods_that_somebody_uses_reach_a_web_process(site):
    for method, status in (("GET", 200), ("PATCH", 200), ("TRACE", 405), ("TRACK", 405), ("FOO", 405)):
        connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=30)
        connection.request(method, "/", headers={"X-Secret": "of the sender"})
        answer = connection.getresponse()
        assert answer.status == status, method
        assert b"of the sender" not in answer.read()
        connection.close()


def test_a_long_body_flows_through_and_is_not_kept(site):
    length, sent = 8 * 2**20, 3 * 2**20
    with socket.create_connection(("127.0.0.1", site.port)) as client:
        client.sendall(b"POST /up HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % length)
        client.sendall(b"x" * sent)
        wall = psutil.Process(site.walls[0].process.pid)
        # The wall has one thread: it reads this body, long before its end.
        until(lambda: any(c.status == "ESTABLISHED" for c in wall.net_connections()))
        assert is_blocked(site.port)
        client.sendall(b"x" * (length - sent))
        assert client.recv(100).startswith(b"HTTP/1.1 200")


def test_a_request_waits_for_a_web_process_that_starts(tmp_path):
    made = Site(tmp_path, 2)
    made.start()
    try:
        threading.Timer(1.0, made.build, [made.ports[1]]).start()
        began = time.monotonic()
        answer, _ = ask(made.port)
        assert answer.status == 200
        assert 0.9 < time.monotonic() - began < 6
    finally:
        made.stop()


def test_where_nobody_answers_a_page_says_so_and_a_program_gets_a_problem(tmp_path):
    made = Site(tmp_path, 2)
    made.start()
    try:
        began = time.monotonic()
        page, text = ask(made.port, "/judge/?worker=secret")
        assert 4 < time.monotonic() - began < 20
        assert page.status in (502, 503)
        assert "The server cannot answer now" in text.decode()
        assert (page.headers["Refresh"], page.headers["Cache-Control"]) == ("5", "no-store")
        sent, text = ask(made.port, "/manage/", b"a=b")
        assert sent.headers["Refresh"] is None
        problem, text = ask(made.port, "/api/v1/campaigns/1/judgments", b"{}")
        assert problem.headers["Content-Type"] == "application/problem+json"
        assert json.loads(text)["status"] == problem.status >= 502
        assert problem.headers["Retry-After"] == "1"
    finally:
        made.stop()
    log = (tmp_path / "log" / "front.log").read_text()
    assert "secret" not in log


@pytest.mark.parametrize("is_filtered", [True, False], ids=["the rule", "the control, without it"])
def test_secrets_of_links_are_in_no_line_however_much_the_front_door_writes(is_filtered, tmp_path):
    text = (REPOSITORY / "deploy" / "Caddyfile").read_text().replace("level WARN", "level DEBUG")
    if not is_filtered:
        text = re.sub(r"\t+request>uri regexp .*\n", "", text)
    config = tmp_path / "Caddyfile"
    config.write_text(text)
    made = Site(tmp_path, 1, config)
    made.start()
    try:
        made.build(made.ports[0])
        for path in SECRET_PATHS:
            assert ask(made.port, path)[0].status == 200
    finally:
        made.stop()
    log = (tmp_path / "log" / "front.log").read_text()
    assert log.count('"uri":') >= len(SECRET_PATHS)
    assert (TOKEN in log) is not is_filtered


def test_the_page_needs_nothing_but_the_style_that_its_policy_allows():
    page = (REPOSITORY / "deploy" / "unavailable.html").read_text()
    (style,) = re.findall(r"<style>(.*?)</style>", page, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in (REPOSITORY / "deploy" / "Caddyfile").read_text()
    assert not re.search(r"<script|<img|<link|style=|src=", page)
    assert {"es", "de", "zh-Hans"} <= set(re.findall(r'lang="([^"]+)"', page))


# -- the embedded stack -------------------------------------------------------------------------------------


def both_listen(logs):
    files = [logs / "web-1.log", logs / "web-2.log"]
    return all(file.exists() and "Listening at" in file.read_text() for file in files)


def test_the_embedded_stack_is_reached_through_the_front_door_and_survives_a_web_process(tmp_path):
    root, port = tmp_path / "var", embedded.free_port()
    environment = {**os.environ, "TOUCHSTONE_VAR": str(root)}
    command = [sys.executable, str(REPOSITORY / "manage.py"), "stack", "--port", str(port)]
    stack = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    family: list[psutil.Process] = []
    try:
        said = ""
        while "runs at" not in said:
            said = stack.stdout.readline()
            assert said, "the stack ended"
        assert f"http://127.0.0.1:{port}/" in said
        until(lambda: both_listen(root / "log"))  # the address is told when one of them does
        family = [
            p for pid, _ in json.loads((root / "stack.json").read_text())["processes"] for p in family_of(pid)
        ]

        ready, text = ask(port, "/readyz")
        assert (ready.status, json.loads(text)["checks"]["write"]) == (200, "ok")
        _, page = ask(port, "/login/")
        (script,) = re.findall(r'href="(/static/touchstone/style[^"]*\.css)"', page.decode())
        style, _ = ask(port, script, **{"Accept-Encoding": "gzip"})
        assert style.headers["Content-Encoding"] == "gzip"
        assert "immutable" in style.headers["Cache-Control"]

        (first,) = [p for p in family if p.cmdline()[-1].startswith("127.0.0.1:") and p.ppid() == stack.pid][
            :1
        ]
        first.kill()
        until(lambda: not lives(first))
        assert all(ask(port, "/login/")[0].status == 200 for _ in range(20))
        answers(f"http://127.0.0.1:{port}/readyz")()
    finally:
        stack.terminate()
        stack.wait(60)
        stack.stdout.close()
    assert [p for p in family if lives(p)] == []
