"""What to buy next: labels, gold, or both."""

import math
from collections.abc import Mapping
from typing import Any

import polars as pl

from analytics.estimation.claims import LIKE_THESE
from analytics.estimation.estimate import Refusal, quantile95
from analytics.planning.purchases import next_purchase
from touchstone_ir.columns import InputRefused
from touchstone_ir.results import Result

NO_COMPONENTS = "nothing can be planned without gold: only with it is it known what labels and gold are worth"


def plan(
    result: Result,
    *,
    half_width: float | None = None,
    budget: float | None = None,
    cost_label: float = 1,
    cost_gold: float = 10,
) -> Result:
    """Return what to buy, for every row of a result, for a narrower interval.

    Either the cheapest purchase that gives half of the 95 % confidence interval, or the one of the narrowest interval
    for a budget. A forecast by simple random samples of documents: see `analytics.planning.purchases`.

    Parameters
    ----------
    result : Result
        Of `estimate` or `compare`, with gold.
    half_width, budget : float
        Exactly one of them, above 0; a budget is in the unit of the costs.
    cost_label, cost_gold : float
        Of one more of either, above 0.

    Raises
    ------
    InputRefused, ValueError
        Neither or both of half_width and budget; a result of another kind.
    """
    if "drawing_variance" not in result.frame.columns:
        raise InputRefused(f"a plan needs a result of estimate or compare, got one of {result.kind}")
    if (half_width is None) == (budget is None):
        raise InputRefused(f"exactly one of half_width and budget is needed, got {half_width} and {budget}")
    wanted = {"half_width": half_width, "budget": budget}
    rows = [_row(result, row, wanted, cost_label, cost_gold) for row in result.frame.iter_rows(named=True)]
    return Result("plan", pl.DataFrame(rows, infer_schema_length=None), result.claim, "", result.n_topics)


def _row(
    result: Result,
    row: Mapping[str, Any],
    wanted: Mapping[str, float | None],
    cost_label: float,
    cost_gold: float,
) -> dict[str, Any]:
    found = _purchase(result, row, wanted, cost_label, cost_gold)
    about = {name: row[name] for name in ("measure", "run", "against") if name in row}
    names = ("judgments", "gold", "cost", "half_width", "half_width_now")
    if isinstance(found, Refusal):
        return {**about, **dict.fromkeys(names), "refusal": found.reason}
    return {**about, **{name: getattr(found, name) for name in names}, "refusal": ""}


def _purchase(
    result: Result,
    row: Mapping[str, Any],
    wanted: Mapping[str, float | None],
    cost_label: float,
    cost_gold: float,
) -> Any:
    if row["value"] is None or row["standard_error"] is None:
        return Refusal(row["refusal"])
    drawing, gold = row["drawing_variance"], row["gold_variance"]
    if gold is None or not row["n_gold"]:
        return Refusal(NO_COMPONENTS)
    drawing = drawing or 0.0
    whole = row["standard_error"] ** 2
    # What the choice of topics adds no purchase of documents changes.
    fixed = max(0.0, whole - drawing - gold) if result.claim == LIKE_THESE.key else 0.0
    df = row["degrees_of_freedom"]
    n_judged = max(int(row["n_judged"]), int(row["n_gold"]))
    return next_purchase(
        drawing,
        gold,
        n_judged,
        int(row["n_gold"]),
        cost_label,
        cost_gold,
        frame_size=max(n_judged, int(row["n_pairs"])) if drawing else n_judged,
        fixed_variance=fixed,
        quantile=quantile95(None if df is None or not math.isfinite(df) else df),
        half_width=wanted["half_width"],
        budget=wanted["budget"],
    )
