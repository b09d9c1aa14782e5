"""The rows of an import of judgments: what was copied into `incoming` becomes gold answers, or judgments that count.

Each step works on the temporary table `incoming` of `INCOMING`; a fault is refused at its line of the file.
"""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.hashers import make_password
from django.db import connection

from judging.faults import Faults
from judging.models import (
    Assessor,
    Campaign,
    Collection,
    GoldAnswer,
    Import,
    ImportedName,
    Item,
    Judgment,
    Lease,
    Slot,
)
from judging.services.imports import Rows, rows_of
from judging.services.judgment_formats import REJECT, JudgmentFile, grades_in
from judging.services.sources import add_rows, copy_rows, rows_between, tell_planner
from touchstone.models import User

INCOMING = "ordinal bigint, topic_id text, doc_id text, assessor text, grade integer"
# Each id is looked up by itself: a join with tables this full and this fresh was planned as 2 billion comparisons.
FIND = """
CREATE TEMPORARY TABLE found ON COMMIT DROP AS
SELECT i.ordinal, i.topic_id AS topic_name, i.doc_id AS document_name, i.assessor, i.grade,
       (SELECT t.id FROM judging_topic t
         WHERE t.collection_id = %(collection)s AND t.topic_id = i.topic_id) AS topic_id,
       (SELECT d.id FROM judging_document d
         WHERE d.collection_id = %(collection)s AND d.doc_id = i.doc_id) AS document_id
  FROM incoming i
"""
# Each finds the first line of one kind of fault: ordinal, then what the message needs.
UNKNOWN_TOPIC = "SELECT ordinal, topic_name FROM found WHERE topic_id IS NULL ORDER BY ordinal LIMIT 1"
UNKNOWN_DOCUMENT = (
    "SELECT ordinal, document_name FROM found WHERE document_id IS NULL ORDER BY ordinal LIMIT 1"
)
LEAVE_OUT_UNKNOWN = "DELETE FROM found WHERE topic_id IS NULL OR document_id IS NULL"
GOLD_TWICE = """
SELECT ordinal, document_name, topic_name, grade, first FROM (
  SELECT *, first_value(grade) OVER (PARTITION BY topic_id, document_id ORDER BY ordinal) AS first FROM found) f
 WHERE grade <> first ORDER BY ordinal LIMIT 1
"""
GOLD_KNOWN = """
SELECT f.ordinal, f.document_name, f.topic_name, f.grade, coalesce(g.grade::text, 'none: it was withdrawn') FROM found f
  JOIN judging_goldanswer g ON g.topic_id = f.topic_id AND g.document_id = f.document_id
   AND g.grade IS DISTINCT FROM f.grade
 ORDER BY f.ordinal LIMIT 1
"""
ADD_GOLD = """
INSERT INTO judging_goldanswer (topic_id, document_id, grade, source, created_at, imported_by_id)
SELECT topic_id, document_id, min(grade), %(source)s, statement_timestamp(), %(made)s FROM found
 GROUP BY topic_id, document_id ORDER BY min(ordinal)
ON CONFLICT (topic_id, document_id) DO NOTHING
"""
Fault = tuple[str, str, str]  # query, the column to blame, the reason


def _refuse_first(file: JudgmentFile, parameters: dict[str, Any], faults: list[Fault]) -> None:
    """Raise the fault of the earliest line, if there is any."""
    found = []
    with connection.cursor() as cursor:
        for sql, what, reason in faults:
            cursor.execute(sql, parameters)
            found += [(row[0], what, reason.format(*row[1:])) for row in cursor.fetchall()]
    if found:
        file.refuse(*min(found))


def find_pairs(file: JudgmentFile, collection: Collection, *, skips_unknown: bool = False) -> int:
    """Make the table `found` from `incoming`: its topics and documents as rows.

    What is unknown is refused, or, with `skips_unknown`, left out: return how many rows that are.
    """
    n_unknown = 0
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS pg_temp.found")
        cursor.execute(FIND, {"collection": collection.pk})
        if skips_unknown:
            cursor.execute(LEAVE_OUT_UNKNOWN)
            n_unknown = int(cursor.rowcount)
        cursor.execute("ANALYZE found")
    faults = [
        (UNKNOWN_TOPIC, "topic", "the collection has no topic {}"),
        (UNKNOWN_DOCUMENT, "document", "the collection has no document {}"),
    ]
    _refuse_first(file, {}, faults)
    return n_unknown


KEEP_ONE = """
DELETE FROM incoming WHERE ordinal NOT IN (
  SELECT {which}(ordinal) FROM incoming GROUP BY topic_id, doc_id, assessor)
"""


def keep_one(repeats: str) -> int:
    """Leave of an assessor's grades of a pair the first or the last; return how many went."""
    if repeats == REJECT:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(KEEP_ONE.format(which={"first": "min", "last": "max"}[repeats]))
        return int(cursor.rowcount)


def grade_on_scale(
    grade: int, index: int, file: JudgmentFile, mapping: Mapping[int, int | None] | None, allowed: set[int]
) -> int | None:
    """Return what a grade of the file becomes, None if it is left out; one that is not on the scale is refused."""
    wanted = mapping.get(grade, grade) if mapping else grade
    if wanted is not None and wanted not in allowed:
        scale = ", ".join(map(str, sorted(allowed)))
        question = _ask_of_negative(file, mapping or {}) if wanted < 0 else ""
        file.refuse(index, "grade", f"grade {wanted} is not on the scale {scale}{question}")
    return wanted


def _ask_of_negative(file: JudgmentFile, mapping: Mapping[int, int | None]) -> str:
    """Return how many lines have each grade below 0, and the question what these become."""
    found = grades_in(file.stream.from_start(), file.name, file.format, file.options, Faults())
    negative = {grade: n for grade, n in found.items() if (mapping.get(grade, grade) or 0) < 0}
    counts = ", ".join(
        f"{n:,} {'line has' if n == 1 else 'lines have'} {grade}" for grade, n in negative.items()
    )
    as_zero, left_out = (",".join(f"{grade}={wanted}" for grade in negative) for wanted in ("0", ""))
    or_left_out = "" if file.format.sample else f" or {left_out} (left out)"  # a sample is imported whole
    return f"; {counts}: say with a grade map what becomes of them, {as_zero} (not relevant){or_left_out}"


def add_gold(file: JudgmentFile, made: Import, source_name: str) -> tuple[int, dict[str, list[int]]]:
    """Add the gold answers that are new; return how many, and what the event says of their rows."""
    parameters = {"source": source_name, "made": made.pk}
    differs = "document {} of topic {} has the gold answer {}, but {} "
    faults = [
        (GOLD_TWICE, "grade", differs + "on an earlier line"),
        (GOLD_KNOWN, "grade", differs + "in the collection"),
    ]
    _refuse_first(file, parameters, faults)
    with connection.cursor() as cursor:
        count, first, last = add_rows(cursor, ADD_GOLD, parameters)
    tell_planner(GoldAnswer)
    return count, rows_between(first, last)


# -- judgments of a campaign ----------------------------------------------------------------------------------

NAMES = "SELECT assessor FROM incoming GROUP BY assessor ORDER BY min(ordinal)"


def add_assessors(
    campaign: Campaign, source_name: str, kind: str, tier: str = Assessor.Tier.BRONZE
) -> list[int]:
    """Make an assessor for every new name; put all into the table `incoming_assessor`; return their users' ids.

    The file's names are other people's identifiers: they stand in `ImportedName` and nowhere else.
    """
    with connection.cursor() as cursor:
        cursor.execute(NAMES)
        names = [row[0] for row in cursor.fetchall()]
    keys = _known_assessors(campaign, source_name)
    prefix = f"imported-{str(campaign.pk)[:8]}-"
    number = User.objects.filter(username__startswith=prefix).count()
    new = [name for name in names if name not in keys]
    fresh = [
        User(username=f"{prefix}{number + place}", password=make_password(None))
        for place in range(1, len(new) + 1)
    ]
    users = User.objects.bulk_create(fresh, batch_size=1000)
    made = Assessor.objects.bulk_create(
        (Assessor(campaign=campaign, user=user, kind=kind, tier=tier) for user in users), batch_size=1000
    )
    ImportedName.objects.bulk_create(
        (
            ImportedName(assessor=one, source=source_name, name=name)
            for name, one in zip(new, made, strict=True)
        ),
        batch_size=1000,
    )
    keys |= {name: one.pk for name, one in zip(new, made, strict=True)}
    copy_rows("incoming_assessor", "name text, assessor_id bigint", ((name, keys[name]) for name in names))
    meant = Assessor.objects.filter(pk__in=[keys[name] for name in names])
    return sorted(meant.values_list("user_id", flat=True))


def _known_assessors(campaign: Campaign, source_name: str) -> dict[str, int]:
    """Return the assessors that earlier imports of this source made, by the file's names."""
    known = ImportedName.objects.filter(assessor__campaign=campaign, source=source_name)
    return dict(known.values_list("name", "assessor_id"))


ADD_ITEMS = """
INSERT INTO judging_item (id, campaign_id, topic_id, document_id)
SELECT gen_random_uuid(), %(campaign)s, topic_id, document_id
  FROM (SELECT DISTINCT topic_id, document_id FROM found) f
ON CONFLICT (campaign_id, topic_id, document_id) DO NOTHING
"""
WANTED = """
CREATE TEMPORARY TABLE wanted ON COMMIT DROP AS
SELECT f.*, gen_random_uuid() AS token, NULL::integer AS number,
       row_number() OVER (PARTITION BY f.item_id ORDER BY f.ordinal) AS turn
  FROM (SELECT f.*, a.assessor_id,
               (SELECT d.version FROM judging_document d WHERE d.id = f.document_id) AS version,
               (SELECT t.version FROM judging_topic t WHERE t.id = f.topic_id) AS topic_version,
               (SELECT n.id FROM judging_item n WHERE n.campaign_id = %(campaign)s
                   AND n.topic_id = f.topic_id AND n.document_id = f.document_id) AS item_id
          FROM found f JOIN incoming_assessor a ON a.name = f.assessor) f
"""
LOCK_SLOTS = """
SELECT count(*) FROM (SELECT 1 FROM judging_slot WHERE item_id IN (SELECT item_id FROM wanted) AND purpose = 'judge'
                       ORDER BY id FOR UPDATE) locked
"""
# The m-th new judgment of an item takes its m-th number that nobody holds or has filled.
NUMBER = """
UPDATE wanted SET number = free.number FROM (
  SELECT item_id, number, row_number() OVER (PARTITION BY item_id ORDER BY number) AS turn
    FROM (SELECT DISTINCT item_id FROM wanted) i CROSS JOIN generate_series(1, %(k)s) number
   WHERE NOT EXISTS (SELECT 1 FROM judging_slot s WHERE s.item_id = i.item_id AND s.purpose = 'judge'
                        AND s.number = number.number AND s.state <> 'open')) free
 WHERE free.item_id = wanted.item_id AND free.turn = wanted.turn
"""
JUDGED_BEFORE = """
SELECT w.ordinal, w.document_name, w.topic_name FROM wanted w
 WHERE EXISTS (SELECT 1 FROM judging_judgment j WHERE j.item_id = w.item_id AND j.assessor_id = w.assessor_id)
 ORDER BY w.ordinal LIMIT 1
"""
TOO_MANY = (
    "SELECT ordinal, document_name, topic_name FROM wanted WHERE number IS NULL ORDER BY ordinal LIMIT 1"
)
FILL_SLOTS = """
INSERT INTO judging_slot (item_id, purpose, number, state, assessor_id, token, leased_at,
                          campaign_id, topic_id, position)
SELECT item_id, %(purpose)s, number, 'done', assessor_id, token, statement_timestamp(), %(campaign)s, topic_id, ordinal
  FROM wanted ORDER BY ordinal
ON CONFLICT (item_id, purpose, number) WHERE NOT (purpose = 'void') DO UPDATE
   SET state = 'done', assessor_id = excluded.assessor_id, token = excluded.token, leased_at = excluded.leased_at
"""
ADD_LEASES = """
INSERT INTO judging_lease (token, slot_id, assessor_id, leased_at)
SELECT w.token, s.id, w.assessor_id, s.leased_at FROM wanted w JOIN judging_slot s ON s.token = w.token
"""
ADD_JUDGMENTS = """
INSERT INTO judging_judgment (item_id, assessor_id, sequence, grade, slot_id, lease_token, client_token,
                              active_milliseconds, document_version, topic_version, created_at)
SELECT w.item_id, w.assessor_id, 1, w.grade, s.id, w.token, gen_random_uuid(), 0, w.version, w.topic_version,
       statement_timestamp()
  FROM wanted w JOIN judging_slot s ON s.token = w.token ORDER BY w.ordinal
"""
WANT_ALL = """
UPDATE judging_item i SET judgments_wanted = w.n
  FROM (SELECT item_id, count(*) AS n FROM wanted GROUP BY item_id) w WHERE i.id = w.item_id
"""
AUDIT_WANTED = """
CREATE TEMPORARY TABLE wanted ON COMMIT DROP AS
SELECT c.ordinal, c.item_id, c.grade, n.topic_id, d.version, t.version AS topic_version,
       a.assessor_id, gen_random_uuid() AS token, 1 AS number
  FROM chosen c JOIN judging_item n ON n.id = c.item_id JOIN judging_document d ON d.id = n.document_id
  JOIN judging_topic t ON t.id = n.topic_id CROSS JOIN incoming_assessor a
 WHERE c.grade IS NOT NULL
"""
MOST = "SELECT coalesce(max(n), 1) FROM (SELECT count(*) AS n FROM found GROUP BY topic_id, document_id) f"
COUNT_WORK = """
UPDATE judging_assessor a SET n_judged = n_judged + w.n
  FROM (SELECT assessor_id, count(*) AS n FROM wanted GROUP BY assessor_id) w WHERE a.id = w.assessor_id
"""


def add_judgments(file: JudgmentFile, campaign: Campaign, *, is_complete: bool = False) -> tuple[int, Rows]:
    """Turn the copied lines into items, filled slots, leases and judgments; return how many, and their ids.

    `is_complete`: the file is all there is, so that every item wants as many judgments as it has there.
    """
    k = _most_of_an_item() if is_complete else campaign.judgments_per_item
    parameters: dict[str, Any] = {"campaign": campaign.pk, "k": k, "purpose": Slot.Purpose.JUDGE.value}
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS pg_temp.wanted")
        cursor.execute(ADD_ITEMS, parameters)
        tell_planner(Item)
        for sql in (WANTED, "ANALYZE wanted", LOCK_SLOTS, NUMBER):
            cursor.execute(sql, parameters)
    many = f"document {{}} of topic {{}} already has all its judgments; the campaign needs {k} per item"
    faults = [
        (JUDGED_BEFORE, "assessor", "this assessor has already judged document {} of topic {}"),
        (TOO_MANY, "document", many),
    ]
    _refuse_first(file, parameters, faults)
    if is_complete:
        with connection.cursor() as cursor:
            cursor.execute(WANT_ALL)
    return _fill(parameters)


def _fill(parameters: dict[str, Any]) -> tuple[int, Rows]:
    """Fill a slot with each row of `wanted`; return how many, and between which ids the judgments are."""
    with connection.cursor() as cursor:
        for sql in (FILL_SLOTS, ADD_LEASES):
            cursor.execute(sql, parameters)
        count, first, last = add_rows(cursor, ADD_JUDGMENTS, parameters)
        cursor.execute(COUNT_WORK)
    tell_planner(Slot, Lease, Judgment)
    return count, rows_of(Judgment, first, last)


def add_audit_grades(campaign: Campaign) -> tuple[int, Rows]:
    """Fill a slot of an audit with the grade of every item in `chosen`, by the one assessor of `incoming_assessor`."""
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS pg_temp.wanted")
        cursor.execute(AUDIT_WANTED)
    return _fill({"campaign": campaign.pk, "purpose": Slot.Purpose.AUDIT.value})


def _most_of_an_item() -> int:
    """Return how many judgments the file has of the document with the most of them."""
    with connection.cursor() as cursor:
        cursor.execute(MOST)
        return int(cursor.fetchone()[0])
