"""Results as pictures."""

from pathlib import Path
from typing import Any

import polars as pl

from touchstone_ir.columns import InputRefused
from touchstone_ir.results import Result

MISSING = "plots need the extra: pip install 'touchstone-ir[plots]'"


def write_plot(result: Result, path: Path) -> Path:
    """Write the picture of a result, and return the path: a ranking's chances, else a forest plot of the rows.

    Raises
    ------
    InputRefused
        An ending of no format of pictures, a missing extra, rows of several measures, or a result that has no picture.
    """
    key = path.suffix.lower().removeprefix(".")
    if key not in ("svg", "pdf", "png"):
        raise InputRefused(f"{path.name}: a plot is written as .svg, .pdf or .png")
    if not {"measure", "low"} <= set(result.frame.columns):
        raise InputRefused(f"a {result.kind} has no picture: estimates, comparisons and ranks have")
    measures = result.frame["measure"].unique(maintain_order=True).to_list()
    if len(measures) > 1:
        raise InputRefused(f"a plot shows one measure, got {', '.join(measures)}")
    try:
        from analytics.charts.files import Sheet, plot_format

        drawn = _ranks if "rank_probabilities" in result.frame.columns else _forest
        content = plot_format(key).write(drawn(result.frame, measures[0]), Sheet())
    except ImportError as error:
        raise InputRefused(MISSING) from error
    path.write_bytes(content)
    return path


def _ranks(frame: pl.DataFrame, measure: str) -> Any:
    from analytics.charts.matrices import rank_matrix

    ranked = frame.filter(pl.col("rank").is_not_null())
    title = f"Ranks in {measure}"
    return rank_matrix(ranked["run"].to_list(), ranked["rank_probabilities"].to_list(), title)


def _forest(frame: pl.DataFrame, measure: str) -> Any:
    from analytics.charts.forests import ForestRow, forest

    is_pairs = frame["against"].null_count() < frame.height
    rows = [
        ForestRow(
            f"{row['run']} - {row['against']}" if is_pairs else row["run"],
            "corrected" if row["n_gold"] else "naive",
            row["value"],
            row["low"],
            row["high"],
            "" if row["value"] is not None else row["refusal"],
        )
        for row in frame.iter_rows(named=True)
    ]
    title = f"Difference in {measure}" if is_pairs else measure
    return forest(rows, title, measure=measure, reference=0.0 if is_pairs else None)
