"""Which language an assessor's page speaks, how long it keeps it, and what stays English."""

import re
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import pytest
from bracketed import letterless_campaign
from django.conf import settings
from django.test import Client
from django.urls import reverse
from entry_campaign import BOTH_SPELLINGS, hit_parameters, set_entry, study_path
from worlds import routes

from judging.models import Assessor, Campaign
from judging.services import assign, entry
from touchstone.languages import is_for_assessors, supported_language
from touchstone.models import User

pytestmark = pytest.mark.django_db
GERMAN = {"headers": {"accept-language": "de-AT,de;q=0.9,en;q=0.5"}}


def language_of(answer) -> str:
    return re.search(r'<html lang="([^"]*)"', answer.content.decode())[1]


def assessor(campaign, name="4242", **fields):
    user, _ = User.objects.get_or_create(username=name)
    return Assessor.objects.create(campaign=campaign, user=user, **fields)


def logged_in(user, **options) -> Client:
    client = Client(**options)
    client.force_login(user)
    return client


# -- which language -----------------------------------------------------------------------------------------------


def test_exactly_the_pages_of_judging_and_the_front_door_are_for_assessors():
    links = {f"link-{kind}" for kind in ("invitation", "password", "address")}
    company = {f"company{what}" for what in ("", "-back", "-link", "-invitation", "-password", "-join")}
    front = {"home", "login", "logout", "language", "forgotten", "account", "letters-off", *links, *company}
    for route in routes():
        path = f"/{route.pattern.removeprefix('^')}"
        is_page_of_judging = route.name.startswith("judging:") and not path.startswith("/api/")
        assert is_for_assessors(path) is (is_page_of_judging or route.name in front), route.name


@pytest.mark.parametrize(
    ("asked", "language"),
    [
        ("de-AT,de;q=0.9,en;q=0.5", "de"),
        ("fr,es;q=0.7", "es"),
        ("zh-CN", "zh-hans"),
        ("zh", "zh-hans"),
        ("fr", "en"),
        ("*", "en"),
        ("", "en"),
        ("x" * 600, "en"),
        ("de" * 300 + ";q=nonsense", "en"),
    ],
)
def test_a_browser_gets_the_first_of_its_languages_that_there_is(asked, language):
    answer = Client().get("/login/", headers={"accept-language": asked})
    assert language_of(answer) == answer["Content-Language"] == language
    assert "Accept-Language" in answer["Vary"]


@pytest.mark.parametrize("code", ["", "fr", "xx", "DE\n", "<b>", "d" * 1000])
def test_what_is_no_language_of_ours_is_none(code):
    assert supported_language(code) in ("", "de")
    assert language_of(Client().get("/login/", {"lang": code})) in ("en", "de")


def test_a_choice_comes_before_a_link_and_a_link_before_the_browser():
    client = Client(**GERMAN)
    assert language_of(client.get("/login/")) == "de"
    assert language_of(client.get("/login/?lang=es")) == "es"
    chosen = client.post("/language/", {"language": "zh-hans", "next": "/login/?lang=es"})
    assert (chosen.status_code, chosen.url) == (302, "/login/?lang=es")
    assert chosen.cookies["language"]["samesite"] == "Lax"
    assert language_of(client.get(chosen.url)) == "zh-hans"


def test_a_choice_is_kept_with_the_account_and_follows_to_another_browser():
    bob = assessor(letterless_campaign()).user
    client = logged_in(bob)
    assert language_of(client.get("/judge/")) == "en"
    chosen = client.post("/language/", {"language": "es", "next": "/judge/"})
    assert "language" not in chosen.cookies
    bob.refresh_from_db()
    assert bob.language == "es"
    elsewhere = logged_in(bob, **GERMAN)
    elsewhere.cookies["language"] = "zh-hans"
    assert language_of(elsewhere.get("/judge/")) == "es"


def test_a_language_of_the_account_that_is_gone_is_none():
    bob = assessor(letterless_campaign()).user
    User.objects.filter(pk=bob.pk).update(language="tlh")
    assert language_of(logged_in(bob, **GERMAN).get("/judge/")) == "de"


@pytest.mark.parametrize("sent", [{}, {"language": "fr"}, {"language": "de-at"}, {"language": "<b>"}])
def test_a_language_that_is_not_offered_is_refused(sent):
    assert Client().post("/language/", sent).status_code == 400


@pytest.mark.parametrize("where", ["https://evil.example/", "//evil.example", "javascript:alert(1)", ""])
def test_the_choice_leads_to_no_other_site(where):
    assert Client().post("/language/", {"language": "de", "next": where}).url == "/"


def test_a_choice_needs_the_token_of_our_page():
    assert Client(enforce_csrf_checks=True).post("/language/", {"language": "de"}).status_code == 403


# -- links --------------------------------------------------------------------------------------------------------


def hidden(answer, name) -> str:
    values = re.findall(rf'name="{name}" value="([^"]*)"', answer.content.decode())
    return values[-1].replace("&amp;", "&")  # the first form of a page is the choice of a language


def test_a_hit_keeps_the_language_of_its_link_without_any_cookie():
    campaign = set_entry(letterless_campaign(), Campaign.Entry.HIT)
    framed = Client().get(
        reverse("judging:hit", args=[campaign.entry_key]), {**hit_parameters(), "lang": "es"}
    )
    assert language_of(framed) == "es"
    assert not framed.cookies
    start = re.search(r'href="([^"]*/start/[^"]*)"', framed.content.decode())[1].replace("&amp;", "&")
    browser = Client(**GERMAN)
    page = browser.get(start)
    assert language_of(page) == "es"
    action = re.search(r'method="post" action="(/hit/[^"]*)"', page.content.decode())[1]
    came = browser.post(action, {"visitor": parse_qs(urlsplit(start).query)["visitor"][0]})
    assert language_of(browser.get(came.url)) == "es"  # the judging screen has no parameter


def test_every_language_is_one_link_away_on_the_page_in_the_markets_frame():
    campaign = set_entry(letterless_campaign(), Campaign.Entry.HIT)
    page = Client().get(reverse("judging:hit", args=[campaign.entry_key]), hit_parameters())
    links = re.findall(r'href="([^"]*)" lang="[^"]*" hreflang="([^"]*)"', page.content.decode())
    assert [code for _, code in links] == [code for code, _ in settings.LANGUAGES]
    for address, code in links:
        assert language_of(Client().get(address.replace("&amp;", "&"))) == code


def test_a_study_keeps_the_language_of_its_link_and_a_participant_returns_to_it():
    campaign = set_entry(letterless_campaign(), Campaign.Entry.STUDY, completion_code="12")
    browser = Client()
    page = browser.get(study_path(campaign), {**BOTH_SPELLINGS[0], "lang": "de"})
    action = re.search(r'method="post" action="(/study/[^"]*)"', page.content.decode())[1]
    came = browser.post(action, BOTH_SPELLINGS[0])
    assert language_of(browser.get(came.url)) == "de"
    assert User.objects.get(assessors__campaign=campaign).language == ""  # asked for by a link, not chosen


def test_a_study_link_keeps_its_language_through_the_log_out_of_somebody_else():
    campaign = set_entry(letterless_campaign(), Campaign.Entry.STUDY, completion_code="12")
    rhea = User.objects.create(username="77", role=User.Role.RESEARCHER)
    page = logged_in(rhea).get(study_path(campaign), {**BOTH_SPELLINGS[0], "lang": "es"})
    assert page.status_code == 409
    assert language_of(Client().get(hidden(page, "next"))) == "es"


def test_an_invitation_keeps_the_language_of_its_link_through_the_log_in():
    campaign = letterless_campaign()
    invitation = entry.create_invitation(campaign=campaign, user=User.objects.create(username="77"))
    bob = User.objects.create(username="4242")
    bob.set_password("a-long-passphrase-4242")
    bob.save()
    browser = Client()
    page = browser.get(reverse("judging:join", args=[invitation.token]), {"lang": "zh-hans"})
    login = re.search(r'href="(/login/[^"]*)"', page.content.decode())[1].replace("&amp;", "&")
    page = browser.get(login)
    assert language_of(page) == "zh-hans"
    action = re.findall(r'method="post" action="(/login/[^"]*)"', page.content.decode())[-1]
    sent = {"username": "4242", "password": "a-long-passphrase-4242", "next": hidden(page, "next")}
    came = browser.post(action, sent)
    assert language_of(browser.get(came.url)) == "zh-hans"
    assert language_of(browser.get("/judge/")) == "zh-hans"


# -- what stays English ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/manage/", "/results/", "/account/tokens/", "/nowhere/"])
def test_pages_of_managers_and_researchers_are_english(path):
    mia = User.objects.create(username="mia", role=User.Role.MANAGER, language="de")
    client = logged_in(mia, **GERMAN)
    client.cookies["language"] = "de"
    english = logged_in(User.objects.create(username="ada", role=User.Role.MANAGER))
    page = client.get(path, {"lang": "de"})
    assert language_of(page) == "en"
    assert "Content-Language" not in page
    assert "Abmelden" not in page.content.decode()
    assert _without_tokens(page, "mia") == _without_tokens(english.get(path, {"lang": "de"}), "ada")


def _without_tokens(answer, name: str) -> str:
    text = re.sub(r'(name="csrfmiddlewaretoken" value=|X-CSRFToken": )"[^"]*"', "", answer.content.decode())
    return re.sub(r'nonce="[^"]*"', "", text).replace(name, "")


def test_problems_of_the_api_are_english():
    campaign = letterless_campaign(state=Campaign.State.CLOSED)
    client = logged_in(assessor(campaign).user, **GERMAN)
    answer = client.post(reverse("judging:claim", args=[campaign.pk]), {}, content_type="application/json")
    assert answer.json()["title"] == "This campaign is not open"
    answer = client.post(
        reverse("judging:submit", args=[campaign.pk]), {"grade": "x"}, content_type="application/json"
    )
    assert "A valid integer is required." in answer.content.decode()
    completion = client.get(f"/api/v1/me/campaigns/{campaign.pk}/completion")
    assert completion.json()["obstacle"] == "This campaign is not open"
    assert "refusal" not in completion.json()


def test_the_file_of_ones_own_judgments_is_the_same_in_every_language():
    campaign = letterless_campaign()
    bob = assessor(campaign)
    item = assign.claim(assessor=bob).item
    assign.submit(assessor=bob, token=item.token, client_token=item.token, obstacle="language")
    path = reverse("judging:my-data", args=[campaign.pk])
    files = {logged_in(bob.user).get(path, {"lang": code}).content for code, _ in settings.LANGUAGES}
    assert len(files) == 1


# -- dates and numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "day"),
    [
        ("en", "March 5, 2026"),
        ("es", "5 de marzo de 2026"),
        ("de", "5. März 2026"),
        ("zh-hans", "2026年3月5日"),
    ],
)
def test_dates_follow_the_language(code, day):
    bob = assessor(letterless_campaign(consent="1"), consented_at=datetime(2026, 3, 5, 12, tzinfo=UTC))
    page = logged_in(bob.user).get(reverse("judging:consent", args=[bob.campaign_id]), {"lang": code})
    assert day in page.content.decode()
