"""The page and the API of two rounds: from a question to a job to a result, faults by field, and who may ask."""

import uuid

import pytest
from api_requests import client_of as key_of
from asked_analyses import client_of, run_job
from django.urls import reverse
from two_rounds import compared, two_rounds

import analytics.tasks  # noqa: F401 (registers the jobs)
from analytics.services.assumptions import answer_questions
from analytics.services.recomputation import recompute
from judging.models import CollectionMember
from touchstone import jobs
from touchstone.models import Job, User

pytestmark = pytest.mark.django_db
PAGE, API = "console:rounds", "/api/v1/rounds"


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}


@pytest.fixture(autouse=True)
def no_heartbeat(monkeypatch):
    """A heartbeat is another connection, which sees no row of this test's transaction."""
    monkeypatch.setattr(jobs, "HEARTBEAT_SECONDS", 600.0)


def asked(first, second, **more):
    """Return the fields of the form."""
    return {
        "first": str(first.pk),
        "first_run": "run0",
        "second": str(second.pk),
        "second_run": "run2",
        "measure": "P@10",
    } | more


def body(first, second, **more):
    """Return the request of an API client."""
    return {
        "first": {"campaign": str(first.pk), "run": "run0"},
        "second": {"campaign": str(second.pk), "run": "run2"},
        "measure": "P@10",
    } | more


def page(query, status=200, role="researcher"):
    answer = client_of(role).get(reverse(PAGE), query)
    assert answer.status_code == status, answer.content.decode()[:2000]
    return " ".join(answer.content.decode().split())


def test_the_page_goes_from_the_fields_to_a_job_to_the_result(tmp_path):
    assert "No campaign yet" in page({})
    first, second = two_rounds(tmp_path)
    empty = page({})
    assert "Choose two rounds" in empty
    assert empty.count("October") == 2
    assert "Not computed yet" in page(asked(first, second, audit="first"))
    sent = client_of("researcher").post(
        reverse("console:rounds-compute"), asked(first, second, audit="first")
    )
    job = Job.objects.get(kind="rounds")
    assert str(job.pk) in sent["Location"]
    told = client_of("researcher").get(sent["Location"]).content.decode()
    assert "Comparing two rounds" in told
    assert "run0 and run2 in two rounds, in P@10." in told
    assert 'http-equiv="refresh"' in page(asked(first, second, audit="first"))
    assert run_job(job).state == "done", job.error
    text = page(asked(first, second, audit="first"))
    assert "The difference in P@10 between run0 in October and run2 in November" in text
    assert "For topics like these" in text
    assert "For these topics alone" in text
    assert "One audit for both rounds, Fieller" in text
    assert "3 topics stand in both rounds." in text
    assert "The audits are independent." in text
    assert "Not answered in both campaigns" in text
    assert "Recompute" in text
    assert "More judgments have arrived since" not in text
    newest = recompute(campaign=second)
    newest.pk, newest.last_judgment_id = None, newest.last_judgment_id + 5
    newest.save(force_insert=True)
    assert "More judgments have arrived since" in page(asked(first, second, audit="first"))
    assert "Not computed yet" in page(asked(first, second, audit="own"))  # another question
    for campaign in (first, second):
        answer_questions(
            campaign=campaign, user=None, same_judges=False, same_period=True, blind_to_system=True
        )
    forbidden = page(asked(first, second, audit="first"))
    assert "One audit may not serve both rounds" in forbidden
    assert "Not answered in both campaigns" not in forbidden
    assert "Two rounds" in client_of("researcher").get(reverse("console:results")).content.decode()


def test_faults_stand_beside_their_field_and_store_nothing(tmp_path):
    first, second = two_rounds(tmp_path)
    assert "Second run:</strong> the collection has no run &#x27;run9&#x27;" in page(
        asked(first, second, second_run="run9"), 400
    )
    assert "Measure:</strong> nDCG@10 is a ratio" in page(asked(first, second, measure="nDCG@10"), 400)
    assert "First campaign:</strong>" in page(asked(first, second) | {"first": "x"}, 400)
    assert "Second round starts:</strong> a date looks like" in page(asked(first, second, since="soon"), 400)
    assert "Claim:</strong>" in page(asked(first, second, claim="all"), 400)
    sent = client_of("researcher").post(
        reverse("console:rounds-compute"), asked(first, second, second_run="run9")
    )
    assert sent.status_code == 400
    assert not Job.objects.filter(kind="rounds").exists()
    dates = asked(first, second, since="2901-01-01")
    client_of("researcher").post(reverse("console:rounds-compute"), dates)
    assert run_job(Job.objects.get(kind="rounds")).state == "failed"
    text = page(dates)
    assert "The latest attempt failed:" in text
    assert "the dates leave no topic" in text
    assert "Not computed yet" in text


def test_an_api_client_asks_and_reads_the_same_numbers(tmp_path):
    first, second = two_rounds(tmp_path)
    client = key_of(User.objects.create(username="rhea", role="researcher"))
    answer = client.post(API, body(first, second, claim="these-topics"), "application/json")
    assert answer.status_code == 202, answer.content
    told = answer.json()
    assert (told["state"], told["result"], told["failed"]) == ("queued", None, None)
    assert answer["Retry-After"] == "2"
    again = client.post(API, body(first, second, claim="these-topics"), "application/json")
    assert again.json()["job"] == told["job"]
    assert run_job(Job.objects.get(pk=told["job"])).state == "done"
    result = client.get(answer["Location"]).json()["result"]
    known = compared(first, second, claim="these-topics")
    assert {key: result[key] for key in known} == known
    assert result["sentence"].startswith("The difference in P@10")
    assert [one["claim"] for one in result["claims"]] == ["topics-like-these", "these-topics"]
    for wrong, field in (
        ({"first": {"campaign": str(uuid.uuid4()), "run": "run0"}}, "first"),
        ({"second": {"campaign": str(second.pk), "run": "run9"}}, "second"),
        ({"measure": "AP"}, "measure"),
        ({"claim": "all"}, "claim"),
        ({"audit": "none"}, "audit"),
        ({"family": "all"}, "family"),
        ({"first": {"campaign": str(first.pk), "run": "run0", "since": "2026-01-01"}}, "first"),
    ):
        refused = client.post(API, body(first, second) | wrong, "application/json")
        assert refused.status_code == 400, wrong
        assert set(refused.json()["errors"]) == {field}
    assert Job.objects.filter(kind="rounds").count() == 1


def test_a_campaign_of_others_looks_absent_to_page_and_api(tmp_path):
    first, second = two_rounds(tmp_path)
    job = seen(first, second)
    hidden, gone = body(first, second), body(first, second)
    gone["second"] = {**gone["second"], "campaign": str(uuid.uuid4())}
    collection = second.collection
    type(collection).objects.filter(pk=collection.pk).update(is_restricted=True)
    client = key_of(User.objects.create(username="eve", role="researcher"))
    gone["first"] = {**gone["first"], "campaign": str(uuid.uuid4())}
    answers = [client.post(API, sent, "application/json") for sent in (hidden, gone)]
    assert [answer.status_code for answer in answers] == [400, 400]
    assert answers[0].json() == answers[1].json()
    assert client.get(f"{API}/{job.pk}").status_code == 404
    assert client.get(f"/api/v1/jobs/{job.pk}").status_code == 404
    assert client.get(f"{API}/{uuid.uuid4()}").status_code == 404
    assert "October" not in page({})
    assert "there is no such campaign" in page(asked(first, second), 400)
    CollectionMember.objects.create(collection=collection, user=User.objects.get(username="eve"))
    assert client.get(f"{API}/{job.pk}").status_code == 200


def test_both_campaigns_must_be_visible_to_see_a_job(tmp_path):
    """One of them is not enough: the payload names both."""
    first, second = two_rounds(tmp_path)
    job = seen(first, second)
    client = key_of(User.objects.create(username="eve", role="researcher"))
    assert client.get(f"{API}/{job.pk}").status_code == 200
    type(second).objects.filter(pk=second.pk).update(deleted_at=second.created_at, state="closed")
    assert client.get(f"{API}/{job.pk}").status_code == 404
    assert client.get("/api/v1/jobs").json()["results"] == []


def seen(first, second):
    """Return a job that was asked for by somebody who sees all."""
    client = key_of(User.objects.create(username=f"boss {uuid.uuid4()}", role="manager"))
    answer = client.post(API, body(first, second), "application/json")
    assert answer.status_code == 202, answer.content
    return run_job(Job.objects.get(pk=answer.json()["job"]))


def test_assessors_see_nothing_of_it(tmp_path):
    assert client_of("assessor").get(reverse(PAGE)).status_code == 404
    assert client_of("assessor").post(reverse("console:rounds-compute")).status_code == 404
    client = key_of(User.objects.create(username="ann", role="assessor"))
    assert client.post(API, {}, "application/json").status_code in (403, 404)
