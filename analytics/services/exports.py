"""Files out: a campaign's judgments as of now, line by line, in an order that no host or locale changes.

A new format is an entry in EXPORTS and the function that makes its lines; page, address, command and documentation
read EXPORTS. Judgments are read in one query, so of one snapshot, through a cursor on the server: memory does not
grow with the campaign.
"""

import hashlib
import hmac
import io
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO

import numpy as np
import polars as pl
from django.conf import settings

from analytics.aggregation.grade_tables import lower_medians
from analytics.aggregation.qrels import qrels_grades
from analytics.estimation.samples import Labels
from analytics.services.judgment_rows import (
    COLUMNS,
    adjudicated_grades,
    countable,
    named_assessors,
    read_judgments,
    starts_of_items,
)
from judging.kinds import ITEM_COLUMNS
from judging.models import Campaign, Slot
from judging.services.errors import NotFound, Refused
from judging.trec_tables import (
    CHOSEN_METHOD,
    CROWD_HEADER,
    DRAWN_METHOD,
    write_crowd_labels,
    write_prels,
    write_qrels,
    write_qrels_jg,
)
from sampling.frames import item_probabilities

N_GRADES = 10  # a grade is one digit
Lines = Callable[[Campaign, bool], Iterator[str]]


class NothingDrawn(Refused):
    status = 409
    title = "The items of this campaign were not drawn: they have no inclusion probabilities"


@dataclass(frozen=True)
class ExportFormat:
    """A file of a campaign's judgments: what it is, how a download is called, and its lines.

    `file_name` has `{campaign}` in the place of the campaign's id. `lines` takes the campaign, and whether adjudicated
    and audit grades stand before the assessors' own.
    """

    key: str
    label: str
    help: str
    file_name: str
    lines: Lines

    @property
    def content_type(self) -> str:
        return f"text/{'csv' if self.file_name.endswith('.csv') else 'plain'}; charset=utf-8"


def export_format(key: str) -> ExportFormat:
    """Return the format of that key; `NotFound` for any other."""
    for one in EXPORTS:
        if one.key == key:
            return one
    raise NotFound


def export_keys() -> list[str]:
    return [one.key for one in EXPORTS]


# -- lines ------------------------------------------------------------------------------------------------------


def qrels_lines(campaign: Campaign, prefer_gold: bool) -> Iterator[str]:
    """Yield ``topic 0 document grade``, one a judged item, by topic and document id. The grade: `qrels_rule`."""
    for items in _graded_items(campaign, prefer_gold):
        yield from _lines(write_qrels, items)


def qrels_jg_lines(campaign: Campaign, prefer_gold: bool) -> Iterator[str]:
    """Yield ``topic assessor document grade`` of every judgment that counts, audits among them.

    Within an item assessors are in the order of their pseudonyms, which tells nothing about who came first.
    """
    for judgments in _counted_judgments(campaign):
        yield from _lines(write_qrels_jg, judgments)


def prels_method(campaign: Campaign) -> int:
    """Return the code on the lines of prels: how the campaign's judged items were chosen."""
    return DRAWN_METHOD if campaign.has_random_order else CHOSEN_METHOD


def prels_lines(campaign: Campaign, prefer_gold: bool) -> Iterator[str]:
    """Yield ``topic document grade method probability`` of the judged items that were drawn.

    Raises
    ------
    NothingDrawn
        At once, not with the first line.
    """
    probabilities = item_probabilities(campaign)
    if not probabilities:
        raise NothingDrawn
    items = campaign.items.values_list("pk", "topic__topic_id", "document__doc_id")
    drawn = pl.DataFrame(
        [
            (topic, document, probabilities[pk])
            for pk, topic, document in items.iterator()
            if pk in probabilities
        ],
        schema={"topic_id": pl.String, "doc_id": pl.String, "inclusion_probability": pl.Float64},
        orient="row",
    )
    return _prels_of(_graded_items(campaign, prefer_gold), drawn, prels_method(campaign))


def _prels_of(parts: Iterator[pl.DataFrame], drawn: pl.DataFrame, method: int) -> Iterator[str]:
    write = partial(write_prels, method=method)
    for items in parts:
        yield from _lines(write, items.join(drawn, on=ITEM_COLUMNS, maintain_order="left"))


def crowd_lines(campaign: Campaign, prefer_gold: bool) -> Iterator[str]:
    """Yield the judgments of `qrels_jg_lines` as crowd labels: a header, then task, worker and label."""
    yield CROWD_HEADER.decode()
    for judgments in _counted_judgments(campaign):
        yield from _lines(write_crowd_labels, judgments)


def _lines(write: Callable[[pl.DataFrame, BinaryIO], None], table: pl.DataFrame) -> Iterator[str]:
    stream = io.BytesIO()
    write(table, stream)
    yield from stream.getvalue().decode().splitlines(keepends=True)


# -- what the lines are made of ---------------------------------------------------------------------------------


def pseudonym_key(campaign_id: uuid.UUID) -> str:
    """Return the key of a campaign's pseudonyms in files: one for ever, unrelated to any other campaign's."""
    secret, name = settings.SECRET_KEY.encode(), f"assessors of {campaign_id}".encode()
    return hmac.digest(secret, name, hashlib.sha256).hex()


def _counted_judgments(campaign: Campaign) -> Iterator[pl.DataFrame]:
    for rows in read_judgments(campaign, named_assessors(campaign, pseudonym_key(campaign.pk))):
        yield rows.filter(pl.Series(countable(rows)))


def _graded_items(campaign: Campaign, prefer_gold: bool) -> Iterator[pl.DataFrame]:
    """Yield the items with their grade in the qrels, by topic and document id as bytes."""
    decided = adjudicated_grades(campaign)
    for rows in _counted_judgments(campaign):
        if rows.height:
            topic, document = rows.select(ITEM_COLUMNS).row(-1)
            is_before = pl.col("topic_id") < topic
            is_due = is_before | ((pl.col("topic_id") == topic) & (pl.col("doc_id") <= document))
            yield _grades_of(rows, decided.filter(is_due), prefer_gold)
            decided = decided.filter(~is_due)
    yield _grades_of(pl.DataFrame(schema=COLUMNS), decided, prefer_gold)


def _labels(place: np.ndarray, grade: np.ndarray, n_items: int) -> Labels:
    """Return grades as labels of one assessor: who gave them plays no part in a median."""
    grade = grade.astype(np.int64)
    return Labels(place, np.zeros_like(grade), grade, n_items=n_items, n_assessors=1, n_grades=N_GRADES)


def _grades_of(rows: pl.DataFrame, decided: pl.DataFrame, prefer_gold: bool) -> pl.DataFrame:
    """Return the qrels' grades of items from their judgments that count, and from what a manager decided."""
    starts = starts_of_items(rows)
    place, grade = (starts.cum_sum().cast(pl.Int64) - 1).to_numpy(), rows["grade"].to_numpy()
    joint, gold = (
        lower_medians(_labels(place[chosen], grade[chosen], int(starts.sum())).table())
        for chosen in (
            (rows["purpose"] == purpose).to_numpy() for purpose in (Slot.Purpose.JUDGE, Slot.Purpose.AUDIT)
        )
    )
    return qrels_grades(
        rows.filter(starts).select(ITEM_COLUMNS), joint, gold, decided, prefers_gold=prefer_gold
    )


# -- the table --------------------------------------------------------------------------------------------------

EXPORTS = (
    ExportFormat(
        "qrels",
        "qrels",
        "One grade an item, for trec_eval and the like. A line: topic 0 document grade.",
        "{campaign}.qrels",
        qrels_lines,
    ),
    ExportFormat(
        "qrels_jg",
        "qrels_jg",
        "Every judgment that counts, assessors under pseudonyms. A line: topic assessor document grade.",
        "{campaign}.qrels_jg",
        qrels_jg_lines,
    ),
    ExportFormat(
        "prels",
        "prels",
        "Grades with the probability by which each item was drawn. A line: topic document grade method probability.",
        "{campaign}.prels",
        prels_lines,
    ),
    ExportFormat(
        "crowd",
        "crowd",
        "The judgments of qrels_jg as CSV, for crowd-kit and the like. The task is the topic and the document: "
        "task,worker,label.",
        "{campaign}.crowd.csv",
        crowd_lines,
    ),
)
