"""What a hostile reading found once: links into what was deleted, other people's work and names."""

import math
import unicodedata

import pytest
from django.core.files.base import ContentFile
from django.test import Client
from django.urls import reverse
from quick_flush import unguarded
from small_campaign import TOPICS, doc_id, judge_all, judge_audit, make_assessor, make_campaign, make_undrawn

import analytics.tasks  # noqa: F401 (registers the kinds of job)
from analytics.releases.services.releasing import make_release
from analytics.services.analyses import AnalysisSubject, analyse, ask
from analytics.services.recomputation import recompute
from analytics.services.run_upload import queue_upload
from judging.models import Campaign, Slot
from judging.services import leases
from judging.services.assign import claim
from judging.services.deletion import delete_campaign, delete_collection, restore_campaign
from judging.services.entry import create_invitation, usable_invitation
from judging.services.errors import InvitationUnusable
from sampling.services.auditing import audit
from touchstone import jobs
from touchstone.api.subjects import may_know, subject_of
from touchstone.models import Event, Job, User

pytestmark = pytest.mark.django_db


@pytest.fixture
def boss():
    return User.objects.create(username="boss", role="manager")


@pytest.fixture
def rhea():
    return User.objects.create(username="rhea", role="researcher")


def client_of(user):
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.parametrize("what", ["campaign", "collection"])
def test_an_invitation_into_what_was_deleted_looks_used_up(tmp_path, boss, what):
    campaign = make_undrawn(tmp_path)
    token = create_invitation(campaign=campaign, user=boss).token
    assert usable_invitation(token=token).campaign == campaign
    if what == "campaign":
        delete_campaign(campaign=campaign, confirmation=campaign.name, actor=boss)
    else:
        name = campaign.collection.name
        delete_collection(collection=campaign.collection, confirmation=name, actor=boss)
    with pytest.raises(InvitationUnusable):
        usable_invitation(token=token)
    assert campaign.name not in Client().get(reverse("judging:join", args=[token])).content.decode()


def test_a_market_link_into_a_deleted_campaign_leads_nowhere_until_it_is_restored(tmp_path, boss):
    campaign = make_campaign(tmp_path)
    Campaign.objects.filter(pk=campaign.pk).update(entry="hit", market_origin="https://market.example")
    address, query = (
        reverse("judging:hit", args=[campaign.entry_key]),
        {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"},
    )
    assert Client().get(address, query).status_code == 200
    delete_campaign(campaign=campaign, confirmation=campaign.name, actor=boss)
    assert Client().get(address, query).status_code == 404
    restore_campaign(campaign=campaign, actor=boss)
    assert Client().get(address, query).status_code == 200


def test_a_document_of_a_deleted_campaign_is_shown_to_nobody(tmp_path, boss):
    campaign = make_campaign(tmp_path)
    bob = make_assessor(campaign, "bob")
    held = claim(assessor=bob).item
    address, client = reverse("judging:frame", args=[held.token]), client_of(bob.user)
    assert client.get(address).status_code == 200
    delete_campaign(campaign=campaign, confirmation=campaign.name, actor=boss)
    assert client.get(address).status_code == 404


def test_every_spelling_of_a_name_has_the_same_tries(settings):
    """The login form reads wide letters as plain ones: they must not be counted as another name."""
    settings.LOGIN_TRIES = 3
    User.objects.create_user("alice", password="right-password-1")
    client = Client()
    wide = ["".join(chr(ord(letter) + 0xFEE0) for letter in "alice"[:n]) + "alice"[n:] for n in range(6)]
    assert {unicodedata.normalize("NFKC", name) for name in wide} == {"alice"}
    statuses = [client.post("/login/", {"username": name, "password": "x"}).status_code for name in wide]
    assert statuses == [200] * 3 + [429] * 3


def test_a_researchers_webhook_does_not_hear_whose_document_was_taken_back(tmp_path, boss, rhea):
    campaign = make_campaign(tmp_path)
    bob = make_assessor(campaign, "bob")
    claim(assessor=bob)
    slot = Slot.objects.select_related("assessor__user", "campaign").get(state="leased", assessor=bob)
    leases.release(slot=slot, actor=boss)
    event = Event.objects.order_by("-id").first()
    assert event.detail["assessor"] == bob.user_id
    assert may_know(boss, event, subject_of(event))
    assert not may_know(rhea, event, subject_of(event))


def test_a_researcher_stops_no_release_and_no_run_of_somebody_else(tmp_path, boss, rhea):
    campaign = make_campaign(tmp_path)
    lines = [f"{topic} Q0 {doc_id(place, 1)} 1 1 mine\n" for place, topic in enumerate(TOPICS)]
    upload = queue_upload(campaign=campaign, file=ContentFile("".join(lines).encode(), "mine.run"), user=boss)
    release = make_release(campaign=campaign, version="1.0", actor=boss)
    for job in (upload.pk, release.job_id):
        assert client_of(rhea).post(f"/api/v1/jobs/{job}/cancel").status_code == 404
        assert client_of(rhea).post(reverse("cancel-job", args=[job])).status_code == 404
        assert Job.objects.get(pk=job).state == "queued"
        assert client_of(boss).post(f"/api/v1/jobs/{job}/cancel").status_code == 200
        assert Job.objects.get(pk=job).state == "cancelled"


def test_a_list_of_jobs_carries_no_results(boss, tmp_path):
    campaign = make_campaign(tmp_path)
    job = Job.objects.create(
        kind="analysis",
        payload={"campaign": str(campaign.pk)},
        result={"large": "x" * 1000},
        requested_by=boss,
    )
    (listed,) = [
        row for row in client_of(boss).get("/api/v1/jobs").json()["results"] if row["id"] == str(job.pk)
    ]
    assert "result" not in listed
    assert client_of(boss).get(f"/api/v1/jobs/{job.pk}").json()["result"] == {"large": "x" * 1000}


def test_topics_in_which_two_runs_do_not_differ_are_shown(tmp_path, rhea, monkeypatch):
    """Everything is audited here: what rounding leaves of an interval must not stand beside its value."""
    monkeypatch.setattr(jobs, "HEARTBEAT_SECONDS", 600.0)  # another connection does not see this transaction
    campaign = make_campaign(tmp_path)
    judge_all(campaign, [make_assessor(campaign, "ann"), make_assessor(campaign, "ben")])
    audit(campaign=campaign, items_each_time=42, items_in_total=42, seed=5)
    judge_audit(campaign, make_assessor(campaign, "greta", tier="gold"))
    recompute(campaign=campaign)
    wanted = AnalysisSubject("topics", "DCG@10", "run0", "run2")
    job = ask(campaign=campaign, wanted=wanted, user=rhea)
    jobs.run(job.pk)
    job.refresh_from_db()
    numbers = [row["difference"] for row in job.result["topics"]]
    assert all(row["low"] is None or row["low"] <= row["value"] <= row["high"] for row in numbers)
    page = reverse("console:topics", args=[campaign.pk])
    answer = client_of(rhea).get(page, {"run": "run0", "against": "run2", "measure": "DCG@10"})
    assert answer.status_code == 200


@pytest.mark.parametrize("audited", [0, 4])
def test_a_topic_with_few_documents_has_no_value_off_the_scale(tmp_path, audited):
    """Five documents of 42 are judged: each would stand for many, and a sum of them for anything."""
    campaign = make_campaign(tmp_path, budget=5)
    judge_all(campaign, [make_assessor(campaign, "ann"), make_assessor(campaign, "ben")])
    if audited:
        audit(campaign=campaign, items_each_time=audited, items_in_total=audited, seed=5)
        judge_audit(campaign, make_assessor(campaign, "greta", tier="gold"))
    recompute(campaign=campaign)
    largest = 3 * sum(1 / math.log2(rank + 1) for rank in range(1, 11))  # DCG@10 of ten documents of grade 3
    wanted = AnalysisSubject("topics", "DCG@10", "run0", "run2")
    rows = analyse(campaign=campaign, wanted=wanted, progress=lambda *_: None)["topics"]
    assert len(rows) == len(TOPICS)
    for row in rows:
        assert row["difference"]["refusal"]
        assert -largest <= row["difference"]["value"] <= largest
        assert 0 <= row["mean"]["value"] <= largest


def test_a_title_that_is_a_formula_does_not_run_in_the_assessors_own_file(tmp_path):
    campaign = make_campaign(tmp_path)
    ann = make_assessor(campaign, "ann")
    with unguarded(["judging_document"]):
        campaign.collection.documents.update(title='=HYPERLINK("https://evil.example")')
    judge_all(campaign, [ann, make_assessor(campaign, "ben")], topic__topic_id="t0")
    text = client_of(ann.user).get(reverse("judging:my-data", args=[campaign.pk]), {"format": "csv"})
    content = b"".join(text.streaming_content) if text.streaming else text.content
    assert b"'=HYPERLINK" in content
    assert b',"=HYPERLINK' not in content
