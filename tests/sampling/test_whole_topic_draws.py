"""Draws of whole topics: what is recorded, what is judged, top-ups, weights of topics, and what is refused."""

import numpy as np
import polars as pl
import pytest
from quick_flush import unguarded
from topic_campaign import DEPTH, N_TOPICS, TOPICS, design, make_drawn, make_undrawn, weight_of

from judging.models import Topic
from judging.services.errors import ImportRefused
from judging.services.files import import_topics
from sampling.draws import permanent_random_numbers
from sampling.frames import load_frame
from sampling.questions import Design, QuestionRefused
from sampling.services.drawing import draw
from sampling.services.population import DrawRefused
from sampling.whole_topics import topic_numbers

pytestmark = pytest.mark.django_db


def topics_of(frame):
    """Return a row a topic: its documents, those to judge, those drawn, and the extremes of what its pairs say."""
    return (
        frame.group_by("topic_id")
        .agg(
            n=pl.len(),
            needed=(pl.col("inclusion_probability") > 0).sum(),
            drawn=(pl.col("drawn_in") > 0).sum(),
            rho=pl.col("topic_probability").max(),
            least=pl.col("topic_probability").min(),
            pi=pl.col("inclusion_probability").max(),
            number=pl.col("random_number").max(),
            folds=pl.col("fold").n_unique(),
            share=pl.col("topic_share").first(),
        )
        .sort("topic_id")
    )


def test_a_topic_is_drawn_whole_with_its_recorded_chance(tmp_path):
    campaign = make_drawn(tmp_path)
    made = campaign.draws.get()
    assert made.has_whole_topics
    assert made.parameters["topic_selection"] == "sample"
    rows = topics_of(load_frame(made))
    assert rows["topic_id"].to_list() == TOPICS
    assert rows["number"].to_list() == topic_numbers(TOPICS, 7).tolist()
    assert (rows["rho"] == rows["least"]).all()
    assert (rows["rho"] == rows["pi"]).all()
    assert (rows["needed"] == 6).all()
    assert (rows["folds"] == 1).all()
    taken = rows["number"] < rows["rho"]
    assert rows["drawn"].to_list() == [6 if is_taken else 0 for is_taken in taken]
    assert 10 < taken.sum() < 30
    assert float((rows["rho"] * rows["needed"]).sum()) == pytest.approx(120)
    assert campaign.items.count() == made.n_drawn == 6 * taken.sum()


def test_shares_are_the_weights_of_the_topics_file_and_equal_without(tmp_path):
    rows = topics_of(load_frame(make_drawn(tmp_path).draws.get()))
    weights = np.array([weight_of(topic) for topic in range(N_TOPICS)])
    assert rows["share"].to_list() == pytest.approx((weights / weights.sum()).tolist())
    plain = topics_of(load_frame(make_drawn(tmp_path, weighted=False).draws.get()))
    assert plain["share"].to_list() == pytest.approx([1 / N_TOPICS] * N_TOPICS)


def test_for_a_measure_of_first_ranks_only_these_of_the_questions_runs_are_judged(tmp_path):
    campaign = make_drawn(tmp_path, question="pair", runs=("run0", "run1"), measure="ERR@2", budget=60)
    frame = load_frame(campaign.draws.get())
    rows = topics_of(frame)
    assert set(rows["needed"].to_list()) <= {2, 3, 4}
    assert (rows["drawn"].to_numpy() == np.where(rows["number"] < rows["rho"], rows["needed"], 0)).all()
    assert float((rows["rho"] * rows["needed"]).sum()) == pytest.approx(60)


def test_a_top_up_keeps_the_topics_and_adds_others(tmp_path):
    campaign = make_drawn(tmp_path, budget=60)
    first = topics_of(load_frame(campaign.draws.get()))
    before = set(campaign.items.values_list("pk", flat=True))
    draw(campaign=campaign, design=design(budget=150))
    newest = load_frame(campaign.draws.get(batch=2))
    rows = topics_of(newest)
    assert (rows["rho"] >= first["rho"]).all()
    assert float((rows["rho"] * rows["needed"]).sum()) == pytest.approx(150)
    assert rows["drawn"].to_list() == [6 if taken else 0 for taken in rows["number"] < rows["rho"]]
    assert set(first.filter(pl.col("drawn") > 0)["topic_id"]) < set(
        rows.filter(pl.col("drawn") > 0)["topic_id"]
    )
    assert before < set(campaign.items.values_list("pk", flat=True))
    assert (newest["batch_1"] <= newest["batch_2"]).all()


def test_a_top_up_for_more_documents_judges_them_in_topics_taken_before_too(tmp_path):
    campaign = make_drawn(tmp_path, question="pair", runs=("run0", "run1"), measure="ERR@2", budget=60)
    draw(campaign=campaign, design=design(budget=150))
    rows = topics_of(load_frame(campaign.draws.get(batch=2)))
    assert (rows["needed"] == 6).all()
    assert rows["drawn"].to_list() == [6 if taken else 0 for taken in rows["number"] < rows["rho"]]


def test_numbers_of_topics_are_not_those_of_pairs():
    own = permanent_random_numbers(["q01"], [""], 7)
    assert own[0] != topic_numbers(["q01"], 7)[0]


# -- what is refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"method": "naive"}, "default method alone"),
        ({"selection": "pareto"}, "Poisson"),
        ({"prior": "judgments"}, "not learned"),
        ({"topic_selection": "some"}, "topic_selection must be one of"),
    ],
)
def test_designs_that_whole_topics_do_not_have_are_refused(fields, words):
    with pytest.raises(QuestionRefused, match=words):
        design(**fields)


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        ("micro nDCG@4", "no mean over topics"),
        ("AP", "needs a cutoff"),
        ("nDCG@10", "pool depth"),
        ("Swaps@4", "mean"),
    ],
)
def test_measures_that_whole_topics_do_not_tell_are_refused(tmp_path, measure, words):
    campaign = make_undrawn(tmp_path)
    with pytest.raises(DrawRefused, match=words):
        draw(campaign=campaign, design=design(measure=measure))


def test_a_campaign_draws_either_topics_or_documents(tmp_path):
    campaign = make_drawn(tmp_path)
    with pytest.raises(DrawRefused, match="first batch drew whole topics"):
        draw(campaign=campaign, design=Design("pool", (), "P@4", DEPTH, 200))
    other = make_undrawn(tmp_path)
    draw(campaign=other, design=Design("pool", (), "P@4", DEPTH, 100))
    with pytest.raises(DrawRefused, match="first batch drew documents of all topics"):
        draw(campaign=other, design=design(budget=200))


def test_runs_that_rank_alike_leave_nothing_to_judge(tmp_path):
    campaign = make_undrawn(tmp_path)
    copy = campaign.collection.runs.get(run_id="run0")
    copy.pk, copy.run_id = None, "copy"
    copy.save()
    with pytest.raises(DrawRefused, match="rank alike"):
        draw(campaign=campaign, design=design(question="pair", runs=("run0", "copy"), measure="ERR@4"))


@pytest.mark.parametrize("wrong", ["0", "-1", "nan", "inf", "x", ""])
def test_weights_in_a_file_are_numbers_above_0(tmp_path, wrong):
    campaign = make_undrawn(tmp_path)
    (tmp_path / "more.tsv").write_text(f"z1\tone\t2\nz2\ttwo\t{wrong}\n")
    with pytest.raises(ImportRefused, match=r":2:8: weight must be a number above 0"):
        import_topics(collection=campaign.collection, source=tmp_path / "more.tsv", name="more.tsv")


def test_a_file_gives_weights_to_all_topics_or_to_none(tmp_path):
    campaign = make_undrawn(tmp_path)
    (tmp_path / "more.tsv").write_text("z1\tone\t2\nz2\ttwo\n")
    with pytest.raises(ImportRefused, match="some topics have a weight"):
        import_topics(collection=campaign.collection, source=tmp_path / "more.tsv", name="more.tsv")
    (tmp_path / "more.jsonl").write_text('{"_id": "z1", "text": "one", "weight": 2.5}\n')
    import_topics(collection=campaign.collection, source=tmp_path / "more.jsonl", name="more.jsonl")
    assert Topic.objects.get(collection=campaign.collection, topic_id="z1").weight == 2.5


def test_topics_that_lack_a_weight_are_named(tmp_path):
    campaign = make_undrawn(tmp_path)
    Topic.objects.create(collection=campaign.collection, topic_id="late", title="late")
    with pytest.raises(DrawRefused, match=r"1 topics have no weight, for example 'late'"):
        draw(campaign=campaign, design=design())


def test_weights_that_are_too_far_apart_are_refused_by_name(tmp_path):
    campaign = make_undrawn(tmp_path)
    with unguarded(["judging_topic"]):
        Topic.objects.filter(collection=campaign.collection, topic_id="q01").update(weight=1e100)
        Topic.objects.filter(collection=campaign.collection, topic_id="q02").update(weight=1e-300)
    with pytest.raises(DrawRefused, match="weights of the topics are too far apart: 'q02'"):
        draw(campaign=campaign, design=design())
    with unguarded(["judging_topic"]):
        Topic.objects.filter(topic_id__in=["q01", "q02"]).update(weight=1)  # the control
    assert draw(campaign=campaign, design=design()).n_drawn > 0


@pytest.mark.parametrize("weighted", [True, False])
def test_a_second_file_gives_weights_as_the_first_did(tmp_path, weighted):
    collection = make_undrawn(tmp_path, weighted=weighted).collection
    with_weight, without = "z1\tone\t2\n", "z1\tone\n"
    wrong, right = (without, with_weight) if weighted else (with_weight, without)
    has = "no weight" if weighted else "a weight"
    (tmp_path / "more.tsv").write_text(wrong)
    with pytest.raises(
        ImportRefused, match=rf"^more\.tsv:1:1: the topic has {has}, and the collection's topics"
    ):
        import_topics(collection=collection, source=tmp_path / "more.tsv", name="more.tsv")
    assert collection.topics.count() == N_TOPICS
    (tmp_path / "more.tsv").write_text(right)
    assert import_topics(collection=collection, source=tmp_path / "more.tsv", name="more.tsv") == 1
