"""Topics like these: the wider of two intervals, the larger of two p, and p adjusted in the declared family.

Part of every release, beside verify.py; NumPy is all it needs. Of z, the values of topics, d is the mean and S^2 the
variance; h_F and p_F are the half-width and the p for these topics, t0 the .975 quantile of t with n - 1:

    h = max(t0 S/sqrt(n), h_F)        p = max(p of t = d sqrt(n)/S with n - 1, p_F)
"""

import math
from typing import Any

if __package__:
    from analytics.releases.verify_estimates import p_value
    from analytics.releases.verify_quantiles import t95, t_tail
    from analytics.releases.verify_ranges import BESIDE, ENDS, OUTSIDE, nearest_zero, with_room, within_range
else:  # in a release, the files lie beside each other
    from verify_estimates import p_value  # type: ignore
    from verify_quantiles import t95, t_tail  # type: ignore
    from verify_ranges import BESIDE, ENDS, OUTSIDE, nearest_zero, with_room, within_range  # type: ignore

Row = dict[str, Any]
NEAR_ZERO = 1e-12  # of values and limits, whose parts may cancel, and of standard errors left by rounding
POSITIVE = (
    "standard_error", "topics_standard_error", "degrees_of_freedom", "p_value", "n", "topics_p_value",
    "topics_degrees_of_freedom",
)  # fmt: skip
ERRORS = ("standard_error", "topics_standard_error")
ALMOST = 1e-9  # of a half-width: two sides that are equal but for rounding


def like_these(row: Row, *, is_older: bool) -> Row:
    """Return the row with its numbers for topics like these, from `over_topics`: value, standard error and n - 1.

    In older releases the larger of two standard errors is multiplied by t0, there is no p, and of ratios there is
    nothing.
    """
    found = None if is_older and row.get("kind") == "ratio" else row.get("over_topics")
    if found is None:
        is_same = row["n"] == 0 and row.get("standard_error") == 0 and "p_value" in row
        return row | {"topics_p_value": row["p_value"]} if is_same and not is_older else row
    value, error, df = found
    if is_older:
        error = max(error, row["standard_error"])
        half = t95(df) * error
        return row | {
            "topics_standard_error": error,
            "topics_low": value - half,
            "topics_high": value + half,
        }
    half, judging = t95(df) * error, (row["high"] - row["low"]) / 2
    if half < judging * (1 - ALMOST):
        sides: Row = {
            "topics_standard_error": row["standard_error"],
            "topics_degrees_of_freedom": row["degrees_of_freedom"],
        }
    else:
        sides = {"topics_standard_error": error, "topics_degrees_of_freedom": float(df)}
    half = max(half, judging)
    sides |= {"topics_low": value - half, "topics_high": value + half}
    if "p_value" in row:
        sides["topics_p_value"] = max(
            2 * t_tail(df, abs(nearest_zero(row | {"value": value})) / error), row["p_value"]
        )
    return row | sides


def compare_estimate(row: Row, again: Row, report: Any) -> None:
    """Compare all numbers of one estimate; a refusal must be one again."""
    both = " - ".join(filter(None, (row["run"], row["run_b"])))
    where = f"estimates.json {row['measure']} {row['method']} {both}"
    if "refused" in again or row["value"] is None:
        report.compare("refusals", f"{where}: refused", row["value"] is None, "refused" in again)
        return
    if row["method"] == "corrected":
        exact = dict.fromkeys(("always_low", "always_high"), again["value"])
        again = exact | again if again["standard_error"] == 0 else again
        if row["run_b"]:
            again["p_value"] = p_value(again)
    again = with_room(like_these(again, is_older=again["is_older"]))
    if "largest" in again:
        again = within_range(again, again["largest"], is_pair=bool(row["run_b"]))
    for name in (*ENDS, *POSITIVE, *OUTSIDE, *(BESIDE if "largest" in again else ())):
        near_zero = NEAR_ZERO if name in (*ENDS, *BESIDE, *OUTSIDE, *ERRORS) else 0.0
        report.compare("numbers of estimates", f"{where} {name}", row.get(name), again.get(name), near_zero)
    recorded, parts = row["components"], again["components"]
    report.compare("numbers of estimates", f"{where} components", sorted(recorded), sorted(parts))
    for name in recorded.keys() & parts.keys():
        given = (recorded[name], parts[name], NEAR_ZERO**2)  # variances
        report.compare("numbers of estimates", f"{where} components {name}", *given)


def holm(p_values: list[float]) -> list[float]:
    """Return the p-values adjusted for all of them, in the order given: Holm (1979)."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    adjusted, most = [math.nan] * len(p_values), 0.0
    for number, place in enumerate(order):
        most = max(most, min(1.0, p_values[place] * (len(p_values) - number)))
        adjusted[place] = most
    return adjusted


def check_comparisons(told: Row, estimates: list[Row], report: Any) -> None:
    """Compare every p of comparisons.json with that of the estimates, and as adjusted in the family again."""
    family = told["family"]
    if family is None:
        report.compare("comparisons", "comparisons.json comparisons", told["comparisons"], [])
        return
    firsts = [family["baseline"]] if family["baseline"] else family["runs"]
    pairs = {frozenset((a, b)) for a in firsts for b in family["runs"] if a != b}
    tested = [
        row
        for row in estimates
        if row["method"] == "corrected"
        and row["p_value"] is not None
        and frozenset((row["run"], row["run_b"])) in pairs
    ]
    recorded = {(row["measure"], row["run"], row["run_b"]): row for row in told["comparisons"]}
    keys = sorted((row["measure"], row["run"], row["run_b"]) for row in tested)
    report.compare(
        "comparisons", "comparisons.json pairs", sorted(map(list, recorded)), list(map(list, keys))
    )
    for claim, column in (("these-topics", "p_value"), ("topics-like-these", "topics_p_value")):
        for measure in sorted({row["measure"] for row in tested}):
            own = [row for row in tested if row["measure"] == measure]
            known = [row for row in own if row[column] is not None]
            again = dict(zip(map(_key, known), holm([row[column] for row in known]), strict=True))
            for row in own:
                one = recorded.get(_key(row), {}).get(claim, {})
                where = f"comparisons.json {measure} {claim} {row['run']} - {row['run_b']}"
                report.compare("comparisons", f"{where} p", one.get("p"), row[column])
                report.compare(
                    "comparisons", f"{where} p_adjusted", one.get("p_adjusted"), again.get(_key(row))
                )


def _key(row: Row) -> tuple[str, str, str]:
    return row["measure"], row["run"], row["run_b"]
