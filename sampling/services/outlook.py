"""What a campaign's corrected number is expected to be worth: its planned audit, played on a draw to come or made."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judging.models import Campaign
from sampling.arrays import FloatArray
from sampling.audit_plays import AuditPlay
from sampling.judged import question_influence
from sampling.measures.families import weights_of_runs
from sampling.measures.kinds import Linear
from sampling.models import Audit, AuditSchedule, AuditTier
from sampling.outlook import LabelErrors, grade_chances, label_classes, outlook
from sampling.services.population import Population

SEED = 20  # of the plays: the same forecast at every look
NO_AUDIT = "There will be no corrected number: no audit is planned"
OUT_OF_REACH = "No corrected number can be expected: some documents that affect the question cannot be drawn"
WITH_REPLACEMENT = "The corrected number is not forecast for draws with replacement"
WHOLE_TOPICS = "The corrected number is not forecast where whole topics are drawn"
RATIO = "The corrected number is not forecast where the question is about a ratio"
ONE_CONTRAST = ("pair", "system", "ranking")  # here audits go by the contrast that the draw goes by


@dataclass(frozen=True)
class PlannedAudit:
    """How many items the audits of the gold tier are to select in all, by which strategy; None: gold judges judge."""

    strategy: str
    n_items: float | None


def planned_audit(campaign: Campaign) -> PlannedAudit | None:
    """Return the audits that are planned or made, None where there are none."""
    if set(campaign.assessors.values_list("tier", flat=True).distinct()) == {AuditTier.GOLD.value}:
        return PlannedAudit("", None)
    schedule = AuditSchedule.objects.filter(campaign=campaign, tier=AuditTier.GOLD, is_active=True).first()
    made = Audit.objects.filter(campaign=campaign, tier=AuditTier.GOLD, declaration="")
    newest = made.order_by("-sequence").first()
    if schedule is None and newest is None:
        return None
    strategy = schedule.strategy if schedule else newest.strategy if newest else ""
    sizes = (float(schedule.items_in_total) if schedule else 0.0, newest.expected_in_total if newest else 0.0)
    return PlannedAudit(strategy, max(sizes))


@dataclass(frozen=True, eq=False)
class ExpectedDraw:
    """The documents that a draw can select, as the audit will see them; `contrast` is of the campaign's question."""

    probability: FloatArray
    contrast: FloatArray
    topic_index: NDArray[np.int64]
    prior: FloatArray
    drawn: NDArray[np.bool_] | None = None  # once that is known


def design_outlook(population: Population, probability: FloatArray, errors: LabelErrors) -> dict[str, Any]:
    """Return what is expected of the corrected number of a design with these probabilities, as JSON."""
    if population.design.selection_kind.with_replacement:
        return no_outlook(WITH_REPLACEMENT)
    if not isinstance(population.measure.kind, Linear):
        return no_outlook(RATIO)
    expected = ExpectedDraw(
        probability,
        _contrast(population),
        np.asarray(population.pooled.topic_index, dtype=np.int64),
        population.design_prior,
    )
    return corrected_outlook(
        population.campaign,
        expected,
        population.says.squared_contrast,
        gains=(population.gains, population.gains),
        relevant=population.relevant_grade,
        errors=errors,
    )


def _contrast(population: Population) -> FloatArray:
    if population.design.question in ONE_CONTRAST:
        return np.sqrt(population.says.squared_contrast)
    weights = weights_of_runs(population.measure, population.pooled.returned, len(population.topics))
    own = weights if population.design.question == "pool" else weights.rows(population.rows)
    return question_influence(own, np.ones(population.n_items))


def corrected_outlook(
    campaign: Campaign,
    expected: ExpectedDraw,
    squares: FloatArray,
    *,
    gains: Sequence[FloatArray],
    relevant: int,
    errors: LabelErrors,
) -> dict[str, Any]:
    """Return half-width, shares of the variance, size of the audit and origin of the errors, or why there is none.

    `gains` are those of the number that is forecast, and those of the campaign's question, which audits go by.
    """
    plan = planned_audit(campaign)
    if plan is None:
        return no_outlook(NO_AUDIT)
    own, asked = gains
    chances = grade_chances(expected.prior, own.size, relevant)
    n_labels = campaign.judgments_per_item
    can = expected.probability > 0
    audit = np.ones(can.size)
    if plan.n_items is not None:
        play = AuditPlay(
            expected.probability[can],
            expected.contrast[can],
            expected.topic_index[can],
            chances[can],
            errors.matrix,
            asked,
            n_labels,
        )
        drawn = None if expected.drawn is None else expected.drawn[can]
        audit[can] = play.audit_probabilities(
            plan.strategy, plan.n_items, np.random.default_rng(SEED), drawn=drawn
        )
    found = outlook(
        squares,
        expected.probability,
        chances,
        classes=label_classes(errors.matrix, n_labels),
        gains=own,
        audit_probability=audit,
        drawn=expected.drawn,
    )
    if found.half_width is None:
        return no_outlook(OUT_OF_REACH)
    n_judged = float(expected.probability.sum() if expected.drawn is None else expected.drawn.sum())
    is_by_gold = plan.n_items is None
    return {
        "half_width": found.half_width,
        "shares": found.shares(),
        "n_gold": None if plan.n_items is None else min(plan.n_items, n_judged),
        "errors_from": "none, gold assessors judge all" if is_by_gold else errors.origin,
        "is_assumed": errors.is_assumed and not is_by_gold,
        "refusal": "",
    }


def no_outlook(why: str) -> dict[str, Any]:
    return {
        "half_width": None,
        "shares": {},
        "n_gold": None,
        "errors_from": "",
        "is_assumed": False,
        "refusal": why,
    }
