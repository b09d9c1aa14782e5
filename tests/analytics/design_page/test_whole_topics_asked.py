"""A sample of whole topics, asked for by page, API client and command: the preview, the draw, and what is refused."""

import json

import pytest
from design_campaign import finish
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from quick_flush import unguarded
from topic_campaign import DEPTH, N_TOPICS, design, judge, make_drawn, make_undrawn, returned

import analytics.tasks  # noqa: F401 (registers the kinds of job)
import sampling.tasks  # noqa: F401
from analytics.services.recomputation import recompute
from judging.services.campaigns import open_campaign
from sampling.questions import Design
from sampling.services.drawing import draw
from sampling.services.forecasting import preview
from touchstone.authentication import make_token

ASKED = {
    "question": "ranking",
    "measure": "nDCG@4",
    "depth": DEPTH,
    "budget": 120,
    "topic_selection": "sample",
}


@pytest.fixture
def topics(db, tmp_path):
    return make_undrawn(tmp_path)


def test_the_preview_is_the_error_of_topics_and_narrower_than_that_of_equal_chances(topics):
    shown = preview(campaign=topics, design=design())
    assert list(shown.widths) == ["even", "default"]
    place = shown.budgets.index(120)
    assert 0 < shown.widths["default"][place] < shown.widths["even"][place]
    assert shown.widths["default"] == sorted(shown.widths["default"], reverse=True)
    assert shown.widths["default"][-1] == 0
    assert 15 < shown.n_topics < 25
    assert shown.same_width["even"] > 120 >= shown.same_width["default"] - 1


def test_what_is_previewed_on_the_page_is_drawn_and_shown(page, post, topics, client):
    text = page(topics, **ASKED)
    shown = preview(campaign=topics, design=design())
    assert (
        f"About <strong>{round(shown.n_topics)} topics</strong> will be drawn, and judged completely" in text
    )
    assert "Topics equally likely" in text
    assert "Audits of whole topics correct the numbers." in text
    post(topics, **ASKED)
    finish("draw")
    made = topics.draws.get()
    assert made.has_whole_topics
    assert made.parameters["measure"] == "nDCG@4"
    assert "A sample of whole topics" in page(topics)
    assert "No audit yet. Until one is complete" in page(topics, name="console:campaign")
    assert "Whole topics are audited." in page(topics, name="console:audits")
    assert "There is no forecast for audits of whole topics." in page(topics, name="console:audits")


def test_no_more_items_are_announced_than_the_measure_needs(page, topics):
    asked = ASKED | {"question": "pair", "run_a": "run0", "run_b": "run1", "measure": "ERR@2", "budget": 230}
    needed = sum(len({*returned(0, topic)[:2], *returned(1, topic)[:2]}) for topic in range(N_TOPICS))
    chosen = design(question="pair", runs=("run0", "run1"), measure="ERR@2", budget=230)
    shown = preview(campaign=topics, design=chosen)
    assert (shown.n_question, shown.n_drawable) == (needed, needed)
    assert needed < 230 < shown.n_frame
    assert shown.budgets[-1] == needed
    assert shown.n_topics == N_TOPICS
    assert all(n is None or n <= needed for n in shown.same_width.values())
    text = page(topics, **asked)
    assert f"All {needed} items, each judged by 1 assessor" in text
    assert f"The measure needs {needed} documents of all topics: <strong>all are judged</strong>" in text
    assert "230 items" not in text
    assert draw(campaign=topics, design=chosen, seed=7).n_drawn == needed


def test_weights_that_are_too_far_apart_are_refused_on_the_page(page, topics):
    with unguarded(["judging_topic"]):
        topics.collection.topics.filter(topic_id="q01").update(weight=1e100)
        topics.collection.topics.filter(topic_id="q02").update(weight=1e-300)
    assert "the weights of the topics are too far apart" in page(topics, **ASKED)


def test_a_measure_that_is_no_sum_needs_whole_topics(page, topics):
    others = ASKED | {"topic_selection": "all", "measure": "ERR@4"}
    assert "or draw a sample of whole topics" in page(topics, 400, **others).lower()
    assert "no mean over topics" in page(topics, 400, **ASKED | {"measure": "micro nDCG@4"})
    assert "default method alone" in page(topics, 400, **ASKED | {"method": "naive", "selection": "poisson"})


def test_results_of_whole_topics_are_shown_with_what_they_lack(client, manager, tmp_path):
    campaign = make_drawn(tmp_path)
    judge(campaign)
    recompute(campaign=campaign)
    text = client.get(reverse("console:campaign-results", args=[campaign.pk])).content.decode()
    assert "A sample of whole topics." in text
    assert "no audit is complete yet" in text
    assert "no number is corrected until an audit of whole topics is complete" in text
    for name in ("console:pairs", "console:ranking", "console:planner"):
        answer = client.get(reverse(name, args=[campaign.pk]))
        assert answer.status_code == 200, name
    assert "whole topics were drawn" in answer.content.decode().lower()


@pytest.mark.parametrize("is_whole", [True, False])
def test_the_corrected_number_is_recommended_only_where_there_can_be_one(client, manager, tmp_path, is_whole):
    campaign = make_drawn(tmp_path, measure="P@2") if is_whole else make_undrawn(tmp_path)
    if not is_whole:  # the control
        draw(campaign=campaign, design=Design("pool", (), "P@2", DEPTH, 240), seed=7)
        open_campaign(campaign=campaign, actor=None)
    judge(campaign)
    recompute(campaign=campaign)
    asked = {"measure": "P@2"}
    results = client.get(reverse("console:campaign-results", args=[campaign.pk]), asked).content.decode()
    both = asked | {"a": "run0", "b": "run1"}
    pair = client.get(reverse("console:pair", args=[campaign.pk]), both)
    text = pair.content.decode()
    assert [
        "No corrected numbers yet:" in results,
        "the highlighted column is the one to report" in results,
        "Report “corrected”." in text,
        "the highlighted row is the one to report" in text,
    ] == [not is_whole] * 4
    assert ("It takes every grade as correct." in text) == is_whole
    ranking = client.get(reverse("console:ranking", args=[campaign.pk]), asked | {"method": "naive"})
    assert ranking.context["ranking"].refusal == ""
    naive = next(one for one in pair.context["estimates"] if one.method == "naive")
    assert naive.low < naive.value < naive.high if is_whole else naive.value is not None


def test_an_api_client_gets_forecast_and_draw_and_named_refusals(topics, manager):
    _, key = make_token(user=manager, name="own", days=1)
    client = Client(headers={"Authorization": f"Bearer {key}"})
    base = f"/api/v1/campaigns/{topics.pk}"

    def post(path, body):
        return client.post(base + path, json.dumps(body), content_type="application/json")

    said = post("/forecast", {**ASKED, "runs": []}).json()
    shown = preview(campaign=topics, design=design())
    assert (said["n_topics"], said["widths"]) == (shown.n_topics, shown.widths)
    assert said["design"]["topic_selection"] == "sample"
    refused = post("/forecast", {**ASKED, "topic_selection": "all", "measure": "ERR@4"})
    assert refused.status_code == 400
    assert "or draw a sample of whole topics" in refused.content.decode()
    assert post("/draws", {**ASKED, "seed": 7}).status_code == 202
    finish("draw")
    assert topics.draws.get().has_whole_topics
    audit = post("/audits", {"items": 5})
    assert audit.status_code == 400
    assert "whole topics were drawn" in audit.content.decode()
    assert post("/audits", {"items": 5, "strategy": "whole-topics"}).status_code == 202


def test_the_command_previews_and_draws(topics, capsys):
    words = ["--question", "ranking", "--depth", str(DEPTH), "--budget", "120", "--topic-selection", "sample"]
    call_command("draw", topics.name, *words, "--measure", "ERR@4", "--preview")
    out = capsys.readouterr().out
    assert "topics, each judged completely" in out
    assert "topics alike" in out
    with pytest.raises(CommandError, match="no mean over topics"):
        call_command("draw", topics.name, *words, "--measure", "micro nDCG@4")
    call_command("draw", topics.name, *words, "--measure", "ERR@4", "--seed", "7")
    assert topics.draws.get().parameters["topic_selection"] == "sample"
