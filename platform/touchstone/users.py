"""What managers do with accounts: change a role, end sessions, close and open. The last active manager stays one."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import IntegrityError, transaction

from judging.services.errors import Refused
from touchstone.access import Ended, end_access
from touchstone.models import User, record

LAST_MANAGER = "touchstone_user_last_manager"  # a trigger: migrations/0019_last_manager.py


class LastManager(Refused):
    status = 409
    title = "The last active manager stays one. Make somebody else a manager first"


@contextmanager
def keeping_a_manager() -> Iterator[None]:
    """Do something in a transaction; that it would take the last manager away is a refusal."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        if getattr(getattr(error.__cause__, "diag", None), "constraint_name", None) != LAST_MANAGER:
            raise
        raise LastManager from error


def change_role(*, user: User, role: str, actor: User) -> bool:
    """Give the user this role, from the next request on; return whether it was another."""
    with keeping_a_manager():
        row = User.objects.select_for_update(no_key=True).get(pk=user.pk)
        if row.role == role:
            return False
        before, row.role = row.role, User.Role(role).value
        row.save(update_fields=["role"])
        record("changed a role", row, actor=actor, before=before, role=role)
    return True


def end_sessions(*, user: User, actor: User) -> Ended:
    """Log the user out on every device, end the API keys, and give back what they have leased."""
    with transaction.atomic():
        ended = end_access(user)
        record("ended sessions", user, actor=actor, n_sessions=ended.sessions, n_keys=ended.keys)
    return ended


def close_account(*, user: User, actor: User) -> bool:
    """Close the account; access ends with it (touchstone/access.py). Return whether it was open."""
    return _set_active(user, False, actor)


def open_account(*, user: User, actor: User) -> bool:
    """Open a closed account: its person logs in anew. Return whether it was closed."""
    return _set_active(user, True, actor)


def _set_active(user: User, is_active: bool, actor: User) -> bool:
    with keeping_a_manager():
        row = User.objects.select_for_update(no_key=True).get(pk=user.pk)
        if row.is_active == is_active:
            return False
        row.is_active = is_active
        row.save(update_fields=["is_active"])
        record("opened an account" if is_active else "closed an account", row, actor=actor)
    return True
