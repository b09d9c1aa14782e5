"""The end of somebody's access: sessions, keys, leases; by itself where a password changes or an account is closed."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models.functions import Now
from django.db.models.signals import post_save, pre_save

from judging.models import Assessor
from judging.services.leases import lock_requests, release_all
from touchstone.models import ApiToken, User, record

WATCHED = frozenset({"password", "is_active"})


@dataclass(frozen=True)
class Ended:
    """How many sessions and keys ended, and how many leases others may have now."""

    sessions: int
    keys: int
    leases: int


def end_access(user: User, *, sessions: bool = True, keys: bool = True) -> Ended:
    """End a person's access from the next request on, and give back what they have leased.

    It waits for the request in which the person judges at this moment. What is submitted late is kept, as ever. Who
    changes their own password stays logged in through Django's `update_session_auth_hash`, called afterwards.

    Parameters
    ----------
    user:
        Whose access ends; the object gets the new salt, so that sessions can be made for it at once.
    sessions:
        Whether whoever is logged in is logged out, on every device.
    keys:
        Whether the API keys end, for ever.

    Returns
    -------
    Ended
        How many of each.
    """
    with transaction.atomic():
        assessors = list(Assessor.objects.filter(user=user).select_related("campaign"))
        for assessor in assessors[:1]:  # the lock is the person's, in whatever campaign
            lock_requests(assessor)
        n_leases = 0
        for assessor in assessors:
            n = release_all(assessor=assessor)
            if n:
                record("released", assessor.campaign, assessor=user.pk, n_slots=n)
            n_leases += n
        return Ended(_end_sessions(user) if sessions else 0, _end_keys(user) if keys else 0, n_leases)


def _end_sessions(user: User) -> int:
    """Give the person another salt, which no session was made with; return how many sessions lose their row."""
    user.session_salt = secrets.token_hex(16)
    User.objects.filter(pk=user.pk).update(session_salt=user.session_salt)
    found = list(_sessions_of(user))
    Session.objects.filter(pk__in=found).delete()
    return len(found)


def _sessions_of(user: User) -> Iterator[str]:
    for session in Session.objects.filter(expire_date__gt=Now()).iterator():
        if session.get_decoded().get(SESSION_KEY) == str(user.pk):
            yield session.session_key


def _end_keys(user: User) -> int:
    works = ApiToken.objects.filter(user=user, revoked_at=None)
    ended = list(works)
    works.update(revoked_at=Now())
    for token in ended:
        record("revoked a key", token, actor=None, name=token.name)
    return len(ended)


# -- by itself ------------------------------------------------------------------------------------------------


def watch_accounts() -> None:
    """End the access of whoever gets another password or is closed, whatever page or command saves it."""
    pre_save.connect(_look_before, sender=User, dispatch_uid="touchstone.access")
    post_save.connect(_end_after, sender=User, dispatch_uid="touchstone.access")


def _look_before(instance: User, raw: bool, update_fields: frozenset[str] | None, **_: Any) -> None:
    instance.ends_access = False
    if raw or instance._state.adding or not (WATCHED & (update_fields or WATCHED)):
        return
    before = User.objects.filter(pk=instance.pk).values("password", "is_active").first()
    if before is None:
        return
    is_closed = before["is_active"] and not instance.is_active
    is_other = before["password"] != instance.password
    instance.ends_access = is_closed or (is_other and not _is_same_password(instance, update_fields))


def _is_same_password(user: User, update_fields: frozenset[str] | None) -> bool:
    """Return whether a password is only hashed anew, as Django does at a login after the hasher has changed."""
    return (
        update_fields == frozenset({"password"})
        and getattr(user, "_password", None) is None
        and user.has_usable_password()
    )


def _end_after(instance: User, **_: Any) -> None:
    if instance.ends_access:
        instance.ends_access = False
        end_access(instance)
