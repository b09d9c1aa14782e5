"""Webhooks: addresses that want to be told of events. Made, switched, tested here; `delivery` tells them.

Only hosts that the operator listed (WEBHOOK_HOSTS) are ever called: a request from inside a network reaches what nobody
outside can, so the list is not the users' to make. An empty list: there are no webhooks.
"""

import secrets
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction

from judging.services.errors import Refused
from touchstone.models import Event, User, Webhook, WebhookDelivery, record
from touchstone.watermark import mark

MOST_WEBHOOKS = 10
MOST_VERBS = 50
SECRET_PREFIX = "touchstone_hook_"  # noqa: S105 (what a secret begins with)
PORTS = {"https": 443, "http": 80}
TESTED = "tested a webhook"


class WebhooksOff(Refused):
    status = 409
    title = "Webhooks are switched off: the operator of this server has listed no hosts for them"


class HostNotAllowed(Refused):
    status = 400
    title = "The operator of this server does not let it call this address"


class TooManyWebhooks(Refused):
    status = 409
    title = f"At most {MOST_WEBHOOKS} active webhooks. Deactivate one first"


class WebhookIsOff(Refused):
    status = 409
    title = "This webhook is switched off"


def allowed_hosts() -> list[str]:
    """Return whom webhooks may call, as origins: `https://hooks.example.org`, with the port where it is another."""
    return [host if "://" in host else f"https://{host}" for host in settings.WEBHOOK_HOSTS]


def is_allowed(url: str) -> bool:
    """Whether the address lies on a host of the list: same scheme, name and port, and nothing that hides another."""
    asked = _origin(url)
    return asked is not None and asked in {_origin(host) for host in allowed_hosts()}


def _origin(url: str) -> tuple[str, str, int] | None:
    if not url.isascii() or not url.isprintable() or "\\" in url or " " in url:
        return None
    try:
        parts = urlsplit(url)
        port = parts.port or PORTS.get(parts.scheme)
    except ValueError:
        return None
    if parts.scheme not in PORTS or not parts.hostname or not port or "@" in parts.netloc or parts.fragment:
        return None
    return parts.scheme, parts.hostname.lower(), port


def make_webhook(*, user: User, url: str, verbs: Sequence[str] = ()) -> Webhook:
    """Make a webhook that hears of what happens from now on; its secret is in the answer and shown nowhere else."""
    if not allowed_hosts():
        raise WebhooksOff
    if not is_allowed(url):
        raise HostNotAllowed("allowed are " + ", ".join(allowed_hosts()))
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)  # two requests do not pass the limit together
        _check_number(user)
        webhook = Webhook.objects.create(
            user=user,
            url=url,
            secret=SECRET_PREFIX + secrets.token_urlsafe(32),
            verbs=list(dict.fromkeys(verbs)),
            last_event_id=_newest_event_id(),
        )
        record("made a webhook", webhook, actor=user, url=url)
    return webhook


def change_webhook(
    *, webhook: Webhook, actor: User, is_active: bool | None = None, verbs: Any = None
) -> Webhook:
    """Switch it on or off, or have it hear of other events. What happened while it was off is not told later."""
    with transaction.atomic():
        User.objects.select_for_update().get(pk=webhook.user_id)
        webhook = Webhook.objects.select_for_update().get(pk=webhook.pk)
        changes: dict[str, Any] = {}
        if is_active is not None and is_active != webhook.is_active:
            changes["is_active"] = is_active
            if is_active:
                _check_number(webhook.user)
                webhook.last_event_id = _newest_event_id()
        if verbs is not None and list(verbs) != webhook.verbs:
            changes["verbs"] = list(dict.fromkeys(verbs))
        for name, value in changes.items():
            setattr(webhook, name, value)
        if changes:
            webhook.save()
            record("changed a webhook", webhook, actor=actor, **changes)
        if changes.get("is_active") is False:
            waiting = WebhookDelivery.objects.filter(webhook=webhook, state=WebhookDelivery.State.WAITING)
            waiting.update(state=WebhookDelivery.State.GIVEN_UP, answer="switched off")
    return webhook


def test_webhook(*, webhook: Webhook, actor: User) -> Event:
    """Have the webhook told that it was tested: by the way that all events take."""
    if not allowed_hosts():
        raise WebhooksOff
    if not webhook.is_active:
        raise WebhookIsOff
    return record(TESTED, webhook, actor=actor, url=webhook.url)


def _check_number(user: User) -> None:
    if Webhook.objects.filter(user=user, is_active=True).count() >= MOST_WEBHOOKS:
        raise TooManyWebhooks


def _newest_event_id() -> int:
    newest = Event.objects.order_by("-id").values_list("id", flat=True).first()
    return newest or 0


def settled_event_id() -> int:
    """Return an id up to which every event is committed or never will be; 0 while somebody writes events."""
    now = mark("touchstone_event")
    return 0 if now.writers else now.last_id
