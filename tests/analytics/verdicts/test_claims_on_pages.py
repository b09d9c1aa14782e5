"""The pages of differences and ranks: one claim at a time, the other beside it, in a family that managers declare."""

import pytest
from django.test import Client
from django.urls import reverse
from small_campaign import make_campaign
from verdict_campaigns import finished

from analytics.models import ComparisonFamily
from analytics.services.recomputation import recompute
from touchstone.models import User

pytestmark = pytest.mark.django_db
PAIR = {"a": "run0", "b": "run1", "measure": "DCG@10"}


@pytest.fixture
def campaign(tmp_path):
    made = finished(make_campaign(tmp_path), wanted=30, grade=lambda slot, place: 3 * place)
    recompute(campaign=made)
    return made


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
