"""The planner's statistics of what an import fills are refreshed as the roles that import."""

import database_roles
import psycopg
import pytest
from django.db import OperationalError, connection, transaction
from psycopg.errors import InsufficientPrivilege

from judging.models import Collection, Document, GoldAnswer, Item, Judgment, Lease, Slot, Topic
from judging.services.sources import tell_planner
from sampling.models import DrawEntry
from touchstone.rights import READ, WEB, WORKER

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("made_roles")]

FILLED = (Document, DrawEntry, GoldAnswer, Item, Judgment, Lease, Slot, Topic)
N_TOPICS = 37  # fewer than those for which PostgreSQL itself would look


def run(sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall() if cursor.description else []


def known_topics():
    """Return how many topics the planner believes there are."""
    return run("SELECT reltuples FROM pg_class WHERE oid = 'judging_topic'::regclass")[0][0]


def add_topics(n):
    collection = Collection.objects.create(name="news")
    Topic.objects.bulk_create(Topic(collection=collection, topic_id=str(t), title="wings") for t in range(n))


@pytest.mark.parametrize("role", [WEB, WORKER])
def test_whoever_imports_tells_the_planner_within_the_import(role, servers):
    tell_planner(Topic)
    before = known_topics()
    with database_roles.logged_in(servers, role), transaction.atomic():
        add_topics(N_TOPICS)
        run("ANALYZE judging_topic")  # the control: only a warning
        assert known_topics() == before != N_TOPICS
        tell_planner(*FILLED)
        assert known_topics() == N_TOPICS
    assert known_topics() == N_TOPICS


def test_nobody_waits_for_somebody_who_does_the_same(servers):
    add_topics(N_TOPICS)
    settings = connection.get_connection_params()
    address = {
        key: settings[key] for key in ("dbname", "user", "password", "host", "port") if key in settings
    }
    with psycopg.connect(**address) as other:
        other.execute("LOCK TABLE judging_topic IN SHARE UPDATE EXCLUSIVE MODE")
        with transaction.atomic():
            run("SET LOCAL lock_timeout = '50ms'")
            tell_planner(Topic)
            with pytest.raises(OperationalError, match="lock timeout"), transaction.atomic():
                run("ANALYZE judging_topic")  # the control
        other.rollback()
    tell_planner(Topic)
    assert known_topics() == N_TOPICS


@pytest.mark.parametrize(
    ("role", "table"),
    [
        (READ, "judging_topic"),
        (WEB, "touchstone_user"),  # no import fills it
        (WEB, "pg_catalog.pg_class"),
        (WEB, "pg_temp.judging_topic"),
        (WORKER, "pg_temp.judging_topic"),
    ],
)
def test_other_tables_and_those_who_may_only_read_are_refused(role, table, servers):
    with database_roles.session(servers, role) as session:
        session.execute("SET default_transaction_read_only = off")
        if table.startswith("pg_temp."):
            session.execute("CREATE TEMPORARY TABLE judging_topic (id integer)")
        with pytest.raises(InsufficientPrivilege, match="are not refreshed"):
            session.execute("SELECT judging_tell_planner(%s::regclass)", [table])
