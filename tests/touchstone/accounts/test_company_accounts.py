"""Which account the company's log-in leads to, and how it comes to be."""

import threading

import pytest
from browser import make_campaign
from django.db import IntegrityError, connections, transaction
from django.test import Client
from openid_provider import answer_of, begin, log_in

from judging.models import Assessor, Invitation
from judging.services.entry import create_invitation
from touchstone import links, openid, sign_on
from touchstone.links import invite, make_password_link
from touchstone.models import AccountLink, Event, Identity, User
from touchstone.openid import Person
from touchstone.users import close_account, end_sessions

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"
ISSUER = "https://id.example.org"


@pytest.fixture(autouse=True)
def quick_passwords(settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # it is not what is tested


@pytest.fixture
def mara():
    return User.objects.create_user("mara", role="manager")


def said(answer):
    return " ".join(answer.content.decode().split())


def is_in(client):
    return client.get("/account/").status_code == 200


def ann(subject="s-ann", email="ann@example.org", **more):
    return Person(ISSUER, subject, email, **more)


def refused(provider, sub, words, status=403):
    users = list(User.objects.order_by("pk").values())
    client = Client()
    answer = log_in(client, sub)
    assert answer.status_code == status
    assert words in said(answer)
    assert not is_in(client)
    assert list(User.objects.order_by("pk").values()) == users


# -- who has no account yet -----------------------------------------------------------------------------------


def test_nobody_comes_in_without_an_invitation(provider, mara):
    provider.know("s-ann", email="ann@example.org", email_verified=True)
    invite(role="manager", email="another@example.org", actor=mara)
    refused(provider, "s-ann", "You have no account here, and no invitation was sent to your address.")
    assert AccountLink.objects.get().used_at is None


@pytest.mark.parametrize("verified", [False, None, "false", 1, "yes"])
def test_an_address_that_the_company_has_not_confirmed_finds_no_invitation(
    verified, provider, mara, monkeypatch
):
    provider.know(
        "s-ann", email="ann@example.org", **({} if verified is None else {"email_verified": verified})
    )
    invite(role="manager", email="ann@example.org", actor=mara)
    refused(
        provider, "s-ann", "Your company has not confirmed your address, so no invitation was looked for."
    )
    assert AccountLink.objects.get().used_at is None

    monkeypatch.setattr(openid, "has_confirmed_address", lambda about: True)  # the control
    client = Client()
    assert log_in(client, "s-ann").status_code == 302
    assert is_in(client)


@pytest.mark.parametrize("role", ["assessor", "researcher", "manager"])
def test_an_invitation_to_the_confirmed_address_gives_its_role_once(role, provider, mara):
    provider.know("s-ann", email="Ann@Example.org", email_verified=True)
    provider.know("s-bea", email="ann@example.org", email_verified=True)
    older, _ = invite(role="assessor", email="ann@example.org", actor=mara)
    newer, _ = invite(role=role, email="ann@example.org", actor=mara)
    log_in(Client(), "s-ann")
    made = User.objects.exclude(pk=mara.pk).get()
    assert made.role == role
    older.refresh_from_db()
    newer.refresh_from_db()
    assert (newer.user, newer.used_at is not None) == (made, True)
    assert (older.user, older.revoked_at is not None) == (None, True)
    # The same address, and another person: the invitation is used up.
    refused(provider, "s-bea", "An account with your address exists.", 409)


@pytest.mark.parametrize(
    ("invited", "has"),
    [("mike@example.org", "mıke@example.org"), ("kim@example.org", "\u212aim@example.org")],
)
def test_an_address_that_only_looks_alike_finds_no_invitation(invited, has, mara):
    """Databases compare capitals: those of "ı" and of the sign of the kelvin are I and K."""
    assert invited.upper() == has.upper() or invited.casefold() == has.casefold(), "the control"
    assert not links.is_same_address(invited, has)
    invite(role="manager", email=invited, actor=mara)
    with pytest.raises(sign_on.NotInvited):
        sign_on.enter(ann(email=has))
    assert sign_on.enter(ann(email=invited.upper())).role == "manager"


@pytest.mark.parametrize("role", ["assessor", "researcher"])
def test_everybody_comes_in_where_the_settings_say_so(role, provider, settings):
    settings.OIDC_NEW_USERS = role
    provider.know("s-ann", email="ann@example.org", email_verified=True, preferred_username="ann <b>")
    provider.know("s-cy", email="cy@example.org")
    for sub in ("s-ann", "s-cy"):
        assert is_in_after(sub)
    found = User.objects.order_by("pk").values_list("role", "email", "username")
    # An address that the company does not vouch for is not kept.
    assert tuple(found[0]) == (role, "ann@example.org", "annb")
    assert found[1][:2] == (role, "")


def is_in_after(sub):
    client = Client()
    log_in(client, sub)
    return is_in(client)


def test_an_address_of_an_account_that_is_there_is_not_taken_over(provider, mara, settings):
    settings.OIDC_NEW_USERS = "researcher"
    User.objects.filter(pk=mara.pk).update(email="ann@example.org")
    provider.know("s-ann", email="ann@example.org", email_verified=True)
    refused(provider, "s-ann", "An account with your address exists.", 409)
    assert not Identity.objects.exists()


def test_a_person_is_known_by_subject_whatever_becomes_of_address_and_name(provider, settings):
    settings.OIDC_NEW_USERS = "assessor"
    provider.know("s-ann", email="ann@example.org", email_verified=True)
    log_in(Client(), "s-ann")
    provider.know("s-ann", email="ann.married@example.org", email_verified=True)
    log_in(Client(), "s-ann")
    assert User.objects.get().email == "ann@example.org"
    # The address is another person's now.
    provider.know("s-new", email="ann@example.org", email_verified=True)
    refused(provider, "s-new", "An account with your address exists.", 409)


def test_names_that_are_taken_get_a_number(settings, mara):
    settings.OIDC_NEW_USERS = "assessor"
    made = sign_on.enter(ann(username="MARA@example.org"))
    assert made.username.startswith("MARA-")
    assert sign_on.enter(ann("s-2", "", username="")).username.count("-") == 2  # two words and a number


# -- links ----------------------------------------------------------------------------------------------------


def test_an_invitation_by_link_makes_the_account_whatever_the_address(provider, mara):
    provider.know("s-ann", email="private@example.net")
    link, token = invite(role="manager", actor=mara)
    page = Client().get(f"/login/invited/{token}/").content.decode()
    assert f"/login/company/invited/{token}/" in page
    client = Client()
    answer = log_in(client, "s-ann", f"/login/company/invited/{token}/")
    assert answer.status_code == 302
    assert User.objects.exclude(pk=mara.pk).get().role == "manager"
    link.refresh_from_db()
    assert link.used_at is not None
    # Used twice: one sentence, and nothing changed.
    again = Client().get(f"/login/company/invited/{token}/")
    assert (again.status_code, "The link was used, has expired or was withdrawn." in said(again)) == (
        404,
        True,
    )


def test_who_has_an_account_keeps_it_and_the_invitation(provider, mara, settings):
    settings.OIDC_NEW_USERS = "assessor"
    provider.know("s-ann", email="ann@example.org", email_verified=True)
    log_in(Client(), "s-ann")
    link, token = invite(role="manager", actor=mara)
    client = Client()
    answer = client.get(answer_of(begin(client, f"/login/company/invited/{token}/"), "s-ann"), follow=True)
    assert "so the invitation was not used" in said(answer)
    assert User.objects.exclude(pk=mara.pk).get().role == "assessor"
    link.refresh_from_db()
    assert link.used_at is None


def test_the_invitation_of_a_campaign_makes_an_assessor_of_its_tier(provider, mara):
    campaign = make_campaign(2)
    invitation = create_invitation(campaign=campaign, user=mara, tier="silver")
    provider.know("s-ann")
    client = Client()
    answer = client.get(
        answer_of(begin(client, f"/login/company/join/{invitation.token}/"), "s-ann"), follow=True
    )
    assert answer.redirect_chain[-1][0] == f"/judge/{campaign.pk}/"
    assert Assessor.objects.get().tier == "silver"
    assert User.objects.exclude(pk=mara.pk).get().role == "assessor"
    assert Invitation.objects.get().n_used == 1
    gone = Client().get(f"/login/company/join/{invitation.token}/")
    assert (gone.status_code, "This invitation cannot be used." in said(gone)) == (404, True)


def test_a_one_time_link_links_an_account_and_ends_what_was(provider, mara, settings):
    settings.PASSWORD_LOGIN = False
    bob = User.objects.create_user("bob", password=PASSWORD, role="researcher")
    elsewhere = Client()
    elsewhere.force_login(bob)
    _, token = make_password_link(user=bob, actor=mara)
    provider.know("s-bob", email="bob@example.org")
    page = Client().get(f"/login/password/{token}/")
    assert f"/login/company/password/{token}/" in page.content.decode()
    client = Client()
    log_in(client, "s-bob", f"/login/company/password/{token}/")
    assert is_in(client)
    assert not is_in(elsewhere)
    assert Identity.objects.get().user == bob
    again = Client().get(f"/login/company/password/{token}/")
    assert (again.status_code, "The link was used" in said(again)) == (404, True)


def test_somebody_elses_person_is_not_linked_and_the_link_stays(mara):
    bob = User.objects.create_user("bob")
    sign_on.link_account(user=mara, person=ann())
    _, token = make_password_link(user=bob, actor=mara)
    with pytest.raises(sign_on.LinkedElsewhere):
        sign_on.link_by_password_link(token=token, person=ann())
    assert links.usable_link(kind=links.PASSWORD, token=token)
    assert Identity.objects.get().user == mara


# -- one's own account ----------------------------------------------------------------------------------------


def test_an_account_is_linked_with_consent_and_password(provider, settings):
    bob = User.objects.create_user("bob", password=PASSWORD, role="researcher")
    provider.know("s-bob", email="bob@example.org", email_verified=True)
    client = Client()
    client.force_login(bob)
    assert "/login/company/link/" in client.get("/account/").content.decode()
    page = client.get(answer_of(begin(client, "/login/company/link/"), "s-bob"))
    assert page.status_code == 200
    assert "<strong>bob@example.org</strong> logs in as <strong>bob</strong>" in said(page)
    assert not Identity.objects.exists()  # looking links nothing
    sent = {"person": page.context["payload"], "company-old": "wrong"}
    assert client.post("/login/company/link/", sent).status_code == 400
    assert not Identity.objects.exists()
    assert client.post("/login/company/link/", {**sent, "company-old": PASSWORD}).status_code == 302
    assert Identity.objects.get().user == bob
    account = said(client.get("/account/"))
    assert f"linked with <strong>bob@example.org</strong> at {provider.issuer}" in account
    assert is_in_after("s-bob")


def test_the_consent_is_of_one_account_and_needs_its_form(provider, mara):
    bob = User.objects.create_user("bob")
    client, other = Client(), Client(enforce_csrf_checks=True)
    client.force_login(bob)
    other.force_login(mara)
    provider.know("s-bob")
    page = client.get(answer_of(begin(client, "/login/company/link/"), "s-bob"))
    sent = {"person": page.context["payload"]}
    assert other.post("/login/company/link/", sent).status_code == 403  # no token of a form
    other.handler.enforce_csrf_checks = False
    assert other.post("/login/company/link/", sent).status_code == 403  # bob's consent, mara's session
    assert client.post("/login/company/link/", {"person": sent["person"] + "x"}).status_code == 403
    assert not Identity.objects.exists()
    assert client.post("/login/company/link/", sent).status_code == 302


# -- the end --------------------------------------------------------------------------------------------------


def test_sessions_that_the_company_began_end_like_others(provider, mara, settings):
    settings.OIDC_NEW_USERS = "assessor"
    provider.know("s-ann")
    client = Client()
    log_in(client, "s-ann")
    user = User.objects.exclude(pk=mara.pk).get()
    end_sessions(user=user, actor=mara)
    assert not is_in(client)
    log_in(client, "s-ann")
    assert is_in(client)
    close_account(user=user, actor=mara)
    assert not is_in(client)
    refused(provider, "s-ann", "Your account here is closed.")


def test_the_database_keeps_one_account_of_a_person_and_one_person_of_an_account(mara):
    bob = User.objects.create_user("bob")
    good = {"user": mara, "issuer": ISSUER, "subject": "s-1"}
    Identity.objects.create(**good)
    for wrong in (
        {"user": bob},
        {"subject": "s-2"},
        {"user": bob, "subject": ""},
        {"user": bob, "issuer": ""},
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            Identity.objects.create(**{**good, **wrong})
    assert Identity.objects.create(**{**good, "user": bob, "subject": "s-2"}).pk
    assert Identity.objects.create(**{**good, "user": bob, "issuer": "https://new.example"}).pk


@pytest.mark.django_db(transaction=True)
def test_two_tabs_of_one_person_make_one_account():
    invite(role="researcher", email="ann@example.org", actor=None)
    start, found = threading.Barrier(6), []

    def one():
        try:
            start.wait(30)
            found.append(sign_on.enter(ann()).pk)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 6
    assert len(set(found)) == User.objects.count() == 1
    assert Event.objects.filter(verb="accepted an invitation").count() == 1
