"""Releases for programs: asked for, built by a job, downloaded in whole and in parts, cited, withdrawn."""

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from small_campaign import judge_all, judge_audit, make_assessor, make_campaign

import analytics.tasks  # noqa: F401 (registers the jobs)
from analytics.models import Release
from analytics.services.recomputation import recompute
from sampling.services.auditing import audit
from touchstone import jobs
from touchstone.models import Job, User

pytestmark = pytest.mark.xdist_group("api-releases")
NEW = {
    "version": "1.0",
    "title": "Small & good",
    "authors": "Ada B.\nCy D.",
    "notes": "The first.",
    "licence": "CC0",
}


@pytest.mark.django_db  # the first of the file: pytest-django makes the test database when a test says so
def test_nobody_reads_releases_without_a_login():
    answer = Client().get("/api/v1/campaigns/00000000-0000-4000-8000-000000000000/releases")
    assert answer.status_code in (401, 403)


@pytest.fixture(scope="module", autouse=True)
def no_heartbeat() -> Iterator[None]:
    """Jobs of these tests are in a transaction that the heartbeat's own connection cannot see."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "HEARTBEAT_SECONDS", 600.0)
        yield


@pytest.fixture(scope="module")
def made_once(
    no_heartbeat: None,
    django_db_setup: None,
    django_db_blocker: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Any]:
    """A campaign with one release, built by its job; all of it is taken back at the end."""
    with django_db_blocker.unblock(), transaction.atomic():
        campaign = make_campaign(tmp_path_factory.mktemp("release"))
        judge_all(campaign, [make_assessor(campaign, "ann"), make_assessor(campaign, "ben")])
        audit(campaign=campaign, items_each_time=30, items_in_total=30, seed=5)
        judge_audit(campaign, make_assessor(campaign, "greta", tier="gold"))
        recompute(campaign=campaign)
        for name, role in (("mia", "manager"), ("rhea", "researcher")):
            User.objects.create(username=name, role=role)
        address = f"/api/v1/campaigns/{campaign.pk}/releases"
        answer = login("rhea").post(address, NEW, "application/json")
        assert answer.status_code == 202, answer.content
        jobs.run(answer.json()["job"])
        job = Job.objects.get(pk=answer.json()["job"])
        assert job.state == Job.State.DONE, job.error
        yield campaign, answer.json()
        transaction.set_rollback(True)


@pytest.fixture
def campaign(made_once: Any, django_db_blocker: Any) -> Iterator[Any]:
    with django_db_blocker.unblock(), transaction.atomic():
        yield made_once[0]
        transaction.set_rollback(True)


@pytest.fixture
def address(campaign: Any, made_once: Any) -> str:
    return f"/api/v1/campaigns/{campaign.pk}/releases/{made_once[1]['id']}"


def login(username: str) -> Client:
    client = Client()
    client.force_login(User.objects.get(username=username))
    return client


def content(answer: Any) -> bytes:
    """Return the body; once it is read the file is closed."""
    return b"".join(answer.streaming_content) if answer.streaming else answer.content


def download(client: Client, address: str, **headers: str) -> Any:
    """Return the answer with its body read."""
    answer: Any = client.get(
        f"{address}/download", headers={n.replace("_", "-"): v for n, v in headers.items()}
    )
    answer.body = content(answer)
    return answer


def test_a_release_is_asked_for_built_and_read(campaign, made_once, address):
    asked = made_once[1]
    assert (asked["state"], asked["version"], asked["sha256"]) == ("building", "1.0", "")
    assert Job.objects.get(pk=asked["job"]).requested_by.username == "rhea"
    told = login("rhea").get(address).json()
    assert told["state"] == "ready"
    for name in ("title", "authors", "notes", "licence"):
        assert told[name] == NEW[name]
    [listed] = login("rhea").get(address.rpartition("/")[0]).json()["results"]
    assert listed == told
    assert "pseudonym_key" not in told
    assert Release.objects.get(pk=told["id"]).pseudonym_key not in json.dumps(told)


def test_the_download_is_the_file_whose_hash_is_told(address):
    client = login("rhea")
    answer = client.get(f"{address}/download")
    body, told = content(answer), client.get(address).json()
    assert hashlib.sha256(body).hexdigest() == told["sha256"]
    assert (len(body), answer["Content-Length"]) == (told["n_bytes"], str(told["n_bytes"]))
    assert answer["ETag"] == f'"{told["sha256"]}"'
    assert answer["Content-Type"] == "application/zip"
    assert answer["Content-Disposition"].startswith("attachment;")
    names = zipfile.ZipFile(io.BytesIO(body)).namelist()
    assert any(name.endswith("/manifest.json") for name in names)


def test_any_part_of_the_file_can_be_asked_for(address):
    client = login("rhea")
    whole = content(client.get(f"{address}/download"))
    size = len(whole)
    for asked, first, last in (
        ("bytes=0-0", 0, 0),
        ("bytes=10-19", 10, 19),
        (f"bytes={size - 5}-", size - 5, size - 1),
        ("bytes=-7", size - 7, size - 1),
        (f"bytes=100-{10 * size}", 100, size - 1),
    ):
        answer = client.get(f"{address}/download", headers={"Range": asked})
        assert answer.status_code == 206, asked
        assert content(answer) == whole[first : last + 1]
        assert answer["Content-Range"] == f"bytes {first}-{last}/{size}"
        assert answer["Content-Length"] == str(last - first + 1)


def test_what_is_no_range_gets_all_and_what_is_behind_the_end_nothing(address):
    client = login("rhea")
    size = len(content(client.get(f"{address}/download")))
    for asked in ("bytes=5-2", "bytes=0-1,4-5", "lines=1-2", "bytes=-", "bytes=a-b", f"bytes=0-{size - 1}"):
        answer = client.get(f"{address}/download", headers={"Range": asked})
        assert (answer.status_code, len(content(answer))) == (200, size), asked
    for asked in (f"bytes={size}-", f"bytes={size + 5}-{size + 9}", "bytes=-0"):
        answer = download(client, address, Range=asked)
        assert (answer.status_code, answer["Content-Range"]) == (416, f"bytes */{size}"), asked


def test_who_has_the_file_gets_304_and_who_has_another_gets_all(address):
    client = login("rhea")
    etag = download(client, address)["ETag"]
    same = download(client, address, If_None_Match=etag)
    assert (same.status_code, same.body) == (304, b"")
    assert download(client, address, If_None_Match='"other"').status_code == 200
    assert download(client, address, Range="bytes=0-9", If_Range=etag).status_code == 206
    assert download(client, address, Range="bytes=0-9", If_Range='"other"').status_code == 200


def test_a_file_that_is_not_what_was_made_is_not_handed_out(address, campaign):
    release = campaign.releases.get(version="1.0")
    path = release.file.path
    with open(path, "ab") as stream:
        stream.write(b"!")
    try:
        answer = login("rhea").get(f"{address}/download")
        assert (answer.status_code, answer.json()["type"]) == (409, "/problems/ReleaseDamaged")
    finally:
        with open(path, "rb+") as stream:
            stream.truncate(release.n_bytes)
    assert download(login("rhea"), address).status_code == 200


def test_the_citation_names_authors_title_version_and_hash(address):
    client = login("rhea")
    told, release = client.get(f"{address}/citation").json(), client.get(address).json()
    for words in ("Ada B.", "Cy D.", "Small & good", "1.0", release["merkle_root"]):
        assert words in told["text"]
    assert r"Small \& good" in told["bibtex"]
    assert told["bibtex"].startswith("@")


def test_a_second_release_says_what_changed_and_a_version_is_used_once(address, campaign):
    client, releases = login("rhea"), address.rpartition("/")[0]
    taken = client.post(releases, NEW, "application/json")
    assert (taken.status_code, taken.json()["type"]) == (409, "/problems/VersionTaken")
    second = client.post(releases, {**NEW, "version": "1.1"}, "application/json").json()
    assert second["previous"] == "1.0"
    jobs.run(second["job"])
    told = client.get(f"{releases}/{second['id']}/changes").json()
    assert (told["previous"], told["notes"]) == ("1.0", "The first.")
    first = client.get(f"{address}/changes").json()
    assert first["previous"] is None
    rows = client.get(releases, {"state": "ready"}).json()["results"]
    assert [row["version"] for row in rows] == ["1.1", "1.0"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"version": "one"}, "version"),
        ({"version": "1.2.3.4"}, "version"),
        ({"aggregation": "mean"}, "aggregation"),
        ({"prefers_gold": "yes"}, "prefers_gold"),
        ({"title": ""}, "title"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_release_that_cannot_be_made_names_the_field(address, change, field):
    answer = login("rhea").post(
        address.rpartition("/")[0], {**NEW, "version": "9", **change}, "application/json"
    )
    assert answer.status_code == 400
    assert field in answer.json()["errors"]


def test_a_build_that_failed_is_told_and_its_version_can_be_used_again(address):
    client, releases = login("rhea"), address.rpartition("/")[0]
    made = client.post(releases, {**NEW, "version": "3"}, "application/json").json()
    jobs.cancel(Job.objects.get(pk=made["job"]))
    told = client.get(f"{releases}/{made['id']}").json()
    assert (told["state"], told["failed"]) == ("failed", "cancelled")
    not_ready = client.get(f"{releases}/{made['id']}/download")
    assert (not_ready.status_code, not_ready.json()["type"]) == (409, "/problems/ReleaseNotReady")
    assert client.post(releases, {**NEW, "version": "3"}, "application/json").status_code == 202


def test_a_manager_withdraws_a_release_whose_file_stays(address):
    reason = {"reason": "Topic 3 was judged on the wrong documents."}
    assert login("rhea").post(f"{address}/withdraw", reason, "application/json").status_code == 404
    manager = login("mia")
    assert manager.post(f"{address}/withdraw", {}, "application/json").status_code == 400
    told = manager.post(f"{address}/withdraw", reason, "application/json").json()
    assert told["withdrawn_reason"] == reason["reason"]
    assert told["withdrawn_at"]
    assert download(manager, address).status_code == 200


def test_a_manager_has_the_key_of_the_pseudonyms_forgotten(address, campaign):
    assert login("rhea").post(f"{address}/forget-key", {}, "application/json").status_code == 404
    manager = login("mia")
    assert manager.get(address).json()["has_key"] is True
    assert manager.post(f"{address}/forget-key", {}, "application/json").json()["has_key"] is False
    assert campaign.releases.get(version="1.0").pseudonym_key == ""


def test_a_release_of_another_campaign_is_not_there(address, tmp_path):
    other = make_campaign(tmp_path)
    foreign = f"/api/v1/campaigns/{other.pk}/releases/{address.rpartition('/')[2]}"
    client = login("mia")
    for path in ("", "/download", "/citation", "/changes"):
        assert client.get(foreign + path).status_code == 404
    assert client.post(f"{foreign}/withdraw", {"reason": "x"}, "application/json").status_code == 404
