"""Sessions, keys and leases end with a new password and with the account; a login elsewhere ends nothing."""

import pytest
from django.contrib.sessions.models import Session
from django.core.management import call_command
from small_campaign import lease, make_assessor, make_campaign, slots

from touchstone.access import Ended, end_access
from touchstone.authentication import make_token, usable_tokens
from touchstone.models import Event, User

pytestmark = pytest.mark.django_db
PASSWORD = "a long password 1"


@pytest.fixture
def ada():
    user = User(username="ada@example.org")
    user.set_password(PASSWORD)
    user.save()
    return user


def browser(client_class, user):
    made = client_class()
    made.force_login(user)
    return made


def is_in(client):
    return client.get("/account/tokens/").status_code == 200


@pytest.fixture
def two_browsers(client, ada):
    return [browser(type(client), ada) for _ in range(2)]


def close(user):
    user.is_active = False
    user.save(update_fields=["is_active"])


def give_password(user):
    user.set_password("another long password 2")
    user.save()


def lose_password(user):
    user.set_unusable_password()
    user.save()


@pytest.mark.parametrize("change", [close, give_password, lose_password])
def test_a_save_that_changes_the_password_or_closes_the_account_ends_all_access(change, ada, two_browsers):
    make_token(user=ada, name="script", days=3)
    assert [is_in(one) for one in two_browsers] == [True, True]
    change(ada)
    assert [is_in(one) for one in two_browsers] == [False, False]
    assert Session.objects.count() == 0
    assert not usable_tokens().filter(user=ada).exists()
    if change is close:  # opened again, the account begins anew
        ada.is_active = True
        ada.save()
        assert [is_in(one) for one in two_browsers] == [False, False]


def test_other_saves_and_a_password_hashed_anew_end_nothing(ada, two_browsers, settings):
    make_token(user=ada, name="script", days=3)
    ada.first_name = "Ada"
    ada.save()
    assert [is_in(one) for one in two_browsers] == [True, True]
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.PBKDF2PasswordHasher",
        "django.contrib.auth.hashers.Argon2PasswordHasher",
    ]
    assert ada.check_password(PASSWORD)
    assert User.objects.get(pk=ada.pk).password.startswith("pbkdf2")
    assert usable_tokens().filter(user=ada).count() == 1


def test_the_command_that_changes_a_password_ends_them_too(ada, two_browsers, monkeypatch):
    make_token(user=ada, name="script", days=3)
    monkeypatch.setattr("getpass.getpass", lambda **_: "another long password 2")
    call_command("changepassword", ada.username, verbosity=0)
    assert [is_in(one) for one in two_browsers] == [False, False]
    assert not usable_tokens().filter(user=ada).exists()


def test_what_ended_is_counted_and_others_keep_theirs(ada, two_browsers, tmp_path, client):
    campaign = make_campaign(tmp_path)
    hers, other = make_assessor(campaign, ada.username), make_assessor(campaign, "bob")
    first, second, third = slots(campaign)[::2][:3]
    lease(hers, first)
    lease(hers, second)
    lease(other, third)
    make_token(user=ada, name="script", days=3)
    make_token(user=other.user, name="script", days=3)
    client.force_login(other.user)
    assert end_access(ada, sessions=False, keys=False) == Ended(0, 0, 2)
    assert [is_in(one) for one in two_browsers] == [True, True]
    assert end_access(ada) == Ended(2, 1, 0)
    assert [is_in(one) for one in two_browsers] == [False, False]
    assert is_in(client)
    assert usable_tokens().get().user == other.user
    assert [slot.state for slot in slots(campaign)[::2][:3]] == ["open", "open", "leased"]
    assert Event.objects.filter(verb="released", detail__assessor=ada.pk, detail__n_slots=2).count() == 1


def test_a_session_from_before_there_were_salts_goes_on(ada, client):
    """Its hash is Django's own: the control is a user with a salt."""
    from django.contrib.auth.base_user import AbstractBaseUser

    assert ada.session_salt == ""
    assert ada.get_session_auth_hash() == AbstractBaseUser._get_session_auth_hash(ada)
    ada.session_salt = "x"
    assert ada.get_session_auth_hash() != AbstractBaseUser._get_session_auth_hash(ada)
