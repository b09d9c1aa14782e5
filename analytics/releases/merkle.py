"""One hash for all lines of a file, such that a line can be shown to be among them: the Merkle tree of RFC 6962.

A leaf is ``SHA-256(0x00 + line)``, a node ``SHA-256(0x01 + left + right)``; a tree of n leaves is split at the largest
power of two below n. No leaves: ``SHA-256`` of nothing. Whoever is given a line, its number and the hashes beside its
way up (RFC 6962's audit path) can compute the root without the other lines.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256

LEDGER = "judgments.jsonl"  # the file of a release whose lines its Merkle root covers


class MerkleTree:
    """A tree that is fed line by line and keeps one hash a level: memory is the logarithm of what it was fed."""

    def __init__(self) -> None:
        self.n = 0
        self._complete: list[tuple[int, bytes]] = []  # (leaves, hash) of the complete subtrees, largest first

    def add(self, line: bytes) -> None:
        """Add a line, given without its end."""
        size, digest = 1, sha256(b"\x00" + line).digest()
        while self._complete and self._complete[-1][0] == size:
            digest = sha256(b"\x01" + self._complete.pop()[1] + digest).digest()
            size *= 2
        self._complete.append((size, digest))
        self.n += 1

    def root(self) -> str:
        """Return the hash of all lines so far.

        >>> MerkleTree().root()[:8]
        'e3b0c442'
        """
        if not self._complete:
            return sha256(b"").hexdigest()
        digest = self._complete[-1][1]
        for _, left in reversed(self._complete[:-1]):
            digest = sha256(b"\x01" + left + digest).digest()
        return digest.hex()


def root_of(blocks: Iterable[bytes]) -> str:
    """Return the Merkle root over the lines of a file."""
    tree = MerkleTree()
    for line in lines_of(blocks):
        tree.add(line)
    return tree.root()


def lines_of(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file that comes in blocks, without their ends."""
    rest = b""
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
    if rest:
        yield rest
