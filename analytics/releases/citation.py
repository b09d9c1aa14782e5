"""How a release is cited: as a sentence, and for BibTeX."""

from analytics.releases.about import About

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
    return f"{head}{title}, version {about.version} [Data set].{root}\n"


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
        "note": "Data set."
        + (f" Merkle root of its judgments: {about.merkle_root}" if about.merkle_root else ""),
    }
    lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items() if value)
    return f"@misc{{{about.folder},\n{lines}\n}}\n"


def _tex(text: str) -> str:
    return "".join(SPECIAL.get(character, character) for character in _words(text))


def _words(text: str) -> str:
    """Return a text on one line."""
    return " ".join(text.split())
