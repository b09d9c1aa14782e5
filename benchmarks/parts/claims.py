"""Many callers at once: who was given what, and was "no work" the truth? For the product, and for a naive queryset."""

import random
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby
from threading import Barrier
from typing import Any, TypeVar

import numpy as np
import psycopg
from parts.throwaway import JUDGMENTS_PER_ITEM, assessors_of, make_campaign

N_ASSESSORS, TABS, N_ITEMS = 24, 2, 200
LAST_ITEMS = 25  # rounds of "three callers, three open slots of one item"
Given = tuple[Any, Any]  # (assessor, item)
T = TypeVar("T")


def at_once(tasks: Sequence[Callable[[Barrier], T]]) -> list[T]:
    """Run every task in a thread of its own; each waits at the barrier before it begins. A fault of one is raised."""
    barrier = Barrier(len(tasks), timeout=30)
    with ThreadPoolExecutor(len(tasks)) as pool:
        return [future.result() for future in [pool.submit(task, barrier) for task in tasks]]


def over_assigned(given: Iterable[Given], limit: int = JUDGMENTS_PER_ITEM) -> int:
    """Return how many items were given to more assessors than wanted."""
    return sum(n > limit for n in Counter(item for _, item in set(given)).values())


def repeated(given: Iterable[Given]) -> int:
    """Return how often an assessor was given an item that they had been given before."""
    return sum(n - 1 for n in Counter(given).values())


# -- the product ----------------------------------------------------------------------------------------------

# What a claim promises, said independently of it: is there a slot that this assessor could have?
COULD_HAVE = """
SELECT count(*) FROM judging_slot s JOIN judging_assessor a ON a.id = %s AND a.campaign_id = s.campaign_id
 WHERE s.purpose = 'judge' AND (s.state = 'open' OR (s.state = 'leased' AND s.lease_until < clock_timestamp()))
   AND s.item_id NOT IN (SELECT item_id FROM judging_slot WHERE assessor_id = a.id)
   AND s.item_id NOT IN (SELECT item_id FROM judging_judgment WHERE assessor_id = a.id)
"""


@dataclass
class Seen:
    """What one tab saw."""

    claim_seconds: list[float] = field(default_factory=list)
    submit_seconds: list[float] = field(default_factory=list)
    given: set[Given] = field(default_factory=set)
    most_at_once: int = 0
    empty: int = 0
    false_empty: int = 0
    faults: Counter[str] = field(default_factory=Counter)


class Tab:
    """One browser tab of an assessor who has another one: both judge what they are given."""

    def __init__(self, assessor: Any, ahead: int, seed: int, *, is_one_request: bool = False) -> None:
        self.assessor, self.ahead, self.rng = assessor, ahead, random.Random(seed)
        self.is_one_request = is_one_request
        self.seen = Seen()

    def __call__(self, barrier: Barrier) -> Seen:
        from django.db import connection

        try:
            connection.ensure_connection()
            barrier.wait()
            while self.judge_one():
                time.sleep(self.rng.random() * 0.002)  # the order of callers is another one with every seed
        finally:
            connection.close()
        return self.seen

    def judge_one(self) -> bool:
        """Claim, and judge the first item; return whether there may be more."""
        from django.db import DatabaseError

        from judging.services.errors import AlreadyJudged

        try:
            item = self.claim()
            if item is None:
                return False
            self.submit(item)
        except AlreadyJudged:  # the other tab was faster; it had been given the same
            self.seen.faults["AlreadyJudged"] += 1
        except DatabaseError as fault:
            self.seen.faults[type(fault).__name__] += 1
        return True

    def claim(self) -> Any:
        from judging.services import assign

        began = time.perf_counter()
        claimed = assign.claim(assessor=self.assessor, n=self.ahead)
        self.seen.claim_seconds.append(time.perf_counter() - began)
        self.note(claimed)
        return claimed.item

    def submit(self, item: Any) -> None:
        from judging.services import assign

        sent = {"token": item.token, "client_token": uuid.uuid4(), "grade": 1}
        began = time.perf_counter()
        if self.is_one_request:
            who = {"user_id": self.assessor.user_id, "campaign_id": self.assessor.campaign_id}
            self.note(assign.submit_and_claim(**who, n=self.ahead, **sent)[1])
        else:
            assign.submit(assessor=self.assessor, **sent)
        self.seen.submit_seconds.append(time.perf_counter() - began)

    def note(self, claimed: Any) -> None:
        self.seen.given |= {(self.assessor.pk, held.item_id) for held in claimed.items}
        self.seen.most_at_once = max(self.seen.most_at_once, len(claimed.items))
        if not claimed.items:
            self.seen.empty += 1
            # No assessor here returns a slot: what is free now was free when the answer was "no work".
            self.seen.false_empty += bool(could_have(self.assessor))


def could_have(assessor: Any) -> int:
    """Return how many slots the assessor could be given now, by a statement that shares nothing with claim()."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(COULD_HAVE, [assessor.pk])
        return int(cursor.fetchone()[0])


def storm(
    *,
    seed: int,
    n_items: int = N_ITEMS,
    n_assessors: int = N_ASSESSORS,
    tabs: int = TABS,
    ahead: int = 1,
    is_one_request: bool = False,
) -> dict[str, Any]:
    """Let all tabs judge a campaign to its end, and say what went wrong."""
    campaign = make_campaign(
        n_items, n_assessors, name=f"storm {seed}", n_topics=(1, 8, 3)[seed % 3], seed=seed
    )
    callers = [
        Tab(assessor, ahead, 1000 * seed + number, is_one_request=is_one_request)
        for number, assessor in enumerate(assessors_of(campaign) * tabs)
    ]
    random.Random(seed).shuffle(callers)
    seen = at_once(callers)
    return {
        **told_by_callers(seen, ahead),
        **found_in_database(campaign, set().union(*(s.given for s in seen))),
    }


def told_by_callers(seen: list[Seen], ahead: int) -> dict[str, Any]:
    return {
        "seconds": {
            "claim": [second for one in seen for second in one.claim_seconds],
            "submit": [second for one in seen for second in one.submit_seconds],
        },
        "empty": sum(one.empty for one in seen),
        "false_empty": sum(one.false_empty for one in seen),
        "too_many_ahead": sum(one.most_at_once > ahead for one in seen),
        "faults": sum((one.faults for one in seen), Counter()),
    }


def found_in_database(campaign: Any, given: set[Given]) -> dict[str, Any]:
    """Compare what the tabs were given with leases, judgments and slots. Nothing expires here: one lease a pair."""
    from judging.models import Judgment, Lease, Slot

    leases = list(Lease.objects.filter(slot__campaign=campaign).values_list("assessor", "slot__item"))
    judgments = list(Judgment.objects.filter(item__campaign=campaign).values_list("assessor", "item"))
    done = Slot.objects.filter(campaign=campaign, state="done").values_list("assessor", "item")
    return {
        "assignments": len(leases),
        "over_assigned": over_assigned([*given, *leases, *judgments]),
        "duplicates": repeated(leases) + repeated(judgments),
        "unexplained": len(set(leases) ^ given) + len(set(judgments) ^ set(done)),
        "unfilled": campaign.slots.exclude(state="done").count(),
        "leases_at_once": leases_at_once(campaign),
    }


def leases_at_once(campaign: Any) -> int:
    """Return how many leases one assessor ever held at once: each lasts until its item's judgment."""
    from judging.models import Judgment, Lease

    begins = Lease.objects.filter(slot__campaign=campaign).values_list("assessor", "leased_at")
    ends = Judgment.objects.filter(item__campaign=campaign).values_list("assessor", "created_at")
    events = [(who, at, 1) for who, at in begins] + [(who, at, -1) for who, at in ends]
    most = 0
    for _, mine in groupby(sorted(events), key=lambda event: event[0]):
        most = max(most, int(np.cumsum([step for _, _, step in mine]).max()))
    return most


def last_items(seed: int, ahead: int, rounds: int = LAST_ITEMS) -> dict[str, Any]:
    """Let three assessors ask at once for the three slots of an item, again and again: each must get one."""
    campaign = make_campaign(rounds, 3, name=f"last items {seed} {ahead}", n_topics=1, seed=seed)
    assessors = assessors_of(campaign)
    waiting = list(campaign.slots.values_list("item", flat=True).distinct())
    hide(campaign, waiting)
    unserved = false_empty = 0
    for item in waiting:
        campaign.slots.filter(item=item).update(purpose="judge")
        seen = at_once([OneClaim(assessor, ahead, seed) for assessor in assessors])
        unserved += sum(not one.given for one in seen)
        false_empty += sum(one.false_empty for one in seen)
    return {"calls": 3 * len(waiting), "unserved": unserved, "false_empty": false_empty}


def hide(campaign: Any, items: Sequence[uuid.UUID]) -> None:
    """Make the slots audits, which no bronze assessor is given, until their round comes."""
    campaign.slots.filter(item__in=items).update(purpose="audit")


class OneClaim(Tab):
    """A caller who judges one item and stops."""

    def __call__(self, barrier: Barrier) -> Seen:
        from django.db import connection

        try:
            connection.ensure_connection()
            barrier.wait()
            item = self.claim()
            if item is not None:
                self.submit(item)
        finally:
            connection.close()
        return self.seen


# -- the control ----------------------------------------------------------------------------------------------

NAIVE_TABLES = """
DROP TABLE IF EXISTS naive_assignment, naive_item;
CREATE TABLE naive_item (id integer PRIMARY KEY);
CREATE TABLE naive_assignment (item integer NOT NULL, assessor integer NOT NULL {unique});
CREATE INDEX naive_assignment_item ON naive_assignment (item);
"""
# As select_for_update(skip_locked=True) with a count in a subquery writes it. The row lock is granted on the newest
# version of the item, but the count is that of the statement's older snapshot.
NAIVE_PICK = """
SELECT i.id FROM naive_item i
 WHERE (SELECT count(*) FROM naive_assignment n WHERE n.item = i.id) < %(k)s
   AND NOT EXISTS (SELECT 1 FROM naive_assignment n WHERE n.item = i.id AND n.assessor = %(assessor)s)
 ORDER BY i.id LIMIT 1 FOR UPDATE OF i SKIP LOCKED
"""
NAIVE_TAKE = "INSERT INTO naive_assignment (item, assessor) VALUES (%s, %s) ON CONFLICT DO NOTHING"


def naive_storm(
    database_url: str,
    *,
    n_items: int = N_ITEMS,
    n_assessors: int = N_ASSESSORS,
    tabs: int = TABS,
    is_unique: bool = False,
) -> dict[str, int]:
    """Let the same crowd take items by the usual queryset. If it keeps the limit, the storm proves nothing."""
    unique = ", UNIQUE (item, assessor)" if is_unique else ""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(NAIVE_TABLES.format(unique=unique))
        connection.execute("INSERT INTO naive_item SELECT generate_series(1, %s)", [n_items])
        assessors = [number for number in range(n_assessors) for _ in range(tabs)]
        at_once([_naive_caller(database_url, assessor) for assessor in assessors])
        given = connection.execute("SELECT assessor, item FROM naive_assignment").fetchall()
        connection.execute("DROP TABLE naive_assignment, naive_item")
    return {
        "items": n_items,
        "assignments": len(given),
        "over_assigned": over_assigned(given),
        "duplicates": repeated(given),
    }


def _naive_caller(database_url: str, assessor: int) -> Callable[[Barrier], None]:
    def take_until_empty(barrier: Barrier) -> None:
        with psycopg.connect(database_url) as connection:
            barrier.wait()
            while True:
                wish = {"k": JUDGMENTS_PER_ITEM, "assessor": assessor}
                row = connection.execute(NAIVE_PICK, wish).fetchone()
                if row is not None:
                    connection.execute(NAIVE_TAKE, [row[0], assessor])
                connection.commit()
                if row is None:
                    return

    return take_until_empty
