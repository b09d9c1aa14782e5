"""Studies: a participant comes in by a link, once."""

import threading

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.urls import reverse
from entry_campaign import (
    BOTH_SPELLINGS,
    MARKET,
    WORKER,
    directives,
    hit_page,
    set_entry,
    study_path,
    text_of,
)
from small_campaign import judge_all, make_assessor, make_campaign

from judging.models import Assessor, Campaign, Participant
from judging.services import crowd
from touchstone.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def campaign(tmp_path):
    """Made for each test: one of them commits."""
    return make_campaign(tmp_path)


@pytest.mark.parametrize("parameters", BOTH_SPELLINGS)
def test_a_participant_comes_in_by_a_study_link_in_both_spellings(client, study_campaign, parameters):
    page = client.get(study_path(study_campaign), parameters)
    assert page.status_code == 200
    assert User.objects.count() == 0  # a link preview makes no account
    assert "sessionid" not in page.cookies
    answer = client.post(study_path(study_campaign), page.context["fields"])
    assert answer.url == reverse("judging:judge", args=[study_campaign.pk])
    row = Participant.objects.get()
    assert (row.participant, row.study, row.session) == (WORKER, "5study", "6session")


@pytest.mark.parametrize(
    "wrong", [{}, {"PROLIFIC_PID": "{{%PROLIFIC_PID%}}"}, {"STUDY_ID": ""}, {"SESSION_ID": "x" * 201}]
)
def test_odd_parameters_of_a_study_get_one_clear_page_and_store_nothing(client, study_campaign, wrong):
    parameters = {**BOTH_SPELLINGS[0], **wrong} if wrong else {}
    for answer in (
        client.get(study_path(study_campaign), parameters),
        client.post(study_path(study_campaign), parameters),
    ):
        assert answer.status_code == 400
        assert "Nothing was stored" in text_of(answer)
    assert (User.objects.count(), Participant.objects.count()) == (0, 0)


def test_a_manager_who_opens_a_crowd_link_is_told_and_stays_who_she_is(manager, alice, study_campaign):
    for answer in (
        manager.get(study_path(study_campaign), BOTH_SPELLINGS[0]),
        manager.post(study_path(study_campaign), BOTH_SPELLINGS[0]),
    ):
        assert answer.status_code == 409
        assert "You are logged in as alice" in text_of(answer)
    assert User.objects.count() == 1
    assert manager.session["_auth_user_id"] == str(alice.pk)
    back = manager.post(reverse("logout"), {"next": answer.context["next"]})
    page = manager.get(back.url)
    assert page.status_code == 200
    assert "Start" in text_of(page)


def test_another_participant_in_the_same_browser_is_told_too(client, study_campaign):
    client.post(study_path(study_campaign), BOTH_SPELLINGS[0])
    other = {**BOTH_SPELLINGS[0], "PROLIFIC_PID": "another"}
    assert client.post(study_path(study_campaign), other).status_code == 409
    assert Participant.objects.count() == 1
    assert (
        client.get(study_path(study_campaign), BOTH_SPELLINGS[1]).status_code == 200
    )  # the same one goes on


def test_a_strange_site_cannot_press_the_button(study_campaign):
    strict = Client(enforce_csrf_checks=True)
    assert strict.post(study_path(study_campaign), BOTH_SPELLINGS[0]).status_code == 403
    assert User.objects.count() == 0


@pytest.mark.parametrize("state", ["draft", "closed"])
def test_a_campaign_that_is_not_open_says_so_kindly_and_makes_nobody(client, study_campaign, state):
    Campaign.objects.update(state=state)
    for answer in (
        client.get(study_path(study_campaign), BOTH_SPELLINGS[0]),
        client.post(study_path(study_campaign), BOTH_SPELLINGS[0]),
    ):
        assert answer.status_code == 409
        assert "return the task" in text_of(answer)
    set_entry(study_campaign, "hit")
    framed = hit_page(study_campaign)
    assert framed.status_code == 409
    assert directives(framed)["frame-ancestors"] == MARKET  # or the worker would see an empty frame
    assert User.objects.count() == 0


def test_nobody_new_is_let_in_when_every_document_is_judged(client, study_campaign):
    judge_all(study_campaign, [make_assessor(study_campaign, name) for name in ("bob", "ben")])
    answer = client.post(study_path(study_campaign), BOTH_SPELLINGS[0])
    assert answer.status_code == 409
    assert "All places are taken" in text_of(answer)
    assert Participant.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_one_worker_who_comes_eight_times_at_once_is_one_account(study_campaign):
    start, visitor = threading.Barrier(8), crowd.study_visitor(BOTH_SPELLINGS[0])
    came = []

    def one():
        start.wait()
        try:
            came.append(crowd.enter(campaign=study_campaign, visitor=visitor).pk)
        finally:
            connection.close()

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(came) == 8
    assert len(set(came)) == 1
    assert (User.objects.count(), Assessor.objects.count(), Participant.objects.count()) == (1, 1, 1)


def test_postgresql_keeps_participant_and_assessor_in_one_campaign(campaign, tmp_path):
    (tmp_path / "other").mkdir()
    bob = make_assessor(make_campaign(tmp_path / "other"), "bob")
    with pytest.raises(IntegrityError), transaction.atomic():
        Participant.objects.create(campaign=campaign, assessor=bob, participant="X")
