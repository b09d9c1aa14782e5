"""What axe finds in a page as it is in the browser now, and whether the page is too wide."""

import os
from pathlib import Path
from typing import Any

import axe_playwright_python

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
SHOTS = os.environ.get("LOOK_SHOTS")  # a folder: it gets a picture of every look


def faults(page: Any, name: str) -> list[str]:
    """Return what axe finds in the page as it is, and whether it is wider than its window."""
    if SHOTS:
        page.screenshot(path=f"{SHOTS}/{name.replace(' ', '-').replace('?', 'help')}.png")
    if not page.evaluate("window.axe !== undefined"):  # still there unless another page was opened
        page.evaluate(AXE)
    # Otherwise axe would describe every element that is right: twice the time for the same violations.
    found = page.evaluate("() => axe.run(document, { iframes: false, resultTypes: ['violations'] })")[
        "violations"
    ]
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    violations = [f"{name}: {one['id']} {node['target']}" for one in found for node in one["nodes"]]
    return violations + ([f"{name}: {wide} px too wide"] if wide > 0 else [])
