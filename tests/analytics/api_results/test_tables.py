"""Tables for a paper through the API and the pages: the numbers, marks and words of the comparisons."""

import csv
import io
import re

import pytest
from api_numbers import newest
from django.test import Client
from small_campaign import make_campaign

from analytics.methods import REPORTED
from touchstone.models import User


def rows_of(ask, table, **query):
    text = ask(f"tables/{table}", format="csv", **query).content.decode()
    return list(csv.DictReader(io.StringIO(text)))


CLAIMS = {
    "these-topics": ("low", "high", "two-sided test of the corrected difference for these topics"),
    "topics-like-these": ("topics_low", "topics_high", "paired t-test over topics"),
}


def comparisons_of(ask, measure, claim="these-topics"):
    found = ask("comparisons", measure=measure, page_size=200, claim=claim).json()["results"]
    return {(row["run"], row["run_b"]): row for row in found}


@pytest.mark.django_db  # the first of the file: pytest-django makes the test database when a test says so
def test_nobody_reads_a_table_without_a_login():
    answer = Client().get("/api/v1/campaigns/00000000-0000-0000-0000-000000000000/tables/runs")
    assert answer.status_code in (401, 403)


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_table_of_runs_has_the_reported_numbers(ask, claim):
    told = ask("estimates", measure="P@10", pairs="false", method=REPORTED.key).json()["results"]
    rows = {row["run"]: row for row in rows_of(ask, "runs", measure="P@10", claim=claim)}
    assert len(rows) == len(told) > 2
    for one in told:
        for name, column in zip(("value", "low", "high"), ("value", *CLAIMS[claim][:2]), strict=True):
            assert float(rows[one["run"]][name]) == pytest.approx(one[column])
    assert "P@10" in rows["run0"]["caption"]


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_table_of_pairs_has_both_ps_and_the_verdict_of_the_comparisons(ask, claim):
    told = comparisons_of(ask, "P@10", claim)
    rows = rows_of(ask, "pairs", measure="P@10", claim=claim)
    assert len(rows) == len(told)
    for row in rows:
        pair = row["run"], row["against"]
        one, sign = (told[pair], 1) if pair in told else (told[pair[::-1]], -1)
        assert float(row["difference"]) == pytest.approx(sign * one["value"])
        low, high = one["interval_low"], one["interval_high"]
        assert float(row["low"]) == pytest.approx(low if sign > 0 else -high)
        assert float(row["p_adjusted"]) == pytest.approx(one["p_holm"])
        assert row["is_significant"] == ("yes" if one["better"] else "no")
    n_tested = sum(one["p_holm"] is not None for one in told.values())
    assert f"Holm over the {n_tested} comparisons of the family question" in rows[0]["caption"]
    assert CLAIMS[claim][2] in rows[0]["caption"]
    assert "could not be judged" not in rows[0]["caption"]


def test_pairs_against_a_run_are_those_of_every_run_minus_it(ask):
    rows = rows_of(ask, "pairs", measure="P@10", against="run0")
    assert {row["against"] for row in rows} == {"run0"}
    told = comparisons_of(ask, "P@10")
    assert len(rows) == sum("run0" in pair for pair in told)
    for row in rows:
        pair = (row["run"], "run0")
        value = told[pair]["value"] if pair in told else -told[pair[::-1]]["value"]
        assert float(row["difference"]) == pytest.approx(value)


def test_letters_and_daggers_say_what_the_comparisons_say(ask):
    better = {}
    for (a, b), one in comparisons_of(ask, "DCG@10").items():
        if one["better"]:
            better.setdefault(one["better"], set()).add(b if one["better"] == a else a)
    assert better  # else nothing is tested here
    for table in ("runs", "ranking"):
        asked = {"measure": "DCG@10", "claim": "these-topics"}
        rows = rows_of(ask, table, **asked, marks="letters")
        run_of = {row["letter"]: row["run"] for row in rows}
        for row in rows:
            assert {run_of[letter] for letter in row["marks"].split()} == better.get(row["run"], set())
        base = next(iter(next(iter(better.values()))))
        for row in rows_of(ask, table, **asked, marks="daggers", against=base):
            higher, lower = base in better.get(row["run"], ()), row["run"] in better.get(base, ())
            assert row["marks"] == ("†" if higher else "‡" if lower else "")
            assert base in row["caption"]


def test_the_ranking_has_the_ranks_of_the_ranking(ask):
    told = {run["run"]: run for run in ask("ranking", measure="DCG@10").json()["runs"]}
    for row in rows_of(ask, "ranking", measure="DCG@10"):
        one = told[row["run"]]
        assert [int(row[name]) for name in ("rank", "rank_low", "rank_high")] == [
            one["rank"], one["rank_low"], one["rank_high"],
        ]  # fmt: skip


def test_every_format_is_a_file_of_its_type(ask):
    for key, kind, start in (
        ("latex", "application/x-tex", "% Needs"),
        ("markdown", "text/markdown", "DCG\\@10"),
        ("csv", "text/csv", "run,"),
    ):
        answer = ask("tables/runs", format=key, measure="DCG@10")
        assert answer["Content-Type"].startswith(kind)
        assert answer["Content-Disposition"].startswith('attachment; filename="runs-dcg-10.')
        assert answer.content.decode().startswith(start)


@pytest.mark.parametrize(
    ("table", "query", "status", "field"),
    [
        ("nothing", {}, 404, None),
        ("runs", {"format": "docx"}, 400, "format"),
        ("runs", {"marks": "stars"}, 400, "marks"),
        ("runs", {"marks": "daggers"}, 400, "against"),
        ("runs", {"marks": "daggers", "against": "nobody"}, 400, "against"),
        ("runs", {"against": "run0"}, 400, "against"),
        ("pairs", {"marks": "letters"}, 400, "marks"),
        ("runs", {"measure": "guess"}, 400, "measure"),
        ("runs", {"color": "red"}, 400, "color"),
    ],
)
def test_tables_that_there_are_not(ask, table, query, status, field):
    answer = ask(f"tables/{table}", status=status, **query)
    if field:
        assert list(answer.json()["errors"]) == [field]


def test_before_the_first_computation_there_is_nothing_to_write(campaign, tmp_path):
    other = make_campaign(tmp_path)
    client = Client()
    client.force_login(User.objects.get(username="rhea"))
    answer = client.get(f"/api/v1/campaigns/{other.pk}/tables/runs")
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/NothingToWrite")


@pytest.mark.parametrize(("page", "table"), [("", "runs"), ("pairs/", "pairs"), ("ranking/", "ranking")])
def test_the_pages_link_to_files_that_open(campaign, ask, page, table):
    client = Client()
    client.force_login(User.objects.get(username="rhea"))
    text = client.get(f"/results/{campaign.pk}/{page}", {"measure": "DCG@10"}).content.decode()
    address = f"/api/v1/campaigns/{campaign.pk}/tables/{table}"
    links = [link.replace("&amp;", "&") for link in re.findall(rf'href="({address}[^"]+)"', text)]
    assert len(links) == (3 if table == "pairs" else 6)
    for link in links:
        answer = client.get(link, headers={"accept": "text/html,*/*;q=0.8"})
        assert (answer.status_code, answer["Content-Disposition"][:10]) == (200, "attachment")
    assert f'action="{address}"' in text
    sent = {"measure": "DCG@10", "against": newest(campaign).estimates.first().run.run_id, "format": "latex"}
    sent |= {} if table == "pairs" else {"marks": "daggers"}
    assert client.get(address, sent).status_code == 200
