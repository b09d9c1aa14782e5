"""Which encodings a file that is not UTF-8 could have, told by its beginning."""

import re
from collections.abc import Iterator
from contextlib import suppress

from judging.encodings import (
    ENCODINGS,
    LINE_BYTES,
    SAMPLE_BYTES,
    decoded_text,
    encoding_key,
    is_text,
    is_utf8,
    marked_encoding,
    two_byte_encoding,
)

MOST_CANDIDATES = 3
WESTERN = "cp1252"


def _sample(data: bytes) -> bytes:
    """Return the lines that tell encodings apart, and no more of them than are searched in short time."""
    taken, size = [], 0
    for line in data.split(b"\n"):
        if line.isascii():
            continue
        taken.append(line[:LINE_BYTES])
        size += len(taken[-1])
        if size >= SAMPLE_BYTES:
            break
    return b"\n".join(taken)[:SAMPLE_BYTES]


# A letter beside a sign that no word has, or small and then capital: what a wrong encoding makes of words.
ODD = re.compile(
    r"[^\W\d_][\u00a1-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u00d7\u00f7\u2020-\u2122\u2200-\u25ff](?=[^\W\d_])"
    r"|[a-z\u00df-\u00f6\u00f8-\u00ff\u0430-\u044f](?=[\u00c0-\u00d6\u00d8-\u00de\u0410-\u042f])"
    r"|[A-Za-z](?=[\u0370-\u05ff\u0600-\u06ff])|[\u0370-\u05ff\u0600-\u06ff](?=[A-Za-z])|[\x80-\x9f]"
)


def _oddity(text: str) -> float:
    """Return how many places of the text no writer would have made, for each character beyond ASCII."""
    foreign = sum(character > "\x7f" for character in text)
    return len(ODD.findall(text)) / max(1, foreign)


def encoding_candidates(head: bytes) -> tuple[str, ...]:
    """Return the encodings that the beginning of a file could have, the likeliest first; none if it is UTF-8.

    At most three, each with another text. Windows-1252 is one of them wherever its text has no control characters.

    >>> encoding_candidates("d\\u00e9j\\u00e0 vu, \\u201ena\\u00efve\\u201c, d\\u00e9cor".encode("cp1252"))[0]
    'cp1252'
    """
    marked = marked_encoding(head)
    if marked:
        return () if marked == "utf-8" and is_utf8(head) else (marked,)
    wide = two_byte_encoding(head)
    if wide:
        return (wide,)
    if is_utf8(head):
        return ()
    sample = _sample(head)
    texts: dict[str, str] = {}
    for name in dict.fromkeys([WESTERN, *_searched_encodings(sample)]):
        text = decoded_text(sample, name)
        if text is not None and is_text(text) and text not in texts.values():
            texts[name] = text
    ranked = sorted(texts, key=lambda name: _oddity(texts[name]))  # stable: as the search has them
    return _with_western(ranked)


def _searched_encodings(sample: bytes) -> Iterator[str]:
    try:
        from charset_normalizer import from_bytes
    except ImportError:  # the wheel touchstone-ir does without it: then there is Windows-1252 alone
        return
    for match in from_bytes(sample, cp_isolation=sorted(ENCODINGS), threshold=0.6):
        with suppress(ValueError):  # none that is offered
            yield encoding_key(match.encoding)


def _with_western(ranked: list[str]) -> tuple[str, ...]:
    best = ranked[:MOST_CANDIDATES]
    if WESTERN in ranked and WESTERN not in best:
        best[-1] = WESTERN
    return tuple(best)
