"""Part of benchmarks/forecasts.py: how far the obtained half-width itself varies where one campaign is repeated.

Of one pool and one draw's chances everything that chance decides is played again: what is drawn (for `reuse` it is
known), the labels, and the audit. Beside the product's forecast stands the best that any forecast could know, the
median of the repetitions themselves; and the forecast if relevance were as likely as it is, at every height of the
prior (twenty groups).
"""

from dataclasses import replace
from typing import Any

import numpy as np
from parts.coverage_collection import Floats
from parts.forecast_campaigns import AUDITED, RELEVANT, SEED, Drawing, Pool, judge

from analytics.estimation.estimate import Refusal
from analytics.planning.campaign_plays import played_widths
from sampling.outlook import LabelErrors, grade_chances

WITHIN, GROUPS = (0.7, 1.4), 20


def share_within(forecast: float, obtained: Floats) -> float:
    """Return how many obtained half-widths the forecast is .7 to 1.4 times as large as."""
    ratio = forecast / obtained
    return float(((ratio >= WITHIN[0]) & (ratio <= WITHIN[1])).mean())


def calibrated(pool: Pool) -> Floats:
    """Return the chances of grades [item, grade] with the share of relevant items in groups of like priors."""
    order = np.argsort(np.argsort(pool.prior, kind="stable"), kind="stable")
    group = order * GROUPS // pool.n_items
    share = np.bincount(group, pool.collection.grade > 0) / np.bincount(group)
    return grade_chances(share[group], pool.n_grades, RELEVANT)


def repeats(case: Any, chance: Floats, n_repeats: int) -> list[dict[str, Any]]:
    """Return a row a number: pair and first run before the draw, and another run once the draw is known."""
    numbers = {"pair": case.weights(0, 1), "run": case.weights(0), "reuse": case.weights(2)}
    known = case.drawing(chance, (0, 1))
    widths: dict[str, list[float]] = {name: [] for name in numbers}
    for number in range(n_repeats):
        drawing = case.drawing(chance, (0, 1)) if number else known
        done = judge(drawing, case.noise, case.votes, case.rng)
        both = done.widths(done.audit(AUDITED), [numbers["pair"], numbers["run"]], case.seed)
        again = judge(known, case.noise, case.votes, case.rng)
        other = again.widths(again.audit(AUDITED), [numbers["reuse"]], case.seed)
        for name, width in zip(numbers, (*both, *other), strict=True):
            widths[name].append(width)
    return [_row(case, known, name, w, np.array(widths[name])) for name, w in numbers.items()]


def _row(case: Any, known: Drawing, name: str, w: Floats, obtained: Floats) -> dict[str, Any]:
    obtained = obtained[np.isfinite(obtained)]
    median = float(np.median(obtained))
    low, high = np.quantile(obtained, (0.1, 0.9))
    chances = calibrated(case.pool)
    forecast = _forecast(known, case.measured, case.votes, w, is_known=name == "reuse")
    told = _forecast(known, case.measured, case.votes, w, is_known=name == "reuse", chances=chances)
    return {
        **case.about,
        "what": name,
        "repeats": obtained.size,
        "median": median,
        "high_over_low": float(high / low),
        "own_median_within": share_within(median, obtained),
        "forecast": forecast / median,
        "within": share_within(forecast, obtained),
        "calibrated": told / median,
    }


def _forecast(
    drawing: Drawing,
    errors: LabelErrors,
    votes: int,
    w: Floats,
    *,
    is_known: bool,
    chances: Floats | None = None,
) -> float:
    plan = drawing.plan(errors, votes, w, is_known=is_known)
    if chances is not None:
        plan = replace(plan, judging=replace(plan.judging, chances=chances))
    found = played_widths(plan, SEED)
    return float("nan") if isinstance(found, Refusal) else found.median


def repeats_table(rows: list[dict[str, Any]]) -> list[str]:
    """Return lines: medians over the campaigns, and mean shares."""
    lines = []
    for name in ("pair", "run", "reuse"):
        mine = [row for row in rows if row["what"] == name]
        middle = {
            key: float(np.nanmedian([row[key] for row in mine]))
            for key in ("high_over_low", "forecast", "calibrated")
        }
        shares = {key: float(np.mean([row[key] for row in mine])) for key in ("own_median_within", "within")}
        lines.append(
            f"{name:6} {len(mine)} campaigns: 90th over 10th percentile of the obtained {middle['high_over_low']:.1f}; "
            f"within .7 to 1.4: their own median {shares['own_median_within']:.0%}, forecast {shares['within']:.0%}; "
            f"forecast over their median {middle['forecast']:.2f}, if relevance were as likely as it is "
            f"{middle['calibrated']:.2f}"
        )
    return lines
