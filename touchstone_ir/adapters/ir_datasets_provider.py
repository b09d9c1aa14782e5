"""Releases for the tools that use ir_datasets: ``ir_datasets.load("touchstone/<campaign>/<version>")``.

It has documents (where the release has their texts), queries with title, description and narrative, and qrels. Beside
it ``.../qrels_jg`` has every assessor's grades, the iteration naming the pseudonym, and ``.../prels`` the grades with
the probability of each pair to be drawn. Files are looked for in the folders that TOUCHSTONE_RELEASES names, then in
~/.touchstone/releases; see `analytics.releases.reading.find_release`.

ir_datasets 0.6 reads no entry points: import this module once, and the names are known. Later versions find
`provider` by the entry point group ``ir_datasets.providers``. ir_datasets itself is optional.
"""

import importlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from analytics.releases.reading import OpenRelease, ReleaseUnreadable, find_release

PREFIX = "touchstone"
PATTERN = rf"^{PREFIX}/([^/]+)/([0-9]+(?:\.[0-9]+){{0,2}})(?:/(qrels_jg|prels))?$"
MEANING = "the grade of the scale in the release's README.md"


class ReleasedDocument(NamedTuple):
    """A document of a release that has its texts."""

    doc_id: str
    title: str
    text: str

    def default_text(self) -> str:
        """Return title and text, as a search engine would index them."""
        return f"{self.title} {self.text}".strip()


def dataset(slug: str, version: str, part: str | None = None) -> Any:
    """Return the dataset of a release. `part`: None for the grades of qrels, else "qrels_jg" or "prels".

    Raises
    ------
    KeyError
        No place has the release; the words say where it was looked for.
    """
    try:
        release = find_release(slug, version)
    except ReleaseUnreadable as error:
        raise KeyError(str(error)) from error
    irds = importlib.import_module("ir_datasets")
    parts = [_queries(irds, release), _qrels(irds, release, part)]
    if release.manifest["includes_documents"]:
        parts.insert(0, _documents(irds, release))
    return irds.Dataset(*parts)


# The classes below have ir_datasets' own as their bases, so they are made once it is there.


def _documents(irds: Any, release: OpenRelease) -> Any:
    class Documents(irds.formats.BaseDocs):  # type: ignore[misc]
        def __init__(self, release: OpenRelease) -> None:
            self._release = release

        @irds.util.use_docstore  # type: ignore[untyped-decorator]
        def docs_iter(self) -> Iterator[ReleasedDocument]:
            for row in self._release.documents():
                yield ReleasedDocument(row["doc_id"], row["title"], row["text"])

        def docs_cls(self) -> type:
            return ReleasedDocument

        def docs_store(self, field: str = "doc_id") -> Any:
            """Return the store for look-ups by id, which is written on first use, where ir_datasets keeps its own."""
            place = irds.util.home_path() / PREFIX / self._release.slug / self._release.version
            return irds.indices.PickleLz4FullStore(
                path=f"{place / self._release.manifest['merkle_root'][:12]}.pklz4",
                init_iter_fn=self.docs_iter,
                data_cls=self.docs_cls(),
                lookup_field=field,
                index_fields=["doc_id"],
            )

        def docs_count(self) -> int:
            return sum(1 for _ in self._release.documents())

        def docs_namespace(self) -> str:
            return f"{PREFIX}/{self._release.slug}"

    return Documents(release)


def _queries(irds: Any, release: OpenRelease) -> Any:
    trec = irds.formats.trec

    class Queries(irds.formats.BaseQueries):  # type: ignore[misc]
        def __init__(self, release: OpenRelease) -> None:
            self._release = release

        def queries_iter(self) -> Iterator[Any]:
            for row in self._release.topics():
                yield trec.TrecQuery(row["topic_id"], row["title"], row["description"], row["narrative"])

        def queries_cls(self) -> Any:
            return trec.TrecQuery

        def queries_count(self) -> int:
            return sum(1 for _ in self._release.topics())

        def queries_namespace(self) -> str:
            return f"{PREFIX}/{self._release.slug}"

    return Queries(release)


def _qrels(irds: Any, release: OpenRelease, part: str | None) -> Any:
    trec = irds.formats.trec

    class Qrels(irds.formats.BaseQrels):  # type: ignore[misc]
        def __init__(self, release: OpenRelease, part: str | None) -> None:
            self._release, self._part = release, part

        def qrels_iter(self) -> Iterator[Any]:
            release = self._release
            if self._part == "prels":
                for line in release.prels():
                    yield trec.TrecPrel(
                        line.topic_id, line.doc_id, line.grade, line.method, line.inclusion_probability
                    )
            elif self._part == "qrels_jg":
                for record in release.qrels_jg():
                    yield trec.TrecQrel(record.topic_id, record.doc_id, record.grade, record.assessor)
            else:
                for row in release.qrels():
                    yield trec.TrecQrel(row.topic_id, row.doc_id, row.grade, "0")

        def qrels_cls(self) -> Any:
            return trec.TrecPrel if self._part == "prels" else trec.TrecQrel

        def qrels_count(self) -> int:
            return sum(1 for _ in self.qrels_iter())

        def qrels_defs(self) -> dict[int, str]:
            grades = self._release.value("estimates.json")["scale"]["grades"]
            return {grade["value"]: grade["label"] or MEANING for grade in grades}

    return Qrels(release, part)


class Provider:
    """What an ir_datasets that looks for entry points asks: a prefix, and the dataset of a name."""

    prefix = PREFIX

    def load(self, name: str) -> Any:
        """Return the dataset that ``touchstone:<campaign>/<version>[/prels]`` names. KeyError if there is none."""
        slug, version, *part = name.removeprefix(f"{PREFIX}:").removeprefix(f"{PREFIX}/").split("/")
        return dataset(slug, version, part[0] if part else None)

    def discover_edges(self) -> Iterator[Any]:
        """Yield nothing: releases are the user's own files, not a catalogue."""
        return iter(())


def register(registry: Any) -> None:
    """Make the names of releases known to a registry of ir_datasets."""
    registry.register_pattern(PATTERN, lambda _name, groups: dataset(*groups))


provider = Provider()
with suppress(ImportError):
    register(importlib.import_module("ir_datasets").registry)
