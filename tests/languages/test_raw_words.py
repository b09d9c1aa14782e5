"""No word of an assessor's page is left untranslated: under a catalogue of brackets, only data stays outside."""

import json
import re

import pytest
from bracketed import (
    CODE,
    LANGUAGES,
    letterless_campaign,
    letterless_training,
    outside,
    texts_of_page,
    write_brackets,
)
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError
from django.test import Client
from django.urls import reverse
from entry_campaign import BOTH_SPELLINGS, hit_parameters, set_entry, study_path

from judging.models import Assessor, Campaign, Participant
from judging.services import assign, entry, messages, training
from touchstone import links
from touchstone.models import User

pytestmark = pytest.mark.django_db


def assessor(campaign, name="4242", **fields):
    user, _ = User.objects.get_or_create(username=name)
    return Assessor.objects.create(campaign=campaign, user=user, **fields)


@pytest.fixture(scope="module")
def brackets(tmp_path_factory):
    return write_brackets(tmp_path_factory.mktemp("locale"))


@pytest.fixture
def bracketed(brackets, settings):
    """Serve the language in which every message stands in brackets."""
    settings.LANGUAGES = LANGUAGES
    settings.LOCALE_PATHS = [brackets, *settings.LOCALE_PATHS]


def client_of(user=None) -> Client:
    client = Client(raise_request_exception=False, headers={"accept-language": CODE})
    if user is not None:
        client.force_login(user)
    return client


def check(answer, status=200) -> str:
    """Check that the answer is a page in brackets, from right to left; return its text."""
    assert answer.status_code == status, answer.content.decode()[:500]
    html = answer.content.decode()
    assert '<html lang="he" dir="rtl">' in html or "<article" in html or 'class="note"' in html
    assert outside(texts_of_page(html)) == []
    return html


@pytest.mark.parametrize("planted", ["<p>Hello</p>", '<a title="Hello">1</a>', "⟦In⟧ <b>and</b> ⟦out⟧"])
def test_a_planted_raw_word_is_found(planted):
    assert len(outside(texts_of_page(f"<p>⟦Fine ⟦nested⟧ <b>words</b>⟧ 12 Touchstone</p>{planted}"))) == 1


def test_the_front_door(bracketed, settings, tmp_path):
    settings.VAR, settings.DEMO = tmp_path, True
    logins = [{"username": "1", "password": "2", "role": role} for role in ("manager", "gold assessor")]
    (tmp_path / "demo.json").write_text(json.dumps(logins))
    check(client_of().get("/"))
    check(client_of().get("/login/"))
    check(client_of().post("/login/", {"username": "1", "password": "2"}))
    check(client_of().post("/login/", {"username": "", "password": ""}))
    settings.LOGIN_TRIES = 0
    check(client_of().post("/login/", {"username": "3", "password": "4"}), 429)


def test_the_links_into_an_account_and_ones_own_account(bracketed):
    mia = User.objects.create(username="99", role=User.Role.MANAGER)
    check(client_of().get("/login/forgotten/"))
    check(client_of().get(f"/login/password/{'x' * 43}/"), 404)
    for role in User.Role.values:
        _, token = links.invite(role=role, actor=mia)
        path = f"/login/invited/{token}/"
        check(client_of().get(path))
    check(client_of().post(path, {"username": "99", "password": "1", "repeated": "2"}), 400)
    check(client_of(mia).get(path))
    _, token = links.make_password_link(user=mia, actor=None)
    page = client_of().get(f"/login/password/{token}/")
    check_without(page.context["proposal"], page)
    check(client_of().post(f"/login/password/{token}/", {"password": "1"}), 400)


def check_without(data, page):
    """Check a page in which this word is data."""
    page.content = page.content.replace(data.encode(), b"1")
    check(page)


def test_the_home_page(bracketed):
    bob = assessor(letterless_campaign())
    client = client_of(bob.user)
    mia = User.objects.create(username="99", role=User.Role.MANAGER)
    messages.send(assessor=bob, text="1 2 3", sender=mia)
    assert "99" in check(client.get("/judge/"))
    check(client_of(User.objects.create(username="5")).get("/judge/"))
    check(client_of(mia).get("/judge/"))


def test_the_judging_screen_and_its_texts(bracketed):
    bob = assessor(letterless_campaign(consent=""))
    html = check(client_of(bob.user).get(reverse("judging:judge", args=[bob.campaign_id])))
    brought = re.search(r'<script id="judge-texts" type="application/json">(.*?)</script>', html)[1]
    texts = json.loads(brought)
    sentences = [*texts["plain"].values(), *(text for form in texts["forms"] for text in form.values())]
    sentences += [text for both in texts["refusals"].values() for text in both if text]
    assert outside(sentences) == []
    assert len(texts["forms"]) == 2
    state = json.loads(re.search(r'<script id="judge-state" type="application/json">(.*?)</script>', html)[1])
    assert outside(label for _, label in state["obstacles"]) == []
    Campaign.objects.update(guidelines="")
    check(client_of(bob.user).get(reverse("judging:judge", args=[bob.campaign_id])))


@pytest.mark.parametrize("text", ["", "1 2 3", "1 " * 150_000], ids=["empty", "short", "cut"])
def test_the_document_in_its_frame(bracketed, text):
    bob = assessor(letterless_campaign(2, text))
    token = assign.claim(assessor=bob).item.token
    page = client_of(bob.user).get(reverse("judging:frame", args=[token]))
    assert outside(texts_of_page(page.content.decode())) == []
    assert ("⟦" in page.content.decode()) is (text != "1 2 3")


def test_consent(bracketed):
    bob = assessor(letterless_campaign(consent="1 2 3"))
    Participant.objects.create(campaign=bob.campaign, assessor=bob, participant="6")
    client, path = client_of(bob.user), reverse("judging:consent", args=[bob.campaign_id])
    check(client.get(path))
    client.post(path)
    check(client.get(path))


@pytest.mark.parametrize("grade", [1, 2], ids=["passed", "failed"])
def test_training(bracketed, grade):
    campaign = letterless_campaign(training_attempts=2)
    letterless_training(campaign)
    bob = assessor(campaign)
    Participant.objects.create(campaign=campaign, assessor=bob, participant="6")
    client, path = client_of(bob.user), reverse("judging:training", args=[campaign.pk])
    for attempt in (1, 2):
        check(client.get(path, {"again": 1}))
        for position in (1, 2):
            if Assessor.objects.get(pk=bob.pk).trained_at is None:
                training.answer(assessor=bob, position=position, attempt=attempt, grade=grade)
                check(client.get(path, {"item": position}))
        check(client.get(path))
    assert client.post(path, {"grade": "x"}).status_code == 400
    check(client.post(path, {"grade": "x"}), 400)
    sent = {"position": 1, "attempt": 9, "grade": 1}
    if grade == 2:
        check(client.post(path, sent), 409)


def test_the_invitation(bracketed):
    campaign = letterless_campaign()
    maker = User.objects.create(username="77")
    several = entry.create_invitation(campaign=campaign, user=maker, max_uses=9, quota=3)
    path = reverse("judging:join", args=[several.token])
    page = client_of().get(path)
    name = re.search(r'name="username" value="([^"]*)"', page.content.decode())[1]
    assert outside([text.replace(name, "") for text in texts_of_page(page.content.decode())]) == []
    check(client_of(maker).get(path))
    good = {"username": "1234", "password": "98-long-76-pass", "repeated": "98-long-76-pass"}
    for wrong in (
        {"username": "1 2"},
        {"username": ""},
        {"repeated": "another"},
        {"password": "1", "repeated": "1"},
        {"password": "password", "repeated": "password"},
        {"password": "12341234", "repeated": "12341234", "username": "12341234"},
    ):
        check(client_of().post(path, good | wrong), 400)
    taken = client_of().post(path, good | {"username": "77"})
    proposed = re.search(
        r"⟦Somebody already has this user name\. You could use ([\w-]+)\.⟧", taken.content.decode()
    )
    assert proposed
    check(client_of().get(reverse("judging:join", args=[campaign.pk])), 404)
    Campaign.objects.update(state=Campaign.State.DRAFT)
    client = client_of(User.objects.create(username="88"))
    check(client.post(path, follow=True))


def test_the_doors_of_a_market(bracketed):
    campaign = set_entry(letterless_campaign(), Campaign.Entry.STUDY, completion_code="12")
    path, sent = study_path(campaign), BOTH_SPELLINGS[0]
    check(client_of().get(path, sent))
    check(client_of().get(path, {**sent, "STUDY_ID": ""}), 400)
    check(client_of().get(path, {**sent, "SESSION_ID": "{{%}}"}), 400)
    check(client_of(User.objects.create(username="88")).get(path, sent), 409)
    client = client_of()
    client.post(path, sent)
    User.objects.filter(assessors__campaign=campaign).update(username="31")
    check(client.get(path, sent))
    Assessor.objects.update(quota=None)
    check(client.get(path, sent))
    Campaign.objects.update(state=Campaign.State.DRAFT)
    check(client_of().get(path, {**sent, "PROLIFIC_PID": "other"}), 409)


def test_the_page_in_the_markets_frame(bracketed):
    campaign = set_entry(letterless_campaign(), Campaign.Entry.HIT)
    path = reverse("judging:hit", args=[campaign.entry_key])
    check(client_of().get(path, {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"}))
    check(client_of().get(path, hit_parameters()))
    check(client_of().get(path, hit_parameters(workerId="")), 400)
    check(client_of().get(path, hit_parameters(turkSubmitTo="https://evil.example")), 400)
    check(client_of().get(reverse("judging:hit-start", args=[campaign.entry_key]), {"visitor": "x"}), 400)
    campaign.slots.all().delete()
    check(client_of().get(path, hit_parameters()), 409)
    Campaign.objects.update(state=Campaign.State.CLOSED)
    check(client_of().get(path, hit_parameters()), 409)


def test_the_end_of_the_work(bracketed):
    campaign = letterless_campaign(2)
    bob = assessor(campaign, quota=2)
    client, path = client_of(bob.user), reverse("judging:complete", args=[campaign.pk])
    check(client.get(path))
    Participant.objects.create(campaign=campaign, assessor=bob, participant="6")
    check(client.get(path))
    Assessor.objects.update(status=Assessor.Status.SUSPENDED)
    check(client.get(path))
    Assessor.objects.update(status=Assessor.Status.ACTIVE, quota=None)
    Campaign.objects.update(state=Campaign.State.CLOSED)
    check(client.get(path))
    Campaign.objects.update(state=Campaign.State.OPEN)
    ben, cid = assessor(campaign, "4343"), assessor(campaign, "4444")
    item = assign.claim(assessor=ben).item  # the other one is Bob's
    assign.submit(assessor=ben, token=item.token, client_token=item.token, grade=1)
    check(client_of(ben.user).get(path))  # done, without a code
    check(client_of(cid.user).get(path))  # nothing to judge right now
    Assessor.objects.filter(pk=bob.pk).update(n_judged=1, quota=1)
    set_entry(campaign, Campaign.Entry.STUDY, completion_code="12-34", completion_url="https://1.example/")
    check(client.get(path))
    set_entry(campaign, Campaign.Entry.HIT)
    html = client.get(path).content.decode()
    code = re.search(r'id="code" class="number" value="([^"]*)"', html)[1]
    assert outside(texts_of_page(html.replace(code, ""))) == []


def test_the_errors_on_these_pages(bracketed, monkeypatch, settings):
    bob = assessor(letterless_campaign())
    client = client_of(bob.user)
    check(client.get(reverse("judging:judge", args=[bob.campaign.collection_id])), 404)
    check(client.get("/judge/nowhere/"), 404)
    check(client.get("/logout/"), 405)
    check(client.post("/language/", {"language": "no"}), 400)
    large = SimpleUploadedFile("1", b"0" * 20_000)
    strict = Client(enforce_csrf_checks=True, headers={"accept-language": CODE})
    strict.force_login(bob.user)
    strict.get(reverse("judging:judge", args=[bob.campaign_id]))  # brings the cookie of the form's token
    check(strict.post(reverse("judging:consent", args=[bob.campaign_id]), {"file": large}), 413)
    check(strict.post("/login/", {"username": "1"}), 403)
    for error, status in ((ZeroDivisionError("1"), 500), (OperationalError("2"), 503)):

        def fails(*, error=error, **_named):
            raise error

        monkeypatch.setattr("judging.views.judge.letters.unread", fails)
        check(client.get("/judge/"), status)
