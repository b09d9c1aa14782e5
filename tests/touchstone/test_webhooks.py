"""Webhooks: what is sent, to whom, how it is signed, and what happens when nobody listens. The server is a real one."""

import json
import threading
import time
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from django.db import connection, connections, transaction
from django.test import Client
from django.urls import resolve
from django.utils import timezone

from judging.models import Collection, CollectionMember
from judging.services.campaigns import DEFAULT_GRADES, add_assessor, create_campaign
from touchstone.api import delivery as telling
from touchstone.api.delivery import WAITS, deliver, fan_out, prune_deliveries, tell_webhooks
from touchstone.api.webhooks import HostNotAllowed, WebhooksOff, is_allowed, make_webhook
from touchstone.models import Event, User, Webhook, WebhookDelivery, record

pytestmark = pytest.mark.django_db
REPOSITORY = Path(__file__).resolve().parents[2]
PAGE, API = "/account/webhooks/", "/api/v1/webhooks"


class Listener(ThreadingHTTPServer):
    """Keeps what was posted; answers as it is told."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answering)
        self.heard, self.status, self.seconds = [], 204, 0.0

    @property
    def origin(self):
        return f"http://127.0.0.1:{self.server_port}"


class Answering(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.heard.append((self.path, dict(self.headers), body))
        time.sleep(self.server.seconds)
        self.send_response(self.server.status)
        self.send_header("Location", f"{self.server.origin}/elsewhere")
        self.end_headers()
        self.wfile.write(b"secret words that nobody keeps")

    def log_message(self, *_):
        pass


@pytest.fixture
def listener(settings):
    server = Listener()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    settings.WEBHOOK_HOSTS = [server.origin]
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module", autouse=True)
def views_are_loaded() -> None:
    """The first request of a process loads every view: not within a test's transaction, which may idle for 15 s."""
    resolve("/livez")


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}


@pytest.fixture
def mara():
    return User.objects.create(username="mara", role="manager")


def campaign_of(actor, name="News", *, members=()):
    collection = Collection.objects.create(name=f"{name} collection", is_restricted=bool(members))
    for member in members:
        CollectionMember.objects.create(collection=collection, user=member)
    return create_campaign(
        collection=collection, name=name, user=actor, grades=DEFAULT_GRADES, judgments_per_item=1
    )


def verbs_heard(listener):
    return [json.loads(body)["verb"] for _, _, body in listener.heard]


def now_due():
    WebhookDelivery.objects.filter(state="waiting").update(
        next_attempt_at=timezone.now() - timedelta(seconds=1)
    )


def test_an_event_is_told_once_signed_and_with_the_full_keys_of_what_it_is_about(listener, mara):
    webhook = make_webhook(user=mara, url=f"{listener.origin}/hook")
    campaign = campaign_of(mara)
    dora = User.objects.create(username="dora")
    add_assessor(campaign=campaign, user=dora, tier="gold", actor=mara)
    assert tell_webhooks() == 3  # the webhook itself was made, the campaign created, the assessor added
    assert tell_webhooks() == 0
    path, headers, body = listener.heard[-1]
    told = json.loads(body)
    assert path == "/hook"
    assert told["verb"] == headers["Touchstone-Event"] == "added assessor"
    assert told["campaign"] == {"id": str(campaign.pk), "name": "News"}
    assert told["collection"] == {"id": str(campaign.collection_id), "name": "News collection"}
    assert told["subject"]["kind"] == "campaign"
    assert told["subject"]["id"] == str(campaign.pk)
    assert (told["actor"], told["detail"]["assessor"]) == ("mara", "dora")
    assert documented_check()(webhook.secret, headers["Touchstone-Signature"], body)


def documented_check():
    """The function of docs/api.md, as a reader would copy it; nothing of the product is in it."""
    text = (REPOSITORY / "docs" / "api.md").read_text()
    found = {}
    exec(text.partition("```python\n")[2].partition("```")[0], found)  # noqa: S102 (our own documentation)
    return found["is_genuine"]


def test_a_changed_body_another_secret_and_an_old_message_are_noticed(listener, mara):
    webhook = make_webhook(user=mara, url=listener.origin)
    tell_webhooks()
    _, headers, body = listener.heard[0]
    header = headers["Touchstone-Signature"]
    is_genuine = documented_check()
    assert is_genuine(webhook.secret, header, body)
    assert not is_genuine(webhook.secret, header, body.replace(b"mara", b"mary"))
    assert not is_genuine(webhook.secret + "x", header, body)
    assert not is_genuine(
        webhook.secret, telling.signature(webhook.secret, int(time.time()) - 301, body), body
    )


def test_nobody_hears_of_what_he_may_not_see(listener, mara):
    max_, rita, bob = (
        User.objects.create(username=name, role=role)
        for name, role in (("max", "manager"), ("rita", "researcher"), ("bob", "assessor"))
    )
    for user in (mara, max_, rita):
        make_webhook(user=user, url=f"{listener.origin}/{user.username}")
    Webhook.objects.create(
        user=bob, url=f"{listener.origin}/bob", secret="s"
    )  # an assessor's, were there one
    secret = campaign_of(mara, "Secret", members=[mara, rita])
    add_assessor(campaign=secret, user=bob, tier="bronze", actor=mara)
    open_ = campaign_of(max_, "Open")
    tell_webhooks()
    heard = {}
    for path, _, body in listener.heard:
        told = json.loads(body)
        place = told["campaign"]["name"] if told["campaign"] else "account"
        heard.setdefault(path.strip("/"), set()).add((told["verb"], place))
    assert heard == {
        "mara": {
            ("made a webhook", "account"),
            ("created", "Secret"),
            ("added assessor", "Secret"),
            ("created", "Open"),
        },
        "max": {("made a webhook", "account"), ("created", "Open")},
        "rita": {("created", "Secret"), ("created", "Open")} | {("made a webhook", "account")},
    }
    assert open_.name == "Open"


def test_who_loses_sight_of_a_campaign_is_not_told_what_waited(listener, mara):
    rita = User.objects.create(username="rita", role="researcher")
    make_webhook(user=rita, url=listener.origin, verbs=["created"])
    campaign = campaign_of(mara, members=[mara, rita])
    fan_out()
    CollectionMember.objects.filter(user=rita).delete()
    assert deliver() == 0
    assert not listener.heard
    row = WebhookDelivery.objects.get(webhook__user=rita, event__subject=f"campaign:{campaign.pk}")
    assert row.state == "given up"


def test_only_the_events_that_were_asked_for_are_told(listener, mara):
    make_webhook(user=mara, url=listener.origin, verbs=["opened"])
    campaign = campaign_of(mara)
    record("opened", campaign, actor=mara)
    tell_webhooks()
    assert verbs_heard(listener) == ["opened"]


def test_what_is_deleted_is_told_with_its_name(listener, mara):
    from judging.services.deletion import delete_campaign

    campaign = campaign_of(mara)
    make_webhook(user=mara, url=listener.origin, verbs=["deleted"])
    delete_campaign(campaign=campaign, confirmation=campaign.name, actor=mara)
    tell_webhooks()
    told = json.loads(listener.heard[0][2])
    assert (told["verb"], told["campaign"]["name"], told["subject"]["name"]) == ("deleted", "News", "News")


@pytest.mark.parametrize(
    ("status", "words"), [(500, "500"), (404, "404"), (302, "302 (redirects are not followed)")]
)
def test_what_is_not_taken_is_sent_again_later_and_given_up_in_the_end(status, words, listener, mara):
    listener.status = status
    make_webhook(user=mara, url=listener.origin)
    assert tell_webhooks() == 0
    row = WebhookDelivery.objects.get()
    assert (row.state, row.attempts, row.answer) == ("waiting", 1, words)
    assert WAITS[0] * 0.5 < row.next_attempt_at - timezone.now() <= WAITS[0]
    assert deliver() == 0
    assert len(listener.heard) == 1  # not before its time
    for _ in WAITS:
        now_due()
        assert deliver() == 0
    row.refresh_from_db()
    assert (row.state, row.attempts) == ("given up", len(WAITS) + 1)
    now_due()
    deliver()
    assert len(listener.heard) == len(WAITS) + 1
    assert all(path == "/" for path, _, _ in listener.heard)  # /elsewhere was never asked


def test_what_failed_at_first_arrives_and_its_body_says_the_same(listener, mara):
    make_webhook(user=mara, url=listener.origin)
    listener.status = 503
    tell_webhooks()
    listener.status = 200
    now_due()
    assert deliver() == 1
    (_, first, body), (_, second, again) = listener.heard
    assert body == again
    assert first["Touchstone-Delivery"] == second["Touchstone-Delivery"]
    assert WebhookDelivery.objects.get().answer == "200"


def test_one_dead_server_costs_one_try_however_much_waits_for_it(listener, mara):
    make_webhook(user=mara, url=listener.origin)
    campaign_of(mara, "A")
    campaign_of(mara, "B")
    listener.status = 500
    assert tell_webhooks() == 0
    assert len(listener.heard) == 1
    assert WebhookDelivery.objects.filter(state="waiting", next_attempt_at__gt=timezone.now()).count() == 3


def test_a_slow_server_and_one_that_is_not_there_are_given_a_short_time(
    listener, mara, settings, monkeypatch
):
    monkeypatch.setattr(telling, "READ_SECONDS", 0.2)
    listener.seconds = 1.0
    make_webhook(user=mara, url=listener.origin)
    began = time.monotonic()
    tell_webhooks()
    assert time.monotonic() - began < 1.0
    assert WebhookDelivery.objects.get().answer == "ReadTimeout"
    gone = "http://127.0.0.1:1"
    settings.WEBHOOK_HOSTS = [gone]
    Webhook.objects.update(url=gone)
    now_due()
    deliver()
    assert WebhookDelivery.objects.get().answer == "ConnectError"


def test_a_server_that_drips_is_left_after_a_while(mara, settings, monkeypatch):
    import socket

    monkeypatch.setattr(telling, "WHOLE_SECONDS", 0.5)
    dripping = socket.create_server(("127.0.0.1", 0))

    def drip():
        taken, _ = dripping.accept()
        with taken:
            try:
                for _ in range(100):
                    taken.sendall(b"H")
                    time.sleep(0.1)
            except OSError:
                pass

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    settings.WEBHOOK_HOSTS = [f"http://127.0.0.1:{dripping.getsockname()[1]}"]
    make_webhook(user=mara, url=settings.WEBHOOK_HOSTS[0])
    began = time.monotonic()
    assert tell_webhooks() == 0
    assert time.monotonic() - began < 5
    thread.join(5)
    dripping.close()
    assert WebhookDelivery.objects.get().state == "waiting"


@pytest.mark.django_db(transaction=True)
def test_the_watermark_waits_for_whoever_has_written_an_event_and_not_committed(listener):
    mara = User.objects.create(username="mara", role="manager")
    webhook = make_webhook(user=mara, url=listener.origin)
    written, may_commit = threading.Event(), threading.Event()

    def slow():
        try:
            with transaction.atomic():
                record("slow", webhook, actor=mara)
                written.set()
                may_commit.wait(20)
        finally:
            connections.close_all()

    thread = threading.Thread(target=slow)
    thread.start()
    assert written.wait(20)
    record("quick", webhook, actor=mara)  # a later number, committed first
    tell_webhooks()
    assert verbs_heard(listener) == ["made a webhook", "quick"]
    may_commit.set()
    thread.join()
    tell_webhooks()
    assert sorted(verbs_heard(listener)) == ["made a webhook", "quick", "slow"]
    tell_webhooks()
    assert len(listener.heard) == 3
    newest = Event.objects.order_by("-id").values_list("id", flat=True).first()
    assert Webhook.objects.get().last_event_id == newest


@pytest.mark.django_db(transaction=True)
def test_two_workers_tell_each_event_once(listener):
    mara = User.objects.create(username="mara", role="manager")
    webhook = make_webhook(user=mara, url=listener.origin)
    for number in range(20):
        record(f"event {number}", webhook, actor=mara)
    listener.seconds = 0.02

    def work():
        try:
            tell_webhooks()
        finally:
            connections.close_all()

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    tell_webhooks()
    assert sorted(verbs_heard(listener)) == sorted(["made a webhook"] + [f"event {n}" for n in range(20)])


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://hooks.example.org/x?y=1", True),
        ("https://HOOKS.example.org:443/", True),
        ("http://hooks.example.org/", False),
        ("https://hooks.example.org:444/", False),
        ("https://hooks.example.org.evil.example/", False),
        ("https://hooks.example.org@evil.example/", False),
        ("https://evil.example/#hooks.example.org", False),
        ("https://evil.example\\@hooks.example.org/", False),
        ("https://hooks.example.org:99999999/", False),
        ("https://[::1/", False),
        ("http://127.0.0.1:8080/x", True),
        ("http://127.0.0.1/x", False),
        ("http://2130706433:8080/", False),
        ("ftp://hooks.example.org/", False),
        ("file:///etc/passwd", False),
        ("https://hooks.exämple.org/", False),
        ("", False),
    ],
)
def test_only_hosts_of_the_operator_s_list_are_called(url, allowed, settings, mara):
    settings.WEBHOOK_HOSTS = ["hooks.example.org", "http://127.0.0.1:8080"]
    assert is_allowed(url) == allowed
    if not allowed:
        with pytest.raises(HostNotAllowed):
            make_webhook(user=mara, url=url)


def test_a_host_that_is_taken_from_the_list_is_not_called_any_more(listener, mara, settings):
    make_webhook(user=mara, url=listener.origin)
    fan_out()
    settings.WEBHOOK_HOSTS = ["https://other.example"]
    assert deliver() == 0
    assert not listener.heard
    assert WebhookDelivery.objects.get().state == "given up"


def test_without_a_list_there_are_no_webhooks_and_the_page_says_so(mara, settings):
    settings.WEBHOOK_HOSTS = []
    with pytest.raises(WebhooksOff):
        make_webhook(user=mara, url="https://hooks.example.org/")
    client = Client()
    client.force_login(mara)
    page = client.get(PAGE).content.decode()
    assert "This server calls nobody." in page
    assert 'name="url"' not in page
    answer = client.post(API, {"url": "https://hooks.example.org/"}, "application/json")
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/WebhooksOff")


def test_the_page_makes_tests_and_switches_off_a_webhook_and_shows_its_secret_once(listener, mara):
    client = Client()
    client.force_login(mara)
    assert client.post(PAGE, {"url": "https://evil.example/"}).status_code == 400
    made = client.post(PAGE, {"url": listener.origin, "verbs": "opened, closed"})
    webhook = Webhook.objects.get()
    assert made.status_code == 201
    assert webhook.verbs == ["opened", "closed"]
    assert webhook.secret in made.content.decode()
    assert webhook.secret not in client.get(PAGE).content.decode()
    client.post(f"{PAGE}{webhook.pk}/test/")
    tell_webhooks()
    assert verbs_heard(listener) == ["tested a webhook"]
    assert "delivered" in client.get(PAGE).content.decode()
    client.post(f"{PAGE}{webhook.pk}/switch/", {"is_active": "no"})
    campaign_of(mara)
    tell_webhooks()
    assert len(listener.heard) == 1
    client.post(f"{PAGE}{webhook.pk}/switch/", {"is_active": "yes"})
    tell_webhooks()
    assert len(listener.heard) == 1  # what happened meanwhile is not told later
    assert client.post(f"{PAGE}{webhook.pk}/switch/", {"is_active": "perhaps"}).status_code == 404


def test_a_webhook_is_its_owner_s_alone(listener, mara):
    webhook = make_webhook(user=mara, url=listener.origin)
    other = Client()
    other.force_login(User.objects.create(username="max", role="manager"))
    for path in ("", "/test", "/deliveries"):
        assert (other.post if path == "/test" else other.get)(f"{API}/{webhook.pk}{path}").status_code == 404
    assert other.post(f"{PAGE}{webhook.pk}/switch/", {"is_active": "no"}).status_code == 404
    assert other.get(API).json()["results"] == []
    assessor = Client()
    assessor.force_login(User.objects.create(username="bob"))
    assert [assessor.get(path).status_code for path in (API, PAGE)] == [404, 404]


def test_the_api_makes_changes_tests_and_lists(listener, mara):
    client = Client()
    client.force_login(mara)
    made = client.post(API, {"url": listener.origin, "verbs": ["opened"]}, "application/json")
    assert made.status_code == 201
    one = f"{API}/{made.json()['id']}"
    assert "secret" not in client.get(one).json()
    assert client.post(f"{one}/test").status_code == 202
    tell_webhooks()
    (row,) = client.get(f"{one}/deliveries").json()["results"]
    assert (row["verb"], row["state"], row["attempts"], row["answer"]) == (
        "tested a webhook",
        "delivered",
        1,
        "204",
    )
    assert "nobody keeps" not in json.dumps(row)
    assert client.patch(one, {"is_active": False}, "application/json").json()["is_active"] is False
    assert client.post(f"{one}/test").json()["type"] == "/problems/WebhookIsOff"
    assert client.patch(one, {"url": "https://evil.example"}, "application/json").status_code == 400
    assert client.get(f"{API}?is_active=true").json()["results"] == []
    assert len(client.get(f"{API}?is_active=false").json()["results"]) == 1


def test_deliveries_that_ended_long_ago_are_forgotten_and_what_waits_is_not(listener, mara):
    make_webhook(user=mara, url=listener.origin)
    campaign_of(mara)
    fan_out()
    old, waits = WebhookDelivery.objects.order_by("id")
    WebhookDelivery.objects.filter(pk=old.pk).update(state="delivered")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE touchstone_webhookdelivery SET next_attempt_at = now() - interval '31 days'")
    assert prune_deliveries() == 1
    assert WebhookDelivery.objects.get().pk == waits.pk
