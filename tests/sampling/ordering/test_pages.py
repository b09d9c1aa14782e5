"""What pages and API say where judging goes by what it tells."""

from pathlib import Path

import pytest
from api_tools import api_client
from django.test import Client
from manager_requests import page, post, words
from ordered_campaign import judge_next
from small_campaign import DEPTH, N_FRAME, make_assessor, make_collection, make_undrawn
from small_campaign import make_campaign as make_random

import sampling.tasks
from judging.models import Campaign
from sampling.services.ordering import order_judging
from touchstone import jobs
from touchstone.models import Job, User

pytestmark = pytest.mark.django_db

FIRST = "Model probabilities, not confidence"


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    """Pages name static files by their hash, which collectstatic alone knows; not so here."""
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}
    settings.MIDDLEWARE = [part for part in settings.MIDDLEWARE if "whitenoise" not in part]


@pytest.fixture
def alice(db):
    client = Client()
    client.force_login(User.objects.create(username="alice", role="manager"))
    return client


def judged(campaign, n):
    ann = make_assessor(campaign, "ann")
    for _ in range(n):
        judge_next(ann)
    return order_judging(campaign=campaign)


def judged_to_the_stop(campaign):
    """Return the look that stops, and how many looks that took."""
    ann, n_looks = make_assessor(campaign, "ann"), 0
    for n in range(1, N_FRAME):
        judge_next(ann)
        if n >= 30:
            n_looks += 1
            look = order_judging(campaign=campaign)
            if look.may_stop:
                return look, n_looks
    raise AssertionError("it never stopped")


def both_pages(client, campaign):
    return [page(client, name, campaign.pk) for name in ("console:campaign", "console:campaign-results")]


# -- the look -------------------------------------------------------------------------------------------------


def test_before_the_first_order_the_pages_say_so(alice, campaign):
    for text in both_pages(alice, campaign):
        assert "The order of judging is not written yet." in text


def test_an_order_that_failed_says_why(alice, campaign):
    Path(campaign.draws.get().frame.path).unlink()
    assert sampling.tasks.order_slots  # as a worker has it
    jobs.run(Job.objects.get(kind="order").pk)
    for text in both_pages(alice, campaign):
        assert "<strong>The order could not be written:</strong> the frame file of campaign" in text


def test_before_the_first_look_there_are_scores_and_no_probabilities(alice, campaign):
    judged(campaign, 3)
    for text in both_pages(alice, campaign):
        assert f"<strong>{FIRST}.</strong>" in text
        assert "3 of 42 documents are judged" in text
        assert "No look before 30 judgments" in text
        assert "may stop" not in text


def test_after_the_stop_the_pages_say_so_and_the_manager_closes_as_ever(alice, campaign):
    look, n_looks = judged_to_the_stop(campaign)
    order_judging(campaign=campaign)
    best, _, chance = look.pairs[0]
    for text in both_pages(alice, campaign):
        assert f"<strong>{FIRST}, looked at {n_looks + 1} times.</strong>" in text
        assert "By the rule, judging may stop:" in text
        assert f'<div class="words">{best}</div></th>' in text
        assert f"{chance:.3f}" in text
    post(alice, "console:manage-campaign-state", campaign.pk, state="closed")
    assert Campaign.objects.get(pk=campaign.pk).state == "closed"


def test_a_complete_campaign_needs_no_model(alice, campaign):
    judged(campaign, N_FRAME)
    for text in both_pages(alice, campaign):
        assert "The whole pool is judged." in text


def test_a_campaign_of_random_order_has_no_model(alice, tmp_path):
    campaign = make_random(tmp_path)
    for text in both_pages(alice, campaign):
        assert FIRST not in text
        assert "What the model says" not in text
    assert api_client("rita", "researcher").rows(f"/campaigns/{campaign.pk}/looks") == []


def test_the_api_lists_the_looks_the_newest_first(campaign):
    first = order_judging(campaign=campaign)
    last, n_looks = judged_to_the_stop(campaign)
    rows = api_client("rita", "researcher").rows(f"/campaigns/{campaign.pk}/looks")
    assert len(rows) == n_looks + 1
    assert (rows[0]["id"], rows[-1]["id"]) == (last.pk, first.pk)
    assert rows[-1] == rows[-1] | {"n_judged": 0, "n_pooled": N_FRAME, "may_stop": False}
    assert [row["better"] for row in rows[-1]["runs"]] == [None] * 3
    assert [row["run"] for row in rows[0]["runs"]] == [last.pairs[0][0], last.pairs[0][1], last.pairs[1][1]]
    assert [row["better"] for row in rows[0]["runs"]] == [last.pairs[0][2], last.pairs[1][2], None]
    assert [row["expected"] for row in rows[0]["runs"]] == sorted(last.scores.values(), reverse=True)
    stopped = api_client("rosa", "researcher").rows(f"/campaigns/{campaign.pk}/looks", may_stop="true")
    assert [row["id"] for row in stopped] == [last.pk]


# -- the choice -----------------------------------------------------------------------------------------------


def fields(collection, **changes):
    return {
        "collection": collection.pk, "name": "In order", "judgments_per_item": 1, "lease_seconds": 600,
        "gold_check_rate": 0, "gold_check_exposures": 1, "decoys_per_check": 0, "break_minutes": 30,
        "grades": "0 | No | 0\n1 | Yes | 1", "relevant_grade": 1, "judging_order": "informative",
    } | changes  # fmt: skip


def test_it_is_chosen_on_the_page_of_a_new_campaign(alice, tmp_path):
    collection = make_collection(tmp_path)
    assert "Next in each topic is the document that tells the runs apart best." in page(
        alice, "console:manage-campaign-new"
    )
    post(alice, "console:manage-campaign-new", **fields(collection))
    assert Campaign.objects.get().judging_order == "informative"
    wrong = post(
        alice, "console:manage-campaign-new", status=400, **fields(collection, judgments_per_item=2, name="B")
    )
    assert "in the order “By what it tells” an item takes 1 judgment, got 2" in words(wrong)
    assert Campaign.objects.count() == 1


def test_the_design_page_says_that_the_whole_pool_is_drawn(alice, undrawn, tmp_path):
    (tmp_path / "other").mkdir()
    other = make_undrawn(tmp_path / "other")
    hint = "This campaign judges by what it tells:</strong> draw the whole pool."
    assert hint in page(alice, "console:design", undrawn.pk)
    assert hint not in page(alice, "console:design", other.pk)


def test_what_is_not_sent_is_random(alice, tmp_path):
    sent = fields(make_collection(tmp_path))
    del sent["judging_order"]
    post(alice, "console:manage-campaign-new", **sent)
    assert Campaign.objects.get().judging_order == "random"


def test_the_settings_let_it_be_chosen_until_the_draw_and_then_say_that_it_is_fixed(
    alice, tmp_path, campaign
):
    text = page(alice, "console:manage-campaign-edit", campaign.pk)
    assert 'name="judging_order"' not in text
    assert "<dd>By what it tells<small>" in text
    smuggled = {"name": campaign.name, "lease_seconds": 900, "break_minutes": 45, "judging_order": "random"}
    post(alice, "console:manage-campaign-edit", campaign.pk, **smuggled)
    assert Campaign.objects.get(pk=campaign.pk).judging_order == "informative"


def test_before_the_draw_the_settings_change_it(alice, undrawn):
    assert 'name="judging_order"' in page(alice, "console:manage-campaign-edit", undrawn.pk)
    sent = {"name": undrawn.name, "lease_seconds": 900, "break_minutes": 45}
    post(alice, "console:manage-campaign-edit", undrawn.pk, **sent)
    assert Campaign.objects.get(pk=undrawn.pk).judging_order == "informative"  # nothing was said of it
    post(alice, "console:manage-campaign-edit", undrawn.pk, **sent, judging_order="random")
    assert Campaign.objects.get(pk=undrawn.pk).judging_order == "random"


def test_two_judgments_an_item_are_refused_by_the_settings(alice, tmp_path):
    campaign = make_undrawn(tmp_path)
    sent = {"name": campaign.name, "lease_seconds": 900, "break_minutes": 45, "judging_order": "informative"}
    answer = post(alice, "console:manage-campaign-edit", campaign.pk, status=400, **sent)
    assert "an item takes 1 judgment, got 2" in words(answer)


def test_the_api_chooses_it_and_refuses_it_by_name(tmp_path):
    alice, collection = api_client("alice"), make_collection(tmp_path)
    sent = {"collection": str(collection.pk), "name": "In order", "judging_order": "informative"}
    made = alice.send("POST", "/campaigns", 201, sent)
    assert made["judging_order"] == "informative"
    two = alice.send("POST", "/campaigns", 400, {**sent, "name": "B", "judgments_per_item": 2})
    assert "an item takes 1 judgment, got 2" in str(two)
    alice.send("POST", "/campaigns", 400, {**sent, "name": "C", "judging_order": "reverse"})
    there = f"/campaigns/{made['id']}"
    assert alice.patch(there, judging_order="random")["judging_order"] == "random"


def test_the_api_refuses_another_order_of_what_is_drawn(campaign):
    refused = api_client("alice").patch(f"/campaigns/{campaign.pk}", 409, judging_order="random")
    assert refused["title"] == "This order of judging cannot be chosen"
    assert "drawn already" in refused["detail"]


def test_a_draw_of_a_part_is_refused_over_the_api_by_its_job(undrawn):
    assert sampling.tasks.draw_items  # as a worker has it
    design = {"question": "pool", "measure": "DCG@10", "depth": DEPTH, "budget": 20}
    api_client("alice").post(f"/campaigns/{undrawn.pk}/draws", 202, **design)
    job = Job.objects.get(kind="draw")
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == "failed"
    assert "the whole pool is drawn" in job.error
