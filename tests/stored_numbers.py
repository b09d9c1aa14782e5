"""Computations whose numbers a test stores itself."""

import numpy as np

from analytics.models import Computation, Estimate
from judging.models import Run


def add_runs(campaign, n):
    """Give the collection n more runs, without rankings: these tests store their numbers themselves."""
    runs = [
        Run(
            collection=campaign.collection,
            run_id=f"system{place:03d}",
            rankings="none",
            n_topics=3,
            n_lines=30,
        )
        for place in range(n)
    ]
    return Run.objects.bulk_create(runs)


def like_these(low, high, error):
    """Return the same numbers for topics like these."""
    freedom = {"topics_standard_error": error, "topics_degrees_of_freedom": 1e6}
    return {"topics_low": low, "topics_high": high, **freedom}


def store(campaign, values, *, error=0.01, pair_error=0.01, runs=None, measure="DCG@10", p_values=None):
    """Store a computation in which run i has values[i], and every pair the difference with p by its distance."""
    runs = list(campaign.collection.runs.order_by("pk")) if runs is None else runs
    made = Computation.objects.create(
        campaign=campaign,
        last_judgment_id=1234,
        n_judgments=84,
        n_items=42,
        n_audited=30,
        n_gold_checks=0,
        seconds=1,
    )
    rows = []
    for method in ("naive", "corrected"):
        shared = {"computation": made, "measure": measure, "method": method, "n": 60}
        for run, value in zip(runs, values, strict=True):
            low, high = value - 1.96 * error, value + 1.96 * error
            rows.append(
                Estimate(
                    **shared,
                    **like_these(low, high, error),
                    run=run,
                    value=value,
                    low=low,
                    high=high,
                    standard_error=error,
                    sources=["gold"],
                )
            )
        for a, b in zip(*np.triu_indices(len(runs), 1), strict=True):
            difference = values[a] - values[b]
            low, high = difference - 1.96 * pair_error, difference + 1.96 * pair_error
            p = (p_values or {}).get((a, b), 1e-9 if low > 0 or high < 0 else 0.5)
            rows.append(
                Estimate(
                    **shared,
                    **like_these(low, high, pair_error),
                    topics_p_value=p if method == "corrected" else None,
                    run=runs[a],
                    run_b=runs[b],
                    value=difference,
                    low=low,
                    high=high,
                    standard_error=pair_error,
                    p_value=p if method == "corrected" else None,
                )
            )
    Estimate.objects.bulk_create(rows)
    return made
