"""The files of a release: what each holds, how its rows are read, what of it is checked, which tables Croissant has.

Data sheet, manifest, Croissant file and reader read RELEASE_FILES; the manual's table is held to it by a test. What
writes each file needs the database: see WRITERS in `analytics.releases.services.writing`. The verifier travels with a
release, shares no code with the product, and has a table of its own.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import IO, Any

from analytics.releases.merkle import LEDGER, root_of
from judging.trec import read_prels, read_qrels, read_qrels_jg

Read = Callable[[IO[bytes], str], Iterator[Any]]
Check = Callable[[Iterable[bytes], Mapping[str, Any]], str | None]


@dataclass(frozen=True)
class ReleaseFile:
    """One file of a release, or some that belong together.

    Attributes
    ----------
    names : tuple of str
        Patterns of their names within the release; `*` stands for any characters.
    help : str
        What they hold, for the data sheet, in Markdown; `{texts}` says that texts are among it, where they are.
    read : callable, optional
        From the stream of a file and its name its rows; a fault is a ValueError.
    check : callable, optional
        From the content and the manifest what is wrong besides size and hash, in words; None where nothing is.
    croissant : str
        The file among them whose columns Croissant describes; empty where there is none.
    since : int
        The first format of releases that has them.
    """

    names: tuple[str, ...]
    help: str
    read: Read | None = None
    check: Check | None = None
    croissant: str = ""
    since: int = 1

    def has(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self.names)


def file_of(name: str) -> ReleaseFile:
    """Return the entry that has the file; ValueError where there is none.

    >>> file_of("runs/0001.run.gz").names
    ('runs.json', 'runs/*')
    """
    for one in RELEASE_FILES:
        if one.has(name):
            return one
    raise ValueError(f"a release has no file {name}")


def read_objects(stream: IO[bytes], name: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file of JSON Lines."""
    for number, line in enumerate(stream, 1):
        try:
            yield json.loads(line)
        except ValueError as error:
            raise ValueError(f"{name}:{number}: no JSON ({error})") from error


def root_difference(blocks: Iterable[bytes], manifest: Mapping[str, Any]) -> str | None:
    """Return in words that the Merkle root over the lines is not the manifest's."""
    root = root_of(blocks)
    return None if root == manifest["merkle_root"] else f"another Merkle root than in the manifest ({root})"


RELEASE_FILES = (
    ReleaseFile(
        ("qrels.txt",),
        "`topic 0 document grade`: one grade an item, for trec_eval and its relatives",
        read_qrels,  # type: ignore[arg-type]  # they take any binary stream
    ),
    ReleaseFile(
        ("qrels_jg.txt",),
        "`topic assessor document grade`: every grade that counts, with its assessor",
        read_qrels_jg,  # type: ignore[arg-type]
    ),
    ReleaseFile(
        ("prels.txt",),
        "`topic document grade method probability`: the items drawn, with their inclusion probabilities; method 0 in a "
        "campaign that judges by what it tells, else 1",
        read_prels,  # type: ignore[arg-type]
    ),
    ReleaseFile(
        ("topics.jsonl", "topics.parquet"), "the information needs", read_objects, croissant="topics.parquet"
    ),
    ReleaseFile(
        ("documents.jsonl", "documents.parquet"),
        "ids and the SHA-256 of every text (UTF-8){texts}",
        read_objects,
        croissant="documents.parquet",
    ),
    ReleaseFile(
        ("corrections.jsonl",),
        "what of topics, documents and gold answers was corrected, on which day and why (reasons are "
        "published); version 1 is what was imported",
        read_objects,
    ),
    ReleaseFile(
        (LEDGER, "judgments.parquet"),
        "every judgment ever given, also those that were revised or set aside",
        read_objects,
        root_difference,
        "judgments.parquet",
    ),
    ReleaseFile(
        ("items.jsonl", "items.parquet"),
        "every pair that could have been drawn: probabilities, grades, audits, predictions and what they were fitted "
        "with",
        read_objects,
        croissant="items.parquet",
    ),
    ReleaseFile(("assessors.jsonl",), "pseudonyms with tier and kind", read_objects),
    ReleaseFile(("runs.json", "runs/*"), "the systems; rankings of those whose makers allow it"),
    ReleaseFile(
        ("draws/*", "audits.json"),
        "what was drawn and audited: seeds, parameters, every pair's probability",
    ),
    ReleaseFile(
        ("confusion.json",),
        "assessor accuracy, by assessor and by group: `counts[true grade][given grade]`",
    ),
    ReleaseFile(
        ("estimates.json",),
        "every stored number with its standard error and interval, or why there is none",
    ),
    ReleaseFile(
        ("comparisons.json",),
        "p of every tested difference for both claims, alone and adjusted in the declared family",
    ),
    ReleaseFile(("beir/*",), "the same in the form of BEIR"),
    ReleaseFile(
        ("verify.py", "verify_*.py"),
        "check all files and compute the numbers again; they need Python and NumPy alone",
    ),
    ReleaseFile(
        ("manifest.json",),
        "every file with its size and SHA-256, the Merkle root of all judgments, and the head of the ledger",
    ),
    ReleaseFile(("croissant.json",), "a description of the tables for software"),
    ReleaseFile(("CITATION.txt", "CITATION.bib"), "how to cite"),
    ReleaseFile(("CITATION.cff",), "the same for GitHub, Zenodo and Zotero", since=2),
    ReleaseFile(
        ("README.md", "CHANGES.md", "LICENSE.txt"),
        "this data sheet; what changed since the release before; what is allowed",
    ),
)
