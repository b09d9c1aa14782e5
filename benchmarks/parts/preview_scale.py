"""Part of benchmarks/draw_scale.py: the preview of a design on a large pool, with and without the corrected number.

The product's own functions, but for the database: the campaign is one without a draw, and its audit is given.
"""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from parts.throwaway import set_up_django

BUDGET, AUDITED, N_ASSESSORS, LABELS = 3_000, 300, 5, 2
GAINS, RELEVANT = (0.0, 1.0, 2.0, 3.0), 1


def preview_seconds(folder: Path, measure: str, depth: int, question: str) -> dict[str, Any]:
    """Return the processor seconds from the stored runs to the preview, with its two parts, and their ratio."""
    set_up_django("postgres://nobody@127.0.0.1/nothing", "redis://127.0.0.1")
    from sampling.services import forecasting, outlook

    forecasting.newest_draw = lambda campaign: None  # type: ignore[assignment]
    outlook.planned_audit = lambda campaign: outlook.PlannedAudit("influence", AUDITED, N_ASSESSORS)
    started = time.process_time()
    population = _population(folder, measure, depth, question)
    pool = time.process_time() - started
    whole, shown = _preview(population)
    forecasting.design_outlook = lambda *_: outlook.no_outlook(outlook.NO_AUDIT)  # type: ignore[assignment]
    forecasting.design_widths = lambda *_: []
    alone, control = _preview(population)
    if shown.corrected["refusal"] or not all(shown.corrected_widths) or control.corrected_widths:
        raise RuntimeError(f"the preview is not the one to measure: {shown.corrected}")
    return {
        "pairs": population.n_items,
        "question": question,
        "budgets": len(shown.budgets),
        "pool_seconds": pool,
        "seconds": whole,
        "seconds_without": alone,
        "ratio": (pool + whole) / (pool + alone),
        "ratio_without_the_pool": whole / alone,
    }


def _preview(population: Any) -> tuple[float, Any]:
    from sampling.services.forecasting import preview

    started = time.process_time()
    found = preview(campaign=population.campaign, design=population.design, population=population)
    return time.process_time() - started, found


def _population(folder: Path, measure: str, depth: int, question: str) -> Any:
    """Return what `population_of` does, from stored runs."""
    from judging.rankings import read_rankings
    from sampling.contrasts import importance
    from sampling.measures.design_weights import PriorGrades, design_weights
    from sampling.measures.registry import parse_linear
    from sampling.pooling import pool_of_rankings
    from sampling.questions import Design, prior_of_runs
    from sampling.services.population import Population

    runs = [read_rankings(path) for path in sorted(folder.iterdir())]
    pooled = pool_of_rankings(runs, depth)
    topics, gains = list(pooled.topic_ids), np.array(GAINS)
    prior, parsed = prior_of_runs(pooled.returned, depth), parse_linear(measure)
    rows = list(range(len(runs))) if question == "ranking" else [0, 1]
    known = PriorGrades(pooled.topic_index, prior, gains[RELEVANT:])
    weights = design_weights(parsed, pooled.returned, len(topics), known)
    names = () if question == "ranking" else ("000", "001")
    return Population(
        campaign=SimpleNamespace(judgments_per_item=LABELS),  # type: ignore[arg-type]
        design=Design(question, names, measure, depth, BUDGET),
        runs=[],
        rows=rows,
        topics=topics,
        measure=parsed,
        pooled=pooled,
        prior=prior,
        score=None,
        calibration=None,
        design_prior=prior,
        gains=gains,
        relevant_grade=RELEVANT,
        relevant_gain=float(gains[RELEVANT:].mean()),
        weights=weights,
        says=importance(question, weights, rows),
    )
