"""The pages of releases and of a run that a researcher brings: what they say in every state, and who may do what."""

import io
import zipfile

import pytest
from django.core.files.base import ContentFile
from django.urls import reverse
from django.utils import timezone
from small_campaign import (
    DEPTH,
    TOPICS,
    doc_id,
    judge_all,
    judge_audit,
    make_assessor,
    make_campaign,
    make_undrawn,
    truth_of,
)

import analytics.tasks  # noqa: F401 (registers the jobs)
from analytics.models import Release
from analytics.releases.services import releasing
from analytics.services.recomputation import recompute
from console.researcher.releases import next_version
from judging.models import CollectionMember
from sampling.services.auditing import audit
from touchstone import jobs
from touchstone.models import Job, User

pytestmark = pytest.mark.django_db

WANTED = {"version": "1.0", "title": "Good grades", "authors": "Ada B.\nCy D.", "licence": "CC BY 4.0"}
WANTED |= {"aggregation": "median", "prefers_gold": "on", "includes_runs": "on", "notes": "the first of all"}


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}


@pytest.fixture(autouse=True)
def no_heartbeat(monkeypatch):
    """Jobs of these tests are in a transaction that the heartbeat's own connection cannot see."""
    monkeypatch.setattr(jobs, "HEARTBEAT_SECONDS", 600.0)


@pytest.fixture
def campaign(tmp_path):
    made = make_campaign(tmp_path)
    judge_all(made, [make_assessor(made, "ann"), make_assessor(made, "ben")], lambda slot, _: truth_of(slot))
    audit(campaign=made, items_each_time=30, items_in_total=30, seed=5)
    judge_audit(made, make_assessor(made, "greta", tier="gold"))
    return made


@pytest.fixture
def rita(client):
    user = User.objects.create(username="rita", role="researcher")
    client.force_login(user)
    return user


def address(name, campaign, *more):
    return reverse(f"console:{name}", args=[campaign.pk, *more])


def text_of(answer, status=200):
    assert answer.status_code == status
    return answer.content.decode()


def made_release(client, campaign, **wanted):
    """Ask for a release through the page, and build it: the job would need a transaction of its own."""
    answer = client.post(address("release-new", campaign), {**WANTED, **wanted})
    assert answer.status_code == 302, answer.content.decode()[:2000]
    release = Release.objects.order_by("-created_at").first()
    assert answer.url == address("release", campaign, release.pk)
    return releasing.build(release=release)


# -- releases -----------------------------------------------------------------------------------------------


def test_from_the_empty_list_to_a_downloaded_release(client, rita, campaign):
    assert "No release yet" in text_of(client.get(address("releases", campaign)))
    form = text_of(client.get(address("release-new", campaign)))
    assert 'value="1.0"' in form
    assert campaign.name in form
    release = made_release(client, campaign)
    text = text_of(client.get(address("release", campaign, release.pk)))
    said = releasing.citation(release=release)
    assert "Ada B. and Cy D." in said.text
    assert said.text.strip() in text.replace("&#x27;", "'")
    assert "@misc{" in text
    assert release.sha256 in text
    assert release.merkle_root in text
    assert "verify.py" in text
    assert f"touchstone/{release.manifest['slug']}/1.0" in text
    assert "the first of all" in text
    assert "Withdrawal" not in text  # a researcher cannot
    assert "1.0" in text_of(client.get(address("releases", campaign)))
    file = client.get(address("release-download", campaign, release.pk))
    names = zipfile.ZipFile(io.BytesIO(b"".join(file.streaming_content))).namelist()
    file.close()
    listed = {entry["path"] for entry in release.manifest["files"]}
    assert {name.partition("/")[2] for name in names} - {"manifest.json", ""} == listed


def test_a_second_release_says_what_changed_and_takes_over_how_the_first_is_cited(client, rita, campaign):
    made_release(client, campaign)
    form = text_of(client.get(address("release-new", campaign)))
    assert 'value="1.1"' in form
    assert "Ada B." in form
    second = made_release(client, campaign, version="1.1", notes="")
    text = text_of(client.get(address("release", campaign, second.pk)))
    assert "Changes since version 1.0" in text
    assert second.changes["same"] == 42
    assert "Unchanged grades" in text


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"version": "one"}, "Numbers with dots"),
        ({"version": ""}, "This field is required"),
        ({"title": ""}, "This field is required"),
        ({"aggregation": "mean"}, "Select a valid choice"),
    ],
)
def test_a_form_that_is_wrong_says_where_and_makes_nothing(client, rita, campaign, wanted, words):
    answer = client.post(address("release-new", campaign), {**WANTED, **wanted})
    assert words in text_of(answer, 400)
    assert "The release was not made" in answer.content.decode()
    assert not Release.objects.exists()


def test_a_version_is_given_once_and_a_failed_attempt_gives_it_back(client, rita, campaign):
    made_release(client, campaign)
    again = client.post(address("release-new", campaign), WANTED)
    assert "has a release of that version already" in text_of(again, 400)
    client.post(address("release-new", campaign), {**WANTED, "version": "2.0"})
    failed = Release.objects.get(version="2.0")
    Job.objects.filter(pk=failed.job_id).update(
        state="failed", error="the disk is full", finished_at=timezone.now()
    )
    text = text_of(client.get(address("release", campaign, failed.pk)))
    assert "The release failed" in text
    assert "the disk is full" in text
    assert made_release(client, campaign, version="2.0").state == "ready"


def test_while_a_release_is_made_whoever_asked_can_stop_it_and_others_cannot(client, rita, campaign):
    client.post(address("release-new", campaign), WANTED)
    release = Release.objects.get()
    text = text_of(client.get(address("release", campaign, release.pk)))
    assert "Waiting for a worker" in text
    assert "Cancel" in text
    assert text_of(client.get(address("releases", campaign))).count("in preparation") == 1
    client.force_login(User.objects.create(username="rolf", role="researcher"))
    assert "Cancel" not in text_of(client.get(address("release", campaign, release.pk)))
    client.post(address("release-cancel", campaign, release.pk))
    assert not Job.objects.get(pk=release.job_id).cancel_requested
    client.force_login(rita)
    assert client.post(address("release-cancel", campaign, release.pk)).status_code == 302
    job = Job.objects.get(pk=release.job_id)
    assert job.cancel_requested or job.state == "cancelled"
    early = client.get(address("release-download", campaign, release.pk))
    assert early.status_code == 409


def test_only_managers_take_back_and_what_is_withdrawn_keeps_its_page_and_its_reason(client, rita, campaign):
    release = made_release(client, campaign)
    for name in ("release-withdraw", "release-forget"):
        assert client.post(address(name, campaign, release.pk), {"reason": "x"}).status_code == 404
    client.force_login(User.objects.create(username="mara", role="manager"))
    page = address("release", campaign, release.pk)
    assert "Withdrawal" in text_of(client.get(page))
    client.post(address("release-withdraw", campaign, release.pk), {"reason": "  "})
    release.refresh_from_db()
    assert release.withdrawn_at is None
    assert "Enter a reason" in text_of(client.get(page))
    client.post(address("release-withdraw", campaign, release.pk), {"reason": "A <b>topic</b> was wrong"})
    text = text_of(client.get(page))
    assert "A &lt;b&gt;topic&lt;/b&gt; was wrong" in text
    assert "Withdrawn on" in text
    assert "Download the withdrawn file" in text  # for those who have cited it
    assert "withdrawn" in text_of(client.get(address("releases", campaign)))


def test_the_key_of_the_pseudonyms_is_forgotten_only_if_the_version_is_typed(client, rita, campaign):
    release = made_release(client, campaign)
    client.force_login(User.objects.create(username="mara", role="manager"))
    forget = address("release-forget", campaign, release.pk)
    client.post(forget, {"confirmation": "1"})
    release.refresh_from_db()
    assert release.pseudonym_key
    client.post(forget, {"confirmation": " 1.0 "})
    release.refresh_from_db()
    assert release.pseudonym_key == ""
    text = text_of(client.get(address("release", campaign, release.pk)))
    assert "nobody can make this release again" in text
    assert "Delete the pseudonym key" not in text


def test_a_release_of_another_campaign_is_absent_here(client, rita, campaign, tmp_path):
    release = made_release(client, campaign)
    (tmp_path / "other").mkdir()
    other = make_campaign(tmp_path / "other")
    for name in ("release", "release-download"):
        assert client.get(address(name, other, release.pk)).status_code == 404
    CollectionMember.objects.create(collection=campaign.collection, user=User.objects.create(username="else"))
    campaign.collection.is_restricted = True
    campaign.collection.save()
    assert client.get(address("release", campaign, release.pk)).status_code == 404


def test_texts_go_into_a_release_only_where_the_collection_allows_it(client, rita, campaign):
    assert "Not allowed for this collection" in text_of(client.get(address("release-new", campaign)))
    assert not made_release(client, campaign, includes_documents="on").includes_documents
    campaign.collection.may_publish_documents = True
    campaign.collection.save()
    assert made_release(client, campaign, version="2", includes_documents="on").includes_documents


def test_the_next_version_raises_the_last_number():
    assert [next_version(version) for version in ("", "9", "1.9", "1.2.3", "x")] == [
        "1.0", "10", "1.10", "1.2.4", "1.0",
    ]  # fmt: skip


# -- a run that somebody brings -----------------------------------------------------------------------------


def run_file(documents=range(DEPTH), tag="mine", bad=""):
    lines = [
        f"{topic_id} Q0 {doc_id(topic, place)} {rank} {50 - rank} {tag}\n"
        for topic, topic_id in enumerate(TOPICS)
        for rank, place in enumerate(documents, start=1)
    ]
    return ContentFile((bad or "".join(lines)).encode(), name="mine.run")


def upload(client, campaign, **sent):
    answer = client.post(address("run-upload", campaign), {"file": run_file(), **sent})
    job = Job.objects.filter(kind="run-upload").order_by("-created_at").first()
    return answer, job


def test_an_uploaded_run_has_its_number_at_once_and_a_sentence_about_it(client, rita, campaign):
    recompute(campaign=campaign)
    answer, job = upload(client, campaign, against="run1", file=run_file([3, 2, 5, 6, 9, 10, 1, 0, 13, 7]))
    assert answer.status_code == 302
    page = f"{address('run-upload', campaign)}?job={job.pk}"
    assert "Being read and estimated" in text_of(client.get(page))
    jobs.run(job.pk)
    shown = client.get(page)
    text = text_of(shown)
    assert "Imported and estimated" in text
    [value] = [e for e, _ in shown.context["values"] if e.method == "corrected"]
    assert f"{value.value:.3f}" in text
    for claim, low in (("topics-like-these", value.topics_low), ("these-topics", value.low)):
        said = text_of(client.get(f"{page}&claim={claim}"))
        assert f"95 % confidence interval {low:.3f} to" in said
        assert f", for {claim.replace('-', ' ')}" in said
    assert "mine" in shown.context["verdict"]
    assert "run1" in shown.context["verdict"]
    assert "Estimated when it was uploaded" in text
    assert "Request the missing judgments" in text
    assert "mine.run" in text  # in the list of uploads
    recompute(campaign=campaign)
    assert "From the newest computation of all runs" in text_of(client.get(page))
    other = text_of(client.get(f"{page}&measure=P@10"))
    assert "P@10, corrected" in other


def test_an_upload_asks_whether_the_run_is_manual_and_the_list_of_runs_says_so(client, rita, campaign):
    assert "Manual run: a person took part in making it" in text_of(
        client.get(address("run-upload", campaign))
    )
    _, job = upload(client, campaign, is_manual="on")
    jobs.run(job.pk)
    assert campaign.collection.runs.get(run_id="mine").is_manual
    recompute(campaign=campaign)
    text = text_of(client.get(address("campaign-results", campaign)))
    assert '<span class="unbroken">mine</span> <span class="tag">manual</span>' in text
    assert text.count('<span class="tag">manual</span>') == 1


def test_a_run_with_documents_that_could_not_be_judged_gets_a_reason_in_place_of_a_number(
    client, rita, campaign
):
    strange = run_file().read().decode().replace("t0d00", "nowhere").encode()
    _, job = upload(client, campaign, file=ContentFile(strange, name="s.run"))
    jobs.run(job.pk)
    text = text_of(client.get(f"{address('run-upload', campaign)}?job={job.pk}"))
    assert "No DCG@10 for this run" in text
    assert "could not be drawn" in text
    assert "Request the missing judgments" in text


def test_a_file_that_is_no_run_is_refused_with_its_place_and_nothing_is_kept(client, rita, campaign):
    _, job = upload(client, campaign, file=run_file(bad="t0 Q0 d1\n"))
    jobs.run(job.pk)
    text = text_of(client.get(f"{address('run-upload', campaign)}?job={job.pk}"))
    assert "The file was rejected. Nothing was changed." in text
    assert "mine.run:1:" in text
    assert campaign.collection.runs.count() == 3
    for sent in ({"file": ""}, {"file": ContentFile(b"", name="e.run")}, {"against": "nobody"}):
        answer, _ = upload(client, campaign, **sent)
        assert "Nothing was uploaded" in text_of(answer, 400)


def test_who_judges_uploads_nothing_and_a_draft_has_no_such_page(client, campaign, tmp_path):
    client.force_login(User.objects.create(username="eve", role="assessor"))
    assert client.post(address("run-upload", campaign), {"file": run_file()}).status_code == 404
    big = ContentFile(b"x" * 20_000, name="big.run")
    assert client.post(address("run-upload", campaign), {"file": big}).status_code in (404, 413)
    assert not Job.objects.filter(kind="run-upload").exists()
    client.force_login(User.objects.create(username="rita", role="researcher"))
    (tmp_path / "draft").mkdir()
    assert client.get(address("run-upload", make_undrawn(tmp_path / "draft"))).status_code == 404


def test_the_upload_of_another_campaign_is_absent(client, rita, campaign, tmp_path):
    _, job = upload(client, campaign)
    (tmp_path / "other").mkdir()
    other = make_campaign(tmp_path / "other")
    assert client.get(f"{address('run-upload', other)}?job={job.pk}").status_code == 404
    assert client.get(f"{address('run-upload', campaign)}?job=nonsense").status_code == 200
