"""What the papers' formulas would ask for: topics and gold labels for a new evaluation of two runs (P@k)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from analytics.methods import NAIVE, REPORTED
from analytics.models import Computation, ConfusionEstimate
from analytics.planning.planner import PLANS, Plan, difference_plans
from judging.models import Campaign
from sampling.frames import newest_draw
from sampling.measures.registry import parse_linear

PER_TOPIC = ("independent audits", "shared audit")


@dataclass(frozen=True)
class PapersPlan:
    """A plan by a named method; or why there is none. A unit of bronze is a topic of one run, or a document."""

    name: str
    words: str
    unit: str
    plan: Plan


def papers_plans(
    *,
    campaign: Campaign,
    computation: Computation,
    measure: str,
    runs: tuple[str, str],
    difference: float,
    power: float,
    cost_judgment: float,
    cost_gold: float,
) -> list[PapersPlan] | str:
    """Return plans for that difference at that power, from the judges' pooled errors; or why there are none."""
    parsed = parse_linear(measure)
    if not parsed.binary or "" in runs:
        return "the papers plan a difference of two runs in P@k"
    known = _known_rates(campaign, computation, measure, runs)
    if isinstance(known, str):
        return known
    cost_document = cost_judgment * campaign.judgments_per_item
    given: dict[str, Any] = {**known, "cost_gold": cost_gold, "power": power}
    try:
        by_topic = difference_plans(difference, cost_bronze=cost_document * parsed.last_rank, **given)
        by_document = difference_plans(difference, cost_bronze=cost_document, **given)
    except ValueError as error:  # labels that say nothing, a share of 0 or 1
        return str(error)
    return [
        PapersPlan(name, words, "topics", by_topic[name])
        if name in PER_TOPIC
        else PapersPlan(name, words, "documents", by_document[name])
        for name, words in PLANS.items()
    ]


def _known_rates(
    campaign: Campaign, computation: Computation, measure: str, runs: tuple[str, str]
) -> dict[str, float] | str:
    """Return prevalence, sensitivity, specificity and the spread over topics, as the newest numbers have them."""
    pooled = computation.confusions.filter(scope=ConfusionEstimate.Scope.POOLED).first()
    if pooled is None:
        return "the assessors' errors are not known yet"
    relevant = parse_linear(measure).relevant_grade or campaign.scale.relevant_grade
    counts = np.array(pooled.counts, dtype=np.float64)
    of_relevant, of_others = counts[relevant:], counts[:relevant]
    if of_relevant.sum() <= 0 or of_others.sum() <= 0:
        return "gold labels of relevant and of other documents are needed"
    rows = computation.estimates.filter(
        measure=measure, run__run_id__in=runs, run_b=None, value__isnull=False
    )
    corrected: list[Any] = list(rows.filter(method=REPORTED.key).values_list("value", flat=True))
    naive = rows.filter(method=NAIVE.key, topics_standard_error__isnull=False)
    errors: list[Any] = list(naive.values_list("topics_standard_error", flat=True))
    draw = newest_draw(campaign)
    if len(corrected) < len(runs) or len(errors) < len(runs) or draw is None:
        return "both runs need a corrected number first"
    share = float(np.mean(corrected))
    if not 0 < share < 1:
        return f"no plan is possible for a share of {share:.2f} relevant documents"
    return {
        "prevalence": share,
        "sensitivity": float(of_relevant[:, relevant:].sum() / of_relevant.sum()),
        "specificity": float(of_others[:, :relevant].sum() / of_others.sum()),
        "topic_variance": float(np.mean(np.square(errors))) * len(draw.parameters["topics"]),
    }
