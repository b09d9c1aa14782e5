"""Who can still judge what: groups of items by the claim's own rule, their feasibility, and what would help.

A place that somebody holds who may judge is in good hands, its lease expired or not: the claim gives it back to them.
Every other place that is not done is open to whoever has neither a slot nor a judgment of the item, void and given back
included (_FREE in statements.py). Checks are left out: they are never wanted for themselves.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from django.db import connection, transaction

from judging.feasibility import Feasibility, Group, feasibility, possible
from judging.models import Assessor, Campaign, Judgment, PlacesLeft, StuckItem
from touchstone import jobs

KIND = "feasibility"
SHOWN_ITEMS = 20
_TRAINED = """(a.consented_at IS NOT NULL OR c.consent = '')
   AND (a.trained_at IS NOT NULL OR NOT EXISTS (SELECT FROM judging_trainingitem t WHERE t.campaign_id = c.id))"""
_PEOPLE = f"""
SELECT a.id, a.tier, a.team, a.quota - a.n_judged - (
         SELECT count(*) FROM judging_slot h WHERE h.assessor_id = a.id AND h.state = 'leased') AS left,
       {_TRAINED} AS has_entered
  FROM judging_assessor a JOIN judging_campaign c ON c.id = a.campaign_id
 WHERE c.id = %(campaign)s AND a.status = 'active' ORDER BY a.id
"""  # noqa: S608 (no word of it comes from outside)
_KNOWN = """
WITH open AS (
  SELECT item_id, purpose, topic_id, count(*) AS places FROM judging_slot
   WHERE campaign_id = %(campaign)s AND purpose IN ('judge', 'audit', 'silver') AND state <> 'done'
     AND (state = 'open' OR assessor_id <> ALL(%(people)s))
   GROUP BY 1, 2, 3),
known AS (
  SELECT o.*, coalesce(k.team, '') AS team, ARRAY(
           SELECT t.assessor_id FROM judging_slot t WHERE t.item_id = o.item_id AND t.assessor_id IS NOT NULL
            UNION SELECT j.assessor_id FROM judging_judgment j WHERE j.item_id = o.item_id ORDER BY 1) AS known_to
    FROM open o LEFT JOIN judging_campaigntopic k ON k.campaign_id = %(campaign)s AND k.topic_id = o.topic_id)
"""
_GROUPS = f"""{_KNOWN}
SELECT purpose, team, places, known_to, count(*) AS n, (array_agg(item_id))[1:20] AS items
  FROM known GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
"""  # noqa: S608 (as above)
# The items of some groups, read once more: only where there are any, so a look takes at most twice its time.
_MARK = f"""{_KNOWN}, found AS (
  SELECT DISTINCT k.item_id
    FROM known k JOIN jsonb_to_recordset(%(groups)s::jsonb)
         AS g(purpose text, team text, places bigint, known_to bigint[])
      ON (k.purpose, k.team, k.places, k.known_to) = (g.purpose, g.team, g.places, g.known_to)),
gone AS (
  DELETE FROM judging_stuckitem s
   WHERE s.campaign_id = %(campaign)s AND NOT EXISTS (SELECT FROM found f WHERE f.item_id = s.item_id))
INSERT INTO judging_stuckitem (item_id, campaign_id) SELECT item_id, %(campaign)s::uuid FROM found
    ON CONFLICT DO NOTHING
"""  # noqa: S608 (as above)
# A hash of all that an answer depends on: whoever judges, gives back, joins or is paused changes a row of an assessor,
# and draws, requeued items, teams and rules leave an event. A look that took long is not repeated soon: it takes a
# twentieth of the time at most, and never keeps numbers waiting.
_DUE = """
SELECT c.id, b.basis FROM judging_campaign c LEFT JOIN judging_placesleft p ON p.campaign_id = c.id,
       LATERAL (SELECT md5(concat_ws('|', (
                  SELECT string_agg(concat_ws(',', a.id, a.tier, a.status, a.n_judged, a.quota, a.team,
                           a.consented_at IS NULL, a.trained_at IS NULL), ';' ORDER BY a.id)
                    FROM judging_assessor a WHERE a.campaign_id = c.id),
                  (SELECT max(e.id) FROM touchstone_event e WHERE e.subject = 'campaign:' || c.id),
                  c.consent = '', c.judgments_per_item,
                  (SELECT max(t.id) FROM judging_trainingitem t WHERE t.campaign_id = c.id))) AS basis) b
 WHERE c.state = 'open' AND (%(campaign)s::uuid IS NULL OR c.id = %(campaign)s::uuid)
   AND (%(always)s OR ((p.id IS NULL OR p.basis <> b.basis) AND NOT EXISTS (
         SELECT FROM touchstone_job j WHERE j.kind = 'feasibility' AND j.active_key = c.id::text
            AND (j.created_at > clock_timestamp() - interval '1 minute'
                 OR j.finished_at > clock_timestamp() - 20 * (j.finished_at - j.created_at)))))
"""


class Person(NamedTuple):
    """Somebody who may judge, at once or after consent and training, and what their quota leaves beside what they hold.

    None: no limit.
    """

    pk: int
    tier: str
    team: str
    left: int | None
    has_entered: bool


@dataclass(frozen=True)
class OpenItems:
    """Items alike in purpose, team, open places, and in who has had them; some of their keys."""

    purpose: str
    team: str
    places: int
    known_to: frozenset[int]
    n: int
    items: tuple[Any, ...]


def compute_places_left(*, campaign: Campaign) -> PlacesLeft | None:
    """Store what can still be filled; None if the campaign is not open."""
    due = _rows(_DUE, campaign=campaign.pk, always=True)
    if not due:
        return None
    everybody = [Person(*row) for row in _rows(_PEOPLE, campaign=campaign.pk)]
    people = [person for person in everybody if person.has_entered]
    rows = _rows(_GROUPS, campaign=campaign.pk, people=[person.pk for person in people])
    opened = [
        OpenItems(purpose, team, places, frozenset(known_to), n, tuple(items))
        for purpose, team, places, known_to, n, items in rows
    ]
    has_gold_alone = not campaign.assessors.exclude(tier=Assessor.Tier.GOLD).exists()
    found = feasibility(_groups(opened, people, has_gold_alone), _quotas_left(people))
    stuck = [opened[place] for place in found.stuck]
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (now,) = cursor.fetchone()
    answer = {
        "basis": due[0][1],
        "wanted": found.wanted,
        "possible": found.possible,
        "n_stuck": sum(group.n for group in stuck),
        "newcomers": found.newcomers,
        "is_exact": found.is_exact,
        "stuck": _stuck_items(stuck, people),
        "helps": _helps(found, opened, people, everybody, has_gold_alone) if stuck else {},
        "computed_at": now,
    }
    with transaction.atomic():
        _mark(campaign, stuck, people)
        return PlacesLeft.objects.update_or_create(campaign=campaign, defaults=answer)[0]


def _mark(campaign: Campaign, stuck: Sequence[OpenItems], people: Sequence[Person]) -> None:
    """Mark every item of the stuck groups, and no other of the campaign."""
    if not stuck:
        StuckItem.objects.filter(campaign=campaign).delete()
        return
    groups: list[dict[str, Any]] = [
        {"purpose": one.purpose, "team": one.team, "places": one.places, "known_to": sorted(one.known_to)}
        for one in stuck
    ]
    keys: dict[str, Any] = {"campaign": campaign.pk, "people": [person.pk for person in people]}
    keys["groups"] = json.dumps(groups)
    with connection.cursor() as cursor:
        cursor.execute(_MARK, keys)


def _rows(sql: str, **keys: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, keys)
        return list(cursor.fetchall())


def _may(person: Person, group: OpenItems, has_gold_alone: bool) -> bool:
    """Return whether the claim would give the person items of this purpose and team."""
    tiers = {
        "judge": {"gold"} if has_gold_alone else {"silver", "bronze"},
        "audit": {"gold"},
        "silver": {"silver"},
    }
    return person.tier in tiers[group.purpose] and group.team in ("", person.team)


def _groups(opened: Iterable[OpenItems], people: Sequence[Person], has_gold_alone: bool) -> list[Group]:
    groups = []
    fits: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for group in opened:
        key = (group.purpose, group.team)
        if key not in fits:
            fits[key] = [
                (place, one.pk) for place, one in enumerate(people) if _may(one, group, has_gold_alone)
            ]
        who = frozenset(place for place, pk in fits[key] if pk not in group.known_to)
        groups.append(Group(group.n, group.places, who))
    return groups


def _quotas_left(people: Iterable[Person]) -> list[int | None]:
    return [None if person.left is None else max(0, person.left) for person in people]


def _helps(
    found: Feasibility,
    opened: Sequence[OpenItems],
    people: Sequence[Person],
    everybody: Sequence[Person],
    has_gold_alone: bool,
) -> dict[str, int]:
    """Return by remedy how many more places could be filled with it; only what helps, and what there is to remedy."""
    tries: dict[str, tuple[Sequence[OpenItems], Sequence[Person]]] = {}
    if len(everybody) > len(people):
        tries["entry"] = opened, everybody
    if any(person.left is not None for person in people):
        tries["quota"] = opened, [person._replace(left=None) for person in people]
    if any(group.team for group in opened):
        tries["team"] = [replace(group, team="") for group in opened], people
    more = {
        key: possible(_groups(groups, who, has_gold_alone), _quotas_left(who)) - found.possible
        for key, (groups, who) in tries.items()
    }
    return {key: n for key, n in more.items() if n > 0}


def _stuck_items(stuck: Sequence[OpenItems], people: Sequence[Person]) -> list[dict[str, Any]]:
    """Return some of the items: their ids, who (of those who may judge) gave them back, what else keeps them open."""
    chosen = [(item, group) for group in stuck for item in group.items][:SHOWN_ITEMS]
    keys = [item for item, _ in chosen]
    ids = _rows(
        "SELECT i.id, t.topic_id, d.doc_id FROM judging_item i JOIN judging_topic t ON t.id = i.topic_id"
        " JOIN judging_document d ON d.id = i.document_id WHERE i.id = ANY(%(items)s)",
        items=keys,
    )
    names = {row[0]: row[1:] for row in ids}
    given_back: dict[Any, list[int]] = {}
    newest = (
        Judgment.objects.filter(item__in=keys, assessor__in=[one.pk for one in people])
        .order_by("item", "assessor", "-sequence")
        .distinct("item", "assessor")
    )
    for item, assessor, grade in newest.values_list("item", "assessor", "grade"):
        if grade is None:
            given_back.setdefault(item, []).append(assessor)
    return [
        {
            "item": str(item),
            "topic_id": names[item][0],
            "doc_id": names[item][1],
            "purpose": group.purpose,
            "places": group.places,
            "n_had": len(group.known_to),
            "given_back_by": sorted(given_back.get(item, [])),
        }
        for item, group in chosen
    ]


def start_due_feasibility() -> None:
    """Queue a look at every open campaign in which something changed: once a minute, or as rarely as it takes long."""
    for campaign, _ in _rows(_DUE, campaign=None, always=False):
        jobs.enqueue(kind=KIND, payload={"campaign": str(campaign)}, active_key=str(campaign))
