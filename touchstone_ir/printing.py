"""Results as text: a table for the terminal, sentences, CSV, and the tables of a paper."""

import io
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from analytics.estimation.wording import LEVEL, sentence
from analytics.tables import Difference, RunNumber, Terms, pairs_table, runs_table, table_format
from analytics.tables.marks import NO_MARKS
from judging.spreadsheets import SheetWriter
from touchstone_ir.columns import InputRefused
from touchstone_ir.results import CLAIM_WORDS, Result, pair_comparison

SHOWN = (
    "measure",
    "run",
    "against",
    "rank",
    "rank_low",
    "rank_high",
    "value",
    "low",
    "high",
    "p_adjusted",
    "verdict",
)
MOST_ROWS, MOST_SENTENCES = 40, 10


def text_table(frame: pl.DataFrame) -> str:
    """Return the first rows as an aligned table of what matters most."""
    names = [name for name in SHOWN if name in frame.columns and frame[name].null_count() < frame.height]
    names = names if {"measure", "value"} <= set(frame.columns) else list(frame.columns)
    names = [name for name in names if name != "verdict" or (frame["verdict"] != "").any()]
    rows = [[_cell(row[name]) for name in names] for row in frame.head(MOST_ROWS).iter_rows(named=True)]
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [names, *rows]
    ]
    left = frame.height - MOST_ROWS
    return "\n".join([*lines, f"... and {left} more rows"] if left > 0 else lines)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def sentences(result: Result) -> Iterator[str]:
    """Yield what is said of each row: of pairs as on the results pages, of runs the value with its interval."""
    if not {"measure", "run", "value"} <= set(result.frame.columns):  # agreement, and what to buy
        return
    for row in result.frame.head(MOST_SENTENCES).iter_rows(named=True):
        if row.get("against") is not None:
            yield sentence(pair_comparison(result, row))
        else:
            yield _run_sentence(row)


def _run_sentence(row: Mapping[str, Any]) -> str:
    name = f"{row['measure']} of {row['run']}"
    if row["value"] is None:
        return f"{name}: no number, {row['refusal']}."
    if row["low"] is None:
        words = f"{name} is {row['value']:.3f}; no interval: {row['refusal']}."
    else:
        words = (
            f"{name} is {row['value']:.3f} (95 % confidence interval {row['low']:.3f} to {row['high']:.3f})."
        )
    warning = row.get("warning") or ""
    return f"{words} {warning[0].upper()}{warning[1:]}." if warning else words


def csv_text(frame: pl.DataFrame) -> str:
    """Return all rows unrounded; a text that a spreadsheet would run gets an apostrophe."""
    target = io.StringIO()
    writer = SheetWriter(target)
    writer.writerow(frame.columns)
    for row in frame.iter_rows():
        writer.writerow(["" if cell is None else cell for cell in row])
    return target.getvalue()


def paper_tables(result: Result, key: str) -> str:
    """Return a table a measure, in a format of `analytics.tables`.

    Raises
    ------
    InputRefused
        A result that is no table of runs or pairs.
    """
    if not {"run", "value", "measure"} <= set(result.frame.columns):
        raise InputRefused(f"there is no such table of the kind {result.kind}")
    measures = result.frame["measure"].unique(maintain_order=True).to_list()
    return "\n".join(_paper_table(result, measure, key) for measure in measures)


def _paper_table(result: Result, measure: str, key: str) -> str:
    rows = result.frame.filter(pl.col("measure") == measure).to_dicts()
    n_tested = int(result.frame["p"].is_not_null().sum())
    terms = Terms(
        measure=measure,
        estimate="corrected" if any(row["n_gold"] for row in rows) else "grades as given",
        claim=CLAIM_WORDS[result.claim],
        test="two-sided test of the difference",
        adjustment=_adjustment(n_tested),
    )
    if rows and rows[0]["against"] is not None:
        table = pairs_table([_difference(row) for row in rows], terms)
    else:
        runs = [
            RunNumber(row["run"], row["value"], row["low"], row["high"], row["refusal"] or "") for row in rows
        ]
        table = runs_table(runs, [], terms, NO_MARKS)
    return table_format(key).write(table)


def _adjustment(n_tested: int) -> str:
    if n_tested > 1:
        return f"p adjusted by Holm over the {n_tested:,} comparisons of this result"
    return "one comparison" if n_tested else ""


def _difference(row: Mapping[str, Any]) -> Difference:
    is_significant = row["p_adjusted"] is not None and row["p_adjusted"] < LEVEL
    return Difference(
        row["run"],
        row["against"],
        row["value"],
        row["low"],
        row["high"],
        row["p"],
        row["p_adjusted"],
        is_significant,
        row["refusal"] or "",
    )
