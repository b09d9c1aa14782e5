"""Every page that the resolver names, as everybody who may see it: axe, both themes, desk and phone, no complaint.

A new page needs nothing here, as long as tests/worlds.py knows what its address names. LOOK_SHOTS=folder leaves a
picture of every page there.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import axe_playwright_python
import browser as tools
import openid_provider
import pytest
from browser import page_of
from django.urls import reverse
from django.utils import timezone
from worlds import Route, World, make_user, make_world, routes

from judging.models import Assessor, Campaign
from judging.services import training
from touchstone import embedded
from touchstone.models import User

pytestmark = tools.MARKS

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
SHOTS = os.environ.get("LOOK_SHOTS")
# What a browser may ask for without getting a page: these lead elsewhere.
LEAD_ELSEWHERE = {"judging:hit-start", "console:manage-collection-new"}
# Pages of a state that the campaign is not in; `states` brings it there.
OF_A_STATE = {"judging:consent", "judging:training", "judging:study", "judging:hit"}
# Without a company's provider there are none of these: they lead to it and come back from it (the last test here).
OF_A_PROVIDER = {
    "company",
    "company-back",
    "company-invitation",
    "company-join",
    "company-link",
    "company-password",
}
CONTRAST = '{runOnly: ["color-contrast"], iframes: false, resultTypes: ["violations"]}'
ALL = '{iframes: false, resultTypes: ["violations"]}'
# Each page in both themes on a desk and on a phone; the narrowest phone is 360 pixels wide, a common one 390.
LOOKS = [
    (1280, "light", ""),  # colours are the same as at 1440
    (1440, "light", CONTRAST),
    (1440, "dark", CONTRAST),
    (390, "light", ALL),
    (360, "dark", ALL),
]
OVERFLOW = """() => {
    const width = document.documentElement.clientWidth, wide = document.documentElement.scrollWidth - width;
    if (wide <= 0) return "";
    const all = [...document.querySelectorAll("main *, header *")].filter(
        e => e.getBoundingClientRect().right > width + 1);
    return `${wide}px too wide: ${all.slice(0, 3).map(e => e.outerHTML.slice(0, 120)).join(" | ")}`;
}"""
PASSWORD = "correct horse battery"
ERRORS = ("404", "405", "another", "refused")  # how the names of pages end that come with such a status
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
    return make_world(tmp_path, [make_user("mia", "manager"), make_user("rhea", "researcher")], "bob")


def test_every_page_of_every_role_is_accessible_in_both_themes_and_fits_a_phone(chromium, web, world):
    answered: set[str] = set()
    faults: list[str] = []
    pages = [route for route in routes() if not _is_for_programs(route)]
    for name in ("mia", "rhea", "bob", ""):
        with _page(chromium, web, name) as page:
            for route in pages:
                try:
                    address = web + world.address(route)
                except LookupError as lacking:
                    faults.append(str(lacking))
                    continue
                if _answers(page, address, route.name, answered, faults):
                    faults += _looked_at(page, address, f"{name or 'nobody'} {route}")
    for name, title, path in states(world):
        with _page(chromium, web, name) as page:
            faults += _looked_at(page, web + path, f"{name or 'nobody'} {title}")
    assert not faults, "\n".join(faults)
    missing = {route.name for route in pages} - answered - LEAD_ELSEWHERE - OF_A_STATE - OF_A_PROVIDER
    assert not missing, f"nobody saw {sorted(missing)}: give sample arguments (tests/worlds.py)"


def test_the_pages_of_a_companys_log_in_are_as_accessible(chromium, child_environment, world):
    mia = User.objects.get(username="mia")
    mia.set_password(PASSWORD)
    mia.save()
    address = f"127.0.0.1:{embedded.free_port()}"
    claims = {"email": "mia@example.org", "email_verified": True, "name": "Mia"}
    names = world.names
    with openid_provider.running(("s-mia", claims)) as provider:
        given = provider.register(f"http://{address}")
        with tools.served({**child_environment, **given}, address) as web:
            with _page(chromium, web, "") as page:
                for name, path in (
                    ("log-in", reverse("login")),
                    ("invitation", reverse("link-invitation", args=[names["link-invitation token"]])),
                    ("password", reverse("link-password", args=[names["link-password token"]])),
                    ("campaign", reverse("judging:join", args=[names["judging:join token"]])),
                    ("company refused", reverse("company-back")),
                ):
                    faults = _looked_at(page, web + path, f"nobody {name}")
                    assert not faults, "\n".join(faults)
                assert "begun in another browser" in page.inner_text("main")
            with _page(chromium, web, "mia") as page:
                faults = _looked_at(page, web + reverse("account"), "mia account")
                page.goto(web + reverse("company-link"), wait_until="networkidle")
                page.said.clear()  # what the company's page says is not ours
                page.click("button:has-text('s-mia')")  # at the company
                page.wait_for_selector("text=Present password")
                faults += _faults_here(page, "mia company link")
    assert not faults, "\n".join(faults)


def states(world: World) -> Iterator[tuple[str, str, str]]:
    """Bring the campaign into one state after another; yield who looks, a name, and the address."""
    campaign, bob = world.campaign, Assessor.objects.get(pk=world.names["assessor_id"])

    def change(row: Any, **fields: Any) -> None:
        type(row).objects.filter(pk=row.pk).update(**fields)

    named = {"campaign_id": campaign.pk}
    change(bob, trained_at=None)
    change(campaign, consent="You may stop at any time.", guidelines="Judge the text.")
    yield "bob", "consent", reverse("judging:consent", kwargs=named)
    change(bob, consented_at=timezone.now())
    there = reverse("judging:training", kwargs=named)
    yield "bob", "training", there
    training.answer(assessor=bob, position=1, attempt=1, grade=1)
    yield "bob", "training answer", f"{there}?item=1"
    yield "bob", "training result", there
    key = {"entry_key": world.names["entry_key"]}
    change(campaign, entry=Campaign.Entry.STUDY, completion_code="C1")
    study = {"PROLIFIC_PID": "p1", "STUDY_ID": "s1", "SESSION_ID": "x1"}
    yield "", "study", f"{reverse('judging:study', kwargs=key)}?{urlencode(study)}"
    yield "rhea", "study of another", f"{reverse('judging:study', kwargs=key)}?{urlencode(study)}"
    change(campaign, entry=Campaign.Entry.HIT, market_origin="https://worker.example")
    hit = {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"}
    yield "", "hit", f"{reverse('judging:hit', kwargs=key)}?{urlencode(hit)}"
    yield "rhea", "error 404", "/nowhere/"
    yield "", "error 404", "/nowhere/"
    yield "mia", "error 405", reverse("logout")
    change(campaign, state=Campaign.State.DRAFT)
    yield "mia", "draft", reverse("console:campaign", kwargs=named)


@contextmanager
def _page(chromium: Any, web: str, name: str) -> Iterator[Any]:
    """Yield a page of this person, or of nobody, that notes what its console says."""
    if name:
        with page_of(chromium, web, User.objects.get(username=name)) as page:
            yield _listening(page)
        return
    context = chromium.new_context()
    try:
        yield _listening(context.new_page())
    finally:
        context.close()


def _listening(page: Any) -> Any:
    page.context.add_init_script(VIOLATIONS)
    page.said = []
    page.on(
        "console", lambda message: message.type in ("error", "warning") and page.said.append(message.text)
    )
    return page


def _is_for_programs(route: Route) -> bool:
    return "api-" in route.name or route.pattern.startswith("api/")


def _answers(page: Any, address: str, name: str, answered: set[str], faults: list[str]) -> bool:
    """Return whether there is a page; note who answered at all (a page, a file, or "POST only"), and faults."""
    first = page.context.request.get(address, max_redirects=0)
    if first.status >= 500:
        faults.append(f"{name}: status {first.status}")
    if first.status in (200, 405):
        answered.add(name)
    kind, policy = (first.headers.get(header, "") for header in ("content-type", "content-security-policy"))
    # A document in a sandbox is no page: it stands in a frame of one, and nothing of ours runs in it.
    return first.status == 200 and "text/html" in kind and "sandbox" not in policy


def _looked_at(page: Any, address: str, name: str) -> list[str]:
    """Return what is wrong with the page of an address."""
    page.said.clear()
    answer = page.goto(address, wait_until="load")
    is_error = name.endswith(ERRORS)
    faults = [] if (answer.status == 200) is not is_error else [f"{name}: status {answer.status}"]
    return faults + _faults_here(page, name)


def _faults_here(page: Any, name: str) -> list[str]:
    """Return what is wrong with the page on screen: in words of axe, of the console, of the policy, and ours."""
    faults = []
    if "Touchstone" not in page.title() and not name.endswith(
        "hit"
    ):  # that one stands in a market's own frame
        faults.append(f"title {page.title()!r}")
    if page.locator("h1").count() != 1:
        faults.append(f"{page.locator('h1').count()} h1")
    page.evaluate(AXE)
    for width, theme, rules in LOOKS:
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=theme)
        faults += _axe(page, rules, f"{width} {theme}") if rules else []
        if wide := page.evaluate(OVERFLOW):
            faults.append(f"{width} {theme}: {wide}")
        _shoot(page, name, f"{width}-{theme}")
    # The browser itself remarks on a status that is an error.
    said = [
        text
        for text in page.said
        if not (name.endswith(ERRORS) and text.startswith("Failed to load resource"))
    ]
    return _noted([f"{name}: {fault}" for fault in [*faults, *said, *page.evaluate("window.violated")]])


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


def _shoot(page: Any, name: str, tag: str) -> None:
    if not SHOTS:
        return
    file = name.replace(":", "-").replace(" ", "-")
    page.screenshot(path=f"{SHOTS}/{file}-{tag}.png", full_page=True)
    if tag == "360-dark":
        page.pdf(path=f"{SHOTS}/{file}.pdf", prefer_css_page_size=True, print_background=True)


def _noted(faults: list[str]) -> list[str]:
    if SHOTS and faults:
        with (Path(SHOTS) / "faults.txt").open("a") as notes:
            notes.write("\n".join(faults) + "\n")
    return faults
