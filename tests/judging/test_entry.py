"""Coming in: invitations, crowd markets, consent. Nobody else gets in, and nobody's name leaves its place."""

import base64
import re
import threading
import uuid
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.apps import apps
from django.core import signing
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse
from django.utils import timezone
from small_campaign import give, judge_all, make_assessor, make_campaign, slots, truth_of

from judging.models import Assessor, Campaign, Invitation, Participant
from judging.services import crowd, entry
from judging.services.errors import InvitationUnusable
from judging.views.entry import _origin
from touchstone.models import Event, User

pytestmark = pytest.mark.django_db

MARKET = "https://www.market.example"
WORKER = "A1WORKER77NAME"
PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    """Pages name static files by their hash, which collectstatic alone knows; not so here."""
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.MD5PasswordHasher"
    ]  # fast: nothing here is about it
    settings.MIDDLEWARE = [part for part in settings.MIDDLEWARE if "whitenoise" not in part]


@pytest.fixture
def alice():
    return User.objects.create(username="alice", role="manager")


@pytest.fixture
def campaign(tmp_path):
    return make_campaign(tmp_path)


@pytest.fixture
def manager(alice):
    client = Client()
    client.force_login(alice)
    return client


@pytest.fixture
def invitation(campaign, alice):
    return entry.create_invitation(campaign=campaign, user=alice)


def set_entry(campaign, kind, **fields):
    fields = {"market_origin": MARKET, "judgments_per_participant": 3, **fields}
    Campaign.objects.filter(pk=campaign.pk).update(entry=kind, **fields)
    campaign.refresh_from_db()
    return campaign


@pytest.fixture
def hit_campaign(campaign):
    return set_entry(campaign, "hit")


@pytest.fixture
def study_campaign(campaign):
    return set_entry(
        campaign,
        "study",
        completion_code="CODE77",
        completion_url="https://app.market.example/done?cc=CODE77",
    )


def text_of(response):
    return " ".join(response.content.decode().split())


def plain(response):
    """The page without what is random on every page of somebody who is logged in."""
    return re.sub(r'(csrfmiddlewaretoken" value=|X-CSRFToken": |nonce=)"[^"]*"', "", text_of(response))


def account(**changed):
    return {"username": "bob-the-assessor", "password": PASSWORD, "repeated": PASSWORD, **changed}


def judge(assessor, n):
    """Let the assessor judge n items, those he has not yet."""
    seen = set(assessor.judgments.values_list("item_id", flat=True))
    waiting = [slot for slot in slots(assessor.campaign, state="open", number=1) if slot.item_id not in seen]
    for slot in waiting[:n]:
        give(assessor, slot, truth_of(slot))


# -- invitations ----------------------------------------------------------------------------------------------


def join_path(token):
    return reverse("judging:join", args=[token])


def test_somebody_without_an_account_joins_under_the_name_that_is_proposed(client, invitation, campaign):
    page = client.get(join_path(invitation.token))
    proposed = page.context["form"]["username"].value()
    assert proposed in text_of(page)
    answer = client.post(join_path(invitation.token), account(username=proposed))
    assert answer.url == reverse("judging:judge", args=[campaign.pk])
    bob = Assessor.objects.get(user__username=proposed)
    assert (bob.campaign, bob.tier, bob.kind, bob.user.role) == (campaign, "bronze", "human", "assessor")
    assert client.get(answer.url).status_code == 200
    assert Invitation.objects.get().n_used == 1
    assert Event.objects.filter(verb="joined by invitation", actor=bob.user).count() == 1


def test_a_proposed_name_is_two_words_and_a_number_and_free():
    names = {entry.propose_username() for _ in range(50)}
    assert len(names) > 40
    for name in names:
        first, second, number = name.split("-")
        assert first.isalpha()
        assert second.isalpha()
        assert number.isdigit()


def test_somebody_with_an_account_logs_in_first_and_joins_as_himself(client, invitation, campaign):
    bob = User.objects.create(username="bob")
    page = text_of(client.get(join_path(invitation.token)))
    assert f"{reverse('login')}?next={join_path(invitation.token)}".replace("/", "%2F") in page.replace(
        "/", "%2F"
    )
    client.force_login(bob)
    assert "Join as bob" in text_of(client.get(join_path(invitation.token)))
    assert Assessor.objects.count() == 0  # looking is not joining
    client.post(join_path(invitation.token))
    assert Assessor.objects.get().user == bob


def test_what_the_invitation_says_is_what_one_becomes(client, campaign, alice):
    made = entry.create_invitation(campaign=campaign, user=alice, tier="silver", team="night", quota=12)
    client.post(join_path(made.token), account(tier="gold", team="day", quota="9999", role="manager"))
    bob = Assessor.objects.get()
    assert (bob.tier, bob.team, bob.quota) == ("silver", "night", 12)
    assert (bob.user.role, bob.user.is_staff, bob.user.is_superuser) == ("assessor", False, False)


def test_gold_comes_only_from_an_invitation_that_says_gold(client, campaign, alice):
    made = entry.create_invitation(campaign=campaign, user=alice, tier="gold")
    client.post(join_path(made.token), account())
    assert Assessor.objects.get().tier == "gold"


def test_a_manager_who_joins_stays_a_manager_and_a_researcher_a_researcher(campaign, alice):
    made = entry.create_invitation(campaign=campaign, user=alice, max_uses=2)
    rita = User.objects.create(username="rita", role="researcher")
    for user in (alice, rita):
        entry.join(token=made.token, user=user)
    assert {user.role for user in User.objects.all()} == {"manager", "researcher"}


def test_joining_twice_is_joining_once_and_a_used_link_leads_its_user_back(client, invitation, campaign):
    client.post(join_path(invitation.token), account())
    again = client.get(join_path(invitation.token))
    assert again.url == reverse("judging:judge", args=[campaign.pk])
    client.post(join_path(invitation.token))
    assert Invitation.objects.get().n_used == 1
    assert Assessor.objects.count() == 1


def test_used_up_expired_revoked_closed_and_never_made_look_the_same(campaign, alice):
    kinds = {
        name: entry.create_invitation(campaign=campaign, user=alice) for name in ("used", "old", "revoked")
    }
    Invitation.objects.filter(pk=kinds["used"].pk).update(n_used=1)
    Invitation.objects.filter(pk=kinds["old"].pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    entry.revoke_invitation(invitation=kinds["revoked"], user=alice)
    tokens = [made.token for made in kinds.values()] + [uuid.uuid4()]
    answers = [Client().get(join_path(token)) for token in tokens]
    answers += [Client().post(join_path(token), account()) for token in tokens]
    Campaign.objects.update(state="closed")
    answers.append(Client().get(join_path(entry.create_invitation(campaign=campaign, user=alice).token)))
    assert {(answer.status_code, answer.content) for answer in answers} == {(404, answers[0].content)}
    assert "ask the person who sent it" in text_of(answers[0])
    assert set(User.objects.values_list("username", flat=True)) == {"alice"}


def test_a_weak_password_a_taken_name_and_a_slip_are_told_and_make_no_account(client, invitation):
    User.objects.create(username="Taken")
    faults = {
        "not the same": account(repeated="something else"),
        "too common": account(password="password1", repeated="password1"),
        "too short": account(password="x7$k", repeated="x7$k"),
        "Somebody has this user name already": account(username="taken"),
        "letters, digits": account(username="two words"),
        "too similar": account(username="longenough1", password="longenough1", repeated="longenough1"),
    }
    for words, body in faults.items():
        answer = client.post(join_path(invitation.token), body)
        assert answer.status_code == 400
        assert words in text_of(answer), words
        assert PASSWORD not in text_of(answer)
    assert User.objects.exclude(username__in=["alice", "Taken"]).count() == 0
    assert Invitation.objects.get().n_used == 0


@pytest.mark.django_db(transaction=True)
def test_twenty_who_join_at_once_by_a_link_for_three_are_exactly_three(campaign, alice):
    made = entry.create_invitation(campaign=campaign, user=alice, max_uses=3)
    start, outcomes = threading.Barrier(20), []

    def one(number):
        start.wait()
        try:
            entry.join_as_new_user(token=made.token, username=f"bob{number}", password=PASSWORD)
            outcomes.append("in")
        except InvitationUnusable:
            outcomes.append("refused")
        finally:
            connection.close()

    threads = [threading.Thread(target=one, args=[number]) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["in"] * 3 + ["refused"] * 17
    assert Invitation.objects.get().n_used == 3
    assert Assessor.objects.count() == 3
    assert User.objects.count() == 4  # who was refused left no account behind


def test_postgresql_itself_refuses_more_uses_than_allowed_and_a_link_for_nobody(invitation):
    for wrong in ({"n_used": 2}, {"max_uses": 0}, {"quota": 0}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Invitation.objects.filter(pk=invitation.pk).update(**wrong)


def patterns(urls=None, prefix=""):
    for found in urls or get_resolver().url_patterns:
        if isinstance(found, URLPattern):
            yield prefix + str(found.pattern), found
        else:
            yield from patterns(found.url_patterns, prefix + str(found.pattern))


def test_no_address_of_the_product_makes_an_account_for_somebody_without_an_invitation(campaign, alice):
    set_entry(campaign, "hit")
    body = {
        **account(),
        "password1": PASSWORD,
        "password2": PASSWORD,
        "email": "c@example.org",
        "tier": "gold",
    }
    tried = 0
    for path, _ in patterns():
        for part in ("uuid:campaign_id", "uuid:token", "uuid:entry_key", "uuid:collection_id", "uuid:job_id"):
            path = path.replace(f"<{part}>", str(campaign.pk))
        path = "/" + path.replace("<int:assessor_id>", "1").replace("<int:invitation_id>", "1")
        path = path.replace("<int:position>", "1")
        Client().post(path, body)
        tried += 1
    for name in ("signup", "register", "accounts/signup", f"join/{uuid.uuid4()}"):
        assert Client().post(f"/{name}/", body).status_code in (302, 404)  # 302: to the login page
    assert tried > 20
    assert User.objects.count() == 1


# -- the manager's page ---------------------------------------------------------------------------------------

MANAGER_PAGES = [
    "manage-entry", "entry-invite", "entry-market", "entry-codes", "entry-erase", "entry-consent", "entry-training",
    "entry-training-rules", "entry-explanations",
]  # fmt: skip


def test_charlie_sees_none_of_the_managers_pages_and_none_of_the_campaigns(campaign, invitation):
    for role in ("assessor", "researcher"):
        charlie = Client()
        charlie.force_login(User.objects.create(username=f"charlie {role}", role=role))
        paths = [reverse(f"judging:{name}", args=[campaign.pk]) for name in MANAGER_PAGES]
        paths += [reverse("judging:entry-revoke", args=[campaign.pk, invitation.pk])]
        paths += [reverse("judging:entry-attempt", args=[campaign.pk, 1])]
        own = ["judging:consent", "judging:training", "judging:complete"]
        paths += [reverse(name, args=[campaign.pk]) for name in own]
        paths += [reverse("judging:training-frame", args=[campaign.pk, 1])]
        for path in paths:
            assert charlie.post(path).status_code in (404, 405), path
        gets = [paths[0], *paths[-4:]]
        assert {charlie.get(path).status_code for path in gets} == {404}
        for name in own:
            absent = charlie.get(reverse(name, args=[uuid.uuid4()]))
            assert plain(absent) == plain(charlie.get(reverse(name, args=[campaign.pk])))
    assert Invitation.objects.get().revoked_at is None


def test_a_manager_makes_a_link_copies_it_and_ends_it(manager, campaign):
    body = {"invitation-note": "the Monday class", "invitation-tier": "silver", "invitation-max_uses": "30",
            "invitation-days": "7"}  # fmt: skip
    page = text_of(manager.post(reverse("judging:entry-invite", args=[campaign.pk]), body, follow=True))
    made = Invitation.objects.get()
    assert f"http://testserver{join_path(made.token)}" in page
    assert "the Monday class" in page
    assert "0 of 30" in page
    assert timedelta(days=6, hours=23) < made.expires_at - timezone.now() < timedelta(days=7)
    revoke = reverse("judging:entry-revoke", args=[campaign.pk, made.pk])
    page = text_of(manager.post(revoke, follow=True))
    assert "revoked" in page
    assert str(made.token) not in page
    assert Client().get(join_path(made.token)).status_code == 404
    verbs = Event.objects.filter(subject=f"campaign:{campaign.pk}").values_list("verb", flat=True)
    assert {"invited", "revoked an invitation"} <= set(verbs)


def market_body(**changed):
    fields = {"entry": "hit", "judgments_per_participant": "20", "market_origin": MARKET, "completion_code": "",
              "completion_url": "", **changed}  # fmt: skip
    return {f"market-{name}": value for name, value in fields.items()}


def test_the_settings_of_a_market_are_checked_before_they_are_kept(manager, campaign):
    path = reverse("judging:entry-market", args=[campaign.pk])
    for wrong in (
        {"market_origin": ""},
        {"market_origin": "http://www.market.example"},
        {"market_origin": "https://www.market.example/path"},
        {"market_origin": "https://*.market.example"},
        {"market_origin": "https://www.market.example; script-src *"},
        {"entry": "study"},
        {"entry": "study", "completion_code": "C", "completion_url": "http://market.example/done"},
        {"entry": "study", "completion_code": "C", "completion_url": "javascript:alert(1)"},
        {"entry": "everybody"},
        {"judgments_per_participant": "0"},
    ):
        assert manager.post(path, market_body(**wrong)).status_code == 400, wrong
        campaign.refresh_from_db()
        assert (campaign.entry, campaign.market_origin) == ("closed", "")
    two = f"{MARKET}/  https://worker.market.example"
    assert manager.post(path, market_body(market_origin=two)).status_code == 302
    campaign.refresh_from_db()
    assert crowd.market_origins(campaign) == [MARKET, "https://worker.market.example"]
    page = text_of(manager.get(reverse("judging:manage-entry", args=[campaign.pk])))
    assert f"http://testserver/hit/{campaign.entry_key}/" in page


def test_plain_http_is_a_market_on_this_machine_only():
    assert _origin("http://127.0.0.1:9000/") == "http://127.0.0.1:9000"
    for wrong in (
        "http://market.example",
        "https://user@market.example",
        "https://market.example:99999",
        "market",
    ):
        with pytest.raises(ValidationError):
            _origin(wrong)


# -- HITs -----------------------------------------------------------------------------------------------------


def hit_parameters(**changed):
    return {"assignmentId": "3ASSIGN", "hitId": "3HIT", "workerId": WORKER, "turkSubmitTo": MARKET, **changed}


def hit_page(campaign, client=None, **changed):
    return (client or Client()).get(
        reverse("judging:hit", args=[campaign.entry_key]), hit_parameters(**changed)
    )


def start_of(campaign, **changed):
    return hit_page(campaign, **changed).context["start_url"]


def come_in(campaign, **changed):
    """Press the buttons a worker presses; return the browser and the answer."""
    client, start = Client(), start_of(campaign, **changed)
    assert client.get(start).status_code == 200
    return client, client.post(
        urlsplit(start).path, {"visitor": parse_qs(urlsplit(start).query)["visitor"][0]}
    )


def directives(response):
    pairs = (part.strip().split(" ", 1) for part in response["Content-Security-Policy"].split(";"))
    return dict(pairs)


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
    assert "too old" in text_of(Client().get(path, {"visitor": signed}))
    assert User.objects.count() == 0


def test_a_campaign_that_is_no_hit_has_no_such_page(study_campaign):
    assert hit_page(study_campaign).status_code == 404
    assert Client().get(reverse("judging:hit", args=[uuid.uuid4()])).status_code == 404
    Campaign.objects.update(entry="closed")
    assert Client().get(reverse("judging:study", args=[study_campaign.entry_key])).status_code == 404


# -- studies --------------------------------------------------------------------------------------------------

BOTH_SPELLINGS = [
    {"PROLIFIC_PID": WORKER, "STUDY_ID": "5study", "SESSION_ID": "6session"},
    {"participant": WORKER, "study": "5study", "session": "6session"},
]


def study_path(campaign):
    return reverse("judging:study", args=[campaign.entry_key])


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
        assert "give the task back" in text_of(answer)
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


# -- the code -------------------------------------------------------------------------------------------------


def completed(client, campaign):
    return client.get(reverse("judging:complete", args=[campaign.pk]))


def test_the_code_of_a_study_comes_with_the_last_judgment_and_not_before(client, study_campaign):
    client.post(study_path(study_campaign), BOTH_SPELLINGS[0])
    bob = Assessor.objects.select_related("campaign").get()
    for done in range(3):
        page = text_of(completed(client, study_campaign))
        assert "CODE77" not in page
        assert f"You have judged {done} of 3" in page
        judge(bob, 1)
    page = text_of(completed(client, study_campaign))
    assert "CODE77" in page
    assert 'href="https://app.market.example/done?cc=CODE77"' in page
    assert Participant.objects.get().completed_at is not None
    assert Event.objects.filter(verb="completed", subject=f"assessor:{bob.pk}").count() == 1
    completed(client, study_campaign)
    assert Event.objects.filter(verb="completed").count() == 1


def test_a_hits_code_is_the_workers_own_and_the_manager_learns_whose_it_is(hit_campaign, manager):
    codes = {}
    for worker in ("A1", "A2"):
        client, _ = come_in(hit_campaign, workerId=worker)
        judge(Participant.objects.select_related("assessor__campaign").get(participant=worker).assessor, 3)
        codes[worker] = completed(client, hit_campaign).context["completion"].code
    assert len(set(codes.values())) == 2
    page = text_of(
        manager.post(
            reverse("judging:entry-codes", args=[hit_campaign.pk]),
            {"codes-codes": f"{codes['A2'].lower()}\nAAAAA-AAAAA"},
        )
    )
    row = page.partition("Whose codes these are.")[2]
    assert "<td>A2</td>" in row
    assert "3 of 3" in row
    assert "<td>A1</td>" not in row
    assert "nobody's" in row


def test_the_manager_compares_who_came_with_the_markets_list(study_campaign, manager, client):
    client.post(study_path(study_campaign), BOTH_SPELLINGS[0])
    bob = Assessor.objects.select_related("campaign").get()
    judge(bob, 2)
    page = text_of(manager.get(reverse("judging:manage-entry", args=[study_campaign.pk])))
    row = page.partition(f'<th scope="row">{WORKER}</th>')[2].partition("</tr>")[0]
    assert "6session" in row
    assert bob.user.username in row
    assert "2 of 3" in row
    assert "not yet" in row


def test_a_code_is_of_one_campaign_only(hit_campaign, tmp_path):
    (tmp_path / "other").mkdir()
    other = set_entry(make_campaign(tmp_path / "other"), "hit")
    assert crowd.own_code(hit_campaign, 1) != crowd.own_code(other, 1)
    assert crowd.own_code(hit_campaign, 1) == crowd.own_code(hit_campaign, 1)


def test_with_no_work_left_the_code_comes_after_one_judgment_but_not_after_none(study_campaign):
    others = [make_assessor(study_campaign, name) for name in ("ben", "bea")]
    bob_client, eve_client = Client(), Client()
    bob_client.post(study_path(study_campaign), BOTH_SPELLINGS[0])
    eve_client.post(study_path(study_campaign), {**BOTH_SPELLINGS[0], "PROLIFIC_PID": "eve"})
    bob = Assessor.objects.select_related("campaign").get(participant__participant=WORKER)
    judge(bob, 1)
    for slot in slots(study_campaign, state="open"):
        give(others[slot.number - 1], slot, truth_of(slot))
    assert "CODE77" in text_of(completed(bob_client, study_campaign))
    page = text_of(completed(eve_client, study_campaign))
    assert "CODE77" not in page
    assert "nothing to judge right now" in page


def test_a_campaign_that_closes_pays_who_has_judged_and_a_paused_worker_is_told(client, study_campaign):
    client.post(study_path(study_campaign), BOTH_SPELLINGS[0])
    bob = Assessor.objects.select_related("campaign").get()
    judge(bob, 1)
    Assessor.objects.update(status="suspended")
    page = text_of(completed(client, study_campaign))
    assert "CODE77" not in page
    assert "A manager has paused your judging" in page
    Assessor.objects.update(status="active")
    Campaign.objects.update(state="closed")
    assert "CODE77" in text_of(completed(client, study_campaign))
    answer = client.post(
        study_path(study_campaign), BOTH_SPELLINGS[0]
    )  # comes back later by the market's link
    assert answer.url == reverse("judging:complete", args=[study_campaign.pk])


def test_an_invited_assessor_needs_no_code_and_gets_none(client, study_campaign):
    bob = make_assessor(study_campaign, "bob")
    Assessor.objects.filter(pk=bob.pk).update(quota=1)
    client.force_login(bob.user)
    judge(bob, 1)
    page = text_of(completed(client, study_campaign))
    assert "Thank you" in page
    assert "CODE77" not in page


# -- the market's names ---------------------------------------------------------------------------------------


def tables_with(words):
    """Return the tables in which the words stand anywhere; sessions and signed texts are decoded first."""
    found = set()
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            name = connection.ops.quote_name(table)
            cursor.execute(f"SELECT t::text FROM {name} t")  # noqa: S608 (names of our own tables)
            for (row,) in cursor.fetchall():
                if words in row or any(words.encode() in decoded(part) for part in row.split(",")):
                    found.add(table)
    return found


def decoded(part):
    part = part.strip("()\"'").split(":")[0].lstrip(".")
    try:
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError:
        return b""


def test_the_markets_names_stand_in_one_table_alone_and_erasing_empties_it(
    hit_campaign, manager, tmp_path, caplog
):
    client, answer = come_in(hit_campaign)
    bob = Participant.objects.select_related("assessor__campaign").get().assessor
    client.get(answer.url)
    judge(bob, 3)
    completed(client, hit_campaign)
    for name in (WORKER, "3ASSIGN"):
        assert tables_with(name) == {"judging_participant"}
    for kind in ("qrels", "qrels_jg", "prels"):
        call_command("export", str(hit_campaign.pk), kind, output=str(tmp_path / kind))
        assert WORKER not in (tmp_path / kind).read_text()
    assert WORKER not in caplog.text

    erase = reverse("judging:entry-erase", args=[hit_campaign.pk])
    manager.post(erase)  # without the tick
    assert tables_with(WORKER) == {"judging_participant"}
    page = text_of(manager.post(erase, {"sure": "yes"}, follow=True))
    assert "Erased the market's names of 1 participant." in page.replace("&#x27;", "'")
    for name in (WORKER, "3ASSIGN"):
        assert tables_with(name) == set()
    assert bob.judgments.count() == 3
    assert Event.objects.get(verb="erased the market's names").detail == {"participants": 1}


def test_the_search_for_names_finds_one_that_is_planted(hit_campaign, client):
    User.objects.create(username=f"x{WORKER}y")
    session = client.session
    session["worker"] = WORKER
    session.save()
    assert tables_with(WORKER) == {"touchstone_user", "django_session"}
    assert "judging_participant" in {model._meta.db_table for model in apps.get_models()}


def test_who_comes_again_after_the_erasure_is_somebody_new(study_campaign, alice):
    visitor = crowd.study_visitor(BOTH_SPELLINGS[0])
    first = crowd.enter(campaign=study_campaign, visitor=visitor)
    crowd.erase_market_names(campaign=study_campaign, user=alice)
    second = crowd.enter(campaign=study_campaign, visitor=visitor)
    assert first.pk != second.pk
    crowd.erase_market_names(campaign=study_campaign, user=alice)
    assert list(Participant.objects.values_list("participant", "session")) == [("", "")] * 2


def test_addresses_with_names_leave_no_referer_and_no_copy(study_campaign, hit_campaign):
    set_entry(study_campaign, "study", completion_code="C")
    pages = [
        Client().get(study_path(study_campaign), BOTH_SPELLINGS[0]),
        Client().get(study_path(study_campaign)),
    ]
    set_entry(hit_campaign, "hit")
    pages += [hit_page(hit_campaign), Client().get(start_of(hit_campaign))]
    assert {(page["Referrer-Policy"], page["Cache-Control"]) for page in pages} == {
        ("strict-origin", "no-store")
    }


# -- consent --------------------------------------------------------------------------------------------------


def test_nothing_is_judged_before_one_agrees_and_agreeing_leads_on(client, campaign):
    bob = make_assessor(campaign, "bob")
    client.force_login(bob.user)
    Campaign.objects.update(consent="We keep **what you judge**. <script>alert(1)</script>")
    judge_path, path = (reverse(f"judging:{name}", args=[campaign.pk]) for name in ("judge", "consent"))
    assert client.get(judge_path).url == path
    page = text_of(client.get(path))
    assert "<strong>what you judge</strong>" in page
    assert "<script>alert" not in page
    assert Assessor.objects.get().consented_at is None
    assert client.post(path).url == judge_path
    agreed = Assessor.objects.get().consented_at
    assert agreed is not None
    assert client.get(judge_path).status_code == 200
    client.post(path)
    assert Assessor.objects.get().consented_at == agreed
    assert Event.objects.filter(verb="agreed", actor=bob.user).count() == 1


def test_the_records_tell_who_agreed_to_which_text(manager, campaign, client):
    bob = make_assessor(campaign, "bob")
    path = reverse("judging:entry-consent", args=[campaign.pk])
    manager.post(path, {"consent-text": "First text"})
    bob = Assessor.objects.select_related("campaign", "user").get(pk=bob.pk)
    entry.agree(assessor=bob)
    manager.post(path, {"consent-text": "Second text"})
    texts = list(
        Event.objects.filter(verb="changed the consent text")
        .order_by("id")
        .values_list("detail__text", flat=True)
    )
    assert texts == [entry.text_mark("First text"), entry.text_mark("Second text")]
    assert Event.objects.get(verb="agreed").detail["text"] == texts[0]


def test_without_a_consent_text_nobody_is_asked(client, campaign):
    bob = make_assessor(campaign, "bob")
    client.force_login(bob.user)
    assert entry.next_gate(bob) is None
    assert client.get(reverse("judging:consent", args=[campaign.pk])).url == f"/judge/{campaign.pk}/"


def test_no_item_is_given_out_while_a_gate_stands_whichever_way_it_is_asked_for(client, campaign):
    bob = make_assessor(campaign, "bob")
    client.force_login(bob.user)
    Campaign.objects.update(consent="Do you agree?")
    path = reverse("judging:claim", args=[campaign.pk])
    refused = client.post(path, {}, content_type="application/json")
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/ConsentMissing")
    entry.agree(assessor=Assessor.objects.select_related("campaign", "user").get(pk=bob.pk))
    assert client.post(path, {}, content_type="application/json").json()["items"]


def test_a_crowd_worker_meets_the_consent_text_first(hit_campaign):
    Campaign.objects.update(consent="Do you agree?")
    client, answer = come_in(hit_campaign)
    assert answer.url == reverse("judging:consent", args=[hit_campaign.pk])
    assert "give the task back" in text_of(client.get(answer.url))
    assert "Not done yet" in text_of(completed(client, hit_campaign))
