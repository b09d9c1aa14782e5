"""SipHash-2-4 of many strings at once: the keyed hash behind permanent random numbers.

A hash of the standard library is called once a string, about a microsecond each: ten seconds for ten million
pairs. This one is defined by additions, rotations and exclusive-ors of 64-bit words, which NumPy does for a
block of strings at a time. Bytes are read as little-endian words on every machine.

Source: Aumasson and Bernstein (2012), SipHash: a fast short-input PRF, sections 2.1 to 2.4.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Ints = NDArray[np.int64]

BLOCK = 1 << 14  # strings whose state of four words stays in the processor's cache
TEXT_BLOCK = 1 << 20  # strings whose bytes are laid out at a time
_INITIAL = tuple(
    np.uint64(int.from_bytes(part, "big")) for part in (b"somepseu", b"dorandom", b"lygenera", b"tedbytes")
)
_KEEP = np.array([(1 << (8 * kept)) - 1 for kept in range(8)], dtype=np.uint64)  # masks of the last word
_LEFT = {bits: (np.uint64(bits), np.uint64(64 - bits)) for bits in (13, 16, 17, 21, 32)}
_PADDING = b"\0" * 8


def _rotate(word: Words, bits: int, spare: Words) -> None:
    """Rotate every word to the left, in place."""
    left, right = _LEFT[bits]
    np.left_shift(word, left, out=spare)
    np.right_shift(word, right, out=word)
    np.bitwise_or(word, spare, out=word)


def _rounds(count: int, state: list[Words], spare: Words) -> None:
    """Do SipRound (figure 2.1) `count` times, in place."""
    v0, v1, v2, v3 = state
    for _ in range(count):
        v0 += v1
        _rotate(v1, 13, spare)
        v1 ^= v0
        _rotate(v0, 32, spare)
        v2 += v3
        _rotate(v3, 16, spare)
        v3 ^= v2
        v0 += v3
        _rotate(v3, 21, spare)
        v3 ^= v0
        v2 += v1
        _rotate(v1, 17, spare)
        v1 ^= v2
        _rotate(v2, 32, spare)


def _compress(state: list[Words], word: Words, spare: Words) -> None:
    """Take in one word of every message: two rounds, the 2 of SipHash-2-4."""
    state[3] ^= word
    _rounds(2, state, spare)
    state[0] ^= word


def _hash_block(words: Words, starts: Ints, lengths: Ints, first: Words, second: Words) -> Words:
    """Return the hashes of messages that all have the same number of whole words."""
    state = [key ^ constant for key, constant in zip((first, second, first, second), _INITIAL, strict=True)]
    spare = np.empty_like(state[0])
    n_whole = int(lengths[0]) // 8
    for index in range(n_whole):
        _compress(state, words[starts + 8 * index].astype(np.uint64), spare)
    # The last word holds what is left and, in its highest byte, the length modulo 256.
    last = words[starts + 8 * n_whole].astype(np.uint64) & _KEEP[lengths % 8]
    _compress(state, last | (lengths.astype(np.uint64) << np.uint64(56)), spare)
    state[2] ^= np.uint64(0xFF)
    _rounds(4, state, spare)
    return np.asarray(state[0] ^ state[1] ^ state[2] ^ state[3], dtype=np.uint64)


def hash_messages(data: bytes, lengths: Ints, first: Words, second: Words) -> Words:
    """Return SipHash-2-4 of every message under its own key.

    Parameters
    ----------
    data : bytes
        The messages one after the other.
    lengths : int array, shape (n_messages,)
        Bytes of each message; they must sum to the length of data.
    first, second : uint64 array, shape (n_messages,)
        The key's first and second eight bytes, read as little-endian numbers.

    Raises
    ------
    ValueError
        Lengths that are negative or do not sum to the length of data, or not one key a message.

    Examples
    --------
    >>> key = bytes(range(16))  # the paper's appendix A: message 00 01 .. 0e
    >>> first, second = (np.array([int.from_bytes(key[i : i + 8], "little")], np.uint64) for i in (0, 8))
    >>> hex(hash_messages(bytes(range(15)), np.array([15]), first, second)[0])
    '0xa129ca6149be45e5'
    """
    if lengths.size and int(lengths.min()) < 0:
        raise ValueError(f"lengths must be at least 0, got {lengths.min()}")
    if int(lengths.sum()) != len(data):
        raise ValueError(f"lengths must sum to the {len(data)} bytes of data, got {lengths.sum()}")
    if first.shape != lengths.shape or second.shape != lengths.shape:
        raise ValueError(f"there must be {lengths.size} keys, got {first.shape} and {second.shape}")
    padded = data + _PADDING
    words: Words = np.ndarray((len(padded) - 7,), "<u8", padded, strides=(1,))  # a word at every byte
    starts = np.cumsum(lengths) - lengths
    hashes = np.empty(lengths.size, dtype=np.uint64)
    for places in _blocks(lengths // 8):
        hashes[places] = _hash_block(words, starts[places], lengths[places], first[places], second[places])
    return hashes


def _blocks(n_whole: Ints) -> Iterator[Ints]:
    """Yield the places of messages with equally many whole words, a block at a time."""
    for size in np.flatnonzero(np.bincount(n_whole)):
        places = np.flatnonzero(n_whole == size)
        for start in range(0, places.size, BLOCK):
            yield places[start : start + BLOCK]


def hash_texts(texts: pl.Series, first: Words, second: Words) -> Words:
    """Return SipHash-2-4 of the UTF-8 bytes of every text under its own key.

    Parameters
    ----------
    texts : Series of strings, length n_texts
    first, second : uint64 array, shape (n_texts,)

    Raises
    ------
    ValueError
        A text is missing, or there is not one key a text.
    """
    if texts.null_count():
        raise ValueError(f"texts must not be missing, got {texts.null_count()} missing")
    hashes = np.empty(len(texts), dtype=np.uint64)
    for start in range(0, len(texts), TEXT_BLOCK):
        part = texts.slice(start, TEXT_BLOCK)
        rows = slice(start, start + len(part))
        data, lengths = laid_out(part)
        hashes[rows] = hash_messages(data, lengths, first[rows], second[rows])
    return hashes


def laid_out(texts: pl.Series) -> tuple[bytes, Ints]:
    """Return the UTF-8 bytes of all texts one after the other, and the length of each."""
    return texts.str.join("").item().encode(), texts.str.len_bytes().to_numpy().astype(np.int64)
