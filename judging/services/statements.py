"""The SQL of the judging contract, for PostgreSQL in READ COMMITTED. What each does is said in assign.py.

Beside a statement stands the type of its rows, whose fields are its columns; those of a claim are in claims.py.
"""

import uuid
from datetime import datetime
from typing import NamedTuple

# -- facts: what a request needs to know, read in one statement after the lock ---------------------------------

LOCK = "SELECT pg_advisory_xact_lock(%(kind)s::int, %(user)s::int)"
_FACTS = """
SELECT a.id AS assessor, a.tier, a.kind, a.status, a.n_judged, a.quota, a.team,
       a.consented_at IS NOT NULL AS has_consented, a.trained_at IS NOT NULL AS has_trained,
       c.id AS campaign, c.kind AS kind_of_judging, c.state, c.lease_seconds, c.gold_check_rate,
       c.consent <> '' AS asks_consent,
       EXISTS (SELECT 1 FROM judging_trainingitem t WHERE t.campaign_id = c.id) AS asks_training,
       EXISTS (SELECT 1 FROM judging_assessor_first_topics f WHERE f.assessor_id = a.id) AS has_first_topics,
       last.topic_id AS topic, last.token AS last_lease, c.judgments_per_item,
       c.judging_order = 'random' AS has_random_order,
       a.tier = 'silver' AND EXISTS (SELECT 1 FROM judging_slot w WHERE w.campaign_id = c.id AND w.purpose = 'silver'
                                        AND w.state <> 'done') AS has_silver_audits,
       a.tier = 'gold' AND NOT EXISTS (SELECT 1 FROM judging_assessor o WHERE o.campaign_id = c.id
                                          AND o.tier <> 'gold') AS is_among_gold_alone
       {columns}
  FROM judging_assessor a JOIN judging_campaign c ON c.id = a.campaign_id
  LEFT JOIN LATERAL (SELECT s.topic_id, l.token FROM judging_lease l JOIN judging_slot s ON s.id = l.slot_id
                      WHERE l.assessor_id = a.id ORDER BY l.leased_at DESC LIMIT 1) last ON TRUE {joins}
 WHERE a.user_id = %(user)s AND a.campaign_id = %(campaign)s
"""
FACTS = _FACTS.format(columns="", joins="")


class AssessorContext(NamedTuple):
    """What a request of an assessor needs to know of them, of the campaign, and of what they send."""

    assessor: int
    tier: str
    kind: str
    status: str
    n_judged: int
    quota: int | None
    team: str
    has_consented: bool
    has_trained: bool
    campaign: uuid.UUID
    kind_of_judging: str
    state: str
    lease_seconds: int
    gold_check_rate: float
    asks_consent: bool
    asks_training: bool
    has_first_topics: bool
    topic: int | None  # of the newest lease
    last_lease: uuid.UUID | None
    judgments_per_item: int
    has_random_order: bool
    has_silver_audits: bool
    is_among_gold_alone: bool  # a gold judge in a campaign that never had an assessor of another tier
    # Of a submission alone: the judgment that this request stored before, the item of the lease, if it is theirs, and
    # their newest judgment of it.
    known: int | None = None
    item: uuid.UUID | None = None
    document_version: int | None = None
    topic_version: int | None = None
    latest_sequence: int | None = None
    latest_slot: int | None = None
    any_slot: int | None = None
    is_on_scale: bool = False


# What was shown is the version that was in force when the item was leased. Few documents are ever corrected: of others
# nothing more is read.
_VERSION_SHOWN = """CASE WHEN d.version > 1 THEN (
         SELECT coalesce(max(n.number), 1) FROM judging_documentversion n
          WHERE n.document_id = d.id AND n.number > 1 AND n.created_at <= l.leased_at) ELSE d.version END"""
_TOPIC_SHOWN = """CASE WHEN w.version > 1 THEN (
         SELECT coalesce(max(n.number), 1) FROM judging_topicversion n
          WHERE n.topic_id = w.id AND n.number > 1 AND n.created_at <= l.leased_at) ELSE w.version END"""
FACTS_OF_SUBMISSION = _FACTS.format(
    columns=""",
       (SELECT k.id FROM judging_judgment k WHERE k.client_token = %(client_token)s) AS known,
       i.id AS item, """
    + _VERSION_SHOWN
    + """ AS document_version, """
    + _TOPIC_SHOWN
    + """ AS topic_version, j.sequence AS latest_sequence, v.id AS latest_slot,
       j.slot_id AS any_slot,
       EXISTS (SELECT 1 FROM judging_grade g WHERE g.scale_id = c.scale_id
                  AND g.value = %(grade)s::smallint) AS is_on_scale""",
    joins="""
  LEFT JOIN judging_lease l ON l.token = %(token)s AND l.assessor_id = a.id
  LEFT JOIN judging_slot s ON s.id = l.slot_id
  LEFT JOIN judging_item i ON i.id = s.item_id
  LEFT JOIN judging_document d ON d.id = i.document_id
  LEFT JOIN judging_topic w ON w.id = i.topic_id
  LEFT JOIN LATERAL (SELECT sequence, slot_id FROM judging_judgment
                      WHERE item_id = i.id AND assessor_id = a.id ORDER BY sequence DESC LIMIT 1) j ON TRUE
  LEFT JOIN judging_slot v ON v.id = j.slot_id AND v.purpose <> 'void'""",
)

# -- store -----------------------------------------------------------------------------------------------------


class StoredJudgment(NamedTuple):
    """What the database gives a judgment."""

    id: int
    slot_id: int | None
    created_at: datetime


_INSERT = """
stored AS (
  INSERT INTO judging_judgment (item_id, assessor_id, sequence, grade, obstacle, comment, slot_id, lease_token,
                                client_token, active_milliseconds, document_version, topic_version, created_at)
  SELECT %(item_id)s, %(assessor_id)s, %(sequence)s, %(grade)s::smallint, %(obstacle)s, %(comment)s, {slot},
         %(lease_token)s, %(client_token)s, %(active_milliseconds)s, %(document_version)s, %(topic_version)s,
         clock_timestamp()
  RETURNING id, slot_id, created_at),
worked AS (
  UPDATE judging_assessor SET n_judged = n_judged + 1 WHERE id = %(assessor_id)s AND %(sequence)s = 1)
SELECT id, slot_id, created_at FROM stored
"""

# The slot of this item that the assessor holds, by this lease, expired or not, or by a newer one; else a free one
# of the item.
STORE_GRADE = """
WITH filled AS (
  UPDATE judging_slot SET state = 'done', lease_until = NULL
   WHERE item_id = %(item_id)s AND assessor_id = %(assessor_id)s AND state = 'leased' AND %(counts)s RETURNING id),
free AS MATERIALIZED (
  SELECT id FROM judging_slot
   WHERE %(counts)s AND NOT EXISTS (SELECT 1 FROM filled) AND item_id = %(item_id)s AND state = 'open'
     AND purpose = ANY(%(purposes)s)
   ORDER BY purpose = 'silver', number LIMIT 1 FOR UPDATE SKIP LOCKED),
taken AS (
  UPDATE judging_slot s SET state = 'done', assessor_id = %(assessor_id)s, token = gen_random_uuid(),
         leased_at = clock_timestamp()
    FROM free WHERE s.id = free.id RETURNING s.id),
""" + _INSERT.format(slot="(SELECT id FROM filled UNION ALL SELECT id FROM taken)")

STORE_OBSTACLE = """
WITH freed AS (
  UPDATE judging_slot SET state = 'open', assessor_id = NULL, token = NULL, leased_at = NULL, lease_until = NULL
   WHERE item_id = %(item_id)s AND assessor_id = %(assessor_id)s AND state = 'leased'),
""" + _INSERT.format(slot="NULL")

STORE_REVISION = "WITH " + _INSERT.format(slot="%(slot)s::bigint")

# -- claim -----------------------------------------------------------------------------------------------------

# A slot this assessor may have: nobody's, or its lease has expired; and they have nothing to do with its item yet.
# OFFSET 0 and "+ 0" keep these two a look at one item each: else they would read all that the assessor ever judged.
_FREE = """(state = 'open' OR lease_until < clock_timestamp())
     AND NOT EXISTS (SELECT FROM judging_slot t
                      WHERE t.item_id = s.item_id AND t.assessor_id + 0 = %(me)s OFFSET 0)
     AND NOT EXISTS (SELECT FROM judging_judgment j
                      WHERE j.item_id = s.item_id AND j.assessor_id + 0 = %(me)s OFFSET 0)"""
_NOT_KEPT_FROM_HIM = """NOT EXISTS (SELECT 1 FROM judging_campaigntopic k WHERE k.campaign_id = %(campaign)s
                      AND k.topic_id = {topic} AND k.team NOT IN ('', %(team)s))"""

# What they hold comes back first, its lease renewed, expired or not, unless somebody else got it meanwhile: an
# ordinary item and a check that were left open behave alike.
_HELD = """
WITH held AS (
  UPDATE judging_slot SET lease_until = clock_timestamp() + %(lease)s
   WHERE assessor_id = %(me)s AND state = 'leased'
  RETURNING id, item_id, token, leased_at, lease_until),
wanted AS MATERIALIZED (
  SELECT (%(coins)s)[1 + count(*)] AS coin FROM held HAVING count(*) < %(n)s),
"""
# A row lock keeps its subquery apart (as MATERIALIZED would), so that exactly the row that was locked is leased.
_LOOK = """
{name} AS (
  SELECT id, item_id, position FROM judging_slot s
   WHERE EXISTS (TABLE wanted){only_if}
     AND campaign_id = %(campaign)s AND purpose = {purpose} AND topic_id = %(topic)s AND state <> 'done'
     AND position {side} %(pivot)s AND """ + _FREE + """
   ORDER BY position LIMIT 1 FOR UPDATE SKIP LOCKED),
"""  # fmt: skip
_TAKE = """
taken AS (
  UPDATE judging_slot s SET state = 'leased', assessor_id = %(me)s, token = gen_random_uuid(),
         leased_at = clock_timestamp(), lease_until = clock_timestamp() + %(lease)s
    FROM pick WHERE s.id = pick.id
  RETURNING s.id, item_id, token, leased_at, lease_until),
recorded AS (
  INSERT INTO judging_lease (token, slot_id, assessor_id, leased_at)
  SELECT token, id, %(me)s, leased_at FROM taken)
SELECT h.id AS slot_id, item_id, token, lease_until, t.title AS topic_title,
       description AS topic_description, narrative AS topic_narrative, d.title AS document_title,
       t.topic_id, doc_id, is_new
  FROM (SELECT *, FALSE AS is_new FROM held UNION ALL SELECT *, TRUE FROM taken) h
  JOIN judging_item i ON i.id = h.item_id
  JOIN judging_topic t ON t.id = i.topic_id
  JOIN judging_document d ON d.id = i.document_id
 ORDER BY leased_at, h.id
"""


def _look(name: str, purpose: str) -> str:
    """Look from the pivot on, and only if there is nothing, before it."""
    after = _LOOK.format(name=f"{name}_after", purpose=purpose, side=">=", only_if="")
    before = _LOOK.format(
        name=f"{name}_before",
        purpose=purpose,
        side="<",
        only_if=f" AND NOT EXISTS (TABLE {name}_after)",
    )
    both = f"TABLE {name}_after UNION ALL TABLE {name}_before"
    return f"{after}{before}{name} AS ({both}),"


# Both candidates are always looked up, whichever is then taken: else a check would come faster or slower. Checks with
# as many slots as other items lie in one queue with them: whichever is nearer from the pivot on comes. A check that is
# shown more often would come too early in that queue: there a coin decides.
# On one line: psycopg remembers how to read statements of fewer than 4,096 characters only.
CLAIM_IN_TOPIC = " ".join(
    (
        _HELD
        + _look("work", "%(purpose)s")
        + _look("checks", "'check'")
        + """
pick AS (
  SELECT CASE WHEN c.id IS NULL OR NOT %(is_ordinary)s THEN o.id
              WHEN EXISTS (SELECT FROM judging_slot r
                            WHERE r.item_id = c.item_id AND r.purpose = 'check' AND r.number > %(k)s)
              THEN CASE WHEN w.coin < coalesce(
                     (SELECT k.check_rate FROM judging_campaigntopic k
                       WHERE k.campaign_id = %(campaign)s AND k.topic_id = %(topic)s), %(check_rate)s)
                   THEN c.id ELSE o.id END
              WHEN o.id IS NULL
                OR (c.position < %(pivot)s, c.position) < (o.position < %(pivot)s, o.position)
              THEN c.id ELSE o.id END AS id
    FROM wanted w LEFT JOIN work o ON TRUE LEFT JOIN checks c ON TRUE),"""
        + _TAKE
    ).split()
)

# The last word before "no work": wait for rows that others have locked, in one order for everybody.
CLAIM_PATIENTLY = (
    _HELD
    + """
pick AS MATERIALIZED (
  SELECT s.id FROM judging_slot s
   WHERE EXISTS (SELECT 1 FROM wanted)
     AND s.campaign_id = %(campaign)s AND s.purpose = %(purpose)s AND s.state <> 'done'
     AND """
    + _NOT_KEPT_FROM_HIM.format(topic="s.topic_id")
    + " AND "
    + _FREE
    + """
   ORDER BY s.topic_id, s.position LIMIT 1 FOR UPDATE OF s),"""
    + _TAKE
)

# -- topics ----------------------------------------------------------------------------------------------------


class TopicRow(NamedTuple):
    """A topic to look for work in."""

    topic_id: int


class TopicRange(NamedTuple):
    """The first and the last topic with work; None: there is none."""

    first: int | None
    last: int | None


_HAS_WORK = (
    """EXISTS (
       SELECT 1 FROM judging_slot s
        WHERE s.campaign_id = %(campaign)s AND s.purpose = %(purpose)s AND s.topic_id = {topic} AND s.state <> 'done'
          AND """
    + _FREE
    + ") AND "
    + _NOT_KEPT_FROM_HIM
)
_OPEN_TOPIC = """SELECT s.topic_id FROM judging_slot s
    WHERE s.campaign_id = %(campaign)s AND s.purpose = %(purpose)s AND s.state <> 'done' AND s.topic_id > {after}
    ORDER BY s.topic_id LIMIT 1"""

# From open topic to open topic by the index: finished topics cost nothing, however many there are.
NEXT_TOPIC = (
    "WITH RECURSIVE open AS (("
    + _OPEN_TOPIC.format(after="%(after)s")
    + ") UNION ALL SELECT ("
    + _OPEN_TOPIC.format(after="open.topic_id")
    + """) FROM open WHERE open.topic_id IS NOT NULL)
SELECT open.topic_id FROM open WHERE open.topic_id IS NOT NULL AND """
    + _HAS_WORK.format(topic="open.topic_id")
    + " LIMIT 1"
)
# Newcomers start anywhere, so that all topics progress.
FIRST_AND_LAST_TOPIC = """
SELECT (SELECT min(s.topic_id) FROM judging_slot s WHERE s.campaign_id = %(campaign)s AND s.purpose = %(purpose)s
           AND s.state <> 'done') AS first,
       (SELECT max(s.topic_id) FROM judging_slot s WHERE s.campaign_id = %(campaign)s AND s.purpose = %(purpose)s
           AND s.state <> 'done') AS last
"""
TOPICS_GIVEN_FIRST = (
    """
SELECT f.topic_id FROM judging_assessor_first_topics f
 WHERE f.assessor_id = %(me)s AND """
    + _HAS_WORK.format(topic="f.topic_id")
    + " ORDER BY f.id"
)
