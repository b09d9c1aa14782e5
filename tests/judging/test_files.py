"""Files of topics, documents, runs and gold answers: all of a file or nothing, and messages that name the place."""

import gzip
import hashlib
import io
import json
import os
import uuid
from pathlib import Path

import pytest
from django.db import connection, transaction
from file_campaign import RUN, file, make_collection, refusal, stored_files

import judging.tasks  # noqa: F401 (registers the job)
from judging.file_options import options_from
from judging.models import (
    GoldAnswer,
    Run,
)
from judging.rankings import read_rankings
from judging.services.errors import ImportRefused
from judging.services.files import (
    import_documents,
    import_judgments,
    import_runs,
    import_topics,
    parse_grade_map,
)
from touchstone.files import remove_orphans
from touchstone.models import Event

# -- topics ---------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_topics_are_added_and_the_event_names_the_file_by_its_hash():
    collection = make_collection(topics=())
    data = b"1\tblack bear attacks\n02\tsteel\n"
    assert import_topics(collection=collection, source=file(data), name="t.tsv") == 2
    assert list(collection.topics.order_by("id").values_list("topic_id", "title")) == [
        ("1", "black bear attacks"),
        ("02", "steel"),
    ]
    event = Event.objects.get(verb="imported topics")
    assert event.subject == f"collection:{collection.pk}"
    assert event.detail["sha256"] == hashlib.sha256(data).hexdigest()
    assert (event.detail["n_topics"], event.detail["n_bytes"], event.detail["file"]) == (
        2,
        len(data),
        "t.tsv",
    )


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("7\tnew\n1\told\n", "t:2:1: the collection already has topic 1"),
        ("7\tnew\n7\tagain\n", "t:2:1: topic 7 occurs twice (first on line 1)"),
        ("7\tnew\n8\n", "t:2:2: expected id<TAB>text, or id<TAB>text<TAB>weight, found 1 columns"),
        ("x" * 201 + "\tlong\n", "t:1:1: topic id longer than 200 characters"),
        (
            "<top>\n<num> Number: 2\n<title> old\n</top>\n",
            "t:2:1: the collection already has topic 2",
        ),
        (
            '{"_id": "8", "text": "a"}\n\n{"_id": "2", "text": "b"}',
            "t:3:1: the collection already has topic 2",
        ),
    ],
)
def test_a_file_with_one_bad_topic_changes_nothing(data, message):
    assert refusal(import_topics, collection=make_collection(), source=file(data), name="t") == message


# -- documents ------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_documents_are_added_in_order_plain_and_gzipped_and_progress_reaches_the_end():
    collection = make_collection(documents=())
    data = b'{"_id": "b", "title": "A  <b> title", "text": "x < y\\r\\n\\u0007z"}\n{"_id": "a", "text": "t\\u0000"}\n'
    calls = []
    count = import_documents(
        collection=collection,
        source=file(gzip.compress(data)),
        name="d.gz",
        progress=lambda *call: calls.append(call),
    )
    assert count == 2
    assert list(collection.documents.order_by("id").values_list("doc_id", "title", "text", "version")) == [
        ("b", "A <b> title", "x < y\nz", 1),
        ("a", "", "t\ufffd", 1),
    ]
    done, total, note = calls[-1]
    assert done == total == len(gzip.compress(data))
    assert note == "2 documents read, storing them"
    assert import_documents(collection=collection, source=file('{"_id": "c", "text": ""}'), name="e") == 1


@pytest.mark.django_db
def test_of_html_documents_the_words_remain():
    collection = make_collection(documents=())
    page = {
        "_id": "p",
        "title": "Bears &amp; bees",
        "text": "<p>one</p><script>evil()</script><p>two &lt; three</p>",
    }
    import_documents(collection=collection, source=file(json.dumps(page)), name="d", is_html=True)
    document = collection.documents.get()
    assert document.title == "Bears & bees"
    assert document.text.split() == ["one", "two", "<", "three"]


TRUNCATED = gzip.compress(b'{"_id": "n", "text": ""}\n' * 3, mtime=0)[:-9]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("data", "message"),
    [
        ('{"_id": "n", "text": ""}\n\n{"_id": "d2", "text": ""}\n', "d:3:1: the collection already has document d2"),
        ('{"_id": "n", "text": ""}\n{"_id": "n", "text": ""}\n', "d:2:1: document n occurs twice"),
        ('{"_id": "n", "text": ""}\n{"_id": "m"\n', "d:2:12: malformed JSON (Expecting ',' delimiter)"),
        ("title,id,text\nx,n,\"two\nlines\"\nx,d1,y\n", "d:4:1: the collection already has document d1"),
        ("<DOC>\n<DOCNO>n</DOCNO>\n</DOC>\n<DOC>\n <DOCNO>d3</DOCNO></DOC>",
         "d:5:2: the collection already has document d3"),
        (".I n\n.W\ntext\n.I n\n.W\ntext\n", "d:4:4: document n occurs twice"),
        ('{"_id": "' + "n" * 501 + '", "text": ""}', "d:1:1: document id longer than 500 characters"),
        (TRUNCATED, "d:1:1: truncated gzip file: its end is missing"),
    ],
)  # fmt: skip
def test_a_file_with_one_bad_document_changes_nothing(data, message):
    found = refusal(import_documents, collection=make_collection(), source=file(data), name="d")
    if "gzip" in message:
        assert found.endswith(message.rpartition(": ")[2])
    else:
        assert found == message


@pytest.mark.django_db
def test_two_imports_of_documents_in_one_transaction_do_not_meet():
    collection = make_collection(documents=())
    with transaction.atomic():
        for number in range(2):
            source = file(json.dumps({"_id": f"x{number}", "text": ""}))
            import_documents(collection=collection, source=source, name="d")
    assert collection.documents.count() == 2


# -- runs -----------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_runs_become_rows_and_files_of_our_own_name(tmp_path):
    collection = make_collection(topics=("1",))
    plain, packed = tmp_path / "a.txt", tmp_path / "b.gz"
    plain.write_bytes(RUN)
    packed.write_bytes(gzip.compress(RUN.replace(b"first", b"second")))
    runs = import_runs(
        collection=collection,
        files=[(plain, "a.txt"), (str(packed), "b.gz"), (file(RUN.replace(b"first", b"third")), "c")],
    )
    assert [(run.run_id, run.n_topics, run.n_lines) for run in runs] == [
        ("first", 2, 3),
        ("second", 2, 3),
        ("third", 2, 3),
    ]
    assert [run.unknown_topics for run in runs] == [["2"]] * 3
    for run in Run.objects.all():
        stored = read_rankings(run.rankings.path)
        assert stored.doc_ids.to_list() == ["d1", "d2", "d1"]
        assert Path(run.rankings.name).parent == Path("rankings")
        assert uuid.UUID(Path(run.rankings.name).stem)
    event = Event.objects.get(verb="imported runs")
    assert (event.detail["n_runs"], event.detail["n_lines"]) == (3, 9)
    assert event.detail["files"][0] == {
        "run": "first",
        "file": "a.txt",
        "sha256": hashlib.sha256(RUN).hexdigest(),
        "n_unknown_topics": 1,
    }


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"1 Q0 d1 1 3.5 other\n1 Q0 d2 2 nan other\n", "b:2:11: score must be a finite number, not 'nan'"),
        (RUN, "b:1:15: the collection already has run first"),
        (b"1 Q0 d1  1 3.5 " + b"r" * 201, "b:1:16: run tag longer than 200 characters"),
    ],
)
def test_one_bad_run_and_none_is_kept_nor_any_file(data, message):
    collection = make_collection()
    files = [(file(RUN), "a"), (file(data), "b"), (file(RUN.replace(b"first", b"c")), "c")]
    assert refusal(import_runs, collection=collection, files=files) == message


@pytest.mark.django_db(transaction=True)
def test_a_run_the_collection_has_is_an_error_naming_it_and_its_file_stays():
    collection = make_collection()
    import_runs(collection=collection, files=[(file(RUN), "a")])
    assert refusal(import_runs, collection=collection, files=[(file(RUN), "x")]) == (
        "x:1:15: the collection already has run first"
    )
    assert Path(Run.objects.get().rankings.path).is_file()


@pytest.mark.django_db(transaction=True)
def test_a_run_file_is_removed_when_a_later_step_rolls_the_transaction_back():
    collection, before = make_collection(), stored_files()

    def steps():
        run = import_runs(collection=collection, files=[(file(RUN), "a")])[0]
        assert Path(run.rankings.path).is_file()
        raise RuntimeError("a later step")

    with pytest.raises(RuntimeError, match="a later step"), transaction.atomic():
        steps()
    assert stored_files() == before
    assert not Run.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_run_file_stays_when_the_connection_is_lost_and_is_removed_days_later():
    collection, before = make_collection(), stored_files()

    def steps():
        import_runs(collection=collection, files=[(file(RUN), "a")])
        connection.connection.close()

    with pytest.raises(Exception, match="closed"), transaction.atomic():
        steps()
    (orphan,) = stored_files() - before
    kept = import_runs(collection=collection, files=[(file(RUN), "a")])[0]
    for path in (orphan, kept.rankings.path):
        os.utime(path, (0, 0))
    assert remove_orphans("rankings", lambda name: Run.objects.filter(rankings=name).exists()) == 1
    assert stored_files() - before == {kept.rankings.path}


# -- gold answers ---------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_qrels_become_gold_answers_and_known_ones_are_not_counted_again():
    collection = make_collection()
    arguments = {"collection": collection, "name": "q", "as_gold": True, "source_name": "NIST"}
    assert import_judgments(source=file("1 0 d1 2\n1 0 d2 0\n"), **arguments) == 2
    assert import_judgments(source=file("1 0 d1 2\n2 0 d1 1\n"), **arguments) == 1
    answers = GoldAnswer.objects.order_by("id").values_list(
        "topic__topic_id", "document__doc_id", "grade", "source"
    )
    assert list(answers) == [("1", "d1", 2, "NIST"), ("1", "d2", 0, "NIST"), ("2", "d1", 1, "NIST")]


@pytest.mark.django_db
def test_the_codes_of_cranfield_are_turned_round():
    collection = make_collection()
    count = import_judgments(
        collection=collection,
        source=file("1 d1 1 \n1 d2 4 \n1 d3 -1\n"),
        name="cranqrel",
        file_format="cranfield",
        as_gold=True,
        grade_map="1=3,2=3,3=2,4=1,5=0,-1=0",
    )
    assert count == 3
    assert list(GoldAnswer.objects.order_by("id").values_list("grade", flat=True)) == [3, 1, 0]
    assert GoldAnswer.objects.first().source == "cranqrel"


def negative(grade: int) -> str:
    """Return the question about one line with a grade below 0."""
    return (
        f"q:2:8: grade {grade} is not on the scale 0, 1, 2, 3, 4, 5, 6, 7, 8, 9; 1 line has {grade}: say with a grade "
        f"map what becomes of them, {grade}=0 (not relevant) or {grade}= (left out)"
    )


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ("1 0 d1 1\n1 0 d2 -1\n", {}, negative(-1)),
        ("1 0 d1 1\n1 0 d2 10\n", {}, "q:2:8: grade 10 is not on the scale 0, 1, 2, 3, 4, 5, 6, 7, 8, 9"),
        ("1 0 d1 1\n3 0 dx 1\n", {}, "q:2:5: the collection has no document dx"),
        ("1 0 d1 1\n3 0 d2 1\n", {}, "q:2:1: the collection has no topic 3"),
        (
            "1 0 d2 1\n1 0 d3 2\n",
            {},
            "q:2:8: document d3 of topic 1 has the gold answer 2, but 1 in the collection",
        ),
        ("1 0 d1 1\n1 0 d1 1\n", {}, "q:2:5: document d1 of topic 1 occurs twice (first on line 1)"),
        (
            "1 0 d1 1\n1 0 d2 -2\n",
            {"grade_map": {1: 2}},
            negative(-2),
        ),
        ("1 0 d1 1\n1 0 d2 ?\n", {}, "q:2:8: grade must be an integer in -127..127, not '?'"),
        (
            "1 d1 1\n1 d2 1\n1 d1 2\n",
            {"file_format": "cranfield"},
            "q:3:6: document d1 of topic 1 has the gold answer 2, but 1 on an earlier line",
        ),
    ],
)
def test_a_file_with_one_bad_gold_answer_changes_nothing(data, options, message):
    collection = make_collection()
    import_judgments(collection=collection, source=file("1 0 d3 1\n"), name="before", as_gold=True)
    found = refusal(
        import_judgments, collection=collection, source=file(data), name="q", as_gold=True, **options
    )
    assert found == message


@pytest.mark.django_db
def test_grades_that_a_map_does_not_name_stay_and_some_are_left_out():
    collection = make_collection()
    count = import_judgments(
        collection=collection,
        source=file("1 0 d1 2\n1 0 d2 -2\n1 0 d3 -1\n"),
        name="web.qrels",
        as_gold=True,
        grade_map="-2=0,-1=",
    )
    assert count == 2
    assert list(GoldAnswer.objects.order_by("id").values_list("document__doc_id", "grade")) == [
        ("d1", 2),
        ("d2", 0),
    ]


@pytest.mark.django_db
def test_gold_of_beir_is_read_below_its_header_and_faults_have_their_line():
    collection = make_collection()
    data = "query-id\tcorpus-id\tscore\n1\td1\t1\n1\tdx\t0\n"
    given = {"collection": collection, "name": "test.tsv", "as_gold": True, "file_format": "beir"}
    assert refusal(import_judgments, source=file(data), **given) == (
        "test.tsv:3:3: the collection has no document dx"
    )
    assert import_judgments(source=file(data.replace("dx", "d2")), **given) == 2


@pytest.mark.django_db
def test_gold_of_chosen_columns_in_another_encoding_has_faults_at_their_cells():
    collection = make_collection()
    options = options_from(
        {"encoding": "utf-16", "mapping": {"topic": ["query"], "document": ["page"], "grade": ["rating"]}}
    )
    data = "é;query;page;rating\nx;1;d1;2\nx;1;dx;0\n"
    given = {
        "collection": collection,
        "name": "g.csv",
        "as_gold": True,
        "file_format": "gold",
        "options": options,
    }
    sent = io.BytesIO(data.encode("utf-16-le"))
    assert refusal(import_judgments, source=sent, **given) == "g.csv:3:5: the collection has no document dx"
    sent = io.BytesIO(data.replace("dx", "d2").encode("utf-16-le"))
    assert import_judgments(source=sent, **given) == 2


@pytest.mark.parametrize("text", ["", "1", "a=1", "1=2,1=3", "1=2,", "1=200", "1=b"])
def test_a_grade_map_is_pairs_each_grade_once(text):
    with pytest.raises(ImportRefused, match="grade"):
        parse_grade_map(text)
