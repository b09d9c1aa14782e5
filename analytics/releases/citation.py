"""How a release is cited: as a sentence, for BibTeX, and as CITATION.cff."""

from analytics.releases.about import About
from analytics.releases.licences import licence_named
from analytics.releases.yaml_lines import Value, yaml_lines

CFF = "1.2.0"  # the version of the Citation File Format

SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def citation_text(about: About) -> str:
    """Return the citation as one line of text.

    >>> citation_text(About("c", "k", "1.0", "Good grades", "", "2026-11-21", "c", authors=("Ada B.", "Cy D.")))
    'Ada B. and Cy D. (2026). Good grades, version 1.0 [Data set].\\n'
    """
    authors = " and ".join(_words(author) for author in about.authors)
    head = f"{authors} ({about.year}). " if authors else f"({about.year}). "
    title = _words(about.title).rstrip(".")
    root = f" Merkle root of its judgments: {about.merkle_root}." if about.merkle_root else ""
    place = f" https://doi.org/{about.doi}" if about.doi else f" {about.url}" if about.url else ""
    return f"{head}{title}, version {about.version} [Data set].{root}{place}\n"


def bibtex(about: About) -> str:
    """Return the citation as an entry of BibTeX; what TeX would read as a command is escaped.

    >>> print(bibtex(About("c", "k", "1.0", "R&D", "", "2026-11-21", "c", authors=("Ada B.",), merkle_root="f00")))
    @misc{c-1.0,
      author = {{Ada B.}},
      title = {{R\\&D}},
      year = {2026},
      version = {1.0},
      note = {Data set. Merkle root of its judgments: f00}
    }
    <BLANKLINE>
    """
    fields = {
        "author": " and ".join(f"{{{_tex(author)}}}" for author in about.authors),
        "title": f"{{{_tex(about.title)}}}",
        "year": about.year,
        "version": about.version,
        "doi": _tex(about.doi),
        "url": about.url.replace("{", "%7B").replace("}", "%7D"),
        "note": "Data set."
        + (f" Merkle root of its judgments: {about.merkle_root}" if about.merkle_root else ""),
    }
    lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items() if value)
    return f"@misc{{{about.folder},\n{lines}\n}}\n"


def citation_cff(about: About) -> str:
    """Return CITATION.cff, version 1.2.0: what GitHub, Zenodo and Zotero read.

    >>> print(citation_cff(About("c", "k", "1.0", "A", "", "2026-11-21", "c", authors=("Ada B.",))))
    cff-version: "1.2.0"
    message: "If you use these judgments, please cite this release."
    type: "dataset"
    title: "A"
    version: "1.0"
    date-released: "2026-11-21"
    authors:
      - family-names: "B."
        given-names: "Ada"
    <BLANKLINE>
    """
    licence = licence_named(about.licence)
    fields: dict[str, Value] = {
        "cff-version": CFF,
        "message": "If you use these judgments, please cite this release.",
        "type": "dataset",
        "title": _words(about.title),
        "version": about.version,
        "date-released": about.published,
        "authors": [_person(*one.parts, one.orcid) for one in about.people]
        or [{"name": _words(about.campaign)}],
        "license": licence.spdx if licence else "",
        "doi": about.doi,
        "url": about.url,
        "identifiers": [
            {
                "type": "other",
                "value": about.merkle_root,
                "description": "Merkle root (RFC 6962) of the judgments",
            }
        ]
        if about.merkle_root
        else "",
    }
    return "\n".join(yaml_lines({name: value for name, value in fields.items() if value})) + "\n"


def _person(family: str, given: str, orcid: str) -> dict[str, Value]:
    fields = {
        "family-names": family,
        "given-names": given,
        "orcid": f"https://orcid.org/{orcid}" if orcid else "",
    }
    return {name: value for name, value in fields.items() if value}


def _tex(text: str) -> str:
    return "".join(SPECIAL.get(character, character) for character in _words(text))


def _words(text: str) -> str:
    """Return a text on one line."""
    return " ".join(text.split())
