"""The design page in a real Chromium: what a question does not need is out of sight, without any script."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import axe_playwright_python
import browser
import pytest
from django.urls import reverse
from small_campaign import make_campaign

from judging.models import Campaign
from touchstone.models import User

pytestmark = browser.MARKS
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
PREVIEW = {
    "question": "pair",
    "run_a": "run0",
    "run_b": "run2",
    "measure": "DCG@10",
    "depth": 10,
    "budget": 30,
}


@pytest.fixture(scope="module")
def chromium() -> Iterator:
    yield from browser.chromium()


@pytest.fixture(scope="module")
def web(child_environment) -> Iterator[str]:
    yield from browser.web(child_environment)


@pytest.fixture
def campaign(transactional_db, tmp_path) -> Campaign:
    return make_campaign(tmp_path, budget=18, kind="pair")


@pytest.fixture
def manager(campaign) -> User:
    return User.objects.create(username="mia", role="manager")


def visible_fields(page) -> set[str]:
    """Return the names of the controls that can be seen, those of every design aside."""
    names = page.eval_on_selector_all(
        "#design [name]", "all => all.filter(one => one.checkVisibility()).map(one => one.name)"
    )
    return set(names) - {"question", "measure", "depth", "budget", "preview"}


def test_a_question_shows_the_fields_it_needs_and_no_others(chromium, web, campaign, manager):
    needs = {
        "pair": {"run_a", "run_b"},
        "baseline": {"baseline", "candidates"},
        "ranking": {"ranked"},
        "system": {"run"},
        "pool": set(),
    }
    with browser.page_of(chromium, web, manager) as page:
        page.goto(f"{web}{reverse('console:design', args=[campaign.pk])}")
        for question, names in needs.items():
            page.check(f"[name=question][value={question}]")
            assert visible_fields(page) == names | {"misses", "false_alarms"}, question
        page.click("summary:has-text('Advanced')")
        shares = {"other_runs_share", "uniform_share"}
        always = {"method", "selection", "prior", "topic_selection"}
        assert visible_fields(page) == always | shares | {"misses", "false_alarms"}
        page.check("[name=method][value=paper]")
        assert visible_fields(page) == always | {"misses", "false_alarms"}


def test_a_design_is_previewed_by_keyboard_and_drawn(chromium, web, campaign, manager):
    with browser.page_of(chromium, web, manager) as page:
        page.goto(f"{web}{reverse('console:design', args=[campaign.pk])}")
        page.fill("#id_budget", "30")
        page.keyboard.press("Enter")
        page.wait_for_selector("#preview:has-text('Expected precision')")
        assert page.url.endswith("#preview")
        page.click("button:has-text('Draw more items')")
        page.wait_for_selector("h1:has-text('Drawing the items to judge')")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_the_pages_have_no_accessibility_fault_and_fit(chromium, web, campaign, manager, width, scheme):
    design = reverse("console:design", args=[campaign.pk])
    wrong = PREVIEW | {"run_b": "run0", "measure": "nDCG@10", "budget": 1, "prior": "scores"}
    paths = [
        design,
        f"{design}?{urlencode(PREVIEW)}",
        f"{design}?{urlencode(wrong)}",
        reverse("console:campaign", args=[campaign.pk]),
    ]
    options = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    with browser.page_of(chromium, web, manager, **options) as page:
        for path in paths:
            page.goto(f"{web}{path}")
            page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
            page.evaluate(AXE)
            found = page.evaluate("axe.run(document, {iframes: false, resultTypes: ['violations']})")[
                "violations"
            ]
            assert [f"{fault['id']}: {node['target']}" for fault in found for node in fault["nodes"]] == [], (
                path
            )
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
