"""Links that work once: an invitation to an account, a new password, the proof of an address.

A link's token has 256 random bits and is shown when it is made; the database keeps its SHA-256. Used, revoked, expired
and never made are one refusal. Whoever uses a link locks its row: of two at once, the second finds it used.
"""

import hashlib
import secrets
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import timezone

from judging.services.errors import Refused, UserNameTaken
from touchstone.models import AccountLink, User, record

INVITATION, PASSWORD, ADDRESS = (
    AccountLink.Kind.INVITATION,
    AccountLink.Kind.PASSWORD,
    AccountLink.Kind.ADDRESS,
)
INVITATION_LIFE = timedelta(days=14)
PASSWORD_LIFE = timedelta(days=1)


class LinkUnusable(Refused):
    """Used, expired, revoked or never made: all look the same."""

    status = 404
    title = "This link cannot be used"


class AddressTaken(Refused):
    status = 409
    title = "An account with this address is there already"


def hash_of(token: str) -> str:
    """Return what is stored of a token."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def path_of(kind: str, token: str) -> str:
    """Return the path of the page that the link leads to."""
    return reverse(f"link-{kind}", args=[token])


# -- making ---------------------------------------------------------------------------------------------------


def invite(*, role: str, email: str = "", actor: User | None) -> tuple[AccountLink, str]:
    """Make an invitation to an account of this role; return it and its token, which is not kept."""
    email = User.objects.normalize_email(email)
    with transaction.atomic():
        if email and User.objects.filter(email__iexact=email, is_active=True).exists():
            raise AddressTaken
        link, token = _make(
            INVITATION, life=INVITATION_LIFE, actor=actor, role=User.Role(role).value, email=email
        )
        record("invited a user", link, actor=actor, role=role)
    return link, token


def make_password_link(*, user: User, actor: User | None) -> tuple[AccountLink, str]:
    """Make a link by which the user sets a password; earlier ones end, the present password stays valid."""
    with transaction.atomic():
        _open_links(User.objects.select_for_update(no_key=True).get(pk=user.pk), PASSWORD).update(
            revoked_at=Now()
        )
        link, token = _make(PASSWORD, life=PASSWORD_LIFE, actor=actor, user=user)
        record("made a password link", user, actor=actor)
    return link, token


def _make(
    kind: str,
    *,
    life: timedelta,
    actor: User | None,
    user: User | None = None,
    role: str = "",
    email: str = "",
) -> tuple[AccountLink, str]:
    token = secrets.token_urlsafe(32)
    link = AccountLink.objects.create(
        kind=kind,
        token_sha256=hash_of(token),
        role=role,
        email=email,
        user=user,
        created_by=actor,
        expires_at=timezone.now() + life,
    )
    return link, token


def _open_links(user: User, kind: str) -> QuerySet[AccountLink]:
    return AccountLink.objects.filter(user=user, kind=kind, used_at=None, revoked_at=None)


def revoke_link(*, link: AccountLink, actor: User | None) -> bool:
    """End a link that nobody has used; return whether it was open."""
    with transaction.atomic():
        ended = AccountLink.objects.filter(pk=link.pk, used_at=None, revoked_at=None).update(revoked_at=Now())
        if ended:
            record("revoked a link", link, actor=actor, kind=link.kind)
    return bool(ended)


# -- using ----------------------------------------------------------------------------------------------------


def usable_link(*, kind: str, token: str) -> AccountLink:
    """Return the link, or refuse it."""
    link = _usable(kind, token).select_related("user", "created_by").first()
    if link is None:
        raise LinkUnusable
    return link


def _usable(kind: str, token: str) -> QuerySet[AccountLink]:
    # A long random token is found by its hash: how long that takes tells nothing about any token.
    found = AccountLink.objects.filter(
        kind=kind, token_sha256=hash_of(token), used_at=None, revoked_at=None, expires_at__gt=Now()
    )
    return found if kind == INVITATION else found.filter(user__is_active=True)


def _use(kind: str, token: str, user: User | None = None) -> AccountLink:
    """Mark the link as used; PostgreSQL looks at the condition again for whoever had to wait for its row."""
    link = _usable(kind, token).select_for_update(of=["self"]).first()
    if link is None:
        raise LinkUnusable
    link.user = user or link.user
    AccountLink.objects.filter(pk=link.pk).update(used_at=Now(), user=link.user)
    return link


def join_by_invitation(*, token: str, username: str, password: str) -> User:
    """Make the account that the invitation is for, with its role, or change nothing."""
    invitation = usable_link(kind=INVITATION, token=token)  # before a password is hashed for nothing
    user = User(username=username, role=invitation.role, email=invitation.email)
    user.set_password(password)  # takes long on purpose: not while a transaction is open
    with transaction.atomic():
        if User.objects.filter(username__iexact=username).exists():
            raise UserNameTaken
        try:
            with transaction.atomic():
                user.save(force_insert=True)
        except IntegrityError as error:  # somebody took the name in the same moment
            raise UserNameTaken from error
        link = _use(INVITATION, token, user)
        record("accepted an invitation", user, actor=user, link=link.pk, role=user.role)
    return user


def set_password_by_link(*, token: str, password: str) -> User:
    """Give the link's user this password; sessions, keys and leases end with the old one (touchstone/access.py)."""
    known = usable_link(kind=PASSWORD, token=token)
    assert known.user is not None  # noqa: S101 (a constraint of the table)
    user = known.user
    user.set_password(password)
    with transaction.atomic():
        _use(PASSWORD, token)
        user.save(update_fields=["password"])
        record("set a password by link", user, actor=user)
    return user
