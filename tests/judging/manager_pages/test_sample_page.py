"""The page that imports a sample, its API, and what the other pages say of a campaign that has one."""

import gzip

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from foreign_sample import collection_of, empty_campaign, imported_campaign, sample_files
from manager_requests import page, post, words
from uploaded import looked

import judging.tasks  # noqa: F401 (registers the job)
from analytics.services.recomputation import recompute
from judging.models import Judgment
from judging.services.campaigns import open_campaign
from sampling.models import AuditSchedule, Draw
from sampling.selections import NOT_AUDITED, NOT_TOPPED_UP, POOL_UNKNOWN
from touchstone import jobs
from touchstone.models import Job, User

pytestmark = pytest.mark.django_db
LINES = b"7 7-d00 1 2 0.5\n7 7-d01 0 1 0.25\n"


@pytest.fixture
def client() -> Client:
    made = Client()
    made.force_login(User.objects.create(username="mia", role="manager"))
    return made


@pytest.fixture
def campaign(tmp_path):
    return empty_campaign(collection_of(sample_files(tmp_path), runs=False))


def sent(data: bytes, name: str = "s.prels") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, data)


def done(job: Job) -> Job:
    jobs.run(job.pk)
    job.refresh_from_db()
    return job


@pytest.mark.django_db(transaction=True)
def test_a_sample_is_uploaded_on_its_page(client, campaign) -> None:
    assert reverse("console:manage-sample", args=[campaign.pk]) in page(client, "console:design", campaign.pk)
    shown = page(client, "console:manage-sample", campaign.pk)
    assert "topic document grade method probability" in shown
    assert '<option value="stratified">Stratified qrels</option>' in shown
    assert "qrels_jg" in shown  # labels, as all there is
    assert "cranfield" not in shown
    fields = {"file_format": "prels", "source_name": "MQ", "method_codes": "track", "grade_map": "0=0,1=2"}
    answer = post(client, "console:manage-sample", campaign.pk, file=sent(gzip.compress(LINES)), **fields)
    job = done(Job.objects.get(kind="import"))
    assert answer.url.startswith(reverse("job", args=[job.pk]))
    assert (job.state, job.error, job.result) == ("done", "", {"n_judgments": 2})
    draw = campaign.draws.get()
    assert (draw.parameters["source"], draw.parameters["method_codes"]) == ("MQ", "track")
    assert draw.drawn_by.username == "mia"
    assert sorted(Judgment.objects.values_list("grade", flat=True)) == [0, 2]
    assert "This campaign is not empty" in page(client, "console:manage-sample", campaign.pk)
    post(client, "console:manage-sample", campaign.pk, status=400, file=sent(LINES), file_format="prels")
    assert Job.objects.filter(kind="import").count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_wrong_file_is_refused_by_its_line(client, campaign) -> None:
    post(client, "console:manage-sample", campaign.pk, file=sent(b"7 7-d00 1 1 NA\n"), file_format="prels")
    job = done(Job.objects.get(kind="import"))
    assert job.state == "failed"
    assert job.error == "s.prels:1:13: inclusion probability must be a finite number, not 'NA'"
    assert not Draw.objects.exists()
    assert not Judgment.objects.exists()


def test_a_form_with_a_fault_queues_nothing(client, campaign) -> None:
    for fields in ({}, {"file_format": "prels"}, {"file_format": "qrels", "file": sent(LINES)}):
        post(client, "console:manage-sample", campaign.pk, status=400, **fields)
    wrong = {"file_format": "prels", "file": sent(LINES), "grade_map": "x"}
    answer = post(client, "console:manage-sample", campaign.pk, status=400, **wrong)
    assert "a grade map is like" in words(answer)
    assert not Job.objects.filter(kind="import").exists()


@pytest.mark.django_db(transaction=True)
def test_an_api_client_imports_one(client, campaign) -> None:
    where = reverse("console:api-imports", args=[campaign.collection_id])
    asked = {"kind": "judgments", "campaign": str(campaign.pk), "file_format": "prels"}
    answer = client.post(where, {**asked, "method_codes": "mine", "files": sent(LINES)})
    assert answer.status_code == 400
    assert set(answer.json()["errors"]) == {"method_codes"}
    answer = client.post(where, {**asked, "method_codes": "track", "files": sent(LINES)})
    assert answer.status_code == 202
    job = done(Job.objects.get(kind="import"))
    assert (job.state, job.result) == ("done", {"n_judgments": 2})
    told = client.get(reverse("console:api-draws", args=[campaign.pk])).json()["draws"][0]
    assert (told["n_drawn"], told["n_frame"], told["is_laid_out"]) == (2, 2, True)
    assert told["design"]["file_format"] == "prels"
    client.post(where, {**asked, "files": sent(b"7 7-d09 1 1 0.5\n")})
    job = done(Job.objects.filter(kind="import").latest("created_at"))
    assert "has items already" in job.error
    gold = {"kind": "judgments", "as_gold": "true", "file_format": "prels", "files": sent(LINES)}
    client.post(where, gold)
    assert "prels holds a sample" in done(Job.objects.filter(kind="import").latest("created_at")).error


def test_gold_answers_are_not_offered_as_a_sample(client, campaign) -> None:
    made = looked(campaign.collection, {"gold.qrels": "7 0 7-d09 1\n"})
    shown = page(client, "console:manage-import", campaign.collection_id, made.pk)
    assert '<option value="cranfield">' in shown
    assert '<option value="prels">' not in shown


def test_the_pages_of_such_a_campaign_say_what_it_has_not(client, tmp_path) -> None:
    _, campaign = imported_campaign(tmp_path)
    computation = recompute(campaign=campaign)
    open_campaign(campaign=campaign, actor=None)
    value = computation.estimates.get(measure="statAP", method="naive", run__run_id="ann", run_b=None).value
    shown = page(client, "console:campaign-results", campaign.pk)
    assert "A sample drawn elsewhere." in shown
    assert f'{value:.3f} <span class="interval soft">no interval</span>' in shown
    assert "No interval of statAP holds, because of its bias." in shown
    assert "AP with predictions has one" not in shown
    shown = page(client, "console:campaign-results", campaign.pk, measure="P@10")
    low = computation.estimates.get(measure="P@10", method="naive", run__run_id="ann", run_b=None).low
    assert f"{low:.3f} to" in shown
    assert NOT_AUDITED in shown
    pair = {"a": "ann", "b": "bea"}
    assert "none" in page(client, "console:pair", campaign.pk, measure="statAP", **pair)
    for name, query, said in (
        ("console:pairs", {"measure": "statAP"}, NOT_AUDITED),
        ("console:ranking", {"measure": "statAP", "by": "naive"}, "corrected"),
        ("console:planner", {"measure": "P@10"}, NOT_AUDITED.capitalize()),
        ("console:reuse", {"run": "ann", "measure": "P@10"}, POOL_UNKNOWN),
        ("console:audits", {}, NOT_AUDITED.capitalize()),
        ("console:design", {}, NOT_TOPPED_UP.capitalize()),
        ("console:campaign", {}, "An imported sample has no audits."),
        ("console:campaign", {}, "Nothing needs you now."),
        ("console:topics", {"measure": "P@10", "run": "ann", "against": "bea"}, "ann"),
        ("console:run-upload", {}, ""),
        ("console:releases", {}, ""),
        ("console:results", {}, campaign.name),
        ("console:manage-topics", {}, ""),
    ):
        arguments = () if name == "console:results" else (campaign.pk,)
        assert said in page(client, name, *arguments, **query), name


def test_no_audit_can_be_planned_or_made(client, tmp_path) -> None:
    _, campaign = imported_campaign(tmp_path)
    where = reverse("console:api-audits", args=[campaign.pk])
    answer = client.post(where, {"items": 5}, "application/json")
    assert (answer.status_code, NOT_AUDITED in answer.json()["detail"]) == (400, True)
    where = reverse("console:api-audit-schedule", args=[campaign.pk])
    answer = client.patch(where, {"items_each_time": 5}, "application/json")
    assert (answer.status_code, NOT_AUDITED in answer.json()["detail"]) == (400, True)
    assert not AuditSchedule.objects.exists()
    assert not Job.objects.filter(kind="audit").exists()
