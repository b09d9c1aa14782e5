"""A true replica of the tests' servers, with a world that both have."""

import pytest
import quick_flush
from django.db import connection
from job_kinds import until
from read_replica import Clock, Replica, named_in_the_settings
from worlds import make_user, make_world

from touchstone import counters, replica


@pytest.fixture(scope="module")
def standby(servers, django_db_setup, django_db_blocker, tmp_path_factory):
    """Give the replica, and a world that is committed, so that it has it, too."""
    with django_db_blocker.unblock():
        rita, mara = make_user("rita", "researcher"), make_user("mara", "manager")
        world = make_world(tmp_path_factory.mktemp("world"), [mara, rita], "bob")
        made = Replica(servers)
        try:
            made.start()
            yield made, world
        finally:
            made.remove()
            quick_flush.empty_tables()


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(replica, "time", made)
    return made


@pytest.fixture
def stand(db, standby, monkeypatch, settings, tmp_path):
    """The product knows the replica, which has all there is."""
    settings.VAR = tmp_path
    monkeypatch.setattr(replica, "EVERY", 0.0)
    monkeypatch.setattr(replica, "EVERY_WHEN_AWAY", 0.0)
    made, world = standby
    with named_in_the_settings(made):
        counters._forget()
        with connection.cursor() as cursor:  # the test's own transaction may be idle while the replica starts
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        made.catch_up()
        until(replica.watch.is_usable, 20)
        yield made, world
        counters._forget()
