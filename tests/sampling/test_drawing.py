"""First batches of a small real campaign: what is recorded is what the pure functions say, and what is refused."""

import uuid
from itertools import product

import numpy as np
import pytest
from small_campaign import DEPTH, DOCUMENTS, N_FRAME, RUNS, TOPICS, doc_id, make_undrawn, returned, without

from judging.models import Run
from judging.services.files import import_runs
from judging.services.judgment_files import import_judgments
from judging.services.scores import import_scores
from sampling.designs import inclusion_probabilities
from sampling.draws import pareto_draw, permanent_random_numbers
from sampling.expert_pools import prior_of_experts
from sampling.frames import FrameRefused, item_probabilities, load_frame
from sampling.measures.sparse import from_dense
from sampling.models import Draw, DrawEntry
from sampling.pooling import prior_utility
from sampling.prediction import folds
from sampling.questions import Design, prior_of_runs
from sampling.services.drawing import draw
from sampling.services.population import DrawRefused
from sampling.strata import topic_counts

pytestmark = pytest.mark.django_db

SEED, BUDGET = 20, 20
PAIRS = [(topic_id, doc_id(topic, d)) for topic, topic_id in enumerate(TOPICS) for d in range(DOCUMENTS)]
RANKS = np.array([[returned(run).get(pair, 0) for pair in PAIRS] for run in range(len(RUNS))])
# DCG@10 by its definition: 1/log2(rank + 1) a topic.
WEIGHTS = np.where(RANKS > 0, 1 / np.log2(np.maximum(RANKS, 1) + 1), 0.0) / len(TOPICS)
ASKED = {
    "pair": ["run0", "run2"],
    "system": ["run1"],
    "baseline": ["run1", "run0", "run2"],
    "ranking": [],
    "pool": [],
}


def design(question="pair", **fields):
    given = {"runs": ASKED[question], "measure": "DCG@10", "depth": DEPTH, "budget": BUDGET}
    return Design(question, **{**given, **fields})


def rows_of(question):
    return [RUNS.index(run) for run in ASKED[question]] or [0, 1, 2]


def contrast(question):
    """Return the root of the mean squared weight of the question's comparisons, written out."""
    w = WEIGHTS[rows_of(question)]
    targets = {
        "pair": lambda: [w[0] - w[1]],
        "system": lambda: [w[0]],
        "baseline": lambda: [w[1] - w[0], w[2] - w[0]],
        "ranking": lambda: [w[0] - w[1], w[0] - w[2], w[1] - w[2]],
        "pool": lambda: list(w),
    }[question]()
    return np.sqrt(np.mean(np.square(targets), axis=0))


def sizes(question, method):
    """Return the sizes of the design, summing to 1, from its definition."""
    if method == "default":
        if question == "pool":
            return np.full(N_FRAME, 1 / N_FRAME)
        p = prior_of_runs(RANKS, DEPTH)
        asked = contrast(question) * np.sqrt(p * (1 - p))
        average = (WEIGHTS / WEIGHTS.sum(axis=1, keepdims=True)).mean(axis=0)
        return 0.94 * asked / asked.sum() + 0.05 * average + 0.01 / N_FRAME
    rows = rows_of(question)
    utility = prior_utility(RANKS[rows], DEPTH)
    if method == "paper" and question != "pool":
        size = utility * contrast(question)
    else:
        size = utility * WEIGHTS[rows].sum(axis=0)
    return size / size.sum()


def entries(made):
    rows = DrawEntry.objects.filter(draw=made).values_list(
        "item__topic__topic_id", "item__document__doc_id", "inclusion_probability", "times"
    )
    return {(topic, doc): (pi, times) for topic, doc, pi, times in rows}


def check_frame_and_entries(made, pi, times):
    frame = load_frame(made)
    assert list(frame.select("topic_id", "doc_id").iter_rows()) == PAIRS
    np.testing.assert_allclose(frame["batch_1"], pi, rtol=1e-9)
    np.testing.assert_allclose(frame["inclusion_probability"], pi, rtol=1e-9)
    assert frame["times_1"].to_list() == list(times)
    assert frame["drawn_in"].to_list() == [int(n > 0) for n in times]
    recorded = entries(made)
    assert recorded == {
        pair: (p, n) for pair, p, n in zip(PAIRS, frame["batch_1"], times, strict=True) if n > 0
    }
    assert (made.n_frame, made.n_drawn) == (N_FRAME, len(recorded))
    asked = {slot.item_id: 0 for slot in made.campaign.slots.all()}
    assert len(asked) == len(recorded)
    assert made.campaign.slots.filter(purpose="judge", state="open").count() == 2 * len(recorded)


WITHOUT = [
    (question, method, selection)
    for question, method, selection in product(ASKED, ("default", "paper", "naive"), ("poisson", "pareto"))
    if not (question == "pool" and method == "paper")
]


@pytest.mark.parametrize(("question", "method", "selection"), WITHOUT)
def test_a_draw_without_replacement_records_what_the_design_says(tmp_path, question, method, selection):
    campaign = make_undrawn(tmp_path)
    made = draw(campaign=campaign, design=design(question, method=method, selection=selection), seed=SEED)
    size = sizes(question, method)
    numbers = permanent_random_numbers(*zip(*PAIRS, strict=True), SEED)
    if selection == "poisson":
        pi = inclusion_probabilities(size, BUDGET)
        drawn = numbers < pi
    else:
        topic = np.repeat(np.arange(len(TOPICS)), DOCUMENTS)
        counts = topic_counts(size, topic, BUDGET)
        assert counts.sum() == BUDGET
        pi, drawn = np.zeros(N_FRAME), np.zeros(N_FRAME, dtype=bool)
        for t, count in enumerate(counts):
            here = topic == t
            pi[here] = inclusion_probabilities(size[here], count)
            drawn[np.flatnonzero(here)[pareto_draw(pi[here], numbers[here], count)]] = True
        assert made.n_drawn == BUDGET
    assert pi.sum() == pytest.approx(BUDGET)
    check_frame_and_entries(made, pi, drawn.astype(int))
    assert "single_1" not in load_frame(made).columns


@pytest.mark.parametrize(
    ("question", "method"),
    [pair for pair in product(ASKED, ("paper", "naive")) if pair != ("pool", "paper")],
)
def test_a_draw_with_replacement_records_q_the_chance_to_come_at_all_and_how_often(
    tmp_path, question, method
):
    campaign = make_undrawn(tmp_path)
    made = draw(campaign=campaign, design=design(question, method=method, selection="replacement"), seed=SEED)
    q = sizes(question, method)
    frame = load_frame(made)
    times = frame["times_1"].to_numpy()
    n_draws = int(times.sum())
    np.testing.assert_allclose(frame["single_1"], q, rtol=1e-9)
    expected = [float((1 - (1 - q) ** n).sum()) for n in (n_draws - 1, n_draws)]
    assert expected[0] < BUDGET <= expected[1]  # the fewest draws that are expected to find as many items
    assert times.max() > 1
    check_frame_and_entries(made, 1 - (1 - q) ** n_draws, times)


def test_the_frame_holds_folds_numbers_and_the_prior_and_the_draw_its_design(tmp_path):
    asked = design(other_runs_share=0.1)
    made = draw(campaign=make_undrawn(tmp_path), design=asked, seed=SEED)
    frame = load_frame(made)
    ids = list(zip(*PAIRS, strict=True))
    assert frame["random_number"].to_list() == permanent_random_numbers(*ids, SEED).tolist()
    assert frame["fold"].to_list() == folds(*ids, SEED).tolist()
    np.testing.assert_allclose(frame["prior"], prior_of_runs(RANKS, DEPTH), rtol=1e-12)
    assert made.parameters["topics"] == TOPICS
    assert Design(**{name: made.parameters[name] for name in asked.parameters()}) == asked
    assert (made.batch, made.seed, made.learned_from) == (1, SEED, None)
    assert item_probabilities(made.campaign) == pytest.approx(
        {entry.item_id: entry.inclusion_probability for entry in made.entries.all()}
    )


def test_the_same_seed_draws_the_same_bytes_and_another_seed_other_items(tmp_path):
    campaign = make_undrawn(tmp_path)
    others = []
    for number, seed in enumerate([SEED, SEED, SEED + 1]):
        again = make_undrawn(tmp_path) if number else campaign
        others.append(draw(campaign=again, design=design(), seed=seed))
    assert others[0].frame_sha256 == others[1].frame_sha256 != others[2].frame_sha256
    assert entries(others[0]).keys() == entries(others[1]).keys() != entries(others[2]).keys()
    positions = [list(made.campaign.slots.order_by("position").values_list("position")) for made in others]
    assert positions[0] == positions[1] != positions[2]


def test_without_a_seed_two_draws_differ(tmp_path):
    seeds = {draw(campaign=make_undrawn(tmp_path), design=design()).seed for _ in range(2)}
    assert len(seeds) == 2


def test_a_budget_of_the_whole_pool_or_more_takes_every_item(tmp_path):
    for selection, budget in product(("poisson", "pareto"), (N_FRAME, 10 * N_FRAME)):
        made = draw(
            campaign=make_undrawn(tmp_path), design=design(budget=budget, selection=selection), seed=1
        )
        assert made.n_drawn == N_FRAME
        assert load_frame(made)["inclusion_probability"].to_list() == [1.0] * N_FRAME


# -- scores of a program ----------------------------------------------------------------------------------------


def scored(folder, campaign, lines):
    (folder / "judge.tsv").write_text("".join(f"{topic}\t{doc}\t{score}\n" for topic, doc, score in lines))
    import_scores(collection=campaign.collection, source=folder / "judge.tsv", name="judge.tsv")


def test_scores_move_the_prior_by_bayes_rule_where_they_are_and_nowhere_else(tmp_path):
    campaign = make_undrawn(tmp_path)
    scored(tmp_path, campaign, [(*PAIRS[0], 1.0), (*PAIRS[3], 0.0), ("t9", "unknown", 0.5)])
    asked = design(prior="scores", scores="judge", sensitivity=0.8, specificity=0.9)
    made = draw(campaign=campaign, design=asked, seed=SEED)
    p = prior_of_runs(RANKS, DEPTH)
    p[0] = p[0] * 0.8 / (p[0] * 0.8 + (1 - p[0]) * 0.1)
    p[3] = p[3] * 0.2 / (p[3] * 0.2 + (1 - p[3]) * 0.9)
    question = contrast("pair") * np.sqrt(p * (1 - p))
    average = (WEIGHTS / WEIGHTS.sum(axis=1, keepdims=True)).mean(axis=0)
    size = 0.94 * question / question.sum() + 0.05 * average + 0.01 / N_FRAME
    frame = load_frame(made)
    np.testing.assert_allclose(frame["batch_1"], inclusion_probabilities(size, BUDGET), rtol=1e-9)
    assert frame["score"].is_nan().sum() == N_FRAME - 2
    assert (frame["score"][0], frame["score"][3]) == (1.0, 0.0)


def test_the_consensus_of_the_runs_is_a_prior_of_the_same_mean_in_every_topic(tmp_path):
    campaign = make_undrawn(tmp_path)
    made = draw(campaign=campaign, design=design(prior="experts"), seed=SEED)
    frame = load_frame(made)
    topic = np.unique(frame["topic_id"].to_numpy(), return_inverse=True)[1]
    usual = prior_of_runs(RANKS, DEPTH)
    p = prior_of_experts(from_dense(RANKS), topic, usual)
    assert not np.allclose(p, usual)
    np.testing.assert_allclose(np.bincount(topic, p), np.bincount(topic, usual))
    question = contrast("pair") * np.sqrt(p * (1 - p))
    average = (WEIGHTS / WEIGHTS.sum(axis=1, keepdims=True)).mean(axis=0)
    size = 0.94 * question / question.sum() + 0.05 * average + 0.01 / N_FRAME
    np.testing.assert_allclose(frame["batch_1"], inclusion_probabilities(size, BUDGET), rtol=1e-9)
    np.testing.assert_allclose(frame["prior"], usual)


def test_a_topic_too_large_for_the_consensus_names_another_prior(tmp_path, monkeypatch):
    monkeypatch.setattr("sampling.expert_pools.topic_pools.__defaults__", (2,))
    with pytest.raises(DrawRefused, match=r"at most 2 pooled documents .* choose the ranks of all runs"):
        draw(campaign=make_undrawn(tmp_path), design=design(prior="experts"))


def test_scores_that_are_unknown_or_of_no_pooled_document_are_refused(tmp_path):
    campaign = make_undrawn(tmp_path)
    scored(tmp_path, campaign, [("t0", "unknown", 0.5)])
    with pytest.raises(DrawRefused, match="has no scores named 'other'"):
        draw(campaign=campaign, design=design(prior="scores", scores="other"))
    with pytest.raises(DrawRefused, match="are of none of the 42 pooled documents"):
        draw(campaign=campaign, design=design(prior="scores", scores="judge"))


# -- refusals ---------------------------------------------------------------------------------------------------


def test_a_first_batch_cannot_learn(tmp_path):
    with pytest.raises(DrawRefused, match="nothing is judged yet"):
        draw(campaign=make_undrawn(tmp_path), design=design(prior="judgments"))


def test_judgments_that_were_imported_come_after_a_draw(tmp_path):
    campaign = make_undrawn(tmp_path)
    (tmp_path / "some.qrels_jg").write_text(f"t0 ann {doc_id(0, 0)} 1\n")
    import_judgments(campaign=campaign, source=tmp_path / "some.qrels_jg", name="s", file_format="qrels_jg")
    with pytest.raises(
        DrawRefused, match="judgments were imported into this campaign; a draw must come first"
    ):
        draw(campaign=campaign, design=design())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"measure": "DCG@20"}, "the pool depth must be at least 20, the cutoff of DCG@20"),
        ({"selection": "pareto", "budget": 5}, "count must be at least 6, 2 judgments"),
        ({"method": "naive", "selection": "replacement", "budget": 42}, "fewer than 42 different items"),
        ({"runs": ["run0", "nobody"]}, "the collection has no run 'nobody'"),
        ({"runs": ["run0", "run0"]}, "run 'run0' is named twice"),
        ({"runs": ["run0"]}, "takes 2 run"),
        ({"measure": "cosine"}, "cosine"),
    ],
)
def test_designs_that_cannot_be_carried_out_are_refused_by_name(tmp_path, fields, message):
    campaign = make_undrawn(tmp_path)
    with pytest.raises(DrawRefused, match=message):
        draw(campaign=campaign, design=design(**fields))
    assert not campaign.draws.exists()
    assert not campaign.items.exists()


def new_run(folder, campaign, name, lines):
    text = "".join(f"{topic} Q0 {doc} {rank} {100 - rank} {name}\n" for topic, doc, rank in lines)
    (folder / f"{name}.run").write_text(text)
    import_runs(collection=campaign.collection, files=[(folder / f"{name}.run", f"{name}.run")])


def test_runs_that_rank_alike_inside_the_cutoff_leave_nothing_to_judge(tmp_path):
    campaign = make_undrawn(tmp_path)
    new_run(tmp_path, campaign, "copy", [(*pair, rank) for pair, rank in returned(0).items()])
    with pytest.raises(DrawRefused, match="every difference is exactly 0, there is nothing to judge"):
        draw(campaign=campaign, design=design(runs=["run0", "copy"]))


def test_topics_of_a_run_that_the_collection_lacks_are_never_pooled(tmp_path):
    campaign = make_undrawn(tmp_path)
    new_run(tmp_path, campaign, "late", [("t0", doc_id(0, 0), 1), ("t9", doc_id(1, 0), 1)])
    made = draw(campaign=campaign, design=design("pool"))
    assert set(load_frame(made)["topic_id"]) == set(TOPICS)
    assert made.parameters["topics"] == TOPICS


def test_a_pooled_document_that_the_collection_lacks_is_named(tmp_path):
    campaign = make_undrawn(tmp_path)
    new_run(tmp_path, campaign, "late", [("t0", "nowhere", 1)])
    with pytest.raises(
        FrameRefused, match="1 pooled documents are not in the collection, for example 'nowhere'"
    ):
        draw(campaign=campaign, design=design())


def test_a_collection_without_runs_has_nothing_to_pool(tmp_path):
    campaign = make_undrawn(tmp_path)
    without(Run.objects.filter(collection=campaign.collection))
    with pytest.raises(DrawRefused, match="the collection has no runs"):
        draw(campaign=campaign, design=design())


def test_the_draw_is_written_into_the_log(tmp_path):
    from touchstone.models import Event

    campaign = make_undrawn(tmp_path)
    made = draw(campaign=campaign, design=design(), seed=SEED)
    event = Event.objects.get(subject=f"campaign:{campaign.pk}", verb="drawn")
    assert event.detail == {"n_drawn": made.n_drawn, "design": "pair", "batch": 1}
    assert Draw.objects.get(campaign=campaign).pk == made.pk
    assert isinstance(made.pk, uuid.UUID)
