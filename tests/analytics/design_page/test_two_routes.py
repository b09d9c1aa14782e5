"""The design page forecasts both ways to use a machine's labels: as scores, or as judgments with an audit."""

import math

import numpy as np
import pytest
from design_campaign import PAIR, add_scores
from small_campaign import N_FRAME, judge_all, make_assessor, returned

from judging.models import ScoreList
from judging.services.campaigns import open_campaign
from sampling.questions import Design
from sampling.services.drawing import draw
from sampling.services.forecasting import preview
from sampling.services.population import population_of

SCORED = {"prior": "scores", "scores": "model", "sensitivity": 65, "specificity": 85}
BY_SCORES = Design("pair", ("run0", "run2"), "DCG@10", 10, 20, prior="scores", scores="model")
HEADING = "Two ways to use these scores"


def audit_by_influence(sizes, count, even=0.2):
    """Return the chances by the definition: an even fifth, the rest by size; what is above 1 goes to the others."""
    part = even / sizes.size + (1 - even) * sizes / sizes.sum()
    certain = np.zeros(sizes.size, dtype=bool)
    while True:
        rest = np.where(certain, 0.0, part)
        chance = np.where(certain, 1.0, (count - certain.sum()) * rest / rest.sum())
        if (chance <= 1).all():
            return chance
        certain |= chance > 1


@pytest.mark.django_db
def test_the_audit_is_forecast_from_what_the_scores_leave_open(campaign):
    add_scores(campaign.collection)
    found = preview(campaign=campaign, design=BY_SCORES)
    population = population_of(campaign, BY_SCORES)
    first, second = returned(0), returned(2)
    pairs = list(population.pairs.select("topic_id", "doc_id").iter_rows())

    def weight(ranks, pair):
        return 1 / math.log2(1 + ranks[pair]) / 3 if pair in ranks else 0.0

    w = np.array([abs(weight(first, pair) - weight(second, pair)) for pair in pairs])
    p = population.design_prior
    chance = audit_by_influence(w, 20)
    variance = (
        (1 - chance) / chance * w**2 * 2.0**2 * p * (1 - p)
    ).sum()  # the mean gain of grades 1 to 3 is 2
    assert found.audit_half_width == pytest.approx(1.959964 * math.sqrt(variance), rel=1e-5)
    by_score = found.widths["default"][found.budgets.index(20)]
    assert 0.5 < by_score / found.audit_half_width < 1  # the draw also goes by the scores, the audit does not


def test_the_page_shows_both_widths(page, campaign):
    add_scores(campaign.collection)
    found = preview(campaign=campaign, design=BY_SCORES)
    text = page(campaign, **PAIR | SCORED)
    assert HEADING in text
    table = text[text.index(HEADING) :]
    assert f"{found.audit_half_width:.3f}" in table
    assert f"{found.widths['default'][found.budgets.index(20)]:.3f}" in table
    assert f"all {N_FRAME} pooled documents" in table


def test_without_scores_nothing_is_said(page, campaign):
    add_scores(campaign.collection)
    assert HEADING not in page(campaign, **PAIR)
    assert (
        preview(campaign=campaign, design=Design("pair", ("run0", "run2"), "DCG@10", 10, 20)).audit_half_width
        is None
    )


def test_scores_of_a_part_of_the_pool_forecast_no_audit(page, campaign, monkeypatch):
    add_scores(campaign.collection)
    monkeypatch.setattr(
        "sampling.services.population.imported_scores",
        lambda campaign, design, pooled: np.where(np.arange(N_FRAME) == 3, np.nan, 0.4),
    )
    assert preview(campaign=campaign, design=BY_SCORES).audit_half_width is None
    assert HEADING not in page(campaign, **PAIR | SCORED)
    assert ScoreList.objects.count() == 1


def test_a_top_up_has_taken_its_way_already(page, campaign):
    add_scores(campaign.collection)
    draw(campaign=campaign, design=BY_SCORES, seed=3)
    open_campaign(campaign=campaign, actor=None)
    judge_all(campaign, [make_assessor(campaign, name) for name in ("ann", "ben", "cleo")])
    assert HEADING not in page(campaign, **PAIR | SCORED | {"budget": 30})
