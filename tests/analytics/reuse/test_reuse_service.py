"""Reuse in the product: a run that came after the draw, against numbers computed by hand."""

import json
import math
import statistics

import pytest
from django.test import Client
from django.urls import reverse
from late_run import BUDGET, LATE, add_late_run
from small_campaign import (
    DEPTH,
    DOCUMENTS,
    N_FRAME,
    TOPICS,
    doc_id,
    give,
    judge_all,
    make_assessor,
    make_campaign,
    make_collection,
    returned,
    slots,
)

import analytics.tasks  # noqa: F401 (registers the jobs)
import sampling.tasks  # noqa: F401 (registers the jobs)
from analytics.models import Estimate
from analytics.services import top_up as lacking_service
from analytics.services.recomputation import recompute
from analytics.services.reuse import ReuseQuestion, ReuseRefused, answer
from analytics.services.top_up import TopUpAnswer, find_lacking, from_json, lacking
from console.researcher.reuse import verdict
from judging.services.campaigns import DEFAULT_GRADES, create_campaign
from judging.services.files import import_runs
from sampling.questions import Design, prior_of_runs
from sampling.services.drawing import draw
from touchstone import jobs
from touchstone.models import Job, User

pytestmark = pytest.mark.django_db

P = BUDGET / N_FRAME

W = 1 / 10 / len(TOPICS)  # of a document within P@10

Z = 1.959963984540054

KNOWN = [returned(0), returned(1), returned(2)]

LATE_RANKS = {
    (topic_id, doc_id(topic, d)): rank
    for topic, topic_id in enumerate(TOPICS)
    for rank, d in enumerate(LATE, start=1)
}


def priors(runs):
    """Return (topic, document) -> the prior of relevance that is tested elsewhere, from what the runs return."""
    pairs = sorted({(TOPICS.index(topic_id), int(d[-2:])) for ranks in runs for topic_id, d in ranks})
    table = [[ranks.get((TOPICS[t], doc_id(t, d)), 0) for t, d in pairs] for ranks in runs]
    return dict(zip(pairs, prior_of_runs(table, DEPTH).tolist(), strict=True))


BEFORE = priors(KNOWN)


def even_half_width(documents, p):
    """Of equally weighed documents of every topic, each drawn with chance p."""
    doubt = sum(g * (1 - g) for t in range(3) for d in documents for g in [BEFORE[t, d]])
    return Z * math.sqrt((1 - p) / p * W**2 * doubt)


# -- the answer -----------------------------------------------------------------------------------------------


def test_a_run_of_the_draw_has_the_numbers_of_an_even_draw(campaign):
    said = answer(campaign=campaign, asked=ReuseQuestion("run0", "P@10"))
    assert (said.n_documents, said.n_outside, said.share_outside, said.refusal) == (30, 0, 0.0, "")
    assert said.expected_judgments == pytest.approx(30 * P)
    assert said.effective_judgments == pytest.approx(30 * P)
    assert said.half_width == pytest.approx(even_half_width(range(10), P))
    others = [even_half_width(range(2 * run, 2 * run + 10), P) for run in (1, 2)]
    assert said.usual_half_width == pytest.approx(statistics.median(others))
    assert said.n_drawn == campaign.items.filter(document__doc_id__in=[d for _, d in returned(0)]).count()
    assert said.n_judged == 0
    assert said.refusal_now == "3 of 3 topics have no judgment yet"
    assert said.half_width_now is None


def test_the_variance_is_told_relative_to_a_draw_of_its_own_with_as_many_items(campaign):
    """Its own draw has 20 expected items among the 30 that count, proportional to sqrt(g (1 - g))."""
    spread = [math.sqrt(g * (1 - g)) for t in range(3) for d in range(10) for g in [BEFORE[t, d]]]
    own = [BUDGET * s / sum(spread) for s in spread]
    assert max(own) < 1
    least = sum((1 - pi) / pi * (W * s) ** 2 for pi, s in zip(own, spread, strict=True))
    here = sum((1 - P) / P * (W * s) ** 2 for s in spread)
    said = answer(campaign=campaign, asked=ReuseQuestion("run0", "P@10"))
    assert said.relative_variance == pytest.approx(here / least)
    assert said.relative_variance > 2


def test_a_run_with_documents_that_were_not_pooled_has_a_share_outside_and_no_half_width(campaign):
    said = answer(campaign=campaign, asked=ReuseQuestion("late", "P@10"))
    assert (said.n_documents, said.n_outside) == (30, 6)
    assert said.share_outside == pytest.approx(0.2)
    assert said.examples_outside[0] == ("t0", "t0d14")
    assert said.expected_judgments == pytest.approx(24 * P)
    assert (said.half_width, said.half_width_now, said.relative_variance) == (None, None, None)
    assert said.refusal.startswith("20.0% of the weight lies on documents that could not be judged")
    assert (said.outside.standing, said.outside.below) == ("not_yet", 0.0)
    assert said.outside.above == pytest.approx(6 * W)
    assert said.outside.half_width == pytest.approx(even_half_width(LATE[:8], P))
    assert said.outside.expected_above is None  # nothing is judged that one run alone brought in
    assert verdict(ReuseQuestion("late", "P@10"), said) == (
        "Not yet: late in P@10 – 6 documents that could not be judged may move it by up to +0.200, more than the "
        "half-width of 0.162."
    )


def test_inside_a_smaller_cutoff_the_same_run_may_be_scored(campaign):
    said = answer(campaign=campaign, asked=ReuseQuestion("late", "P@8"))
    assert (said.n_documents, said.n_outside, said.refusal) == (24, 0, "")
    assert said.half_width == pytest.approx(10 / 8 * even_half_width(LATE[:8], P))


def test_of_a_pair_only_the_documents_that_differ_count(campaign):
    said = answer(campaign=campaign, asked=ReuseQuestion("late", "P@10", "run2"))
    assert (said.n_documents, said.n_outside) == (12, 6)  # 14 and 15 for, 12 and 13 against, in three topics
    assert said.share_outside == pytest.approx(0.5)
    among = answer(campaign=campaign, asked=ReuseQuestion("run0", "P@10", "run2"))
    assert among.half_width == pytest.approx(even_half_width([0, 1, 2, 3, 10, 11, 12, 13], P))
    assert among.usual_half_width == pytest.approx(even_half_width([2, 3, 12, 13], P))  # run1 against run2


def test_a_measure_that_looks_deeper_than_the_pool_is_outside_it_where_a_run_goes_on(tmp_path):
    made = make_campaign(tmp_path, budget=BUDGET)
    said = answer(campaign=made, asked=ReuseQuestion("run0", "P@40"))
    assert (said.n_documents, said.share_outside) == (30, 0.0)  # the runs end at rank 10
    lines = [f"t0 Q0 x{n} {n} {100 - n} long\n" for n in range(1, 21)]
    (tmp_path / "long.run").write_text("".join(lines))
    import_runs(collection=made.collection, files=[(tmp_path / "long.run", "long.run")])
    assert answer(campaign=made, asked=ReuseQuestion("long", "P@40")).share_outside == 1.0


def test_what_is_judged_so_far_counts_as_a_random_part_of_what_was_drawn(campaign):
    """All of topic 0, half of topic 1: a pair of topic 1 was judged with chance p/2."""
    judge = make_assessor(campaign, "bob")
    first = slots(campaign, number=1)
    of_topic = {topic_id: [s for s in first if s.item.topic.topic_id == topic_id] for topic_id in TOPICS}
    n_half = len(of_topic["t1"]) // 2
    assert n_half > 0
    for slot in [*of_topic["t0"], *of_topic["t1"][:n_half], *of_topic["t2"]]:
        give(judge, slot, 1)
    said = answer(campaign=campaign, asked=ReuseQuestion("run0", "P@10"))
    pi = {0: P, 1: P * n_half / len(of_topic["t1"]), 2: P}
    variance = sum(
        (1 - pi[t]) / pi[t] * W**2 * g * (1 - g) for t in range(3) for d in range(10) for g in [BEFORE[t, d]]
    )
    assert said.half_width_now == pytest.approx(Z * math.sqrt(variance))
    assert said.half_width_now > said.half_width
    assert said.refusal_now == ""
    assert 0 < said.n_judged < said.n_drawn


def test_with_all_judged_now_is_what_was_forecast(tmp_path):
    made = make_campaign(tmp_path)  # all 42 for certain
    judge_all(made, [make_assessor(made, "bob"), make_assessor(made, "eve")])
    said = answer(campaign=made, asked=ReuseQuestion("run1", "DCG@10"))
    assert (said.half_width, said.half_width_now, said.relative_variance) == (0.0, 0.0, 1.0)
    assert (said.n_drawn, said.n_judged, said.n_documents) == (30, 30, 30)
    assert said.effective_judgments == pytest.approx(_kish())
    assert verdict(ReuseQuestion("run1", "DCG@10"), said) == (
        "Yes, run1 in DCG@10: every document that affects it was drawn with probability 1."
    )


def _kish():
    weights = [1 / math.log2(rank + 1) for rank in range(1, 11)] * 3
    return sum(weights) ** 2 / sum(w**2 for w in weights)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (ReuseQuestion("run0", "nDCG@10"), "is a ratio"),
        (ReuseQuestion("run0", "P(rel=9)@10"), "relevant grade must be within"),
        (ReuseQuestion("nobody", "P@10"), "no run 'nobody'"),
        (ReuseQuestion("run0", "P@10", "run0"), "are the same run"),
        (ReuseQuestion("copy", "P@10", "run0"), "the difference is exactly 0"),
        (ReuseQuestion("elsewhere", "P@10"), "returns nothing for the topics of this campaign"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(campaign, tmp_path, asked, words):
    swapped = [
        f"{t} Q0 {d} {rank} {rank} copy\n" for (t, d), rank in returned(0).items()
    ]  # the order turned round
    (tmp_path / "copy.run").write_text("".join(swapped))
    (tmp_path / "elsewhere.run").write_text("t9 Q0 t0d00 1 1 elsewhere\n")
    import_runs(
        collection=campaign.collection,
        files=[(tmp_path / f"{name}.run", f"{name}.run") for name in ("copy", "elsewhere")],
    )
    with pytest.raises(ReuseRefused) as caught:
        answer(campaign=campaign, asked=asked)
    assert words in str(caught.value)


# -- what is lacking ------------------------------------------------------------------------------------------


def by_hand(half_width):
    """Return the expected new items: pi = max(p, min(1, c w s)) with the least c that reaches the half-width."""
    after = priors([*KNOWN, LATE_RANKS])
    spread = [math.sqrt(g * (1 - g)) for t in range(3) for d in LATE for g in [after[t, d]]]
    old = [P if d < DOCUMENTS else 0.0 for _ in range(3) for d in LATE]

    def raised(c):
        return [max(o, min(1.0, c * s)) for o, s in zip(old, spread, strict=True)]

    def width(c):
        return Z * math.sqrt(
            sum((1 - pi) / pi * (W * s) ** 2 for pi, s in zip(raised(c), spread, strict=True))
        )

    low, high = 1e-9, 10.0
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if width(middle) > half_width else (low, middle)
    return sum(raised(high)) - sum(old)


@pytest.mark.parametrize("half_width", [0.12, 0.08, 0.05])
def test_the_top_up_is_the_smallest_that_reaches_the_half_width(campaign, half_width):
    made = lacking(campaign=campaign, asked=ReuseQuestion("late", "P@10"), half_width=half_width)
    expected = by_hand(half_width)
    assert expected > 5
    assert made.design.budget == math.ceil(BUDGET + expected)
    assert made.n_new == pytest.approx(made.design.budget - BUDGET)
    assert made.half_width_after <= half_width
    assert by_hand(made.half_width_after) == pytest.approx(made.n_new, abs=1e-6)
    assert made.judgments == pytest.approx(2 * made.n_new)
    assert (made.design.question, made.design.runs, made.design.depth) == ("system", ("late",), DEPTH)


def test_a_wanted_half_width_of_0_asks_for_all_that_counts(campaign):
    made = lacking(campaign=campaign, asked=ReuseQuestion("late", "P@10"), half_width=0.0)
    assert made.n_new == pytest.approx(24 * (1 - P) + 6)
    assert made.half_width_after == 0.0


def test_few_are_rounded_up_to_what_a_draw_can_select(campaign):
    made = lacking(campaign=campaign, asked=ReuseQuestion("late", "P@10"), half_width=1e6)
    assert by_hand(1e6) < 1
    assert made.n_new == pytest.approx(5)


def test_fewer_than_ten_drawn_items_give_no_interval_and_the_top_up_brings_enough(campaign):
    asked = ReuseQuestion("run1", "P@2", "run2")  # documents 2 and 3 against 4 and 5: twelve in all
    said = answer(campaign=campaign, asked=asked)
    assert said.n_documents == 12
    assert 0 < said.n_drawn < 10
    assert said.too_few == f"{said.n_drawn} drawn items with non-zero weight; at least 10 are needed"
    assert verdict(asked, said).startswith(
        "Not with these judgments alone: of the documents that affect run1 minus"
    )
    made = lacking(campaign=campaign, asked=asked, half_width=1e6)
    assert made.n_new == pytest.approx(12 * (1 - P), abs=1)  # twelve are fewer than can be drawn in part
    assert answer(campaign=campaign, asked=ReuseQuestion("run0", "P@10")).too_few == ""


def test_nothing_lacks_where_the_half_width_is_reached(campaign):
    reached = answer(campaign=campaign, asked=ReuseQuestion("run0", "P@10")).half_width
    made = lacking(campaign=campaign, asked=ReuseQuestion("run0", "P@10"), half_width=2 * reached)
    assert (made.design, made.n_new) == (None, 0.0)


def test_after_a_batch_that_learned_the_forecast_is_still_that_of_the_draw(tmp_path):
    made = make_campaign(tmp_path, budget=BUDGET)
    judge_all(made, [make_assessor(made, "bob"), make_assessor(made, "eve")])
    learning = Design("pair", ("run0", "run2"), "P@10", DEPTH, 26, prior="judgments")
    assert draw(campaign=made, design=learning).learned_from == 1
    add_late_run(made.collection, tmp_path)
    asked = ReuseQuestion("late", "P@10")
    plan = lacking(campaign=made, asked=asked, half_width=0.08)
    assert plan.design.prior == "runs"
    draw(campaign=made, design=plan.design)
    said = answer(campaign=made, asked=asked)
    assert said.refusal == ""
    assert said.half_width == pytest.approx(plan.half_width_after, rel=1e-9)


def test_documents_that_cannot_be_read_must_be_imported_first(tmp_path):
    made = make_campaign(tmp_path, budget=BUDGET)
    add_late_run(made.collection, tmp_path, with_documents=False)
    assert answer(campaign=made, asked=ReuseQuestion("late", "P@10")).share_outside == pytest.approx(0.2)
    found = find_lacking(campaign=made, asked=ReuseQuestion("late", "P@10"), half_width=0.1, user=None)
    assert "6 pooled documents are not in the collection" in found.refusal
    assert found.lacking is None


@pytest.mark.parametrize(
    ("method", "selection", "words"),
    [("default", "pareto", "cannot be topped up"), ("paper", "replacement", "topped up in whole batches")],
)
def test_campaigns_that_cannot_be_topped_up_say_so(tmp_path, method, selection, words):
    made = create_campaign(
        collection=make_collection(tmp_path), name="c", user=None, grades=DEFAULT_GRADES, gold_check_rate=0.0
    )
    design = Design("pair", ("run0", "run2"), "P@10", DEPTH, BUDGET, method=method, selection=selection)
    draw(campaign=made, design=design, seed=3)
    found = find_lacking(campaign=made, asked=ReuseQuestion("run1", "P@10"), half_width=0.01, user=None)
    assert words in found.refusal
    assert answer(campaign=made, asked=ReuseQuestion("run0", "P@10", "run2")).refusal == ""


def test_a_large_pool_is_worked_out_by_one_job_with_the_same_result(campaign, monkeypatch):
    asked = ReuseQuestion("late", "P@10")
    at_once = lacking(campaign=campaign, asked=asked, half_width=0.1)
    monkeypatch.setattr(lacking_service, "LARGEST_AT_ONCE", 0)
    ask = {"campaign": campaign, "asked": asked, "half_width": 0.1, "user": None}
    queued, again = find_lacking(**ask), find_lacking(**ask)
    assert (queued.lacking, queued.job) == (None, again.job)
    assert from_json(json.loads(json.dumps(at_once.as_json()))) == at_once


@pytest.mark.django_db(transaction=True)
def test_the_job_of_a_large_pool_is_found_when_done_and_asked_anew_after_a_draw(tmp_path, monkeypatch):
    campaign = make_campaign(tmp_path, budget=BUDGET)
    monkeypatch.setattr(lacking_service, "LARGEST_AT_ONCE", 0)
    ask = {"campaign": campaign, "asked": ReuseQuestion("run0", "P@10"), "half_width": 0.05, "user": None}
    queued = find_lacking(**ask)
    jobs.run(queued.job.pk)
    done = find_lacking(**ask)
    assert done == TopUpAnswer(lacking(campaign=campaign, asked=ask["asked"], half_width=0.05))
    draw(campaign=campaign, design=done.lacking.design)
    assert find_lacking(**ask).job.pk != queued.job.pk


# -- from the question to the number --------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_a_late_run_is_refused_topped_up_judged_and_then_has_its_number(tmp_path):
    campaign = make_campaign(tmp_path, budget=BUDGET)
    add_late_run(campaign.collection, tmp_path)
    people = [make_assessor(campaign, "bob"), make_assessor(campaign, "eve")]
    judge_all(campaign, people)
    refused = naive_of(campaign, "late")
    assert refused.value is None
    assert "could not be drawn" in refused.refusal

    before = set(campaign.items.values_list("pk", flat=True))
    manager = Client()
    manager.force_login(User.objects.create(username="mia", role="manager"))
    page = manager.get(reverse("console:reuse", args=[campaign.pk]), {"run": "late", "measure": "P@10"})
    assert page.status_code == 200
    budget = page.context["found"].lacking.design.budget
    posted = manager.post(
        reverse("console:reuse-draw", args=[campaign.pk]),
        {"run": "late", "measure": "P@10", "budget": budget},
    )
    job = Job.objects.get(kind="draw")
    assert str(job.pk) in posted["Location"]
    jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error) == ("done", "")
    assert before < set(campaign.items.values_list("pk", flat=True))
    judge_all(campaign, people)

    said = answer(campaign=campaign, asked=ReuseQuestion("late", "P@10"))
    assert (said.share_outside, said.refusal, said.n_judged) == (0.0, "", said.n_drawn)
    assert said.half_width == pytest.approx(page.context["found"].lacking.half_width_after, rel=1e-9)
    value = naive_of(campaign, "late")
    assert value.refusal == ""
    assert value.low <= value.value <= value.high


def naive_of(campaign, run_id):
    computation = recompute(campaign=campaign)
    return Estimate.objects.get(
        computation=computation, measure="P@10", method="naive", run__run_id=run_id, run_b=None
    )
