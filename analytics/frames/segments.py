"""The arrays of one moment as Parquet segments by topic, which any worker reads: the same arrays come back.

A segment holds the rows of some topics, so that neither writing nor reading needs more memory beside the arrays than
one of them. Read, the rows are put into the order that they had: sums run over topics in the same order, and come to
the same last digit, however many segments there are. The frame itself is the file of the draw, which never changes.
"""

import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from analytics.estimation.group_sequential import Look
from analytics.frames.arrays import CampaignArrays, first_drawn
from judging.models import Assessor, Run
from sampling.frames import load_frame
from sampling.measures.sparse import SparseRuns
from sampling.models import Draw

ABOUT = "about.json"
# Rows that belong to a topic, and what they are sorted by. Of a frame only what the file of the draw does not hold.
FRAME = ("topic_index", "gold_grade")
JUDGED = (
    "judged",
    "batch",
    "audited",
    "audit_grade",
    "audit_probability",
    "fitted_gold",
    "silver_probability",
)
LABEL = ("label_item", "label_assessor", "label_grade", "label_time", "label_judgment")
# Rows that belong to none, or are few.
CHECK = ("check_assessor", "check_true", "check_given", "check_time", "check_judgment")
SILVER = ("silver_label_item", "silver_label_assessor", "silver_label_grade")
NUMBERS = (
    "n_topics", "n_grades", "relevant_grade", "n_learned", "n_fitted_audits", "n_fitted_expected", "n_audits",
    "n_audits_planned", "n_audit_pending", "order_is_random", "last_judgment_id", "n_judgments", "audit_assumption",
    "is_by_gold_judges",
)  # fmt: skip
Columns = dict[str, NDArray[Any]]
Write = Callable[[str, bytes], None]
Read = Callable[[str], bytes]


@dataclass(frozen=True)
class _Axis:
    """A kind of rows: its columns, the segment of every row, and the columns that the rows are in the order of."""

    name: str
    columns: Columns
    segment: NDArray[np.uint16]
    order: tuple[str, ...]


ORDERS = {
    "frame": ("place",),
    "returned": ("item", "run"),
    "judged": ("judged",),
    "label": ("label_judgment",),
}


def write_segments(arrays: CampaignArrays, n_segments: int, write: Write) -> None:
    """Hand over the files of the arrays, at most so many segments of each kind of rows: their names and bytes."""
    n = max(1, min(n_segments, arrays.n_topics))
    segment_of_topic = (np.arange(arrays.n_topics) * n // arrays.n_topics).astype(np.uint16)
    for axis in _axes(arrays, segment_of_topic[arrays.topic_index]):
        for number in range(n):
            rows = np.flatnonzero(axis.segment == number)
            part = {name: column[rows] for name, column in axis.columns.items()}
            write(f"{axis.name}-{number:04d}.parquet", _to_bytes(part))
    for name, fields in (("check", CHECK), ("silver", SILVER)):
        write(f"{name}.parquet", _to_bytes({field: getattr(arrays, field) for field in fields}))
    runs = np.repeat(np.arange(len(arrays.ranks_outside)), [ranks.size for ranks in arrays.ranks_outside])
    ranks = np.concatenate([np.zeros(0, dtype=np.int64), *arrays.ranks_outside])
    write("outside.parquet", _to_bytes({"run": runs, "rank": ranks}))
    about = {
        "segments": n,
        "draw": str(arrays.draw.pk),
        "runs": [run.pk for run in arrays.runs],
        "assessors": [[one.pk, one.tier] for one in arrays.assessors],
        "n_drawn": arrays.n_drawn.tolist(),
        "looks": [asdict(look) for look in arrays.looks],
        **{name: getattr(arrays, name) for name in NUMBERS},
    }
    write(ABOUT, json.dumps(about).encode())


def _axes(arrays: CampaignArrays, segment: NDArray[np.uint16]) -> Iterator[_Axis]:
    """Yield the kinds of rows; `segment` is that of every item of the frame."""
    returned, of_judged = arrays.returned, segment[arrays.judged]
    frame = {"place": np.arange(segment.size)} | {name: getattr(arrays, name) for name in FRAME}
    entries = {"run": returned.run, "item": returned.item, "value": returned.value}
    found = {
        "frame": (frame, segment),
        "returned": (entries, segment[returned.item]),
        "judged": ({name: getattr(arrays, name) for name in JUDGED}, of_judged),
        "label": ({name: getattr(arrays, name) for name in LABEL}, of_judged[arrays.label_item]),
    }
    for name, (columns, of_rows) in found.items():
        yield _Axis(name, columns, of_rows, ORDERS[name])


def _to_bytes(columns: Mapping[str, NDArray[Any]]) -> bytes:
    stream = io.BytesIO()
    table = pl.DataFrame({name: pl.Series(column) for name, column in columns.items()})
    table.write_parquet(stream, compression="lz4", statistics=False)
    return stream.getvalue()


def _from_bytes(content: bytes) -> Columns:
    table = pl.read_parquet(content)
    return {name: table[name].to_numpy() for name in table.columns}


def read_segments(read: Read) -> CampaignArrays:
    """Return the arrays of files that `write_segments` has handed over; `read` returns the bytes of a name."""
    about = json.loads(read(ABOUT))
    draw = Draw.objects.select_related("campaign").get(pk=about["draw"])
    runs, people = Run.everything.in_bulk(about["runs"]), _people(about["assessors"])
    frame = load_frame(draw)
    axes = {name: _axis(read, name, about["segments"]) for name in ORDERS}
    entries, outside = axes["returned"], _from_bytes(read("outside.parquet"))
    ends = np.searchsorted(outside["run"], np.arange(1, len(about["runs"])))
    given: dict[str, Any] = {name: axes["frame"][name] for name in FRAME} | axes["judged"] | axes["label"]
    for name in ("check", "silver"):
        given |= _from_bytes(read(f"{name}.parquet"))
    given |= {name: about[name] for name in NUMBERS}
    return CampaignArrays(
        draw=draw,
        runs=[runs[key] for key in about["runs"]],
        assessors=people,
        frame=frame,
        returned=SparseRuns(
            len(about["runs"]), frame.height, entries["run"], entries["item"], entries["value"]
        ),
        ranks_outside=np.split(outside["rank"], ends) if runs else [],
        first_probability=first_drawn(draw, frame),
        n_drawn=np.array(about["n_drawn"], dtype=np.int64),
        looks=tuple(Look(**look) for look in about["looks"]),
        **given,
    )


def _people(known: list[tuple[int, str]]) -> list[Assessor]:
    """Return the assessors in their order, each of the tier that it was of."""
    found = Assessor.objects.select_related("user").in_bulk([key for key, _ in known])
    people = []
    for key, tier in known:
        found[key].tier = tier
        people.append(found[key])
    return people


def _axis(read: Read, name: str, n: int) -> Columns:
    """Return the rows of all segments in the order that they had."""
    parts = [_from_bytes(read(f"{name}-{number:04d}.parquet")) for number in range(n)]
    columns = {}
    for column in list(parts[0]):  # one after the other: only one is there twice
        columns[column] = np.concatenate([part.pop(column) for part in parts])
    keys = [columns[key] for key in ORDERS[name]]
    if not _ascend(keys):
        order = np.lexsort(keys[::-1])
        for column in list(columns):
            columns[column] = columns.pop(column)[order]
    return columns


def _ascend(keys: list[NDArray[Any]]) -> bool:
    """Return whether rows ascend by the keys, the first one first; no two rows have the same."""
    ascends, same = np.zeros(max(keys[0].size - 1, 0), dtype=bool), True
    for key in keys:
        ascends |= same & (key[1:] > key[:-1])
        same = same & (key[1:] == key[:-1])
    return bool(ascends.all())
