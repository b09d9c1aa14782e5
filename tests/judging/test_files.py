"""Files in and out, on a real PostgreSQL: all of a file or nothing, and messages that name the place."""

import gzip
import hashlib
import io
import json
import os
import uuid
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.db import connection, transaction

import judging.tasks  # noqa: F401 (registers the job)
from judging.models import (
    Assessor,
    Campaign,
    Collection,
    Document,
    GoldAnswer,
    Grade,
    Item,
    Judgment,
    Lease,
    Run,
    Scale,
    Slot,
    Topic,
)
from judging.rankings import read_rankings
from judging.services.errors import ImportRefused
from judging.services.exports import export_prels, export_qrels, export_qrels_jg, pseudonym, qrels_rule
from judging.services.files import (
    import_documents,
    import_judgments,
    import_runs,
    import_topics,
    parse_grade_map,
    queue_import,
)
from judging.services.sources import remove_orphans
from sampling.models import Draw, DrawEntry
from touchstone import jobs
from touchstone.models import Event, Job, User

RUN = b"1 Q0 d1 1 3.5 first\n1 Q0 d2 2 2.5 first\n2 Q0 d1 1 1e0 first\n"


def make_collection(topics=("1", "2"), documents=("d1", "d2", "d3")):
    collection = Collection.objects.create(name=f"collection {uuid.uuid4()}")
    Topic.objects.bulk_create(Topic(collection=collection, topic_id=t, title=t) for t in topics)
    Document.objects.bulk_create(Document(collection=collection, doc_id=d, text=d) for d in documents)
    return collection


def make_campaign(collection=None, *, k=2, grades=3):
    scale = Scale.objects.create(name=f"scale {uuid.uuid4()}")
    Grade.objects.bulk_create(Grade(scale=scale, value=g, label=str(g), gain=g) for g in range(grades))
    return Campaign.objects.create(
        collection=collection or make_collection(),
        scale=scale,
        name=f"campaign {uuid.uuid4()}",
        judgments_per_item=k,
    )


def make_item(campaign, topic_id, doc_id):
    topic = campaign.collection.topics.get(topic_id=topic_id)
    document = campaign.collection.documents.get(doc_id=doc_id)
    return Item.objects.create(campaign=campaign, topic=topic, document=document)


def make_judgment(item, name, grade, *, purpose="judge", number=1, tier="bronze", revised=None):
    user, _ = User.objects.get_or_create(username=f"{name} {item.campaign_id}")
    assessor, _ = Assessor.objects.get_or_create(campaign=item.campaign, user=user, defaults={"tier": tier})
    token = uuid.uuid4()
    slot = Slot.objects.create(
        item=item,
        purpose=purpose,
        number=number,
        campaign=item.campaign,
        topic=item.topic,
        position=0,
        state="done",
        assessor=assessor,
        token=token,
    )
    for sequence, value in enumerate([grade] if revised is None else [grade, revised], start=1):
        Judgment.objects.create(
            item=item,
            assessor=assessor,
            sequence=sequence,
            grade=value,
            slot=slot,
            lease_token=token,
            client_token=uuid.uuid4(),
        )
    return assessor


def stored_files():
    root = Path(default_storage.path(""))
    return {str(path) for folder in ("rankings", "uploads") for path in (root / folder).glob("*")}


def everything():
    """How many rows of each kind there are, and which files."""
    kinds = (Topic, Document, Run, GoldAnswer, Item, Slot, Lease, Judgment, Assessor, User, Event)
    return [kind.objects.count() for kind in kinds], stored_files()


def refusal(service, **arguments):
    """The message of an import that must change nothing."""
    before = everything()
    with pytest.raises(ImportRefused) as caught:
        service(**arguments)
    assert everything() == before
    return str(caught.value)


def file(text):
    return io.BytesIO(text if isinstance(text, bytes) else text.encode())


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
        ("7\tnew\n1\told\n", "t:2:1: the collection has topic 1 already"),
        ("7\tnew\n7\tagain\n", "t:2:1: topic 7 is there twice (first on line 1)"),
        ("7\tnew\n8\n", "t:2:2: expected id<TAB>text, found 1 columns"),
        ("x" * 201 + "\tlong\n", "t:1:1: topic id longer than 200 characters"),
        (
            "<top>\n<num> Number: 2\n<title> old\n</top>\n",
            "t:2:1: the collection has topic 2 already",
        ),
        (
            '{"_id": "8", "text": "a"}\n\n{"_id": "2", "text": "b"}',
            "t:3:1: the collection has topic 2 already",
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
        ('{"_id": "n", "text": ""}\n\n{"_id": "d2", "text": ""}\n', "d:3:1: the collection has document d2 already"),
        ('{"_id": "n", "text": ""}\n{"_id": "n", "text": ""}\n', "d:2:1: document n is there twice"),
        ('{"_id": "n", "text": ""}\n{"_id": "m"\n', "d:2:12: malformed JSON (Expecting ',' delimiter)"),
        ("title,id,text\nx,n,\"two\nlines\"\nx,d1,y\n", "d:4:1: the collection has document d1 already"),
        ("<DOC>\n<DOCNO>n</DOCNO>\n</DOC>\n<DOC>\n <DOCNO>d3</DOCNO></DOC>",
         "d:5:2: the collection has document d3 already"),
        (".I n\n.W\ntext\n.I n\n.W\ntext\n", "d:4:4: document n is there twice"),
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
        (RUN, "b:1:15: the collection has run first already"),
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
        "x:1:15: the collection has run first already"
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


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ("1 0 d1 1\n1 0 d2 -1\n", {}, "q:2:8: grade -1 is not on the scale 0, 1, 2, 3, 4, 5, 6, 7, 8, 9"),
        ("1 0 d1 1\n1 0 d2 10\n", {}, "q:2:8: grade 10 is not on the scale 0, 1, 2, 3, 4, 5, 6, 7, 8, 9"),
        ("1 0 d1 1\n3 0 dx 1\n", {}, "q:2:5: the collection has no document dx"),
        ("1 0 d1 1\n3 0 d2 1\n", {}, "q:2:1: the collection has no topic 3"),
        (
            "1 0 d2 1\n1 0 d3 2\n",
            {},
            "q:2:8: document d3 of topic 1 has the gold answer 2, but 1 in the collection",
        ),
        ("1 0 d1 1\n1 0 d1 1\n", {}, "q:2:5: document d1 of topic 1 is there twice (first on line 1)"),
        ("1 0 d1 1\n1 0 d2 3\n", {"grade_map": {1: 1}}, "q:2:8: grade 3 is not in the grade map"),
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


@pytest.mark.parametrize("text", ["", "1", "1=", "a=1", "1=2,1=3", "1=2,"])
def test_a_grade_map_is_pairs_each_grade_once(text):
    with pytest.raises(ValueError, match="grade"):
        parse_grade_map(text)


# -- judgments of a campaign ----------------------------------------------------------------------------------


@pytest.mark.django_db
def test_crowd_judgments_fill_slots_and_names_stand_in_the_log_alone():
    campaign = make_campaign(k=2)
    item = make_item(campaign, "1", "d1")
    for number in (1, 2):
        Slot.objects.create(
            item=item, purpose="judge", number=number, campaign=campaign, topic=item.topic, position=9
        )
    data = "task,worker,label\n1 d1,Zoe,2\n1 d1,Adam,0\n2 d3,Zoe,1\n"
    arguments = {"campaign": campaign, "name": "c.csv", "file_format": "crowd", "source_name": "mturk"}
    assert import_judgments(source=file(data), **arguments) == 3
    prefix = f"imported-{str(campaign.pk)[:8]}-"
    rows = Judgment.objects.order_by("id").values_list(
        "item__topic__topic_id", "item__document__doc_id", "assessor__user__username", "grade", "slot__number"
    )
    assert list(rows) == [
        ("1", "d1", f"{prefix}1", 2, 1),
        ("1", "d1", f"{prefix}2", 0, 2),
        ("2", "d3", f"{prefix}1", 1, 1),
    ]
    assert set(Slot.objects.values_list("purpose", "state")) == {("judge", "done")}
    assert Slot.objects.count() == Lease.objects.count() == 3
    for judgment in Judgment.objects.select_related("slot"):
        assert judgment.lease_token == judgment.slot.token == judgment.slot.leases.get().token
    assert dict(Assessor.objects.values_list("user__username", "n_judged")) == {
        f"{prefix}1": 2,
        f"{prefix}2": 1,
    }
    assert not User.objects.get(username=f"{prefix}1").has_usable_password()
    assert not User.objects.filter(username__in=["Zoe", "Adam"]).exists()
    event = Event.objects.get(verb="imported judgments")
    assert event.detail["assessors"] == {f"{prefix}1": "Zoe", f"{prefix}2": "Adam"}

    assert import_judgments(source=file("task,worker,label\n2 d1,Adam,1\n2 d1,Eve,1\n"), **arguments) == 2
    assert dict(Assessor.objects.values_list("user__username", "n_judged")) == {
        f"{prefix}1": 2,
        f"{prefix}2": 2,
        f"{prefix}3": 1,
    }


@pytest.mark.django_db
def test_an_import_takes_only_slots_that_nobody_holds():
    campaign = make_campaign(k=3)
    item = make_item(campaign, "1", "d1")
    make_judgment(item, "bob", 1, number=2)
    import_judgments(campaign=campaign, source=file("1 x d1 0\n1 y d1 2\n"), name="j", file_format="qrels_jg")
    numbers = Judgment.objects.order_by("id").values_list("slot__number", "grade")
    assert list(numbers) == [(2, 1), (1, 0), (3, 2)]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            "1 a d1 1\n1 b d1 1\n1 c d1 1\n",
            "j:3:5: document d1 of topic 1 has its judgments already; the campaign wants 2 an item",
        ),
        (
            "1 a d1 1\n1 a d1 2\n",
            "j:2:5: document d1 of topic 1 and assessor a is there twice (first on line 1)",
        ),
        ("1 a d1 1\n1 b d1 3\n", "j:2:8: grade 3 is not on the scale 0, 1, 2"),
        ("1 a d1 1\n1 b d1 -2\n", "j:2:8: grade -2 is not on the scale 0, 1, 2"),
        ("1 a d1 1\n1 b d9 1\n", "j:2:5: the collection has no document d9"),
        ("1 a d1 1\n1 old d2 1\n", "j:2:3: this assessor judged document d2 of topic 1 before"),
    ],
)
def test_a_file_with_one_bad_judgment_changes_nothing(data, message):
    campaign = make_campaign(k=2)
    arguments = {"campaign": campaign, "file_format": "qrels_jg", "source_name": "lab", "name": "j"}
    import_judgments(source=file("1 old d2 1\n"), **arguments)
    assert refusal(import_judgments, source=file(data), **arguments) == message


@pytest.mark.django_db
def test_a_bad_line_of_crowd_judgments_is_named_with_its_cell():
    campaign = make_campaign()
    data = "worker,topic_id,doc_id,grade\na,1,d1,1\nb,1,d7,1\n"
    found = refusal(import_judgments, campaign=campaign, source=file(data), name="c", file_format="crowd")
    assert found == "c:3:5: the collection has no document d7"
    found = refusal(
        import_judgments,
        campaign=campaign,
        source=file("task,label,worker\n1 d1,5,a\n"),
        name="c",
        file_format="crowd",
    )
    assert found == "c:2:6: grade 5 is not on the scale 0, 1, 2"


@pytest.mark.django_db
def test_qrels_name_no_assessor_and_are_refused_as_judgments():
    found = refusal(import_judgments, campaign=make_campaign(), source=file("1 0 d1 1\n"), name="q")
    assert found == "q:1:1: qrels names no assessors: import it as gold answers"


# -- out ------------------------------------------------------------------------------------------------------


def judged_campaign():
    """Topic 10 before 9 (as strings); grades chosen so that median, latest grade and gold differ."""
    campaign = make_campaign(make_collection(topics=("9", "10")), k=4)
    nine, ten = make_item(campaign, "9", "d1"), make_item(campaign, "10", "d2")
    first = make_item(campaign, "10", "d1")
    for number, (name, grade) in enumerate([("a", 0), ("b", 1), ("c", 2), ("d", 2)], start=1):
        make_judgment(nine, name, grade, number=number)
    make_judgment(ten, "a", 0, number=1, revised=2)
    make_judgment(first, "a", 2, number=1)
    make_judgment(first, "gold", 1, purpose="audit", tier="gold")
    make_judgment(make_item(campaign, "9", "d3"), "b", 2, purpose="check")
    return campaign


@pytest.mark.django_db
def test_qrels_are_the_lower_median_of_latest_grades_and_gold_goes_first():
    campaign = judged_campaign()
    # 9 d1: 0 1 2 2, between 1 and 2 the lower; 10 d2: revised from 0 to 2; 10 d1: 2, the audit says 1.
    assert list(export_qrels(campaign=campaign)) == ["10 0 d1 1\n", "10 0 d2 2\n", "9 0 d1 1\n"]
    assert list(export_qrels(campaign=campaign, prefer_gold=False)) == [
        "10 0 d1 2\n",
        "10 0 d2 2\n",
        "9 0 d1 1\n",
    ]
    assert "audit" in qrels_rule()
    assert "audit" not in qrels_rule(prefer_gold=False)


@pytest.mark.django_db
def test_qrels_jg_hold_every_counted_judgment_under_pseudonyms():
    campaign = judged_campaign()
    lines = [line.split() for line in export_qrels_jg(campaign=campaign)]
    names = {
        assessor.user.username.split()[0]: pseudonym(campaign, assessor.pk)
        for assessor in campaign.assessors.all()
    }
    expected = [
        *sorted([["10", names["a"], "d1", "2"], ["10", names["gold"], "d1", "1"]]),
        ["10", names["a"], "d2", "2"],
        *sorted(["9", names[name], "d1", grade] for name, grade in zip("abcd", "0122", strict=True)),
    ]
    assert lines == expected
    assert all(len(name) == 12 and int(name, 16) >= 0 for name in names.values())
    assert pseudonym(make_campaign(), campaign.assessors.first().pk) not in names.values()


@pytest.mark.django_db
def test_prels_hold_drawn_items_with_their_probability():
    campaign = judged_campaign()
    items = {
        (i.topic.topic_id, i.document.doc_id): i.pk
        for i in campaign.items.select_related("topic", "document")
    }
    drawn = {items["10", "d2"]: 0.1, items["9", "d1"]: 1.0}
    expected = ["10 d2 2 1 0.1\n", "9 d1 1 1 1.0\n"]
    assert list(export_prels(campaign=campaign, probabilities=drawn)) == expected
    assert list(export_prels(campaign=campaign, probabilities=iter(drawn.items()))) == expected


@pytest.mark.django_db
def test_what_is_exported_comes_back_the_same():
    first = make_campaign(k=2)
    data = "1 a d1 2\n1 b d1 0\n2 a d3 1\n2 c d3 1\n"
    import_judgments(campaign=first, source=file(data), name="j", file_format="qrels_jg")
    out = "".join(export_qrels_jg(campaign=first))
    second = make_campaign(first.collection, k=2)
    import_judgments(campaign=second, source=file(out), name="again", file_format="qrels_jg")
    names = {username: name for name, username in _names(second).items()}
    back = sorted(
        f"{topic} {names[username]} {document} {grade}\n"
        for topic, username, document, grade in Judgment.objects.filter(item__campaign=second).values_list(
            "item__topic__topic_id", "assessor__user__username", "item__document__doc_id", "grade"
        )
    )
    assert back == sorted(out.splitlines(keepends=True))
    qrels = list(export_qrels(campaign=second))
    assert qrels == list(export_qrels(campaign=first)) == ["1 0 d1 0\n", "2 0 d3 1\n"]
    import_judgments(campaign=second, source=file("".join(qrels)), name="gold", as_gold=True)
    assert GoldAnswer.objects.count() == 2


def _names(campaign):
    event = Event.objects.get(verb="imported judgments", subject=f"campaign:{campaign.pk}")
    return {name: username for username, name in event.detail["assessors"].items()}


# -- jobs -----------------------------------------------------------------------------------------------------


def queued(kind, data, collection, **arguments):
    files = [ContentFile(text, name=f"../evil\n{number}.txt") for number, text in enumerate(data)]
    return queue_import(kind=kind, files=files, collection=collection, **arguments)


@pytest.mark.django_db(transaction=True)
def test_an_upload_is_imported_by_a_job_and_removed():
    collection, before = make_collection(), stored_files()
    alice = User.objects.create(username="alice")
    job = queued("runs", [RUN, RUN.replace(b"first", b"second")], collection, user=alice)
    assert len(stored_files() - before) == 2
    jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error) == ("done", "")
    assert job.result == {"n_runs": 2, "n_lines": 6, "n_unknown_topics": 0}
    assert stored_files() - before == {run.rankings.path for run in Run.objects.all()}
    assert Event.objects.get(verb="imported runs").actor == alice


@pytest.mark.django_db(transaction=True)
def test_a_refused_upload_leaves_a_message_and_nothing_else():
    collection, before = make_collection(), everything()
    job = queued("runs", [RUN, b"1 Q0 d1 1 x tag\n"], collection)
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == "failed"
    assert job.error == "evil1.txt:1:11: score must be a finite number, not 'x'"
    assert job.attempts == 1
    assert everything() == before


@pytest.mark.django_db(transaction=True)
def test_every_kind_of_file_goes_through_the_same_job():
    campaign = make_campaign(make_collection(topics=(), documents=()))
    wanted = [
        ("topics", b"1\ta\n", {}),
        ("documents", b'{"_id": "d", "text": "<i>x</i>"}', {"is_html": True}),
        ("judgments", b"1 0 d 4\n", {"as_gold": True, "grade_map": "4=2", "source_name": "s"}),
        ("judgments", b"1 w d 1\n", {"file_format": "qrels_jg", "kind": "machine"}),
    ]
    for kind, data, options in wanted:
        job = queued(kind, [data], campaign.collection, campaign=campaign, options=options)
        jobs.run(job.pk)
        job.refresh_from_db()
        assert (job.state, job.error, job.result) == ("done", "", {f"n_{kind}": 1})
    assert Document.objects.get().text == "x"
    assert GoldAnswer.objects.get().grade == 2
    assert Judgment.objects.get().assessor.kind == "machine"


@pytest.mark.django_db(transaction=True)
def test_a_job_that_lost_its_lease_keeps_the_upload_for_the_next_worker(monkeypatch):
    collection, before = make_collection(), stored_files()
    job = queued("runs", [RUN], collection)
    uploads = stored_files() - before
    with monkeypatch.context() as patch:
        patch.setattr(jobs, "_finish", lambda *_, **__: (_ for _ in ()).throw(jobs.LeaseLost))
        jobs.run(job.pk)
    assert stored_files() - before == uploads
    assert not Run.objects.exists()
    Job.objects.filter(pk=job.pk).update(lease_until="2000-01-01T00:00Z")
    jobs.run(job.pk)
    assert Run.objects.get().run_id == "first"
    assert not uploads & stored_files()


@pytest.mark.django_db(transaction=True)
def test_a_job_whose_upload_is_gone_says_so():
    collection = make_collection()
    job = queued("topics", [b"9\ta\n"], collection)
    default_storage.delete(job.payload["uploads"][0]["path"])
    jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error) == ("failed", "evil0.txt:1:1: the uploaded file is gone; send it again")


@pytest.mark.django_db
def test_only_known_kinds_and_options_are_queued():
    collection = make_collection()
    with pytest.raises(ValueError, match="kind must be one of"):
        queue_import(kind="users", files=[], collection=collection)
    with pytest.raises(ValueError, match="options of runs"):
        queue_import(kind="runs", files=[], collection=collection, options={"actor": 1})
    with pytest.raises(ImportRefused, match="no file was sent"):
        queue_import(kind="runs", files=[], collection=collection)


# -- commands -------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_the_commands_fill_a_new_collection(tmp_path, capsys):
    files = {
        "topics": b"1\ta\n2\tb\n",
        "docs.gz": gzip.compress(b'{"_id": "d1", "text": "x"}\n{"_id": "d2", "text": "y"}\n'),
        "run": RUN,
        "gold": b"1 0 d1 1\n",
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    call_command("import_topics", str(tmp_path / "topics"), "--collection", "new", "--create")
    call_command("import_documents", str(tmp_path / "docs.gz"), "--collection", "new")
    call_command("import_runs", str(tmp_path / "run"), "--collection", "new")
    call_command("import_judgments", str(tmp_path / "gold"), "--gold", "--collection", "new")
    assert capsys.readouterr().out.splitlines() == [
        "2 topics added to new",
        "2 documents added to new",
        "1 runs with 3 lines added to new",
        "1 gold answers added to new",
    ]
    collection = Collection.objects.get(name="new")
    assert (collection.topics.count(), collection.documents.count(), collection.runs.count()) == (2, 2, 1)
    assert GoldAnswer.objects.filter(topic__collection=collection).count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_command_that_fails_says_one_line_and_makes_no_collection(tmp_path):
    bad = tmp_path / "bad"
    bad.write_bytes(b"1 Q0 d1 1 x tag\n")
    before = everything()
    with pytest.raises(CommandError) as caught:
        call_command("import_runs", str(bad), "--collection", "new", "--create")
    assert str(caught.value) == f"{bad}:1:11: score must be a finite number, not 'x'"
    assert caught.value.returncode == 1
    with pytest.raises(CommandError, match="--create makes it"):
        call_command("import_runs", str(bad), "--collection", "new")
    with pytest.raises(CommandError, match="No such file"):
        call_command("import_topics", str(tmp_path / "none"), "--collection", "new", "--create")
    with pytest.raises(CommandError, match="there is no campaign"):
        call_command("import_judgments", str(bad), "--campaign", "none")
    assert not Collection.objects.filter(name="new").exists()
    assert everything() == before


@pytest.mark.django_db(transaction=True)
def test_standard_input_can_be_imported_and_read_twice(monkeypatch, capsys):
    def stdin(data):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))

    stdin(b"1\ta\n")
    call_command("import_topics", "-", "--collection", "piped", "--create")
    stdin(RUN)
    call_command("import_runs", "-", "--collection", "piped")
    assert capsys.readouterr().out.splitlines()[-1] == "1 of their topics are not in the collection"
    stdin(b"1\ta\n")
    with pytest.raises(CommandError, match=r"^<stdin>:1:1: the collection has topic 1 already$"):
        call_command("import_topics", "-", "--collection", "piped")


@pytest.mark.django_db
def test_the_bar_is_drawn_on_a_terminal_only(tmp_path):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    topics = tmp_path / "topics"
    topics.write_bytes(b"1\ta\n")
    for stream, drawn in ((Terminal(), True), (io.StringIO(), False)):
        call_command("import_topics", str(topics), "--collection", f"bar {drawn}", "--create", stderr=stream)
        assert ("topics" in stream.getvalue()) is drawn


@pytest.mark.django_db
def test_export_writes_each_kind_to_a_file_or_to_standard_output(tmp_path, capsys):
    campaign = judged_campaign()
    call_command("export", campaign.name, "qrels")
    assert capsys.readouterr().out == "10 0 d1 1\n10 0 d2 2\n9 0 d1 1\n"
    with pytest.raises(CommandError, match="have no inclusion probabilities"):
        call_command("export", str(campaign.pk), "prels")
    draw = Draw.objects.create(
        campaign=campaign,
        batch=1,
        question="pool",
        method="default",
        selection="poisson",
        seed=1,
        frame="f",
        n_frame=9,
        n_drawn=1,
    )
    item = campaign.items.get(topic__topic_id="10", document__doc_id="d2")
    DrawEntry.objects.create(draw=draw, item=item, inclusion_probability=0.25, times=1)
    target = tmp_path / "out"
    call_command("export", str(campaign.pk), "prels", "-o", str(target))
    assert target.read_bytes() == b"10 d2 2 1 0.25\n"
    call_command("export", campaign.name, "qrels_jg", "-o", str(target))
    assert target.read_text() == "".join(export_qrels_jg(campaign=campaign))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    with pytest.raises(CommandError, match="there is no campaign"):
        call_command("export", "none", "qrels")
