"""The log of a campaign as screening reads it: every judgment that somebody gave, in the order of presentation.

Unlike the arrays of the estimates it holds late judgments and those set aside too: they say how an assessor judges.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics.frames.facts import NO_ANSWER, Facts, Items
from analytics.frames.kept import current_reading
from analytics.frames.rows import fetch_rows, seconds
from analytics.numbers.arrays import Floats, Ints
from analytics.screening.log import UNKNOWN, ScreeningLog
from judging.models import Assessor, Campaign, Topic

ORDINARY, OF_GOLD, OF_SILVER, SET_ASIDE = range(4)
COLUMNS = {
    "item": ("uuid", "j.item_id"),
    "assessor": ("i8", "j.assessor_id"),
    "sequence": ("i2", "j.sequence"),
    "grade": ("i2", "coalesce(j.grade, -1)"),
    "milliseconds": ("i8", "j.active_milliseconds"),
    "purpose": (
        "i2",
        "CASE s.purpose WHEN 'audit' THEN 1 WHEN 'silver' THEN 2 WHEN 'void' THEN 3 ELSE 0 END",
    ),
    "time": ("time", "coalesce(l.leased_at, 'epoch'::timestamptz)"),
}
JUDGMENTS = """
judging_judgment j
  LEFT JOIN judging_lease l ON l.token = j.lease_token
  LEFT JOIN (SELECT id, purpose FROM judging_slot
              WHERE campaign_id = %(campaign)s AND purpose IN ('audit', 'silver', 'void')) s
         ON s.id = coalesce(j.slot_id, l.slot_id)
 WHERE j.assessor_id IN (SELECT id FROM judging_assessor WHERE campaign_id = %(campaign)s)
"""
TOPICS = "judging_item i WHERE i.campaign_id = %(campaign)s"
ADJUDICATED = """
(SELECT DISTINCT ON (a.item_id) a.item_id, a.grade FROM judging_adjudication a JOIN judging_item i ON i.id = a.item_id
  WHERE i.campaign_id = %(campaign)s ORDER BY a.item_id, a.id DESC) d WHERE d.grade IS NOT NULL
"""
AT_ONCE = 3  # judgments of an assessor with one and the same time of presentation came from a file


@dataclass(frozen=True)
class ScreeningEvidence:
    """The log with what its numbers stand for."""

    log: ScreeningLog
    grade: Ints  # [row], on the campaign's scale
    n_grades: int
    assessors: list[Assessor]  # by number in the log
    topic_ids: list[str]  # by number in the log


@dataclass(frozen=True)
class _Rows:
    """Judgments, the newest of each assessor and item."""

    item: NDArray[np.int32]  # codes
    assessor: Ints  # keys
    grade: Ints
    milliseconds: Ints  # of all its revisions together
    purpose: Ints
    time: Floats

    def part(self, chosen: NDArray[np.bool_]) -> "_Rows":
        return _Rows(*(column[chosen] for column in vars(self).values()))


def screening_evidence(campaign: Campaign) -> ScreeningEvidence:
    """Return the log of a drawn campaign as of now: ordinary judgments, checks, decoys, late ones.

    What audits brought is the truth for others, and no judgment of the log. A grade of an audit stands before a gold
    answer, and an adjudication before both.
    """
    reading = current_reading(campaign)
    facts, people = reading.facts, {person.pk: person for person in reading.people.assessors}
    keys = {"campaign": campaign.pk}
    rows = _newest(keys, facts.items)
    true_grade = _true_grades(keys, facts, rows)
    gold = np.array(
        [pk for pk, person in people.items() if person.tier == Assessor.Tier.GOLD], dtype=np.int64
    )
    is_counted = (rows.purpose == ORDINARY) | ((rows.purpose == SET_ASIDE) & ~np.isin(rows.assessor, gold))
    rows = rows.part(is_counted & np.isin(rows.assessor, list(people)))
    topic_of, topic_ids = _topics(keys, facts.items)
    who, assessor = np.unique(rows.assessor, return_inverse=True)
    topic, order = topic_of[rows.item], _order(assessor, rows.time)
    place = np.lexsort((np.where(np.isnan(order), np.inf, order), topic, assessor))
    item, grade = rows.item[place], rows.grade[place]
    relevant, truth = campaign.scale.relevant_grade, true_grade[item]
    assessors = [people[key] for key in who.tolist()]
    log = ScreeningLog.of(
        assessor[place],
        topic[place],
        order[place],
        grade >= relevant,
        seconds=np.where(rows.milliseconds[place] > 0, rows.milliseconds[place] / 1000, np.nan),
        prior=_priors(facts)[item],
        truth=np.where(truth == NO_ANSWER, UNKNOWN, truth >= relevant),
        is_machine=np.array([person.kind == Assessor.Kind.MACHINE for person in assessors], dtype=bool),
    )
    return ScreeningEvidence(log, grade, facts.n_grades, assessors, topic_ids)


def _newest(keys: Mapping[str, Any], items: Items) -> _Rows:
    """Return the newest grade of each assessor and item, when it was first presented, and the time spent on it."""
    rows = fetch_rows(COLUMNS, JUDGMENTS, keys)
    item, assessor = items.codes(rows["item_high"], rows["item_low"]), rows["assessor"].astype(np.int64)
    place = np.lexsort((rows["sequence"], item, assessor))
    place = place[item[place] >= 0]  # of an item that came a moment ago: the next run sees it
    item, assessor, rows = item[place], assessor[place], rows[place]
    is_first = np.ones(item.size, dtype=bool)
    is_first[1:] = (np.diff(item) != 0) | (np.diff(assessor) != 0)
    is_last = np.ones(item.size, dtype=bool)
    is_last[:-1] = is_first[1:]
    milliseconds = np.bincount(np.cumsum(is_first) - 1, rows["milliseconds"].astype(np.float64))
    newest = _Rows(
        item[is_last],
        assessor[is_last],
        rows["grade"][is_last].astype(np.int64),
        milliseconds.astype(np.int64),
        rows["purpose"][is_last].astype(np.int64),
        seconds(rows["time"][is_first].astype(np.int64)),
    )
    return newest.part(newest.grade >= 0)


def _order(assessor: Ints, time: Floats) -> Floats:
    """Return when each judgment was presented; NaN where that is unknown: an import gives all its rows one time."""
    place = np.lexsort((time, assessor))
    is_new = np.ones(time.size, dtype=bool)
    is_new[1:] = (np.diff(time[place]) != 0) | (np.diff(assessor[place]) != 0)
    run = np.cumsum(is_new) - 1
    n_alike = np.empty(time.size, dtype=np.int64)
    n_alike[place] = np.bincount(run)[run]
    return np.where((n_alike >= AT_ONCE) | (time <= 0), np.nan, time)


def _true_grades(keys: Mapping[str, Any], facts: Facts, rows: _Rows) -> NDArray[np.int16]:
    """Return by item the grade that is known, NO_ANSWER of other items."""
    known = facts.answer.copy()
    of_gold = rows.purpose == OF_GOLD
    known[rows.item[of_gold]] = rows.grade[of_gold]
    decided = fetch_rows({"item": ("uuid", "d.item_id"), "grade": ("i2", "d.grade")}, ADJUDICATED, keys)
    item = facts.items.codes(decided["item_high"], decided["item_low"])
    known[item[item >= 0]] = decided["grade"][item >= 0]
    return known


def _topics(keys: Mapping[str, Any], items: Items) -> tuple[Ints, list[str]]:
    """Return the number of the topic of every item, and the names of the topics by number."""
    rows = fetch_rows({"item": ("uuid", "i.id"), "topic": ("i8", "i.topic_id")}, TOPICS, keys)
    item = items.codes(rows["item_high"], rows["item_low"])
    topics, number = np.unique(rows["topic"][item >= 0].astype(np.int64), return_inverse=True)
    topic_of = np.zeros(items.place.size, dtype=np.int64)
    topic_of[item[item >= 0]] = number
    names = dict(Topic.objects.filter(pk__in=topics.tolist()).values_list("pk", "topic_id"))
    return topic_of, [names[topic] for topic in topics.tolist()]


def _priors(facts: Facts) -> Floats:
    """Return the prior of every item, NaN outside the frame."""
    prior = facts.frame["prior"].to_numpy().astype(np.float64)
    place = facts.items.place
    return np.where(place >= 0, prior[np.maximum(place, 0)], np.nan)
