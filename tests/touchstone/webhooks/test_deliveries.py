"""Webhooks: what is sent, to whom, how it is signed, and what happens when nobody listens. The server is a real one."""

import json
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connections, transaction
from django.utils import timezone
from listener import campaign_of, verbs_heard

from judging.models import CollectionMember
from judging.services.campaigns import add_assessor
from touchstone.api import delivery as telling
from touchstone.api.delivery import WAITS, deliver, fan_out, tell_webhooks
from touchstone.api.webhooks import make_webhook
from touchstone.models import Event, User, Webhook, WebhookDelivery, record

pytestmark = pytest.mark.django_db

REPOSITORY = Path(__file__).resolve().parents[3]


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
