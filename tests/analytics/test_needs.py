"""What a manager must see: each need stands on the overview with a link to its remedy, and goes when it is met.

"Nothing needs you" is said only where there is none of them. Stuck items are in tests/judging/test_places_left.py.
"""

import uuid
from copy import deepcopy
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from quick_flush import unguarded
from small_campaign import give, judge_all, lease, make_assessor, make_campaign, slots

from analytics.models import Computation, Flag
from analytics.services.recomputation import recompute
from judging.models import Assessor, Campaign, MachineCall, Message
from judging.services import messages
from judging.services.assign import submit
from sampling.models import Audit
from sampling.services.auditing import audit
from touchstone.models import Event, Job, User

pytestmark = pytest.mark.django_db
NOTHING = "Nothing needs you now."


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}
    settings.MIDDLEWARE = [part for part in settings.MIDDLEWARE if "whitenoise" not in part]


@pytest.fixture(scope="module")
def made_once(module_world, tmp_path_factory) -> Campaign:
    """Two topics of three are judged, alike by both assessors; audits are planned, and there is somebody for them."""
    campaign = make_campaign(tmp_path_factory.mktemp("world"))
    people = [make_assessor(campaign, name) for name in ("bob", "dora")]
    judge_all(campaign, people, topic__topic_id__in=["t0", "t1"])
    make_assessor(campaign, "greta", "gold")
    recompute(campaign=campaign)
    manager = Client()
    manager.force_login(User.objects.create(username="mia", role="manager"))
    plan = {
        "every_seconds": 1,
        "every_unit": 86400,
        "items_each_time": 5,
        "items_in_total": 20,
        "is_active": "on",
    }
    answer = manager.post(reverse("console:setup-step", args=[campaign.pk, "gold"]), plan)
    assert answer.status_code == 302
    return campaign


@pytest.fixture
def campaign(made_once, db) -> Campaign:
    return deepcopy(made_once)


@pytest.fixture
def mia(campaign) -> User:
    return User.objects.get(username="mia")


@pytest.fixture
def overview(campaign, mia):
    """Return a function: the needs that the overview shows, each by its title, and the text of the page."""
    client = Client()
    client.force_login(mia)

    def get():
        answer = client.get(reverse("console:campaign", args=[campaign.pk]))
        text = " ".join(answer.content.decode().split())
        needs = {need["title"]: need for need in answer.context["needs"]}
        assert (NOTHING in text) is (not needs)
        for need in needs.values():
            assert need["title"] in text
            assert f'href="{need["url"]}"' in text.replace("&amp;", "&")
            path = need["url"].partition("?")[0].partition("#")[0]
            assert client.get(path).status_code in (200, 302), path
        return needs

    return get


def test_where_all_is_in_order_nothing_needs_the_manager(overview):
    assert overview() == {}


def test_a_failed_job_needs_the_manager_until_one_of_its_kind_is_done(campaign, overview):
    job = {"kind": "estimate", "payload": {"campaign": str(campaign.pk)}, "finished_at": timezone.now()}
    failed = Job.objects.create(**job, state="failed", error="the disk is full")
    need = overview()["A job failed (estimate):"]
    assert (need["words"], need["level"]) == ("the disk is full", "error")
    assert need["url"].startswith(reverse("job", args=[failed.pk]))
    Job.objects.create(**job | {"payload": {"campaign": str(uuid.uuid4())}}, state="done")
    assert overview(), "one for another campaign is no remedy"
    Job.objects.create(**job, state="done")
    assert overview() == {}


def machine(campaign) -> Assessor:
    robot = make_assessor(campaign, "robot")
    Assessor.objects.filter(pk=robot.pk).update(kind="machine")
    return robot


def test_a_machine_whose_endpoint_refused_it_needs_the_manager_after_ten_minutes(campaign, overview):
    robot = machine(campaign)
    call = MachineCall.objects.create(
        assessor=robot, lease_token=uuid.uuid4(), model="tiny", status="refused", detail="no credit"
    )
    assert overview() == {}, "it may have begun again a moment ago"
    set_back(MachineCall, call.pk, timedelta(minutes=11))
    need = overview()["A machine needs you."]
    assert need["words"] == "robot stopped: its last request was refused."
    assert need["url"] == reverse("console:assessor", args=[campaign.pk, robot.pk]) + "#calls"
    MachineCall.objects.create(assessor=robot, lease_token=uuid.uuid4(), model="tiny", status="answered")
    assert overview() == {}


def test_a_machine_that_failed_in_a_fifth_of_its_newest_judgments_needs_the_manager(campaign, overview):
    robot, left = machine(campaign), slots(campaign, state="open", number=1)
    for slot in left[:8]:
        give(robot, slot, 1)
    fail(robot, left[8])
    assert overview() == {}, "one of nine"
    fail(robot, left[9])
    words = "robot gave no usable answer to 2 of its last 10 documents."
    assert overview()["A machine needs you."]["words"] == words
    give(robot, left[10], 1)
    assert overview() == {}, "two of eleven"


def fail(robot: Assessor, slot) -> None:
    token = lease(robot, slot)
    submit(assessor=robot, token=token, client_token=uuid.uuid4(), grade=None, obstacle="failed")


def set_back(model, pk, by: timedelta, field: str = "created_at") -> None:
    """Let something have happened earlier, which only the tables' owner can."""
    with unguarded([model._meta.db_table]):
        row = model.objects.get(pk=pk)
        model.objects.filter(pk=pk).update(**{field: getattr(row, field) - by})


def test_an_audit_that_waits_an_hour_for_gold_needs_the_manager(campaign, overview):
    audit(campaign=campaign, items_each_time=5, items_in_total=5, seed=3)
    made = Audit.objects.get(campaign=campaign)
    set_back(Audit, made.pk, timedelta(minutes=58))
    assert overview() == {}
    set_back(Audit, made.pk, timedelta(minutes=3))
    need = overview()["Audits wait for the gold tier."]
    assert need["url"] == reverse("console:assessors", args=[campaign.pk]) + "?tier=gold"
    greta = Assessor.objects.get(campaign=campaign, user__username="greta")
    for slot in slots(campaign, "audit", state="open"):
        give(greta, slot, 0)
    assert "Audits wait for the gold tier." not in overview()


def test_a_day_without_a_judgment_needs_the_manager_while_some_are_missing(campaign, overview):
    newest = campaign.computations.latest("id")
    for hours, is_silent in ((23, False), (26, True)):
        last = f"{timezone.now() - timedelta(hours=hours):%Y-%m-%dT%H}"
        with unguarded([Computation._meta.db_table]):
            activity = newest.activity | {"hours": {last: {"bronze": [1, 1]}}}
            Computation.objects.filter(pk=newest.pk).update(activity=activity)
        assert ("Nobody has judged for a day." in overview()) is is_silent
    need = overview()["Nobody has judged for a day."]
    assert need["url"] == reverse("console:assessors", args=[campaign.pk])
    people = [Assessor.objects.get(campaign=campaign, user__username=name) for name in ("bob", "dora")]
    judge_all(campaign, people)
    assert "Nobody has judged for a day." not in overview(), "nothing is missing any more"


def test_a_campaign_in_which_nobody_has_judged_since_it_was_opened_yesterday_is_silent(tmp_path, mia):
    campaign = make_campaign(tmp_path)
    for name, tier in (("ann", "bronze"), ("ben", "bronze"), ("gil", "gold")):
        make_assessor(campaign, name, tier)
    client = Client()
    client.force_login(mia)
    address = reverse("console:campaign", args=[campaign.pk])
    assert b"Nobody has judged for a day." not in client.get(address).content
    opened = Event.objects.get(subject=f"campaign:{campaign.pk}", verb="opened")
    set_back(Event, opened.pk, timedelta(hours=25), "at")
    assert b"Nobody has judged for a day." in client.get(address).content


def test_a_question_needs_the_manager_until_it_is_answered(campaign, overview, mia):
    bob = Assessor.objects.get(campaign=campaign, user__username="bob")
    asked = messages.ask(assessor=bob, text="Which year?")
    need = overview()["A question waits for an answer."]
    assert need["url"] == reverse("console:message-thread", args=[campaign.pk, asked.pk])
    messages.answer(question=Message.objects.get(), text="This one.", sender=mia)
    assert overview() == {}


def test_a_document_in_question_and_a_flag_need_the_manager(campaign, overview):
    first, second = slots(campaign, state="open", topic__topic_id="t2")[:2]
    bob, dora = (Assessor.objects.get(campaign=campaign, user__username=name) for name in ("bob", "dora"))
    give(bob, first, 0)
    give(dora, second, 3)
    made = recompute(campaign=campaign)
    need = overview()["One document is in question."]
    assert need["url"] == reverse("console:adjudication", args=[campaign.pk])
    Flag.objects.create(assessor=bob, computation=made, evidence="weak")
    need = overview()["One assessor is flagged."]
    assert need["url"] == reverse("console:assessors", args=[campaign.pk]) + "?only=flagged"
