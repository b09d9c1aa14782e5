"""Links that work once: an invitation to an account, a new password, the proof of an address.

A link's token is derived from a random seed, which a letter may take along and the link forgets; the database keeps
the token's SHA-256. Used, revoked, expired and never made are one refusal. Whoever uses a link locks its row: of two
at once, the second finds it used.
"""

import hashlib
import uuid
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext

from judging.services.errors import Refused, UserNameTaken
from touchstone import jobs
from touchstone.letters.queueing import SECRET, in_language_of, one_time_secret, queue_letter
from touchstone.models import AccountLink, User, record

INVITATION, PASSWORD, ADDRESS = (
    AccountLink.Kind.INVITATION,
    AccountLink.Kind.PASSWORD,
    AccountLink.Kind.ADDRESS,
)
INVITATION_LIFE = timedelta(days=14)
PASSWORD_LIFE = timedelta(days=1)
ADDRESS_LIFE = timedelta(days=1)
FORGOTTEN = "forgotten"  # the kind of job that writes to whoever has forgotten a password
MOST_OF_ADDRESS = 3  # accounts of one address that get a letter
PLACE = "secret-comes-here"  # a word that an address does not quote


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
    """Make an invitation to an account of this role, with a letter where there is an address; return its token too."""
    email = User.objects.normalize_email(email)
    with transaction.atomic():
        if email and User.objects.filter(email__iexact=email, is_active=True).exists():
            raise AddressTaken
        link, seed = _make(
            INVITATION, life=INVITATION_LIFE, actor=actor, role=User.Role(role).value, email=email
        )
        record("invited a user", link, actor=actor, role=role)
        if email:
            lines = [
                f"You are invited to an account as {role}.",
                "This link makes it, once, within 14 days.",
            ]
            _write(link, seed, email, "Your invitation to Touchstone", lines)
    return link, one_time_secret(link.kind, seed)


def make_password_link(*, user: User, actor: User | None, by_letter: bool = False) -> tuple[AccountLink, str]:
    """Make a link by which the user sets a password; earlier ones end, the present password stays valid."""
    with transaction.atomic():
        _end_open_links(user, PASSWORD)
        link, seed = _make(PASSWORD, life=PASSWORD_LIFE, actor=actor, user=user)
        record("made a password link", user, actor=actor)
        if by_letter:
            with in_language_of(user):
                name = {"name": user.get_username()}
                lines = [
                    gettext("Somebody asked for a new password for your account %(name)s.") % name,
                    gettext("With this link you choose one, once, within a day."),
                    gettext("If it was not you, nothing needs to be done: your password stays as it is."),
                ]
                _write(link, seed, user, gettext("New password"), lines)
    return link, one_time_secret(link.kind, seed)


def make_address_link(*, user: User, email: str) -> AccountLink:
    """Write a letter to the address with a link that makes it the user's; earlier ones end."""
    with transaction.atomic():
        _end_open_links(user, ADDRESS)
        email = User.objects.normalize_email(email)
        link, seed = _make(ADDRESS, life=ADDRESS_LIFE, actor=user, user=user, email=email)
        with in_language_of(user):
            name = {"name": user.get_username()}
            lines = [gettext("With this link, letters about the account %(name)s come here.") % name]
            _write(link, seed, email, gettext("Your address"), lines)
    return link


def _write(link: AccountLink, seed: str, to: User | str, title: str, lines: list[str]) -> None:
    path = path_of(link.kind, PLACE).replace(PLACE, SECRET)
    about = f"accountlink:{link.pk}"
    queue_letter(kind=link.kind, to=to, subject=about, title=title, lines=lines, link=path, seed=seed)


def _make(
    kind: str,
    *,
    life: timedelta,
    actor: User | None,
    user: User | None = None,
    role: str = "",
    email: str = "",
) -> tuple[AccountLink, str]:
    """Make the link; return it and the seed of its token."""
    seed = uuid.uuid4().hex
    link = AccountLink.objects.create(
        kind=kind,
        token_sha256=hash_of(one_time_secret(kind, seed)),
        role=role,
        email=email,
        user=user,
        created_by=actor,
        expires_at=timezone.now() + life,
    )
    return link, seed


def _end_open_links(user: User, kind: str) -> None:
    User.objects.select_for_update(no_key=True).get(
        pk=user.pk
    )  # one after the other: one link is open in the end
    AccountLink.objects.filter(user=user, kind=kind, used_at=None, revoked_at=None).update(revoked_at=Now())


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
    found = _open(kind).filter(token_sha256=hash_of(token))
    return found if kind == INVITATION else found.filter(user__is_active=True)


def _open(kind: str) -> QuerySet[AccountLink]:
    return AccountLink.objects.filter(kind=kind, used_at=None, revoked_at=None, expires_at__gt=Now())


def _use(kind: str, token: str, user: User | None = None) -> AccountLink:
    """Mark the link as used, or refuse it."""
    return _mark(_usable(kind, token), user)


def _mark(found: QuerySet[AccountLink], user: User | None) -> AccountLink:
    """Mark a usable link as used; PostgreSQL looks at the condition again for whoever had to wait for its row."""
    link = found.select_for_update(of=["self"]).first()
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


def invitation_to(address: str) -> AccountLink | None:
    """Return the newest open invitation to this very address."""
    found = _open(INVITATION).filter(email__iexact=address).order_by("-pk")
    return next((link for link in found if is_same_address(link.email, address)), None)


def is_same_address(one: str, other: str) -> bool:
    """Return whether two addresses are one: only plain letters may differ in case.

    A database whose language is not C takes letters for equal that are not: "ı" in capitals is "I".

    >>> is_same_address("Ann@example.org", "ann@Example.org"), is_same_address("mike@example.org", "mıke@example.org")
    (True, False)
    """
    return one == other or (one.isascii() and other.isascii() and one.lower() == other.lower())


def take_invitation(*, link: AccountLink, user: User) -> None:
    """Use an invitation up for an account that somebody else's log-in made; others to its address end."""
    with transaction.atomic():
        _mark(_open(INVITATION).filter(pk=link.pk), user)
        record("accepted an invitation", user, actor=user, link=link.pk, role=user.role)
        for other in _open(INVITATION).filter(email__iexact=link.email).exclude(email=""):
            revoke_link(link=other, actor=None)


def take_password_link(*, token: str) -> User:
    """Use a one-time link up and return whose it is."""
    link = _use(PASSWORD, token)
    assert link.user is not None  # noqa: S101 (a constraint of the table)
    return link.user


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


def prove_address(*, token: str) -> User:
    """Make the address of the link its user's."""
    with transaction.atomic():
        link = _use(ADDRESS, token)
        assert link.user is not None  # noqa: S101 (a constraint of the table)
        link.user.email = link.email
        link.user.save(update_fields=["email"])
        record("changed an address", link.user, actor=link.user)
    return link.user


# -- a forgotten password -------------------------------------------------------------------------------------


def ask_for_password(name: str) -> None:
    """Have a job write to whoever has this user name or address; the request does the same if nobody has."""
    theirs = Q(username__iexact=name) | Q(email__iexact=name)
    found = User.objects.filter(theirs, is_active=True).exclude(email="")
    users = list(found.values_list("pk", flat=True)[:MOST_OF_ADDRESS])
    jobs.enqueue(kind=FORGOTTEN, payload={"users": users})


def write_password_letters(context: jobs.Context) -> None:
    """Write the letters that somebody asked for who has forgotten a password."""
    for user in User.objects.filter(pk__in=context.payload["users"], is_active=True).order_by("pk"):
        make_password_link(user=user, actor=None, by_letter=True)
