"""The first format of a stored run, which was mapped into memory: the peer of benchmarks/run_format.py.

The layout is that of judging/rankings_format_1.py; this is how the product wrote and read it.
"""

import json
import mmap
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from judging.rankings_format_1 import ALIGN, ARRAYS, MAGIC
from judging.run_columns import RunColumns, columns_frame
from judging.runs import text_lines


@dataclass(frozen=True)
class MappedRun:
    """A run whose arrays are views of its file."""

    run_tag: str
    topic_ids: tuple[str, ...]
    arrays: dict[str, NDArray[Any]]

    @property
    def doc_ids(self) -> pl.Series:
        return text_lines(zlib.decompress(self.arrays["documents"].data))


def write(columns: RunColumns, path: Path) -> None:
    """Write the file of a run."""
    order = np.argsort(columns.pair_hashes, kind="stable")
    documents = zlib.compress(columns.doc_ids.str.join("\n").item().encode() + b"\n", 1)
    arrays = {
        "offsets": columns.offsets.astype("<i8"),
        "hashes": columns.pair_hashes[order].astype("<u8"),
        "positions": order.astype("<u4"),
        "scores": columns.scores.astype("<f8"),
        "documents": np.frombuffer(documents, dtype=np.uint8),
    }
    sizes = {name: len(array) for name, array in arrays.items()}
    facts = {"format": 1, "run_tag": columns.run_tag, "topic_ids": columns.topic_ids, "sizes": sizes}
    header = json.dumps(facts, separators=(",", ":")).encode()
    parts = [MAGIC + len(header).to_bytes(8, "little") + header]
    parts += [array.tobytes() for array in arrays.values()]
    path.write_bytes(b"".join(part + bytes(-len(part) % ALIGN) for part in parts))


def read(path: Path) -> MappedRun:
    """Return the run; only what is used of it is read."""
    with path.open("rb") as stream:
        data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    length = int.from_bytes(data[8:16], "little")
    facts: dict[str, Any] = json.loads(data[16 : 16 + length])
    arrays, place = {}, 16 + length
    for name, kind in ARRAYS.items():
        place += -place % ALIGN
        arrays[name] = np.frombuffer(data, dtype=kind, count=facts["sizes"][name], offset=place)
        place += arrays[name].nbytes
    return MappedRun(facts["run_tag"], tuple(facts["topic_ids"]), arrays)


def whole(run: MappedRun) -> pl.DataFrame:
    """Return the frame of `read_run`."""
    arrays = run.arrays
    columns = RunColumns(
        run.run_tag, run.topic_ids, arrays["offsets"], run.doc_ids, arrays["scores"], arrays["hashes"]
    )
    return columns_frame(columns)


def top(run: MappedRun, depth: int) -> pl.DataFrame:
    """Return the best documents of every topic."""
    offsets = run.arrays["offsets"]
    sizes = np.minimum(np.diff(offsets), depth)
    rank = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = np.repeat(offsets[:-1], sizes) + rank
    topics = pl.Series(run.topic_ids, dtype=pl.String)
    return pl.DataFrame(
        {
            "topic_id": topics.gather(np.repeat(np.arange(len(sizes)), sizes)),
            "doc_id": run.doc_ids.gather(rows),
            "rank": (rank + 1).astype(np.uint32),
            "score": run.arrays["scores"][rows],
        }
    )
