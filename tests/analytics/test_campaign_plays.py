"""Campaigns that are played with the reported estimator before anything is judged."""

from dataclasses import replace

import numpy as np
import pytest

from analytics.estimation.estimate import Refusal
from analytics.planning.campaign_plays import played_widths
from sampling.audit_plays import AuditPlay
from sampling.campaign_plan import CampaignPlan
from sampling.measures.sparse import from_dense
from sampling.outlook import grade_chances, label_classes, outlook

ERRORS = np.array([[0.9, 0.1], [0.2, 0.8]])
GAINS = np.array([0.0, 1.0])
N, N_TOPICS = 600, 20


def make_plan(*, probability=0.8, n_items=150.0, strategy="simple", errors=ERRORS, **changed):
    rng = np.random.default_rng(3)
    ranks = np.stack([rng.permutation(np.tile(np.arange(1, 31), N_TOPICS)) for _ in range(3)])
    weights = 1 / np.log2(ranks + 1.0) / N_TOPICS
    prior = np.clip(1 / (1 + ranks.mean(axis=0) / 8), 0.05, 0.8)
    judging = AuditPlay(
        draw_probability=np.full(N, probability),
        contrast=np.abs(weights[0] - weights[1]),
        topic_index=np.repeat(np.arange(N_TOPICS), N // N_TOPICS),
        chances=grade_chances(prior, 2, 1),
        errors=errors,
        gains=GAINS,
        n_labels=1,
    )
    given = {
        "judging": judging,
        "places": np.arange(N),
        "runs": from_dense(weights),
        "comparisons": ((0, 1),),
        "gains": GAINS,
        "ranks": from_dense(ranks),
        "depth": 30,
        "prior": prior,
        "score": None,
        "n_assessors": 5,
        "strategy": strategy,
        "n_items": n_items,
    }
    return CampaignPlan(**given | changed)


def closed_form(plan, *, with_audit=True):
    weights = plan.runs.dense()
    audit = plan.n_items / (plan.judging.draw_probability.sum())
    return outlook(
        np.square(weights[0] - weights[1]),
        plan.judging.draw_probability,
        plan.judging.chances,
        classes=label_classes(plan.judging.errors, 1),
        gains=GAINS,
        audit_probability=np.full(N, audit if with_audit else 1.0),
    )


def test_plays_agree_with_the_closed_form_where_it_holds_and_not_with_the_drawing_alone():
    """Many documents, an even audit, few and independent errors: what the closed form leaves out is small."""
    plan = make_plan()
    found = played_widths(plan, 1, 12)
    expected = closed_form(plan)
    assert found.median == pytest.approx(expected.half_width, rel=0.2)
    assert found.drawing_share == pytest.approx(expected.drawing_share, abs=0.15)
    assert found.median > 1.4 * closed_form(plan, with_audit=False).half_width


def test_more_gold_and_better_labels_narrow_it():
    usual = played_widths(make_plan(), 1, 8).median
    assert played_widths(make_plan(n_items=300.0), 1, 8).median < usual
    better = np.array([[0.99, 0.01], [0.02, 0.98]])
    assert played_widths(make_plan(errors=better), 1, 8).median < usual


def test_gold_assessors_leave_the_drawing():
    plan = make_plan(n_items=None)
    found = played_widths(plan, 1, 8)
    assert found.drawing_share == 1
    alone = closed_form(make_plan(), with_audit=False)
    assert found.median == pytest.approx(alone.half_width, rel=0.2)


def test_the_same_seed_gives_the_same_plays_and_another_seed_others():
    plan = make_plan()
    assert played_widths(plan, 1, 8) == played_widths(plan, 1, 8)
    assert played_widths(plan, 1, 8).half_widths != played_widths(plan, 2, 8).half_widths


def test_documents_that_cannot_be_drawn_change_nothing():
    """They stand between the others in the tables, with weights and ranks that nobody looks at."""
    plan = make_plan()
    places = 2 * np.arange(N) + 1
    weights, ranks = np.full((3, 2 * N + 1), 0.9), np.full((3, 2 * N + 1), 4)
    weights[:, places], ranks[:, places] = plan.runs.dense(), plan.ranks.dense()
    wide = replace(plan, places=places, runs=from_dense(weights), ranks=from_dense(ranks))
    assert played_widths(wide, 1, 8) == played_widths(plan, 1, 8)
    moved = replace(wide, places=places - 1)  # looked at, they do
    assert played_widths(moved, 1, 8) != played_widths(plan, 1, 8)


def test_of_a_draw_that_is_known_only_what_was_drawn_is_played():
    drawn = np.arange(N) < 300
    plan = make_plan(probability=0.5, drawn=drawn)
    other = plan.judging.contrast.copy()
    other[~drawn] = 0.0
    assert played_widths(plan, 1, 8) == played_widths(
        replace(plan, judging=replace(plan.judging, contrast=other)), 1, 8
    )


def test_of_several_comparisons_it_is_the_root_of_their_mean_square():
    both = played_widths(make_plan(comparisons=((0, 1), (0, 2))), 1, 8)
    first, second = (played_widths(make_plan(comparisons=(one,)), 1, 8) for one in ((0, 1), (0, 2)))
    pairs = zip(first.half_widths, second.half_widths, strict=True)
    assert both.half_widths == pytest.approx([np.sqrt((a**2 + b**2) / 2) for a, b in pairs])


def test_imported_scores_are_part_of_the_predictions():
    truthful = np.where(make_plan().judging.chances[:, 1] > 0.4, 0.95, 0.05)
    assert played_widths(make_plan(score=truthful), 1, 8) != played_widths(make_plan(), 1, 8)


def test_an_audit_that_gives_no_interval_is_a_refusal():
    found = played_widths(make_plan(n_items=4.0), 1, 8)
    assert isinstance(found, Refusal)
    assert "at least 10 are needed" in found.reason
    nothing = played_widths(make_plan(drawn=np.zeros(N, dtype=bool)), 1, 8)
    assert nothing.reason == "no document is drawn"
