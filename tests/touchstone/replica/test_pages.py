"""Researchers' pages and exports are read from the replica; whatever must be known at once is not."""

import copy
import uuid

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import InternalError, connections
from django.db.models.functions import Now
from django.http import HttpResponse
from django.urls import reverse
from read_replica import address, asked, body_of, client_of, is_replica, outcomes, where
from small_campaign import lease, make_assessor, slots
from worlds import make_user, routes

from judging.models import CollectionMember
from judging.services.access import sees
from touchstone import counters, health, replica
from touchstone.models import Event, Job, User
from touchstone.settings import replica_from_url

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("replica")]
READ = sorted(route.name for route in routes() if hasattr(route.view, "reads_replica"))
# Pages of a researcher that the primary answers, and why.
OF_THE_PRIMARY = {
    "console:results": "lists what one may see",
    "console:rounds": "lists what one may see",
    "console:run-upload": "a form, and its job",
    "console:releases": "what one has just asked for",
    "console:release-new": "a form",
    "console:release": "what one has just asked for",
    "console:release-download": "a file",
}


# -- which pages ----------------------------------------------------------------------------------------------------


def test_every_page_of_a_researcher_is_read_from_the_replica_or_says_why_not():
    pages = {route.name for route in routes() if route.pattern.startswith(("results/", "^results/"))}
    sent = {name for name in pages if _refuses_get(name)}
    assert pages - sent - set(READ) == set(OF_THE_PRIMARY)
    assert len(READ) == 13


def _refuses_get(name):
    route = next(one for one in routes() if one.name == name)
    return "GET" not in _methods_of(route.view)


def _methods_of(view):
    """The methods that `require_http_methods` lets through."""
    while view is not None:
        for cell in view.__closure__ or ():
            if isinstance(cell.cell_contents, list) and "POST" in cell.cell_contents:
                return cell.cell_contents
        view = getattr(view, "__wrapped__", None)
    return ["GET"]


@pytest.mark.parametrize("name", READ)
def test_a_page_read_from_the_replica_is_the_same_page(stand, name):
    _, world = stand
    client = client_of("rita")
    asked_of_it = []

    def note(execute, sql, params, many, context):
        asked_of_it.append(sql)
        return execute(sql, params, many, context)

    with connections[replica.ALIAS].execute_wrapper(note):
        there = client.get(address(world, name))
        found = body_of(there)
    assert outcomes() == {"replica": 1}
    assert there.status_code == 200
    assert len(asked_of_it) > 1
    client.cookies[settings.OWN_WRITE_COOKIE] = "1"
    here = client.get(address(world, name))
    assert outcomes() == {"replica": 1, "own_write": 1}
    assert body_of(here) == found
    assert not is_replica()


def test_a_write_in_such_a_page_fails_loudly(stand):
    def view(request):
        Event.objects.create(verb="x", subject="y")
        return HttpResponse()

    with pytest.raises(InternalError, match="read-only transaction"):
        asked(view)
    assert asked(view, wrote="1").status_code == 200, "the control: the primary would take it"


def test_what_is_told_of_this_moment_is_the_primarys(stand):
    def view(request):
        with replica.primary():
            return where()

    assert (asked(view).content, asked(where).content) == (b"primary", b"replica")


def test_a_form_is_the_primarys(stand):
    assert asked(where, method="post").content == b"primary"
    assert outcomes() == {}


# -- who must see more ----------------------------------------------------------------------------------------------


def test_a_permission_that_was_taken_away_a_moment_ago_holds(stand):
    _, world = stand
    rita, client = User.objects.get(username="rita"), client_of("rita")
    page = address(world, "console:pairs")
    assert client.get(page).status_code == 200
    CollectionMember.objects.filter(user=rita).delete()  # the replica knows nothing of it
    with replica.reading():
        assert sees(rita, {"campaign_id": world.campaign.pk}), "the control: it would have let her in"
    assert client.get(page).status_code == 404
    client.logout()
    assert client.get(page).status_code == 302


def test_a_judgment_just_submitted_is_seen_by_its_author_and_not_yet_by_others(stand):
    _, world = stand
    author = make_assessor(world.campaign, "mara")
    slot = next(one for one in slots(world.campaign, state="open"))
    name = f"{slot.item.topic.topic_id} 0 {slot.item.document.doc_id} "
    mara, rita = client_of("mara"), client_of("rita")
    body = {"token": str(lease(author, slot)), "client_token": str(uuid.uuid4()), "grade": 1}
    export = reverse("console:export", args=[world.campaign.pk, "qrels"])
    answer = mara.post(reverse("judging:submit", args=[world.campaign.pk]), body, "application/json")
    assert answer.status_code in (200, 201)
    assert answer.cookies[settings.OWN_WRITE_COOKIE]["max-age"] == 10
    assert name in body_of(mara.get(export))
    assert name not in body_of(rita.get(export)), "the control: the replica does not have it"
    assert outcomes() == {"own_write": 1, "replica": 1}
    del mara.cookies[settings.OWN_WRITE_COOKIE]  # as the browser does after ten seconds
    assert name not in body_of(mara.get(export))


def test_nobody_but_who_reads_from_it_has_something_to_remember(stand):
    _, world = stand
    heartbeat = reverse("judging:heartbeat", args=[world.campaign.pk])
    assert settings.OWN_WRITE_COOKIE not in client_of("bob").post(heartbeat, {}, "application/json").cookies
    mara = client_of("mara")
    assert settings.OWN_WRITE_COOKIE not in mara.get(address(world, "console:pairs")).cookies
    assert settings.OWN_WRITE_COOKIE in mara.post(heartbeat, {}, "application/json").cookies
    job = Job.objects.create(kind="estimate", payload={}, requested_by=User.objects.get(username="mara"))
    page = reverse("job", args=[job.pk])
    assert settings.OWN_WRITE_COOKIE not in mara.get(page).cookies
    Job.objects.filter(pk=job.pk).update(state=Job.State.DONE, finished_at=Now())
    assert settings.OWN_WRITE_COOKIE in mara.get(page).cookies, "what it leads to is new"


def test_what_has_not_arrived_there_yet_is_found(stand):
    _, world = stand
    campaign = copy.copy(world.campaign)
    campaign.pk, campaign.entry_key, campaign.name = uuid.uuid4(), uuid.uuid4(), "made a moment ago"
    page = reverse("console:export", args=[campaign.pk, "qrels"])
    client = client_of("rita")
    assert client.get(page).status_code == 404
    campaign.save(force_insert=True)
    assert body_of(client.get(page)) == ""
    assert outcomes() == {"unknown": 1}


# -- the settings ---------------------------------------------------------------------------------------------------


def test_the_address_of_a_replica():
    made = replica_from_url("postgresql://touchstone_web:x@replica.example.org/touchstone")
    assert (made["HOST"], made["USER"]) == ("replica.example.org", "touchstone_web")
    assert made["OPTIONS"]["connect_timeout"] == 2
    with pytest.raises(ImproperlyConfigured, match="READ_DATABASE_URL: pages read as touchstone_web"):
        replica_from_url("postgresql://touchstone_read:x@replica.example.org/touchstone")


def test_without_one_nothing_is_counted_and_nothing_remembered(client, tmp_path, settings):
    settings.VAR = tmp_path
    counters._forget()
    assert not replica.is_there()
    assert asked(where).content == b"primary"
    assert outcomes() == {}
    mara = make_user("mara without", "manager")
    client.force_login(mara)
    assert settings.OWN_WRITE_COOKIE not in client.post("/language/", {"language": "en"}).cookies
    assert "replica" not in health.look().checks
    counters._forget()
