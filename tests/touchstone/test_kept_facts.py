"""Facts are kept whoever asks, a superuser too whose session plays a replica: for it other triggers do not fire."""

import pytest
from django.db import DatabaseError, connection, transaction
from small_campaign import judge_all, make_assessor, make_campaign

from touchstone.rights import APPEND_ONLY, SEALS, TABLES

pytestmark = pytest.mark.django_db

FACTS = sorted(table for table, allowed in TABLES.items() if allowed in (APPEND_ONLY, SEALS))
# What guards a part of a row.
OTHERS = {
    "analytics_release_kept",
    "analytics_release_no_truncate",
    "judging_campaign_keep_k",
    *(
        f"judging_{of}version_{what}"
        for of in ("document", "topic", "gold")
        for what in ("check", "in_force")
    ),
    "judging_run_is_kept",
    "judging_slot_done",
    "judging_trainingitem_check",
    "sampling_auditschedule_looks_stay",
    "touchstone_user_last_manager",
}
UPDATE, DELETE, TRUNCATE, ROW = 16, 8, 32, 1  # of pg_trigger.tgtype


def guards():
    """Return what each trigger that is always on fires for, by its name."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tgname, tgtype FROM pg_trigger WHERE tgenabled = 'A'")
        return dict(cursor.fetchall())


def refusal_of(sql, *before):
    """Return what PostgreSQL says against the statement in a session that plays a replica; nothing stays of it."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            for statement in before:
                cursor.execute(statement)
            cursor.execute("SET LOCAL session_replication_role = replica")
            cursor.execute(sql)
            transaction.set_rollback(True)
    except DatabaseError as error:
        return str(error).partition("\n")[0]
    return None


def as_other_triggers(tables):
    """Return what makes the guards of these tables such as a session that plays a replica passes by."""
    return [
        f"ALTER TABLE {table} ENABLE TRIGGER {table}_{name}"
        for table in tables
        for name in ("append_only", "no_truncate")
    ]


def test_every_table_of_facts_has_its_guards_and_they_are_always_on():
    found = guards()
    assert len(FACTS) > 25
    for table in FACTS:
        assert found.get(f"{table}_append_only", 0) & (UPDATE | DELETE | ROW) == UPDATE | DELETE | ROW, table
        assert found.get(f"{table}_no_truncate", 0) & TRUNCATE, table
    expected = {f"{table}_{name}" for table in FACTS for name in ("append_only", "no_truncate")}
    assert set(found) == expected | OTHERS


def test_no_table_of_facts_is_truncated_even_as_a_replica():
    assert {table: refusal_of(f"TRUNCATE {table} CASCADE") for table in FACTS} == {
        table: f"{table} is append-only: TRUNCATE refused" for table in FACTS
    }


def test_the_control_truncates_them_all_where_the_guards_are_as_other_triggers():
    sql = f"TRUNCATE {', '.join([*FACTS, 'analytics_release'])} CASCADE"
    assert "TRUNCATE refused" in refusal_of(sql)
    releases = "ALTER TABLE analytics_release ENABLE TRIGGER analytics_release_no_truncate"
    assert refusal_of(sql, *as_other_triggers(FACTS), releases) is None


def test_no_fact_is_changed_or_deleted_even_as_a_replica_but_for_the_control(tmp_path):
    """Every table of facts that a judged campaign fills; tests/touchstone/test_upgrade.py tries those of a release."""
    campaign = make_campaign(tmp_path)
    judge_all(campaign, [make_assessor(campaign, name) for name in ("ann", "ben")])
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(f'EXISTS (SELECT FROM {table})' for table in FACTS)}")  # noqa: S608
        filled = [table for table, has_rows in zip(FACTS, cursor.fetchone(), strict=True) if has_rows]
    assert {
        "judging_judgment",
        "judging_lease",
        "judging_document",
        "judging_topic",
        "judging_goldanswer",
    } <= set(filled)
    for table in filled:
        with connection.cursor() as cursor:
            column = connection.introspection.get_table_description(cursor, table)[0].name
        for verb, sql in {
            "UPDATE": f"UPDATE {table} SET {column} = {column}",  # noqa: S608
            "DELETE": f"DELETE FROM {table}",  # noqa: S608
        }.items():
            assert refusal_of(sql) == f"{table} is append-only: {verb} refused"
            assert refusal_of(sql, *as_other_triggers([table])) is None


def test_what_is_done_in_a_slot_stays_even_as_a_replica(tmp_path):
    campaign = make_campaign(tmp_path)
    judge_all(campaign, [make_assessor(campaign, "ann"), make_assessor(campaign, "ben")])
    sql = "UPDATE judging_slot SET token = gen_random_uuid() WHERE state = 'done'"
    assert refusal_of(sql) is not None
    assert refusal_of(sql, "ALTER TABLE judging_slot ENABLE TRIGGER judging_slot_done") is None
