"""What managers do with accounts, and the last manager, whom nobody takes away."""

import threading

import pytest
from django.db import IntegrityError, connection, connections, transaction
from django.test import Client
from small_campaign import lease, make_assessor, make_campaign, slots

from judging.models import Collection, Participant
from touchstone import users
from touchstone.authentication import make_token, usable_tokens
from touchstone.links import invite
from touchstone.models import AccountLink, Event, User
from touchstone.people.erasing import CannotErase, erase
from touchstone.users import LastManager, change_role, close_account, end_sessions, open_account

pytestmark = pytest.mark.django_db


def user(name, role="assessor", **fields):
    return User.objects.create_user(name, role=role, **fields)


def client_of(person):
    client = Client()
    client.force_login(person)
    return client


@pytest.fixture
def mara():
    return user("mara", "manager")


@pytest.fixture
def pages(mara):
    return client_of(mara)


# -- the last manager -----------------------------------------------------------------------------------------


def test_the_last_active_manager_is_neither_demoted_nor_closed_nor_erased(mara):
    user("closed", "manager", is_active=False)
    for take_away in (
        lambda: change_role(user=mara, role="researcher", actor=mara),
        lambda: close_account(user=mara, actor=mara),
    ):
        with pytest.raises(LastManager):
            take_away()
    with pytest.raises(CannotErase, match="last active manager"):
        erase(mara)
    with pytest.raises(IntegrityError), transaction.atomic():  # nor by a statement of somebody's own
        User.objects.update(is_active=False)
    mara.refresh_from_db()
    assert (mara.role, mara.is_active) == ("manager", True)
    other = user("otto", "manager")
    assert change_role(user=mara, role="assessor", actor=other)  # the control


def managers_left_by_two_who_demote_each_other():
    """Let the second begin while the first has not committed; return how many managers there are in the end."""
    mara, otto = user("mara", "manager"), user("otto", "manager")
    begun, done = threading.Event(), threading.Event()

    def second():
        begun.wait(10)
        try:
            change_role(user=mara, role="assessor", actor=otto)
        except LastManager:
            pass
        finally:
            done.set()
            connections.close_all()

    thread = threading.Thread(target=second)
    thread.start()
    with transaction.atomic():
        change_role(user=otto, role="assessor", actor=mara)
        begun.set()
        done.wait(1)
    thread.join(30)
    return User.objects.filter(role="manager", is_active=True).count()


@pytest.mark.django_db(transaction=True)
def test_of_two_managers_who_demote_each_other_at_once_one_stays():
    assert managers_left_by_two_who_demote_each_other() == 1


@pytest.mark.django_db(transaction=True)
def test_without_the_lock_of_the_trigger_both_would_be_gone():
    """The positive control: each counts the other, whose change it does not see yet."""
    lock = "PERFORM pg_advisory_xact_lock(7005);"
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_functiondef('touchstone_keep_a_manager'::regproc)")
        function = cursor.fetchone()[0]
        assert lock in function
        cursor.execute(function.replace(lock, ""))
    try:
        assert managers_left_by_two_who_demote_each_other() == 0
    finally:
        with connection.cursor() as cursor:
            cursor.execute(function)


# -- roles, sessions, accounts --------------------------------------------------------------------------------


def test_a_role_holds_from_the_next_request_on(mara, pages):
    rita = user("rita", "assessor")
    hers = client_of(rita)
    assert hers.get("/results/").status_code == 404
    answer = pages.post(f"/manage/users/{rita.pk}/role/", {"role": "researcher"}, follow=True)
    assert "rita is researcher now." in answer.content.decode()
    assert hers.get("/results/").status_code == 200
    event = Event.objects.get(verb="changed a role")
    assert (event.actor, event.detail) == (mara, {"before": "assessor", "role": "researcher"})
    pages.post(f"/manage/users/{rita.pk}/role/", {"role": "researcher"})
    assert Event.objects.filter(verb="changed a role").count() == 1
    assert pages.post(f"/manage/users/{rita.pk}/role/", {"role": "owner"}).status_code == 404


def test_the_page_says_why_the_last_manager_stays(mara, pages):
    for act, sent in (("role", {"role": "assessor"}), ("open", {"is_open": "no"})):
        answer = pages.post(f"/manage/users/{mara.pk}/{act}/", sent, follow=True)
        assert (
            "The last active manager stays one. Make somebody else a manager first."
            in answer.content.decode()
        )


def test_ending_sessions_ends_keys_and_leases_too(mara, pages, tmp_path):
    campaign = make_campaign(tmp_path)
    bob = make_assessor(campaign, "bob")
    lease(bob, slots(campaign)[0])
    make_token(user=bob.user, name="script", days=3)
    his = client_of(bob.user)
    answer = pages.post(f"/manage/users/{bob.user_id}/sessions/", follow=True)
    assert "sessions 1, API keys 1, documents given back 1." in answer.content.decode()
    assert his.get("/account/").status_code == 302
    assert not usable_tokens().exists()
    assert slots(campaign)[0].state == "open"
    assert end_sessions(user=bob.user, actor=mara).sessions == 0


def test_a_closed_account_is_out_at_once_and_comes_back_by_logging_in_anew(mara, pages, tmp_path):
    campaign = make_campaign(tmp_path)
    bob = make_assessor(campaign, "bob")
    lease(bob, slots(campaign)[0])
    his = client_of(bob.user)
    answer = pages.post(f"/manage/users/{bob.user_id}/open/", {"is_open": "no"}, follow=True)
    assert "The account of bob is closed" in answer.content.decode()
    assert his.get("/account/").status_code == 302
    assert slots(campaign)[0].state == "open"
    pages.post(f"/manage/users/{bob.user_id}/open/", {"is_open": "yes"})
    assert User.objects.get(pk=bob.user_id).is_active
    assert his.get("/account/").status_code == 302
    assert not open_account(user=bob.user, actor=mara)
    assert list(Event.objects.filter(verb__endswith="an account").values_list("verb", flat=True)) == [
        "closed an account",
        "opened an account",
    ]
    assert pages.post(f"/manage/users/{bob.user_id}/open/", {}).status_code == 404


def test_another_integrity_error_is_no_last_manager(mara):
    with pytest.raises(IntegrityError) as caught, users.keeping_a_manager():
        User.objects.create(username="mara")
    assert not isinstance(caught.value, LastManager)


# -- the pages ------------------------------------------------------------------------------------------------


def test_the_list_shows_role_tiers_and_who_was_seen(mara, pages, tmp_path):
    campaign = make_campaign(tmp_path)
    make_assessor(campaign, "bob", tier="silver")
    text = " ".join(pages.get("/manage/users/").content.decode().split())
    assert "silver</span> <small>1 campaign</small>" in text
    assert "not yet" in text  # bob never came
    hidden = Collection.objects.get()
    hidden.is_restricted = True
    hidden.save()
    assert "1 campaign<" not in pages.get("/manage/users/").content.decode()


def test_the_list_is_filtered_by_name_role_and_state(mara, pages, tmp_path):
    user("rita", "researcher", first_name="Rita Riemann", email="r@example.org")
    user("gone", "researcher", is_active=False)
    crowd = make_assessor(make_campaign(tmp_path), "crowd-1")
    Participant.objects.create(campaign=crowd.campaign, assessor=crowd, participant="W1")

    def names(query):
        return [person.username for person, _ in pages.get(f"/manage/users/{query}").context["people"]]

    assert names("") == ["mara", "rita"]
    assert names("?q=riemann") == names("?q=R@EXAMPLE") == names("?role=researcher") == ["rita"]
    assert names("?only=closed") == ["gone"]
    assert names("?only=crowd") == ["crowd-1"]
    assert names("?only=all") == ["crowd-1", "gone", "mara", "rita"]
    assert names("?q=nobody") == []
    assert "No account fits" in pages.get("/manage/users/?q=nobody").content.decode()


def test_the_pages_cost_the_same_however_many_there_are(mara, pages, django_assert_max_num_queries):
    for n in range(60):
        user(f"user-{n:02}")
        invite(role="assessor", actor=mara)
    pages.get("/manage/users/")
    for page in ("/manage/users/", "/manage/users/?page=2&only=all", f"/manage/users/{mara.pk}/"):
        with django_assert_max_num_queries(12):
            assert pages.get(page).status_code == 200


def test_an_invitation_is_made_shown_once_and_withdrawn(mara, pages):
    answer = pages.post("/manage/users/", {"role": "manager", "email": "nora@example.org"})
    assert answer.status_code == 201
    link = answer.context["link"]
    assert link.startswith("http://testserver/login/invited/")
    assert link in answer.content.decode()
    page = pages.get("/manage/users/").content.decode()
    assert link not in page
    assert "nora@example.org" in page
    row = AccountLink.objects.get()
    for words in ("The invitation was withdrawn", "Nothing was changed"):
        answer = pages.post(f"/manage/users/invitations/{row.pk}/withdraw/", follow=True)
        assert words in answer.content.decode()
    assert Client().get(link).status_code == 404
    assert "nora@example.org" not in pages.get("/manage/users/").content.decode()


def test_a_wrong_invitation_is_refused_beside_its_field(mara, pages):
    user("rita", email="r@example.org")
    for sent, words in (
        ({"role": "owner"}, "owner is not one of the available choices"),
        ({"role": "manager", "email": "no address"}, "valid email address"),
        ({"role": "manager", "email": "R@example.org"}, "An account with this address is there already."),
    ):
        answer = pages.post("/manage/users/", sent)
        assert answer.status_code in (400, 409)
        assert words in answer.content.decode()
    assert not AccountLink.objects.exists()


def test_a_password_link_is_made_for_open_accounts_alone(mara, pages):
    bob = user("bob", password="an old password 1")
    answer = pages.post(f"/manage/users/{bob.pk}/password/")
    assert answer.status_code == 201
    link = answer.context["link"]
    assert Client().get(link).status_code == 200
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert pages.post(f"/manage/users/{bob.pk}/password/").status_code == 404
    assert Client().get(link).status_code == 404
