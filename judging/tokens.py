"""Tokens in bytes, given by arrays of where they start and how long they are: hashed, compared, written as lines."""

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Hashes = NDArray[np.uint64]

PADDING = b"\0" * 8
_KEEP = np.array([(1 << (8 * kept)) - 1 for kept in range(9)], dtype=np.uint64)  # masks of the last word
WIDEST = 64  # bytes of a token that is copied with what stands behind it


def _words(data: bytes) -> Hashes:
    """Return the word at every byte."""
    return np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))


# 64-bit hash of tokens. Our own few lines, because the stored form needs the same value on every machine and
# version for ever. Mixer: the finaliser of splitmix64 (Steele, Lea & Flood 2014), a bijection of 64 bits.


def _mix(state: Hashes) -> Hashes:
    state = state ^ (state >> np.uint64(30))
    state *= np.uint64(0xBF58476D1CE4E5B9)
    state ^= state >> np.uint64(27)
    state *= np.uint64(0x94D049BB133111EB)
    state ^= state >> np.uint64(31)
    return state


def hash_tokens(data: bytes, starts: Ints, lengths: Ints, seeds: Hashes) -> Hashes:
    """Return a 64-bit hash of ``data[start : start + length]`` for every token, seeded by ``seeds``.

    ``data`` must go on for 8 bytes after the last token. Two tokens of one seed collide with chance 2^-64.
    """
    words = _words(data)
    state = _mix(seeds + lengths.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    longest = int(lengths.max(initial=0))
    shortest = int(lengths.min(initial=longest))
    for done in range(0, longest, 8):
        if done + 8 <= shortest:  # a whole word of every token
            state = _mix(state ^ words[starts + done])
            continue
        active: Ints | slice = slice(None) if done < max(shortest, 1) else np.flatnonzero(lengths > done)
        kept = np.minimum(lengths[active] - done, 8)
        word = words[starts[active] + done].astype(np.uint64) & _KEEP[kept]
        state[active] = _mix(state[active] ^ word)
    return state


def hash_strings(values: list[str], seeds: Hashes) -> Hashes:
    """Return `hash_tokens` of the texts in UTF-8."""
    encoded = [value.encode() for value in values]
    lengths = np.array([len(value) for value in encoded], dtype=np.int64)
    return hash_tokens(b"".join(encoded) + PADDING, np.cumsum(lengths) - lengths, lengths, seeds)


def changes(data: bytes, starts: Ints, lengths: Ints) -> Bools:
    """Return of every token but the first whether it is another than the one before it. ``data`` as for `hash_tokens`.

    >>> changes(b"1 1 10" + PADDING, np.array([0, 2, 4]), np.array([1, 1, 2]))
    array([False,  True])
    """
    words = _words(data)
    differ: Bools = lengths[1:] != lengths[:-1]
    for done in range(0, int(lengths.max(initial=0)), 8):
        kept = np.clip(lengths - done, 0, 8)
        word = words[np.minimum(starts + done, len(words) - 1)] & _KEEP[kept]
        differ |= word[1:] != word[:-1]
    return differ


def token_lines(data: bytes, starts: Ints, lengths: Ints) -> bytes:
    """Return the tokens, each followed by a line end. Behind each token there is a byte that is none of any.

    >>> token_lines(b"one two ", np.array([0, 4]), np.array([3, 3]))
    b'one\\ntwo\\n'
    """
    sizes = lengths + 1
    width = int(sizes.max())
    if width > WIDEST:
        return _long_lines(data, starts, sizes)
    rows = np.ndarray((len(data),), f"V{width}", data + bytes(width), strides=(1,))[starts]
    lines = rows.view(np.uint8).reshape(len(starts), width)
    lines[np.arange(len(starts)), lengths] = 10
    return bytes(lines[np.arange(width) < sizes[:, None]].tobytes())


def _long_lines(data: bytes, starts: Ints, sizes: Ints) -> bytes:
    edges = np.stack([starts, starts + sizes], axis=1).ravel()
    kept = np.tile(np.array([False, True]), len(starts))
    column = np.frombuffer(data, np.uint8)[: edges[-1]][np.repeat(kept, np.diff(edges, prepend=0))]
    column[np.cumsum(sizes) - 1] = 10
    return bytes(column.tobytes())
