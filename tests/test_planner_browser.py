"""The planner in Chromium: claims, gold on named documents and the census, at two widths, light and dark."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import axe_playwright_python
import browser
import pytest
from audit_plans import audited_campaign
from django.urls import reverse

from judging.models import Campaign
from touchstone.models import Job, User

pytestmark = browser.MARKS
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
ASKED = {"run": "run0", "against": "run1", "measure": "DCG@10", "cost_gold": "1", "cost_judgment": "1"}
VIEWS = [(1280, "light"), (360, "dark")]


@pytest.fixture(scope="module")
def chromium() -> Iterator:
    yield from browser.chromium()


@pytest.fixture
def web(child_environment) -> Iterator[str]:
    yield from browser.web(child_environment)


@pytest.fixture
def campaign(transactional_db, tmp_path) -> Campaign:
    return audited_campaign(tmp_path)


def test_the_planner_is_read_and_used_at_both_widths(chromium, web, campaign):
    address = f"{web}{reverse('console:planner', args=[campaign.pk])}"
    paths = [
        f"?{urlencode(ASKED)}",
        f"?{urlencode(ASKED | {'claim': 'these-topics', 'difference': '0.4', 'money': '20'})}",
        f"?{urlencode(ASKED | {'claim': 'all-topics'})}",
    ]
    manager = User.objects.create(username="mia", role="manager")
    for width, scheme in VIEWS:
        options = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
        with browser.page_of(chromium, web, manager, **options) as page:
            for path in paths:
                page.goto(address + path)
                page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
                page.evaluate(AXE)
                found = page.evaluate("axe.run(document, {iframes: false, resultTypes: ['violations']})")[
                    "violations"
                ]
                faults = [f"{fault['id']}: {node['target']}" for fault in found for node in fault["nodes"]]
                assert faults == [], (path, width, scheme)
                assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)
    with browser.page_of(chromium, web, manager, viewport={"width": 360, "height": 800}) as page:
        page.goto(address + paths[0])
        page.click("nav[aria-label=Claim] >> text=These topics")
        assert "exact for these topics" in page.inner_text("section[aria-labelledby=exact]")
        assert page.input_value("#difference") == ""
        page.click("button:has-text('Request gold on these documents')")
        page.wait_for_url("**/jobs/**")
    assert Job.objects.get(kind="audit").payload["audit"]["strategy"] == "census"
