"""The kinds of letters, in one table: what each is about, and whether a person may switch it off."""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True)
class LetterKind:
    """A kind of letter: the words of its switch, the role it is for ("" is everybody's), the days between two of them.

    Whoever asked for a letter themselves, or was invited, cannot switch it off.
    """

    key: str
    label: Any  # text, where an assessor reads it in their language
    role: str = ""
    is_optional: bool = True
    days_between: int = 1


INVITATION = LetterKind("invitation", "An invitation", is_optional=False)
PASSWORD = LetterKind("password", "A link to set a password", is_optional=False)
ADDRESS = LetterKind("address", "A link that confirms an address", is_optional=False)
GOLD = LetterKind("gold", _("Gold work is waiting for me"))
UNJUDGED = LetterKind(
    "unjudged", "An audit is due, and nobody is there to judge it", "manager", days_between=7
)
STUCK = LetterKind("stuck", "Items of a campaign cannot be finished", "manager", days_between=7)
QUESTION = LetterKind("question", "An assessor has a question", "manager")
KINDS: tuple[LetterKind, ...] = (INVITATION, PASSWORD, ADDRESS, GOLD, UNJUDGED, STUCK, QUESTION)
BY_KEY = {kind.key: kind for kind in KINDS}


def optional_kinds(*, may_manage: bool) -> list[LetterKind]:
    """Return the kinds that somebody of this role may switch off.

    >>> [kind.key for kind in optional_kinds(may_manage=False)]
    ['gold']
    """
    return [kind for kind in KINDS if kind.is_optional and (may_manage or kind.role != "manager")]
