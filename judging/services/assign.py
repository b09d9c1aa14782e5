"""Claim and submit: the contract with assessors.

One row per wanted judgment (Slot); a per-assessor advisory lock, alone in its statement; the clock of the database.
Lock order is always assessor, then slot. Measured alternatives and why they fail: benchmarks/contract.py. A claim of
an ordinary item and one of a gold check are the same statements, and both candidates are always looked up.

Ordinary path of `submit_and_claim`: lock, facts, store, claim: four statements between BEGIN and COMMIT.
"""

import hashlib
import hmac
import logging
import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction
from psycopg import Cursor
from psycopg.rows import RowFactory, class_row, tuple_row

from judging.models import Assessor, Campaign, Judgment, Slot
from judging.scheduler import coins, start_position
from judging.services import statements
from judging.services.claims import Claim, LeasedItem
from judging.services.errors import (
    AlreadyJudged,
    AssessorSuspended,
    CampaignNotOpen,
    ConsentMissing,
    GradeOffScale,
    LeaseUnknown,
    NotAnAssessor,
    NotYetJudged,
    Refused,
    TokenReused,
    TrainingMissing,
)
from judging.services.leases import ASSESSOR_LOCK, set_aside
from judging.services.statements import AssessorContext, StoredJudgment, TopicRange, TopicRow

logger = logging.getLogger(__name__)
AHEAD = 2  # the item to judge and the next one, which the browser fetches beforehand
MOST_AHEAD = 50
NO_WORK, QUOTA = "no work", "quota"
ORDINARY = ["judge", "check"]
# What a judgment of a tier may fill, if the lease it came by is no longer its own; others fill ordinary places.
FILLS = {Assessor.Tier.GOLD.value: ["audit"], Assessor.Tier.SILVER.value: [*ORDINARY, "silver"]}
BUSY = "busy"  # the judgment is stored, but what comes next must be asked for again
_random = random.SystemRandom()


def assessor_of(*, user: Any, campaign_id: uuid.UUID) -> Assessor:
    """Return the user as assessor of the campaign; a campaign one is not in looks like one that does not exist."""
    assessor = (
        Assessor.objects.select_related("campaign__scale").filter(campaign_id=campaign_id, user=user).first()
    )
    if assessor is None:
        raise NotAnAssessor
    return assessor


def claim(*, assessor: Assessor, n: int = 1) -> Claim:
    """Lease up to n items to the assessor; those they hold come first: two tabs and a reload see the same."""
    return claim_as(user_id=assessor.user_id, campaign_id=assessor.campaign_id, n=n)


def claim_as(*, user_id: int, campaign_id: uuid.UUID, n: int) -> Claim:
    """Claim as `claim` does, for a user of whom only the number is known."""
    with transaction.atomic():
        facts = _facts(user_id, campaign_id)
        _check_may_judge(facts)
        return _claim(facts, n, is_patient=True)


def submit(
    *,
    assessor: Assessor,
    token: uuid.UUID,
    client_token: uuid.UUID,
    grade: int | None = None,
    obstacle: str = "",
    comment: str = "",
    active_milliseconds: int = 0,
) -> Judgment:
    """Store one judgment. The same request twice is one judgment; a late one is kept, counted if a slot is free.

    Without a grade it says by its `obstacle` why the item cannot be judged: the slot goes to somebody else.
    """
    sent = SubmittedJudgment(token, client_token, grade, obstacle, comment, active_milliseconds)
    with transaction.atomic():
        return _submit(_facts_of_submission(assessor.user_id, assessor.campaign_id, sent), sent)


def submit_and_claim(*, user_id: int, campaign_id: uuid.UUID, n: int, **sent: Any) -> tuple[Judgment, Claim]:
    """Store a judgment and lease what comes next, in one transaction: one request a judgment."""
    judgment_sent = SubmittedJudgment(**sent)
    with transaction.atomic():
        facts = _facts_of_submission(user_id, campaign_id, judgment_sent)
        judgment = _submit(facts, judgment_sent)
        if facts.known is None:
            facts = facts._replace(n_judged=facts.n_judged + 1)
        try:
            _check_may_judge(facts)
        except Refused as refusal:  # the judgment is stored whatever becomes of the next item
            return judgment, _empty_claim(facts, refusal.title)
        claimed = _claim(facts, n, is_patient=False)
    if claimed.reason != NO_WORK:
        return judgment, claimed
    try:
        # Rows that others held locked for a moment were skipped. To wait for them must not endanger what is stored.
        return judgment, claim_as(user_id=user_id, campaign_id=campaign_id, n=n)
    except (Refused, OperationalError, InterfaceError):
        logger.warning("no next item after a stored judgment", exc_info=True)
        return judgment, _empty_claim(facts, BUSY)


def revise(
    *,
    assessor: Assessor,
    token: uuid.UUID,
    client_token: uuid.UUID,
    grade: int | None = None,
    obstacle: str = "",
    comment: str = "",
    active_milliseconds: int = 0,
) -> Judgment:
    """Store a change of mind as a new row that takes the place of the assessor's earlier judgment of the item."""
    sent = SubmittedJudgment(token, client_token, grade, obstacle, comment, active_milliseconds)
    with transaction.atomic():
        facts = _facts_of_submission(assessor.user_id, assessor.campaign_id, sent)
        known = _answered_before(facts, sent)
        if known is not None:
            return known
        # Late work is kept, but nobody rewrites a judgment after being paused.
        _check_may_judge(facts)
        _check_sent(facts, sent)
        if facts.latest_sequence is None:
            raise NotYetJudged
        if sent.grade is None:
            if facts.latest_slot is not None:
                set_aside(Slot.objects.filter(pk=facts.latest_slot))
            return _store(statements.STORE_REVISION, facts, sent, slot=None)
        # Also a void one: what a manager wants judged again by others does not count again.
        if facts.any_slot is not None:
            return _store(statements.STORE_REVISION, facts, sent, slot=facts.any_slot)
        return _store(statements.STORE_GRADE, facts, sent)


@dataclass(frozen=True)
class SubmittedJudgment:
    """What an assessor sends: `client_token` makes sending it twice harmless."""

    token: uuid.UUID
    client_token: uuid.UUID
    grade: int | None = None
    obstacle: str = ""
    comment: str = ""
    active_milliseconds: int = 0


Row = TypeVar("Row")


def _rows(kind: type[Row], sql: str, parameters: dict[str, Any]) -> list[Row]:
    """Run a statement of `statements`: prepared, so that PostgreSQL plans it once a connection and not each time."""
    with _cursor(class_row(kind)) as cursor:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall())


def _cursor(row_factory: RowFactory[Any]) -> Any:
    connection.ensure_connection()
    # Any: the stubs do not know that Django wraps the driver's own cursors.
    wrap: Any = connection.make_debug_cursor if connection.queries_logged else connection.make_cursor
    return wrap(Cursor(connection.connection, row_factory=row_factory))


def _facts(user_id: int, campaign_id: uuid.UUID) -> AssessorContext:
    return _locked_facts(statements.FACTS, {"user": user_id, "campaign": campaign_id})


def _facts_of_submission(user_id: int, campaign_id: uuid.UUID, sent: SubmittedJudgment) -> AssessorContext:
    parameters = {
        "user": user_id,
        "campaign": campaign_id,
        "token": sent.token,
        "client_token": sent.client_token,
        "grade": sent.grade,
    }
    return _locked_facts(statements.FACTS_OF_SUBMISSION, parameters)


def _locked_facts(sql: str, parameters: dict[str, Any]) -> AssessorContext:
    """Return what the request needs to know, once no other request of this person is under way.

    The lock is alone in its statement: the next one must see what the last request did. Both travel together.
    """
    lock = {"kind": ASSESSOR_LOCK, "user": parameters["user"]}
    locking, reading = _cursor(tuple_row), _cursor(class_row(AssessorContext))
    # What fails when the pipeline ends is Django's error, as what fails in it: the request is answered with 503.
    with connection.wrap_database_errors, locking, reading, connection.connection.pipeline():
        locking.execute(statements.LOCK, lock)
        reading.execute(sql, parameters)
        facts: AssessorContext | None = reading.fetchone()
    if facts is None:
        raise NotAnAssessor
    return facts


def _check_may_judge(facts: AssessorContext) -> None:
    if facts.status == Assessor.Status.SUSPENDED:
        raise AssessorSuspended
    if facts.state != Campaign.State.OPEN:
        raise CampaignNotOpen
    if facts.asks_consent and not facts.has_consented:
        raise ConsentMissing
    is_trained = facts.has_trained or facts.tier == Assessor.Tier.GOLD
    if facts.asks_training and facts.kind == Assessor.Kind.HUMAN and not is_trained:
        raise TrainingMissing


def _check_sent(facts: AssessorContext, sent: SubmittedJudgment) -> None:
    if facts.item is None:
        raise LeaseUnknown
    is_of_machine = sent.obstacle == Judgment.Obstacle.FAILED
    if is_of_machine and facts.kind != Assessor.Kind.MACHINE:
        raise GradeOffScale("only a machine fails; say why the item cannot be judged")
    if sent.grade is None and sent.obstacle not in Judgment.Obstacle.values:
        raise GradeOffScale("neither a grade nor a reason why there is none")
    if sent.grade is not None and (sent.obstacle or not facts.is_on_scale):
        raise GradeOffScale(f"{sent.grade} is not one of the grades")


def _answered_before(facts: AssessorContext, sent: SubmittedJudgment) -> Judgment | None:
    if facts.known is None:
        return None
    known = Judgment.objects.get(pk=facts.known)
    stored = (known.assessor_id, known.lease_token, known.grade, known.obstacle, known.comment)
    if stored != (facts.assessor, sent.token, sent.grade, sent.obstacle, sent.comment):
        raise TokenReused
    return known


def _submit(facts: AssessorContext, sent: SubmittedJudgment) -> Judgment:
    known = _answered_before(facts, sent)
    if known is not None:
        return known
    _check_sent(facts, sent)
    if facts.latest_sequence is not None:
        raise AlreadyJudged
    sql = statements.STORE_OBSTACLE if sent.grade is None else statements.STORE_GRADE
    return _store(sql, facts, sent)


def _store(sql: str, facts: AssessorContext, sent: SubmittedJudgment, **more: Any) -> Judgment:
    fields = {
        "item_id": facts.item,
        "assessor_id": facts.assessor,
        "sequence": (facts.latest_sequence or 0) + 1,
        "grade": sent.grade,
        "obstacle": sent.obstacle,
        "comment": sent.comment,
        "lease_token": sent.token,
        "client_token": sent.client_token,
        "active_milliseconds": sent.active_milliseconds,
        "document_version": facts.document_version,
        "topic_version": facts.topic_version,
    }
    parameters = {
        **fields,
        # What somebody sends after being suspended is kept, but fills no slot.
        "counts": facts.status == Assessor.Status.ACTIVE,
        "purposes": [*FILLS.get(facts.tier, ORDINARY), *(ORDINARY if facts.is_among_gold_alone else [])],
        **more,
    }
    return Judgment(**fields, **_rows(StoredJudgment, sql, parameters)[0]._asdict())


def _empty_claim(facts: AssessorContext, reason: str) -> Claim:
    return _claim_answer(facts, [], reason)


def _claim_answer(facts: AssessorContext, held: list[LeasedItem], reason: str) -> Claim:
    return Claim(held, reason, facts.n_judged, facts.quota, facts.lease_seconds, facts.kind_of_judging)


def _claim(facts: AssessorContext, n: int, *, is_patient: bool) -> Claim:
    """Lease up to n items to the assessor; `is_patient` waits for locked rows before it says "no work"."""
    if facts.quota is not None:
        n = min(n, facts.quota - facts.n_judged)
        if n <= 0:
            return _empty_claim(facts, QUOTA)
    held: list[LeasedItem] = []
    for purpose in _purposes(facts):
        held = _claim_of(facts, n, purpose, is_patient)
        if len(held) >= n:
            break
    return _claim_answer(facts, held, "" if held else NO_WORK)


def _purposes(facts: AssessorContext) -> list[str]:
    """Return what the assessor is given, in this order: audits first. Gold judges drawn items where it is alone."""
    if facts.tier == Assessor.Tier.GOLD:
        return [Slot.Purpose.AUDIT, *([Slot.Purpose.JUDGE] if facts.is_among_gold_alone else [])]
    return [*([Slot.Purpose.SILVER] if facts.has_silver_audits else []), Slot.Purpose.JUDGE]


def _claim_of(facts: AssessorContext, n: int, purpose: str, is_patient: bool) -> list[LeasedItem]:
    """Fill the hands with items of the purpose, and with checks beside ordinary ones, topic by topic."""
    parameters = _claim_parameters(facts, n, purpose)
    held: list[LeasedItem] = []
    for topic in _topics(facts, parameters):
        parameters |= {"topic": topic, "coins": _coins(facts, topic, n)}
        held, took = _take(statements.CLAIM_IN_TOPIC, parameters)
        while took and len(held) < n:
            parameters["pivot"] = _start(facts, purpose)
            held, took = _take(statements.CLAIM_IN_TOPIC, parameters)
        if len(held) >= n:
            break
    if not held and is_patient:
        held, _ = _take(statements.CLAIM_PATIENTLY, parameters)
    return held


def _claim_parameters(facts: AssessorContext, n: int, purpose: str) -> dict[str, Any]:
    is_ordinary = purpose == Slot.Purpose.JUDGE
    return {
        "me": facts.assessor,
        "campaign": facts.campaign,
        "team": facts.team,
        "lease": timedelta(seconds=facts.lease_seconds),
        "n": n,
        "topic": facts.topic,
        "purpose": purpose,
        # Nobody is checked while auditing.
        "check_rate": facts.gold_check_rate if is_ordinary else 0.0,
        "is_ordinary": is_ordinary,
        "k": facts.judgments_per_item,
        "pivot": _start(facts, purpose),
    }


def _start(facts: AssessorContext, purpose: str) -> int:
    return start_position(_random, is_in_order=not facts.has_random_order and purpose == Slot.Purpose.JUDGE)


def _coins(facts: AssessorContext, topic: int | None, n: int) -> list[float]:
    """Throw for every lease and topic anew: what is given back tells nothing about what comes in its place."""
    moment = f"{facts.assessor} {facts.last_lease} {topic}"
    key = hmac.digest(settings.SECRET_KEY.encode(), b"when a check comes", hashlib.sha256)
    return coins(key, moment, n)


def _take(sql: str, parameters: dict[str, Any]) -> tuple[list[LeasedItem], bool]:
    """Return what the assessor holds now, the oldest lease first, and whether anything new is among it."""
    items = _rows(LeasedItem, sql, parameters)
    return items, any(item.is_new for item in items)


def _topics(facts: AssessorContext, parameters: dict[str, Any]) -> Iterator[int | None]:
    """Yield where to look: the topic at hand, then those given to them first, then round from the one at hand."""
    yield facts.topic
    if facts.has_first_topics:
        for row in _rows(TopicRow, statements.TOPICS_GIVEN_FIRST, parameters):
            yield row.topic_id
    start = facts.topic
    if start is None:
        first, last = _rows(TopicRange, statements.FIRST_AND_LAST_TOPIC, parameters)[0]
        if first is None or last is None:
            return
        start = _random.randint(first, last) - 1
    yield from _topics_with_work(parameters, after=start, until=None)
    yield from _topics_with_work(parameters, after=-1, until=start)


def _topics_with_work(parameters: dict[str, Any], after: int, until: int | None) -> Iterator[int]:
    while rows := _rows(TopicRow, statements.NEXT_TOPIC, {**parameters, "after": after}):
        after = rows[0].topic_id
        if until is not None and after > until:
            return
        yield after
