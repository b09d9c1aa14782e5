"""The corrected number that is forecast: by page, API, command and for a new run, and where the errors are from."""

import json
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from audit_plans import audited, client_of, judge_audit, judged, text_of
from design_campaign import PAIR, undrawn
from django.core.management import CommandError, call_command
from django.urls import reverse
from small_campaign import make_assessor, make_campaign, make_collection

import analytics.tasks  # noqa: F401 (registers the jobs)
from analytics.methods import REPORTED
from analytics.services.forecast import LARGEST_AT_ONCE, forecast, queue_forecast
from analytics.services.outlook import errors_for, label_errors, measured_topics, topics_of
from analytics.services.recomputation import recompute
from judging.services.campaigns import add_assessor
from sampling.models import AuditEntry
from sampling.outlook import assumed_errors
from sampling.questions import Design
from sampling.services.auditing import audit
from sampling.services.forecasting import preview
from sampling.services.outlook import planned_audit
from sampling.services.population import population_of
from touchstone import jobs
from touchstone.models import User

pytestmark = pytest.mark.django_db

DESIGN = Design("pair", ("run0", "run2"), "DCG@10", 10, 20)
NO_AUDIT = "There will be no corrected number: no audit is planned"


# -- the design -----------------------------------------------------------------------------------------------


def test_without_a_planned_audit_there_is_no_corrected_number(campaign, plan):
    shown = preview(campaign=campaign, design=DESIGN).corrected
    assert shown["refusal"] == NO_AUDIT
    assert (shown["half_width"], shown["shares"]) == (None, {})
    for fields in ({"tier": "silver"}, {"is_active": False}):
        made = plan(campaign, **fields)
        assert preview(campaign=campaign, design=DESIGN).corrected["refusal"] == NO_AUDIT
        made.delete()


def test_of_everything_judged_and_an_even_audit_the_forecast_is_the_closed_form(campaign, monkeypatch, plan):
    """All 42 pairs are drawn, so each has the chance 10/42 of an audit. What is too large to play has no other."""
    monkeypatch.setattr("sampling.services.outlook.LARGEST_PLAYED", 0)
    plan(campaign, items_in_total=10)
    everything = Design("pair", ("run0", "run2"), "DCG@10", 10, 42)
    shown = preview(campaign=campaign, design=everything).corrected
    population = population_of(campaign, everything)
    errors = assumed_errors(4, campaign.scale.relevant_grade).matrix
    p, square = population.design_prior, population.says.squared_contrast
    gains = np.array(campaign.scale.gains())
    grades = np.concatenate([(1 - p)[:, None], np.repeat(p[:, None] / 3, 3, axis=1)], axis=1)
    mean = (grades.sum(axis=0) @ (errors * gains[:, None])) / (grades.sum(axis=0) @ errors)
    left = np.array(
        [[errors[g, given] * (gains[g] - mean[given]) ** 2 for given in range(4)] for g in range(4)]
    )
    variance = (square * (42 / 10 - 1) * (grades @ left.sum(axis=1))).sum()
    assert shown["half_width"] == pytest.approx(1.959964 * np.sqrt(variance), rel=1e-6)
    assert shown["shares"] == {"drawing": 0.0, "assessors": 1.0, "topics": 0.0}
    assert (shown["n_gold"], shown["is_assumed"]) == (10.0, True)
    assert (shown["middle"], shown["n_plays"]) == (None, 0)


def test_at_every_budget_there_is_the_closed_form(campaign, monkeypatch, plan):
    assert preview(campaign=campaign, design=DESIGN).corrected_widths == []
    plan(campaign)
    shown = preview(campaign=campaign, design=DESIGN)
    place = shown.budgets.index(20)
    assert len(shown.corrected_widths) == len(shown.budgets)
    pairs = zip(shown.corrected_widths, shown.widths["default"], strict=True)
    assert all(corrected > alone for corrected, alone in pairs)
    monkeypatch.setattr("sampling.services.outlook.LARGEST_PLAYED", 0)
    monkeypatch.setattr("sampling.services.outlook.PLAYS_OF_CURVES", 20)
    again = preview(campaign=campaign, design=DESIGN)
    assert again.corrected_widths[place] == again.corrected["half_width"]
    assert again.corrected_widths[place] == pytest.approx(shown.corrected_widths[place], rel=0.1)


def test_the_headline_is_the_median_of_plays_and_the_middle_of_them_lies_around_it(campaign, plan):
    plan(campaign)
    shown = preview(campaign=campaign, design=DESIGN).corrected
    low, high = shown["middle"]
    assert 0 < low < shown["half_width"] < high
    assert shown["n_plays"] == 20


def test_an_audit_that_is_too_small_says_so(campaign, plan):
    plan(campaign, items_in_total=4)
    shown = preview(campaign=campaign, design=DESIGN).corrected
    assert shown["half_width"] is None
    assert shown["refusal"].startswith(
        "There will probably be no interval of the corrected number: in a simulated "
    )
    assert "at least 10 are needed" in shown["refusal"]
    assert "assumed" in shown["errors_from"]


def test_more_gold_and_better_judges_narrow_it_and_drawing_alone_stays(campaign, plan):
    made = plan(campaign)
    usual = preview(campaign=campaign, design=DESIGN)
    better = preview(campaign=campaign, design=DESIGN, errors=assumed_errors(4, 1, (0.05, 0.05)))
    assert better.corrected["half_width"] < usual.corrected["half_width"]
    assert better.widths == usual.widths
    made.items_in_total = 19
    made.save()
    assert preview(campaign=campaign, design=DESIGN).corrected["half_width"] < usual.corrected["half_width"]
    assert usual.widths["default"][usual.budgets.index(20)] < usual.corrected["half_width"]


def test_gold_judges_leave_the_drawing_alone(campaign):
    make_assessor(campaign, "greta", tier="gold")
    shown = preview(campaign=campaign, design=DESIGN).corrected
    assert shown["shares"]["assessors"] == 0
    assert shown["shares"]["drawing"] == 1
    assert (shown["n_gold"], shown["errors_from"]) == (None, "none, gold assessors judge all")


def test_draws_with_replacement_and_whole_topics_say_that_there_is_none(campaign, plan):
    plan(campaign)
    again = Design("pair", ("run0", "run2"), "DCG@10", 10, 20, method="paper", selection="replacement")
    assert "with replacement" in preview(campaign=campaign, design=again).corrected["refusal"]
    whole = Design("pair", ("run0", "run2"), "DCG@10", 10, 20, topic_selection="sample")
    assert "where whole topics are drawn" in preview(campaign=campaign, design=whole).corrected["refusal"]
    ratio = Design("pair", ("run0", "run2"), "nDCG@5", 10, 20)
    assert "about a ratio" in preview(campaign=campaign, design=ratio).corrected["refusal"]


@pytest.mark.parametrize(
    ("question", "runs"),
    [("system", ("run0",)), ("baseline", ("run1", "run0", "run2")), ("ranking", ()), ("pool", ())],
)
def test_every_question_has_a_forecast(campaign, question, runs, plan):
    plan(campaign, strategy="influence")
    shown = preview(campaign=campaign, design=Design(question, runs, "DCG@10", 10, 20)).corrected
    assert shown["half_width"] > 0
    assert sum(shown["shares"].values()) == pytest.approx(1)
    assert shown == preview(campaign=campaign, design=Design(question, runs, "DCG@10", 10, 20)).corrected


def test_a_census_is_no_plan(done, tmp_path, plan):
    """It has no size of its own: what is planned is the audit beside it, and where there is none, one as large."""
    before = planned_audit(done)
    assert (before.strategy, before.n_items) == ("influence", pytest.approx(24))
    made = audit(campaign=done, strategy="census", run="run0", against="run2", seed=6)
    judge_audit(done, done.assessors.get(tier="gold"))
    assert made.expected_in_total > 30
    assert planned_audit(done) == before
    plan(done, strategy="simple", items_in_total=28)
    assert planned_audit(done) == replace(before, strategy="simple", n_items=28)
    (tmp_path / "next").mkdir()
    other = make_campaign(tmp_path / "next")
    judged(other)
    alone = audit(campaign=other, strategy="census", run="run0", against="run2", seed=6)
    assert planned_audit(other) == replace(before, n_items=alone.expected_in_total)


# -- topics like these ----------------------------------------------------------------------------------------


def test_the_spread_between_topics_is_assumed_until_the_campaign_has_estimates(done, plan):
    asked = Design("pair", ("run0", "run2"), "DCG@10", 10, 40)
    plan(done, items_in_total=30)
    assumed = preview(campaign=done, design=asked).corrected["topics_like_these"]
    assert assumed["is_assumed"]
    assert assumed["n_topics"] == 3
    assert sum(assumed["shares"].values()) == pytest.approx(1)
    row = done.computations.latest("pk").estimates.get(
        measure="DCG@10", method=REPORTED.key, run__run_id="run0", run_b__run_id="run2"
    )
    found = measured_topics(done, asked)
    between = row.topics_standard_error**2 - row.standard_error**2
    assert between > 0
    assert found.variance == pytest.approx(between)
    assert (found.origin, found.is_assumed) == ("measured in this campaign", False)
    made = preview(campaign=done, design=asked, topics=found).corrected
    like = made["topics_like_these"]
    assert (like["topics_from"], like["is_assumed"]) == ("measured in this campaign", False)
    assert like["half_width"] >= made["half_width"]
    assert measured_topics(done, Design("pair", ("run0", "run2"), "DCG@4", 10, 40)) is None
    turned = measured_topics(done, Design("pair", ("run2", "run0"), "DCG@10", 10, 40))
    assert turned.variance == found.variance


def test_of_several_comparisons_the_measured_spread_is_their_mean(done):
    pairs = [("run0", "run1"), ("run0", "run2")]
    alone = [topics_of(done, "DCG@10", [pair]).variance for pair in pairs]
    asked = Design("baseline", ("run0", "run1", "run2"), "DCG@10", 10, 40)
    assert measured_topics(done, asked).variance == pytest.approx(np.mean(alone))


# -- where it is shown ----------------------------------------------------------------------------------------


def test_the_page_shows_both_figures_with_shares_and_origin(campaign, client, plan):
    client.force_login(User.objects.create(username="mia", role="manager"))
    address = reverse("console:design", args=[campaign.pk])
    none = text_of(client.get(address, PAIR))
    assert f"{NO_AUDIT}." in none
    plan(campaign)
    text = text_of(client.get(address, PAIR))
    found = preview(campaign=campaign, design=DESIGN).corrected
    assert (
        f"Corrected number: expect ± {found['topics_like_these']['half_width']:.3f} for topics like these (80 % of"
        in text
    )
    assert f"For these topics alone: ± {found['half_width']:.3f} (80 % of 20 simulated campaigns: ± " in text
    assert "with 16 gold labels; of its variance topics" in text
    assert "Spread between topics: assumed, as topics would differ" in text
    assert "assumed, not measured: 20 % misses and 15 % false alarms" in text.replace("&#x27;", "'")
    assert "by the drawing alone, judgments taken as free of error" in text
    assert "in one line of the curve and in the last column, those of the corrected number" in text
    assert "The curve and the table leave out assessors' errors" in none.replace("&#x27;", "'")
    other = text_of(client.get(address, PAIR | {"misses": "30", "false_alarms": ""}))
    assert "assumed, not measured: 30 % misses and 15 % false alarms" in other


def test_a_stored_forecast_follows_gold_that_comes_later(done, monkeypatch, plan):
    monkeypatch.setattr(
        "sampling.services.outlook.LARGEST_PLAYED", 0
    )  # within a transaction a job has a second
    monkeypatch.setattr("analytics.services.forecast.LARGEST_AT_ONCE", 1)
    plan(done, items_in_total=42)  # what is planned stays
    more = Design("pair", ("run0", "run2"), "DCG@10", 10, 40)
    jobs.run(queue_forecast(campaign=done, design=more, user=None).pk)
    assert forecast(campaign=done, design=more).preview is not None
    recompute(campaign=done)  # nothing came: the forecast stands
    assert not forecast(campaign=done, design=more).needs_job
    audit(campaign=done, items_each_time=10, items_in_total=42, seed=6)
    judge_audit(done, done.assessors.get(tier="gold"))
    recompute(campaign=done)
    assert forecast(campaign=done, design=more).needs_job


def test_the_page_refuses_rates_that_say_nothing_beside_the_field(campaign, client):
    client.force_login(User.objects.create(username="mia", role="manager"))
    address = reverse("console:design", args=[campaign.pk])
    for given, words in (
        ({"misses": "60", "false_alarms": "40"}, "the two together must stay below 100 %"),
        ({"misses": "101"}, "less than or equal to 100"),
        ({"misses": "x"}, "Enter a number"),
    ):
        answer_of_page = client.get(address, PAIR | given)
        assert answer_of_page.status_code == 400
        assert words in text_of(answer_of_page)


def test_the_rates_go_with_the_preview_of_a_large_pool(campaign, client, monkeypatch, plan):
    monkeypatch.setattr(
        "sampling.services.outlook.LARGEST_PLAYED", 0
    )  # within a transaction a job has a second
    client.force_login(User.objects.create(username="mia", role="manager"))
    monkeypatch.setattr("analytics.services.forecast.LARGEST_AT_ONCE", 1)
    assert LARGEST_AT_ONCE > 1
    plan(campaign)
    address = reverse("console:design", args=[campaign.pk])
    sent = client.post(address, PAIR | {"preview": "1", "misses": "30"})
    assert "misses%3D30" in sent["Location"]
    queued = queue_forecast(campaign=campaign, design=DESIGN, user=None, rates=(0.3, 0.15))
    jobs.run(queued.pk)
    shown = forecast(campaign=campaign, design=DESIGN, rates=(0.3, 0.15)).preview
    assert "30 % misses" in shown.corrected["errors_from"]
    assert forecast(campaign=campaign, design=DESIGN).needs_job  # other rates are another forecast
    campaign.audit_schedule.delete()
    assert forecast(campaign=campaign, design=DESIGN, rates=(0.3, 0.15)).needs_job  # so is another audit


def test_the_api_says_what_the_page_says(campaign, plan):
    plan(campaign)
    client = client_of("manager")
    address = reverse("console:api-forecast", args=[campaign.pk])
    body = {"question": "pair", "runs": ["run0", "run2"], "measure": "DCG@10", "depth": 10, "budget": 20}

    def post(**more):
        return client.post(address, json.dumps(body | more), content_type="application/json")

    made = preview(campaign=campaign, design=DESIGN)
    assert post().json()["corrected"] == made.corrected
    assert post().json()["corrected_widths"] == made.corrected_widths
    errors = errors_for(campaign, DESIGN, (0.3, 0.2))
    expected = preview(campaign=campaign, design=DESIGN, errors=errors).corrected
    assert post(misses=0.3, false_alarms=0.2).json()["corrected"] == expected
    refused = post(misses=0.6, false_alarms=0.4)
    assert refused.status_code == 400
    assert "false_alarms" in json.dumps(refused.json())


def test_the_command_says_it_too(campaign, capsys, plan):
    plan(campaign)
    asked = [
        "--question",
        "pair",
        "--runs",
        "run0",
        "run2",
        "--measure",
        "DCG@10",
        "--depth",
        "10",
        "--budget",
        "20",
    ]
    call_command("draw", campaign.name, *asked, "--preview", "--misses", "0.3")
    out = capsys.readouterr().out
    expected = preview(campaign=campaign, design=DESIGN, errors=assumed_errors(4, 1, (0.3, 0.15))).corrected
    assert f"expect ± {expected['topics_like_these']['half_width']:.3f} for topics like these" in out
    assert f"For these topics alone: ± {expected['half_width']:.3f}" in out
    assert "assumed, not measured: 30 % misses and 15 % false alarms" in out
    assert out.split("items ")[1].split("\n")[0].endswith("    corrected")
    with pytest.raises(CommandError, match="sum to less than 1"):
        call_command("draw", campaign.name, *asked, "--preview", "--misses", "0.9")


# -- where the errors are known from --------------------------------------------------------------------------


def measured_counts(campaign):
    row = campaign.computations.latest("pk").confusions.get(scope="pooled")
    return np.array(row.counts)


@pytest.fixture(scope="module")
def done_once(module_world, tmp_path_factory):
    made = make_campaign(tmp_path_factory.mktemp("done"))
    judged(made)
    audited(made)
    recompute(campaign=made)
    return made


@pytest.fixture
def done(done_once, db):
    """A campaign of which all is judged, with 24 documents audited."""
    return deepcopy(done_once)


def test_this_campaigns_gold_comes_first(done):
    found = label_errors(done, 1)
    counts = measured_counts(done)
    labels = 2 * AuditEntry.objects.filter(audit__campaign=done, selected=True).count()  # of two assessors
    assert labels != round(counts.sum())  # these are what the labels are worth
    assert found.origin == f"measured in this campaign on {labels} labels of documents with a gold grade"
    smoothed = counts + 0.5
    assert found.matrix == pytest.approx(smoothed / smoothed.sum(axis=1, keepdims=True))
    assert not found.is_assumed


def test_then_that_of_other_campaigns_with_the_same_assessors(done, tmp_path):
    (tmp_path / "next").mkdir()
    later = undrawn(make_collection(tmp_path / "next"))
    assert label_errors(later, 1).is_assumed
    for name in ("ann", "ben"):
        add_assessor(campaign=later, user=User.objects.get(username=name), tier="bronze")
    found = label_errors(later, 1)
    labels = 2 * AuditEntry.objects.filter(audit__campaign=done, selected=True).count()
    assert found.origin == (
        f"measured in 1 earlier campaign with the same assessors on {labels} labels of documents with a gold grade"
    )
    rows = done.computations.latest("pk").confusions.filter(scope="assessor")
    smoothed = np.sum([row.counts for row in rows], axis=0) + 0.5
    assert found.matrix == pytest.approx(smoothed / smoothed.sum(axis=1, keepdims=True))


def test_what_not_everybody_may_see_says_nothing_elsewhere(done, tmp_path):
    (tmp_path / "next").mkdir()
    later = undrawn(make_collection(tmp_path / "next"))
    for name in ("ann", "ben"):
        add_assessor(campaign=later, user=User.objects.get(username=name), tier="bronze")
    done.collection.is_restricted = True
    done.collection.save()
    assert label_errors(later, 1).is_assumed


def test_little_gold_says_nothing(done):
    row = done.computations.latest("pk").confusions.get(scope="pooled")
    counts = np.array(row.counts)
    assert counts[3].sum() < 10  # as if 3 alone were relevant
    assert label_errors(done, 3).is_assumed
