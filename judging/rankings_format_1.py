"""The first format of a stored run, a layout of our own: read once, by the migration that makes Parquet of it.

Little-endian: 8 bytes magic, 8 bytes length of the header, header (JSON: run tag, topic ids, sizes), zeros up to a
multiple of 64, then five arrays, each starting at a multiple of 64 bytes: ``offsets`` int64 [n_topics + 1]; ``hashes``
uint64 [n_rows], the pair hashes ascending; ``positions`` uint32 [n_rows], the row of each hash; ``scores`` float64
[n_rows]; ``documents`` zlib of the ids, one a line.
"""

import json
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judging.rankings import pack_run
from judging.run_columns import RunColumns
from judging.runs import text_lines

MAGIC = b"TSRANK01"
ALIGN = 64
ARRAYS = {"offsets": "<i8", "hashes": "<u8", "positions": "<u4", "scores": "<f8", "documents": "u1"}


def as_parquet(data: bytes) -> bytes:
    """Return the file of a run in the format of today. ValueError if the old one is damaged."""
    length = int.from_bytes(data[8:16], "little")
    if data[:8] != MAGIC or 16 + length > len(data):
        raise ValueError("not a rankings file of format 1")
    facts: dict[str, Any] = json.loads(data[16 : 16 + length])
    arrays: dict[str, NDArray[Any]] = {}
    place = 16 + length
    for name, kind in ARRAYS.items():
        place += -place % ALIGN
        arrays[name] = np.frombuffer(data, dtype=kind, count=int(facts["sizes"][name]), offset=place)
        place += arrays[name].nbytes
    hashes = np.empty_like(arrays["hashes"])
    hashes[arrays["positions"]] = arrays["hashes"]
    columns = RunColumns(
        facts["run_tag"],
        tuple(facts["topic_ids"]),
        arrays["offsets"],
        text_lines(zlib.decompress(arrays["documents"].tobytes())),
        arrays["scores"],
        hashes,
    )
    return pack_run(columns)
