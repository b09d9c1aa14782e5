"""Collections for API clients: made, read, changed, shut to others, filled by uploads, deleted and brought back."""

import uuid

import pytest
from api_tools import API, api_client
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from small_campaign import RUNS, TOPICS, doc_id, make_campaign, make_collection, true_grade

import judging.tasks  # noqa: F401 (registers the imports)
from judging.models import Campaign, Collection, Document, GoldAnswer, Run, ScoreList
from touchstone import jobs
from touchstone.authentication import make_token
from touchstone.models import Event, Job

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice(db):
    return api_client("alice")


@pytest.fixture
def maria(db):
    return api_client("maria")


@pytest.fixture
def rita(db):
    return api_client("rita", "researcher")


@pytest.fixture
def collection(db, tmp_path):
    return make_collection(tmp_path)


def there(row):
    return f"/collections/{row.pk}"


# -- made and changed -----------------------------------------------------------------------------------------


def test_a_collection_is_made_read_and_changed(alice):
    made = alice.post("/collections", 201, name="News", description="a\r\nb", licence="CC0")
    assert (made["name"], made["description"], made["licence"]) == ("News", "a\nb", "CC0")
    assert made["is_restricted"] is False
    assert alice.get(f"/collections/{made['id']}") == made
    changed = alice.patch(f"/collections/{made['id']}", shows_html=True, source="the web")
    assert changed == {**made, "shows_html": True, "source": "the web"}
    assert Collection.objects.get(pk=made["id"]).shows_html
    log = [
        (row["verb"], row["actor"], row["detail"]) for row in alice.rows(f"/collections/{made['id']}/events")
    ]
    assert log == [
        ("changed", "alice", {"fields": ["shows_html", "source"]}),
        ("created", "alice", {"name": "News"}),
    ]


def test_what_changes_nothing_is_no_event(alice, collection):
    before = Event.objects.count()
    alice.patch(there(collection), name=collection.name, shows_html=False)
    assert Event.objects.count() == before


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": "x" * 101},
        {"name": 5},
        {"name": None},
        {"name": "x", "shows_html": "true"},
        {"name": "x", "shows_html": 1},
        {"name": "x", "description": 5},
        {"name": "x", "description": "x" * 5001},
        {"name": "x", "licence": "x" * 201},
        {"name": "x", "nothing": 1},
        [],
        "x",
        None,
    ],
)
def test_a_bad_collection_is_refused(alice, body):
    alice.send("POST", "/collections", 400, body)
    assert not Collection.objects.exists()


def test_the_name_of_a_deleted_collection_is_free_and_it_comes_back_under_another(alice, collection):
    alice.post("/collections", 409, name=collection.name)  # the control
    alice.post(f"{there(collection)}/delete", confirmation=collection.name)
    alice.post("/collections", 201, name=collection.name)
    refused = alice.post(f"{there(collection)}/restore", 409)
    assert refused["title"] == "This name is already taken; choose another one"
    alice.post(f"{there(collection)}/restore", 409, name=collection.name)
    alice.post(f"{there(collection)}/restore", 400, name="x" * 101)
    assert alice.post(f"{there(collection)}/restore", name="the first")["name"] == "the first"
    event = Event.objects.get(verb="restored")
    assert event.detail == {"name": "the first", "was": collection.name}
    assert Collection.objects.filter(deleted_at=None).count() == 2


def test_lists_show_what_one_may_see_and_find_by_name(alice, maria, rita, tmp_path):
    made = [make_collection(tmp_path) for _ in range(3)]
    alice.put(f"{there(made[0])}/members", is_restricted=True, members=[])
    assert {row["id"] for row in alice.rows("/collections")} == {str(row.pk) for row in made}
    for other in (maria, rita):
        assert {row["id"] for row in other.rows("/collections")} == {str(row.pk) for row in made[1:]}
    assert [row["id"] for row in rita.rows("/collections", name=made[2].name)] == [str(made[2].pk)]
    assert rita.rows("/collections", name=made[0].name) == []
    assert len(rita.rows("/collections", page_size=1)) == 2


# -- members --------------------------------------------------------------------------------------------------


def test_members_are_set_by_name_and_whoever_sets_them_is_one(alice, maria, rita, collection):
    assert alice.get(f"{there(collection)}/members") == {"is_restricted": False, "members": []}
    answer = alice.put(f"{there(collection)}/members", is_restricted=True, members=["rita"])
    assert answer == {"is_restricted": True, "members": ["alice", "rita"]}
    rita.get(there(collection))
    assert maria.get(there(collection), 404) == maria.get(f"/collections/{uuid.uuid4()}", 404)
    answer = alice.put(f"{there(collection)}/members", is_restricted=True, members=[])
    assert answer["members"] == ["alice"]
    rita.get(there(collection), 404)


@pytest.mark.parametrize(
    "body",
    [
        {"is_restricted": True},
        {"members": []},
        {"is_restricted": True, "members": ["nobody"]},
        {"is_restricted": True, "members": ["bob"]},
        {"is_restricted": True, "members": "alice"},
        {"is_restricted": True, "members": [1]},
        {"is_restricted": "yes", "members": []},
        {"is_restricted": True, "members": ["x" * 151]},
    ],
)
def test_bad_members_are_refused(alice, collection, body):
    api_client("bob", "assessor")
    alice.send("PUT", f"{there(collection)}/members", 400, body)
    collection.refresh_from_db()
    assert not collection.is_restricted
    assert not collection.members.exists()


# -- what is in it --------------------------------------------------------------------------------------------


def test_topics_documents_runs_and_scores_are_listed_page_by_page(rita, collection):
    ScoreList.objects.create(collection=collection, name="model", scores="x", n_lines=3)
    topics = rita.rows(f"{there(collection)}/topics", page_size=2)
    assert [row["topic_id"] for row in topics] == TOPICS
    documents = rita.rows(f"{there(collection)}/documents", page_size=5)
    wanted = [doc_id(topic, d) for topic in range(3) for d in range(14)]
    assert [row["doc_id"] for row in documents] == wanted
    assert [row["run_id"] for row in rita.rows(f"{there(collection)}/runs")] == RUNS
    assert [row["name"] for row in rita.rows(f"{there(collection)}/scores")] == ["model"]
    (found,) = rita.rows(f"{there(collection)}/documents", doc_id=wanted[7])
    assert found == documents[7]
    document = rita.get(f"{there(collection)}/documents/{found['id']}")
    assert document["text"] == f"Text of {wanted[7]}"


def test_a_document_of_another_collection_is_not_there(rita, collection, tmp_path):
    other = make_collection(tmp_path)
    pk = other.documents.first().pk
    assert rita.get(f"{there(collection)}/documents/{pk}", 404) == rita.get(
        f"{there(collection)}/documents/{2**40}", 404
    )
    rita.get(f"{there(collection)}/documents/{2**80}", 404)
    rita.get(f"{there(other)}/documents/{pk}")


def test_a_run_is_described_and_may_be_published_by_managers_alone(alice, rita, collection):
    run = collection.runs.get(run_id="run1")
    path = f"{there(collection)}/runs/{run.pk}"
    assert rita.get(path)["may_publish"] is False
    rita.patch(path, 404, may_publish=True)
    assert alice.patch(path, may_publish=True, description="BM25")["description"] == "BM25"
    run.refresh_from_db()
    assert (run.may_publish, run.description) == (True, "BM25")
    assert rita.get(path)["is_manual"] is False
    assert alice.patch(path, is_manual=True)["is_manual"] is True
    assert [row["run_id"] for row in rita.rows(f"{there(collection)}/runs", is_manual="true")] == ["run1"]
    alice.patch(path, 400, run_id="other")
    assert Run.objects.get(pk=run.pk).run_id == "run1"


def test_gold_answers_are_for_managers(alice, rita, collection):
    rows = alice.rows(f"{there(collection)}/gold-answers", page_size=10)
    assert len(rows) == 42
    assert all(row["grade"] == true_grade(row["topic_id"], row["doc_id"]) for row in rows)
    assert [row["topic_id"] for row in rows] == sorted(row["topic_id"] for row in rows)
    some = alice.rows(f"{there(collection)}/gold-answers", topic_id="t1", grade=3)
    assert {row["doc_id"] for row in some} == {doc_id(1, d) for d in range(14) if (d + 1) % 4 == 3}
    rita.get(f"{there(collection)}/gold-answers", 404)


# -- imports --------------------------------------------------------------------------------------------------


def upload(who, collection, status=202, /, **fields):
    files = fields.pop("files", [("x", b"")])
    sent = [SimpleUploadedFile(name, content) for name, content in files]
    answer = who.client.post(f"{API}{there(collection)}/imports", {**fields, "files": sent})
    assert answer.status_code == status, answer.content[:500]
    return answer.json()


def done(job):
    jobs.run(job["id"])
    return Job.objects.get(pk=job["id"])


def test_a_collection_is_filled_by_uploads(alice, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    made = alice.post("/collections", 201, name="News")
    row = Collection.objects.get(pk=made["id"])
    job = upload(alice, row, kind="topics", files=[("topics.tsv", b"q1\tcats\nq2\tdogs\n")])
    assert (job["kind"], job["state"], job["requested_by"]) == ("import", "queued", "alice")
    assert done(job).result == {"n_topics": 2}
    job = upload(
        alice,
        row,
        kind="documents",
        is_html="true",
        files=[("c.jsonl", b'{"_id": "d1", "text": "<b>x</b>"}\n')],
    )
    assert done(job).state == "done"
    assert Document.objects.get(collection=row).html == "<b>x</b>"
    runs = [(f"r{n}.run", f"q1 Q0 d1 1 2.5 r{n}\n".encode()) for n in range(2)]
    assert done(upload(alice, row, kind="runs", description="two", files=runs)).result["n_runs"] == 2
    assert {run.description for run in row.runs.all()} == {"two"}
    assert not row.runs.filter(is_manual=True).exists()
    by_hand = [("r2.run", b"q1 Q0 d1 1 2.5 r2\n")]
    assert done(upload(alice, row, kind="runs", is_manual="true", files=by_hand)).state == "done"
    assert [run.run_id for run in row.runs.filter(is_manual=True)] == ["r2"]
    job = upload(alice, row, kind="scores", list_name="model", files=[("s.tsv", b"q1\td1\t0.5\n")])
    assert done(job).state == "done"
    gold = [("gold.qrels", b"q1 0 d1 2\n")]
    job = upload(alice, row, kind="judgments", as_gold="true", source_name="NIST", files=gold)
    assert done(job).state == "done"
    assert GoldAnswer.objects.get().source == "NIST"
    listed = alice.rows(f"{there(row)}/imports")
    assert [entry["state"] for entry in listed] == ["done"] * 6
    assert listed[0]["id"] == job["id"]


def test_judgments_of_a_campaign_are_uploaded_with_its_id(alice, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    campaign = make_campaign(tmp_path)
    sent = {"kind": "judgments", "file_format": "qrels_jg", "campaign": str(campaign.pk), "grade_map": "1=3"}
    files = [("crowd.txt", f"t0 worker1 {doc_id(0, 0)} 1\n".encode())]
    assert done(upload(alice, campaign.collection, **sent, files=files)).error == ""
    (judgment,) = campaign.items.get(judgments__isnull=False).judgments.all()
    assert judgment.grade == 3


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"kind": "cats"},
        {"kind": "topics", "file_format": "nonsense"},
        {"kind": "topics", "is_html": "true"},
        {"kind": "documents", "description": "x"},
        {"kind": "runs", "list_name": "x"},
        {"kind": "topics", "is_manual": "true"},
        {"kind": "judgments"},
        {"kind": "judgments", "as_gold": "true", "assessor_kind": "machine"},
        {"kind": "judgments", "as_gold": "true", "grade_map": "a=b"},
        {"kind": "judgments", "as_gold": "true", "file_format": "nonsense"},
        {"kind": "judgments", "campaign": str(uuid.UUID(int=0))},
        {"kind": "topics", "campaign": str(uuid.UUID(int=0))},
        {"kind": "topics", "collection": "x"},
        {"kind": "scores", "list_name": "x", "files": [("a", b"x"), ("b", b"x")]},
        {"kind": "topics", "files": []},
    ],
)
def test_a_bad_upload_is_refused_before_a_job_is_made(alice, collection, fields):
    upload(alice, collection, 400, **fields)
    assert not Job.objects.filter(kind="import").exists()


def test_judgments_go_into_no_campaign_of_another_collection(alice, collection, tmp_path):
    other = make_campaign(tmp_path)
    upload(alice, collection, 400, kind="judgments", file_format="qrels_jg", campaign=str(other.pk))
    assert not Job.objects.filter(kind="import").exists()


def test_only_managers_upload(rita, collection):
    upload(rita, collection, 404, kind="topics")
    assert not Job.objects.filter(kind="import").exists()


def test_a_program_with_a_key_uploads_long_files(alice, collection):
    _, key = make_token(user=alice.user, name="program", days=1)
    file = SimpleUploadedFile("more.tsv", b"".join(b"more%d\ta need\n" % n for n in range(2000)))
    answer = Client(headers={"Authorization": f"Bearer {key}"}).post(
        f"{API}{there(collection)}/imports", {"kind": "topics", "files": [file]}
    )
    assert answer.status_code == 202, answer.content[:300]
    assert answer.headers["Location"] == f"{API}/jobs/{answer.json()['id']}"
    assert done(answer.json()).result == {"n_topics": 2000}


def test_json_is_no_upload(alice, collection):
    alice.post(f"{there(collection)}/imports", 415, kind="topics")
    assert not Job.objects.filter(kind="import").exists()


# -- deleted and restored -------------------------------------------------------------------------------------


def test_a_collection_is_deleted_by_its_typed_name_and_comes_back(alice, maria, tmp_path):
    campaign = make_campaign(tmp_path)
    row = campaign.collection
    alice.post(f"{there(row)}/delete", 400, confirmation=row.name.upper())
    alice.post(f"{there(row)}/delete", 400)
    assert alice.get(there(row))["deleted_at"] is None
    assert alice.post(f"{there(row)}/delete", confirmation=row.name)["deleted_at"] is not None
    assert alice.get(there(row), 404) == alice.get(f"/collections/{uuid.uuid4()}", 404)
    assert alice.get(f"/campaigns/{campaign.pk}", 404) == alice.get(f"/campaigns/{uuid.uuid4()}", 404)
    assert alice.rows("/collections") == alice.rows("/campaigns") == []
    assert Campaign.objects.get(pk=campaign.pk).state == "closed"
    assert [entry["id"] for entry in maria.rows("/deleted-collections")] == [str(row.pk)]
    assert maria.post(f"{there(row)}/restore")["deleted_at"] is None
    assert alice.get(f"/campaigns/{campaign.pk}")["state"] == "closed"
    assert alice.rows("/deleted-collections") == []


def test_a_foreign_collection_is_neither_deleted_nor_restored(alice, maria, rita, collection):
    alice.put(f"{there(collection)}/members", is_restricted=True, members=["rita"])
    nowhere = f"/collections/{uuid.uuid4()}"
    for who in (maria, rita):
        for act in ("delete", "restore"):
            body = {"confirmation": collection.name} if act == "delete" else {}
            theirs = who.post(f"{there(collection)}/{act}", 404, **body)
            assert theirs == who.post(f"{nowhere}/{act}", 404, **body)
    alice.post(f"{there(collection)}/delete", confirmation=collection.name)
    assert maria.rows("/deleted-collections") == []
    rita.get("/deleted-collections", 404)
    maria.post(f"{there(collection)}/restore", 404)
    assert [row["id"] for row in alice.rows("/deleted-collections")] == [str(collection.pk)]


def test_assessors_find_nothing_here(alice, collection):
    bob = api_client("bob", "assessor")
    nothing = bob.get("/collections", 404)
    for part in (
        "",
        "/topics",
        "/documents",
        "/runs",
        "/scores",
        "/gold-answers",
        "/imports",
        "/members",
        "/events",
    ):
        assert bob.get(f"{there(collection)}{part}", 404) == nothing
    bob.post("/collections", 404, name="mine")
    assert Collection.objects.count() == 1
