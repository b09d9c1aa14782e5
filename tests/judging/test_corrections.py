"""A correction is a new version with who and why; what was there stays, and nothing else changes a fact."""

import json
import threading
import uuid
import zipfile

import pytest
from django.db import DatabaseError, connection, transaction
from django.urls import reverse
from django.utils import timezone
from psycopg import errors
from quick_flush import unguarded
from small_campaign import give, judge_all, lease, make_assessor, make_campaign, make_collection, slots
from worlds import make_release

from analytics.frames import current_arrays
from analytics.services.recomputation import recompute
from judging.models import Document, DocumentVersion, GoldAnswer, GoldVersion, Topic, TopicVersion
from judging.services.assign import submit
from judging.services.campaigns import open_slots
from judging.services.corrections import correct_document, correct_gold, correct_topic
from judging.services.errors import CorrectedMeanwhile, CorrectionRefused, NotFound
from touchstone.ledger import sealing
from touchstone.ledger.verification import chain_faults
from touchstone.models import Event, User
from touchstone.rights import WEB, WORKER

pytestmark = pytest.mark.django_db
VERSIONS = {
    "judging_documentversion": ("judging_document", "document_id", "title, text, html", "'new', 'new', ''"),
    "judging_topicversion": ("judging_topic", "topic_id", "title, description, narrative", "'new', '', ''"),
    "judging_goldversion": ("judging_goldanswer", "answer_id", "grade", "9"),
}


@pytest.fixture
def mara(db):
    return User.objects.create_user("mara", role=User.Role.MANAGER)


@pytest.fixture
def collection(tmp_path):
    return make_collection(tmp_path)


def fault_of(sql, *values, role=None):
    """Return what PostgreSQL says against the statement, or nothing; what it did is taken back."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            if role:
                cursor.execute(f"SET LOCAL ROLE {role}")
            cursor.execute(sql, values or None)
            transaction.set_rollback(True)
    except DatabaseError as error:
        return error.__cause__
    return None


# -- what a correction does ---------------------------------------------------------------------------------------


def test_a_corrected_document_says_the_new_text_and_what_it_said_stays_with_who_and_why(collection, mara):
    row = collection.documents.get(doc_id="t0d00")
    made = correct_document(document=row, user=mara, why=" a wrong page ", text="Another text")
    correct_document(document=row, user=mara, why="its title", title="A  title")
    row.refresh_from_db()
    assert (row.title, row.text, row.version) == ("A title", "Another text", 3)
    said = list(row.versions.order_by("number").values_list("number", "title", "text", "why", "corrected_by"))
    assert said == [
        (1, "", "Text of t0d00", "", None),
        (2, "", "Another text", "a wrong page", mara.pk),
        (3, "A title", "Another text", "its title", mara.pk),
    ]
    assert made.created_at == row.versions.get(number=2).created_at
    event = Event.objects.filter(verb="corrected a document").earliest("id")
    assert (event.actor, event.subject) == (mara, f"collection:{collection.pk}")
    assert event.detail == {"document": "t0d00", "version": 2, "why": "a wrong page"}


def test_html_is_made_safe_as_at_import(collection, mara):
    row = collection.documents.first()
    correct_document(
        document=row,
        user=mara,
        why="markup",
        text="<p onclick=x()>Good<script>bad()</script></p>",
        is_html=True,
    )
    row.refresh_from_db()
    assert row.text.strip() == "Good"
    assert "<p>" in row.html
    assert "script" not in row.html
    assert "onclick" not in row.html


def test_a_corrected_topic_keeps_what_is_not_named(collection, mara):
    row = collection.topics.get(topic_id="t1")
    correct_topic(topic=row, user=mara, why="too short", description="More words")
    row.refresh_from_db()
    assert (row.title, row.description, row.narrative, row.version) == ("Need t1", "More words", "", 2)
    assert [one.description for one in row.versions.order_by("number")] == ["", "More words"]
    with pytest.raises(CorrectionRefused, match="a topic has a title"):
        correct_topic(topic=row, user=mara, why="no", title=" ")


@pytest.mark.parametrize("why", ["", " \n", "x" * 2001])
def test_a_correction_has_a_reason(collection, mara, why):
    with pytest.raises(CorrectionRefused, match="say why"):
        correct_topic(topic=collection.topics.first(), user=mara, why=why, title="x")
    assert not TopicVersion.objects.exists()


def test_a_correction_that_changes_nothing_is_refused_and_leaves_nothing(collection, mara):
    row = collection.topics.first()
    with pytest.raises(CorrectionRefused, match="changes nothing"):
        correct_topic(topic=row, user=mara, why="because", title=row.title)
    assert not TopicVersion.objects.exists()
    assert not Event.objects.filter(verb="corrected a topic").exists()


def test_only_managers_who_see_the_collection_correct(collection, mara):
    row = collection.topics.first()
    rhea = User.objects.create_user("rhea", role=User.Role.RESEARCHER)
    with pytest.raises(NotFound):
        correct_topic(topic=row, user=rhea, why="because", title="x")
    collection.is_restricted = True
    collection.save()
    with pytest.raises(NotFound):
        correct_topic(topic=row, user=mara, why="because", title="x")
    collection.members.create(user=mara)
    assert correct_topic(topic=row, user=mara, why="because", title="x").number == 2


@pytest.mark.django_db(transaction=True)
def test_of_two_corrections_at_the_same_time_one_waits_and_is_told(tmp_path):
    """The control: one after the other, both are stored."""
    mara = User.objects.create_user("mara", role=User.Role.MANAGER)
    row = make_collection(tmp_path).topics.first()
    found = []

    def second():
        try:
            correct_topic(topic=row, user=mara, why="second", title="second")
        except CorrectedMeanwhile as refusal:
            found.append(refusal)
        finally:
            connection.close()

    other = threading.Thread(target=second)
    with transaction.atomic():
        correct_topic(topic=row, user=mara, why="first", title="first")
        other.start()
        other.join(0.5)
        assert other.is_alive()  # it waits
    other.join(20)
    assert len(found) == 1
    assert correct_topic(topic=row, user=mara, why="third", title="third").number == 3


# -- who reads what -----------------------------------------------------------------------------------------------


def test_what_was_shown_at_the_lease_stays_shown_and_is_what_the_judgment_names(tmp_path, mara, client):
    campaign = make_campaign(tmp_path)
    bob, eve = (make_assessor(campaign, name) for name in ("bob", "eve"))
    first, second = slots(campaign, item__document__doc_id="t0d00")
    token = lease(bob, first)
    row = first.item.document
    correct_document(document=row, user=mara, why="a wrong page", text="Corrected words")
    later = lease(eve, second)
    shown = {}
    for person, key in ((bob, token), (eve, later)):
        client.force_login(person.user)
        shown[person] = client.get(reverse("judging:frame", args=[key])).content.decode()
    assert "Text of t0d00" in shown[bob]
    assert "Corrected words" not in shown[bob]
    assert "Corrected words" in shown[eve]
    correct_document(document=row, user=mara, why="again", text="Corrected twice")
    judged = {
        person: submit(assessor=person, token=key, client_token=uuid.uuid4(), grade=1).document_version
        for person, key in ((bob, token), (eve, later))
    }
    assert judged == {bob: 1, eve: 2}
    # The control: of a document that nobody corrected it is the first.
    assert give(bob, slots(campaign, item__document__doc_id="t0d01")[0], 1).document_version == 1


def test_numbers_follow_the_gold_answer_in_force_and_older_ones_stay(tmp_path, mara):
    campaign = make_campaign(tmp_path)
    judge_all(campaign, [make_assessor(campaign, name) for name in ("ann", "ben")])
    before = recompute(campaign=campaign)
    old = list(before.estimates.order_by("id").values_list("value", flat=True))
    arrays = current_arrays(campaign)
    answer = GoldAnswer.objects.get(topic__topic_id="t0", document__doc_id="t0d00")
    pairs = arrays.frame.select("topic_id", "doc_id").rows()
    place = pairs.index(("t0", "t0d00"))
    assert arrays.gold_grade[place] == answer.grade == 0
    correct_gold(answer=answer, user=mara, why="misread", grade=3)
    assert current_arrays(campaign).gold_grade[place] == 3
    after = recompute(campaign=campaign)
    of_truth = {"method": "true", "run_b": None}
    changed = [
        list(
            one.estimates.filter(**of_truth)
            .order_by("measure", "run__run_id")
            .values_list("value", flat=True)
        )
        for one in (before, after)
    ]
    assert changed[0] != changed[1]
    assert list(before.estimates.order_by("id").values_list("value", flat=True)) == old
    event = Event.objects.get(verb="corrected a gold answer")
    assert event.detail == {
        "topic": "t0", "document": "t0d00", "grade": 3, "was": 0, "version": 2, "why": "misread"
    }  # fmt: skip


def test_a_gold_answer_is_on_the_scale_of_the_campaigns_that_judge_the_pair(tmp_path, mara):
    campaign = make_campaign(tmp_path)
    answer = GoldAnswer.objects.filter(topic__collection=campaign.collection).first()
    for grade, words in ((4, "is not on the scale of campaign"), (10, "10 is no grade: grades are 0 to 9")):
        with pytest.raises(CorrectionRefused, match=words):
            correct_gold(answer=answer, user=mara, why="because", grade=grade)
    assert not GoldVersion.objects.exists()


def test_a_release_has_the_words_in_force_and_lists_the_corrections_without_who(tmp_path, mara):
    campaign = make_campaign(tmp_path)
    judge_all(campaign, [make_assessor(campaign, name) for name in ("ann", "ben")])
    open_slots(items=[campaign.items.order_by("id").first()], purpose="check", n_each=1, seed=1)
    topic = campaign.collection.topics.get(topic_id="t1")
    answers = GoldAnswer.objects.filter(topic__collection=campaign.collection).order_by("id")
    shown = campaign.slots.filter(purpose="check").order_by("id").first().item
    answer = answers.get(topic=shown.topic, document=shown.document)
    checked = campaign.slots.filter(purpose="check").values_list("item__topic_id", "item__document_id")
    other = next(one for one in answers if (one.topic_id, one.document_id) not in set(checked))
    was, now = answer.grade, (answer.grade + 1) % 4
    correct_topic(topic=topic, user=mara, why="too short", title="In more words")
    correct_gold(answer=answer, user=mara, why="misread", grade=now)
    correct_gold(answer=other, user=mara, why="a check to come", grade=(other.grade + 1) % 4)
    with zipfile.ZipFile(make_release(campaign, mara).file.path) as archive:
        files = {
            name.partition("/")[2]: archive.read(name).decode(errors="replace") for name in archive.namelist()
        }
    corrections = [json.loads(line) for line in files["corrections.jsonl"].splitlines()]
    assert {one.pop("day") for one in corrections} == {f"{timezone.now():%Y-%m-%d}"}
    pair = {"topic_id": shown.topic.topic_id, "doc_id": shown.document.doc_id}
    assert corrections == [
        {"what": "topic", "version": 1, "why": "", "topic_id": "t1"},
        {"what": "topic", "version": 2, "why": "too short", "topic_id": "t1"},
        {"what": "gold answer", "version": 1, "why": "", **pair, "grade": was},
        {"what": "gold answer", "version": 2, "why": "misread", **pair, "grade": now},
    ], "gold that was not shown is not told: it may be a check of another campaign"
    titles = [json.loads(line)["title"] for line in files["topics.jsonl"].splitlines()]
    assert titles == ["Need t0", "In more words", "Need t2"]
    of_gold = [json.loads(line) for line in files["items.jsonl"].splitlines()]
    assert [one["gold_answer"] for one in of_gold if {name: one[name] for name in pair} == pair] == [now]
    assert not any("mara" in files[name] for name in ("corrections.jsonl", "manifest.json"))


# -- the database -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("made_roles")
@pytest.mark.parametrize("table", VERSIONS)
@pytest.mark.parametrize("role", [WEB, WORKER])
def test_postgresql_lets_a_version_follow_and_nothing_else(table, role, collection, mara):
    base, key, columns, values = VERSIONS[table]
    pk = {"judging_document": Document, "judging_topic": Topic, "judging_goldanswer": GoldAnswer}[
        base
    ].objects
    row = pk.first().pk
    insert = f"INSERT INTO {table} ({key}, number, corrected_by_id, why, created_at, {columns}) VALUES (%s, %s, %s, %s, 'epoch', {values})"  # noqa: E501, S608

    def refused(number, who, why, key=row):
        return fault_of(insert, key, number, who, why, role=role)

    assert refused(2, mara.pk, "because") is None
    assert isinstance(refused(3, mara.pk, "because"), errors.CheckViolation)  # leaves one out
    assert isinstance(refused(1, None, ""), errors.CheckViolation)  # the first says what the row says
    assert isinstance(refused(2, mara.pk, " \n"), errors.CheckViolation)
    assert isinstance(refused(2, None, "because"), errors.CheckViolation)
    assert isinstance(refused(2, mara.pk, "because", 0), errors.ForeignKeyViolation)
    same = f"""INSERT INTO {table} ({key}, number, corrected_by_id, why, created_at, {columns})
               SELECT id, 2, %s, 'because', now(), {columns} FROM {base} WHERE id = %s"""  # noqa: S608
    assert fault_of(same, mara.pk, row, role=role).diag.constraint_name == f"{table}_differs"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL ROLE {role}")
        cursor.execute(insert, [row, 2, mara.pk, "because"])
        cursor.execute("RESET ROLE")
        cursor.execute(f"SELECT version FROM {base} WHERE id = %s", [row])  # noqa: S608
        assert cursor.fetchone() == (2,)
        cursor.execute(f"SELECT number, created_at > 'epoch' FROM {table} WHERE {key} = %s ORDER BY 1", [row])  # noqa: S608
        assert cursor.fetchall() == [(1, True), (2, True)]  # nobody dates a version back
    assert refused(2, mara.pk, "because").diag.constraint_name == f"{table}_next"
    changes = {f"UPDATE {base}": "version = version + 1", f"UPDATE {table}": "why = 'x'"}
    for sql in (*(f"{sql} SET {change}" for sql, change in changes.items()), f"DELETE FROM {base}"):  # noqa: S608
        assert isinstance(fault_of(sql, role=role), errors.InsufficientPrivilege)


@pytest.mark.parametrize("table", VERSIONS)
def test_a_superuser_in_replica_mode_changes_a_row_only_by_a_version(table, collection, mara):
    base, _key, columns, values = VERSIONS[table]
    first = columns.partition(",")[0]
    replica = "SET LOCAL session_replication_role = replica; "
    for change in (
        f"{first} = {first}",
        "version = version + 1",
        f"version = 2, {first} = {values.partition(',')[0]}",
    ):
        fault = fault_of(f"{replica}UPDATE {base} SET {change}")  # noqa: S608
        assert str(fault).startswith(f"{base} is append-only: UPDATE refused")
    with unguarded([base]):
        assert fault_of(f"{replica}UPDATE {base} SET version = version + 1") is None  # noqa: S608 (the control)


def test_a_temporary_table_of_the_caller_is_not_what_the_owner_writes(collection, mara, made_roles, servers):
    """A function that runs as the owner must find the product's tables, whatever its caller calls his own."""
    row = collection.topics.first()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL ROLE {WEB}")
        cursor.execute("CREATE TEMPORARY TABLE judging_topic (LIKE public.judging_topic) ON COMMIT DROP")
        cursor.execute(
            "INSERT INTO judging_topicversion (topic_id, number, corrected_by_id, why, created_at, title, description,"
            " narrative) VALUES (%s, 2, %s, 'because', now(), 'new', '', '')",
            [row.pk, mara.pk],
        )
        cursor.execute("SELECT title, version FROM public.judging_topic WHERE id = %s", [row.pk])
        assert cursor.fetchone() == ("new", 2)


# -- the ledger ---------------------------------------------------------------------------------------------------


def test_versions_are_sealed_and_a_changed_one_is_noticed(collection, mara):
    sealing.seal_new_rows()
    document, topic = collection.documents.first(), collection.topics.first()
    answer = GoldAnswer.objects.filter(topic__collection=collection).first()
    correct_document(document=document, user=mara, why="because", text="Corrected")
    correct_topic(topic=topic, user=mara, why="because", title="Corrected")
    correct_gold(answer=answer, user=mara, why="because", grade=3)
    assert list(chain_faults()) == []  # a correction leaves what was sealed
    sealing.seal_new_rows()
    assert list(chain_faults()) == []
    changes = {
        "judging_documentversion": "text = 'Forged' WHERE number = 2",
        "judging_topicversion": "why = 'Forged' WHERE number = 2",
        "judging_goldversion": "grade = 1 WHERE number = 1",
        "judging_document": f"text = 'Forged' WHERE id = {document.pk}",
        "judging_topic": f"title = 'Forged' WHERE id = {topic.pk}",
        "judging_goldanswer": f"version = 1 WHERE id = {answer.pk}",
    }
    for table, change in changes.items():
        with transaction.atomic():
            with unguarded([table]), connection.cursor() as cursor:
                cursor.execute(f"UPDATE {table} SET {change}")  # noqa: S608
            faults = list(chain_faults())
            assert any(words.startswith(table) for words in faults), change
            transaction.set_rollback(True)
    assert list(chain_faults()) == []
    # The control: of a document that was never corrected, its first text is what is sealed.
    with transaction.atomic():
        with unguarded(["judging_document"]):
            Document.objects.filter(pk=collection.documents.last().pk).update(text="Forged")
        [fault] = chain_faults()
        assert fault.startswith("judging_document: the seal of ids ")
        transaction.set_rollback(True)
    assert DocumentVersion.objects.count() == 2
