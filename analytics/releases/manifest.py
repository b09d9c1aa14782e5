"""The manifest: every file of a release with its size and hash. What is not as it says is found, byte for byte."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from analytics.releases.folder import Entry, entry_of
from analytics.releases.merkle import MerkleTree

FORMAT = 1
MANIFEST = "manifest.json"
LEDGER = "judgments.jsonl"  # the file whose lines the Merkle root covers
Blocks = Callable[[str], Iterable[bytes]]


def manifest(facts: Mapping[str, Any], entries: Iterable[Entry], merkle_root: str) -> dict[str, Any]:
    """Return the manifest of these files; `facts` say which release it is."""
    files = [entry.as_json() for entry in entries if entry.path != MANIFEST]
    return {"touchstone_release": FORMAT, **facts, "merkle_root": merkle_root, "files": files}


def differences(read: Blocks, names: Iterable[str], known: Mapping[str, Any]) -> list[str]:
    """Return what is not as the manifest says, in words; an empty list when everything is.

    Parameters
    ----------
    read
        Gives the contents of a file in blocks; raises OSError or KeyError where there is none.
    names
        The files that are there, the manifest among them or not.
    known
        The manifest.
    """
    if known.get("touchstone_release") != FORMAT:
        return [f"{MANIFEST}: this is not a release of format {FORMAT}"]
    listed = {entry["path"]: entry for entry in known["files"]}
    found = [f"{name}: not in the manifest" for name in sorted(set(names) - listed.keys() - {MANIFEST})]
    for name, entry in listed.items():
        try:
            there = entry_of(name, read(name)).as_json()
        except (OSError, KeyError):
            found.append(f"{name}: missing")
            continue
        wrong = [key for key in ("bytes", "sha256", "lines") if there[key] != entry[key]]
        if wrong:
            found.append(f"{name}: another {wrong[0]} than in the manifest ({there[wrong[0]]})")
    if LEDGER in listed and not any(words.startswith(f"{LEDGER}: missing") for words in found):
        root = root_of(read(LEDGER))
        if root != known["merkle_root"]:
            found.append(f"{LEDGER}: another Merkle root than in the manifest ({root})")
    return found


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
