"""Charts drawn on the server: numbers to Altair to SVG, PNG and CSV (docs/look.md).

Nothing in an SVG needs more than the page's Content-Security-Policy gives: no script, no style attribute, no address.
Altair and the renderer are imported by the first picture that is made, not by who only names one.
"""

from analytics.charts.chart import Chart, add_name, chart_of
from analytics.charts.curves import curve
from analytics.charts.forests import ForestRow, forest, topic_differences
from analytics.charts.logs import grade_shares, position_lines, quartile_bars
from analytics.charts.matrices import confusion_heat, difference_matrix, rank_matrix
from analytics.charts.scatters import ProbabilityBin, ScatterPoint, calibration_curve, run_scatter
from analytics.charts.series import dots, histogram, throughput

__all__ = [
    "Chart",
    "ForestRow",
    "ProbabilityBin",
    "ScatterPoint",
    "add_name",
    "calibration_curve",
    "chart_of",
    "confusion_heat",
    "curve",
    "difference_matrix",
    "dots",
    "forest",
    "grade_shares",
    "histogram",
    "position_lines",
    "quartile_bars",
    "rank_matrix",
    "run_scatter",
    "throughput",
    "topic_differences",
]
