"""What is computed from draws with replacement, of an exact count, and in several batches, on a small real campaign."""

import math

import numpy as np
import pytest
from small_campaign import (
    DEPTH,
    RUNS,
    judge_all,
    make_assessor,
    make_collection,
    returned,
    true_grade,
    truth_of,
)

from analytics.frames import campaign_arrays
from analytics.numbers.predictions import Predictions
from analytics.services.recomputation import recompute
from judging.services.campaigns import DEFAULT_GRADES, create_campaign, open_campaign
from sampling.frames import load_frame, newest_draw
from sampling.questions import Design
from sampling.services.drawing import draw

pytestmark = pytest.mark.django_db

GAINS = np.array([0.0, 1.0, 2.0, 3.0])
PAPER = Design("pair", ("run0", "run1"), "DCG@10", DEPTH, 20, method="paper", selection="replacement")


def undrawn(folder, name="campaign"):
    return create_campaign(
        collection=make_collection(folder), name=name, user=None, grades=DEFAULT_GRADES, judgments_per_item=2
    )


def judged(campaign, design, seed=20, grade=lambda slot, place: truth_of(slot)):
    draw(campaign=campaign, design=design, seed=seed)
    open_campaign(campaign=campaign, actor=None)
    people = [make_assessor(campaign, name) for name in ("ann", "ben")]
    judge_all(campaign, people, grade=grade)
    return people


def weights_in(frame, run):
    """Return w of DCG@10 for every pair of the frame, from the definition."""
    rank = returned(RUNS.index(run))
    pairs = frame.select("topic_id", "doc_id").iter_rows()
    return np.array([1 / math.log2(rank[pair] + 1) / 3 if pair in rank else 0.0 for pair in pairs])


def grades_in(frame):
    return np.array([true_grade(*pair) for pair in frame.select("topic_id", "doc_id").iter_rows()])


def row_of(campaign, method, run, run_b=None, measure="DCG@10"):
    rows = recompute(campaign=campaign).estimates.filter(method=method, measure=measure, run__run_id=run)
    return rows.get(run_b__run_id=run_b) if run_b else rows.get(run_b=None)


def test_a_draw_with_replacement_gives_the_papers_mean_over_draws(tmp_path):
    campaign = undrawn(tmp_path)
    judged(campaign, PAPER)
    row = row_of(campaign, "importance", "run0", "run1")
    frame = load_frame(newest_draw(campaign))
    g = weights_in(frame, "run0") - weights_in(frame, "run1")
    times, q = frame["times_1"].to_numpy(), frame["single_1"].to_numpy()
    terms = np.repeat(GAINS[grades_in(frame)] * g / np.where(q > 0, q, 1), times)
    assert times.sum() > np.count_nonzero(times)  # some pair came twice: its label counts twice
    assert row.value == pytest.approx(terms.mean(), abs=1e-12)
    assert row.standard_error == pytest.approx(terms.std(ddof=1) / math.sqrt(terms.size), abs=1e-12)
    assert row.unbounded_high - row.unbounded_value == pytest.approx(1.96 * row.standard_error, abs=1e-12)
    assert "judged once" in row.warning


def test_what_a_pure_pair_design_leaves_out_of_a_run_is_room_in_its_interval(tmp_path):
    campaign = undrawn(tmp_path)
    judged(campaign, PAPER)
    row = row_of(campaign, "importance", "run2")
    frame = load_frame(newest_draw(campaign))
    left_out = frame["inclusion_probability"].to_numpy() == 0
    weight = weights_in(frame, "run2")[left_out].sum() * GAINS.max()
    assert weight > 0
    assert (row.outside_low, row.outside_high) == (0.0, pytest.approx(weight))
    assert row.unbounded_high - row.value == pytest.approx(row.value - row.unbounded_low + weight)
    assert "returns documents that could not be drawn" in row.warning


def test_with_replacement_the_naive_number_counts_every_judgment_once(tmp_path):
    campaign = undrawn(tmp_path)
    judged(campaign, PAPER)
    row = row_of(campaign, "naive", "run0", "run1")
    frame = load_frame(newest_draw(campaign))
    g = weights_in(frame, "run0") - weights_in(frame, "run1")
    n, q = frame["times_1"].sum(), frame["single_1"].to_numpy()
    pi = 1 - (1 - q) ** n
    f = frame["prior"].to_numpy() * GAINS[1:].mean()
    drawn = frame["times_1"].to_numpy() > 0
    residual = ((GAINS[grades_in(frame)] - f) * g)[drawn] / pi[drawn]
    assert row.value == pytest.approx((f * g).sum() + residual.sum(), abs=1e-9)


def test_an_exact_count_is_estimated_with_the_variance_of_a_fixed_size_in_every_topic(tmp_path):
    campaign = undrawn(tmp_path)
    judged(campaign, Design("system", ("run0",), "DCG@10", DEPTH, 24, selection="pareto"))
    row = row_of(campaign, "naive", "run0")
    frame = load_frame(newest_draw(campaign))
    arrays = campaign_arrays(campaign)
    drawn = frame["drawn_in"].to_numpy() > 0
    assert drawn.sum() == 24
    pi = frame["inclusion_probability"].to_numpy()
    w = weights_in(frame, "run0")
    f = Predictions(arrays).of_gains(GAINS, 1)
    z = (GAINS[grades_in(frame)] - f) * w / pi
    assert row.value == pytest.approx((f * w).sum() + z[drawn].sum(), abs=1e-9)
    variance = 0.0
    for topic in range(3):  # within every topic, by the fixed point of c (1 - c / sum c) = 1 - pi
        mine = drawn & (arrays.topic_index == topic) & (pi < 1)
        c = (1 - pi[mine]) * mine.sum() / (mine.sum() - 1)
        for _ in range(500):
            c = 1 - pi[mine] + c**2 / c.sum()
        assert c * (1 - c / c.sum()) == pytest.approx(1 - pi[mine], abs=1e-12)
        variance += (c * (z[mine] - (c * z[mine]).sum() / c.sum()) ** 2).sum()
    assert row.standard_error == pytest.approx(math.sqrt(variance), rel=1e-7)


def test_a_prediction_does_not_know_the_label_of_its_own_fold(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    design = Design("pool", (), "DCG@10", DEPTH, 42)
    first, second = undrawn(tmp_path / "a", "a"), undrawn(tmp_path / "b", "b")
    judged(first, design)
    other = "t1d05"
    judged(
        second, design, grade=lambda s, _: 3 - truth_of(s) if s.item.document.doc_id == other else truth_of(s)
    )
    arrays = campaign_arrays(first)
    before = Predictions(arrays).of_gains(GAINS, 1)
    after = Predictions(campaign_arrays(second)).of_gains(GAINS, 1)
    fold = arrays.frame["fold"].to_numpy()
    place = arrays.frame["doc_id"].to_list().index(other)
    own = fold == fold[place]
    assert np.array_equal(before[own], after[own])
    assert not np.allclose(before[~own], after[~own])  # it has a say everywhere else
