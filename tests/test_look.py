"""Every page that the resolver names, as everybody who may see it: axe, both themes, 360 pixels, no complaint.

A new page needs nothing here, as long as tests/worlds.py knows what its address names. LOOK_SHOTS=folder leaves a
picture of every page there.
"""

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import axe_playwright_python
import browser as tools
import pytest
from browser import page_of
from django.urls import NoReverseMatch, reverse
from worlds import Route, World, make_user, make_world, routes

from touchstone.models import User

pytestmark = tools.MARKS

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
SHOTS = os.environ.get("LOOK_SHOTS")
# What a page must be asked, to have something to show.
QUERIES: dict[str, dict[str, str]] = {
    "analytics:pair": {"a": "run0", "b": "run2"},
    "analytics:methods": {"measure": "P@5", "run": "run0", "against": "run2"},
    "analytics:reuse": {"run": "run0"},
    "analytics:planner": {"run": "run0", "against": "run2"},
    "analytics:design": {
        "question": "pool", "measure": "P@5", "depth": "5", "budget": "30", "prior": "flat", "method": "default",
        "selection": "poisson", "uniform_percent": "0",
    },
}  # fmt: skip
# What shows nobody a page to look at, though a browser may ask for it: a redirect, a thing for machines alone.
NOT_PAGES = {"judging:hit-start"}
ALL = '{iframes: false, resultTypes: ["violations"]}'
CONTRAST = '{runOnly: ["color-contrast"], iframes: false, resultTypes: ["violations"]}'
SMALL = (
    '{runOnly: ["target-size", "scrollable-region-focusable"], iframes: false, resultTypes: ["violations"]}'
)
OVERFLOW = """() => {
    const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
    if (wide <= 0) return "";
    const all = [...document.querySelectorAll("main *, header *")].filter(e => e.getBoundingClientRect().right > 361);
    return `${wide}px too wide: ${all.slice(0, 3).map(e => e.outerHTML.slice(0, 120)).join(" | ")}`;
}"""
VIOLATIONS = """window.violated = [];
document.addEventListener(
    "securitypolicyviolation", e => window.violated.push(`${e.violatedDirective} ${e.blockedURI}`));"""


@pytest.fixture(scope="module")
def chromium():
    yield from tools.chromium()


@pytest.fixture
def web(child_environment):
    yield from tools.web(child_environment)


@pytest.fixture
def world(tmp_path):
    people = [make_user("mia", "manager"), make_user("rhea", "researcher")]
    return make_world(tmp_path, people, "bob")


def test_every_page_of_every_role_is_accessible_in_both_themes_and_fits_a_phone(chromium, web, world):
    answered: set[str] = set()
    faults: list[str] = []
    for name in ("mia", "rhea", "bob", ""):
        user = User.objects.get(username=name) if name else None
        with page_of(chromium, web, user) if user else Stranger(chromium) as page:
            _listen(page)
            for route in routes():
                if _is_for_programs(route) or route.name in NOT_PAGES:
                    continue
                try:
                    address = web + _address(route, world)
                except LookupError as lacking:
                    faults.append(str(lacking))
                    continue
                if _answers(page, address, route.name, answered, faults):
                    faults += _noted(
                        [f"{name or 'nobody'} {route}: {it}" for it in _looked_at(page, address, route, name)]
                    )
    assert not faults, "\n".join(faults)
    missing = {route.name for route in routes() if not _is_for_programs(route)} - answered - NOT_PAGES
    assert missing == set(), "nobody saw these: give them sample arguments (tests/worlds.py, QUERIES)"


def _is_for_programs(route: Route) -> bool:
    return "api-" in route.name or route.pattern.startswith("api/")


def _address(route: Route, world: World) -> str:
    arguments = world.arguments(route)
    try:
        path = reverse(route.name, kwargs=arguments)
    except NoReverseMatch:  # a run's number in an address of pages, its name in one for programs
        path = reverse(route.name, kwargs=arguments | {"run_id": world.names["run"]})
    query = QUERIES.get(route.name)
    return path + (f"?{urlencode(query)}" if query else "")


def _answers(page: Any, address: str, name: str, answered: set[str], faults: list[str]) -> bool:
    """Return whether there is a page; note who answered at all (a page, a file, or "POST only"), and faults."""
    first = page.context.request.get(address, max_redirects=0)
    if first.status >= 500:
        faults.append(f"{name}: status {first.status}")
    kind, policy = (first.headers.get(name, "") for name in ("content-type", "content-security-policy"))
    # A document in a sandbox is no page: it stands in a frame of one, and nothing of ours runs in it.
    is_page = first.status == 200 and "text/html" in kind and "sandbox" not in policy
    if first.status in (200, 405):
        answered.add(name)
    return is_page


class Stranger:
    """A page of nobody's, in a context of its own."""

    def __init__(self, browser: Any) -> None:
        self.context = browser.new_context(viewport={"width": 1280, "height": 800})

    def __enter__(self) -> Any:
        page = self.context.new_page()
        page.faults = []
        page.on("pageerror", lambda error: page.faults.append(str(error)))
        return page

    def __exit__(self, *error: object) -> None:
        self.context.close()


def _listen(page: Any) -> None:
    page.context.add_init_script(VIOLATIONS)
    page.said = []
    page.on(
        "console", lambda message: message.type in ("error", "warning") and page.said.append(message.text)
    )


def _looked_at(page: Any, address: str, route: Route, who: str) -> list[str]:
    """Return what is wrong with a page: in words of axe, of the console, of the Content-Security-Policy, and ours."""
    page.said.clear()
    page.set_viewport_size({"width": 1280, "height": 800})
    page.emulate_media(color_scheme="light")
    page.goto(address, wait_until="load")
    page.evaluate(AXE)
    faults = _axe(page, ALL, "light")
    if (
        "Touchstone" not in page.title() and route.name != "judging:hit"
    ):  # a market shows that in its own frame
        faults.append(f"title {page.title()!r}")
    if page.locator("h1").count() != 1:
        faults.append(f"{page.locator('h1').count()} h1")
    _shoot(page, route, who, "1280-light")
    page.emulate_media(color_scheme="dark")
    faults += _axe(page, CONTRAST, "dark")
    page.set_viewport_size({"width": 360, "height": 740})
    faults += _axe(page, SMALL, "360")
    if wide := page.evaluate(OVERFLOW):
        faults.append(wide)
    _shoot(page, route, who, "360-dark")
    if SHOTS:
        page.set_viewport_size({"width": 794, "height": 1100})  # a sheet of A4
        page.emulate_media(media="print", color_scheme="light")
        _shoot(page, route, who, "print")
        page.emulate_media(media="screen")
    return [*faults, *page.said, *page.evaluate("window.violated")]


def _axe(page: Any, options: str, where: str) -> list[str]:
    found = page.evaluate(f"axe.run(document, {options})")["violations"]
    return [
        f"{where} {one['id']}: {node['html'][:160]} {_why(node)}"
        for one in found
        for node in one["nodes"][:3]
    ]


def _why(node: dict[str, Any]) -> str:
    data = [check.get("data") for check in [*node["any"], *node["all"]] if check.get("data")]
    return json.dumps(data)[:200]


def _shoot(page: Any, route: Route, who: str, tag: str) -> None:
    if SHOTS:
        path = f"{SHOTS}/{route.name.replace(':', '-')}-{who or 'nobody'}-{tag}.png"
        page.screenshot(path=path, full_page=True)


def _noted(faults: list[str]) -> list[str]:
    if SHOTS and faults:
        with (Path(SHOTS) / "faults.txt").open("a") as notes:
            notes.write("\n".join(faults) + "\n")
    return faults
