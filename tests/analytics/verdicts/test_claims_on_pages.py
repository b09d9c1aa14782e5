"""The pages of differences and ranks: one claim at a time, the other beside it, in a family that managers declare."""

import html
import re
from copy import deepcopy
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from django.urls import reverse
from small_campaign import judge_all, make_campaign
from verdict_campaigns import finished, people_of

from analytics.models import ComparisonFamily
from analytics.services.recomputation import recompute
from touchstone.models import User

pytestmark = pytest.mark.django_db
PAIR = {"a": "run0", "b": "run1", "measure": "DCG@10"}


@pytest.fixture(scope="module")
def campaign_once(module_world, tmp_path_factory):
    made = finished(
        make_campaign(tmp_path_factory.mktemp("campaign")), wanted=30, grade=lambda slot, place: 3 * place
    )
    recompute(campaign=made)
    return made


@pytest.fixture
def campaign(campaign_once, db):
    return deepcopy(campaign_once)


def text_of(answer):
    return answer.content.decode()


def test_the_claim_is_one_click_away_on_every_page_of_differences_and_ranks(campaign, page):
    for name in ("pair", "pairs", "ranking"):
        shown = text_of(page(name, campaign, **PAIR))
        assert 'aria-current="true">Topics like these</a>' in shown
        assert "claim=these-topics" in shown
        other = text_of(page(name, campaign, **PAIR, claim="these-topics"))
        assert 'aria-current="true">These topics</a>' in other
        assert "for these 3 topics alone" not in shown


def number_of(end):
    return f"{end:.3f}"


def test_runs_shows_one_number_a_run_for_the_claim_and_everything_else_behind_all_methods(campaign, page):
    stored = {
        e.run.run_id: e for e in newest(campaign).filter(measure="DCG@10", method="corrected", run_b=None)
    }
    for claim, low, high in (
        ("topics-like-these", "topics_low", "topics_high"),
        ("these-topics", "low", "high"),
    ):
        answer = page("campaign-results", campaign, measure="DCG@10", claim=claim)
        text = text_of(answer)
        shown, _, behind = text.partition('<details class="more" id="all-methods">')
        table = shown[shown.index('<table class="compact stacked">') :]
        for row in answer.context["runs"]:
            known = stored[row["run"].run_id]
            ends = getattr(known, low), getattr(known, high)
            assert (row["test"].low, row["test"].high) == ends
            assert f"{number_of(ends[0])} to {number_of(ends[1])}" in table
            # the other claim stands beside it
            assert f"{number_of(row['other'].low)} to {number_of(row['other'].high)}" in table
        assert {row["other"].claim.key for row in answer.context["runs"]} == {
            "topics-like-these", "these-topics",
        } - {claim}  # fmt: skip
        for word in ("Naive (grades as given)", "Matrix inverse", "True value", "confidence sequence"):
            assert word not in table
            assert word in behind
        assert {(row[0], row[1]) for row in answer.context["plot"].rows} == {
            (run, "corrected") for run in stored
        }
        assert f"for {answer.context['claim'].label.lower()}" in answer.context["forest_caption"]
        assert {tuple(row[3:5]) for row in answer.context["plot"].rows} == {
            (getattr(e, low), getattr(e, high)) for e in stored.values()
        }


def newest(campaign):
    return campaign.computations.latest("pk").estimates.select_related("run", "run_b")


def test_before_any_audit_runs_shows_the_grades_as_given_under_their_name(tmp_path, page):
    made = make_campaign(tmp_path)
    judge_all(made, people_of(made))
    recompute(campaign=made)
    answer = page("campaign-results", made, measure="DCG@10")
    assert answer.context["main"].key == "naive"
    assert "No corrected numbers yet:" in text_of(answer)
    assert "by the naive number" in text_of(answer)
    assert {row[1] for row in answer.context["plot"].rows} == {"naive"}


def test_the_pair_that_was_drawn_for_is_said_on_runs_for_the_claim_and_other_tabs_keep_the_claim(
    tmp_path, page
):
    made = finished(make_campaign(tmp_path, kind="pair"), wanted=30, grade=lambda slot, place: 3 * place)
    recompute(campaign=made)
    for claim in ("topics-like-these", "these-topics"):
        answer = page("campaign-results", made, measure="DCG@10", claim=claim)
        pair = page("pair", made, measure="DCG@10", a="run0", b="run2", claim=claim)
        assert answer.context["drawn_verdict"] == pair.context["verdict"]
        assert answer.context["n_family"] == 1
        shown = text_of(answer)
        assert f"ranking/?measure=DCG%4010&amp;claim={claim}" in shown
        assert f"sensitivity/?measure=DCG%4010&amp;claim={claim}" in shown
    # of a pair's question the runs that were pooled for it are ranked, not the pair alone
    assert len(page("ranking", made, measure="DCG@10").context["ranking"].runs) == 3
    wrong = page("campaign-results", made, measure="DCG@10", claim="all-topics")
    assert "This choice does not exist." in text_of(wrong)


def test_pictures_say_their_claim_and_a_method_without_its_interval_is_a_mark_alone(campaign, page):
    for name, plot in (
        ("campaign-results", "plot"),
        ("pair", "plot"),
        ("pairs", "matrix"),
        ("ranking", "ranks"),
    ):
        for claim, words in (("topics-like-these", "topics like these"), ("these-topics", "these topics")):
            chart = page(name, campaign, **PAIR, claim=claim).context[plot]
            assert chart.title.endswith(f", {words}"), name
    chart = page("pair", campaign, **PAIR).context["plot"]
    known = {row[1]: row for row in chart.rows}
    assert known["true value"][2] is not None
    assert known["true value"][3:5] == (None, None)
    assert "a method without a line has no such interval" in chart.caption
    these = {row[1]: row for row in page("pair", campaign, **PAIR, claim="these-topics").context["plot"].rows}
    assert these["true value"][3] == these["true value"][2]


def test_the_pair_prints_the_other_claim_beside_the_one_that_is_made_and_latex_to_copy(campaign, page):
    like, these = (
        page("pair", campaign, **PAIR, claim=claim) for claim in ("topics-like-these", "these-topics")
    )
    assert "For these 3 topics alone:" in like.context["verdict"]
    assert "For topics like these:" in these.context["verdict"]
    assert like.context["verdict"] in like.context["quoted"]
    assert r"95 \% confidence interval" in like.context["quoted_latex"]
    assert 'id="quoted-latex"' in text_of(like)
    assert like.context["compared"].other == these.context["compared"].test


def test_a_family_changes_what_is_significant_and_what_is_none_is_said(campaign, page):
    whole = page("pairs", campaign, measure="DCG@10")
    one = page("pairs", campaign, measure="DCG@10", family="runs:run0,run1")
    assert (whole.context["n_family"], one.context["n_family"]) == (3, 1)
    adjusted = {
        frozenset((row.better.run_id, row.worse.run_id)): row.p_adjusted for row in one.context["pairs"]
    }
    assert [pair for pair, p in adjusted.items() if p is not None] == [frozenset(("run0", "run1"))]
    wrong = page("pairs", campaign, measure="DCG@10", family="runs:run0,nobody")
    assert "This choice does not exist." in text_of(wrong)
    assert "names the run nobody, which is not there" in text_of(wrong)
    assert wrong.context["family"].name == "question"
    assert "This choice does not exist." not in text_of(whole)


def test_the_ranking_for_topics_like_these_is_never_surer(campaign, page):
    like, these = (
        page("ranking", campaign, measure="DCG@10", claim=claim).context["ranking"]
        for claim in ("topics-like-these", "these-topics")
    )
    assert (like.refusal, these.refusal) == ("", "")
    assert [run.run_id for run in like.runs] == [run.run_id for run in these.runs]
    assert like.n_apart <= these.n_apart
    wide, narrow = (
        {run.run_id: run.rank_high - run.rank_low for run in order.runs} for order in (like, these)
    )
    assert all(wide[run] >= narrow[run] for run in narrow)
    assert (like.claim.key, these.claim.key) == ("topics-like-these", "these-topics")


def test_the_ranking_says_which_test_its_ranks_come_from(campaign, page):
    like, these = (
        page("ranking", campaign, measure="DCG@10", claim=claim)
        for claim in ("topics-like-these", "these-topics")
    )
    assert like.context["ranking"].n_apart_max_t == like.context["ranking"].n_apart
    assert "by Holm's test. Report" in text_of(like)
    assert "max-t" not in text_of(like)
    assert "by the step-down max-t test" in text_of(these)
    assert "the errors of the runs are correlated. Report" in text_of(these)


def hidden_inputs(text, form):
    """Return the hidden inputs of the form that starts with these words."""
    inside = text.split(form, 1)[1].split("</form>", 1)[0]
    return dict(re.findall(r'<input type="hidden" name="([a-z]+)" value="([^"]*)">', inside))


def test_files_and_forms_of_a_page_keep_its_claim_and_family(campaign, page, client):
    choice = {"claim": "these-topics", "family": "runs:run0,run1"}
    for name in ("pairs", "ranking"):
        shown = html.unescape(text_of(page(name, campaign, measure="DCG@10", **choice)))
        links = re.findall(r'href="(/api/v1/[^"]*/tables/[^"]*)"', shown)
        assert links, name
        for link in links:
            assert {one: parse_qs(urlsplit(link).query)[one] for one in choice} == {
                one: [value] for one, value in choice.items()
            }
        assert hidden_inputs(shown, 'aria-label="Table ')["family"] == choice["family"]
        table = client.get(next(link for link in links if "format=csv" in link)).content.decode()
        assert "for these topics" in table
        plain = html.unescape(text_of(page(name, campaign, measure="DCG@10")))
        link = re.findall(r'href="(/api/v1/[^"]*/tables/[^"]*format=csv)"', plain)[0]
        assert "for topics like these" in client.get(link).content.decode()
    shown = text_of(page("pairs", campaign, measure="DCG@10", **choice))
    assert hidden_inputs(shown, "Choose the runs yourself")["claim"] == "these-topics"
    # what does not exist is not asked for again
    wrong = text_of(page("pairs", campaign, measure="DCG@10", claim="all"))
    assert "claim=all&amp;format" not in wrong
    assert "claim" not in hidden_inputs(wrong, "Choose the runs yourself")


def test_the_adjustment_is_named_and_the_other_one_a_click_away(campaign, page):
    usual = text_of(page("pairs", campaign, measure="DCG@10"))
    assert "The adjusted p (Holm)" in usual
    assert "adjustment=max-t" in usual
    stepped = page("pairs", campaign, measure="DCG@10", adjustment="max-t")
    assert "The adjusted p (step-down max-t with random signs)" in text_of(stepped)
    assert "Adjust by Holm" in text_of(stepped)
    assert "adjustment=max-t&" not in text_of(page("pairs", campaign, measure="DCG@10", claim="these-topics"))


def test_a_manager_declares_a_family_and_a_researcher_does_not(campaign, page):
    address = reverse("console:family", args=[campaign.pk])
    mia, rhea = (Client(), Client())
    mia.force_login(User.objects.create(username="mia", role="manager"))
    rhea.force_login(User.objects.create(username="rhea", role="researcher"))
    assert rhea.post(address, {"family": "all"}).status_code == 404
    assert not ComparisonFamily.objects.exists()
    said = mia.post(address, {"family": "runs:run0,run2"}, follow=True)
    assert "The family runs:run0,run2 was declared." in text_of(said)
    assert "Declare a family of comparisons" in text_of(said)
    assert page("pairs", campaign).context["family"].name == "runs:run0,run2"
    assert "Declare a family of comparisons" not in text_of(page("pairs", campaign))
    wrong = mia.post(address, {"family": "best"}, follow=True)
    assert "Family must be question, all" in text_of(wrong)
    assert ComparisonFamily.objects.count() == 1
