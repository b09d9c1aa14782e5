"""A researcher's way in a real Chromium, only by clicking: from the list of results to a downloaded release."""

import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import browser
import pytest
from small_campaign import judge_all, judge_audit, make_assessor, make_campaign, truth_of

import analytics.tasks  # noqa: F401 (registers the jobs)
from analytics.models import Release
from analytics.services.analyses import AnalysisSubject, ask
from analytics.services.families import declare_family
from analytics.services.recomputation import recompute
from judging.models import Campaign, Run
from sampling.services.auditing import audit
from touchstone import jobs
from touchstone.models import Job, User, WorkerHeartbeat

pytestmark = browser.MARKS
TOO_WIDE = """() => document.documentElement.scrollWidth <= 360 ? [] :
    [...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > 361)
    .slice(0, 3).map(e => e.outerHTML.slice(0, 200))"""


@pytest.fixture(scope="module")
def chromium() -> Iterator:
    yield from browser.chromium()


@pytest.fixture(scope="module")
def web(child_environment) -> Iterator[str]:
    yield from browser.web(child_environment)


@pytest.fixture
def campaign(transactional_db, tmp_path) -> Campaign:
    made = make_campaign(tmp_path)
    judge_all(made, [make_assessor(made, "ann"), make_assessor(made, "ben")], lambda slot, _: truth_of(slot))
    audit(campaign=made, items_each_time=30, items_in_total=30, seed=5)
    judge_audit(made, make_assessor(made, "greta", tier="gold"))
    recompute(campaign=made)
    WorkerHeartbeat.objects.create(name="w", seen_at="2026-01-01T00:00:00Z")
    return made


def work(kind: str) -> Job:
    """Do what a worker would do, and return the newest job of the kind."""
    job = Job.objects.filter(kind=kind).latest("created_at")
    jobs.run(job.pk)
    job.refresh_from_db()
    return job


def test_from_results_to_a_downloaded_release_by_clicking_alone(chromium, web, campaign, tmp_path):
    user = User.objects.create(username="rita", role="researcher")
    with browser.page_of(chromium, web, user, accept_downloads=True, color_scheme="dark") as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=web)
        page.goto(web)
        page.click(f"text={campaign.name}")
        browser.says(page, "h1", campaign.name)
        assert page.locator("#plot-forest svg").count() == 1
        # pairs: the verdict in words, copied
        page.click("text=Compare pairs")
        browser.says(page, "#quoted", "DCG@10")
        page.locator("td >> text=verdict").last.click()
        page.click("button:has-text('Copy')")
        browser.says(page, ".copy [role=status]", "Copied.")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == page.inner_text("#quoted")
        # another measure, the ranking, what is sensitive
        page.click("nav[aria-label=Measure] >> text=P@10")
        browser.says(page, "#quoted", "P@10")
        page.click("nav.page-tabs >> text=Ranking")
        browser.says(page, "h1", "Ranking")
        assert page.locator("#plot-ranks svg").count() == 1
        page.click("nav.page-tabs >> text=Sensitivity")
        page.click("button:has-text('Compute')")
        page.wait_for_selector("#job")
        assert work("analysis").state == Job.State.DONE
        page.click("text=Continue")
        browser.says(page, "#g-assessor", "Without one assessor")
        # a release
        page.click("nav.page-tabs >> text=Releases")
        page.click("text=Make a release")
        page.fill("[name=authors]", "Ada B.")
        page.fill("[name=licence]", "CC-BY-4.0")
        page.click("button:has-text('Make the release')")
        browser.says(page, "#making", "In preparation")
        assert work("release").state == Job.State.DONE
        page.click("text=Reload")
        browser.says(page, "#citation", "Ada B.")
        with page.expect_download() as caught:
            page.click("a:has-text('Download'):visible")
        file = Path(tmp_path / "release.zip")
        caught.value.save_as(file)
    release = Release.objects.get()
    assert hashlib.sha256(file.read_bytes()).hexdigest() == release.sha256
    assert any(name.endswith("/verify.py") for name in zipfile.ZipFile(file).namelist())


def test_the_pages_of_results_fit_a_phone_and_work_without_script(chromium, web, campaign):
    user = User.objects.create(username="rita", role="researcher")
    campaign.collection.runs.filter(run_id="run2").update(is_manual=True)
    ask(campaign=campaign, wanted=AnalysisSubject("no-judgments", "DCG@10"), user=user)
    assert work("analysis").state == "done"
    narrow = {"viewport": {"width": 360, "height": 700}, "java_script_enabled": False}
    with browser.page_of(chromium, web, user, **narrow) as page:
        for tab in (
            "",
            "pairs/",
            "ranking/",
            "topics/",
            "sensitivity/",
            "no-judgments/?measure=DCG@10",
            "runs/upload/",
            "releases/",
            "releases/new/",
        ):
            answer = page.goto(f"{web}/results/{campaign.pk}/{tab}")
            assert answer.status == 200, tab
            page.wait_for_selector("h1")
            wide = page.locator("main").bounding_box()
            assert wide["x"] + wide["width"] <= 360, tab
        # a choice that does not exist, and a family with a long name that does
        name = "x" * 150
        Run.objects.create(collection=campaign.collection, run_id=name, n_topics=0, n_lines=0)
        declare_family(campaign=campaign, user=user, name=f"runs:run0,{name}")
        for tab in ("pairs/?", "ranking/?", "pair/?a=run0&b=run1&"):
            for choice, shown in (
                (f"family=runs:{name},nobody{name}", "This choice does not exist."),
                ("claim=all", "This choice does not exist."),
                ("", "runs:run0,xxx"),
            ):
                page.goto(f"{web}/results/{campaign.pk}/{tab}{choice}")
                assert shown in page.inner_text("main"), (tab, choice)
                assert page.evaluate(TOO_WIDE) == [], (tab, choice)
        page.goto(f"{web}/results/{campaign.pk}/pairs/")
        assert page.locator(
            "button:has-text('Copy')"
        ).is_hidden()  # it needs a script; the text can be selected


def tables_to_drag(page) -> list[str]:
    """Return the tables on the screen that are wider than what one sees of them."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll('.table-scroll')]
            .filter((table) => table.checkVisibility() && table.scrollWidth > table.clientWidth + 1)
            .map((table) => table.getAttribute('aria-label') ?? table.getAttribute('aria-labelledby'))"""
    )
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_value_interval_difference_and_verdict_show_without_dragging_for_either_claim(
    chromium, web, campaign, width, scheme
):
    user = User.objects.create(username="rita", role="researcher")
    stored = campaign.computations.latest("pk").estimates.filter(measure="DCG@10", method="corrected")
    value = stored.get(run__run_id="run1", run_b=None)
    pair = stored.get(run__run_id="run0", run_b__run_id="run1")
    size = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    with browser.page_of(chromium, web, user, **size) as page:
        page.goto(f"{web}/results/{campaign.pk}/?measure=DCG@10")
        for claim, low, high in (
            ("Topics like these", "topics_low", "topics_high"),
            ("These topics", "low", "high"),
        ):
            page.click(f"nav[aria-label=Claim] >> text='{claim}'")
            browser.says(page, "nav[aria-label=Claim] [aria-current]", claim)
            page.click("nav.page-tabs >> text=Runs")
            browser.says(
                page, "table.stacked tbody", f"{getattr(value, low):.3f} to {getattr(value, high):.3f}"
            )
            browser.says(page, "table.stacked tbody", f"{value.value:.3f}")
            assert tables_to_drag(page) == []
            page.click("nav.page-tabs >> text=Pairs")
            browser.says(page, "nav[aria-label=Claim] [aria-current]", claim)  # the tab keeps the claim
            ends = sorted(abs(getattr(pair, name)) for name in (low, high))
            for number in (abs(pair.value), *ends):
                browser.says(page, "section[aria-labelledby=pairs] tbody", f"{number:.3f}")
            assert page.locator("td:has-text('is higher'):visible, td:has-text('no'):visible").count() >= 3
            assert tables_to_drag(page) == []
            page.click("nav.page-tabs >> text=Ranking")
            assert tables_to_drag(page) == []
            page.goto(f"{web}/results/{campaign.pk}/?measure=DCG@10")
        if width == 360:  # the control: a table of every method is too wide for a phone
            page.click("#all-methods summary")
            assert tables_to_drag(page) == ["Runs by every method"]
