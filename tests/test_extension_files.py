"""Formats of files are tables too: a planted one is met on the page, in the API, the command and the manual."""

import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from io import StringIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from audit_plans import client_of, text_of
from django.core.management import CommandError, call_command
from django.urls import reverse
from made_releases import audited, file, judged, opened, released
from small_campaign import make_undrawn
from small_release import unpacked
from test_extension import PLANTED, help_of, plant, rows_below
from uploaded import looked

from analytics.releases import formats, verify
from analytics.releases.formats import ReleaseFile
from analytics.releases.reading import open_release
from analytics.releases.services import writing
from analytics.releases.verify_files import LINE_FILES, Graded, LineFile
from analytics.services import exports
from analytics.services.exports import ExportFormat
from judging.file_options import PLAIN
from judging.formats.kinds import JudgmentFormat
from judging.formats.table import RUN_FORMATS
from judging.models import GoldAnswer
from judging.places import place_of_field
from judging.services import judgment_formats
from judging.services.judgment_files import import_judgments
from judging.trec import JudgmentRecord, read_fields
from touchstone.api.schema import description


def without_code(cell: str) -> str:
    return cell.replace("`", "")


# -- exports --------------------------------------------------------------------------------------------------


def test_the_manual_has_the_table_of_exports() -> None:
    rows = rows_below("researcher.md", "file | what it holds")
    assert [[key, without_code(words)] for key, words in rows] == [
        [one.label, one.help] for one in exports.EXPORTS
    ]


def planted_lines(campaign, prefer_gold):
    yield f"{campaign.name}\n"
    yield f"{prefer_gold}\n"


@pytest.mark.django_db
def test_a_planted_export_is_met_everywhere(tmp_path, monkeypatch, capsys) -> None:
    campaign = audited(tmp_path)
    researcher = client_of("researcher")
    where = reverse("console:export", args=[campaign.pk, PLANTED])
    assert researcher.get(where).status_code == 404
    with pytest.raises(CommandError, match="invalid choice"):
        call_command("export", str(campaign.pk), PLANTED)

    entry = ExportFormat(PLANTED, "Planted", "A planted help.", "{campaign}.planted.csv", planted_lines)
    plant(monkeypatch, exports, "EXPORTS", entry)
    page = text_of(researcher.get(reverse("console:campaign-results", args=[campaign.pk])))
    assert f'<a href="{where}">Planted</a>: A planted help.' in page
    answer = researcher.get(where)
    assert answer.getvalue().decode() == f"{campaign.name}\nTrue\n"
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"] == f'attachment; filename="{campaign.pk}.planted.csv"'

    told = " ".join(help_of("export", capsys).split())
    assert "planted: A planted help." in told
    written = StringIO()
    call_command("export", campaign.name, PLANTED, "--without-gold", stdout=written)
    assert written.getvalue() == f"{campaign.name}\nFalse\n"


@pytest.mark.django_db
def test_prels_of_a_campaign_that_was_not_drawn_are_refused_on_the_page_and_by_the_command(tmp_path) -> None:
    campaign = judged(tmp_path)
    answer = client_of("researcher").get(reverse("console:export", args=[campaign.pk, "prels"]))
    assert answer.status_code == 409
    assert "were not drawn" in text_of(answer)
    with pytest.raises(CommandError, match="were not drawn"):
        call_command("export", campaign.name, "prels", stdout=StringIO())


# -- formats of judgments -------------------------------------------------------------------------------------


def test_the_manual_has_the_table_of_formats_of_judgments() -> None:
    rows = rows_below("files.md", "format | what it holds")
    assert [[without_code(cell) for cell in row] for row in rows] == [
        [one.key, one.help] for one in judgment_formats.FORMATS
    ]


def test_the_manual_has_the_table_of_formats_of_runs() -> None:
    rows = rows_below("files.md", "format | what a run's file holds | tools")
    assert [[without_code(cell) for cell in row] for row in rows] == [
        [one.key, one.help, one.tool] for one in RUN_FORMATS
    ]


def read_reversed(source, name, *, allows_repeats=False, faults=None, options=PLAIN):
    """Yield the records of ``grade document assessor topic``."""
    layout = "grade document assessor topic"
    for fields in read_fields(source, name, 4, layout, faults=faults, encoding=options.encoding):
        yield JudgmentRecord(
            fields.id(3, "topic id"), fields.id(1, "document id"), fields.id(2, "assessor"), fields.grade(0)
        )


@pytest.mark.django_db
def test_a_planted_format_of_judgments_is_met_everywhere(tmp_path, monkeypatch, capsys) -> None:
    order = ("grade", "document", "assessor", "topic")
    entry = JudgmentFormat(
        key=PLANTED,
        label="Planted",
        help="A planted help.",
        read=read_reversed,
        place=lambda source, name, index, what, options: place_of_field(
            source, name, index, 4, order.index(what), options
        ),
        names_assessors=True,
    )
    plant(monkeypatch, judgment_formats, "FORMATS", entry)
    campaign = make_undrawn(tmp_path, gold=False)
    collection = campaign.collection
    made = looked(collection, {"gold.qrels": "t0 0 t0d00 1\n"})
    where = reverse("console:manage-import", args=[collection.pk, made.pk])
    assert f'<option value="{PLANTED}">Planted</option>' in text_of(client_of("manager").get(where))
    schemas = description.__wrapped__()["components"]["schemas"]
    described = schemas["ImportRequest"]["properties"]["file_format"]["description"]
    assert (
        "of judgments: qrels, qrels_jg, crowd, gold, beir, cranfield, prels, stratified, mteb, umbrela, planted."
        in described
    )
    told = " ".join(help_of("import_judgments", capsys).split())
    assert "planted: A planted help." in told

    path = tmp_path / "planted.txt"
    path.write_text("2 t0d01 ann t0\n2 nothing ann t0\n")
    with pytest.raises(CommandError, match=r"planted.txt:2:3: the collection has no document nothing"):
        call_command("import_judgments", str(path), campaign=campaign.name, format=PLANTED)
    path.write_text("2 t0d00 ann t0\n1 t0d00 ben t0\n")
    call_command("import_judgments", str(path), campaign=campaign.name, format=PLANTED, stdout=StringIO())
    records = [line.split()[::2] for line in exports.qrels_jg_lines(campaign, True)]
    assert records == [["t0", "t0d00"]] * 2
    assert list(exports.qrels_lines(campaign, True)) == ["t0 0 t0d00 1\n"]

    gold = {"source": file("3 t1d00 nist t1\n")["source"], "name": "gold"}
    import_judgments(collection=collection, as_gold=True, file_format=PLANTED, **gold)
    assert GoldAnswer.objects.get(topic__collection=collection).grade == 3


# -- files of a release ---------------------------------------------------------------------------------------


def test_the_manual_has_the_table_of_the_files_of_a_release() -> None:
    assert rows_below("releases.md", "file | holds") == [
        [" ".join(f"`{name}`" for name in one.names), one.help.replace("{texts}", "")]
        for one in formats.RELEASE_FILES
    ]


def test_every_file_that_is_written_has_an_entry() -> None:
    for one in writing.WRITERS:
        assert all(formats.file_of(name.replace("*", "x.jsonl")) for name in one.names if "." not in name)
        assert all(formats.file_of(name.replace("*", "jsonl")) for name in one.names if "." in name)


@pytest.mark.django_db
def test_every_file_of_a_release_is_written_by_one_entry(tmp_path) -> None:
    with zipfile.ZipFile(released(audited(tmp_path)).file.path) as archive:
        names = [name.partition("/")[2] for name in archive.namelist()]
    for name in names:
        writers = [one for one in writing.WRITERS if any(fnmatchcase(name, pattern) for pattern in one.names)]
        assert len(writers) == 1, name
    written = [name for one in writing.WRITERS for name in one.names]
    for pattern in (pattern for one in formats.RELEASE_FILES for pattern in one.names):
        assert any(fnmatchcase(pattern, name) or fnmatchcase(name, pattern) for name in written), pattern


@pytest.mark.django_db
def test_a_planted_file_of_a_release_is_written_described_read_and_verified(tmp_path, monkeypatch) -> None:
    def write(writer: writing.Writer) -> None:
        rows = writer.items.filter(pl.col("grade") == 0).select("topic_id", "doc_id")
        writer.folder.write("zeros.txt", "".join(f"{topic} {doc}\n" for topic, doc in rows.iter_rows()))

    def zeros(folder: Path, graded: Sequence[Graded]) -> Iterator[str]:
        return (f"{topic} {doc}" for topic, doc, grade, _ in graded if grade == 0)

    def odd(blocks: Iterable[bytes], manifest: Mapping[str, Any]) -> str | None:
        return "no end of line" if not b"".join(blocks).endswith(b"\n") else None

    entry = ReleaseFile(("zeros.txt",), "A planted help.", lambda stream, name: iter(stream), odd)
    plant(monkeypatch, formats, "RELEASE_FILES", entry)
    plant(monkeypatch, writing, "WRITERS", writing.FileWriter(("zeros.txt",), write))
    monkeypatch.setattr(verify, "LINE_FILES", (*LINE_FILES, LineFile("zeros.txt", zeros)))

    release = released(audited(tmp_path))
    inside = opened(release)
    assert "| zeros.txt | A planted help. |" in inside.text("README.md")
    listed = {one["path"] for one in json.loads(inside.text("manifest.json"))["files"]}
    assert "zeros.txt" in listed
    files = json.loads(inside.text("croissant.json"))["distribution"]
    assert "zeros.txt" in {one["@id"] for one in files}
    with open_release(release.file.path) as one:
        lines = [line.decode() for line in one.rows("zeros.txt")]
        assert one.differences() == []
        expected = [line.split() for line in inside.text("qrels.txt").splitlines() if line.endswith(" 0")]
        assert [line.split() for line in lines] == [[topic, doc] for topic, _, doc, _ in expected]
    assert len(lines) > 3

    folder = unpacked(Path(release.file.path).read_bytes(), tmp_path / "unpacked")
    report = verify.verify(folder)
    assert report.different == []
    assert report.same["lines of zeros.txt"] == len(lines)
    (folder / "zeros.txt").write_text("t0 other")
    with open_release(folder) as one:
        assert any(words == "zeros.txt: no end of line" for words in one.differences())
    assert any(words.startswith("zeros.txt line 1") for words in verify.verify(folder).different)
