"""Letters that are switched off: on the account's page, or by the link that each of them ends with."""

from django.core import signing
from django.urls import reverse

from touchstone.letters.kinds import BY_KEY, LetterKind, optional_kinds
from touchstone.models import Letter, LetterRefusal, User

SALT = "touchstone.letters.unsubscribing"


def unsubscribe_path(letter: Letter) -> str:
    """Return the path of the page that switches off what this letter is, or "" if nobody can."""
    if letter.user_id is None or not BY_KEY[letter.kind].is_optional:
        return ""
    return reverse("letters-off", args=[unsubscribe_token(letter.user_id, letter.kind)])


def unsubscribe_token(user_id: int, kind: str) -> str:
    """Return what only this server can write into the link that switches off these letters to this person."""
    return signing.Signer(salt=SALT).sign_object([user_id, kind])


def person_of(token: str) -> tuple[User, LetterKind] | None:
    """Return whose letters of which kind the link switches off, or None if this server did not make it."""
    try:
        key, kind = signing.Signer(salt=SALT).unsign_object(token)
    except signing.BadSignature:
        return None
    user = User.objects.filter(pk=key, is_active=True).first()
    return (user, BY_KEY[kind]) if user is not None and kind in BY_KEY else None


def refuse(user: User, kind: LetterKind) -> None:
    """Send the person no more letters of this kind; what waits is not sent either."""
    LetterRefusal.objects.get_or_create(user=user, kind=kind.key)
    Letter.objects.filter(user=user, kind=kind.key, state=Letter.State.WAITING).delete()


def refused_kinds(user: User) -> set[str]:
    return set(LetterRefusal.objects.filter(user=user).values_list("kind", flat=True))


def choose_kinds(user: User, wanted: set[str]) -> None:
    """Keep which of the optional letters the person wants."""
    for kind in optional_kinds(may_manage=user.may_manage):
        if kind.key in wanted:
            LetterRefusal.objects.filter(user=user, kind=kind.key).delete()
        else:
            refuse(user, kind)
