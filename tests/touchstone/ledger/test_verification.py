"""Whatever a superuser changes is noticed, and the seal that it belongs to is named."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db.models.functions import Now
from ledger_world import VALUES, run, superuser
from quick_flush import unguarded
from small_campaign import give, make_assessor, make_campaign, slots

from judging.models import Judgment
from sampling.models import Draw
from touchstone.chain import digest
from touchstone.ledger import sealing
from touchstone.ledger.rows import TABLES, VERSIONED, columns_of, line_sql, lines
from touchstone.ledger.verification import chain_faults, counter_faults, file_faults, table_faults
from touchstone.models import Erasure, Seal
from touchstone.rights import WEB, WORKER
from touchstone.watermark import last_id

EVENT, JUDGMENT = "touchstone_event", "judging_judgment"


def seals_of(table):
    return list(Seal.objects.filter(table=table).order_by("up_to_id"))


def beginning_of(table, place):
    """Return how the fault of the table's seal at this place begins."""
    after, seal = ([None, *seals_of(table)])[place : place + 2]
    return f"{table}: the seal of ids {(after.up_to_id if after else 0) + 1} to {seal.up_to_id} of "


def changes(table):
    """Yield the SQL of one change of every column: another value, and none."""
    for name, kind in [("id", "int8"), *columns_of(table).items()]:
        other = VALUES[kind][1].format(f'"{name}"')
        yield f'"{name}" = {"id + 1000" if name == "id" else other}'
        if name not in ("id", *NOT_NULL[table]):
            yield f'"{name}" = NULL'


NOT_NULL = dict.fromkeys((*TABLES, Seal.OF_SEALS), ())


def nullable(table):
    sql = "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnotnull AND attnum > 0"
    return [name for (name,) in run(sql, table)]


@pytest.mark.usefixtures("sealed")
@pytest.mark.parametrize("table", TABLES)
def test_every_single_value_is_noticed_and_its_seal_named(table, monkeypatch):
    monkeypatch.setitem(NOT_NULL, table, nullable(table))
    assert list(chain_faults()) == []
    middle = run(f'SELECT id FROM "{table}" ORDER BY id OFFSET 4 LIMIT 1')[0][0]  # noqa: S608 (in the second seal)
    wanted = beginning_of(table, 1)
    made = list(changes(table))
    assert len(made) > len(columns_of(table))
    for change in made:
        with superuser():
            run(f'UPDATE "{table}" SET {change} WHERE id = %s', middle)  # noqa: S608
            found = list(table_faults(table))
            # What is in force is compared with its versions as well; which of them that is, is in no line.
            follows = [words for words in found if "does not say what its newest version" in words]
            column = change.split('"')[1]
            assert len(follows) == (table in VERSIONED and column in (*VERSIONED[table].content, "version"))
            if table in VERSIONED and column == "version":
                assert found == follows
                continue
            fault, *others = [words for words in found if words not in follows]
            assert fault.startswith(wanted), change
            # An id that was not given out is named for itself as well.
            assert len(others) == change.startswith('"id"'), change


@pytest.mark.usefixtures("sealed")
def test_a_row_that_is_gone_or_new_is_noticed_and_its_seal_named():
    middle = seals_of(EVENT)[1].up_to_id - 1
    with superuser():
        run("DELETE FROM touchstone_event WHERE id = %s", middle)
        [fault] = chain_faults()
        assert fault.startswith(beginning_of(EVENT, 1))
        assert fault.endswith("differs: 2 rows in place of 3")
    with superuser():
        columns = ", ".join(f'"{name}"' for name in columns_of(EVENT))
        run("DELETE FROM touchstone_event WHERE id = %s", middle)
        run(f"INSERT INTO touchstone_event (id, {columns}) SELECT %s, {columns} FROM touchstone_event"  # noqa: S608
            " WHERE id = %s", middle, middle + 1)  # fmt: skip
        [fault] = chain_faults()
        assert fault.startswith(beginning_of(EVENT, 1))
        assert fault.endswith("differs: a value was changed")
    with superuser():  # two rows change places
        run("UPDATE touchstone_event SET id = CASE id WHEN %s THEN 0 ELSE %s END WHERE id IN (%s, %s)",
            middle, middle, middle, middle + 1)  # fmt: skip
        run("UPDATE touchstone_event SET id = %s WHERE id = 0", middle + 1)
        [fault] = chain_faults()
        assert fault.startswith(beginning_of(EVENT, 1))


@pytest.mark.usefixtures("sealed")
def test_a_seal_that_is_changed_is_noticed_in_the_seal_of_seals():
    made = list(changes(Seal.OF_SEALS))
    target = seals_of(EVENT)[1].pk
    wanted = beginning_of(Seal.OF_SEALS, 1)
    others = {"head": "repeat('a', 64)", "columns": "'[]'", "table": "'touchstone_nothing'"}
    made += [f'"{name}" = {value}' for name, value in others.items()] + ["columns = '5'", "columns = '[5]'"]
    for change in made:
        if change.endswith("NULL") or change == """"head" = "head" || '1'""":
            continue  # no column may be empty, and 65 digits do not fit
        with superuser():
            run(f"UPDATE touchstone_seal SET {change} WHERE id = %s", target)  # noqa: S608
            faults = list(chain_faults())
            assert [fault for fault in faults if fault.startswith(wanted)] != [], change
    with superuser():
        run("UPDATE touchstone_seal SET head = repeat('a', 64) WHERE id = %s", target)
        # What follows an altered head is not named for it.
        assert [fault for fault in chain_faults() if fault.startswith(EVENT)] == [
            fault for fault in chain_faults() if fault.startswith(beginning_of(EVENT, 1))
        ]


@pytest.mark.usefixtures("sealed")
def test_of_two_changes_both_seals_are_named_and_no_other():
    with superuser():
        for seal in (seals_of(EVENT)[0], seals_of(EVENT)[2]):
            run("UPDATE touchstone_event SET verb = 'forged' WHERE id = %s", seal.up_to_id)
        found = list(chain_faults())
        assert len(found) == 2
        assert found[0].startswith(beginning_of(EVENT, 0))
        assert found[1].startswith(beginning_of(EVENT, 2))


@pytest.mark.usefixtures("sealed")
def test_a_column_that_is_gone_is_named():
    with superuser():
        run("ALTER TABLE touchstone_event DROP COLUMN verb")
        faults = list(chain_faults())
        assert len(faults) == 3
        assert "its columns are not those of the table ('verb')" in faults[0]


# -- what no seal will ever hold ----------------------------------------------------------------------------------


def copying(table):
    """Return the SQL that adds a row with an id that is chosen, like that with another id."""
    columns = ", ".join(f'"{name}"' for name in columns_of(table))
    return f'INSERT INTO "{table}" (id, {columns}) SELECT %s, {columns} FROM "{table}" WHERE id = %s'  # noqa: S608


@pytest.mark.usefixtures("sealed", "made_roles")
@pytest.mark.parametrize("key", [-5, 0, 10**15])
def test_rows_with_ids_that_were_not_given_out_are_named(key):
    """Who may add rows may give them any id: no seal comes by there, and so they could be changed without a trace."""
    with superuser():
        run(f"SET LOCAL ROLE {WEB}")
        for table in TABLES:
            run(copying(table), key, last_id(table))
        run("RESET ROLE")
        assert sealing.seal_new_rows()[0] == []
        assert list(chain_faults()) == [
            f"{table}: row {key} is in no seal: its id is none of 1 to {last_id(table)}, which were given out"
            for table in sorted(TABLES)
        ]


@pytest.mark.usefixtures("sealed", "made_roles")
def test_a_row_with_an_id_that_was_given_out_is_sealed_whoever_gave_it():
    """The control of what is named above."""
    with superuser():
        given = run("SELECT nextval('touchstone_event_id_seq')")[0][0]
        run(f"SET LOCAL ROLE {WEB}")
        run(copying(EVENT), given, given - 1)
        run("RESET ROLE")
        assert [one.n_rows for one in sealing.seal_new_rows()[0] if one.table == EVENT] == [1]
        assert list(chain_faults()) == []


@pytest.mark.usefixtures("sealed", "made_roles")
def test_a_seal_with_an_id_that_was_not_given_out_is_named():
    with superuser():
        run(f"SET LOCAL ROLE {WORKER}")
        run(copying(Seal.OF_SEALS), -5, seals_of(EVENT)[-1].pk)
        [fault] = table_faults(Seal.OF_SEALS)
    assert fault.startswith("touchstone_seal: row -5 is in no seal: ")


@pytest.mark.usefixtures("sealed")
def test_of_many_such_rows_some_are_named():
    with superuser():
        run(
            "INSERT INTO touchstone_event (id, at, verb, subject, detail)"
            " SELECT -g, now(), 'x', 'y', '{}' FROM generate_series(1, 21) g"
        )
        faults = list(table_faults(EVENT))
    assert len(faults) == 21
    assert faults[-1] == f"{EVENT}: more than 20 rows have ids that were not given out"


@pytest.mark.usefixtures("sealed")
def test_a_seal_beyond_the_ids_that_were_given_out_is_named():
    assert list(table_faults(EVENT)) == []
    Seal.objects.create(table=EVENT, columns=["verb"], up_to_id=9 * 10**18, n_rows=1, head="a" * 64, at=Now())
    run("INSERT INTO touchstone_event (at, verb, subject, detail) VALUES (now(), 'x', 'y', '{}')")
    made, _ = sealing.seal_new_rows()
    assert EVENT not in {one.table for one in made}  # as it says: nothing more is sealed
    last = last_id(EVENT)
    assert list(table_faults(EVENT))[-1] == (
        f"{EVENT}: its seals reach up to id {9 * 10**18}, of which only {last} were given out: nothing more is sealed"
    )


# -- what was erased --------------------------------------------------------------------------------------------


def line_of(table, key):
    [(line,)] = run(f'SELECT {line_sql(table, columns_of(table))} FROM "{table}" r WHERE id = %s', key)  # noqa: S608
    return line


def erase(key, change="comment = '', client_token = gen_random_uuid()"):
    """Take the comment out of a judgment that is sealed, and store what its line was and is."""
    before = digest(line_of(JUDGMENT, key)).hex()
    with unguarded([JUDGMENT]):
        run("SET LOCAL session_replication_role = replica")
        run(f"UPDATE judging_judgment SET {change} WHERE id = %s", key)  # noqa: S608
        run("SET LOCAL session_replication_role = origin")
    return Erasure.objects.create(
        table=JUDGMENT, row=key, old=before, new=digest(line_of(JUDGMENT, key)).hex()
    )


@pytest.mark.usefixtures("sealed")
def test_what_is_erased_still_verifies_and_nothing_else_of_its_row_may_change():
    key = seals_of(JUDGMENT)[1].up_to_id - 1
    old = line_of(JUDGMENT, key)
    erase(key)
    assert list(chain_faults()) == []
    said = []
    list(chain_faults(said.append))
    assert "judging_judgment: 9 rows in 3 seals, 1 of them erased since" in said
    with superuser():
        run("UPDATE judging_judgment SET grade = grade + 1 WHERE id = %s", key)
        [fault] = chain_faults()
        assert fault.startswith(beginning_of(JUDGMENT, 1))
        assert fault.endswith(f"row {key} is not what its erasure left")
    # Whoever knows all but the comment cannot test guesses of it: the token of the sealed line is nowhere.
    token = old.partition('"client_token":"')[2][:36]
    assert run("SELECT count(*) FROM judging_judgment WHERE client_token = %s", token) == [(0,)]
    # Erased once more, it verifies; and the erasures are sealed themselves.
    erase(key, "comment = '', client_token = gen_random_uuid(), obstacle = ''")
    sealing.seal_new_rows()
    assert list(chain_faults()) == []
    with superuser():
        run(
            "UPDATE touchstone_erasure SET old = repeat('b', 64) WHERE id = (SELECT max(id) FROM touchstone_erasure)"
        )
        assert len(list(chain_faults())) == 2  # of the judgment, and of the erasure
    with superuser():
        run('DELETE FROM touchstone_erasure WHERE "row" = %s AND "table" = %s', key, JUDGMENT)
        assert len(list(chain_faults())) == 2


@pytest.mark.usefixtures("sealed")
def test_a_row_that_was_erased_without_a_record_is_noticed():
    with superuser():
        run("UPDATE judging_judgment SET comment = '' WHERE id = %s", seals_of(JUDGMENT)[2].up_to_id)
        [fault] = chain_faults()
        assert fault.startswith(beginning_of(JUDGMENT, 2))


@pytest.mark.usefixtures("sealed")
def test_an_erasure_of_a_row_that_no_seal_holds_is_named():
    Erasure.objects.create(table=EVENT, row=10**9, old="a" * 64, new="b" * 64)
    assert list(chain_faults()) == [f"{EVENT}: an erasure names row {10**9}, which no seal holds"]


# -- counters, files, the command ---------------------------------------------------------------------------------


@pytest.fixture
def judged(db, tmp_path):
    campaign = make_campaign(tmp_path)
    bob = make_assessor(campaign, "bob")
    for slot in slots(campaign, number=1)[:3]:
        give(bob, slot, 1)
    sealing.seal_new_rows()
    return campaign


def verify(*arguments):
    out = StringIO()
    call_command("verify_ledger", *arguments, stdout=out)
    return out.getvalue()


def refuse(*arguments):
    """Return what the command names where it does not verify, and what it ends with."""
    faults = StringIO()
    with pytest.raises(CommandError) as refused:
        call_command("verify_ledger", *arguments, stdout=StringIO(), stderr=faults)
    assert refused.value.returncode == 1
    return faults.getvalue().splitlines(), str(refused.value)


def test_the_command_says_that_all_is_well_and_the_head(judged):
    said = verify()
    assert f"The ledger verifies; its head is {seals_of(Seal.OF_SEALS)[-1].head}." in said
    assert "judging_judgment: 3 rows in 1 seals" in said


def test_the_command_names_what_differs(judged):
    key = Judgment.objects.order_by("id").first().pk
    with unguarded([JUDGMENT]):
        run("UPDATE judging_judgment SET grade = grade + 1 WHERE id = %s", key)
    bob = judged.assessors.get()
    judged.assessors.update(n_judged=7)
    draw = Draw.objects.get()
    Path(draw.frame.path).write_bytes(b"another draw")
    faults, said = refuse()
    assert faults[0].startswith(beginning_of(JUDGMENT, 0))
    assert faults[1:] == [
        f"judging_assessor: the counter of {bob.pk} says 7, there are 3 judgments",
        f"{draw.frame.name}: the file is not the one whose SHA-256 is stored",
    ]
    assert said == "the ledger does not verify: 3 differences stand above"
    Path(draw.frame.path).unlink()
    assert list(file_faults()) == [f"{draw.frame.name}: the file is missing"]


def test_counters_count_an_assessors_judgments_once(judged):
    assert list(counter_faults()) == []
    assert list(file_faults()) == []
    assert len(list(lines(JUDGMENT, list(columns_of(JUDGMENT)), 0, 2**62))) == 3
