"""Looks and their keeping, for API clients."""

import pytest
from api_tools import API, ApiClient
from django.core.files.uploadedfile import SimpleUploadedFile
from journey_files import CORPUS, QRELS, TOPICS
from uploaded import kept, looked, run_job

from judging.models import GoldAnswer, Import, Topic

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def client(mara):
    return ApiClient(mara)


def look(client, collection, status=202, /, **fields):
    files = [SimpleUploadedFile(name, text.encode()) for name, text in fields.pop("files").items()]
    address = f"{API}/collections/{collection.pk}/imports"
    answer = client.client.post(address, {"look": "true", "files": files, **fields})
    assert answer.status_code == status, answer.content
    return answer


def test_an_upload_is_looked_at_and_then_kept(client, collection):
    answer = look(client, collection, files={"q.csv": "qid,query\nt0,One\n", "corpus.jsonl": CORPUS})
    made = Import.objects.get()
    assert answer.headers["Location"] == f"{API}/imports/{made.pk}"
    body = answer.json()
    assert (body["id"], body["state"], body["report"]) == (str(made.pk), "looked-at", {})
    assert body["job"]["kind"] == "look"
    run_job(made)
    body = client.get(f"/imports/{made.pk}")
    assert {card["name"] for card in body["report"]["files"]} == {"q.csv", "corpus.jsonl"}
    assert "path" not in body["files"][0]
    chosen = {
        "name": "q.csv",
        "kind": "topics",
        "mapping": {"id": ["qid"], "title": ["query"]},
    }
    body = client.post(f"/imports/{made.pk}/keep", 202, files=[chosen])
    assert body["job"]["kind"] == "keep"
    assert run_job(made).error == ""
    body = client.get(f"/imports/{made.pk}")
    assert body["state"] == "kept"
    assert body["report"]["after"]["documents"] == 36
    assert Topic.objects.get().title == "One"


def test_a_file_is_kept_in_its_encoding(client, collection):
    text = "qid,query\n1,Müller sucht\n2,café\n".encode("cp1252")
    address = f"{API}/collections/{collection.pk}/imports"
    client.client.post(address, {"look": "true", "files": [SimpleUploadedFile("q.csv", text)]})
    made = Import.objects.get()
    run_job(made)
    made.refresh_from_db()
    assert "cp1252" in [one["encoding"] for one in made.report["files"][0]["encodings"]]
    assert made.report["obstacles"]
    chosen = {"name": "q.csv", "kind": "topics", "encoding": "cp1252",
              "mapping": {"id": ["qid"], "title": ["query"]}}  # fmt: skip
    client.post(f"/imports/{made.pk}/keep", 202, files=[chosen])
    assert run_job(made).error == ""
    assert sorted(Topic.objects.values_list("title", flat=True)) == ["Müller sucht", "café"]


def test_a_grade_map_brings_gold_onto_the_scale(client, collection):
    gold = f"{QRELS}t0 0 t0d5 -2\n"
    made = looked(collection, {"topics.tsv": TOPICS, "corpus.jsonl": CORPUS, "gold.qrels": gold})
    client.post(
        f"/imports/{made.pk}/keep",
        202,
        files=[{"name": "gold.qrels", "kind": "judgments", "grade_map": "-2=0"}],
    )
    assert run_job(made).error == ""
    assert GoldAnswer.objects.get(document__doc_id="t0d5").grade == 0
    assert GoldAnswer.objects.filter(grade=2).count() == 3  # which the map does not name


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"files": [{"kind": "topics"}]}, "name"),
        ({"files": [{"name": "topics.tsv", "kind": "people"}]}, "kind"),
        ({"files": [{"name": "topics.tsv", "kind": "topics", "grade_map": "1=2"}]}, "kind"),
        ({"files": [{"name": "topics.tsv", "colour": "red"}]}, "colour"),
        ({"files": [{"name": "topics.tsv", "kind": "judgments", "grade_map": "x"}]}, "grade_map"),
        ({"filos": []}, "filos"),
    ],
)
def test_bad_choices_are_refused_by_name(client, collection, body, field):
    made = looked(collection, {"topics.tsv": TOPICS})
    answer = client.send("POST", f"/imports/{made.pk}/keep", 400, body)
    assert field in str(answer["errors"])
    assert Import.objects.get().state == "looked-at"


def test_a_file_that_the_upload_lacks_is_refused(client, collection):
    made = looked(collection, {"topics.tsv": TOPICS})
    answer = client.post(f"/imports/{made.pk}/keep", 400, files=[{"name": "other", "kind": "topics"}])
    assert answer["detail"] == "other: the upload has no such file"


def test_what_is_kept_is_kept_once(client, collection):
    made = looked(collection, {"topics.tsv": TOPICS})
    kept(made)
    answer = client.post(f"/imports/{made.pk}/keep", 409)
    assert answer["type"] == "/problems/ImportStateWrong"
    assert Topic.objects.count() == 3


def test_a_look_takes_no_kind(client, collection):
    answer = look(client, collection, 400, files={"topics.tsv": TOPICS}, kind="topics")
    assert "kind" in answer.json()["errors"]
    assert not Import.objects.exists()


def test_imports_of_others_are_not_there(client, collection, mara):
    made = looked(collection, {"topics.tsv": TOPICS})
    collection.is_restricted = True
    collection.save()
    hidden = client.get(f"/imports/{made.pk}", 404)
    assert hidden == client.get("/imports/00000000-0000-4000-8000-000000000000", 404)
    client.post(f"/imports/{made.pk}/keep", 404)
    collection.members.create(user=mara)
    assert client.get(f"/imports/{made.pk}")["state"] == "looked-at"
