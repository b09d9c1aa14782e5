"""An import is taken back as a whole: every table but the log is as before; whatever rests on it keeps it."""

import pytest
from all_tables import differences, tables
from api_tools import api_client
from database_roles import logged_in
from django.core.files.storage import default_storage
from django.db import DatabaseError, connection, transaction
from django.urls import reverse
from import_tools import imported_by_job, run_aside, whole_collection
from small_campaign import judge_all, make_assessor, make_campaign, make_collection, make_undrawn

from analytics.services.recomputation import recompute
from judging.models import Collection, GoldAnswer, Import, Judgment, Run, Slot, TrainingItem
from judging.services.corrections import correct_topic
from judging.services.deletion import delete_campaign
from judging.services.errors import CollectionBusy, CorrectionRefused, ImportStateWrong, NotFound
from judging.services.files import import_topics
from judging.services.judgment_files import import_judgments
from judging.services.scores import import_scores
from sampling.questions import Design
from sampling.services.drawing import draw
from touchstone.ledger import sealing
from touchstone.ledger.removal import ImportInUse
from touchstone.ledger.take_back import take_back, what_rests_on
from touchstone.ledger.verification import chain_faults
from touchstone.models import Event, User
from touchstone.rights import WEB, WORKER

pytestmark = pytest.mark.django_db


@pytest.fixture
def mara(db):
    return User.objects.create_user("mara", role=User.Role.MANAGER)


def back(made, actor, why="the wrong file"):
    return take_back(made=made, why=why, actor=actor)


def rests(made):
    return sorted((one.what, one.n) for one in what_rests_on(made))


# -- what goes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_sealed", [True, False])
def test_an_import_that_is_taken_back_leaves_every_table_but_the_log_as_before(tmp_path, mara, is_sealed):
    make_collection(tmp_path)  # another one, whose rows have neighbouring ids
    collection = Collection.objects.create(name="new")
    before = tables()
    made = whole_collection(tmp_path, collection, mara)
    stored = [run.rankings.name for run in collection.runs.all()]
    assert differences(before, tables()) == [
        "judging_document",
        "judging_goldanswer",
        "judging_run",
        "judging_scorelist",
        "judging_topic",
    ]  # fmt: skip (the control: kept, the tables differ)
    if is_sealed:
        sealing.seal_new_rows()
    with transaction.atomic():
        assert back(made, mara) == {
            "judging_topic": 3, "judging_document": 42, "judging_run": 3, "judging_scorelist": 1,
            "judging_goldanswer": 42,
        }  # fmt: skip
    assert differences(before, tables()) == []
    assert stored
    assert list(chain_faults()) == []
    sealing.seal_new_rows()
    assert list(chain_faults()) == []
    made.refresh_from_db()
    assert (made.state, made.taken_back_by) == ("taken-back", mara)
    event = Event.objects.get(verb="took back an import")
    assert (event.actor, event.detail["why"], event.detail["import"]) == (
        mara,
        "the wrong file",
        str(made.pk),
    )
    with pytest.raises(ImportStateWrong, match="taken back"):
        back(made, mara)


@pytest.mark.django_db(transaction=True)
def test_files_of_runs_and_scores_go_with_their_rows(tmp_path):
    mara = User.objects.create_user("mara", role=User.Role.MANAGER)
    collection = Collection.objects.create(name="new")
    made = whole_collection(tmp_path, collection, mara)
    stored = [run.rankings.name for run in collection.runs.all()]
    assert all(map(default_storage.exists, stored))
    back(made, mara)
    assert not any(map(default_storage.exists, stored))


def test_of_two_imports_one_goes(tmp_path, mara):
    collection = make_collection(tmp_path)
    (tmp_path / "more.tsv").write_text("t8\tEight\nt9\tNine\n")
    import_topics(collection=collection, source=tmp_path / "more.tsv", name="more.tsv", actor=mara)
    made = collection.imports.first()
    assert (made.kind, made.state, made.user) == ("topics", "kept", mara)
    assert made.files[0]["counts"] == {"topics": 2}
    assert back(made, mara) == {"judging_topic": 2}
    assert sorted(collection.topics.values_list("topic_id", flat=True)) == ["t0", "t1", "t2"]


def test_an_uploaded_import_is_one_of_all_its_files(tmp_path, mara):
    collection = Collection.objects.create(name="new")
    texts = [("a.tsv", b"t1\tOne\n"), ("b.tsv", b"t2\tTwo\n")]
    made = imported_by_job("topics", texts, collection, mara)
    assert [entry["name"] for entry in made.files] == ["a.tsv", "b.tsv"]
    assert back(made, mara) == {"judging_topic": 2}
    assert not collection.topics.exists()


def test_judgments_are_set_aside_and_their_places_open_again(tmp_path, mara):
    campaign = make_campaign(tmp_path, gold=False)
    items = list(campaign.items.select_related("topic", "document")[:5])
    lines = [f"{item.topic.topic_id}\t{item.document.doc_id}\tann\t1\n" for item in items]
    (tmp_path / "j.tsv").write_text("topic_id\tdoc_id\tworker\tlabel\n" + "".join(lines))
    n_open = campaign.slots.filter(state="open").count()
    import_judgments(campaign=campaign, source=tmp_path / "j.tsv", name="j.tsv", file_format="crowd")
    made = Import.objects.get(kind="judgments")
    assert campaign.slots.filter(state="open").count() == n_open - 5
    assert what_rests_on(made) == []
    assert back(made, mara) == {"judging_judgment": 5}
    assert Judgment.objects.filter(item__campaign=campaign).count() == 5
    assert campaign.slots.filter(purpose=Slot.Purpose.VOID).count() == 5
    assert campaign.slots.filter(state="open").count() == n_open


# -- what stays ---------------------------------------------------------------------------------------------------


def test_after_a_draw_it_is_refused_and_named(tmp_path, mara):
    campaign = make_campaign(tmp_path, gold_check_rate=0.2, budget=20)
    collection = campaign.collection
    judge_all(campaign, [make_assessor(campaign, name) for name in ("ann", "ben")])
    n_items = campaign.items.count()
    checks = campaign.items.filter(slots__purpose="check").distinct().count()
    of = {made.kind: made for made in collection.imports.all()}
    assert rests(of["documents"]) == [("draws", 1), ("gold answers", 42), ("items", n_items)]
    assert rests(of["topics"]) == [
        ("draws", 1), ("gold answers", 42), ("items", n_items), ("topics of campaigns", 3)
    ]  # fmt: skip
    assert rests(of["runs"]) == [("draws", 1)]
    assert rests(of["gold"]) == [("checks", checks), ("draws", 1)]
    recompute(campaign=campaign)
    assert ("computations", 1) in rests(of["runs"])
    assert ("computations", 1) in rests(of["gold"])
    before = tables()
    for made in of.values():
        with pytest.raises(ImportInUse, match=r"^on this import rest: .*draws \(1\)"), transaction.atomic():
            back(made, mara)
    assert differences(before, tables()) == []
    [named] = [one for one in what_rests_on(of["documents"]) if one.what == "draws"]
    assert str(named) == f"draws (1) of {campaign.name}"
    delete_campaign(campaign=campaign, confirmation=campaign.name, actor=mara)
    assert f"draws (1) of {campaign.name}, which is deleted" in map(str, what_rests_on(of["runs"]))


def test_a_draw_before_an_import_and_one_elsewhere_do_not_rest_on_it(tmp_path, mara):
    campaign = make_campaign(tmp_path, gold=False)
    make_campaign(tmp_path, gold=False)
    (tmp_path / "s.tsv").write_text("".join(f"{t} Q0 {t}d00 1 0.5 s\n" for t in ("t0", "t1")))
    scores = import_scores(collection=campaign.collection, source=tmp_path / "s.tsv", name="s.tsv")
    (tmp_path / "late.run").write_text("t0 Q0 t0d01 1 1 late\n")
    late = imported_by_job(
        "runs", [("late.run", (tmp_path / "late.run").read_bytes())], campaign.collection, mara
    )
    for made in (scores.imported_by, late):
        assert what_rests_on(made) == []
        back(made, mara)
    assert campaign.collection.runs.count() == 3


def test_training_items_corrections_and_gold_of_other_files_rest_on_an_import(tmp_path, mara):
    campaign = make_undrawn(tmp_path)
    topic, document = campaign.collection.topics.first(), campaign.collection.documents.first()
    TrainingItem.objects.create(campaign=campaign, topic=topic, document=document, grade=1, position=1)
    correct_topic(topic=topic, user=mara, why="because", title="x")
    of = {made.kind: made for made in campaign.collection.imports.all()}
    assert ("corrections", 2) in rests(of["topics"])
    assert ("training items", 1) in rests(of["topics"])
    assert rests(of["documents"]) == [("gold answers", 42), ("training items", 1)]
    assert rests(of["gold"]) == [("training items", 1)]


def test_it_needs_a_reason_a_manager_and_a_collection_that_they_may_see(tmp_path, mara):
    made = make_collection(tmp_path, gold=False).imports.first()
    for why in (" ", "x" * 2001):
        with pytest.raises(CorrectionRefused, match="say why"):
            back(made, mara, why=why)
    with pytest.raises(NotFound):
        back(made, User.objects.create_user("rhea", role=User.Role.RESEARCHER))
    Collection.objects.filter(pk=made.collection_id).update(is_restricted=True)
    with pytest.raises(NotFound):
        back(made, mara)


def test_nobody_deletes_a_run_or_scores_but_by_the_function(tmp_path, mara):
    make_collection(tmp_path, gold=False)
    for statement in ("DELETE FROM judging_run", "UPDATE judging_scorelist SET name = 'x'"):
        if "scorelist" in statement:
            (tmp_path / "s").write_text("t0 Q0 t0d00 1 0.5 s\n")
            import_scores(collection=Collection.objects.get(), source=tmp_path / "s", name="s")
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            connection.cursor().execute(statement)
    assert Run.objects.count() == 3


# -- the database -------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("role", [WEB, WORKER])
def test_each_role_takes_back_by_the_service(role, tmp_path, made_roles, servers):
    mara = User.objects.create_user("mara", role=User.Role.MANAGER)
    made = whole_collection(tmp_path, Collection.objects.create(name="new"), mara)
    sealing.seal_new_rows()
    with logged_in(servers, role):
        assert back(made, mara)["judging_run"] == 3
    assert list(chain_faults()) == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_drawn", [True, False])
def test_during_a_draw_it_waits_and_is_then_refused_with_the_draw_named(tmp_path, is_drawn):
    mara = User.objects.create_user("mara", role=User.Role.MANAGER)
    campaign = make_undrawn(tmp_path, gold=False)
    made = campaign.collection.imports.get(kind="runs")
    with transaction.atomic():
        draw(campaign=campaign, design=Design("pool", (), measure="DCG@10", depth=10, budget=20), seed=1)
        thread, found = run_aside(lambda: back(made, mara))
        thread.join(0.7)
        assert thread.is_alive()
        transaction.set_rollback(not is_drawn)
    thread.join(20)
    if is_drawn:
        assert isinstance(found[0], ImportInUse)
        assert str(found[0]) == "on this import rest: draws (1)"
    else:  # the control
        assert found == [{"judging_run": 3}]


@pytest.mark.django_db(transaction=True)
def test_a_draw_that_takes_longer_than_the_lock_timeout_is_named(tmp_path):
    mara = User.objects.create_user("mara", role=User.Role.MANAGER)
    campaign = make_undrawn(tmp_path, gold=False)
    made = campaign.collection.imports.get(kind="runs")

    def work():
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '300ms'")
        return back(made, mara)

    with transaction.atomic():
        draw(campaign=campaign, design=Design("pool", (), measure="DCG@10", depth=10, budget=20), seed=1)
        thread, found = run_aside(work)
        thread.join(20)
    assert isinstance(found[0], CollectionBusy)
    assert "a draw is using" in found[0].title
    assert GoldAnswer.objects.count() == 0


# -- the API ------------------------------------------------------------------------------------------------------


def test_a_manager_takes_an_import_back_over_the_api_and_sees_what_rests_on_another(tmp_path):
    campaign = make_campaign(tmp_path, gold=False)
    unused = make_collection(tmp_path, gold=False).imports.get(kind="runs")
    used = campaign.collection.imports.get(kind="runs")
    mara, rhea = api_client("mara"), api_client("rhea", "researcher")
    assert mara.get(f"/imports/{used.pk}/rests") == {
        "rests": [
            {"what": "draws", "n": 1, "campaign": str(campaign.pk), "campaign_name": campaign.name, "is_deleted": False}
        ]
    }  # fmt: skip
    assert mara.get(f"/imports/{used.pk}")["rests"] == mara.get(f"/imports/{used.pk}/rests")["rests"]
    assert mara.get(f"/imports/{unused.pk}")["rests"] == []
    refused = mara.post(f"/imports/{used.pk}/take-back", 409, why="the wrong file")
    assert refused["detail"] == "on this import rest: draws (1)"
    mara.post(f"/imports/{unused.pk}/take-back", 400, why=" ")
    rhea.post(f"/imports/{unused.pk}/take-back", 404, why="x")
    assert mara.post(f"/imports/{unused.pk}/take-back", 200, why="x") == {"rows": {"judging_run": 3}}
    mara.post(f"/imports/{unused.pk}/take-back", 409, why="x")


def test_the_page_of_an_import_leads_to_what_rests_on_it(tmp_path, client, mara):
    campaign = make_campaign(tmp_path, gold_check_rate=0.2, budget=20)
    judge_all(campaign, [make_assessor(campaign, name) for name in ("ann", "ben")])
    recompute(campaign=campaign)
    client.force_login(mara)
    for made in campaign.collection.imports.all():
        address = reverse("console:manage-import-take-back", args=[made.collection_id, made.pk])
        found = client.get(address).content.decode()
        assert f'<a href="{reverse("console:campaign", args=[campaign.pk])}#draw">draws</a> (1)' in found
    delete_campaign(campaign=campaign, confirmation=campaign.name, actor=mara)
    assert "#draw" not in client.get(address).content.decode()
