"""Links that work once: invitations to an account, and new passwords."""

import threading
from datetime import timedelta

import pytest
from django.db import IntegrityError, connections, transaction
from django.test import Client
from django.utils import timezone

from judging.services.errors import UserNameTaken
from touchstone import links
from touchstone.authentication import make_token, usable_tokens
from touchstone.links import LinkUnusable, hash_of, invite, make_password_link
from touchstone.models import AccountLink, Event, User

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"
NEW = {"username": "nora", "password": PASSWORD, "repeated": PASSWORD}


@pytest.fixture(autouse=True)
def quick_passwords(settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # it is not what is tested


@pytest.fixture
def mara():
    return User.objects.create_user("mara", role="manager")


@pytest.fixture
def bob():
    return User.objects.create_user("bob", password="an old password 1", role="assessor")


def path(kind, token):
    return f"/login/{'invited' if kind == 'invitation' else kind}/{token}/"


def test_only_the_hash_of_a_link_is_stored(mara, bob):
    for link, token in (invite(role="manager", actor=mara), make_password_link(user=bob, actor=mara)):
        assert len(token) == 43
        row = AccountLink.objects.values_list().get(pk=link.pk)
        assert token not in " ".join(map(str, row))
        assert link.token_sha256 == hash_of(token)
    events = " ".join(str(detail) for detail in Event.objects.values_list("detail", flat=True))
    assert token not in events


@pytest.mark.parametrize(
    ("role", "where"), [("manager", "/manage/"), ("researcher", "/results/"), ("assessor", "/judge/")]
)
def test_an_invitation_makes_one_account_of_its_role_and_leads_to_what_waits(role, where, mara):
    link, token = invite(role=role, email="Nora@Example.ORG", actor=mara)
    client = Client()
    page = client.get(path("invitation", token))
    assert page.status_code == 200
    assert User.objects.count() == 1  # looking makes no account
    answer = client.post(
        path("invitation", token), {**NEW, "role": "manager", "email": "x@y.example"}, follow=True
    )
    assert answer.redirect_chain[-1][0] == where
    nora = User.objects.get(username="nora")
    assert (nora.role, nora.email, nora.is_superuser, nora.is_staff) == (
        role,
        "Nora@example.org",
        False,
        False,
    )
    link.refresh_from_db()
    assert link.user == nora
    assert link.used_at is not None


def test_a_link_used_twice_is_one_sentence_and_changes_nothing(mara):
    _, token = invite(role="manager", actor=mara)
    assert Client().post(path("invitation", token), NEW).status_code == 302
    before = list(AccountLink.objects.values()), list(User.objects.order_by("pk").values())
    again = Client().post(path("invitation", token), {**NEW, "username": "other"})
    assert again.status_code == 404
    assert "This link cannot be used" in again.content.decode()
    assert (list(AccountLink.objects.values()), list(User.objects.order_by("pk").values())) == before


@pytest.mark.parametrize("end", ["used", "revoked", "expired", "unknown", "of another kind"])
@pytest.mark.parametrize("method", ["get", "post"])
def test_every_link_that_does_not_work_gets_the_same_page(end, method, mara, bob):
    link, token = make_password_link(user=bob, actor=mara)
    kind = "password"
    if end == "used":
        links.set_password_by_link(token=token, password=PASSWORD)
    elif end == "revoked":
        assert links.revoke_link(link=link, actor=mara)
    elif end == "expired":
        past = timezone.now() - timedelta(days=2)
        AccountLink.objects.filter(pk=link.pk).update(created_at=past, expires_at=past + timedelta(days=1))
    elif end == "unknown":
        token = "x" * 43
    else:
        kind = "invitation"
    bob.refresh_from_db()
    before = bob.password
    answer = getattr(Client(), method)(path(kind, token), {"password": PASSWORD, **NEW})
    assert answer.status_code == 404
    text = " ".join(answer.content.decode().split())
    assert "It was used, has expired or was withdrawn, or part of it is missing. Nothing was changed." in text
    bob.refresh_from_db()
    assert bob.password == before
    assert not User.objects.filter(username="nora").exists()


def test_an_invitation_ends_after_fourteen_days_and_a_password_link_after_one(mara, bob):
    for (link, _), days in (
        (invite(role="manager", actor=mara), 14),
        (make_password_link(user=bob, actor=mara), 1),
    ):
        assert abs(link.expires_at - timezone.now() - timedelta(days=days)) < timedelta(minutes=1)


def test_a_password_link_sets_the_password_ends_all_access_and_logs_in(mara, bob):
    make_token(user=bob, name="script", days=3)
    elsewhere = Client()
    elsewhere.force_login(bob)
    _, token = make_password_link(user=bob, actor=mara)
    assert User.objects.get(pk=bob.pk).check_password("an old password 1")  # until the link is used
    client = Client()
    proposal = client.get(path("password", token)).context["proposal"]
    answer = client.post(path("password", token), {"password": proposal}, follow=True)
    assert answer.redirect_chain[-1][0] == "/judge/"
    bob.refresh_from_db()
    assert bob.check_password(proposal)
    assert elsewhere.get("/account/").status_code == 302
    assert not usable_tokens().filter(user=bob).exists()


def test_a_new_password_link_ends_the_one_before(mara, bob):
    _, first = make_password_link(user=bob, actor=mara)
    _, second = make_password_link(user=bob, actor=mara)
    with pytest.raises(LinkUnusable):
        links.usable_link(kind="password", token=first)
    assert links.usable_link(kind="password", token=second).user == bob


def test_a_weak_password_a_slip_and_a_taken_name_are_told_and_use_nothing_up(mara, bob):
    _, token = invite(role="researcher", actor=mara)
    for wrong, words in (
        ({"password": "password1", "repeated": "password1"}, "too common"),
        ({"repeated": "another one"}, "not the same"),
        ({"username": "BOB"}, "already has this user name"),
        ({"username": "no spaces"}, "Use only letters"),
    ):
        answer = Client().post(path("invitation", token), {**NEW, **wrong})
        assert answer.status_code == 400
        assert words in answer.content.decode()
    _, other = make_password_link(user=bob, actor=mara)
    weak = Client().post(path("password", other), {"password": "password1"})
    assert (weak.status_code, "too common" in weak.content.decode()) == (400, True)
    assert AccountLink.objects.filter(used_at=None).count() == 2
    with pytest.raises(UserNameTaken):
        links.join_by_invitation(token=token, username="Bob", password=PASSWORD)
    assert Client().post(path("invitation", token), NEW).status_code == 302


def test_who_is_logged_in_keeps_the_account_and_the_link(mara, bob):
    _, token = invite(role="manager", actor=mara)
    client = Client()
    client.force_login(bob)
    assert (
        "You are logged in as <strong>bob</strong>" in client.get(path("invitation", token)).content.decode()
    )
    client.post(path("invitation", token), NEW)
    assert User.objects.get(pk=bob.pk).role == "assessor"
    assert links.usable_link(kind="invitation", token=token)


def test_a_link_of_a_closed_account_opens_nothing(mara, bob):
    _, token = make_password_link(user=bob, actor=mara)
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert Client().post(path("password", token), {"password": PASSWORD}).status_code == 404


def test_an_address_that_has_an_account_is_not_invited_again(mara, bob):
    User.objects.filter(pk=bob.pk).update(email="bob@example.org")
    with pytest.raises(links.AddressTaken):
        invite(role="assessor", email="BOB@example.org", actor=mara)
    assert not AccountLink.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_many_who_open_an_invitation_at_once_one_gets_the_account():
    mara = User.objects.create_user("mara", role="manager")
    _, token = invite(role="manager", actor=mara)
    assert (
        together(8, lambda n: links.join_by_invitation(token=token, username=f"n{n}", password=PASSWORD)) == 1
    )
    assert User.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_without_the_look_behind_the_lock_many_would_get_one(monkeypatch):
    """The positive control: whoever only looks before, as pages do, makes as many accounts as come at once."""
    mara = User.objects.create_user("mara", role="manager")
    link, token = invite(role="manager", actor=mara)
    looked = threading.Barrier(8)

    def use(kind, token, user=None):
        looked.wait(30)
        AccountLink.objects.filter(pk=link.pk).update(used_at=timezone.now(), user=user)
        return link

    monkeypatch.setattr(links, "_use", use)
    assert (
        together(8, lambda n: links.join_by_invitation(token=token, username=f"n{n}", password=PASSWORD)) > 1
    )


def together(n, act):
    """Call act(number) in n threads at once; return how many were not refused."""
    start, done = threading.Barrier(n), []

    def one(number):
        start.wait(30)
        try:
            act(number)
            done.append(number)
        except LinkUnusable:
            pass
        finally:
            connections.close_all()

    threads = [threading.Thread(target=one, args=[number]) for number in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return len(done)


@pytest.mark.parametrize(
    "wrong",
    [
        {"role": "owner"},
        {"role": ""},
        {"kind": "letter"},
        {"token_sha256": "a token itself"},
        {"expires_at": timezone.now() - timedelta(days=1)},
        {"used_at": timezone.now()},
        {"kind": "password", "role": ""},
        {"kind": "address", "role": "", "email": "a@example.org"},
    ],
)
def test_the_database_refuses_a_link_that_makes_no_sense(wrong):
    good = {"kind": "invitation", "role": "manager", "token_sha256": "0" * 64}
    good["expires_at"] = timezone.now() + timedelta(days=1)
    with pytest.raises(IntegrityError), transaction.atomic():
        AccountLink.objects.create(**{**good, **wrong})
    assert AccountLink.objects.create(**good).pk
