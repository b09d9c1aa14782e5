"""What was looked at is kept whole, in one transaction, or not at all."""

import hashlib
import threading

import pytest
from django.core.files.storage import default_storage
from django.db import connection, transaction
from file_campaign import everything
from journey_files import CORPUS, IDS, QRELS, RUNS, TOPICS
from uploaded import card_of, kept, looked, looked_again, run_job, zip_of

from judging.models import Collection, Document, GoldAnswer, Import, Run, Topic
from judging.rankings import rankings_frame, read_rankings
from judging.services.errors import CollectionBusy, ImportRefused, ImportStateWrong
from judging.services.keeping import queue_keep
from judging.services.looking import discard, look_again, queue_look
from touchstone.files import local
from touchstone.models import Event, User

pytestmark = pytest.mark.django_db(transaction=True)
ALL = {
    "gold.qrels": QRELS,
    "a.run": RUNS["a"],
    "b.run": RUNS["b"],
    "corpus.jsonl": CORPUS,
    "topics.tsv": TOPICS,
}


def counts():
    return tuple(model.objects.count() for model in (Topic, Document, Run, GoldAnswer))


def test_all_files_are_kept_in_an_order_that_serves_all(collection):
    made = looked(collection, ALL)
    job = kept(made)
    assert counts() == (3, 36, 2, 9)
    made.refresh_from_db()
    assert made.state == "kept"
    none = dict.fromkeys(["topics", "documents", "runs", "scores", "gold", "images"], 0)
    after = none | {"topics": 3, "documents": 36, "runs": 2, "gold": 9}
    assert (made.report["before"], made.report["after"]) == (none, after)
    assert job.result["after"] == after
    assert set(Topic.objects.values_list("imported_by", flat=True)) == {made.pk}
    assert set(Document.objects.values_list("imported_by", flat=True)) == {made.pk}
    brought = {entry["name"]: entry["counts"] for entry in made.files}
    assert brought["corpus.jsonl"] == {"documents": 36}


def test_one_bad_file_keeps_all_the_others_out(collection):
    made = looked(collection, {**ALL, "bad.run": RUNS["c"] + "t0 Q0 d1 1 high c\n"})
    before = everything()
    job = kept(made, state="failed")
    assert "bad.run:31:12: score must be a finite number, not 'high'" in job.error
    assert everything() == before
    assert counts() == (0, 0, 0, 0)
    kept(looked_again(made, {"bad.run": {"kind": "none"}}))  # the control: without it all are kept
    assert counts() == (3, 36, 2, 9)


def test_choices_are_kept_as_they_were_looked_at(collection):
    sheet = "qid;query\n1;one\n2;two\n"
    made = looked(collection, {"q.csv": sheet})
    made = looked_again(made, {"q.csv": {"kind": "topics", "mapping": {"id": ["qid"], "title": ["query"]}}})
    kept(made)
    assert sorted(Topic.objects.values_list("topic_id", "title")) == [("1", "one"), ("2", "two")]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
def test_runs_and_scores_are_read_in_their_encoding_and_hashed_as_they_came(collection, encoding):
    run, scores = RUNS["a"].encode(encoding), "t0 t0d0 0.5\nt0 t0d1 0.25\n".encode(encoding)
    files = {
        "topics.tsv": TOPICS,
        "corpus.jsonl": CORPUS,
        "a.run": run,
        "b.run": RUNS["b"],
        "llm.tsv": scores,
    }
    choices = {"a.run": {"kind": "runs"}, "llm.tsv": {"kind": "scores"}}
    made = looked_again(looked(collection, files), choices)
    assert made.report["obstacles"] == []
    assert card_of(made, "a.run")["n_rows"] == card_of(made, "b.run")["n_rows"] == 30
    kept(made)
    made.refresh_from_db()
    wide, plain = (
        rankings_frame(read_rankings(local(one.rankings))) for one in Run.objects.order_by("run_id")
    )
    assert wide.height == plain.height == 30
    assert set(wide["doc_id"]) | set(plain["doc_id"]) <= set(IDS)
    [entry] = [one for one in made.files if one["name"] == "a.run"]
    assert entry["sha256"] == hashlib.sha256(run).hexdigest()
    assert list(collection.score_lists.values_list("name", "n_lines")) == [("llm", 2)]


def test_a_fault_of_a_run_in_another_encoding_is_at_its_place(collection):
    run = (RUNS["a"] + "t0 Q0 d1 1 high a\n").encode("utf-16")
    made = looked_again(looked(collection, {"a.run": run}), {"a.run": {"kind": "runs"}})
    assert card_of(made, "a.run")["faults"] == ["a.run:31:12: score must be a finite number, not 'high'"]
    assert "a.run:31:12: score must be a finite number, not 'high'" in kept(made, state="failed").error


def test_choices_may_come_with_the_keeping(collection):
    made = looked(collection, {"q.csv": "qid,query\n1,one\n"})
    kept(made, [{"name": "q.csv", "kind": "documents", "mapping": {"id": ["qid"], "text": ["query"]}}])
    assert list(Document.objects.values_list("doc_id", "text")) == [("1", "one")]


def test_grades_that_a_map_does_not_name_stay_and_others_are_left_out(collection):
    gold = "t0 0 t0d0 -2\nt0 0 t0d1 1\nt0 0 t0d2 -1\nt0 0 t0d3 3\n"
    made = looked(collection, {"topics.tsv": TOPICS, "corpus.jsonl": CORPUS, "gold.qrels": gold})
    assert [row["grade"] for row in card_of(made, "gold.qrels")["grades"]] == [-2, -1, 1, 3]
    kept(looked_again(made, {"gold.qrels": {"grade_map": "-2=0,-1="}}))
    grades = GoldAnswer.objects.values_list("document__doc_id", "grade")
    assert dict(grades) == {"t0d0": 0, "t0d1": 1, "t0d3": 3}


def test_gold_of_what_is_lacking_is_left_out_if_that_was_chosen(collection):
    made = looked(collection, {**ALL, "gold.qrels": f"{QRELS}t0 0 elsewhere 1\nt9 0 t0d0 1\n"})
    kept(made, state="failed")
    kept(looked_again(made, {"gold.qrels": {"skips_unknown": True}}))
    assert GoldAnswer.objects.count() == 9
    event = Event.objects.get(verb="imported gold answers")
    assert event.detail["n_unknown"] == 2


def test_pages_of_an_archive_are_documents_and_their_paths_the_ids(collection):
    pages = {f"site/p {number}.html": f"<html><p>Page {number}</p></html>" for number in range(3)}
    made = looked(collection, {"site.zip": zip_of(pages)})
    assert card_of(made, "site.zip: pages")["n_faults"] == 3  # white space in ids
    kept(looked_again(made, {"site.zip: pages": {"joins_ids": True}}))
    assert sorted(Document.objects.values_list("doc_id", flat=True)) == [
        f"site/p_{number}.html" for number in range(3)
    ]
    assert "Page 0" in Document.objects.get(doc_id="site/p_0.html").html


# -- twice, gone, busy ----------------------------------------------------------------------------------------


def test_an_import_is_kept_once(collection):
    made = looked(collection, ALL)
    kept(made)
    before = everything()
    with pytest.raises(ImportStateWrong):
        queue_keep(made=made, user=None)
    with pytest.raises(ImportStateWrong):
        look_again(made=made, choices={}, user=None)
    assert everything() == before


def test_a_second_click_queues_no_second_job(collection):
    made = looked(collection, ALL)
    assert queue_keep(made=made, user=None) is not None
    assert queue_keep(made=made, user=None) is None
    assert run_job(made).state == "done"
    assert counts() == (3, 36, 2, 9)


def test_a_look_whose_upload_is_gone_says_so(collection):
    from uploaded import content

    made = queue_look(collection=collection, files=[content("topics.tsv", TOPICS)], user=None)
    default_storage.delete(made.files[0]["path"])
    job = run_job(made)
    assert (job.state, job.error) == ("failed", "topics.tsv:1:1: the uploaded file is gone; send it again")
    made = looked(collection, {"topics.tsv": TOPICS})
    default_storage.delete(made.files[0]["path"])
    assert kept(made, state="failed").error == "topics.tsv:1:1: the uploaded file is gone; send it again"
    assert counts() == (0, 0, 0, 0)


def test_nothing_is_kept_while_somebody_else_imports(collection):
    made = looked(collection, ALL)
    held, done = threading.Event(), threading.Event()

    def import_slowly():
        with transaction.atomic():
            Collection.objects.select_for_update(no_key=True).get(pk=collection.pk)
            held.set()
            done.wait(30)
        connection.close()

    other = threading.Thread(target=import_slowly)
    other.start()
    try:
        assert held.wait(30)
        with pytest.raises(CollectionBusy):
            queue_keep(made=made, user=None)
    finally:
        done.set()
        other.join(30)
    assert counts() == (0, 0, 0, 0)
    kept(made)  # the control
    assert counts() == (3, 36, 2, 9)


def test_what_is_discarded_is_forgotten_with_its_files(collection):
    mara = User.objects.create(username="mara", role="manager")
    made = looked(collection, {"topics.tsv": TOPICS})
    discard(made=made, actor=mara)
    made.refresh_from_db()
    assert made.state == "discarded"
    assert not default_storage.exists(made.files[0]["path"])
    with pytest.raises(ImportStateWrong):
        queue_keep(made=made, user=None)


def test_only_choices_that_there_are_can_be_made(collection):
    made = looked(collection, {"topics.tsv": TOPICS})
    wrong = [
        ({"other.tsv": {"kind": "topics"}}, "other.tsv: the upload has no such file"),
        ({"topics.tsv": {"kind": "people"}}, "topics.tsv: kind must be one of"),
        ({"topics.tsv": {"kind": "topics", "grade_map": "1=2"}}, "topics.tsv: topics take no grade_map"),
    ]
    for choices, reason in wrong:
        with pytest.raises(ImportRefused, match=reason):
            look_again(made=made, choices=choices, user=None)
    assert Import.objects.get().files[0]["options"] == {}
