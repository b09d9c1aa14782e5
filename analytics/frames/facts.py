"""The facts of a campaign besides its judgments: its draw and frame, items, audits and gold answers.

They change rarely: a draw, an audit, an import, judgments that are to be made again. `fingerprint` says in one
statement of some milliseconds whether any of them may have changed.
"""

import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from analytics.estimation.group_sequential import Look
from analytics.frames.arrays import first_drawn
from analytics.frames.rows import fetch_row, fetch_rows, lines, seconds, text_table
from analytics.numbers.arrays import Floats, Ints
from judging.kinds import ITEM_COLUMNS
from judging.models import IMPORTED_JUDGMENTS, Campaign, Run
from judging.rankings import read_rankings
from sampling.frames import FrameRefused, load_frame, newest_draw
from sampling.measures.sparse import SparseRuns
from sampling.models import Audit, AuditTier, Draw, GoldFit
from sampling.pooling import ranks_in_pairs
from touchstone.files import local
from touchstone.models import Event

# Every change of what is read here, or of what a slot is for, leaves a trace in one of these: batches; a topic's rule,
# which laying a topic out writes anew (another version of its row: xmin and ctid); audits; the log of events
# (imports, judgments made again); runs; grades. Harmless events are left out, any other means reading anew.
FINGERPRINT = """
SELECT (SELECT count(*) FROM sampling_draw WHERE campaign_id = %(campaign)s),
       (SELECT md5(string_agg(id || ' ' || xmin || ' ' || ctid, ',' ORDER BY id)) FROM judging_campaigntopic
         WHERE campaign_id = %(campaign)s),
       (SELECT count(*) FROM sampling_audit WHERE campaign_id = %(campaign)s),
       (SELECT count(*) || ' ' || max(id) FROM touchstone_event
         WHERE subject = ANY(%(subjects)s) AND verb <> ALL(%(harmless)s)),
       (SELECT md5(string_agg(id || ' ' || run_id || ' ' || rankings, ',' ORDER BY id)) FROM judging_run
         WHERE collection_id = %(collection)s AND set_aside_at IS NULL),
       (SELECT string_agg(value || ' ' || gain, ',' ORDER BY value) FROM judging_grade WHERE scale_id = %(scale)s)
"""
HARMLESS = [
    "pruned computations",
    "asked for a release",
    "released",
    "withdrew a release",
    "forgot a release's key",
    "published a release",
    "unpublished a release",
    "set active",
    "set suspended",
    "set rules",
    "set teams",
    "opened",
    "closed",
    "added assessor",
    "added machine",
    "adjudicated",
    "let stand",
    "withdrew decision",
    "opened more judgments",
    "corrected a document",
    "corrected a topic",
    "sent a message",
    "read a message",
    "changed a run",
    "declared the family of comparisons",
    "deleted",
    "restored",
    "invited",
    "revoked an invitation",
    "joined by invitation",
    "agreed",
    "completed",
    "came from the market",
    "changed the consent text",
    "answered what every comparison assumes",
]
# When each item was first shown to anybody, if that was before a batch was drawn.
FIRST_SHOWN = """
(SELECT s.item_id, min(l.leased_at) AS at FROM judging_lease l JOIN judging_slot s ON s.id = l.slot_id
  WHERE s.campaign_id = %(campaign)s AND l.leased_at < %(drawn)s GROUP BY s.item_id) f
"""
ITEMS = """
judging_item i JOIN judging_topic t ON t.id = i.topic_id JOIN judging_document d ON d.id = i.document_id
 WHERE i.campaign_id = %(campaign)s
"""
GOLD = """
SELECT string_agg(t.topic_id || E'\\t' || d.doc_id || E'\\t' || g.grade, E'\\n')
  FROM judging_goldanswer g JOIN judging_topic t ON t.id = g.topic_id JOIN judging_document d ON d.id = g.document_id
 WHERE t.collection_id = %(collection)s AND g.grade BETWEEN 0 AND %(top)s
"""
ENTRIES = (
    "sampling_auditentry e JOIN sampling_audit a ON a.id = e.audit_id WHERE a.campaign_id = %(campaign)s"
)
# Items that were chosen as checks, with the answer that is known of them; of a file that is all there is, all items.
CHECKS = """
judging_item i JOIN judging_goldanswer g ON g.topic_id = i.topic_id AND g.document_id = i.document_id
 WHERE i.campaign_id = %(campaign)s AND g.grade BETWEEN 0 AND %(top)s AND (i.id = ANY(%(shown)s)
       OR i.id IN (SELECT item_id FROM judging_slot WHERE campaign_id = %(campaign)s
                    AND (purpose = 'check' OR was = 'check' OR purpose = 'judge' AND %(complete)s)))
"""
NOT_JUDGEABLE = """
judging_judgment j WHERE j.grade IS NULL
   AND j.assessor_id IN (SELECT id FROM judging_assessor WHERE campaign_id = %(campaign)s)
"""
NO_ANSWER = -(2**15)


@dataclass(frozen=True)
class Items:
    """The items of a campaign in the order of their ids; a code is a place among them."""

    high: NDArray[np.uint64]  # halves of the ids
    low: NDArray[np.uint64]
    place: NDArray[np.int32]  # in the frame, -1 outside

    def codes(self, high: NDArray[Any], low: NDArray[Any]) -> NDArray[np.int32]:
        """Return the items' codes, -1 where an id is not known.

        Ids are distinguished by their first half; where items share one, by the second half.
        """
        high, low = high.astype(np.uint64), low.astype(np.uint64)
        code = np.searchsorted(self.high, high)
        last = self.high.size - 1
        if last < 0:
            return np.full(high.size, -1, dtype=np.int32)
        while True:
            at = np.minimum(code, last)
            further = (code <= last) & (self.high[at] == high) & (self.low[at] < low)
            if not further.any():
                break
            code = code + further
        is_known = (code <= last) & (self.high[at] == high) & (self.low[at] == low)
        return np.where(is_known, code, -1).astype(np.int32)


@dataclass(frozen=True)
class AuditRows:
    """The entries of one audit."""

    tier: str
    item: NDArray[np.int32]  # codes
    probability: Floats
    selected: NDArray[np.bool_]
    look: Look | None  # what was declared of it
    is_taught: bool  # it has learned, and predictions of gold are to keep to the audits before
    assumption: str = ""  # what is declared of gold that was imported; such an audit gives way to a drawn one


@dataclass(frozen=True)
class Facts:
    """Everything that `CampaignArrays` holds and judgments do not change, and what turns judgments into the rest."""

    draw: Draw
    topic_ids: list[str]
    n_grades: int
    relevant_grade: int
    runs: list[Run]
    frame: pl.DataFrame
    returned: SparseRuns
    ranks_outside: list[Ints]
    topic_index: Ints
    gold_grade: Ints
    drawn_in: Ints  # [frame]
    first_probability: Floats
    n_drawn: Ints
    n_learned: int  # batches before the first that learned, or all
    is_refitted: bool  # predictions may use later ones as well, once they are judged
    items: Items
    shown: Ints  # places of items that a later batch drew after an assessor had seen them as checks
    audits: list[AuditRows]
    answer: NDArray[np.int16]  # by code: the gold answer of a check, NO_ANSWER of other items
    order_is_random: bool


def fingerprint(campaign: Campaign) -> tuple[Any, ...]:
    """Return what differs as soon as facts, or the purposes of slots already filled, may have changed."""
    return fetch_row(
        FINGERPRINT,
        {
            "campaign": campaign.pk,
            "collection": campaign.collection_id,
            "scale": campaign.scale_id,
            "subjects": [f"campaign:{campaign.pk}", f"collection:{campaign.collection_id}"],
            "harmless": HARMLESS,
        },
    )


def read_facts(campaign: Campaign) -> Facts:
    """Return the facts of a drawn campaign. Audits are read first: they can then only look less complete."""
    keys: dict[str, Any] = {"campaign": campaign.pk, "collection": campaign.collection_id}
    entries = _entries(keys)
    draw = newest_draw(campaign)
    if draw is None:
        raise FrameRefused(f"campaign {campaign} has no draw: there is nothing to estimate from")
    frame = load_frame(draw)
    topic_ids = draw.parameters["topics"]  # topics that came later are another question
    topic_index = frame["topic_id"].cast(pl.Enum(topic_ids)).to_physical().to_numpy().astype(np.int64)
    drawn_in = frame["drawn_in"].to_numpy().astype(np.int64)
    cell = np.ravel_multi_index((drawn_in - 1, topic_index), (draw.batch, len(topic_ids)), mode="clip")
    n_drawn = np.bincount(cell[drawn_in > 0], minlength=draw.batch * len(topic_ids))
    runs = list(campaign.collection.runs.all())
    if not runs and not draw.selection_kind.is_complete:  # a foreign sample may come before them
        raise FrameRefused("the collection has no runs: there is nothing to estimate")
    with ThreadPoolExecutor(1) as beside:  # while the database works
        ranks = beside.submit(_ranks, runs, frame, draw.parameters["depth"], topic_ids)
        items = _items(keys, frame)
        shown = _shown_before_they_were_drawn(campaign, draw, items, drawn_in)
        values = campaign.scale.values()
        keys["top"] = max(values)
        gold_grade = _gold_grades(keys, frame)
        keys["complete"] = draw.selection_kind.is_complete
        answer = _answers(keys, items, shown)
        audits = _audits(entries, items, campaign)
        returned, outside = ranks.result()
    return Facts(
        draw=draw,
        topic_ids=topic_ids,
        n_grades=len(values),
        relevant_grade=campaign.scale.relevant_grade,
        runs=runs,
        frame=frame,
        returned=returned,
        ranks_outside=outside,
        topic_index=topic_index,
        gold_grade=gold_grade,
        drawn_in=drawn_in,
        first_probability=first_drawn(draw, frame),
        n_drawn=n_drawn.reshape(draw.batch, len(topic_ids)).astype(np.int64),
        **_learning(campaign, draw),
        items=items,
        shown=np.sort(items.place[shown]).astype(np.int64),
        audits=audits,
        answer=answer,
        order_is_random=campaign.has_random_order
        and not Event.objects.filter(subject=f"campaign:{campaign.pk}", verb=IMPORTED_JUDGMENTS).exists(),
    )


def _ranks(
    runs: list[Run], frame: pl.DataFrame, depth: int, topic_ids: list[str]
) -> tuple[SparseRuns, list[Ints]]:
    rankings = (read_rankings(local(run.rankings)) for run in runs)  # one after the other
    return ranks_in_pairs(rankings, frame["topic_id"], frame["doc_id"], depth, topic_ids)


def _items(keys: dict[str, Any], frame: pl.DataFrame) -> Items:
    ids, text = lines("i.id", "t.topic_id || E'\\t' || d.doc_id", ITEMS, keys)
    pairs = text_table(text, dict.fromkeys(ITEM_COLUMNS, pl.String))
    del text  # as large as the table
    place = _places(frame, pairs)
    return Items(ids["high"].astype(np.uint64), ids["low"].astype(np.uint64), place)


def _places(frame: pl.DataFrame, pairs: pl.DataFrame) -> NDArray[np.int32]:
    """Return the places of pairs in the frame, -1 where they are not in it."""
    known = frame.select(ITEM_COLUMNS).with_row_index("place")
    places = pairs.join(known, on=ITEM_COLUMNS, how="left", maintain_order="left")["place"]
    return places.cast(pl.Int32).fill_null(-1).to_numpy()


def _gold_grades(keys: dict[str, Any], frame: pl.DataFrame) -> Ints:
    known = np.full(frame.height, -1, dtype=np.int64)
    text = fetch_row(GOLD, keys)[0]
    schema = {"topic_id": pl.String, "doc_id": pl.String, "grade": pl.Int64}
    answers = text_table((text or "").encode(), schema)
    place = _places(frame, answers)
    known[place[place >= 0]] = answers["grade"].to_numpy()[place >= 0]
    return known


def _learning(campaign: Campaign, draw: Draw) -> dict[str, Any]:
    """Return how many batches predictions may learn from; with more the items of batches that learned have a bias.

    It is of second order, and accepted where every batch that learned says so.
    """
    is_first = draw.batch == 1  # nothing was judged from which it could learn
    learned = [] if is_first else list(campaign.draws.exclude(learned_from=None).order_by("batch"))
    if not learned:
        return {"n_learned": draw.batch, "is_refitted": False}
    return {"n_learned": learned[0].learned_from, "is_refitted": all(one.is_refitted for one in learned)}


def not_judgeable(campaign: Campaign, facts: Facts) -> Ints:
    """Return the places of items that an assessor could not judge: none of them keeps a batch from being finished.

    Only refitted predictions ask for that; without them nothing is read.
    """
    if not facts.is_refitted:
        return np.zeros(0, dtype=np.int64)
    rows = fetch_rows({"item": ("uuid", "j.item_id")}, NOT_JUDGEABLE, {"campaign": campaign.pk})
    code = facts.items.codes(rows["item_high"], rows["item_low"])
    place = facts.items.place[code[code >= 0]]
    return np.unique(place[place >= 0]).astype(np.int64)


def _shown_before_they_were_drawn(
    campaign: Campaign, draw: Draw, items: Items, drawn_in: Ints
) -> NDArray[np.int32]:
    """Return the codes of items that a later batch drew after an assessor had seen them as checks."""
    if draw.batch == 1:
        return np.zeros(0, dtype=np.int32)
    at = dict(campaign.draws.values_list("batch", "created_at"))
    drawn_at = np.array([0.0, *(at[batch].timestamp() for batch in sorted(at))])
    rows = fetch_rows(
        {"item": ("uuid", "item_id"), "at": ("time", "at")},
        FIRST_SHOWN,
        {"campaign": campaign.pk, "drawn": draw.created_at},
    )
    code = items.codes(rows["item_high"], rows["item_low"])
    place = items.place[code]
    before = np.where(place >= 0, drawn_at[drawn_in[place]], 0.0)
    return code[(code >= 0) & (seconds(rows["at"]) < before)]


def _entries(keys: dict[str, Any]) -> NDArray[Any]:
    return fetch_rows(
        {
            "sequence": ("i8", "a.sequence"),
            "is_silver": ("flag", "a.tier = 'silver'"),
            "item": ("uuid", "e.item_id"),
            "probability": ("f8", "e.inclusion_probability"),
            "selected": ("flag", "e.selected"),
        },
        ENTRIES,
        keys,
    )


def _look(audit: Audit) -> Look | None:
    """Return what was declared and recorded of an audit; None of one that was not declared."""
    look, n_looks, n_planned, n_drawn = audit.look, audit.n_looks, audit.n_planned, audit.n_drawn
    if look is None or n_looks is None or n_planned is None or n_drawn is None:  # all of them, or none
        return None
    return Look(look, n_looks, audit.expected_in_total, n_planned, n_drawn)


def _is_taught(audit: Audit) -> bool:
    """Return whether an audit has learned, and predictions of gold do not use what it found."""
    has_learned = audit.tier == AuditTier.GOLD and bool(audit.learned_from)
    return has_learned and audit.gold_fit == GoldFit.EXACT


def _audits(entries: NDArray[Any], items: Items, campaign: Campaign) -> list[AuditRows]:
    made = {audit.sequence: audit for audit in Audit.objects.filter(campaign=campaign)}
    code = items.codes(entries["item_high"], entries["item_low"])
    sequence = entries["sequence"].astype(np.int64)
    audits = []
    for number in np.unique(sequence):
        own = np.flatnonzero(sequence == number)
        own = own[np.argsort(code[own], kind="stable")]
        audits.append(
            AuditRows(
                tier=AuditTier.SILVER if entries["is_silver"][own[0]] else AuditTier.GOLD,
                item=code[own],
                probability=entries["probability"][own].astype(np.float64),
                selected=entries["selected"][own].astype(bool),
                look=_look(made[int(number)]),
                is_taught=_is_taught(made[int(number)]),
                assumption=made[int(number)].assumption,
            )
        )
    return audits


def _answers(keys: dict[str, Any], items: Items, shown: NDArray[np.int32]) -> NDArray[np.int16]:
    """Return by item the gold answer of items chosen for checking, also if drawn since."""
    ids = [uuid.UUID(int=(int(items.high[code]) << 64) + int(items.low[code])) for code in shown]
    rows = fetch_rows({"item": ("uuid", "i.id"), "grade": ("i2", "g.grade")}, CHECKS, keys | {"shown": ids})
    code = items.codes(rows["item_high"], rows["item_low"])
    answer = np.full(items.place.size, NO_ANSWER, dtype=np.int16)
    answer[code[code >= 0]] = rows["grade"][code >= 0]
    return answer
