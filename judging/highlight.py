"""The words of a document that its topic names, marked.

Everything here is linear in the length of the document: it runs in every request of a document's frame. Words are
compared by their stems, found by folding case, accents and common English endings; languages that write no spaces
between words are marked only where a run of letters equals a term.
"""

import html
import re
import unicodedata
from collections.abc import Callable
from itertools import islice

from judging.possessive import POSSESSIVE

MOST_TERMS = 30
FEWEST_TERMS = 2  # a shorter title gets the description's words too
LONGEST_TOPIC = 2000  # characters of a title or description that are looked at
LONGEST_WORD = 60  # beyond it nothing is a word; normalising long runs of accents is quadratic

_STOP_WORDS = """
a about after all also am an and any are as at be because been before being between both but by can could did
do does doing during each few for from had has have having he her here hers him his how i if in into is it its
just may me might more most must my no nor not of off on once only or other our out over own same shall she
should so some such than that the their them then there these they this those through to too under until up
very was we were what when where which while who whom why will with would you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())


def _marks() -> str:
    """Return, for a character class, the accents and vowel signs that belong to the letter before them."""
    found = [code for code in range(0x300, 0x10000) if unicodedata.category(chr(code)).startswith("M")]
    return "".join(map(chr, found)) + "\u200c\u200d"


_WORD = rf"([^\W_]+(?:[{_marks()}]+[^\W_]*)*{POSSESSIVE})"  # nothing is ever tried twice
_WORDS = re.compile(_WORD)
_WORDS_AND_ENTITIES = re.compile(rf"&#?[A-Za-z0-9]{{1,32}};|{_WORD}")


def terms(title: str, description: str = "") -> frozenset[str]:
    """Return the stems of a topic's words: of its title, and of its description if the title has fewer than two.

    Stop words and single letters are left out, numbers are kept; at most 30.

    >>> sorted(terms("What are the telescopes' mirrors in 2020?"))
    ['2020', 'mirror', 'telescop']
    """
    found = _stems_of(title)
    if len(found) < FEWEST_TERMS:
        found |= _stems_of(description)
    return frozenset(islice(found, MOST_TERMS))


def _stems_of(text: str) -> dict[str, None]:
    """Return the stems in their order (a dictionary is an ordered set)."""
    words = (_fold(found[1]) for found in _WORDS.finditer(text[:LONGEST_TOPIC]))
    return {
        _stem(word): None for word in words if word not in STOP_WORDS and (len(word) > 1 or word.isdigit())
    }


def _fold(word: str) -> str:
    """Return the word without case and accents; an empty one if it is too long to be a word."""
    if len(word) > LONGEST_WORD:
        return ""
    if word.isascii():
        return word.lower()
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return "".join(c for c in decomposed if not unicodedata.combining(c)).casefold()


def _stem(word: str) -> str:
    """Return a folded word without the endings of plurals (Harman, 1991), -ing, -ed, -e, and a doubled consonant."""
    if len(word) < 4 or not word.isalpha():
        return word
    if word.endswith("ies") and word[-4] not in "ae":
        word = word[:-3] + "y"
    elif word.endswith("s") and word[-2] not in "us":
        word = word[:-1]
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            word = word[: -len(ending)]
            if word[-1] == word[-2] and word[-1] not in "aeiouls":
                word = word[:-1]
            break
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


def marked_text(text: str, terms: frozenset[str]) -> str:
    """Return plain text as HTML: escaped, the terms in ``<mark>``.

    >>> marked_text("<Mirrors> & mirrorless", frozenset({"mirror"}))
    '&lt;<mark>Mirrors</mark>&gt; &amp; mirrorless'
    """
    marker = _Marker(terms, _WORDS, html.escape)
    marker.add(text)
    return "".join(marker.pieces)


def marked_html(safe_html: str, terms: frozenset[str]) -> str:
    """Return the sanitiser's HTML with the terms in ``<mark>``, only inside its text.

    Without what is put in, the result is the input: tags and entities are never touched. (A tag that is never closed,
    which the sanitiser does not write, is escaped with all that follows.)

    >>> marked_html('<td colspan="2">mirror &amp; amp</td>', frozenset({"mirror", "amp"}))
    '<td colspan="2"><mark>mirror</mark> &amp; <mark>amp</mark></td>'
    """
    marker = _Marker(terms, _WORDS_AND_ENTITIES, str)
    place = 0
    while (start := safe_html.find("<", place)) >= 0:
        marker.add(safe_html[place:start])
        place = _end_of_tag(safe_html, start)
        marker.pieces.append(safe_html[start:place] if place else html.escape(safe_html[start:]))
        if not place:
            return "".join(marker.pieces)
    marker.add(safe_html[place:])
    return "".join(marker.pieces)


def _end_of_tag(text: str, start: int) -> int:
    """Return the place behind the tag's ``>``, which may not stand between quotes; 0 if there is none."""
    end = text.find(">", start)
    quote = text.find('"', start, max(end, 0))
    while quote >= 0:
        closing = text.find('"', quote + 1)
        if closing < 0:
            return 0
        if closing > end:
            end = text.find(">", closing)
        quote = text.find('"', closing + 1, max(end, 0))
    return end + 1


class _Marker:
    """Collects a document's pieces."""

    def __init__(self, terms: frozenset[str], tokens: re.Pattern[str], escape: Callable[[str], str]) -> None:
        self.terms, self.tokens, self.escape = terms, tokens, escape
        self.pieces: list[str] = []
        self.known: dict[str, bool] = {}  # documents repeat their words

    def add(self, text: str) -> None:
        """Append a piece of text: escaped, marked."""
        done = 0
        for token in self.tokens.finditer(text):
            word = token[1]
            if word is None:  # an entity
                continue
            if self._is_term(word):
                self.pieces.append(self.escape(text[done : token.start()]))
                self.pieces.append(f"<mark>{word}</mark>")
                done = token.end()
        self.pieces.append(self.escape(text[done:]))

    def _is_term(self, word: str) -> bool:
        if not self.terms:
            return False
        known = self.known.get(word)
        if known is None:
            known = self.known[word] = _stem(_fold(word)) in self.terms
        return known
