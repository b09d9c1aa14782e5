"""What the manual names in italics, a page, a button or a column, is written like that on some page."""

import re
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = ["quickstart.md", "manager.md", "assessor.md", "researcher.md"]
FOLDERS = ("judging", "sampling", "analytics", "platform")
EMPHASIS = re.compile(r"(?<![*\w])\*([^*\n]+)\*(?![*\w])")


def emphasised(text: str) -> set[str]:
    """Return what stands in italics, code and tables' stars left out."""
    return {name.strip() for name in EMPHASIS.findall(re.sub(r"`[^`]*`", "", text))}


@cache
def shown() -> str:
    """Return every word of templates, scripts and Python, where labels come from."""
    files = [
        path
        for folder in FOLDERS
        for kind in ("*.html", "*.py", "*.js")
        for path in (REPOSITORY / folder).rglob(kind)
    ]
    return " ".join(" ".join(path.read_text().split()) for path in files).casefold()


def missing(names: set[str]) -> list[str]:
    return sorted(name for name in names if name.casefold() not in shown())


@pytest.mark.parametrize("page", PAGES)
def test_what_the_manual_names_is_on_a_page(page):
    names = emphasised((REPOSITORY / "docs" / page).read_text())
    assert names
    assert missing(names) == []


def test_a_button_that_there_never_was_is_noticed():
    """The control."""
    assert missing(emphasised("Press *Save and audit now*, then *Brew the coffee*.")) == ["Brew the coffee"]
