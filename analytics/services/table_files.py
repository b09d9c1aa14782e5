"""Tables of estimates as Parquet files, from the worker that has made them to the one that stores them."""

import io
import json
from typing import Any

import numpy as np
import polars as pl

from analytics.numbers.columns import EstimateColumns

_NUMBER, _PART = "number ", "part "  # what names of such columns begin with


def packed_table(table: EstimateColumns) -> bytes:
    """Return the table as a file: every number to its last bit."""
    columns: dict[str, Any] = {"run": table.run, "run_b": table.run_b, "n": table.n}
    columns |= {_NUMBER + name: column for name, column in table.numbers.items()}
    columns |= {_PART + name: column for name, column in table.components.items()}
    texts = {
        "refusal": table.refusal,
        "topics_refusal": table.topics_refusal,
        "warning": table.warning,
        "sources": [json.dumps(list(names)) for names in table.sources],
    }
    columns |= {name: pl.Series(values, dtype=pl.String) for name, values in texts.items()}
    columns["topic_values"] = pl.Series(table.topic_values, dtype=pl.List(pl.Float64))
    stream = io.BytesIO()
    metadata = {"measure": table.measure, "method": table.method}
    pl.DataFrame(columns).write_parquet(stream, compression="lz4", statistics=False, metadata=metadata)
    return stream.getvalue()


def unpacked_table(content: bytes) -> EstimateColumns:
    """Return the table of a file of `packed_table`."""
    frame, about = pl.read_parquet(content), pl.read_parquet_metadata(content)
    known = {text: tuple(json.loads(text)) for text in frame["sources"].unique().to_list()}

    def beginning(prefix: str) -> dict[str, Any]:
        names = [name for name in frame.columns if name.startswith(prefix)]
        return {name.removeprefix(prefix): np.array(frame[name].to_numpy()) for name in names}

    return EstimateColumns(
        measure=about["measure"],
        method=about["method"],
        run=frame["run"].to_numpy(),
        run_b=frame["run_b"].to_numpy(),
        n=frame["n"].to_numpy(),
        numbers=beginning(_NUMBER),
        components=beginning(_PART),
        sources=[known[text] for text in frame["sources"].to_list()],
        refusal=frame["refusal"].to_list(),
        topics_refusal=frame["topics_refusal"].to_list(),
        warning=frame["warning"].to_list(),
        topic_values=frame["topic_values"].to_list(),
    )
