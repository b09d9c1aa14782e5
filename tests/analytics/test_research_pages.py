"""The researcher's pages of results: what they say, what they refuse, and what they cost with a hundred runs."""

from copy import deepcopy

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from small_campaign import judge_all, judge_audit, make_assessor, make_campaign, make_undrawn, truth_of
from stored_numbers import add_runs, store

import analytics.tasks  # noqa: F401 (registers the jobs)
from analytics.models import Computation, Estimate
from analytics.services.ranking import ranking_of
from analytics.services.recomputation import recompute
from console.researcher.results_page import runs_in_order
from sampling.services.auditing import audit
from touchstone.models import User, WorkerHeartbeat

pytestmark = pytest.mark.django_db

MOST_STATEMENTS = 12
MANY = 100


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}


@pytest.fixture
def page(client):
    client.force_login(User.objects.create(username="rita", role="researcher"))

    def get(name, campaign, status=200, **query):
        answer = client.get(reverse(f"console:{name}", args=[campaign.pk]), query)
        assert answer.status_code == status, name
        return answer

    return get


@pytest.fixture
def campaign(tmp_path):
    """Drawn, judged by two who are right but for every fourth document, and audited in part."""
    made = make_campaign(tmp_path)

    def given(slot, place):
        wrong = int(slot.item.document.doc_id[-2:]) % 4 == 1 and place == 0
        return (truth_of(slot) + 1) % 4 if wrong else truth_of(slot)

    judge_all(made, [make_assessor(made, "ann"), make_assessor(made, "ben")], grade=given)
    audit(campaign=made, items_each_time=30, items_in_total=30, seed=5)
    judge_audit(made, make_assessor(made, "greta", tier="gold"))
    return made


@pytest.fixture(scope="module")
def hundred_runs_once(module_world, tmp_path_factory):
    made = make_campaign(tmp_path_factory.mktemp("hundred"))
    store(made, [place / 100 for place in range(MANY)], runs=add_runs(made, MANY))
    return made


@pytest.fixture
def hundred_runs(hundred_runs_once, db):
    """A campaign with numbers of a hundred runs, run n of value n/100, and of all their pairs."""
    return deepcopy(hundred_runs_once)


def text_of(answer):
    return answer.content.decode()


# -- runs ---------------------------------------------------------------------------------------------------


def test_a_campaign_without_a_computation_says_so_on_every_page_and_offers_no_number(page, tmp_path):
    made = make_campaign(tmp_path)
    for name in ("campaign-results", "pairs", "ranking"):
        assert "No numbers yet" in text_of(page(name, made)), name
    for name in ("topics", "sensitivity"):
        assert "Not computed yet" in text_of(page(name, made)), name


def test_where_nothing_can_be_estimated_the_table_says_why_and_no_picture_repeats_it(page, tmp_path):
    made = make_campaign(tmp_path, gold=False)
    judge_all(made, [make_assessor(made, "ann"), make_assessor(made, "ben")], topic__topic_id="t0")
    recompute(campaign=made)
    text = text_of(page("campaign-results", made))
    assert "topics have no judgment yet" in text
    assert "The chart appears with the first number" in text
    assert "<figure" not in text
    judge_all(made, list(made.assessors.order_by("pk")))
    recompute(campaign=made)
    assert "<figure" in text_of(page("campaign-results", made))


def test_a_campaign_that_was_not_drawn_has_no_results(page, tmp_path):
    made = make_undrawn(tmp_path)
    for name in ("campaign-results", "pairs", "ranking", "topics", "sensitivity", "run-upload"):
        page(name, made, status=404)


def test_one_run_alone_has_a_value_and_no_pair(page, tmp_path):
    made = make_campaign(tmp_path)
    only = list(made.collection.runs.all())[:1]
    store(made, [0.5], runs=only)
    assert "There is only one run" in text_of(page("campaign-results", made))
    assert "No pair to compare" in text_of(page("pairs", made))
    assert "1 runs have a number; at least 2 are needed" in text_of(page("ranking", made))


def test_the_runs_are_paged_in_the_order_of_their_values_and_a_wrong_page_is_the_nearest(page, hundred_runs):
    first = page("campaign-results", hundred_runs)
    assert [row["run"].run_id for row in first.context["runs"]] == [f"system{99 - n:03d}" for n in range(25)]
    last = page("campaign-results", hundred_runs, page=999)
    assert last.context["runs"][-1]["run"].run_id == "system000"
    assert page("campaign-results", hundred_runs, page="x").context["runs"][0]["run"].run_id == "system099"
    plotted = {row[0] for row in first.context["plot"].rows}
    assert plotted == {f"system{99 - n:03d}" for n in range(10)}
    plotted = {row[0] for row in page("campaign-results", hundred_runs, top=20).context["plot"].rows}
    assert len(plotted) == 20


def test_the_file_of_numbers_has_all_runs_and_the_picture_the_best(page, hundred_runs):
    file = page("campaign-results", hundred_runs, plot="forest", format="csv")
    assert len(file.content.decode().splitlines()) == 1 + MANY
    every = page("campaign-results", hundred_runs, plot="forest", format="csv", methods="corrected,naive")
    assert len(every.content.decode().splitlines()) == 1 + 2 * MANY
    assert file["Content-Disposition"].startswith("attachment")
    assert page("campaign-results", hundred_runs, plot="forest").content.startswith(b"<svg")
    page("campaign-results", hundred_runs, status=404, plot="other")
    pdf = page(
        "campaign-results",
        hundred_runs,
        plot="forest",
        format="pdf",
        width="single",
        title="0",
        methods="naive",
    )
    assert pdf.content.startswith(b"%PDF-")
    for wrong in ({"methods": "guess"}, {"width": "3"}, {"font_pt": "x"}, {"format": "gif"}):
        page("campaign-results", hundred_runs, status=404, plot="forest", **wrong)


# -- what it costs ------------------------------------------------------------------------------------------


def test_no_page_of_a_hundred_runs_takes_more_statements_than_allowed_or_reads_all_pairs(
    page, client, hundred_runs
):
    WorkerHeartbeat.objects.create(name="w", seen_at="2026-11-21T00:00:00Z")
    for name in (
        "campaign-results",
        "pairs",
        "ranking",
        "topics",
        "sensitivity",
        "run-upload",
        "releases",
        "results",
    ):
        address = reverse(f"console:{name}", args=[] if name == "results" else [hundred_runs.pk])
        with CaptureQueriesContext(connection) as caught:
            assert client.get(address).status_code == 200, name
        statements = [str(query["sql"])[:120] for query in caught]
        assert len(statements) <= MOST_STATEMENTS, (name, statements)
    with CaptureQueriesContext(connection) as caught:
        page("campaign-results", hundred_runs)
    asked = [query["sql"] for query in caught if "analytics_estimate" in str(query["sql"])]
    assert asked
    assert all('"run_b_id" IS NULL' in sql for sql in asked)


# -- pairs --------------------------------------------------------------------------------------------------


def test_pairs_are_significant_by_the_p_adjusted_in_the_family_not_over_those_shown(page, tmp_path):
    made = make_campaign(tmp_path)
    # three tests: Holm's steps are 3 x 0.001, 2 x 0.03, and 1 x 0.04, which is not below the step before
    store(made, [0.5, 0.3, 0.1], p_values={(0, 1): 0.03, (0, 2): 0.001, (1, 2): 0.04})
    both = page("pairs", made, run=["run0", "run1"])
    (row,) = both.context["pairs"]
    assert row.p_adjusted == pytest.approx(0.06)
    assert row.winner is None
    everything = {(row.better.run_id, row.worse.run_id): row for row in page("pairs", made).context["pairs"]}
    assert everything["run0", "run2"].p_adjusted == pytest.approx(0.003)
    assert everything["run0", "run2"].winner.run_id == "run0"
    assert everything["run1", "run2"].p_adjusted == pytest.approx(0.06)
    assert page("pairs", made).context["n_apart"] == 1


def test_a_pair_stands_with_the_higher_run_first_whichever_way_round_it_was_stored(page, tmp_path):
    made = make_campaign(tmp_path)
    store(made, [0.1, 0.5, 0.3])
    rows = list(page("pairs", made).context["pairs"])
    assert [(row.better.run_id, row.worse.run_id) for row in rows] == [
        ("run1", "run2"), ("run1", "run0"), ("run2", "run0"),
    ]  # fmt: skip
    assert [row.value for row in rows] == pytest.approx([0.2, 0.4, 0.2])
    assert all(row.low < row.value < row.high for row in rows)
    assert rows[1].low == pytest.approx(0.4 - 0.0196)


def test_the_table_can_be_asked_for_the_pairs_that_are_told_apart_and_for_the_others(page, tmp_path):
    made = make_campaign(tmp_path)
    store(made, [0.5, 0.5 + 1e-4, 0.1])
    shown = {
        show: len(page("pairs", made, show=show).context["pairs"]) for show in ("all", "apart", "not-apart")
    }
    assert shown == {"all": 3, "apart": 2, "not-apart": 1}
    assert "Every pair of these runs has a number" in text_of(page("pairs", made, show="refused"))
    assert len(page("pairs", made, show="nonsense").context["pairs"]) == 3


def test_refused_pairs_say_why_and_the_matrix_has_no_number_for_them(page, campaign):
    refused = Computation.objects.create(
        campaign=campaign,
        last_judgment_id=1,
        n_judgments=1,
        n_items=1,
        n_audited=0,
        n_gold_checks=0,
        seconds=1,
    )
    runs = list(campaign.collection.runs.all())
    reason = "no audit is complete yet"
    for run, run_b in ((runs[0], None), (runs[1], None), (runs[0], runs[1])):
        Estimate.objects.create(
            computation=refused,
            run=run,
            run_b=run_b,
            measure="DCG@10",
            method="corrected",
            n=0,
            refusal=reason,
        )
    answer = page("pairs", campaign)
    assert reason in text_of(answer)
    assert "No corrected number: no audit is complete yet." in answer.context["verdict"]
    assert answer.context["quoted"] == ""
    assert [row[2:5] for row in answer.context["matrix"].rows] == [(None, None, None)]


def test_the_sentence_to_quote_names_all_that_a_methods_section_needs(page, campaign):
    computation = recompute(campaign=campaign)
    answer = page("pairs", campaign, a="run0", b="run2")
    stored = computation.estimates.get(
        measure="DCG@10", method="corrected", run__run_id="run0", run_b__run_id="run2"
    )
    said = answer.context["quoted"]
    assert "run0" in said
    assert "run2" in said
    assert "DCG@10" in said
    assert f"{abs(stored.value):.3f}" in said
    assert "paired t-test over 3 topics" in said or "limited by the judging, not by the topics" in said
    assert "95 % confidence interval" in said
    assert "declared comparisons" in said
    assert "difference estimator" in said
    assert f"as of judgment {computation.last_judgment_id:,}" in said
    assert f"{computation.n_judgments:,} judgments of 42 documents of 3 topics" in said
    assert 'data-copies="quoted"' in text_of(answer)
    assert 'id="quoted"' in text_of(answer)
    one = page("pair", campaign, a="run0", b="run2")
    assert one.context["quoted"] == said


def test_of_a_hundred_runs_the_best_are_shown_and_others_can_be_chosen(page, hundred_runs):
    best = page("pairs", hundred_runs)
    assert best.context["n_all"] == 45
    assert best.context["n_family"] == 0  # they came after the draw: no comparison of its question
    assert page("pairs", hundred_runs, family="all").context["n_family"] == 4950
    assert {row.worse.run_id for row in best.context["pairs"]} <= {f"system{n:03d}" for n in range(90, 100)}
    chosen = page("pairs", hundred_runs, run=["system003", "system001", "system007", "nobody"])
    assert chosen.context["n_all"] == 3
    assert chosen.context["chosen_by_hand"]
    forty = page("pairs", hundred_runs, top=40)
    assert forty.context["n_all"] == 780
    assert len(forty.context["pairs"]) == 50
    assert page("pairs", hundred_runs, run=["system003"]).context["n_all"] == 45  # one run is no pair


# -- ranking ------------------------------------------------------------------------------------------------


def test_the_ranking_of_real_numbers_has_every_run_once_and_chances_that_sum_to_one(page, campaign):
    computation = recompute(campaign=campaign)
    said = page("ranking", campaign).context["ranking"]
    stored = computation.estimates.filter(measure="DCG@10", method="corrected", run_b=None)
    assert [run.estimate.value for run in said.runs] == sorted(
        stored.values_list("value", flat=True), reverse=True
    )
    assert [run.rank for run in said.runs] == [1, 2, 3]
    for run in said.runs:
        assert sum(run.probabilities) == pytest.approx(1)
        assert run.rank_low <= run.rank_alone_low <= run.rank <= run.rank_alone_high <= run.rank_high
    assert -1 <= said.tau.low <= said.tau.high <= 1


def test_the_chance_of_the_first_of_two_runs_is_one_less_half_the_p_of_their_difference(tmp_path):
    made = make_campaign(tmp_path)
    runs = list(made.collection.runs.order_by("pk"))[:2]
    computation = store(made, [0.50, 0.48], pair_error=0.01, runs=runs)
    first, second = ranking_of(computation=computation, measure="DCG@10").runs
    assert first.probabilities[0] == pytest.approx(0.97725, abs=0.01)  # Phi(2)
    assert second.probabilities[0] == pytest.approx(1 - first.probabilities[0])


def test_a_ranking_leaves_out_who_has_no_number_and_says_why(page, tmp_path):
    made = make_campaign(tmp_path)
    runs = list(made.collection.runs.order_by("pk"))
    computation = store(made, [0.5, 0.3], runs=runs[:2])
    reason = "run2 returns documents that could not be drawn"
    Estimate.objects.create(
        computation=computation, run=runs[2], measure="DCG@10", method="corrected", n=0, refusal=reason
    )
    answer = page("ranking", made)
    assert [run.run_id for run in answer.context["ranking"].runs] == ["run0", "run1"]
    assert answer.context["ranking"].left_out == (("run2", reason),)
    assert reason in text_of(answer)
    page("ranking", made, status=404, method="true")
    assert "Not the ranking to report" in text_of(page("ranking", made, method="naive"))


def test_a_pair_without_an_estimate_is_taken_as_independent_and_the_page_says_so(page, tmp_path):
    made = make_campaign(tmp_path)
    runs = list(made.collection.runs.order_by("pk"))
    computation = Computation.objects.create(
        campaign=made, last_judgment_id=1, n_judgments=1, n_items=1, n_audited=0, n_gold_checks=0, seconds=1
    )
    for run, value in zip(runs[:2], (0.5, 0.5 + 0.0282842712), strict=True):
        Estimate.objects.create(
            computation=computation, run=run, measure="DCG@10", method="corrected", n=60, value=value,
            low=value - 0.0196, high=value + 0.0196, standard_error=0.01,
        )  # fmt: skip
    said = page("ranking", made, claim="these-topics").context["ranking"]
    assert said.n_unknown == 1
    # the difference is two of its standard errors, sqrt(2) x 0.01
    assert said.runs[0].probabilities[0] == pytest.approx(0.97725, abs=0.01)
    assert "assumed to be independent" in text_of(page("ranking", made, claim="these-topics"))


def test_runs_without_any_number_stand_last_in_every_order(tmp_path):
    made = make_campaign(tmp_path)
    runs = list(made.collection.runs.order_by("pk"))
    computation = store(made, [-0.5, 0.3], runs=runs[:2])
    Estimate.objects.create(
        computation=computation, run=runs[2], measure="DCG@10", method="naive", n=0, refusal="no judgment"
    )
    assert [run.run_id for run in runs_in_order(computation, "DCG@10")] == ["run1", "run0", "run2"]
    assert runs_in_order(None, "DCG@10") == []
