"""A letter is stored in the transaction that has a reason for it; a job sends it.

The secret of a one-time link is derived from the server's SECRET_KEY and a random seed of the row that the link opens.
So a page and a letter show the same link, and whoever reads the database, or a backup of it, cannot make it.
"""

import base64
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db.models.functions import Now
from django.utils import translation
from django.utils.crypto import salted_hmac

from touchstone import jobs
from touchstone.letters.kinds import BY_KEY, LetterKind
from touchstone.models import Letter, LetterRefusal, User

KIND = "letters"
SECRET = "{secret}"  # noqa: S105 (a place in a link)


def queue_letter(
    *,
    kind: str,
    to: User | str,
    subject: str,
    title: str,
    lines: Sequence[str],
    link: str = "",
    seed: str = "",
) -> Letter | None:
    """Store a letter for the job that sends it, in the caller's transaction.

    Parameters
    ----------
    kind:
        A key of KINDS.
    to:
        Who gets it; somebody without an account by address.
    subject:
        What it is about, as in events: of one kind, person and subject there is one letter a day.
    title:
        The line that mail programs show.
    lines:
        Its paragraphs, in the person's language. No grades, no text of documents.
    link:
        A path of this site. "{secret}" in it is replaced by the worker, as it sends the letter.
    seed:
        Of the row that the secret opens.

    Returns
    -------
    Letter or None
        None if there is nobody to write to, if they want none of this kind, or if one like it was stored lately.
    """
    what = BY_KEY[kind]
    user = to if isinstance(to, User) else None
    address = _address(to)
    if not address or (user is not None and not _wants(user, what)):
        return None
    today = datetime.now(UTC).date()
    person: dict[str, Any] = {"user": user} if user is not None else {"user": None, "address": address}
    since = today - timedelta(days=what.days_between - 1)
    if Letter.objects.filter(kind=kind, subject=subject, day__gte=since, **person).exists():
        return None
    letter = Letter(
        kind=kind,
        user=user,
        address=address,
        subject=subject,
        day=today,
        title=one_line(title)[:200],
        text="\n\n".join(line.strip() for line in lines),
        link=link,
        seed=seed,
        next_attempt_at=Now(),
    )
    Letter.objects.bulk_create([letter], ignore_conflicts=True)  # two at once are one
    if not Letter.objects.filter(pk=letter.pk).exists():
        return None
    jobs.enqueue(kind=KIND, payload={}, active_key=KIND)
    return letter


def one_time_secret(kind: str, seed: str) -> str:
    """Return the secret of a link, 43 characters of an address; only this server can make it of the seed."""
    mac = salted_hmac(f"touchstone.letters {kind}", seed, algorithm="sha256").digest()
    return base64.urlsafe_b64encode(mac).rstrip(b"=").decode()


def link_of(letter: Letter) -> str:
    """Return the whole address of the letter's link, with its secret."""
    if not letter.link:
        return ""
    return absolute(letter.link.replace(SECRET, one_time_secret(letter.kind, letter.seed)))


def absolute(path: str) -> str:
    """Return the address of a page of this site."""
    return f"{settings.SITE_URL.rstrip('/')}{path}"


def site_host() -> str:
    """Return the site's name, without a port."""
    return urlsplit(settings.SITE_URL).hostname or "localhost"


def letters_are_sent() -> bool:
    """Return whether a mail server takes letters; without one they lie in var/mail, and pages show their links."""
    return bool(settings.EMAIL_HOST)


def one_line(text: str) -> str:
    """Return the text without line breaks and other control characters, which would begin another header.

    >>> one_line("Hello\\r\\nBcc: everybody@example.org")
    'Hello Bcc: everybody@example.org'
    """
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def in_language_of(user: User | None) -> Any:
    """Return a context in which texts are in the person's language; a manager's letters are English, as their pages."""
    chosen = user.language if user is not None and not user.may_research else ""
    return translation.override(chosen or settings.LANGUAGE_CODE)


def _address(to: User | str) -> str:
    """Return the address, or nothing if there is none that can be written to."""
    address = (to.email if isinstance(to, User) else to).strip()
    try:
        validate_email(address)
    except ValidationError:
        return ""
    return address if len(address) <= 254 else ""


def _wants(user: User, kind: LetterKind) -> bool:
    """Return whether the person may get it: nobody does whom a crowd market sent, or whose account is closed."""
    if not user.is_active or User.objects.filter(pk=user.pk, assessors__participant__isnull=False).exists():
        return False
    return not (kind.is_optional and LetterRefusal.objects.filter(user=user, kind=kind.key).exists())
