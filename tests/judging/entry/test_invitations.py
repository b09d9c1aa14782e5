"""Invitations: nobody else gets in; and the manager's page of links and markets."""

import re
import threading
import uuid
from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse
from django.utils import timezone
from entry_campaign import MARKET, set_entry, text_of
from small_campaign import make_campaign

from console.manager.crowd import _origin
from judging.models import Assessor, Campaign, Invitation
from judging.services import crowd, entry
from judging.services.errors import InvitationUnusable
from touchstone.models import Event, User

pytestmark = pytest.mark.django_db


@pytest.fixture
def campaign(tmp_path):
    """Made for each test: one of them commits."""
    return make_campaign(tmp_path)


PASSWORD = "correct horse battery"


@pytest.fixture
def invitation(campaign, alice):
    return entry.create_invitation(campaign=campaign, user=alice)


def plain(response):
    """The page without what is random on every page of somebody who is logged in."""
    return re.sub(r'(csrfmiddlewaretoken" value=|X-CSRFToken": |nonce=)"[^"]*"', "", text_of(response))


def account(**changed):
    return {"username": "bob-the-assessor", "password": PASSWORD, "repeated": PASSWORD, **changed}


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
    assert "ask the person who sent you the link" in text_of(answers[0])
    assert set(User.objects.values_list("username", flat=True)) == {"alice"}


def test_a_weak_password_a_taken_name_and_a_slip_are_told_and_make_no_account(client, invitation):
    User.objects.create(username="Taken")
    faults = {
        "not the same": account(repeated="something else"),
        "too common": account(password="password1", repeated="password1"),
        "too short": account(password="x7$k", repeated="x7$k"),
        "Somebody already has this user name": account(username="taken"),
        "Use only letters, digits": account(username="two words"),
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
        paths = [reverse(f"console:{name}", args=[campaign.pk]) for name in MANAGER_PAGES]
        paths += [reverse("console:entry-revoke", args=[campaign.pk, invitation.pk])]
        paths += [reverse("console:entry-attempt", args=[campaign.pk, 1])]
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
    page = text_of(manager.post(reverse("console:entry-invite", args=[campaign.pk]), body, follow=True))
    made = Invitation.objects.get()
    assert f"http://testserver{join_path(made.token)}" in page
    assert "the Monday class" in page
    assert "0 of 30" in page
    assert timedelta(days=6, hours=23) < made.expires_at - timezone.now() < timedelta(days=7)
    revoke = reverse("console:entry-revoke", args=[campaign.pk, made.pk])
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
    path = reverse("console:entry-market", args=[campaign.pk])
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
    page = text_of(manager.get(reverse("console:manage-entry", args=[campaign.pk])))
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
