"""The design page after the first draw, and for pools so large that a job previews them."""

import json
import re

import pytest
from design_campaign import PAIR, add_run, finish
from django.utils import timezone
from small_campaign import N_FRAME, judge_all, make_assessor
from small_campaign import make_campaign as make_drawn

import analytics.tasks  # noqa: F401 (registers the kinds of job)
import sampling.tasks  # noqa: F401
from analytics.services import forecast as forecasts
from judging.services import campaigns
from sampling.questions import Design
from sampling.services import layout
from sampling.services.drawing import draw
from touchstone import jobs
from touchstone.models import Job

# -- top-ups ------------------------------------------------------------------------------------------------


@pytest.fixture
def drawn(db, tmp_path):
    return make_drawn(tmp_path, budget=18, kind="pair")


def test_a_top_up_starts_from_the_earlier_design_and_draws_only_more(page, post, drawn):
    before = set(drawn.items.values_list("pk", flat=True))
    text = page(drawn, name="console:campaign")
    assert "Top up</a>" in text
    text = page(drawn)
    assert "nothing is judged twice" in text
    assert "Items in all" in text
    assert '<option value="run2" selected>' in text
    assert 'name="budget" value="27"' in text  # half as much again
    assert "Draw more items" not in text
    wanted = PAIR | {"budget": 30}
    text = page(drawn, **wanted)
    assert "items are new</strong>" in text
    assert "Draw more items" in text
    post(drawn, **wanted)
    assert finish("draw").state == "done"
    first, second = drawn.draws.order_by("batch")
    assert first.seed == second.seed
    assert before <= set(drawn.items.values_list("pk", flat=True))
    assert drawn.items.count() == first.n_drawn + second.n_drawn
    text = page(drawn, name="console:campaign")
    assert f"{first.n_drawn + second.n_drawn} of {N_FRAME} pooled pairs, in 2 batches" in text
    assert f"for {second.parameters['budget']} in all" in text
    assert text.count("SHA-256") == 2
    assert re.search(r'by <a href="[^"]+">mia</a>', text)


def test_a_top_up_of_what_is_there_already_is_refused_beside_the_budget(page, drawn):
    text = page(drawn, status=400, **PAIR | {"budget": 15})
    assert "items are already drawn: enter a larger total" in text
    assert "Draw more items" not in text


def test_a_top_up_keeps_the_selection_and_does_not_shrink_the_pool(page, post, drawn):
    post(drawn, **PAIR | {"budget": 30, "selection": "pareto"})  # not asked: the first batch has fixed it
    assert Job.objects.get(kind="draw").payload["design"]["selection"] == "poisson"
    Job.objects.all().delete()
    text = page(drawn, status=400, **PAIR | {"budget": 30, "measure": "P@5", "depth": 9})
    assert "must not be smaller than before: the earlier batch pooled 10 ranks" in text


def test_a_top_up_may_ask_another_question(page, post, drawn):
    post(drawn, **PAIR | {"question": "ranking", "measure": "P@5", "budget": 30})
    assert finish("draw").state == "done"
    text = page(drawn, name="console:campaign")
    assert "Is run A better than run B?" in text
    assert "How do several runs rank?" in text


def test_a_draw_with_replacement_is_topped_up_with_replacement(page, post, campaign):
    wanted = PAIR | {"method": "paper", "selection": "replacement", "budget": 12}
    post(campaign, **wanted)
    finish("draw")
    text = page(campaign, **PAIR | {"method": "paper", "budget": 20})  # the selection is fixed, and not sent
    assert "This design (The paper&#x27;s Q*)" in text
    assert "Draw more items" in text
    post(campaign, **PAIR | {"method": "paper", "budget": 20})
    assert finish("draw").state == "done"
    assert [made.selection for made in campaign.draws.all()] == ["replacement", "replacement"]
    assert campaign.items.count() == sum(made.n_drawn for made in campaign.draws.all())
    refused = page(campaign, status=400, **PAIR | {"budget": 25})
    assert "this campaign is drawn with replacement: choose the paper&#x27;s Q* or naive" in refused


def test_learning_from_judgments_waits_for_them_and_is_named_afterwards(page, post, drawn):
    wanted = PAIR | {"budget": 30, "prior": "judgments"}
    assert "Nobody has judged yet." in page(drawn)
    assert "Nobody has judged yet. Choose the prior from the ranks" in page(drawn, status=400, **wanted)
    ann, ben = make_assessor(drawn, "ann"), make_assessor(drawn, "ben")
    judge_all(drawn, [ann], number=1)
    assert f"{drawn.items.count()} items wait for judgments" in page(drawn, status=400, **wanted)
    judge_all(drawn, [ann, ben])
    naive = page(drawn, status=400, **wanted | {"method": "naive"})
    assert "only the default method learns from judgments" in naive
    text = page(drawn, **wanted)
    assert "leaves a bias of second order" in text
    assert "every batch stays exactly unbiased" in page(drawn, **wanted | {"learning": "exact"})
    post(drawn, **wanted)
    assert finish("draw").state == "done"
    assert drawn.draws.get(batch=2).learned_from == 1
    assert drawn.draws.get(batch=2).parameters["learning"] == "refit"
    text = page(drawn, name="console:campaign")
    assert (
        "Learned from the judgments of the first 1 batch. Predictions learn from this batch as well" in text
    )


def test_a_closed_campaign_says_that_new_items_wait(page, drawn):
    campaigns.close_campaign(campaign=drawn, actor=None)
    text = page(drawn, **PAIR | {"budget": 30})
    assert "The campaign is closed." in text
    assert "Draw more items" in text


def test_an_exact_count_cannot_be_topped_up_and_says_why(page, post, campaign):
    design = Design("pair", ("run0", "run2"), "DCG@10", 10, 20, selection="pareto")
    draw(campaign=campaign, design=design, seed=1)
    text = page(campaign)
    assert "This campaign cannot be topped up" in text
    assert "An exact count in every topic cannot grow" in text
    post(campaign, **PAIR | {"budget": 30})
    assert not Job.objects.exists()
    text = page(campaign, name="console:campaign")
    assert "cannot be topped up" in text
    assert "Top up</a>" not in text


def test_while_a_draw_runs_there_is_no_second(page, post, drawn):
    post(drawn, **PAIR | {"budget": 30})
    assert "Items are being drawn" in page(drawn)
    post(drawn, **PAIR | {"budget": 40})
    assert Job.objects.filter(kind="draw").count() == 1
    text = page(drawn, name="console:campaign")
    assert "More items are being drawn" in text
    assert "Top up</a>" not in text


def test_a_failed_draw_says_why_on_the_campaign(page, post, campaign):
    assert "Nothing is drawn yet" in page(campaign, name="console:campaign")
    post(campaign, **PAIR)
    assert "The items are being drawn" in page(campaign, name="console:campaign")
    Job.objects.update(state="failed", error="the disk is full", finished_at=timezone.now())
    text = page(campaign, name="console:campaign")
    assert "The last draw failed" in text
    assert "the disk is full" in text


def test_a_cancelled_layout_is_continued(page, post, campaign, monkeypatch):
    monkeypatch.setattr(layout, "PART_ITEMS", 1)  # a job for every topic
    post(campaign, **PAIR)
    finish("draw")
    first, second, third = Job.objects.filter(kind="layout").order_by("created_at")
    text = page(campaign, name="console:campaign")
    assert "0 of 3 topics laid out" in text
    assert "Watch the job" in text
    jobs.run(first.pk)
    for job in (second, third):
        jobs.cancel(job)
    text = page(campaign, name="console:campaign")
    assert "1 of 3 topics laid out" in text
    assert "Continue</button>" in text
    assert "Top up</a>" not in text
    assert "Batch 1 is being laid out" in page(campaign)
    answer = post(campaign, name="console:layout")
    assert "Making drawn items ready for judging" in answer.content.decode()
    finish("layout")
    text = page(campaign, name="console:campaign")
    assert "topics laid out" not in text
    assert "Top up</a>" in text
    assert campaign.items.count() == campaign.draws.get().n_drawn
    answer = post(campaign, name="console:layout")
    assert "All drawn items are laid out" in answer.content.decode()


# -- large pools --------------------------------------------------------------------------------------------


@pytest.fixture
def large(monkeypatch):
    monkeypatch.setattr(forecasts, "LARGEST_AT_ONCE", 10)


def test_rows_are_counted_down_to_the_depth(campaign):
    """Three runs of ten documents for each of three topics."""
    assert [forecasts.rank_rows(campaign, depth) for depth in (4, 10, 1000)] == [36, 90, 90]


def test_a_large_pool_is_previewed_by_a_job_whose_result_is_shown(page, post, campaign, large):
    assert "“Preview” starts a job" in page(campaign, **PAIR)
    answer = post(campaign, **PAIR, preview="1")
    text = answer.content.decode()
    assert "Forecasting what a budget buys" in text
    assert "Cancel" in text
    assert "Being computed" in page(campaign, **PAIR)
    assert post(campaign, **PAIR, preview="1").status_code == 200  # asked again: the same job
    assert Job.objects.count() == 1
    job = finish("forecast")
    assert job.state == "done"
    json.dumps(job.result, allow_nan=False)
    by_job = page(campaign, **PAIR)
    assert "Draw these items" in by_job
    assert "Computed" in by_job
    assert post(campaign, **PAIR, preview="1").redirect_chain[0][0].endswith("#preview")
    assert Job.objects.count() == 1
    assert "“Preview” starts a job" in page(campaign, **PAIR | {"budget": 21})


def test_a_forecast_by_a_job_says_the_same_as_one_at_once(page, post, campaign, monkeypatch):
    at_once = page(campaign, **PAIR)
    monkeypatch.setattr(forecasts, "LARGEST_AT_ONCE", 10)
    post(campaign, **PAIR, preview="1")
    finish("forecast")
    by_job = page(campaign, **PAIR)
    start, end = '<section aria-labelledby="preview">', '<p class="soft">Computed'
    assert (
        by_job.split(start)[1].split(end)[0].strip() == at_once.split(start)[1].split("</section>")[0].strip()
    )


def test_a_forecast_is_not_shown_for_runs_it_did_not_see(page, post, campaign, large):
    post(campaign, **PAIR, preview="1")
    finish("forecast")
    add_run(campaign.collection, "later", ["t0d00"])
    assert "“Preview” starts a job" in page(campaign, **PAIR)


def test_a_job_that_refuses_says_why_and_may_be_tried_again(page, post, campaign, large):
    for name in ("same1", "same2"):
        add_run(campaign.collection, name, ["t0d00", "t0d01"])
    alike = PAIR | {"run_a": "same1", "run_b": "same2"}
    post(campaign, **alike, preview="1")
    assert finish("forecast").state == "failed"
    text = page(campaign, **alike)
    assert "rank alike" in text
    assert "Choose other runs" in text
    post(campaign, **alike, preview="1")
    assert Job.objects.filter(kind="forecast", state="queued").count() == 1


def test_a_cancelled_forecast_leaves_nothing(page, post, campaign, large):
    post(campaign, **PAIR, preview="1")
    jobs.cancel(Job.objects.get())
    assert "“Preview” starts a job" in page(campaign, **PAIR)
