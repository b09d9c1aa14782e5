"""Claims and families for programs: both claims of every pair, p adjusted in a family, and who may declare one."""

import csv
import io

import pytest
from api_numbers import newest
from django.db import DatabaseError, transaction
from django.test import Client
from scipy.stats import ttest_rel
from small_campaign import RUNS

import analytics.tasks  # noqa: F401 (registers the jobs)
from analytics.estimation.claims import Family
from analytics.estimation.comparison import holm
from analytics.models import ComparisonFamily
from analytics.services.families import asked_family, declare_family, question_family
from judging.models import Run
from touchstone import jobs
from touchstone.models import Event, Job, User

pytestmark = [pytest.mark.xdist_group("api-results"), pytest.mark.django_db]


def post(campaign, user, **body):
    client = Client()
    client.force_login(User.objects.get(username=user))
    return client.post(f"/api/v1/campaigns/{campaign.pk}/families", body, content_type="application/json")


def test_by_default_the_claim_is_about_topics_like_these_with_these_topics_beside_it(campaign, ask):
    stored = newest(campaign).estimates.filter(measure="DCG@10", method="corrected")
    values = {e.run.run_id: e.topic_values for e in stored if e.run_b is None}
    rows = {(e.run.run_id, e.run_b.run_id): e for e in stored if e.run_b is not None and e.value is not None}
    answers = ask("comparisons", measure="DCG@10").json()["results"]
    assert len(answers) == len(rows)
    p = [rows[one["run"], one["run_b"]].topics_p_value for one in answers]
    for one, adjusted in zip(answers, holm(p), strict=True):
        row = rows[one["run"], one["run_b"]]
        assert (one["claim"], one["other"]["claim"]) == ("topics-like-these", "these-topics")
        assert (one["family"], one["n_family"], one["adjustment"]) == ("question", len(rows), "holm")
        paired = ttest_rel(values[one["run"]], values[one["run_b"]])
        assert one["p"] == pytest.approx(max(paired.pvalue, row.p_value), rel=1e-9)
        assert one["p_adjusted"] == one["p_holm"] == pytest.approx(adjusted, rel=1e-12)
        assert one["significant"] == (adjusted < 0.05)
        assert one["other"]["p"] == one["p_value"] == row.p_value
        assert (one["other"]["interval_low"], one["low"]) == (row.low, row.low)
        assert one["interval_low"] <= row.low
        assert one["interval_high"] >= row.high
        assert (one["effect_size"] is None) == (one["effect_size_refusal"] != "")
        if one["t"] is not None:
            assert one["t"] == pytest.approx(paired.statistic, rel=1e-9)
            assert one["degrees_of_freedom"] == len(values[one["run"]]) - 1
        assert ("higher" in one["verdict"]) == one["significant"]


def test_the_other_claim_is_a_parameter_away_and_pages_of_one_and_lists_agree(ask):
    query = {"measure": "DCG@10", "claim": "these-topics"}
    for row in ask("comparisons", **query).json()["results"]:
        one = ask("comparison", run=row["run"], against=row["run_b"], **query).json()
        shared = [
            "claim",
            "family",
            "n_family",
            "t",
            "p",
            "p_adjusted",
            "significant",
            "effect_size",
            "other",
        ]
        assert {name: one[name] for name in shared} == {name: row[name] for name in shared}
        assert row["claim"] == "these-topics"
        assert row["p"] == row["p_value"]
        assert one["verdict"] == row["verdict"]


def test_a_family_of_one_pair_adjusts_nothing_and_other_pairs_are_not_significant_in_it(ask):
    first, second, third = RUNS[:3]
    rows = ask("comparisons", measure="DCG@10", family=f"runs:{first},{second}").json()["results"]
    for row in rows:
        inside = {row["run"], row["run_b"]} == {first, second}
        assert (row["p_adjusted"] is not None) == inside
        assert row["n_family"] == 1
        if inside:
            assert row["p_adjusted"] == row["p"]
        else:
            assert not row["significant"]
            assert "is not among the declared comparisons" in row["verdict"]
    against = ask("comparison", run=first, against=third, measure="DCG@10", family=f"baseline:{third}").json()
    assert (against["n_family"], against["family"]) == (len(RUNS) - 1, f"baseline:{third}")


def test_estimates_have_both_claims_of_every_number_and_the_p_of_comparisons(campaign, ask):
    stored = {e.pk: e for e in newest(campaign).estimates.filter(measure="DCG@10")}
    columns = {
        "topics-like-these": ("topics_low", "topics_high", "topics_p_value"),
        "these-topics": ("low", "high", "p_value"),
    }
    for claim, other in (tuple(columns), tuple(columns)[::-1]):
        query = {"measure": "DCG@10", "claim": claim}
        told = {(r["run"], r["run_b"]): r for r in ask("comparisons", **query).json()["results"]}
        rows = ask("estimates", page_size=200, **query).json()["results"]
        assert {row["id"] for row in rows} == set(stored)
        for row in rows:
            known = stored[row["id"]]
            low, high, p = (getattr(known, name) for name in columns[claim])
            assert (row["claim"], row["other"]["claim"], row["family"]) == (claim, other, "question")
            assert [row["interval_low"], row["interval_high"], row["p"]] == [low, high, p]
            assert row["other"]["interval_low"] == getattr(known, columns[other][0])
            if known.value is not None and low is None:
                assert row["claim_refusal"]
            if known.method == "corrected" and known.run_b is not None and known.value is not None:
                pair = told[row["run"], row["run_b"]]
                assert (row["p_adjusted"], row["significant"]) == (pair["p_adjusted"], pair["significant"])
                assert row["other"]["p_adjusted"] == pair["other"]["p_adjusted"]
            else:
                assert (row["p_adjusted"], row["significant"]) == (None, False)
    alone = ask("estimates", measure="DCG@10", family="runs:run0,run1", page_size=200).json()["results"]
    assert {(r["run"], r["run_b"]) for r in alone if r["p_adjusted"] is not None} == {("run0", "run1")}
    inverse = [row for row in alone if row["method"] == "matrix-inverse" and row["value"] is not None]
    assert inverse
    for row in inverse:
        assert row["claim_refusal"] == "matrix inverse has no interval for topics like these"
        assert row["interval_low"] is None
        assert row["other"]["interval_low"] == row["low"]


def test_plots_have_the_interval_of_the_claim(ask):
    pair = {"run": "run0", "against": "run1"}
    for plot, query in (("forest", {}), ("pair", pair)):
        for claim in ("topics-like-these", "these-topics"):
            asked = {"measure": "DCG@10", "claim": claim, **query}
            text = ask(f"plots/{plot}", format="csv", methods="corrected", **asked).content.decode()
            drawn = [(row["low"], row["high"]) for row in csv.DictReader(io.StringIO(text))]
            method = {"measure": "DCG@10", "method": "corrected", "claim": claim}
            rows = ask("estimates", pairs=str(plot == "pair").lower(), **method).json()["results"]
            kept = [row for row in rows if plot == "forest" or (row["run"], row["run_b"]) == ("run0", "run1")]
            assert sorted(drawn) == sorted((str(r["interval_low"]), str(r["interval_high"])) for r in kept)
            svg = ask(f"plots/{plot}", **asked).content.decode()
            words = claim.replace("-", " ")
            assert f"95 % confidence intervals for {words}" in svg
    for plot in ("topics", "hardest-topics"):
        assert "claim" in ask(f"plots/{plot}", status=400, claim="these-topics", **pair).json()["errors"]


def test_max_t_by_random_signs_is_given_on_request_and_never_below_the_p_of_one_comparison(ask):
    rows = ask("comparisons", measure="DCG@10", adjustment="max-t").json()["results"]
    assert {row["adjustment"] for row in rows} == {"max-t"}
    assert all(row["p"] <= row["p_adjusted"] <= 1 for row in rows)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"claim": "all-topics"}, "claim"),
        ({"family": "runs:run0,nobody"}, "family"),
        ({"family": "runs:run0,run0"}, "family"),
        ({"family": "best"}, "family"),
        ({"adjustment": "bonferroni"}, "adjustment"),
        ({"claim": "these-topics", "adjustment": "max-t"}, "adjustment"),
    ],
)
def test_a_choice_that_does_not_exist_is_refused_by_its_field(ask, query, field):
    pair = {"run": "run0", "against": "run1"}
    addresses = (("comparisons", {}), ("comparison", pair), ("estimates", {}), ("ranking", {}))
    addresses += (("run-estimate", pair), ("tables/pairs", {}))
    plots = ("forest", {}), ("pair", pair), ("pairs", {}), ("ranks", {}), ("sensitivity", {})
    for path, more in (*addresses, *((f"plots/{name}", more) for name, more in plots)):
        answer = ask(path, status=400, **more, **query)
        assert answer["Content-Type"] == "application/problem+json", path
        assert field in answer.json()["errors"], path
    if field != "adjustment":
        assert field in ask("analyses", status=400, what="sensitivity", **query).json()["errors"]
    assert not ComparisonFamily.objects.exists()


def test_an_analysis_takes_a_claim_and_a_family_where_its_result_depends_on_them(campaign, ask):
    client = Client()
    client.force_login(User.objects.get(username="rhea"))
    address = f"/api/v1/campaigns/{campaign.pk}/analyses"
    sent = {"what": "sensitivity", "measure": "DCG@10", "family": "all"}
    assert client.post(address, sent, "application/json").status_code == 202
    jobs.run(Job.objects.get(kind="analysis").pk)
    for claim, other in (("topics-like-these", "these-topics"), ("these-topics", "topics-like-these")):
        body = ask("analyses", **sent, claim=claim).json()
        assert (body["claim"], body["family"]) == (claim, "all")
        ranked = ask("ranking", measure="DCG@10", claim=claim, family="all").json()
        assert body["result"]["n_apart"] == ranked["n_significant"]
        assert body["result"]["n_pairs"] == ranked["n_family"]
        assert body["result"]["other"]["claim"] == other
    # another family is another question
    assert ask("analyses", what="sensitivity", measure="DCG@10").json()["result"] is None
    for field, value in (("claim", "these-topics"), ("family", "all")):
        refused = ask("analyses", status=400, what="agreement", **{field: value}).json()["errors"]
        assert refused == {field: ["tests of the tiers are over topics, and adjusted for all runs"]}


# -- families -----------------------------------------------------------------------------------------------------


def test_a_later_run_joins_no_family_and_answers_stay_as_they_were(campaign, ask):
    before = ask("comparisons", measure="DCG@10").json()["results"]
    declared = declare_family(campaign=campaign, user=None, name="all")
    assert declared.runs == sorted(RUNS)
    Run.objects.create(collection=campaign.collection, run_id="later", n_topics=0, n_lines=0)
    assert "later" not in question_family(campaign).runs
    assert asked_family(campaign) == Family("all", tuple(sorted(RUNS)))
    assert asked_family(campaign, "question").runs == question_family(campaign).runs
    after = ask("comparisons", measure="DCG@10", family="question").json()["results"]
    assert after == before
    # a family that was not declared is one of now
    assert "later" in asked_family(campaign, "baseline:run0").runs


def test_managers_declare_and_the_newest_declaration_is_in_force(campaign, ask):
    assert ask("families").json()["in_force"]["family"] == "question"
    made = post(campaign, "mia", family="baseline:run1")
    assert made.status_code == 201, made.content
    body = ask("families").json()
    assert body["in_force"] == {
        "family": "baseline:run1", "runs": sorted(RUNS), "baseline": "run1", "n_comparisons": len(RUNS) - 1,
    }  # fmt: skip
    assert [one["family"] for one in body["declared"]] == ["baseline:run1"]
    assert ask("comparisons").json()["results"][0]["family"] == "baseline:run1"
    event = Event.objects.filter(verb="declared the family of comparisons").get()
    assert event.detail["family"] == "baseline:run1"
    refused = post(campaign, "mia", family="baseline:nobody")
    assert refused.status_code == 400
    assert "family" in refused.json()["errors"]
    assert post(campaign, "rhea", family="all").status_code == 404
    assert ComparisonFamily.objects.count() == 1


def test_a_declaration_is_never_changed_nor_of_another_form(campaign):
    made = declare_family(campaign=campaign, user=None, name="all")
    for change in (lambda: ComparisonFamily.objects.update(name="question"), made.delete):
        with pytest.raises(DatabaseError), transaction.atomic():
            change()
    for wrong in ({"name": "best"}, {"name": "baseline:run0", "baseline": ""}):
        with pytest.raises(DatabaseError, match="comparisonfamily_name"), transaction.atomic():
            ComparisonFamily.objects.create(campaign=campaign, runs=[], **wrong)
