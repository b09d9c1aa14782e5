"""What was said about items, for API clients: the log of judgments, items, adjudications, leases; jobs and events."""

import uuid
from datetime import timedelta

import pytest
from api_tools import api_client
from django.utils import timezone
from small_campaign import doc_id, give, lease, make_assessor, make_campaign, slots, true_grade

from analytics.services.exports import qrels_jg_lines
from judging.models import Adjudication, Assessor, Slot
from judging.services.access import visible_jobs
from judging.services.assign import submit
from judging.services.entry import agree
from touchstone.models import Job, User

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice(db):
    return api_client("alice")


@pytest.fixture
def maria(db):
    return api_client("maria")


@pytest.fixture
def rita(db):
    return api_client("rita", "researcher")


@pytest.fixture
def campaign(db, tmp_path):
    return make_campaign(tmp_path)


@pytest.fixture
def judged(campaign):
    """Bob judged three items with a 1, Dora the first of them with a 2; Bob commented on the last."""
    bob, dora = make_assessor(campaign, "bob"), make_assessor(campaign, "dora", tier="silver")
    wanted = slots(campaign)
    give(bob, wanted[0], 1)
    give(dora, wanted[1], 2)
    give(bob, wanted[2], 1)
    token = lease(bob, wanted[4])
    submit(assessor=bob, token=token, client_token=uuid.uuid4(), grade=1, comment="unsure")
    return campaign


@pytest.fixture
def other(db, tmp_path):
    (tmp_path / "other").mkdir()
    return make_campaign(tmp_path / "other")


def there(campaign, part=""):
    return f"/campaigns/{campaign.pk}{part}"


# -- the log --------------------------------------------------------------------------------------------------


def test_the_log_tells_managers_who_said_what_in_the_order_in_which_it_came(alice, judged):
    rows = alice.rows(there(judged, "/judgment-log"), page_size=1)
    said = [(row["topic_id"], row["doc_id"], row["assessor"], row["tier"], row["grade"]) for row in rows]
    assert said == [
        ("t0", doc_id(0, 0), "bob", "bronze", 1),
        ("t0", doc_id(0, 0), "dora", "silver", 2),
        ("t0", doc_id(0, 1), "bob", "bronze", 1),
        ("t0", doc_id(0, 2), "bob", "bronze", 1),
    ]
    assert [row["comment"] for row in rows] == ["", "", "", "unsure"]
    assert {row["purpose"] for row in rows} == {"judge"}


def test_researchers_see_the_pseudonyms_of_exports_and_no_comments(alice, rita, judged):
    rows = rita.rows(there(judged, "/judgment-log"))
    names = {row["assessor"] for row in rows}
    exported = [line.split() for line in qrels_jg_lines(judged, True)]
    assert names == {assessor for _, assessor, _, _ in exported}
    assert len(names) == 2
    assert names.isdisjoint({"bob", "dora"})
    assert {row["comment"] for row in rows} == {""}
    text = str(rows)
    assert "bob" not in text
    assert [row["id"] for row in rows] == [row["id"] for row in alice.rows(there(judged, "/judgment-log"))]


def test_the_log_is_filtered_by_assessor_and_topic(alice, rita, judged):
    path = there(judged, "/judgment-log")
    assert len(alice.rows(path, assessor="bob")) == 3
    assert alice.rows(path, assessor="nobody") == []
    assert len(alice.rows(path, topic_id="t0")) == 4
    assert alice.rows(path, topic_id="t1") == []
    assert len(alice.rows(path, doc_id=doc_id(0, 0), assessor="bob")) == 1
    name = rita.rows(path)[1]["assessor"]
    assert [row["grade"] for row in rita.rows(path, assessor=name)] == [2]
    assert rita.rows(path, assessor="bob") == []
    pk = Assessor.objects.get(user__username="bob").pk
    assert rita.rows(path, assessor=pk) == []


def test_a_judgment_of_another_campaign_is_in_no_log(alice, judged, other):
    give(make_assessor(other, "eve"), slots(other)[0], 3)
    assert len(alice.rows(there(judged, "/judgment-log"))) == 4
    assert len(alice.rows(there(other, "/judgment-log"))) == 1
    assert alice.rows(there(other, "/judgment-log"), assessor="bob") == []


# -- items ----------------------------------------------------------------------------------------------------


def test_items_are_listed_topic_by_topic(rita, campaign):
    rows = rita.rows(there(campaign, "/items"), page_size=10)
    assert [(row["topic_id"], row["doc_id"]) for row in rows] == [
        (f"t{topic}", doc_id(topic, d)) for topic in range(3) for d in range(14)
    ]
    assert [row["doc_id"] for row in rita.rows(there(campaign, "/items"), topic_id="t2", page_size=3)] == [
        doc_id(2, d) for d in range(14)
    ]


def test_an_item_shows_all_that_was_said_about_it(alice, rita, judged, other):
    first = rita.get(there(judged, "/items"), page_size=1)["results"][0]
    alice.post(there(judged, "/adjudications"), 201, item=first["id"], grade=3, reason="the title says so")
    for who, names in ((alice, {"bob", "dora"}), (rita, None)):
        item = who.get(there(judged, f"/items/{first['id']}"))
        assert [row["grade"] for row in item["judgments"]] == [1, 2]
        assert item["gold_grade"] == true_grade("t0", doc_id(0, 0))
        assert [row["grade"] for row in item["adjudications"]] == [3]
        assert names is None or {row["assessor"] for row in item["judgments"]} == names
    nowhere = alice.get(there(judged, f"/items/{uuid.uuid4()}"), 404)
    assert alice.get(there(other, f"/items/{first['id']}"), 404) == nowhere


# -- adjudication ---------------------------------------------------------------------------------------------


def test_decisions_are_made_by_managers_and_all_are_kept(alice, rita, judged, other):
    item, path = str(slots(judged)[0].item_id), there(judged, "/adjudications")
    made = alice.post(path, 201, item=item, grade=3, reason="x")
    assert (made["item"], made["grade"], made["decided_by"]) == (item, 3, "alice")
    assert (made["topic_id"], made["doc_id"]) == ("t0", doc_id(0, 0))
    alice.post(path, 201, item=item, grade=2)
    assert [row["grade"] for row in rita.rows(path)] == [2, 3]
    assert [row["grade"] for row in rita.rows(path, item=item, page_size=1)] == [2, 3]
    rita.post(path, 404, item=item, grade=1)
    foreign = str(slots(other)[0].item_id)
    absent = alice.post(path, 400, item=str(uuid.uuid4()), grade=1)
    assert alice.post(path, 400, item=foreign, grade=1) == absent
    for wrong in (
        {"item": item},
        {"item": item, "grade": 7},
        {"item": item, "grade": "1"},
        {"item": "x", "grade": 1},
    ):
        alice.send("POST", path, 400, wrong)
    assert Adjudication.objects.count() == 2


# -- leases ---------------------------------------------------------------------------------------------------


def test_leases_are_listed_and_taken_back(alice, rita, campaign):
    bob = make_assessor(campaign, "bob")
    tokens = [lease(bob, slots(campaign)[place]) for place in (0, 2, 4)]
    Slot.objects.filter(token=tokens[1]).update(lease_until=timezone.now() - timedelta(seconds=1))
    rows = alice.rows(there(campaign, "/leases"), page_size=2)
    assert [row["token"] for row in rows] == [str(token) for token in tokens]
    assert [row["is_expired"] for row in rows] == [False, True, False]
    assert [row["token"] for row in alice.rows(there(campaign, "/leases"), is_expired="true")] == [
        str(tokens[1])
    ]
    release = there(campaign, f"/leases/{tokens[0]}/release")
    assert alice.post(release) == {"n_released": 1}
    assert alice.post(release) == {"n_released": 0}
    assert alice.post(there(campaign, "/leases/release-expired")) == {"n_released": 1}
    assert [row["token"] for row in alice.rows(there(campaign, "/leases"))] == [str(tokens[2])]
    rita.get(there(campaign, "/leases"), 404)
    assert submit(assessor=bob, token=tokens[0], client_token=uuid.uuid4(), grade=1).grade == 1


def test_a_lease_of_another_campaign_is_not_there(alice, campaign, other):
    token = lease(make_assessor(campaign, "bob"), slots(campaign)[0])
    nowhere = alice.post(there(other, f"/leases/{uuid.uuid4()}/release"), 404)
    assert alice.post(there(other, f"/leases/{token}/release"), 404) == nowhere
    assert Slot.objects.get(token=token).state == "leased"


# -- jobs and events ------------------------------------------------------------------------------------------


def queued(kind, by=None, **payload):
    return Job.objects.create(kind=kind, payload=payload, requested_by=by)


def test_jobs_are_seen_by_whoever_sees_what_they_are_about(alice, maria, rita, campaign, other):
    alice.put(f"/collections/{other.collection_id}/members", is_restricted=True, members=[])
    mine = queued("estimate", campaign=str(campaign.pk))
    theirs = queued("estimate", campaign=str(other.pk))
    imported = queued("import", collection=str(campaign.collection_id), campaign=None)
    hidden = queued("import", collection=str(other.collection_id), campaign=None)
    analysis = queued("analysis", campaign=str(campaign.pk))
    about_nothing = queued("webhook", maria.user)
    everywhere = {mine, theirs, imported, hidden, analysis}
    assert set(visible_jobs(alice.user)) == everywhere
    assert set(visible_jobs(maria.user)) == {mine, imported, analysis, about_nothing}
    assert set(visible_jobs(rita.user)) == {analysis}
    assert set(visible_jobs(User.objects.create(username="bob"))) == set()
    assert {row["id"] for row in maria.rows("/jobs", page_size=1)} == {
        str(job.pk) for job in (mine, imported, analysis, about_nothing)
    }
    assert [row["id"] for row in maria.rows("/jobs", kind="import")] == [str(imported.pk)]
    assert maria.rows("/jobs", state="done") == []
    assert [row["id"] for row in maria.rows("/jobs", requested_by="maria")] == [str(about_nothing.pk)]
    nowhere = maria.get(f"/jobs/{uuid.uuid4()}", 404)
    for job in (theirs, hidden):
        assert maria.get(f"/jobs/{job.pk}", 404) == nowhere
        assert maria.post(f"/jobs/{job.pk}/cancel", 404) == nowhere
        assert maria.client.get(f"/jobs/{job.pk}/").status_code == 404
        assert alice.client.get(f"/jobs/{job.pk}/").status_code == 200
    theirs.refresh_from_db()
    assert theirs.state == "queued"


def test_jobs_of_what_was_deleted_are_gone_with_it(alice, campaign):
    job = queued("estimate", campaign=str(campaign.pk))
    alice.get(f"/jobs/{job.pk}")
    alice.post(there(campaign, "/delete"), confirmation=campaign.name)
    alice.get(f"/jobs/{job.pk}", 404)


def test_a_job_is_cancelled(alice, rita, campaign):
    job = queued("analysis", campaign=str(campaign.pk))
    found = rita.get(f"/jobs/{job.pk}")
    assert (found["state"], found["percent"], found["requested_by"]) == ("queued", 0, None)
    assert rita.post(f"/jobs/{job.pk}/cancel")["state"] == "cancelled"
    assert rita.post(f"/jobs/{job.pk}/cancel")["state"] == "cancelled"
    estimate = queued("estimate", campaign=str(campaign.pk))
    rita.post(f"/jobs/{estimate.pk}/cancel", 404)
    assert alice.post(f"/jobs/{estimate.pk}/cancel")["state"] == "cancelled"


def test_events_are_filtered_by_verb_actor_and_time(alice, campaign):
    alice.post(there(campaign, "/state"), state="closed")
    middle = timezone.now()
    alice.post(there(campaign, "/state"), state="open")
    path = there(campaign, "/events")
    assert [row["verb"] for row in alice.rows(path, actor="alice", page_size=1)] == ["opened", "closed"]
    assert [row["actor"] for row in alice.rows(path, verb="closed")] == ["alice"]
    assert [row["verb"] for row in alice.rows(path, since=middle.isoformat())] == ["opened"]
    assert "opened" in [row["verb"] for row in alice.rows(path, until=middle.isoformat())]
    assert alice.rows(path, actor="nobody") == []
    alice.get(path, 400, since="yesterday")


def test_events_of_an_assessor_are_his_alone(alice, campaign, other):
    bob = make_assessor(campaign, "bob")
    alice.patch(f"/campaigns/{campaign.pk}/assessors/{bob.pk}", team="red")
    agree(assessor=bob)
    path = f"/assessors/{bob.pk}/events"
    assert [row["verb"] for row in alice.rows(there(campaign, path))] == ["agreed"]
    alice.get(there(other, path), 404)
