"""Whether a campaign can be opened: one answer for the set-up, the overview and the API."""

import pytest
from django.urls import reverse
from small_campaign import DEPTH, make_assessor, make_campaign, make_undrawn

from judging.services.campaigns import CampaignNotReady, close_campaign, open_campaign
from judging.services.deletion import delete_campaign
from judging.services.opening import opening
from sampling.questions import Design
from sampling.services.drawing import draw
from touchstone.models import User

pytestmark = pytest.mark.django_db
NOBODY = "Nobody can judge yet: add or invite an assessor."
NO_GOLD = "There is no gold assessor: without audits, no number can be corrected."


@pytest.fixture
def boss(db):
    return User.objects.create(username="boss", role="manager", is_superuser=True)


def test_without_items_it_is_refused_and_without_people_there_is_advice(tmp_path):
    campaign = make_undrawn(tmp_path)
    assert opening(campaign).refusals == ("draw its items first",)
    with pytest.raises(CampaignNotReady, match="draw its items first"):
        open_campaign(campaign=campaign, actor=None)
    draw(campaign=campaign, design=Design("pool", (), measure="DCG@10", depth=DEPTH, budget=20), seed=1)
    assert (opening(campaign).refusals, opening(campaign).advice) == ((), (NOBODY, NO_GOLD))
    make_assessor(campaign, "ann")
    few = "One assessor cannot give 2 judgments of each item: nobody judges an item twice."
    assert opening(campaign).advice == (few, NO_GOLD)
    make_assessor(campaign, "ben")
    assert opening(campaign).advice == (NO_GOLD,)
    make_assessor(campaign, "greta", tier="gold")
    assert opening(campaign).advice == ()
    campaign.assessors.filter(user__username="ben").update(status="suspended")
    assert opening(campaign).advice == (few,)


def test_gold_assessors_alone_judge_the_items_themselves(tmp_path):
    campaign = make_campaign(tmp_path)
    for name in ("greta", "gina"):
        make_assessor(campaign, name, tier="gold")
    assert opening(campaign).advice == ()


def test_what_was_deleted_is_refused(tmp_path, boss):
    campaign = make_campaign(tmp_path)
    delete_campaign(campaign=campaign, confirmation=campaign.name, actor=boss)
    assert opening(campaign).refusals == ("the campaign is deleted; restore it first",)


def test_overview_last_step_and_api_say_the_same(tmp_path, boss, client):
    campaign = make_campaign(tmp_path)
    close_campaign(campaign=campaign, actor=None)
    client.force_login(boss)
    setup = client.get(reverse("console:setup", args=[campaign.pk])).content.decode()
    overview = client.get(reverse("console:campaign", args=[campaign.pk])).content.decode()
    assert NOBODY in setup
    assert "Open for judging</button>" in setup
    assert "Open for judging</button>" in overview
    address = reverse("console:api-campaign-state", args=[campaign.pk])
    assert client.get(address).json() == {"state": "closed", "refusals": [], "advice": [NOBODY, NO_GOLD]}
    empty = make_undrawn(tmp_path)
    address = reverse("console:api-campaign-state", args=[empty.pk])
    assert client.get(address).json()["refusals"] == ["draw its items first"]
    answer = client.post(address, {"state": "open"}, content_type="application/json")
    assert (answer.status_code, answer.json()["detail"]) == (409, "draw its items first")
