"""Without an audit of recorded probabilities: a range with its assumptions, never an interval."""

from collections.abc import Iterator
from dataclasses import replace

from analytics.estimation.estimate import Refusal
from analytics.papers.inverse import label_scores
from analytics.papers.refusals import separation_refusal
from analytics.papers.sensitivity import cautious_residual_variance, sensitivity_range
from analytics.services.analyses.context import Case
from analytics.services.analyses.request import Line, refuse_line

NAME = "Between the grades as given and the matrix inverse"
SOURCE = "a sensitivity range, not a confidence interval"


def range_lines(case: Case) -> Iterator[Line]:
    """Yield the range of the difference and of each run, with the local gold labels that would give an interval."""
    a, b = case.sides
    weights = {"difference": a.over_frame - b.over_frame, "run": a.over_frame, "against": b.over_frame}
    for of, over_frame in weights.items():
        line = Line(of, NAME, SOURCE, kind="range")
        weighed = over_frame[over_frame != 0]
        if weighed.size == 0:
            yield refuse_line(line, "the two runs are the same inside the cutoff")
            continue
        shares = case.values(of).mean(axis=0)
        raw = float(shares @ case.gains)
        separation = separation_refusal(case.counts)
        inverse = separation or float(shares @ label_scores(case.confusion, case.gains))
        found = sensitivity_range(
            raw,
            inverse,
            n_items=weighed.size,
            residual_variance=cautious_residual_variance(weighed, case.gains),
            half_width=None if isinstance(inverse, Refusal) or raw != inverse or raw else 0.05,
        )
        if isinstance(found, Refusal):
            yield refuse_line(line, found)
            continue
        note = (
            f"One end assumes that {found.raw_assumes}; the other assumes that {found.inverse_assumes}. "
            f"The truth may lie outside. About {found.local_gold:,} gold labels, drawn at random among these "
            f"{weighed.size:,} documents, would give a half-width of ± {found.half_width:.2g}"
        )
        yield replace(line, low=found.low, high=found.high, note=note)
