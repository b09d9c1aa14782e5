"""A hash chain over lines of text: its head says which lines there were, and in which order."""

from collections.abc import Iterable
from hashlib import sha256

BEGINNING = bytes(32)  # the head of no lines


def extend(head: bytes, lines: Iterable[str]) -> bytes:
    """Return the head after these lines: SHA-256(head || SHA-256(line)), line by line.

    Parameters
    ----------
    head:
        32 bytes: the head of the lines before, or `BEGINNING`.
    lines:
        Any number of lines, hashed in UTF-8 as they are, one at a time.

    Returns
    -------
    bytes
        32 bytes. Whoever changes, drops, adds or exchanges a line gets another head, unless SHA-256 is broken.

    Raises
    ------
    ValueError
        If the head has another length.

    >>> extend(BEGINNING, []) == BEGINNING
    True
    >>> extend(extend(BEGINNING, ["a"]), ["b"]).hex()[:16]
    '153d5381929b5079'
    """
    return extend_by_digests(head, map(digest, lines))


def digest(line: str) -> bytes:
    """Return the SHA-256 of a line in UTF-8: what the chain holds of it."""
    return sha256(line.encode()).digest()


def extend_by_digests(head: bytes, digests: Iterable[bytes]) -> bytes:
    """Return the head after lines of which only the SHA-256 is known; see `extend`."""
    if len(head) != len(BEGINNING):
        raise ValueError(f"a head has {len(BEGINNING)} bytes, not {len(head)}")
    for one in digests:
        head = sha256(head + one).digest()
    return head
