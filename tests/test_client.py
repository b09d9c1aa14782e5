"""The client in touchstone_ir: against the real server, and against one that answers badly on purpose."""

import hashlib
import io
import subprocess
import sys
import threading
import uuid
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from live import key_of, stack
from small_campaign import RUNS, TOPICS, doc_id, judge_all, judge_audit, make_assessor, make_campaign

from analytics.services.exports import EXPORTS
from analytics.services.recomputation import recompute
from sampling.services.auditing import audit
from touchstone.api.schema import description
from touchstone_ir.client import (
    ApiError,
    Client,
    DownloadDamaged,
    JobFailed,
    JobTimeout,
    Judgment,
    Outcome,
    Submission,
)
from touchstone_ir.client import transport as transport_module

ROOT = Path(__file__).parent.parent
ZIP = b"PK not really a zip" * 1000


# -- against the real server ----------------------------------------------------------------------------------


@pytest.fixture
def campaign(tmp_path):
    made = make_campaign(tmp_path)
    judge_all(made, [make_assessor(made, "ann"), make_assessor(made, "ben")])
    audit(campaign=made, items_each_time=30, items_in_total=30, seed=5)
    judge_audit(made, make_assessor(made, "greta", tier="gold"))
    recompute(campaign=made)
    return made


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_everything_the_client_offers_works_on_the_real_server(child_environment, campaign, tmp_path):
    key, manager_key = key_of("rhea", "researcher"), key_of("mia", "manager")
    row = str(campaign.pk)
    with stack(child_environment) as address, Client(address, key) as mine:
        assert mine.me()["username"] == "rhea"
        assert [one["id"] for one in mine.campaigns()] == [row]
        _reads_numbers(mine, row, campaign)
        _reads_judgments(mine, row, campaign, tmp_path)
        _brings_a_run(mine, row)
        _refusals_are_exceptions(mine, row, address)
        with Client(address, manager_key) as manager:
            assert manager.wait(manager.recompute(row))["kind"] == "estimate"
        _makes_and_fetches_a_release(mine, row, tmp_path)


def _reads_numbers(mine: Client, row: str, campaign: Any) -> None:
    newest = campaign.computations.order_by("-id").first()
    assert len(list(mine.estimates(row, page_size=9))) == newest.estimates.count()
    assert {e["against"] for e in mine.estimates(row, pairs=False)} == {None}
    assert [m["is_usual"] for m in mine.measures(row)["measures"]].count(True) == 1
    assert len(list(mine.comparisons(row, measure="P@10"))) == 3
    assert "run0" in mine.compare(row, "run0", "run2", "P@10")["verdict"]
    assert len(mine.ranking(row)["runs"]) == len(RUNS)
    assert mine.plot(row, "forest", format="png").startswith(b"\x89PNG")


def _reads_judgments(mine: Client, row: str, campaign: Any, folder: Path) -> None:
    log = list(mine.judgments(row, tier="gold", page_size=7))
    columns = ("pk", "item__topic__topic_id", "item__document__doc_id", "grade")
    stored = campaign.assessors.get(tier="gold").judgments.order_by("pk").values_list(*columns)
    assert len(stored) > 20
    assert [(one["id"], one["topic_id"], one["doc_id"], one["grade"]) for one in log] == list(stored)
    for one in EXPORTS:
        path = mine.export(row, one.key, folder / one.key)
        assert path.read_text() == "".join(one.lines(campaign, True))
    as_given = mine.export(row, "qrels", folder / "as_given", prefers_gold=False)
    assert as_given.read_text() == "".join(EXPORTS[0].lines(campaign, False))
    with pytest.raises(ApiError) as absent:
        mine.export(row, "nonsense", folder / "nonsense")
    assert absent.value.status == 404
    assert not list(folder.glob("nonsense*"))


def _brings_a_run(mine: Client, row: str) -> None:
    lines = "".join(
        f"{topic_id} Q0 {doc_id(topic, place)} {place + 1} {20 - place} mine\n"
        for topic, topic_id in enumerate(TOPICS)
        for place in range(10)
    )
    notes: list[str] = []
    job = mine.upload_run(row, ("mine.run", io.BytesIO(lines.encode())), against="run0", may_publish=True)
    done = mine.wait(job, tell=lambda now: notes.append(now["state"]))
    assert (done["result"]["run"], notes[-1]) == ("mine", "done")
    told = mine.run_estimate(row, "mine", "P@10", against="run0")
    assert told["differences"]
    # These are the documents of run0 in the order of run0: no judgment can tell them apart.
    assert {e["value"] for e in told["differences"]} == {0.0}
    bad = mine.upload_run(row, ("bad.run", io.BytesIO(b"t0 Q0 d 1 nan bad\n")))
    with pytest.raises(JobFailed, match=r"bad\.run:1:"):
        mine.wait(bad)


def _refusals_are_exceptions(mine: Client, row: str, address: str) -> None:
    with pytest.raises(ApiError) as refused:
        mine.compare(row, "run0", "nobody")
    assert (refused.value.status, list(refused.value.errors)) == (400, ["against"])
    with pytest.raises(ApiError) as absent:
        mine.measures("00000000-0000-4000-8000-000000000000")
    assert (absent.value.status, absent.value.type) == (404, "/problems/NotFound")
    with Client(address, "touchstone_wrong") as stranger, pytest.raises(ApiError) as unknown:
        stranger.me()
    assert unknown.value.status == 401


def _makes_and_fetches_a_release(mine: Client, row: str, folder: Path) -> None:
    release = mine.make_release(row, "1.0", "Small", authors="Ada")
    assert release["state"] == "ready"
    path = mine.download(row, release, folder)
    content = path.read_bytes()
    assert hashlib.sha256(content).hexdigest() == release["sha256"]
    assert zipfile.ZipFile(path).testzip() is None
    half = path.with_suffix(".part")
    half.write_bytes(content[: len(content) // 2])
    path.unlink()
    assert mine.download(row, release, folder).read_bytes() == content
    path.replace(half)  # all of it was there already
    assert mine.download(row, release, folder).read_bytes() == content
    assert [one["version"] for one in mine.releases(row, state="ready")] == ["1.0"]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_campaign_is_made_and_judged_by_a_function(child_environment):
    keys = {name: key_of(name, role) for name, role in (("mia", "manager"), ("ann", "assessor"))}
    topics = io.BytesIO(b"t1\tcolour of the sky\nt2\ttaste of salt\n")
    lines = [f'{{"_id": "d{n}", "title": "Page {n}", "text": "about the sky"}}\n' for n in range(6)]
    runs = "".join(f"{t} Q0 d{n} {n + 1} {9 - n} only\n" for t in ("t1", "t2") for n in range(6))
    with stack(child_environment) as address, Client(address, keys["mia"]) as manager:
        collection = manager.new_collection("Sky and salt")["id"]
        manager.import_file(collection, "topics", ("topics.tsv", topics))
        manager.import_file(collection, "documents", ("c.jsonl", io.BytesIO("".join(lines).encode())))
        manager.import_file(collection, "runs", ("only.run", io.BytesIO(runs.encode())))
        campaign = manager.new_campaign(collection, "Sky", judgments_per_item=1, gold_check_rate=0)["id"]
        manager.add_assessor(campaign, "ann", kind="machine")
        manager.draw(campaign, question="pool", measure="P@5", depth=6, budget=12, seed=1)
        assert manager.set_state(campaign, "open")["state"] == "open"
        with Client(address, keys["ann"]) as ann:
            seen: list[str] = []

            def by_topic(item: Any) -> int | None:
                seen.append(item["document"]["text"])
                return 3 if "sky" in item["topic"]["title"] else 0

            assert ann.judge(campaign, by_topic, limit=5) == 5
            [item] = ann.claim(campaign, 1)
            whole: Submission = {
                "token": item["token"],
                "client_token": str(uuid.uuid4()),
                "grade": by_topic(item),
                "comment": "seen by hand",
            }
            wrong: Submission = {"token": item["token"], "client_token": "no uuid"}
            assert [one["status"] for one in ann.send(campaign, [whole, wrong])] == [200, 400]
            assert ann.judge(campaign, by_topic) == 6
            assert ann.judge(campaign, by_topic) == 0
        assert set(seen) == {"about the sky"}
        assert [one["comment"] for one in manager.judgments(campaign, comment="yes")] == ["seen by hand"]
        manager.wait(manager.recompute(campaign))
        [naive] = manager.estimates(campaign, measure="P@5", method="naive")
        assert naive["value"] == 0.5  # all of one topic, nothing of the other


# -- against a server that answers as it is told --------------------------------------------------------------


class Scripted(BaseHTTPRequestHandler):
    """Gives one answer of the script after another: (status, headers, body), or None for a connection that ends."""

    script: list[Any]
    seen: list[dict[str, str]]

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.seen.append({"path": self.path, "body": body.decode(errors="replace"), **dict(self.headers)})
        answer = self.script.pop(0)
        if answer is None:
            self.connection.close()
            return
        status, headers, content = answer
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), "Connection": "close", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def scripted(*answers: Any) -> Iterator[tuple[str, list[dict[str, str]]]]:
    handler: Any = type("Handler", (Scripted,), {"script": list(answers), "seen": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", handler.seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(autouse=True)
def short_pauses(request, monkeypatch):
    """Where the server is scripted nobody waits: the waits are noted."""
    waits: list[float] = []
    if "child_environment" not in request.fixturenames:
        monkeypatch.setattr(transport_module.time, "sleep", waits.append)
    return waits


BUSY = (503, {"Retry-After": "7"}, b'{"title": "busy"}')
OK = (
    200,
    {"Content-Type": "application/json"},
    b'{"state": "done", "id": "1", "kind": "estimate", "results": []}',
)


def test_a_post_that_met_a_busy_server_is_sent_again_with_its_key_after_the_time_it_asked_for(short_pauses):
    answers = [BUSY, (429, {}, b"{}"), None, (409, {"Retry-After": "1"}, b"{}"), OK]
    with scripted(*answers) as (address, seen), Client(address, "k") as client:
        assert client.http.post("campaigns", {"name": "x"})["state"] == "done"
    assert len({request["Idempotency-Key"] for request in seen}) == 1
    assert {request["body"] for request in seen} == {'{"name":"x"}'}
    assert len(seen) == len(answers)
    assert short_pauses[0] == 7
    assert short_pauses[3] == 1
    assert 0 < short_pauses[1] <= 2
    assert seen[0]["Authorization"] == "Bearer k"


def test_two_posts_have_two_keys_and_ones_own_key_is_kept():
    with scripted(OK, OK, OK) as (address, seen), Client(address, "k") as client:
        for key in (None, None, "mine"):
            client.http.post("campaigns", {}, idempotency_key=key)
    keys = [request["Idempotency-Key"] for request in seen]
    assert len(set(keys)) == 3
    assert keys[2] == "mine"


def test_a_refusal_is_not_sent_again_and_patience_ends():
    refused = (400, {}, b'{"title": "No", "type": "/problems/Invalid", "errors": {"name": ["missing"]}}')
    with (
        scripted(refused) as (address, seen),
        Client(address, "k") as client,
        pytest.raises(ApiError, match="No"),
    ):
        client.http.post("campaigns", {})
    assert len(seen) == 1
    with scripted(BUSY, BUSY, BUSY) as (address, seen), Client(address, "k", tries=3) as client:
        with pytest.raises(ApiError, match="503"):
            client.me()
        assert len(seen) == 3
    with (
        scripted(None, None) as (address, seen),
        Client(address, "k", tries=2) as client,
        pytest.raises(httpx.TransportError),
    ):
        client.me()
    assert len(seen) == 2


def test_an_answer_that_is_no_json_is_an_error_with_its_words():
    with scripted((502, {}, b"<h1>Bad gateway</h1>")) as (address, _), Client(address, "k") as client:
        with pytest.raises(ApiError, match="Bad gateway") as fault:
            client.me()
        assert fault.value.status == 502


def test_a_file_is_sent_whole_again():
    with scripted(BUSY, OK) as (address, seen), Client(address, "k") as client:
        client.upload_run("c", ("mine.run", io.BytesIO(b"the whole run")), description="BM25")
    assert all("the whole run" in request["body"] for request in seen)
    assert all("BM25" in request["body"] and "against" not in request["body"] for request in seen)
    assert len({request["Idempotency-Key"] for request in seen}) == 1


def test_a_job_that_takes_too_long_goes_on_without_us(short_pauses):
    running = (200, {}, b'{"state": "running", "id": "1", "kind": "draw", "note": "topic 3"}')
    with (
        scripted(*[running] * 50) as (address, _),
        Client(address, "k") as client,
        pytest.raises(JobTimeout, match="topic 3"),
    ):
        client.wait("1", timeout=0.0)
    assert len(short_pauses) <= 1


def release_of(content: bytes) -> Any:
    return {"id": "r", "sha256": hashlib.sha256(content).hexdigest()}


def test_a_download_that_is_cut_off_goes_on_where_it_stopped(tmp_path):
    cut = (200, {"Content-Length": str(len(ZIP))}, ZIP[:5000])
    rest = (206, {}, ZIP[5000:])
    with scripted(cut, rest) as (address, seen), Client(address, "k") as client:
        path = client.download("c", release_of(ZIP), tmp_path)
    assert path.read_bytes() == ZIP
    assert "Range" not in seen[0]
    assert seen[1]["Range"] == "bytes=5000-"
    assert seen[1]["If-Range"] == f'"{hashlib.sha256(ZIP).hexdigest()}"'


def test_a_download_with_other_bytes_is_thrown_away(tmp_path):
    flipped = bytes([ZIP[0] ^ 1]) + ZIP[1:]
    with (
        scripted((200, {}, flipped)) as (address, _),
        Client(address, "k") as client,
        pytest.raises(DownloadDamaged, match="download it again"),
    ):
        client.download("c", release_of(ZIP), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("typed", "described"),
    [(Judgment, "JudgmentAnswer"), (Submission, "SubmissionRequest"), (Outcome, "JudgmentOutcome")],
)
def test_the_types_of_judgments_have_the_fields_that_the_server_describes(typed, described):
    schema = description()["components"]["schemas"][described]
    assert set(typed.__annotations__) == set(schema["properties"])
    assert typed.__required_keys__ == set(schema["required"])


def test_without_httpx_it_says_what_to_install():
    """In a process of its own: here httpx is loaded."""
    program = "import sys; sys.modules['httpx'] = None; import touchstone_ir.client"
    asked = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert asked.returncode == 1
    assert asked.stderr.endswith('touchstone_ir.client needs httpx: pip install "touchstone-ir[client]"\n')


@pytest.mark.slow
def test_the_client_is_typed_strictly():
    """For the oldest Python that the wheel is for, and without this product's plugins."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--python-version=3.10"]
    checked = subprocess.run(
        [*command, "--follow-imports=silent", "--cache-dir=/dev/null", "-p", "touchstone_ir.client"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout
