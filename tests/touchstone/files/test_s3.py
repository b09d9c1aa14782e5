"""Files on S3, over HTTP, with a server that is killed in the middle: no row without a file, and one clear fault."""

import gc
import hashlib
import io
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.files import File
from django.core.files.base import ContentFile
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.db import connection, transaction
from django.test import Client
from s3_server import BUCKET, S3Server, use
from small_campaign import make_campaign, make_collection

import judging.tasks  # noqa: F401 (registers the job)
from analytics.releases.services.releasing import build, make_release
from analytics.services.recomputation import recompute
from judging.models import Collection, Run
from judging.services.files import import_runs, queue_import
from sampling.frames import FrameRefused, load_frame
from touchstone import files, jobs
from touchstone.backups.folder import Backups
from touchstone.backups.objects import copy_objects, file_store, is_empty, put_objects
from touchstone.files import FileDamaged, FilesUnavailable, local, store, stream, where
from touchstone.ledger.verification import file_faults
from touchstone.models import Job, User
from touchstone.s3 import S3
from touchstone.settings import file_storage


def login(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


LARGE = 20 * 2**20  # three parts of an upload in parts
UPLOADING = """
import sys
import django
django.setup()
from django.core.files import File
from touchstone.files import store

class Told(File):
    def read(self, *size):
        part = self.file.read(*size)
        if self.file.tell() > 2**24 and is_hashed:
            print("uploading", flush=True)
            sys.stdin.read()
        return part

    def chunks(self, size=None):
        global is_hashed
        is_hashed = False
        yield from super().chunks(size)
        is_hashed = True

store("rankings", Told(open(sys.argv[1], "rb")))
"""


@pytest.fixture(scope="module")
def server():
    made = S3Server()
    yield made
    made.kill()


@pytest.fixture
def on_s3(server, settings, monkeypatch, tmp_path, request):
    """Files below a prefix of the test's own; return the objects there, with their bytes, whenever it is called."""
    prefix = f"here/{request.node.name[:60]}"
    use(settings, monkeypatch, server, prefix, tmp_path / "cache")

    def objects() -> dict[str, bytes]:
        return {
            name.removeprefix(f"{prefix}/"): content
            for name, content in server.objects().items()
            if name.startswith(prefix)
        }

    return objects


class ReadWith(File):
    """A large file; `at_half` is called once when half of it has been read after the hash was taken."""

    def __init__(self, path: Path, at_half) -> None:
        super().__init__(io.BytesIO(path.read_bytes()), path.name)
        self.at_half, self.is_hashed, self.n_read = at_half, False, 0

    def chunks(self, chunk_size=None):
        yield from super().chunks(chunk_size)
        self.is_hashed = True

    def read(self, *size):
        part = self.file.read(*size)
        if self.is_hashed:
            self.n_read += len(part)
            if self.n_read >= LARGE // 2 and self.at_half is not None:
                at_half, self.at_half = self.at_half, None
                at_half()
        return part


@pytest.fixture
def large(tmp_path) -> Path:
    path = tmp_path / "large"
    path.write_bytes(os.urandom(LARGE))
    return path


# -- what is stored, and read -----------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_file_is_an_object_with_its_hash_and_a_copy_here_is_what_was_stored(on_s3, server):
    name = store("uploads", ContentFile(b"some bytes"), ".txt", stem="a-")
    assert name.startswith("uploads/a-")
    assert name.endswith(".txt")
    assert on_s3() == {name: b"some bytes"}
    (key,) = [key for key in server.objects() if key.endswith(name)]
    noted = server.client.head_object(Bucket=BUCKET, Key=key)["Metadata"]
    assert noted == {"sha256": hashlib.sha256(b"some bytes").hexdigest()}
    assert where(name) == f"s3://{BUCKET}/{key}"
    path = local(name)
    assert path.read_bytes() == b"some bytes"
    server.client.delete_object(Bucket=BUCKET, Key=key)
    assert local(name).read_bytes() == b"some bytes"  # nobody was asked
    with pytest.raises(FileNotFoundError):
        local("uploads/another")
    with pytest.raises(FileNotFoundError):
        stream(name)


@pytest.mark.django_db
def test_an_object_that_was_changed_is_refused(on_s3, server):
    name = store("uploads", ContentFile(b"some bytes"))
    (key,) = [key for key in server.objects() if key.endswith(name)]
    noted = server.client.head_object(Bucket=BUCKET, Key=key)["Metadata"]
    server.client.put_object(Bucket=BUCKET, Key=key, Body=b"other bytes", Metadata=noted)
    with pytest.raises(FileDamaged):
        local(name)


@pytest.mark.django_db(transaction=True)
def test_a_rollback_takes_the_object_along_and_a_commit_keeps_it(on_s3):
    with transaction.atomic():
        store("rankings", ContentFile(b"gone"))
        assert list(on_s3().values()) == [b"gone"]
        transaction.set_rollback(True)
    gc.collect()
    assert on_s3() == {}
    with transaction.atomic():
        store("rankings", ContentFile(b"kept"))
    gc.collect()
    assert list(on_s3().values()) == [b"kept"]


@pytest.mark.django_db(transaction=True)
def test_storing_may_take_longer_than_a_session_may_be_silent(on_s3):
    with connection.cursor() as cursor:
        with transaction.atomic():
            store("uploads", ContentFile(b"bytes"))
            cursor.execute("SHOW idle_in_transaction_session_timeout")
            assert cursor.fetchone() == ("0",)
        cursor.execute("SHOW idle_in_transaction_session_timeout")
        assert cursor.fetchone() == ("15s",)  # only this transaction


@pytest.mark.django_db
def test_a_campaign_lives_on_s3_from_its_imports_to_a_release(on_s3, tmp_path, settings, server):
    settings.MEDIA_ROOT = tmp_path / "media"
    campaign = make_campaign(tmp_path)
    recompute(campaign=campaign)
    release = build(release=make_release(campaign=campaign, version="1.0", actor=None, by_job=False))
    kinds = sorted({name.split("/")[0] for name in on_s3()})
    assert kinds == ["frames", "rankings", "releases"]
    assert not [path for path in settings.MEDIA_ROOT.rglob("*") if path.is_file()]  # nothing is kept here
    assert hashlib.sha256(on_s3()[release.file.name]).hexdigest() == release.sha256

    rhea = User.objects.create(username="rhea", role=User.Role.RESEARCHER)
    client, address = login(rhea), f"/api/v1/campaigns/{campaign.pk}/releases/{release.pk}/download"
    whole = b"".join(client.get(address).streaming_content)
    assert hashlib.sha256(whole).hexdigest() == release.sha256
    part = client.get(address, headers={"Range": "bytes=10-19"})
    assert (part.status_code, b"".join(part.streaming_content)) == (206, whole[10:20])
    assert zipfile.ZipFile(io.BytesIO(whole)).testzip() is None

    assert list(file_faults()) == []
    draw = campaign.draws.get()
    assert load_frame(draw).height == draw.n_frame
    (key,) = [key for key in server.objects() if key.endswith(draw.frame.name)]
    server.client.put_object(Bucket=BUCKET, Key=key, Body=b"another draw")
    assert list(file_faults()) == [f"{draw.frame.name}: the file is not the one whose SHA-256 is stored"]
    server.client.delete_object(Bucket=BUCKET, Key=key)
    assert list(file_faults()) == [f"{draw.frame.name}: the file is missing"]
    settings.FILES_CACHE = tmp_path / "another machine"
    with pytest.raises(FrameRefused, match="is gone"):
        load_frame(draw)


# -- a server that dies -----------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_a_server_killed_in_an_upload_leaves_no_row_and_one_fault(settings, monkeypatch, tmp_path, large):
    own = S3Server()
    try:
        use(settings, monkeypatch, own, "p", tmp_path / "cache")
        opened = "judging.services.run_files.ContentFile"
        monkeypatch.setattr(opened, lambda payload: ReadWith(large, own.kill))
        collection = Collection.objects.create(name="c")
        source = tmp_path / "one.run"
        source.write_text("q1 Q0 d1 1 2.5 one\n")
        with pytest.raises(FilesUnavailable) as raised:
            import_runs(collection=collection, files=[(source, "one.run")])
        assert own.process.poll() == -signal.SIGKILL  # it died in the upload
        assert raised.value.status == 503
        assert not Run.objects.exists()
        own.start()
        # The control: the same upload, half of which is watched as before, is stored when nobody is killed.
        seen = []
        monkeypatch.setattr(opened, lambda payload: ReadWith(large, lambda: seen.append(1)))
        import_runs(collection=collection, files=[(source, "one.run")])
        assert seen == [1]
        assert local(Run.objects.get().rankings).read_bytes() == large.read_bytes()
    finally:
        own.kill()


@pytest.mark.django_db(transaction=True)
def test_a_process_killed_in_an_upload_leaves_no_object_but_parts(on_s3, server, large, settings):
    prefix = settings.FILES_URL
    environment = {**os.environ, "FILES_URL": prefix, "DJANGO_SETTINGS_MODULE": "touchstone.settings"}
    child = subprocess.Popen(
        [sys.executable, "-c", UPLOADING, str(large)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout.readline() == "uploading\n"
        deadline = time.monotonic() + 20
        while not server.uploads():
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        child.kill()
        child.communicate()
    assert on_s3() == {}
    assert len(server.uploads()) == 1  # what a rule of the bucket is to remove
    store("rankings", ReadWith(large, None))  # the control
    assert list(on_s3().values()) == [large.read_bytes()]


@pytest.fixture
def dead(settings, monkeypatch, tmp_path):
    """A store of files where nobody listens."""
    own = S3Server()
    use(settings, monkeypatch, own, "p", tmp_path / "cache")
    own.kill()
    return own


@pytest.mark.django_db(transaction=True)
def test_requests_and_jobs_say_that_the_store_is_away_and_go_on_when_it_is_back(dead):
    manager = User.objects.create(username="mara", role=User.Role.MANAGER)
    collection = Collection.objects.create(name="c")
    client, address = login(manager), f"/api/v1/collections/{collection.pk}/imports"

    def send():
        sent = SimpleUploadedFile("one.run", b"q1 Q0 d1 1 2.5 one\n")
        return client.post(address, {"kind": "runs", "files": [sent]})

    answer = send()
    assert (answer.status_code, answer["Retry-After"]) == (503, "1")
    assert answer.json() == {
        "type": "/problems/FilesUnavailable",
        "title": "The store of files cannot answer now; try again",
        "status": 503,
        "detail": "",
    }
    assert not Job.objects.exists()

    dead.start()
    assert send().status_code == 202  # the control
    job = Job.objects.get(requested_by=manager)
    kept = dead.objects()
    dead.kill()
    jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.attempts) == ("queued", 1)
    assert job.error.startswith("the store of files did not answer (fault ")
    dead.start()
    for name, content in kept.items():
        dead.client.put_object(Bucket=BUCKET, Key=name, Body=content)
    jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error, job.attempts) == ("done", "", 2)
    assert Run.objects.get().run_id == "one"
    dead.kill()


# -- what nobody names ------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_old_uploads_that_no_job_names_are_cleared_by_the_next_upload(on_s3, tmp_path, monkeypatch):
    collection = make_collection(tmp_path, gold=False)
    forgotten = store("uploads", ContentFile(b"left by a killed process"))
    first = queue_import(kind="runs", files=[ContentFile(b"x", name="a")], collection=collection)
    assert forgotten in on_s3()  # it is young
    monkeypatch.setattr(files, "ORPHAN_AGE", -files.ORPHAN_AGE)
    second = queue_import(kind="runs", files=[ContentFile(b"y", name="b")], collection=collection)
    waiting = {upload["path"] for job in (first, second) for upload in job.payload["uploads"]}
    assert {name for name in on_s3() if name.startswith("uploads/")} == waiting
    assert len([name for name in on_s3() if name.startswith("rankings/")]) == 3  # nobody touched these


@pytest.mark.django_db
def test_a_command_lists_and_deletes_what_no_row_names(on_s3, tmp_path, monkeypatch):
    collection = make_collection(tmp_path, gold=False)
    queue_import(kind="runs", files=[ContentFile(b"x", name="a")], collection=collection)
    named = set(on_s3())
    assert len(named) == 4
    forgotten = store("rankings", ContentFile(b"left by a killed process"))

    def said(*arguments) -> list[str]:
        out = io.StringIO()
        call_command("orphans", *arguments, stdout=out)
        return out.getvalue().splitlines()

    assert said() == ["0 files without a row, to be deleted with --delete."]  # it is young
    monkeypatch.setattr("touchstone.management.commands.orphans.ORPHAN_AGE", -files.ORPHAN_AGE)
    assert [line.split("  ")[0] for line in said()][:-1] == [forgotten]
    assert forgotten in on_s3()
    assert said("--delete")[-1] == "1 files without a row, deleted."
    assert set(on_s3()) == named


# -- backups ----------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_backup_copies_objects_once_and_puts_them_back(on_s3, tmp_path, settings, monkeypatch):
    first = store("rankings", ContentFile(b"first"))
    backups = Backups(tmp_path / "backups")
    (backups.root / "files").mkdir(parents=True)
    fetched = []
    storage = file_store()
    whole = S3.stream
    monkeypatch.setattr(S3, "stream", lambda self, name: (fetched.append(name), whole(self, name))[1])
    known = {}
    made = copy_objects(backups, storage, known)
    assert {name: file.size for name, file in made.items()} == {first: 5}
    assert backups.place(made[first].sha256).read_bytes() == b"first"
    second = store("rankings", ContentFile(b"second"))
    added = copy_objects(backups, storage, known, at_rest=-5)
    assert set(added) == {second}
    assert fetched == [first, second]

    assert not is_empty(storage)
    settings.FILES_URL += "/restored"
    settings.STORAGES = {**settings.STORAGES, "default": file_storage(settings.FILES_URL, tmp_path)}
    assert is_empty(file_store())
    put_objects(backups, {**made, **added}, file_store())
    assert local(second).read_bytes() == b"second"
    assert sorted(entry.name for entry in files.entries()) == sorted([first, second])


# -- the address ------------------------------------------------------------------------------------------------


def test_an_address_without_a_prefix_or_none_at_all_and_a_wrong_one():
    assert file_storage("s3://bucket", Path("/x"))["OPTIONS"] == {"bucket_name": "bucket", "location": ""}
    assert file_storage("s3://bucket/a/b/", Path("/x"))["OPTIONS"]["location"] == "a/b"
    assert file_storage("", Path("/x"))["OPTIONS"] == {"location": Path("/x")}
    for url in (
        "http://bucket",
        "s3:///prefix",
        "s3://key:secret@bucket",
        "s3://bucket?endpoint=x",
        "bucket",
    ):
        with pytest.raises(ImproperlyConfigured, match="s3://bucket/prefix"):
            file_storage(url, Path("/x"))
