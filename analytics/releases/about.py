"""What a release says of itself: one record, of which data sheet, citation, manifest and Croissant file are made."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from analytics.releases.manifest import FORMAT
from analytics.releases.people import Author

LONGEST_SLUG = 60


@dataclass(frozen=True)
class About:
    """A release in words and numbers. `as_of` is the moment of the snapshot, `published` the day it was asked for."""

    campaign: str
    collection: str
    version: str
    title: str
    as_of: str
    published: str
    slug: str
    form: int = FORMAT  # the number of the release's format
    authors: tuple[str, ...] = ()
    orcids: tuple[str, ...] = ()  # of the authors in their order; empty where none is known
    doi: str = ""
    url: str = ""
    notes: str = ""
    licence: str = ""
    source: str = ""  # where the collection comes from
    documents_licence: str = ""
    description: str = ""
    guidelines: str = ""
    aggregation: str = "median"
    prefers_gold: bool = True
    qrels_rule: str = ""
    grades: tuple[tuple[int, str, float], ...] = ()
    relevant_grade: int = 1
    includes_documents: bool = False
    why_no_documents: str = ""
    judgments_per_item: int = 1
    labels_in_file: str = ""  # labels an item, of a file that is all there is, as "5 to 113"
    campaign_is_open: bool = False
    is_simulated: bool = False
    asked_for_consent: bool = False
    measures: tuple[str, ...] = ()
    no_estimates: str = ""
    draws: tuple[str, ...] = ()
    audits: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    unpublished_runs: int = 0
    changes: Mapping[str, Any] = field(default_factory=dict)
    merkle_root: str = ""
    ledger: str = ""  # the head of the hash chain when it was made

    @property
    def people(self) -> tuple[Author, ...]:
        orcids = (*self.orcids, *[""] * (len(self.authors) - len(self.orcids)))
        return tuple(Author(name, orcid) for name, orcid in zip(self.authors, orcids, strict=True))

    @property
    def folder(self) -> str:
        return f"{self.slug}-{self.version}"

    @property
    def year(self) -> str:
        return self.published[:4]

    def facts(self) -> dict[str, Any]:
        """Return what the manifest begins with."""
        return {
            "campaign": self.campaign,
            "collection": self.collection,
            "slug": self.slug,
            "version": self.version,
            "title": self.title,
            "as_of": self.as_of,
            "published": self.published,
            "licence": self.licence,
            **{name: value for name, value in (("doi", self.doi), ("url", self.url)) if value},
            "aggregation": self.aggregation,
            "prefers_gold": self.prefers_gold,
            "includes_documents": self.includes_documents,
            "counts": dict(self.counts),
            **({"ledger": self.ledger} if self.ledger else {}),
        }


def slug(name: str, instead: str) -> str:
    """Return a name as part of a file's name: small letters, digits and single hyphens.

    Parameters
    ----------
    name
        Any text.
    instead
        What stands for a name that has none of these left.

    Examples
    --------
    >>> slug("Rôbust '04 / pilot", "x"), slug("試験", "campaign-1a2b")
    ('robust-04-pilot', 'campaign-1a2b')
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:LONGEST_SLUG].strip("-")
    return words or instead
