"""The corrected number that is forecast for a run that is asked about, and after a top-up."""

import numpy as np
import pytest
from audit_plans import text_of
from django.urls import reverse
from small_campaign import RUNS, TOPICS, make_campaign, returned

from analytics.services.reuse import ReuseQuestion, answer
from analytics.services.top_up import lacking
from judging.services.campaigns import open_campaign
from judging.services.files import import_runs
from sampling.frames import load_frame
from sampling.outlook import assumed_errors, grade_chances, label_classes, outlook, outlook_sentence
from sampling.questions import Design
from sampling.services import outlook as campaign_plays
from sampling.services.drawing import draw
from sampling.services.forecasting import preview
from touchstone.models import User

pytestmark = pytest.mark.django_db

DESIGN = Design("pair", ("run0", "run2"), "DCG@10", 10, 20)
NO_AUDIT = "There will be no corrected number: no audit is planned"


def test_a_run_is_answered_with_the_corrected_number(tmp_path, client, plan):
    campaign = make_campaign(tmp_path, budget=20)
    asked = ReuseQuestion("run0", "DCG@10")
    assert answer(campaign=campaign, asked=asked).corrected["refusal"] == NO_AUDIT
    plan(campaign)
    said = answer(campaign=campaign, asked=asked)
    assert said.corrected["half_width"] > said.half_width > 0
    assert sum(said.corrected["shares"].values()) == pytest.approx(1)
    client.force_login(User.objects.create(username="rita", role="researcher"))
    text = text_of(
        client.get(reverse("console:reuse", args=[campaign.pk]), {"run": "run0", "measure": "DCG@10"})
    )
    width, n_plays = said.corrected["half_width"], said.corrected["n_plays"]
    assert 10 <= n_plays <= 20, "those that had an interval"
    assert f"For these topics alone: ± {width:.3f} (80 % of {n_plays} simulated campaigns: ± " in text
    assert "Expected half-width, drawing alone" in text
    found = client.get(
        reverse("console:api-reuse", args=[campaign.pk]), {"run": "run0", "measure": "DCG@10"}
    ).json()
    assert found["corrected"] == said.corrected


def test_a_play_learns_from_all_pooled_runs_and_audits_by_the_question(tmp_path, monkeypatch, plan):
    """As the reported estimator does: from the runs that were pooled, be the question about two of them."""
    plans, play = [], campaign_plays._players[0]
    monkeypatch.setattr(
        campaign_plays, "_players", [lambda plan, seed: plans.append(plan) or play(plan, seed)]
    )
    campaign = make_campaign(tmp_path, budget=20, kind="pair")
    plan(campaign)
    pooled = campaign.draws.get().parameters["pooled"]
    assert pooled == RUNS
    late = tmp_path / "late.run"
    late.write_text(
        "".join(f"{topic} Q0 {topic}d{d:02d} {d + 1} {9 - d} late\n" for topic in TOPICS for d in range(5))
    )
    import_runs(collection=campaign.collection, files=[(late, "late.run")])
    answer(campaign=campaign, asked=ReuseQuestion("run1", "DCG@10"))
    [played] = plans
    assert played.ranks.n_runs == len(pooled)
    frame = load_frame(campaign.draws.get())
    place = {pair: n for n, pair in enumerate(frame.select("topic_id", "doc_id").iter_rows())}
    for number, run in enumerate(RUNS):
        row = played.ranks.row(number)
        assert {pair: row[place[pair]] for pair in place if row[place[pair]]} == {
            pair: rank for pair, rank in returned(int(run[-1])).items() if frame["drawn_in"][place[pair]] > 0
        }
    one, two = ({pair: 1 / np.log2(1 + rank) for pair, rank in returned(run).items()} for run in (0, 2))
    wanted = np.array([abs(one.get(pair, 0.0) - two.get(pair, 0.0)) for pair in place])[played.places]
    wanted *= frame["drawn_in"].to_numpy()[played.places] > 0
    assert played.judging.contrast == pytest.approx(wanted / wanted.max())


def test_of_a_made_draw_with_an_even_audit_it_is_the_closed_form_over_what_was_drawn(
    tmp_path, monkeypatch, plan
):
    monkeypatch.setattr("sampling.services.outlook.LARGEST_PLAYED", 0)
    campaign = make_campaign(tmp_path, budget=20)
    plan(campaign, items_in_total=7)
    frame = load_frame(campaign.draws.get())
    drawn = frame["drawn_in"].to_numpy() > 0
    ranks = {(t, f"{t}d{d:02d}"): d + 1 for t in ("t0", "t1", "t2") for d in range(10)}
    pairs = list(frame.select("topic_id", "doc_id").iter_rows())
    w = np.array([1 / np.log2(1 + ranks[pair]) / 3 if pair in ranks else 0.0 for pair in pairs])
    expected = outlook(
        w**2,
        frame["inclusion_probability"].to_numpy(),
        grade_chances(frame["prior"].to_numpy(), 4, 1),
        classes=label_classes(assumed_errors(4, 1).matrix, 2),
        gains=campaign.scale.gains(),
        audit_probability=np.full(w.size, 7 / drawn.sum()),
        drawn=drawn,
    )
    found = answer(campaign=campaign, asked=ReuseQuestion("run0", "DCG@10")).corrected
    assert found["half_width"] == pytest.approx(expected.half_width, rel=1e-9)
    drawing = expected.drawing_share
    assert found["shares"] == pytest.approx({"drawing": drawing, "assessors": 1 - drawing, "topics": 0.0})


def test_a_top_up_starts_from_what_is_drawn(campaign, plan):
    plan(campaign)
    draw(campaign=campaign, design=DESIGN, seed=20)
    open_campaign(campaign=campaign, actor=None)
    more = Design("pair", ("run0", "run2"), "DCG@10", 10, 30)
    before, after = (preview(campaign=campaign, design=asked).corrected for asked in (DESIGN, more))
    assert after["shares"]["drawing"] < before["shares"]["drawing"]


def test_a_top_up_says_what_the_corrected_number_comes_to_after_it(tmp_path, client, plan):
    campaign = make_campaign(tmp_path, budget=20)
    asked = ReuseQuestion("run1", "DCG@10")
    address = reverse("console:reuse", args=[campaign.pk])
    given = {"run": "run1", "measure": "DCG@10", "half_width": "0.2"}
    client.force_login(User.objects.create(username="rita", role="researcher"))
    assert lacking(campaign=campaign, asked=asked, half_width=0.2).corrected["refusal"] == NO_AUDIT
    assert f"After them: {NO_AUDIT}." in text_of(client.get(address, given))
    plan(campaign)
    made = lacking(campaign=campaign, asked=asked, half_width=0.2)
    now = answer(campaign=campaign, asked=asked).corrected
    assert made.corrected["n_gold"] == 16
    assert made.corrected["shares"]["drawing"] < now["shares"]["drawing"]
    same = preview(campaign=campaign, design=made.design)  # the page of the design says the same
    assert made.corrected == same.corrected
    text = text_of(client.get(address, given))
    assert f"After them: {outlook_sentence(made.corrected)}" in text.replace("&#x27;", "'")
    found = client.get(reverse("console:api-reuse", args=[campaign.pk]), given).json()
    assert found["lacking"]["corrected"] == made.corrected
    everything = lacking(campaign=campaign, asked=asked, half_width=1000.0)
    assert (everything.design, everything.corrected) == (None, None)
