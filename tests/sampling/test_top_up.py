"""Later batches of a small real campaign: what is drawn stays drawn, what is learned stays exact, what is refused."""

import uuid

import numpy as np
import pytest
from quick_flush import unguarded
from small_campaign import (
    DEPTH,
    N_FRAME,
    TOPICS,
    doc_id,
    give,
    judge_all,
    lease,
    make_assessor,
    make_undrawn,
    slots,
    truth_of,
)

from judging.models import Judgment, Run
from judging.services.assign import submit
from judging.services.campaigns import open_campaign
from judging.services.files import import_documents, import_runs, import_topics
from judging.services.judgment_files import import_judgments
from judging.services.scores import import_scores
from sampling.batches import draws_to_reach
from sampling.frames import item_probabilities, load_frame
from sampling.models import DrawEntry
from sampling.questions import Design
from sampling.services.drawing import draw, record_draw
from sampling.services.layout import lay_out, missing_topics
from sampling.services.population import DrawRefused, population_of

pytestmark = pytest.mark.django_db

SEED = 20


def design(question="pair", **fields):
    runs = () if question in ("pool", "ranking") else ("run0", "run2")
    return Design(question, **{"runs": runs, "measure": "DCG@10", "depth": DEPTH, "budget": 18, **fields})


@pytest.fixture
def campaign(tmp_path):
    return make_undrawn(tmp_path)


def drawn_by(made):
    frame = load_frame(made).to_dict(as_series=False)
    ids = zip(frame["topic_id"], frame["doc_id"], frame["drawn_in"], strict=True)
    return {(topic, doc): batch for topic, doc, batch in ids if batch > 0}


def by_pair(made, column):
    frame = load_frame(made)
    return dict(zip(frame.select("topic_id", "doc_id").iter_rows(), frame[column], strict=True))


def entries_of(campaign):
    rows = DrawEntry.objects.filter(draw__campaign=campaign).values_list(
        "draw__batch", "item__topic__topic_id", "item__document__doc_id", "inclusion_probability", "times"
    )
    return {(batch, topic, doc): (pi, times) for batch, topic, doc, pi, times in rows}


def judged(campaign):
    """Return the assessors, after all that is drawn has been judged."""
    open_campaign(campaign=campaign, actor=None)
    people = [make_assessor(campaign, f"{name} {campaign.pk}") for name in ("ann", "ben")]
    judge_all(campaign, people)
    return people


# -- what stays -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("question", ["pair", "pool", "ranking"])
def test_a_top_up_keeps_every_item_its_number_and_its_probability(campaign, question):
    first = draw(campaign=campaign, design=design(), seed=SEED)
    second = draw(campaign=campaign, design=design(question, budget=30))
    before, after = drawn_by(first), drawn_by(second)
    assert before.items() <= after.items()
    assert set(after.values()) == {1, 2}
    assert (second.batch, second.seed) == (2, SEED)
    one, two = load_frame(first), load_frame(second)
    assert two["batch_1"].to_list() == one["batch_1"].to_list()
    assert two["random_number"].to_list() == one["random_number"].to_list()
    assert two["fold"].to_list() == one["fold"].to_list()
    assert np.all(two["batch_2"].to_numpy() >= one["batch_1"].to_numpy())
    np.testing.assert_array_equal(two["inclusion_probability"], two["batch_2"])
    assert two["batch_2"].sum() == pytest.approx(30)
    numbers = two["random_number"].to_numpy()
    np.testing.assert_array_equal(two["drawn_in"].to_numpy() > 0, numbers < two["batch_2"].to_numpy())
    assert second.n_drawn == len(after) - len(before) == campaign.items.count() - first.n_drawn


def test_where_a_top_up_raises_a_probability_it_is_one_constant_times_the_size(tmp_path, campaign):
    first = load_frame(draw(campaign=campaign, design=design("pool"), seed=SEED))["batch_1"].to_numpy()
    second = load_frame(draw(campaign=campaign, design=design(budget=25)))["batch_2"].to_numpy()
    # With a budget so small that nothing is certain, probabilities are as the sizes.
    size = load_frame(draw(campaign=make_undrawn(tmp_path), design=design(budget=5)))["batch_1"].to_numpy()
    raised = second > first
    assert 0 < raised.sum() < N_FRAME
    ratio = second[raised & (second < 1)] / size[raised & (second < 1)]
    assert ratio == pytest.approx(ratio[0])
    assert np.all(ratio[0] * size[~raised] <= first[~raised] * (1 + 1e-9))
    assert np.all(ratio[0] * size[raised & (second == 1)] >= 1)


def test_every_batch_has_an_entry_for_every_item_drawn_so_far_also_where_it_drew_nothing_new(campaign):
    made = draw(campaign=campaign, design=design(budget=8), seed=SEED)
    topics_without_news = 0
    for batch, budget in enumerate((9, 12, 30), start=2):
        earlier = set(drawn_by(made))
        made = draw(campaign=campaign, design=design(budget=budget))
        topics_without_news += len(
            {t for t, _ in earlier} - {t for (t, _), b in drawn_by(made).items() if b == batch}
        )
        assert missing_topics(made) == []
        frame = load_frame(made)
        columns = {name: by_pair(made, name) for name in frame.columns if name.startswith(("batch", "times"))}
        assert entries_of(campaign) == {
            (b, *pair): (columns[f"batch_{b}"][pair], columns[f"times_{b}"][pair])
            for b in range(1, batch + 1)
            for pair in drawn_by(made)
        }
    assert topics_without_news > 0


def test_what_was_judged_is_not_asked_again(campaign):
    draw(campaign=campaign, design=design(), seed=SEED)
    ann, ben = judged(campaign)
    before = set(Judgment.objects.values_list("item_id", "assessor_id"))
    draw(campaign=campaign, design=design(budget=30))
    waiting = slots(campaign, state="open")
    assert {slot.item_id for slot in waiting}.isdisjoint(item for item, _ in before)
    judge_all(campaign, [ann, ben])
    assert Judgment.objects.count() == 2 * campaign.items.count()
    assert campaign.slots.count() == 2 * campaign.items.count()


def test_later_draws_with_replacement_are_independent_and_count_what_is_there(campaign):
    with_replacement = {"method": "paper", "selection": "replacement"}
    first = load_frame(draw(campaign=campaign, design=design(budget=12, **with_replacement), seed=SEED))
    made = draw(campaign=campaign, design=design(budget=24, **with_replacement))
    second = load_frame(made)
    q = second["single_2"].to_numpy()
    n = int(np.ceil(draws_to_reach(q, first["batch_1"].to_numpy(), 24)))
    assert second["times_2"].sum() == n
    own = 1 - (1 - q) ** n
    np.testing.assert_allclose(second["batch_2"], own, rtol=1e-9)
    union = 1 - (1 - first["batch_1"].to_numpy()) * (1 - own)
    np.testing.assert_allclose(second["inclusion_probability"], union, rtol=1e-9)
    assert 24 <= union.sum() < 24 + q.max() * N_FRAME
    again = (second["times_1"].to_numpy() > 0) & (second["times_2"].to_numpy() > 0)
    assert again.any()
    assert set(second["drawn_in"].to_numpy()[again]) == {1}
    by_item = item_probabilities(campaign)
    for item in campaign.items.select_related("topic", "document"):
        pair = item.topic.topic_id, item.document.doc_id
        assert by_item[item.pk] == pytest.approx(by_pair(made, "inclusion_probability")[pair])


# -- the collection grows ---------------------------------------------------------------------------------------


def grow(folder, campaign):
    """Add a topic, documents and a run that returns them, and an old document of topic t0 that was not pooled."""
    collection = campaign.collection
    (folder / "new.tsv").write_text("t3\tNeed t3\n")
    (folder / "new.jsonl").write_text("".join(f'{{"_id": "new{n}", "text": "Text"}}\n' for n in range(6)))
    import_topics(collection=collection, source=folder / "new.tsv", name="new.tsv")
    import_documents(collection=collection, source=folder / "new.jsonl", name="new.jsonl")
    lines = [("t0", "new0", 1), ("t0", doc_id(0, 0), 2), *(("t3", f"new{n}", n) for n in range(1, 6))]
    text = "".join(f"{topic} Q0 {doc} {rank} {100 - rank} run3\n" for topic, doc, rank in lines)
    (folder / "run3.run").write_text(text)
    import_runs(collection=collection, files=[(folder / "run3.run", "run3.run")])
    return {(topic, doc) for topic, doc, _ in lines} - {("t0", doc_id(0, 0))}


@pytest.mark.parametrize("selection", ["poisson", "replacement"])
def test_a_new_run_and_a_new_topic_let_the_frame_grow(tmp_path, campaign, selection):
    how = {"selection": selection, "method": "naive"} if selection == "replacement" else {}
    first = draw(campaign=campaign, design=design("pool", **how), seed=SEED)
    new = grow(tmp_path, campaign)
    second = draw(campaign=campaign, design=design("pool", budget=34, **how))
    assert second.n_frame == first.n_frame + len(new)
    assert second.parameters["topics"] == [*TOPICS, "t3"]
    own = by_pair(second, "batch_1")
    assert {pair for pair, pi in own.items() if pi == 0} >= new
    assert {pair: own[pair] for pair in own.keys() - new} == by_pair(first, "batch_1")
    assert drawn_by(first).items() <= drawn_by(second).items()
    came = new & drawn_by(second).keys()
    assert came
    recorded = entries_of(campaign)
    for pair in came:
        assert recorded[(1, *pair)] == (0, 0)
        assert recorded[(2, *pair)][0] == by_pair(second, "inclusion_probability")[pair] > 0


def test_runs_that_are_gone_leave_nothing_to_build_on(campaign):
    draw(campaign=campaign, design=design("pool"), seed=SEED)
    gone = Run.objects.filter(collection=campaign.collection, run_id="run2")
    with unguarded(["judging_run"]):  # as before runs were kept
        gone.delete()
    with pytest.raises(DrawRefused, match="runs that the earlier batch was pooled from are gone"):
        draw(campaign=campaign, design=design("pool", budget=30))


# -- learned ----------------------------------------------------------------------------------------------------


def learned_design(budget=30, **fields):
    return design(budget=budget, prior="judgments", **fields)


def columns_after(campaign, *designs):
    for asked in designs:
        made = draw(campaign=campaign, design=asked)
    return load_frame(made)


@pytest.mark.parametrize(
    "then", [(), (learned_design(36),), (design(budget=36),), (design("pool", budget=36),)]
)
def test_no_judgment_of_a_fold_moves_a_probability_of_that_fold(tmp_path, then):
    frames = []
    for flips in (False, True):
        campaign = make_undrawn(tmp_path)
        draw(campaign=campaign, design=design("pool"), seed=SEED)
        open_campaign(campaign=campaign, actor=None)
        people = [make_assessor(campaign, f"{name} {campaign.pk}") for name in ("ann", "ben")]
        fold = by_pair(campaign.draws.get(), "fold")
        flipped = max(fold[pair] for pair in drawn_by(campaign.draws.get()))

        def grade(slot, _, flips=flips, fold=fold, flipped=flipped):
            pair = slot.item.topic.topic_id, slot.item.document.doc_id
            return 3 - truth_of(slot) if flips and fold[pair] == flipped else truth_of(slot)

        judge_all(campaign, people, grade)
        frames.append(columns_after(campaign, learned_design(), *then))
    own = (frames[0]["fold"] == flipped).to_numpy()
    pi = [frame["inclusion_probability"].to_numpy() for frame in frames]
    np.testing.assert_array_equal(pi[0][own], pi[1][own])
    two = [frame["batch_2"].to_numpy() for frame in frames]
    np.testing.assert_array_equal(two[0][own], two[1][own])
    assert np.any(two[0][~own] != two[1][~own])


def test_all_later_batches_learn_from_the_batches_before_the_first_that_learned(campaign):
    for budget in (18, 22):
        draw(campaign=campaign, design=design("pool", budget=budget), seed=SEED)
    people = judged(campaign)
    learned = draw(campaign=campaign, design=learned_design(30))
    assert learned.learned_from == 2
    assert load_frame(learned)["batch_3"].sum() == pytest.approx(30, abs=1.5)
    judge_all(campaign, people)
    assert draw(campaign=campaign, design=learned_design(36)).learned_from == 2
    plain = draw(campaign=campaign, design=design(budget=40))
    assert plain.learned_from is None


def test_what_was_judged_of_later_batches_moves_nothing_that_is_learned(tmp_path):
    frames = []
    for judges in (False, True):
        campaign = make_undrawn(tmp_path)
        draw(campaign=campaign, design=design("pool"), seed=SEED)
        people = judged(campaign)
        draw(campaign=campaign, design=learned_design(26))
        if judges:
            judge_all(campaign, people)
        frames.append(columns_after(campaign, learned_design(36)))
    assert frames[0].equals(frames[1])


def test_sizes_are_learned_only_from_batches_that_are_judged_completely(campaign):
    draw(campaign=campaign, design=design("pool"), seed=SEED)
    open_campaign(campaign=campaign, actor=None)
    with pytest.raises(DrawRefused, match="0 items are judged; sizes can be learned from 10 or more"):
        draw(campaign=campaign, design=learned_design())
    people = [make_assessor(campaign, name) for name in ("ann", "ben")]
    for slot in slots(campaign)[:-3]:
        give(people[slot.number - 1], slot, truth_of(slot))
    with pytest.raises(DrawRefused, match="2 items of the batches to learn from wait for judgments"):
        draw(campaign=campaign, design=learned_design())
    never, once = slots(campaign)[-2:], slots(campaign)[-3]
    give(people[1], once, truth_of(once))
    with pytest.raises(DrawRefused, match="1 items of the batches to learn from wait for judgments"):
        draw(campaign=campaign, design=learned_design())
    # What somebody cannot judge is not waited for.
    submit(
        assessor=people[0], token=lease(people[0], never[0]), client_token=uuid.uuid4(), obstacle="language"
    )
    assert draw(campaign=campaign, design=learned_design()).learned_from == 1


def test_what_is_learned_starts_from_the_imported_scores_where_the_design_names_some(tmp_path, campaign):
    draw(campaign=campaign, design=design("pool"), seed=SEED)
    judged(campaign)
    lines = "".join(f"{topic}\t{doc_id(number, 0)}\t1.0\n" for number, topic in enumerate(TOPICS))
    (tmp_path / "judge.tsv").write_text(lines)
    import_scores(collection=campaign.collection, source=tmp_path / "judge.tsv", name="judge.tsv")
    plain = population_of(campaign, learned_design())
    scored = population_of(campaign, learned_design(scores="judge"))
    moved = plain.design_prior != scored.design_prior
    assert moved.sum() == len(TOPICS)
    np.testing.assert_array_equal(plain.design_prior, plain.prior)
    assert "score" in load_frame(draw(campaign=campaign, design=learned_design(scores="judge"))).columns


# -- refusals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "later", "message"),
    [
        ({"selection": "pareto"}, {"selection": "pareto", "budget": 30}, "an exact count cannot grow"),
        ({"selection": "pareto"}, {"budget": 30}, "an exact count cannot grow"),
        (
            {},
            {"selection": "pareto", "budget": 30},
            "the first batch was drawn 'Each by its own probability",
        ),
        ({}, {"selection": "replacement", "method": "paper", "budget": 30}, "later ones must be, too"),
        ({}, {"budget": 30, "depth": 9, "measure": "DCG@5"}, "may grow, not shrink: it was 10, got 9"),
        ({}, {"budget": 18}, "the budget counts all batches: 18 items are expected already, got 18"),
        ({}, {"budget": 10}, "18 items are expected already, got 10"),
        (
            {"selection": "replacement", "method": "paper"},
            {"selection": "replacement", "method": "paper", "budget": 42},
            "fewer than 42 different items",
        ),
        ({}, {"budget": 30, "prior": "judgments", "method": "paper"}, "learned for the default design only"),
    ],
)
def test_later_batches_that_cannot_be_drawn_are_refused_by_name(campaign, first, later, message):
    draw(campaign=campaign, design=design(**first), seed=SEED)
    items = campaign.items.count()
    with pytest.raises(DrawRefused, match=message):
        draw(campaign=campaign, design=design(**later))
    assert (campaign.draws.count(), campaign.items.count()) == (1, items)


def test_another_seed_is_refused_and_the_same_one_is_not(campaign):
    draw(campaign=campaign, design=design(), seed=SEED)
    with pytest.raises(DrawRefused, match="a later batch keeps the campaign's seed"):
        draw(campaign=campaign, design=design(budget=30), seed=SEED + 1)
    assert draw(campaign=campaign, design=design(budget=30), seed=SEED).seed == SEED


def test_a_batch_waits_until_the_one_before_is_laid_out(campaign):
    first = record_draw(campaign=campaign, design=design(), seed=SEED)
    with pytest.raises(DrawRefused, match="batch 1 is not laid out yet: 3 topics are missing"):
        draw(campaign=campaign, design=design(budget=30))
    lay_out(draw=first, topic_ids=["t1"])
    with pytest.raises(DrawRefused, match="2 topics are missing"):
        draw(campaign=campaign, design=design(budget=30))
    lay_out(draw=first, topic_ids=["t0", "t2"])
    assert draw(campaign=campaign, design=design(budget=30)).batch == 2


def test_a_batch_with_less_than_one_item_more_may_draw_nothing_and_says_so(campaign):
    draw(campaign=campaign, design=design("pool", budget=N_FRAME - 1), seed=4)
    assert campaign.items.count() == N_FRAME  # of this seed already the first batch draws all
    with pytest.raises(DrawRefused, match="nothing new was drawn"):
        draw(campaign=campaign, design=design("pool", budget=N_FRAME))


def test_an_item_that_was_imported_and_is_drawn_later_gets_only_what_is_missing(tmp_path, campaign):
    made = draw(campaign=campaign, design=design("pool", budget=6), seed=SEED)
    undrawn = sorted(set(by_pair(made, "prior")) - set(drawn_by(made)))
    lines = "".join(f"{topic} ann {doc} 1\n" for topic, doc in undrawn)
    (tmp_path / "some.qrels_jg").write_text(lines)
    import_judgments(campaign=campaign, source=tmp_path / "some.qrels_jg", name="s", file_format="qrels_jg")
    draw(campaign=campaign, design=design("pool", budget=N_FRAME))
    per_item = {item.pk: item.slots.filter(purpose="judge").count() for item in campaign.items.all()}
    assert set(per_item.values()) == {2}
    assert campaign.slots.filter(state="done").count() == len(undrawn)
    assert len(per_item) == N_FRAME
