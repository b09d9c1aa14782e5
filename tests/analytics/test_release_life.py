"""The life of a release: versions, changes, withdrawal, jobs that end early, and the command."""

import io
import json
import zipfile
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from made_releases import audited, file, judged, opened, released
from small_campaign import make_campaign, make_undrawn

from analytics.models import Release
from analytics.releases.services.releasing import (
    AggregationUnknown,
    CitationUnusable,
    KeyForgotten,
    NothingToRelease,
    ReasonMissing,
    ReleaseNotReady,
    VersionTaken,
    VersionUnusable,
    build,
    build_again,
    citation,
    forget_key,
    make_release,
    settle_ended,
    withdraw,
)
from analytics.releases.verify import verify
from judging.models import Adjudication
from judging.services.errors import NotFound
from judging.services.judgment_files import import_judgments
from touchstone import jobs
from touchstone.jobs import JobCancelled
from touchstone.models import Event, Job, User

pytestmark = pytest.mark.django_db


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


def test_a_release_of_nothing_is_refused_and_one_of_unjudged_items_verifies(tmp_path):
    for name in ("undrawn", "drawn"):
        (tmp_path / name).mkdir()
    nothing = make_undrawn(tmp_path / "undrawn", gold=False)
    with pytest.raises(NothingToRelease):
        make_release(campaign=nothing, version="1", actor=None)
    assert not Release.objects.exists()
    assert not Job.objects.filter(kind="release").exists()
    drawn = released(make_campaign(tmp_path / "drawn", budget=10))
    with zipfile.ZipFile(drawn.file.path) as archive:
        archive.extractall(tmp_path / "release")
    (folder,) = (tmp_path / "release").iterdir()
    assert verify(folder).different == []


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


@pytest.mark.parametrize(
    "wrong",
    [
        {"doi": "zenodo.1"},
        {"doi": "10.5281/zenodo.1 x"},
        {"url": "javascript:alert(1)"},
        {"authors": "Ada B., 0000-0002-1825-0098"},
    ],
)
def test_what_could_not_be_cited_is_refused_with_the_value_and_nothing_is_made(tmp_path, wrong):
    campaign = judged(tmp_path)
    [value] = wrong.values()
    with pytest.raises(CitationUnusable) as refused:
        make_release(campaign=campaign, version="1.0", actor=None, **wrong)
    assert value.rpartition(", ")[2] in str(refused.value)
    assert not Release.objects.exists()
    made = released(
        campaign, doi="10.5281/zenodo.1", url="https://example.org/j", authors="Ada B., 0000-0002-1825-0097"
    )
    assert made.manifest["doi"] == "10.5281/zenodo.1"
    assert "0000-0002-1825-0097" in opened(made).text("CITATION.cff")
    assert "0000-0002" not in citation(release=made).text
