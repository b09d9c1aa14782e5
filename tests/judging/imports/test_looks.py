"""A look says what an upload is and what is in it, and changes nothing else."""

import pytest
from file_campaign import everything
from journey_files import CORPUS, QRELS, RUNS, TOPICS
from uploaded import card_of, kept, looked, looked_again, zip_of

from judging.models import Import
from judging.services import look_ids
from judging.services.files import import_documents, import_topics

pytestmark = pytest.mark.django_db(transaction=True)


def add(collection, folder, **texts):
    services = {"topics": import_topics, "documents": import_documents}
    for kind, text in texts.items():
        path = folder / kind
        path.write_text(text)
        services[kind](collection=collection, source=path, name=kind)


def test_each_file_is_taken_for_what_it_is(collection):
    made = looked(
        collection, {"a.tsv": TOPICS, "b.jsonl": CORPUS, "c": RUNS["a"], "d.qrels": QRELS, "e.run": RUNS["b"]}
    )
    kinds = {card["name"]: card["kind"] for card in made.report["files"]}
    assert kinds == {
        "a.tsv": "topics",
        "b.jsonl": "documents",
        "c": "runs",
        "d.qrels": "judgments",
        "e.run": "runs",
    }
    rows = {card["name"]: card["n_rows"] for card in made.report["files"]}
    assert rows == {"a.tsv": 3, "b.jsonl": 36, "c": 30, "d.qrels": 9, "e.run": 30}
    assert made.report["obstacles"] == []
    assert (made.state, made.kind) == ("looked-at", "")
    assert [len(entry["sha256"]) for entry in made.files] == [64] * 5
    assert all(card["why"] for card in made.report["files"])


def test_a_look_writes_its_import_and_nothing_else(collection):
    before = everything()[0]
    looked(collection, {"topics.tsv": TOPICS, "corpus.jsonl": CORPUS, "a.run": RUNS["a"]})
    Import.objects.all().delete()
    assert everything()[0] == before


def test_records_grades_and_documents_are_shown(collection):
    made = looked(collection, {"topics.tsv": TOPICS, "corpus.jsonl": CORPUS, "gold.qrels": QRELS})
    assert card_of(made, "topics.tsv")["records"][0][:2] == ["t0", "Need 0"]
    documents = card_of(made, "corpus.jsonl")
    assert len(documents["records"]) == 5
    assert [one["doc_id"] for one in documents["documents"]] == ["t0d0", "t0d1", "t0d2"]
    assert documents["documents"][0]["text"] == "Text of t0d0"
    assert card_of(made, "gold.qrels")["grades"] == [{"grade": grade, "n": 3} for grade in (0, 1, 2)]


def test_documents_are_shown_as_assessors_will_see_them(collection):
    page = '{"_id": "d1", "text": "<p>Words <b>and</b> more<script>alert(1)</script></p><p>Again</p>"}\n'
    made = looked(collection, {"pages.jsonl": page * 1})
    made = looked_again(made, {"pages.jsonl": {"kind": "documents", "is_html": True}})
    shown = card_of(made, "pages.jsonl")["documents"][0]
    assert "<b>and</b>" in shown["html"]
    assert "script" not in shown["html"]


# -- what is there, what is lacking ---------------------------------------------------------------------------


def test_what_the_collection_lacks_is_counted_for_runs_within_the_first_hundred_ranks(collection, tmp_path):
    add(collection, tmp_path, topics="t0\tNeed\n", documents='{"_id": "d1", "text": "x"}\n')
    # Of t0 ranks 1 to 150: d1 is there, d2 to d100 are lacking, those behind are not looked for.
    lines = [f"t0 Q0 d{rank} {rank} {1000 - rank} tag\n" for rank in range(1, 151)]
    made = looked(collection, {"a.run": "".join([*lines, "t9 Q0 d1 1 5 tag\n"])})
    lacks = card_of(made, "a.run")["lacks"]
    assert (lacks["topics"]["n"], lacks["topics"]["first"]) == (1, ["t9"])
    assert lacks["documents"]["n"] == 99


@pytest.mark.parametrize("remembered", [2, 1000])
@pytest.mark.parametrize("beside", [{}, {"more.jsonl": '{"_id": "d7", "text": "x"}\n'}])
def test_each_run_of_an_upload_lacks_its_own_documents(collection, tmp_path, monkeypatch, remembered, beside):
    """Alone, and beside documents, which are looked at last."""
    monkeypatch.setattr(look_ids, "MOST_REMEMBERED", remembered)
    documents = "".join(f'{{"_id": "d{number}", "text": "x"}}\n' for number in (1, 2, 3, 4))
    add(collection, tmp_path, topics="t0\tNeed\n", documents=documents)
    returned = {"a": [1, 5, 2], "b": [3, 6, 5], "c": [1, 2, 3, 4], "d": [7, 8, 1]}
    runs = {
        f"{name}.run": "".join(f"t0 Q0 d{number} 1 {9 - number} {name}\n" for number in numbers)
        for name, numbers in returned.items()
    }
    made = looked(collection, {**runs, **beside})
    lacks = {name: card_of(made, f"{name}.run")["lacks"]["documents"]["first"] for name in returned}
    assert lacks == {"a": ["d5"], "b": ["d5", "d6"], "c": [], "d": ["d8"] if beside else ["d7", "d8"]}


def test_ids_of_the_same_upload_are_not_lacking(collection):
    made = looked(collection, {"gold.qrels": QRELS, "topics.tsv": TOPICS, "corpus.jsonl": CORPUS})
    assert card_of(made, "gold.qrels")["lacks"] == {
        what: {"n": 0, "first": []} for what in ("topics", "documents")
    }


def test_gold_of_what_is_lacking_stands_in_the_way_until_it_is_left_out(collection):
    files = {"topics.tsv": TOPICS, "corpus.jsonl": CORPUS, "gold.qrels": f"{QRELS}t0 0 elsewhere 1\n"}
    made = looked(collection, files)
    assert made.report["obstacles"] == [
        "gold.qrels has judgments of topics or documents that the collection lacks."
    ]
    assert card_of(made, "gold.qrels")["lacks"]["documents"] == {"n": 1, "first": ["elsewhere"]}
    made = looked_again(made, {"gold.qrels": {"skips_unknown": True}})
    assert made.report["obstacles"] == []


def test_what_is_there_in_part_is_named_and_stands_in_the_way(collection, tmp_path):
    add(collection, tmp_path, topics="t1\tNeed\n")
    made = looked(collection, {"topics.tsv": TOPICS, "a.run": RUNS["a"]})
    assert card_of(made, "topics.tsv")["there"] == {"n": 1, "first": ["t1"]}
    assert made.report["obstacles"] == [
        "topics.tsv: 1 topic of it is in the collection already. Leave the file out, or upload only what is new."
    ]


def test_what_is_there_as_a_whole_is_left_out_and_the_others_are_kept(collection):
    files = {"topics.tsv": TOPICS, "corpus.jsonl": CORPUS, "a.run": RUNS["a"]}
    kept(looked(collection, files))
    more = looked(collection, {**files, "b.run": RUNS["b"]})
    assert more.report["obstacles"] == []
    for name, what in (("topics.tsv", "Topics"), ("corpus.jsonl", "Documents"), ("a.run", "Run")):
        card = card_of(more, name)
        assert (card["kind"], card["is_there"]) == ("none", True)
        assert card["why"] == f"{what}: all of it is in the collection already, so it is left out."
    kept(more)
    assert sorted(collection.runs.values_list("run_id", flat=True)) == ["a", "b"]
    assert (collection.topics.count(), collection.documents.count()) == (3, 36)


def test_a_file_that_is_left_out_is_taken_if_somebody_says_so_and_then_refused(collection, tmp_path):
    add(collection, tmp_path, topics=TOPICS)
    made = looked(collection, {"topics.tsv": TOPICS})
    assert made.report["obstacles"] == ["Nothing is new: all files are left out."]
    made = looked_again(made, {"topics.tsv": {"kind": "topics"}})
    assert card_of(made, "topics.tsv")["kind"] == "topics"
    assert made.report["obstacles"][0].startswith("topics.tsv: 3 topics of it are in the collection already.")


def test_a_run_that_is_there_is_named_if_somebody_wants_it(collection):
    kept(looked(collection, {"a.run": RUNS["a"]}))
    made = looked_again(looked(collection, {"a.run": RUNS["a"]}), {"a.run": {"kind": "runs"}})
    assert made.report["obstacles"] == ["a.run: the collection already has run a. Leave the file out."]


def test_two_files_with_runs_of_one_tag_are_a_fault(collection):
    made = looked(collection, {"a.run": RUNS["a"], "again.run": RUNS["a"]})
    assert card_of(made, "a.run")["faults"] == []
    assert card_of(made, "again.run")["faults"] == ["again.run: run a is in a.run too"]


def test_a_document_in_two_files_is_a_fault_at_its_second_place(collection):
    one = '{"_id": "d1", "text": "x"}\n{"_id": "d2", "text": "y"}\n'
    made = looked(collection, {"a.jsonl": one, "b.jsonl": '{"_id": "d3", "text": "z"}\n' + one})
    made = looked_again(made, {name: {"kind": "documents"} for name in ("a.jsonl", "b.jsonl")})
    assert card_of(made, "a.jsonl")["n_faults"] == 0
    again = card_of(made, "b.jsonl")
    assert again["faults"] == ["b.jsonl:2:1: document d1 occurs twice (and 1 more like it)"]
    assert again["n_faults"] == 2


# -- faults ---------------------------------------------------------------------------------------------------


def test_all_faults_are_named_in_one_look(collection):
    bad = "".join(f"t0 Q0 d{number} 1 high tag\n" for number in range(40))
    made = looked(collection, {"a.run": bad, "gold.qrels": "t0 0 d1 x\n"})
    made = looked_again(made, {"a.run": {"kind": "runs"}, "gold.qrels": {"kind": "judgments"}})
    runs = card_of(made, "a.run")
    assert runs["n_faults"] == 40
    assert runs["faults"][0].startswith("a.run:1:12: score must be a finite number, not 'high' (and 39 more")
    assert card_of(made, "gold.qrels")["faults"] == [
        "gold.qrels:1:9: grade must be an integer in -127..127, not 'x'"
    ]
    assert len(made.report["obstacles"]) == 2


# -- kinds that are chosen ------------------------------------------------------------------------------------


def test_another_kind_can_be_chosen_and_a_file_left_out(collection):
    made = looked(collection, {"topics.tsv": TOPICS, "a.run": RUNS["a"]})
    made = looked_again(made, {"topics.tsv": {"kind": "documents"}, "a.run": {"kind": "none"}})
    assert [card["kind"] for card in made.report["files"]] == ["documents", "none"]
    assert card_of(made, "topics.tsv")["n_rows"] == 3
    assert made.report["obstacles"] == []
    assert made.kind == "documents"


def test_thousands_of_documents_are_never_topics_without_a_question(collection):
    many = "".join(f"d{number}\tA sentence of a document about thing {number}.\n" for number in range(6000))
    card = card_of(looked(collection, {"corpus.tsv": many}), "corpus.tsv")
    assert card["question"]
    assert looked(collection, {"corpus.tsv": many}).report["obstacles"] != []


# -- archives -------------------------------------------------------------------------------------------------


def test_files_and_pages_of_an_archive_are_looked_at(collection):
    pages = {f"site/p{number}.html": f"<html><p>Page {number}</p></html>" for number in range(4)}
    made = looked(collection, {"all.zip": zip_of({"topics.tsv": TOPICS, "runs/a.run": RUNS["a"], **pages})})
    assert {card["name"]: (card["kind"], card["n_files"]) for card in made.report["files"]} == {
        "all.zip/topics.tsv": ("topics", 1),
        "all.zip/runs/a.run": ("runs", 1),
        "all.zip: pages": ("documents", 4),
    }
    shown = card_of(made, "all.zip: pages")["documents"]
    assert [one["doc_id"] for one in shown] == ["site/p0.html", "site/p1.html", "site/p2.html"]
