"""`manage.py evaluate --against`: the differences of runs in a release, as JSON and as a table."""

from collections.abc import Sequence
from typing import Any

from analytics.estimation.wording import ClaimTest, PairComparison, p_words, sentence

COLUMNS = (
    "measure",
    "run",
    "against",
    "difference",
    "95 % confidence interval",
    "p",
    "p adjusted",
    "significant",
)
NUMBERS = (
    "low", "high", "t", "degrees_of_freedom", "p", "p_adjusted", "p_randomisation", "between_topics", "significant",
    "effect_size", "effect_size_refusal", "refusal", "warning",
)  # fmt: skip


# -- what is written ---------------------------------------------------------------------------------------------


def difference_json(found: Sequence[PairComparison]) -> list[dict[str, Any]]:
    """Return the comparisons with the numbers of both claims, and the sentence."""
    return [
        {
            "measure": one.measure,
            "run": one.run,
            "against": one.run_b,
            "value": one.value,
            **_numbers(one.test),
            "family": one.family,
            "n_family": one.n_family,
            "adjustment": one.adjustment,
            "other": _numbers(one.other),
            "verdict": sentence(one),
        }
        for one in found
    ]


def _numbers(test: ClaimTest) -> dict[str, Any]:
    return {"claim": test.claim.key, **{name: getattr(test, name) for name in NUMBERS}}


def difference_table(found: Sequence[PairComparison], places: int) -> str:
    """Return a line a comparison, and the sentences below."""
    rows = [COLUMNS, *(_line(one, places) for one in found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return "\n".join([*lines, "", *map(sentence, found)])


def _line(one: PairComparison, places: int) -> tuple[str, ...]:
    test = one.test
    known = (
        "-" if test.low is None or test.high is None else f"{test.low:.{places}f} to {test.high:.{places}f}"
    )
    value = "-" if one.value is None else f"{one.value:+.{places}f}"
    p, adjusted = (
        "-" if p is None else p_words(p).removeprefix("p ").removeprefix("= ")
        for p in (test.p, test.p_adjusted)
    )
    return one.measure, one.run, one.run_b, value, known, p, adjusted, "yes" if one.higher else "no"
