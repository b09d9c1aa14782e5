"""Formats of files are tables too: a planted one is met on the page, in the API, the command and the manual."""

from io import StringIO

import pytest
from audit_plans import client_of, text_of
from django.core.management import CommandError, call_command
from django.urls import reverse
from made_releases import audited, file, judged
from small_campaign import make_undrawn
from test_extension import PLANTED, help_of, plant, rows_below

from analytics.services import exports
from analytics.services.exports import ExportFormat
from judging.models import GoldAnswer
from judging.services import judgment_formats
from judging.services.judgment_files import import_judgments
from judging.services.judgment_formats import JudgmentFormat
from judging.services.sources import place_of_field
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


def read_reversed(source, name, *, allows_repeats=False):
    """Yield the records of ``grade document assessor topic``."""
    for fields in read_fields(source, name, 4, "grade document assessor topic"):
        yield JudgmentRecord(
            fields.id(3, "topic id"), fields.id(1, "document id"), fields.id(2, "assessor"), fields.grade(0)
        )


@pytest.mark.django_db
def test_a_planted_format_of_judgments_is_met_everywhere(tmp_path, monkeypatch, capsys) -> None:
    order = ("grade", "document", "assessor", "topic")
    entry = JudgmentFormat(
        PLANTED,
        "Planted",
        "A planted help.",
        read_reversed,
        lambda source, name, index, what: place_of_field(source, name, index, 4, order.index(what)),
        names_assessors=True,
    )
    plant(monkeypatch, judgment_formats, "FORMATS", entry)
    campaign = make_undrawn(tmp_path, gold=False)
    collection = campaign.collection
    where = reverse("console:manage-collection", args=[collection.pk])
    assert f'<option value="{PLANTED}">Planted</option>' in text_of(client_of("manager").get(where))
    schemas = description.__wrapped__()["components"]["schemas"]
    described = schemas["ImportRequestRequest"]["properties"]["file_format"]["description"]
    assert "of judgments: qrels, qrels_jg, crowd, cranfield, planted." in described
    told = " ".join(help_of("import_judgments", capsys).split())
    assert "planted: A planted help." in told

    path = tmp_path / "planted.txt"
    path.write_text("2 t0d00 ann t0\n1 t0d00 ben t0\n")
    call_command("import_judgments", str(path), campaign=campaign.name, format=PLANTED, stdout=StringIO())
    records = [line.split()[::2] for line in exports.qrels_jg_lines(campaign, True)]
    assert records == [["t0", "t0d00"]] * 2
    assert list(exports.qrels_lines(campaign, True)) == ["t0 0 t0d00 1\n"]
    path.write_text("2 t0d01 ann t0\n2 nothing ann t0\n")
    with pytest.raises(CommandError, match=r"planted.txt:2:3: the collection has no document nothing"):
        call_command("import_judgments", str(path), campaign=campaign.name, format=PLANTED)

    gold = {"source": file("3 t1d00 nist t1\n")["source"], "name": "gold"}
    import_judgments(collection=collection, as_gold=True, file_format=PLANTED, **gold)
    assert GoldAnswer.objects.get(topic__collection=collection).grade == 3
