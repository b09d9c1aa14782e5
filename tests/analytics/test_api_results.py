"""Measures, estimates, comparisons, ranking, evidence and plots for programs: one campaign, audited and computed."""

import csv
import io
import itertools
import uuid
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import pytest
from django.db import transaction
from django.test import Client
from small_campaign import (
    RUNS,
    judge_all,
    judge_audit,
    make_assessor,
    make_campaign,
    make_undrawn,
    returned,
    true_grade,
)

import analytics.tasks  # noqa: F401 (registers the jobs)
from analytics.models import AuditForecast, DisputedItem, Estimate, Flag
from analytics.services.recomputation import measures_of, recompute
from sampling.services.auditing import audit
from touchstone import jobs
from touchstone.models import Job, User

pytestmark = pytest.mark.xdist_group("api-results")
PAIRS = list(itertools.combinations(RUNS, 2))


@pytest.fixture(autouse=True)
def no_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of these tests are in a transaction that the heartbeat's own connection cannot see."""
    monkeypatch.setattr(jobs, "HEARTBEAT_SECONDS", 600.0)


@pytest.fixture(scope="module")
def made_once(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """In one transaction that is taken back at the end; two computations, the newer with 35 audited items."""
    with django_db_blocker.unblock(), transaction.atomic():
        made = make_campaign(tmp_path_factory.mktemp("api"), gold_check_rate=0.2)
        people = [make_assessor(made, "ann"), make_assessor(made, "ben")]
        judge_all(made, people, grade=lambda slot, place: _given(slot, place))
        recompute(campaign=made)
        audit(campaign=made, items_each_time=35, items_in_total=35, seed=5)
        judge_audit(made, make_assessor(made, "greta", tier="gold"))
        recompute(campaign=made)
        for name, role in (("mia", "manager"), ("rhea", "researcher")):
            User.objects.create(username=name, role=role)
        yield made
        transaction.set_rollback(True)


def _given(slot: Any, place: int) -> int:
    """Ann is right; Ben takes every third document for not relevant."""
    document = slot.item.document.doc_id
    return 0 if place and int(document[-2:]) % 3 == 0 else true_grade(slot.item.topic.topic_id, document)


@pytest.fixture
def campaign(made_once: Any, django_db_blocker: Any) -> Iterator[Any]:
    """The campaign for one test; what it does is taken back."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield made_once
        transaction.set_rollback(True)


@pytest.fixture
def ask(campaign: Any) -> Any:
    def asked(path: str, status: int = 200, user: str = "rhea", **query: Any) -> Any:
        client = Client()
        client.force_login(User.objects.get(username=user))
        answer = client.get(f"/api/v1/campaigns/{campaign.pk}/{path}", query)
        assert answer.status_code == status, answer.content[:500]
        return answer

    return asked


def newest(campaign: Any) -> Any:
    return campaign.computations.order_by("-id").first()


PATHS = [
    "measures",
    "estimates",
    "comparisons",
    "ranking",
    "computations",
    "confusions",
    "flags",
    "plots/forest",
]


@pytest.mark.django_db  # the first of the file: pytest-django makes the test database when a test says so
@pytest.mark.parametrize("path", PATHS)
def test_nobody_reads_numbers_without_a_login(path):
    answer = Client().get(f"/api/v1/campaigns/{uuid.UUID(int=0)}/{path}")
    assert answer.status_code in (401, 403)
    assert answer["Content-Type"] == "application/problem+json"


# -- measures and estimates -----------------------------------------------------------------------------------


def test_the_measures_are_listed_with_the_computation_that_has_them(campaign, ask):
    body = ask("measures").json()
    assert [one["name"] for one in body["measures"]] == measures_of(campaign)
    assert [one["is_usual"] for one in body["measures"]][:2] == [True, False]
    assert {one["name"]: one["kind"] for one in body["measures"]}["nDCG@10"] == "ratio"
    assert body["computation"]["n_audited"] == 35
    assert body["computation"]["id"] == newest(campaign).pk


def test_walking_the_pages_meets_every_estimate_of_the_newest_computation_once(campaign, ask):
    seen, url = [], None
    page = ask("estimates", page_size=7).json()
    client = Client()
    client.force_login(User.objects.get(username="rhea"))
    while True:
        seen += [one["id"] for one in page["results"]]
        assert len(page["results"]) <= 7
        url = page["next"]
        if url is None:
            break
        page = client.get(url).json()
    assert len(seen) == len(set(seen))
    assert set(seen) == set(newest(campaign).estimates.values_list("pk", flat=True))
    assert Estimate.objects.filter(computation__campaign=campaign).count() > len(seen)


def test_an_estimate_is_told_with_every_stored_number(campaign, ask):
    query = {"measure": "P@10", "method": "corrected", "run": "run0", "run_b": "run1"}
    [told] = ask("estimates", **query).json()["results"]
    stored = newest(campaign).estimates.get(
        measure="P@10", method="corrected", run__run_id="run0", run_b__run_id="run1"
    )
    for name in (
        "value",
        "standard_error",
        "low",
        "high",
        "p_value",
        "n",
        "components",
        "sources",
        "refusal",
    ):
        assert told[name] == getattr(stored, name), name


@pytest.mark.parametrize(("pairs", "count"), [("true", len(PAIRS)), ("false", len(RUNS))])
def test_pairs_and_single_runs_are_told_apart(ask, pairs, count):
    rows = ask("estimates", pairs=pairs, measure="P@10", method="naive").json()["results"]
    assert len(rows) == count
    assert all((row["run_b"] is not None) == (pairs == "true") for row in rows)


def test_the_true_values_are_those_counted_by_hand(ask):
    rows = ask("estimates", pairs="false", measure="P@10", method="true").json()["results"]
    for row in rows:
        documents = returned(RUNS.index(row["run"]))
        relevant = sum(true_grade(topic, document) > 0 for topic, document in documents)
        assert row["value"] == pytest.approx(relevant / len(documents))


def test_an_older_computation_can_be_asked_and_another_campaigns_cannot(campaign, ask, tmp_path):
    older = campaign.computations.order_by("id").first()
    rows = ask("estimates", computation=older.pk, method="corrected", page_size=200).json()["results"]
    assert rows
    assert {row["value"] for row in rows if row["refusal"]} == {None}
    other = make_campaign(tmp_path)
    judge_all(other, [make_assessor(other, "ann"), make_assessor(other, "ben")])
    foreign = recompute(campaign=other)
    assert ask("estimates", computation=foreign.pk).json()["results"] == []


@pytest.mark.parametrize(
    "query",
    [
        {"method": "guessed"},
        {"pairs": "perhaps"},
        {"computation": "newest"},
        {"computation": "0"},
        {"computation": "9" * 30},
        {"meassure": "P@10"},
        {"page_size": "0"},
        {"cursor": "nonsense"},
    ],
)
def test_what_a_list_does_not_know_is_refused_by_name(ask, query):
    answer = ask("estimates", status=400, **query)
    assert answer["Content-Type"] == "application/problem+json"
    assert list(answer.json()["errors"]) == list(query)


# -- comparisons ----------------------------------------------------------------------------------------------


def holm_by_hand(p_values: dict[Any, float]) -> dict[Any, float]:
    """The definition, in words: of m ordered p the i-th is multiplied by m - i, and never below those before it."""
    found, largest = {}, 0.0
    for place, (key, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, p * (len(p_values) - place)))
        found[key] = largest
    return found


def test_all_pairs_have_holms_p_also_on_a_page_of_one(campaign, ask):
    stored = newest(campaign).estimates.filter(measure="DCG@10", method="corrected", run_b__isnull=False)
    p_values = {(e.run.run_id, e.run_b.run_id): e.p_value for e in stored}
    assert len(p_values) == len(PAIRS)
    expected = holm_by_hand(p_values)
    rows = ask("comparisons", measure="DCG@10").json()["results"]
    assert {(row["run"], row["run_b"]): row["p_holm"] for row in rows} == pytest.approx(expected)
    for row in rows:
        told_apart = row["p_holm"] < 0.05
        better = (row["run"] if row["value"] > 0 else row["run_b"]) if told_apart else None
        assert row["better"] == better
        assert "DCG@10" in row["verdict"]
    [alone] = ask("comparisons", measure="DCG@10", run="run0", run_b="run2").json()["results"]
    assert alone["p_holm"] == pytest.approx(expected["run0", "run2"])


def test_without_a_measure_the_pairs_are_those_of_the_measure_drawn_for(ask):
    rows = ask("comparisons").json()["results"]
    assert {row["measure"] for row in rows} == {"DCG@10"}
    assert ask("comparisons", measure="P@999").json()["results"] == []


def test_one_pair_turned_round_says_the_same_of_the_same_runs(ask):
    forth = ask("comparison", run="run0", against="run2", measure="P@10").json()
    back = ask("comparison", run="run2", against="run0", measure="P@10").json()
    value = {e["method"]: e["value"] for e in forth["estimates"]}
    assert {"naive", "corrected", "true"} <= set(value)
    for estimate in back["estimates"]:
        if value[estimate["method"]] is not None:
            assert estimate["value"] == pytest.approx(-value[estimate["method"]])
            assert estimate["low"] <= estimate["value"] <= estimate["high"]
    assert forth["p_holm"] == back["p_holm"]
    assert forth["better"] == back["better"]
    assert forth["n_compared"] == len(PAIRS)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"run": "run0"}, "against"),
        ({"run": "run0", "against": "run0"}, "against"),
        ({"run": "run0", "against": "nobody"}, "against"),
        ({"run": "run0", "against": "run1", "measure": "P@999"}, "measure"),
        ({"run": "run0", "against": "run1", "method": "naive"}, "method"),
    ],
)
def test_a_comparison_that_cannot_be_made_names_what_is_wrong(ask, query, field):
    assert field in ask("comparison", status=400, **query).json()["errors"]


def test_the_ranking_has_chances_that_add_up_and_the_best_run_first(ask):
    body = ask("ranking", measure="P@10").json()
    values = [run["value"] for run in body["runs"]]
    assert values == sorted(values, reverse=True)
    assert len(values) == len(RUNS)
    for place, run in enumerate(body["runs"], start=1):
        assert run["rank"] == place
        assert run["rank_low"] <= place <= run["rank_high"]
        assert sum(run["probabilities"]) == pytest.approx(1)
    assert -1 <= body["tau"]["low"] <= body["tau"]["high"] <= 1
    assert body["n_pairs"] == len(PAIRS)
    assert "method" in ask("ranking", status=400, method="true").json()["errors"]


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
