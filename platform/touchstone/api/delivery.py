"""Tells webhooks what happened: the log of events is the outbox, a row of each delivery its state.

`fan_out` makes the rows, `deliver` sends what is due. Nothing is held while a stranger's server answers: a row is taken
by counting the try and setting the time of the next one, and whoever dies in between is followed by that next try. So
an event may come twice, and never not at all, until it is given up.
"""

import hashlib
import hmac
import json
import threading
import time
from datetime import timedelta
from typing import Any

import httpx
from django.db import connection, transaction
from django.db.models.functions import Now

from touchstone.api.subjects import event_json, may_know, subject_of
from touchstone.api.webhooks import TESTED, allowed_hosts, is_allowed, settled_event_id
from touchstone.models import Event, Webhook, WebhookDelivery

State = WebhookDelivery.State
SIGNATURE, EVENT, DELIVERY = "Touchstone-Signature", "Touchstone-Event", "Touchstone-Delivery"
# How long until the next try, after each that failed; then it is given up.
WAITS = tuple(timedelta(minutes=minutes) for minutes in (0.5, 2, 10, 30, 120, 360, 720))
TAKEN = timedelta(seconds=60)  # longer than one try can last
CONNECT_SECONDS, READ_SECONDS, WHOLE_SECONDS = 3.0, 5.0, 15.0
BUDGET_SECONDS = 20.0  # of one round
EVENTS_AT_ONCE = 1000
TAKE = """
UPDATE touchstone_webhookdelivery SET attempts = attempts + 1, next_attempt_at = clock_timestamp() + %s
 WHERE id = (SELECT id FROM touchstone_webhookdelivery
              WHERE state = 'waiting' AND next_attempt_at <= clock_timestamp()
              ORDER BY event_id, id LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING id
"""


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """Return the header that proves who sent the body and when: HMAC-SHA256 of "<timestamp>." and the body.

    >>> signature("secret", 1700000000, b"{}")[:17]
    't=1700000000,v1=a'
    """
    mac = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256)
    return f"t={timestamp},v1={mac.hexdigest()}"


def tell_webhooks() -> int:
    """Make the deliveries that are missing, and send what is due; return how many arrived. Workers do it."""
    if not allowed_hosts():
        return 0
    fan_out()
    return deliver()


def fan_out() -> int:
    """Make a delivery of each new event for each webhook whose owner may know of it; return how many were new."""
    made = 0
    for webhook in Webhook.objects.filter(is_active=True, user__is_active=True).select_related("user"):
        with transaction.atomic():
            mine = Webhook.objects.select_for_update(skip_locked=True).filter(pk=webhook.pk, is_active=True)
            locked = mine.select_related(None).first()
            if locked is not None:
                webhook.last_event_id = locked.last_event_id
                made += _fan_out_to(webhook)
    return made


def _fan_out_to(webhook: Webhook) -> int:
    settled = settled_event_id()
    known = WebhookDelivery.objects.filter(webhook=webhook, event_id__gt=webhook.last_event_id)
    new = Event.objects.filter(id__gt=webhook.last_event_id).exclude(id__in=known.values("event_id"))
    events = list(new.select_related("actor").order_by("id")[:EVENTS_AT_ONCE])
    wanted = [
        WebhookDelivery(webhook=webhook, event=event, next_attempt_at=Now())
        for event in events
        if _wants(webhook, event)
    ]
    WebhookDelivery.objects.bulk_create(wanted, ignore_conflicts=True)
    if len(events) == EVENTS_AT_ONCE:
        settled = min(settled, events[-1].pk)
    if settled > webhook.last_event_id:
        Webhook.objects.filter(pk=webhook.pk).update(last_event_id=settled)
    return len(wanted)


def _wants(webhook: Webhook, event: Event) -> bool:
    if event.verb == TESTED:
        return event.subject == f"webhook:{webhook.pk}"
    if webhook.verbs and event.verb not in webhook.verbs:
        return False
    return may_know(webhook.user, event, subject_of(event))


def deliver(budget: float = BUDGET_SECONDS) -> int:
    """Send what is due, one after another, as long as there is time; return how many were delivered."""
    until, delivered = time.monotonic() + budget, 0
    while time.monotonic() < until:
        taken = _take()
        if taken is None:
            break
        delivered += _try(taken)
    return delivered


def _take() -> WebhookDelivery | None:
    with connection.cursor() as cursor:
        cursor.execute(TAKE, list[Any]([TAKEN]))
        row = cursor.fetchone()
    if row is None:
        return None
    return WebhookDelivery.objects.select_related("webhook__user", "event__actor").get(pk=row[0])


def _try(delivery: WebhookDelivery) -> bool:
    webhook, event = delivery.webhook, delivery.event
    subject = subject_of(event)
    if not webhook.is_active:
        return _give_up(delivery, "switched off")
    if not is_allowed(webhook.url):
        return _give_up(delivery, "the operator does not allow this host any more")
    if not may_know(webhook.user, event, subject):
        return _give_up(delivery, "its owner may not know of this any more")
    body = json.dumps(event_json(event, subject), ensure_ascii=False, default=str).encode()
    arrived, answer = send(webhook, delivery.pk, event.verb, body)
    if arrived:
        _waiting_row(delivery).update(state=State.DELIVERED, answer=answer)
        return True
    if delivery.attempts > len(WAITS):
        return _give_up(delivery, answer)
    wait = WAITS[delivery.attempts - 1]
    _waiting_row(delivery).update(answer=answer, next_attempt_at=Now() + wait)
    # What is down for one event is down for all: the others wait for this one's next try, and count no tries.
    waiting = WebhookDelivery.objects.filter(
        webhook=webhook, state=State.WAITING, next_attempt_at__lt=Now() + wait
    )
    waiting.exclude(pk=delivery.pk).update(next_attempt_at=Now() + wait)
    return False


def _waiting_row(delivery: WebhookDelivery) -> Any:
    return WebhookDelivery.objects.filter(pk=delivery.pk, state=State.WAITING)


def _give_up(delivery: WebhookDelivery, answer: str) -> bool:
    _waiting_row(delivery).update(state=State.GIVEN_UP, answer=answer[:200])
    return False


def send(webhook: Webhook, delivery_id: int, verb: str, body: bytes) -> tuple[bool, str]:
    """Post the body; return whether it was taken, and the status or fault in a word. What is answered is not read."""
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Touchstone",
        SIGNATURE: signature(webhook.secret, int(time.time()), body),
        EVENT: verb.encode("ascii", "replace").decode(),
        DELIVERY: str(delivery_id),
    }
    limits = httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    try:
        with httpx.Client(timeout=limits, follow_redirects=False, trust_env=False) as client:
            # A server that sends a byte now and then would never run into the time-outs of single reads.
            watch = threading.Timer(WHOLE_SECONDS, client.close)
            watch.daemon = True
            watch.start()
            try:
                with client.stream("POST", webhook.url, content=body, headers=headers) as answer:
                    status = answer.status_code
            finally:
                watch.cancel()
    except (httpx.HTTPError, httpx.InvalidURL, RuntimeError, OSError) as fault:
        return False, type(fault).__name__
    if 300 <= status < 400:
        return False, f"{status} (redirects are not followed)"
    return 200 <= status < 300, str(status)
