"""Releases as a worker builds them: one moment while judging goes on, failure, and the same bytes elsewhere."""

import io
import json
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.utils import translation
from small_campaign import judge_all, judge_audit, make_assessor, make_campaign, make_undrawn, truth_of

import analytics.tasks  # noqa: F401 (the kind of job is registered)
from analytics.frames.moment import one_moment
from analytics.models import Computation, Release
from analytics.releases.services.releasing import build, build_again, make_release, settle_ended
from judging.models import Judgment
from judging.services.judgment_files import import_judgments
from sampling.services.auditing import audit
from touchstone import jobs
from touchstone.models import Job

pytestmark = pytest.mark.django_db(transaction=True)
ELSEWHERE = [
    {"PYTHONHASHSEED": "4711", "TZ": "Asia/Kolkata"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "TZ": "America/Lima"},
]


@pytest.fixture
def no_redis(monkeypatch):
    monkeypatch.setattr(jobs, "poke", lambda lane: True)


def file(text, name="q"):
    return {"source": io.BytesIO(text.encode()), "name": name}


def judged(tmp_path):
    campaign = make_undrawn(tmp_path, gold=False)
    import_judgments(campaign=campaign, file_format="qrels_jg", **file("t0 ann t0d00 2\nt1 bob t1d03 0\n"))
    return campaign


def lines_of(release, name):
    archive = zipfile.ZipFile(io.BytesIO(Path(release.file.path).read_bytes()))
    found = next(member for member in archive.namelist() if member.endswith(f"/{name}"))
    return archive.read(found).decode().splitlines()


def run(release):
    jobs.run(release.job_id)
    release.refresh_from_db()
    release.job.refresh_from_db()
    return release


def test_the_job_builds_the_release_with_estimates_of_exactly_its_judgments(tmp_path, no_redis):
    campaign = make_campaign(tmp_path, budget=30)
    people = [make_assessor(campaign, name) for name in ("ann", "bob")]
    judge_all(campaign, people)
    audit(campaign=campaign, items_each_time=12, items_in_total=12, seed=3)
    judge_audit(campaign, make_assessor(campaign, "gus", "gold"))
    campaign.collection.runs.update(may_publish=True)
    release = run(make_release(campaign=campaign, version="1", actor=None))
    assert (release.state, release.job.state) == ("ready", "done")
    assert release.job.result["sha256"] == release.sha256
    assert release.computation.last_judgment_id == release.last_judgment_id
    told = json.loads("\n".join(lines_of(release, "estimates.json")))
    assert told["computation"]["n_judgments"] == Judgment.objects.count()
    assert len(told["estimates"]) == release.computation.estimates.count() > 0
    # Nothing has happened since: the next release shares the estimates.
    again = run(make_release(campaign=campaign, version="2", actor=None))
    assert Computation.objects.filter(campaign=campaign).count() in (1, 2)
    assert again.changes["same"] == len(lines_of(again, "qrels.txt"))


def test_what_is_judged_while_a_release_is_built_is_not_in_it(tmp_path, no_redis):
    campaign = judged(tmp_path)
    release = make_release(campaign=campaign, version="1", actor=None, by_job=False)
    came = []

    def judge_elsewhere():
        try:
            import_judgments(campaign=campaign, file_format="qrels_jg", **file("t2 cyd t2d00 1\n"))
        finally:
            connection.close()

    def progress(*step):
        if not came:
            came.append(step)
            thread = threading.Thread(target=judge_elsewhere)
            thread.start()
            thread.join()

    with transaction.atomic():
        build(release=release, progress=progress)
    assert Judgment.objects.count() == 3
    assert len(lines_of(release, "judgments.jsonl")) == release.manifest["counts"]["judgments"] == 2
    assert len(lines_of(release, "assessors.jsonl")) == 2
    assert release.manifest["made_of"]["judgments"] == 2


def test_a_moment_sees_nothing_later_and_cannot_be_written_to(tmp_path):
    campaign = judged(tmp_path)
    with one_moment(campaign) as moment:
        import_judgments(campaign=campaign, file_format="qrels_jg", **file("t2 cyd t2d00 1\n"))
        assert Judgment.objects.count() == 3
        with moment.reading():
            assert Judgment.objects.count() == 2
            with pytest.raises(Exception, match="read-only transaction"):
                campaign.save()
    assert Judgment.objects.count() == 3


def test_a_job_that_fails_leaves_the_release_failed_and_no_file(tmp_path, no_redis):
    campaign = make_campaign(tmp_path, budget=30)
    release = make_release(campaign=campaign, version="1", actor=None)
    Path(campaign.draws.get().frame.path).unlink()
    run(release)
    assert (release.job.state, release.state) == ("failed", "building")
    assert "frame file" in release.job.error
    assert settle_ended() == 1
    release.refresh_from_db()
    assert (release.state, str(release.file)) == ("failed", "")
    assert not list((Path(settings.MEDIA_ROOT) / "releases").glob(f"*{release.pk}*"))
    assert settle_ended() == 0


def test_a_cancelled_job_leaves_the_release_failed_and_its_version_free(tmp_path, no_redis):
    campaign = judged(tmp_path)
    release = make_release(campaign=campaign, version="1", actor=None)
    jobs.cancel(release.job)
    run(release)
    assert (release.job.state, release.state) == ("cancelled", "building")
    other = run(make_release(campaign=campaign, version="1", actor=None))
    release.refresh_from_db()
    assert (release.state, other.state) == ("failed", "ready")


def test_a_job_that_runs_twice_builds_once(tmp_path, no_redis):
    release = run(make_release(campaign=judged(tmp_path), version="1", actor=None))
    ready_at, sha256 = release.ready_at, release.sha256
    Job.objects.filter(pk=release.job_id).update(state=Job.State.QUEUED, finished_at=None)
    run(release)
    assert (release.ready_at, release.sha256) == (ready_at, sha256)


def test_elsewhere_at_another_time_of_day_the_same_bytes_come_out(tmp_path, no_redis, child_environment):
    campaign = make_campaign(tmp_path, budget=30)
    judge_all(
        campaign,
        [make_assessor(campaign, "ann"), make_assessor(campaign, "bob")],
        grade=lambda s, p: truth_of(s),
    )
    audit(campaign=campaign, items_each_time=12, items_in_total=12, seed=3)
    judge_audit(campaign, make_assessor(campaign, "gus", "gold"))
    campaign.collection.runs.update(may_publish=True)
    campaign.collection.may_publish_documents = True
    campaign.collection.save()
    release = run(make_release(campaign=campaign, version="1", actor=None, includes_documents=True))
    manage = Path(__file__).resolve().parents[2] / "manage.py"
    command = [sys.executable, str(manage), "release", "--again", str(release.pk), "--output", "json"]
    children = [
        subprocess.Popen(command, env=child_environment | other, stdout=subprocess.PIPE)
        for other in ELSEWHERE
    ]
    answers = [json.loads(child.communicate(timeout=120)[0]) for child in children]
    assert [answer["files"] for answer in answers] == [[]] * len(ELSEWHERE)
    assert [answer["sha256"] for answer in answers] == [release.sha256] * len(ELSEWHERE)
    assert all(answer["same"] for answer in answers)
    assert Release.objects.count() == 1
    for code, _ in settings.LANGUAGES:  # though no language is ever active where releases are made
        with translation.override(code):
            again = build_again(release=release)
        assert (again.sha256, again.files) == (release.sha256, ()), code
