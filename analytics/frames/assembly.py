"""Facts and judgments to the arrays of a campaign: no database here, and the same judgments give the same arrays."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.group_sequential import Look
from analytics.frames.arrays import CampaignArrays, out_of_turn
from analytics.frames.facts import NO_ANSWER, Facts
from analytics.frames.log import AUDIT, CHECK, FORMER_CHECK, SILVER, Log
from analytics.numbers.arrays import Floats, Ints
from judging.models import Assessor
from sampling.models import AuditTier


@dataclass(frozen=True)
class People:
    """The assessors whose judgments count, and the place among them of each of the campaign's."""

    assessors: list[Assessor]
    place: Ints  # by place among all of the campaign's, -1 where left out


def assemble(
    facts: Facts, log: Log, everybody: list[Assessor], n_audits_planned: int | None, not_judgeable: Ints
) -> CampaignArrays:
    """Return the arrays. `everybody` are the campaign's assessors in the order of their keys.

    `not_judgeable` are places in the frame that an assessor could not judge; only refitted predictions ask for them.
    """
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
    is_by_gold_judges = _is_by_gold_judges(facts, people, newest.assessor[chosen])
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
        n_learned=_n_learned(facts, judged, not_judgeable),
        assessors=people.assessors,
        label_item=rank[at],
        label_assessor=people.place[newest.assessor[chosen]],
        label_grade=newest.grade[chosen].astype(np.int64),
        label_time=newest.time[chosen],
        label_judgment=newest.id[chosen],
        **_audit(facts, newest, rank[place], judged),
        looks=() if is_by_gold_judges else _looks(facts, newest),
        is_by_gold_judges=is_by_gold_judges,
        **_checks(facts, newest, people),
        **_silver_labels(newest, rank[place], people),
        n_audits=len(facts.audits),
        n_audits_planned=n_audits_planned,
        order_is_random=facts.order_is_random,
        last_judgment_id=int(newest.id[-1]) if newest.id.size else 0,
        n_judgments=newest.id.size,
    )


def _n_learned(facts: Facts, judged: Ints, not_judgeable: Ints) -> int:
    """Return how many batches predictions learn from: those before any learned, and finished ones that follow them."""
    n_learned = facts.n_learned
    if facts.is_refitted:
        done = np.union1d(judged, not_judgeable)
        n_done = np.bincount(facts.drawn_in[done], minlength=facts.draw.batch + 1)[1:]
        is_finished = n_done == facts.n_drawn.sum(axis=1)
        while n_learned < facts.draw.batch and is_finished[n_learned]:
            n_learned += 1
    return n_learned


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


def _is_by_gold_judges(facts: Facts, people: People, judges: NDArray[Any]) -> bool:
    """Return whether there are judgments, and each is of the gold tier. An imported sample has no tiers to go by."""
    is_gold = np.array([one.tier == Assessor.Tier.GOLD for one in people.assessors], dtype=bool)
    places = np.unique(people.place[judges])
    return not facts.draw.selection_kind.is_foreign and places.size > 0 and bool(is_gold[places].all())


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
    n_complete, expected, fitted = _fitted_gold(facts, newest, rank, judged.size)
    return {
        "fitted_gold": fitted & selected,
        "n_fitted_audits": n_complete,
        "n_fitted_expected": expected,
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
        if audit.tier != tier:
            continue
        missing = int(np.count_nonzero(grade_of[audit.item[audit.selected]] < 0))
        if missing:
            pending = max(pending, missing)
        if missing or bool(audit.assumption) != (declared and tier == AuditTier.GOLD):
            continue
        place = rank[audit.item]
        there = place >= 0
        probability[place[there]] = np.maximum(probability[place[there]], audit.probability[there])
        chosen = there & audit.selected
        selected[place[chosen]] = True
        grade[place[chosen]] = grade_of[audit.item[chosen]]
    return probability, selected, grade, pending


def _fitted_gold(
    facts: Facts, newest: Log, rank: Ints, n_judged: int
) -> tuple[int, float, NDArray[np.bool_]]:
    """Return the complete gold audits that predictions learn from, the items they were to select, and those selected.

    An audit that learned has selected by what earlier ones brought in all folds. If predictions are to be exact they
    use the audits before it alone. Declared gold counts as long as numbers rest on it; an audit that learned from it
    alone selects every item by itself, given that gold.
    """
    grade_of = _grade_by_item(newest, AUDIT, facts.items.place.size)
    declared = _is_declared(facts, grade_of)
    gold = [
        audit for audit in facts.audits if audit.tier == AuditTier.GOLD and bool(audit.assumption) == declared
    ]
    taught = [place for place, audit in enumerate(gold) if audit.is_taught and place > 0]
    gold = gold[: taught[0]] if taught else gold
    complete = [audit for audit in gold if (grade_of[audit.item[audit.selected]] >= 0).all()]
    probability, selected = np.zeros(n_judged), np.zeros(n_judged, dtype=bool)
    for audit in complete:
        place = rank[audit.item]
        there = place >= 0
        np.maximum.at(probability, place[there], audit.probability[there])
        selected[place[there & audit.selected]] = True
    return len(complete), float(probability.sum()), selected


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
    is_answer = (newest.purpose <= CHECK) | (newest.purpose == FORMER_CHECK)  # never what an audit brought
    rows = np.flatnonzero((true != NO_ANSWER) & is_answer)
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
