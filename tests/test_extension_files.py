"""Formats of files are tables too: a planted one is met on the page, in the API, the command and the manual."""

from io import StringIO

import pytest
from audit_plans import client_of, text_of
from django.core.management import CommandError, call_command
from django.urls import reverse
from made_releases import audited, judged
from test_extension import PLANTED, help_of, plant, rows_below

from analytics.services import exports
from analytics.services.exports import ExportFormat


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
