"""Facts and judgments to the arrays of a campaign: no database here, and the same judgments give the same arrays."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.group_sequential import Look
from analytics.frames.arrays import CampaignArrays, Floats, Ints, out_of_turn
from analytics.frames.facts import NO_ANSWER, Facts
from analytics.frames.log import AUDIT, CHECK, SILVER, Log
from judging.models import Assessor
from sampling.models import AuditTier


@dataclass(frozen=True)
class People:
    """The assessors whose judgments count, and the place among them of each of the campaign's."""

    assessors: list[Assessor]
    place: Ints  # by place among all of the campaign's, -1 where left out


def assemble(
    facts: Facts, log: Log, everybody: list[Assessor], n_audits_planned: int | None
) -> CampaignArrays:
    """Return the arrays. `everybody` are the campaign's assessors in the order of their keys."""
    newest = log.newest()
    # Imported judgments may be of items that were never drawn: those stand for nothing but themselves. A check that a
    # later batch drew is an item like others, and what was said of it counts.
    place = facts.items.place
    place = np.where((place >= 0) & (facts.drawn_in[place] > 0), place, -1)
    at = place[newest.item]
    is_label = (newest.purpose <= CHECK) & (at >= 0)
    if facts.shown.size:
        early = _out_of_turn(facts, np.unique(at[is_label]))
        is_label &= ~np.isin(at, early)
    chosen = np.flatnonzero(is_label)
    at = at[chosen]
    judged = _present(at, facts.frame.height)
    people = _people(everybody, newest.assessor[chosen])
    rank = np.full(facts.frame.height + 1, -1, dtype=np.int64)  # the last one is that of the place -1
    rank[judged] = np.arange(judged.size)
    return CampaignArrays(
        draw=facts.draw,
        n_topics=len(facts.topic_ids),
        n_grades=facts.n_grades,
        relevant_grade=facts.relevant_grade,
        runs=facts.runs,
        frame=facts.frame,
        returned=facts.returned,
        ranks_outside=facts.ranks_outside,
        topic_index=facts.topic_index,
        gold_grade=facts.gold_grade,
        judged=judged,
        batch=facts.drawn_in[judged] - 1,
        first_probability=facts.first_probability,
        n_drawn=facts.n_drawn,
        n_learned=facts.n_learned,
        assessors=people.assessors,
        label_item=rank[at],
        label_assessor=people.place[newest.assessor[chosen]],
        label_grade=newest.grade[chosen].astype(np.int64),
        label_time=newest.time[chosen],
        label_judgment=newest.id[chosen],
        **_audit(facts, newest, rank[place], judged),
        looks=_looks(facts, newest),
        **_checks(facts, newest, people),
        **_silver_labels(newest, rank[place], people),
        n_audits=len(facts.audits),
        n_audits_planned=n_audits_planned,
        order_is_random=facts.order_is_random,
        last_judgment_id=int(newest.id[-1]) if newest.id.size else 0,
        n_judgments=newest.id.size,
    )


def _present(places: NDArray[Any], size: int) -> Ints:
    """Return the different places, ascending."""
    there = np.zeros(size, dtype=bool)
    there[places] = True
    return np.flatnonzero(there)


def _out_of_turn(facts: Facts, members: NDArray[Any]) -> Ints:
    return out_of_turn(facts.draw, facts.frame, facts.topic_index, facts.shown, members.astype(np.int64))


def _people(everybody: list[Assessor], judges: NDArray[Any]) -> People:
    """Leave out gold assessors, except those who have judged ordinary items."""
    has_judged = np.bincount(judges, minlength=len(everybody)) > 0
    counts = np.array([a.tier != Assessor.Tier.GOLD for a in everybody], dtype=bool) | has_judged
    place = np.where(counts, np.cumsum(counts) - 1, -1)
    return People([a for a, kept in zip(everybody, counts, strict=True) if kept], place)


def _grade_by_item(newest: Log, purpose: int, n_items: int) -> NDArray[np.int16]:
    """Return by item the grade given in a slot of the purpose, -1 where there is none."""
    grade = np.full(n_items, -1, dtype=np.int16)
    rows = np.flatnonzero(newest.purpose == purpose)
    grade[newest.item[rows]] = newest.grade[rows]
    return grade


def _audit(facts: Facts, newest: Log, rank: Ints, judged: Ints) -> dict[str, Any]:
    """Return the audits of the judged items: of each tier the union of those whose every item has its judgment.

    All audits share one random number an item, so the union selects with the largest of the probabilities. An audit
    that is half done must not count: which items are done first is not random. `rank` is the place among the judged, by
    item.
    """
    n_items = facts.items.place.size
    probability, selected, grade, pending = _union(
        facts, AuditTier.GOLD, _grade_by_item(newest, AUDIT, n_items), rank, judged.size
    )
    resting = _is_declared(facts, _grade_by_item(newest, AUDIT, n_items))
    assumption = next((audit.assumption for audit in facts.audits if audit.assumption), "") if resting else ""
    silver, *_ = _union(facts, AuditTier.SILVER, _grade_by_item(newest, SILVER, n_items), rank, judged.size)
    if facts.shown.size:
        for chance in (probability, silver):
            chance[np.isin(judged, _out_of_turn(facts, judged[chance > 0]))] = 0.0
        selected &= probability > 0
    return {
        "audited": selected,
        "audit_grade": grade,
        "audit_probability": probability,
        "n_audit_pending": pending,
        "audit_assumption": assumption,
        "silver_probability": silver,
    }


def _union(
    facts: Facts, tier: str, grade_of: NDArray[np.int16], rank: Ints, n_judged: int
) -> tuple[Floats, NDArray[np.bool_], Ints, int]:
    """Return by judged item the probability, whether it was selected, its grade; and how many items are missing."""
    probability = np.zeros(n_judged)
    selected = np.zeros(n_judged, dtype=bool)
    grade = np.zeros(n_judged, dtype=np.int64)
    pending = 0
    declared = _is_declared(facts, grade_of)
    for audit in facts.audits:
        if audit.tier != tier or bool(audit.assumption) != (declared and tier == AuditTier.GOLD):
            continue
        missing = int(np.count_nonzero(grade_of[audit.item[audit.selected]] < 0))
        if missing:
            pending = max(pending, missing)
            continue
        place = rank[audit.item]
        there = place >= 0
        probability[place[there]] = np.maximum(probability[place[there]], audit.probability[there])
        chosen = there & audit.selected
        selected[place[chosen]] = True
        grade[place[chosen]] = grade_of[audit.item[chosen]]
    return probability, selected, grade, pending


def _is_declared(facts: Facts, grade_of: NDArray[np.int16]) -> bool:
    """Return whether numbers rest on gold that was declared an audit: none that was drawn is complete yet."""
    gold = [audit for audit in facts.audits if audit.tier == AuditTier.GOLD]
    is_complete = [bool((grade_of[audit.item[audit.selected]] >= 0).all()) for audit in gold]
    drawn = any(done for done, audit in zip(is_complete, gold, strict=True) if not audit.assumption)
    return not drawn and any(audit.assumption for audit in gold)


def _looks(facts: Facts, newest: Log) -> tuple[Look, ...]:
    """Return the declared looks that have come, if the newest complete audit of the gold tier is one; else none."""
    grade_of = _grade_by_item(newest, AUDIT, facts.items.place.size)
    gold = [audit for audit in facts.audits if audit.tier == AuditTier.GOLD and not audit.assumption]
    complete = [bool((grade_of[audit.item[audit.selected]] >= 0).all()) for audit in gold]
    n = max((place + 1 for place, is_complete in enumerate(complete) if is_complete), default=0)
    looks = tuple(audit.look for audit in gold[:n] if audit.look is not None)
    is_in_turn = all(complete[:n]) and [look.number for look in looks] == list(range(1, n + 1))
    return looks if is_in_turn else ()


def _checks(facts: Facts, newest: Log, people: People) -> dict[str, Any]:
    """Return the gold checks: the answers of assessors on items chosen for checking, also if drawn since."""
    true = facts.answer[newest.item]
    rows = np.flatnonzero((true != NO_ANSWER) & (newest.purpose <= CHECK))  # never what an audit brought
    who = people.place[newest.assessor[rows]]
    rows, who = rows[who >= 0], who[who >= 0]
    return {
        "check_assessor": who,
        "check_true": true[rows].astype(np.int64),
        "check_given": newest.grade[rows].astype(np.int64),
        "check_time": newest.time[rows],
        "check_judgment": newest.id[rows],
    }


def _silver_labels(newest: Log, rank: Ints, people: People) -> dict[str, Any]:
    """Return the silver tier's grades of judged items that an audit selected for it."""
    rows = np.flatnonzero(newest.purpose == SILVER)
    place, who = rank[newest.item[rows]], people.place[newest.assessor[rows]]
    kept = (place >= 0) & (who >= 0)
    return {
        "silver_label_item": place[kept],
        "silver_label_assessor": who[kept],
        "silver_label_grade": newest.grade[rows[kept]].astype(np.int64),
    }
