"""The manager's page of topics: teams, shares, warnings."""

import pytest
from django.urls import reverse
from manager_requests import NUL, page, post, said, statements, words
from small_campaign import give, make_assessor, slots

from console.forms.campaigns import TopicTeamsForm
from console.manager.campaigns import TOPICS_PER_PAGE
from judging.models import (
    Assessor,
    Campaign,
    CampaignTopic,
    Collection,
    Topic,
)
from judging.services.campaigns import create_campaign, set_assessor_rules, set_topic_teams
from touchstone.models import Event

pytestmark = pytest.mark.django_db


def topic_pk(campaign: Campaign, topic_id: str) -> int:
    return campaign.collection.topics.get(topic_id=topic_id).pk


def team_fields(campaign: Campaign, **teams: str) -> dict[str, str]:
    return {TopicTeamsForm.name_of(topic_pk(campaign, topic_id)): team for topic_id, team in teams.items()}


def test_topics_are_kept_for_teams_and_opened_again(alice, campaign, bob):
    set_assessor_rules(assessor=bob, quota=None, team="blue", first_topics=[], actor=None)
    rates = dict(campaign.topic_rules.values_list("topic__topic_id", "check_rate"))
    post(alice, "console:manage-topics", campaign.pk, **team_fields(campaign, t0="blue", t1=" ", t2="blue"))
    kept = dict(campaign.topic_rules.exclude(team="").values_list("topic__topic_id", "team"))
    assert kept == {"t0": "blue", "t2": "blue"}
    text = page(alice, "console:manage-topics", campaign.pk)
    assert '<option value="blue">' in text
    assert "“blue” has 2 reserved topics and no active gold member: audits of them would wait." in text
    answer = post(alice, "console:manage-topics", campaign.pk, **team_fields(campaign, t0="", t2="blue"))
    assert said(answer)[-1] == "1 topic was changed."
    assert list(campaign.topic_rules.exclude(team="").values_list("topic__topic_id", flat=True)) == ["t2"]
    after = dict(campaign.topic_rules.values_list("topic__topic_id", "check_rate"))
    assert {topic: after[topic] for topic in rates} == rates  # the share of checks is another matter


def test_saving_without_a_change_says_so_and_records_nothing(alice, campaign):
    answer = post(alice, "console:manage-topics", campaign.pk, **team_fields(campaign, t0="", t1="", t2=""))
    assert said(answer) == ["No topics were changed."]
    assert not Event.objects.filter(verb="set teams").exists()


def test_topics_show_what_is_done_and_the_share_of_checks(alice, campaign, bob):
    CampaignTopic.objects.update_or_create(
        campaign=campaign, topic_id=topic_pk(campaign, "t1"), defaults={"check_rate": 0.25}
    )
    give(bob, slots(campaign, item__topic__topic_id="t1")[0], 1)
    text = page(alice, "console:manage-topics", campaign.pk)
    row = text[text.index("t1</a> <label") : text.index("t2</a> <label")]
    assert "1 of 28" in row  # 14 documents, two judgments each
    assert "25 %" in row


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        ({}, ""),
        ({"status": "suspended"}, "no active bronze or silver member: nobody can judge them"),
        ({"team": "red"}, "no active bronze or silver member: nobody can judge them"),
    ],
)
def test_topics_that_nobody_can_judge_are_warned_of(alice, campaign, bob, change, warning):
    """Greta of the gold tier is of the team, but judges audits alone."""
    Assessor.objects.filter(pk=make_assessor(campaign, "greta", "gold").pk).update(team="blue")
    Assessor.objects.filter(pk=bob.pk).update(**{"team": "blue"} | change)
    topics = {topic_pk(campaign, name): "blue" for name in ("t0", "t1")}
    set_topic_teams(campaign=campaign, teams=topics, actor=None)
    text = page(alice, "console:manage-topics", campaign.pk)
    assert ("wait for members of their team" in text) == bool(warning)
    assert f"“blue” has 2 reserved topics and {warning}." in text or not warning


def test_a_topic_of_a_team_without_anybody_is_warned_of_once(alice, campaign):
    set_topic_teams(campaign=campaign, teams={topic_pk(campaign, "t0"): "blue"}, actor=None)
    text = page(alice, "console:manage-topics", campaign.pk)
    assert "“blue” has 1 reserved topic and no active member: nobody can judge it." in text


@pytest.mark.parametrize("team", ["t" * 61, NUL])
def test_a_wrong_team_is_explained_beside_the_topic_and_no_topic_is_saved(alice, campaign, team):
    fields = team_fields(campaign, t0="blue", t1=team)
    answer = post(alice, "console:manage-topics", campaign.pk, status=400, **fields)
    assert "Not saved" in words(answer)
    assert words(answer).count('aria-invalid="true"') == 1
    assert not campaign.topic_rules.exclude(team="").exists()


def test_a_topic_of_another_collection_is_not_touched(alice, campaign):
    other = Topic.objects.create(
        collection=Collection.objects.create(name="elsewhere"), topic_id="far", title="Far away"
    )
    fields = {TopicTeamsForm.name_of(other.pk): "blue", "team-x": "blue", "team--1": "blue"}
    post(alice, "console:manage-topics", campaign.pk, **fields)
    assert not CampaignTopic.objects.filter(topic=other).exists()
    assert not CampaignTopic.objects.exclude(team="").exists()


def test_many_topics_have_pages_and_a_save_leaves_the_other_pages_alone(alice, campaign):
    add_topics(campaign, TOPICS_PER_PAGE)
    set_topic_teams(
        campaign=campaign, teams={topic_pk(campaign, "t2"): "red"}, actor=None
    )  # on the last page
    text = page(alice, "console:manage-topics", campaign.pk)
    assert f"Topics 1 to {TOPICS_PER_PAGE} of {TOPICS_PER_PAGE + 3}" in text
    assert text.count('list="teams"') == TOPICS_PER_PAGE
    answer = post(
        alice, "console:manage-topics", campaign.pk, query="?page=1", **team_fields(campaign, m000="blue")
    )
    assert answer.url.endswith("?page=1")
    kept = dict(campaign.topic_rules.exclude(team="").values_list("topic__topic_id", "team"))
    assert kept == {"m000": "blue", "t2": "red"}
    for odd in ("2", "999", "-1", "x", "9" * 5000):
        assert page(alice, "console:manage-topics", campaign.pk, page=odd)


def add_topics(campaign: Campaign, n: int) -> None:
    topics = Topic.objects.bulk_create(
        Topic(collection=campaign.collection, topic_id=f"m{number:03}", title=f"More {number}")
        for number in range(n)
    )
    document = campaign.collection.documents.first()
    for topic in topics:
        item = campaign.items.create(topic=topic, document=document)
        item.slots.create(purpose="judge", number=1, campaign=campaign, topic=topic, position=1)


def test_a_page_of_topics_takes_as_many_statements_for_three_as_for_fifty(alice, campaign):
    three = statements(alice, "console:manage-topics", campaign.pk)
    add_topics(campaign, 47)
    assert statements(alice, "console:manage-topics", campaign.pk) == three


def test_before_the_draw_the_page_of_topics_leads_to_the_design(alice, campaign):
    undrawn = create_campaign(
        collection=campaign.collection, name="undrawn", user=None, grades=[(0, "No", 0), (1, "Yes", 1)]
    )
    text = page(alice, "console:manage-topics", undrawn.pk)
    assert "No topics yet" in text
    assert reverse("console:design", args=[undrawn.pk]) in text
