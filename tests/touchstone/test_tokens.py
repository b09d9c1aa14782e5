"""Keys for programs: who gets in with one, who does not, and that nobody can read a key twice."""

import hashlib
import io
import re
import uuid
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from touchstone.authentication import MOST_TOKENS, make_token, revoke_token
from touchstone.models import ApiToken, Event, User

pytestmark = pytest.mark.django_db
PAGE = "/account/tokens/"
# An address of the API that answers 404 whoever may use the API: nobody is an assessor of a campaign that is not there.
API = f"/api/v1/campaigns/{uuid.uuid4()}/claim"
LET_IN, TURNED_AWAY = (404, "/problems/NotAnAssessor"), (401, "/problems/AuthenticationFailed")


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    """Pages name static files by their hash, which collectstatic alone knows; not so here."""
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}


@pytest.fixture
def bob():
    return User.objects.create(username="bob")


def answer_to(header, client=None):
    """Return status and type of the API's answer to a program with this header; no cookies, CSRF is enforced."""
    headers = {"Authorization": header} if header is not None else {}
    answer = (client or Client(enforce_csrf_checks=True)).post(
        API, {}, "application/json", headers=headers, follow=False
    )
    return answer


def outcome(header, client=None):
    answer = answer_to(header, client)
    return answer.status_code, answer.json()["type"]


def test_a_key_opens_the_api_without_cookies_and_without_csrf_token(bob):
    _, key = make_token(user=bob, name="judge", days=1)
    assert outcome(f"Bearer {key}") == LET_IN
    assert outcome(f"bearer {key}") == LET_IN  # schemes have no case


def test_a_key_is_of_one_person_and_of_the_api_alone(bob):
    _, key = make_token(user=bob, name="judge", days=1)
    answer = Client(headers={"Authorization": f"Bearer {key}"}).get(PAGE)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/login/")


def spoiled(bob, how):
    """Return a key that must not work."""
    token, key = make_token(user=bob, name="judge", days=1)
    if how == "expired":
        ApiToken.objects.filter(pk=token.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    elif how == "revoked":
        revoke_token(token=token, actor=bob)
    elif how == "of somebody who left":
        User.objects.filter(pk=bob.pk).update(is_active=False)
    elif how == "the hash":
        return token.key_sha256
    elif how == "shortened":
        return key[:-1]
    elif how == "lengthened":
        return key + " "  # a client strips it, a program that forges headers does not
    else:
        return how
    return key


@pytest.mark.parametrize(
    "how",
    [
        "expired",
        "revoked",
        "of somebody who left",
        "the hash",
        "shortened",
        "touchstone_" + "a" * 43,
        "",
        " ",
        "é" * 10,
        "a b",
        "x" * 5000,
    ],
)
def test_every_key_that_does_not_work_gets_the_same_answer(bob, how):
    answer = answer_to(f"Bearer {spoiled(bob, how)}")
    assert (answer.status_code, answer.json()["type"]) == TURNED_AWAY
    assert answer.json() == answer_to("Bearer nonsense").json()
    assert answer["WWW-Authenticate"] == 'Bearer realm="Touchstone"'
    assert answer["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("how", ["expired", "revoked", "of somebody who left", "unknown"])
def test_every_key_that_does_not_work_costs_the_same_one_query_and_is_counted(bob, how):
    key = spoiled(bob, how)
    with CaptureQueriesContext(connection) as queries:
        answer_to(f"Bearer {key}")
    statements = [query["sql"] for query in queries.captured_queries]
    assert len(statements) == 2
    assert "touchstone_apitoken" in statements[0]
    assert "touchstone_ratecounter" in statements[1]


def test_a_revoked_key_works_until_then_and_never_again(bob):
    token, key = make_token(user=bob, name="judge", days=1)
    assert outcome(f"Bearer {key}") == LET_IN
    revoke_token(token=token, actor=bob)
    assert outcome(f"Bearer {key}") == TURNED_AWAY
    revoke_token(token=token, actor=bob)
    assert Event.objects.filter(verb="revoked a key").count() == 1


def test_a_session_still_works_and_still_needs_its_csrf_token(bob):
    client = Client(enforce_csrf_checks=True)
    client.force_login(bob)
    assert outcome(None, client) == (403, "/problems/PermissionDenied")
    client.get(PAGE)
    token = client.cookies["csrftoken"].value
    answer = client.post(API, {}, "application/json", headers={"X-CSRFToken": token})
    assert (answer.status_code, answer.json()["type"]) == LET_IN


def test_nobody_at_all_is_answered_and_not_sent_to_the_login_page():
    assert outcome(None) == (403, "/problems/NotAuthenticated")
    assert outcome("Basic Ym9iOmJvYg==") == (403, "/problems/NotAuthenticated")


def test_a_bad_key_is_not_helped_by_a_good_session_nor_needs_one(bob):
    client = Client()
    client.force_login(bob)
    assert outcome("Bearer nonsense", client) == TURNED_AWAY


def test_only_the_hash_of_a_key_is_stored(bob):
    token, key = make_token(user=bob, name="judge", days=1)
    assert token.key_sha256 == hashlib.sha256(key.encode()).hexdigest()
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT count(*) FROM "{table}" t WHERE t::text LIKE %s', [f"%{key}%"])  # noqa: S608
            assert cursor.fetchone() == (0,), table


# -- the page -----------------------------------------------------------------------------------------------


@pytest.fixture
def page(client, bob):
    client.force_login(bob)
    return client


def text_of(answer):
    return " ".join(answer.content.decode().split())


def without_csrf_token(answer):
    """Return the page without what is made by chance for each answer."""
    once = r'(name="csrfmiddlewaretoken" value|"X-CSRFToken":|nonce)[=\s]*"[^"]*"'
    return re.sub(once, "", answer.content.decode())


def key_in(answer):
    return answer.content.decode().partition("<code>")[2].partition("</code>")[0]


def test_the_page_shows_a_new_key_once_and_stores_it_nowhere(page, bob):
    answer = page.post(PAGE, {"name": "nightly judge", "days": "30", "scopes": ["judge"]})
    key = key_in(answer)
    assert answer.status_code == 201
    assert "no-store" in answer["Cache-Control"]
    assert outcome(f"Bearer {key}") == LET_IN
    token = ApiToken.objects.get(user=bob)
    assert timedelta(days=29) < token.expires_at - timezone.now() < timedelta(days=31)
    again = page.get(PAGE)
    assert "nightly judge" in text_of(again)
    assert key not in text_of(again)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM django_session WHERE session_data LIKE %s", [f"%{key}%"])
        assert cursor.fetchone() == (0,)
    assert key not in str(dict(page.session))


def test_the_page_revokes_a_key(page, bob):
    token, key = make_token(user=bob, name="judge", days=1)
    assert "valid</span>" in text_of(page.get(PAGE))
    answer = page.post(f"{PAGE}{token.pk}/revoke/", follow=True)
    assert "The key “judge” was revoked." in text_of(answer)
    assert "revoked</span>" in text_of(answer)
    assert outcome(f"Bearer {key}") == TURNED_AWAY


def test_an_expired_key_is_listed_as_such(page, bob):
    spoiled(bob, "expired")
    assert "expired</span>" in text_of(page.get(PAGE))


def test_charlie_neither_sees_nor_revokes_the_key_of_bob(bob):
    token, key = make_token(user=bob, name="of bob", days=1)
    charlie = Client()
    charlie.force_login(User.objects.create(username="charlie", role="manager"))
    assert "of bob" not in text_of(charlie.get(PAGE))
    answers = [charlie.post(f"{PAGE}{number}/revoke/") for number in (token.pk, token.pk + 1)]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert without_csrf_token(answers[0]) == without_csrf_token(answers[1])
    assert outcome(f"Bearer {key}") == LET_IN


def test_a_key_is_not_revoked_by_following_a_link(page, bob):
    token, _ = make_token(user=bob, name="judge", days=1)
    assert page.get(f"{PAGE}{token.pk}/revoke/").status_code == 405


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "", "days": "30"}, "This field is required."),
        ({"name": "x" * 101, "days": "30"}, "at most 100 characters"),
        ({"name": "judge", "days": "0"}, "greater than or equal to 1"),
        ({"name": "judge", "days": "367"}, "less than or equal to 366"),
        ({"name": "judge", "days": "for ever"}, "Enter a whole number."),
        ({"name": "taken", "days": "30"}, "You already have a key with this name."),
    ],
)
def test_what_the_page_refuses_is_explained_and_makes_no_key(page, bob, fields, words):
    make_token(user=bob, name="taken", days=1)
    answer = page.post(PAGE, {"scopes": ["read"], **fields})
    assert answer.status_code == 400
    assert words in text_of(answer)
    assert ApiToken.objects.count() == 1


def test_the_name_of_a_revoked_key_is_free_again(page, bob):
    token, _ = make_token(user=bob, name="judge", days=1)
    revoke_token(token=token, actor=bob)
    assert page.post(PAGE, {"name": "judge", "days": "1", "scopes": ["read"]}).status_code == 201


def test_nobody_has_more_than_so_many_working_keys(page, bob):
    for number in range(MOST_TOKENS):
        token, _ = make_token(user=bob, name=f"key {number}", days=1)
    assert "Revoke one first" in text_of(
        page.post(PAGE, {"name": "one more", "days": "1", "scopes": ["read"]})
    )
    revoke_token(token=token, actor=bob)
    assert page.post(PAGE, {"name": "one more", "days": "1", "scopes": ["read"]}).status_code == 201


def test_the_page_is_for_people_who_are_logged_in():
    answer = Client().get(PAGE)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/login/")


# -- the command --------------------------------------------------------------------------------------------


def test_the_command_prints_a_key_that_works(bob):
    out = io.StringIO()
    call_command("api_token", "bob", name="judge", days=1, stdout=out)
    assert outcome(f"Bearer {out.getvalue().strip()}") == LET_IN


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"username": "nobody"}, "there is no user 'nobody'"),
        ({"days": 0}, "1 to 366 days"),
        ({"name": ""}, "1 to 100 characters"),
        ({"name": "taken"}, "already"),
    ],
)
def test_the_command_refuses_in_one_line(bob, arguments, words):
    make_token(user=bob, name="taken", days=1)
    asked = {"username": "bob", "name": "judge", "days": 1} | arguments
    with pytest.raises(CommandError, match=words):
        call_command("api_token", asked.pop("username"), **asked)
