"""Imported scores: numbers within [0, 1] that a program gives documents, all of a file or nothing, a name once."""

import gzip
import hashlib
import io
import uuid
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.db import IntegrityError
from django.test import Client
from django.urls import reverse
from uploaded import kept, looked, run_job

import judging.tasks  # noqa: F401 (registers the job)
from judging.models import Collection, ScoreList, Topic
from judging.rankings import rankings_frame, read_rankings
from judging.scores import read_scores
from judging.services.errors import ImportRefused
from judging.services.files import queue_import
from judging.services.scores import import_scores
from judging.textfiles import TrecFormatError
from touchstone import jobs
from touchstone.models import Event, User

PLAIN = b"1\td2\t0.25\n1\td1\t1\n9\td1\t1e-3\n"
AS_RUN = b"1 Q0 d2 7 0.25 judge\n1 Q0 d1 1 1 judge\n9 Q0 d1 1 1e-3 judge\n"
EXPECTED = {("1", "d2"): 0.25, ("1", "d1"): 1.0, ("9", "d1"): 0.001}


def as_dict(frame):
    return {
        (topic, doc): score for topic, doc, score in frame.select("topic_id", "doc_id", "score").iter_rows()
    }


# -- the file -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data", [PLAIN, AS_RUN, gzip.compress(PLAIN, mtime=0), PLAIN.replace(b"\n", b"\r\n")]
)
def test_a_file_of_three_or_six_columns_gives_the_same_scores(data):
    assert as_dict(read_scores(io.BytesIO(data), "f")) == EXPECTED


def test_blanks_and_a_byte_order_mark_are_fine_and_the_ends_of_the_range_belong_to_it():
    data = b"\xef\xbb\xbf1 a   0\n1 b 1.0\n\n\n"
    assert as_dict(read_scores(io.BytesIO(data), "f")) == {("1", "a"): 0.0, ("1", "b"): 1.0}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "f:1:1: no lines in the scores, or none in the first line"),
        (b"\n", "f:1:1: no lines in the scores, or none in the first line"),
        (b"1\ta\t0.5\n1\tb\t1.01\n", "f:2:5: score must be within [0, 1], not 1.01"),
        (b"1\ta\t-0.1\n", "f:1:5: score must be within [0, 1], not -0.1"),
        (b"1\ta\tnan\n", "f:1:5: score must be a finite number, not 'nan'"),
        (b"1\ta\t1e999\n", "f:1:5: score must be a finite number, not '1e999'"),
        (b"1\ta\t0x1\n", "f:1:5: score must be a finite number, not '0x1'"),
        (b"topic\tdocument\tscore\n1\ta\t1\n", "f:1:16: score must be a finite number, not 'score'"),
        (b"1 Q0 a 1 0.5 t\n1 Q0 b 2 7.5 t\n", "f:2:10: score must be within [0, 1], not 7.5"),
        (b"1 Q0 a 1 inf t\n", "f:1:10: score must be a finite number, not 'inf'"),
        (b"1\ta\t1\n2\ta\t1\n1\ta\t1\n", "f:3:3: document a of topic 1 occurs twice (first on line 1)"),
        (b"1 Q0 a 1 1 t\n1 Q0 a 2 0 t\n", "f:2:6: document a of topic 1 occurs twice (first on line 1)"),
        (b"1 Q0 a 1 1 t\n1 Q0 b 2 1 u\n", "f:2:12: one run tag a file: 'u' after 't'"),
        (
            b"1\ta\n",
            "f:1:1: expected 3 columns (topic document score) or 6 (topic Q0 document rank score tag), found 2",
        ),
        (b"1\ta\t1\n1\tb\t1\tc\n", "f:2:7: expected 3 columns (topic document score), found 4"),
        (b"1\ta\t1\n\n1\tb\t1\n", "f:2:1: blank line between lines"),
        (b"1\t" + b"d" * 600 + b"\t1\n", "f:1:3: document id is 600 bytes long; the limit is 512"),
        (b"1\ta\xa0\t1\n", "f:1:4: not valid UTF-8"),
        (b"PK\x03\x04", "f:1:1: a zip archive, not text; unpack it first"),
    ],
)
def test_the_first_fault_of_a_file_is_named_with_its_place(data, message):
    with pytest.raises(TrecFormatError) as caught:
        read_scores(io.BytesIO(data), "f")
    assert str(caught.value).startswith(message)


def test_a_stream_that_begins_in_the_middle_is_read_from_there_also_for_its_fault():
    stream = io.BytesIO(b"nonsense\n1 Q0 a 1 2 t\n")
    stream.readline()
    with pytest.raises(TrecFormatError, match="f:1:10: score must be within"):
        read_scores(stream, "f")


# -- the collection -------------------------------------------------------------------------------------------


@pytest.fixture
def collection(db):
    made = Collection.objects.create(name=f"collection {uuid.uuid4()}")
    Topic.objects.create(collection=made, topic_id="1", title="one")
    return made


def stored():
    return set((Path(default_storage.path("")) / "scores").glob("*"))


def test_scores_are_kept_columnar_with_unknown_topics_counted_and_the_file_in_the_log(collection):
    made = import_scores(
        collection=collection, source=io.BytesIO(PLAIN), name="judges/a.tsv.gz", list_name=" llama 3 "
    )
    assert (made.name, made.n_lines, made.unknown_topics) == ("llama 3", 3, ["9"])
    assert as_dict(rankings_frame(read_rankings(Path(made.scores.path)))) == EXPECTED
    event = Event.objects.get(verb="imported scores", subject=f"collection:{collection.pk}")
    assert event.detail["scores"] == "llama 3"
    assert event.detail["file"] == "judges/a.tsv.gz"
    assert event.detail["n_bytes"] == len(PLAIN)
    assert event.detail["sha256"] == hashlib.sha256(PLAIN).hexdigest()
    assert event.detail["n_unknown_topics"] == 1


def test_scores_without_a_name_are_called_like_their_file(collection):
    made = import_scores(collection=collection, source=io.BytesIO(PLAIN), name="judges/monot5.tsv.gz")
    assert made.name == "monot5"


@pytest.mark.parametrize(
    ("list_name", "message"),
    [
        ("taken", "f:1:1: the collection already has scores named taken; each name can be used once"),
        ("x" * 201, "f:1:1: a name for scores has at most 200 characters, not 201"),
        ("a\nb", "f:1:1: a name for scores is a line of visible characters"),
    ],
)
def test_a_name_that_cannot_be_taken_changes_nothing(collection, list_name, message):
    import_scores(collection=collection, source=io.BytesIO(PLAIN), name="f", list_name="taken")
    before = stored()
    with pytest.raises(ImportRefused) as caught:
        import_scores(collection=collection, source=io.BytesIO(AS_RUN), name="f", list_name=list_name)
    assert str(caught.value).startswith(message)
    assert list(ScoreList.objects.values_list("name", flat=True)) == ["taken"]
    assert stored() == before


def test_the_database_too_takes_a_name_once_a_collection_and_other_collections_may_have_it(collection):
    import_scores(collection=collection, source=io.BytesIO(PLAIN), name="f", list_name="x")
    other = Collection.objects.create(name="other")
    import_scores(collection=other, source=io.BytesIO(PLAIN), name="f", list_name="x")
    with pytest.raises(IntegrityError):
        ScoreList.objects.create(collection=other, name="x", n_lines=1)


def test_a_file_with_one_bad_score_changes_nothing(collection):
    before, events = stored(), Event.objects.count()
    with pytest.raises(ImportRefused) as caught:
        import_scores(collection=collection, source=io.BytesIO(PLAIN + b"1\td3\t2\n"), name="f.tsv")
    assert str(caught.value) == "f.tsv:4:6: score must be within [0, 1], not 2"
    assert (ScoreList.objects.count(), Event.objects.count(), stored()) == (0, events, before)


# -- the job, the page, the command ---------------------------------------------------------------------------


def named(data, name):
    return ContentFile(data, name=name)


@pytest.mark.django_db(transaction=True)
def test_an_upload_of_scores_is_imported_by_a_job(tmp_path):
    collection = Collection.objects.create(name="c")
    job = queue_import(
        kind="scores", files=[named(PLAIN, "a.tsv")], collection=collection, options={"list_name": "mine"}
    )
    jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error) == ("done", "")
    assert job.result == {"n_scores": 3, "n_unknown_topics": 2}
    assert job.note == "3 scores imported as mine"


@pytest.mark.django_db(transaction=True)
def test_of_several_uploaded_files_one_fault_refuses_all():
    collection = Collection.objects.create(name="c")
    files = [named(PLAIN, "a.tsv"), named(b"1\ta\t3\n", "b.tsv")]
    job = queue_import(kind="scores", files=files, collection=collection)
    jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error) == ("failed", "b.tsv:1:5: score must be within [0, 1], not 3")
    assert not ScoreList.objects.exists()


@pytest.fixture
def manager(settings, db):
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}
    client = Client()
    client.force_login(User.objects.create(username="mia", role="manager"))
    return client


def test_the_page_keeps_scores_under_the_name_that_is_typed_and_lists_what_there_is(manager, collection):
    made = looked(collection, {"a.tsv": PLAIN})
    url = reverse("console:manage-import", args=[collection.pk, made.pk])
    assert manager.post(url, {"file0-kind": "scores", "look": "1"}).status_code == 302
    run_job(made)
    sent = {"file0-kind": "scores", "file0-list_name": "llama <3>", "keep": "1"}
    assert manager.post(url, sent).status_code == 302
    assert run_job(made).kind == "look"  # something else was chosen: it is looked at once more
    assert manager.post(url, sent).status_code == 302
    collections_page = reverse("console:manage-collection", args=[collection.pk])
    assert "Imported scores" not in manager.get(collections_page).content.decode()
    assert run_job(made).state == "done"
    page = manager.get(collections_page).content.decode()
    assert "Imported scores" in page
    assert "llama &lt;3&gt;" in page


def test_one_name_for_two_files_of_scores_is_refused(manager, collection):
    made = looked(collection, {"a.tsv": PLAIN, "b.tsv": PLAIN})
    files = [{"name": name, "kind": "scores", "list_name": "llama"} for name in ("a.tsv", "b.tsv")]
    assert "llama" in kept(made, files, state="failed").error
    assert not ScoreList.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_the_command_imports_scores_and_says_how_many(tmp_path, capsys):
    Collection.objects.create(name="c")
    (tmp_path / "a.run.gz").write_bytes(gzip.compress(AS_RUN))
    call_command("import_scores", str(tmp_path / "a.run.gz"), "--collection", "c", "--name", "judge")
    out = capsys.readouterr().out
    assert "3 scores added to c as judge" in out
    assert "2 of their topics are not in the collection" in out


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("data", "collection", "message"),
    [
        (b"1\ta\t2\n", "c", "a.tsv:1:5: score must be within [0, 1], not 2"),
        (PLAIN, "nowhere", "there is no collection 'nowhere'"),
    ],
)
def test_the_command_that_fails_says_one_line(tmp_path, data, collection, message):
    Collection.objects.create(name="c")
    (tmp_path / "a.tsv").write_bytes(data)
    with pytest.raises(CommandError) as caught:
        call_command("import_scores", str(tmp_path / "a.tsv"), "--collection", collection, "--name", "judge")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not ScoreList.objects.exists()
