"""The page of an import: what was read, what can be chosen, what became of it."""

import uuid

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from journey_files import CORPUS, QRELS, RUNS, TOPICS
from manager_requests import page, post, said, words
from uploaded import fields, here, kept, looked, run_job

from judging.models import GoldAnswer, Import, Topic
from judging.services.looking import choices_of, job_of

pytestmark = pytest.mark.django_db(transaction=True)


def upload(client, collection, **texts):
    files = [SimpleUploadedFile(name, text.encode()) for name, text in texts.items()]
    address = reverse("console:manage-collection", args=[collection.pk])
    answer = client.post(address, {"files": files})
    made = Import.objects.first()
    assert answer.url == reverse("console:manage-import", args=[collection.pk, made.pk])
    return made


def test_an_upload_leads_to_the_page_that_waits_for_the_look(at_the_page, collection):
    made = upload(at_the_page, collection, **{"topics.tsv": TOPICS})
    shown = page(at_the_page, *here(made))
    assert "Reading files" in shown
    assert 'hx-trigger="load delay:1s"' in shown
    run_job(made)
    shown = page(at_the_page, *here(made))
    assert "What was read" in shown
    assert "hx-trigger" not in shown
    assert "Need 0" in shown


def test_what_was_looked_at_is_kept_by_a_button(at_the_page, collection):
    made = looked(collection, {"topics.tsv": TOPICS, "corpus.jsonl": CORPUS, "gold.qrels": QRELS})
    post(at_the_page, *here(made), **fields(at_the_page, made), keep="1")
    assert job_of(made).kind == "keep"
    assert "Importing files" in page(at_the_page, *here(made))
    run_job(made)
    shown = page(at_the_page, *here(made))
    assert "Imported" in shown
    assert '<th scope="row">Documents</th><td class="number">0</td><td class="number">36</td>' in shown
    assert "Runs and gold answers →" in shown  # what is missing next
    assert GoldAnswer.objects.count() == 9


def test_another_kind_is_looked_at_before_it_is_kept(at_the_page, collection):
    made = looked(collection, {"topics.tsv": TOPICS})
    sent = fields(at_the_page, made) | {"file0-kind": "documents"}
    answer = post(at_the_page, *here(made), **sent, keep="1")
    assert said(answer) == ["Something was changed, so the files are looked at again first."]
    assert job_of(made).kind == "look"
    run_job(made)
    made.refresh_from_db()
    assert [card["kind"] for card in made.report["files"]] == ["documents"]
    assert choices_of(made) == {"topics.tsv": {"kind": "documents"}}
    assert not Topic.objects.exists()


def test_grades_columns_and_white_space_are_chosen_on_the_card(at_the_page, collection):
    made = looked(
        collection,
        {
            "q.csv": "qid,query\nt 0,one\n",
            "corpus.jsonl": CORPUS,
            "topics.tsv": TOPICS,
            "gold.qrels": "t0 0 t0d0 -2\nt0 0 t0d1 1\nt0 0 t0d2 -1\n",
        },
    )
    names = [card["name"] for card in made.report["files"]]
    q, gold = names.index("q.csv"), names.index("gold.qrels")
    sent = fields(at_the_page, made) | {
        f"file{q}-kind": "topics",
        f"file{gold}-grade_-2": "0",
        f"file{gold}-grade_-1": "out",
    }
    post(at_the_page, *here(made), **sent, look="1")
    run_job(made)
    made.refresh_from_db()
    assert choices_of(made)["gold.qrels"] == {"grade_map": "-2=0,-1="}
    sent = fields(at_the_page, made) | {
        f"file{q}-column_id": "qid",
        f"file{q}-column_title": "query",
        f"file{q}-joins_ids": "on",
    }
    post(at_the_page, *here(made), **sent, look="1")
    run_job(made)
    made.refresh_from_db()
    assert made.report["obstacles"] == []
    kept(made)
    assert Topic.objects.get(topic_id="t_0").title == "one"
    assert dict(GoldAnswer.objects.values_list("document__doc_id", "grade")) == {"t0d0": 0, "t0d1": 1}


def test_obstacles_are_named_and_nothing_can_be_kept(at_the_page, collection):
    made = looked(collection, {"a.run": RUNS["a"] + "t0 Q0 d1 1 high a\n", "b.run": RUNS["b"]})
    shown = page(at_the_page, *here(made))
    assert "a.run has 1 fault." in shown
    assert "a.run:31:12: score must be a finite number" in shown
    assert '<button name="keep" value="1" disabled>' in shown


def test_a_look_that_failed_says_why(at_the_page, collection):
    from django.core.files.storage import default_storage

    made = upload(at_the_page, collection, **{"topics.tsv": TOPICS})
    default_storage.delete(made.files[0]["path"])
    run_job(made)
    shown = page(at_the_page, *here(made))
    assert "topics.tsv:1:1: the uploaded file is gone; send it again" in shown
    assert "Upload other files" in shown


def test_an_upload_is_discarded(at_the_page, collection):
    made = looked(collection, {"topics.tsv": TOPICS})
    post(at_the_page, "console:manage-import-discard", collection.pk, made.pk)
    assert "Nothing of this upload was imported." in page(at_the_page, *here(made))
    assert "discarded" in page(at_the_page, "console:manage-collection", collection.pk)


def test_documents_are_shown_in_a_sandbox(at_the_page, collection):
    made = looked(collection, {"corpus.jsonl": CORPUS})
    address = reverse("console:manage-import-document", args=[collection.pk, made.pk, 0, 2])
    answer = at_the_page.get(address)
    assert "Text of t0d2" in words(answer)
    assert "sandbox; default-src 'none'" in answer.headers["Content-Security-Policy"]
    for file, document in ((0, 3), (1, 0)):
        wrong = reverse("console:manage-import-document", args=[collection.pk, made.pk, file, document])
        assert at_the_page.get(wrong).status_code == 404


def test_an_import_of_another_collection_is_not_there(at_the_page, collection):
    made = looked(collection, {"topics.tsv": TOPICS})
    page(at_the_page, "console:manage-import", collection.pk, uuid.uuid4(), status=404)
    page(at_the_page, "console:manage-import", uuid.uuid4(), made.pk, status=404)


def test_an_upload_without_files_is_refused(at_the_page, collection):
    answer = at_the_page.post(reverse("console:manage-collection", args=[collection.pk]), {})
    assert answer.status_code == 400
    assert not Import.objects.exists()
