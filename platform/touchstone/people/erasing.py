"""Taking a person out: the account becomes nobody's, names go from texts, and judgments keep their pseudonym.

First the account is closed, then texts lose the names, then the account loses its own, and last comments go: whoever
begins again after a crash finds what is still to do. Sealed rows are changed by the owner's function, which leaves an
`Erasure`; so what is not sealed yet is sealed first.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import Q, QuerySet

from analytics.models import Release
from analytics.releases.pseudonyms import pseudonym
from judging.models import (
    Assessor,
    CollectionMember,
    ImportedName,
    Invitation,
    Judgment,
    Message,
    Participant,
)
from judging.services.leases import lock_requests
from touchstone.ledger import sealing
from touchstone.letters.sending import remove_letters
from touchstone.models import (
    AccountLink,
    ApiToken,
    Event,
    IdempotentRequest,
    Letter,
    RateCounter,
    Seal,
    User,
    Webhook,
    WebhookDelivery,
    record,
)
from touchstone.people.texts import TEXTS, Text, changes, places, write
from touchstone.people.words import Words, erased_name, is_generated, words_of
from touchstone.sessions import SessionStore
from touchstone.users import LastManager, keeping_a_manager

PATIENCE_SECONDS = 600.0  # for transactions that began before and must end before their neighbours are sealed
NOWHERE = "https://erased.invalid/"
NO_TEXT = "(erased)"
BY_TABLE = {text.table: text for text in TEXTS if text.by_function}
COMMENT, EVENT = BY_TABLE["judging_judgment"], BY_TABLE["touchstone_event"]
MESSAGE, NOTE = BY_TABLE["judging_message"], BY_TABLE["judging_invitation"]
KEY_NAME = BY_TABLE["touchstone_apitoken"]
Say = Callable[[str], None]


class CannotErase(Exception):
    """The person cannot be erased now; the message says why, and what to do."""


@dataclass
class ErasureReport:
    """What was done: rows of each table that lost a text, market names no text lost, and where a name still stands."""

    name: str
    texts: dict[str, int] = field(default_factory=dict)
    comments: int = 0
    not_sought: list[str] = field(default_factory=list)
    left: list[tuple[str, str, int]] = field(default_factory=list)

    def count(self, text: Text, n: int = 1) -> None:
        self.texts[text.table] = self.texts.get(text.table, 0) + n


def erase(
    user: User, *, comments: bool = False, also: Iterable[str] = (), say: Say = lambda words: None
) -> ErasureReport:
    """Erase a person; again, it does what was not done yet.

    Parameters
    ----------
    user:
        Whose account it is.
    comments:
        Whether the comments of the person's judgments go as well.
    also:
        More words by which texts name the person: an old address, a nickname.
    say:
        Is told what it waits for.

    Returns
    -------
    ErasureReport
        What was done, and in which columns a word still stands.

    Raises
    ------
    CannotErase
        If somebody else has the name that the account would get, or a transaction keeps rows from being sealed.
    """
    name = free_name(user)
    try:
        with keeping_a_manager():
            _close(user)
    except LastManager as refusal:
        raise CannotErase(
            "the last active manager stays one: make somebody else a manager first"
        ) from refusal
    of_markets = set(Participant.objects.filter(assessor__user=user).values_list("participant", flat=True))
    words, done = words_of(user, [*also, *filter(is_generated, of_markets)]), ErasureReport(name)
    done.not_sought = sorted(one for one in of_markets - {*also, ""} if not is_generated(one))
    _erase_own_rows(user, done)
    _erase_own_events(user, done, say)
    for text in TEXTS if words else ():
        _replace(text, words, done, say)
    _clean_sessions(words)
    _rename(user, name)
    if comments:
        done.comments = _erase_comments(user, say)
    record("erased a person", user, with_comments=comments, n_texts=sum(done.texts.values()))
    done.left = list(places(words)) if words else []
    return done


def free_name(user: User) -> str:
    """Return the name that the account gets, or raise CannotErase: then nothing has been done."""
    name = erased_name(user.pk)
    if User.objects.filter(username__iexact=name).exclude(pk=user.pk).exists():
        raise CannotErase(f"another account is called {name}: give it another name first")
    return name


def _close(user: User) -> None:
    """Close the account; nothing is judged in its name from here on, and no session or key works."""
    with transaction.atomic():
        user.is_active = user.is_staff = user.is_superuser = False
        user.set_unusable_password()
        # Saving another password ends sessions and keys (touchstone.access).
        user.save(update_fields=["is_active", "is_staff", "is_superuser", "password"])
        Assessor.objects.filter(user=user).update(status=Assessor.Status.SUSPENDED)


def _erase_own_rows(user: User, done: ErasureReport) -> None:
    """Empty what stands in rows of the person's own, whatever it says, but names by which texts are searched."""
    with transaction.atomic():
        mine = Assessor.objects.filter(user=user)
        ImportedName.objects.filter(assessor__in=mine).delete()
        CollectionMember.objects.filter(user=user).delete()
        IdempotentRequest.objects.filter(user=user).delete()
        remove_letters(_letters_to(user))
        user.letter_refusals.all().delete()
        user.identities.all().delete()
        WebhookDelivery.objects.filter(webhook__user=user).delete()
        Webhook.objects.filter(user=user).update(url=NOWHERE, secret="", verbs=[], is_active=False)
        hashed = hashlib.sha256(user.get_username().strip().casefold().encode(errors="replace")).hexdigest()
        RateCounter.objects.filter(key=f"login name {hashed}").delete()
        # An invitation to their address too, whoever took it: the row holds the address.
        theirs = Q(user=user) | Q(email__iexact=user.email) & ~Q(email="")
        AccountLink.objects.filter(theirs).delete()
        for text, value, rows in (
            (KEY_NAME, "", ApiToken.objects.filter(user=user).exclude(name="")),
            (MESSAGE, NO_TEXT, Message.objects.filter(assessor__in=mine).exclude(text=NO_TEXT)),
            (NOTE, "", _invitations_of(user).exclude(note="")),
        ):
            for key in rows.values_list("pk", flat=True):
                write(text, key, value)
                done.count(text)


def _letters_to(user: User) -> QuerySet[Letter]:
    """Return the letters to the person, also those to their address from before there was an account."""
    return Letter.objects.filter(Q(user=user) | Q(user=None, address__iexact=user.email or "-"))


def _invitations_of(user: User) -> QuerySet[Invitation]:
    """Return the links that were for this person alone, as far as the log of events knows."""
    joined = Event.objects.filter(actor=user, verb="joined by invitation")
    keys = [
        detail["invitation"] for detail in joined.values_list("detail", flat=True) if "invitation" in detail
    ]
    return Invitation.objects.filter(pk__in=keys, max_uses=1)


def _erase_own_events(user: User, done: ErasureReport, say: Say) -> None:
    """Empty the names of the person's keys and the addresses of their webhooks in the log of events."""
    names = [*(f"apitoken:{key}" for key in ApiToken.objects.filter(user=user).values_list("pk", flat=True))]
    names += (f"webhook:{key}" for key in Webhook.objects.filter(user=user).values_list("pk", flat=True))
    for event in Event.objects.filter(subject__in=names).order_by("pk"):
        emptied = {key: "" if key in ("name", "url") else value for key, value in event.detail.items()}
        if emptied != event.detail:
            seal_up_to(EVENT.table, event.pk, say)
            write(EVENT, event.pk, json.dumps(emptied, ensure_ascii=False))
            done.count(EVENT)


def _replace(text: Text, words: Words, done: ErasureReport, say: Say) -> None:
    found = list(changes(text, words))
    if text.is_sealed and found:
        seal_up_to(text.table, max(key for key, _ in found), say)
    for key, value in found:
        write(text, key, value)
        done.count(text)


def _clean_sessions(words: Words) -> None:
    """Replace the words in messages that wait in other people's sessions for their next page."""
    for session in Session.objects.iterator() if words else ():
        before = session.get_decoded()
        after = words.rename_in(before)
        if after != before:
            encoded = SessionStore().encode(after)
            Session.objects.filter(pk=session.pk).update(session_data=encoded)


@transaction.atomic
def _rename(user: User, name: str) -> None:
    """Take the names out by which texts were searched, last: whoever begins again needs them."""
    Participant.objects.filter(assessor__user=user).update(participant="", study="", session="")
    user.username, user.first_name, user.last_name, user.email, user.language = name, "", "", "", ""
    user.last_login = user.seen_at = None
    user.time_zone = ""
    fields = [
        "username",
        "first_name",
        "last_name",
        "email",
        "language",
        "time_zone",
        "last_login",
        "seen_at",
    ]
    user.save(update_fields=fields)


def _erase_comments(user: User, say: Say) -> int:
    """Erase the comments of the person's judgments, also of one that was stored meanwhile; return how many."""
    with transaction.atomic():
        for assessor in Assessor.objects.filter(user=user)[:1]:
            lock_requests(assessor)  # who waits for this lock finds the account erased, and stores no comment
    found = Judgment.objects.filter(assessor__user=user).exclude(comment="")
    keys = list(found.order_by("pk").values_list("pk", flat=True))
    if keys:
        seal_up_to(COMMENT.table, keys[-1], say)
    for key in keys:
        write(COMMENT, key, "")
    return len(keys)


def seal_up_to(table: str, key: int, say: Say) -> None:
    """Have the table sealed up to this row: what is not sealed is not erased, as its old line would be lost."""
    end, is_told = time.monotonic() + PATIENCE_SECONDS, False
    while not _is_sealed(table, key):
        sealing.seal_new_rows()
        if _is_sealed(table, key):
            return
        if time.monotonic() > end:
            raise CannotErase(
                f"{table} cannot be sealed: a transaction has been writing for long. Try again when it is over"
            )
        if not is_told:
            say(f"Waiting until {table} is sealed ...")
            is_told = True
        time.sleep(0.5)


def _is_sealed(table: str, key: int) -> bool:
    return Seal.objects.filter(table=table, up_to_id__gte=key).exists()


def releases_of(user: User) -> list[tuple[Release, list[str]]]:
    """Return the releases that may hold judgments of the person, with their pseudonyms there as far as a key tells."""
    mine = Assessor.objects.filter(user=user)
    ready = Release.objects.filter(state=Release.State.READY, campaign__assessors__in=mine)
    found = []
    for release in ready.select_related("campaign").order_by("created_at").distinct():
        judged = Judgment.objects.filter(assessor__in=mine.filter(campaign=release.campaign))
        keys = judged.filter(pk__lte=release.last_judgment_id).values_list("assessor", flat=True).distinct()
        if keys:
            key = release.pseudonym_key
            found.append((release, [pseudonym(key, one) for one in sorted(keys)] if key else []))
    return found
