"""Rows and ranking files to arrays: everything an estimate of a campaign is computed from, read once."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from django.db import connection
from django.db.models import Exists, OuterRef, Q
from numpy.typing import NDArray

from judging.models import IMPORTED_JUDGMENTS, Assessor, Campaign, GoldAnswer, Run, Slot
from sampling.draws import permanent_random_numbers
from sampling.frames import load_frame, newest_draw, ranks_outside, returned_in_frame
from sampling.models import AuditEntry, Draw
from sampling.sparse import SparseRuns
from touchstone.models import Event

# One statement, hence one snapshot: the newest grade of every assessor and item, with the purpose of its slot.
NEWEST_JUDGMENTS = """
SELECT DISTINCT ON (j.item_id, j.assessor_id)
       j.id, j.item_id, j.assessor_id, j.grade, s.purpose
  FROM judging_judgment j
  JOIN judging_slot s ON s.id = j.slot_id
 WHERE s.campaign_id = %s
 ORDER BY j.item_id, j.assessor_id, j.sequence DESC
"""
# When each item was first shown to anybody.
FIRST_SHOWN = """
SELECT s.item_id, min(l.leased_at) FROM judging_lease l JOIN judging_slot s ON s.id = l.slot_id
 WHERE s.campaign_id = %s GROUP BY s.item_id
"""
ITEM_PLACES = """
SELECT i.id, t.topic_id, d.doc_id
  FROM judging_item i
  JOIN judging_topic t ON t.id = i.topic_id
  JOIN judging_document d ON d.id = i.document_id
 WHERE i.campaign_id = %s
"""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CampaignArrays:
    """A campaign as arrays. Frame-indexed: every pooled pair. Judged: drawn items with at least one judgment."""

    draw: Draw  # the newest batch: its frame knows of all
    n_topics: int
    n_grades: int
    runs: list[Run]
    frame: pl.DataFrame
    returned: SparseRuns  # ranks [run, frame], where a run returns the item
    ranks_outside: list[Ints]  # [run], the ranks at which a run returns documents that could not be drawn
    topic_index: Ints  # [frame]
    gold_grade: Ints  # [frame], -1 where no gold answer is known
    judged: Ints  # [judged], places in the frame
    batch: Ints  # [judged], from 0: the first batch that drew the item
    first_probability: Floats  # [batch, frame], the chance that this batch is the first to draw the item
    n_drawn: Ints  # [batch, topic], items that the batch was the first to draw
    n_learned: (
        int  # predictions may use the labels of so many batches: later ones have seen these in their sizes
    )
    assessors: list[Assessor]
    label_item: Ints  # [label], places in judged
    label_assessor: Ints  # [label], places in assessors
    label_grade: Ints  # [label]
    audited: NDArray[np.bool_]  # [judged]
    audit_grade: Ints  # [judged], 0 where not audited
    audit_probability: Floats  # [judged], 0 where not eligible
    check_assessor: Ints  # [check]
    check_true: Ints
    check_given: Ints
    n_audit_pending: int
    order_is_random: bool  # False once judgments were imported: which items a file holds is not random
    last_judgment_id: int
    n_judgments: int

    @property
    def inclusion_probability(self) -> Floats:
        """Return per judged item the chance that any batch draws it."""
        return np.asarray(self.first_probability[:, self.judged].sum(axis=0))

    @property
    def ranks(self) -> Ints:
        """Return the ranks as a table [run, frame], 0 where a run does not return the item: for small frames."""
        return self.returned.dense().astype(np.int64)

    def draw_probability(self, members: NDArray[np.bool_]) -> Floats:
        """Return per judged item the chance that it is among `members`, a mask over the judged items.

        What is judged (or open to an audit) so far is within a topic and batch a simple random part, because the order
        of presentation is random. So the chance is the sum over batches of the chance that the batch is the first to
        draw the item, times the share of the batch's items of the topic that are members. With all drawn items judged
        it is the inclusion probability itself.
        """
        return self._chances(members)[self.judged]

    def _chances(self, members: NDArray[np.bool_]) -> Floats:
        """Return `draw_probability` for every pair of the frame."""
        return np.asarray((self.first_probability * self._share(members)[:, self.topic_index]).sum(axis=0))

    def _share(self, members: NDArray[np.bool_]) -> Floats:
        """Return by batch and topic the share of the drawn items that are members."""
        return _shares(self.batch[members], self.topic_index[self.judged][members], self.n_drawn)

    def topics_in_part(self, members: NDArray[np.bool_]) -> int:
        """Return how many topics have some, but not all, of their drawn items among the members."""
        n_members = np.bincount(self.topic_index[self.judged][members], minlength=self.n_topics)
        return int(np.count_nonzero((n_members > 0) & (n_members < self.n_drawn.sum(axis=0))))

    def topics_without(self, members: NDArray[np.bool_]) -> int:
        """Return how many topics have pairs that could be drawn, but as things stand cannot be among the members.

        A topic of which a later batch drew something that nobody has judged yet still has what earlier batches gave it.
        """
        out_of_reach = (self.first_probability > 0).any(axis=0) & (self._chances(members) <= 0)
        return int(np.unique(self.topic_index[out_of_reach]).size)

    def not_covered(self, members: NDArray[np.bool_], what: str) -> tuple[str, int | None] | None:
        """Return why the members do not stand for the whole frame, and how many topics are missing; None if they do."""
        missing = self.topics_without(members)
        if missing:
            return f"{missing} of {self.n_topics} topics have no {what} yet", missing
        partly = 0 if self.order_is_random else self.topics_in_part(members)
        if partly:
            words = "topics are judged in part, and judgments were imported: what a file holds is not a random part"
            return f"{partly} {words}", None
        return None

    def no_audit(self) -> str:
        """Return why there is no corrected number while no audit is complete."""
        waiting = (
            f"; {self.n_audit_pending} selected items wait for the gold tier" if self.n_audit_pending else ""
        )
        return f"no audit is complete yet{waiting}"


def campaign_arrays(campaign: Campaign) -> CampaignArrays:
    """Return the arrays of a drawn campaign, from one snapshot of its judgments."""
    entries = _audit_entries(
        campaign
    )  # before the judgments: an audit can then only look less complete than it is
    newest = _query(NEWEST_JUDGMENTS, campaign)
    places = {row[0]: row[1:] for row in _query(ITEM_PLACES, campaign)}
    draw = newest_draw(campaign)
    if draw is None:
        raise ValueError(f"campaign {campaign} has no draw: there is nothing to estimate from")
    frame = load_frame(draw)
    runs = list(campaign.collection.runs.all())
    place_of_pair = {pair: index for index, pair in enumerate(frame.select("topic_id", "doc_id").iter_rows())}
    topic_ids = draw.parameters["topics"]  # topics that came later are another question
    topic_place = {topic_id: index for index, topic_id in enumerate(topic_ids)}
    topic_index = np.array([topic_place[topic_id] for topic_id in frame["topic_id"]], dtype=np.int64)
    drawn_in = frame["drawn_in"].to_numpy().astype(np.int64)
    # Imported judgments may be of items that were never drawn: those stand for nothing but themselves. A check that a
    # later batch drew is an item like others, and what was said of it counts.
    pairs = {item: place_of_pair[place] for item, place in places.items() if place in place_of_pair}
    drawn = {item: place for item, place in pairs.items() if drawn_in[place] > 0}
    labels = [
        (drawn[item], assessor, grade)
        for _, item, assessor, grade, purpose in newest
        if purpose in ("judge", "check") and item in drawn
    ]
    shown = _shown_before_they_were_drawn(campaign, draw, drawn, drawn_in)
    were_checks = np.array(sorted(shown.values()), dtype=np.int64)

    def out_of_turn(members: Ints) -> Ints:
        return _out_of_turn(draw, frame, topic_index, were_checks, members)

    early = set(out_of_turn(np.unique([place for place, *_ in labels])).tolist()) if shown else set()
    labels = [label for label in labels if label[0] not in early]
    judges = {assessor for _, assessor, _ in labels}
    people = campaign.assessors.select_related("user")
    assessors = [a for a in people if a.tier != Assessor.Tier.GOLD or a.pk in judges]

    judged = np.unique(np.array([label[0] for label in labels], dtype=np.int64))
    n_drawn = np.zeros((draw.batch, len(topic_ids)), dtype=np.int64)
    np.add.at(n_drawn, (drawn_in[drawn_in > 0] - 1, topic_index[drawn_in > 0]), 1)
    audit = _audit(entries, newest, drawn, judged)
    if shown:
        early_audits = np.isin(judged, out_of_turn(judged[audit["audit_probability"] > 0]))
        audit["audit_probability"][early_audits], audit["audited"][early_audits] = 0.0, False
    return CampaignArrays(
        draw=draw,
        n_topics=len(topic_ids),
        n_grades=len(campaign.scale.values()),
        runs=runs,
        frame=frame,
        returned=returned_in_frame(frame, runs, draw.parameters["depth"]),
        ranks_outside=ranks_outside(frame, runs, draw.parameters["depth"], topic_ids),
        topic_index=topic_index,
        gold_grade=_gold_grades(campaign, place_of_pair, frame.height),
        judged=judged,
        batch=drawn_in[judged] - 1,
        first_probability=_first_drawn(draw, frame),
        n_drawn=n_drawn,
        n_learned=_n_learned(campaign, draw),
        assessors=assessors,
        **_labels(labels, judged, assessors),
        **audit,
        **_checks(campaign, newest, assessors, list(shown)),
        order_is_random=not Event.objects.filter(
            subject=f"campaign:{campaign.pk}", verb=IMPORTED_JUDGMENTS
        ).exists(),
        last_judgment_id=max((row[0] for row in newest), default=0),
        n_judgments=len(newest),
    )


def _n_learned(campaign: Campaign, draw: Draw) -> int:
    """Return from how many batches predictions may learn; fitted on more they would bias what learned batches drew."""
    learned = campaign.draws.exclude(learned_from=None).order_by("batch").first()
    return draw.batch if learned is None else int(learned.learned_from)


def _shares(batch: Ints, topic: Ints, n_drawn: Ints) -> Floats:
    """Return by batch and topic the share of the drawn items that some items are, given by their batch and topic.

    Where a batch has drawn nothing of a topic its share over all topics: had it drawn something, about so much of it
    would be among them. 0 would leave the batch out of the probability also when everything is judged. But a topic
    that has drawn items and none of them among these has not been reached: there only a batch that is complete counts.
    """
    n = np.zeros(n_drawn.shape)
    np.add.at(n, (batch, topic), 1)
    in_all = n_drawn.sum(axis=1)
    everywhere = np.divide(n.sum(axis=1), in_all, out=np.ones(in_all.shape), where=in_all > 0)[:, None]
    reached = (n.sum(axis=0) > 0) | (n_drawn.sum(axis=0) == 0)
    share = np.where(reached | (everywhere == 1), everywhere, 0.0)
    return np.divide(n, n_drawn, out=share, where=n_drawn > 0)


def _shown_before_they_were_drawn(campaign: Campaign, draw: Draw, drawn: dict, drawn_in: Ints) -> dict:
    """Return the items that a later batch drew after somebody had seen them as checks, with their places."""
    if draw.batch == 1:
        return {}
    at = dict(campaign.draws.values_list("batch", "created_at"))
    return {
        item: drawn[item]
        for item, shown in _query(FIRST_SHOWN, campaign)
        if item in drawn and shown < at[int(drawn_in[drawn[item]])]
    }


def _out_of_turn(draw: Draw, frame: pl.DataFrame, topic_index: Ints, shown: Ints, members: Ints) -> Ints:
    """Return those items, shown as checks before a batch drew them, that do not count among the members yet.

    A batch is judged in random order, but what had been a check is ahead. It counts when its turn comes: once so large
    a part of what the batch drew of its topic is among the members as the item's own random number says.
    """
    drawn_in = frame["drawn_in"].to_numpy().astype(np.int64)
    others = np.setdiff1d(members, shown)
    n_others = np.zeros((draw.batch, int(topic_index.max()) + 1), dtype=np.int64)
    rest = np.setdiff1d(np.flatnonzero(drawn_in), shown)
    np.add.at(n_others, (drawn_in[rest] - 1, topic_index[rest]), 1)
    share = _shares(drawn_in[others] - 1, topic_index[others], n_others)
    pairs = frame[shown]
    numbers = permanent_random_numbers(pairs["topic_id"], pairs["doc_id"], draw.seed, purpose="order")
    return shown[numbers >= share[drawn_in[shown] - 1, topic_index[shown]]]


def _first_drawn(draw: Draw, frame: pl.DataFrame) -> Floats:
    """Return [batch, item] the chance that this batch is the first to draw the item.

    Batches of one seed are nested: together they draw with the largest of their probabilities. Batches drawn with
    replacement are independent.
    """
    own = frame.select(f"batch_{batch}" for batch in range(1, draw.batch + 1)).to_numpy().T
    if draw.selection == Draw.Selection.REPLACEMENT:
        together = 1 - np.cumprod(1 - own, axis=0)
    else:
        together = np.maximum.accumulate(own, axis=0)
    return np.asarray(np.diff(together, axis=0, prepend=0.0))


def _query(sql: str, campaign: Campaign) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(sql, [campaign.pk])
        return cursor.fetchall()


def _labels(labels: list[tuple[int, int, int]], judged: Ints, assessors: list[Assessor]) -> dict[str, Ints]:
    place = {assessor.pk: index for index, assessor in enumerate(assessors)}
    return {
        "label_item": np.searchsorted(judged, np.array([label[0] for label in labels], dtype=np.int64)),
        "label_assessor": np.array([place[label[1]] for label in labels], dtype=np.int64),
        "label_grade": np.array([label[2] for label in labels], dtype=np.int64),
    }


def _audit_entries(campaign: Campaign) -> dict[int, list[tuple]]:
    entries: dict[int, list[tuple]] = {}
    rows = AuditEntry.objects.filter(audit__campaign=campaign).values_list(
        "audit__sequence", "item_id", "inclusion_probability", "selected"
    )
    for sequence, *rest in rows.order_by("audit__sequence", "id"):
        entries.setdefault(sequence, []).append(tuple(rest))
    return entries


def _audit(entries: dict[int, list[tuple]], newest: list[tuple], drawn: dict, judged: Ints) -> dict:
    """Return the audit of the judged items: the union of the audits whose every item has its gold-tier judgment.

    All audits share one random number an item, so the union selects with the largest of the probabilities. An audit
    that is half done must not count: which items are done first is not random.
    """
    gold = {item: grade for _, item, _, grade, purpose in newest if purpose == "audit"}
    probability = np.zeros(judged.size)
    audited = np.zeros(judged.size, dtype=bool)
    grade = np.zeros(judged.size, dtype=np.int64)
    pending = 0
    for _, rows in sorted(entries.items()):
        missing = sum(1 for item, _, selected in rows if selected and item not in gold)
        if missing:
            pending = max(pending, missing)
            continue
        for item, pi, selected in rows:
            place = np.searchsorted(judged, drawn[item])
            if place == judged.size or judged[place] != drawn[item]:
                continue
            probability[place] = max(probability[place], pi)
            if selected:
                audited[place], grade[place] = True, gold[item]
    return {
        "audited": audited,
        "audit_grade": grade,
        "audit_probability": probability,
        "n_audit_pending": pending,
    }


def _checks(
    campaign: Campaign, newest: list[tuple], assessors: list[Assessor], were_checks: list
) -> dict[str, Ints]:
    """Return the gold checks: what assessors answered, on items chosen for checking, also if drawn since."""
    is_check = Exists(Slot.objects.filter(item=OuterRef("pk"), purpose="check"))
    chosen = campaign.items.filter(is_check | Q(pk__in=were_checks))
    rows = list(chosen.values_list("pk", "topic_id", "document_id"))
    answers = {
        (topic, document): grade
        for topic, document, grade in GoldAnswer.objects.filter(
            topic__collection=campaign.collection, document_id__in=[row[2] for row in rows]
        ).values_list("topic_id", "document_id", "grade")
    }
    truth = {item: answers[topic, document] for item, topic, document in rows if (topic, document) in answers}
    place = {assessor.pk: index for index, assessor in enumerate(assessors)}
    seen = [
        (place[assessor], truth[item], grade)
        for _, item, assessor, grade, purpose in newest
        if purpose != "void" and item in truth and assessor in place
    ]
    columns = np.array(seen, dtype=np.int64).reshape(-1, 3)
    return {"check_assessor": columns[:, 0], "check_true": columns[:, 1], "check_given": columns[:, 2]}


def _gold_grades(campaign: Campaign, place_of_pair: dict[tuple[str, str], int], n_frame: int) -> Ints:
    known = np.full(n_frame, -1, dtype=np.int64)
    top_grade = max(campaign.scale.values())
    answers = GoldAnswer.objects.filter(
        topic__collection=campaign.collection, grade__gte=0, grade__lte=top_grade
    )
    for topic_id, doc_id, grade in answers.values_list(
        "topic__topic_id", "document__doc_id", "grade"
    ).iterator():
        place = place_of_pair.get((topic_id, doc_id))
        if place is not None:
            known[place] = grade
    return known
