"""What a campaign that judges by what it tells cannot be, draw or change: refused by name, and nothing is made."""

import pytest
from django.db import IntegrityError, transaction
from small_campaign import DEPTH, N_FRAME, TOPICS, doc_id, give, make_assessor, make_undrawn, slots, without

from judging.models import Campaign, Run
from judging.services.campaigns import change_campaign, create_campaign, open_campaign
from judging.services.errors import OrderRefused
from judging.services.files import import_runs
from judging.services.judgment_files import import_judgments
from sampling.models import Draw
from sampling.questions import Design
from sampling.services import informative
from sampling.services.drawing import draw
from sampling.services.population import DrawRefused

pytestmark = pytest.mark.django_db


def design(**fields):
    return Design(
        **{"question": "pool", "runs": (), "measure": "DCG@10", "depth": DEPTH, "budget": N_FRAME, **fields}
    )


def refuse_draw(campaign, words, **fields):
    with pytest.raises(DrawRefused, match=words):
        draw(campaign=campaign, design=design(**fields), seed=20)
    assert not Draw.objects.filter(campaign=campaign).exists()


def change(campaign, order):
    change_campaign(campaign=campaign, changes={"judging_order": order}, actor=None)
    return Campaign.objects.get(pk=campaign.pk).judging_order


# -- draws ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"budget": N_FRAME - 1},
        {"budget": 20, "selection": "pareto"},
        {
            "budget": 20,
            "question": "ranking",
            "measure": "P@5",
            "method": "paper",
            "selection": "replacement",
        },
        {"question": "pair", "runs": ("run0", "run1"), "measure": "P@5", "method": "naive"},
    ],
    ids=["part", "exact count", "with replacement", "sizes of 0"],
)
def test_a_part_of_the_pool_is_refused_with_the_budget_it_takes(undrawn, fields):
    refuse_draw(undrawn, rf"the whole pool is drawn: .* a budget of {N_FRAME};", **fields)


@pytest.mark.parametrize(
    "fields",
    [{}, {"budget": 10 * N_FRAME}, {"selection": "pareto"}, {"question": "ranking"}],
    ids=["pool", "more than there is", "exact count of all", "ranking"],
)
def test_the_whole_pool_is_drawn_with_certainty_whatever_the_question(undrawn, fields):
    made = draw(campaign=undrawn, design=design(**fields), seed=20)
    assert made.n_drawn == N_FRAME
    assert set(made.entries.values_list("inclusion_probability", flat=True)) == {1.0}


def test_a_part_is_drawn_in_a_campaign_of_random_order(tmp_path):
    """The control."""
    assert draw(campaign=make_undrawn(tmp_path), design=design(budget=20), seed=20).n_drawn < N_FRAME


def test_without_runs_there_is_nothing_to_pool(undrawn):
    without(Run.objects.all())
    refuse_draw(undrawn, "the collection has no runs")


def test_one_run_is_told_from_nothing(undrawn):
    without(Run.objects.exclude(run_id="run0"))
    refuse_draw(undrawn, "takes two runs or more", budget=100)


def test_identical_runs_are_named(undrawn, tmp_path):
    path = tmp_path / "copy.run"
    path.write_text((tmp_path / "run1.run").read_text().replace("run1", "copy"))
    import_runs(collection=undrawn.collection, files=[(path, "copy.run")])
    refuse_draw(undrawn, "runs (copy and run1|run1 and copy) return the same documents at the same ranks")


def test_pools_that_the_model_cannot_hold_are_refused(undrawn, monkeypatch):
    monkeypatch.setattr(informative, "LARGEST_POOL", 13)
    refuse_draw(undrawn, "at most 13 pooled documents a topic, got 14")
    monkeypatch.undo()
    monkeypatch.setattr(informative, "MOST_RANKS", 3 * N_FRAME - 1)
    refuse_draw(undrawn, f"got 3 times {N_FRAME}")


# -- the choice -----------------------------------------------------------------------------------------------


def test_the_order_is_chosen_until_the_draw(undrawn):
    assert change(undrawn, "random") == "random"
    undrawn.refresh_from_db()
    assert change(undrawn, "informative") == "informative"
    undrawn.refresh_from_db()
    draw(campaign=undrawn, design=design(), seed=20)
    with pytest.raises(OrderRefused, match="drawn already: choose the order before the draw"):
        change(undrawn, "random")


def test_a_campaign_with_judgments_in_random_order_keeps_it(tmp_path):
    campaign = make_undrawn(tmp_path, judgments_per_item=1)
    draw(campaign=campaign, design=design(), seed=20)
    open_campaign(campaign=campaign, actor=None)
    give(make_assessor(campaign, "ann"), slots(campaign)[0], 1)
    with pytest.raises(OrderRefused, match="the campaign has judgments in random order"):
        change(campaign, "informative")


def test_imported_judgments_keep_the_order_too(tmp_path):
    campaign = make_undrawn(tmp_path, judgments_per_item=1)
    path = tmp_path / "some.txt"
    path.write_text(f"{TOPICS[0]} ann {doc_id(0, 0)} 1\n")
    files = {"source": path, "name": "some.txt", "file_format": "qrels_jg"}
    import_judgments(collection=campaign.collection, campaign=campaign, **files)
    with pytest.raises(OrderRefused, match="judgments in random order"):
        change(campaign, "informative")


def test_two_judgments_an_item_are_refused_by_service_and_database(undrawn, tmp_path):
    with pytest.raises(OrderRefused, match="an item takes 1 judgment, got 2"):
        create_campaign(
            collection=undrawn.collection, name="two", user=None, grades=[(0, "no", 0.0), (1, "yes", 1.0)],
            judging_order="informative", judgments_per_item=2,
        )  # fmt: skip
    Campaign.objects.filter(pk=undrawn.pk).update(judging_order="random", judgments_per_item=2)
    undrawn.refresh_from_db()
    with pytest.raises(OrderRefused, match="an item takes 1 judgment, got 2"):
        change(undrawn, "informative")
    for wrong in ({"judging_order": "informative"}, {"judging_order": "reverse"}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Campaign.objects.filter(pk=undrawn.pk).update(**wrong)


def test_campaigns_are_in_random_order_unless_somebody_chose():
    assert Campaign().judging_order == "random"
