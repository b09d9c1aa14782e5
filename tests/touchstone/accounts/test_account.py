"""My account: name, password, time zone; and pages that name times in it."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from touchstone.authentication import make_token, usable_tokens
from touchstone.models import AccountLink, ApiToken, Event, User
from touchstone.readers import zone_names, zone_of

pytestmark = pytest.mark.django_db
OLD, NEW = "an old password 1", "quiet rivers bend slowly"


@pytest.fixture(autouse=True)
def quick_passwords(settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # it is not what is tested


@pytest.fixture
def bob():
    return User.objects.create_user("bob", password=OLD, role="researcher")


@pytest.fixture
def page(bob):
    client = Client()
    client.force_login(bob)
    return client


def change(client, part, **fields):
    return client.post(
        "/account/", {"part": part, **{f"{part}-{name}": value for name, value in fields.items()}}
    )


def test_a_new_password_wants_the_old_one_and_ends_all_other_sessions(bob, page):
    elsewhere = Client()
    elsewhere.force_login(bob)
    make_token(user=bob, name="script", days=3)
    wrong = change(page, "password", old="not it", new=NEW)
    assert (wrong.status_code, "This is not your present password." in wrong.content.decode()) == (400, True)
    assert elsewhere.get("/account/").status_code == 200
    assert change(page, "password", old=OLD, new=NEW).status_code == 302
    bob.refresh_from_db()
    assert bob.check_password(NEW)
    assert page.get("/account/").status_code == 200
    assert elsewhere.get("/account/").status_code == 302
    assert not usable_tokens().exists()
    assert Event.objects.get(verb="changed the password").actor == bob


def test_a_weak_password_is_refused_and_what_was_typed_is_not_sent_back(bob, page):
    answer = change(page, "password", old=OLD, new="password1")
    assert answer.status_code == 400
    assert "too common" in answer.content.decode()
    assert OLD not in answer.content.decode()
    assert "password1" not in answer.content.decode()
    bob.refresh_from_db()
    assert bob.check_password(OLD)


def test_wrong_passwords_are_counted_before_they_are_looked_at(bob, page, settings):
    settings.LOGIN_TRIES = 3
    for _ in range(3):
        change(page, "password", old="not it", new=NEW)
    answer = change(page, "password", old=OLD, new=NEW)
    assert (answer.status_code, "Too many wrong passwords" in answer.content.decode()) == (400, True)
    bob.refresh_from_db()
    assert bob.check_password(OLD)


def test_without_a_password_there_is_nothing_to_change(bob, page):
    User.objects.filter(pk=bob.pk).update(password="!none")
    page.force_login(User.objects.get(pk=bob.pk))
    assert "Your account has no password." in page.get("/account/").content.decode()
    assert change(page, "password", old="", new=NEW).status_code == 400


def test_the_name_is_stored_and_another_part_is_none(bob, page):
    change(page, "name", name="Bob Builder")
    assert User.objects.get(pk=bob.pk).first_name == "Bob Builder"
    assert change(page, "role", role="manager").status_code == 404
    change(page, "name", name="Bob", role="manager", username="mara")
    bob.refresh_from_db()
    assert (bob.role, bob.username) == ("researcher", "bob")


def test_pages_name_times_in_the_readers_zone_and_the_api_in_utc(bob, page):
    make_token(user=bob, name="script", days=3)
    ApiToken.objects.update(expires_at=datetime(2027, 1, 15, 11, 30, tzinfo=UTC))
    assert "2027-01-15 11:30 UTC" in page.get("/account/tokens/").content.decode()
    assert change(page, "zone", zone="Europe/Berlin").status_code == 302
    assert "2027-01-15 12:30 CET" in page.get("/account/tokens/").content.decode()
    ApiToken.objects.update(expires_at=datetime(2027, 7, 15, 11, 30, tzinfo=UTC))
    assert "2027-07-15 13:30 CEST" in page.get("/account/tokens/").content.decode()
    assert change(page, "zone", zone="Asia/Kathmandu").status_code == 302
    assert "2027-07-15 17:15 +0545" in page.get("/account/tokens/").content.decode()
    assert timezone.get_current_timezone_name() == "UTC"  # afterwards the thread is nobody's
    answer = page.get("/api/v1/me")
    assert answer.status_code == 200
    assert "+05:45" not in answer.content.decode()


def test_a_zone_that_there_is_not_is_refused_and_one_that_the_world_gives_up_is_utc(bob, page):
    assert change(page, "zone", zone="Mars/Olympus").status_code == 400
    User.objects.filter(pk=bob.pk).update(time_zone="Mars/Olympus")
    assert page.get("/account/").status_code == 200
    for name in ("../etc/passwd", "/etc/passwd", "Europe", "a\0b"):
        assert str(zone_of(name)) == "UTC"
    assert {"Europe/Berlin", "America/New_York", "Asia/Shanghai"} < set(zone_names())


def test_who_opens_a_page_is_seen_to_the_hour_and_no_oftener(bob, page, django_assert_num_queries):
    bob.refresh_from_db()
    assert timezone.now() - bob.seen_at < timedelta(minutes=1)  # by logging in
    long_ago = timezone.now() - timedelta(hours=2)
    User.objects.filter(pk=bob.pk).update(seen_at=long_ago)
    page.get("/api/v1/me")
    bob.refresh_from_db()
    assert bob.seen_at == long_ago
    page.get("/account/")
    bob.refresh_from_db()
    assert bob.seen_at > long_ago
    with django_assert_num_queries(3):  # the session, its person, whether a worker lives
        page.get("/account/")


def test_the_account_and_its_links_are_given_out_and_erased(bob, page, tmp_path):
    from touchstone.links import invite, make_password_link
    from touchstone.people import exporting
    from touchstone.people.erasing import ErasureReport, _erase_own_rows, _rename

    mara = User.objects.create_user("mara", role="manager")
    change(page, "zone", zone="Europe/Berlin")
    User.objects.filter(pk=bob.pk).update(email="bob@example.org")
    bob.refresh_from_db()
    make_password_link(user=bob, actor=mara)
    User.objects.filter(pk=bob.pk).update(is_active=False)
    invite(role="manager", email="bob@example.org", actor=mara)
    invite(role="manager", email="other@example.org", actor=mara)
    given = "".join(exporting._account(bob))
    assert '"time_zone": "Europe/Berlin"' in given
    assert '"kind": "password"' in given
    assert "token_sha256" not in given
    _erase_own_rows(bob, ErasureReport("erased"))
    assert list(AccountLink.objects.values_list("email", flat=True)) == ["other@example.org"]
    _rename(bob, "erased-1")
    bob.refresh_from_db()
    assert (bob.time_zone, bob.seen_at, bob.email) == ("", None, "")
