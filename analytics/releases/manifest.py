"""The manifest: every file of a release with its size and hash. What is not as it says is found, byte for byte."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from analytics.releases import formats
from analytics.releases.folder import Entry, entry_of

# 2: unpublished runs are nowhere, seconds are rounded, metadata for loaders. One of format 1 is made again as it was.
FORMAT = 2
FORMATS = (1, FORMAT)
MANIFEST = "manifest.json"
Blocks = Callable[[str], Iterable[bytes]]


def manifest(
    facts: Mapping[str, Any], entries: Iterable[Entry], merkle_root: str, form: int = FORMAT
) -> dict[str, Any]:
    """Return the manifest of these files; `facts` say which release it is, `form` is the number of its format."""
    files = [entry.as_json() for entry in entries if entry.path != MANIFEST]
    return {"touchstone_release": form, **facts, "merkle_root": merkle_root, "files": files}


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
    if known.get("touchstone_release") not in FORMATS:
        return [f"{MANIFEST}: this is not a release of format {' or '.join(map(str, FORMATS))}"]
    listed = {entry["path"]: entry for entry in known["files"]}
    faults = [f"{name}: not in the manifest" for name in sorted(set(names) - listed.keys() - {MANIFEST})]
    for name, entry in listed.items():
        try:
            there = entry_of(name, read(name)).as_json()
        except (OSError, KeyError):
            faults.append(f"{name}: missing")
            continue
        wrong = [key for key in ("bytes", "sha256", "lines") if there[key] != entry[key]]
        if wrong:
            faults.append(f"{name}: another {wrong[0]} than in the manifest ({there[wrong[0]]})")
    missing = {words.partition(":")[0] for words in faults if words.endswith(": missing")}
    for one in formats.RELEASE_FILES:
        for name in filter(one.has, listed.keys() - missing):
            if one.check is not None and name == one.names[0]:
                wrong_words = one.check(read(name), known)
                faults += [f"{name}: {wrong_words}"] if wrong_words else []
    return faults
