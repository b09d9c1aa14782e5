"""The assessor's pages and requests over HTTP: what they answer, and what they must not tell."""

import csv
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
    token = post("claim").json()["items"][0]["token"]
    return {"token": token, "client_token": str(uuid.uuid4()), "grade": 1, **body}


def facts(client) -> dict[str, str]:
    """The figures on the campaign's card."""
    page = client.get(reverse("judging:home")).content.decode()
    return dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page))


def test_the_home_page_does_not_tell_a_gold_check_from_an_ordinary_item(client, bob, post, monkeypatch):
    Campaign.objects.update(gold_check_rate=0.5)
    monkeypatch.setattr(assign, "coins", lambda key, moment, n: [0.0] * n)  # always a check
    seen = [facts(client)]
    for _ in range(4):
        assert post("submit", **judgment_of(post)).status_code == 200
        seen.append(facts(client))
    purposes = list(Judgment.objects.order_by("id").values_list("slot__purpose", flat=True))
    assert sorted(purposes) == ["check", "judge", "judge", "judge"]
    assert seen == [{"Judged by you": str(n), "Your time": "0 min"} for n in range(5)]


def test_the_home_page_does_not_even_look_at_the_slots(client, bob):
    client.force_login(bob.user)
    with CaptureQueriesContext(connection) as queries:
        assert bob.campaign.name in client.get(reverse("judging:home")).content.decode()
    assert queries.captured_queries
    assert not any("judging_slot" in (query["sql"] or "") for query in queries)


def too_busy(**_):
    raise OperationalError("canceling statement due to lock timeout")


def test_a_stored_judgment_is_acknowledged_when_the_database_is_too_busy_for_the_next_item(
    bob, post, monkeypatch
):
    Slot.objects.filter(
        position__gt=0
    ).delete()  # after the first one, nothing: it looks twice before it says so
    body = judgment_of(post)
    monkeypatch.setattr(assign, "claim_as", too_busy)
    answer = post("submit", **body)
    assert answer.status_code == 200
    assert answer.json() == {
        "saved": {"token": body["token"], "grade": 1, "obstacle": ""},
        "items": [],
        "reason": "busy",
        "progress": {"judged": 1, "goal": None},
    }
    assert str(Judgment.objects.get().client_token) == body["client_token"]
    monkeypatch.undo()
    assert post("claim").json()["reason"] == "no work"


@pytest.mark.django_db(transaction=True)
def test_a_lock_that_is_held_too_long_stores_nothing_and_leaves_the_connection_usable(bob, post, monkeypatch):
    body = judgment_of(post)

    def waits_too_long(*_, **__):
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = '20ms'")
            cursor.execute("SELECT pg_sleep(5)")

    monkeypatch.setattr(assign, "_claim", waits_too_long)
    answer = post("submit", **body)
    assert answer.status_code == 503
    assert "saved" not in answer.json()
    assert not Judgment.objects.exists()
    monkeypatch.undo()
    assert post("submit", **body).json()["progress"]["judged"] == 1


def test_submit_and_next_takes_four_statements_in_one_transaction(bob, post):
    body = {**judgment_of(post), "token": uuid.UUID(judgment_of(post)["token"]), "n": 2}
    with CaptureQueriesContext(connection) as queries:
        assign.submit_and_claim(user_id=bob.user_id, campaign_id=bob.campaign_id, **body)
    kept = [query["sql"] for query in queries if "SAVEPOINT" not in (query["sql"] or "prepared")]
    assert len(kept) == 4, kept


def test_a_whole_request_takes_at_most_eight_statements(bob, post):
    body = judgment_of(post)
    with CaptureQueriesContext(connection) as queries:
        assert post("submit", **body).status_code == 200
    assert len(queries) <= 8, [query["sql"] for query in queries]


def test_a_paused_assessor_gets_his_judgment_stored_and_the_reason_for_no_next_item(bob, post):
    body = judgment_of(post)
    Assessor.objects.update(status=Assessor.Status.SUSPENDED)
    answer = post("submit", **body).json()
    assert answer["saved"]["grade"] == 1
    assert answer["items"] == []
    assert answer["reason"] == "A manager has paused your judging in this campaign"


def test_ones_own_data_are_complete_and_tell_nothing_about_what_they_were_for(client, bob, post):
    post("submit", **judgment_of(post, comment="=1+1, a comment"))
    body = judgment_of(post)
    del body["grade"]
    post("submit", **body, obstacle="topic")
    rows = list(csv.reader(client.get(f"/judge/{bob.campaign_id}/my-data/").content.decode().splitlines()))
    assert rows[0] == ["when", "topic", "document", "grade", "cannot judge", "comment", "active seconds"]
    assert [row[1:6] for row in rows[1:]] == [
        ["A need", "", "1", "", "'=1+1, a comment"],
        ["A need", "", "", "topic", ""],
    ]
    client.force_login(User.objects.create(username="charlie"))
    assert client.get(f"/judge/{bob.campaign_id}/my-data/").status_code == 404


def test_a_program_gets_many_items_at_once_with_their_texts(bob, post):
    items = post("claim", n=50, with_text=True).json()["items"]
    assert {item["document"]["text"] for item in items} == {"Text"}
    assert len(items) == 4
    assert post("claim", n=51).status_code == 400


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
