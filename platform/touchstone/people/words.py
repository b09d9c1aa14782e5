"""By which words a person is found in texts, and what stands in their place."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

SHORTEST = 3  # characters
SHORTEST_GENERATED = 12


class Words:
    """The words that name one person, in any case, and the name that stands for them afterwards.

    >>> words = Words(["ada@example.org", "Ada Lovelace"], "erased-17")
    >>> words.rename("mailto:Ada@Example.org, ADA LOVELACE; canada@example.org")
    'mailto:erased-17, erased-17; canada@example.org'
    >>> words.rename_in({"note": ["of ada@example.org"], "n": 3})
    {'note': ['of erased-17'], 'n': 3}
    """

    def __init__(self, words: Iterable[str], name: str) -> None:
        self.name = name
        spelled = {spelling for word in words if len(word) >= SHORTEST for spelling in _spellings(word)}
        self.words = sorted(spelled, key=lambda word: (-len(word), word))
        either = "|".join(re.escape(word) for word in self.words)
        # A letter or digit beside it would make it part of another word.
        self._pattern = re.compile(rf"(?<![^\W_])(?:{either})(?![^\W_])", re.IGNORECASE) if either else None

    def __bool__(self) -> bool:
        return bool(self.words)

    def rename(self, text: str) -> str:
        """Return the text with the person's new name in the place of each word."""
        return self._pattern.sub(self.name, text) if self._pattern else text

    def rename_in(self, value: Any) -> Any:
        """Return JSON with the words replaced in its texts; names of fields stay."""
        if isinstance(value, str):
            return self.rename(value)
        if isinstance(value, list):
            return [self.rename_in(one) for one in value]
        if isinstance(value, dict):
            return {key: self.rename_in(one) for key, one in value.items()}
        return value

    def patterns(self) -> list[str]:
        """Return what LIKE looks for, in PostgreSQL's text of JSON as well."""
        escaped = (re.sub(r"([\\%_])", r"\\\1", word) for word in self.words)
        return [f"%{word}%" for word in escaped]


def _spellings(word: str) -> Iterator[str]:
    """Yield the word as people write it, as it stands in an address, and in JSON."""
    yield word
    yield quote(word)
    yield quote(word, safe="@")
    yield json.dumps(word, ensure_ascii=False)[1:-1]


def words_of(user: Any, also: Iterable[str] = ()) -> Words:
    """Return the words of a user: e-mail addresses and the full name, and those that somebody adds.

    A login that is no address may be a word like any other, and is looked for in texts only where it is added.
    """
    full = f"{user.first_name} {user.last_name}".strip() if user.first_name and user.last_name else ""
    login = user.get_username() if "@" in user.get_username() else ""
    return Words(filter(None, [login, user.email, full, *also]), erased_name(user.pk))


def is_generated(name: str) -> bool:
    """Whether a market's name looks made by a machine: then it stands in no text by chance.

    Anybody may come with a market's name of their choice, and must not choose what is replaced in the texts of all.

    >>> is_generated("5a9d64f5f6dfdd0001eaa73d"), is_generated("relevant"), is_generated("nonrelevant-docs")
    (True, False, False)
    """
    return len(name) >= SHORTEST_GENERATED and any(map(str.isdigit, name)) and any(map(str.isalpha, name))


def erased_name(key: int) -> str:
    """Return the name of an account that was erased.

    >>> erased_name(17)
    'erased-17'
    """
    return f"erased-{key}"
