"""What the owner's function erases, and what it does not; a line as PostgreSQL and as the ledger makes it."""

import json
import uuid

import pytest
from database_roles import session
from django.db import DatabaseError, transaction
from ledger_world import run, seal_three_times
from psycopg.errors import InsufficientPrivilege, ObjectNotInPrerequisiteState

from touchstone.chain import digest
from touchstone.ledger.rows import columns_of, lines
from touchstone.ledger.verification import chain_faults
from touchstone.models import Erasure, record
from touchstone.people.texts import TEXTS
from touchstone.rights import OWNER, READ, WEB, WORKER

SEALED = [text for text in TEXTS if text.is_sealed]
pytestmark = pytest.mark.django_db


def seal():
    """Seal rows that point nowhere, in a session that asks no foreign keys; what guards facts is on in it as well."""
    seal_three_times()
    run("SET LOCAL session_replication_role = replica")


def fifth_and_sixth(table):
    """Return the ids of two rows in the middle of what was sealed."""
    return [key for (key,) in run(f'SELECT id FROM "{table}" ORDER BY id OFFSET 4 LIMIT 2')]  # noqa: S608


def row_of(table, key):
    [found] = run(f'SELECT to_jsonb(r) FROM "{table}" r WHERE id = %s', key)  # noqa: S608
    return found[0] if isinstance(found[0], dict) else json.loads(found[0])


@pytest.mark.parametrize("text", SEALED, ids=str)
def test_a_line_is_the_same_in_the_database_and_in_the_ledger(text):
    seal()
    names = list(columns_of(text.table))
    found = list(lines(text.table, names, 0, 1 << 60))
    assert len(found) == 9
    for key, line in found:
        assert run("SELECT touchstone_line_digest(%s, %s, %s)", text.table, names, key) == [
            (digest(line).hex(),)
        ]


@pytest.mark.parametrize("text", SEALED, ids=str)
def test_only_the_text_and_the_salt_of_the_row_change_and_the_ledger_verifies(text):
    seal()
    fifth, sixth = fifth_and_sixth(text.table)
    before, other = row_of(text.table, fifth), row_of(text.table, sixth)
    value = '"gone"' if text.is_json else "gone"
    run("SELECT touchstone_erase(%s, %s, %s)", text.table, fifth, value)
    after = row_of(text.table, fifth)
    salt = "client_token" if text.table == "judging_judgment" else "salt"
    assert {name for name in before if before[name] != after[name]} == {text.column, salt}
    assert (after[text.column], row_of(text.table, sixth)) == ("gone", other)
    assert uuid.UUID(after[salt]) != uuid.UUID(before[salt])
    [erasure] = Erasure.objects.filter(table=text.table, row=fifth)
    assert erasure.old != erasure.new
    assert list(chain_faults()) == []
    run(
        "SELECT touchstone_erase(%s, %s, %s)", text.table, fifth, value
    )  # once more: an erasure follows an erasure
    assert list(chain_faults()) == []


def refused(sql, *values):
    try:
        with transaction.atomic():
            run(sql, *values)
    except DatabaseError as error:
        return str(error).partition("\n")[0]
    return None


def test_it_refuses_what_is_not_sealed_what_was_changed_since_and_what_holds_no_text():
    seal()
    fifth, _ = fifth_and_sixth("touchstone_event")
    event = record("did", Erasure(pk=1), word="x")
    erase = "SELECT touchstone_erase(%s, %s, %s)"
    assert refused(erase, "touchstone_event", event.pk, "{}").endswith("is not sealed yet")
    assert refused(erase, "judging_document", 1, "").startswith("nothing is erased in judging_document")
    run(erase, "touchstone_event", fifth, "{}")
    run("ALTER TABLE touchstone_event DISABLE TRIGGER USER")
    run("UPDATE touchstone_event SET detail = '{\"forged\": 1}' WHERE id = %s", fifth)
    run("ALTER TABLE touchstone_event ENABLE TRIGGER USER")
    assert refused(erase, "touchstone_event", fifth, "{}").endswith("is not what its last erasure left")


def test_nothing_but_the_function_changes_a_row_not_even_its_text_and_nothing_else_of_it_does():
    """The control: with the mark that the function sets, the text may change, and the verb may not."""
    seal()
    fifth, sixth = fifth_and_sixth("touchstone_event")
    change = f"UPDATE touchstone_event SET {{}} WHERE id = {fifth}"  # noqa: S608
    refusal = "touchstone_event is append-only: UPDATE refused"
    assert refused(change.format("detail = '{}'")) == refusal
    run("SELECT touchstone_erase('touchstone_event', %s, '{}')", sixth)
    assert refused(change.format("detail = '{}'")) == refusal  # the mark is gone
    run("SELECT set_config('touchstone.change', 'UPDATE ' || pg_current_xact_id()::text, true)")
    assert refused(change.format("verb = 'x'")) == refusal
    assert refused("DELETE FROM touchstone_event") == "touchstone_event is append-only: DELETE refused"
    assert (
        refused("UPDATE judging_judgment SET grade = 0") == "judging_judgment is append-only: UPDATE refused"
    )
    assert refused(change.format("detail = '{}'")) is None


@pytest.mark.usefixtures("made_roles")
@pytest.mark.parametrize(
    "call",
    [
        "touchstone_erase('touchstone_event', 1, '')",
        "touchstone_erase_judges(gen_random_uuid(), '{}', '{}')",
        "touchstone_prune('jobs', 90, 1)",
    ],
)
def test_workers_alone_may_call_the_owners_functions(call, servers):
    for role in (WEB, READ):
        with (
            session(servers, role) as other,
            pytest.raises(InsufficientPrivilege, match="denied for function"),
        ):
            other.execute(f"SELECT {call}")
    with session(servers, WORKER) as worker:
        # A temporary table in the place of a real one fools nobody.
        worker.execute(
            'CREATE TEMPORARY TABLE touchstone_seal (columns jsonb, "table" text, up_to_id bigint)'
        )
        worker.execute("INSERT INTO touchstone_seal VALUES ('[\"verb\"]', 'touchstone_event', 9)")
        if "judges" in call:
            with pytest.raises(InsufficientPrivilege, match="in a closed campaign alone"):
                worker.execute(f"SELECT {call}")
        elif "erase" in call:
            with pytest.raises(ObjectNotInPrerequisiteState, match="is not sealed yet"):
                worker.execute(f"SELECT {call}")
        else:
            assert worker.execute(f"SELECT {call}").fetchone() == (0,)
        with pytest.raises(InsufficientPrivilege):
            worker.execute("UPDATE touchstone_event SET detail = '{}'")
    owner = "SELECT proowner::regrole::text, prosecdef, proconfig FROM pg_proc WHERE proname = %s"
    assert run(owner, call.partition("(")[0]) == [(OWNER, True, ["search_path=pg_catalog, public, pg_temp"])]
