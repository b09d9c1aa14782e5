"""Results as text: a table for the terminal, sentences, CSV, and the tables of a paper."""

import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import polars as pl

from analytics.estimation.wording import ADJUSTMENTS, LEVEL, p_words, sentence
from analytics.tables import (
    Difference,
    Rank,
    RunNumber,
    Terms,
    pairs_table,
    ranking_table,
    runs_table,
    table_format,
)
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
P_VALUES = ("p", "p_adjusted")
EVALUATED_PAIRS = (*SHOWN[: SHOWN.index("p_adjusted")], "p", "p_adjusted", "verdict")
MOST_ROWS, MOST_SENTENCES = 40, 10
Row = Mapping[str, Any]
Cell = Callable[[Row, int], str]  # of a row, with so many decimals


def result_text(result: Result, places: int = 4, *, is_whole: bool = False) -> str:
    """Return a result as it is printed: the table, and below what is said of it; whole, or its first rows."""
    table = text_table(result.frame, _columns(result), places, None if is_whole else MOST_ROWS)
    if result.head:
        return "\n".join([result.head, "", table, *([""] if result.notes else []), *result.notes])
    below = [result.caption, *sentences(result, None if is_whole else MOST_SENTENCES)]
    return "\n".join([table, *filter(None, below)])


def text_table(frame: pl.DataFrame, columns: Mapping[str, Cell], places: int, most: int | None) -> str:
    """Return the first rows as an aligned table."""
    shown = frame if most is None else frame.head(most)
    rows = [[cell(row, places) for cell in columns.values()] for row in shown.iter_rows(named=True)]
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [[*columns], *rows]
    ]
    left = frame.height - shown.height
    return "\n".join([*lines, f"... and {left} more rows"] if left > 0 else lines)


def topic_lines(topics: pl.DataFrame, places: int) -> str:
    """Return the values of topics, a line each, separated by tabs."""
    rows = ([_cell_text(cell, places) for cell in row] for row in topics.iter_rows())
    return "\n".join("\t".join(row) for row in [topics.columns, *rows])


def _columns(result: Result) -> dict[str, Cell]:
    """Return what matters most of a result: the heads of the table's columns, and how their cells are made."""
    frame = result.frame
    if "estimate" in frame.columns:
        return {
            head: cell
            for head, cell in EVALUATED_RUNS.items()
            if head != "run" or frame["run"].n_unique() > 1
        }
    shown = EVALUATED_PAIRS if result.kind == "evaluate" else SHOWN
    names = [name for name in shown if name in frame.columns and frame[name].null_count() < frame.height]
    names = names if {"measure", "value"} <= set(frame.columns) else list(frame.columns)
    names = [name for name in names if name != "verdict" or (frame["verdict"] != "").any()]
    is_evaluated = result.kind == "evaluate"
    return {name: _p_cell(name) if is_evaluated and name in P_VALUES else _cell_of(name) for name in names}


def _cell_of(name: str) -> Cell:
    return lambda row, places: _cell_text(row[name], places)


def _cell_text(value: Any, places: int = 4) -> str:
    if value is None:
        return "-"
    return f"{value:.{places}f}" if isinstance(value, float) else str(value)


def _interval_cell(value: str, low: str, high: str) -> Cell:
    def cell(row: Row, places: int) -> str:
        ends = "" if row[low] is None else f" [{row[low]:.{places}f}, {row[high]:.{places}f}]"
        return f"{_cell_text(row[value], places)}{ends}"

    return cell


def _p_cell(name: str) -> Cell:
    return lambda row, _: (
        "-" if row[name] is None else p_words(row[name]).removeprefix("p ").removeprefix("= ")
    )


def _share_cell(name: str) -> Cell:
    return lambda row, _: "-" if row[name] is None else f"{100 * row[name]:.0f} %"


def _cell_where(is_there: Callable[[Row], bool], cell: Cell) -> Cell:
    return lambda row, places: cell(row, places) if is_there(row) else "-"


EVALUATED_RUNS: dict[str, Cell] = {
    "measure": _cell_of("measure"),
    "run": _cell_of("run"),
    "qrels": _cell_of("as_given"),
    "estimate, 95 % confidence interval": _interval_cell("estimate", "estimate_low", "estimate_high"),
    "corrected, 95 % confidence interval": _cell_where(
        lambda row: row["n_gold"] > 0, _interval_cell("value", "low_other", "high_other")
    ),
    "topics as a sample": _cell_where(
        lambda row: row["low"] is not None, _interval_cell("value", "low", "high")
    ),
    "Judged@k": _share_cell("judged_share"),
    "gold": _share_cell("gold_share"),
}


def sentences(result: Result, most: int | None = MOST_SENTENCES) -> Iterator[str]:
    """Yield what is said of the first rows: of pairs as on the results pages, of runs the value with its interval."""
    if result.pairs:
        yield from map(sentence, result.pairs[:most])
        return
    if not {"measure", "run", "value"} <= set(result.frame.columns):  # agreement, and what to buy
        return
    for row in result.frame[:most].iter_rows(named=True):
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
        A result that is no table of runs or pairs, or has no intervals.
    """
    if not {"run", "value", "measure"} <= set(result.frame.columns):
        raise InputRefused(f"there is no such table of the kind {result.kind}")
    if not result.claim:
        raise InputRefused(f"a table in {key} shows intervals, and these numbers have none")
    measures = result.frame["measure"].unique(maintain_order=True).to_list()
    return "\n".join(_paper_table(result, measure, key) for measure in measures)


def _paper_table(result: Result, measure: str, key: str) -> str:
    rows = result.frame.filter(pl.col("measure") == measure).to_dicts()
    terms = Terms(
        measure=measure,
        estimate="corrected" if result.pairs or any(row["n_gold"] for row in rows) else "grades as given",
        claim=CLAIM_WORDS[result.claim],
        test="two-sided test of the difference",
        adjustment=_adjustment(result, measure),
    )
    if rows and rows[0].get("against") is not None:
        table = pairs_table([_difference(row) for row in rows], terms)
    elif "rank" in result.frame.columns:
        ranked = [row for row in rows if row["rank"] is not None]
        ranks = [Rank(_run_number(row), row["rank"], row["rank_low"], row["rank_high"]) for row in ranked]
        table = ranking_table(ranks, [], terms, NO_MARKS)
    else:
        table = runs_table([_run_number(row) for row in rows], [], terms, NO_MARKS)
    return table_format(key).write(table)


def _run_number(row: Mapping[str, Any]) -> RunNumber:
    return RunNumber(row["run"], row["value"], row["low"], row["high"], row["refusal"] or "")


def _adjustment(result: Result, measure: str) -> str:
    if result.pairs:  # a declared family has other comparisons in each measure, and in some none
        one = next(pair for pair in result.pairs if pair.measure == measure)
        words = f"p {ADJUSTMENTS[one.adjustment]} in the family {one.family}, {one.n_family:,} comparisons"
        return words if one.n_family else ""
    n_tested = int(result.frame["p"].is_not_null().sum()) if "p" in result.frame.columns else 0
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
