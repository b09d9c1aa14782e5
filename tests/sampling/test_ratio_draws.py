"""Draws and audits of a small real campaign for nDCG, AP and R: sizes, batches, what is recorded and refused."""

import json
from copy import deepcopy

import numpy as np
import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction
from small_campaign import (
    DEPTH,
    N_FRAME,
    give,
    judge_all,
    judge_audit,
    make_assessor,
    make_campaign,
    make_undrawn,
    returned,
    slots,
    truth_of,
)

from judging.services.campaigns import open_campaign
from sampling.designs import inclusion_probabilities
from sampling.frames import load_frame
from sampling.judged import scale
from sampling.measures.ratio_derivative import derivative
from sampling.measures.registry import parse_measure
from sampling.measures.sparse import from_dense
from sampling.models import Audit, AuditEntry
from sampling.questions import Design
from sampling.services import learned_audits
from sampling.services.audit_schedules import save_schedule
from sampling.services.auditable import AuditRefused
from sampling.services.auditing import audit
from sampling.services.drawing import draw
from sampling.services.forecasting import preview
from sampling.services.population import DrawRefused

pytestmark = pytest.mark.django_db

AP = Design("pair", ("run0", "run2"), "AP@10", DEPTH, 20, other_runs_share=0.0, uniform_share=0.1)


@pytest.fixture
def undrawn(tmp_path):
    return make_undrawn(tmp_path)


def phi_of_frame(frame, name, runs):
    """Return phi [run, item] of a binary measure at the frame's prior, and the prior."""
    topic = frame["topic_id"].rank("dense").to_numpy().astype(int) - 1
    ranks = [
        [returned(run).get(pair, 0) for pair in frame.select("topic_id", "doc_id").iter_rows()]
        for run in runs
    ]
    prior = frame["prior"].to_numpy()
    at = derivative(parse_measure(name), from_dense(np.array(ranks)), topic, 3, prior[None], np.ones(1))
    return at.phi(topic, np.ones(1))[:, 0], prior


def test_sizes_follow_the_difference_of_the_derivatives(undrawn):
    made = draw(campaign=undrawn, design=AP, seed=20)
    assert made.parameters["measure"] == "AP@10"
    frame = load_frame(made)
    phi, prior = phi_of_frame(frame, "AP@10", (0, 2))
    contrast = np.abs(phi[0] - phi[1]) * np.sqrt(prior * (1 - prior))
    size = 0.9 * contrast / contrast.sum() + 0.1 / N_FRAME
    expected = inclusion_probabilities(size, 20)
    assert frame["batch_1"].to_numpy() == pytest.approx(expected, abs=1e-9)
    dcg = inclusion_probabilities(np.ones(N_FRAME), 20)
    assert frame["batch_1"].to_numpy() != pytest.approx(dcg, abs=0.05)


def test_the_forecast_is_that_of_the_derivatives_and_compares_no_method_of_the_paper(undrawn):
    shown = preview(campaign=undrawn, design=AP)
    assert set(shown.widths) == {"pool", "default"}
    frame = load_frame(draw(campaign=undrawn, design=AP, seed=20))
    phi, prior = phi_of_frame(frame, "AP@10", (0, 2))
    pi = frame["batch_1"].to_numpy()
    variance = ((1 - pi) / pi * (phi[0] - phi[1]) ** 2 * prior * (1 - prior)).sum()
    width = shown.widths["default"][shown.budgets.index(20)]
    assert width == pytest.approx(1.959964 * np.sqrt(variance), rel=1e-6)
    assert (shown.n_silent_topics, shown.limit) == (0, "")
    assert shown.mixture["n_runs"] == 3
    runs, _ = phi_of_frame(frame, "AP@10", (0, 1, 2))
    alone = 1.959964 * np.sqrt(((1 - pi) / pi * runs**2 * prior * (1 - prior)).sum(axis=1))
    assert shown.mixture["run_half_width"] == pytest.approx(np.median(alone), rel=1e-6)


@pytest.mark.parametrize("measure", ["nDCG@10", "R@5"])
@pytest.mark.parametrize("question", ["system", "baseline", "ranking", "pool"])
def test_every_question_can_be_asked(undrawn, measure, question):
    runs = {"system": ("run1",), "baseline": ("run0", "run1", "run2")}.get(question, ())
    shown = preview(campaign=undrawn, design=Design(question, runs, measure, DEPTH, 20))
    widths = shown.widths["default"]
    assert all(width > 0 for width in widths[:-1])
    assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize("selection", ["poisson", "pareto"])
def test_both_selections_without_replacement_serve(undrawn, selection):
    made = draw(
        campaign=undrawn, design=Design("pair", ("run0", "run2"), "nDCG@10", DEPTH, 21, selection=selection)
    )
    assert load_frame(made)["batch_1"].sum() == pytest.approx(21)


def test_a_cutoff_below_the_pool_and_runs_that_rank_alike_are_refused(undrawn):
    with pytest.raises(DrawRefused, match="must be at least 20, the cutoff of nDCG@20"):
        draw(campaign=undrawn, design=Design("pair", ("run0", "run2"), "nDCG@20", DEPTH, 20))
    with pytest.raises(DrawRefused, match="a measure of completely judged ranks, which a sample"):
        draw(campaign=undrawn, design=Design("pair", ("run0", "run2"), "ERR@10", DEPTH, 20))


def test_a_top_up_learns_and_keeps_what_was_drawn(undrawn):
    first = draw(campaign=undrawn, design=AP, seed=20)
    open_campaign(campaign=undrawn, actor=None)
    judge_all(undrawn, [make_assessor(undrawn, "ann"), make_assessor(undrawn, "ben")])
    more = Design(**{**AP.parameters(), "measure": "nDCG@10", "budget": 30, "prior": "judgments"})
    second = draw(campaign=undrawn, design=more)
    frame = load_frame(second)
    earlier = load_frame(first)["inclusion_probability"].to_numpy()
    own = frame["batch_2"].to_numpy()
    assert (own >= earlier - 1e-15).all()
    assert own.sum() == pytest.approx(30)
    assert second.learned_from == 1
    plain = Design(**{**more.parameters(), "prior": "runs"})
    assert preview(campaign=undrawn, design=plain).widths["default"]


# -- audits ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made_once(module_world, tmp_path_factory):
    campaign = make_campaign(tmp_path_factory.mktemp("world"), kind="pair")
    judge_all(campaign, [make_assessor(campaign, "ann"), make_assessor(campaign, "ben")])
    return campaign


@pytest.fixture
def judged(made_once, db):
    return deepcopy(made_once)


def probabilities(made):
    """Return the probabilities of an audit in frame order."""
    rows = AuditEntry.objects.filter(audit=made).order_by("item__topic__topic_id", "item__document__doc_id")
    return np.array(rows.values_list("inclusion_probability", flat=True))


def test_an_audit_by_influence_goes_by_the_derivatives_of_the_measure_asked_for(judged):
    made = audit(campaign=judged, items_each_time=12, items_in_total=12, measure="AP@10", seed=5)
    assert made.measure == "AP@10"
    phi, _ = phi_of_frame(load_frame(judged.draws.get()), "AP@10", (0, 2))
    size = scale(np.abs(phi[0] - phi[1]))
    expected = inclusion_probabilities(0.2 / N_FRAME + 0.8 * size / size.sum(), 12)
    assert probabilities(made) == pytest.approx(expected, abs=1e-9)


def test_without_a_measure_an_audit_goes_by_that_of_the_draw(judged, undrawn):
    assert audit(campaign=judged, items_each_time=12, items_in_total=12, seed=5).measure == "DCG@10"
    drawn = Design("pair", ("run0", "run2"), "R@5", DEPTH, N_FRAME)
    draw(campaign=undrawn, design=drawn, seed=20)
    open_campaign(campaign=undrawn, actor=None)
    judge_all(undrawn, [make_assessor(undrawn, "ann"), make_assessor(undrawn, "ben")])
    made = audit(campaign=undrawn, items_each_time=12, items_in_total=12, seed=5)
    assert made.measure == "R@5"
    same = audit(campaign=judged, items_each_time=12, items_in_total=24, measure="R@5")
    assert (probabilities(same) >= probabilities(made) - 1e-12).all()


def test_an_audit_that_learned_goes_by_the_same_contrast(judged, monkeypatch):
    monkeypatch.setattr(learned_audits, "FEWEST_GOLD", 20)
    audit(campaign=judged, items_each_time=20, items_in_total=42, measure="nDCG@10", seed=5)
    judge_audit(judged, make_assessor(judged, "greta", tier="gold"))
    asked = {"campaign": judged, "items_each_time": 10, "items_in_total": 42, "strategy": "learned"}
    with transaction.atomic():
        of_ratio = audit(**asked, measure="AP@10")
        found = probabilities(of_ratio)
        transaction.set_rollback(True)
    of_sum = probabilities(audit(**asked, measure="P@10"))
    assert of_ratio.learned_from == 1
    assert found.sum() == pytest.approx(of_sum.sum(), rel=0.05)
    assert np.abs(found - of_sum).max() > 0.05


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        ("ERR@10", "a measure of completely judged ranks"),
        ("nDCG@11", "nDCG@11 looks deeper than rank 10"),
        ("AP", "needs a cutoff"),
        ("P(rel=9)@10", "relevant grade must be within"),
        ("Quality@10", "measure family must be one of"),
    ],
)
def test_what_an_audit_cannot_go_by_is_refused(judged, measure, words):
    with pytest.raises(AuditRefused, match=words):
        audit(campaign=judged, items_each_time=12, items_in_total=12, measure=measure)
    with pytest.raises(AuditRefused, match=words):
        save_schedule(campaign=judged, actor=None, measure=measure)
    assert not Audit.objects.exists()


def test_a_schedule_keeps_a_measure_and_needs_a_draw_for_it(judged, undrawn):
    assert save_schedule(campaign=judged, actor=None, measure="MAP@10").measure == "AP@10"
    assert save_schedule(campaign=judged, actor=None, is_active=False).measure == "AP@10"
    with pytest.raises(AuditRefused, match="once there is a draw"):
        save_schedule(campaign=undrawn, actor=None, measure="nDCG@10")


def test_declared_gold_has_no_measure(judged):
    made = audit(campaign=judged, items_each_time=12, items_in_total=12, seed=5)
    row = {
        "campaign": judged,
        "tier": "gold",
        "seed": 1,
        "expected_in_total": 1,
        "n_eligible": 1,
        "n_selected": 1,
    }
    with pytest.raises(IntegrityError, match="sampling_audit_measure"), transaction.atomic():
        Audit.objects.create(**row, sequence=2, declaration="uniform", measure=made.measure)
    Audit.objects.create(**row, sequence=2, declaration="uniform")


def test_the_commands_take_these_measures(judged, capsys):
    call_command("audit", str(judged.pk), "--items", "9", "--measure", "nDCG@10")
    assert "(strategy influence for nDCG@10, 9.0 expected" in capsys.readouterr().out
    call_command("audit", str(judged.pk), "--items", "9", "--output", "json")
    assert json.loads(capsys.readouterr().out)["audit"]["measure"] == "DCG@10"
    assert slots(judged, "audit")
    give(
        make_assessor(judged, "greta", tier="gold"),
        slots(judged, "audit")[0],
        truth_of(slots(judged, "audit")[0]),
    )
    options = ["--question", "pair", "--runs", "run0", "run2", "--depth", "10", "--budget", "42"]
    call_command("draw", str(judged.pk), *options, "--measure", "nDCG@10", "--preview")
    assert "confidence interval in nDCG@10" in capsys.readouterr().out
