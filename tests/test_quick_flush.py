"""After a test that commits nothing is left: no row of a kept fact, none of a large table, and no open transaction."""

import psycopg
import pytest
import quick_flush
from django.contrib.auth.models import Permission
from django.db import DatabaseError, OperationalError, connection
from small_campaign import give, make_assessor, make_campaign, slots

from judging.models import Judgment, Slot

pytestmark = pytest.mark.django_db(transaction=True)


def judged(folder):
    campaign = make_campaign(folder)
    give(make_assessor(campaign, "ann"), slots(campaign)[0], 1)


def rows_left():
    with connection.cursor() as cursor:
        left = {}
        for name in set(connection.introspection.django_table_names()) - quick_flush.KEPT:
            cursor.execute(f"SELECT count(*) FROM {name}")  # noqa: S608
            if count := cursor.fetchone()[0]:
                left[name] = count
    return left


def test_every_row_goes_and_what_belongs_to_the_schema_stays(tmp_path):
    judged(tmp_path)
    assert {"judging_judgment", "judging_item", "touchstone_event"} <= rows_left().keys()
    permissions = Permission.objects.count()
    quick_flush.empty_tables()
    assert rows_left() == {}
    assert Permission.objects.count() == permissions > 0


def test_a_large_table_is_truncated_with_what_refers_to_it(tmp_path, monkeypatch):
    judged(tmp_path)
    monkeypatch.setattr(quick_flush, "TRUNCATED_FROM", 0)
    quick_flush.empty_tables()
    assert rows_left() == {}
    assert not Slot.objects.exists()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_relation_size('judging_slot')")
        assert cursor.fetchone() == (0,)


def test_facts_stay_kept_after_it(tmp_path):
    quick_flush.empty_tables()
    judged(tmp_path)
    with pytest.raises(DatabaseError, match="judging_judgment is append-only"):
        Judgment.objects.update(grade=0)


def test_a_transaction_that_a_test_left_open_is_reported():
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '50ms'")
    with psycopg.connect(**{**connection.get_connection_params(), "cursor_factory": psycopg.Cursor}) as other:
        other.execute("SELECT count(*) FROM judging_slot")
        with pytest.raises(OperationalError, match="lock timeout"):
            quick_flush.empty_tables()
    quick_flush.empty_tables()
    connection.close()  # the short time for locks is this connection's
