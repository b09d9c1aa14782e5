"""Which account somebody has whom the provider vouches for, and how it comes to be.

A person is known by issuer and subject alone. An e-mail address that the provider has confirmed finds an invitation
that was sent to it, never an account: addresses are given to somebody else one day.
"""

import re
import secrets
import uuid
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from judging.services import entry
from judging.services.errors import Refused
from touchstone import links
from touchstone.access import end_access
from touchstone.models import AccountLink, Identity, User, record
from touchstone.openid import Person

TRIES = 3  # of user names, where others take them in the same moment
LONGEST_NAME = 140  # leaves room for a number


class NotInvited(Refused):
    status = 403
    title = "There is no account for this person, and no invitation"


class AddressUnconfirmed(NotInvited):
    """The provider does not vouch for the address, so no invitation is looked for."""

    title = "The company has not confirmed the address"


class AddressKnown(Refused):
    """An account with this address is there: it is not taken over, and not made a second time."""

    status = 409
    title = "An account with this address is there, and is not linked"


class AccountClosed(Refused):
    status = 403
    title = "This account is closed"


class LinkedElsewhere(Refused):
    status = 409
    title = "This company's account is linked with another account"


def account_of(person: Person) -> User | None:
    """Return the account that is linked with this person, or refuse one that is closed."""
    known = (
        Identity.objects.filter(issuer=person.issuer, subject=person.subject).select_related("user").first()
    )
    if known is None:
        return None
    if not known.user.is_active:
        raise AccountClosed
    return known.user


# -- coming in ------------------------------------------------------------------------------------------------


def enter(person: Person) -> User:
    """Return the person's account, made if they are invited or everybody is; nothing changes if they are refused."""
    return account_of(person) or _make(person, _admit)


def enter_by_invitation(person: Person, token: str) -> tuple[User, bool]:
    """Return the account and whether the invitation made it: who has one keeps it, and the invitation."""
    links.usable_link(kind=links.INVITATION, token=token)
    known = account_of(person)
    if known is not None:
        return known, False

    def admit(user: User) -> None:
        _accept(user, links.usable_link(kind=links.INVITATION, token=token))

    return _make(person, admit), True


def enter_campaign(person: Person, token: uuid.UUID) -> User:
    """Return the account, made an assessor's by the invitation of a campaign, which is used in the same transaction."""
    known = account_of(person)
    if known is not None:
        return known

    def admit(user: User) -> None:
        user.save(force_insert=True)
        entry.join(token=token, user=user)

    entry.usable_invitation(token=token)
    return _make(person, admit)


def _admit(user: User) -> None:
    """Save the new account, by the newest invitation to its address, or because everybody is let in."""
    invitation = links.invitation_to(user.email) if user.email else None
    if invitation is not None:
        return _accept(user, invitation)
    if user.email and User.objects.filter(email__iexact=user.email, is_active=True).exists():
        raise AddressKnown
    if settings.OIDC_NEW_USERS == "nobody":
        raise NotInvited
    user.role = User.Role(settings.OIDC_NEW_USERS).value
    user.save(force_insert=True)
    return None


def _accept(user: User, invitation: AccountLink) -> None:
    user.role = User.Role(invitation.role).value
    user.save(force_insert=True)
    links.take_invitation(link=invitation, user=user)


def _make(person: Person, admit: Callable[[User], None]) -> User:
    """Make the account, its identity and what it was admitted by, or nothing."""
    for left in reversed(range(TRIES)):
        user = User(username=_free_name(person), first_name=person.name, email=person.email)
        user.set_unusable_password()
        try:
            with transaction.atomic():
                admit(user)
                _link(user, person)
            return user
        except (IntegrityError, Refused) as error:
            known = account_of(person)  # two tabs at once: the other one made it
            if known is not None:
                return known
            if isinstance(error, NotInvited) and person.unconfirmed_email:
                raise AddressUnconfirmed from error
            if isinstance(error, Refused) or not left:
                raise
    raise AssertionError("the last try returns or raises")


def _free_name(person: Person) -> str:
    """Return a user name as the provider calls the person, or two plain words; nobody has it."""
    for given in (person.username, person.email):
        name = re.sub(r"[^\w.+-]", "", given.partition("@")[0])[:LONGEST_NAME]
        if not name:
            continue
        for tried in (name, f"{name}-{secrets.randbelow(9000) + 1000}"):
            if not User.objects.filter(username__iexact=tried).exists():
                return tried
    return entry.propose_username()


# -- linking an account that is there -------------------------------------------------------------------------


def link_account(*, user: User, person: Person) -> None:
    """Link the account with the person; one that it was linked with at this provider is so no longer."""
    with _linking(), transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        _relink(user, person)


def link_by_password_link(*, token: str, person: Person) -> User:
    """Link the account of a one-time link in place of giving it a password; whatever let somebody in ends."""
    with _linking(), transaction.atomic():
        user = links.take_password_link(token=token)
        _relink(user, person)
        end_access(user)
    return user


def _relink(user: User, person: Person) -> None:
    theirs = Identity.objects.filter(issuer=person.issuer, subject=person.subject)
    if theirs.exclude(user=user).exists():
        raise LinkedElsewhere
    Identity.objects.filter(user=user, issuer=person.issuer).delete()
    _link(user, person)


def _link(user: User, person: Person) -> None:
    Identity.objects.create(user=user, issuer=person.issuer, subject=person.subject, label=person.label)
    record("linked an account", user, actor=user, issuer=person.issuer)


@contextmanager
def _linking() -> Any:
    try:
        yield
    except IntegrityError as error:
        raise LinkedElsewhere from error


def identity_of(user: User) -> Identity | None:
    """Return how the account is linked at the provider of today."""
    if not settings.OIDC_ISSUER:
        return None
    return Identity.objects.filter(user=user, issuer=settings.OIDC_ISSUER).first()
