"""CITATION.cff and the metadata of README.md: what a reader of YAML gets of them, whatever people have written."""

import re

import pytest
import yaml

from analytics.releases.about import About
from analytics.releases.citation import bibtex, citation_cff, citation_text
from analytics.releases.croissant import croissant
from analytics.releases.datasheet import hub_metadata, readme
from analytics.releases.licences import licence_named
from analytics.releases.people import author_of
from analytics.releases.yaml_lines import quote, yaml_lines

# The rules of the schema of CFF 1.2.0 that a release can break.
REQUIRED = {"cff-version", "message", "title", "authors"}
ALLOWED = REQUIRED | {"type", "version", "date-released", "license", "doi", "url", "identifiers"}
OF_A_PERSON = {"family-names", "given-names", "orcid"}
PATTERNS = {
    "cff-version": r"1\.2\.0",
    "date-released": r"\d{4}-\d{2}-\d{2}",
    "doi": r"10\.\d{4,9}(\.\d+)?/[A-Za-z0-9:/_;\-\.\(\)\[\]\\]+",
    "url": r"https?://\S+",
}


def about(**fields):
    made = {"authors": ("Ada B.",), "merkle_root": "f00", **fields}
    return About(
        "campaign", "collection", "1.0", made.pop("title", "A title"), "", "2026-11-21", "slug", **made
    )


def check_cff(text):
    found = yaml.safe_load(text)
    assert REQUIRED <= found.keys() <= ALLOWED
    assert all(
        isinstance(value, str) and value
        for name, value in found.items()
        if name not in ("authors", "identifiers")
    )
    assert all(re.fullmatch(rule, found[name]) for name, rule in PATTERNS.items() if name in found)
    assert found["authors"]
    for one in found["authors"]:
        assert one.keys() == {"name"} or one.keys() <= OF_A_PERSON
        assert re.fullmatch(
            r"https://orcid\.org/\d{4}-\d{4}-\d{4}-\d{3}[\dX]",
            one.get("orcid", "https://orcid.org/0000-0000-0000-0000"),
        )
    return found


HOSTILE = [
    "yes",
    "1.0",
    "null",
    'a "b": #c',
    "- x",
    "{a: b}",
    "&a *b !c %d @e `f",
    "tab\there",
    "é 試験 🙂",
    "bell \x07 del \x7f next \x85 line \u2028 end \ufeff",
    "back \\ slash \\n",
    "'",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_yaml_gives_every_text_back(text):
    assert yaml.safe_load(quote(text)) == text
    value = {"a": text, "b": [text, {"c": text, "d": [{"e": text}]}], "f": True, "g": {"h": False}}
    assert yaml.safe_load("\n".join(yaml_lines(value))) == value


@pytest.mark.parametrize("text", HOSTILE)
def test_a_citation_file_is_valid_whatever_its_title_and_authors(text):
    found = check_cff(citation_cff(about(title=text, authors=(text, "Ada B."))))
    assert found["title"] == " ".join(text.split())
    metadata = yaml.safe_load(readme(about(title=text, licence=text)).split("---\n")[1])
    assert metadata["pretty_name"] == " ".join(text.split())
    assert metadata["license"] == "other"


def test_all_that_is_known_is_cited():
    made = about(
        authors=("Ada B.", "van Rijsbergen, C. J."), orcids=("0000-0002-1825-0097", ""), licence="cc by 4.0",
        doi="10.5281/zenodo.1", url="https://example.org/j",
    )  # fmt: skip
    assert check_cff(citation_cff(made)) == {
        "cff-version": "1.2.0",
        "message": "If you use these judgments, please cite this release.",
        "type": "dataset",
        "title": "A title",
        "version": "1.0",
        "date-released": "2026-11-21",
        "authors": [
            {"family-names": "B.", "given-names": "Ada", "orcid": "https://orcid.org/0000-0002-1825-0097"},
            {"family-names": "van Rijsbergen", "given-names": "C. J."},
        ],
        "license": "CC-BY-4.0",
        "doi": "10.5281/zenodo.1",
        "url": "https://example.org/j",
        "identifiers": [
            {"type": "other", "value": "f00", "description": "Merkle root (RFC 6962) of the judgments"}
        ],
    }
    assert citation_text(made).endswith(": f00. https://doi.org/10.5281/zenodo.1\n")
    assert "doi = {10.5281/zenodo.1}" in bibtex(made)
    assert "url = {https://example.org/j}" in bibtex(made)
    described = croissant(made, [], {}, made.licence)
    assert described["url"] == "https://example.org/j"
    assert described["creator"][0]["@id"] == "https://orcid.org/0000-0002-1825-0097"


def test_a_release_without_authors_is_cited_by_its_campaign():
    assert check_cff(citation_cff(about(authors=())))["authors"] == [{"name": "campaign"}]


def test_the_data_sheet_opens_with_a_configuration_a_table_and_names_no_tool_of_the_server():
    text = readme(about(licence="CC BY 4.0"))
    head = yaml.safe_load(text.split("---\n")[1])
    assert text.startswith("---\n")
    assert [(one["config_name"], one["data_files"], one["default"]) for one in head["configs"]] == [
        ("judgments", "judgments.parquet", True),
        ("documents", "documents.parquet", False),
        ("items", "items.parquet", False),
        ("topics", "topics.parquet", False),
    ]
    assert head["license"] == "cc-by-4.0"
    assert "pip install touchstone-ir" in text
    assert "manage.py" not in text
    assert hub_metadata(about())["license"] == "unknown"


def test_the_data_sheet_of_format_1_has_none_of_it():
    text = readme(about(form=1))
    assert text.startswith("# A title")
    assert "CITATION.cff" not in text
    assert "touchstone-ir" not in text


@pytest.mark.parametrize("line", ["Ada B., 0000-0002-1825-0098", "0000-0002-1825-0097"])
def test_an_author_with_a_wrong_orcid_or_without_a_name_is_refused(line):
    with pytest.raises(ValueError, match="0000-0002-1825"):
        author_of(line)


@pytest.mark.parametrize(
    "line",
    [
        "Ada B. 0000-0002-1825-0097",
        "Ada B. (https://orcid.org/0000-0002-1825-0097)",
        "0000-0002-1825-0097; Ada B.",
    ],
)
def test_an_orcid_may_stand_anywhere_in_the_line(line):
    found = author_of(line)
    assert (found.name, found.orcid) == ("Ada B.", "0000-0002-1825-0097")


def test_licences_are_known_by_either_name():
    assert licence_named("ODbL 1.0").hub == "odbl"
    assert licence_named("odbl").spdx == "ODbL-1.0"
    assert licence_named("All rights reserved") is None
