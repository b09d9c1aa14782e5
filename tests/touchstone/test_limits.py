"""How often: counted by the database, exactly, whoever tries how much at once."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_network

import pytest
from django.contrib.auth.hashers import make_password
from django.db import connection, connections
from django.test import Client, RequestFactory
from django.urls import resolve
from django.utils import timezone

from touchstone.api import rate_limits
from touchstone.api.rate_limits import Limit, address_of, count, give_back, prune_counters
from touchstone.authentication import make_token
from touchstone.models import RateCounter, User

THREADS = 20
LOGIN, WINDOW = "/login/", 15 * 60
RIGHT, WRONG = "a right password", "a wrong password"


@pytest.fixture(scope="module", autouse=True)
def views_are_loaded() -> None:
    """The first request of a process loads every view: not within a test's transaction, which may idle for 15 s."""
    resolve("/livez")


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.MD5PasswordHasher"
    ]  # quick: it is not what is tested


@pytest.fixture
def bob(db):
    return User.objects.create(username="bob", password=make_password(RIGHT))


def log_in(password, *, name="bob", client=None, **headers):
    return (client or Client()).post(LOGIN, {"username": name, "password": password}, **headers)


def at_once(n, act):
    """Call act(number) n times, by threads that start together; return the answers."""
    start, threads = threading.Barrier(THREADS), threading.local()

    def one(number):
        if not hasattr(threads, "started"):
            threads.started = True
            start.wait()
        try:
            return act(number)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(one, range(n)))


@pytest.mark.django_db(transaction=True)
def test_forty_at_once_are_counted_to_forty_and_each_has_a_number_of_its_own():
    counted = at_once(40, lambda _: count([Limit("a key", 10, 3600)])[0])
    by_window = Counter(one.window for one in counted)
    assert sorted((one.window, one.n) for one in counted) == sorted(
        (window, n) for window, most in by_window.items() for n in range(1, most + 1)
    )
    assert sum(not one.is_over for one in counted) == sum(min(10, n) for n in by_window.values())


@pytest.mark.django_db(transaction=True)
def test_counting_by_reading_and_writing_would_miss_some():
    """The positive control: what a cache or the mapper does loses counts under the same load."""
    RateCounter.objects.create(key="naive", window=0, n=0, ends_at=timezone.now())
    ready = threading.Barrier(THREADS)

    def naive(_):
        row = RateCounter.objects.get(key="naive")
        ready.wait()  # all have read before one writes: how unlucky it can be
        row.n += 1
        row.save()

    at_once(40, naive)
    assert RateCounter.objects.get(key="naive").n < 40


@pytest.mark.django_db(transaction=True)
def test_of_a_hundred_wrong_logins_at_once_no_more_than_the_limit_are_looked_at(settings, monkeypatch):
    User.objects.create(username="bob", password=make_password(RIGHT))
    looked_at = []
    was = User.check_password
    monkeypatch.setattr(User, "check_password", lambda self, raw: looked_at.append(raw) or was(self, raw))
    answers = at_once(100, lambda number: log_in(f"{WRONG} {number}"))
    windows = RateCounter.objects.filter(key__startswith="login name").count()
    assert len(looked_at) == settings.LOGIN_TRIES * windows
    assert Counter(answer.status_code for answer in answers) == {
        200: len(looked_at),
        429: 100 - len(looked_at),
    }
    assert log_in(RIGHT).status_code == 429  # the right one is not looked at either, from here
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert 0 < int(refused["Retry-After"]) <= WINDOW


@pytest.mark.django_db
def test_a_made_up_forwarded_address_is_another_address_to_nobody(bob, settings):
    settings.LOGIN_TRIES_PER_ADDRESS = 5
    for number in range(5):
        assert log_in(WRONG, name=f"user{number}", HTTP_X_FORWARDED_FOR=f"10.0.0.{number}").status_code == 200
    assert log_in(RIGHT, HTTP_X_FORWARDED_FOR="10.0.0.99").status_code == 429
    assert log_in(RIGHT, REMOTE_ADDR="10.0.0.99").status_code == 302  # a real other address is one


@pytest.mark.django_db
def test_the_person_gets_in_from_a_known_device_while_others_try_his_name(bob, settings):
    own = Client()
    assert log_in(RIGHT, client=own).status_code == 302
    own.post("/logout/")
    for _ in range(settings.LOGIN_TRIES + 5):
        stranger = log_in(WRONG, REMOTE_ADDR="203.0.113.9")
    assert stranger.status_code == 429
    assert (
        log_in(RIGHT, REMOTE_ADDR="198.51.100.7").status_code == 429
    )  # of an unknown device nobody knows whose it is
    assert log_in(RIGHT, client=own).status_code == 302


@pytest.mark.django_db
def test_a_known_device_opens_no_other_account_and_has_a_limit_of_its_own(bob, settings):
    User.objects.create(username="eve", password=make_password(RIGHT))
    eves = Client()
    assert log_in(RIGHT, name="eve", client=eves).status_code == 302
    eves.post("/logout/")
    answers = [log_in(WRONG, client=eves).status_code for _ in range(settings.LOGIN_TRIES + 1)]
    assert answers == [200] * settings.LOGIN_TRIES + [429]  # bob's name, counted as everybody's
    answers = [log_in(WRONG, name="eve", client=eves).status_code for _ in range(settings.LOGIN_TRIES + 1)]
    assert answers == [200] * settings.LOGIN_TRIES + [429]
    eves.cookies["device"] = eves.cookies["device"].value[:-2] + "xx"
    assert (
        log_in(WRONG, name="eve", client=eves).status_code == 200
    )  # a forged one is none: the name's own count


@pytest.mark.django_db
def test_a_known_and_an_unknown_name_are_answered_alike(bob, settings):
    settings.LOGIN_TRIES = 2

    def bodies(name):
        answers = [log_in(WRONG, name=name) for _ in range(3)]
        return [(a.status_code, without_tokens(a.content.decode(), name)) for a in answers]

    assert bodies("bob") == bodies("nobody")
    assert [status for status, _ in bodies("bob")] == [429] * 3


def without_tokens(page, name):
    import re

    return re.sub(r'(csrfmiddlewaretoken" value|nonce)="\w+"', "", page.replace(name, "NAME"))


@pytest.mark.django_db
def test_right_logins_count_for_nothing(bob, settings):
    settings.LOGIN_TRIES = 2
    assert [log_in(RIGHT).status_code for _ in range(4)] == [302] * 4
    assert sum(RateCounter.objects.filter(key__startswith="login").values_list("n", flat=True)) == 0


@pytest.mark.django_db
def test_a_key_that_asks_too_often_is_told_when_to_come_again(bob, settings):
    settings.API_REQUESTS = 3
    client = Client(headers={"Authorization": f"Bearer {make_token(user=bob, name='fast', days=1)[1]}"})
    other = Client(headers={"Authorization": f"Bearer {make_token(user=bob, name='slow', days=1)[1]}"})
    answers = [client.get("/api/v1/me") for _ in range(5)]
    windows = RateCounter.objects.filter(key__startswith="key").count()
    assert [a.status_code for a in answers].count(200) == min(5, 3 * windows)
    refused = answers[-1]
    if refused.status_code == 429:  # the five may have met the end of a minute
        assert 0 <= int(refused["Retry-After"]) <= 60
        assert refused["Content-Type"] == "application/problem+json"
        assert refused.json()["type"] == "/problems/Throttled"
    assert other.get("/api/v1/me").status_code == 200


@pytest.mark.django_db
def test_an_address_that_tries_wrong_keys_is_refused_before_they_are_told_apart(bob, settings):
    settings.API_WRONG_KEYS = 3
    statuses = [
        Client(headers={"Authorization": f"Bearer touchstone_{n}"}).get("/api/v1/me").status_code
        for n in range(8)
    ]
    windows = RateCounter.objects.filter(key__startswith="wrong key").count()
    assert statuses.count(401) == min(8, 3 * windows)
    assert statuses.count(429) == 8 - statuses.count(401)


@pytest.mark.django_db
def test_the_requests_of_the_judging_screen_are_not_counted_by_the_database(bob):
    client = Client()
    client.force_login(bob)
    nowhere = "/api/v1/campaigns/00000000-0000-4000-8000-000000000000/claim"
    assert client.post(nowhere, {}, "application/json").status_code == 404
    assert not RateCounter.objects.exists()
    assert client.get("/api/v1/me").status_code == 200
    assert RateCounter.objects.filter(key=f"user {bob.pk}", n=1).exists()


@pytest.mark.django_db
def test_a_session_that_judges_too_often_is_told_to_wait_without_a_statement_and_another_goes_on(
    bob, settings, monkeypatch, django_assert_num_queries
):
    monkeypatch.setattr(rate_limits, "judging_requests", rate_limits.Minute())
    monkeypatch.setattr(rate_limits.time, "monotonic", lambda: 600.25)
    settings.JUDGING_REQUESTS = 3
    first, second = Client(), Client()
    for client in (first, second):
        client.force_login(bob)
    path = "/api/v1/campaigns/00000000-0000-4000-8000-000000000000/"
    answers = [first.post(path + what, {}, "application/json") for what in ("claim", "judgments", "claim")]
    assert 429 not in [answer.status_code for answer in answers]
    with django_assert_num_queries(2):  # the session and its person
        refused = first.post(path + "judgments", {}, "application/json")
    assert (refused.status_code, refused["Retry-After"]) == (429, "60")
    assert refused.json()["type"] == "/problems/Throttled"
    assert second.post(path + "claim", {}, "application/json").status_code == 404
    assert first.get("/api/v1/me").status_code == 200
    monkeypatch.setattr(rate_limits.time, "monotonic", lambda: 660.0)
    assert first.post(path + "claim", {}, "application/json").status_code == 404


def test_a_minute_counts_each_of_many_threads_and_forgets_what_is_over(monkeypatch):
    monkeypatch.setattr(rate_limits.time, "monotonic", lambda: 59.0)
    minute = rate_limits.Minute()
    with ThreadPoolExecutor(8) as threads:
        waits = list(threads.map(lambda n: minute.count(f"session {n % 2}", 30), range(100)))
    assert waits.count(None) == 60
    assert {wait for wait in waits if wait is not None} == {1.0}
    monkeypatch.setattr(rate_limits.time, "monotonic", lambda: 60.0)
    assert minute.count("session 0", 1) is None


@pytest.mark.parametrize(
    ("proxies", "forwarded", "remote", "seen"),
    [
        (0, "1.2.3.4", "203.0.113.5", "203.0.113.5"),
        (1, "6.6.6.6, 198.51.100.1", "127.0.0.1", "198.51.100.1"),
        (2, "6.6.6.6, 198.51.100.1, 10.0.0.1", "127.0.0.1", "198.51.100.1"),
        (2, "198.51.100.1", "127.0.0.1", "127.0.0.1"),
        (1, "6.6.6.6", "203.0.113.5", "203.0.113.5"),  # no proxy of ours wrote this
        (1, "198.51.100.1", "10.0.0.7", "198.51.100.1"),
        (1, "198.51.100.1", "", "198.51.100.1"),  # through a socket file
        (1, "no address", "127.0.0.1", "unknown"),
        (0, "", "2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        (0, "", "::ffff:203.0.113.5", "203.0.113.5"),
        (0, "", "", "unknown"),
    ],
)
def test_an_address_is_the_connection_s_or_what_our_own_proxies_saw(
    proxies, forwarded, remote, seen, settings
):
    settings.TRUSTED_PROXIES = proxies
    settings.PROXY_ADDRESSES = [ip_network("127.0.0.0/8"), ip_network("10.0.0.0/24")]
    request = RequestFactory().get("/", REMOTE_ADDR=remote, HTTP_X_FORWARDED_FOR=forwarded)
    assert address_of(request) == seen


@pytest.mark.django_db
def test_windows_that_are_over_are_forgotten_and_others_stay():
    (kept,) = count([Limit("now", 5, 3600)])
    count([Limit("long ago", 5, 3600)])
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE touchstone_ratecounter SET ends_at = now() - interval '2 minutes' WHERE key = 'long ago'"
        )
    assert prune_counters() == 1
    assert list(RateCounter.objects.values_list("key", flat=True)) == ["now"]
    give_back([kept])
    assert RateCounter.objects.get().n == 0
