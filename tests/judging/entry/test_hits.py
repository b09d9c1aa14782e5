"""HITs: a crowd worker comes in by the framed page."""

import uuid
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core import signing
from django.test import Client
from django.urls import reverse
from entry_campaign import MARKET, WORKER, come_in, directives, hit_page, set_entry, start_of, text_of
from small_campaign import make_campaign

from judging.models import Assessor, Campaign, Participant
from touchstone.models import User

pytestmark = pytest.mark.django_db


def test_a_worker_comes_in_by_the_framed_page_and_is_the_same_account_next_time(hit_campaign):
    client, answer = come_in(hit_campaign)
    bob = Assessor.objects.get()
    assert answer.url == reverse("judging:judge", args=[hit_campaign.pk])
    assert client.get(answer.url).status_code == 200
    assert (bob.tier, bob.kind, bob.quota, bob.user.role) == ("bronze", "human", 3, "assessor")
    assert not bob.user.has_usable_password()
    assert WORKER not in bob.user.username
    come_in(hit_campaign, assignmentId="3SECOND")
    assert (User.objects.count(), Assessor.objects.count()) == (1, 1)
    assert Participant.objects.get().session == "3SECOND"
    come_in(hit_campaign, workerId="A2OTHER")
    assert (User.objects.count(), Participant.objects.count()) == (2, 2)


def test_the_framed_page_submits_to_the_market_and_may_be_framed_by_it_alone(hit_campaign):
    page = hit_page(hit_campaign)
    assert "X-Frame-Options" not in page
    policy = directives(page)
    assert (policy["frame-ancestors"], policy["form-action"], policy["default-src"]) == (
        MARKET,
        MARKET,
        "'none'",
    )
    assert "script-src" not in policy
    body = text_of(page)
    assert f'action="{MARKET}/mturk/externalSubmit"' in body
    assert '<input type="hidden" name="assignmentId" value="3ASSIGN">' in body
    assert 'name="completion_code"' in body
    assert "csrf" not in body  # ours is nobody else's business


def test_the_framed_page_works_without_cookies_and_sets_none(hit_campaign, alice):
    assert not hit_page(hit_campaign).cookies
    preview = hit_page(hit_campaign, assignmentId="ASSIGNMENT_ID_NOT_AVAILABLE", workerId="")
    assert not preview.cookies
    client = Client()
    client.force_login(alice)
    assert "alice" not in text_of(hit_page(hit_campaign, client))


def test_before_the_hit_is_accepted_the_page_is_a_preview_with_the_guidelines(hit_campaign):
    Campaign.objects.update(guidelines="Relevant is **what answers**.<script>alert(1)</script>")
    page = text_of(hit_page(hit_campaign, assignmentId="ASSIGNMENT_ID_NOT_AVAILABLE", workerId="", hitId=""))
    assert "This is a preview" in page
    assert "<strong>what answers</strong>" in page
    assert "<script>" not in page
    assert "<form" not in page
    assert "/start/" not in page


@pytest.mark.parametrize(
    "elsewhere",
    [
        "", "https://evil.example", "https://www.market.example.evil.example", "http://www.market.example",
        "https://www.market.example@evil.example", "https://www.market.example:444", "javascript:alert(1)",
        "//www.market.example", "https://www.market.example/../evil", "https://www.market.example//",
        "https://www.market.example\\@evil.example", "https://WWW.MARKET.EXAMPLE", "https://www.market.example\n",
    ],
)  # fmt: skip
def test_the_code_is_submitted_to_no_other_site(hit_campaign, elsewhere):
    page = hit_page(hit_campaign, turkSubmitTo=elsewhere)
    assert page.status_code == 400
    assert "<form" not in text_of(page)
    assert "Nothing was stored" in text_of(page)


HOSTILE = [
    {"workerId": ""}, {"hitId": ""}, {"assignmentId": ""}, {"workerId": "W" * 201}, {"workerId": "a b"},
    {"workerId": "<script>alert(1)</script>"}, {"workerId": "{{%PROLIFIC_PID%}}"}, {"workerId": "Müller"},
    {"assignmentId": "'; DROP TABLE"}, {"workerId": "A\n"}, {"hitId": "\u202eabc"},
]  # fmt: skip


@pytest.mark.parametrize("wrong", HOSTILE)
def test_odd_parameters_of_a_hit_get_one_clear_page_and_store_nothing(hit_campaign, wrong):
    page = hit_page(hit_campaign, **wrong)
    assert page.status_code == 400
    body = text_of(page)
    assert "This link is not complete" in body
    assert "<script>" not in body
    assert (User.objects.count(), Participant.objects.count()) == (0, 0)


def test_the_way_to_the_judging_is_signed_limited_in_time_and_for_one_campaign(
    hit_campaign, tmp_path, monkeypatch
):
    start = start_of(hit_campaign)
    signed = parse_qs(urlsplit(start).query)["visitor"][0]
    path = urlsplit(start).path
    forged = signing.dumps([WORKER, "3HIT", "3ASSIGN"], salt="another salt")
    for wrong in ("", "nonsense", signed[:-1], forged, signed.replace(":", "", 1)):
        assert Client().get(path, {"visitor": wrong}).status_code == 400
        assert Client().post(path, {"visitor": wrong}).status_code == 400
    (tmp_path / "other").mkdir()
    other = set_entry(make_campaign(tmp_path / "other"), "hit")
    there = reverse("judging:hit-start", args=[other.entry_key])
    assert Client().post(there, {"visitor": signed}).status_code == 400
    monkeypatch.setattr("judging.views.crowd.START_SECONDS", -1)
    assert "has expired" in text_of(Client().get(path, {"visitor": signed}))
    assert User.objects.count() == 0


def test_a_campaign_that_is_no_hit_has_no_such_page(study_campaign):
    assert hit_page(study_campaign).status_code == 404
    assert Client().get(reverse("judging:hit", args=[uuid.uuid4()])).status_code == 404
    Campaign.objects.update(entry="closed")
    assert Client().get(reverse("judging:study", args=[study_campaign.entry_key])).status_code == 404
