"""Who can still judge what, on a real database: the campaign of 192 of 194, the claim's own rule, and when."""

import uuid
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from queue_campaign import claimed, judge, make_assessor, make_campaign

from console.manager import alerts
from console.manager.stuck import stuck_need
from judging.models import Assessor, Campaign, Judgment, PlacesLeft, Topic
from judging.services.assign import claim, submit
from judging.services.campaigns import set_assessor_rules, set_status, set_topic_teams
from judging.services.places_left import KIND, compute_places_left, start_due_feasibility
from touchstone.models import Job, User

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}
    settings.MIDDLEWARE = [part for part in settings.MIDDLEWARE if "whitenoise" not in part]


def give_back(assessor):
    slot = claimed(assessor)
    submit(assessor=assessor, token=slot.token, client_token=uuid.uuid4(), obstacle="topic")
    return slot.item.document.doc_id


def judge_all(assessor):
    while claimed(assessor):
        judge(assessor)


def todays_alerts(campaign):
    """What the overview says of people and work, of a campaign whose other parts are in order."""
    row = Campaign.objects.get(pk=campaign.pk)
    row.tiers, row.is_gold_alone, row.n_stored = ["bronze", "gold"], False, 0
    row.audit_waits_since, row.machines, row.failed_job = None, [], None
    kind = SimpleNamespace(no_top_up=False, is_complete=False, is_foreign=False)
    shown = {
        "draw": SimpleNamespace(selection_kind=kind),
        "draw_job": None,
        "layout": {"is_complete": True},
        "audits": {"n": 1, "is_unfit": False, "schedule": None},
        "progress": {"expired": 0, "left": 2, "leased": 0, "audits_left": 0},
        "activity": {},
        "computation": None,
    }
    return alerts.needs(row, shown)


def test_a_campaign_of_192_of_194_is_stuck_and_one_invitation_cures_it(monkeypatch):
    campaign = make_campaign(items=97, k=2)
    bob, dora = make_assessor(campaign), make_assessor(campaign, "dora")
    documents = {give_back(bob)}
    judge(dora)  # else she would meet the same document
    documents.add(give_back(dora))
    assert len(documents) == 2
    judge_all(bob)
    judge_all(dora)
    assert Judgment.objects.filter(grade__isnull=False).count() == 192
    assert claim(assessor=bob).reason == claim(assessor=dora).reason == "no work"

    found = compute_places_left(campaign=campaign)
    assert (found.wanted, found.possible, found.n_stuck, found.newcomers) == (2, 0, 2, 1)
    assert found.is_exact
    assert {one["doc_id"] for one in found.stuck} == documents
    assert {tuple(one["given_back_by"]) for one in found.stuck} == {(bob.pk,), (dora.pk,)}
    (alert,) = todays_alerts(campaign)
    assert alert["title"] == "2 items cannot be finished."
    for doc_id in documents:
        assert f"topic t0, document {doc_id}" in alert["words"]
    assert "What helps: 1 more assessor; asking whoever gave an item back to look again" in alert["words"]

    with monkeypatch.context() as patch:  # the control: the rules without it see nothing
        patch.setattr(alerts, "stuck_need", lambda row: None)
        assert todays_alerts(campaign) == []

    manager = Client()
    manager.force_login(User.objects.create(username="mia", role="manager"))
    page = reverse("console:campaign", args=[campaign.pk])
    assert "2 items cannot be finished." in manager.get(page).content.decode()

    eva = make_assessor(campaign, "eva")
    cured = compute_places_left(campaign=campaign)
    assert (cured.wanted, cured.possible, cured.newcomers, cured.stuck) == (2, 2, 0, [])
    assert todays_alerts(campaign) == []
    assert "cannot be finished" not in manager.get(page).content.decode()
    judge_all(eva)
    assert not campaign.slots.exclude(state="done").exists(), "the answer was true"


def test_the_remedies_are_those_that_help():
    campaign = make_campaign(items=2, topics=2)
    topic = Topic.objects.filter(collection=campaign.collection).first()
    bob = make_assessor(campaign)
    rules = {"first_topics": [], "actor": None}
    set_assessor_rules(assessor=bob, team="", quota=1, **rules)
    found = compute_places_left(campaign=campaign)
    assert (found.wanted, found.possible, found.helps) == (4, 1, {"quota": 3})
    campaign.refresh_from_db()
    alert = stuck_need(campaign)
    assert alert["title"] == "3 judgments cannot be made."
    assert "a higher quota" in alert["words"]
    set_assessor_rules(assessor=bob, team="", quota=None, **rules)
    set_topic_teams(campaign=campaign, teams={topic.pk: "night"}, actor=None)
    found = compute_places_left(campaign=campaign)
    assert (found.wanted, found.possible, found.helps) == (4, 2, {"team": 2})
    assert {one["topic_id"] for one in found.stuck} == {topic.topic_id}
    campaign.refresh_from_db()
    assert "opening topics to other teams" in stuck_need(campaign)["words"]


def test_it_agrees_with_what_the_claim_gives():
    """Whoever is paused, untrained or of another tier takes nothing; what is held is in good hands."""
    campaign = make_campaign(items=3)
    bob, gold = make_assessor(campaign), make_assessor(campaign, "gil", tier="gold")
    assert claim(assessor=gold).reason == "no work"
    claimed(bob)
    assert compute_places_left(campaign=campaign).wanted == 2, "one is held"
    set_status(assessor=bob, status=Assessor.Status.SUSPENDED, actor=None)
    found = compute_places_left(campaign=campaign)
    assert (found.wanted, found.possible, found.n_stuck) == (3, 0, 3)
    set_status(assessor=bob, status=Assessor.Status.ACTIVE, actor=None)
    assert compute_places_left(campaign=campaign).possible == 3, (
        "what went back without a judgment is his again"
    )
    Campaign.objects.filter(pk=campaign.pk).update(consent="We store what you say.")
    found = compute_places_left(campaign=campaign)
    assert (found.possible, found.helps) == (0, {"entry": 3})
    campaign.refresh_from_db()
    alert = stuck_need(campaign)
    assert (alert["level"], "the consent and training of those who have joined" in alert["words"]) == (
        "warn",
        True,
    )
    Campaign.objects.filter(pk=campaign.pk).update(state=Campaign.State.CLOSED)
    assert compute_places_left(campaign=campaign) is None


EARLIER = "2026-01-01T00:00Z"


def jobs_of(campaign):
    return Job.objects.filter(kind=KIND, active_key=str(campaign.pk))


def test_it_is_computed_after_a_change_and_once_a_minute_at_most():
    campaign = make_campaign(items=2)
    bob = make_assessor(campaign)
    start_due_feasibility()
    start_due_feasibility()
    assert jobs_of(campaign).count() == 1
    compute_places_left(campaign=campaign)
    jobs_of(campaign).update(state="done", created_at=EARLIER, finished_at=EARLIER)
    start_due_feasibility()
    assert jobs_of(campaign).count() == 1, "nothing changed"
    judge(bob)
    start_due_feasibility()
    assert jobs_of(campaign).count() == 2
    assert PlacesLeft.objects.get(campaign=campaign).wanted == 2, "as of its last look"


def test_a_look_that_took_long_is_not_repeated_soon():
    campaign = make_campaign(items=2)
    bob = make_assessor(campaign)
    start_due_feasibility()
    compute_places_left(campaign=campaign)
    judge(bob)
    now = timezone.now()
    ended = {"state": "done", "finished_at": now - timedelta(minutes=2)}
    jobs_of(campaign).update(created_at=now - timedelta(minutes=12), **ended)  # it took ten minutes
    start_due_feasibility()
    assert jobs_of(campaign).count() == 1
    jobs_of(campaign).update(created_at=now - timedelta(minutes=2, seconds=5), **ended)  # five seconds
    start_due_feasibility()
    assert jobs_of(campaign).count() == 2


def test_the_overview_reads_one_row_while_nothing_is_stuck():
    campaign = make_campaign(items=2)
    make_assessor(campaign)
    compute_places_left(campaign=campaign)
    campaign.refresh_from_db()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert stuck_need(campaign) is None
    assert len(queries) == 1
