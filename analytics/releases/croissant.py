"""croissant.json: the release's tables as a machine reads them (Croissant 1.0 of MLCommons)."""

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from analytics.releases.about import About
from analytics.releases.citation import citation_text
from analytics.releases.folder import Entry
from analytics.releases.people import Author

CONFORMS_TO = "http://mlcommons.org/croissant/1.0"
CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
FORMATS = {
    ".jsonl": "application/jsonlines",
    ".json": "application/json",
    ".parquet": "application/x-parquet",
    ".tsv": "text/tab-separated-values",
    ".gz": "application/gzip",
    ".md": "text/markdown",
    ".py": "text/x-python",
    ".bib": "application/x-bibtex",
    ".cff": "application/yaml",
}
TYPES = {pl.String: "sc:Text", pl.Boolean: "sc:Boolean", pl.Float64: "sc:Float"}
NO_LICENCE = "No licence was named"


def croissant(
    about: About, entries: Iterable[Entry], tables: Mapping[str, Mapping[str, Any]], licence: str
) -> dict[str, Any]:
    """Return the description. `tables` are the columns, with their types, of Parquet files.

    Readers of JSON Lines make numbers of ids such as 0301; Parquet says what is a text.
    """
    files = [entry for entry in entries if entry.path not in {"croissant.json", "manifest.json"}]
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": about.folder,
        "alternateName": about.title,
        "description": _description(about),
        "version": three_numbers(about.version),
        "datePublished": about.published,
        "license": licence or NO_LICENCE,
        "citeAs": citation_text(about).strip(),
        "creator": [_person(one) for one in about.people]
        or [{"@type": "sc:Organization", "name": about.campaign}],
        "url": about.url or f"urn:touchstone:{about.folder}",
        **({"sameAs": f"https://doi.org/{about.doi}"} if about.doi else {}),
        "rai:personalSensitiveInformation": "Assessors have pseudonyms that belong to this release alone.",
        "distribution": [_file(entry) for entry in files],
        "recordSet": [_records(name, columns) for name, columns in tables.items()],
    }


def _person(author: Author) -> dict[str, str]:
    place = {"@id": f"https://orcid.org/{author.orcid}"} if author.orcid else {}
    return {"@type": "sc:Person", "name": author.name} | place


def three_numbers(version: str) -> str:
    """Return a version with as many numbers as Croissant wants.

    >>> three_numbers("2"), three_numbers("2.1.3")
    ('2.0.0', '2.1.3')
    """
    return ".".join([*version.split("."), "0", "0"][:3])


def _description(about: About) -> str:
    texts = "with the documents" if about.includes_documents else "with the documents' ids alone"
    rule = f" The grade of an item is {about.qrels_rule}." if about.qrels_rule else ""
    return (
        f"{about.title}: judgments of relevance of the campaign {about.campaign}, as of {about.as_of}, {texts}.{rule} "
        f"{about.description}"
    ).strip()


def _file(entry: Entry) -> dict[str, Any]:
    ending = entry.path[entry.path.rfind(".") :]
    return {
        "@type": "cr:FileObject",
        "@id": entry.path,
        "name": entry.path,
        "contentUrl": entry.path,
        "contentSize": f"{entry.bytes} B",
        "encodingFormat": FORMATS.get(ending, "text/plain"),
        "sha256": entry.sha256,
    }


def _records(name: str, columns: Mapping[str, Any]) -> dict[str, Any]:
    table = name[: name.rfind(".")].replace("/", "-")
    return {
        "@type": "cr:RecordSet",
        "@id": table,
        "name": table,
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{table}/{column}",
                "name": f"{table}/{column}",
                "dataType": TYPES.get(kind, "sc:Integer"),
                "source": {"fileObject": {"@id": name}, "extract": {"column": column}},
            }
            for column, kind in columns.items()
        ],
    }
