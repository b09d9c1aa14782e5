"""Releases of real campaigns: what is inside and what never is."""

import io
import json
import uuid
import zipfile

import polars as pl
import pytest
from made_releases import audited, file, judged, opened, released
from small_campaign import (
    judge_all,
    make_assessor,
    make_campaign,
    make_undrawn,
    slots,
    true_grade,
)

from analytics.models import Release
from analytics.releases.manifest import differences
from analytics.releases.services.releasing import NothingToRelease, download_name
from analytics.services.exports import prels_lines, qrels_lines
from judging.models import Adjudication, Document, Judgment, Topic
from judging.services.judgment_files import import_judgments
from touchstone.models import User

pytestmark = pytest.mark.django_db

HOSTILE = [
    "a/b",
    'q"uote',
    "back\\slash",
    "ünïcödé",
    "../../etc/passwd",
    "comma,x",
    "=1+1",
    "0301",
    "null",
    "a|b;c",
]


# -- what is inside -------------------------------------------------------------------------------------------


def test_a_release_says_the_same_as_the_exports_and_every_file_is_in_the_manifest(tmp_path):
    campaign = audited(tmp_path)
    release = released(campaign, title="A title", authors="Ada\nCy", licence="CC-BY-4.0")
    inside = opened(release)
    known = json.loads(inside.text("manifest.json"))
    assert differences(lambda name: [inside.read(name)], inside.names, known) == []
    assert inside.text("qrels.txt") == "".join(qrels_lines(campaign, True))
    assert inside.text("prels.txt") == "".join(prels_lines(campaign, True))
    assert (release.state, release.n_bytes) == ("ready", release.file.size)
    assert release.merkle_root == known["merkle_root"] == release.manifest["merkle_root"]
    assert release.last_judgment_id == Judgment.objects.order_by("-id").values_list("id", flat=True)[0]
    assert inside.top == download_name(release).removesuffix(".zip")


def test_every_judgment_is_there_with_what_became_of_it(tmp_path):
    campaign = audited(tmp_path)
    rows = opened(released(campaign)).rows("judgments.jsonl")
    facts = Judgment.objects.filter(item__campaign=campaign).select_related(
        "item__topic", "item__document", "slot", "assessor"
    )
    expected = sorted(
        (f.item.topic.topic_id, f.item.document.doc_id, f.slot.purpose, f.assessor.tier, f.grade)
        for f in facts
    )
    assert sorted((r["topic_id"], r["doc_id"], r["purpose"], r["tier"], r["grade"]) for r in rows) == expected
    assert all(row["counted"] for row in rows)
    assert {row["purpose"] for row in rows if row["label"]} == {"judge"}
    assert len({row["assessor"] for row in rows}) == 3


def test_revised_and_surplus_judgments_and_obstacles_are_kept_and_do_not_count(tmp_path):
    campaign = judged(tmp_path)
    first = Judgment.objects.filter(item__campaign=campaign, grade=2).get()
    common = {"item": first.item, "assessor": first.assessor, "lease_token": uuid.uuid4()}
    Judgment.objects.create(**common, slot=first.slot, grade=0, sequence=2, client_token=uuid.uuid4())
    other = make_assessor(campaign, "cid")
    extra = {"item": first.item, "assessor": other, "lease_token": uuid.uuid4()}
    Judgment.objects.create(**extra, grade=None, obstacle="language", client_token=uuid.uuid4())
    Judgment.objects.create(**extra, grade=3, sequence=2, client_token=uuid.uuid4())
    inside = opened(released(campaign))
    told = [
        (row["purpose"], row["sequence"], row["grade"], row["obstacle"], row["counted"])
        for row in inside.rows("judgments.jsonl")
        if row["doc_id"] == "t0d00"
    ]
    assert sorted(told, key=str) == sorted(
        [
            ("judge", 1, 2, None, False),
            ("judge", 2, 0, None, True),
            ("judge", 1, 1, None, True),
            ("surplus", 1, None, "language", False),
            ("surplus", 2, 3, None, False),
        ],
        key=str,
    )
    assert inside.text("qrels.txt") == "t0 0 t0d00 0\nt1 0 t1d03 0\n"
    assert len(inside.text("qrels_jg.txt").splitlines()) == 3


def test_a_campaign_that_was_never_drawn_has_judgments_and_no_estimates(tmp_path):
    inside = opened(released(judged(tmp_path)))
    numbers = json.loads(inside.text("estimates.json"))
    assert (numbers["estimates"], numbers["computation"], numbers["draw"]) == ([], None, None)
    assert "nothing was drawn" in numbers["refusal"]
    assert "nothing was drawn" in inside.text("README.md")
    assert inside.text("prels.txt") == ""
    assert pl.read_parquet(io.BytesIO(inside.read("items.parquet"))).height == 2


def test_a_drawn_campaign_without_judgments_makes_a_release_and_an_undrawn_one_none(tmp_path):
    campaign = make_campaign(tmp_path, budget=10, gold=False)
    inside = opened(released(campaign))
    assert inside.text("qrels.txt") == inside.text("judgments.jsonl") == ""
    drawn = [row for row in inside.rows("items.jsonl") if row["drawn_in"]]
    assert len(drawn) == campaign.items.count() > 0
    assert {row["grade"] for row in drawn} == {None}
    known = json.loads(inside.text("manifest.json"))
    assert known["counts"]["judgments"] == 0
    assert differences(lambda name: [inside.read(name)], inside.names, known) == []
    (tmp_path / "undrawn").mkdir()
    with pytest.raises(NothingToRelease):
        released(make_undrawn(tmp_path / "undrawn", gold=False))
    assert Release.objects.count() == 1


# Of 0 0 0 1 1 1 1 2 the two middle grades are 1 and 1, of 0 0 0 0 1 2 2 2 they are 0 and 1: the lower counts.
@pytest.mark.parametrize(
    ("aggregation", "given", "expected"),
    [
        ("median", [0, 0, 0, 1, 1, 1, 1, 2], 1),
        ("median", [2, 2, 2, 1, 0, 0, 0, 0], 0),
        ("majority", [0, 0, 0, 2, 2, 2, 1, 1], 0),
        ("majority", [3, 3, 3, 0, 1, 1, 2, 0], 3),
        ("supermajority", [0, 0, 1, 1, 1, 2, 3, 3], 1),
        ("supermajority", [0, 0, 0, 3, 3, 3, 3, 3], 0),
        ("dawid-skene", [1, 1, 1, 1, 1, 1, 1, 1], 1),
    ],
)
def test_the_grade_of_an_item_follows_the_rule_that_was_asked_for(tmp_path, aggregation, given, expected):
    lines = [f"t0 a{n} t0d00 {grade}" for n, grade in enumerate(given)]
    campaign = judged(tmp_path, lines=lines, judgments_per_item=8)
    inside = opened(released(campaign, aggregation=aggregation))
    assert inside.text("qrels.txt") == f"t0 0 t0d00 {expected}\n"
    (row,) = inside.rows("items.jsonl")
    assert (row["grade"], row["joint_grade"], row["adjudicated_grade"]) == (expected, expected, None)
    if aggregation == "median":
        assert inside.text("qrels.txt") == "".join(qrels_lines(campaign, True))


def test_the_newest_decision_of_a_manager_counts_and_only_where_gold_goes_first(tmp_path):
    campaign = judged(tmp_path)
    manager = User.objects.create(username="boss", role="manager")
    for grade in (0, 3):
        Adjudication.objects.create(
            item=campaign.items.get(topic__topic_id="t0"), grade=grade, decided_by=manager
        )
    with_gold, without = (
        opened(released(campaign, version=version, prefers_gold=prefers))
        for version, prefers in (("1", True), ("2", False))
    )
    assert with_gold.text("qrels.txt") == "t0 0 t0d00 3\nt1 0 t1d03 0\n"
    assert without.text("qrels.txt") == "t0 0 t0d00 1\nt1 0 t1d03 0\n"
    for inside, prefers in ((with_gold, True), (without, False)):
        assert inside.text("qrels.txt") == "".join(qrels_lines(campaign, prefers))


def test_what_a_manager_decided_stands_first_and_the_audit_second(tmp_path):
    campaign = audited(tmp_path)
    manager = User.objects.create(username="boss", role="manager")
    wanted, other = [slot.item for slot in slots(campaign, "audit")[:2]]
    right = true_grade(wanted.topic.topic_id, wanted.document.doc_id)
    Adjudication.objects.create(
        item=wanted, grade=(right + 1) % 4, reason="secret reason", decided_by=manager
    )
    inside = opened(released(campaign))
    grades = {(row["topic_id"], row["doc_id"]): row for row in inside.rows("items.jsonl")}
    decided = grades[wanted.topic.topic_id, wanted.document.doc_id]
    assert decided["grade"] == decided["adjudicated_grade"] == (right + 1) % 4
    assert decided["audit_grade"] == right
    beside = grades[other.topic.topic_id, other.document.doc_id]
    assert beside["grade"] == beside["audit_grade"] == true_grade(other.topic.topic_id, other.document.doc_id)
    assert b"secret reason" not in inside.everything
    assert inside.text("qrels.txt") == "".join(qrels_lines(campaign, True))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the libraries below mlcroissant
def test_mlcroissant_finds_nothing_to_complain_of(tmp_path):
    mlcroissant = pytest.importorskip("mlcroissant")
    inside = opened(released(judged(tmp_path), licence="CC-BY-4.0", authors="Ada"))
    with zipfile.ZipFile(Release.objects.get().file.path) as archive:
        archive.extractall(tmp_path)
    found = mlcroissant.Dataset(str(tmp_path / inside.top / "croissant.json"))
    assert found.metadata.ctx.issues.report() == ""
    rows = list(found.records("judgments"))
    assert [row["judgments/grade"] for row in rows] == [
        row["grade"] for row in inside.rows("judgments.jsonl")
    ]
    assert {file.id for file in found.metadata.distribution} == set(inside.names) - {
        "croissant.json",
        "manifest.json",
    }


# -- what never is --------------------------------------------------------------------------------------------


def test_no_name_comment_reason_or_source_of_gold_is_in_a_release(tmp_path):
    campaign = make_campaign(tmp_path, budget=42, gold=False)
    people = [make_assessor(campaign, f"secretname{n}") for n in range(2)]
    User.objects.filter(username__startswith="secretname").update(
        first_name="Secretfirst", last_name="Secretlast", email="secret@example.org"
    )
    import_judgments(
        collection=campaign.collection,
        as_gold=True,
        source_name="secretsource",
        **file("t0 0 t0d00 1\n", "secretfile"),
    )
    judge_all(campaign, people)
    slot = slots(campaign)[0]
    Judgment.objects.create(
        item=slot.item, assessor=people[0], sequence=2, grade=1, slot=slot, comment="secretcomment",
        lease_token=uuid.uuid4(), client_token=uuid.uuid4(),
    )  # fmt: skip
    release = released(campaign)
    everything = opened(release).everything
    assert b"secret" not in everything.lower()
    for person in people:
        assert person.user.username.encode() not in everything
    for row in Judgment.objects.all()[:20]:
        assert str(row.client_token).encode() not in everything
        assert str(row.item_id).encode() not in everything
    assert release.pseudonym_key.encode() not in everything


def test_two_releases_give_the_same_people_unrelated_names(tmp_path):
    campaign = judged(tmp_path)
    first, second = (opened(released(campaign, version=v)) for v in ("1", "2"))
    names = [{row["assessor"] for row in one.rows("assessors.jsonl")} for one in (first, second)]
    assert len(names[0]) == len(names[1]) == 2
    assert not names[0] & names[1]
    assert first.text("qrels.txt") == second.text("qrels.txt")


@pytest.mark.parametrize(
    ("allowed", "wanted", "inside"), [(False, True, False), (True, False, False), (True, True, True)]
)
def test_texts_are_inside_only_if_they_are_wanted_and_allowed(tmp_path, allowed, wanted, inside):
    campaign = judged(tmp_path)
    campaign.collection.may_publish_documents = allowed
    campaign.collection.save()
    found = opened(released(campaign, includes_documents=wanted))
    rows = found.rows("documents.jsonl")
    assert len(rows) == Document.objects.count()
    assert (b"Text of t0d00" in found.everything) == inside
    # BEIR's loader needs the file: without texts it has the ids.
    corpus = found.rows("beir/corpus.jsonl")
    assert {row["_id"] for row in corpus} == {row["doc_id"] for row in rows}
    assert all(bool(row["text"]) == inside for row in corpus)
    assert all(("text" in row) == inside for row in rows)
    assert ("not in this release" in found.text("LICENSE.txt")) != inside
    assert len({row["sha256"] for row in rows}) == len(rows)
    assert json.loads(found.text("manifest.json"))["includes_documents"] == inside


def test_only_runs_whose_makers_allow_it_are_inside(tmp_path):
    campaign = audited(tmp_path)
    campaign.collection.runs.filter(run_id="run1").update(may_publish=True, description="open")
    campaign.collection.runs.filter(run_id="run2").update(description="hidden words")
    inside = opened(released(campaign))
    told = {run["run_id"]: run["file"] for run in json.loads(inside.text("runs.json"))}
    assert told == {"run1": "runs/0001.run.gz"}
    assert [name for name in inside.names if name.startswith("runs/")] == ["runs/0001.run.gz"]
    assert b"hidden words" not in inside.everything
    without = opened(released(campaign, version="2", includes_runs=False))
    assert not [name for name in without.names if name.startswith("runs/")]


def test_hostile_ids_and_words_harm_nobody_and_come_back_as_they_are(tmp_path):
    campaign = make_undrawn(tmp_path, gold=False)
    collection = campaign.collection
    Topic.objects.bulk_create(
        Topic(collection=collection, topic_id=one, title=f"{one}\n# x") for one in HOSTILE
    )
    Document.objects.bulk_create(
        Document(collection=collection, doc_id=one, text="\u2028\n\x01") for one in HOSTILE
    )
    lines = "".join(f"{one} {one} {one} 1\n" for one in HOSTILE)
    import_judgments(campaign=campaign, file_format="qrels_jg", **file(lines))
    campaign.name = "<script>alert(1)</script> ../../x 試"
    campaign.save()
    inside = opened(released(campaign, title="}\\input{x}", authors="A {\\b\n\n<b>"))
    ordered = sorted(HOSTILE, key=str.encode)
    assert inside.text("qrels.txt") == "".join(f"{one} 0 {one} 1\n" for one in ordered)
    assert [row["doc_id"] for row in inside.rows("judgments.jsonl")] == ordered
    assert [row["topic_id"] for row in inside.rows("items.jsonl")] == ordered
    assert inside.top == "script-alert-1-script-x-1.0"
    assert all(".." not in name and not name.startswith("/") for name in inside.names)
    assert set(HOSTILE) < {row["topic_id"] for row in inside.rows("topics.jsonl")}
