"""The assessor's pages and requests over HTTP: what they answer, and what they must not tell."""

import re
import uuid

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from judging.models import Assessor, Campaign, Collection, Document, Grade, Item, Judgment, Scale, Slot, Topic
from judging.services import assign
from touchstone.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def bob() -> Assessor:
    """An assessor of a campaign with an item of each purpose."""
    scale = Scale.objects.create(name="two")
    Grade.objects.bulk_create(Grade(scale=scale, value=v, label=f"grade {v}", gain=v) for v in range(2))
    collection = Collection.objects.create(name="Needs")
    campaign = Campaign.objects.create(
        collection=collection, scale=scale, name="Campaign", state=Campaign.State.OPEN, gold_check_rate=0
    )
    topic = Topic.objects.create(collection=collection, topic_id="t1", title="A need")
    for position, purpose in enumerate(["judge", "judge", "judge", "check"]):
        document = Document.objects.create(collection=collection, doc_id=f"d{position}", text="Text")
        item = Item.objects.create(campaign=campaign, topic=topic, document=document)
        Slot.objects.create(
            item=item, purpose=purpose, number=1, campaign=campaign, topic=topic, position=position
        )
    return Assessor.objects.create(campaign=campaign, user=User.objects.create(username="bob"))


@pytest.fixture
def post(client, bob):
    client.force_login(bob.user)

    def send(name, **body):
        path = reverse(f"judging:{name}", args=[bob.campaign_id])
        return client.post(path, body, content_type="application/json")

    return send


def judgment_of(post, **body):
    token = post("claim").json()["item"]["token"]
    return {"token": token, "client_token": str(uuid.uuid4()), "grade": 1, **body}


def facts(client) -> dict[str, str]:
    """The figures on the campaign's card."""
    page = client.get(reverse("judging:home")).content.decode()
    return dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page))


def test_the_home_page_does_not_tell_a_gold_check_from_an_ordinary_item(client, bob, post, monkeypatch):
    Campaign.objects.update(gold_check_rate=0.5)
    monkeypatch.setattr(assign._random, "random", lambda: 0.0)  # the coin always falls for a check
    seen = [facts(client)]
    for _ in range(3):
        assert post("submit", **judgment_of(post)).status_code == 200
        seen.append(facts(client))
    purposes = list(Judgment.objects.order_by("id").values_list("slot__purpose", flat=True))
    assert purposes == ["judge", "check", "judge"]
    assert seen == [{"Judged by you": str(n), "Your time": "0 minutes"} for n in range(4)]


def test_the_home_page_does_not_even_look_at_the_slots(client, bob):
    client.force_login(bob.user)
    with CaptureQueriesContext(connection) as queries:
        assert bob.campaign.name in client.get(reverse("judging:home")).content.decode()
    assert queries.captured_queries
    assert not any("judging_slot" in query["sql"] for query in queries)


def test_a_stored_judgment_is_acknowledged_when_the_database_is_too_busy_for_the_next_item(
    bob, post, monkeypatch
):
    body = judgment_of(post)
    claim = assign.claim

    def busy(**_):
        raise OperationalError("canceling statement due to lock timeout")

    monkeypatch.setattr(assign, "claim", busy)
    answer = post("submit", **body)
    assert answer.status_code == 200
    assert answer.json() == {
        "saved": {"token": body["token"], "grade": 1},
        "item": None,
        "reason": "busy",
        "progress": {"judged": 1, "goal": None},
    }
    assert str(Judgment.objects.get().client_token) == body["client_token"]
    monkeypatch.setattr(assign, "claim", claim)
    following = post("claim").json()
    assert following["item"]["token"] != body["token"]


def test_a_lock_that_is_held_too_long_leaves_the_connection_usable(bob, post, monkeypatch):
    body = judgment_of(post)

    def waits_too_long(**_):
        with assign.transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = '20ms'")
            cursor.execute("SELECT pg_sleep(5)")

    monkeypatch.setattr(assign, "claim", waits_too_long)
    assert post("submit", **body).json()["reason"] == "busy"
    monkeypatch.undo()
    assert post("claim").json()["progress"]["judged"] == 1


def test_a_database_too_busy_to_store_answers_503_and_acknowledges_nothing(bob, post, monkeypatch):
    body = judgment_of(post)

    def busy(**_):
        raise OperationalError("canceling statement due to lock timeout")

    monkeypatch.setattr(assign, "submit", busy)
    answer = post("submit", **body)
    assert answer.status_code == 503
    assert "saved" not in answer.json()


def test_a_paused_assessor_gets_his_judgment_stored_and_the_reason_for_no_next_item(bob, post):
    body = judgment_of(post)
    Assessor.objects.update(status=Assessor.Status.SUSPENDED)
    answer = post("submit", **body).json()
    assert answer["saved"]["grade"] == 1
    assert answer["item"] is None
    assert answer["reason"] == "A manager has paused your judging in this campaign"


def test_the_answers_the_page_tells_apart_have_the_types_it_looks_for(client, bob, post):
    """judge.js drops a judgment for a lease that is unknown, and keeps it when nobody is logged in."""
    body = judgment_of(post)
    unknown = post("submit", **{**body, "token": str(uuid.uuid4())})
    assert (unknown.status_code, unknown.json()["type"]) == (404, "/problems/LeaseUnknown")
    client.logout()
    nobody = post("submit", **body)
    assert (nobody.status_code, nobody.json()["type"]) == (403, "/problems/NotAuthenticated")


def test_a_request_without_csrf_token_is_told_apart_by_type_and_title(bob):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(bob.user)
    answer = strict.post(
        reverse("judging:claim", args=[bob.campaign_id]), {}, content_type="application/json"
    )
    assert (answer.status_code, answer.json()["type"]) == (403, "/problems/PermissionDenied")
    assert answer.json()["title"].startswith("CSRF")


def test_an_assessor_of_one_open_campaign_starts_on_its_judging_screen(client, bob):
    client.force_login(bob.user)
    assert client.get("/").url == f"/judge/{bob.campaign_id}/"
    Assessor.objects.filter(pk=bob.pk).update(status="suspended")
    assert client.get("/").url == "/judge/"
