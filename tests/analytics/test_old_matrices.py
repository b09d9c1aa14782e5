"""Old matrices of assessors lose their names some thousand at a time, and whatever ends it, it goes on from there."""

from importlib import import_module

import pytest
from django.db import DatabaseError, connection, transaction
from quick_flush import unguarded
from small_campaign import make_assessor, make_campaign

from analytics.models import Computation, ConfusionEstimate

migration = import_module("analytics.migrations.0017_old_matrices_hold_no_names")
pytestmark = pytest.mark.django_db(transaction=True)

N = 5
STOP = f"ALTER TABLE {migration.TABLE} ADD CONSTRAINT stop CHECK (key <> '3' OR label <> '') NOT VALID"


@pytest.fixture
def named(tmp_path, monkeypatch):
    """Five matrices of people with their names, and one of a tier."""
    monkeypatch.setattr(migration, "AT_ONCE", 2)
    campaign = make_campaign(tmp_path)
    bob = make_assessor(campaign, "bob")
    computation = Computation.objects.create(
        campaign=campaign,
        last_judgment_id=1,
        n_judgments=9,
        n_items=3,
        n_gold_checks=0,
        n_audited=0,
        seconds=1,
    )
    numbers = {"matrix": [], "low": [], "high": [], "counts": [], "n_gold_checks": 0, "n_audited": 0}
    shared = {"computation": computation, **numbers}
    for key in range(N):
        ConfusionEstimate.objects.create(key=str(key), scope="assessor", assessor=bob, **shared)
    ConfusionEstimate.objects.create(key="tier", scope="tier", label="bronze", **shared)
    with transaction.atomic(), connection.cursor() as cursor, unguarded([migration.TABLE]):
        cursor.execute(f"UPDATE {migration.TABLE} SET label = 'bob' WHERE scope = 'assessor'")  # noqa: S608


def labels():
    return list(ConfusionEstimate.objects.order_by("pk").values_list("label", flat=True))


def convert():
    with connection.schema_editor(atomic=False) as editor:
        migration.convert(None, editor)


def is_kept():
    """Return whether a matrix cannot be changed, not even in a session that plays a replica."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        try:
            with transaction.atomic():
                cursor.execute(f"UPDATE {migration.TABLE} SET label = 'x'")  # noqa: S608
        except DatabaseError as error:
            return "append-only" in str(error)
        transaction.set_rollback(True)
    return False


@pytest.mark.usefixtures("named")
def test_all_names_are_taken_out_in_batches_and_once_more_is_no_harm():
    assert labels() == ["bob"] * N + ["bronze"]
    for _ in range(2):
        convert()
        assert labels() == [""] * N + ["bronze"]
        assert is_kept()


@pytest.mark.usefixtures("named")
def test_what_was_done_before_a_fault_stays_and_the_rest_is_done_later():
    with connection.cursor() as cursor:
        cursor.execute(STOP)
        try:
            with pytest.raises(DatabaseError, match="stop"):
                convert()
        finally:
            cursor.execute(f"ALTER TABLE {migration.TABLE} DROP CONSTRAINT stop")
    assert labels() == ["", "", "bob", "bob", "bob", "bronze"]
    assert is_kept()
    convert()
    assert labels() == [""] * N + ["bronze"]


@pytest.mark.usefixtures("named")
def test_a_guard_that_was_not_always_on_is_left_so():
    """The control of `is_kept`: who upgrades from 0.1.0 has such a one until the next migration."""
    name = f"{migration.TABLE}_append_only"
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {migration.TABLE} ENABLE TRIGGER {migration.TRIGGER}")
        try:
            convert()
            cursor.execute("SELECT tgenabled FROM pg_trigger WHERE tgname = %s", [name])
            assert cursor.fetchone() == ("O",)
            assert not is_kept()
        finally:
            cursor.execute(f"ALTER TABLE {migration.TABLE} ENABLE ALWAYS TRIGGER {migration.TRIGGER}")
