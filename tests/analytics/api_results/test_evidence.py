"""What the numbers rest on, and plots, for programs: one campaign, audited and computed."""

import csv
import io
import json
import re
import uuid
from xml.etree import ElementTree

import pytest
from api_numbers import newest
from django.test import Client
from small_campaign import (
    make_campaign,
    make_undrawn,
)

import analytics.tasks  # noqa: F401 (registers the jobs)
from analytics.models import AuditForecast, DisputedItem, Flag
from touchstone import jobs
from touchstone.models import Job, User

pytestmark = pytest.mark.xdist_group("api-results")


# -- what they rest on ----------------------------------------------------------------------------------------


def test_computations_are_listed_newest_first_and_read_one_by_one(campaign, ask):
    rows = ask("computations").json()["results"]
    assert [row["n_audited"] for row in rows] == [35, 0]
    assert ask(f"computations/{rows[1]['id']}").json() == rows[1]
    ask("computations/2147483647", status=404)


def test_a_manager_has_the_numbers_made_anew_and_a_researcher_cannot(campaign):
    address = f"/api/v1/campaigns/{campaign.pk}/computations"
    client = Client()
    client.force_login(User.objects.get(username="rhea"))
    assert client.post(address, content_type="application/json").status_code == 404
    client.force_login(User.objects.get(username="mia"))
    answer = client.post(address, content_type="application/json")
    assert answer.status_code == 202
    job = Job.objects.get(pk=answer.json()["id"])
    assert answer["Location"].endswith(str(job.pk))
    before = campaign.computations.count()
    again = client.post(address, content_type="application/json").json()
    assert again["id"] == str(job.pk)  # one that waits is enough
    jobs.run(job.pk)
    assert campaign.computations.count() == before + 1


def test_matrices_of_single_assessors_are_for_managers(ask):
    mine = ask("confusions", user="mia", page_size=200).json()["results"]
    theirs = ask("confusions", page_size=200).json()["results"]
    assert {row["scope"] for row in mine} - {row["scope"] for row in theirs} == {"assessor"}
    assert theirs == [row for row in mine if row["scope"] != "assessor"]
    for row in mine:
        for line in row["matrix"]:
            if all(share is not None for share in line):
                assert sum(line) == pytest.approx(1)
    [pooled] = ask("confusions", scope="pooled").json()["results"]
    assert pooled["key"]
    assert ask("confusions", scope="assessor").json()["results"] == []


@pytest.mark.parametrize("path", ["flags", "audit-forecasts", "disputed-items"])
def test_what_is_said_about_people_and_items_is_for_managers(ask, path):
    ask(path, status=404)
    assert "results" in ask(path, user="mia").json()


def test_flags_forecasts_and_disputed_items_are_those_of_the_newest_computation(campaign, ask):
    computation = newest(campaign)
    ann = campaign.assessors.get(user__username="ann")
    older = campaign.computations.order_by("id").first()
    for made, words in ((older, "long ago"), (computation, "surely less often right than wrong")):
        Flag.objects.get_or_create(assessor=ann, computation=made, defaults={"evidence": words})
    assert [(row["assessor"], row["assessor_id"]) for row in ask("flags", user="mia").json()["results"]] == [
        ("ann", ann.pk)
    ]
    [then] = ask("flags", user="mia", computation=older.pk, test="accuracy").json()["results"]
    assert (then["evidence"], then["test"], then["topics"]) == ("long ago", "accuracy", [])
    forecasts = ask("audit-forecasts", user="mia").json()["results"]
    assert {row["strategy"] for row in forecasts} == set(
        AuditForecast.objects.filter(computation=computation).values_list("strategy", flat=True)
    )
    stored = list(
        DisputedItem.objects.filter(computation=computation)
        .order_by("position")
        .values_list("item_id", "position")
    )
    if not stored:
        item = campaign.items.order_by("pk").first()
        DisputedItem.objects.create(
            computation=computation,
            item=item,
            position=1,
            influence=0.5,
            error_probability=0.25,
            joint_grade=2,
        )
        stored = [(item.pk, 1)]
    rows = ask("disputed-items", user="mia", page_size=200).json()["results"]
    assert [(uuid.UUID(row["item_id"]), row["position"]) for row in rows] == stored
    assert {len(row["doc_id"]) > 0 for row in rows} == {True}


def test_a_campaign_without_a_draw_has_no_numbers(campaign, tmp_path):
    campaign = make_undrawn(tmp_path)
    client = Client()
    client.force_login(User.objects.get(username="rhea"))
    for path in ("measures", "comparisons", "ranking", "plots", "comparison?run=run0&against=run1"):
        assert client.get(f"/api/v1/campaigns/{campaign.pk}/{path}").status_code == 404, path
    assert client.get(f"/api/v1/campaigns/{campaign.pk}/estimates").json()["results"] == []


# -- plots ----------------------------------------------------------------------------------------------------


def test_every_listed_plot_is_there_as_svg_png_and_csv(ask):
    plots = ask("plots").json()["plots"]
    assert {"forest", "pair", "pairs", "ranks"} <= {plot["name"] for plot in plots}
    studies = {"topics", "hardest-topics", "sensitivity"}
    assert studies < {plot["name"] for plot in plots}
    for plot in [plot for plot in plots if plot["name"] not in studies]:
        query = {"run": "run0", "against": "run2"} if "run" in plot["query"] else {}
        name = plot["url"].rpartition("/")[2]
        svg = ask(f"plots/{name}", **query, theme="dark")
        assert svg["Content-Type"] == "image/svg+xml"
        assert ElementTree.fromstring(svg.content.decode()).tag.endswith("svg")  # noqa: S314 (our own)
        assert ask(f"plots/{name}", **query, format="png").content.startswith(b"\x89PNG")
        rows = list(csv.reader(io.StringIO(ask(f"plots/{name}", **query, format="csv").content.decode())))
        assert len(rows) > 1
        pdf = ask(f"plots/{name}", **query, format="pdf", width="double", font_pt="8", title="0")
        assert (pdf["Content-Type"], pdf.content[:5]) == ("application/pdf", b"%PDF-")
        (box,) = re.findall(rb"/MediaBox ?\[0 0 ([\d.]+) [\d.]+\]", pdf.content)
        assert float(box) == pytest.approx(174 / 25.4 * 72, abs=1e-3)
        vega = json.loads(ask(f"plots/{name}", **query, format="vega").content)
        assert len(vega["usermeta"]["rows"]) == len(rows) - 1


def test_a_plot_shows_the_methods_that_are_asked_for(ask):
    for name, query in (("forest", {}), ("pair", {"run": "run0", "against": "run2"})):
        text = ask(f"plots/{name}", format="csv", methods="corrected,naive", **query).content.decode()
        assert {row["method"] for row in csv.DictReader(io.StringIO(text))} == {"corrected", "naive"}
    answer = ask("plots/forest", status=400, methods="corrected,guess").json()
    assert "guess" in answer["errors"]["methods"][0]


def test_defaults_may_be_sent_to_a_picture_that_does_not_take_them_as_generated_clients_do(ask):
    pair = {"run": "run0", "against": "run2"}
    defaults = {"methods": "", "family": "", "adjustment": "holm", "measure": "", "format": "svg"}
    assert ask("plots/pairs", **defaults).content == ask("plots/pairs").content
    assert ask("plots/topics", status=409, **pair, **defaults).json()["type"] == "/problems/NothingToDraw"
    wrong = ask("plots/topics", status=400, **pair, **defaults | {"adjustment": "max-t"}).json()
    assert wrong["errors"] == {"adjustment": ["there is no such field"]}


def test_the_plots_numbers_are_those_of_the_estimates(ask):
    text = ask("plots/forest", format="csv", measure="P@10").content.decode()
    drawn = {(row["label"], row["method"]): row["value"] for row in csv.DictReader(io.StringIO(text))}
    told = ask("estimates", measure="P@10", pairs="false", method="corrected").json()["results"]
    for row in told:
        assert float(drawn[row["run"], "corrected"]) == pytest.approx(row["value"])


@pytest.mark.parametrize(
    ("plot", "what", "pair"),
    [("topics", "topics", True), ("hardest-topics", "topics", True), ("sensitivity", "sensitivity", False)],
)
def test_a_study_is_drawn_once_it_was_made(campaign, ask, plot, what, pair):
    query = {"measure": "P@10"} | ({"run": "run0", "against": "run2"} if pair else {})
    assert ask(f"plots/{plot}", status=409, **query).json()["type"] == "/problems/NothingToDraw"
    client = Client()
    client.force_login(User.objects.get(username="rhea"))
    address = f"/api/v1/campaigns/{campaign.pk}/analyses"
    assert client.post(address, {"what": what, **query}, "application/json").status_code == 202
    jobs.run(Job.objects.get(kind="analysis").pk)
    made = ask("analyses", what=what, **query).json()["result"]
    rows = list(csv.reader(io.StringIO(ask(f"plots/{plot}", **query, format="csv").content.decode())))
    assert len(rows) == 1 + (len(made["topics"]) if pair else 1 + len(made["variants"]))


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        ("plots/nothing", {}, 404),
        ("plots/forest", {"format": "gif"}, 400),
        ("plots/forest", {"theme": "sepia"}, 400),
        ("plots/forest", {"run": "run0"}, 400),
        ("plots/forest", {"width": "39"}, 400),
        ("plots/forest", {"width": "single", "font_pt": "30"}, 400),
        ("plots/forest", {"font_pt": "nan"}, 400),
        ("plots/forest", {"title": "perhaps"}, 400),
        ("plots/pairs", {"methods": "naive"}, 400),
        ("plots/pair", {}, 400),
    ],
)
def test_pictures_that_there_are_not(ask, path, query, status):
    ask(path, status=status, **query)


def test_before_the_first_computation_there_is_nothing_to_draw(campaign, tmp_path):
    campaign = make_campaign(tmp_path)
    client = Client()
    client.force_login(User.objects.get(username="rhea"))
    answer = client.get(f"/api/v1/campaigns/{campaign.pk}/plots/forest")
    assert answer.status_code == 409
    assert answer.json()["type"] == "/problems/NothingToDraw"
    body = client.get(f"/api/v1/campaigns/{campaign.pk}/comparison?run=run0&against=run1").json()
    assert (body["computation"], body["verdict"], body["estimates"]) == (None, "", [])
