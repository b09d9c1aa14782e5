"""All faults of a file in one look: what each reader goes on past, what ends a file, what is counted."""

import gzip
import io

import pytest
from django.core.files.base import ContentFile
from file_campaign import everything, make_collection

import judging.tasks  # noqa: F401 (registers the job)
from judging.faults import EnoughFaults, Faults
from judging.judgment_tables import read_crowd_labels, read_gold
from judging.records import read_documents
from judging.runs import find_faults
from judging.samples import read_prel_sample
from judging.scores import read_scores
from judging.services.files import queue_import
from judging.services.judgment_formats import judgment_format
from judging.textfiles import TrecFormatError
from judging.topics import read_topics
from judging.trec import read_prels, read_qrels, read_qrels_jg, read_stratified
from touchstone import jobs


def documents(source, name, faults):
    return read_documents(source, name, faults=faults)


def topics(source, name, faults):
    return read_topics(source, name, faults=faults)


def cranfield_topics(source, name, faults):
    return read_topics(source, name, "cranfield", faults=faults)


def cranfield_grades(source, name, faults):
    return judgment_format("cranfield").read(source, name, faults=faults)


def by(reader):
    return lambda source, name, faults: reader(source, name, faults=faults)


# Reader, file, how many good records, the places of the faults.
GOES_ON = {
    "JSON lines": (
        documents,
        (
            b'{"_id": "a", "text": "x"}\n{"_id": "b"\n{"_id": "c"}\n{"_id": "d e", "text": "y"}\n[1]\n'
            b'{"_id": "f", "text": "\xff"}\n{"_id": "g", "text": "z"}\n'
        ),
        2,
        ["2:12", "3:1", "4:1", "5:1", "6:23"],
    ),
    "table": (documents, b"id,text\na,x\nb\nc d,y\ne,z,z\nf,w\n", 2, ["3:2", "4:1", "5:5"]),
    "TREC documents": (
        documents,
        b"<DOC><DOCNO>a</DOCNO>x</DOC>\n<DOC>no id</DOC>\nstray\n<DOC><DOCNO>b</DOCNO>\n<DOC><DOCNO>c</DOCNO>y</DOC>\n",
        2,
        ["2:1", "3:1", "5:1"],
    ),
    "Cranfield": (documents, b".I 1\n.W\nx\n.I \n.W\ny\n.I 3\n.W\nz\n", 2, ["4:4"]),
    "TSV topics": (topics, b"1\ta\n2\n3\t \n1\tagain\n4 5\tb\n6\tc\n", 2, ["2:2", "3:3", "4:1", "5:1"]),
    "JSON topics": (topics, b'{"_id": 1, "text": "a"}\n{"_id": 2}\nx\n{"_id": 3, "text": "c"}\n', 2, ["2:1", "3:1"]),
    "SGML topics": (
        topics,
        b"<top><num>1<title>a</top>\n<top><num>2<title></top>\n<num>3\n<top><title>d</top>\n<top><num>5<title>e</top>\n",
        2,
        ["2:12", "3:1", "3:6", "4:1"],
    ),
    "XML topics": (
        topics,
        (
            b'<t>\n<topic number="1"><query>a</query></topic>\n<topic number="2"/>\n<topic><query>c</query></topic>\n'
            b'<topic number="4"><query>d</query></topic>\n</t>\n'
        ),
        2,
        ["3:1", "4:1"],
    ),
    "Cranfield topics": (cranfield_topics, b".I 9\n.W\na\n.I 10\nlost\n.W\nb\n.I 11\n.W\n", 2, ["5:1", "9:1"]),
    "qrels": (by(read_qrels), b"1 0 a 1\n1 0 b\n1 0 a 0\n\n1 0 c high\n1 0 d 2\n", 2, ["2:6", "3:5", "4:1", "5:7"]),
    "qrels_jg": (by(read_qrels_jg), b"1 w a 1\n1 w a 1\n1 v a 999\n1 v b 1\n", 2, ["2:5", "3:7"]),
    "prels": (by(read_prels), b"1 a 1 1 .5\n1 b 1 1 2\n1 c 1 x .5\n1 d 1 1 1\n", 2, ["2:9", "3:7"]),
    "strata": (by(read_stratified), b"1 0 a 1 1\n1 0 b x 1\n1 0 c 1 -2\n1 0 d 1 -1\n", 2, ["2:7", "3:9"]),
    "Cranfield grades": (cranfield_grades, b"1 a 1\n1 b\n1 c x\n1 d -1\n", 2, ["2:4", "3:5"]),
    "crowd": (
        by(read_crowd_labels),
        b"task,worker,label\n1 a,w,1\n1,w,1\n1 b,,1\n1 c,w,x\n1 d,w,0\n",
        2,
        ["3:1", "4:5", "5:7"],
    ),
    "gold": (by(read_gold), b"topic_id,doc_id,grade\n1,a,1\n1,,1\n1,b,x\n1,c,\n", 2, ["3:3", "4:5"]),
}  # fmt: skip


@pytest.mark.parametrize("case", GOES_ON)
def test_a_reader_names_every_bad_record_and_returns_the_good_ones(case):
    reader, data, n_good, places = GOES_ON[case]
    found = Faults()
    noted = []
    add, found.add = found.add, lambda fault: (noted.append(fault), add(fault))
    assert len(list(reader(io.BytesIO(data), "f", found))) == n_good
    assert [f"{fault.line}:{fault.column}" for fault in noted] == places
    assert len(found) == len(places)


@pytest.mark.parametrize("case", GOES_ON)
def test_without_faults_a_reader_stops_at_the_first(case):
    reader, data, _, places = GOES_ON[case]
    with pytest.raises(TrecFormatError) as raised:
        list(reader(io.BytesIO(data), "f", None))
    assert str(raised.value).startswith(f"f:{places[0]}: ")


@pytest.mark.parametrize("case", GOES_ON)
def test_a_reader_of_good_records_alone_finds_no_fault(case):
    """The control: each case without its bad lines."""
    reader, data, n_good, places = GOES_ON[case]
    good = {
        "table": b"id,text\na,x\nf,w\n",
        "TREC documents": b"<DOC><DOCNO>a</DOCNO>x</DOC>\n<DOC><DOCNO>c</DOCNO>y</DOC>\n",
        "Cranfield": b".I 1\n.W\nx\n.I 3\n.W\nz\n",
        "XML topics": b'<t><topic number="1"><query>a</query></topic><topic number="4"><query>d</query></topic></t>',
        "Cranfield topics": b".I 9\n.W\na\n.I 10\n.W\nb\n",
    }.get(case)
    if good is None:
        bad = {int(place.split(":")[0]) for place in places}
        good = b"\n".join(line for number, line in enumerate(data.split(b"\n"), 1) if number not in bad)
    faults = Faults()
    assert (len(list(reader(io.BytesIO(good), "f", faults))), len(faults)) == (n_good, 0)


ENDS = {
    "a truncated gzip file": (documents, gzip.compress(b'{"_id": "a", "text": "x"}\n' * 99)[:-9], "truncated"),
    "an unclosed document": (documents, b"<DOC><DOCNO>a</DOCNO>x", "never closed"),
    "a quotation mark": (documents, b'id,text\na,"x\n', "malformed CSV"),
    "a missing column": (documents, b"id,words\na,x\nb,y\n", "no column named text"),
    "a missing crowd column": (by(read_crowd_labels), b"task,worker\n1 a,w\n1 b,w\n", "no column named label"),
    "a document type": (topics, b"<!DOCTYPE t>\n<t/>", "document types"),
    "an archive": (by(read_qrels), b"PK\x03\x04aaaa", "zip archive"),
    "nothing": (topics, b"\n", "no topics in the file"),
}  # fmt: skip


@pytest.mark.parametrize("case", ENDS)
def test_what_ends_a_file_is_one_fault(case):
    reader, data, reason = ENDS[case]
    faults = Faults()
    assert len(list(reader(io.BytesIO(data), "f", faults))) <= 99
    assert len(faults) == 1
    assert reason in str(faults)


def test_of_several_runs_one_without_lines_is_named_beside_another_with_faults():
    faults = Faults()
    find_faults(io.BytesIO(b"1 Q0 a 1 0.5\n"), "narrow.run", faults)
    find_faults(io.BytesIO(b""), "empty.run", faults)
    assert [line.partition(": ")[0] for line in str(faults).splitlines()[:2]] == [
        "narrow.run:1:13",
        "empty.run:1:1",
    ]


def test_runs_and_scores_name_all_faults():
    run = b"1 Q0 a 1 .5 t\n1 Q0 b 1 x t\n1 Q0 a 1 .5 t\n1 Q0 c 1 .5 u\n1 Q0 d 1 .5 t\n"
    faults = Faults()
    find_faults(io.BytesIO(run), "r", faults)
    assert [line.split(": ")[0] for line in str(faults).splitlines()] == [
        "r:2:10",
        "r:3:6",
        "r:4:13",
        "3 faults",
    ]
    good, none = b"1 Q0 a 1 .5 t\n1 Q0 b 2 .4 t\n", Faults()
    find_faults(io.BytesIO(good), "r", none)
    assert len(none) == 0
    faults = Faults()
    assert read_scores(io.BytesIO(b"1 a .5\n1 b 2\n1 a .5\n1 c x\n"), "s", faults=faults).height == 0
    assert [line.split(": ")[0] for line in str(faults).splitlines()] == [
        "s:2:5",
        "s:3:3",
        "s:4:5",
        "3 faults",
    ]
    assert read_scores(io.BytesIO(b"1 a .5\n1 b 1\n"), "s", faults=none).height == 2
    assert len(none) == 0


def test_a_sample_with_faults_has_no_probabilities():
    faults = Faults()
    assert not list(read_prel_sample(io.BytesIO(b"1 a 1 1 .5\n1 b 1 1 2\n"), "p", "recorded", faults))
    assert len(faults) == 1


def test_alike_faults_share_a_line_and_keep_their_places():
    faults = Faults(most=4)
    for line in range(1, 8):
        faults.add(TrecFormatError("f", line, 2, f"grade must be an integer, not 'x{line}'"))
    faults.add(TrecFormatError("f", 9, 1, "blank line between lines"))
    assert str(faults).splitlines() == [
        "f:1:2: grade must be an integer, not 'x1' (and 6 more like it, at 2:2, 3:2, 4:2 ...)",
        "f:9:1: blank line between lines",
        "8 faults",
    ]


def test_one_fault_reads_as_the_error_itself():
    faults = Faults()
    fault = TrecFormatError("f", 1, 2, "wrong")
    faults.add(fault)
    assert str(faults) == str(fault) == "f:1:2: wrong"


def test_kinds_and_counts_are_bounded():
    faults = Faults(most=3, stop_after=50)
    for line in range(1, 50):
        faults.add(TrecFormatError("f", line, 1, "abcdefghijklmnopqrstuvwxyz"[: line % 26 + 1]))
    with pytest.raises(EnoughFaults):
        faults.add(TrecFormatError("f", 50, 1, "one more"))
    assert len(faults) == 50
    assert len(str(faults).splitlines()) == 4
    assert str(faults).endswith("50 faults, and the rest of the file was not read")


@pytest.mark.parametrize("reader", [documents, topics])
def test_reading_ends_when_there_are_faults_enough(reader):
    source = io.BytesIO(b'{"_id": 1, "text": "x"}\n' + b"{x}\n" * 5_000_000)
    faults = Faults(stop_after=100)
    assert len(list(reader(source, "f", faults))) == 1
    assert len(faults) == 100
    assert source.tell() < 5_000_000


# -- imports --------------------------------------------------------------------------------------------------


def imported(kind, files, **options):
    collection, before = make_collection(), everything()
    sent = [ContentFile(data, name=name) for name, data in files.items()]
    job = queue_import(kind=kind, files=sent, collection=collection, options=options)
    jobs.run(job.pk)
    job.refresh_from_db()
    return job, everything() == before


@pytest.mark.django_db(transaction=True)
def test_forty_bad_lines_of_two_files_are_named_in_one_look():
    good = [f'{{"_id": "n{n}", "text": "x"}}' for n in range(100)]
    bad = [f'{{"_id": "n {n}", "text": "x"}}' if n % 5 == 0 else line for n, line in enumerate(good)]
    job, is_unchanged = imported(
        "documents",
        {"a.jsonl": "\n".join(bad).encode(), "b.jsonl": ("\n".join(bad)).encode(), "c.jsonl": b"{}\n"},
    )
    assert job.state == "failed"
    assert is_unchanged
    lines = job.error.splitlines()
    assert [line.split(": ")[0] for line in lines] == [
        "a.jsonl:1:1",
        "20 faults",
        "b.jsonl:1:1",
        "20 faults",
        "c.jsonl:1:1",
    ]
    named = [f"{1 + 5 * n}:1" for n in range(1, 20)]
    assert f"19 more like it, at {', '.join(named)})" in lines[0]


@pytest.mark.django_db(transaction=True)
def test_all_bad_runs_are_named_in_one_look():
    files = {"good": b"1 Q0 d1 1 1 g\n", "bad": b"1 Q0 d1 1 x b\n1 Q0 d2 2\n", "worse": b"\x00\n"}
    job, is_unchanged = imported("runs", files)
    assert job.state == "failed"
    assert is_unchanged
    assert [line.split(": ")[0] for line in job.error.splitlines()] == [
        "bad:1:11",
        "bad:2:10",
        "worse:1:1",
        "3 faults",
    ]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("kind", "data", "options"),
    [
        ("topics", b"7\ta\nx\ny\n", {}),
        ("judgments", b"1 0 d1 x\n1 0 d1 1\n1 0 d2 y\n", {"as_gold": True}),
        ("scores", b"1 d1 3\n1 d2 .5\n1 d3 4\n", {}),
    ],
)
def test_every_kind_of_import_names_both_faults_and_changes_nothing(kind, data, options):
    job, is_unchanged = imported(kind, {"f": data}, **options)
    assert job.state == "failed"
    assert is_unchanged
    assert job.error.splitlines()[-1] == "2 faults"
