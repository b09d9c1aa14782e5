"""`manage.py import_collection`: a folder or a zip, looked at and kept from the command line."""

import pytest
from django.core.management import CommandError, call_command
from file_campaign import everything
from journey_files import CORPUS, QRELS, RUNS, TOPICS
from uploaded import zip_of

from judging.models import Collection, Document, GoldAnswer, Run, Topic
from judging.services.errors import ImportRefused
from judging.services.folder_imports import parse_settings

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "news"
    (made / "runs").mkdir(parents=True)
    (made / "topics.tsv").write_text(TOPICS)
    (made / "corpus.jsonl").write_text(CORPUS)
    (made / "gold.qrels").write_text(QRELS)
    (made / "runs" / "a.run").write_text(RUNS["a"])
    (made / "README.md").write_text("What this is.\n")
    (made / ".hidden").write_text("x")
    return made


def import_collection(path, *arguments, name="News"):
    return call_command("import_collection", str(path), "--collection", name, *arguments)


def counts():
    return tuple(model.objects.count() for model in (Topic, Document, Run, GoldAnswer))


def test_a_folder_becomes_a_collection(folder, capsys):
    import_collection(folder, "--create")
    assert counts() == (3, 36, 1, 9)
    printed = capsys.readouterr().out
    rows = {line.split()[0]: line.split()[1:3] for line in printed.splitlines() if line[:1].strip()}
    assert rows["topics.tsv"] == ["Topics", "3"]
    assert rows["runs/a.run"] == ["Run", "30"]
    assert rows["README.md"][:2] == ["Left", "out"]
    assert ".hidden" not in printed
    assert "3 topics, 36 documents, 1 runs, 9 gold added to News" in printed


def test_a_zip_is_read_like_a_folder(tmp_path):
    path = tmp_path / "news.zip"
    path.write_bytes(zip_of({"topics.tsv": TOPICS, "corpus.jsonl": CORPUS, "a.run": RUNS["a"]}))
    import_collection(path, "--create")
    assert counts() == (3, 36, 1, 0)


def test_a_look_changes_nothing(folder, capsys):
    before = everything()
    import_collection(folder, "--look")
    assert "corpus.jsonl" in capsys.readouterr().out
    assert everything() == before
    assert not Collection.objects.exists()


def test_faults_end_it_with_exit_code_2_and_nothing_is_imported(folder, capsys):
    (folder / "runs" / "b.run").write_text(RUNS["b"] + "t0 Q0 d1 1 high b\n")
    before = everything()
    with pytest.raises(CommandError) as error:
        import_collection(folder, "--create")
    assert error.value.returncode == 2
    assert "runs/b.run has 1 fault." in str(error.value)
    assert "runs/b.run:31:12: score must be a finite number, not 'high'" in capsys.readouterr().out
    assert everything() == before
    import_collection(folder, "--create", "--set", "runs/b.run:kind=none")  # the control
    assert counts() == (3, 36, 1, 9)


def test_settings_say_what_files_are(folder):
    (folder / "gold.qrels").write_text("t0 0 t0d0 -2\nt0 0 t0d1 1\nt1 0 t1d1 -1\n")
    import_collection(
        folder, "--create", "--set", "gold.qrels:grade-map=-2=0,-1=", "--set", "README.md:kind=none"
    )
    assert dict(GoldAnswer.objects.values_list("document__doc_id", "grade")) == {"t0d0": 0, "t0d1": 1}


def test_a_collection_that_is_there_gets_more_and_another_must_be_made(folder):
    with pytest.raises(CommandError, match="there is no collection 'News'; --create makes it"):
        import_collection(folder)
    import_collection(folder, "--create")
    import_collection(folder)  # what is there already is left out
    assert counts() == (3, 36, 1, 9)
    (folder / "runs" / "b.run").write_text(RUNS["b"])
    import_collection(folder)
    assert counts() == (3, 36, 2, 9)
    (folder / "topics.tsv").write_text("t0\tNeed\nt9\tNew\n")
    with pytest.raises(CommandError, match="1 topic of it is in the collection already") as error:
        import_collection(folder)
    assert error.value.returncode == 2
    assert counts() == (3, 36, 2, 9)


def test_settings_are_read_and_wrong_ones_named(folder):
    assert parse_settings(
        ["q.csv:mapping=id=qid,title=query+words", "q.csv:numbers-rows=yes", "a:b.txt:kind=none"]
    ) == {
        "q.csv": {"mapping": {"id": ["qid"], "title": ["query", "words"]}, "numbers_rows": True},
        "a:b.txt": {"kind": "none"},
    }
    with pytest.raises(ImportRefused, match=r"a setting is like 'topics\.csv:kind=topics', not 'kind'"):
        parse_settings(["kind"])
    with pytest.raises(ImportRefused, match=r"q\.csv has no option colour"):
        parse_settings(["q.csv:colour=red"])
    with pytest.raises(CommandError, match=r"there is no file q\.csv"):
        import_collection(folder, "--create", "--set", "q.csv:kind=topics")
