"""Imports by jobs and commands, exports by commands: on a real PostgreSQL."""

import gzip
import io

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from file_campaign import RUN, everything, judged_campaign, make_campaign, make_collection, stored_files

import judging.tasks  # noqa: F401 (registers the job)
from analytics.services.exports import qrels_jg_lines
from judging.models import (
    Collection,
    Document,
    GoldAnswer,
    Judgment,
    Run,
)
from judging.services.errors import ImportRefused
from judging.services.files import (
    queue_import,
)
from sampling.models import Draw, DrawEntry
from touchstone import jobs
from touchstone.models import Event, Job, User

# -- jobs -----------------------------------------------------------------------------------------------------


def queued(kind, data, collection, **arguments):
    files = [ContentFile(text, name=f"../evil\n{number}.txt") for number, text in enumerate(data)]
    return queue_import(kind=kind, files=files, collection=collection, **arguments)


@pytest.mark.django_db(transaction=True)
def test_an_upload_is_imported_by_a_job_and_removed():
    collection, before = make_collection(), stored_files()
    alice = User.objects.create(username="alice")
    job = queued("runs", [RUN, RUN.replace(b"first", b"second")], collection, user=alice)
    assert len(stored_files() - before) == 2
    jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error) == ("done", "")
    assert job.result == {"n_runs": 2, "n_lines": 6, "n_unknown_topics": 0}
    assert stored_files() - before == {run.rankings.path for run in Run.objects.all()}
    assert Event.objects.get(verb="imported runs").actor == alice


@pytest.mark.django_db(transaction=True)
def test_a_refused_upload_leaves_a_message_and_nothing_else():
    collection, before = make_collection(), everything()
    job = queued("runs", [RUN, b"1 Q0 d1 1 x tag\n"], collection)
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == "failed"
    assert job.error == "evil1.txt:1:11: score must be a finite number, not 'x'"
    assert job.attempts == 1
    assert everything() == before


@pytest.mark.django_db(transaction=True)
def test_every_kind_of_file_goes_through_the_same_job():
    campaign = make_campaign(make_collection(topics=(), documents=()))
    wanted = [
        ("topics", b"1\ta\n", {}),
        ("documents", b'{"_id": "d", "text": "<i>x</i>"}', {"is_html": True}),
        ("judgments", b"1 0 d 4\n", {"as_gold": True, "grade_map": "4=2", "source_name": "s"}),
        ("judgments", b"1 w d 1\n", {"file_format": "qrels_jg", "kind": "machine"}),
    ]
    for kind, data, options in wanted:
        job = queued(kind, [data], campaign.collection, campaign=campaign, options=options)
        jobs.run(job.pk)
        job.refresh_from_db()
        assert (job.state, job.error, job.result) == ("done", "", {f"n_{kind}": 1})
    assert Document.objects.get().text == "x"
    assert GoldAnswer.objects.get().grade == 2
    assert Judgment.objects.get().assessor.kind == "machine"


@pytest.mark.django_db(transaction=True)
def test_a_job_that_lost_its_lease_keeps_the_upload_for_the_next_worker(monkeypatch):
    collection, before = make_collection(), stored_files()
    job = queued("runs", [RUN], collection)
    uploads = stored_files() - before
    with monkeypatch.context() as patch:
        patch.setattr(jobs, "_finish", lambda *_, **__: (_ for _ in ()).throw(jobs.LeaseLost))
        jobs.run(job.pk)
    assert stored_files() - before == uploads
    assert not Run.objects.exists()
    Job.objects.filter(pk=job.pk).update(lease_until="2000-01-01T00:00Z")
    jobs.run(job.pk)
    assert Run.objects.get().run_id == "first"
    assert not uploads & stored_files()


@pytest.mark.django_db(transaction=True)
def test_a_job_whose_upload_is_gone_says_so():
    collection = make_collection()
    job = queued("topics", [b"9\ta\n"], collection)
    default_storage.delete(job.payload["uploads"][0]["path"])
    jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error) == ("failed", "evil0.txt:1:1: the uploaded file is gone; send it again")


@pytest.mark.django_db
def test_only_known_kinds_and_options_are_queued():
    collection = make_collection()
    with pytest.raises(ImportRefused, match="kind must be one of"):
        queue_import(kind="users", files=[], collection=collection)
    with pytest.raises(ImportRefused, match="options of runs"):
        queue_import(kind="runs", files=[], collection=collection, options={"actor": 1})
    with pytest.raises(ImportRefused, match="no file was sent"):
        queue_import(kind="runs", files=[], collection=collection)


# -- commands -------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_the_commands_fill_a_new_collection(tmp_path, capsys):
    files = {
        "topics": b"1\ta\n2\tb\n",
        "docs.gz": gzip.compress(b'{"_id": "d1", "text": "x"}\n{"_id": "d2", "text": "y"}\n'),
        "run": RUN,
        "gold": b"1 0 d1 1\n",
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    call_command("import_topics", str(tmp_path / "topics"), "--collection", "new", "--create")
    call_command("import_documents", str(tmp_path / "docs.gz"), "--collection", "new")
    call_command("import_runs", str(tmp_path / "run"), "--collection", "new")
    call_command("import_judgments", str(tmp_path / "gold"), "--gold", "--collection", "new")
    assert capsys.readouterr().out.splitlines() == [
        "2 topics added to new",
        "2 documents added to new",
        "1 runs with 3 lines added to new",
        "1 gold answers added to new",
    ]
    collection = Collection.objects.get(name="new")
    assert (collection.topics.count(), collection.documents.count(), collection.runs.count()) == (2, 2, 1)
    assert GoldAnswer.objects.filter(topic__collection=collection).count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_command_that_fails_says_one_line_and_makes_no_collection(tmp_path):
    bad = tmp_path / "bad"
    bad.write_bytes(b"1 Q0 d1 1 x tag\n")
    before = everything()
    with pytest.raises(CommandError) as caught:
        call_command("import_runs", str(bad), "--collection", "new", "--create")
    assert str(caught.value) == f"{bad}:1:11: score must be a finite number, not 'x'"
    assert caught.value.returncode == 1
    with pytest.raises(CommandError, match="--create makes it"):
        call_command("import_runs", str(bad), "--collection", "new")
    with pytest.raises(CommandError, match="No such file"):
        call_command("import_topics", str(tmp_path / "none"), "--collection", "new", "--create")
    with pytest.raises(CommandError, match="there is no campaign"):
        call_command("import_judgments", str(bad), "--campaign", "none")
    assert not Collection.objects.filter(name="new").exists()
    assert everything() == before


@pytest.mark.django_db(transaction=True)
def test_standard_input_can_be_imported_and_read_twice(monkeypatch, capsys):
    def stdin(data):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))

    stdin(b"1\ta\n")
    call_command("import_topics", "-", "--collection", "piped", "--create")
    stdin(RUN)
    call_command("import_runs", "-", "--collection", "piped", "--manual")
    assert Run.objects.get(collection__name="piped").is_manual
    assert capsys.readouterr().out.splitlines()[-1] == "1 of their topics are not in the collection"
    stdin(b"1\ta\n")
    with pytest.raises(CommandError, match=r"^<stdin>:1:1: the collection already has topic 1$"):
        call_command("import_topics", "-", "--collection", "piped")


@pytest.mark.django_db
def test_the_bar_is_drawn_on_a_terminal_only(tmp_path):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    topics = tmp_path / "topics"
    topics.write_bytes(b"1\ta\n")
    for stream, drawn in ((Terminal(), True), (io.StringIO(), False)):
        call_command("import_topics", str(topics), "--collection", f"bar {drawn}", "--create", stderr=stream)
        assert ("topics" in stream.getvalue()) is drawn


@pytest.mark.django_db
def test_export_writes_each_kind_to_a_file_or_to_standard_output(tmp_path, capsys):
    campaign = judged_campaign()
    call_command("export", campaign.name, "qrels")
    assert capsys.readouterr().out == "10 0 d1 1\n10 0 d2 2\n9 0 d1 1\n"
    with pytest.raises(CommandError, match="have no inclusion probabilities"):
        call_command("export", str(campaign.pk), "prels")
    draw = Draw.objects.create(
        campaign=campaign,
        batch=1,
        question="pool",
        method="default",
        selection="poisson",
        seed=1,
        frame="f",
        n_frame=9,
        n_drawn=1,
    )
    item = campaign.items.get(topic__topic_id="10", document__doc_id="d2")
    DrawEntry.objects.create(draw=draw, item=item, inclusion_probability=0.25, times=1)
    target = tmp_path / "out"
    call_command("export", str(campaign.pk), "prels", "-o", str(target))
    assert target.read_bytes() == b"10 d2 2 1 0.25\n"
    call_command("export", campaign.name, "qrels_jg", "-o", str(target))
    assert target.read_text() == "".join(qrels_jg_lines(campaign, True))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    with pytest.raises(CommandError, match="there is no campaign"):
        call_command("export", "none", "qrels")
