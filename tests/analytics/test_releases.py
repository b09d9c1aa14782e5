"""Releases of real campaigns: what is inside and what never is, cancel and failure, withdrawal, versions, changes."""

import io
import json
import uuid
import zipfile
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from django.core.management import CommandError, call_command
from small_campaign import (
    judge_all,
    judge_audit,
    make_assessor,
    make_campaign,
    make_undrawn,
    slots,
    true_grade,
    truth_of,
)

from analytics.models import Release
from analytics.releases.manifest import differences
from analytics.services.releasing import (
    AggregationUnknown,
    KeyForgotten,
    ReasonMissing,
    ReleaseNotReady,
    VersionTaken,
    VersionUnusable,
    build,
    build_again,
    citation,
    download_name,
    forget_key,
    make_release,
    settle_ended,
    withdraw,
)
from judging.models import Adjudication, Document, Judgment, Topic
from judging.services.errors import NotFound
from judging.services.exports import export_prels, export_qrels
from judging.services.judgment_files import import_judgments
from sampling.frames import item_probabilities
from sampling.services.auditing import audit
from touchstone import jobs
from touchstone.jobs import JobCancelled
from touchstone.models import Event, Job, User

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


def file(text, name="q"):
    return {"source": io.BytesIO(text.encode()), "name": name}


def judged(tmp_path, lines=("t0 ann t0d00 2", "t0 bob t0d00 1", "t1 ann t1d03 0"), **fields):
    """Return a campaign whose judgments were imported: nothing was drawn, so nothing is estimated."""
    campaign = make_undrawn(tmp_path, gold=False, **fields)
    import_judgments(
        campaign=campaign, file_format="qrels_jg", **file("".join(f"{line}\n" for line in lines))
    )
    return campaign


def audited(tmp_path, budget=30):
    """Return a campaign that was drawn, judged by two and audited."""
    campaign = make_campaign(tmp_path, budget=budget)
    ann, bob, gold = (
        make_assessor(campaign, n, t) for n, t in (("ann", "bronze"), ("bob", "bronze"), ("gus", "gold"))
    )
    judge_all(campaign, [ann, bob], grade=lambda slot, place: max(0, truth_of(slot) - place))
    audit(campaign=campaign, items_each_time=12, items_in_total=12, seed=3)
    judge_audit(campaign, gold)
    return campaign


def released(campaign, version="1.0", **wanted):
    return build(release=make_release(campaign=campaign, version=version, actor=None, by_job=False, **wanted))


def opened(release):
    """Return the files of a release: `text`, `rows` of JSON Lines, `names`, and `everything` as one text."""
    archive = zipfile.ZipFile(io.BytesIO(Path(release.file.path).read_bytes()))
    top = archive.namelist()[0].partition("/")[0]
    names = [name.removeprefix(f"{top}/") for name in archive.namelist()]

    def text(name):
        return archive.read(f"{top}/{name}").decode()

    return SimpleNamespace(
        top=top,
        names=names,
        read=lambda name: archive.read(f"{top}/{name}"),
        text=text,
        rows=lambda name: [json.loads(line) for line in text(name).split("\n")[:-1]],
        everything=b"\n".join(archive.read(name) for name in archive.namelist()),
    )


# -- what is inside -------------------------------------------------------------------------------------------


def test_a_release_says_the_same_as_the_exports_and_every_file_is_in_the_manifest(tmp_path):
    campaign = audited(tmp_path)
    release = released(campaign, title="A title", authors="Ada\nCy", licence="CC-BY-4.0")
    inside = opened(release)
    known = json.loads(inside.text("manifest.json"))
    assert differences(lambda name: [inside.read(name)], inside.names, known) == []
    assert inside.text("qrels.txt") == "".join(export_qrels(campaign=campaign))
    own = export_prels(campaign=campaign, probabilities=item_probabilities(campaign))
    parsed = [[line.split()[:4], float(line.split()[4])] for line in inside.text("prels.txt").splitlines()]
    assert parsed == [[line.split()[:4], float(line.split()[4])] for line in own]
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


def test_an_empty_campaign_makes_a_release_too(tmp_path):
    inside = opened(released(make_undrawn(tmp_path, gold=False)))
    assert inside.text("qrels.txt") == inside.text("judgments.jsonl") == ""
    assert json.loads(inside.text("manifest.json"))["counts"]["judgments"] == 0


# Of 0 0 0 1 1 1 1 2 the two middle grades are 1 and 1, of 0 0 0 0 1 2 2 2 they are 0 and 1: the lower counts.
@pytest.mark.parametrize(
    ("aggregation", "given", "expected"),
    [
        ("median", [0, 0, 0, 1, 1, 1, 1, 2], 1),
        ("median", [2, 2, 2, 1, 0, 0, 0, 0], 0),
        ("majority", [0, 0, 0, 2, 2, 2, 1, 1], 0),
        ("majority", [3, 3, 3, 0, 1, 1, 2, 0], 3),
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
        assert inside.text("qrels.txt") == "".join(export_qrels(campaign=campaign))


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
        assert inside.text("qrels.txt") == "".join(export_qrels(campaign=campaign, prefer_gold=prefers))


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
    assert inside.text("qrels.txt") == "".join(export_qrels(campaign=campaign))


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
    assert (b"Text of t0d00" in found.everything) == inside == ("beir/corpus.jsonl" in found.names)
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
    assert told == {"run0": None, "run1": "runs/0002.run.gz", "run2": None}
    assert [name for name in inside.names if name.startswith("runs/")] == ["runs/0002.run.gz"]
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


# -- the life of a release ------------------------------------------------------------------------------------


def test_made_again_from_the_same_facts_it_is_the_same_and_else_it_is_said_what_changed(tmp_path):
    campaign = judged(tmp_path)
    release = released(campaign, notes="first")
    same = build_again(release=release)
    assert (same.is_same, same.sha256, same.files, same.facts) == (True, release.sha256, (), ())
    import_judgments(campaign=campaign, file_format="qrels_jg", **file("t1 cyd t1d03 3\n"))
    other = build_again(release=release)
    assert not other.is_same
    assert {"judgments", "newest judgment", "assessors"} <= set(other.facts)
    assert {"judgments.jsonl", "qrels_jg.txt", "assessors.jsonl"} <= set(other.files)
    assert "topics.jsonl" not in other.files
    release.refresh_from_db()
    assert release.sha256 == same.sha256


def test_a_later_release_counts_what_changed_since_the_one_before(tmp_path):
    campaign = judged(tmp_path)
    first = released(campaign, version="1.0")
    import_judgments(campaign=campaign, file_format="qrels_jg", **file("t1 cyd t1d04 3\nt2 cyd t2d00 1\n"))
    manager = User.objects.create(username="boss", role="manager")
    Adjudication.objects.create(
        item=campaign.items.get(document__doc_id="t1d03"), grade=2, decided_by=manager
    )
    second = released(campaign, version="1.1", notes="More topics.")
    assert second.previous == first
    assert second.changes == {"previous": "1.0", "added": 2, "changed": 1, "removed": 0, "same": 1}
    text = opened(second).text("CHANGES.md")
    assert "2 grades added, 1 changed, 0 removed, 1 the same" in text
    assert "More topics." in text
    assert first.changes == {}
    withdraw(release=second, reason="wrong", actor=None)
    assert make_release(campaign=campaign, version="1.2", actor=None).previous == first


def test_a_lost_file_of_the_release_before_is_said_and_stops_nothing(tmp_path):
    campaign = judged(tmp_path)
    first = released(campaign)
    first.file.storage.delete(first.file.name)
    assert "unknown" in released(campaign, version="1.1").changes


def test_a_version_is_used_once_unless_its_release_failed(tmp_path):
    campaign = judged(tmp_path)
    first = make_release(campaign=campaign, version="1.0", actor=None)
    with pytest.raises(VersionTaken):
        make_release(campaign=campaign, version="1.0", actor=None)
    jobs.cancel(first.job)
    second = make_release(campaign=campaign, version="1.0", actor=None)
    first.refresh_from_db()
    assert (first.state, second.state) == ("failed", "building")


@pytest.mark.parametrize("version", ["", "v1", "1.", "1.2.3.4", "1 ", "-1", "1" * 30, "１.0", "1.0\n"])
def test_versions_are_numbers_with_dots(tmp_path, version):
    campaign = make_undrawn(tmp_path, gold=False)
    with pytest.raises(VersionUnusable):
        make_release(campaign=campaign, version=version, actor=None)
    assert not Release.objects.exists()
    assert not Job.objects.filter(kind="release").exists()


def test_nobody_releases_what_he_cannot_see_or_joins_grades_in_unknown_ways(tmp_path):
    campaign = make_undrawn(tmp_path, gold=False)
    with pytest.raises(AggregationUnknown):
        make_release(campaign=campaign, version="1", aggregation="mean", actor=None)
    campaign.collection.is_restricted = True
    campaign.collection.save()
    stranger = User.objects.create(username="stranger", role="researcher")
    with pytest.raises(NotFound):
        make_release(campaign=campaign, version="1", actor=stranger)
    assert not Release.objects.exists()


def test_a_withdrawn_release_keeps_its_file_and_says_why(tmp_path):
    release = released(judged(tmp_path))
    with pytest.raises(ReasonMissing):
        withdraw(release=release, reason="  ", actor=None)
    withdrawn = withdraw(release=release, reason="An error in topic 3.", actor=None)
    again = withdraw(release=release, reason="Another reason.", actor=None)
    assert withdrawn.withdrawn_reason == again.withdrawn_reason == "An error in topic 3."
    assert withdrawn.withdrawn_at == again.withdrawn_at
    assert zipfile.is_zipfile(withdrawn.file.path)
    assert Event.objects.filter(verb="withdrew a release").count() == 1


def test_without_its_key_a_release_stays_and_cannot_be_made_again(tmp_path):
    release = forget_key(release=released(judged(tmp_path)), actor=None)
    assert release.pseudonym_key == ""
    assert zipfile.is_zipfile(release.file.path)
    with pytest.raises(KeyForgotten):
        build_again(release=release)
    assert forget_key(release=release, actor=None).pseudonym_key == ""


def test_what_is_not_ready_is_neither_withdrawn_nor_cited_nor_made_again(tmp_path):
    release = make_release(campaign=judged(tmp_path), version="1", actor=None)
    for act in (
        lambda: withdraw(release=release, reason="x", actor=None),
        lambda: forget_key(release=release, actor=None),
        lambda: citation(release=release),
        lambda: build_again(release=release),
    ):
        with pytest.raises(ReleaseNotReady):
            act()


def test_the_citation_of_a_release_is_the_one_in_its_file(tmp_path):
    release = released(judged(tmp_path), authors="Ada B.\nCy D.", title="Good grades")
    inside = opened(release)
    cited = citation(release=release)
    assert (cited.text, cited.bibtex) == (inside.text("CITATION.txt"), inside.text("CITATION.bib"))
    assert "Good grades" in cited.text
    assert release.merkle_root in cited.text


# -- jobs and the command -------------------------------------------------------------------------------------


def test_a_release_that_somebody_cancels_leaves_no_file_and_frees_its_version(tmp_path):
    campaign = judged(tmp_path)
    release = make_release(campaign=campaign, version="1", actor=None)
    steps = []

    def progress(done, total, note):
        steps.append((done, total))
        if len(steps) > 8:
            raise JobCancelled

    with pytest.raises(JobCancelled):
        build(release=release, progress=progress)
    release.refresh_from_db()
    assert (release.state, str(release.file)) == ("building", "")
    jobs.cancel(release.job)
    assert settle_ended() == 1
    assert make_release(campaign=campaign, version="1", actor=None).state == "building"


def test_progress_never_goes_back_and_ends_at_its_end(tmp_path):
    steps = []
    campaign = audited(tmp_path)
    release = make_release(campaign=campaign, version="1", actor=None, by_job=False)
    build(release=release, progress=lambda *step: steps.append(step))
    done = [step[0] for step in steps]
    assert done == sorted(done)
    assert steps[-1][:2] == (100, 100)
    assert all(step[2] for step in steps)


def test_the_command_makes_a_release_and_makes_it_again(tmp_path):
    campaign = judged(tmp_path)
    out = io.StringIO()
    call_command(
        "release", campaign.name, "1.0", "--title", "A title", "-o", str(tmp_path / "copy.zip"), "--output", "json",
        stdout=out,
    )  # fmt: skip
    told = json.loads(out.getvalue())
    release = Release.objects.get(pk=told["release"])
    assert (tmp_path / "copy.zip").read_bytes() == Path(release.file.path).read_bytes()
    assert (told["sha256"], release.title) == (release.sha256, "A title")
    out = io.StringIO()
    call_command("release", "--again", str(release.pk), "--output", "json", stdout=out)
    assert json.loads(out.getvalue())["same"] is True
    import_judgments(campaign=campaign, file_format="qrels_jg", **file("t1 cyd t1d03 3\n"))
    with pytest.raises(SystemExit):
        call_command("release", "--again", str(release.pk), stdout=io.StringIO())


@pytest.mark.parametrize(
    "words",
    [
        ("nowhere", "1.0"),
        ("{name}", "one"),
        ("{name}",),
        (),
        ("--again", "x"),
        ("{name}", "1", "--again", "x"),
    ],
)
def test_the_command_says_what_is_wrong(tmp_path, words):
    campaign = make_undrawn(tmp_path, gold=False)
    with pytest.raises(CommandError) as refused:
        call_command("release", *(word.format(name=campaign.name) for word in words))
    assert len(str(refused.value)) > 10
    assert not Release.objects.exists()
