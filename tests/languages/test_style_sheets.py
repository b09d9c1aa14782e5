"""Style sheets name beginnings and ends, never left and right: they serve a language that runs from right to left."""

import re

import pytest
from catalogues import ROOT

SHEETS = sorted(
    path
    for folder in ("platform", "judging")
    for path in (ROOT / folder).rglob("*.css")
    if "var" not in path.parts
)
SIDES = re.compile(
    r"(?:margin|padding|border)-(?:left|right)\b[^;}]*|(?<![\w-])(?:left|right)\s*:[^;}]*"
    r"|(?:text-align|float|clear)\s*:\s*(?:left|right)\b"
)
FOUR = re.compile(r"(?<![\w-])(?:margin|padding|border-width|inset)\s*:\s*([^;}]+)")


def physical(css: str) -> list[str]:
    """Return declarations that are of one side: by name, or by four values of which the second is not the fourth."""
    code = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    found = [match[0] for match in SIDES.finditer(code)]
    for match in FOUR.finditer(code):
        values = re.findall(r"(?:[^\s()]|\([^()]*(?:\([^()]*\)[^()]*)*\))+", match[1])
        if len(values) == 4 and values[1] != values[3] and "safe-area" not in match[1]:
            found.append(match[0])
    return found


@pytest.mark.parametrize("path", SHEETS, ids=lambda path: path.name)
def test_a_style_sheet_names_no_side(path):
    assert physical(path.read_text()) == []


@pytest.mark.parametrize(
    "planted",
    [
        "margin-left: 1rem",
        "border-right-width: 1px",
        "left: 0",
        "text-align: right",
        "margin: 0 0 0 auto",
        "padding: 0 calc(1rem + 2px) 0 0",
    ],
)
def test_a_planted_side_is_found(planted):
    kept = "a { margin: 0 1rem 0 1rem; text-align: start; padding: 0 auto } /* left: */ .left { inset-inline: 0 }"
    assert physical(kept) == []
    assert len(physical(f"{kept} b {{ {planted}; }}")) == 1


def test_every_sheet_of_the_product_is_read():
    assert {"style.css", "judge.css", "entry.css"} <= {path.name for path in SHEETS}
