"""`manage.py draw`: the preview in a terminal, the draw, and one clear error."""

import json
import uuid

import pytest
from django.core.management import CommandError, call_command
from small_campaign import DEPTH, N_FRAME, make_collection
from small_campaign import make_campaign as make_drawn_campaign

from judging.services.campaigns import DEFAULT_GRADES, create_campaign
from sampling.models import Draw
from sampling.questions import Design
from sampling.services.forecasting import preview
from touchstone import jobs

pytestmark = pytest.mark.django_db

PAIR = ["--question", "pair", "--runs", "run0", "run2"]
REST = ["--measure", "DCG@10", "--depth", str(DEPTH), "--budget", "20"]
DESIGN = Design("pair", ("run0", "run2"), "DCG@10", DEPTH, 20)


@pytest.fixture
def campaign(tmp_path):
    return create_campaign(
        collection=make_collection(tmp_path),
        name=f"campaign {uuid.uuid4()}",
        user=None,
        grades=DEFAULT_GRADES,
        gold_check_rate=0.0,
    )


@pytest.fixture
def said(capsys):
    def run(*arguments):
        call_command("draw", *map(str, arguments))
        return capsys.readouterr().out

    return run


def test_a_preview_prints_a_row_a_budget_and_draws_nothing(campaign, said):
    out = said(campaign.name, *PAIR, *REST, "--preview")
    shown = preview(campaign=campaign, design=DESIGN)
    assert f"{N_FRAME} pooled documents, {shown.n_question} matter for the question" in out
    rows = [line.split() for line in out.splitlines()[3:]]
    for place, budget in enumerate(shown.budgets):
        (row,) = [row for row in rows if row and row[0] == f"{budget:,}"]
        widths = [column[place] for column in shown.widths.values()]
        assert row[1 : 1 + len(widths)] == ["-" if width is None else f"{width:.3g}" for width in widths]
        assert (row[-1] == "<") == (budget == 20)
    assert not Draw.objects.exists()


def test_a_preview_as_json_is_the_preview(campaign, said):
    out = json.loads(said(campaign.pk, *PAIR, *REST, "--preview", "--output", "json"))
    assert out.pop("design") == DESIGN.parameters()
    assert out == json.loads(json.dumps(preview(campaign=campaign, design=DESIGN).as_json()))


def test_a_draw_prints_what_was_drawn_by_name_or_id_and_its_seed_repeats_it(campaign, said, tmp_path):
    out = said(campaign.name, *PAIR, *REST, "--seed", 7)
    made = campaign.draws.get()
    assert f"batch 1 of {campaign.name}: {made.n_drawn} of {N_FRAME} pooled documents drawn (seed 7)" in out
    assert made.frame_sha256 in out
    assert made.parameters["runs"] == ["run0", "run2"]
    assert campaign.items.count() == made.n_drawn
    (tmp_path / "again").mkdir()
    again = create_campaign(
        collection=make_collection(tmp_path / "again"),
        name="again",
        user=None,
        grades=DEFAULT_GRADES,
        gold_check_rate=0.0,
    )
    body = json.loads(said(again.pk, *PAIR, *REST, "--seed", 7, "--output", "json"))
    assert body["frame_sha256"] == made.frame_sha256
    assert (body["seed"], body["n_drawn"], body["is_laid_out"]) == (7, made.n_drawn, True)


def test_a_second_batch_tops_up(campaign, said):
    said(campaign.name, *PAIR, *REST, "--seed", 7)
    before = set(campaign.items.values_list("pk", flat=True))
    assert "batch 2" in said(
        campaign.name, *PAIR, *REST[:-1], 36, "--uniform-share", 0, "--other-runs-share", 0
    )
    assert before < set(campaign.items.values_list("pk", flat=True))
    assert campaign.draws.get(batch=2).parameters["uniform_share"] == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([*PAIR[:-1], "nobody", *REST], "no run 'nobody'"),
        ([*PAIR[:-1], *REST], "takes 2 run(s), got 1"),
        ([*PAIR, "--measure", "ERR@10", *REST[2:]], "or draw a sample of whole topics"),
        ([*PAIR, "--measure", "DCG@20", *REST[2:]], "the pool depth must be at least 20"),
        ([*PAIR, *REST[:-1], "0"], "the budget must be at least 1, got 0"),
        ([*PAIR, *REST[:2], "--depth", "0", *REST[4:]], "depth"),
        ([*PAIR, *REST, "--uniform-share", "nan"], "shares must be"),
        ([*PAIR, *REST, "--prior", "scores"], "name the imported scores"),
        ([*PAIR, *REST, "--scores", "llama"], "no scores named 'llama'"),
        ([*PAIR, *REST, "--preview", "--seed", "1"], "a preview has no seed"),
        ([*PAIR, *REST, "--prior", "judgments"], "nothing is judged yet"),
    ],
)
def test_what_cannot_be_drawn_is_one_clear_error(campaign, said, arguments, words):
    with pytest.raises(CommandError) as caught:
        said(campaign.name, *arguments)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.returncode == 1
    assert not Draw.objects.exists()


@pytest.mark.parametrize("wanted", ["nobody's", "00000000-0000-4000-8000-000000000000"])
def test_a_campaign_that_is_not_there_is_named(said, wanted):
    with pytest.raises(CommandError, match="there is no campaign"):
        said(wanted, *PAIR, *REST)


def test_nothing_new_and_a_running_draw_are_errors(tmp_path, said):
    campaign = make_drawn_campaign(tmp_path)  # every pair is drawn for certain
    with pytest.raises(CommandError, match="42 items are expected already, got 20"):
        said(campaign.name, *PAIR, *REST)
    job = jobs.enqueue(kind="draw", payload={"campaign": str(campaign.pk)}, active_key=str(campaign.pk))
    with pytest.raises(CommandError, match=str(job.pk)):
        said(campaign.name, *PAIR, *REST)
    assert campaign.draws.count() == 1
