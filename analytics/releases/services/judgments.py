"""All judgments of a campaign, in the order of topic, document and assessor, streamed into the files of a release."""

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from analytics.releases.folder import Folder
from analytics.releases.merkle import LEDGER, MerkleTree
from analytics.releases.tables import JUDGMENTS, write_json_lines
from analytics.services.judgment_rows import NamedAssessor, copied_judgments, countable, starts_of_items
from judging.kinds import ITEM_COLUMNS
from judging.models import Campaign, Slot
from judging.trec_tables import write_qrels_jg

Ints = NDArray[np.int64]
GRADES: dict[str, Any] = {"item": pl.Int32, "place": pl.Int32, "grade": pl.Int8, "is_audit": pl.Boolean}


@dataclass(frozen=True)
class UsedJudgments:
    """What the estimates made of which judgments, by their ids, ascending."""

    labels: Ints
    checks: Ints
    check_grade: Ints  # [check], the grade known beforehand


@dataclass(frozen=True)
class JudgmentSummary:
    """What was written, in brief: the items in order, and the grades that count for qrels."""

    items: pl.DataFrame  # topic_id, doc_id
    n_judgments: int
    n_counted: int
    last_id: int
    merkle_root: str
    item: NDArray[np.int32]  # [grade for the qrels], places in items
    assessor: NDArray[np.int32]  # places among the assessors
    grade: NDArray[np.int8]
    is_audit: NDArray[np.bool_]


def write_judgments(
    campaign: Campaign,
    assessors: list[NamedAssessor],
    used: UsedJudgments,
    folder: Folder,
    progress: Any = lambda *_: None,
    *,
    seconds_step: float | None = None,
) -> JudgmentSummary:
    """Write judgments.jsonl and qrels_jg.txt; memory holds some thousand rows, and a few bytes of every judgment.

    `seconds_step`: active seconds are rounded to a multiple of it.
    """
    tree, brief = MerkleTree(), _Brief(assessors)
    with folder.open(LEDGER) as ledger, folder.open("qrels_jg.txt") as by_assessor:
        for rows in copied_judgments(campaign, assessors):
            judgments = _with_use(rows, used)
            if seconds_step is not None:
                steps = (pl.col("active_seconds") / seconds_step + 0.5).floor()
                judgments = judgments.with_columns(active_seconds=steps * seconds_step)
            lines = _json_lines(judgments.select(list(JUDGMENTS)))
            for line in lines.split(b"\n")[:-1]:
                tree.add(line)
            ledger.write(lines)
            write_qrels_jg(judgments.filter("counted"), by_assessor)
            brief.add(judgments)
            progress(brief.n)
    return brief.summary(tree.root())


class _Brief:
    """What is kept of all judgments."""

    def __init__(self, assessors: list[NamedAssessor]) -> None:
        self.n = self.n_counted = self.last_id = self.n_items = 0
        self._place = pl.DataFrame(
            {"assessor": [person.name for person in assessors], "place": range(len(assessors))},
            schema={"assessor": pl.String, "place": pl.Int32},
        )
        self._items: list[pl.DataFrame] = [pl.DataFrame(schema={"topic_id": pl.String, "doc_id": pl.String})]
        self._grades: list[pl.DataFrame] = [pl.DataFrame(schema=GRADES)]

    def add(self, judgments: pl.DataFrame) -> None:
        """Add rows; those of an item come together."""
        pair, is_new = judgments.select(ITEM_COLUMNS), starts_of_items(judgments)
        rows = judgments.with_columns(item=(is_new.cum_sum().cast(pl.Int32) + self.n_items - 1))
        graded = rows.filter(pl.col("counted") & (pl.col("purpose") != Slot.Purpose.SILVER.value))
        graded = graded.join(self._place, on="assessor", how="left", maintain_order="left")
        is_audit = (pl.col("purpose") == Slot.Purpose.AUDIT.value).alias("is_audit")
        self._grades.append(graded.select("item", "place", "grade", is_audit).cast(pl.Schema(GRADES)))
        # Copied: a part of a column of texts holds on to all the texts of the column.
        self._items.append(pl.DataFrame(pair.filter(is_new).to_dict(as_series=False), schema=pair.schema))
        self.n, self.n_items = self.n + judgments.height, self.n_items + self._items[-1].height
        self.n_counted += int(judgments["counted"].sum())
        self.last_id = max(self.last_id, int(judgments["id"].max() or 0))  # type: ignore[arg-type]

    def summary(self, merkle_root: str) -> JudgmentSummary:
        grades = pl.concat(self._grades)
        columns = [grades[name].to_numpy() for name in GRADES]
        return JudgmentSummary(
            pl.concat(self._items), self.n, self.n_counted, self.last_id, merkle_root, *columns
        )


def _with_use(rows: pl.DataFrame, used: UsedJudgments) -> pl.DataFrame:
    """Return the rows with what was made of them."""
    ids = rows["id"].to_numpy()
    is_label, _ = _positions_among(ids, used.labels)
    is_check, check = _positions_among(ids, used.checks)
    known = np.zeros(ids.size, dtype=np.int64)
    known[is_check] = used.check_grade[check[is_check]]
    return rows.with_columns(
        counted=pl.Series(countable(rows)),
        label=pl.Series(is_label),
        check_grade=pl.Series(known, dtype=pl.Int16).set(pl.Series(~is_check), None),
    )


def _positions_among(ids: Ints, known: Ints) -> tuple[NDArray[np.bool_], Ints]:
    """Return which ids are among known ones, which ascend, and their places there."""
    if not known.size:
        return np.zeros(ids.size, dtype=bool), np.zeros(ids.size, dtype=np.int64)
    place = np.minimum(np.searchsorted(known, ids), known.size - 1)
    return known[place] == ids, place


def _json_lines(rows: pl.DataFrame) -> bytes:
    stream = io.BytesIO()
    write_json_lines(rows, stream)
    return stream.getvalue()
