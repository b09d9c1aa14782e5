"""An import on which nothing rests is taken back by a function of the owner; whatever rests on it keeps it."""

import importlib
from contextlib import contextmanager

import pytest
from api_tools import api_client
from database_roles import logged_in
from django.db import DatabaseError, connection, transaction
from import_tools import run_aside
from psycopg import errors
from small_campaign import judge_all, make_assessor, make_campaign, make_collection, make_undrawn

from analytics.services.recomputation import recompute
from judging.models import CampaignTopic, Document, GoldAnswer, Item, Topic, TrainingItem
from judging.services.corrections import correct_document, correct_gold, correct_topic
from judging.services.errors import CollectionBusy, CorrectionRefused, NotFound
from touchstone.ledger import sealing
from touchstone.ledger.removal import REMOVABLE, ImportInUse, ImportNotRemovable, remove_import
from touchstone.ledger.verification import chain_faults
from touchstone.models import Erasure, Event, User
from touchstone.rights import BACKUP, READ, WEB, WORKER

pytestmark = pytest.mark.django_db
KINDS = importlib.import_module("judging.migrations.0027_imports_may_be_removed").KINDS
TOPICS, DOCUMENTS, GOLD = "imported topics", "imported documents", "imported gold answers"


@pytest.fixture
def mara(db):
    return User.objects.create_user("mara", role=User.Role.MANAGER)


def number_of(collection, verb):
    return Event.objects.get(verb=verb, subject=f"collection:{collection.pk}").pk


def remove(collection, verb, actor, why="the wrong file"):
    return remove_import(collection=collection, import_id=number_of(collection, verb), why=why, actor=actor)


def resting_on(collection, verb, actor):
    with pytest.raises(ImportInUse) as refusal, transaction.atomic():
        remove(collection, verb, actor)
    return str(refusal.value)


# -- what goes ----------------------------------------------------------------------------------------------------


def test_imports_go_in_the_opposite_order_and_the_ledger_verifies(tmp_path, mara):
    other = make_collection(tmp_path)
    collection = make_collection(tmp_path)
    sealing.seal_new_rows()
    assert [remove(collection, verb, mara) for verb in (GOLD, DOCUMENTS, TOPICS)] == [42, 42, 3]
    assert not collection.documents.exists()
    assert not collection.topics.exists()
    assert GoldAnswer.objects.filter(topic__collection=other).count() == 42
    assert (other.documents.count(), other.topics.count()) == (42, 3)
    assert list(chain_faults()) == []
    sealing.seal_new_rows()
    assert list(chain_faults()) == []
    event = Event.objects.filter(verb="removed an import").earliest("id")
    assert (event.actor, event.subject) == (mara, f"collection:{collection.pk}")
    first, last = event.detail["rows"]
    assert last - first == 41
    assert {name: event.detail[name] for name in ("import", "table", "n", "why")} == {
        "import": number_of(collection, GOLD), "table": "judging_goldanswer", "n": 42, "why": "the wrong file"
    }  # fmt: skip
    with pytest.raises(ImportNotRemovable):
        remove(collection, GOLD, mara)
    # What was vouched for must be gone: a row that is there again is named.
    erasure = Erasure.objects.filter(table="judging_topic").first()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO judging_topic (id, collection_id, topic_id, title, description, narrative, version)"
            " VALUES (%s, %s, 'x', 'x', '', '', 1)",
            [erasure.row, collection.pk],
        )
        assert any(f"row {erasure.row} is not what its erasure left" in words for words in chain_faults())
        transaction.set_rollback(True)


def test_rows_that_are_not_sealed_yet_go_without_a_trace_in_the_chain(tmp_path, mara):
    collection = make_collection(tmp_path, gold=False)
    assert remove(collection, TOPICS, mara) == 3
    assert not Erasure.objects.exists()
    sealing.seal_new_rows()
    assert list(chain_faults()) == []


def test_of_two_imports_one_goes(tmp_path, mara):
    from judging.services.files import import_topics

    collection = make_collection(tmp_path)
    (tmp_path / "more.tsv").write_text("t8\tEight\nt9\tNine\n")
    import_topics(collection=collection, source=tmp_path / "more.tsv", name="more.tsv")
    newest = Event.objects.filter(verb=TOPICS).latest("id").pk
    assert remove_import(collection=collection, import_id=newest, why="twice", actor=mara) == 2
    assert sorted(collection.topics.values_list("topic_id", flat=True)) == ["t0", "t1", "t2"]


# -- what stays ---------------------------------------------------------------------------------------------------


def test_what_rests_on_an_import_is_named(tmp_path, mara):
    campaign = make_campaign(tmp_path, gold_check_rate=0.2, budget=20)
    collection = campaign.collection
    judge_all(campaign, [make_assessor(campaign, name) for name in ("ann", "ben")])
    n_items, n_slots = campaign.items.count(), campaign.slots.count()
    checks = campaign.items.filter(slots__purpose="check").distinct().count()
    assert checks > 0
    assert resting_on(collection, DOCUMENTS, mara) == (
        f"on this import rest: items ({n_items}), gold answers (42), draws made since (1)"
    )
    assert resting_on(collection, TOPICS, mara) == (
        f"on this import rest: items ({n_items}), places for judgments ({n_slots}), gold answers (42), "
        f"topics of campaigns ({CampaignTopic.objects.count()}), draws made since (1)"
    )
    of_gold = f"on this import rest: checks ({checks}), draws made since (1)"
    assert resting_on(collection, GOLD, mara) == of_gold
    recompute(campaign=campaign)
    assert resting_on(collection, GOLD, mara) == of_gold + ", computations made since (1)"


def test_training_and_corrections_rest_on_an_import(tmp_path, mara):
    campaign = make_undrawn(tmp_path)
    collection = campaign.collection
    topic, document = collection.topics.first(), collection.documents.first()
    TrainingItem.objects.create(campaign=campaign, topic=topic, document=document, grade=1, position=1)
    correct_topic(topic=topic, user=mara, why="because", title="x")
    correct_document(document=document, user=mara, why="because", title="x")
    correct_gold(answer=GoldAnswer.objects.first(), user=mara, why="because", grade=3)
    for verb, others in ((TOPICS, ["gold answers (42)"]), (DOCUMENTS, ["gold answers (42)"]), (GOLD, [])):
        said = ", ".join([*others, *(["training items (1)"] if verb != GOLD else []), "versions (2)"])
        found = resting_on(collection, verb, mara)
        assert found.startswith("on this import rest: ")
        assert found.endswith("versions (2)")
        assert set(said.split(", ")) <= set(found.removeprefix("on this import rest: ").split(", "))


def test_every_table_that_refers_to_a_removable_one_is_looked_at():
    """A foreign key that nobody looks at would fail at the end of the transaction, without a sentence."""
    sql = """SELECT f.relname, t.relname FROM pg_constraint c JOIN pg_class f ON f.oid = c.conrelid
               JOIN pg_class t ON t.oid = c.confrelid WHERE c.contype = 'f' AND t.relname = ANY(%s)"""
    with connection.cursor() as cursor:
        cursor.execute(sql, [list(KINDS)])
        refers = set(cursor.fetchall())
    looked_at = {(table, base) for base, kind in KINDS.items() for table, _ in kind["refers"].values()}
    assert len(refers) > 10
    assert refers <= looked_at
    assert {kind["verb"]: base for base, kind in KINDS.items()} == {
        verb: table for verb, (table, _) in REMOVABLE.items()
    }


def test_an_import_needs_a_reason_a_manager_and_a_number_of_its_own(tmp_path, mara):
    collection, other = make_collection(tmp_path, gold=False), make_collection(tmp_path, gold=False)
    with pytest.raises(CorrectionRefused, match="say why"):
        remove(collection, TOPICS, mara, why=" ")
    with pytest.raises(NotFound):
        remove(collection, TOPICS, User.objects.create_user("rhea", role=User.Role.RESEARCHER))
    for number in (number_of(other, TOPICS), number_of(collection, "imported runs"), 10**9):
        with pytest.raises(ImportNotRemovable):
            remove_import(collection=collection, import_id=number, why="because", actor=mara)
    assert Topic.objects.count() == 6


# -- the database -------------------------------------------------------------------------------------------------

CALL = "SELECT touchstone_remove_import(%s, %s, 'because')"


@contextmanager
def acting_as(role):
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL ROLE {role}")
        yield cursor
        transaction.set_rollback(True)


@pytest.mark.usefixtures("made_roles")
def test_web_and_worker_may_call_it_and_nobody_else_and_no_role_deletes(tmp_path, mara):
    collection = make_collection(tmp_path, gold=False)
    values = [number_of(collection, TOPICS), mara.pk]
    for role in (WEB, WORKER):
        with acting_as(role) as cursor:
            cursor.execute(CALL, values)
            assert cursor.fetchone() == (3,)
        with acting_as(role) as cursor, pytest.raises(DatabaseError) as refused:
            cursor.execute("DELETE FROM judging_topic")
        assert isinstance(refused.value.__cause__, errors.InsufficientPrivilege)
    with acting_as(READ) as cursor, pytest.raises(DatabaseError, match="permission denied for function"):
        cursor.execute(CALL, values)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT has_function_privilege('public', 'touchstone_remove_import(bigint, bigint, text)', 'EXECUTE')"
        )
        assert cursor.fetchone() == (False,)
    assert BACKUP not in (WEB, WORKER)


def test_a_superuser_in_replica_mode_deletes_nothing_without_the_event(tmp_path, mara):
    make_collection(tmp_path, gold=False)
    old = Event.objects.get(verb=TOPICS)
    removal = """INSERT INTO touchstone_event (at, verb, subject, detail)
                 SELECT {at}, 'removed an import', subject, detail || '{{"table": "judging_topic"}}'
                   FROM touchstone_event WHERE id = %s RETURNING set_config('touchstone.removal', id::text, TRUE)"""

    def delete(at=""):
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            if at:
                cursor.execute(removal.format(at=at), [old.pk])
            cursor.execute("DELETE FROM judging_topic")

    for at in ("", "now() - interval '1 second'"):  # no event, and one that an earlier transaction wrote
        with pytest.raises(DatabaseError, match="judging_topic is append-only: DELETE refused"):
            delete(at)
    assert Topic.objects.count() == 3
    delete("now()")  # the control
    assert Topic.objects.count() == 0


@pytest.mark.usefixtures("made_roles")
def test_a_temporary_table_of_the_caller_does_not_hide_what_rests_on_it(tmp_path, mara):
    campaign = make_campaign(tmp_path, gold=False)
    values = [number_of(campaign.collection, TOPICS), mara.pk]
    with acting_as(WEB) as cursor:
        for table in ("judging_item", "judging_slot", "judging_campaigntopic", "sampling_draw"):
            cursor.execute(f"CREATE TEMPORARY TABLE {table} (LIKE public.{table}) ON COMMIT DROP")
        with pytest.raises(DatabaseError, match="on this import rest: items"):
            cursor.execute(CALL, values)


def test_what_is_sealed_goes_only_with_its_erasure(tmp_path, mara):
    collection = make_collection(tmp_path, gold=False)
    sealing.seal_new_rows()
    with (
        pytest.raises(DatabaseError, match="what is sealed is removed by the service"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(CALL, [number_of(collection, TOPICS), mara.pk])
    assert remove(collection, TOPICS, mara) == 3


# -- somebody else at the same moment -----------------------------------------------------------------------------


def add_item(campaign):
    """Make an item, as a draw does, and let its foreign keys be looked at now rather than at the end."""
    collection = campaign.collection
    Item.objects.create(
        campaign=campaign, topic=collection.topics.first(), document=collection.documents.first()
    )
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_stored", [True, False])
def test_who_begins_to_use_the_rows_first_is_waited_for(tmp_path, is_stored):
    mara = User.objects.create_user("mara", role=User.Role.MANAGER)
    campaign = make_undrawn(tmp_path, gold=False)
    with transaction.atomic():
        add_item(campaign)
        thread, found = run_aside(lambda: remove(campaign.collection, DOCUMENTS, mara))
        thread.join(0.7)
        assert thread.is_alive()
        transaction.set_rollback(not is_stored)
    thread.join(20)
    if is_stored:
        assert str(found[0]) == "on this import rest: items (1)"
        assert Document.objects.count() == 42
    else:  # the control
        assert found == [42]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_removed", [True, False])
def test_who_comes_while_rows_are_removed_waits_and_finds_them_gone(tmp_path, is_removed):
    def use():
        with transaction.atomic():
            Item.objects.bulk_create([Item(campaign=campaign, topic_id=topic, document_id=document)])

    mara = User.objects.create_user("mara", role=User.Role.MANAGER)
    campaign = make_undrawn(tmp_path, gold=False)
    topic, document = campaign.collection.topics.first().pk, campaign.collection.documents.first().pk
    with transaction.atomic():
        assert remove(campaign.collection, DOCUMENTS, mara) == 42
        thread, found = run_aside(use)
        thread.join(0.7)
        assert thread.is_alive()
        transaction.set_rollback(not is_removed)
    thread.join(20)
    assert Item.objects.count() == (0 if is_removed else 1)
    if is_removed:
        assert isinstance(found[0].__cause__, errors.ForeignKeyViolation)
    else:  # the control
        assert found == [None]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("role", [WEB, WORKER])
def test_each_role_removes_and_corrects_by_the_services(role, tmp_path, made_roles, servers):
    mara = User.objects.create_user("mara", role=User.Role.MANAGER)
    collection = make_collection(tmp_path)
    sealing.seal_new_rows()
    with logged_in(servers, role):
        assert remove(collection, GOLD, mara) == 42
        assert (
            correct_document(document=collection.documents.first(), user=mara, why="x", title="y").number == 2
        )
    assert list(chain_faults()) == []


@pytest.mark.django_db(transaction=True)
def test_while_an_import_runs_the_collection_is_busy(tmp_path):
    from judging.services.sources import begin_import

    mara = User.objects.create_user("mara", role=User.Role.MANAGER)
    collection = make_collection(tmp_path, gold=False)

    def work():
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '300ms'")
        return remove(collection, TOPICS, mara)

    with transaction.atomic():
        begin_import(collection)
        thread, found = run_aside(work)
        thread.join(20)
    assert isinstance(found[0], CollectionBusy)


# -- the API ------------------------------------------------------------------------------------------------------


def test_a_manager_corrects_and_takes_back_over_the_api(tmp_path):
    collection = make_collection(tmp_path)
    mara, rhea = api_client("mara"), api_client("rhea", "researcher")
    place = f"/collections/{collection.pk}"
    answer, topic = GoldAnswer.objects.first(), collection.topics.first()
    document = collection.documents.first()
    made = mara.post(f"{place}/gold-answers/{answer.pk}/versions", 201, grade=3, why="misread")
    assert {name: made[name] for name in ("number", "grade", "corrected_by", "why")} == {
        "number": 2, "grade": 3, "corrected_by": "mara", "why": "misread"
    }  # fmt: skip
    assert mara.post(f"{place}/topics/{topic.pk}/versions", 201, title="New", why="x")["title"] == "New"
    mara.post(f"{place}/documents/{document.pk}/versions", 201, text="New", why="x")
    for kind, row in (("documents", document), ("topics", topic)):
        for client, name in ((mara, "mara"), (rhea, None)):  # researchers see no user names
            versions = client.get(f"{place}/{kind}/{row.pk}/versions")["results"]
            seen = [(one["number"], one["why"], one["corrected_by"]) for one in versions]
            assert seen == [(1, "", None), (2, "x", name)]
    assert [one["grade"] for one in mara.get(f"{place}/gold-answers/{answer.pk}/versions")["results"]] == [
        0,
        3,
    ]
    rhea.get(f"{place}/gold-answers/{answer.pk}/versions", 404)
    rhea.post(f"{place}/documents/{document.pk}/versions", 404, title="y", why="x")
    for wrong in ({"grade": 2}, {"grade": 2, "why": ""}, {"grade": 10, "why": "x"}, {"grade": 3, "why": "x"}):
        mara.post(f"{place}/gold-answers/{answer.pk}/versions", 400, **wrong)
    number = number_of(collection, GOLD)
    refused = mara.post(f"{place}/imports/{number}/remove", 409, why="the wrong file")
    assert refused["detail"] == "on this import rest: versions (2)"
    mara.post(f"{place}/imports/{number}/remove", 400, why=" ")
    mara.post(f"{place}/imports/{10**9}/remove", 404, why="x")
    other = make_collection(tmp_path)
    said = mara.post(f"/collections/{other.pk}/imports/{number_of(other, GOLD)}/remove", 200, why="x")
    assert said == {"n_rows": 42}
