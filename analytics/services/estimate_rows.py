"""Estimates in columns as rows of the database that are not saved yet."""

from collections.abc import Sequence

from analytics.frames import CampaignArrays, Floats
from analytics.models import Estimate
from analytics.numbers.columns import EstimateColumns


def unsaved_rows(arrays: CampaignArrays, tables: Sequence[EstimateColumns]) -> list[Estimate]:
    """Return the tables as rows of the database that are not saved yet."""
    rows = []
    for table in tables:
        numbers = {name: _nullable(column) for name, column in table.numbers.items()}
        parts = {name: _nullable(part) for name, part in table.components.items()}
        carried = [None if n is None else int(n) for n in numbers.pop("n_positive", [None] * table.run.size)]
        for place, (run, run_b) in enumerate(zip(table.run.tolist(), table.run_b.tolist(), strict=True)):
            rows.append(
                Estimate(
                    run=arrays.runs[run],
                    run_b=None if run_b < 0 else arrays.runs[run_b],
                    measure=table.measure,
                    method=table.method,
                    n=int(table.n[place]),
                    n_positive=carried[place],
                    sources=list(table.sources[place]),
                    components={name: part[place] for name, part in parts.items() if part[place] is not None},
                    refusal=table.refusal[place],
                    topics_refusal=table.topics_refusal[place],
                    topic_values=table.topic_values[place],
                    warning=table.warning[place],
                    **{name: column[place] for name, column in numbers.items()},
                )
            )
    return rows


def _nullable(column: Floats) -> list[float | None]:
    return [None if number != number else number for number in column.tolist()]
