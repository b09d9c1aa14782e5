"""`make sbom` and `make audit`: what the product consists of, and what is known against it."""

import json
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
LOCK = REPOSITORY / "requirements.lock"
# Three packages of the lock file are enough to ask a service about.
SMALL = ["celery", "django", "gunicorn"]


def run(program, *arguments, **environment):
    command = [sys.executable, str(REPOSITORY / ".ci" / program), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment or None)


def locked():
    """Return every package of the lock file with its version, read by a rule of our own."""
    return dict(re.findall(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^ ;\\]+)", LOCK.read_text(), re.MULTILINE))


@pytest.mark.slow
def test_the_bill_of_materials_names_what_the_lock_file_names_and_is_the_same_each_time(tmp_path):
    first, second = tmp_path / "made" / "first.json", tmp_path / "second.json"
    with ThreadPoolExecutor(2) as pool:
        for made in pool.map(lambda target: run("sbom.py", target), (first, second)):
            assert made.returncode == 0, made.stderr
    assert first.read_bytes() == second.read_bytes()
    bill = json.loads(first.read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["name"] == "touchstone"
    named = {part["name"].lower(): part["version"] for part in bill["components"]}
    assert named == locked()
    assert all(part["externalReferences"][0]["hashes"] for part in bill["components"])


class Service(BaseHTTPRequestHandler):
    """Answers as a service of known vulnerabilities does."""

    known: dict[str, str] = {}  # package: the version that mends it
    status = 200
    asked: list[tuple[str, str]] = []

    def do_POST(self):
        query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = query["package"]["name"]
        self.asked.append((name, query["version"]))
        body = {}
        if name in self.known:
            events = [{"introduced": "0"}, {"fixed": self.known[name]}]
            affected = [
                {
                    "package": {"name": name, "ecosystem": "PyPI"},
                    "ranges": [{"type": "ECOSYSTEM", "events": events}],
                }
            ]
            body = {"vulns": [{"id": "TEST-2026-1", "summary": "a planted one", "affected": affected}]}
        self.send_response(self.status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *arguments):
        pass


@pytest.fixture
def service():
    """An address that answers, and what it is to know."""
    handler = type("OfOneTest", (Service,), {"known": {}, "asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1/query", handler
        server.shutdown()
        thread.join(10)


@pytest.fixture
def small_lock(tmp_path):
    lines = LOCK.read_text()
    parts = [re.search(rf"^{name}==[^\n]*\n(?:    --hash[^\n]*\n)+", lines, re.MULTILINE) for name in SMALL]
    lock = tmp_path / "small.lock"
    lock.write_text("".join(part.group() for part in parts))
    return lock


def test_an_audit_asks_about_every_package_and_finds_nothing_where_nothing_is_known(service, small_lock):
    address, handler = service
    said = run("audit.py", "--service", address, "--lock", small_lock)
    assert said.returncode == 0, said.stderr
    assert said.stdout == "3 packages checked, no known vulnerabilities\n"
    assert sorted(handler.asked) == [(name, locked()[name]) for name in SMALL]


def test_a_known_vulnerability_is_named_and_fails_the_audit(service, small_lock):
    address, handler = service
    handler.known = {"django": "99.1"}
    said = run("audit.py", "--service", address, "--lock", small_lock)
    assert said.returncode == 1
    assert f"django {locked()['django']}: TEST-2026-1, mended in 99.1\n" in said.stdout


def test_a_service_that_does_not_answer_is_no_finding_and_no_all_clear(service, small_lock):
    address, handler = service
    handler.status = 503
    for place in (address, "http://127.0.0.1:1/v1/query"):
        said = run("audit.py", "--service", place, "--lock", small_lock)
        assert (said.returncode, said.stderr) == (0, "")
        assert said.stdout.startswith("not checked: the service gave no answer")
        assert "packages checked" not in said.stdout


def test_a_lock_file_without_hashes_is_refused_whatever_the_service_says(service, tmp_path):
    lock = tmp_path / "bare.lock"
    lock.write_text("django==5.2.19\n")
    said = run("audit.py", "--service", service[0], "--lock", lock)
    assert said.returncode == 2
    assert "not checked" in said.stderr
    assert service[1].asked == []
