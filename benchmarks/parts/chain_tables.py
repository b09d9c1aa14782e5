"""What came out of benchmarks/chain.py: coverage, errors and widths of the stored intervals, by measure and method."""

import math
from collections import defaultdict
from typing import Any

import numpy as np
from parts.two_routes import ROUTES, compared

Row = tuple[
    str, str, str, str, bool, float, float, float, bool
]  # measure, method, run, run_b, at hand, numbers


def tally(rows: list[Row], truth: dict[tuple[str, str, str], float]) -> dict[str, float | int]:
    """Return coverage with its standard error, errors, half-width, surely wrong signs, and refusals."""
    given = [row for row in rows if not row[8]]
    n = max(1, len(given))
    true = np.array([truth[row[0], row[2], row[3]] for row in given])
    value, low, high = (np.array([row[column] for row in given], dtype=float) for column in (5, 6, 7))
    inside = float(((low <= true) & (true <= high)).sum()) / n
    errors = value - true
    return {
        "n": len(given),
        "refused": len(rows) - len(given),
        "coverage": round(inside, 4),
        "coverage_se": round(math.sqrt(inside * (1 - inside) / n), 4),
        "bias": round(float(errors.sum()) / n, 5),
        "bias_se": round(float(errors.std(ddof=1)) / math.sqrt(n), 5) if len(given) > 1 else 0.0,
        "rmse": round(math.sqrt(float((errors**2).sum()) / n), 5),
        "mean_half_width": round(float((high - low).sum()) / 2 / n, 5),
        "surely_wrong_sign": round(
            float((((low > 0) & (true < 0)) | ((high < 0) & (true > 0))).sum()) / n, 4
        ),
    }


def summary(estimates: list[list[Row]], truth: dict[tuple[str, str, str], float]) -> dict[str, Any]:
    """Return per measure and method the tallies of the pair at hand, all pairs and single runs.

    All pairs: the tally over all pairs and repetitions (one repetition's are not independent, so no standard error),
    with the coverage of the worst single pair. The stored true values must be the ones this program knows.
    """
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    known = {measure for measure, *_ in truth}
    for rows in estimates:
        for row in rows:
            if row[0] in known:
                groups[row[0], row[1]].append(row)
    result: dict[str, Any] = {}
    for (measure, method), rows in sorted(groups.items()):
        if method == "true":
            wrong = [row for row in rows if abs(row[5] - truth[row[0], row[2], row[3]]) > 1e-9]
            if wrong:
                raise RuntimeError(f"stored true values differ from the truth, first: {wrong[0]}")
            continue
        pairs = [row for row in rows if row[3]]
        everything = tally(pairs, truth)
        del everything["coverage_se"], everything["bias_se"]
        by_pair = defaultdict(list)
        for row in pairs:
            by_pair[row[2], row[3]].append(row)
        everything["worst_pair_coverage"] = min(
            (tally(rows_of, truth)["coverage"] for rows_of in by_pair.values()), default=0
        )
        result.setdefault(measure, {})[method] = {
            "pair_at_hand": tally([row for row in pairs if row[4]], truth),
            "all_pairs": everything,
            "runs": tally([row for row in rows if not row[3]], truth),
        }
    return result


def by_routes(noise: str, found: dict[str, Any], told: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return both routes' numbers, the share of campaigns whose pair has each of them, and the widths compared."""
    each = {route: found[f"{noise} {route}"] for route in ROUTES}
    of_pair = {
        route: {name: round(float(np.mean([one[name] for one in rows])), 3) for name in rows[0]}
        for route in ROUTES
        if (rows := told[f"{noise} {route}"])
    }
    return {"audit_to_score": compared(each), "given": of_pair, **each}
