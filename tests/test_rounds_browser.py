"""Two rounds in a real Chromium, by clicking: from the page of all results to the sentence, wide and narrow."""

import os
from collections.abc import Iterator
from pathlib import Path

import axe_playwright_python
import browser
import pytest
from two_rounds import two_rounds

import analytics.tasks  # noqa: F401 (registers the jobs)
from touchstone import jobs
from touchstone.models import Job, User, WorkerHeartbeat

pytestmark = browser.MARKS
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
SHOTS = os.environ.get("LOOK_SHOTS")
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def chromium() -> Iterator:
    yield from browser.chromium()


@pytest.fixture(scope="module")
def web(child_environment) -> Iterator[str]:
    yield from browser.web(child_environment)


def look(page, name) -> list[str]:
    """Return what axe and the width of the page object to, in both themes at 1280 and 360 pixels."""
    faults = []
    page.evaluate(AXE)
    for theme in ("light", "dark"):
        for width in (1280, 360):
            page.emulate_media(color_scheme=theme)
            page.set_viewport_size({"width": width, "height": 800})
            found = page.evaluate("axe.run(document, {iframes: false, resultTypes: ['violations']})")
            faults += [f"{name} {width} {theme}: {one['id']}" for one in found["violations"]]
            if page.evaluate(WIDER) > 0:
                faults.append(f"{name} {width} {theme}: too wide")
            if SHOTS:
                page.screenshot(path=f"{SHOTS}/rounds-{name}-{width}-{theme}.png", full_page=True)
    page.set_viewport_size({"width": 1280, "height": 800})
    return faults


def test_two_rounds_by_clicking_alone(chromium, web, transactional_db, tmp_path):
    two_rounds(tmp_path)
    WorkerHeartbeat.objects.create(name="w", seen_at="2026-01-01T00:00:00Z")
    user = User.objects.create(username="rita", role="researcher")
    with browser.page_of(chromium, web, user) as page:
        page.goto(f"{web}/results/")
        page.click("text=Two rounds")
        browser.says(page, "h1", "Two rounds")
        page.select_option("#first", label="October")
        page.fill("#first-run", "run0")
        page.select_option("#second", label="November")
        page.fill("#second-run", "run9")
        page.fill("#measure", "P@10")
        page.select_option("#audit", "first")
        page.click("button:has-text('Show')")
        browser.says(page, "#errors", "the collection has no run 'run9'")
        faults = look(page, "refused")
        page.fill("#second-run", "run2")
        page.click("button:has-text('Show')")
        browser.says(page, ".empty h2", "Not computed yet")
        faults += look(page, "asked")
        page.click("button:has-text('Compute')")
        page.wait_for_selector("#job")
        job = Job.objects.get(kind="rounds")
        jobs.run(job.pk)
        job.refresh_from_db()
        assert (job.state, job.error) == ("done", "")
        page.click("text=Continue")
        browser.says(page, "blockquote.verdict", "between run0 in October and run2 in November")
        assert page.locator("section[aria-labelledby=claims] tbody tr").count() == 2
        browser.says(page, "section[aria-labelledby=papers]", "One audit for both rounds, Wald")
        faults += look(page, "result")
    assert faults == []
