"""Results as pictures."""

from pathlib import Path

from touchstone_ir.columns import InputRefused
from touchstone_ir.results import Result

MISSING = "plots need the extra: pip install 'touchstone-ir[plots]'"


def write_plot(result: Result, path: Path) -> Path:
    """Write a forest plot of the rows, and return the path.

    Raises
    ------
    InputRefused
        An ending of no format of pictures, a missing extra, or rows of several measures.
    """
    key = path.suffix.lower().removeprefix(".")
    if key not in ("svg", "pdf", "png"):
        raise InputRefused(f"{path.name}: a plot is written as .svg, .pdf or .png")
    measures = result.frame["measure"].unique(maintain_order=True).to_list()
    if len(measures) > 1:
        raise InputRefused(f"a plot shows one measure, got {', '.join(measures)}")
    try:
        from analytics.charts.files import Sheet, plot_format
        from analytics.charts.forests import ForestRow, forest

        is_pairs = result.frame["against"].null_count() < result.frame.height
        rows = [
            ForestRow(
                f"{row['run']} - {row['against']}" if is_pairs else row["run"],
                "corrected" if row["n_gold"] else "naive",
                row["value"],
                row["low"],
                row["high"],
                "" if row["value"] is not None else row["refusal"],
            )
            for row in result.frame.iter_rows(named=True)
        ]
        title = f"Difference in {measures[0]}" if is_pairs else measures[0]
        chart = forest(rows, title, measure=measures[0], reference=0.0 if is_pairs else None)
        content = plot_format(key).write(chart, Sheet())
    except ImportError as error:
        raise InputRefused(MISSING) from error
    path.write_bytes(content)
    return path
